package dbtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// hintedCalls checks that the hints in a context change no result.
func hintedCalls(t *testing.T, d db.DB) {
	for what, ctx := range map[string]context.Context{
		"freeing": db.Freeing(t.Context()), "alone": db.Alone(t.Context()), "yielding": db.Yielding(t.Context()),
		"hurried": db.Hurried(t.Context(), time.Second),
	} {
		var wg sync.WaitGroup
		for n := range 4 {
			wg.Go(func() {
				is(t, what, d.Write(ctx, func(tx db.Tx) error {
					_ = db.ShouldYield(tx, time.Now().Add(-time.Hour))
					return set(tx, key(what, n), 1)
				}), nil)
				is(t, what+", undone", d.Write(ctx, func(tx db.Tx) error {
					return errors.Join(set(tx, key(what, " undone ", n), 1), errPart)
				}), errPart)
			})
		}
		wg.Wait()
		if err := d.Read(ctx, func(tx db.Tx) error {
			var n int
			err := tx.QueryRow(`SELECT count(*) FROM setting WHERE key LIKE ?`, key(what)+"%").Scan(&n)
			equal(t, "rows of Writes that are "+what, n, 4)
			return err
		}); err != nil {
			t.Errorf("a Read that is %s: %v", what, err)
		}
	}
}

// foreseen checks that rows read ahead or kept by a transaction are neither out of date nor those of another statement.
func foreseen(t *testing.T, d db.DB) {
	const query = `SELECT key FROM setting WHERE key LIKE ? ORDER BY key`
	pattern := key("foreseen") + "%"
	values := func(tx db.Tx, what string, want int) {
		t.Helper()
		all, err := db.Column[string](tx, query, pattern)
		is(t, what, err, nil)
		equal(t, what, len(all), want)
		var first string
		if err := tx.QueryRow(query, pattern).Scan(&first); err != nil || first != key("foreseen 1") {
			t.Errorf("%s, the first row: got %q and %v, want %q", what, first, err, key("foreseen 1"))
		}
	}
	once := func(tx db.Tx, n int) int {
		got, err := db.Once(tx, "number", func() (int, error) { return n, nil })
		is(t, "Once", err, nil)
		return got
	}
	write(t, d, func(tx db.Tx) error { return set(tx, key("foreseen 1"), 1) })
	write(t, d, func(tx db.Tx) error {
		db.Ahead(tx, query, pattern)
		db.MarkAhead(tx)
		db.Ahead(tx, query, "none")
		mark, err := tx.Changes().Mark()
		values(tx, "asked for ahead", 1)
		if again, err2 := tx.Changes().Mark(); mark != again || err2 != nil {
			t.Errorf("the mark: got %v and then %v (%v), want the same", mark, again, err2)
		}
		err = errors.Join(err, set(tx, key("foreseen 2"), 1))
		values(tx, "after a write", 2)
		db.Ahead(tx, query, pattern)
		is(t, "a part that is undone", tx.Savepoint(func() error {
			return errors.Join(db.Queue(tx, `INSERT INTO setting (key, value) VALUES (?, 1)`, key("foreseen 3")), errPart)
		}), errPart)
		values(tx, "after a part that is undone", 2)
		equal(t, "Once in a Write", fmt.Sprint(once(tx, 1), once(tx, 2)), "1 2")
		return err
	})
	for n := range 2 {
		read(t, d, func(tx db.Tx) error {
			db.Ahead(tx, query, pattern)
			values(tx, "in a Read", 2)
			values(tx, "in a Read, again", 2)
			got := once(tx, n)
			equal(t, "Once in a Read", got, n)
			if next := once(tx, n+1); next != n && next != n+1 {
				t.Errorf("Once again: got %d, want %d, or %d where it keeps nothing", next, n, n+1)
			}
			return nil
		})
	}
}

// reserved checks rows for which numbers were reserved: fewer than are asked for, and more.
func reserved(t *testing.T, d db.DB) {
	partition := place(t, d)
	highest := int64(0)
	for _, number := range []int{0, 1, 5} {
		var rows []int64
		write(t, d, func(tx db.Tx) error {
			rows = nil
			if err := db.Reserve(tx, "memory", number); err != nil {
				return err
			}
			for i := range 3 {
				row, err := db.InsertNumbered(tx, "memory", numberedMemory, fmt.Sprint(number, "/", i), partition, "text", nil)
				if err != nil {
					return err
				}
				rows = append(rows, row)
			}
			return nil
		})
		for _, row := range rows {
			if row <= highest {
				t.Errorf("after %d were reserved: got the numbers %v after %d, want rising ones", number, rows, highest)
			}
			highest = row
		}
	}
	read(t, d, func(tx db.Tx) error {
		var n int
		var last int64
		err := tx.QueryRow(`SELECT count(*), max(id) FROM memory`).Scan(&n, &last)
		equal(t, "rows, and the highest number", fmt.Sprint(n, last), fmt.Sprint(9, highest))
		return err
	})
}

// conflictsIgnored checks Writes whose functions ignore errors, also those of a part: if such a Write returns nil, no
// other has changed the data that it worked on.
func conflictsIgnored(t *testing.T, d db.DB) {
	const writers, each = 6, 8
	write(t, d, func(tx db.Tx) error { return set(tx, "counter", 0) })
	for part := range 2 {
		var wg sync.WaitGroup
		for range writers {
			wg.Go(func() {
				for range each {
					is(t, "a Write that ignores errors", d.Write(t.Context(), func(tx db.Tx) error {
						n, err := get(tx, "counter")
						if err == nil && part == 0 {
							_ = set(tx, "counter", n+1)
						} else if err == nil {
							_ = tx.Savepoint(func() error { return set(tx, "counter", n+1) })
						}
						return nil
					}), nil)
				}
			})
		}
		wg.Wait()
		read(t, d, func(tx db.Tx) error {
			n, err := get(tx, "counter")
			equal(t, fmt.Sprint("counter, in a part: ", part == 1), n, int64((part+1)*writers*each))
			return err
		})
	}
}
