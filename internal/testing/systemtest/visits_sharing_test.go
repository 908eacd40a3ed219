package systemtest

import (
	"errors"
	"testing"

	. "github.com/souvenir-ai/souvenir"
)

// offer invites a user to a project of zed, a stranger to the neighbourhood. It returns the invitation's id, or "" if
// the store does not know the user.
func (v visit) offer(user string) string {
	v.Helper()
	return mustOffer(v.T, v.n.store, "offer", user)
}

// mustOffer invites a user to a project of zed's, which it creates if necessary.
func mustOffer(t *testing.T, s *Store, project, user string) string {
	t.Helper()
	zed := s.As(Access{User: "zed"})
	if _, err := zed.AddProject(t.Context(), NewProject{ID: project}); err != nil && !errors.Is(err, ErrConflict) {
		t.Fatal(err)
	}
	if _, err := zed.AddMember(t.Context(),
		NewMember{Project: ProjectRef{ID: project}, User: user, Role: MemberReader}); err != nil {
		t.Fatal(err)
	}
	return idOfOffer(t, s, project, user)
}

// idOfOffer returns the id of a user's pending invitation to a project, or "".
func idOfOffer(t *testing.T, s *Store, project, user string) string {
	t.Helper()
	waiting, err := s.As(Access{User: user}).Accounts().ProjectInvitations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range waiting {
		if i.ProjectID == project {
			return i.ID
		}
	}
	return ""
}

// answers calls a method that answers an invitation, with the visitor's own and with another user's, which must not be
// found.
func (v visit) answers(what string, call func(s *Store, id string) (any, error)) {
	v.Helper()
	other := "bob"
	if v.access.User == other {
		other = "carol"
	}
	theirs := v.offer(other)
	answer, err := call(v.view, theirs)
	v.check(what, answer, err)
	if v.access.Projects != nil {
		if !errors.Is(err, ErrForbidden) {
			v.Errorf("%s through a limited view gives %v, want ErrForbidden", what, err)
		}
	} else {
		v.denied(what, theirs, err, func(id string) error { _, err := call(v.view, id); return err })
	}
	if left := v.offer(other); left == "" {
		v.Errorf("%s answered the invitation of %s: got id %q of the one left, want one", what, other, left)
	}
	mine := v.offer(v.access.User)
	if mine == "" { // not a user
		return
	}
	_, _ = v.self(what, true, func(s *Store, _ string) (any, error) { return call(s, mine) })
}

var sharingVisits = map[string]func(v visit){
	"ProjectInvitations": func(v visit) {
		v.offer(v.access.User)
		answer, err := v.self("ProjectInvitations", false,
			func(s *Store, _ string) (any, error) { return s.Accounts().ProjectInvitations(v.Context()) })
		if waiting, _ := answer.([]ProjectInvitation); err == nil && len(waiting) != 1 && v.access.User != "noah" {
			v.Errorf("%s has the invitations %+v, want one", v.access.User, waiting)
		}
	},
	"AcceptProjectInvitation": func(v visit) {
		v.answers("AcceptProjectInvitation",
			func(s *Store, id string) (any, error) { return s.Accounts().AcceptProjectInvitation(v.Context(), id) })
	},
	"DeclineProjectInvitation": func(v visit) {
		v.answers("DeclineProjectInvitation",
			func(s *Store, id string) (any, error) {
				return nil, s.Accounts().DeclineProjectInvitation(v.Context(), id)
			})
	},
	"BlockSender": func(v visit) {
		v.answers("BlockSender", func(s *Store, id string) (any, error) { return s.Accounts().BlockSender(v.Context(), id) })
	},
	"BlockedSenders": func(v visit) {
		v.haveBlocked()
		answer, err := v.self("BlockedSenders", false,
			func(s *Store, _ string) (any, error) { return s.Accounts().BlockedSenders(v.Context()) })
		if blocked, _ := answer.([]BlockedSender); err == nil && v.access.User != "noah" &&
			(len(blocked) != 1 || blocked[0].User != "zed") {
			v.Errorf("%s has blocked %+v, want zed alone", v.access.User, blocked)
		}
	},
	"UnblockSender": func(v visit) {
		v.haveBlocked()
		_, _ = v.self("UnblockSender", true,
			func(s *Store, _ string) (any, error) { return nil, s.Accounts().UnblockSender(v.Context(), "zed") })
		if blocked, err := v.n.store.As(Access{User: "bob"}).Accounts().BlockedSenders(v.Context()); v.access.User != "bob" &&
			(err != nil || len(blocked) != 1) {
			v.Errorf("bob has blocked %+v, %v, want one", blocked, err)
		}
	},
	"InvitedMembers": func(v visit) {
		for _, p := range neighbourProjects {
			owner := v.n.store.As(Access{User: p.owner})
			if _, err := owner.AddMember(v.Context(),
				NewMember{Project: ProjectRef{ID: p.id}, User: "stowaway", Role: MemberReader}); err != nil {
				v.Fatal(err)
			}
		}
		v.onEachProject("InvitedMembers", nil, func(p neighbourProject) error {
			if v.access.Projects != nil || p.role(v.access.User) != MemberOwner {
				return ErrForbidden
			}
			return nil
		}, func(s *Store, p neighbourProject, ref ProjectRef) (any, error) {
			invited, err := s.InvitedMembers(v.Context(), ref)
			if err == nil && (len(invited) != 1 || invited[0].User != "stowaway" || invited[0].InvitedBy != p.owner) {
				v.Errorf("invited to %s are %+v, want the stowaway, by the owner", ref.ID, invited)
			}
			return invited, err
		})
	},
}

// haveBlocked makes all neighbours and the visitor block zed.
func (v visit) haveBlocked() {
	v.Helper()
	for user := range accounts {
		if id := v.offer(user); id != "" {
			if _, err := v.n.store.As(Access{User: user}).Accounts().BlockSender(v.Context(), id); err != nil {
				v.Fatal(err)
			}
		}
	}
}

// A deleted account leaves no invitation, decline or block behind, in either direction.
func TestDeletedUsersLeaveNoInvitations(t *testing.T) {
	onEachEngine(t, deletedUsersLeaveNoInvitations)
}

func deletedUsersLeaveNoInvitations(t *testing.T, empty database) {
	s := openWords(t, empty.copied(t), Options{})
	for _, name := range []string{"ann", "ben", "cora"} {
		mustAddUser(t, s, NewUser{ID: name, Name: name})
	}
	ann := s.As(Access{User: "ann"})
	for _, project := range []string{"p", "q", "r"} {
		mustAddProject(t, ann, NewProject{ID: project})
	}
	invite := func(project, user string) {
		t.Helper()
		if _, err := ann.AddMember(t.Context(),
			NewMember{Project: ProjectRef{ID: project}, User: user, Role: MemberReader}); err != nil {
			t.Fatal(err)
		}
	}
	for _, user := range []string{"ben", "cora"} {
		view := s.As(Access{User: user})
		invite("p", user)
		if err := view.Accounts().DeclineProjectInvitation(t.Context(), idOfOffer(t, s, "p", user)); err != nil {
			t.Fatal(err)
		}
		invite("q", user)
		invite("r", user)
	}
	if _, err := s.As(Access{User: "cora"}).Accounts().BlockSender(t.Context(), idOfOffer(t, s, "q", "cora")); err != nil {
		t.Fatal(err)
	}
	if err := s.Accounts().DeleteUser(t.Context(), "cora", nil); err != nil {
		t.Fatal(err)
	}
	mustAddUser(t, s, NewUser{ID: "cora", Name: "cora"}) // starts with no invitations or blocks
	if id := idOfOffer(t, s, "r", "cora"); id != "" {
		t.Errorf(`an invitation of a deleted user has come back with the account: got %v, want ""`, id)
	}
	invite("p", "cora")
	if id := idOfOffer(t, s, "p", "cora"); id == "" {
		t.Errorf("what a deleted user declined and blocked counts for the new one: got no invitation, want one")
	}
	if err := s.Accounts().DeleteUser(t.Context(), "ann", &DeletionOptions{WithMemories: true}); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"project_invitation", "declined_invitation", "blocked_sender"} {
		if n := count(t, s, `SELECT count(*) FROM `+table); n != 0 {
			t.Errorf("%d rows are left in %s; want 0", n, table)
		}
	}
}
