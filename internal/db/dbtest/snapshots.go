package dbtest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// beside runs a Write beside an open Read, which goes on once the Write has ended or waits for the Read. The function
// that it returns waits for the end of the Write.
func (e Engine) beside(t *testing.T, d db.DB, fn func(tx db.Tx) error) (wait func()) {
	t.Helper()
	written, over := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(over)
		written <- d.Write(context.WithoutCancel(t.Context()), fn)
	}()
	e.meet(t, "a Write beside a Read", over)
	return func() {
		if err := <-written; err != nil {
			t.Error(err)
		}
	}
}

// The text of the second statement differs from that of the first, so that no cached answer is used for it.
func readsOneSnapshot(t *testing.T, e Engine, d db.DB) {
	write(t, d, func(tx db.Tx) error { return set(tx, key("a"), 1) })
	wait := func() {}
	read(t, d, func(tx db.Tx) error {
		before, err := count(tx)
		if err != nil {
			return err
		}
		wait = e.beside(t, d, func(tx db.Tx) error { return errors.Join(set(tx, key("a"), 2), set(tx, key("b"), 1)) })
		var after int
		var a int64
		err = tx.QueryRow(`SELECT count(*), max(value) FROM setting WHERE key LIKE 'test %' AND value < 100`).
			Scan(&after, &a)
		equal(t, "rows in one Read, and the value of one", fmt.Sprint(after, " ", a), fmt.Sprint(before, " ", 1))
		again, err2 := count(tx)
		equal(t, "rows by the first statement", again, before)
		return errors.Join(err, err2)
	})
	wait()
	read(t, d, func(tx db.Tx) error {
		n, err := count(tx)
		equal(t, "rows in the next Read", n, 2)
		return err
	})
}

// partsOfOneSnapshot checks that words, vectors and changes are those of the snapshot that a Read's first statement
// took.
func partsOfOneSnapshot(t *testing.T, e Engine, d db.DB) {
	partition := place(t, d)
	in := db.Range{First: partition << 32, Last: partition<<32 + 100}
	var profile int64
	write(t, d, func(tx db.Tx) (err error) {
		profile, err = db.Insert(tx,
			`INSERT INTO profile (key, model, dimensions, created_at) VALUES ('a', 'a', 2, 0) RETURNING id`)
		return err
	})
	add := func(tx db.Tx, n int64) error {
		memory, err := addMemory(tx, partition, fmt.Sprint("m", n), "{}")
		if err != nil {
			return err
		}
		_, err = tx.Exec(`INSERT INTO passage (id, memory_id, start, length, blank, profile_id, vector)
			VALUES (?, ?, 0, 1, 0, ?, ?)`, in.First+n, memory, profile, floats(1, 0))
		return errors.Join(err, tx.Words().Put(in.First+n, "tea", "", false))
	}
	write(t, d, func(tx db.Tx) error { return add(tx, 1) })
	var mark db.Mark
	look := func(tx db.Tx, what string, want int) error {
		counted, err := tx.Words().Count(in, []string{"tea"})
		memories, err2 := tx.Words().CountMemories(in, []string{"tea"}, 100)
		best, err3 := tx.Words().Best(in, []string{"tea"}, 100)
		compared := 0
		err4 := tx.Vectors().Compare(in, floats(1, 0), []int64{profile}, func(db.Compared) error { compared++; return nil })
		changed, next, complete, err5 := tx.Changes().Since("", 100)
		now, err6 := tx.Changes().Mark()
		equal(t, what+": passages, memories, best, vectors, changes", fmt.Sprint(counted, memories, len(best), compared,
			len(changed), complete, next == now), fmt.Sprint(want, want, want, want, want, true, true))
		mark = now
		return errors.Join(err, err2, err3, err4, err5, err6)
	}
	wait := func() {}
	read(t, d, func(tx db.Tx) error {
		if _, err := count(tx); err != nil { // takes the snapshot
			return err
		}
		wait = e.beside(t, d, func(tx db.Tx) error { return add(tx, 2) })
		return look(tx, "in a Read that began before", 1)
	})
	wait()
	if changed, _, complete := since(t, d, mark, 100); len(changed) != 1 || !complete {
		t.Errorf("changes since that Read: %v, complete: %t; want 1 memory", changed, complete)
	}
	read(t, d, func(tx db.Tx) error { return look(tx, "in the next Read", 2) })
}

// readsDoNotWait checks that a Read goes on beside a Write that is open, and sees nothing of it. A database in memory
// may make it wait.
func readsDoNotWait(t *testing.T, e Engine, d db.DB) {
	if e.Second == nil {
		t.Skip("this database has one handle only")
	}
	begun, end := make(chan struct{}), make(chan struct{})
	held := make(chan error, 1)
	var once sync.Once
	go func() {
		held <- d.Write(t.Context(), func(tx db.Tx) error {
			err := set(tx, key("a"), 1)
			once.Do(func() { close(begun) })
			<-end
			return err
		})
	}()
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), forever)
	defer cancel()
	err := d.Read(ctx, func(tx db.Tx) error {
		n, err := count(tx)
		equal(t, "rows of a Write that is open", n, 0)
		return err
	})
	is(t, "a Read beside a Write that is open", err, nil)
	close(end)
	if err := <-held; err != nil {
		t.Error(err)
	}
}

// ownGoroutine checks that a Read runs its function once, and that a function which ends its goroutine ends its
// caller's, and stores nothing.
func ownGoroutine(t *testing.T, d db.DB) {
	ran := 0
	read(t, d, func(tx db.Tx) error {
		ran++
		_, err := count(tx)
		return err
	})
	equal(t, "how often a Read's function ran", ran, 1)
	refused := errors.New("refused")
	ran = 0
	is(t, "a Read with an error", d.Read(t.Context(), func(db.Tx) error { ran++; return refused }), refused)
	equal(t, "how often a Read's function ran that fails", ran, 1)
	for what, call := range map[string]func(context.Context, func(db.Tx) error) error{"Write": d.Write, "Read": d.Read} {
		over, went := make(chan struct{}), false
		go func() {
			defer close(over)
			_ = call(t.Context(), func(tx db.Tx) error {
				if tx.Writable() {
					if err := set(tx, key("a"), 1); err != nil {
						t.Error(err)
					}
				}
				runtime.Goexit()
				return nil
			})
			went = true
		}()
		select {
		case <-over:
			equal(t, "the caller went on after a "+what+" whose function ended its goroutine", went, false)
		case <-time.After(forever):
			t.Errorf("a %s whose function ended its goroutine does not end", what)
			return
		}
	}
	read(t, d, func(tx db.Tx) error {
		n, err := count(tx)
		equal(t, "rows", n, 0)
		return err
	})
}
