package text

// English stemming: the Porter2 algorithm (M. F. Porter, "An algorithm for suffix stripping", 1980, as revised
// for the Snowball project, snowballstem.org/algorithms/english/stemmer.html), in the state of Snowball 3.
//
// It is written here, and not imported, because it then works in place on the bytes of the term being built: no
// allocation, and several times faster than the Go libraries. They also miss the corrections that separate organic
// from organize and add from ad. Apostrophes never reach it.

// stem reduces w, which is all a-z, to its stem, in w's memory. It is empty only if w is.
func stem(w []byte) []byte {
	if len(w) <= 2 {
		return w
	}
	if s, ok := wholeWordStems[string(w)]; ok {
		return append(w[:0], s...)
	}
	return stemByRule(w)
}

// stemException lists the words that the rules would spoil, with their stems.
var stemException = map[string]string{
	"skis": "ski", "skies": "sky", "sky": "sky", "idly": "idl", "gently": "gentl", "ugly": "ugli", "early": "earli",
	"only": "onli", "singly": "singl", "news": "news", "howe": "howe", "atlas": "atlas", "cosmos": "cosmos",
	"bias": "bias", "andes": "andes",
}

// stemInvariant lists the words whose -ing or -eed is not an ending.
var stemInvariant = map[string]bool{
	"inning": true, "outing": true, "canning": true, "herring": true, "earring": true, "evening": true,
	"proceed": true, "exceed": true, "succeed": true,
}

// shortR1 returns the length of the beginnings after which R1 always starts, so that unlike words keep unlike
// stems: general and generous, university and universal, internal and international. It is 0 for other words.
func shortR1(w []byte) int {
	if len(w) >= 4 && string(w[:4]) == "past" {
		return 4
	}
	if len(w) < 5 {
		return 0
	}
	switch string(w[:5]) {
	case "arsen", "emerg", "gener", "inter", "later", "organ":
		return 5
	case "commu":
		if len(w) >= 6 && w[5] == 'n' {
			return 6
		}
	case "unive":
		if len(w) >= 7 && string(w[5:7]) == "rs" {
			return 7
		}
	}
	return 0
}

func stemByRule(w []byte) []byte {
	s := stemmer{w: w}
	y := s.markConsonantY()
	s.markRegions()
	s.plural()
	s.pastAndGerund()
	s.finalY()
	s.longSuffix()
	s.mediumSuffix()
	s.residualSuffix()
	s.finalEL()
	if y {
		for i, c := range s.w {
			if c == 'Y' {
				s.w[i] = 'y'
			}
		}
	}
	return s.w
}

// stemmer holds the word and its two regions: R1 is the part after the first consonant after a vowel, R2 the
// same within R1. A suffix outside its region is part of the root. A y that acts as a consonant is written Y.
type stemmer struct {
	w      []byte
	r1, r2 int
}

// letters is a set of the letters a-z.
type letters uint32

func letterSet(s string) (set letters) {
	for _, c := range s {
		set |= 1 << (c - 'a')
	}
	return set
}

// has reports whether c is in the set; Y never is.
func (set letters) has(c byte) bool { return set>>(c-'a')&1 != 0 }

var (
	vowels   = letterSet("aeiouy")
	doubles  = letterSet("bdfgmnprt")  // doubled at the end of a verb and then undone: hopping
	liEnding = letterSet("cdeghkmnrt") // -li after one of them is a suffix: quickli

	verbEnding = letterSet("dgy") // the last letters of -ed, -ing and their adverbs
)

func isVowel(c byte) bool { return vowels.has(c) }

func hasSuffix(w []byte, suffix string) bool {
	return len(w) >= len(suffix) && string(w[len(w)-len(suffix):]) == suffix
}

// markConsonantY writes Y for each y that is a consonant, and reports whether there was one.
func (s *stemmer) markConsonantY() (marked bool) {
	for i, c := range s.w {
		if c == 'y' && (i == 0 || isVowel(s.w[i-1])) {
			s.w[i] = 'Y'
			marked = true
		}
	}
	return marked
}

func (s *stemmer) markRegions() {
	s.r1 = shortR1(s.w)
	if s.r1 == 0 {
		s.r1 = region(s.w, 0)
	}
	s.r2 = region(s.w, s.r1)
}

// region returns the offset after the first consonant that follows a vowel, looking from i.
func region(w []byte, i int) int {
	for i++; i < len(w); i++ {
		if !isVowel(w[i]) && isVowel(w[i-1]) {
			return i + 1
		}
	}
	return len(w)
}

func hasVowel(w []byte) bool {
	for _, c := range w {
		if isVowel(c) {
			return true
		}
	}
	return false
}

// endsShort reports whether w ends in a short syllable: consonant, vowel, consonant other than w, x, Y; or
// vowel, consonant at the beginning of the word; or "past", to part paste from past.
func endsShort(w []byte) bool {
	n := len(w)
	switch {
	case n < 2 || isVowel(w[n-1]):
		return false
	case !isVowel(w[n-2]):
		return hasSuffix(w, "past")
	case n == 2:
		return true
	}
	c := w[n-1]
	return !isVowel(w[n-3]) && c != 'w' && c != 'x' && c != 'Y'
}

// cut drops the last n bytes and appends to; the result is no longer than the word was.
func (s *stemmer) cut(n int, to string) { s.w = append(s.w[:len(s.w)-n], to...) }

// inR1 and inR2 report whether a suffix of n bytes is in the region.
func (s *stemmer) inR1(n int) bool { return len(s.w)-n >= s.r1 }
func (s *stemmer) inR2(n int) bool { return len(s.w)-n >= s.r2 }

// plural is step 1a.
func (s *stemmer) plural() {
	w := s.w
	switch {
	case hasSuffix(w, "sses"):
		s.cut(2, "")
	case hasSuffix(w, "ied"), hasSuffix(w, "ies"):
		if len(w) > 4 {
			s.cut(2, "")
		} else {
			s.cut(1, "")
		}
	case hasSuffix(w, "us"), hasSuffix(w, "ss"):
	case hasSuffix(w, "s"):
		if hasVowel(w[:len(w)-2]) {
			s.cut(1, "")
		}
	}
}

// pastAndGerund is step 1b.
func (s *stemmer) pastAndGerund() {
	n := 0
	switch w := s.w; {
	case !verbEnding.has(w[len(w)-1]):
	case hasSuffix(w, "eedly"), hasSuffix(w, "eed"):
		n = len("eed")
		if w[len(w)-1] == 'y' {
			n = len("eedly")
		}
		if s.inR1(n) && !stemInvariant[string(w)] {
			s.cut(n, "ee")
		}
		return
	case hasSuffix(w, "ingly"):
		n = 5
	case hasSuffix(w, "edly"):
		n = 4
	case hasSuffix(w, "ing"):
		n = 3
	case hasSuffix(w, "ed"):
		n = 2
	}
	if n == 0 || !hasVowel(s.w[:len(s.w)-n]) || stemInvariant[string(s.w)] {
		return
	}
	if n == 3 && len(s.w) == 5 && s.w[1] == 'y' && !isVowel(s.w[0]) { // dying, lying, tying
		s.cut(4, "ie")
		return
	}
	s.cut(n, "")
	w := s.w
	end := len(w)
	switch {
	case hasSuffix(w, "at"), hasSuffix(w, "bl"), hasSuffix(w, "iz"):
		s.cut(0, "e")
	case end >= 2 && w[end-1] == w[end-2] && doubles.has(w[end-1]):
		if end > 3 || w[0] != 'a' && w[0] != 'e' && w[0] != 'o' { // not add, ebb, off
			s.cut(1, "")
		}
	case s.r1 >= end && endsShort(w):
		s.cut(0, "e")
	}
}

// finalY is step 1c.
func (s *stemmer) finalY() {
	n := len(s.w)
	if n > 2 && (s.w[n-1] == 'y' || s.w[n-1] == 'Y') && !isVowel(s.w[n-2]) {
		s.w[n-1] = 'i'
	}
}

// finalEL is step 5.
func (s *stemmer) finalEL() {
	n := len(s.w)
	switch {
	case hasSuffix(s.w, "e"):
		if s.inR2(1) || s.inR1(1) && !endsShort(s.w[:n-1]) {
			s.cut(1, "")
		}
	case hasSuffix(s.w, "ll") && s.inR2(1):
		s.cut(1, "")
	}
}
