package signin

import (
	"crypto/sha256"
	"strings"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir/server/internal/ratelimit"
)

// attempts slows down password guessing. It counts each wrong try three times, since any one count alone can be
// evaded or turned against a user:
//
//   - per name and address: a few tries are free; each further one waits twice as long as the one before;
//   - per address, across names: against an attacker who tries one password with many names;
//   - per name, across addresses: against an attacker with many addresses. The waits for a name or an address are
//     short, since other users share them; the tries that remain find no password that the store accepts.
//
// A browser that has signed in to an account holds a mark of that account, and tries from it are counted
// separately, by the mark. So an attacker cannot lock users out of their own browsers, even where all requests come
// from one address (OWASP: device cookies). A stolen mark allows as many tries as an address does.
//
// During a wait every try is refused, even with the right password: otherwise the wait would have no effect. Counts
// are kept in memory only: a restart clears them, and so does an hour without tries. Marks outlive it. The number of
// counts is bounded; when full, the least recently used are evicted.
type attempts struct {
	free int // wrong tries per name and address without a wait

	mu   sync.Mutex
	now  func() time.Time
	seen ratelimit.Recent[attemptKey, attempt]
}

// attemptKey is the hash of the counted names and addresses, since names may be long.
type attemptKey [16]byte

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

func newAttempts(free int) *attempts {
	return &attempts{free: free, now: time.Now, seen: ratelimit.Recent[attemptKey, attempt]{Most: mostAttempts}}
}

// counted is a try in progress. It counts as wrong until it succeeds, so that concurrent tries are not all free.
type counted struct {
	all    *attempts
	limits []limit
	known  bool // from a browser that has signed in to this account
}

// limit holds the rules for one of the counts.
type limit struct {
	key     attemptKey
	free    int
	longest time.Duration // maximum wait
}

// begin returns how long to wait before a password is checked; zero means no wait. Who identifies the account that
// is tried; known says that the browser has signed in to it before.
func (a *attempts) begin(who, address string, known bool) (counted, time.Duration) {
	limits := []limit{
		{keyOf("pair", who, address), a.free, longestWait},
		{keyOf("from", address), max(a.free, freeTriesShort), shortWait},
		{keyOf("name", who), max(a.free, freeTriesShort), shortWait},
	}
	if known {
		limits = []limit{{keyOf("marked", who), a.free, longestWait}}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	var wait time.Duration
	for _, limit := range limits {
		wait = max(wait, a.look(limit.key, now).until.Sub(now))
	}
	if wait > 0 {
		return counted{}, wait
	}
	for _, limit := range limits {
		t := a.look(limit.key, now)
		t.wrong++
		t.last = now
		if over := t.wrong - limit.free; over >= 0 {
			t.until = now.Add(min(firstWait<<min(over, 20), limit.longest))
		}
		a.seen.Set(limit.key, t)
	}
	return counted{a, limits, known}, 0
}

// right uncounts a try whose password was right. It clears the other wrong tries of this name from this address;
// those of the address or the name alone stay, since they may be another user's.
func (c counted) right() {
	c.takeBack(func(t *attempt) { t.wrong = 0 })
}

// unused uncounts a try that revealed nothing about the password.
func (c counted) unused() {
	c.takeBack(func(t *attempt) { t.wrong = max(t.wrong-1, 0) })
}

// takeBack applies first to the first count, and subtracts one from the others.
func (c counted) takeBack(first func(*attempt)) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	now := c.all.now()
	for i, limit := range c.limits {
		t := c.all.look(limit.key, now)
		if i == 0 {
			first(&t)
		} else {
			t.wrong = max(t.wrong-1, 0)
		}
		t.last, t.until = now, time.Time{} // the wait that this try began: no other try has passed during it
		c.all.seen.Set(limit.key, t)
	}
}

// look returns the count under a key.
func (a *attempts) look(key attemptKey, now time.Time) attempt {
	t, _ := a.seen.Get(key)
	if now.Sub(t.last) > attemptMemory && now.After(t.until) {
		return attempt{}
	}
	return t
}

func keyOf(parts ...string) attemptKey {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return attemptKey(sum[:16])
}

// FreeTries returns how many wrong passwords cost no wait.
func (s *Service) FreeTries() int { return s.attempts.free }
