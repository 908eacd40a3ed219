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
	seen Recent // of *rate.Limiter
}

const limitedKeys = 10_000

// New allows a burst of events, and after that one in each interval.
func New(burst int, interval time.Duration) *Limiter {
	return &Limiter{every: rate.Every(interval), burst: burst, seen: Recent{Most: limitedKeys}}
}

// Allow counts an event for an address, and returns how long to wait if it exceeds the limit; 0: allowed.
func (l *Limiter) Allow(address netip.Addr) time.Duration { return l.AllowKey(AddressKey(address)) }

// AllowKey is Allow for any key.
func (l *Limiter) AllowKey(key string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	one, ok := Get[*rate.Limiter](&l.seen, key)
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

// Recent holds values of one type by keys, the most recently used ones: at least half of most entries, and at most all
// of them.
//
// It is not a generic type: it is a field of servers, and each package that uses one would compile the methods of each
// map again. Instead, Get has a type parameter.
type Recent struct {
	Most       int
	young, old map[string]any
}

// Get returns the value of a key.
func Get[V any](m *Recent, key string) (value V, ok bool) {
	value, ok = m.get(key).(V)
	return value, ok
}

func (m *Recent) get(key string) any {
	if value, ok := m.young[key]; ok {
		return value
	}
	value, ok := m.old[key]
	if ok {
		m.Set(key, value)
	}
	return value
}

// Set sets the value of a key.
func (m *Recent) Set(key string, value any) {
	if m.young == nil || len(m.young) >= m.Most/2 {
		m.young, m.old = map[string]any{}, m.young
	}
	m.young[key] = value
}

// Size is the number of entries.
func (m *Recent) Size() int { return len(m.young) + len(m.old) }
