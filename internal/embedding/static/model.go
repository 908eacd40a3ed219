// Package static is the built-in offline embedding model: a table of token vectors distilled from a small
// transformer (see MODEL_CARD.md), a WordPiece tokenizer and weighted mean pooling.
//
// It follows Model2Vec (Tulkens & van Dongen 2024): a text's vector is the normalised sum of its tokens' vectors. Each
// token's weight, which plays the part of smooth inverse frequency (Arora, Liang & Ma 2017), is folded into the scale
// of its vector, so that pooling is one multiply-add per dimension. A vector has four bits a dimension, which are
// unpacked where they are needed.
package static

import (
	_ "embed"
	"math"
	"sync"

	"github.com/souvenir-ai/souvenir/internal/simd"
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
	vectors    []byte // packed as in simd, rows x dimensions / 2
	values     simd.Values
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

// Family is the prefix of the names of all versions of the built-in model.
const Family = "souvenir-static-"

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
		simd.AddPacked(dst, m.packed(row), &m.values, float32At(scales, row))
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

// packed returns the packed vector of a row.
func (m *Model) packed(row int) []byte {
	size := m.dimensions / 2
	return m.vectors[row*size : (row+1)*size]
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
