package dbtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

func readWritesNothing(t *testing.T, d db.DB) {
	err := d.Read(t.Context(), func(tx db.Tx) error {
		equal(t, "Writable", tx.Writable(), false)
		return set(tx, key("a"), 1)
	})
	is(t, "a statement that writes, in a Read", err, db.ErrReadOnly)
	read(t, d, func(tx db.Tx) error {
		is(t, "a part of a Read that writes", tx.Savepoint(func() error { return set(tx, key("a"), 1) }), db.ErrReadOnly)
		if tx.Savepoint(func() error { return tx.QueryRow(`SELECT value FROM missing`).Scan(new(int64)) }) == nil {
			t.Error("a part of a Read that reads a missing table: got no error, want one")
		}
		return tx.Savepoint(func() error {
			n, err := count(tx)
			equal(t, "rows after parts that failed", n, 0)
			return err
		})
	})
	write(t, d, func(tx db.Tx) error {
		equal(t, "Writable", tx.Writable(), true)
		n, err := count(tx)
		equal(t, "rows", n, 0)
		return err
	})
}

// Two doctors are on duty, and one must stay: each checks that both are there, and leaves.
func noWriteSkew(t *testing.T, d, other db.DB) {
	for round := range 5 {
		write(t, d, func(tx db.Tx) error { return errors.Join(set(tx, key("a"), 1), set(tx, key("b"), 1)) })
		var looked atomic.Int32
		var wg sync.WaitGroup
		for mine, handle := range map[string]db.DB{key("a"): d, key("b"): other} {
			wg.Go(func() {
				err := handle.Write(t.Context(), func(tx db.Tx) error {
					var onDuty int64
					if err := tx.QueryRow(`SELECT sum(value) FROM setting WHERE key LIKE 'test %'`).Scan(&onDuty); err != nil {
						return err
					}
					meetOthers(&looked, 2)
					if onDuty < 2 {
						return nil
					}
					return set(tx, mine, 0)
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		read(t, d, func(tx db.Tx) error {
			a, err := get(tx, key("a"))
			b, err2 := get(tx, key("b"))
			equal(t, fmt.Sprint("on duty after round ", round), a+b, 1)
			return errors.Join(err, err2)
		})
	}
}

// addWhole adds a memory with a tag, and a passage whose term is its name, in each way in which an engine may keep rows
// and words until later.
func addWhole(tx db.Tx, partition, passage int64, name string) error {
	memory, err := db.InsertNumbered(tx, "memory", numberedMemory, name, partition, "text", nil)
	if err != nil {
		return err
	}
	return errors.Join(db.Queue(tx, `INSERT INTO memory_tag (memory_id, tag, position) VALUES (?, ?, 0)`, memory, name),
		db.Queue(tx, `INSERT INTO passage (id, memory_id, start, length, blank) VALUES (?, ?, 0, 4, 0)`,
			partition<<32|passage, memory), tx.Words().Put(partition<<32|passage, "whole "+name, "", false))
}

// checkWhole checks that a partition has what [addWhole] added some times, each of the terms once, and nothing else.
func checkWhole(t *testing.T, d db.DB, partition int64, n int, terms []string) {
	t.Helper()
	read(t, d, func(tx db.Tx) error {
		var counted string
		err := tx.QueryRow(`SELECT memories || ' ' || passages || ' ' || (SELECT count(*) FROM memory) || ' ' ||
			(SELECT count(*) FROM memory_tag) || ' ' || (SELECT count(*) FROM passage) FROM partition WHERE id = ?`,
			partition).Scan(&counted)
		equal(t, "memories and passages, as counted, memories, tags and passages", counted, fmt.Sprint(n, n, n, n, n))
		in := db.Range{First: partition << 32, Last: partition<<32 | 1<<31}
		all, err2 := tx.Words().Count(in, []string{"whole"})
		equal(t, "passages with the word of all", all, n)
		for _, term := range terms {
			one, err3 := tx.Words().Count(in, []string{term})
			equal(t, "passages with the word "+term, one, 1)
			err = errors.Join(err, err3)
		}
		return errors.Join(err, err2)
	})
}

func runsAgain(t *testing.T, e Engine, d db.DB) {
	const writers, each = 8, 10
	partition := place(t, d)
	var terms []string
	write(t, d, func(tx db.Tx) error {
		for i := range int64(writers * each) {
			if err := addWhole(tx, partition, i, fmt.Sprint("n", i)); err != nil {
				return err
			}
		}
		return set(tx, "counter", 0)
	})
	var wg sync.WaitGroup
	var calls atomic.Int64
	for w := range writers {
		own := make([]string, each)
		for i := range own {
			own[i] = fmt.Sprintf("w%dx%d", w, i)
			terms = append(terms, own[i], "by"+own[i])
		}
		wg.Go(func() {
			for i, name := range own {
				var saw int64
				err := d.Write(t.Context(), func(tx db.Tx) (err error) {
					calls.Add(1)
					if saw, err = get(tx, "counter"); err != nil {
						return err
					}
					if _, err := get(tx, key(name)); !errors.Is(err, db.ErrNoRows) {
						return fmt.Errorf("a row of its own is there before it is written: %w", err)
					}
					return errors.Join(addWhole(tx, partition, int64((writers+w)*each+i), name),
						tx.Words().Put(partition<<32|saw, "whole by"+name, "", true), // another passage in each run
						set(tx, "counter", saw+1), set(tx, key(name), saw+1))
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if e.Reruns && calls.Load() == writers*each {
		t.Errorf("the functions of %d Writes ran %d times; want some to run again", writers*each, calls.Load())
	}
	read(t, d, func(tx db.Tx) error {
		counter, err := get(tx, "counter")
		equal(t, "counter", counter, writers*each)
		var different int64
		err = errors.Join(err, tx.QueryRow(`SELECT count(DISTINCT value) FROM setting WHERE key LIKE 'test %'`).Scan(
			&different))
		equal(t, "different numbers", different, writers*each)
		return err
	})
	checkWhole(t, d, partition, 2*writers*each, terms)
}

func errorUndoesItsOwn(t *testing.T, d db.DB) {
	mine := errors.New("mine")
	partition := place(t, d)
	names := []string{"before"}
	write(t, d, func(tx db.Tx) error { return addWhole(tx, partition, 20, "before") })
	var wg sync.WaitGroup
	for i := range 20 {
		if i%2 == 1 {
			names = append(names, fmt.Sprint("w", i))
		}
		wg.Go(func() {
			err := d.Write(t.Context(), func(tx db.Tx) error {
				if err := errors.Join(set(tx, key(i), 1), addWhole(tx, partition, int64(i), fmt.Sprint("w", i))); err != nil {
					return err
				}
				if i%2 == 0 {
					return errors.Join(tx.Words().Put(partition<<32|20, "other words", "", true), mine)
				}
				return nil
			})
			if want := map[bool]error{true: mine}[i%2 == 0]; !errors.Is(err, want) {
				t.Errorf("Write %d: got %v, want %v", i, err, want)
			}
		})
	}
	wg.Wait()
	read(t, d, func(tx db.Tx) error {
		n, err := count(tx)
		equal(t, "rows", n, 10)
		return err
	})
	// A statement that fails does not undo those before it, if the function goes on.
	write(t, d, func(tx db.Tx) error {
		if err := set(tx, key("before"), 1); err != nil {
			return err
		}
		_, err := tx.Exec(`INSERT INTO setting (key, value) VALUES (?, 1)`, key("before"))
		is(t, "the same key again", err, db.ErrUnique)
		return set(tx, key("after"), 1)
	})
	read(t, d, func(tx db.Tx) error {
		n, err := count(tx)
		equal(t, "rows after an error that was handled", n, 12)
		return err
	})
	checkWhole(t, d, partition, len(names), names)
}

// failedRead checks what follows a read that fails, or a write that the database does not understand: the Write goes
// on, or fails as a whole; within a savepoint, that alone is undone.
func failedRead(t *testing.T, d db.DB) {
	want := 0
	for what, fails := range map[string]func(tx db.Tx) error{
		"a read that fails": func(tx db.Tx) error { return tx.QueryRow(`SELECT missing FROM setting`).Scan(new(int)) },
		"a write that is not understood": func(tx db.Tx) error {
			_, err := tx.Exec(`INSERT INTO setting (missing) VALUES (1)`)
			return err
		},
	} {
		for _, first := range []bool{true, false} {
			var next error
			err := d.Write(t.Context(), func(tx db.Tx) error {
				if !first {
					if err := set(tx, key(what, " before"), 1); err != nil {
						return err
					}
				}
				is(t, what, fails(tx), errAny)
				next = set(tx, key(what, " after ", first), 1)
				return nil
			})
			switch {
			case next != nil:
				is(t, "a Write that goes on after its lost transaction", err, errAny)
			case first:
				want++
				is(t, "a Write that goes on", err, nil)
			default:
				want += 2
				is(t, "a Write that goes on", err, nil)
			}
		}
		write(t, d, func(tx db.Tx) error {
			is(t, "a part with "+what, tx.Savepoint(func() error { return fails(tx) }), errAny)
			return set(tx, key(what, " in a part"), 1)
		})
		want++
	}
	read(t, d, func(tx db.Tx) error {
		n, err := count(tx)
		equal(t, "rows", n, want)
		return err
	})
}

// savepoints checks parts of a transaction: kept, undone by an error, by a panic, and one within another.
func savepoints(t *testing.T, d db.DB) {
	refused := errors.New("refused")
	write(t, d, func(tx db.Tx) error {
		err := set(tx, key("before"), 1)
		is(t, "a part that is kept", tx.Savepoint(func() error { return set(tx, key("kept"), 1) }), nil)
		is(t, "a part with an error", tx.Savepoint(func() error {
			return errors.Join(set(tx, key("undone"), 1), set(tx, key("before"), 2), refused)
		}), refused)
		func() {
			defer func() { equal(t, "the panic of a part", recover(), any("panic")) }()
			_ = tx.Savepoint(func() error {
				err = errors.Join(err, set(tx, key("panicked"), 1))
				panic("panic")
			})
		}()
		is(t, "a part with an error, which has kept a part", tx.Savepoint(func() error {
			return errors.Join(tx.Savepoint(func() error { return set(tx, key("kept for nothing"), 1) }), refused)
		}), refused)
		is(t, "a part with parts", tx.Savepoint(func() error {
			is(t, "an inner part", tx.Savepoint(func() error {
				return errors.Join(set(tx, key("inner"), 1), refused)
			}), refused)
			return set(tx, key("outer"), 1)
		}), nil)
		is(t, "a part that fails in a statement", tx.Savepoint(func() error {
			_, err := tx.Exec(`INSERT INTO setting (key, value) VALUES (?, 1)`, key("before"))
			return err
		}), db.ErrUnique)
		is(t, "a part that cannot read", tx.Savepoint(func() error {
			return tx.QueryRow(`SELECT missing FROM setting`).Scan(new(int))
		}), errAny)
		return errors.Join(err, set(tx, key("after"), 1))
	})
	read(t, d, func(tx db.Tx) error {
		keys, err := db.Column[string](tx, `SELECT key FROM setting WHERE key LIKE 'test %' AND value = 1 ORDER BY key`)
		equal(t, "rows", strings.Join(keys, ", "), "test after, test before, test kept, test outer")
		return err
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := d.Write(ctx, func(tx db.Tx) error {
		_ = tx.Savepoint(func() error {
			defer cancel()
			return set(tx, key("late"), 1)
		})
		return nil
	})
	is(t, "a Write whose context ends within a part", err, context.Canceled)
	read(t, d, func(tx db.Tx) error {
		_, err := get(tx, key("late"))
		is(t, "what the part wrote", err, db.ErrNoRows)
		return nil
	})
}

// rowsOfParts checks that rows which were left open in a part that is undone may be closed, and lose no transaction.
func rowsOfParts(t *testing.T, d db.DB) {
	write(t, d, func(tx db.Tx) error {
		for i := range 300 {
			if err := set(tx, key(i), 1); err != nil {
				return err
			}
		}
		for _, read := range []int{0, 1, 250} {
			var rows db.Rows
			is(t, "a part that leaves rows open", tx.Savepoint(func() (err error) {
				if rows, err = tx.Query(`SELECT key FROM setting WHERE key LIKE 'test %'`); err != nil {
					return err
				}
				for range read {
					rows.Next()
				}
				return errPart
			}), errPart)
			if rows == nil {
				return errPart
			}
			_ = rows.Next() // some engines go on
			is(t, "closing them", rows.Close(), nil)
			if n, err := count(tx); err != nil || n != 300 {
				t.Errorf("after closing them: got %d rows and %v, want 300", n, err)
			}
		}
		return nil
	})
}

// panics checks that a panic of a Write's function undoes only its own work and reaches the caller, and that a Read
// goes on after one.
func panics(t *testing.T, d db.DB) {
	for what, call := range map[string]func(context.Context, func(db.Tx) error) error{"Write": d.Write, "Read": d.Read} {
		func() {
			defer func() { equal(t, "the panic of a "+what, recover(), any("panic")) }()
			_ = call(t.Context(), func(tx db.Tx) error {
				if tx.Writable() {
					if err := set(tx, key("a"), 1); err != nil {
						t.Error(err)
					}
				}
				panic("panic")
			})
		}()
	}
	write(t, d, func(tx db.Tx) error { return set(tx, key("b"), 1) })
	read(t, d, func(tx db.Tx) error {
		n, err := count(tx)
		equal(t, "rows", n, 1)
		return err
	})
}

func errorsHaveClasses(t *testing.T, d db.DB) {
	place(t, d)
	for what, c := range map[string]struct {
		statement string
		want      error
	}{
		"not unique": {`INSERT INTO users (uid, created_at) VALUES ('ann', 0)`, db.ErrUnique},
		"foreign key": {`INSERT INTO collection (owner_id, name, description, created_at, updated_at) ` +
			`VALUES (4711, 'x', '', 0, 0)`, db.ErrForeignKey},
		"null":  {`INSERT INTO users (uid) VALUES ('ben')`, db.ErrConstraint},
		"check": {`UPDATE users SET role = 'king'`, db.ErrConstraint},
	} {
		err := d.Write(t.Context(), func(tx db.Tx) error {
			_, err := tx.Exec(c.statement)
			return err
		})
		is(t, what, err, c.want)
		is(t, what, err, db.ErrConstraint)
		for _, other := range []error{db.ErrUnique, db.ErrForeignKey} {
			if errors.Is(err, other) && !errors.Is(c.want, other) {
				t.Errorf("%s: got %v as well: %v, want one class alone", what, other, err)
			}
		}
	}
	read(t, d, func(tx db.Tx) error {
		var n int64
		is(t, "no row", tx.QueryRow(`SELECT value FROM setting WHERE key = 'none'`).Scan(&n), db.ErrNoRows)
		return nil
	})
	if err := d.Read(t.Context(), func(tx db.Tx) error { return tx.QueryRow(`SELEC 1`).Scan() }); err == nil ||
		errors.Is(err, db.ErrConstraint) {
		t.Errorf("a statement that cannot be understood: got %v, want an error and not db.ErrConstraint", err)
	}
}

func nested(t *testing.T, d db.DB) {
	calls := map[string]func(context.Context, func(db.Tx) error) error{"Read": d.Read, "Write": d.Write}
	for outer, call := range calls {
		for inner, within := range calls {
			err := call(t.Context(), func(tx db.Tx) error {
				return within(tx.Context(), func(db.Tx) error { return nil })
			})
			is(t, "a "+inner+" in a "+outer, err, db.ErrNested)
		}
	}
}

// nestedElsewhere checks nested calls whose contexts come from elsewhere: when they need what the calls around them
// hold, they wait only for a limited time.
func nestedElsewhere(t *testing.T, e Engine) {
	d := e.Impatient(t)
	defer d.Close()
	ctx, cancel := context.WithTimeout(t.Context(), forever)
	defer cancel()
	for what, call := range map[string]func(context.Context, func(db.Tx) error) error{"Reads": d.Read, "Writes": d.Write} {
		depth := 0
		var within func(tx db.Tx) error
		within = func(db.Tx) error {
			if depth++; depth > 2000 { // there is always another connection
				return db.ErrBusy
			}
			return call(ctx, within)
		}
		is(t, what+" within each other", call(ctx, within), db.ErrBusy)
		is(t, what+" afterwards", call(t.Context(), func(db.Tx) error { return nil }), nil)
	}
}

func transactionEnds(t *testing.T, d db.DB) {
	var kept db.Tx
	var rows db.Rows
	write(t, d, func(tx db.Tx) (err error) {
		kept = tx
		if err := errors.Join(set(tx, key("a"), 1), set(tx, key("b"), 1)); err != nil {
			return err
		}
		rows, err = tx.Query(`SELECT value FROM setting`)
		return err
	})
	if rows.Next() {
		t.Error("got a row after the transaction of the rows has ended, want none")
	}
	var n int64
	_, err := kept.Exec(`DELETE FROM setting`)
	is(t, "Exec", err, db.ErrTxDone)
	_, err = kept.Query(`SELECT 1`) //nolint:gocritic // that it is refused is the test
	is(t, "Query", err, db.ErrTxDone)
	is(t, "QueryRow", kept.QueryRow(`SELECT 1`).Scan(&n), db.ErrTxDone)
	is(t, "Savepoint", kept.Savepoint(func() error { return nil }), db.ErrTxDone)
	is(t, "Words", kept.Words().Put(1, "a", "", false), db.ErrTxDone)
	_, err = kept.Changes().Mark()
	is(t, "Changes", err, db.ErrTxDone)
	read(t, d, func(tx db.Tx) error {
		n, err := count(tx)
		equal(t, "rows", n, 2)
		return err
	})
}

func durable(t *testing.T, e Engine) {
	if e.Reopen == nil {
		t.Skip("nothing of this database outlives its closing")
	}
	d := e.Open(t)
	for i := range 5 {
		write(t, d, func(tx db.Tx) error { return set(tx, key(i), int64(i)) })
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = e.Reopen(t, d)
	defer d.Close()
	read(t, d, func(tx db.Tx) error {
		n, err := count(tx)
		equal(t, "rows", n, 5)
		return err
	})
}

func closed(t *testing.T, e Engine) {
	d := e.Open(t)
	running, end := make(chan struct{}), make(chan struct{})
	result := make(chan error, 1)
	var once sync.Once
	go func() {
		result <- d.Write(t.Context(), func(tx db.Tx) error {
			once.Do(func() { close(running) })
			<-end
			return set(tx, key("a"), 1)
		})
	}()
	<-running
	shut := make(chan error, 1)
	go func() { shut <- d.Close() }()
	select {
	case err := <-shut:
		t.Errorf("Close does not wait for a Write that runs: %v", err)
	case <-time.After(meeting):
	}
	close(end)
	if err := errors.Join(<-result, <-shut); err != nil {
		t.Error(err)
	}
	is(t, "Read", d.Read(t.Context(), func(db.Tx) error { return nil }), db.ErrClosed)
	is(t, "Write", d.Write(t.Context(), func(db.Tx) error { return nil }), db.ErrClosed)
	is(t, "Close again", d.Close(), nil)
}
