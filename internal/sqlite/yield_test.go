package sqlite

import (
	"testing"
	"time"

	base "github.com/souvenir-ai/souvenir/internal/db"
)

func TestAPartOfALongWorkBeginsItsOwnTransaction(t *testing.T) {
	bothKinds(t, func(t *testing.T, db *DB) {
		begun, release, answered := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			answered <- db.Write(t.Context(), func(tx base.Tx) error {
				close(begun)
				<-release
				return insert("short")(tx)
			})
		}()
		<-begun
		long := make(chan error, 1)
		go func() {
			long <- db.Write(base.Yielding(t.Context()), func(tx base.Tx) error {
				select {
				case err := <-answered: // durable before this one begins
					must(t, err)
				case <-time.After(30 * time.Second):
					t.Error("the write before was not answered for 30 s, want it before the long work begins")
				}
				return insert("long")(tx)
			})
		}()
		queued(t, db, 1)
		close(release)
		must(t, <-long)
	})
}

func TestALongWorkEndsItsPartWhenOthersWait(t *testing.T) {
	bothKinds(t, func(t *testing.T, db *DB) {
		other := make(chan error, 1)
		must(t, db.Write(base.Yielding(t.Context()), func(tx base.Tx) error {
			earlier := time.Now().Add(-time.Second)
			if base.ShouldYield(tx, earlier) {
				t.Error("with an empty queue: got true, want false")
			}
			go func() { other <- db.Write(t.Context(), insert("other")) }()
			queued(t, db, 1)
			if !base.ShouldYield(tx, earlier) {
				t.Error("with a writer that waits: got false, want true")
			}
			if base.ShouldYield(tx, time.Now().Add(time.Hour)) {
				t.Error("before it has done anything: got true, want false")
			}
			return nil
		}))
		must(t, <-other)
		must(t, db.Read(t.Context(), func(tx base.Tx) error {
			if base.ShouldYield(tx, time.Time{}) {
				t.Error("in a read: got true, want false")
			}
			return nil
		}))
	})
}
