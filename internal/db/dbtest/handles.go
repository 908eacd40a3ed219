package dbtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// twoHandles opens a database twice, as two processes do.
func twoHandles(t *testing.T, e Engine) (one, other db.DB) {
	t.Helper()
	if e.Second == nil {
		t.Skip("this database has one handle only")
	}
	one = e.Open(t)
	other = e.Second(t, one)
	t.Cleanup(func() {
		if err := errors.Join(other.Close(), one.Close()); err != nil {
			t.Error(err)
		}
	})
	return one, other
}

// The promises for the Writes of one handle hold for those of two: an engine that only orders its own calls loses
// updates here.
func handlesSerialize(t *testing.T, e Engine) {
	one, other := twoHandles(t, e)
	noWriteSkew(t, one, other)
	write(t, one, func(tx db.Tx) error {
		_, err := tx.Exec(`DELETE FROM setting WHERE key LIKE 'test %'`)
		return err
	})
	noPhantoms(t, one, other)
	write(t, one, func(tx db.Tx) error {
		_, err := tx.Exec(`DELETE FROM setting WHERE key LIKE 'test %'`)
		return err
	})
	noPhantomKeys(t, one, other)
}

func handlesSeeEachOther(t *testing.T, e Engine) {
	one, other := twoHandles(t, e)
	partition := place(t, one)
	_, mark, _ := since(t, other, "", 100)
	var row int64
	write(t, one, func(tx db.Tx) (err error) {
		row, err = addMemory(tx, partition, "m", "{}")
		return err
	})
	if changed, _, complete := since(t, other, mark, 100); !complete || !slices.Contains(changed, row) {
		t.Errorf("the other handle sees the changes %v, complete: %t; want memory %d", changed, complete, row)
	}
}

// A Write that began first and commits last must not be missed by one who reads the changes between the two. They write
// to two partitions, since the counters of one would make the second wait. The second Write and the reader may have
// another handle.
func changesOfLateCommits(t *testing.T, e Engine, d, other db.DB) {
	partition := place(t, d)
	var elsewhere, first, second int64
	write(t, d, func(tx db.Tx) (err error) {
		elsewhere, err = addPartition(tx, "elsewhere")
		return err
	})
	begun, end := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var writers, reader sync.WaitGroup
	writers.Go(func() {
		err := d.Write(t.Context(), func(tx db.Tx) (err error) {
			first, err = addMemory(tx, partition, "first", "{}")
			once.Do(func() { close(begun) })
			<-end
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-begun
	over := make(chan struct{})
	writers.Go(func() {
		defer close(over)
		err := other.Write(t.Context(), func(tx db.Tx) (err error) {
			second, err = addMemory(tx, elsewhere, "second", "{}")
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
	e.meet(t, "a Write beside one that began before it", over)
	var seen []int64
	var mark db.Mark
	read := make(chan struct{})
	reader.Go(func() {
		defer close(read)
		seen, mark, _ = since(t, other, "", 100)
	})
	select { // and of the Read, too, if everything is in memory
	case <-read:
	case <-time.After(meeting):
	}
	close(end)
	writers.Wait()
	reader.Wait()
	later, _, complete := since(t, other, mark, 100)
	for _, row := range []int64{first, second} {
		if !slices.Contains(seen, row) && !slices.Contains(later, row) || !complete {
			t.Errorf("memory %d is in none of the changes %v and, later, %v (complete: %t), want it in one of them",
				row, seen, later, complete)
		}
	}
}

// WriteUntilKilled writes rows from several goroutines, and prints the number of each once its Write is answered. It is
// for the process that [Engine.Killed] kills.
func WriteUntilKilled(ctx context.Context, d db.DB, out io.Writer) error {
	var mu sync.Mutex
	var number atomic.Int64
	errs := make(chan error)
	for range 4 {
		go func() {
			for {
				n := number.Add(1)
				if err := d.Write(ctx, func(tx db.Tx) error { return set(tx, key(n), n) }); err != nil {
					errs <- err
					return
				}
				mu.Lock()
				fmt.Fprintln(out, n)
				mu.Unlock()
			}
		}()
	}
	return <-errs
}

func survivesKill(t *testing.T, e Engine) {
	if e.Killed == nil {
		t.Skip("no process of this engine can be killed")
	}
	d, printed := e.Killed(t)
	defer d.Close()
	answered := 0
	read(t, d, func(tx db.Tx) error {
		for lines := bufio.NewScanner(printed); lines.Scan(); answered++ {
			var n int64
			if _, err := fmt.Sscan(lines.Text(), &n); err != nil {
				continue // a line that was cut off by the kill
			}
			if got, err := get(tx, key(n)); err != nil || got != n {
				t.Errorf("after Write was answered and the process killed: %d, %v, want no error and %d", got, err, n)
			}
		}
		return nil
	})
	if answered < 50 {
		t.Errorf("%d Writes were answered; want at least 50", answered)
	}
}

// readOnly checks a handle that must not write.
func readOnly(t *testing.T, e Engine) {
	if e.ReadOnly == nil {
		t.Skip("this database has one handle only")
	}
	one := e.Open(t)
	defer one.Close()
	write(t, one, func(tx db.Tx) error { return set(tx, key("a"), 1) })
	d := e.ReadOnly(t, one)
	defer d.Close()
	equal(t, "ReadOnly of both", fmt.Sprint(one.ReadOnly(), d.ReadOnly()), "false true")
	is(t, "Write", d.Write(t.Context(), func(db.Tx) error {
		t.Error("the function of a Write ran on a handle for reading")
		return nil
	}), db.ErrReadOnly)
	is(t, "Compact", d.Upkeep().Compact(t.Context()), db.ErrReadOnly)
	is(t, "a statement that writes", d.Read(t.Context(), func(tx db.Tx) error { return set(tx, key("b"), 1) }),
		db.ErrReadOnly)
	read(t, d, func(tx db.Tx) error {
		n, err := count(tx)
		equal(t, "rows", n, 1)
		return err
	})
}
