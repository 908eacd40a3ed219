// Package ratelimit limits how often something may happen for each of many keys.
package ratelimit

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limiter limits how often something may happen for each of many keys. It remembers a bounded number of them, and
// forgets those that were not heard of for the longest time.
type Limiter struct {
	every rate.Limit
	burst int

	mu   sync.Mutex
	seen Recent[string, *rate.Limiter]
}

const limitedKeys = 10_000

// New allows a number of times at once, and after that one more in each interval.
func New(burst int, interval time.Duration) *Limiter {
	return &Limiter{every: rate.Every(interval), burst: burst, seen: Recent[string, *rate.Limiter]{Most: limitedKeys}}
}

// Allow counts once more for an address, and returns how long to wait if that is too often; 0: it may.
func (l *Limiter) Allow(address netip.Addr) time.Duration { return l.AllowKey(AddressKey(address)) }

// AllowKey is allow for any key.
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
		reservation.CancelAt(now) // whoever is refused does not have to wait longer for it
	}
	return wait
}

// AddressKey is what counts as one address: of IPv6, the 64 bits that a single connection has to itself.
func AddressKey(address netip.Addr) string {
	if address = address.Unmap(); address.Is6() {
		if prefix, err := address.WithZone("").Prefix(64); err == nil {
			return prefix.String()
		}
	}
	return address.String()
}

// Recent is a map that keeps what was set or asked for most recently: at least half of most entries, and at most so
// many.
type Recent[K comparable, V any] struct {
	Most       int
	young, old map[K]V
}

// Get returns what was set for a key.
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

// Size is how many entries it holds.
func (m *Recent[K, V]) Size() int { return len(m.young) + len(m.old) }
