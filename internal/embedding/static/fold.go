package static

import "unicode/utf8"

// class is the effect of a character on the word it is in.
type class uint8

const (
	letter      class = iota // continues a word
	space                    // ends it
	punctuation              // is a word of its own: punctuation and symbols, emoji among them
	unspaced                 // Han, kana, Thai and other scripts written without spaces
	drop                     // skipped: control characters, accents, broken UTF-8
	end                      // the end of the text; never in a file
	classes     = 8          // page entries below this are a class
)

// folds is a frozen table of Unicode: the class of each character, and its form in lower case, without accents and in
// its compatible form. It is in the model file rather than in code, since the vectors depend on exactly this folding,
// and another Unicode version must not change the tokens.
type folds struct {
	numbers      []byte // uint16 page of each 256 characters
	pages        []byte // uint16: a class, or classes + the index of a replacement
	replacements stringTable
	ascii        [utf8.RuneSelf]class
	lower        [utf8.RuneSelf]byte
}

func (f *folds) entry(c rune) int {
	return int(uint16At(f.pages, int(uint16At(f.numbers, int(c>>8)))<<8|int(c&0xff)))
}

// check makes every lookup safe: pages in range, replacements in range, final, and not empty of meaning.
func (f *folds) check(pages int) error {
	for i := range pageCount {
		if n := int(uint16At(f.numbers, i)); n >= pages {
			return malformed("characters %#x use page %d of %d", i<<8, n, pages)
		}
	}
	count := len(f.replacements.offsets)/4 - 1
	for i := range 256 * pages {
		if e := int(uint16At(f.pages, i)); e >= classes+count || e > int(drop) && e < classes {
			return malformed("page entry %d is %d, want a class or one of %d replacements", i, e, count)
		}
	}
	for i := range count {
		s := f.replacements.at(i)
		if !utf8.Valid(s) {
			return malformed("replacement %d is not UTF-8", i)
		}
		for _, c := range string(s) {
			if f.entry(c) >= classes {
				return malformed("replacement %d holds %q, which is replaced itself", i, c)
			}
		}
	}
	for c := range f.ascii {
		e := f.entry(rune(c))
		f.ascii[c], f.lower[c] = class(e), byte(c)
		if e >= classes {
			s := f.replacements.at(e - classes)
			if len(s) != 1 || s[0] >= utf8.RuneSelf {
				return malformed("%q is replaced by %q, want one ASCII character", rune(c), s)
			}
			f.ascii[c], f.lower[c] = class(f.entry(rune(s[0]))), s[0]
		}
	}
	return nil
}
