package text

import (
	"fmt"
	"hash/fnv"
	"testing"
)

// The versions identify behaviour that stored data depends on. When one of these tests fails and the change is
// intended, raise the version and record the new sum.

func TestTermsVersion(t *testing.T) {
	h := fnv.New64a()
	for _, s := range append([]string{longText, irregularForms}, seedTexts...) {
		fmt.Fprintf(h, "%q [", Terms(s))
		for i, t := range QueryTerms(s) { // weights and exactness do not affect stored data
			if i > 0 {
				fmt.Fprint(h, " ")
			}
			fmt.Fprint(h, t.Text)
		}
		fmt.Fprint(h, "]\n")
	}
	if got, want := fmt.Sprintf("%d %x", TermsVersion, h.Sum64()), "1 2290e957ef15d215"; got != want {
		t.Errorf("version and sum are %s, recorded is %s, want the same", got, want)
	}
}

func TestSplitterVersion(t *testing.T) {
	h := fnv.New64a()
	for _, s := range append([]string{longText}, seedTexts...) {
		for max := 4; max < 400; max++ {
			fmt.Fprintln(h, Split(s, max))
		}
	}
	if got, want := fmt.Sprintf("%d %x", SplitterVersion, h.Sum64()), "1 fce8a9842fcd7d95"; got != want {
		t.Errorf("version and sum are %s, recorded is %s, want the same", got, want)
	}
}
