package sqlite

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	base "github.com/souvenir-ai/souvenir/internal/db"
)

func TestReadersSeeOneSnapshotAndDoNotBlockTheWriter(t *testing.T) {
	db := openTest(t, testConfig(newFile(t)))
	must(t, db.Write(t.Context(), insert("before")))
	count := func(tx base.Tx) (n int) {
		must(t, tx.QueryRow("SELECT count(*) FROM item").Scan(&n))
		return n
	}
	must(t, db.Read(t.Context(), func(tx base.Tx) error {
		if n := count(tx); n != 1 {
			t.Errorf("first look: %d items, want 1", n)
		}
		must(t, db.Write(t.Context(), insert("meanwhile"))) // returns although the read is open
		if n := count(tx); n != 1 {
			t.Errorf("second look: %d items, want the snapshot's 1", n)
		}
		return nil
	}))
	must(t, db.Read(t.Context(), func(tx base.Tx) error {
		if n := count(tx); n != 2 {
			t.Errorf("a new read sees %d items, want 2", n)
		}
		return nil
	}))
}

func TestReadCannotWrite(t *testing.T) {
	bothKinds(t, func(t *testing.T, db *DB) {
		mustBe(t, db.Read(t.Context(), insert("x")), base.ErrReadOnly)
		must(t, db.Write(t.Context(), insert("y")))
		if got := names(t, db); len(got) != 1 {
			t.Errorf("stored: %q, want a length of 1", got)
		}
	})
}

// endless has a query without a first row, and one with a first row but no second.
var endless = map[string]string{
	"before the first row": "WITH RECURSIVE n (v) AS (VALUES (1) UNION ALL SELECT v + 1 FROM n) SELECT count(*) FROM n",
	"after the first row": "WITH RECURSIVE n (v) AS (VALUES (1) UNION ALL SELECT v + 1 FROM n) SELECT v FROM n " +
		"WHERE v < 2",
}

func TestCancelledReadIsInterrupted(t *testing.T) {
	bothKinds(t, func(t *testing.T, db *DB) {
		for name, query := range endless {
			t.Run(name, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(20*time.Millisecond, cancel)
				err := db.Read(ctx, func(tx base.Tx) error {
					rows, err := tx.Query(query)
					if err != nil {
						return err
					}
					for rows.Next() {
					}
					return rows.Err()
				})
				mustBe(t, err, context.Canceled)
				// The same connection serves the next read, undisturbed by the interrupt.
				if got := names(t, db); len(got) != 0 {
					t.Errorf("stored: %q, want none", got)
				}
			})
		}
	})
}

func TestInterruptsNeverReachTheNextRead(t *testing.T) {
	c := testConfig(newFile(t))
	c.Readers = 1
	db := openTest(t, c)
	const query = "WITH RECURSIVE n (v) AS (VALUES (1) UNION ALL SELECT v + 1 FROM n WHERE v < 200) SELECT count(*) FROM n"
	for i := range 300 {
		ctx, cancel := context.WithCancel(t.Context())
		timer := time.AfterFunc(time.Duration(i)*time.Microsecond, cancel)
		err := db.Read(ctx, func(tx base.Tx) error {
			var n int
			return tx.QueryRow(query).Scan(&n)
		})
		if err != nil {
			mustBe(t, err, context.Canceled)
		}
		must(t, db.Read(t.Context(), func(tx base.Tx) error {
			var n int
			return tx.QueryRow(query).Scan(&n)
		}))
		timer.Stop()
		cancel()
	}
}

func TestTheWatchOfAContextHasEndedBeforeTheConnectionIsUsedAgain(t *testing.T) {
	var running atomic.Bool
	interrupted := make(chan struct{}, 1000)
	c := &conn{interrupt: func() {
		running.Store(true)
		interrupted <- struct{}{}
		time.Sleep(10 * time.Millisecond)
		running.Store(false)
	}}
	ctx, cancel := context.WithCancel(t.Context())
	stop := c.watch(ctx)
	cancel()
	<-interrupted
	stop()
	if running.Load() {
		t.Error("an interrupt is still under way, want none")
	}
	<-time.After(5 * time.Millisecond)
	if len(interrupted) > 0 {
		t.Errorf("another interrupt came after the end: got %v, want interrupted empty", len(interrupted))
	}
}

func TestReadMeetsALockPatientlyOnlyBeforeItsSnapshot(t *testing.T) {
	path := newFile(t)
	first, second := openTest(t, testConfig(path)), openTest(t, testConfig(path))
	var busy error
	must(t, first.Write(t.Context(), func(base.Tx) error {
		return second.writer.exclusive(t.Context(), func() error {
			_, busy = second.writer.conn.exec("BEGIN IMMEDIATE", nil)
			return nil
		})
	}))
	if primaryCode(busy) != codeBusy {
		t.Fatalf("error is %v, want a lock's", busy)
	}
	must(t, first.Read(t.Context(), func(tx base.Tx) error {
		tries := 0
		locked := func() error {
			if tries++; tries < 4 {
				return busy
			}
			return nil
		}
		if err := tx.(*Tx).patiently("query", locked); err != nil || tries != 4 {
			t.Errorf("the first statement gave %v after %d tries, want 4", err, tries)
		}
		tries = 0
		mustBe(t, tx.(*Tx).patiently("query", locked), base.ErrBusy)
		return nil
	}))
}

func TestReadsWaitForAFreeReaderAsLongAsTheContextAllows(t *testing.T) {
	c := testConfig(newFile(t))
	c.Readers = 2
	db := openTest(t, c)
	release := make(chan struct{})
	var running, done sync.WaitGroup
	running.Add(2)
	for range 2 {
		done.Go(func() {
			if err := db.Read(t.Context(), func(base.Tx) error { running.Done(); <-release; return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	mustBe(t, db.Read(ctx, func(base.Tx) error { t.Error("ran"); return nil }), context.DeadlineExceeded)
	third := make(chan error)
	go func() { third <- db.Read(t.Context(), func(base.Tx) error { return nil }) }()
	close(release)
	must(t, <-third)
	done.Wait()
}

func TestPanicInAReadLosesNoReader(t *testing.T) {
	c := testConfig(newFile(t))
	c.Readers = 1
	db := openTest(t, c)
	for range 3 {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic did not arrive, want it passed on")
				}
			}()
			_ = db.Read(t.Context(), func(tx base.Tx) error {
				if _, err := tx.Query("SELECT 1"); err != nil {
					t.Error(err)
				}
				panic("on purpose")
			})
		}()
	}
	names(t, db)
}

func TestTheSameQueryInsideItsOwnLoop(t *testing.T) {
	bothKinds(t, func(t *testing.T, db *DB) {
		for i := range 3 {
			must(t, db.Write(t.Context(), insert(fmt.Sprint(i))))
		}
		pairs := 0
		must(t, db.Read(t.Context(), func(tx base.Tx) error {
			const query = "SELECT name FROM item"
			return tx.Each(func(base.Rows) error {
				return tx.Each(func(base.Rows) error { pairs++; return nil }, query)
			}, query)
		}))
		if pairs != 9 {
			t.Errorf("%d pairs, want 9", pairs)
		}
	})
}

func TestPreparedStatementsAreKeptButBounded(t *testing.T) {
	c := testConfig(newFile(t))
	c.Readers = 1
	db := openTest(t, c)
	must(t, db.Read(t.Context(), func(tx base.Tx) error {
		for i := range 3 * maxStmts {
			var n int
			must(t, tx.QueryRow(fmt.Sprintf("SELECT %d", i)).Scan(&n))
			if n != i {
				t.Errorf("SELECT %d gives %d, want the same", i, n)
			}
		}
		if n := len(tx.(*Tx).conn.stmts.byQuery); n != maxStmts || tx.(*Tx).conn.stmts.order.Len() != n {
			t.Errorf("%d statements kept, %d in order, want %d", n, tx.(*Tx).conn.stmts.order.Len(), maxStmts)
		}
		if tx.(*Tx).conn.stmts.byQuery[fmt.Sprintf("SELECT %d", 3*maxStmts-1)] == nil {
			t.Error("the newest statement was closed, want it kept")
		}
		return nil
	}))
}
