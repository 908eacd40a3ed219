package souvenir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
	"github.com/souvenir-ai/souvenir/internal/storefile"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/internal/trash"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// openPeople opens a store whose users have accounts. An empty name means no account.
func openPeople(t *testing.T, names map[string]string) *Store {
	t.Helper()
	s := openWords(t, filepath.Join(t.TempDir(), "people.db"), Options{})
	// Users without an account come first: later, their ids could equal names of others.
	for _, user := range slices.SortedFunc(maps.Keys(names),
		func(a, b string) int { return cmp.Compare(names[a]+"\x00"+a, names[b]+"\x00"+b) }) {
		addAccount(t, s, user, names[user])
	}
	return s
}

func mustAddProject(t *testing.T, s *Store, n NewProject) Project {
	t.Helper()
	p, err := s.AddProject(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestMembersAreNamedByIDOrAccount(t *testing.T) {
	s := openPeople(t, map[string]string{"u1": "Olga", "u2": "Renée", "u3": "STRASSE", "u4": "", "Olga2": "x"})
	olga := s.As(Access{User: "u1"})
	mustAddProject(t, olga, NewProject{ID: "p"})
	ref := ProjectRef{ID: "p"}
	for given, want := range map[string]Member{
		"rene\u0301e": {User: "u2", Name: "Renée"}, // decomposed, and in another case
		"Straße":      {User: "u3", Name: "STRASSE"},
		"u4":          {User: "u4"},
	} {
		m, err := s.AddMember(t.Context(), NewMember{Project: ProjectRef{ID: "u1/p"}, User: given, Role: MemberReader})
		if err != nil || m.User != want.User || m.Name != want.Name || m.Role != MemberReader {
			t.Errorf("adding %q gives %+v, %v, want no error, user %v, name %v and role %v", given, m, err, want.User, want.Name,
				MemberReader)
		}
		if m, err := olga.UpdateMember(t.Context(),
			ref, strings.ToUpper(given), MemberUpdate{Role: MemberWriter}); err == nil && m.User != want.User ||
			err != nil && want.Name != "" {
			t.Errorf("updating %q gives %+v, %v, want one user, or an error", strings.ToUpper(given), m, err)
		}
		if err := olga.DeleteMember(t.Context(), ref, given); err != nil {
			t.Errorf("deleting %q: %v", given, err)
		}
	}
	for _, given := range []string{"U4", "Ren", "u2 ", "%", "x/p"} {
		if _, err := s.AddMember(t.Context(),
			NewMember{Project: ProjectRef{ID: "u1/p"}, User: given, Role: MemberReader}); !errors.Is(err, ErrNotFound) {
			t.Errorf("adding %q gives %v, want ErrNotFound", given, err)
		}
	}
	if _, err := olga.AddMember(t.Context(), NewMember{Project: ref, User: "OLGA", Role: MemberReader}); !errors.Is(err,
		ErrConflict) {
		t.Errorf("adding the owner by name gives %v, want ErrConflict", err)
	}
	members, err := olga.Members(t.Context(), ref)
	if err != nil || len(members) != 1 || members[0].Name != "Olga" {
		t.Errorf(`members are %+v, %v, want no error, 1 member and name "Olga"`, members, err)
	}
}

// A user id always means its own user, even if another account's name looks like it.
func TestIDsOfUsersComeBeforeNamesOfAccounts(t *testing.T) {
	s := openPeople(t, map[string]string{"olga": "", "impostor": "Olga", "rita": "", "will": "rita"})
	for _, user := range []string{"olga", "impostor"} {
		owner := s.As(Access{User: user})
		mustAddProject(t, owner, NewProject{ID: "p"})
		share(t, owner, "p", "rita", MemberReader)
	}
	rita := s.As(Access{User: "rita"})
	for given, want := range map[string]string{"olga/p": "olga", "Olga/p": "impostor", "OLGA/p": "impostor",
		"impostor/p": "impostor"} {
		if p, err := rita.GetProject(t.Context(), ProjectRef{ID: given}); err != nil || p.Owner != want {
			t.Errorf("%s is %+v, %v; want owner %v", given, p, err, want)
		}
	}
	if members, err := rita.Members(t.Context(), ProjectRef{ID: "olga/p"}); err != nil || len(members) != 2 ||
		members[1].User != "rita" {
		t.Errorf(`members are %+v, %v, want no error, 2 members and user "rita"`, members, err)
	}
	if _, err := rita.GetProject(t.Context(), ProjectRef{ID: "rita/p"}); !errors.Is(err, ErrNotFound) {
		t.Errorf("an own project that does not exist: %v, want ErrNotFound", err)
	}
}

func TestProjectsAreNamedByTheirOwnersAccount(t *testing.T) {
	s := openPeople(t, map[string]string{"u1": "Ölga", "u2": "Rita", "a/b": "a/c"})
	owner, member := s.As(Access{User: "u1"}), s.As(Access{User: "u2"})
	mustAdd(t, owner, NewMemory{Content: "a tea pot", ProjectID: "p"})
	share(t, owner, "p", "rita", MemberWriter)
	slashed := s.As(Access{User: "a/b"})
	mustAdd(t, slashed, NewMemory{Content: "a tea pot", ProjectID: "p"})
	share(t, slashed, "p", "rita", MemberWriter)
	for _, ref := range []string{"u1/p", "Ölga/p", "ÖLGA/p", "o\u0308lga/p"} {
		if p, err := member.GetProject(t.Context(), ProjectRef{ID: ref}); err != nil || p.Owner != "u1" ||
			p.OwnerName != "Ölga" || p.Ref() != "u1/p" {
			t.Errorf(`%s is %+v, %v, want no error, owner "u1", owner name "Ölga" and ref "u1/p"`, ref, p, err)
		}
		if found, err := member.Search(t.Context(), Query{Text: "tea", ProjectID: ref}); err != nil || found.Total != 1 {
			t.Errorf("in %s are %d, %v; want 1", ref, found.Total, err)
		}
		if m, err := member.AddMemory(t.Context(), NewMemory{Content: "more", ProjectID: ref}); err != nil ||
			m.ProjectID != "p" {
			t.Errorf("stored into %s: %+v, %v; want projectID \"p\"", ref, m, err)
		} else if err := member.DeleteMemory(t.Context(), m.ID, nil); err != nil {
			t.Error(err)
		}
		limited := s.As(Access{User: "u2", Projects: []string{ref}})
		if found, err := limited.Search(t.Context(), Query{}); err != nil || found.Total != 1 {
			t.Errorf("a view of %s finds %d, %v; want 1", ref, found.Total, err)
		}
	}
	for _, ref := range []string{"a/b/p", "A/C/p"} {
		if p, err := member.GetProject(t.Context(), ProjectRef{ID: ref}); err != nil || p.Owner != "a/b" {
			t.Errorf("%s is %+v, %v; want owner \"a/b\"", ref, p, err)
		}
	}
	for _, ref := range []string{"Olga/p", "/p", "u1/", "u1//p", "u1/p/", "Rita/p"} {
		if p, err := member.GetProject(t.Context(), ProjectRef{ID: ref}); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s is %+v, %v, want ErrNotFound", ref, p, err)
		}
	}
}

// Names and ids of maximum length can be combined.
func TestLongOwnersAndIDsNameProjects(t *testing.T) {
	long := strings.Repeat("é", valid.MaxName)
	s := openPeople(t, map[string]string{long: "", "rita": ""})
	owner := s.As(Access{User: long})
	mustAddProject(t, owner, NewProject{ID: long})
	share(t, owner, long, "rita", MemberWriter)
	ref := long + "/" + long
	limited := s.As(Access{User: "rita", Projects: []string{ref}})
	if m, err := limited.AddMemory(t.Context(), NewMemory{Content: "a tea pot", ProjectID: ref}); err != nil ||
		m.ProjectID != long {
		t.Errorf("stored %+v, %v; want projectID %v", m, err, long)
	}
	if found, err := limited.Search(t.Context(), Query{ProjectID: ref}); err != nil || found.Total != 1 {
		t.Errorf("found %d, %v; want 1", found.Total, err)
	}
}

func TestFoldName(t *testing.T) {
	for _, same := range [][]string{{"Anna", "anna", "ANNA"}, {"Å", "å", "A\u030a", "\u212b"}, {"ΣΑΣ", "σας"},
		{"ß", "SS"}} {
		for _, name := range same {
			if foldname.Key(name) != foldname.Key(same[0]) {
				t.Errorf("%q and %q are different names, want the same", name, same[0])
			}
			if foldname.Key(foldname.Key(name)) != foldname.Key(name) {
				t.Errorf("%q folded twice is another name, want the same", name)
			}
		}
	}
	if foldname.Key("anna") == foldname.Key("ana") || foldname.Key("a b") == foldname.Key("ab") {
		t.Error("different names are the same, want two keys")
	}
}

// addFile puts a file of a user into a project or a memory.
func addFile(t *testing.T, s *Store, user, project, memory string) (id int64) {
	t.Helper()
	err := s.db.Write(t.Context(), func(tx db.Tx) (err error) {
		id, err = db.Insert(tx, `INSERT INTO file (uid, owner_id, memory_id, project_id, state, filename, mime_type, size,
			sha256, description, category, created_at, updated_at)
			VALUES (?, (SELECT id FROM users WHERE uid = ?), (SELECT id FROM memory WHERE uid = ?), (SELECT id FROM project
			WHERE uid = ?), 'stored', 'f', 'text/plain', 0, x'00', '', '', 0, 0) RETURNING id`,
			fmt.Sprint(user, project, memory), user, memory, project)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestFilesOfADeletedProjectStayWithItsOwner(t *testing.T) {
	s := openPeople(t, map[string]string{"olga": "", "will": ""})
	olga, will := s.As(Access{User: "olga"}), s.As(Access{User: "will"})
	mustAddProject(t, olga, NewProject{ID: "p"})
	share(t, olga, "p", "will", MemberWriter)
	m := mustAdd(t, will, NewMemory{Content: "a tea pot", ProjectID: "olga/p"})
	linked, loose := addFile(t, s, "olga", "", m.ID), addFile(t, s, "olga", "p", "")
	seen := func(user string) []int64 {
		t.Helper()
		view := s.As(Access{User: user})
		var rows []int64
		err := view.read(t.Context(), func(tx db.Tx, v viewer) (err error) {
			condition, args := v.VisibleFile()
			rows, err = db.Column[int64](tx, `SELECT f.id `+kernel.FromFile+` WHERE `+condition+` ORDER BY f.id`, args...)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	if got := seen("olga"); !slices.Equal(got, []int64{linked, loose}) {
		t.Fatalf("before, the project's owner sees the files %v, want %v", got, []int64{linked, loose})
	}
	p, o := ProjectRef{ID: "p"}, &DeletionOptions{}
	if err := olga.DeleteProject(t.Context(), p, o); !errors.Is(err, ErrConflict) ||
		!strings.Contains(err.Error(), "1 memories and 1 files") {
		t.Errorf(`deleting a full project gives %v, want ErrConflict and "1 memories and 1 files" in the error`, err)
	}
	if err := will.DeleteMemory(t.Context(), m.ID, nil); err != nil {
		t.Fatal(err)
	}
	if err := olga.DeleteProject(t.Context(), p, o); !errors.Is(err, ErrConflict) ||
		!strings.Contains(err.Error(), "0 memories and 2 files") {
		t.Errorf(`deleting a project with files gives %v, want ErrConflict and "0 memories and 2 files" in the error`, err)
	}
	o.WithMemories = true
	if err := olga.DeleteProject(t.Context(), p, o); err != nil {
		t.Fatal(err)
	}
	if got := seen("olga"); !slices.Equal(got, []int64{linked, loose}) {
		t.Errorf("after, the project's owner sees the files %v, want %v", got, []int64{linked, loose})
	}
	if got := seen("will"); len(got) != 0 {
		t.Errorf("after, who stored them sees the files %v; want none", got)
	}
	checkConsistency(t, s)
}

// A file stays in its memory's project when the memory is deleted with its collection.
func TestFilesOfADeletedCollectionStayInTheProject(t *testing.T) {
	s := openPeople(t, map[string]string{"olga": "", "will": ""})
	olga, will := s.As(Access{User: "olga"}), s.As(Access{User: "will"})
	mustAddProject(t, olga, NewProject{ID: "p"})
	share(t, olga, "p", "will", MemberWriter)
	file := addFile(t, s, "olga", "", mustAdd(t, will, NewMemory{Content: "a tea pot", ProjectID: "olga/p"}).ID)
	if err := olga.DeleteCollection(t.Context(),
		DefaultCollection, &DeletionOptions{WithMemories: true}); err != nil {
		t.Fatal(err)
	}
	err := s.db.Read(t.Context(), func(tx db.Tx) error {
		projects, err := db.Column[string](tx,
			`SELECT ifnull((SELECT uid FROM project WHERE id = f.project_id), '') FROM file f WHERE id = ?`, file)
		if err == nil && !slices.Equal(projects, []string{"p"}) {
			t.Errorf("the file is in %q, want p", projects)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	checkConsistency(t, s)
}

// What is stored into a project while it is being deleted is either deleted with it or creates a new one.
func TestStoringWhileAProjectIsDeleted(t *testing.T) {
	longtest.Only(t)
	path := filepath.Join(t.TempDir(), "deleted.db")
	first, second := openWords(t, path, Options{}), openWords(t, path, Options{})
	many := make([]NewMemory, longtest.Size(3*trash.FullRows, trash.FullRows+100)) // more than one transaction deletes
	for i := range many {
		many[i] = NewMemory{Content: "x", ProjectID: "p"}
	}
	if _, err := first.AddMemories(t.Context(), many, nil); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for _, s := range []*Store{first, second} {
		group.Go(func() {
			for ctx.Err() == nil {
				if _, err := s.AddMemory(ctx, NewMemory{Content: "meanwhile", ProjectID: "p"}); err != nil &&
					!errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}
		})
	}
	if err := first.DeleteProject(t.Context(),
		ProjectRef{ID: "p"}, &DeletionOptions{WithMemories: true}); err != nil {
		t.Error(err)
	}
	cancel()
	group.Wait()
	all, err := second.Search(t.Context(), Query{Filter: Filter{"project_id": "p"}, Limit: MaxLimit})
	if err != nil || slices.ContainsFunc(all.Hits, func(h Hit) bool { return h.Content == "x" }) {
		t.Errorf("left are %d memories, %v, want none with the content x", all.Total, err)
	}
	if projects, err := second.Projects(t.Context()); err != nil || len(projects) > 1 || len(projects) == 1 &&
		projects[0].MemoryCount != all.Total {
		t.Errorf("projects are %+v with %d memories, %v, want at most one, with all memories", projects, all.Total, err)
	}
	checkConsistency(t, second)
}

func TestAddingOneProjectAtOnceAddsOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "race.db")
	stores := []*Store{openWords(t, path, Options{}), openWords(t, path, Options{})}
	var group sync.WaitGroup
	added, refused := 0, 0
	var mu sync.Mutex
	for i := range 12 {
		group.Go(func() {
			_, err := stores[i%2].AddProject(t.Context(), NewProject{Name: "Apollo"})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				added++
			case errors.Is(err, ErrConflict):
				refused++
			default:
				t.Error(err)
			}
		})
	}
	group.Wait()
	if all, err := stores[0].Projects(t.Context()); added != 1 || refused != 11 || len(all) != 1 || err != nil {
		t.Errorf("%d added, %d refused; projects are %+v, %v, want 1, 11, one project and no error", added, refused,
			all, err)
	}
}

func TestGroupsKeepOwnersApart(t *testing.T) {
	s := openPeople(t, map[string]string{"olga": "", "will": ""})
	olga, will := s.As(Access{User: "olga"}), s.As(Access{User: "will"})
	mustAdd(t, olga, NewMemory{Content: "a tea pot", ProjectID: "p"})
	share(t, olga, "p", "will", MemberWriter)
	mustAdd(t, will, NewMemory{Content: "a tea cup"})
	mustAdd(t, will, NewMemory{Content: "a tea leaf", ProjectID: "p"})
	found, err := will.Search(t.Context(), Query{Text: "tea"})
	if err != nil {
		t.Fatal(err)
	}
	hits := map[string]int{}
	for _, g := range found.Groups() {
		if g.Collection != DefaultCollection || hits[g.Owner] > 0 {
			t.Errorf("got group %s of %s with a hit of its owner before, want one hit per owner, all in %s",
				g.Collection, g.Owner, DefaultCollection)
		}
		hits[g.Owner] = len(g.Hits)
		for _, h := range g.Hits {
			if h.Owner != g.Owner {
				t.Errorf("a memory of %s is in the group of %s, want the same", h.Owner, g.Owner)
			}
		}
	}
	if hits["olga"] != 2 || hits["will"] != 1 { // the tea leaf is in Olga's project
		t.Errorf("groups have %v, want olga 2 and will 1", hits)
	}
}

// before holds the migrations before the one of a name.
type before struct {
	fs.FS
	name string
}

func (f before) Glob(pattern string) ([]string, error) {
	names, err := fs.Glob(f.FS, pattern)
	if strings.HasPrefix(pattern, "schema/") {
		return nil, err // the older program had no such file
	}
	i := slices.IndexFunc(names, func(name string) bool { return strings.HasSuffix(name, f.name) })
	return names[:i], err
}

func TestProjectsFromBeforeNamesWereFoldedAreFoundByAnyForm(t *testing.T) {
	longtest.Only(t)
	path := filepath.Join(t.TempDir(), "old.db")
	config := storefile.Config(path, sealedClock)
	config.Migrations, config.Fill = before{sqlite.Migrations(), "_project_names.sql"}, nil
	file, err := sqlite.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 120)
	err = file.Write(t.Context(), func(tx db.Tx) error {
		return tx.(*sqlite.Tx).ExecScript(`INSERT INTO user (id, uid, created_at, name, name_key)
			VALUES (1, 'local', 1, NULL, NULL), (2,
			'u2', 1, 'ꭰꭰ', 'ꭰꭰ');
			INSERT INTO project (owner_id, uid, name, created_at, updated_at) VALUES (1, 'p1', 'Apollo', 1, 1), (1, 'p2',
			'apollo', 1, 1), (1, 'p3', '订单　服务', 1, 1),
				(1, 'p4', char(0x200b), 1, 1), (1, '` + long + `1', 'APOLLO 2', 1, 1), (1, '` + long + `2', 'apollo  2', 1, 1)`)
	})
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	s := openWords(t, path, Options{})
	for name, id := range map[string]string{"Apollo": "p1", "apollo": "p2", "订单 服务": "p3"} {
		if p, err := s.GetProject(t.Context(), ProjectRef{Name: name}); err != nil || p.ID != id {
			t.Errorf("%q is %+v, %v; want %s", name, p, err, id)
		}
	}
	for name, ids := range map[string][]string{"APOLLO": {`"p1"`, `"p2"`},
		"Apollo 2": {`"` + long + `1"`, `"` + long + `2"`}} {
		_, err := s.GetProject(t.Context(), ProjectRef{Name: name})
		for _, id := range ids {
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), id) {
				t.Errorf("%q, which two have, gives %v; want both ids whole", name, err)
			}
		}
	}
	if p, err := s.GetProject(t.Context(), ProjectRef{ID: "p4"}); err != nil || p.Name != "\u200b" {
		t.Errorf("a user with an invisible name is %+v, %v; want name \"\u200b\"", p, err)
	}
	if _, err := s.UpdateProject(t.Context(), ProjectRef{ID: "p2"}, ProjectUpdate{Name: new("Gemini")}); err != nil {
		t.Error(err)
	}
	if p, err := s.GetProject(t.Context(), ProjectRef{Name: "apollo"}); err != nil || p.ID != "p1" {
		t.Errorf("when one of the two has another name, it is %+v, %v; want ID \"p1\"", p, err)
	}
	if u, err := s.Accounts().GetUser(t.Context(), "ᎠᎠ"); err != nil || u.ID != "u2" {
		t.Errorf("a user whose name was folded wrongly is %+v, %v; want ID \"u2\"", u, err)
	}
	if report := mustCheck(t, s, nil); !report.OK {
		t.Errorf("got %+v, want OK", report)
	}
}

func TestCheckFindsNamesThatAreLookedUpAsOthers(t *testing.T) {
	s := openWords(t, "", Options{})
	mustAddProject(t, s, NewProject{ID: "p", Name: "Apollo"})
	if _, err := s.UpdateProject(t.Context(), ProjectRef{ID: "p"}, ProjectUpdate{Name: new("Artemis")}); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"project", "project_alias"} {
		damage(t, s, fmt.Sprintf(`UPDATE %s SET name_key = 'x'`, table))
		if report := mustCheck(t, s, nil); !slices.ContainsFunc(report.Findings,
			func(f Finding) bool { return f.Table == table && strings.Contains(f.Problem, "folded") }) {
			t.Errorf("%s: got %+v, want a finding about the folded name", table, report)
		}
	}
}
