package static

import "unicode/utf8"

// maxWord is the number of bytes of a word that count. Longer words are data (base64, minified code), whose hundreds of
// meaningless pieces would drown the words around them.
const maxWord = 192

// tokenizer splits text as BERT's uncased tokenizer does (fold, split at spaces, each punctuation mark apart,
// then greedy longest-match WordPiece, Schuster & Nakajima 2012), with four differences:
//   - symbols and emoji are words of their own, not parts of the word they touch;
//   - runs of scripts without spaces are matched as they stand, so that the vocabulary can hold their words;
//   - Korean written letter by letter is put together;
//   - an unknown character is skipped, where BERT would give up the whole word as [UNK].
//
// It is an iterator over rows, all on the stack.
type tokenizer struct {
	model *Model
	text  string
	rest  []byte // the rest of a folded character's replacement

	char  [utf8.UTFMax]byte // the current folded character
	size  int               // its bytes
	class class

	word    [maxWord]byte
	n, at   int   // bytes in word, bytes matched
	kind    class // of the word
	partial bool  // the run of unspaced characters continues past the buffer
}

// advance reads the next folded character.
func (t *tokenizer) advance() {
	f := &t.model.folds
	for {
		if len(t.rest) > 0 {
			c, size := utf8.DecodeRune(t.rest)
			t.size, t.class = copy(t.char[:], t.rest[:size]), class(f.entry(c))
			t.rest = t.rest[size:]
			return
		}
		if t.text == "" {
			t.size, t.class = 0, end
			return
		}
		if c := t.text[0]; c < utf8.RuneSelf {
			t.char[0], t.size, t.class = f.lower[c], 1, f.ascii[c]
			t.text = t.text[1:]
			return
		}
		c, size := utf8.DecodeRuneInString(t.text)
		entry := f.entry(c) // U+FFFD, which broken UTF-8 decodes to, is dropped
		if entry < classes {
			t.size, t.class = copy(t.char[:], t.text[:size]), class(entry)
			t.text = t.text[size:]
			return
		}
		t.text = t.text[size:]
		t.rest = f.replacements.at(entry - classes)
	}
}

// read fills the buffer with the next word, or with more of a run that did not fit.
func (t *tokenizer) read() bool {
	if t.partial {
		t.n = copy(t.word[:], t.word[t.at:t.n])
	} else {
		for t.class == space || t.class == drop {
			t.advance()
		}
		if t.class == end {
			return false
		}
		t.kind, t.n = t.class, 0
	}
	t.at, t.partial = 0, false
	for full := false; t.class == t.kind || t.class == drop; t.advance() {
		if t.class == drop {
			continue
		}
		if !full && t.compose() {
			continue
		}
		if t.n+t.size > maxWord {
			if t.kind == unspaced {
				t.partial = true
				return true
			}
			full = true
		}
		if !full {
			t.n += copy(t.word[t.n:], t.char[:t.size])
		}
		if t.kind == punctuation {
			t.advance()
			return true
		}
	}
	return true
}

// compose joins a Korean vowel or final consonant to the end of the word, by Unicode's arithmetic: macOS writes
// file names letter by letter, but rows are of whole syllables.
func (t *tokenizer) compose() bool {
	const (
		syllables = 0xac00 // each is ((first*vowels)+vowel)*finals + final
		finals    = 28     // none is one of them
		vowels    = 21
	)
	if t.char[0] != 0xe1 || t.size != 3 || t.n < 3 { // fast path: UTF-8 of U+1000 to U+1FFF
		return false
	}
	c, _ := utf8.DecodeRune(t.char[:])
	last, size := utf8.DecodeLastRune(t.word[:t.n])
	switch {
	case 0x1161 <= c && c <= 0x1175 && 0x1100 <= last && last <= 0x1112:
		last = syllables + ((last-0x1100)*vowels+c-0x1161)*finals
	case 0x11a8 <= c && c <= 0x11c2 && syllables <= last && last <= 0xd7a3 && (last-syllables)%finals == 0:
		last += c - 0x11a7
	default:
		return false
	}
	utf8.EncodeRune(t.word[t.n-size:], last)
	return true
}

// next returns the row of the next piece.
func (t *tokenizer) next() (row int, ok bool) {
	p := &t.model.pieces
	for {
		for t.at == t.n || t.partial && t.n-t.at < p.longest {
			if !t.read() {
				return 0, false
			}
		}
		row, size := p.longestMatch(t.word[t.at:t.n], t.at > 0 && t.kind != unspaced)
		if size > 0 {
			t.at += size
			return row, true
		}
		_, size = utf8.DecodeRune(t.word[t.at:t.n])
		t.at += size
	}
}
