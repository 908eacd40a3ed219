package dbtest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Failure is what a database does when a test asks for it.
type Failure int

// The failures of [Engine.Failing].
const (
	Interrupt    Failure = iota // the running statement is ended, as by an operator
	Disconnect                  // the connection of the running statement is ended
	LosesCommit                 // the next COMMIT does not reach the database, and its connection ends
	LosesOutcome                // the database runs the next COMMIT, and its connection ends without an answer
)

// failing opens a database that can fail.
func (e Engine) failing(t *testing.T) (d db.DB, fail func(Failure)) {
	t.Helper()
	if e.Failing == nil {
		t.Skip("this database cannot fail on demand, as Engine.Failing is nil")
	}
	d, fail = e.Failing(t)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d, fail
}

// lostSnapshots checks that a Read which has lost its snapshot fails from then on, with one class of error, that its
// function's result counts, and that a part undoes a statement that was interrupted.
func lostSnapshots(t *testing.T, e Engine) {
	d, fail := e.failing(t)
	ctx, cancel := context.WithTimeout(t.Context(), 6*forever)
	defer cancel()
	mine := errors.New("mine")
	run := func(tx db.Tx, failure Failure) error {
		go fail(failure)
		return tx.QueryRow(slow).Scan(new(int64))
	}
	for failure, c := range map[Failure]struct {
		what  string
		class error
	}{Interrupt: {"interrupted", db.ErrInterrupted}, Disconnect: {"disconnected", db.ErrUnavailable}} {
		for _, result := range []error{nil, mine} {
			err := d.Read(ctx, func(tx db.Tx) error {
				_, err := count(tx)
				is(t, c.what+": before", err, nil)
				is(t, c.what+": the statement", run(tx, failure), c.class)
				_, err = count(tx)
				is(t, c.what+": QueryRow afterwards", err, c.class)
				_, err = db.Column[string](tx, `SELECT key FROM setting WHERE key = 'other'`)
				is(t, c.what+": Each afterwards", err, c.class)
				_, err = tx.Changes().Mark()
				is(t, c.what+": Mark afterwards", err, c.class)
				is(t, c.what+": a part afterwards", tx.Savepoint(func() error { return nil }), c.class)
				return result
			})
			is(t, c.what+": the result of Read", err, result)
			works(t, d, "a Read that was "+c.what)
		}
		err := d.Write(ctx, func(tx db.Tx) error {
			return errors.Join(set(tx, key(c.what), 1), run(tx, failure))
		})
		is(t, c.what+": Write", err, c.class)
		works(t, d, "a Write that was "+c.what)
	}
	read(t, d, func(tx db.Tx) error {
		before, err := count(tx)
		is(t, "a part that is interrupted", tx.Savepoint(func() error { return run(tx, Interrupt) }), db.ErrInterrupted)
		after, err2 := count(tx)
		equal(t, "rows after a part that was interrupted", after, before)
		return errors.Join(err, err2)
	})
}

// unansweredCommits checks that a Write whose commit has no answer says so, does not run again, and has stored all of
// its work or none.
func unansweredCommits(t *testing.T, e Engine) {
	d, fail := e.failing(t)
	for what, c := range map[string]struct {
		failure Failure
		stored  int
	}{"a COMMIT that is lost": {LosesCommit, 0}, "an answer that is lost": {LosesOutcome, 2}} {
		for how, run := range map[string]func(tx db.Tx, name string) error{
			"by Exec": func(tx db.Tx, name string) error { return set(tx, name, 1) },
			"queued": func(tx db.Tx, name string) error {
				return db.Queue(tx, `INSERT INTO setting (key, value) VALUES (?, 1)`, name)
			},
		} {
			what := what + ", " + how
			var runs atomic.Int32
			err := d.Write(t.Context(), func(tx db.Tx) error {
				runs.Add(1)
				err := errors.Join(run(tx, key(what)), run(tx, key(what, " too")))
				fail(c.failure)
				return err
			})
			is(t, what, err, db.ErrOutcomeUnknown)
			for _, other := range []error{db.ErrUnavailable, db.ErrBusy, db.ErrInterrupted, context.Canceled} {
				if errors.Is(err, other) {
					t.Errorf("%s: got %v, which is %v as well, want one class alone", what, err, other)
				}
			}
			equal(t, what+": runs", runs.Load(), 1)
			read(t, d, func(tx db.Tx) error {
				var n int
				err := tx.QueryRow(`SELECT count(*) FROM setting WHERE key LIKE ?`, key(what)+"%").Scan(&n)
				equal(t, what+": rows", n, c.stored)
				return err
			})
		}
	}
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
