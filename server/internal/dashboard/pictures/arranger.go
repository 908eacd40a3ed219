package pictures

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// arranger computes maps in the background, one at a time, so that a processor or more remain for searches, and keeps
// them. It is safe for concurrent use.
type arranger struct {
	log *slog.Logger

	mu      sync.Mutex
	kept    map[mapKey]*keptMap
	waiting []*arrangement // one per user at most, in order
	running *arrangement
}

const (
	mostKept        = 64 // maps of all users: 5,000 places take about half a megabyte
	mostKeptOfUser  = 4
	longestArranged = 2 * time.Minute
)

// mapKey identifies a map by its user and memories.
type mapKey struct{ user, query string }

// keptMap is a map that was computed.
type keptMap struct {
	souvenir.Map
	used time.Time
}

// arrangement is a map to compute.
type arrangement struct {
	key   mapKey
	query souvenir.MapQuery
	view  *souvenir.Store
	done  chan struct{} // closed at the end, even after a failure
}

// get returns the map of a key; nil: none was computed yet.
func (a *arranger) get(key mapKey) *souvenir.Map {
	a.mu.Lock()
	defer a.mu.Unlock()
	kept := a.kept[key]
	if kept == nil {
		return nil
	}
	kept.used = time.Now()
	return &kept.Map
}

// compute starts computing a map. The channel is closed when the map is stored or has failed; first reports whether
// this is the first request for it. A user's newest request replaces one that has not started.
func (a *arranger) compute(key mapKey, view *souvenir.Store, query souvenir.MapQuery) (done <-chan struct{},
	first bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.running != nil && a.running.key == key {
		return a.running.done, false
	}
	wish := &arrangement{key, query, view, make(chan struct{})}
	for i, other := range a.waiting {
		switch {
		case other.key == key:
			return other.done, false
		case other.key.user == key.user:
			close(other.done)
			a.waiting[i] = wish
			return wish.done, true
		}
	}
	a.waiting = append(a.waiting, wish)
	if a.running == nil {
		a.running = a.waiting[0]
		a.waiting = a.waiting[1:]
		go a.run(a.running)
	}
	return wish.done, true
}

// run computes maps until none is waiting.
func (a *arranger) run(next *arrangement) {
	for next != nil {
		m, err := a.arrange(next)
		if err != nil {
			a.log.Warn("a map could not be computed", "user", next.key.user, "error", err)
		}
		a.mu.Lock()
		if err == nil { // else it is tried again when the page is opened again
			a.keep(next.key, m)
		}
		close(next.done)
		next, a.running = nil, nil
		if len(a.waiting) > 0 {
			next = a.waiting[0]
			a.running, a.waiting = next, a.waiting[1:]
		}
		a.mu.Unlock()
	}
}

// arrange computes a map. A panic is its error: it must not end the server, as no request is there to recover it.
func (a *arranger) arrange(next *arrangement) (m souvenir.Map, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("panic: %v\n%s", broken, debug.Stack())
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), longestArranged)
	defer cancel()
	query := next.query
	query.Start = a.get(next.key)
	return next.view.Insights().Map(ctx, query)
}

// keep keeps a map, in place of the least recently used one if there are too many.
func (a *arranger) keep(key mapKey, m souvenir.Map) {
	if a.kept == nil {
		a.kept = map[mapKey]*keptMap{}
	}
	for i, point := range m.Points { // only the places are needed, and which state of a memory they are of
		m.Points[i] = souvenir.Point{Node: souvenir.Node{ID: point.ID, UpdatedAt: point.UpdatedAt}, X: point.X, Y: point.Y}
	}
	a.kept[key] = &keptMap{m, time.Now()}
	a.evict(mostKeptOfUser, func(other mapKey) bool { return other.user == key.user })
	a.evict(mostKept, func(mapKey) bool { return true })
}

// evict keeps at most a number of some maps.
func (a *arranger) evict(most int, some func(mapKey) bool) {
	count, oldest := 0, mapKey{}
	for key, kept := range a.kept {
		if !some(key) {
			continue
		}
		if count == 0 || kept.used.Before(a.kept[oldest].used) {
			oldest = key
		}
		count++
	}
	if count > most {
		delete(a.kept, oldest)
	}
}
