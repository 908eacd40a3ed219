package keyring

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"hash"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// termBytes is the number of bytes of a keyed hash that represent a term of full text. Among n different terms of a
// user, two collide with a probability of n²/2⁸¹: less than one in 10¹² for a million.
const termBytes = 10

// terms encodes it as text that FTS5's tokenizer ascii keeps as one token, and PostgreSQL as one word.
var terms = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// blinder blinds terms of one owner, for one goroutine at a time.
type blinder struct {
	mac  hash.Hash
	sum  []byte
	buf  []byte
	sure bool // the key was looked up in this transaction
}

// ofTerm is the purpose of blinded terms.
const ofTerm = "term"

func (k *key) blinder() *blinder { return &blinder{mac: hmac.New(sha256.New, k.blind)} }

// append appends the blinded form of a term.
func (b *blinder) append(list []byte, term string) []byte {
	b.mac.Reset()
	b.buf = append(append(b.buf[:0], ofTerm+"\x00"...), term...)
	b.mac.Write(b.buf)
	b.sum = b.mac.Sum(b.sum[:0])
	return terms.AppendEncode(list, b.sum[:termBytes])
}

// list blinds terms separated by spaces, and keeps their order.
func (b *blinder) list(text string) string {
	if text == "" {
		return ""
	}
	n := strings.Count(text, " ") + 1
	all := make([]byte, 0, n*(terms.EncodedLen(termBytes)+1))
	for i := 0; i < n; i++ {
		var term string
		term, text, _ = strings.Cut(text, " ")
		if i > 0 {
			all = append(all, ' ')
		}
		if term != "" {
			all = b.append(all, term)
		}
	}
	return string(all)
}

func (b *blinder) each(sought []string) []string {
	all := make([]string, len(sought))
	for i, term := range sought {
		all[i] = string(b.append(nil, term))
	}
	return all
}

// words is full text with terms blinded under the key of the owner of a passage's partition. Callers pass plain terms.
type words struct {
	db.Words
	in *transactionKeys
}

// counting is words for an engine that counts how often a passage has a term.
type counting struct {
	words
	engine db.Counting
}

func (in *transactionKeys) words(engine db.Words) db.Words {
	w := words{engine, in}
	if c, able := engine.(db.Counting); able {
		return counting{w, c}
	}
	return w
}

func (w words) Put(passage int64, content, tags string, replaces bool) error {
	b, err := w.in.forWriting(passage >> kernel.PassageBits)
	if err != nil {
		return err
	}
	return w.Words.Put(passage, b.list(content), b.list(tags), replaces)
}

// sought returns the blinded forms of terms in a range; none if its owner has no key, and so no terms.
func (w words) sought(in db.Range, terms []string) ([]string, error) {
	b, err := w.in.forSearch(in)
	if err != nil || b == nil {
		return nil, err
	}
	return b.each(terms), nil
}

func (w words) Count(in db.Range, terms []string) (int, error) {
	blinded, err := w.sought(in, terms)
	if err != nil || len(blinded) == 0 {
		return 0, err
	}
	return w.Words.Count(in, blinded)
}

func (w words) CountMemories(in db.Range, terms []string, limit int) (int, error) {
	blinded, err := w.sought(in, terms)
	if err != nil || len(blinded) == 0 {
		return 0, err
	}
	return w.Words.CountMemories(in, blinded, limit)
}

func (w words) Best(in db.Range, terms []string, limit int) ([]int64, error) {
	blinded, err := w.sought(in, terms)
	if err != nil || len(blinded) == 0 {
		return nil, err
	}
	return w.Words.Best(in, blinded, limit)
}

func (c counting) Frequencies(in db.Range, passages []int64, terms []string, fn func(db.Frequency) error) error {
	blinded, err := c.sought(in, terms)
	if err != nil || len(blinded) == 0 {
		return err
	}
	return c.engine.Frequencies(in, passages, blinded, fn)
}

// StoredWords is for checks. It returns full text in its stored form, and a function that converts a passage's terms,
// separated by spaces, to that form. Without the key of the passage's owner the form is empty.
func StoredWords(w db.Words) (stored db.Words, form func(passage int64, terms string) (string, error)) {
	var b words
	switch w := w.(type) {
	case words:
		b = w
	case counting:
		b = w.words
	default:
		return w, func(_ int64, terms string) (string, error) { return terms, nil }
	}
	return b.Words, func(passage int64, terms string) (string, error) {
		blinder, err := b.in.forSearch(kernel.PassageRange(passage >> kernel.PassageBits))
		if err != nil || blinder == nil {
			return "", err
		}
		return blinder.list(terms), nil
	}
}
