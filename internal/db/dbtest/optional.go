package dbtest

import (
	"context"
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
