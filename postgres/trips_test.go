package postgres_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
)

// The most frequent calls of agents take few round trips to the database.
func TestCommonCallsTakeFewRoundTrips(t *testing.T) {
	proxy := pgtest.NewProxy(t, pgtest.Empty(t))
	view := open(t, proxy.Address, nil).As(souvenir.Access{User: "anna"})
	n := 0
	add := func() error {
		n++
		_, err := view.AddMemory(t.Context(), souvenir.NewMemory{Content: fmt.Sprintf("The ship %d of the harbour.", n*n)})
		return err
	}
	for _, call := range []struct {
		name string
		most int64
		do   func() error
	}{
		{"AddMemory", 2, add},
		{"Search", 2, func() error {
			found, err := view.Search(t.Context(), souvenir.Query{Text: "harbour"})
			if err == nil && len(found.Hits) == 0 {
				err = errors.New("got no hits")
			}
			return err
		}},
		{"GetContext", 3, func() error {
			_, err := view.GetContext(t.Context(), souvenir.ContextQuery{Query: "harbour"})
			return err
		}},
	} {
		least := int64(100)
		for range 20 { // unprepared statements take more, and background work counts, too
			before := proxy.Trips.Load()
			if err := call.do(); err != nil {
				t.Fatalf("%s: %v", call.name, err)
			}
			least = min(least, proxy.Trips.Load()-before)
		}
		t.Logf("%s: %d round trips", call.name, least)
		if least > call.most {
			t.Errorf("%s: got %d round trips, want at most %d", call.name, least, call.most)
		}
	}
}
