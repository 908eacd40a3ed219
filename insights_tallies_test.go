package souvenir

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
)

// The counts by event type are cached. They must follow each kind of change, also by another handle.
func TestCountsByEventTypeFollowEachChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tallies.db")
	one, other := openWords(t, path, Options{}), openWords(t, path, Options{})
	check := func(ctx context.Context, when string, want ...EventTypeCount) {
		t.Helper()
		for range 2 {
			for _, s := range []*Store{one, other} {
				o, err := s.Insights().Overview(ctx, OverviewQuery{})
				if err != nil || !slices.Equal(o.EventTypes, want) {
					t.Fatalf("%s: got %v, %v, want %v", when, o.EventTypes, err, want)
				}
				if s == one && ctx != t.Context() {
					return // a transaction belongs to its handle
				}
			}
		}
	}
	first := mustAdd(t, one, NewMemory{Content: "first", EventType: "decision"})
	second := mustAdd(t, one, NewMemory{Content: "second"})
	check(t.Context(), "at first", EventTypeCount{"", 1}, EventTypeCount{"decision", 1})
	fact := "fact"
	if _, err := other.UpdateMemory(t.Context(), second.ID, MemoryUpdate{EventType: &fact}); err != nil {
		t.Fatal(err)
	}
	check(t.Context(), "after an update", EventTypeCount{"decision", 1}, EventTypeCount{"fact", 1})
	undone := errors.New("undone")
	err := one.Transaction(t.Context(), func(ctx context.Context) error {
		if _, err := one.UpdateMemory(ctx, second.ID, MemoryUpdate{EventType: new("decision")}); err != nil {
			return err
		}
		check(ctx, "in a transaction", EventTypeCount{"decision", 2})
		return undone
	})
	if !errors.Is(err, undone) {
		t.Fatalf("got %v, want %v", err, undone)
	}
	check(t.Context(), "after it was undone", EventTypeCount{"decision", 1}, EventTypeCount{"fact", 1})
	if err := one.DeleteMemory(t.Context(), first.ID, nil); err != nil {
		t.Fatal(err)
	}
	check(t.Context(), "after a deletion", EventTypeCount{"fact", 1})
	mustAdd(t, other.As(Access{User: "bob"}), NewMemory{Content: "bob's", EventType: "fact"})
	check(t.Context(), "after another user's addition", EventTypeCount{"fact", 1})
}
