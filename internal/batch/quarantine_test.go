package batch_test

import (
	"errors"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/batch"
)

// After a failed call, a caller is in quarantine until a call succeeds.
func TestACallerStaysInQuarantineUntilACallSucceeds(t *testing.T) {
	var q batch.Quarantine[string]
	failed := errors.New("failed")
	ran := 0
	do := func(who string, add bool, result error) (is bool, err error) {
		return q.Do(t.Context(), who, add, func() error {
			ran++
			return result
		})
	}
	for i, step := range []struct {
		who    string
		add    bool
		result error
		is     bool
	}{
		{"ann", false, nil, false}, {"ann", true, failed, true}, {"ben", false, nil, false}, {"ann", false, failed, true},
		{"ann", false, nil, true}, {"ann", false, nil, false}, {"ben", true, nil, true}, {"ben", false, nil, false},
	} {
		is, err := do(step.who, step.add, step.result)
		if is != step.is || !errors.Is(err, step.result) && is {
			t.Errorf("step %d: got %t, %v; want %t, %v", i, is, err, step.is, step.result)
		}
	}
	if ran != 4 {
		t.Errorf("got %d calls run, want 4", ran)
	}
}

func TestACallerThatPanicsStaysInQuarantine(t *testing.T) {
	var q batch.Quarantine[string]
	func() {
		defer func() { _ = recover() }()
		_, _ = q.Do(t.Context(), "ann", true, func() error { panic("on purpose") })
	}()
	if is, err := q.Do(t.Context(), "ann", false, func() error { return nil }); !is || err != nil {
		t.Errorf("the call after a panic: got %t, %v; want it run in quarantine", is, err)
	}
}
