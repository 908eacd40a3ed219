package server

import (
	"cmp"
	"net/http"
	"runtime"
	"time"

	"github.com/souvenir-ai/souvenir/internal/fairqueue"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// Authenticated requests take turns for the processors, see package fairqueue. A turn begins once the body of the
// request has arrived, and ends when the answer is ready to be sent: slow clients block no one. Streams, uploads
// and downloads hold no place either; they take a turn for each piece.

const (
	defaultQueuePerUser = 256
	defaultQueueWait    = 15 * time.Second
	defaultBodyMemory   = 64 << 20

	aloneAfter = 10 * time.Second // without another user's call, one user may use all processors

	begunPerUser = 32  // running calls of a user, and those waiting for the disk or a model
	begunInAll   = 512 // of all users
	queuesInAll  = 16  // length of the whole queue, as a multiple of QueuePerUser
)

// newTurns creates the queue, and the budget for bodies, from the options.
func newTurns(o *Options) (*fairqueue.Queue, *fairqueue.Budget) {
	o.MaxRunning = cmp.Or(max(o.MaxRunning, 0), runtime.GOMAXPROCS(0))
	alone := time.Duration(0)
	if o.MaxRunningPerUser <= 0 {
		alone = aloneAfter
	}
	o.MaxRunningPerUser = cmp.Or(max(o.MaxRunningPerUser, 0), max(o.MaxRunning-1, 1))
	o.QueuePerUser = cmp.Or(max(o.QueuePerUser, 0), defaultQueuePerUser)
	o.QueueWait = cmp.Or(max(o.QueueWait, 0), defaultQueueWait)
	o.BodyMemory = max(cmp.Or(max(o.BodyMemory, 0), defaultBodyMemory), 2*o.MaxBody)
	queue := fairqueue.New(fairqueue.Limits{
		Running: o.MaxRunning, RunningPerUser: o.MaxRunningPerUser, Begun: max(begunInAll, o.MaxRunning),
		BegunPerUser: max(begunPerUser, o.MaxRunningPerUser),
		Waiting:      queuesInAll * o.QueuePerUser, WaitingPerUser: o.QueuePerUser, Patience: o.QueueWait, Alone: alone,
	})
	return queue, fairqueue.NewBudget(o.BodyMemory, o.QueueWait)
}

// newCheckQueue creates the queue in which credentials are checked, from the options. Until a credential is checked its
// user is unknown, so each credential queues on its own: hundreds of requests that arrive at once with one token do not
// hold up the next one with another.
func newCheckQueue(o *Options) *fairqueue.Queue {
	running := max(o.MaxRunning, 2) // so that no credential blocks all others
	return fairqueue.New(fairqueue.Limits{
		Running: running, RunningPerUser: running - 1, Begun: running, BegunPerUser: running,
		Waiting: queuesInAll * o.QueuePerUser, WaitingPerUser: o.QueuePerUser, Patience: o.QueueWait,
	})
}

// waitForCheck waits until a credential may be checked; the caller must call leave once it is.
func (s *Server) waitForCheck(r *http.Request, credential string) (leave func(), err error) {
	t := s.checks.Ticket()
	return t.Leave, t.Enter(r.Context(), credential)
}

// takeTurn waits until a request may run. It may be called again.
func takeTurn(r *http.Request) error {
	e := request.Of(r.Context())
	return e.Ticket.Enter(r.Context(), e.Line())
}
