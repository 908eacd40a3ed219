package dbtest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

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
