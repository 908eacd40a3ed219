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
