package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/postgres"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
)

func TestALostAnswerToACommitIsAnUnknownOutcome(t *testing.T) {
	proxy := pgtest.NewProxy(t, pgtest.Address(t))
	d, err := postgres.Open(t.Context(), proxy.Address, db.Opening{Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, c := range []struct {
		name         string
		cut          pgtest.Cut
		class, other error
		stored       int
		violated     bool // a constraint, earlier, whose error the function ignores
	}{
		{"the answer is lost", pgtest.AfterCommit, db.ErrOutcomeUnknown, db.ErrUnavailable, 1, false},
		{"the commit is lost", pgtest.BeforeCommit, db.ErrOutcomeUnknown, db.ErrUnavailable, 0, false},
		{pgtest.Lost, pgtest.AtLost, db.ErrUnavailable, db.ErrOutcomeUnknown, 0, false},
		{"the answer after a violation is lost", pgtest.AfterCommit, db.ErrOutcomeUnknown, db.ErrUnavailable, 1, true},
	} {
		runs := 0
		err := d.Write(t.Context(), func(tx db.Tx) error {
			runs++
			if c.violated {
				_, err := tx.Exec(`INSERT INTO setting (key, value) VALUES ('the answer is lost', 1)`)
				if !errors.Is(err, db.ErrUnique) {
					t.Errorf("%s: the key of another row: got %v, want %v", c.name, err, db.ErrUnique)
				}
			}
			proxy.Cut.Store(int32(c.cut))
			_, err := tx.Exec(`INSERT INTO setting (key, value) VALUES (?, 1)`, c.name)
			return err
		})
		if !errors.Is(err, c.class) || errors.Is(err, c.other) || runs != 1 {
			t.Errorf("%s: got %v after %d runs, want %v after 1", c.name, err, runs, c.class)
		}
		var rows int
		if err := d.Read(t.Context(), func(tx db.Tx) error {
			return tx.QueryRow(`SELECT count(*) FROM setting WHERE key = ?`, c.name).Scan(&rows)
		}); err != nil {
			t.Errorf("%s: reading afterwards: got %v, want no error", c.name, err)
		}
		if rows != c.stored {
			t.Errorf("%s: got %d rows, want %d", c.name, rows, c.stored)
		}
	}
}

func TestAWriteWaitsALimitedTimeForALongTransaction(t *testing.T) {
	address := pgtest.Address(t)
	one, err := postgres.Open(t.Context(), address, db.Opening{Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	other, err := postgres.Open(t.Context(), address, db.Opening{Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.SetLockTimeout(50 * time.Millisecond)
	write := func(d *postgres.DB, then func() error) error {
		return d.Write(t.Context(), func(tx db.Tx) error {
			_, err := tx.Exec(`INSERT INTO setting (key, value) VALUES ('row', 1)
				ON CONFLICT (key) DO UPDATE SET value = excluded.value`)
			return errors.Join(err, then())
		})
	}
	nothing := func() error { return nil }
	err = write(one, func() error {
		if err := write(other, nothing); !errors.Is(err, db.ErrBusy) {
			t.Errorf("a Write of a row that a long transaction holds: got %v, want %v", err, db.ErrBusy)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := write(other, nothing); err != nil {
		t.Errorf("the same Write afterwards: got %v, want no error", err)
	}
}

// A violated constraint counts once the Write has run alone. Without the time for that it is no answer.
func TestAViolationWithoutTimeToRunAgainIsBusy(t *testing.T) {
	d, err := postgres.Open(t.Context(), pgtest.Address(t), db.Opening{Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	insert := func(tx db.Tx) error {
		_, err := tx.Exec(`INSERT INTO setting (key, value) VALUES ('once', 1)`)
		return err
	}
	if err := d.Write(t.Context(), insert); err != nil {
		t.Fatal(err)
	}
	if err := d.Write(t.Context(), insert); !errors.Is(err, db.ErrUnique) || errors.Is(err, db.ErrBusy) {
		t.Errorf("a Write with time to run alone: got %v, want %v", err, db.ErrUnique)
	}
	d.SetPatience(500 * time.Millisecond)
	err = d.Write(t.Context(), func(tx db.Tx) error {
		time.Sleep(600 * time.Millisecond)
		return insert(tx)
	})
	if !errors.Is(err, db.ErrBusy) || errors.Is(err, db.ErrUnique) {
		t.Errorf("a Write without: got %v, want %v", err, db.ErrBusy)
	}
}

// PostgreSQL answers the COMMIT of a transaction in which something has failed with ROLLBACK, and not with an error.
func TestACommitThatIsARollbackIsAnError(t *testing.T) {
	d, err := postgres.Open(t.Context(), pgtest.Address(t), db.Opening{Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	err = d.Write(t.Context(), func(tx db.Tx) error {
		_, err := tx.Exec(`INSERT INTO setting (key, value) VALUES ('a', 1)`)
		postgres.Fail(tx)
		return err
	})
	if !errors.Is(err, db.ErrInterrupted) || errors.Is(err, db.ErrOutcomeUnknown) {
		t.Errorf("got %v, want %v", err, db.ErrInterrupted)
	}
}

// A Write that would have to run again returns the error of its context if that has ended, also after its patience.
func TestAWriteWhoseContextHasEndedReturnsItsError(t *testing.T) {
	d, err := postgres.Open(t.Context(), pgtest.Address(t), db.Opening{Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	d.SetPatience(300 * time.Millisecond)
	set := func(tx db.Tx) error {
		_, err := tx.Exec(`INSERT INTO setting (key, value) VALUES ('row', 1)
			ON CONFLICT (key) DO UPDATE SET value = setting.value + 1`)
		return err
	}
	if err := d.Write(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err = d.Write(ctx, func(tx db.Tx) error {
		if err := tx.QueryRow(`SELECT value FROM setting WHERE key = 'row'`).Scan(new(int)); err != nil {
			return err
		}
		if err := d.Write(t.Context(), set); err != nil {
			return err
		}
		err := set(tx) // cannot be serialized
		time.Sleep(400 * time.Millisecond)
		cancel()
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// Nested calls with contexts from outside may need more connections than there are.
func TestACallWaitsALimitedTimeForAConnection(t *testing.T) {
	d, err := postgres.Open(t.Context(), pgtest.Address(t), db.Opening{Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for what, call := range map[string]func(context.Context, func(db.Tx) error) error{"Read": d.Read, "Write": d.Write} {
		var within func(db.Tx) error
		within = func(db.Tx) error { return call(t.Context(), within) }
		d.SetPatience(time.Second)
		if err := within(nil); !errors.Is(err, db.ErrBusy) {
			t.Errorf("a %s within ever more of them: got %v, want %v", what, err, db.ErrBusy)
		}
		if err := call(t.Context(), func(db.Tx) error { return nil }); err != nil {
			t.Errorf("a %s afterwards: got %v, want no error", what, err)
		}
	}
}

// Neither Reads nor Writes take the connections of the other, and an urgent Write has one beside both.
func TestReadsAndWritesLeaveConnectionsToEachOther(t *testing.T) {
	d, err := postgres.Open(t.Context(), pgtest.Address(t), db.Opening{Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	d.SetPatience(500 * time.Millisecond)
	release, err := postgres.Hold(t.Context(), d) // the announcer's
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	reads, writes := 0, 0
	var reading, writing func(db.Tx) error
	writing = func(db.Tx) error {
		writes++
		err := d.Write(t.Context(), writing)
		if errors.Is(err, db.ErrBusy) && reads+writes > 0 { // at the innermost one
			reads, writes = -reads, -writes
			err = d.Write(db.Hurried(t.Context(), time.Second), func(tx db.Tx) error {
				_, err := tx.Exec(`INSERT INTO setting (key, value) VALUES ('hurried', 1)`)
				return err
			})
		}
		return err
	}
	reading = func(db.Tx) error {
		reads++
		err := d.Read(t.Context(), reading)
		if errors.Is(err, db.ErrBusy) && writes == 0 {
			err = d.Write(t.Context(), writing)
		}
		return err
	}
	if err := d.Read(t.Context(), reading); err != nil || reads != -2 || writes != -8 {
		t.Errorf("got %d Reads and %d Writes at once, and %v, want 2 and 8, and then a hurried Write", -reads, -writes, err)
	}
}

// A COMMIT without an answer, whose context has ended, blocks its call for a limited time.
func TestACommitWaitsALimitedTimeForItsAnswer(t *testing.T) {
	proxy := pgtest.NewProxy(t, pgtest.Address(t))
	d, err := postgres.Open(t.Context(), proxy.Address, db.Opening{Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	d.SetAnswerTime(50 * time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	over := make(chan error, 1)
	go func() {
		over <- d.Write(ctx, func(tx db.Tx) error {
			_, err := tx.Exec(`INSERT INTO setting (key, value) VALUES ('a', 1)`)
			proxy.Cut.Store(int32(pgtest.Silent))
			return err
		})
	}()
	for sent := false; !sent; time.Sleep(time.Millisecond) {
		if sent = proxy.Held.Load(); sent {
			cancel()
		}
	}
	select {
	case err := <-over:
		if !errors.Is(err, db.ErrOutcomeUnknown) {
			t.Errorf("got %v, want %v", err, db.ErrOutcomeUnknown)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the call has not returned 20 s after the end of its context")
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// A Write that waits to run alone, while another one takes long, does not block the Writes after it.
func TestAWriteThatWaitsToRunAloneHoldsUpNoOther(t *testing.T) {
	d, err := postgres.Open(t.Context(), pgtest.Address(t), db.Opening{Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	add := func(ctx context.Context, key string, then func() error) error {
		return d.Write(ctx, func(tx db.Tx) error {
			_, err := tx.Exec(`INSERT INTO setting (key, value) VALUES (?, 1)`, key)
			if err == nil {
				err = then()
			}
			return err
		})
	}
	nothing := func() error { return nil }
	if err := add(t.Context(), "there", nothing); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	refused := make(chan error, 1)
	err = add(t.Context(), "long", func() error {
		go func() { refused <- add(ctx, "there", nothing) }() // it runs again, alone
		for waiting := 0; waiting == 0; {
			err := d.Read(t.Context(), func(tx db.Tx) error {
				return tx.QueryRow(`SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'write_turn'::regclass`).
					Scan(&waiting)
			})
			if err != nil {
				return err
			}
		}
		if err := add(t.Context(), "later", nothing); err != nil {
			t.Errorf("a Write while another waits to run alone: got %v, want no error", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := <-refused; !errors.Is(err, db.ErrUnique) {
		t.Errorf("the Write that waited to run alone: got %v, want %v", err, db.ErrUnique)
	}
}

// A Write that runs alone gives way to others when it meets a lock of another program.
func TestAWriteThatRunsAloneHoldsUpNoOtherWhileItWaitsForALock(t *testing.T) {
	address := pgtest.Address(t)
	d, err := postgres.Open(t.Context(), address, db.Opening{Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	set := func(tx db.Tx, key string) error {
		_, err := tx.Exec(`INSERT INTO setting (key, value) VALUES (?, 1)`, key)
		return err
	}
	if err := d.Write(t.Context(), func(tx db.Tx) error { return set(tx, "there") }); err != nil {
		t.Fatal(err)
	}
	program, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = program.Close(context.Background()) }()
	long, err := program.Begin(t.Context())
	if err == nil {
		_, err = long.Exec(t.Context(), `SELECT FROM setting WHERE key = 'there' FOR UPDATE`)
	}
	if err != nil {
		t.Fatal(err)
	}
	waits, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		runs := 0
		ended <- d.Write(t.Context(), func(tx db.Tx) error {
			if runs++; runs == 1 {
				return set(tx, "there") // it runs again, alone
			}
			if runs == 2 {
				close(waits)
			}
			_, err := tx.Exec(`UPDATE setting SET value = 2 WHERE key = 'there'`)
			return err
		})
	}()
	<-waits
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // less than a Write waits for a lock
	defer cancel()
	if err := d.Write(ctx, func(tx db.Tx) error { return set(tx, "later") }); err != nil {
		t.Errorf("a Write while another that runs alone waits for a lock: got %v, want no error", err)
	}
	if err := long.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the Write that waited for the lock: got %v, want no error", err)
	}
}

func TestADatabaseThatWeakensTransactionsIsRefused(t *testing.T) {
	proxy := pgtest.NewProxy(t, pgtest.Address(t))
	proxy.Weak.Store(true)
	want := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), `"read committed"`) {
			t.Errorf("opening %s: got %v, want an error that names read committed", what, err)
		}
	}
	_, err := postgres.Open(t.Context(), proxy.Address, db.Opening{Readers: 2})
	want("a store", err)
	d, err := postgres.Open(t.Context(), proxy.Address, db.Opening{Readers: 2, ReadOnly: true})
	if err != nil {
		t.Errorf("a store for reading: got %v, want no error", err)
	} else {
		_ = d.Close()
	}
	keys := pgtest.NewProxy(t, pgtest.Address(t))
	keys.Weak.Store(true)
	_, err = postgres.OpenKeys(t.Context(), keys.Address, db.Opening{Readers: 2})
	want("user keys", err)
}

func TestAnEndOfTheConnectionAtACommitIsAnUnknownOutcome(t *testing.T) {
	for _, c := range []struct {
		severity, code string
		unknown        bool
	}{
		{"ERROR", "40001", false}, {"ERROR", "23503", false}, {"ERROR", "40003", true},
		{"FATAL", "57P01", true}, {"PANIC", "XX000", true},
	} {
		err := postgres.Unanswered(&pgconn.PgError{Severity: "?", SeverityUnlocalized: c.severity, Code: c.code})
		if got := errors.Is(err, db.ErrOutcomeUnknown); got != c.unknown {
			t.Errorf("%s %s: unknown outcome: got %t, want %t", c.severity, c.code, got, c.unknown)
		}
	}
}
