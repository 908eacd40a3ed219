package souvenir

import (
	"testing"

	"github.com/souvenir-ai/souvenir/internal/audit"
	"github.com/souvenir-ai/souvenir/internal/db"
)

// What an anchor proves cannot be accepted after it: who changes the entries could note that, too.
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
	kept, err := s.Upkeep().VerifyAudit(t.Context(), nil)
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
		return audit.Append(tx, audit.Entry{At: 1, Action: audit.Accept, Kind: "audit"},
			audit.Details{"entries": []int64{4, 6}})
	}); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Upkeep().VerifyAudit(t.Context(), &kept.Head); err != nil || r.OK || len(r.Problems) != 2 {
		t.Errorf("got %+v, %v; want the changed entry and the gap", r, err)
	}
}
