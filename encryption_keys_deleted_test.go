package souvenir

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
)

type credentialed struct {
	id, token, session, password string
}

type people map[string]credentialed

// addPeople adds ann and ben, who have stored a memory, and eve, who has not.
func addPeople(t *testing.T, s *Store) people {
	t.Helper()
	people := people{}
	for _, name := range []string{"ann", "ben", "eve"} {
		p := credentialed{password: "a long secret of " + name}
		u, err := s.Accounts().AddUser(t.Context(), NewUser{Name: name, Password: p.password})
		noError(t, err)
		p.id = u.ID
		token, err := s.Accounts().AddToken(t.Context(), NewToken{User: u.ID, Name: "laptop"})
		noError(t, err)
		signIn, err := s.Accounts().AddSignIn(t.Context(), NewSignIn{User: u.ID})
		noError(t, err)
		p.token, p.session = token.Value, signIn.Value
		if name != "eve" { // who has no key: she has stored nothing
			mustAdd(t, s.As(Access{User: u.ID}), NewMemory{Content: "what " + name + " knows"})
		}
		people[name] = p
	}
	return people
}

// check tests that the credentials of ann and eve are refused, and those of ben accepted.
func (people people) check(t *testing.T, s *Store) {
	t.Helper()
	for name, p := range people {
		for kind, use := range map[string]func(context.Context) error{
			"token":   func(ctx context.Context) error { _, err := s.Accounts().CheckToken(ctx, p.token); return err },
			"session": func(ctx context.Context) error { _, err := s.Accounts().CheckSignIn(ctx, p.session); return err },
			"password": func(ctx context.Context) error {
				_, err := s.Accounts().CheckPassword(ctx, Credentials{Name: name, Password: p.password})
				return err
			},
		} {
			if err := use(t.Context()); errors.Is(err, ErrUnauthenticated) == (name == "ben") {
				t.Errorf("the %s of %s: got %v, want it accepted only for ben", kind, name, err)
			}
		}
	}
}

// has tests that a user has one memory.
func (people people) has(t *testing.T, s *Store, name string) {
	t.Helper()
	n := 0
	for _, err := range s.As(Access{User: people[name].id}).Memories(t.Context(), MemoryList{}) {
		noError(t, err)
		n++
	}
	if n != 1 {
		t.Errorf("%s has %d memories, want one", name, n)
	}
}

// gone tests that the store has deleted ann and eve again.
func (people people) gone(t *testing.T, s *Store) {
	t.Helper()
	for _, name := range []string{"ann", "eve"} {
		if u, err := s.Accounts().GetUser(t.Context(), name); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: got %+v and %v, want ErrNotFound", name, u, err)
		}
		noted := 0
		deletions := AuditQuery{Action: "user.delete", Object: people[name].id}
		for e, err := range s.Upkeep().AuditEntries(t.Context(), deletions) {
			noError(t, err)
			if noted++; e.Details["restored"] != true || e.Actor.Via != ViaUpkeep {
				t.Errorf("the audit log: got %+v, want the background worker, and that it was restored", e)
			}
		}
		if noted != 1 {
			t.Errorf("the audit log has %d entries about %s, want one", noted, name)
		}
	}
}

// A deleted user does not return with an older backup: not the account, no credential, and no new key. Others stay.
func TestADeletedUserDoesNotReturnWithABackup(t *testing.T) {
	k := newKeyed(t)
	people := addPeople(t, k.s)
	backup := filepath.Join(t.TempDir(), "backup.db")
	noError(t, k.s.Upkeep().Backup(t.Context(), backup, nil))
	for _, name := range []string{"ann", "eve"} {
		noError(t, k.s.Accounts().DeleteUser(t.Context(), name, &DeletionOptions{WithMemories: true}))
	}
	k.close()
	keys := k.keys
	keys.Place = UserKeysFile(k.path)

	restored := filepath.Join(t.TempDir(), "restored.db")
	noError(t, Restore(t.Context(), Restoration{From: backup, To: restored}))
	reading, err := Open(t.Context(), restored, &Options{UserKeys: keys, ReadOnly: true, KeepModel: true})
	noError(t, err)
	people.check(t, reading)
	report, err := reading.Upkeep().Check(t.Context(), nil)
	if found := reading.restoredUserFindings(); err != nil || report.OK || len(found) != 2 {
		t.Errorf("Check: got %+v, %v and %v, want a finding for each deleted user", report, found, err)
	}
	noError(t, reading.Close())

	locked := keys
	locked.ReadOnly = true
	half := k.openAt(restored, locked)
	people.check(t, half)
	if _, err := half.As(Access{User: people["ann"].id}).AddMemory(t.Context(), NewMemory{Content: "x"}); err == nil {
		t.Error("a deleted user has stored a memory, want an error")
	}
	noError(t, half.Close())

	k.s = k.openAt(restored, keys)
	people.check(t, k.s)
	people.gone(t, k.s)
	people.has(t, k.s, "ben")
	if r := k.report(&UserKeysOptions{Check: true}); r.ErasedValues != 0 || r.Keys != 1 || r.Erased != 1 {
		t.Errorf("UserKeys: got %+v, want no value under the erased key", r)
	}
	report, err = k.s.Upkeep().Check(t.Context(), nil)
	if err != nil || !report.OK {
		t.Errorf("Check: got %+v and %v, want a sound store", report, err)
	}

	// An account that is added again with the same id is a new one, and stays.
	_, err = k.s.Accounts().AddUser(t.Context(), NewUser{ID: people["ann"].id, Name: "ann"})
	noError(t, err)
	mustAdd(t, k.s.As(Access{User: people["ann"].id}), NewMemory{Content: "a new start"})
	k.close()
	k.s = k.openAt(restored, keys)
	people.has(t, k.s, "ann")
}
