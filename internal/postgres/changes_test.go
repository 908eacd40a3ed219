package postgres_test

import (
	"slices"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/postgres"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
)

// A mark taken within a Write misses no change of another Write that began after its snapshot, got a lower number, and
// committed later.
func TestAMarkWithinAWriteMissesNoOther(t *testing.T) {
	d, err := postgres.Open(t.Context(), pgtest.Address(t), db.Opening{Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	rows := map[string]int64{}
	for _, uid := range []string{"one", "other"} {
		if err := d.Write(t.Context(), func(tx db.Tx) (err error) {
			rows[uid], err = addMemory(tx, uid)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	touch := func(tx db.Tx, uid string) error {
		_, err := tx.Exec(`UPDATE memory SET updated_at = updated_at + 1 WHERE id = ?`, rows[uid])
		return err
	}
	var mark db.Mark
	goOn, done := make(chan struct{}), make(chan error, 1)
	other := func() {
		numbered := make(chan struct{})
		once := false
		go func() {
			done <- d.Write(t.Context(), func(tx db.Tx) error {
				err := touch(tx, "other")
				if !once {
					once = true
					close(numbered)
				}
				<-goOn
				return err
			})
		}()
		<-numbered
	}
	begun := false
	err = d.Write(t.Context(), func(tx db.Tx) error {
		var n int
		if err := tx.QueryRow(`SELECT count(*) FROM setting`).Scan(&n); err != nil { // takes the snapshot
			return err
		}
		if !begun {
			begun = true
			other()
		}
		if err := touch(tx, "one"); err != nil {
			return err
		}
		var err error
		mark, err = tx.Changes().Mark()
		return err
	})
	if err != nil {
		t.Errorf("the Write with the mark: got %v, want no error", err)
	}
	close(goOn)
	if err := <-done; err != nil {
		t.Errorf("the other Write: got %v, want no error", err)
	}
	err = d.Read(t.Context(), func(tx db.Tx) error {
		changed, _, complete, err := tx.Changes().Since(mark, 10)
		for _, uid := range []string{"one", "other"} {
			if !slices.Contains(changed, rows[uid]) || !complete {
				t.Errorf("since the mark: got %v, complete: %v; want memory %d among them", changed, complete, rows[uid])
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
