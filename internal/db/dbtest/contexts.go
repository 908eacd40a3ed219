package dbtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
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

	// A Write of the same row as one that does not end waits, or runs, and ends with its context.
	begun, end := make(chan struct{}), make(chan struct{})
	held, waited := make(chan error, 1), make(chan error, 1)
	go func() {
		var once sync.Once
		held <- d.Write(t.Context(), func(tx db.Tx) error {
			err := set(tx, key("held"), 1)
			once.Do(func() { close(begun) })
			<-end
			return err
		})
	}()
	<-begun
	ctx, cancel = context.WithTimeout(t.Context(), meeting)
	defer cancel()
	go func() {
		waited <- d.Write(ctx, func(tx db.Tx) error {
			err := set(tx, key("held"), 2)
			<-ctx.Done()
			return err
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
		n, err := get(tx, key("held"))
		equal(t, "the row", n, 1)
		return err
	})
}

// canceledWithin checks calls whose context ends while their function runs: they return its error, no matter what the
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
					t.Errorf("%s: got %v as well, want one class alone", what, err)
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

// canceledAnywhere ends the contexts of Writes after some time, while they wait, run, run again or commit. A Write that
// returns nil has stored all of its work, and one that returns the context's error nothing. Every other one also counts
// itself in a row that they share.
func canceledAnywhere(t *testing.T, d db.DB) {
	const writers = 8
	each := longtest.Size(60, 12)
	write(t, d, func(tx db.Tx) error { return set(tx, "counter", 0) })
	var wg sync.WaitGroup
	results := make([][]error, writers)
	for w := range writers {
		results[w] = make([]error, each)
		wg.Go(func() {
			for i := range each {
				after := 10 * time.Millisecond * time.Duration(i*writers+w) / time.Duration(each*writers)
				ctx, cancel := context.WithTimeout(t.Context(), after)
				results[w][i] = d.Write(ctx, func(tx db.Tx) (err error) {
					if i%2 == 0 {
						n, err2 := get(tx, "counter")
						err = errors.Join(err2, set(tx, "counter", n+1))
					}
					return errors.Join(err, set(tx, key(w, " ", i), 1), set(tx, key(w, " ", i, " too"), 1))
				})
				cancel()
			}
		})
	}
	wg.Wait()
	read(t, d, func(tx db.Tx) error {
		stored, err := db.Column[string](tx, `SELECT key FROM setting WHERE key LIKE 'test %'`)
		there, counted := map[string]int{}, 0
		for _, k := range stored {
			there[k]++
		}
		for w := range writers {
			for i, result := range results[w] {
				what, got := fmt.Sprintf("Write %d of %d, with the result %v: rows", i, w, result), there[key(w, " ", i)]+
					there[key(w, " ", i, " too")]
				if i%2 == 0 && got > 0 {
					counted++
				}
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
		counter, err2 := get(tx, "counter")
		equal(t, "counter", counter, int64(counted))
		return errors.Join(err, err2)
	})
}

// endsSoon checks that a Read ends soon after its context, with any statement in it and also where it waits for others,
// and so does a Write whose function reads on and on. Each returns the context's error and stores nothing, and the
// engine works afterwards. A statement that runs in a Write may finish: others may share the transaction.
func endsSoon(t *testing.T, d db.DB) {
	const endless = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000000) SELECT i FROM n`
	soon := func(what string, call func(context.Context, func(db.Tx) error) error, run func(tx db.Tx, end func()) error) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		over := make(chan error, 1)
		go func() { over <- call(ctx, func(tx db.Tx) error { return run(tx, cancel) }) }()
		select {
		case err := <-over:
			is(t, what, err, context.Canceled)
		case <-time.After(forever):
			t.Fatalf("%s does not end with its context", what)
		}
		works(t, d, what)
	}
	later := func(run func(tx db.Tx) error) func(tx db.Tx, end func()) error {
		return func(tx db.Tx, end func()) error {
			if tx.Writable() {
				if err := set(tx, key("a"), 1); err != nil {
					return err
				}
			}
			time.AfterFunc(meeting/4, end)
			return run(tx)
		}
	}
	pass := func(db.Rows) error { return nil }
	soon("QueryRow in a Read", d.Read, later(func(tx db.Tx) error { return tx.QueryRow(slow).Scan(new(int64)) }))
	for _, reader := range rowReaders {
		soon(reader.name+" in a Read", d.Read, later(func(tx db.Tx) error { return reader.each(tx, pass, slow) }))
	}
	for what, call := range map[string]func(context.Context, func(db.Tx) error) error{"Write": d.Write, "Read": d.Read} {
		soon("rows that have no end in a "+what, call, func(tx db.Tx, end func()) error {
			ran := 0
			return db.Stream(tx, func(db.Rows) error {
				if ran++; ran == 3 {
					end()
				}
				return nil
			}, endless)
		})
		soon("statements that follow each other in a "+what, call, later(func(tx db.Tx) error {
			for {
				if _, err := count(tx); err != nil {
					return err
				}
			}
		}))
	}
	readEndsSoon(t, d)
}

// works checks that a Read and a Write still work after something.
func works(t *testing.T, d db.DB, what string) {
	t.Helper()
	write(t, d, func(tx db.Tx) error { return set(tx, "works", 1) })
	read(t, d, func(tx db.Tx) error {
		n, err := count(tx)
		equal(t, "rows after "+what, n, 0)
		return err
	})
}

// readEndsSoon checks that a Read beside many others ends with its context. If there are few connections and the others
// hold them all, it waits; otherwise it runs.
func readEndsSoon(t *testing.T, d db.DB) {
	end := make(chan struct{})
	var holders sync.WaitGroup
	for range 24 {
		holders.Go(func() {
			is(t, "a Read beside others", d.Read(t.Context(), func(tx db.Tx) error {
				_, err := count(tx)
				<-end
				return err
			}), nil)
		})
	}
	time.Sleep(meeting)
	ctx, cancel := context.WithTimeout(t.Context(), meeting)
	defer cancel()
	waited := make(chan error, 1)
	go func() {
		waited <- d.Read(ctx, func(tx db.Tx) error {
			<-ctx.Done()
			_, err := count(tx)
			return err
		})
	}()
	select {
	case err := <-waited:
		is(t, "a Read beside many", err, context.DeadlineExceeded)
	case <-time.After(forever):
		t.Error("a Read beside many does not end with its context")
	}
	close(end)
	holders.Wait()
	works(t, d, "many Reads")
}
