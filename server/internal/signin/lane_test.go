package signin

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/souvenir-ai/souvenir/internal/fairqueue"
)

func TestChecksDoNotWaitForThePlacesOfOthersThatWaitForThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLane(1)
		queue := fairqueue.New(fairqueue.Limits{Running: 1, RunningPerUser: 1, Begun: 9, BegunPerUser: 9, Waiting: 9,
			WaitingPerUser: 9, Patience: time.Minute})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var checks sync.WaitGroup
		for range 3 {
			checks.Go(func() {
				ticket := queue.Ticket()
				if err := ticket.Enter(ctx, "anna"); err != nil {
					t.Errorf("got %v, want a place", err)
				}
				defer ticket.Leave()
				ctx := fairqueue.With(ctx, ticket)
				leave, err := l.enter(ctx, http.Header{})
				if err != nil {
					t.Errorf("got %v, want the check made", err)
					return
				}
				defer leave()
				resume := fairqueue.Pause(ctx) // as a write of the store does
				time.Sleep(time.Second)
				resume()
			})
		}
		checks.Wait()
		if ctx.Err() != nil {
			t.Error("got checks that waited until their contexts ended, want 3 s")
		}
	})
}
