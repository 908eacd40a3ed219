package accesstoken

import (
	"strconv"
	"testing"
)

// The memory for verified tokens is bounded, whatever their number, and a token in use stays.
func TestVerifiedTokensAreBounded(t *testing.T) {
	var v verifiedTokens
	v.add("used", verifiedToken{key: "k"})
	for i := range 5 * maxVerified {
		v.add(strconv.Itoa(i), verifiedToken{})
		if i%maxVerified == 0 {
			if known, ok := v.get("used"); !ok || known.key != "k" {
				t.Fatalf(`after %d others: got %+v, known %v, want it known with key "k"`, i, known, ok)
			}
		}
		if n := len(v.young) + len(v.old); n > 2*maxVerified {
			t.Fatalf("%d are kept, want at most %v", n, 2*maxVerified)
		}
	}
	for _, token := range []string{"0", "unused", ""} {
		if _, ok := v.get(token); ok {
			t.Errorf("%q is remembered, want it forgotten", token)
		}
	}
}
