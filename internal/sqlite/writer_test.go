package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	base "github.com/souvenir-ai/souvenir/internal/db"
)

// group holds the writer's turn until all of fns are queued, so that they share one transaction. It returns their
// errors.
func group(t *testing.T, db *DB, fns ...func(base.Tx) error) []error {
	t.Helper()
	errs := make([]error, len(fns))
	begun, release := make(chan struct{}), make(chan struct{})
	begin := sync.OnceFunc(func() { close(begun) }) // the first function also runs again
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := db.Write(t.Context(), func(base.Tx) error { begin(); <-release; return nil }); err != nil {
			t.Error(err)
		}
	})
	<-begun
	for i, fn := range fns {
		wg.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					errs[i] = fmt.Errorf("panic: %v", p)
				}
			}()
			errs[i] = db.Write(t.Context(), fn)
		})
		queued(t, db, i+1) // so the order is known
	}
	close(release)
	wg.Wait()
	return errs
}

func TestFailedMembersOfAGroupUndoOnlyTheirOwnWork(t *testing.T) {
	bothKinds(t, func(t *testing.T, db *DB) {
		own := errors.New("the function's own")
		errs := group(t, db,
			insert("a"),
			func(tx base.Tx) error { must(t, insert("undone by error")(tx)); return own },
			insert("b"),
			func(tx base.Tx) error { must(t, insert("undone by panic")(tx)); panic("on purpose") },
			insert("a"), // violates the constraint
			func(tx base.Tx) error { must(t, insert("undone by exit")(tx)); runtime.Goexit(); return nil },
			func(tx base.Tx) error {
				if err := insert("a")(tx); err == nil {
					t.Error("second a was stored, want an error")
				}
				return insert("c")(tx) // one failed statement does not affect the rest
			},
		)
		mustBe(t, errs[1], own)
		if errs[3] == nil || errs[3].Error() != "panic: on purpose" {
			t.Errorf(`panic arrived as %v, want "panic: on purpose"`, errs[3])
		}
		mustBe(t, errs[4], base.ErrUnique)
		mustBe(t, errs[4], base.ErrConstraint)
		for _, i := range []int{0, 2, 6} {
			must(t, errs[i])
		}
		if got := names(t, db); !slices.Equal(got, []string{"a", "b", "c"}) {
			t.Errorf("stored: %q, want %v", got, []string{"a", "b", "c"})
		}
		must(t, db.Write(t.Context(), insert("the writer lives")))
	})
}

// A caller refused because of another one's write can read that write at once.
func TestRefusalsHoldWhenReturned(t *testing.T) {
	bothKinds(t, func(t *testing.T, db *DB) {
		heard := make(chan struct{})
		refused := func() {
			defer close(heard)
			if err := db.Write(t.Context(), insert("a")); !errors.Is(err, base.ErrUnique) {
				t.Errorf("a second time it is %v, want base.ErrUnique", err)
			}
			if got := names(t, db); !slices.Equal(got, []string{"a"}) {
				t.Errorf("it is refused, and there is %q, want %v", got, []string{"a"})
			}
		}
		last := func(base.Tx) error {
			select { // time enough for a result that comes too early
			case <-heard:
				t.Error("it was answered before the commit")
			case <-time.After(50 * time.Millisecond):
			}
			return nil
		}
		var wg sync.WaitGroup
		must(t, db.Write(t.Context(), func(tx base.Tx) error {
			wg.Go(refused)
			queued(t, db, 1)
			wg.Go(func() {
				if err := db.Write(t.Context(), last); err != nil {
					t.Error(err)
				}
			})
			queued(t, db, 2)
			return insert("a")(tx)
		}))
		wg.Wait()
	})
}

func TestFirstMemberOfAGroupFailsAlone(t *testing.T) {
	db := openTest(t, testConfig(newFile(t)))
	begun, release := make(chan struct{}), make(chan struct{})
	own := errors.New("the function's own")
	first := make(chan error)
	go func() {
		first <- db.Write(t.Context(), func(tx base.Tx) error {
			close(begun)
			<-release
			if err := insert("undone")(tx); err != nil {
				return err
			}
			return own
		})
	}()
	<-begun
	second := make(chan error)
	go func() { second <- db.Write(t.Context(), insert("kept")) }()
	queued(t, db, 1)
	close(release)
	mustBe(t, <-first, own)
	must(t, <-second)
	if got := names(t, db); !slices.Equal(got, []string{"kept"}) {
		t.Errorf("stored: %q, want %v", got, []string{"kept"})
	}
}

func TestConcurrentWritesShareCommits(t *testing.T) {
	db := openTest(t, testConfig(newFile(t)))
	frames := func() (n int) {
		must(t, db.Read(t.Context(), func(tx base.Tx) error {
			var busy, copied int
			return db.writer.exclusive(t.Context(), func() error {
				return db.writer.conn.one("PRAGMA wal_checkpoint(PASSIVE)", &busy, &n, &copied)
			})
		}))
		return n
	}
	before := frames()
	var fns []func(base.Tx) error
	for i := range 40 {
		fns = append(fns, insert(fmt.Sprint(i)))
	}
	for _, err := range group(t, db, fns...) {
		must(t, err)
	}
	// Each commit writes at least the page of the table and that of its index.
	if n := frames() - before; n >= 40 {
		t.Errorf("40 writes wrote %d pages to the log, so they did not share a commit, want less than 40", n)
	}
}

func TestWhenTheCommitFailsOnlyTheCulpritGetsTheError(t *testing.T) {
	// A busy machine may be too slow for all three to share one transaction, so this is tried several times.
	for range 20 {
		if runs := commitThatFails(t); runs == 4 {
			return // the innocent functions ran once shared and once alone
		}
	}
	t.Error("the three writes never shared a transaction")
}

// commitThatFails makes two innocent functions and a culprit write at once, and returns how often the innocent ones
// ran.
func commitThatFails(t *testing.T) int32 {
	t.Helper()
	db := openTest(t, testConfig(newFile(t)))
	var runs atomic.Int32
	counted := func(name string) func(base.Tx) error {
		return func(tx base.Tx) error { runs.Add(1); return insert(name)(tx) }
	}
	errs := group(t, db,
		counted("a"),
		func(tx base.Tx) error { // found only by COMMIT, since the key is deferred
			_, err := tx.Exec("INSERT INTO child (item_id) VALUES (4711)")
			return err
		},
		counted("b"),
	)
	must(t, errs[0])
	mustBe(t, errs[1], base.ErrForeignKey)
	must(t, errs[2])
	got := names(t, db)
	slices.Sort(got) // when run again, their order is undefined
	if !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("stored: %q, want %v", got, []string{"a", "b"})
	}
	return runs.Load()
}

func TestWhenSQLiteRollsBackTheOthersRunAgain(t *testing.T) {
	db := openTest(t, testConfig(newFile(t)))
	must(t, db.Write(t.Context(), insert("taken")))
	var after error
	errs := group(t, db,
		insert("a"),
		func(tx base.Tx) error {
			must(t, insert("undone")(tx))
			_, err := tx.Exec("INSERT OR ROLLBACK INTO item (name) VALUES ('taken')") // ends the whole transaction
			_, after = tx.Exec("INSERT INTO item (name) VALUES ('outside any transaction')")
			return err
		},
		insert("b"),
		func(tx base.Tx) error { // ignores the error
			_, _ = tx.Exec("INSERT OR ROLLBACK INTO item (name) VALUES ('taken')")
			return nil
		},
		insert("c"),
	)
	must(t, errs[0])
	mustBe(t, errs[1], base.ErrUnique)
	mustBe(t, after, base.ErrUnique) // nothing runs after the rollback, since it would commit by itself
	must(t, errs[2])
	mustBe(t, errs[3], base.ErrUnique)
	must(t, errs[4])
	got := names(t, db)
	slices.Sort(got)
	if !slices.Equal(got, []string{"a", "b", "c", "taken"}) {
		t.Errorf("stored: %q, want %v", got, []string{"a", "b", "c", "taken"})
	}
}

func TestAFullDatabaseIsATypedErrorAndWritesResume(t *testing.T) {
	db := openTest(t, testConfig(newFile(t)))
	limit := func(pages int) {
		must(t, db.writer.exclusive(t.Context(), func() error {
			return db.writer.conn.script(fmt.Sprintf("PRAGMA max_page_count = %d", pages))
		}))
	}
	limit(40)
	big := func(tx base.Tx) error {
		_, err := tx.Exec("INSERT INTO item (name, data) VALUES ('too big', ?)", make([]byte, 1<<20))
		return err
	}
	mustBe(t, db.Write(t.Context(), big), base.ErrFull)
	errs := group(t, db, insert("a"), big, insert("b"))
	must(t, errs[0])
	mustBe(t, errs[1], base.ErrFull)
	must(t, errs[2])
	limit(1 << 30)
	must(t, db.Write(t.Context(), big))
	got := names(t, db)
	slices.Sort(got)
	if !slices.Equal(got, []string{"a", "b", "too big"}) {
		t.Errorf("stored: %q, want %v", got, []string{"a", "b", "too big"})
	}
}

func TestWriteWhoseContextEndsInTheQueueNeverRuns(t *testing.T) {
	bothKinds(t, func(t *testing.T, db *DB) {
		begun, release := make(chan struct{}), make(chan struct{})
		first := make(chan error)
		go func() {
			first <- db.Write(t.Context(), func(tx base.Tx) error { close(begun); <-release; return insert("first")(tx) })
		}()
		<-begun
		ctx, cancel := context.WithCancel(t.Context())
		second := make(chan error)
		go func() {
			second <- db.Write(ctx, func(base.Tx) error { t.Error("a cancelled write ran"); return nil })
		}()
		queued(t, db, 1)
		cancel()
		mustBe(t, <-second, context.Canceled) // while the first still runs
		close(release)
		must(t, <-first)
		must(t, db.Write(t.Context(), insert("later")))
	})
}

func TestContextIsLookedAtBetweenStatementsAndNeverInterruptsAWrite(t *testing.T) {
	bothKinds(t, func(t *testing.T, db *DB) {
		ctx, cancel := context.WithCancel(t.Context())
		must(t, db.Write(t.Context(), insert("a")))
		err := db.Write(ctx, func(tx base.Tx) error {
			time.AfterFunc(time.Millisecond, cancel)
			// Without checking the context, which may have ended already on a busy machine.
			_, err := tx.(*Tx).conn.exec(`INSERT INTO item (name) SELECT 'n' || value FROM
				(WITH RECURSIVE n (value) AS (VALUES (1) UNION ALL SELECT value + 1 FROM n WHERE value < 20000) SELECT value
				FROM n)`, nil)
			if err != nil {
				t.Errorf("the running statement failed: %v", err)
			}
			<-ctx.Done()
			return insert("b")(tx)
		})
		mustBe(t, err, context.Canceled)
		if got := names(t, db); !slices.Equal(got, []string{"a"}) {
			t.Errorf("stored: %d names, want only a", len(got))
		}
	})
}

// Only the context shows that a call is nested. With a context from outside, it waits for the call around it, but not
// forever.
func TestACallWithinACallEndsWithAnError(t *testing.T) {
	nothing := func(base.Tx) error { return nil }
	impatient := func(path string) Config {
		c := testConfig(path)
		c.Readers, c.LockTimeout = 1, 10*time.Millisecond
		return c
	}
	for _, path := range []string{newFile(t), ":memory:"} {
		db := openTest(t, impatient(path))
		must(t, db.Write(base.Alone(t.Context()), func(tx base.Tx) error {
			mustBe(t, db.Write(tx.Context(), insert("inner")), base.ErrNested)
			mustBe(t, db.Write(t.Context(), insert("inner")), base.ErrBusy)
			return insert("outer")(tx)
		}))
		must(t, db.Read(t.Context(), func(base.Tx) error {
			mustBe(t, db.Read(t.Context(), nothing), base.ErrBusy)
			return nil
		}))
		if got := names(t, db); !slices.Equal(got, []string{"outer"}) {
			t.Errorf("stored: %q, want %v", got, []string{"outer"})
		}
	}
}

// A call of one database within a transaction of another one waits like any other: it is not nested.
func TestACallWithinATransactionOfAnotherDatabaseIsNotNested(t *testing.T) {
	c := testConfig(newFile(t))
	c.LockTimeout = 10 * time.Millisecond
	one, other := openTest(t, testConfig(newFile(t))), openTest(t, c)
	begun, end := make(chan struct{}), make(chan struct{})
	held := make(chan error, 1)
	go func() {
		held <- other.Write(base.Alone(t.Context()), func(base.Tx) error {
			close(begun)
			<-end
			return nil
		})
	}()
	<-begun
	must(t, one.Write(t.Context(), func(tx base.Tx) error {
		mustBe(t, other.Write(tx.Context(), insert("waits")), base.ErrBusy)
		close(end)
		must(t, <-held)
		return other.Write(tx.Context(), insert("stored"))
	}))
	if got := names(t, other); !slices.Equal(got, []string{"stored"}) {
		t.Errorf("stored: %q, want %v", got, []string{"stored"})
	}
}

func TestTransactionIsOverWhenItsFunctionReturns(t *testing.T) {
	bothKinds(t, func(t *testing.T, db *DB) {
		var kept base.Tx
		var rows base.Rows
		must(t, db.Write(t.Context(), func(tx base.Tx) (err error) {
			kept = tx
			must(t, insert("a")(tx))
			must(t, insert("b")(tx))
			rows, err = tx.Query("SELECT name FROM item") // left open
			rows.Next()
			return err
		}))
		_, err := kept.Exec("INSERT INTO item (name) VALUES ('late')")
		mustBe(t, err, base.ErrTxDone)
		_, err = kept.Query("SELECT 1")
		mustBe(t, err, base.ErrTxDone)
		mustBe(t, kept.(*Tx).ExecScript("SELECT 1"), base.ErrTxDone)
		if len(kept.(*Tx).open) != 0 || kept.(*Tx).conn.stmts.byQuery["SELECT name FROM item"].busy {
			t.Error("the open rows still hold their statement, and with it an old snapshot; want none open")
		}
		if rows.Next() {
			t.Error("got a row after the transaction of the rows has ended, want none")
		}
		must(t, db.Write(t.Context(), insert("c"))) // the open rows did not prevent the commit
		if got := names(t, db); len(got) != 3 {
			t.Errorf("stored: %q, want a length of 3", got)
		}
	})
}

func TestManyWritersUnderFailuresAndCancellations(t *testing.T) {
	bothKinds(t, func(t *testing.T, db *DB) {
		var stored sync.Map
		var wg sync.WaitGroup
		for g := range 16 {
			wg.Go(func() {
				for i := range 40 {
					name := fmt.Sprintf("%d/%d", g, i)
					ctx, cancel := context.WithCancel(t.Context())
					if i%5 == 0 {
						time.AfterFunc(time.Duration(i*20)*time.Microsecond, cancel)
					}
					err := db.Write(ctx, func(tx base.Tx) error {
						if err := insert(name)(tx); err != nil {
							return err
						}
						switch i % 4 {
						case 1:
							return errors.New("on purpose")
						case 2:
							if g%4 == 0 {
								_, err := tx.Exec("INSERT OR ROLLBACK INTO item (name) VALUES (?)", name)
								return err
							}
						}
						return nil
					})
					cancel()
					if err == nil {
						stored.Store(name, true)
					} else if !errors.Is(err, context.Canceled) && !errors.Is(err, base.ErrUnique) &&
						!strings.Contains(err.Error(), "on purpose") {
						t.Errorf("%s: got %v, want success, or an error that the test provoked", name, err)
					}
				}
			})
		}
		wg.Wait()
		got := names(t, db)
		for _, name := range got {
			if _, ok := stored.LoadAndDelete(name); !ok {
				t.Errorf("got %s stored, want only what was written without an error", name)
			}
		}
		stored.Range(func(name, _ any) bool { t.Errorf("%v was answered, but is not stored", name); return true })
		if len(got) < 100 {
			t.Errorf("only %d writes succeeded, want at least 100", len(got))
		}
	})
}
