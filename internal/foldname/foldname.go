// Package foldname compares names that people and models write: of users and of projects.
package foldname

import (
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Key brings a name to the form in which two names are the same: without regard to case, width, spaces, ways of writing
// one character, and characters that are not shown (Unicode's NFKC_Casefold: UAX #44, D147 of the core specification).
// Letters of different alphabets that look alike stay different. A key can be several times as long as its name, and it
// is empty for a name of characters that are not shown.
func Key(name string) string {
	folded := strings.Map(func(r rune) rune {
		switch {
		case Unseen(r):
			return -1
		case 0xab70 <= r && r <= 0xabbf: // Cherokee folds to its capitals, and cases.Fold swaps them with the small letters
			return r - 0xab70 + 0x13a0
		case 0x13f8 <= r && r <= 0x13fd:
			return r - 8
		}
		return r
	}, cases.Fold().String(norm.NFKC.String(name)))
	return strings.Join(strings.Fields(norm.NFKC.String(folded)), " ")
}

// Unseen reports whether a character is normally not shown: joiners, directions, variation selectors, tags.
func Unseen(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
