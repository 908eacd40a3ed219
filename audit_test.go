package souvenir

import (
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/records/audit"
	"github.com/souvenir-ai/souvenir/internal/storefile"
)

// What an anchor proves cannot be accepted afterwards: an attacker who changes entries could also write an acceptance.
func TestAnEntryAfterTheAnchorAcceptsNothingBeforeIt(t *testing.T) {
	s := openWords(t, "", Options{})
	if _, err := s.Accounts().AddUser(t.Context(), NewUser{ID: "anna", Name: "anna"}); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if _, err := s.As(Access{User: "anna"}).Accounts().AddToken(t.Context(), NewToken{Name: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := s.Upkeep().CheckAudit(t.Context(), nil)
	if err != nil || !kept.OK {
		t.Fatalf("got %+v, %v; want a sound log", kept, err)
	}
	if err := s.db.Write(t.Context(), func(tx db.Tx) error {
		if _, err := tx.Exec(`UPDATE audit SET action = 'x' WHERE id = 4`); err != nil {
			return err
		}
		if _, err := tx.Exec(`DELETE FROM audit WHERE id BETWEEN 6 AND 8`); err != nil {
			return err
		}
		return acceptAudit(tx)
	}); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Upkeep().CheckAudit(t.Context(), nil); err != nil || !r.OK || r.Accepted != 2 {
		t.Errorf("without the anchor got %+v, %v; want both accepted", r, err)
	}
	if r, err := s.Upkeep().CheckAudit(t.Context(), &kept.Head); err != nil || r.OK || len(r.Problems) != 2 {
		t.Errorf("got %+v, %v; want the changed entry and the gap", r, err)
	}
}

// acceptAudit accepts all current mismatches, as a check does.
func acceptAudit(tx db.Tx) error {
	r, err := audit.Verify(tx, nil)
	if err != nil {
		return err
	}
	return audit.Append(tx, audit.Entry{At: 1, Action: audit.Accept, Kind: "audit"}, audit.Accepted(r.Problems))
}

// Accepting a gap covers that gap only: later deletions and changes beside it are still reported.
func TestAnAcceptedGapHidesNothingLater(t *testing.T) {
	s := openWords(t, "", Options{})
	if err := s.db.Write(t.Context(), func(tx db.Tx) error {
		for range 20 {
			if err := audit.Append(tx, audit.Entry{At: 1, Action: "user.add", Kind: "user"}, nil); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(`DELETE FROM audit WHERE id IN (8, 9)`); err != nil {
			return err
		}
		if _, err := tx.Exec(`UPDATE audit SET at = 2 WHERE id = 15`); err != nil {
			return err
		}
		return acceptAudit(tx)
	}); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Upkeep().CheckAudit(t.Context(), nil); err != nil || !r.OK || r.Accepted != 2 {
		t.Fatalf("got %+v, %v; want both places accepted", r, err)
	}
	for attack, at := range map[string]int64{
		`DELETE FROM audit WHERE id = 7`:               7,
		`DELETE FROM audit WHERE id = 10`:              8,
		`DELETE FROM audit WHERE id BETWEEN 10 AND 12`: 8,
		`UPDATE audit SET actor = 'x' WHERE id = 10`:   8,
		`UPDATE audit SET actor = 'x' WHERE id = 15`:   15,
		`DELETE FROM audit WHERE id = 15`:              15,
		`INSERT INTO audit SELECT 9, at, namespace, actor, via, credential, credential_id, action, kind, object, details,
			hash FROM audit WHERE id = 3`: 8,
	} {
		undo := errors.New("undone")
		err := s.db.Write(t.Context(), func(tx db.Tx) error {
			if _, err := tx.Exec(attack); err != nil {
				return err
			}
			r, err := audit.Verify(tx, nil)
			if len(r.Problems) == 0 || r.Problems[0].Seq != at {
				t.Errorf("%s: got %+v, want a problem at %d", attack, r.Problems, at)
			}
			return errors.Join(err, undo)
		})
		if !errors.Is(err, undo) {
			t.Errorf("%s: got %v, want it undone", attack, err)
		}
	}
}

// Anyone may register clients and revoke tokens they hold, any number of times. None of it may fill the audit log.
func TestStrangersDoNotFillTheAuditLog(t *testing.T) {
	s, _ := openOAuth(t)
	entries := func() (n int64) {
		r, err := s.Upkeep().CheckAudit(t.Context(), nil)
		if err != nil || !r.OK {
			t.Fatalf("got %+v, %v; want a sound log", r, err)
		}
		return r.Entries
	}
	before := entries()
	c := mustRegister(t, s)
	for range 10 {
		mustRegister(t, s)
	}
	if got := entries() - before; got != 0 {
		t.Errorf("11 registrations made %d entries, want none", got)
	}
	tokens, refresh := mustLetIn(t, s, s, c)
	var actions []string
	for e, err := range s.Upkeep().AuditEntries(t.Context(), AuditQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		actions = append(actions, e.Action)
	}
	if len(actions) < 2 || actions[0] != "grant.add" || actions[1] != "client.register" {
		t.Errorf("got %v, want grant.add after client.register", actions)
	}
	grants, err := s.Accounts().Grants(t.Context())
	if err != nil || len(grants) != 1 {
		t.Fatalf("got %v, %v; want one grant", grants, err)
	}
	for i, repeated := range []func() error{
		func() error {
			return s.Accounts().RevokeGrantByToken(t.Context(), Revocation{Client: refresh.Client, Token: tokens.AccessToken})
		},
		func() error { return s.Accounts().RevokeGrant(t.Context(), grants[0].ID) },
		func() error { return s.Accounts().DeactivateClient(t.Context(), c.Client.ID) },
	} {
		name := []string{"RevokeGrantByToken", "RevokeGrant", "DeactivateClient"}[i]
		if err := repeated(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		before = entries()
		for range 3 {
			if err := repeated(); err != nil {
				t.Errorf("%s again: %v", name, err)
			}
		}
		if got := entries() - before; got != 0 {
			t.Errorf("%s again made %d entries, want none", name, got)
		}
	}
}

// A store that is opened to be copied changes in nothing but its audit log.
func TestAStoreThatIsCopiedGetsOnlyAnEntry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	made := openWords(t, path, Options{})
	if _, err := made.AddMemory(t.Context(), NewMemory{Content: "one"}); err != nil {
		t.Fatal(err)
	}
	if err := made.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Open(storefile.WithOnlyRecords(t.Context()), path, &Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	before, err := s.Upkeep().CheckAudit(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Upkeep().Export(t.Context(), io.Discard, nil); err != nil {
		t.Error(err)
	}
	if _, err := s.AddMemory(t.Context(), NewMemory{Content: "two"}); !errors.Is(err, ErrReadOnly) {
		t.Errorf("got %v, want ErrReadOnly", err)
	}
	if e, err := s.Upkeep().EmbeddingStatus(t.Context()); err != nil || e.StoredModel == "" {
		t.Errorf("got %+v, %v, want that the store keeps its model", e, err)
	}
	after, err := s.Upkeep().CheckAudit(t.Context(), nil)
	if err != nil || !after.OK || after.Head.Seq != before.Head.Seq+1 {
		t.Errorf("got %+v, %v, want one more entry than %d", after, err, before.Head.Seq)
	}
}
