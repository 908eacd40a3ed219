package server

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// limiter limits how often something may happen for each of many keys. It remembers a bounded number of them, and forgets those that
// were not heard of for the longest time.
type limiter struct {
	every rate.Limit
	burst int

	mu   sync.Mutex
	seen recent[string, *rate.Limiter]
}

const limitedKeys = 10_000

// newLimiter allows a number of times at once, and after that one more in each interval.
func newLimiter(burst int, interval time.Duration) *limiter {
	return &limiter{every: rate.Every(interval), burst: burst, seen: recent[string, *rate.Limiter]{most: limitedKeys}}
}

// allow counts once more for an address, and returns how long to wait if that is too often; 0: it may.
func (l *limiter) allow(address netip.Addr) time.Duration { return l.allowKey(addressKey(address)) }

// allowKey is allow for any key.
func (l *limiter) allowKey(key string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	one, ok := l.seen.get(key)
	if !ok {
		one = rate.NewLimiter(l.every, l.burst)
		l.seen.set(key, one)
	}
	now := time.Now()
	reservation := one.ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now) // whoever is refused does not have to wait longer for it
	}
	return wait
}

// addressKey is what counts as one address: of IPv6, the 64 bits that a single connection has to itself.
func addressKey(address netip.Addr) string {
	if address = address.Unmap(); address.Is6() {
		if prefix, err := address.WithZone("").Prefix(64); err == nil {
			return prefix.String()
		}
	}
	return address.String()
}

// recent is a map that keeps what was set or asked for most recently: at least half of most entries, and at most so many.
type recent[K comparable, V any] struct {
	most       int
	young, old map[K]V
}

func (m *recent[K, V]) get(key K) (value V, ok bool) {
	if value, ok = m.young[key]; ok {
		return value, true
	}
	if value, ok = m.old[key]; ok {
		m.set(key, value)
	}
	return value, ok
}

func (m *recent[K, V]) set(key K, value V) {
	if m.young == nil || len(m.young) >= m.most/2 {
		m.young, m.old = map[K]V{}, m.young
	}
	m.young[key] = value
}
