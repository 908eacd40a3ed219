// Package tokens cuts texts into the token ids of a model's vocabulary, exactly like the tokenizer that the model was
// trained with: WordPiece as in BERT, and SentencePiece Unigram as in XLM-R. It reads tokenizer.json (of the Hugging
// Face library tokenizers), vocab.txt and sentencepiece.bpe.model. The files are untrusted: any content gives a
// tokenizer or an error.
package tokens

import (
	"math"
	"strings"
	"unicode/utf8"
)

// Tokenizer turns texts into token ids. It is safe for concurrent use.
type Tokenizer struct {
	raw, normal added // special tokens found in the text as it is, and in the normalised text
	normalize   []step
	split       []splitter
	model       model
	before      []int32 // of every text: [CLS] or <s>
	after       []int32 // [SEP] or </s>
	size        int     // of the vocabulary: one more than the largest id
}

// model cuts a piece of the splitters, such as a word, into ids.
type model interface {
	encode(ids []int32, word string) []int32
	size() int
}

// step transforms a whole text.
type step func(text string) string

// splitter cuts a text into pieces; first reports whether the text is the beginning of Encode's argument.
type splitter func(text string, first bool) []string

// Size is one more than the largest id.
func (t *Tokenizer) Size() int { return t.size }

// Overhead is the number of ids that Encode puts around every text.
func (t *Tokenizer) Overhead() int { return len(t.before) + len(t.after) }

// Encode appends a text's ids, at most limit of them, to ids. A longer text is cut at its end; the ids around every
// text are kept. A limit of 0 means none.
func (t *Tokenizer) Encode(ids []int32, text string, limit int) []int32 {
	text = clip(text)
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	if limit <= 0 {
		limit = math.MaxInt - len(ids)
	}
	start := len(ids)
	ids = append(ids, t.before...)
	ids = t.encodeText(ids, text, start+max(limit-len(t.after), len(t.before)))
	ids = append(ids, t.after...)
	return ids[:min(len(ids), start+limit)] // a limit may be too small even for the ids around the text
}

// encodeText appends the ids of a text, until there are most of them.
func (t *Tokenizer) encodeText(ids []int32, text string, most int) []int32 {
	for i, part := range t.raw.cut(text) {
		if part.id >= 0 {
			ids = append(ids, part.id)
			continue
		}
		normal := part.text
		for _, change := range t.normalize {
			normal = clip(change(normal))
		}
		for j, part := range t.normal.cut(normal) {
			if part.id >= 0 {
				ids = append(ids, part.id)
				continue
			}
			ids = t.encodeNormal(ids, part.text, i == 0 && j == 0, most)
		}
		if len(ids) >= most {
			break
		}
	}
	return ids[:min(len(ids), most)]
}

// longestText bounds a text while it is normalised, in bytes: the steps of a hostile file could make it grow without
// end.
const longestText = 1 << 20

// clip cuts a text that is too long, between characters.
func clip(text string) string {
	if len(text) <= longestText {
		return text
	}
	end := longestText
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// encodeNormal appends the ids of a normalised text, and ends soon after there are most of them.
func (t *Tokenizer) encodeNormal(ids []int32, text string, first bool, most int) []int32 {
	pieces := []string{text}
	for _, split := range t.split {
		var cut []string
		for i, piece := range pieces {
			cut = append(cut, split(piece, first && i == 0)...)
		}
		pieces = cut
	}
	for _, piece := range pieces {
		if piece == "" {
			continue
		}
		if ids = t.model.encode(ids, piece); len(ids) >= most {
			break
		}
	}
	return ids
}

// added holds tokens that are found in texts before the model cuts them, such as [MASK].
type added struct {
	tokens []addedToken
	starts [256]bool // first bytes of the tokens
}

type addedToken struct {
	id          int32
	text        string
	singleWord  bool // only where no letter or digit is next to it
	left, right bool // includes the white space next to it
}

// part is a piece of a text, or a token found in it.
type part struct {
	text string
	id   int32 // -1: text
}

func (a *added) add(token addedToken) {
	if token.text == "" {
		return
	}
	a.tokens = append(a.tokens, token)
	a.starts[token.text[0]] = true
}

// cut finds the added tokens in a text, from left to right. Of several at one place it takes the longest.
func (a *added) cut(text string) []part {
	if len(a.tokens) == 0 {
		return []part{{text, -1}}
	}
	var parts []part
	from := 0
	for i := 0; i < len(text); {
		token := a.match(text, i)
		if token == nil {
			i++
			continue
		}
		start, stop := i, i+len(token.text)
		i = stop
		if token.singleWord && (wordAtEnd(text[:start]) || wordAtStart(text[stop:])) {
			continue
		}
		if token.left {
			start = max(len(strings.TrimRightFunc(text[:start], isSpace)), from)
		}
		if token.right {
			stop = len(text) - len(strings.TrimLeftFunc(text[stop:], isSpace))
			i = stop
		}
		if from < start {
			parts = append(parts, part{text[from:start], -1})
		}
		parts = append(parts, part{"", token.id})
		from = stop
	}
	if from < len(text) {
		parts = append(parts, part{text[from:], -1})
	}
	return parts
}

// match returns the longest token at a place of a text, nil if there is none.
func (a *added) match(text string, at int) *addedToken {
	if !a.starts[text[at]] {
		return nil
	}
	var found *addedToken
	for i := range a.tokens {
		token := &a.tokens[i]
		if strings.HasPrefix(text[at:], token.text) && (found == nil || len(token.text) > len(found.text)) {
			found = token
		}
	}
	return found
}

func wordAtEnd(text string) bool {
	r, _ := utf8.DecodeLastRuneInString(text)
	return text != "" && isWord(r)
}

func wordAtStart(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return text != "" && isWord(r)
}
