package server

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"mime"
	"net/http"
	"runtime"
	"time"

	"github.com/souvenir-ai/souvenir/internal/fairqueue"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
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
	queuesInAll  = 16  // the total queue, in full queues of one user

	largeBody = 64 << 10 // bytes of a body whose parsing takes a turn
	firstRoom = 64 << 10 // bytes for a body of unknown length
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
	running := max(o.MaxRunning, 2) // no credential stops all others
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

// prepare reads the body of a request and waits for its turn.
func (s *Server) prepare(w http.ResponseWriter, r *http.Request, rt dialectRoute) error {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodDelete, http.MethodOptions:
	default:
		if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil && kind == "multipart/form-data" {
			return nil // a stream
		}
		read, err := s.readBody(w, r)
		if err != nil {
			return err
		}
		r.Body = read
		if read.failed != nil {
			return nil //nolint:nilerr // its handler reports it
		}
	}
	if rt.Pattern == "/mcp" {
		return nil // the message decides
	}
	return takeTurn(r)
}

// bodyRead holds a body in memory, or the error of reading it, which its handler reports.
type bodyRead struct {
	bytes.Reader
	encoded []byte
	failed  error
}

// Read reads from memory.
func (b *bodyRead) Read(p []byte) (int, error) {
	if b.failed != nil {
		return 0, b.failed
	}
	return b.Reader.Read(p)
}

// Close does nothing.
func (b *bodyRead) Close() error { return nil }

// readBody reads a body of at most MaxBody bytes, once the budget of all bodies has room for it. The error is about
// the budget or the request; errors in the body are in the result.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) (*bodyRead, error) {
	if read, ok := r.Body.(*bodyRead); ok {
		return read, nil
	}
	e := request.Of(r.Context())
	in := http.MaxBytesReader(w, r.Body, s.options.MaxBody)
	room := r.ContentLength
	switch {
	case room == 0 || r.Body == http.NoBody:
		return &bodyRead{}, nil
	case room < 0:
		room = firstRoom
	}
	encoded := []byte(nil)
	for room = min(room, s.options.MaxBody) + 1; ; room *= 2 { // one byte more, to see the end without growing
		if e.Holds == 0 {
			e.Holder = e.Line()
		}
		taken, err := s.bodies.Take(r.Context(), e.Holder, room-int64(len(encoded)))
		if err != nil {
			return nil, err
		}
		e.Holds += taken
		encoded = append(make([]byte, 0, room), encoded...)
		for len(encoded) < cap(encoded) {
			n, err := in.Read(encoded[len(encoded):cap(encoded)])
			encoded = encoded[:len(encoded)+n]
			if errors.Is(err, io.EOF) {
				read := &bodyRead{encoded: encoded}
				read.Reset(encoded)
				return read, nil
			}
			if err != nil {
				return &bodyRead{failed: err}, nil //nolint:nilerr // its reader gets the error
			}
		}
	}
}

// encodedBody returns the whole body of a request.
func (s *Server) encodedBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	read, err := s.readBody(w, r)
	if err != nil {
		return nil, err
	}
	if read.failed != nil {
		return nil, failure.Unreadable(read.failed)
	}
	return read.encoded, nil
}
