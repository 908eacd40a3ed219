package text

// The suffix tables of Porter2, steps 2 to 4, by their last letter. The longest suffix that matches decides,
// even when its condition then fails, so longer ones come before those they end in.

// suffixRule replaces from by to.
type suffixRule struct{ from, to string }

type suffixTable ['z' - 'a' + 1][]suffixRule

// longSuffixes is step 2: in R1. -ogi only after l, -li only after the letters of liEnding.
var longSuffixes = suffixTable{
	'i' - 'a': {
		{"biliti", "ble"}, {"lessli", "less"}, {"entli", "ent"}, {"ousli", "ous"}, {"fulli", "ful"}, {"aliti", "al"},
		{"iviti", "ive"}, {"abli", "able"}, {"alli", "al"}, {"enci", "ence"}, {"anci", "ance"}, {"bli", "ble"},
		{"ogi", "og"}, {"li", ""},
	},
	'l' - 'a': {{"ational", "ate"}, {"tional", "tion"}},
	'm' - 'a': {{"alism", "al"}},
	'n' - 'a': {{"ization", "ize"}, {"ation", "ate"}},
	'r' - 'a': {{"izer", "ize"}, {"ator", "ate"}},
	's' - 'a': {{"fulness", "ful"}, {"ousness", "ous"}, {"iveness", "ive"}},
	't' - 'a': {{"ogist", "og"}},
}

// mediumSuffixes is step 3: in R1, -ative in R2.
var mediumSuffixes = suffixTable{
	'e' - 'a': {{"alize", "al"}, {"icate", "ic"}, {"ative", ""}},
	'i' - 'a': {{"iciti", "ic"}},
	'l' - 'a': {{"ational", "ate"}, {"tional", "tion"}, {"ical", "ic"}, {"ful", ""}},
	's' - 'a': {{"ness", ""}},
}

// residualSuffixes is step 4: in R2. -ion only after s or t.
var residualSuffixes = suffixTable{
	'c' - 'a': {{"ic", ""}},
	'e' - 'a': {{"ance", ""}, {"ence", ""}, {"able", ""}, {"ible", ""}, {"ate", ""}, {"ive", ""}, {"ize", ""}},
	'i' - 'a': {{"iti", ""}},
	'l' - 'a': {{"al", ""}},
	'm' - 'a': {{"ism", ""}},
	'n' - 'a': {{"ion", ""}},
	'r' - 'a': {{"er", ""}},
	's' - 'a': {{"ous", ""}},
	't' - 'a': {{"ement", ""}, {"ment", ""}, {"ent", ""}, {"ant", ""}},
}

// find returns the rule of the longest suffix of w, and the letter before it, 0 if there is none.
func (t *suffixTable) find(w []byte) (r suffixRule, before byte, ok bool) {
	last := w[len(w)-1]
	if last == 'Y' {
		return r, 0, false
	}
	for _, r := range t[last-'a'] {
		if hasSuffix(w, r.from) {
			if n := len(w) - len(r.from); n > 0 {
				before = w[n-1]
			}
			return r, before, true
		}
	}
	return r, 0, false
}

func (s *stemmer) longSuffix() {
	r, before, ok := longSuffixes.find(s.w)
	switch {
	case !ok || !s.inR1(len(r.from)):
	case r.from == "ogi" && before != 'l':
	case r.from == "li" && (before == 0 || !liEnding.has(before)):
	default:
		s.cut(len(r.from), r.to)
	}
}

func (s *stemmer) mediumSuffix() {
	r, _, ok := mediumSuffixes.find(s.w)
	if ok && s.inR1(len(r.from)) && (r.from != "ative" || s.inR2(len(r.from))) {
		s.cut(len(r.from), r.to)
	}
}

func (s *stemmer) residualSuffix() {
	r, before, ok := residualSuffixes.find(s.w)
	if ok && s.inR2(len(r.from)) && (r.from != "ion" || before == 's' || before == 't') {
		s.cut(len(r.from), r.to)
	}
}
