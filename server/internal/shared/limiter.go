package shared

import (
	"context"
	"encoding/binary"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/ratelimit"
)

// Limiter limits how often an event may happen for each address, on all servers of a store together: a burst, and after
// that one in each interval.
type Limiter struct {
	burst    int
	interval time.Duration
	values   Values
	refused  Refused

	Now func() time.Time // time.Now, except in tests
}

// limitedKeys is how many addresses a server counts if it counts by itself.
const limitedKeys = 10_000

// NewLimiter makes a limiter of a kind of event.
func NewLimiter(store *souvenir.Store, log *slog.Logger, kind string, burst int, interval time.Duration) *Limiter {
	return &Limiter{burst: burst, interval: interval, Now: time.Now,
		values: Values{Store: store, Log: log, Kind: kind, Life: time.Duration(burst) * interval, Most: limitedKeys}}
}

// Allow counts an event for an address, and returns how long to wait if it exceeds the limit; 0: allowed.
func (l *Limiter) Allow(ctx context.Context, address netip.Addr) (wait time.Duration, err error) {
	key, now := ratelimit.AddressKey(address), l.Now()
	if wait := l.refused.Wait(key, now); wait > 0 {
		return wait, nil
	}
	err = l.values.Update(ctx, []string{key}, func(values [][]byte) {
		used := now // until when the events so far use up the rate of one per interval
		if len(values[0]) == 8 {
			used = time.UnixMicro(int64(binary.BigEndian.Uint64(values[0])))
		}
		whole := time.Duration(l.burst) * l.interval
		if used.Before(now) || used.Sub(now) > whole { // the clock of another server may be wrong
			used = now.Add(max(0, min(used.Sub(now), whole)))
		}
		used = used.Add(l.interval)
		wait = max(0, used.Sub(now)-whole)
		if wait == 0 { // a refused event does not extend the wait
			values[0] = binary.BigEndian.AppendUint64(nil, uint64(used.UnixMicro()))
		}
	})
	l.refused.Note(key, now, wait)
	return wait, err
}

// Refused remembers refused attempts for a moment, so that a flood of tries costs no writes. The zero value is empty.
type Refused struct {
	mu    sync.Mutex
	waits *ratelimit.Recent // of refusal
}

// refusal is the end of a wait, and the time until which this server does not check whether another one has ended it.
type refusal struct{ until, known time.Time }

// How long a refusal is remembered without a check, and for how many keys.
const (
	refusedFor  = time.Second
	refusedKeys = 10_000
)

// Wait returns how long a key has to wait, as far as it is known; 0: ask the store.
func (r *Refused) Wait(key string, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waits == nil {
		return 0
	}
	if w, _ := ratelimit.Get[refusal](r.waits, key); now.Before(w.known) && w.known.Sub(now) <= refusedFor {
		return max(0, w.until.Sub(now))
	}
	return 0
}

// Note remembers that a key has to wait.
func (r *Refused) Note(key string, now time.Time, wait time.Duration) {
	if wait <= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waits == nil {
		r.waits = &ratelimit.Recent{Most: refusedKeys}
	}
	r.waits.Set(key, refusal{now.Add(wait), now.Add(min(wait, refusedFor))})
}
