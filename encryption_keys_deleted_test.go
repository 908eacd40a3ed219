package souvenir

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
)

// A deleted user does not return with an older backup: not the account, no credential, and no new key. Others stay.
func TestADeletedUserDoesNotReturnWithABackup(t *testing.T) {
	k := newKeyed(t)
	type person struct {
		id, token, session, password string
	}
	people := map[string]person{}
	for _, name := range []string{"ann", "ben", "eve"} {
		p := person{password: "a long secret of " + name}
		u, err := k.s.Accounts().AddUser(t.Context(), NewUser{Name: name, Password: p.password})
		noError(t, err)
		p.id = u.ID
		token, err := k.s.Accounts().AddToken(t.Context(), NewToken{User: u.ID, Name: "laptop"})
		noError(t, err)
		signIn, err := k.s.Accounts().AddSignIn(t.Context(), NewSignIn{User: u.ID})
		noError(t, err)
		p.token, p.session = token.Value, signIn.Value
		if name != "eve" { // who has no key: she has stored nothing
			mustAdd(t, k.s.As(Access{User: u.ID}), NewMemory{Content: "what " + name + " knows"})
		}
		people[name] = p
	}
	backup := filepath.Join(t.TempDir(), "backup.db")
	noError(t, k.s.Upkeep().Backup(t.Context(), backup, nil))
	for _, name := range []string{"ann", "eve"} {
		noError(t, k.s.Accounts().DeleteUser(t.Context(), name, &DeletionOptions{WithMemories: true}))
	}
	k.close()
	keys := k.keys
	keys.Place = UserKeysFile(k.path)

	// check that their credentials are refused, and those of others accepted.
	check := func(s *Store) {
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
	has := func(name string) { // one memory
		t.Helper()
		n := 0
		for _, err := range k.s.As(Access{User: people[name].id}).Memories(t.Context(), MemoryList{}) {
			noError(t, err)
			n++
		}
		if n != 1 {
			t.Errorf("%s has %d memories, want one", name, n)
		}
	}
	restored := filepath.Join(t.TempDir(), "restored.db")
	noError(t, Restore(t.Context(), Restoration{From: backup, To: restored}))
	reading, err := Open(t.Context(), restored, &Options{UserKeys: keys, ReadOnly: true, KeepModel: true})
	noError(t, err)
	check(reading)
	report, err := reading.Upkeep().Check(t.Context(), nil)
	if found := reading.restoredUserFindings(); err != nil || report.OK || len(found) != 2 {
		t.Errorf("Check: got %+v, %v and %v, want a finding for each deleted user", report, found, err)
	}
	noError(t, reading.Close())

	locked := keys
	locked.ReadOnly = true
	half := k.openAt(restored, locked)
	check(half)
	if _, err := half.As(Access{User: people["ann"].id}).AddMemory(t.Context(), NewMemory{Content: "x"}); err == nil {
		t.Error("a deleted user has stored a memory, want an error")
	}
	noError(t, half.Close())

	k.s = k.openAt(restored, keys)
	check(k.s)
	for _, name := range []string{"ann", "eve"} {
		if u, err := k.s.Accounts().GetUser(t.Context(), name); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: got %+v and %v, want ErrNotFound", name, u, err)
		}
		noted := 0
		deletions := AuditQuery{Action: "user.delete", Object: people[name].id}
		for e, err := range k.s.Upkeep().AuditEntries(t.Context(), deletions) {
			noError(t, err)
			if noted++; e.Details["restored"] != true || e.Actor.Via != ViaUpkeep {
				t.Errorf("the audit log: got %+v, want the background worker, and that it was restored", e)
			}
		}
		if noted != 1 {
			t.Errorf("the audit log has %d entries about %s, want one", noted, name)
		}
	}
	has("ben")
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
	has("ann")
}
