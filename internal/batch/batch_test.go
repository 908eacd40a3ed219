package batch_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/batch"
)

func TestWaitingCallsRunInOneBatch(t *testing.T) {
	var groups [][]int
	begun, release := make(chan struct{}, 1), make(chan struct{})
	q := batch.Queue[int]{Most: 3, Run: func(calls []int) {
		groups = append(groups, slices.Clone(calls))
		if calls[0] == 0 {
			begun <- struct{}{}
			<-release
		}
	}}
	var wg sync.WaitGroup
	do := func(call int) {
		if err := q.Do(t.Context(), call); err != nil {
			t.Errorf("call %d: got %v, want no error", call, err)
		}
	}
	wg.Go(func() { do(0) })
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() { left <- q.Do(ctx, 99) }()
	for q.Waiting() < 1 {
		runtime.Gosched()
	}
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("a call whose context ends while it waits: got %v, want %v", err, context.Canceled)
	}
	for call := 1; call <= 4; call++ {
		wg.Go(func() { do(call) })
		for q.Waiting() < call {
			runtime.Gosched()
		}
	}
	close(release)
	wg.Wait()
	if want := [][]int{{0}, {1, 2, 3}, {4}}; !slices.EqualFunc(groups, want, slices.Equal) {
		t.Errorf("got the groups %v, want %v", groups, want)
	}
}

func TestAPanicEndsItsOwnCallAlone(t *testing.T) {
	first := true
	q := batch.Queue[int]{Most: 8, Run: func([]int) {
		if first {
			first = false
			panic("on purpose")
		}
	}}
	func() {
		defer func() {
			if got := recover(); got != "on purpose" {
				t.Errorf("got %v, want the panic", got)
			}
		}()
		_ = q.Do(t.Context(), 1)
	}()
	if err := q.Do(t.Context(), 2); err != nil {
		t.Errorf("the next call: got %v, want no error", err)
	}
}
