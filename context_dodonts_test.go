package souvenir

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// The first dos and don'ts of a context are cached. The cache must follow each kind of change, also by another handle.
func TestTheFirstDosAndDontsFollowEachChange(t *testing.T) {
	longtest.Only(t)
	path := filepath.Join(t.TempDir(), "dos.db")
	one, other := openWords(t, path, Options{}), openWords(t, path, Options{})
	check := func(ctx context.Context, when string, all int, first ...string) {
		t.Helper()
		for range 2 {
			for _, s := range []*Store{one, other} {
				c, err := s.GetContext(ctx, ContextQuery{})
				var got []string
				for _, m := range c.GeneralDoDont {
					got = append(got, m.Content)
				}
				if err != nil || len(got) != min(all, maxDoDont) || !slices.Equal(got[:min(len(first), len(got))], first) {
					t.Fatalf("%s: got %q, %v, want %d that begin with %q", when, got, err, min(all, maxDoDont), first)
				}
				says := fmt.Sprintf("general_do_dont shows %d of %d memories", maxDoDont, all)
				if got := strings.Contains(strings.Join(c.Warnings, "\n"), says); got != (all > maxDoDont) {
					t.Fatalf("%s: the warnings are %q, want one that says %q: %v", when, c.Warnings, says, all > maxDoDont)
				}
				if s == one && ctx != t.Context() {
					return // a transaction belongs to its handle
				}
			}
		}
	}
	add := func(ctx context.Context, s *Store, content string, importance Importance) Memory {
		t.Helper()
		m, err := s.AddMemory(ctx, NewMemory{Content: content, Classification: ClassDo, Importance: importance})
		if err != nil {
			t.Fatal(err)
		}
		return m.Memory
	}
	for i := range maxDoDont {
		add(t.Context(), one, fmt.Sprint("do ", i), "")
	}
	check(t.Context(), "at first", maxDoDont, fmt.Sprint("do ", maxDoDont-1))
	high := add(t.Context(), other, "high", ImportanceHigh)
	check(t.Context(), "after an addition", maxDoDont+1, "high", fmt.Sprint("do ", maxDoDont-1))
	undone := errors.New("undone")
	err := one.Transaction(t.Context(), func(ctx context.Context) error {
		add(ctx, one, "critical", ImportanceCritical)
		check(ctx, "in a transaction", maxDoDont+2, "critical", "high")
		return undone
	})
	if !errors.Is(err, undone) {
		t.Fatalf("got %v, want %v", err, undone)
	}
	check(t.Context(), "after it was undone", maxDoDont+1, "high")
	archived := "archived"
	if _, err := one.UpdateMemory(t.Context(), high.ID, MemoryUpdate{State: &archived}); err != nil {
		t.Fatal(err)
	}
	check(t.Context(), "after an update", maxDoDont, fmt.Sprint("do ", maxDoDont-1))
	add(t.Context(), other.As(Access{User: "bob"}), "bob's", ImportanceCritical)
	check(t.Context(), "after another user's addition", maxDoDont, fmt.Sprint("do ", maxDoDont-1))
}
