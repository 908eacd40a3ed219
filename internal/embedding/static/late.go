package static

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/souvenir-ai/souvenir/internal/simd"
)

// Late interaction (Khattab and Zaharia, "ColBERT", 2020) compares a question with a text token by token, after each
// has been embedded alone. Here the tokens' vectors are those of the model's table, so a text is stored as the rows of
// its tokens, two bytes each, and the cosines of a question's tokens with the vocabulary are computed as texts need
// them, once per question:
//
//	late(q, d) = sum over the tokens t of q of weight(t) * max over the tokens u of a window of d of cos(t, u)
//	             / sum of weight(t)
//
// A short text is one window. In a longer text the best window counts, because among many tokens there is always
// something similar.

const (
	windowStep  = 12             // tokens from one window to the next
	windowSize  = 2 * windowStep // tokens of a window of a longer text
	shortText   = 3 * windowStep // the most tokens of a text that is one window
	maxQuestion = 32             // tokens of a question; of a longer one, those with the highest weights
)

// QueryToken is a token of a question.
type QueryToken struct {
	Row    uint16
	Weight float32 // counts only if above 0 and finite
}

// AppendWords appends the vocabulary rows of the words of a text, without punctuation and symbols, to rows.
func (m *Model) AppendWords(rows []uint16, text string) []uint16 {
	t := tokenizer{model: m, text: text}
	t.advance()
	for row, ok := t.next(); ok; row, ok = t.next() {
		if t.kind != punctuation {
			rows = append(rows, uint16(row)) // Load checks that the rows fit
		}
	}
	return rows
}

// row writes the vector of a row to room, which has a place for each dimension, and returns it.
func (m *Model) row(i int, room []int8) []int8 {
	simd.Unpack(room, m.packed(i), &m.values)
	return room
}

// Question is a question that texts are compared with. It is for one goroutine. Close it when done.
type Question struct {
	model   *Model
	weights []float32 // of its tokens, with the sum 1
	vectors []int16   // of its tokens, and of zeros up to a multiple of simd.Together
	inverse []float32 // of their lengths; 0 for the vectors of zeros
	*questionScratch
}

// questionScratch is memory that questions reuse.
type questionScratch struct {
	places   []uint16  // by vocabulary row: 1 + the place of its cosines; 0 = not computed; all 0 between questions
	known    []uint16  // rows with cosines, by place
	cosines  []float32 // by place and vector of the question
	text     []uint32  // the places of a text's rows, from 0
	row      []int8    // of the model, unpacked
	products [maxQuestion]int32
	best     [3][maxQuestion]float32
}

var questionScratches sync.Pool // of *questionScratch; a model's size is checked on reuse

// Ask prepares a question. It returns nil if no token counts.
func (m *Model) Ask(tokens []QueryToken) *Question {
	scratch := m.scratch()
	var counted []QueryToken
	for _, t := range tokens {
		if !(t.Weight > 0 && t.Weight <= math.MaxFloat32) || int(t.Row) >= m.pieces.rows ||
			m.length(int(t.Row), m.row(int(t.Row), scratch.row)) == 0 {
			continue
		}
		if i := slices.IndexFunc(counted, func(c QueryToken) bool { return c.Row == t.Row }); i >= 0 {
			counted[i].Weight = max(counted[i].Weight, t.Weight)
			continue
		}
		counted = append(counted, t)
	}
	if len(counted) == 0 {
		questionScratches.Put(scratch)
		return nil
	}
	if len(counted) > maxQuestion {
		slices.SortStableFunc(counted, func(a, b QueryToken) int { return cmp.Compare(b.Weight, a.Weight) })
		counted = counted[:maxQuestion]
	}
	together := (len(counted) + simd.Together - 1) / simd.Together * simd.Together // at most maxQuestion, a multiple
	q := &Question{model: m, vectors: make([]int16, 0, together*m.dimensions), questionScratch: scratch}
	total := 0.0
	for _, t := range counted {
		total += float64(t.Weight)
		q.weights = append(q.weights, t.Weight)
		vector := m.row(int(t.Row), q.row)
		q.inverse = append(q.inverse, 1/m.length(int(t.Row), vector))
		for _, x := range vector {
			q.vectors = append(q.vectors, int16(x))
		}
	}
	q.vectors = q.vectors[:cap(q.vectors)]
	q.inverse = append(q.inverse, make([]float32, together-len(counted))...)
	for i := range q.weights {
		q.weights[i] = float32(float64(q.weights[i]) / total)
	}
	return q
}

func (m *Model) scratch() *questionScratch {
	s, _ := questionScratches.Get().(*questionScratch)
	if s == nil || len(s.places) != m.pieces.rows || len(s.row) != m.dimensions {
		s = &questionScratch{places: make([]uint16, m.pieces.rows), row: make([]int8, m.dimensions)}
	}
	return s
}

// Close ends the use of a question; nil is allowed.
func (q *Question) Close() {
	if q == nil {
		return
	}
	for _, row := range q.known {
		q.places[row] = 0
	}
	q.known, q.cosines = q.known[:0], q.cosines[:0]
	questionScratches.Put(q.questionScratch)
	q.questionScratch = nil
}

// Score compares a text, given by the rows of its words. It is at most 1, and 0 for a text without words. Rows outside
// the model are not similar to any token.
func (q *Question) Score(rows []uint16) float32 {
	if len(rows) == 0 {
		return 0
	}
	n := len(q.inverse)
	if len(rows) <= shortText {
		most := q.best[0][:n]
		q.most(most, rows)
		return q.weigh(most)
	}
	// A window is two steps; the last may be shorter.
	highest := float32(-1)
	before, here, both := q.best[0][:n], q.best[1][:n], q.best[2][:n]
	q.most(before, rows[:windowStep])
	for from := windowStep; from < len(rows); from += windowStep {
		q.most(here, rows[from:min(from+windowStep, len(rows))])
		for t := range both {
			both[t] = max(before[t], here[t])
		}
		highest = max(highest, q.weigh(both))
		before, here = here, before
	}
	return highest
}

// most writes the highest cosine of each token of the question with some words.
func (q *Question) most(most []float32, rows []uint16) {
	for t := range most {
		most[t] = -1
	}
	for _, row := range rows { // waiting for them one by one would take most of the time
		if int(row) < len(q.places) && q.places[row] == 0 {
			simd.Prefetch(q.model.packed(int(row)))
			q.model.lengths.list[row].Load()
		}
	}
	q.text = q.text[:0]
	for _, row := range rows {
		if int(row) >= len(q.places) {
			continue // a token without a row in the model is not similar to any token
		}
		place := q.places[row]
		if place == 0 {
			place = q.compare(row)
		}
		q.text = append(q.text, uint32(place)-1)
	}
	simd.Most(q.cosines, q.text, most)
}

func (q *Question) weigh(most []float32) (sum float32) {
	for t, weight := range q.weights {
		sum += float32(weight * most[t])
	}
	return sum
}

// compare computes the cosines of the question's vectors with a row, and returns 1 + their place.
func (q *Question) compare(row uint16) uint16 {
	q.known = append(q.known, row)
	q.places[row] = uint16(len(q.known)) // a model has fewer than 65,535 rows
	products := q.products[:len(q.inverse)]
	vector := q.model.row(int(row), q.row)
	simd.DotVectors(vector, q.vectors, products)
	inverse := float32(0)
	if length := q.model.length(int(row), vector); length > 0 {
		inverse = 1 / length
	}
	for t, product := range products {
		q.cosines = append(q.cosines, float32(product)*q.inverse[t]*inverse)
	}
	return q.places[row]
}

// lengths are the lengths of rows, computed when first needed: float32 bits, 0 for not yet.
type lengths struct {
	once sync.Once
	list []atomic.Uint32
}

// length returns the length of a row's vector, which is a whole number's root.
func (m *Model) length(row int, vector []int8) float32 {
	m.lengths.once.Do(func() { m.lengths.list = make([]atomic.Uint32, m.pieces.rows) })
	known := &m.lengths.list[row]
	if bits := known.Load(); bits != 0 {
		return math.Float32frombits(bits)
	}
	sum := 0
	for _, x := range vector {
		sum += int(x) * int(x)
	}
	length := float32(math.Sqrt(float64(sum)))
	if length > 0 {
		known.Store(math.Float32bits(length))
	}
	return length
}
