package authserver

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"slices"
	"sync"
	"time"
)

// questions are the open consent questions. Each can be answered once, in the browser that was asked, and only as
// it was put. They are kept in memory: after a restart, the person is asked again.
type questions struct {
	mu   sync.Mutex
	open []openConsent // the oldest first
}

// openConsent is a question. It holds hashes only, so all have the same small size.
type openConsent struct {
	nonce, browser, question [sha256.Size]byte
	until                    time.Time
}

const (
	consentLifetime = 30 * time.Minute
	maxConsents     = 4096
	maxOpenConsents = 32 // per browser: no browser can evict the questions of others
)

// add stores a question, and returns the nonce of its answer. When there are too many, the oldest is dropped.
func (c *questions) add(browser string, question [sha256.Size]byte, now time.Time) (nonce string) {
	nonce = rand.Text()
	added := openConsent{nonce: sha256.Sum256([]byte(nonce)), browser: sha256.Sum256([]byte(browser)), question: question,
		until: now.Add(consentLifetime)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = slices.DeleteFunc(c.open, func(o openConsent) bool { return !now.Before(o.until) })
	own, oldest := 0, -1
	for i, o := range c.open {
		if o.browser == added.browser {
			if own++; oldest < 0 {
				oldest = i
			}
		}
	}
	switch {
	case own >= maxOpenConsents:
		c.open = slices.Delete(c.open, oldest, oldest+1)
	case len(c.open) >= maxConsents:
		c.open = slices.Delete(c.open, 0, 1)
	}
	c.open = append(c.open, added)
	return nonce
}

// take reports whether a nonce belongs to this browser and this question, and uses it up if so.
func (c *questions) take(nonce, browser string, question [sha256.Size]byte, now time.Time) bool {
	given, from := sha256.Sum256([]byte(nonce)), sha256.Sum256([]byte(browser))
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.open,
		func(o openConsent) bool { return subtle.ConstantTimeCompare(o.nonce[:], given[:]) == 1 })
	if i < 0 || c.open[i].browser != from || c.open[i].question != question || !now.Before(c.open[i].until) {
		return false
	}
	c.open = slices.Delete(c.open, i, i+1)
	return true
}
