package dbtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/longtest"
)

func endsWithContext(t *testing.T, d db.DB) {
	never := func(db.Tx) error {
		t.Error("the function ran")
		return nil
	}
	is(t, "Read", d.Read(canceled(t), never), context.Canceled)
	is(t, "Write", d.Write(canceled(t), never), context.Canceled)

	ctx, cancel := context.WithTimeout(t.Context(), meeting)
	defer cancel()
	var n int64
	err := d.Read(ctx, func(tx db.Tx) error { return tx.QueryRow(slow).Scan(&n) })
	is(t, "a statement that runs", err, context.DeadlineExceeded)

	// Behind a Write that does not end, another waits, or runs and ends with its context.
	begun, end := make(chan struct{}), make(chan struct{})
	held, waited := make(chan error, 1), make(chan error, 1)
	go func() {
		var once sync.Once
		held <- d.Write(t.Context(), func(tx db.Tx) error {
			once.Do(func() { close(begun) })
			<-end
			return set(tx, key("held"), 1)
		})
	}()
	<-begun
	ctx, cancel = context.WithTimeout(t.Context(), meeting)
	defer cancel()
	go func() {
		waited <- d.Write(ctx, func(tx db.Tx) error {
			<-ctx.Done()
			return set(tx, key("waited"), 1)
		})
	}()
	select {
	case err := <-waited:
		is(t, "a Write that waits", err, context.DeadlineExceeded)
		close(end)
	case <-time.After(forever):
		t.Error("a Write that waits does not end with its context")
		close(end)
		t.Logf("it ended later, with %v", <-waited)
	}
	if err := <-held; err != nil {
		t.Error(err)
	}
	read(t, d, func(tx db.Tx) error {
		n, err := count(tx)
		equal(t, "rows", n, 1)
		return err
	})
}

// canceledWithin checks calls whose context ends while their function runs: they return its error, whatever the
// function returns, and what a Write wrote is not stored.
func canceledWithin(t *testing.T, d db.DB) {
	mine := errors.New("mine")
	for what, call := range map[string]func(context.Context, func(db.Tx) error) error{"Write": d.Write, "Read": d.Read} {
		for returns, result := range map[string]error{"nothing": nil, "its own error": mine} {
			for _, goesOn := range []bool{false, true} {
				what := fmt.Sprintf("a %s whose function returns %s, going on: %t", what, returns, goesOn)
				ctx, cancel := context.WithCancel(t.Context())
				err := call(ctx, func(tx db.Tx) error {
					if _, err := count(tx); err != nil {
						return err
					}
					if tx.Writable() {
						if err := set(tx, key(what), 1); err != nil {
							return err
						}
					}
					cancel()
					if goesOn {
						_, err := get(tx, key("other"))
						is(t, what+": a statement", err, context.Canceled)
						_, err = db.Column[string](tx, `SELECT key FROM setting`)
						is(t, what+": a query", err, context.Canceled)
					}
					if goesOn && tx.Writable() {
						is(t, what+": a statement that writes", set(tx, key(what, " more"), 1), context.Canceled)
						is(t, what+": a part", tx.Savepoint(func() error { return nil }), context.Canceled)
					}
					return result
				})
				cancel()
				is(t, what, err, context.Canceled)
				if errors.Is(err, mine) || errors.Is(err, db.ErrOutcomeUnknown) {
					t.Errorf("%s: got %v as well", what, err)
				}
			}
		}
	}
	read(t, d, func(tx db.Tx) error {
		n, err := count(tx)
		equal(t, "rows", n, 0)
		return err
	})
}

// canceledAnywhere ends the contexts of Writes after some time, while they wait, run or commit. What is stored is what
// they say: nil means all of it, the context's error nothing.
func canceledAnywhere(t *testing.T, d db.DB) {
	const writers = 8
	each := longtest.Size(60, 12)
	var wg sync.WaitGroup
	results := make([][]error, writers)
	for w := range writers {
		results[w] = make([]error, each)
		wg.Go(func() {
			for i := range each {
				after := 10 * time.Millisecond * time.Duration(i*writers+w) / time.Duration(each*writers)
				ctx, cancel := context.WithTimeout(t.Context(), after)
				results[w][i] = d.Write(ctx, func(tx db.Tx) error {
					return errors.Join(set(tx, key(w, " ", i), 1), set(tx, key(w, " ", i, " too"), 1))
				})
				cancel()
			}
		})
	}
	wg.Wait()
	read(t, d, func(tx db.Tx) error {
		stored, err := db.Column[string](tx, `SELECT key FROM setting WHERE key LIKE 'test %'`)
		there := map[string]int{}
		for _, k := range stored {
			there[k]++
		}
		for w := range writers {
			for i, result := range results[w] {
				what, got := fmt.Sprintf("Write %d of %d, with the result %v: rows", i, w, result), there[key(w, " ", i)]+
					there[key(w, " ", i, " too")]
				switch {
				case result == nil:
					equal(t, what, got, 2)
				case errors.Is(result, db.ErrOutcomeUnknown):
					equal(t, what+" but none or all", got%2, 0)
				default:
					is(t, what, result, context.DeadlineExceeded)
					equal(t, what, got, 0)
				}
			}
		}
		return err
	})
}
