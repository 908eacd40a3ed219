package postgres_test

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sharedstate"
)

func update(t *testing.T, d db.DB, keys []string, life time.Duration, change func(values [][]byte)) {
	t.Helper()
	err := d.Write(t.Context(), func(tx db.Tx) error { return sharedstate.Update(tx, keys, life, change) })
	if err != nil {
		t.Error(err)
	}
}

// look returns the values of keys.
func look(t *testing.T, d db.DB, keys ...string) (got []string) {
	t.Helper()
	update(t, d, keys, time.Hour, func(values [][]byte) {
		got = nil
		for _, v := range values {
			if v == nil {
				got = append(got, "none")
			} else {
				got = append(got, string(v))
			}
		}
	})
	return got
}

func TestValuesAreSharedUntilTheyExpire(t *testing.T) {
	onEachEngine(t, func(t *testing.T, one, other db.DB) {
		expect := func(what string, want ...string) {
			t.Helper()
			if got := look(t, other, "a", "b", "c"); !slices.Equal(got, want) {
				t.Errorf("%s: got %v, want %v", what, got, want)
			}
		}
		expect("at first", "none", "none", "none")
		const short = 200 * time.Millisecond
		update(t, one, []string{"a", "b"}, time.Hour, func(v [][]byte) { v[0], v[1] = []byte("1"), []byte{} })
		update(t, one, []string{"c"}, time.Hour, func(v [][]byte) { v[0] = []byte("3") })
		expect("after two updates", "1", "", "3")
		update(t, one, []string{"b", "a"}, time.Hour, func(v [][]byte) { v[0], v[1] = nil, append(v[1], '2') })
		update(t, one, []string{"c"}, short, func(v [][]byte) { v[0] = []byte("4") })
		time.Sleep(2 * short)
		expect("after one was deleted and one has expired", "12", "none", "none")
	})
}

func TestEachUpdateSeesTheOnesBefore(t *testing.T) {
	onEachEngine(t, func(t *testing.T, one, other db.DB) {
		const each = 25
		var group sync.WaitGroup
		for _, d := range []db.DB{one, other, one, other} {
			group.Go(func() {
				for range each {
					update(t, d, []string{"count"}, time.Hour, func(v [][]byte) {
						n, _ := strconv.Atoi(string(v[0]))
						v[0] = []byte(strconv.Itoa(n + 1))
					})
				}
			})
		}
		group.Wait()
		if got, want := look(t, one, "count"), []string{strconv.Itoa(4 * each)}; !slices.Equal(got, want) {
			t.Errorf("a count: got %v, want %v", got, want)
		}
	})
}

func TestTrimKeepsWhatLivesLongest(t *testing.T) {
	onEachEngine(t, func(t *testing.T, one, other db.DB) {
		lease := sharedstate.NewLease(one, "work", time.Millisecond)
		if held, err := lease.Take(t.Context()); !held || err != nil {
			t.Fatalf("the lease: got %v, %v, want it held", held, err)
		}
		for i := range 10 {
			update(t, one, []string{fmt.Sprint(i)}, time.Duration(i+1)*time.Hour, func(v [][]byte) { v[0] = []byte("x") })
		}
		update(t, one, []string{"expired"}, time.Microsecond, func(v [][]byte) { v[0] = []byte("x") })
		time.Sleep(5 * time.Millisecond)
		count := func(most, want int) {
			t.Helper()
			var rows int
			err := other.Write(t.Context(), func(tx db.Tx) error {
				if err := sharedstate.Trim(tx, most); err != nil {
					return err
				}
				return tx.QueryRow(`SELECT count(*) FROM shared_state`).Scan(&rows)
			})
			if err != nil || rows != want {
				t.Errorf("rows after Trim to %d, with that of the lease: got %d, %v, want %d", most, rows, err, want)
			}
		}
		count(100, 11)
		count(4, 5)
		if got, want := look(t, one, "5", "6", "9"), []string{"none", "x", "x"}; !slices.Equal(got, want) {
			t.Errorf("after it: got %v, want %v", got, want)
		}
	})
}
