package ranking

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/embedding/static"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
	"github.com/souvenir-ai/souvenir/internal/text"
)

// generator makes texts of words of the built-in model, as frequent as in real text: the best 50 texts of about 25
// words have about 1,000 different tokens.
type generator struct {
	words  []string
	random *rand.Rand
	zipf   *rand.Zipf
}

func newGenerator() *generator {
	m := static.Default()
	g := &generator{random: rand.New(rand.NewPCG(1, 2))}
	for row := 1000; row < m.Rows(); row++ {
		if piece := m.Piece(int32(row)); len(piece) > 2 && !strings.HasPrefix(piece, "##") {
			g.words = append(g.words, piece)
		}
	}
	g.random.Shuffle(len(g.words), func(i, j int) { g.words[i], g.words[j] = g.words[j], g.words[i] })
	g.zipf = rand.NewZipf(g.random, 1.3, 6, uint64(len(g.words)-1))
	return g
}

func (g *generator) sentence(n int) string {
	var s []string
	for range n {
		s = append(s, g.words[g.zipf.Uint64()])
	}
	return strings.Join(s, " ")
}

// index returns an index of n memories of about 25 words, in conversations of 500 turns.
func (g *generator) index(n int) *index.Index {
	m := static.Default()
	ix := index.New()
	for i := range n {
		content := g.sentence(15 + g.random.IntN(20))
		ix.Put(index.Memory{Row: int64(i), ID: fmt.Sprintf("%08d", i), Partition: 1,
			Turn: &index.Turn{Conversation: int64(1 + i/500), At: int64(i), Speaker: "Mara", Asks: i%4 == 0},
			Entries: []index.Entry{{Passage: int64(i), Vector: m.Embed(nil, content, false), Terms: text.Terms(content),
				Words: m.AppendWords(nil, content)}}})
	}
	return ix
}

// search answers a question as a store does, and returns the duration.
func search(b *testing.B, ix *index.Index, question string, again func(terms []text.Term) *index.Rerank) time.Duration {
	start := time.Now()
	terms := text.QueryTerms(question)
	q := index.Query{Vector: static.Default().Embed(nil, question, true), Partitions: []int64{1}, Limit: 7,
		BM25: index.BM25{K1: 0.9, B: 0.75, Pivot: 80}, Fuse: Fuse(Default, true, true), Rerank: again(terms)}
	for _, t := range terms {
		q.Terms = append(q.Terms, index.Term{Text: t.Text, Weight: t.Weight})
	}
	if hits, _, err := ix.Search(b.Context(), q); err != nil || len(hits) != 7 {
		b.Fatalf("got %v %v, want no error and 7 hits", len(hits), err)
	}
	return time.Since(start)
}

// BenchmarkRanking reports, as medians of fifty questions, the time of a search in memory with its first candidates,
// the time with all evidence, and the difference for the same question. It asks all questions in one way, then in the
// other, so that no question finds its own data in the processor's caches.
func BenchmarkRanking(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		g := newGenerator()
		ix := g.index(n)
		b.Logf("%d bytes per memory", ix.Bytes()/int64(n))
		var questions []string
		for range 50 {
			questions = append(questions, "what did Mara say about "+g.sentence(6))
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			ways := []func(string) func([]text.Term) *index.Rerank{
				func(string) func([]text.Term) *index.Rerank {
					return func([]text.Term) *index.Rerank { return nil }
				},
				func(question string) func([]text.Term) *index.Rerank {
					return func(terms []text.Term) *index.Rerank {
						r := Ranking{Weights: Default, Question: NewQuestion(question, terms), HasVector: true}
						return r.Rerank()
					}
				},
			}
			var took [3][50]time.Duration // by way and question: the minimum, since other programs use the processor, too
			for i := range took {
				for j := range took[i] {
					took[i][j] = time.Hour
				}
			}
			for b.Loop() {
				for way, again := range ways {
					for i, question := range questions {
						took[way][i] = min(took[way][i], search(b, ix, question, again(question)))
					}
				}
			}
			for i := range questions {
				took[2][i] = took[1][i] - took[0][i]
			}
			for i, unit := range []string{"found-µs", "ranked-µs", "more-µs"} {
				slices.Sort(took[i][:])
				b.ReportMetric(float64(took[i][len(questions)/2].Nanoseconds())/1000, unit)
			}
		})
	}
}
