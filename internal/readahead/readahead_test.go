package readahead_test

import (
	"testing"

	"github.com/souvenir-ai/souvenir/internal/readahead"
)

func TestTransactionsOfARequestAreNumbered(t *testing.T) {
	one, again, other := readahead.WithKey(t.Context(), "page"), readahead.WithKey(t.Context(), "page"),
		readahead.WithKey(t.Context(), "other page")
	first, second := readahead.NextKey(one), readahead.NextKey(one)
	if first == second || first != readahead.NextKey(again) || second != readahead.NextKey(again) ||
		first == readahead.NextKey(other) {
		t.Errorf("got %q and %q, want two keys, which are the same for the same request alone", first, second)
	}
	if got := readahead.NextKey(t.Context()); got != "" {
		t.Errorf("a context of no request: got %q, want none", got)
	}
}

func TestAPartHasTransactionsOfItsOwn(t *testing.T) {
	one, again := readahead.WithKey(t.Context(), "page"), readahead.WithKey(t.Context(), "page")
	part, partAgain := readahead.Part(one, "menu"), readahead.Part(again, "menu")
	first := readahead.NextKey(one)
	if got := readahead.NextKey(part); got == first || got != readahead.NextKey(partAgain) ||
		got == readahead.NextKey(part) {
		t.Errorf("got %q, want a key that is the same for the same part alone", got)
	}
	if second := readahead.NextKey(again); second != first {
		t.Errorf("beside the part: got %q, want %q", second, first)
	}
	if got := readahead.NextKey(readahead.Part(t.Context(), "menu")); got != "" {
		t.Errorf("a part of no request: got %q, want none", got)
	}
}
