package dbtest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// A row that is missing when fn looks for it is still missing when the Write ends: of several that find nothing,
// only one goes on.
func noPhantoms(t *testing.T, d, other db.DB) {
	const writers = 4
	var looked atomic.Int32
	var wg sync.WaitGroup
	for w := range writers {
		handle := []db.DB{d, other}[w%2]
		wg.Go(func() {
			err := handle.Write(t.Context(), func(tx db.Tx) error {
				n, err := count(tx)
				meetOthers(&looked, writers)
				if err != nil || n > 0 {
					return err
				}
				return set(tx, key(w), 1)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	read(t, d, func(tx db.Tx) error {
		n, err := count(tx)
		equal(t, "rows (there must be one)", n, 1)
		return err
	})
}

// Several Writes look for a row, do not find it, and insert it. One of them inserts it first. The others may get a
// violated constraint by a row that their snapshot does not show; then they run again, and find it.
func noPhantomKeys(t *testing.T, d, other db.DB) {
	const writers = 4
	for round := range 5 {
		var looked atomic.Int32
		var wg sync.WaitGroup
		for w := range writers {
			handle := []db.DB{d, other}[w%2]
			wg.Go(func() {
				err := handle.Write(t.Context(), func(tx db.Tx) error {
					_, err := get(tx, key(round))
					meetOthers(&looked, writers)
					if !errors.Is(err, db.ErrNoRows) {
						return err
					}
					_, err = tx.Exec(`INSERT INTO setting (key, value) VALUES (?, ?)`, key(round), w)
					return err
				})
				if err != nil {
					t.Errorf("a Write that adds a row which it did not find: got %v, want nil", err)
				}
			})
		}
		wg.Wait()
	}
	read(t, d, func(tx db.Tx) error {
		n, err := count(tx)
		equal(t, "rows (each round adds one)", n, 5)
		return err
	})
}

// A user gets an id that looks like the name which another user gets at the same time. Triggers that read refuse it,
// so one of the two Writes runs again, and reports it.
func idsAndNames(t *testing.T, e Engine) {
	one, other := twoHandles(t, e)
	for round := range 5 {
		folded := fmt.Sprint("x", round)
		var looked, added atomic.Int32
		var wg sync.WaitGroup
		for i, query := range []string{`INSERT INTO users (uid, uid_key, created_at) VALUES (?1, ?1, 0)`,
			`INSERT INTO users (uid, name, name_key, created_at) VALUES ('named ' || ?1, ?1, ?1, 0)`} {
			wg.Go(func() {
				err := []db.DB{one, other}[i].Write(t.Context(), func(tx db.Tx) error {
					_, err := tx.Exec(query, folded)
					meetOthers(&looked, 2)
					return err
				})
				if err == nil {
					added.Add(1)
					return
				}
				is(t, "an id and a name that look alike", err, db.ErrConstraint)
			})
		}
		wg.Wait()
		equal(t, "Writes that add a user", added.Load(), 1)
		read(t, one, func(tx db.Tx) error {
			var n int
			err := tx.QueryRow(`SELECT count(*) FROM users WHERE uid_key = ?1 OR name_key = ?1`, folded).Scan(&n)
			equal(t, "users with the id or the name", n, 1)
			return err
		})
	}
}

// meetOthers waits a while until as many functions have come as there are writers, counting the runs.
func meetOthers(come *atomic.Int32, writers int32) {
	come.Add(1)
	for end := time.Now().Add(meeting); come.Load() < writers && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}
