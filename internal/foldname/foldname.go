// Package foldname compares the names of users and projects that people and models write.
package foldname

import (
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Key folds a name so that equal names have equal keys: without regard to case, width, spaces, ways of writing one
// character, and invisible characters (Unicode's NFKC_Casefold: UAX #44, D147 of the core specification).
// Look-alike letters of different alphabets stay different. A key can be several times as long as its name, and it
// is empty for a name of invisible characters.
func Key(name string) string {
	folded := strings.Map(func(r rune) rune {
		switch {
		case Unseen(r):
			return -1
		case 0xab70 <= r && r <= 0xabbf: // Cherokee folds to capitals, and cases.Fold swaps them with the small letters
			return r - 0xab70 + 0x13a0
		case 0x13f8 <= r && r <= 0x13fd:
			return r - 8
		}
		return r
	}, cases.Fold().String(norm.NFKC.String(name)))
	return strings.Join(strings.Fields(norm.NFKC.String(folded)), " ")
}

// Unseen reports whether a character is normally invisible: joiners, directions, variation selectors, tags.
func Unseen(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
