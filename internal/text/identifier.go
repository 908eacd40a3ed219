package text

import "unicode/utf8"

// Identifiers: words joined by connectors (snake_case, kebab-case, foo.bar, O'Brien), and words whose case or
// digits mark parts (camelCase, HTTPServer, iPhone15). Both the parts and the whole are terms.

// maxParts bounds the parts of one word, and the words of one whole. Anything with more is a hash or encoded data,
// whose fragments would be noise.
const maxParts = 8

// word is one word of an identifier.
type word struct {
	start int  // where it begins in analyzer.folded
	part  int  // its first inner boundary in analyzer.parts
	dot   bool // a full stop between two digits stands before it
	caps  bool // capitals only, two or more
}

// identifier reads the identifier at s[i:], emits its terms and returns where it ends.
func (a *analyzer) identifier(s string, i int) int {
	a.folded, a.words, a.parts = a.folded[:0], append(a.words[:0], word{}), a.parts[:0]
	var c caseTracker
	for i < len(s) {
		r, size := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(s[i:])
		}
		rest := s[i+size:]
		switch k := classOf(r); {
		case k.inWord():
			if at := c.next(k, len(a.folded), r, rest); at >= 0 {
				a.parts = append(a.parts, at)
			}
			a.folded = appendFolded(a.folded, r, k)
		case k == classMark:
			a.folded = utf8.AppendRune(a.folded, r)
		case k == classIgnored:
		case k == classConnector && classAt(rest).inWord():
			if isApostrophe(r) {
				if n := clitic(rest); n > 0 {
					a.closeWord(c)
					a.emitIdentifier()
					return i + size + n
				}
				if isNegation(a.folded, rest) {
					break // don't is dont
				}
			}
			a.closeWord(c)
			dot := r == '.' && c.last == classDigit && classAt(rest) == classDigit
			a.words = append(a.words, word{start: len(a.folded), part: len(a.parts), dot: dot})
			c = caseTracker{}
		case r == ',' && c.last == classDigit && isThousands(rest):
			// 1,000 is 1000
		default:
			a.closeWord(c)
			a.emitIdentifier()
			return i + a.symbolName(s[i:])
		}
		i += size
	}
	a.closeWord(c)
	a.emitIdentifier()
	return i
}

// caseTracker finds the parts of one word from its characters.
type caseTracker struct {
	last     class
	uppers   int // capitals in a row, up to here
	upperAt  int // where the last of them is
	switches int // changes between letters and digits
	switchAt int // where the last of them is
}

// next processes one more character and returns where a part begins, or -1. at is the character's own place; rest is
// the text after it.
func (c *caseTracker) next(k class, at int, r rune, rest string) int {
	part := -1
	if c.last != classOther && (k == classDigit) != (c.last == classDigit) {
		c.switches++
		c.switchAt = at
	}
	switch k {
	case classUpper:
		if c.last == classLower { // userName
			part = at
		}
		c.uppers++
		c.upperAt = at
	case classLower:
		plural := r == 's' && !classAt(rest).inWord() // IDs, URLs
		if c.uppers >= 2 && !plural {                 // HTTPServer
			part = c.upperAt
		}
		c.uppers = 0
	default:
		c.uppers = 0
	}
	c.last = k
	return part
}

// closeWord ends the last word. One change between letters and digits is a boundary (5km, gpt4, 2nd); more are
// a code, which has no parts.
func (a *analyzer) closeWord(c caseTracker) {
	w := &a.words[len(a.words)-1]
	w.caps = c.uppers >= 2 && c.uppers == len(a.folded)-w.start
	if c.switches != 1 {
		return
	}
	a.parts = append(a.parts, c.switchAt)
	for i := len(a.parts) - 1; i > w.part && a.parts[i] < a.parts[i-1]; i-- {
		a.parts[i], a.parts[i-1] = a.parts[i-1], a.parts[i]
	}
}

// emitIdentifier emits the terms of the words read.
func (a *analyzer) emitIdentifier() {
	alone := len(a.words) == 1
	for i, w := range a.words {
		end, lastPart := len(a.folded), len(a.parts)
		if !alone && i+1 < len(a.words) {
			end, lastPart = a.words[i+1].start, a.words[i+1].part
		}
		parts := a.parts[w.part:lastPart]
		switch {
		case len(parts) > 0 && len(parts) < maxParts:
			a.emitParts(w.start, parts, end)
			if end-w.start <= MaxTermBytes {
				a.emit(a.folded[w.start:end], roleWhole)
			}
		case alone:
			a.emit(a.folded[w.start:end], roleWord)
			if w.caps { // US is not us, IT not it
				a.tokens[len(a.tokens)-1].stop = false
			}
		default:
			a.emit(a.folded[w.start:end], rolePart)
		}
	}
	if !alone && len(a.words) <= maxParts {
		a.emitWhole()
	}
}

// emitParts emits the parts of one word, without the ending of an ordinal number.
func (a *analyzer) emitParts(start int, parts []int, end int) {
	for i := 0; i <= len(parts); i++ {
		to := end
		if i < len(parts) {
			to = parts[i]
		}
		w := a.folded[start:to]
		switch string(w) {
		case "st", "nd", "rd", "th":
			if i == 0 || !isDigit(a.folded[start-1]) {
				a.emit(w, rolePart)
			}
		default:
			a.emit(w, rolePart)
		}
		start = to
	}
}

// emitWhole emits the words joined. Digits separated by a full stop stay separated by a middle dot, since a term cannot
// contain a full stop. The v of a version is left out.
func (a *analyzer) emitWhole() {
	start := len(a.out)
	for i, w := range a.words {
		end := len(a.folded)
		if i+1 < len(a.words) {
			end = a.words[i+1].start
		}
		if w.dot {
			a.out = append(a.out, "·"...)
		}
		text := a.folded[w.start:end]
		if i == 0 && a.words[1].dot && len(text) > 1 && text[0] == 'v' && isDigit(text[1]) {
			text = text[1:]
		}
		a.out = append(a.out, text...)
	}
	if len(a.out)-start > MaxTermBytes {
		a.out = a.out[:start]
		return
	}
	a.finish(start, roleWhole)
}

// symbolName adds the name of a language whose sign would be lost: C++ is c, cplusplus; C# is c, csharp. s begins
// after the identifier just emitted; it returns how much of s it used.
func (a *analyzer) symbolName(s string) int {
	name, sign := "", 0
	switch {
	case len(a.words) > 1 || len(a.folded) > 16:
	case len(s) >= 2 && s[:2] == "++" && !classAt(s[2:]).inWord():
		name, sign = "plusplus", 2
	case s[0] == '#' && len(a.folded) == 1 && !classAt(s[1:]).inWord():
		name, sign = "sharp", 1
	}
	if sign > 0 && len(a.folded) > 0 {
		a.tokens[len(a.tokens)-1].role = rolePart
		a.emit(append(a.folded, name...), roleWhole)
	}
	return sign
}

// classAt returns the class of the first character of s.
func classAt(s string) class {
	if s == "" {
		return classOther
	}
	if s[0] < utf8.RuneSelf {
		return asciiClass[s[0]]
	}
	r, _ := utf8.DecodeRuneInString(s)
	return classOf(r)
}

// clitics are the English endings that follow an apostrophe and do not belong to the word.
var clitics = [...]string{"s", "m", "d", "re", "ve", "ll"}

// clitic returns the length of the clitic that s begins with, or 0. s begins after an apostrophe.
func clitic(s string) int {
	for _, c := range clitics {
		if len(s) >= len(c) && s[0]|0x20 == c[0] && s[len(c)-1]|0x20 == c[len(c)-1] && !classAt(s[len(c):]).inWord() {
			return len(c)
		}
	}
	return 0
}

// isNegation reports whether w and the text after its apostrophe are a verb with n't.
func isNegation(w []byte, rest string) bool {
	return len(w) > 1 && w[len(w)-1] == 'n' && rest[0]|0x20 == 't' && !classAt(rest[1:]).inWord()
}

// isThousands reports whether s, after a comma, begins with exactly three digits.
func isThousands(s string) bool {
	return len(s) >= 3 && isDigit(s[0]) && isDigit(s[1]) && isDigit(s[2]) && (len(s) == 3 || !isDigit(s[3]))
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
