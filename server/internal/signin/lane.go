package signin

import (
	"context"
	"net/http"
	"runtime"
	"strconv"

	"github.com/souvenir-ai/souvenir/internal/fairqueue"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// Passwords are slow to check, on purpose, and each check takes megabytes. So only a few are checked at once, a few
// wait, and further ones are refused with a time to retry. Browsers that have signed in before, and sessions, have
// a lane of their own: a flood of sign-ins from elsewhere does not block their users. Tries there are counted by
// account (attempts), so that lane cannot be flooded.

// lane is a bounded queue.
type lane struct {
	running chan struct{} // capacity: checks at once
	inside  chan struct{} // capacity: these and the waiting ones
}

const (
	waitingPerSlot = 16 // the last of them waits about a second
)

func newLane(slots int) *lane {
	return &lane{running: make(chan struct{}, slots), inside: make(chan struct{}, slots*(1+waitingPerSlot))}
}

// lanes are the lane of known browsers and that of all others. Together they run as many checks as there are
// processors, and at least one each.
type lanes struct{ known, others *lane }

func newLanes() lanes {
	processors := runtime.GOMAXPROCS(0)
	known := max(1, processors/2)
	return lanes{newLane(known), newLane(max(1, processors-known))}
}

// of returns the lane of a try.
func (l lanes) of(known bool) *lane {
	if known {
		return l.known
	}
	return l.others
}

// enter waits for a place. The caller must call leave when done.
func (l *lane) enter(ctx context.Context, h http.Header) (leave func(), err error) {
	select {
	case l.inside <- struct{}{}:
	default:
		h.Set("Retry-After", strconv.Itoa(web.LaneRetry))
		return nil, web.ErrBusy
	}
	defer fairqueue.Pause(ctx)() // those who check wait for a place after they write
	select {
	case l.running <- struct{}{}:
		return func() { <-l.running; <-l.inside }, nil
	case <-ctx.Done():
		<-l.inside
		return nil, ctx.Err()
	}
}
