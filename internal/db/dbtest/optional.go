package dbtest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// contended checks that a [db.Contender] says whether another Write waits for it, and that long jobs then yield.
func contended(t *testing.T, d db.DB) {
	other := make(chan error, 1)
	asked := false
	write(t, d, func(tx db.Tx) error {
		long := time.Now().Add(-time.Hour)
		c, able := db.Stored(tx).(db.Contender)
		if !able {
			equal(t, "ShouldYield where Writes do not wait", db.ShouldYield(tx, long), false)
			return nil
		}
		asked = true
		equal(t, "whether others wait for the only Write", c.Contended(), false)
		equal(t, "ShouldYield without others", db.ShouldYield(tx, long), false)
		go func() {
			other <- d.Write(t.Context(), func(tx db.Tx) error { return set(tx, key("other"), 1) })
		}()
		for began := time.Now(); !c.Contended() && time.Since(began) < forever; {
			time.Sleep(time.Millisecond)
		}
		equal(t, "whether others wait once one does", c.Contended(), true)
		equal(t, "ShouldYield after a long time", db.ShouldYield(tx, long), true)
		equal(t, "ShouldYield at once", db.ShouldYield(tx, time.Now().Add(time.Hour)), false)
		return set(tx, key("mine"), 1)
	})
	if asked {
		is(t, "the Write that waited", <-other, nil)
	}
}

// follows checks that a [db.Follower] calls its function soon after another handle has changed memories, and no longer
// once it is closed.
func follows(t *testing.T, e Engine) {
	if e.Second == nil {
		t.Skip("this database has one handle only")
	}
	one := e.Open(t)
	defer one.Close()
	other := e.Second(t, one)
	f, able := other.(db.Follower)
	if !able {
		t.Skip("this engine is no db.Follower")
	}
	woken := make(chan struct{}, 1)
	f.Follow(func() {
		select {
		case woken <- struct{}{}:
		default:
		}
	})
	partition := place(t, one)
	for tries := 0; tries < 3; { // calls may be missing, and come without a change
		addMemories(t, one, partition, 1)
		select {
		case <-woken:
			tries = 3
		case <-time.After(forever / 2):
			if tries++; tries == 3 {
				t.Error("got no call after three changes by another handle, want one soon after a change")
			}
		}
		write(t, one, func(tx db.Tx) error {
			_, err := tx.Exec(`DELETE FROM memory`)
			return err
		})
	}
	is(t, "Close", other.Close(), nil)
	for len(woken) > 0 {
		<-woken
	}
	addMemories(t, one, partition, 1)
	select {
	case <-woken:
		t.Error("got a call after Close, want none")
	case <-time.After(meeting):
	}
}

// maintains runs the background work of a [db.Maintainer], also several times at once, and looks at results after it.
func maintains(t *testing.T, d db.DB, look func(when string)) {
	m, able := d.(db.Maintainer)
	if !able {
		return
	}
	is(t, "Maintain with a context that has ended", m.Maintain(canceled(t), true), context.Canceled)
	over := make(chan error)
	for i := range 4 {
		go func() { over <- m.Maintain(t.Context(), i%2 == 0) }()
	}
	for range 4 {
		is(t, "Maintain beside others", <-over, nil)
	}
	look("after Maintain")
	is(t, "Maintain where nothing is due", m.Maintain(t.Context(), true), nil)
	look("after Maintain where nothing is due")
}

// hurriedLocks checks that a hurried Write waits for a lock for the given time only, where Writes run at the same time.
func hurriedLocks(t *testing.T, e Engine, d db.DB) {
	if !e.Reruns {
		t.Skip("this engine has one writer at a time, so that no Write is hurried")
	}
	const locks = 200 * time.Millisecond
	write(t, d, func(tx db.Tx) error { return set(tx, key("held"), 0) })
	begun, end, held := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		var first atomic.Bool
		held <- d.Write(t.Context(), func(tx db.Tx) error {
			err := set(tx, key("held"), 1)
			if !first.Swap(true) {
				close(begun)
			}
			<-end
			return err
		})
	}()
	<-begun
	began := time.Now()
	err := d.Write(db.Hurried(t.Context(), locks), func(tx db.Tx) error { return set(tx, key("held"), 2) })
	if took := time.Since(began); took < locks/2 || took > forever {
		t.Errorf("a hurried Write that waits for a lock: it took %v, want about %v", took, locks)
	}
	is(t, "a hurried Write that waits for a lock", err, db.ErrBusy)
	close(end)
	is(t, "the Write that holds the lock", <-held, nil)
	is(t, "a hurried Write afterwards", d.Write(db.Hurried(t.Context(), locks), func(tx db.Tx) error {
		n, err := get(tx, key("held"))
		equal(t, "the row", n, 1)
		return errors.Join(err, set(tx, key("held"), 3))
	}), nil)
}

// failingAhead checks that a query which was announced and fails leaves the first statement of a transaction as it is,
// and lets another one fail at most: then the transaction is lost, and nothing of it remains.
func failingAhead(t *testing.T, d db.DB) {
	const failing = `SELECT abs(value) FROM setting WHERE key = ?`
	write(t, d, func(tx db.Tx) error {
		return errors.Join(set(tx, key("least"), -1<<63), set(tx, key("a"), 1))
	})
	for what, call := range map[string]func(context.Context, func(db.Tx) error) error{"Write": d.Write, "Read": d.Read} {
		is(t, "a query that fails, in a "+what, call(t.Context(), func(tx db.Tx) error {
			return tx.QueryRow(failing, key("least")).Scan(new(int64))
		}), errAny)
		is(t, "a query announced before the first statement of a "+what, call(t.Context(), func(tx db.Tx) error {
			db.Ahead(tx, failing, key("least"))
			for range 2 {
				if n, err := get(tx, key("a")); n != 1 || err != nil {
					t.Errorf("a %s after a query that fails was announced: got %d and %v, want 1", what, n, err)
				}
			}
			return nil
		}), nil)
		var with, next error
		err := call(t.Context(), func(tx db.Tx) error {
			if _, err := get(tx, key("a")); err != nil {
				return err
			}
			db.Ahead(tx, failing, key("least"))
			_, with = count(tx)
			if tx.Writable() {
				next = set(tx, key("after"), 1)
			} else {
				_, next = get(tx, key("a"))
			}
			return next
		})
		if with == nil {
			is(t, "a "+what+" that reads nothing ahead", err, nil)
			continue
		}
		is(t, "a statement after the one that failed with a query announced, in a "+what, next, errAny)
		is(t, "a "+what+" that failed with a query announced", err, errAny)
		read(t, d, func(tx db.Tx) error {
			n, err := count(tx)
			equal(t, "rows after it", n, 2)
			return err
		})
	}
}
