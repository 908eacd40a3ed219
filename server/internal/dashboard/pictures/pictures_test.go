package pictures

import (
	"context"
	"errors"
	"testing"
)

// One who waits for a turn that never comes goes away when no one waits for the answer; what fails gives its
// turn back.
func TestTurnsAreTakenAndGivenBack(t *testing.T) {
	s := &Service{busy: make(chan struct{}, 1)}
	failed := errors.New("failed")
	for range 3 {
		if err := s.inTurn(t.Context(), func() error { return failed }); !errors.Is(err, failed) {
			t.Fatalf("got %v, want %v", err, failed)
		}
	}
	err := s.inTurn(t.Context(), func() error {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.inTurn(ctx, func() error { t.Error("two at once"); return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("waiting ends with %v, want context.Canceled", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
