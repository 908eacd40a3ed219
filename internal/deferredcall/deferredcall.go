// Package deferredcall lets work in a snapshot ask other programs, such as models, while no snapshot waits for them.
// The work goes on without an answer; once the snapshot has ended, the questions are asked; then the work runs again,
// in a new snapshot, with the answers.
package deferredcall

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Errors of [Ask].
var (
	ErrLater   = errors.New("this is asked once the snapshot has ended")
	ErrTooLate = errors.New("there was no answer in the time that the question allowed")
)

// rounds is how often work runs. The last time, questions are asked at once: they may change each time.
const rounds = 4

type key struct{}

// notes are the questions of one piece of work, and the answers so far, by question.
type notes struct {
	mu      sync.Mutex
	last    bool
	answers map[string]any
	open    map[string]func(context.Context) any
}

// answer is an answer to a question.
type answer[T any] struct {
	value T
	err   error
}

// Repeat runs work, with a context for [Ask], until it has asked nothing new, and returns its last error. Only the
// results of the last run count. If ctx ends before, its error is returned.
func Repeat(ctx context.Context, work func(context.Context) error) error {
	n := &notes{answers: map[string]any{}}
	for round := 1; ; round++ {
		n.open, n.last = map[string]func(context.Context) any{}, round == rounds
		err := work(context.WithValue(ctx, key{}, n))
		if len(n.open) == 0 {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var asking sync.WaitGroup
		for question, ask := range n.open {
			asking.Go(func() {
				given := ask(ctx)
				n.mu.Lock()
				defer n.mu.Unlock()
				n.answers[question] = given
			})
		}
		asking.Wait()
	}
}

// Waits reports whether the context's work has asked a question that has no answer yet, so that it will run again.
func Waits(ctx context.Context) bool {
	n, _ := ctx.Value(key{}).(*notes)
	if n == nil {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.open) > 0
}

// Ask returns the answer to a question. If the context belongs to work that [Repeat] runs, it returns ErrLater at
// first. Ask is then called with the context of Repeat, for as long as ctx would allow; if it takes longer, the error
// is ErrTooLate. Equal questions have the same answer.
func Ask[T any](ctx context.Context, question string, ask func(context.Context) (T, error)) (value T, err error) {
	n, _ := ctx.Value(key{}).(*notes)
	if n == nil {
		return ask(ctx)
	}
	n.mu.Lock()
	given, known := n.answers[question].(answer[T])
	later := !known && !n.last
	if later {
		n.open[question] = inTime(ctx, ask)
	}
	n.mu.Unlock()
	switch {
	case known:
		return given.value, given.err
	case later:
		return value, ErrLater
	}
	return ask(ctx)
}

// inTime returns a call of ask that may take as long as ctx has left now.
func inTime[T any](ctx context.Context, ask func(context.Context) (T, error)) func(context.Context) any {
	end, limited := ctx.Deadline()
	left := time.Until(end)
	return func(outer context.Context) any {
		ctx := outer
		if limited {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(outer, left, ErrTooLate)
			defer cancel()
		}
		value, err := ask(ctx)
		if err != nil && errors.Is(context.Cause(ctx), ErrTooLate) {
			err = ErrTooLate
		}
		return answer[T]{value, err}
	}
}
