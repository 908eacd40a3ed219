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

// Requests of people and programs that have signed in take turns for the processors, see package fairqueue. A turn
// begins once the body of the request is here, and ends when the answer is ready to be sent: slow clients hold no one
// up. What streams, uploads and downloads, holds no place either; it is paced by a turn for each piece.

const (
	defaultQueuePerUser = 256
	defaultQueueWait    = 15 * time.Second
	defaultBodyMemory   = 64 << 20

	aloneAfter = 10 * time.Second // without a call of anyone else, one user's may use all processors

	begunPerUser = 32  // calls of a user that run, or wait for the disk or a model
	begunInAll   = 512 // of all users
	queuesInAll  = 16  // how many users' full lines are as much as may wait

	largeBody = 64 << 10 // bytes of a body that takes a turn to be parsed
	firstRoom = 64 << 10 // bytes for a body whose length is not known
)

// newTurns makes the queue and the budget for bodies that the options ask for.
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
			return nil //nolint:nilerr // its handler says so
		}
	}
	if rt.Pattern == "/mcp" {
		return nil // what a message asks for decides
	}
	return takeTurn(r)
}

// bodyRead is the bytes of a body that is in memory, or what was wrong with it: its handler says so.
type bodyRead struct {
	bytes.Reader
	encoded []byte
	failed  error
}

// Read reads what is in memory.
func (b *bodyRead) Read(p []byte) (int, error) {
	if b.failed != nil {
		return 0, b.failed
	}
	return b.Reader.Read(p)
}

// Close does nothing.
func (b *bodyRead) Close() error { return nil }

// readBody reads a body of at most MaxBody bytes, once there is memory for it in the budget of all bodies. The error is
// about the budget or the request; what is wrong with the body lies in it.
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
	for room = min(room, s.options.MaxBody) + 1; ; room *= 2 { // a byte more, so that the end is seen without growing
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
				return &bodyRead{failed: err}, nil //nolint:nilerr // whoever reads it is told
			}
		}
	}
}

// encodedBody is the body of a request, whole.
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
