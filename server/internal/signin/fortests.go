package signin

import (
	"context"
	"net/http"
	"time"
)

// What follows is for tests of the whole server, which have no other way to the clocks.

// SetTryClock makes the waits between tries of passwords go by another clock.
func (s *Service) SetTryClock(now func() time.Time) { s.attempts.now = now }

// SetProviderClock makes the ways to an external provider and back end by another clock.
func (s *Service) SetProviderClock(now func() time.Time) { s.provider.began.now = now }

// ForgetProvider has the provider's metadata read with the next sign-in.
func (s *Service) ForgetProvider() { s.provider.until = time.Time{} }

// SetConfirmClock measures by another clock how long ago people have shown who they are.
func (s *Service) SetConfirmClock(now func() time.Time) { s.now = now }

// SetRecently changes how long ago people may have signed in, for what takes everything away.
func (s *Service) SetRecently(most time.Duration) { s.recently = most }

// FillLane takes all places of the lane of browsers that nobody knows, until the test calls what it returns.
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
