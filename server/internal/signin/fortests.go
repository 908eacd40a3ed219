package signin

import (
	"context"
	"net/http"
	"time"
)

// The following is for tests of the whole server, which cannot set the clocks otherwise.

// SetTryClock sets the clock for the waits between password tries.
func (s *Service) SetTryClock(now func() time.Time) { s.attempts.now = now }

// SetProviderClock sets the clock for the expiry of sign-ins at an external provider.
func (s *Service) SetProviderClock(now func() time.Time) { s.provider.began.now = now }

// ForgetProvider makes the next sign-in read the provider's metadata again.
func (s *Service) ForgetProvider() { s.provider.until = time.Time{} }

// SetConfirmClock sets the clock for the age of confirmations.
func (s *Service) SetConfirmClock(now func() time.Time) { s.now = now }

// SetRecently sets the maximum age of a sign-in for access to all users' data.
func (s *Service) SetRecently(most time.Duration) { s.recently = most }

// FillLane takes all places of the lane of unknown browsers, until the test calls the returned function.
func (s *Service) FillLane() (empty func()) {
	var leave []func()
	for range cap(s.hashing.others.running) {
		done, err := s.hashing.others.enter(context.Background(), http.Header{})
		if err != nil {
			panic(err)
		}
		leave = append(leave, done)
	}
	waiting := cap(s.hashing.others.inside) - len(s.hashing.others.inside)
	for range waiting {
		s.hashing.others.inside <- struct{}{}
	}
	return func() {
		for range waiting {
			<-s.hashing.others.inside
		}
		for _, done := range leave {
			done()
		}
	}
}
