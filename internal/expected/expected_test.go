package expected_test

import (
	"testing"

	"github.com/souvenir-ai/souvenir/internal/expected"
)

func TestTransactionsOfARequestAreNumbered(t *testing.T) {
	one, again, other := expected.Like(t.Context(), "page"), expected.Like(t.Context(), "page"),
		expected.Like(t.Context(), "other page")
	first, second := expected.Next(one), expected.Next(one)
	if first == second || first != expected.Next(again) || second != expected.Next(again) ||
		first == expected.Next(other) {
		t.Errorf("got %q and %q, want two keys, which are the same for the same request alone", first, second)
	}
	if got := expected.Next(t.Context()); got != "" {
		t.Errorf("a context of no request: got %q, want none", got)
	}
}

func TestAPartHasTransactionsOfItsOwn(t *testing.T) {
	one, again := expected.Like(t.Context(), "page"), expected.Like(t.Context(), "page")
	part, partAgain := expected.Part(one, "menu"), expected.Part(again, "menu")
	first := expected.Next(one)
	if got := expected.Next(part); got == first || got != expected.Next(partAgain) || got == expected.Next(part) {
		t.Errorf("got %q, want a key that is the same for the same part alone", got)
	}
	if second := expected.Next(again); second != first {
		t.Errorf("beside the part: got %q, want %q", second, first)
	}
	if got := expected.Next(expected.Part(t.Context(), "menu")); got != "" {
		t.Errorf("a part of no request: got %q, want none", got)
	}
}
