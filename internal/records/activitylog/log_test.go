package activitylog_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fairqueue"
	"github.com/souvenir-ai/souvenir/internal/records/activitylog"
)

// file is the destination of a log.
type file struct {
	mu      sync.Mutex
	written []int
	flushes []int
	err     error
}

func (f *file) write(_ context.Context, batch []int, flushes int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	f.written, f.flushes = append(f.written, batch...), append(f.flushes, flushes)
	return nil
}

// fill adds calls with a canceled context, so that none waits for room.
func fill(t *testing.T, l *activitylog.Log[int], from, to int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for i := from; i < to; i++ {
		if !l.Add(ctx, i) {
			t.Fatalf("call %d is refused, want it accepted", i)
		}
	}
}

func numbers(from, to int) []int {
	var all []int
	for i := from; i < to; i++ {
		all = append(all, i)
	}
	return all
}

func TestCallsAreWrittenInOrderAndInBatches(t *testing.T) {
	f := &file{}
	l := activitylog.New(f.write, slog.New(slog.DiscardHandler))
	fill(t, l, 0, 2*activitylog.Batch+1)
	if l.Waiting() != 2*activitylog.Batch+1 {
		t.Errorf("%d calls wait, want %v", l.Waiting(), 2*activitylog.Batch+1)
	}
	if err := l.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(f.written, numbers(0, 2*activitylog.Batch+1)) || !slices.Equal(f.flushes, []int{0, 1, 2}) ||
		l.Waiting() != 0 {
		t.Errorf("%d calls are written in the batches %v, and %d wait, want all in three batches", len(f.written),
			f.flushes, l.Waiting())
	}
}

func TestAFlushWaitsForTheBatchThatIsBeingWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &file{}
		l := activitylog.New(func(ctx context.Context, batch []int, flushes int) error {
			time.Sleep(time.Second)
			return f.write(ctx, batch, flushes)
		}, slog.New(slog.DiscardHandler))
		fill(t, l, 0, 1)
		go func() { _ = l.Flush(t.Context()) }()
		synctest.Wait()
		if err := l.Flush(t.Context()); err != nil || len(f.written) != 1 {
			t.Errorf("got %d calls written, %v; want 1 and no error", len(f.written), err)
		}
	})
}

func TestUnwrittenCallsAreRetried(t *testing.T) {
	f := &file{err: errors.New("held")}
	l := activitylog.New(f.write, slog.New(slog.DiscardHandler))
	fill(t, l, 0, activitylog.Batch+1)
	if err := l.Flush(t.Context()); !errors.Is(err, f.err) {
		t.Fatalf("got %v, want %v", err, f.err)
	}
	fill(t, l, activitylog.Batch+1, activitylog.Batch+3)
	f.err = nil
	if err := l.Flush(t.Context()); err != nil || !slices.Equal(f.written, numbers(0, activitylog.Batch+3)) ||
		l.Lost() != 0 {
		t.Errorf("%v; written are %v, lost %d; want all written, and none lost", err, f.written, l.Lost())
	}
}

func TestTheOldestOfTooManyCallsAreLostAndCounted(t *testing.T) {
	f := &file{err: errors.New("held")}
	var logged bytes.Buffer
	l := activitylog.New(f.write, slog.New(slog.NewTextHandler(&logged, nil)))
	fill(t, l, 0, activitylog.Room+1)
	if l.Lost() != activitylog.Batch || l.Waiting() != activitylog.Room-activitylog.Batch+1 {
		t.Errorf("%d calls are lost and %d wait, want lost %v and waiting %v", l.Lost(), l.Waiting(),
			activitylog.Batch, activitylog.Room-activitylog.Batch+1)
	}
	f.err = nil
	if err := l.Flush(t.Context()); err != nil ||
		!slices.Equal(f.written, numbers(activitylog.Batch, activitylog.Room+1)) {
		t.Errorf("%v; %d calls are written, want all that waited", err, len(f.written))
	}
	if text := logged.String(); strings.Count(text, "calls=256") != 1 {
		t.Errorf("the log says %q, want 1", text)
	}
}

func TestAFullLogWaitsForTheWriter(t *testing.T) {
	f := &file{}
	l := activitylog.New(f.write, slog.New(slog.DiscardHandler))
	fill(t, l, 0, activitylog.Room)
	l.Start()
	if !l.Add(t.Context(), activitylog.Room) {
		t.Error("the call is refused, want it accepted")
	}
	l.Stop()
	if !slices.Equal(f.written, numbers(0, activitylog.Room+1)) || l.Lost() != 0 {
		t.Errorf("%d calls are written, and %d lost, want all of those before the limit", len(f.written), l.Lost())
	}
}

func TestAStoppedLogHasWrittenTheRestAndAcceptsNoCall(t *testing.T) {
	f := &file{}
	l := activitylog.New(f.write, slog.New(slog.DiscardHandler))
	l.Start()
	fill(t, l, 0, 3)
	l.Stop()
	if !slices.Equal(f.written, numbers(0, 3)) || l.Add(t.Context(), 3) {
		t.Errorf("written are %v, and a later call is accepted, want 3, and no call after the end", f.written)
	}
}

func TestCallsOfAClosedStoreAreNotKept(t *testing.T) {
	f := &file{err: db.ErrClosed}
	l := activitylog.New(f.write, slog.New(slog.DiscardHandler))
	fill(t, l, 0, 3)
	if err := l.Flush(t.Context()); !errors.Is(err, db.ErrClosed) || l.Waiting() != 0 {
		t.Errorf("%v; %d calls wait, want 0", err, l.Waiting())
	}
}

func TestCallsThatFlushAtOnceDoNotWaitForEachOthersPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := activitylog.New(func(ctx context.Context, _ []int, _ int) error { // as a store writes
			defer fairqueue.Pause(ctx)()
			time.Sleep(time.Second)
			return ctx.Err()
		}, slog.New(slog.DiscardHandler))
		queue := fairqueue.New(fairqueue.Limits{Running: 1, RunningPerUser: 1, Begun: 9, BegunPerUser: 9, Waiting: 9,
			WaitingPerUser: 9, Patience: time.Minute})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		fill(t, l, 0, 2)
		var calls sync.WaitGroup
		for range 3 {
			calls.Go(func() {
				ticket := queue.Ticket()
				if err := ticket.Enter(ctx, "anna"); err != nil {
					t.Errorf("got %v, want a place", err)
				}
				defer ticket.Leave()
				if err := l.Flush(fairqueue.With(ctx, ticket)); err != nil {
					t.Errorf("got %v, want the calls written", err)
				}
			})
		}
		calls.Wait()
		l.Stop()
	})
}
