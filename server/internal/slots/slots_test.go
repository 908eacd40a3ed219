package slots_test

import (
	"context"
	"errors"
	"testing"

	"github.com/souvenir-ai/souvenir/server/internal/slots"
)

// A waiting caller leaves when its context ends, and failed work frees its slot.
func TestSlotsAreTakenAndFreed(t *testing.T) {
	s := make(slots.Slots, 1)
	failed := errors.New("failed")
	for range 3 {
		if err := s.Do(t.Context(), func() error { return failed }); !errors.Is(err, failed) {
			t.Fatalf("got %v, want %v", err, failed)
		}
	}
	err := s.Do(t.Context(), func() error {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Do(ctx, func() error { t.Error("got two at once, want one"); return nil }); !errors.Is(err,
			context.Canceled) {
			t.Errorf("waiting ends with %v, want context.Canceled", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
