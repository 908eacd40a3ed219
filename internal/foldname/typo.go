package foldname

import (
	"slices"
	"strings"
	"unicode"
)

// Lengths of keys, in characters, from which one and two differences count as typing errors. Names with the same
// letters (apollo and appolo) need fewer characters for two. In a script without letters a character is a word, so one
// more character is more likely another name.
const (
	oneTypo     = 4
	sameLetters = 6
	twoTypos    = 8
	oneTypoHan  = 6
)

// longest is the longest key to compare: longer names are not typed by hand.
const longest = 256

// Typo reports whether one of two keys may be the other with one or two typing errors (a character left out, added
// or replaced, or two swapped). Deliberate differences are not typing errors: digits and numerals only (v1 and v2,
// app and app-2), or one word of at most two characters (team a and team b, eu-west and us-west).
func Typo(a, b string) bool {
	if a == b {
		return false
	}
	x, y := []rune(a), []rune(b)
	allowed := allowance(x, y)
	if allowed == 0 || max(len(x), len(y)) > longest || len(x)-len(y) > allowed || len(y)-len(x) > allowed {
		return false
	}
	return distance(x, y, allowed) <= allowed && !numbered(a, b) && !shortWord(a, b)
}

// allowance returns how many differences count as typing errors.
func allowance(x, y []rune) int {
	n := min(len(x), len(y))
	if slices.ContainsFunc(x, ideograph) || slices.ContainsFunc(y, ideograph) {
		if n >= oneTypoHan {
			return 1
		}
		return 0
	}
	switch {
	case n >= twoTypos, n >= sameLetters && letters(x) == letters(y):
		return 2
	case n >= oneTypo:
		return 1
	}
	return 0
}

// letters returns the distinct characters, sorted.
func letters(key []rune) string {
	sorted := slices.Clone(key)
	slices.Sort(sorted)
	return string(slices.Compact(sorted))
}

func ideograph(r rune) bool { return unicode.Is(unicode.Han, r) }

// distance returns the Damerau-Levenshtein distance with adjacent swaps (optimal string alignment), or any larger
// number if it exceeds most.
func distance(x, y []rune, most int) int {
	before, above, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		least := i
		for j := 1; j <= len(y); j++ {
			d := above[j-1]
			if x[i-1] != y[j-1] {
				d++
			}
			d = min(d, above[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				d = min(d, before[j-2]+1)
			}
			row[j] = d
			least = min(least, d)
		}
		if least > most {
			return least
		}
		before, above, row = above, row, before
	}
	return above[len(y)]
}

// numbered reports whether two keys differ only in digits and numerals, and in the characters that join these to a
// name.
func numbered(a, b string) bool {
	bare := func(key string) string {
		without := strings.Map(func(r rune) rune {
			if unicode.IsNumber(r) || strings.ContainsRune("零〇一二三四五六七八九十百千", r) {
				return -1
			}
			return r
		}, key)
		return strings.TrimFunc(without, func(r rune) bool { return !unicode.IsLetter(r) })
	}
	return bare(a) == bare(b) && strings.ContainsFunc(a+b, func(r rune) bool {
		return unicode.IsNumber(r) || strings.ContainsRune("零〇一二三四五六七八九十百千", r)
	})
}

// shortWord reports whether two keys have the same words except for one, which is short in both.
func shortWord(a, b string) bool {
	words := func(key string) []string {
		return strings.FieldsFunc(key, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	}
	const short = 2
	x, y := words(a), words(b)
	if len(x) != len(y) || len(x) < 2 {
		return false
	}
	others := 0
	for i := range x {
		if x[i] == y[i] {
			continue
		}
		if others++; len([]rune(x[i])) > short || len([]rune(y[i])) > short {
			return false
		}
	}
	return others == 1
}
