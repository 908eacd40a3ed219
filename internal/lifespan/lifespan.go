// Package lifespan checks and compares the times at which a memory expires, and between which it is valid.
package lifespan

import (
	"time"

	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Times are the expiry and the validity of a memory, in microseconds since 1970; nil means none. The zero value is a
// memory that never expires and is always valid.
type Times struct {
	Expires *int64 `json:"expires_at,omitempty"`  // when the memory expires
	From    *int64 `json:"valid_from,omitempty"`  // the first moment at which it is valid
	Until   *int64 `json:"valid_until,omitempty"` // the first moment at which it is no longer valid

	// Supersedes is the id of the memory in the same place that this one replaces; empty: none.
	Supersedes string `json:"supersedes,omitempty"`
}

// IsZero reports whether nothing is set.
func (t Times) IsZero() bool { return t == (Times{}) }

// Equal reports whether both are the same.
func (t Times) Equal(o Times) bool {
	same := func(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }
	return same(t.Expires, o.Expires) && same(t.From, o.From) && same(t.Until, o.Until) && t.Supersedes == o.Supersedes
}

// Check checks the times with each other, not with the clock.
func (t Times) Check() error {
	for _, at := range []struct {
		argument string
		given    *int64
	}{{"expires_at", t.Expires}, {"valid_from", t.From}, {"valid_until", t.Until}} {
		if at.given == nil {
			continue
		}
		if err := valid.Time(at.argument, *at.given); err != nil {
			return err
		}
	}
	if t.From != nil && t.Until != nil && *t.From >= *t.Until {
		return fault.Invalid("valid_until", "{} is %s, which is not after {valid_from}, %s; give a later time",
			show(*t.Until), show(*t.From))
	}
	if t.Supersedes != "" {
		return valid.Name("supersedes", t.Supersedes)
	}
	return nil
}

// CheckExpiry refuses a time that has passed.
func (t Times) CheckExpiry(now int64) error {
	if t.Expires == nil || *t.Expires > now {
		return nil
	}
	return fault.Invalid("expires_at", "{} is %s, which is in the past; give a later time, or delete the memory",
		show(*t.Expires))
}

func show(micros int64) string { return time.UnixMicro(micros).UTC().Format(time.RFC3339Nano) }
