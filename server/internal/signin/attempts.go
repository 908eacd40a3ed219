package signin

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir/server/internal/ratelimit"
)

// attempts slows those down who guess passwords. Wrong tries are counted three times, since each count alone can be got
// around, or turned against somebody:
//
//   - of a name from an address: a few are free; then each costs twice the wait of the one before;
//   - from an address, whatever the names, for whoever tries one password with many;
//   - of a name, from wherever, for whoever has many addresses. The waits are short here, and for an address, since
//     they are others' waits, too; the tries that are left find no password that the store accepts.
//
// A browser in which somebody has signed in has a mark of that account, and tries of the account from there are counted
// apart, by the mark. So nobody is locked out of an own browser by others, even where all come from one address (OWASP:
// device cookies). Whoever steals a mark gets as many tries as an address does.
//
// While a wait lasts every try is refused, with the right password, too: otherwise waiting would not matter. Nothing is
// written down: a restart forgets, marks included, and so does an hour without tries. There is room for a fixed number
// of counts; past that, those go that were unused longest.
type attempts struct {
	free int // wrong tries of a name from an address that cost nothing
	key  []byte

	mu   sync.Mutex
	now  func() time.Time
	seen ratelimit.Recent[attemptKey, attempt]
}

// attemptKey is the hash of what is counted: names may be long.
type attemptKey [16]byte

// attempt is what is known of a name, an address, or one from the other.
type attempt struct {
	wrong int
	last  time.Time // of the tries
	until time.Time // when the next may be
}

const (
	defaultTries   = 5
	freeTriesShort = 20 // of a name, and from an address, until short waits begin
	firstWait      = 2 * time.Second
	longestWait    = 15 * time.Minute
	shortWait      = time.Minute // at most, where somebody else may have to wait: 60 tries an hour (OWASP ASVS 2.2.1 allows 100)
	attemptMemory  = time.Hour
	mostAttempts   = 20_000 // some 2 MB
)

func newAttempts(free int) *attempts {
	key := make([]byte, sha256.Size)
	rand.Read(key) // never fails
	return &attempts{free: free, key: key, now: time.Now, seen: ratelimit.Recent[attemptKey, attempt]{Most: mostAttempts}}
}

// mark is what a browser has in which somebody has signed in to an account.
func (a *attempts) mark(who string) string {
	mac := hmac.New(sha256.New, a.key)
	mac.Write([]byte(who))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// counted is a try that has begun, and counts as a wrong one until it succeeds: so that many at once are not all free.
type counted struct {
	all    *attempts
	limits []limit
	known  bool // from a browser in which somebody has signed in to this account
}

// limit is what holds for one of the counts.
type limit struct {
	key     attemptKey
	free    int
	longest time.Duration // that a try has to wait
}

// begin says how long somebody has to wait before a password is looked at; zero: go on. Who is the account that is
// tried, by whatever tells it from others; mark is what the browser shows, if anything.
func (a *attempts) begin(who, address, mark string) (counted, time.Duration) {
	limits := []limit{
		{keyOf("pair", who, address), a.free, longestWait},
		{keyOf("from", address), max(a.free, freeTriesShort), shortWait},
		{keyOf("name", who), max(a.free, freeTriesShort), shortWait},
	}
	known := hmac.Equal([]byte(mark), []byte(a.mark(who)))
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

// right takes a try back, for its password was right. The other wrong tries of this name from this address are
// forgotten; those from the address, or of the name, may be somebody else's.
func (c counted) right() {
	c.takeBack(func(t *attempt) { t.wrong = 0 })
}

// unused takes a try back that has told nothing about the password.
func (c counted) unused() {
	c.takeBack(func(t *attempt) { t.wrong = max(t.wrong-1, 0) })
}

// takeBack changes the first count, and takes one from the others.
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
		t.last, t.until = now, time.Time{} // the wait that this try began: nobody else has got in during it
		c.all.seen.Set(limit.key, t)
	}
}

// look returns what is known under a key.
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

// FreeTries is how many wrong passwords cost nothing.
func (s *Service) FreeTries() int { return s.attempts.free }
