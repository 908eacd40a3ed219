package ranking

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/index"
	"github.com/souvenir-ai/souvenir/internal/static"
	"github.com/souvenir-ai/souvenir/internal/text"
)

// BenchmarkRanking reports the median of a search in memory with the candidates as they are found, and with all
// evidence: memories of some 25 words, in conversations of 500 turns.
func BenchmarkRanking(b *testing.B) {
	m := static.Default()
	var words []string
	for row := 1000; row < m.Rows(); row++ {
		if piece := m.Piece(int32(row)); len(piece) > 2 && !strings.HasPrefix(piece, "##") {
			words = append(words, piece)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	random.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
	zipf := rand.NewZipf(random, 1.3, 6,
		uint64(len(words)-1)) // as in real text, of which the best 50 have some 1,000 tokens
	sentence := func(n int) string {
		var s []string
		for range n {
			s = append(s, words[zipf.Uint64()])
		}
		return strings.Join(s, " ")
	}
	for _, n := range []int{10_000, 100_000} {
		ix := index.New()
		for i := range n {
			content := sentence(15 + random.IntN(20))
			ix.Put(index.Memory{Row: int64(i), ID: fmt.Sprintf("%08d", i), Partition: 1,
				Turn: &index.Turn{Conversation: int64(1 + i/500), At: int64(i), Speaker: "Mara", Asks: i%4 == 0},
				Entries: []index.Entry{{Passage: int64(i), Vector: m.Embed(nil, content, false), Terms: text.Terms(content),
					Words: m.AppendWords(nil, content)}}})
		}
		b.Logf("%d bytes per memory", ix.Bytes()/int64(n))
		var questions []string
		for range 50 {
			questions = append(questions, "what did Mara say about "+sentence(6))
		}
		for _, again := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d/again=%v", n, again), func(b *testing.B) {
				var took []time.Duration
				i := 0
				for b.Loop() {
					question := questions[i%len(questions)]
					i++
					start := time.Now()
					terms := text.QueryTerms(question)
					q := index.Query{Vector: m.Embed(nil, question, true), Partitions: []int64{1}, Limit: 7,
						BM25: index.BM25{K1: 0.9, B: 0.75, Pivot: 80}, Fuse: Fuse(Default, true, true)}
					for _, t := range terms {
						q.Terms = append(q.Terms, index.Term{Text: t.Text, Weight: t.Weight})
					}
					if again {
						r := Ranking{Weights: Default, Question: NewQuestion(question, terms), HasVector: true}
						q.Again = r.Again()
					}
					if hits, _, err := ix.Search(b.Context(), q); err != nil || len(hits) != 7 {
						b.Fatal(len(hits), err)
					}
					took = append(took, time.Since(start))
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds()), "median-µs")
			})
		}
	}
}
