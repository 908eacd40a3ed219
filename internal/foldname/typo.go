package foldname

import (
	"slices"
	"strings"
	"unicode"
)

// Lengths of keys, in characters, from which one and two differences pass for typing errors. Between names of the same
// letters (apollo and appolo) two do so sooner. In a script without letters a character is a word, so one more is
// another name sooner.
const (
	oneTypo     = 4
	sameLetters = 6
	twoTypos    = 8
	oneTypoHan  = 6
)

// longest bounds the keys that are compared: nobody mistypes what is longer.
const longest = 256

// Typo reports whether one of two keys may be the other with one or two typing errors (a character left out, added or
// replaced, or two swapped). Keys that are told apart on purpose are not: those that differ in digits and numerals only
// (v1 and v2, app and app-2), or in one word of at most two characters (team a and team b, eu-west and us-west).
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

// allowance is how many differences pass for typing errors.
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

// letters is each of the characters once, sorted.
func letters(key []rune) string {
	sorted := slices.Clone(key)
	slices.Sort(sorted)
	return string(slices.Compact(sorted))
}

func ideograph(r rune) bool { return unicode.Is(unicode.Han, r) }

// distance is the Damerau-Levenshtein distance of adjacent swaps (optimal string alignment), or something larger than
// most once it is larger.
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

// numbered reports whether two keys are the same but for digits and numerals, and what joins them to a name.
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

// shortWord reports whether two keys have the same words but for one, which is short in both.
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
