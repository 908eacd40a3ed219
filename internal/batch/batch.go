// Package batch runs calls that arrive at the same time in one batch.
package batch

import (
	"context"
	"slices"
	"sync"
)

// Queue collects the calls that arrive while a batch runs. Then one of them runs them all as the next batch, in its own
// goroutine. So a call that arrives alone does not wait.
type Queue[T any] struct {
	// Run runs a batch of at most Most calls, in the order in which they arrived.
	Run  func(calls []T)
	Most int

	mu      sync.Mutex
	running bool
	waiting []*waiting[T]
}

type waiting[T any] struct {
	call T
	turn chan bool // true: it runs the next batch; false: it is done
}

// Do returns nil when Run has run the call, or the error of ctx if that ends first.
func (q *Queue[T]) Do(ctx context.Context, call T) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := &waiting[T]{call: call, turn: make(chan bool, 1)}
	q.mu.Lock()
	q.waiting = append(q.waiting, w)
	if !q.running {
		q.running = true
		w.turn <- true
	}
	q.mu.Unlock()
	leads := false
	select {
	case leads = <-w.turn:
	case <-ctx.Done():
		if q.leave(w) {
			return ctx.Err()
		}
		leads = <-w.turn
	}
	if leads {
		q.lead()
	}
	return nil
}

// Waiting returns how many calls wait for the next batch.
func (q *Queue[T]) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// leave removes a waiting call. It returns false if the call is running, or runs the next batch.
func (q *Queue[T]) leave(w *waiting[T]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := slices.Index(q.waiting, w)
	if at < 0 || len(w.turn) > 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, at, at+1)
	return true
}

// lead runs the waiting calls, its own first, and passes the turn on, even if Run panics.
func (q *Queue[T]) lead() {
	q.mu.Lock()
	n := min(len(q.waiting), q.Most)
	group := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	q.mu.Unlock()
	defer func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.running = len(q.waiting) > 0; q.running {
			q.waiting[0].turn <- true
		}
		for _, w := range group[1:] {
			w.turn <- false
		}
	}()
	calls := make([]T, n)
	for i, w := range group {
		calls[i] = w.call
	}
	q.Run(calls)
}
