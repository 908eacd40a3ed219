// Package static is the built-in offline embedding model: a table of token vectors distilled from a small
// transformer (see MODEL_CARD.md), a WordPiece tokenizer and weighted mean pooling.
//
// It follows Model2Vec (Tulkens & van Dongen 2024): a text's vector is the normalised sum of its tokens'
// vectors. Each token's weight, which plays the part of smooth inverse frequency (Arora, Liang & Ma 2017), is
// folded into the scale that its int8 vector carries anyway, so that pooling is one multiply-add per dimension.
package static

import (
	_ "embed"
	"math"
	"sync"
)

//go:embed model.bin
var file []byte

// Model is a loaded model. It is immutable, so any number of goroutines may use it at once.
type Model struct {
	name       string
	dimensions int
	folds      folds
	pieces     pieces
	document   []byte // float32 scale of each row in a document
	query      []byte // and in a query
	vectors    []byte // int8, rows x dimensions
	lengths    *lengths
}

// Default returns the embedded model.
var Default = sync.OnceValue(func() *Model {
	m, err := Load(file)
	if err != nil {
		panic(err) // the embedded file is part of the program, and the tests load it
	}
	return m
})

// Name returns the model's name and version. Vectors of models with different names must not be compared.
func (m *Model) Name() string { return m.name }

// Dimensions returns the length of every vector.
func (m *Model) Dimensions() int { return m.dimensions }

// Rows returns the number of vocabulary entries; tokens are below it.
func (m *Model) Rows() int { return m.pieces.rows }

// Embed writes the vector of text into dst's storage, growing it if it is too small, and returns it: of unit
// length, or all zeros if the model knows none of the text's tokens. A query is a question, a document is stored
// text. Any string is valid: invalid UTF-8 is skipped.
func (m *Model) Embed(dst []float32, text string, query bool) []float32 {
	if cap(dst) < m.dimensions {
		dst = make([]float32, m.dimensions)
	}
	dst = dst[:m.dimensions]
	clear(dst)
	scales := m.document
	if query {
		scales = m.query
	}
	t := tokenizer{model: m, text: text}
	t.advance()
	for row, ok := t.next(); ok; row, ok = t.next() {
		addScaled(dst, m.vectors[row*m.dimensions:], float32At(scales, row))
	}
	normalise(dst)
	return dst
}

// Tokens returns the vocabulary rows of text, in order.
func (m *Model) Tokens(text string) []int32 {
	var out []int32
	t := tokenizer{model: m, text: text}
	t.advance()
	for row, ok := t.next(); ok; row, ok = t.next() {
		out = append(out, int32(row))
	}
	return out
}

// Piece returns the vocabulary entry of a row; one that continues a word begins with "##".
func (m *Model) Piece(row int32) string { return string(m.pieces.at(int(row))) }

// addScaled adds scale times the int8 vector to sum. Its length is a multiple of 8, which Load checks.
func addScaled(sum []float32, vector []byte, scale float32) {
	vector = vector[:len(sum)]
	for len(sum) >= 8 && len(vector) >= 8 { // slices that shrink in step need no bounds checks
		s, v := (*[8]float32)(sum), (*[8]byte)(vector)
		s[0] += scale * float32(int8(v[0]))
		s[1] += scale * float32(int8(v[1]))
		s[2] += scale * float32(int8(v[2]))
		s[3] += scale * float32(int8(v[3]))
		s[4] += scale * float32(int8(v[4]))
		s[5] += scale * float32(int8(v[5]))
		s[6] += scale * float32(int8(v[6]))
		s[7] += scale * float32(int8(v[7]))
		sum, vector = sum[8:], vector[8:]
	}
}

func normalise(v []float32) {
	var square float64
	for _, x := range v {
		square += float64(x) * float64(x)
	}
	if square == 0 {
		return
	}
	inverse := float32(1 / math.Sqrt(square))
	for i := range v {
		v[i] *= inverse
	}
}
