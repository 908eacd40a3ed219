package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Exactness is how much a term of a search looks like a name or identifier, which a wanted memory contains exactly. It
// depends only on the search text; the index shows how rare the term is.
type Exactness uint8

// Levels of exactness, from the lowest.
const (
	Ordinary Exactness = iota // a word among others
	// a capitalised word inside a sentence, an acronym, a short number, a word of a short search
	Name
	Identifier // a code, a version, a long number, camelCase, snake_case, a word of an address or path
)

// askWords are words of questions about something. They are stems, and never names.
var askWords = wordSet(`know known tell show find look say said mean happen anyth someth everyth`)

// In a search text with at most this many other words, or pairs of characters, each of them may be a name.
const (
	fewWords = 2
	fewPairs = 4 // without grammar
)

// chunk is a part of the search text without ASCII space and without characters past ASCII.
type chunk struct {
	end     int  // where it ends
	address bool // it is an address or a path
}

// judge sets the exactness of the tokens from first on, which the text s[from:to] gave.
func (a *analyzer) judge(s string, from, to, first int) {
	tokens := a.tokens[first:]
	if len(tokens) == 0 {
		return
	}
	if from >= a.chunk.end {
		a.chunk = chunkAt(s, from)
	}
	word := strings.TrimRight(s[from:to], "'’")
	exact := exactnessOf(word)
	switch {
	case exact == Ordinary && isCapitalised(word) && !beginsSentence(s[:from]):
		exact = Name
	}
	if a.chunk.address {
		for i := range tokens {
			tokens[i].chunk = a.chunk.end
		}
		if len(word) > 2 {
			exact = Identifier
		}
	}
	last := &tokens[len(tokens)-1]
	if last.role == roleWord || last.role == roleWhole {
		last.exact = exact
	}
	if exact != Identifier {
		return
	}
	// the name of a part is less specific than the whole, and counts only if the whole is too long
	for i := range tokens[:len(tokens)-1] {
		if tokens[i].role == roleWhole || last.role == rolePart && to-from > MaxTermBytes {
			tokens[i].exact = Name
		}
	}
}

// judgeShort raises the words of a short search text to names.
func (a *analyzer) judgeShort(stops bool, language map[string]bool) {
	words, pairs := 0, 0
	a.eachPlain(stops, func(t *token, word string) {
		switch {
		case t.role == roleWord:
			words++
		case lightness(word, t.role, language) == 1:
			pairs++
		}
	})
	a.eachPlain(stops, func(t *token, word string) {
		few := t.role == roleWord && words <= fewWords || t.role == rolePair && pairs <= fewPairs
		if t.exact == Ordinary && few && (stops || lightness(word, t.role, language) == 1) {
			t.exact = Name
		}
	})
}

// eachPlain visits the words and pairs that can be names.
func (a *analyzer) eachPlain(stops bool, visit func(t *token, word string)) {
	start := 0
	for i := range a.tokens {
		t := &a.tokens[i]
		word := a.out[start:t.end]
		start = t.end
		if t.stop && !stops || t.role != roleWord && t.role != rolePair || askWords[string(word)] {
			continue
		}
		visit(t, string(word))
	}
}

// exactnessOf judges a word by its form.
func exactnessOf(word string) Exactness {
	var letters, digits, uppers, joints, hyphens, segment, longest int
	inner, initial := false, 0 // letters before the first digit
	before := classOther
	for _, r := range word {
		k := classOf(r)
		switch k {
		case classDigit:
			digits++
		case classLower, classUpper:
			letters++
			if digits == 0 {
				initial++
			}
			if k == classUpper {
				uppers++
				inner = inner || before == classLower
			}
		case classConnector:
			if r == '_' || r == '.' {
				joints++
			} else if !isApostrophe(r) {
				hyphens++
			}
			segment = -1
		case classContinuous:
			return Ordinary
		}
		if segment++; k != classConnector {
			longest = max(longest, segment)
		}
		before = k
	}
	switch {
	case longest < 2: // e.g, U.S
		return Ordinary
	case digits > 0 && letters > 0:
		switch {
		case initial == 0 && hyphens+joints == 0 && letters <= 2 && digits <= 3: // 2nd, 7pm, 40km
			return Ordinary
		case digits+letters <= 3: // T12, Q3, B-2
			return Name
		}
		return Identifier
	case isDate(word):
		return Ordinary
	case digits >= 5 || digits > 3 && joints+hyphens > 0:
		return Identifier
	case digits > 0:
		if digits < 3 || digits == 4 && hyphens+joints == 0 && (word[:2] == "19" || word[:2] == "20") { // a count, a year
			return Ordinary
		}
		return Name
	case joints > 0, inner && longest > 4, uppers == letters && hyphens > 0:
		return Identifier
	case uppers == letters && uppers > 2:
		return Name
	}
	return Ordinary
}

// isDate reports whether a number with joints is a day, in any order of year, month and day.
func isDate(word string) bool {
	parts := strings.FieldsFunc(word, func(r rune) bool { return classOf(r) == classConnector })
	if len(parts) != 3 {
		return false
	}
	year, months := 0, 0
	for _, part := range parts {
		switch {
		case len(part) == 4 && (part[:2] == "19" || part[:2] == "20"):
			year++
		case len(part) <= 2 && (len(part) == 1 || part[0] <= '3'):
			months++
		}
	}
	return year == 1 && months == 2
}

func isCapitalised(word string) bool {
	r, _ := utf8.DecodeRuneInString(word)
	return classOf(r) == classUpper && utf8.RuneCountInString(word) > 1
}

// beginsSentence reports whether a word after s begins a sentence, and so is always capitalised.
func beginsSentence(s string) bool {
	s = strings.TrimRightFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune(`"'“”„«»‘’()[]*_¿¡`, r)
	})
	if s == "" {
		return true
	}
	r, _ := utf8.DecodeLastRuneInString(s)
	return strings.ContainsRune(".?!:。？！：", r)
}

// chunkAt returns the chunk of s that begins at from.
func chunkAt(s string, from int) chunk {
	end := from
	for end < len(s) && s[end] > ' ' && s[end] < utf8.RuneSelf {
		end++
	}
	start := from
	for start > 0 && s[start-1] > ' ' && s[start-1] < utf8.RuneSelf {
		start--
	}
	return chunk{max(end, from+1),
		isAddress(strings.Trim(strings.TrimRight(s[start:end], "/\"'`()[]<>.,;:!?"), "\"'`()[]<>"))}
}

// isAddress reports whether s is a URL, an e-mail address, a host with a port or a path.
func isAddress(s string) bool {
	if at := strings.IndexByte(s, '@'); at > 0 && at < len(s)-1 {
		return true
	}
	slashes := strings.Count(s, "/") + strings.Count(s, `\`)
	switch {
	case strings.Contains(s, "://"), strings.Contains(s, "::"), slashes > 1:
		return true
	case slashes == 1:
		return strings.ContainsAny(s, "~._0123456789")
	}
	host, port, found := strings.Cut(s, ":")
	return found && strings.ContainsAny(host, ".") && port != "" && isDigit(port[0])
}
