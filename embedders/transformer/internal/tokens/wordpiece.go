package tokens

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// wordPiece cuts a word into the longest pieces of its vocabulary, from left to right.
type wordPiece struct {
	ids      map[string]int32
	unknown  int32
	inside   string // the prefix of pieces that do not begin a word
	maxWord  int    // characters; a longer word is unknown
	maxPiece int    // bytes of the longest piece, without the prefix
	largest  int32
}

func newWordPiece(ids map[string]int32, unknown, inside string, maxWord int) (*wordPiece, error) {
	id, ok := ids[unknown]
	if !ok {
		return nil, fmt.Errorf("the vocabulary of %d pieces has no %.40q, the piece for unknown words", len(ids), unknown)
	}
	w := &wordPiece{ids: ids, unknown: id, inside: inside, maxWord: maxWord}
	for piece, id := range ids {
		w.maxPiece = max(w.maxPiece, len(piece))
		w.largest = max(w.largest, id)
	}
	return w, nil
}

func (w *wordPiece) size() int { return int(w.largest) + 1 }

func (w *wordPiece) encode(ids []int32, word string) []int32 {
	if len(word) > w.maxWord && utf8.RuneCountInString(word) > w.maxWord {
		return append(ids, w.unknown)
	}
	begin := len(ids)
	var room [128]byte
	for at := 0; at < len(word); {
		found := false
		for end := min(len(word), at+w.maxPiece); end > at; end-- {
			if end < len(word) && !utf8.RuneStart(word[end]) {
				continue
			}
			var id int32
			if at == 0 {
				id, found = w.ids[word[:end]]
			} else {
				piece := append(append(room[:0], w.inside...), word[at:end]...)
				id, found = w.ids[string(piece)]
			}
			if found {
				ids, at = append(ids, id), end
				break
			}
		}
		if !found {
			return append(ids[:begin], w.unknown)
		}
	}
	return ids
}

// ReadVocabulary reads vocab.txt: a piece on each line, whose id is the line's number from 0.
func ReadVocabulary(r io.Reader) (map[string]int32, error) {
	ids := map[string]int32{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<10)
	line := int32(0)
	for lines.Scan() {
		if piece := strings.TrimRight(lines.Text(), "\r\n"); piece != "" {
			if line >= maxVocabulary {
				return nil, fmt.Errorf("more than %d pieces", maxVocabulary)
			}
			ids[piece] = line
		}
		line++
	}
	return ids, lines.Err()
}

// BERT makes the tokenizer of a BERT model from its vocabulary alone.
func BERT(ids map[string]int32, lowerCase bool) (*Tokenizer, error) {
	model, err := newWordPiece(ids, "[UNK]", "##", 100)
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{model: model, normalize: bertSteps(true, true, lowerCase, lowerCase), split: []splitter{splitBERT},
		size: model.size()}
	for _, name := range []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"} {
		id, ok := ids[name]
		if !ok && (name == "[CLS]" || name == "[SEP]") {
			return nil, fmt.Errorf("the vocabulary of %d pieces has no %s, which stands around every text", len(ids), name)
		}
		if ok {
			t.raw.add(addedToken{id: id, text: name})
		}
	}
	t.before, t.after = []int32{ids["[CLS]"]}, []int32{ids["[SEP]"]}
	return t, nil
}

func bertSteps(clean, chinese, accents, lowerCase bool) []step {
	var steps []step
	if clean {
		steps = append(steps, cleanText)
	}
	if chinese {
		steps = append(steps, spaceIdeographs)
	}
	if accents {
		steps = append(steps, stripAccents)
	}
	if lowerCase {
		steps = append(steps, lower)
	}
	return steps
}
