// Package ratelimit limits how often an event may happen for each of many keys.
package ratelimit

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limiter limits how often an event may happen for each of many keys. It remembers a bounded number of them, and
// evicts the least recently used.
type Limiter struct {
	every rate.Limit
	burst int

	mu   sync.Mutex
	seen Recent[string, *rate.Limiter]
}

const limitedKeys = 10_000

// New allows a burst of events, and after that one in each interval.
func New(burst int, interval time.Duration) *Limiter {
	return &Limiter{every: rate.Every(interval), burst: burst, seen: Recent[string, *rate.Limiter]{Most: limitedKeys}}
}

// Allow counts an event for an address, and returns how long to wait if it exceeds the limit; 0: allowed.
func (l *Limiter) Allow(address netip.Addr) time.Duration { return l.AllowKey(AddressKey(address)) }

// AllowKey is Allow for any key.
func (l *Limiter) AllowKey(key string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	one, ok := l.seen.Get(key)
	if !ok {
		one = rate.NewLimiter(l.every, l.burst)
		l.seen.Set(key, one)
	}
	now := time.Now()
	reservation := one.ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now) // a refused event does not extend the wait
	}
	return wait
}

// AddressKey is the key of an address: for IPv6, the 64-bit prefix, which a single connection has to itself.
func AddressKey(address netip.Addr) string {
	if address = address.Unmap(); address.Is6() {
		if prefix, err := address.WithZone("").Prefix(64); err == nil {
			return prefix.String()
		}
	}
	return address.String()
}

// Recent is a map of the most recently used entries: it keeps at least half of most entries, and at most all of
// them.
type Recent[K comparable, V any] struct {
	Most       int
	young, old map[K]V
}

// Get returns the value of a key.
func (m *Recent[K, V]) Get(key K) (value V, ok bool) {
	if value, ok = m.young[key]; ok {
		return value, true
	}
	if value, ok = m.old[key]; ok {
		m.Set(key, value)
	}
	return value, ok
}

// Set sets the value of a key.
func (m *Recent[K, V]) Set(key K, value V) {
	if m.young == nil || len(m.young) >= m.Most/2 {
		m.young, m.old = map[K]V{}, m.young
	}
	m.young[key] = value
}

// Size is the number of entries.
func (m *Recent[K, V]) Size() int { return len(m.young) + len(m.old) }
