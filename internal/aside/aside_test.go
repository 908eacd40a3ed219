package aside_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/aside"
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
	err := aside.Repeat(t.Context(), func(ctx context.Context) error {
		within = true
		defer func() { within = false }()
		runs++
		first, err := aside.Ask(ctx, "first", ask("one", nil))
		again, _ := aside.Ask(ctx, "first", ask("one", nil))
		if runs == 1 {
			if !errors.Is(err, aside.ErrLater) || !aside.Waits(ctx) {
				t.Errorf("at first the error is %v, and %t that the work waits; want ErrLater and true", err, aside.Waits(ctx))
			}
			return nil
		}
		if first != "one" || again != "one" || err != nil {
			t.Errorf("then the answers are %q, %q and %v; want one, twice", first, again, err)
		}
		_, err = aside.Ask(ctx, "second", ask("two", failed))
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
	err := aside.Repeat(t.Context(), func(ctx context.Context) error {
		runs++
		_, err := aside.Ask(ctx, time.Now().String(), func(context.Context) (int, error) { return 1, nil })
		return err
	})
	if err != nil || runs != 4 {
		t.Errorf("got %v after %d runs, want nil after 4", err, runs)
	}
	if n, err := aside.Ask(t.Context(), "x", func(context.Context) (int, error) { return 1, nil }); n != 1 || err != nil ||
		aside.Waits(t.Context()) {
		t.Errorf("work that is not repeated gets %d, %v; want 1, nil", n, err)
	}
}

// A question takes no longer than its context allowed, and no work is repeated once its own context has ended.
func TestQuestionsEndInTime(t *testing.T) {
	wait := func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() }
	err := aside.Repeat(t.Context(), func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		_, err := aside.Ask(ctx, "x", wait)
		return err
	})
	if !errors.Is(err, aside.ErrTooLate) {
		t.Errorf("got %v, want ErrTooLate", err)
	}
	ending, end := context.WithCancel(t.Context())
	runs := 0
	err = aside.Repeat(ending, func(ctx context.Context) error {
		runs++
		_, _ = aside.Ask(ctx, "x", wait)
		end()
		return nil
	})
	if !errors.Is(err, context.Canceled) || runs != 1 {
		t.Errorf("got %v after %d runs, want the context's error after one", err, runs)
	}
}
