package pictures

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// The maps of a user, and those of all users, are kept up to a limit. The least recently used ones are dropped first.
func TestMapsAreKeptWithinBounds(t *testing.T) {
	var a arranger
	first := mapKey{"ann", "0"}
	for i := range mostKeptOfUser + 1 {
		a.keep(mapKey{"ann", fmt.Sprint(i)}, souvenir.Map{})
		if i == 1 {
			a.kept[first].used = time.Now().Add(time.Hour) // the most recently used one
		}
	}
	if len(a.kept) != mostKeptOfUser || a.get(first) == nil || a.get(mapKey{"ann", "1"}) != nil {
		t.Errorf("%d maps of one user, the first %v; want %d, and the least recently used gone", len(a.kept), a.get(first),
			mostKeptOfUser)
	}
	for i := range 2 * mostKept {
		a.keep(mapKey{fmt.Sprint("user", i), ""}, souvenir.Map{})
	}
	if len(a.kept) != mostKept {
		t.Errorf("%d maps are kept, want %d", len(a.kept), mostKept)
	}
}

// One map is computed at a time. A user waits for at most one, the last one requested.
func TestAUserWaitsForOneMap(t *testing.T) {
	busy := &arrangement{key: mapKey{"ann", "now"}, done: make(chan struct{})}
	a := arranger{running: busy}
	if done, first := a.compute(busy.key, nil, souvenir.MapQuery{}); done != busy.done || first {
		t.Error("got a second computation of what is being computed, want the first")
	}
	before, first := a.compute(mapKey{"ann", "1"}, nil, souvenir.MapQuery{})
	if !first {
		t.Error("a map that was not asked for before: got another time, want the first")
	}
	if done, first := a.compute(mapKey{"ann", "1"}, nil, souvenir.MapQuery{}); done != before || first {
		t.Error("got a second wait for the same map, want the first")
	}
	a.compute(mapKey{"ben", "1"}, nil, souvenir.MapQuery{})
	a.compute(mapKey{"ann", "2"}, nil, souvenir.MapQuery{})
	select {
	case <-before:
	default:
		t.Error("got a wait for a map that is no longer wanted, want it ended")
	}
	if len(a.waiting) != 2 || a.waiting[0].key.query != "2" {
		t.Errorf("got %d maps waiting, want the last one of each of two users", len(a.waiting))
	}
}

// No request can recover a panic of a computation. The server goes on, and computes the next map.
func TestAPanicOfAMapDoesNotEndTheServer(t *testing.T) {
	var lines strings.Builder
	a := arranger{log: slog.New(slog.NewTextHandler(&lines, nil))}
	for _, user := range []string{"ann", "ben"} {
		done, _ := a.compute(mapKey{user, "1"}, nil, souvenir.MapQuery{}) // without a store
		<-done
	}
	a.mu.Lock() // both are done
	defer a.mu.Unlock()
	for _, user := range []string{"ann", "ben"} {
		if !strings.Contains(lines.String(), "user="+user+" error=\"panic: ") {
			t.Errorf("the log is %s, want the panic of %s", lines.String(), user)
		}
	}
}
