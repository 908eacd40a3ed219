package static

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// lateOf computes late interaction by its formula, in float64.
func lateOf(m *Model, tokens []QueryToken, rows []uint16) float64 {
	cosine := func(a, b uint16) float64 {
		var dot, aa, bb float64
		other := m.row(int(b), make([]int8, m.dimensions))
		for i, x := range m.row(int(a), make([]int8, m.dimensions)) {
			y := float64(other[i])
			dot, aa, bb = dot+float64(x)*y, aa+float64(x)*float64(x), bb+y*y
		}
		return dot / math.Sqrt(aa*bb)
	}
	window := func(rows []uint16) (sum float64) {
		total := 0.0
		for _, t := range tokens {
			most := -1.0
			for _, u := range rows {
				most = max(most, cosine(t.Row, u))
			}
			sum, total = sum+float64(t.Weight)*most, total+float64(t.Weight)
		}
		return sum / total
	}
	if len(rows) <= 36 {
		return window(rows)
	}
	highest := -1.0
	for from := 0; from < len(rows)-12; from += 12 {
		highest = max(highest, window(rows[from:min(from+24, len(rows))]))
	}
	return highest
}

func TestLateInteractionAgreesWithItsFormula(t *testing.T) {
	m := Default()
	random := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{1, 2, 12, 35, 36, 37, 47, 48, 49, 60, 61, 200} {
		tokens := make([]QueryToken, 1+random.IntN(8))
		for i, row := range random.Perm(m.Rows())[:len(tokens)] {
			tokens[i] = QueryToken{uint16(row), 0.1 + random.Float32()}
		}
		rows := make([]uint16, size)
		for i := range rows {
			rows[i] = uint16(random.IntN(m.Rows()))
		}
		q := m.Ask(tokens)
		got, want := q.Score(rows), lateOf(m, tokens, rows)
		if again := q.Score(rows); again != got {
			t.Errorf("%d tokens: %v, and then %v, want the same", size, got, again)
		}
		q.Close()
		if math.Abs(float64(got)-want) > 1e-5 {
			t.Errorf("%d tokens: %v, want %v", size, got, want)
		}
	}
}

func TestLateInteractionFindsMeaning(t *testing.T) {
	m := Default()
	var tokens []QueryToken
	for _, row := range m.AppendWords(nil, "doctor") {
		tokens = append(tokens, QueryToken{row, 1})
	}
	q := m.Ask(tokens)
	defer q.Close()
	score := func(text string) float32 { return q.Score(m.AppendWords(nil, text)) }
	same, near, far := score("I saw the doctor."), score("I saw the physician."), score("I saw the tractor.")
	if !(same > 0.999 && same <= 1.0001 && near < same && far < near) {
		t.Errorf("the word itself %v, one that means the same %v, another %v; want them descending from 1", same, near, far)
	}
	if score("?!") != 0 || score("") != 0 {
		t.Errorf("texts without words: got the scores %v and %v, want 0", score("?!"), score(""))
	}
}

func TestWordsHaveNoPunctuation(t *testing.T) {
	m := Default()
	plain, marked := m.AppendWords(nil, "well then go"), m.AppendWords(nil, "“Well”, then: go! 🙂")
	if len(plain) != 3 || !slices.Equal(plain, marked) {
		t.Errorf("got tokens %v with punctuation and %v without, want the same three", marked, plain)
	}
}

// TestEmptyQuestions covers weights and rows that do not count, and more tokens than are compared.
func TestEmptyQuestions(t *testing.T) {
	m := Default()
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	if q := m.Ask([]QueryToken{{5000, 0}, {5001, -1}, {5002, inf}, {5003, nan}, {math.MaxUint16, 1}}); q != nil {
		t.Errorf("a question of tokens that count for nothing: got %v, want nil", q)
	}
	q := m.Ask([]QueryToken{{5000, 1}})
	if got := q.Score([]uint16{math.MaxUint16}); got != -1 {
		t.Errorf("a missing row has the score %v, want that of the most unlike", got)
	}
	q.Close()
	var many []QueryToken
	for row := range uint16(500) {
		many = append(many, QueryToken{5000 + row, 1 + float32(row)})
	}
	q = m.Ask(many)
	defer q.Close()
	if got := len(q.weights); got != maxQuestion {
		t.Fatalf("%d tokens are compared, want %d", got, maxQuestion)
	}
	if got := q.Score([]uint16{5499}); got <= q.Score([]uint16{5000}) {
		t.Errorf("the weightiest token: got the score %v, want more than %v", got, q.Score([]uint16{5000}))
	}
}

// TestScratchIsClearedBetweenQuestions asks several questions with one scratch space.
func TestScratchIsClearedBetweenQuestions(t *testing.T) {
	m := Default()
	rows := m.AppendWords(nil, "the heron stood in the reeds")
	ask := func(text string) float32 {
		var tokens []QueryToken
		for _, row := range m.AppendWords(nil, text) {
			tokens = append(tokens, QueryToken{row, 1})
		}
		q := m.Ask(tokens)
		defer q.Close()
		return q.Score(rows)
	}
	first := ask("heron")
	for range 10 {
		ask("a motorway in winter")
		if again := ask("heron"); again != first {
			t.Fatalf("%v, and %v after another question, want the same", first, again)
		}
	}
}

func BenchmarkLate(b *testing.B) {
	m := Default()
	random := rand.New(rand.NewPCG(1, 2))
	texts := make([][]uint16, 250)
	for i := range texts {
		for range 25 {
			// A text uses few words of the vocabulary, some of them much more often than others.
			texts[i] = append(texts[i], uint16(math.Exp(random.Float64()*math.Log(float64(m.Rows()-1)))))
		}
	}
	var tokens []QueryToken
	for range 7 {
		tokens = append(tokens, QueryToken{uint16(random.IntN(m.Rows())), 1})
	}
	b.ReportAllocs()
	for b.Loop() {
		q := m.Ask(tokens)
		for _, rows := range texts {
			q.Score(rows)
		}
		q.Close()
	}
}
