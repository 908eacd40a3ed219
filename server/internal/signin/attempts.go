package signin

import (
	"context"
	"encoding/binary"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/shared"
)

// attempts slows down password guessing. It counts each wrong try three times, since any one count alone can be
// evaded or turned against a user:
//
//   - per name and address: a few tries are free; each further one waits twice as long as the one before;
//   - per address, across names: against an attacker who tries one password with many names;
//   - per name, across addresses: against an attacker with many addresses. The waits for a name or an address are
//     short, since other users share them; the remaining tries are too few to find a password that the store accepts.
//
// A browser that has signed in to an account holds a mark of that account, and tries from it are counted
// separately, by the mark. So an attacker cannot lock users out of their own browsers, even where all requests come
// from one address (OWASP: device cookies). A stolen mark allows as many tries as an address does.
//
// During a wait every try is refused, even with the right password: otherwise the wait would have no effect. All
// servers on the store count together, until an hour without tries. Marks outlive it. The number of counts is bounded;
// when full, the least recently used are evicted.
type attempts struct {
	free    int // wrong tries per name and address without a wait
	now     func() time.Time
	seen    shared.Values
	refused shared.Refused
}

// attempt is the count for a name, an address, or a name from an address.
type attempt struct {
	wrong int
	last  time.Time // time of the latest try
	until time.Time // when the next try is allowed
}

const (
	defaultTries   = 5
	freeTriesShort = 20 // wrong tries per name, and per address, before short waits begin
	firstWait      = 2 * time.Second
	longestWait    = 15 * time.Minute
	shortWait      = time.Minute // maximum if others may wait, too: 60 tries an hour (OWASP ASVS 2.2.1 allows 100)
	attemptMemory  = time.Hour
	mostAttempts   = 20_000 // about 2 MB
)

// newAttempts counts in a store, or without one in memory.
func newAttempts(free int, store *souvenir.Store, log *slog.Logger) *attempts {
	return &attempts{free: free, now: time.Now, seen: shared.Values{Store: store, Log: log, Kind: "try",
		Life: attemptMemory + longestWait, Most: mostAttempts}}
}

// counted is a try in progress. It counts as wrong until it succeeds, so that concurrent tries are not all free.
type counted struct {
	all    *attempts
	limits []limit
	known  bool // from a browser that has signed in to this account
}

// limit holds the rules for one of the counts.
type limit struct {
	key     string
	free    int
	longest time.Duration // maximum wait
}

// begin returns how long to wait before a password is checked; zero means no wait. Who identifies the account that
// is tried; known says that the browser has signed in to it before.
func (a *attempts) begin(ctx context.Context, who, address string, known bool) (c counted, wait time.Duration,
	err error) {
	limits := []limit{
		{keyOf("pair", who, address), a.free, longestWait},
		{keyOf("from", address), max(a.free, freeTriesShort), shortWait},
		{keyOf("name", who), max(a.free, freeTriesShort), shortWait},
	}
	if known {
		limits = []limit{{keyOf("marked", who), a.free, longestWait}}
	}
	now := a.now()
	if wait := a.refused.Wait(limits[0].key, now); wait > 0 {
		return counted{}, wait, nil
	}
	err = a.update(ctx, limits, now, func(counts []attempt) {
		wait = 0
		for _, t := range counts {
			wait = max(wait, t.until.Sub(now))
		}
		if wait > 0 {
			return
		}
		for i, limit := range limits {
			t := &counts[i]
			t.wrong++
			t.last = now
			if over := t.wrong - limit.free; over >= 0 {
				t.until = now.Add(min(firstWait<<min(over, 20), limit.longest))
			}
		}
	})
	if err != nil {
		return counted{}, 0, err
	}
	a.refused.Note(limits[0].key, now, wait)
	if wait > 0 {
		return counted{}, wait, nil
	}
	return counted{a, limits, known}, 0, nil
}

// right uncounts a try whose password was right. It clears the other wrong tries of this name from this address;
// those of the address or the name alone stay, since they may be another user's.
func (c counted) right(ctx context.Context) {
	c.takeBack(ctx, func(t *attempt) { t.wrong = 0 })
}

// unused uncounts a try that revealed nothing about the password.
func (c counted) unused(ctx context.Context) {
	c.takeBack(ctx, func(t *attempt) { t.wrong = max(t.wrong-1, 0) })
}

// takeBack applies first to the first count, and subtracts one from the others. It also works after the end of a
// request.
func (c counted) takeBack(ctx context.Context, first func(*attempt)) {
	now := c.all.now()
	_ = c.all.update(context.WithoutCancel(ctx), c.limits, now, func(counts []attempt) { // it has its own fallback
		for i := range counts {
			t := &counts[i]
			if i == 0 {
				first(t)
			} else {
				t.wrong = max(t.wrong-1, 0)
			}
			t.last, t.until = now, time.Time{} // the wait that this try began: no other try has passed during it
		}
	})
}

// update changes the counts of some limits.
func (a *attempts) update(ctx context.Context, limits []limit, now time.Time, change func(counts []attempt)) error {
	keys := make([]string, len(limits))
	for i, limit := range limits {
		keys[i] = limit.key
	}
	return a.seen.Update(ctx, keys, func(values [][]byte) {
		counts := make([]attempt, len(values))
		for i, value := range values {
			if t := readAttempt(value); now.Sub(t.last) <= attemptMemory || !now.After(t.until) {
				counts[i] = t
			}
		}
		before := slices.Clone(counts)
		change(counts)
		for i, t := range counts {
			if t != before[i] {
				values[i] = t.bytes()
			}
		}
	})
}

// bytes encodes a count: three numbers, the times in microseconds since 1970, 0 for none.
func (t attempt) bytes() []byte {
	b := binary.AppendVarint(nil, int64(t.wrong))
	for _, at := range []time.Time{t.last, t.until} {
		micros := int64(0)
		if !at.IsZero() {
			micros = at.UnixMicro()
		}
		b = binary.AppendVarint(b, micros)
	}
	return b
}

// readAttempt decodes a count; an invalid one counts as empty.
func readAttempt(b []byte) (t attempt) {
	var numbers [3]int64
	for i := range numbers {
		n, size := binary.Varint(b)
		if size <= 0 {
			return attempt{}
		}
		numbers[i], b = n, b[size:]
	}
	t.wrong = int(numbers[0])
	if numbers[1] != 0 {
		t.last = time.UnixMicro(numbers[1])
	}
	if numbers[2] != 0 {
		t.until = time.UnixMicro(numbers[2])
	}
	return t
}

func keyOf(parts ...string) string { return strings.Join(parts, "\x00") }

// FreeTries returns how many wrong passwords cost no wait.
func (s *Service) FreeTries() int { return s.attempts.free }
