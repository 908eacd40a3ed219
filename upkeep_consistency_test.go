package souvenir

import (
	"context"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sqlite/consistent"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// checkConsistency fails the test unless everything in the file agrees.
func checkConsistency(tb testing.TB, s *Store) {
	tb.Helper()
	consistent.Check(tb, s.db)
}

// idsOf returns the contents of all memories by id.
func idsOf(tb testing.TB, s *Store) map[string]string {
	tb.Helper()
	all := map[string]string{}
	for m, err := range s.Memories(context.Background(), MemoryList{}) {
		if err != nil {
			tb.Fatal(err)
		}
		if _, twice := all[m.ID]; twice {
			tb.Fatalf("memory %s is listed twice, want it once", m.ID)
		}
		all[m.ID] = m.Content
	}
	return all
}

// failureRecorder is a test that only records whether it failed.
type failureRecorder struct {
	testing.TB
	failed bool
}

func (d *failureRecorder) Helper()               {}
func (d *failureRecorder) Error(...any)          { d.failed = true }
func (d *failureRecorder) Errorf(string, ...any) { d.failed = true }

func TestConsistencyCheckFindsDamage(t *testing.T) {
	for i, damage := range []string{
		``,
		`DELETE FROM passage`,
		`DELETE FROM passage_text WHERE rowid = (SELECT min(id) FROM passage)`,
		`INSERT INTO passage_text (rowid, content, tags) VALUES (7, 'x', '')`,
		`UPDATE passage SET start = start + 3`,
		`UPDATE passage SET vector = x'00'`,
		`UPDATE partition SET memories = memories + 1`,
		`UPDATE partition SET passages = passages - 1`,
		`UPDATE partition SET next_passage = 0`,
		`UPDATE memory_tag SET position = position + 1`,
		`UPDATE memory SET revision = 9`,
		`UPDATE memory SET metadata = '[]'`,
		`DELETE FROM change`,
	} {
		if !longtest.Part(i, 1, 4) {
			continue
		}
		s := openWords(t, "", Options{})
		mustAdd(t, s, NewMemory{Content: "one memory", Tags: []string{"tagged"}})
		if damage != "" {
			if err := s.db.Write(t.Context(), func(tx db.Tx) error { _, err := tx.Exec(damage); return err }); err != nil {
				t.Fatal(err)
			}
		}
		d := &failureRecorder{TB: t}
		checkConsistency(d, s)
		if d.failed != (damage != "") {
			t.Errorf("after %q the check fails: %v, want %v", damage, d.failed, (damage != ""))
		}
	}
}
