package deferredcall_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/deferredcall"
)

// Work asks, goes on without an answer, and runs again with it. Equal questions are asked once.
func TestWorkRunsAgainWithTheAnswers(t *testing.T) {
	failed := errors.New("failed")
	var asked []string
	within := false
	ask := func(answer string, err error) func(context.Context) (string, error) {
		return func(context.Context) (string, error) {
			if within {
				t.Errorf("%s is asked within the work", answer)
			}
			asked = append(asked, answer)
			return answer, err
		}
	}
	runs := 0
	err := deferredcall.Repeat(t.Context(), func(ctx context.Context) error {
		within = true
		defer func() { within = false }()
		runs++
		first, err := deferredcall.Ask(ctx, "first", ask("one", nil))
		again, _ := deferredcall.Ask(ctx, "first", ask("one", nil))
		if runs == 1 {
			if !errors.Is(err, deferredcall.ErrLater) || !deferredcall.Waits(ctx) {
				t.Errorf("at first the error is %v, and %t that the work waits; want ErrLater and true", err,
					deferredcall.Waits(ctx))
			}
			return nil
		}
		if first != "one" || again != "one" || err != nil {
			t.Errorf("then the answers are %q, %q and %v; want one, twice", first, again, err)
		}
		_, err = deferredcall.Ask(ctx, "second", ask("two", failed))
		return err
	})
	if !errors.Is(err, failed) || runs != 3 || !slices.Equal(asked, []string{"one", "two"}) {
		t.Errorf("got %v after %d runs, which asked %v; want the error of the answer after 3, each asked once", err, runs,
			asked)
	}
}

// Work whose questions never stay the same is answered at once in the end, and so is work that is not repeated.
func TestChangingQuestionsEnd(t *testing.T) {
	runs := 0
	err := deferredcall.Repeat(t.Context(), func(ctx context.Context) error {
		runs++
		_, err := deferredcall.Ask(ctx, time.Now().String(), func(context.Context) (int, error) { return 1, nil })
		return err
	})
	if err != nil || runs != 4 {
		t.Errorf("got %v after %d runs, want nil after 4", err, runs)
	}
	one := func(context.Context) (int, error) { return 1, nil }
	if n, err := deferredcall.Ask(t.Context(), "x", one); n != 1 || err != nil ||
		deferredcall.Waits(t.Context()) {
		t.Errorf("work that is not repeated gets %d, %v; want 1, nil", n, err)
	}
}

// A question takes no longer than its context allowed, and no work is repeated once its own context has ended.
func TestQuestionsEndInTime(t *testing.T) {
	wait := func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() }
	err := deferredcall.Repeat(t.Context(), func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		_, err := deferredcall.Ask(ctx, "x", wait)
		return err
	})
	if !errors.Is(err, deferredcall.ErrTooLate) {
		t.Errorf("got %v, want ErrTooLate", err)
	}
	ending, end := context.WithCancel(t.Context())
	runs := 0
	err = deferredcall.Repeat(ending, func(ctx context.Context) error {
		runs++
		_, _ = deferredcall.Ask(ctx, "x", wait)
		end()
		return nil
	})
	if !errors.Is(err, context.Canceled) || runs != 1 {
		t.Errorf("got %v after %d runs, want the context's error after one", err, runs)
	}
}
