// Package together lets calls that come at the same time be done at once.
package together

import (
	"context"
	"slices"
	"sync"
)

// Queue has calls that wait while others are done. One of the waiting calls does all of them, in its own goroutine,
// once the ones before are done. So a call that comes alone does not wait.
type Queue[T any] struct {
	// Run does some calls, at most Most, in the order in which they came.
	Run  func(calls []T)
	Most int

	mu      sync.Mutex
	running bool
	waiting []*waiting[T]
}

type waiting[T any] struct {
	call T
	turn chan bool // true: it runs the next ones; false: it is done
}

// Do returns nil when Run has had the call, or the error of ctx if that ends before.
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

// leave takes a call out of the waiting ones. It reports false if the call is being done, or is to lead.
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

// lead does what waits, its own call first, and passes the turn on, even if Run panics.
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
