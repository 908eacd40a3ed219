package text

import "unicode/utf8"

// Scripts that are written without spaces. Without a dictionary their words cannot be separated, so a run is
// indexed by its characters and by its overlapping pairs. A search uses the pairs, which are nearly as selective
// as words; a search for one character uses that character.

// maxUnitBytes bounds one character with its marks, so that a pair does not exceed the size of a term.
const maxUnitBytes = MaxTermBytes / 2

// continuous emits the run at s[i:] and returns where it ends.
func (a *analyzer) continuous(s string, i int) int {
	first, last := len(a.tokens), 0 // last is where the character before begins in a.folded
	a.folded = a.folded[:0]
	for i < len(s) {
		r, size := utf8.DecodeRuneInString(s[i:])
		k := classOf(r)
		if k == classIgnored {
			i += size
			continue
		}
		if k != classContinuous {
			break
		}
		start := len(a.folded)
		var end int
		a.folded, end = appendUnit(a.folded, s, i)
		i = end
		if start > 0 {
			a.emit(a.folded[last:], rolePair)
		}
		a.emit(a.folded[start:], roleLetter)
		last = start
	}
	if len(a.tokens) == first+1 {
		a.tokens[first].role = roleWord // a character alone is a word
	}
	return i
}

// appendUnit appends the character at s[i:] with the marks that belong to it, and returns where it ends. A
// Khmer coeng and a Burmese virama bind the next letter, too.
func appendUnit(dst []byte, s string, i int) ([]byte, int) {
	start, bound := len(dst), true
	for i < len(s) {
		r, size := utf8.DecodeRuneInString(s[i:])
		k := classOf(r)
		if k == classIgnored {
			i += size
			continue
		}
		if k != classMark && !(bound && k == classContinuous) {
			break
		}
		if len(dst)-start+size <= maxUnitBytes {
			dst = appendFolded(dst, r, k)
		}
		bound = r == 0x17d2 || r == 0x1039
		i += size
	}
	return dst, i
}
