package souvenir

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/internal/trash"
)

// peopleStore has two users, ann and ben, who share ann's project p, with files and OAuth grants of both.
func peopleStore(t *testing.T) *Store {
	t.Helper()
	s := openWords(t, filepath.Join(t.TempDir(), "u.db"), Options{})
	for i, user := range []string{"ann", "ben"} {
		mustAddUser(t, s, NewUser{ID: user, Name: user})
		view := s.As(Access{User: user})
		mustAdd(t, view, NewMemory{Content: "own", ProjectID: "q"})
		mustAdd(t, view, NewMemory{Content: "own"})
		row := i + 1
		mustExec(t, s, `INSERT INTO oauth_client (id, client_id, kind, owner_id, name, auth_method, redirect_uris, metadata,
			created_at, updated_at)
			SELECT ?1, ?2, 'admin', id, 'c', 'none', '[]', '{}', 0, 0 FROM users WHERE uid = ?2`, row, user)
		mustExec(t, s, `INSERT INTO oauth_grant (id, uid, client_id, user_id, scopes, resource, created_at)
			SELECT ?1, ?2, 1, id, '[]', '', 0 FROM users WHERE uid = ?2`, row, user)
	}
	mustAdd(t, s.As(Access{User: "ann"}), NewMemory{Content: "ann's in the project", ProjectID: "p"})
	mustExec(t, s, `INSERT INTO project_member (project_id, user_id, role, created_at)
		SELECT j.id, u.id, 'writer', 0 FROM project j, users u WHERE j.uid = 'p' AND u.uid = 'ben'`)
	id := mustAdd(t, s.As(Access{User: "ben"}), NewMemory{Content: "ben's in the project", ProjectID: "ann/p"}).ID
	for _, user := range []string{"ann", "ben"} {
		mustExec(t, s, `INSERT INTO file (uid, owner_id, project_id, state, filename, mime_type, size, sha256, description,
			category, created_at, updated_at)
			SELECT ?1, j.owner_id, j.id, 'stored', 'f', 'text/plain', 0, x'', '', '', 0, 0 FROM project j WHERE j.uid = 'p'`,
			user)
	}
	mustExec(t, s, `UPDATE file SET memory_id = (SELECT id FROM memory WHERE uid = ?), project_id = NULL `+
		`WHERE uid = 'ben'`, id)
	return s
}

func TestDisablingAUserEndsOAuthGrantsOfTheirs(t *testing.T) {
	s := peopleStore(t)
	yes, no := true, false
	for _, disabled := range []*bool{&yes, &no, &yes} {
		if _, err := s.Accounts().UpdateUser(t.Context(), "ann", UserUpdate{Disabled: disabled}); err != nil {
			t.Fatal(err)
		}
		revoked := count(t, s, `SELECT count(*) FROM oauth_grant g JOIN users u ON u.id = g.user_id `+
			`WHERE g.revoked_at IS NOT NULL AND u.uid = 'ann'`)
		others := count(t, s, `SELECT count(*) FROM oauth_grant g JOIN users u ON u.id = g.user_id `+
			`WHERE g.revoked_at IS NOT NULL AND u.uid = 'ben'`)
		if revoked != 1 || others != 0 {
			t.Errorf("disabled %v: %d of ann's and %d of ben's grants are revoked, want revoked 1 and others 0", *disabled,
				revoked, others)
		}
	}
}

func TestDeletingAUserLeavesNothingOfTheirsAndNothingBroken(t *testing.T) {
	s := peopleStore(t)
	if err := s.Accounts().DeleteUser(t.Context(), "ann", nil); !errors.Is(err, ErrConflict) ||
		!strings.Contains(err.Error(), "4 memories, 2 projects and 2 files") {
		t.Errorf(`without WithMemories: %v, want ErrConflict and "4 memories, 2 projects and 2 files" in the error`, err)
	}
	if err := s.Accounts().DeleteUser(t.Context(), "ann", &DeletionOptions{WithMemories: true}); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]int64{
		`SELECT count(*) FROM pragma_foreign_key_check`: 0,
		// ben's own two
		`SELECT count(*) FROM memory`:         2,
		`SELECT count(*) FROM project`:        1,
		`SELECT count(*) FROM project_member`: 0,
		`SELECT count(*) FROM oauth_client`:   1,
		// ben's was for ann's client
		`SELECT count(*) FROM oauth_grant`:                       0,
		`SELECT count(*) FROM file WHERE project_id IS NOT NULL`: 0,
		// background work removes the users that are being deleted
		`SELECT count(*) FROM file f JOIN users u ON u.id = f.owner_id WHERE u.uid = 'ann' AND f.state <> 'leaving'`: 0,
		`SELECT count(*) FROM users WHERE uid = 'ann' AND name IS NULL AND name_key IS NULL`:                         1,
		`SELECT count(*) FROM users WHERE uid = 'ann' AND (email IS NOT NULL OR password IS NOT NULL)`:               0,
		`SELECT count(*) FROM collection c JOIN users u ON u.id = c.owner_id WHERE u.uid = 'ann'`:                    0,
		`SELECT count(*) FROM partition WHERE project_id IS NOT NULL AND project_id NOT IN (SELECT id FROM project)`: 0,
	} {
		if got := count(t, s, query); got != want {
			t.Errorf("%s gives %d, want %d", query, got, want)
		}
	}
	checkConsistency(t, s)
	if found, err := s.As(Access{User: "ben"}).Search(t.Context(), Query{Text: "project"}); err != nil ||
		found.Total != 2 {
		t.Errorf("ben finds %d, %v; want 2", found.Total, err)
	}
}

// Nothing shows expired memories, so a user cannot delete them first.
func TestAUserWhoseMemoriesHaveExpiredIsDeletedAsOneWithout(t *testing.T) {
	clock := newMovingClock(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC))
	s := openWords(t, "", Options{Now: clock.Now})
	addAccount(t, s, "u-ann", "ann")
	ann := s.As(Access{User: "u-ann"})
	for _, after := range []time.Duration{time.Minute, time.Hour} {
		mustAdd(t, ann, NewMemory{Content: "gone after " + after.String(), ExpiresAt: clock.Now().Add(after)})
	}
	clock.Pass(time.Minute)
	err := s.Accounts().DeleteUser(t.Context(), "ann", nil)
	if !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "has 1 memory, 0 projects and 0 files") {
		t.Errorf("with one memory left: got %v, want ErrConflict that counts it", err)
	}
	clock.Pass(time.Hour)
	noError(t, s.Accounts().DeleteUser(t.Context(), "ann", nil))
	if left := count(t, s, `SELECT count(*) FROM memory`); left != 0 {
		t.Errorf("got %d memories left, want none", left)
	}
}

func TestDeletingAUserDeletesMoreThanOneTransactionShould(t *testing.T) {
	longtest.Only(t)
	s := openWords(t, filepath.Join(t.TempDir(), "u.db"), Options{})
	many := make([]NewMemory, trash.FullRows+1)
	for i := range many {
		many[i] = NewMemory{Content: "x"}
	}
	mustAddUser(t, s, NewUser{ID: "ann", Name: "ann"})
	for _, user := range []string{"ann", "without an account"} {
		if _, err := s.As(Access{User: user}).AddMemories(t.Context(), many, nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Accounts().DeleteUser(t.Context(), user, &DeletionOptions{WithMemories: true}); err != nil {
			t.Fatal(err)
		}
		if n := count(t, s, `SELECT count(*) FROM memory`); n != 0 {
			t.Errorf("%d memories of %s are left, want 0", n, user)
		}
		if _, err := s.Accounts().GetUser(t.Context(), user); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: got %v, want ErrNotFound", user, err)
		}
	}
	checkConsistency(t, s)
}

// A memory that was moved to another user's project stays there when its former owner is deleted, but without the past
// versions that belonged to that owner alone.
func TestDeletingAUserKeepsProjectsOfOthers(t *testing.T) {
	s := peopleStore(t)
	ann, ben := s.As(Access{User: "ann"}), s.As(Access{User: "ben"})
	id := mustAdd(t, ben, NewMemory{Content: "before", ProjectID: "q"}).ID
	if _, err := ben.UpdateMemory(t.Context(), id,
		MemoryUpdate{ShownMetadata: map[string]any{"project_id": "ann/p"}}); err != nil {
		t.Fatal(err)
	}
	for user, want := range map[string]int{"ann": 1, "ben": 2} {
		if all, err := s.As(Access{User: user}).Revisions(t.Context(), id); err != nil || len(all) != want {
			t.Errorf("%s sees %d versions, %v; want %d", user, len(all), err, want)
		}
	}
	if err := s.Accounts().DeleteUser(t.Context(), "ben", &DeletionOptions{WithMemories: true}); err != nil {
		t.Fatal(err)
	}
	if all, err := ann.Revisions(t.Context(), id); err != nil || len(all) != 1 {
		t.Errorf("%d states, %v; want 1", len(all), err)
	}
	if report, err := s.Upkeep().Check(t.Context(), nil); err != nil ||
		slices.ContainsFunc(report.Findings,
			func(f Finding) bool { return f.Table != "file" }) { // this test stores no files
		t.Errorf("a check finds %+v, %v, want findings about files alone", report.Findings, err)
	}
}

// A user's row is cached while the store is open. The cache must be right after a deletion and a return, too.
func TestDeletedUsersReturnToTheSameRow(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "u.db"), Options{})
	view := s.As(Access{User: "ann"})
	for range 3 {
		mustAddUser(t, s, NewUser{ID: "ann", Name: "ann"})
		mustAdd(t, view, NewMemory{Content: "x"})
		if found, err := view.Search(t.Context(), Query{}); err != nil || found.Total != 1 {
			t.Fatalf("found %d, %v; want 1", found.Total, err)
		}
		if err := s.Accounts().DeleteUser(t.Context(), "ann", &DeletionOptions{WithMemories: true}); err != nil {
			t.Fatal(err)
		}
		if found, err := view.Search(t.Context(), Query{}); err != nil || found.Total != 0 {
			t.Fatalf("found %d after the deletion, %v; want 0", found.Total, err)
		}
	}
	if n := count(t, s, `SELECT count(*) FROM users WHERE uid = 'ann'`); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

// A view may outlive its user's deletion. An operator can find and delete what it stores then.
func TestMemoriesOfADeletedUsersViewCanBeDeleted(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "u.db"), Options{})
	view := s.As(Access{User: "ann"})
	for range 2 {
		mustAdd(t, view, NewMemory{Content: "x"})
		page, err := s.Accounts().UserPage(t.Context(), UserQuery{})
		all := page.Users
		if err != nil || len(all) != 1 || all[0].ID != "ann" {
			t.Errorf(`listed: %+v, %v, want no error and only "ann"`, all, err)
		}
		if got, err := s.Accounts().GetUser(t.Context(), "ann"); err != nil || got != all[0] {
			t.Errorf("GetUser gives %+v, %v, want no error and %+v, as listed", got, err, all[0])
		}
		if err := s.Accounts().DeleteUser(t.Context(), "ann", nil); !errors.Is(err, ErrConflict) {
			t.Errorf("without WithMemories: %v, want ErrConflict", err)
		}
		if err := s.Accounts().DeleteUser(t.Context(), "ann", &DeletionOptions{WithMemories: true}); err != nil {
			t.Errorf("deleting: %v", err)
		}
		if _, err := s.Accounts().GetUser(t.Context(), "ann"); !errors.Is(err, ErrNotFound) {
			t.Errorf("after it: %v, want ErrNotFound", err)
		}
	}
	if n := count(t, s, `SELECT count(*) FROM memory`); n != 0 {
		t.Errorf("%d memories are left, want 0", n)
	}
}
