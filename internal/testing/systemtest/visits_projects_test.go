package systemtest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	. "github.com/souvenir-ai/souvenir"
)

// onEachProject calls a method on every project, named by owner and id. may reports whether the visitor may do so in a
// project, if the view does not forbid it; nil means in every visible project. want is then the method's error.
func (v *visit) onEachProject(what string, may func(p neighbourProject, role MemberRole) bool,
	want func(p neighbourProject) error,
	call func(s *Store, p neighbourProject, ref ProjectRef) (any, error), given ...string) {
	v.Helper()
	for _, p := range neighbourProjects {
		ref := p.ref()
		before := rowsOf(v.T, v.n.store)
		answer, err := call(v.view, p, ProjectRef{ID: ref})
		v.check(what+" of "+ref, answer, err, append(given, ref)...)
		var expected error
		switch {
		case may != nil && v.access.ReadOnly:
			expected = ErrReadOnly
		case !v.seesProject(p):
			const nowhere = "qqqq/qqqq"
			_, unknown := call(v.view, p, ProjectRef{ID: nowhere})
			if !errors.Is(err, ErrNotFound) || unknown == nil ||
				strings.ReplaceAll(err.Error(), ref, nowhere) != unknown.Error() {
				v.Errorf("%s of %s, which cannot be seen, gives %v; of an unknown one, %v; want the same", what, ref, err,
					unknown)
			}
			expected = ErrNotFound
		case may != nil && (v.access.Projects != nil || !may(p, p.role(v.access.User))):
			expected = ErrForbidden
		case want != nil:
			expected = want(p)
		}
		if !errors.Is(err, expected) {
			v.Errorf("%s of %s gives %v, want %v", what, ref, err, expected)
		}
		changed := rowsOf(v.T, v.n.store) != before
		if changed && (err != nil || may == nil) {
			v.Errorf("%s of %s gives %v and changed something", what, ref, err)
		}
		if changed {
			v.n = openNeighbourhood(v.T, v.n, 0)
			v.view = v.n.store.As(v.access)
		}
	}
}

func managers(_ neighbourProject, role MemberRole) bool { return role == MemberOwner }

// newcomer returns a user who is not a member of a project.
func newcomer(p neighbourProject) string {
	if p.owner == "eve" {
		return "alice"
	}
	return "eve"
}

// withoutFrank returns the error for changing frank's membership of a project.
func withoutFrank(p neighbourProject) error {
	if p.role("frank") == "" {
		return ErrNotFound
	}
	return nil
}

// checkProjects checks that an answer lists the visible projects, with the visitor's role and the visible details of
// each.
func (v visit) checkProjects(what string, got []Project, owned func(p neighbourProject) bool) {
	v.Helper()
	var want []string
	for _, p := range neighbourProjects {
		if !v.seesProject(p) || !owned(p) {
			continue
		}
		want = append(want, p.ref())
		i := slices.IndexFunc(got, func(g Project) bool { return g.Owner+"/"+g.ID == p.ref() })
		if i < 0 {
			v.Errorf("%s does not show %s: got the place %v, want one of at least 0", what, p.ref(), i)
			continue
		}
		g := got[i]
		memories := 0
		for m, err := range v.view.Memories(v.Context(), MemoryList{ProjectID: p.ref()}) {
			if err != nil || m.ProjectID != p.id {
				v.Errorf("a listing of %s gives %v, %v; want %v", p.ref(), m.ProjectID, err, p.id)
			}
			memories++
		}
		if g.Role != p.role(v.access.User) || g.Members != len(p.people) || g.MemoryCount != memories || memories == 0 ||
			g.OwnerName != accounts[p.owner] {
			v.Errorf("%s shows %s as %+v; want %d members and %d memories", what, p.ref(), g, len(p.people), memories)
		}
		if again, err := v.view.GetProject(v.Context(), ProjectRef{ID: g.Ref()}); err != nil || again != g {
			v.Errorf("%s named as %s is %+v, %v; want %v", p.ref(), g.Ref(), again, err, g)
		}
	}
	if len(got) != len(want) {
		v.Errorf("%s shows %+v, want %v", what, got, want)
	}
}

var projectVisits = map[string]func(v visit){
	"Projects": func(v visit) {
		all, err := v.view.Projects(v.Context())
		v.check("Projects", all, err)
		v.checkProjects("Projects", all, func(neighbourProject) bool { return true })
	},
	"Owners": func(v visit) {
		owners, err := v.view.Insights().Owners(v.Context())
		v.check("Owners", owners, err)
		if len(owners) == 0 || owners[0].ID != v.access.User || owners[0].Name != accounts[v.access.User] {
			v.Fatalf("Owners begins with %+v; want the caller", owners)
		}
		for _, o := range owners {
			v.checkProjects("Owners", o.Projects, func(p neighbourProject) bool { return p.owner == o.ID })
		}
		for _, p := range neighbourProjects {
			if v.seesProject(p) && !slices.ContainsFunc(owners, func(o Owner) bool { return o.ID == p.owner }) {
				v.Errorf("Owners does not show %s, want the owner there", p.owner)
			}
		}
	},
	"GetProject": func(v visit) {
		v.onEachProject("GetProject", nil, nil,
			func(s *Store, _ neighbourProject, ref ProjectRef) (any, error) { return s.GetProject(v.Context(), ref) })
		for _, ref := range []ProjectRef{{ID: "secretplan"}, {Name: "secretplan"}, {ID: accounts["alice"] + "/secretplan"}} {
			found, err := v.view.GetProject(v.Context(), ref)
			v.check("GetProject", found, err, ref.ID+ref.Name)
			if seen := v.seesProject(neighbourProjects[1]); seen != (err == nil) || !seen && !errors.Is(err, ErrNotFound) {
				v.Errorf("GetProject(%+v) gives %+v, %v, want it found where it is seen", ref, found, err)
			}
		}
	},
	"Members": func(v visit) {
		v.onEachProject("Members", nil, nil, func(s *Store, p neighbourProject, ref ProjectRef) (any, error) {
			members, err := s.Members(v.Context(), ref)
			var got []string
			for _, m := range members {
				got = append(got, m.User+" "+string(m.Role))
				if m.Name != accounts[m.User] {
					v.Errorf("%s has the name %s; want %v", m.User, m.Name, accounts[m.User])
				}
			}
			if err == nil && !slices.Equal(got, p.people) {
				v.Errorf("the members of %s are %v, want %v", p.ref(), got, p.people)
			}
			return members, err
		})
	},
	"AddProject": func(v visit) { // other users' ids and names are free, and nothing reveals that they exist
		for _, p := range append(neighbourProjects, neighbourProject{owner: "alice", id: "nothing"}) {
			added, err := v.view.AddProject(v.Context(), NewProject{ID: p.id})
			v.check("AddProject", added, err, p.id)
			var want error
			switch {
			case v.access.ReadOnly:
				want = ErrReadOnly
			case v.access.Projects != nil && errors.Is(v.visitor.adds, ErrInvalid): // it fits two
				want = ErrInvalid
				if p.id != "shared" {
					want = ErrForbidden
				}
			case v.access.Projects != nil && !slices.Contains(v.access.Projects, p.id):
				want = ErrForbidden
			case slices.ContainsFunc(neighbourProjects,
				func(taken neighbourProject) bool { return taken.owner == v.access.User && taken.id == p.id }):
				want = ErrConflict
			}
			if !errors.Is(err, want) {
				v.Errorf("AddProject of %s gives %v, want %v", p.id, err, want)
			}
			if err == nil {
				v.n = openNeighbourhood(v.T, v.n, 0)
				v.view = v.n.store.As(v.access)
			}
		}
	},
	"UpdateProject": func(v visit) {
		v.onEachProject("UpdateProject", managers, nil, func(s *Store, _ neighbourProject, ref ProjectRef) (any, error) {
			return s.UpdateProject(v.Context(), ref, ProjectUpdate{Name: content("renamed")})
		})
	},
	"DeleteProject": func(v visit) {
		v.onEachProject("DeleteProject", func(p neighbourProject, _ MemberRole) bool { return p.owner == v.access.User }, nil,
			func(s *Store, _ neighbourProject, ref ProjectRef) (any, error) {
				return nil, s.DeleteProject(v.Context(), ref, &DeletionOptions{WithMemories: true})
			})
	},
	"AddMember": func(v visit) {
		for _, user := range []func(p neighbourProject) string{newcomer,
			func(p neighbourProject) string { return strings.ToUpper(accounts[newcomer(p)]) }} {
			v.onEachProject("AddMember", managers, nil, func(s *Store, p neighbourProject, ref ProjectRef) (any, error) {
				return s.AddMember(v.Context(), NewMember{Project: ref, User: user(p), Role: MemberReader})
			}, accounts["eve"], accounts["alice"])
		}
	},
	"UpdateMember": func(v visit) {
		v.onEachProject("UpdateMember", managers, withoutFrank,
			func(s *Store, _ neighbourProject, ref ProjectRef) (any, error) {
				return s.UpdateMember(v.Context(), ref, "frank", MemberUpdate{Role: MemberWriter})
			})
	},
	"DeleteMember": func(v visit) {
		v.onEachProject("DeleteMember",
			func(_ neighbourProject, role MemberRole) bool { return role == MemberOwner || v.access.User == "frank" },
			withoutFrank,
			func(s *Store, _ neighbourProject, ref ProjectRef) (any, error) {
				return nil, s.DeleteMember(v.Context(), ref, "frank")
			})
		for _, absent := range []string{"dave", "eve", accounts["bob"],
			"unheard-of"} { // a reader must not learn whether the user exists
			if v.access.User == absent || v.access.ReadOnly || v.access.User != "bob" || v.access.Projects != nil {
				continue
			}
			err := v.view.DeleteMember(v.Context(), ProjectRef{ID: "alice/shared"}, absent)
			if absent == accounts["bob"] { // who leaves
				if err != nil {
					v.Error(err)
				}
				v.n = openNeighbourhood(v.T, v.n, 0)
				v.view = v.n.store.As(v.access)
			} else if !errors.Is(err, ErrForbidden) || strings.Contains(err.Error(), absent) {
				v.Errorf("a reader removing %s gets %v, want ErrForbidden and it not in the error", absent, err)
			}
		}
	},
}

// Once a membership has ended, no method shows anything of the project.
func TestFormerMembersAreStrangers(t *testing.T) { onEachEngine(t, formerMembersAreStrangers) }

func formerMembersAreStrangers(t *testing.T, empty database) {
	built := buildNeighbourhood(t, empty)
	n := openNeighbourhood(t, built, 0)
	for _, user := range []string{"bob", "frank", "dave"} {
		if err := n.store.As(Access{User: "alice"}).DeleteMember(t.Context(),
			ProjectRef{ID: "shared"}, accounts[user]); err != nil {
			t.Fatal(err)
		}
	}
	for _, former := range []visitor{
		{access: Access{User: "bob"}, sees: []string{"bobdiary"}, collections: []string{"skiff"}},
		{access: Access{User: "frank"}, sees: []string{"eveopen", "frankdiary"},
			collections: []string{"pickaxe", "moonlight"}},
		{access: Access{User: "dave"}},
	} {
		user, view := former.access.User, n.store.As(former.access)
		v := visit{t, former, n, view}
		found, err := view.Search(t.Context(), Query{Text: "common kettle", Limit: MaxLimit})
		v.found("Search", memoriesOf(found), err)
		for _, m := range neighbours {
			if !slices.Contains(former.sees, m.name) {
				id := n.ids[m.name]
				_, err := view.GetMemory(t.Context(), id)
				v.denied("GetMemory", id, err, func(id string) error { _, err := view.GetMemory(t.Context(), id); return err })
			}
		}
		if p, err := view.GetProject(t.Context(), ProjectRef{ID: "alice/shared"}); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s still sees %+v, %v, want ErrNotFound", user, p, err)
		}
	}
}
