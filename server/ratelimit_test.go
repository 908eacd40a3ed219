package server_test

import (
	"log/slog"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/shared"
)

var anywhere = netip.MustParseAddr("198.51.100.7")

// limiterAt returns a limiter of 3 events and one more each minute, with a clock that the test advances.
func limiterAt(store *souvenir.Store, log *slog.Logger, now *time.Time) *shared.Limiter {
	l := shared.NewLimiter(store, log, "test", 3, time.Minute)
	l.Now = func() time.Time { return *now }
	return l
}

func allowed(t *testing.T, l *shared.Limiter, what string, from netip.Addr, want time.Duration) {
	t.Helper()
	if got, err := l.Allow(t.Context(), from); got != want || err != nil {
		t.Errorf("%s: got a wait of %v, %v, want %v", what, got, err, want)
	}
}

func openPath(t *testing.T, path string) *souvenir.Store {
	t.Helper()
	s, err := souvenir.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestALimitIsABurstAndThenOneInEachInterval(t *testing.T) {
	for name, store := range map[string]*souvenir.Store{"in memory": nil,
		"in a store": openPath(t, filepath.Join(t.TempDir(), "limit.db"))} {
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		l := limiterAt(store, slog.New(slog.DiscardHandler), &now)
		for range 3 {
			allowed(t, l, name+", within the burst", anywhere, 0)
		}
		for range 5 { // a refused event does not extend the wait
			allowed(t, l, name+", after the burst", anywhere, time.Minute)
		}
		allowed(t, l, name+", elsewhere", netip.MustParseAddr("198.51.100.8"), 0)
		now = now.Add(45 * time.Second)
		allowed(t, l, name+", later", anywhere, 15*time.Second)
		now = now.Add(15 * time.Second)
		allowed(t, l, name+", after the wait", anywhere, 0)
		allowed(t, l, name+", once more", anywhere, time.Minute)
		now = now.Add(-time.Hour)
		allowed(t, l, name+", by a clock that is an hour behind", anywhere, time.Minute)
		now = now.Add(24 * time.Hour)
		for range 3 {
			allowed(t, l, name+", the next day", anywhere, 0)
		}
	}
}

// A flood of refused events causes no writes: the store is not even asked.
func TestRefusedEventsDoNotReachTheStore(t *testing.T) {
	store := openPath(t, filepath.Join(t.TempDir(), "flood.db"))
	var log strings.Builder
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	l := limiterAt(store, slog.New(slog.NewTextHandler(&log, nil)), &now)
	for range 3 {
		allowed(t, l, "within the burst", anywhere, 0)
	}
	allowed(t, l, "after the burst", anywhere, time.Minute)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Second / 2)
	allowed(t, l, "soon after", anywhere, time.Minute-time.Second/2)
	if log.Len() > 0 {
		t.Errorf("the log: got %s, want nothing", log.String())
	}
	now = now.Add(time.Second)
	allowed(t, l, "without the store", anywhere, 0) // this server starts its own count
	if !strings.Contains(log.String(), "count only on this server") {
		t.Errorf("the log: got %q, want that rate limits count only on this server", log.String())
	}
}

func TestAKeyIsUsedOnceByAllServers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "used.db")
	values := func() *shared.Values {
		return &shared.Values{Store: openPath(t, path), Log: slog.New(slog.DiscardHandler), Kind: "test", Life: time.Hour,
			Most: 10}
	}
	one, other := values(), values()
	for i, c := range []struct {
		v    *shared.Values
		key  string
		want bool
	}{{one, "a", true}, {one, "a", false}, {other, "a", false}, {other, "b", true}, {one, "b", false}, {one, "", true},
		{one, strings.Repeat("鍵", 10_000), true}, {other, strings.Repeat("鍵", 10_000), false}, {one, "\x00\xff", true}} {
		if got, err := c.v.Use(t.Context(), c.key); got != c.want || err != nil {
			t.Errorf("use %d: got %t, %v, want %t", i, got, err, c.want)
		}
	}
}
