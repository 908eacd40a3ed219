package storetest

import (
	"cmp"
	"context"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/souvenir-ai/souvenir"
)

// Words is an embedder for tests: a text's vector counts its words, and words with the same meaning count as one. Texts
// without a common meaning have the similarity 0, so tests can predict similarities from words.
type Words struct {
	// Version distinguishes models. Vectors of different versions have nothing in common, even for the same texts.
	// Empty means "1".
	Version string
}

const wordDimensions = 512

// meanings lists words with the same meaning but no common stem, so that full text does not find them.
var meanings = [][]string{
	{"car", "automobile", "vehicle"},
	{"dog", "hound", "puppy"},
	{"doctor", "physician"},
	{"house", "dwelling"},
	{"purchase", "acquisition"},
	{"ocean", "sea"},
	{"coffee", "espresso"},
}

// Model returns the identity of the model.
func (w Words) Model() string { return "words-" + cmp.Or(w.Version, "1") }

// Dimensions returns the size of the vectors, which is the same in all versions.
func (Words) Dimensions() int { return wordDimensions }

// Embed returns the vectors of texts, for any purpose.
func (w Words) Embed(ctx context.Context, _ souvenir.Purpose, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		vectors[i] = w.Vector(text)
	}
	return vectors, ctx.Err()
}

// Vector returns the vector of a text; a text without words has the zero vector.
func (w Words) Vector(text string) []float32 {
	vector := make([]float32, wordDimensions)
	for word := range strings.FieldsFuncSeq(strings.ToLower(text),
		func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		for _, same := range meanings {
			if slices.Contains(same, word) {
				word = same[0]
			}
		}
		h := fnv.New32a()
		h.Write([]byte(w.Version + " " + word))
		vector[h.Sum32()%wordDimensions]++
	}
	return vector
}

// Switch is an embedder that can be made to fail or wait, and records its work.
type Switch struct {
	souvenir.Embedder

	mu      sync.Mutex
	broken  error
	allowed int // texts that are still embedded before it breaks; negative: no bound
	texts   []string
	held    *hold
}

// hold is a call that waits.
type hold struct{ reached, release chan struct{} }

// NewSwitch returns a switch in front of an embedder.
func NewSwitch(e souvenir.Embedder) *Switch { return &Switch{Embedder: e, allowed: -1} }

// Break makes the embedder fail from now on.
func (s *Switch) Break(err error) { s.set(err, 0) }

// BreakAfter makes the embedder fail after some more texts.
func (s *Switch) BreakAfter(texts int, err error) { s.set(err, texts) }

// Mend makes the embedder work again.
func (s *Switch) Mend() { s.set(nil, -1) }

func (s *Switch) set(broken error, allowed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken, s.allowed = broken, allowed
}

// Hold makes the next call wait, and succeed even if the embedder is broken. It returns a channel that is closed
// when the call waits, and a function that releases it.
func (s *Switch) Hold() (reached <-chan struct{}, release func()) {
	h := &hold{make(chan struct{}), make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = h
	return h.reached, sync.OnceFunc(func() { close(h.release) })
}

// Texts returns the texts embedded so far, documents and queries.
func (s *Switch) Texts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.texts)
}

// Embed passes the call on, unless it has to fail or wait.
func (s *Switch) Embed(ctx context.Context, purpose souvenir.Purpose, texts []string) ([][]float32, error) {
	held, err := s.open(texts)
	if held != nil {
		close(held.reached)
		select {
		case <-held.release:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if err != nil {
		return nil, err
	}
	return s.Embedder.Embed(ctx, purpose, texts)
}

func (s *Switch) open(texts []string) (*hold, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.held
	s.held = nil
	if held == nil && s.broken != nil {
		if s.allowed < len(texts) {
			return nil, s.broken
		}
		s.allowed -= len(texts)
	}
	s.texts = append(s.texts, texts...)
	return held, nil
}
