package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/postgres"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
	"github.com/souvenir-ai/souvenir/internal/readahead"
)

// Reading ahead returns what the transaction would have read, and takes one round trip.
func TestReadingAheadChangesNothingButRoundTrips(t *testing.T) {
	proxy := pgtest.NewProxy(t, pgtest.Address(t))
	d, err := postgres.Open(t.Context(), proxy.Address, db.Opening{Readers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	set := func(key string, value int) {
		t.Helper()
		write(t, d, func(tx db.Tx) error {
			_, err := tx.Exec(`INSERT INTO setting (key, value) VALUES (?, ?)
				ON CONFLICT (key) DO UPDATE SET value = excluded.value`, key, value)
			return err
		})
	}
	// page reads values, one after the other, the last one with its own key.
	page := func(request, own string) (got string, trips int64) {
		t.Helper()
		ctx := context.WithoutCancel(t.Context())
		if request != "" {
			ctx = readahead.WithKey(ctx, request)
		}
		before := proxy.Trips.Load()
		err := d.Read(ctx, func(tx db.Tx) error {
			for _, key := range []string{"a", "b", "c", "a", own} {
				values, err := db.Column[int](tx, `SELECT value FROM setting WHERE key = ?`, key)
				if err != nil {
					return err
				}
				var n int
				if err := tx.QueryRow(`SELECT count(*) FROM setting WHERE key = ?`, key).Scan(&n); err != nil {
					return err
				}
				got += fmt.Sprint(values, n, " ")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return got, proxy.Trips.Load() - before
	}
	set("a", 1)
	set("b", 2)
	for round := range 8 {
		own := fmt.Sprint("own ", round)
		set(own, round)
		set("a", 10+round)
		if round > 3 {
			set("c", round)
		}
		want, _ := page("", own)
		if got, _ := page("page", own); got != want {
			t.Errorf("round %d: got %s, want %s", round, got, want)
		}
	}
	for range 5 {
		page("same", "b")
	}
	least := int64(100)
	for range 20 { // a connection that has not prepared the statements takes more
		_, trips := page("same", "b")
		least = min(least, trips)
	}
	if least != 1 {
		t.Errorf("a page with the same reads: got %d round trips, want 1", least)
	}
	if _, trips := page("", "b"); trips < 5 {
		t.Errorf("a page that is not expected: got %d round trips, want at least 5", trips)
	}
}

// If a statement can no longer be read ahead, its request still gets its answer.
func TestReadingAheadWhatIsGoneIsForgotten(t *testing.T) {
	d, err := postgres.Open(t.Context(), pgtest.Address(t), db.Opening{Readers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	write(t, d, func(tx db.Tx) error {
		_, err := tx.Exec(`INSERT INTO setting (key, value) VALUES ('divisor', 1)`)
		return err
	})
	page := func(divide bool) error {
		return d.Read(readahead.WithKey(t.Context(), "page"), func(tx db.Tx) error {
			var n int
			if err := tx.QueryRow(`SELECT count(*) FROM setting`).Scan(&n); err != nil || !divide {
				return err
			}
			return tx.QueryRow(`SELECT 1 / value FROM setting WHERE key = 'divisor'`).Scan(&n)
		})
	}
	for range 2 {
		if err := page(true); err != nil {
			t.Fatal(err)
		}
	}
	write(t, d, func(tx db.Tx) error {
		_, err := tx.Exec(`UPDATE setting SET value = 0 WHERE key = 'divisor'`)
		return err
	})
	for _, when := range []string{"with a plan that fails", "the next time"} {
		if err := page(false); err != nil {
			t.Errorf("%s: got %v, want no error", when, err)
		}
	}
	if err := page(true); err == nil {
		t.Error("what fails by itself: got no error")
	}
	for _, fails := range []string{`SELECT 1 / value FROM setting WHERE key = ?`,
		`SELECT missing FROM setting WHERE key = ?`} {
		read := func(tx db.Tx) error {
			var n int
			db.Ahead(tx, fails, "divisor")
			if err := tx.QueryRow(`SELECT value FROM setting WHERE key = ?`, "divisor").Scan(&n); err != nil || n != 0 {
				t.Errorf("a first statement beside %s: got %d and %v, want 0", fails, n, err)
			}
			return nil
		}
		if err := d.Read(t.Context(), read); err != nil {
			t.Errorf("a Read that expects %s: %v", fails, err)
		}
		write(t, d, func(tx db.Tx) error {
			_, err := tx.Exec(`UPDATE setting SET value = 0 WHERE key = 'divisor'`)
			return errors.Join(read(tx), err)
		})
		write(t, d, func(tx db.Tx) error {
			if err := read(tx); err != nil {
				return err
			}
			_, err := tx.Exec(`UPDATE setting SET value = 0 WHERE key = 'divisor'`)
			return err
		})
	}
}

// Requests with a single read have no plan, so any number of them leaves the plans of others.
func TestRequestsThatReadOnceHaveNoPlan(t *testing.T) {
	d, err := postgres.Open(t.Context(), pgtest.Address(t), db.Opening{Readers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for reads, want := range []int{0, 0, 1} {
		if err := d.Read(readahead.WithKey(t.Context(), fmt.Sprint(reads)), func(tx db.Tx) error {
			for i := range reads {
				var n int
				if err := tx.QueryRow(`SELECT count(*) FROM setting WHERE value = ?`, i).Scan(&n); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if got := postgres.Plans(d); got != want {
			t.Errorf("after a request with %d reads: got %d plans, want %d", reads, got, want)
		}
	}
}

// Streamed rows are not read ahead: a request that streams other rows than the one before would find its cursor's name
// in use.
func TestStreamsAreNotReadAhead(t *testing.T) {
	d, err := postgres.Open(t.Context(), pgtest.Address(t), db.Opening{Readers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for from := range 5 {
		err := d.Read(readahead.WithKey(t.Context(), "page"), func(tx db.Tx) error {
			var n int
			if err := tx.QueryRow(`SELECT count(*) FROM setting`).Scan(&n); err != nil {
				return err
			}
			var got []int
			err := db.Stream(tx, func(rows db.Rows) error {
				got = append(got, 0)
				return rows.Scan(&got[len(got)-1])
			}, `SELECT v.value FROM generate_series(CAST(? AS int8), 5) v (value)`, from)
			if err == nil && (len(got) != 6-from || got[0] != from) {
				t.Errorf("from %d: got %v, want the numbers from there to 5", from, got)
			}
			return err
		})
		if err != nil {
			t.Errorf("from %d: %v", from, err)
		}
	}
}

// Rows that were read ahead are valid until the transaction writes, and complete.
func TestRowsReadAheadAreNotOutOfDate(t *testing.T) {
	d, err := postgres.Open(t.Context(), pgtest.Address(t), db.Opening{Readers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	const query, insert = `SELECT value FROM setting WHERE key LIKE ? ORDER BY value`,
		`INSERT INTO setting (key, value) VALUES (?, ?)`
	values := func(tx db.Tx) string {
		all, err := db.Column[int](tx, query, "ahead%")
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(all)
	}
	write(t, d, func(tx db.Tx) error {
		db.Ahead(tx, query, "ahead%")
		var n, first int
		if err := tx.QueryRow(`SELECT count(*) FROM setting`).Scan(&n); err != nil {
			return err
		}
		if _, err := tx.Exec(insert, "ahead 1", 1); err != nil {
			return err
		}
		if got := values(tx); got != "[1]" {
			t.Errorf("after a write: got %s, want [1]", got)
		}
		db.Ahead(tx, query, "ahead%")
		if err := tx.QueryRow(query, "ahead%").Scan(&first); err != nil {
			return err
		}
		if err := db.Queue(tx, insert, "ahead 2", 2); err != nil {
			return err
		}
		if got := values(tx); got != "[1 2]" {
			t.Errorf("after a queued write: got %s, want [1 2]", got)
		}
		return nil
	})
	read := func(tx db.Tx) error {
		db.Ahead(tx, query, "ahead%")
		for range 2 {
			var first int
			if err := tx.QueryRow(query, "ahead%").Scan(&first); err != nil || first != 1 {
				t.Errorf("the first row: got %d and %v, want 1", first, err)
			}
			if got := values(tx); got != "[1 2]" {
				t.Errorf("all rows: got %s, want [1 2]", got)
			}
		}
		return nil
	}
	if err := d.Read(t.Context(), read); err != nil {
		t.Error(err)
	}
	write(t, d, read)
	write(t, d, func(tx db.Tx) error { // each kind of write
		for i, more := range []func() error{
			func() error { return db.Queue(tx, insert, "ahead 3", 3) },
			func() error {
				return tx.Savepoint(func() error { return db.Queue(tx, insert, "ahead 4", 4) })
			},
			func() error { return db.Queue(tx, `DELETE FROM setting WHERE key = ?`, "ahead 4") },
			func() error {
				_, err := tx.Exec(`WITH gone AS (DELETE FROM setting WHERE key = ? RETURNING value) SELECT * FROM gone`, "ahead 3")
				return err
			},
		} {
			before := values(tx)
			if err := more(); err != nil {
				return err
			}
			if got := values(tx); got == before {
				t.Errorf("write %d: got %s as before, want a new one", i+1, got)
			}
		}
		return nil
	})
}
