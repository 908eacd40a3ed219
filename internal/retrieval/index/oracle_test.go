package index

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/simd"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// oracle is the simplest implementation of an Index: a list of memories and the documented formulas in float64, without
// any structure for speed.
type oracle struct{ memories map[int64]Memory }

func (o *oracle) put(m Memory) {
	if len(m.Entries) == 0 {
		delete(o.memories, m.Row)
		return
	}
	o.memories[m.Row] = m
}

// drop drops a partition from an index and from the oracle.
func (o *oracle) drop(ix *Index, partition int64) {
	ix.Drop(partition, partition)
	maps.DeleteFunc(o.memories, func(_ int64, m Memory) bool { return m.Partition == partition })
}

// confine confines a memory to a partition, in an index and in the oracle.
func (o *oracle) confine(ix *Index, row, partition int64) {
	ix.Confine([]int64{row}, []int64{partition})
	if m, ok := o.memories[row]; ok && m.Partition != partition {
		delete(o.memories, row)
	}
}

// ranked is an oracle's hit: every memory in the result with all its passages.
type ranked struct {
	row      int64
	id       string
	score    float64
	passages map[int64]oracleParts
}

type oracleParts struct {
	cosine, bm25, score float64
	hasVector           bool
}

func finite(v []float32) bool {
	for _, x := range v {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return false
		}
	}
	return len(v) > 0
}

// rarity counts the passages, and returns the weight of a term by how few of them have it.
func rarity(q Query, searched []Memory) (passages int, idf func(term string) float64) {
	df := map[string]int{}
	for _, m := range searched {
		for _, e := range m.Entries {
			passages++
			for _, t := range q.Terms {
				if slices.Contains(e.Terms, t.Text) {
					df[t.Text]++
				}
			}
		}
	}
	n := float64(passages)
	return passages, func(t string) float64 { return math.Log(1 + (n-float64(df[t])+0.5)/(float64(df[t])+0.5)) }
}

func (o *oracle) search(q Query, fuse func(cosine, bm25 float64, s Stats) float64) ([]ranked, Stats) {
	var searched []Memory
	for _, m := range o.memories {
		if slices.Contains(q.Partitions, m.Partition) {
			searched = append(searched, m)
		}
	}
	n, idf := rarity(q, searched)
	k1, b, pivot := float64(q.BM25.K1), float64(q.BM25.B), float64(q.BM25.Pivot)
	stats := Stats{Passages: n}
	ideal := 0.0
	for _, t := range q.Terms {
		if t.Weight > 0 && !math.IsInf(float64(t.Weight), 0) {
			ideal += float64(t.Weight) * idf(t.Text) * (k1 + 1)
		}
	}
	rare, bonus := oracleExact(q, searched, n), 0.0
	if len(rare) > 0 {
		bonus = exactGain * ideal
	}
	stats.IdealBM25 = float32(ideal + bonus)

	var all []ranked
	highest := 0.0
	for _, m := range searched {
		r := ranked{row: m.Row, id: m.ID, passages: map[int64]oracleParts{}}
		for _, e := range m.Entries {
			var p oracleParts
			if finite(q.Vector) && finite(e.Vector) && len(q.Vector) == len(e.Vector) {
				p.hasVector = true
				for i := range q.Vector {
					p.cosine += float64(q.Vector[i]) * float64(e.Vector[i])
				}
			}
			matched := false
			for _, t := range q.Terms {
				if !(t.Weight > 0) || math.IsInf(float64(t.Weight), 0) {
					continue
				}
				tf := 0.0
				for _, have := range e.Terms {
					if have == t.Text {
						tf++
					}
				}
				if tf > 0 {
					matched = true
					p.bm25 += float64(t.Weight) * idf(t.Text) * tf * (k1 + 1) /
						(tf + k1*(1-b+b*math.Max(1, float64(len(e.Terms))/pivot)))
				}
			}
			if slices.ContainsFunc(rare, func(t string) bool { return slices.Contains(e.Terms, t) }) {
				p.bm25 += bonus
			}
			if matched {
				stats.Matches++
				highest = math.Max(highest, p.bm25)
			}
			if matched || p.hasVector {
				r.passages[e.Passage] = p
			}
		}
		if len(r.passages) > 0 {
			all = append(all, r)
		}
	}
	stats.MaxBM25 = float32(highest)
	return rank(q, all, stats, fuse), stats
}

// rank returns the memories to keep, the best first.
func rank(q Query, all []ranked, stats Stats, fuse func(cosine, bm25 float64, s Stats) float64) []ranked {
	var kept []ranked
	for _, r := range all {
		if q.Keep != nil && !q.Keep(r.row) {
			continue
		}
		r.score = math.Inf(-1)
		for passage, p := range r.passages {
			p.score = fuse(p.cosine, p.bm25, stats)
			r.passages[passage] = p
			r.score = math.Max(r.score, p.score)
		}
		kept = append(kept, r)
	}
	sort.Slice(kept, func(i, j int) bool {
		if kept[i].score != kept[j].score {
			return kept[i].score > kept[j].score
		}
		return kept[i].id < kept[j].id
	})
	return kept
}

// oracleExact returns the terms that give a passage a bonus.
func oracleExact(q Query, searched []Memory, passages int) (rare []string) {
	for _, kind := range []Exactness{Identifier, Name} {
		most := max(2, math.Floor(math.Sqrt(float64(passages))))
		if kind == Name {
			most = 1
		}
		for _, t := range q.Terms {
			holders := 0.0
			for _, m := range searched {
				if slices.ContainsFunc(m.Entries, func(e Entry) bool { return slices.Contains(e.Terms, t.Text) }) {
					holders++
				}
			}
			if t.Exact == kind && t.usable() && holders > 0 && holders <= most {
				rare = append(rare, t.Text)
			}
		}
		if len(rare) > 0 {
			return rare
		}
	}
	return nil
}

func near(a float32, b float64) bool { return math.Abs(float64(a)-b) <= 2e-5*(1+math.Abs(b)) }

func statsNear(a, b Stats) bool {
	return a.Passages == b.Passages && a.Matches == b.Matches && near(a.MaxBM25, float64(b.MaxBM25)) &&
		near(a.IdealBM25, float64(b.IdealBM25))
}

// compare searches the index and fails the test where it disagrees with the oracle. Scores are compared with a
// tolerance, so the order is checked only where the oracle's scores differ by more. weight is the weight of the vector:
// the smaller it is, the more passages may be skipped.
func (o *oracle) compare(t *testing.T, ix *Index, q Query, weight float64) {
	t.Helper()
	weigh := func(cosine, bm25 float64, s Stats) float64 {
		return weight*cosine + 0.5*bm25/(1+float64(s.MaxBM25))
	}
	var got Stats
	q.BM25 = BM25{K1: 0.9, B: 0.4, Pivot: 6}
	q.Fuse = func(s Stats) func(Parts) float32 {
		got = s
		return func(p Parts) float32 { return float32(weigh(float64(p.Cosine), float64(p.BM25), s)) }
	}
	hits, total, err := ix.Search(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if float64(got.MaxBM25) > float64(got.IdealBM25)*(1+1e-5) {
		t.Fatalf("got MaxBM25 %v, want at most %v", got.MaxBM25, float64(got.IdealBM25)*(1+1e-5))
	}
	want, stats := o.search(q, weigh)
	if !statsNear(got, stats) {
		t.Fatalf("statistics %+v, want %+v", got, stats)
	}
	if total != len(want) || len(hits) != max(0, min(q.Limit, total)) {
		t.Fatalf("%d hits of %d, want %d of %d", len(hits), total, min(q.Limit, len(want)), len(want))
	}
	byRow := map[int64]ranked{}
	for _, r := range want {
		byRow[r.row] = r
	}
	for i, h := range hits {
		r, ok := byRow[h.Row]
		if !ok {
			t.Fatalf("hit %d is %+v, want each expected memory once", i, h)
		}
		delete(byRow, h.Row)
		p, ok := r.passages[h.Passage]
		switch {
		case !ok:
			t.Fatalf("hit %+v names a passage that it does not have", h)
		case h.ID != r.id || h.HasVector != p.hasVector || !near(h.Cosine, p.cosine) || !near(h.BM25, p.bm25) ||
			!near(h.Score, p.score):
			t.Fatalf("hit %+v, want id %s and %+v", h, r.id, p)
		case !near(h.Score, r.score):
			t.Fatalf("hit %+v, but the memory's best passage scores %v", h, r.score)
		case !near(h.Score, want[i].score):
			t.Fatalf("hit %d has score %v, want %v", i, h.Score, want[i].score)
		case i > 0 && CompareHits(&hits[i-1], &hits[i]) >= 0:
			t.Fatalf("hits %d and %d are out of order: %+v, %+v", i-1, i, hits[i-1], hits[i])
		}
	}
}

// generator makes small random memories with many collisions of everything.
type generator struct {
	*rand.Rand
	passage int64
	sets    []*RowSet // of queries
}

func newGenerator(seed uint64) *generator {
	return &generator{Rand: rand.New(rand.NewPCG(seed, 7))}
}

func (g *generator) unit(size int) []float32 {
	v := make([]float32, size)
	sum := 0.0
	for i := range v {
		x := g.NormFloat64()
		v[i] = float32(x)
		sum += x * x
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}

// vector returns a unit vector of one of three sizes, or occasionally one that does not count.
func (g *generator) vector() []float32 {
	switch n := g.IntN(20); {
	case n < 12:
		return g.unit(33)
	case n < 15:
		return g.unit(8)
	case n < 16:
		return g.unit(1)
	case n < 17:
		v := g.unit(33)
		v[g.IntN(33)] = []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}[g.IntN(3)]
		return v
	case n < 18:
		return []float32{}
	default:
		return nil
	}
}

// word returns one of 40 words, the first ones far more often.
func (g *generator) word() string { return fmt.Sprintf("w%d", int(40*math.Pow(g.Float64(), 3))) }

func (g *generator) memory(rows int) Memory {
	row := int64(g.IntN(rows))
	m := Memory{Row: row, ID: fmt.Sprintf("id-%04d", (row*7919)%10007), Partition: int64(g.IntN(4))}
	for range g.IntN(4) {
		g.passage++
		e := Entry{Passage: g.passage, Vector: g.vector()}
		for range g.IntN(12) {
			e.Terms = append(e.Terms, g.word())
		}
		m.Entries = append(m.Entries, e)
	}
	return m
}

func (g *generator) query() Query {
	q := Query{Limit: g.IntN(30) - 1}
	if g.IntN(4) > 0 {
		q.Vector = g.vector()
	}
	for range g.IntN(5) {
		w := g.word()
		if g.IntN(10) == 0 {
			w = "unheard of"
		}
		if slices.ContainsFunc(q.Terms, func(t Term) bool { return t.Text == w }) {
			continue
		}
		weight := []float32{1, 1, 1, 0.5, 3, 0, -1, float32(math.NaN()), float32(math.Inf(1))}[g.IntN(9)]
		q.Terms = append(q.Terms, Term{Text: w, Weight: weight, Exact: Exactness(max(0, g.IntN(5)-2))})
	}
	for range g.IntN(5) {
		q.Partitions = append(q.Partitions, int64(g.IntN(6))) // some unknown, some twice
	}
	if g.IntN(2) == 0 {
		odd := int64(2 + g.IntN(5))
		q.Keep = func(row int64) bool { return row%odd != 0 }
		if g.IntN(2) == 0 { // few of many rows, listed
			few := int64(5 + g.IntN(40))
			q.Keep = func(row int64) bool { return row%few == odd%few }
			var rows []int64
			for row := range int64(500) { // some unknown
				if q.Keep(row) || g.IntN(100) == 0 {
					rows = append(rows, row)
				}
			}
			q.Rows = NewRowSet(rows)
		} else if g.IntN(2) == 0 {
			q.Rows, q.Exactly = g.someRows(), true
			q.Keep = q.Rows.Has
		}
	}
	return q
}

// someRows returns a set of few or many rows, perhaps that of an earlier query.
func (g *generator) someRows() *RowSet {
	if len(g.sets) > 0 && g.IntN(4) > 0 {
		return g.sets[g.IntN(len(g.sets))]
	}
	var rows []int64
	part := 1 + g.IntN(40)
	for row := range int64(500) {
		if g.IntN(part) == 0 {
			rows = append(rows, row)
		}
	}
	g.sets = append(g.sets, NewRowSet(rows))
	return g.sets[len(g.sets)-1]
}

// dots are the inner products that a machine may use.
func dots() map[string]dotFunc {
	return map[string]dotFunc{"fastest": simd.DotFloats, "unrolled": simd.DotFloatsPlain}
}

func TestSearchAgreesWithOracle(t *testing.T) {
	for name, dot := range dots() {
		for seed := range uint64(20) {
			if !longtest.Part(int(seed), 1, 5) {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				g := newGenerator(seed)
				ix := New()
				ix.dot, ix.coded = dot, 1 // short vectors, too, as codes
				ix.coarse = []coarseDots{fastestCoarse(), coarseDotsPlain, nil}[seed/3%3]
				ix.settleAt = []int{freezeAt, 1, 20}[seed/9%3]
				o := &oracle{memories: map[int64]Memory{}}
				rows := []int{5, 60, 400}[seed%3]
				for step := range 600 {
					switch n := g.IntN(10); {
					case n < 5:
						var batch []Memory
						for range 1 + g.IntN(3) {
							batch = append(batch, g.memory(rows))
							o.put(batch[len(batch)-1])
						}
						ix.Put(batch...)
					case n < 7:
						row := int64(g.IntN(rows))
						ix.Delete(row, row)
						delete(o.memories, row)
					case n < 8 && step%100 == 99:
						ix.Reset()
						clear(o.memories)
					case n < 8 && step%50 == 25:
						o.drop(ix, int64(g.IntN(4)))
					case n < 8 && step%10 == 5:
						o.confine(ix, int64(g.IntN(rows)), int64(g.IntN(4)))
					default:
						o.compare(t, ix, g.query(), []float64{1, 0.3, 0.05, 0}[g.IntN(4)])
					}
					ix.verify(t)
				}
				passages := 0
				for _, m := range o.memories {
					passages += len(m.Entries)
				}
				if m, p := ix.Len(); m != len(o.memories) || p != passages {
					t.Fatalf("holds %d memories, %d passages, want %d, %d", m, p, len(o.memories), passages)
				}
			})
		}
	}
}

// verify checks that the parts of an index agree with each other.
func (ix *Index) verify(t *testing.T) {
	t.Helper()
	size, memories := 0, map[int64]bool{}
	for id, p := range ix.partitions {
		size += p.bytes()
		dead, postings, letters := 0, 0, 0
		for slot, m := range p.owners {
			if m == nil {
				dead++
				continue
			}
			memories[m.row] = true
			if ix.memories.get(m.row) != m || m.partition != p || uint32(slot) < m.first || uint32(slot) >= m.first+m.count {
				t.Fatalf("slot %d of partition %d belongs to %+v, want the memory at its place", slot, id, m)
			}
		}
		for term, at := range p.lists {
			letters += roundUp(len(term), 8)
			if !slices.IsSortedFunc(p.postings[at], func(a, b posting) int { return int(a.slot) - int(b.slot) }) {
				t.Fatalf("postings of term %q in partition %d are not sorted", term, id)
			}
			if len(p.postings[at]) == 0 {
				t.Fatalf("got an empty list of postings in partition %d, want it removed", id)
			}
			postings += cap(p.postings[at])
		}
		for _, m := range p.matrices {
			rows := len(m.slots)
			if rows == 0 || max(len(m.rows.list), len(m.fine.list)) != m.blocks() || len(m.row(rows-1)) != m.size ||
				!slices.IsSorted(m.slots) {
				t.Fatalf("matrix of size %d in partition %d: got %d rows in %d blocks, slots %v, want at least one "+
					"row, %d blocks and slots in rising order", m.size, id, rows, max(len(m.rows.list),
					len(m.fine.list)), m.slots, m.blocks())
			}
		}
		if p.id != id || dead != p.dead || postings != p.capacity || len(p.lists) != len(p.postings) {
			t.Fatalf("partition %d miscounts: %d dead, postings %d, lists %d of %d, want id %v, dead %v, postings %v and %v "+
				"lists", id, dead, postings, len(p.lists), len(p.postings), id, p.dead, p.capacity, len(p.postings))
		}
		if letters != p.letters {
			t.Fatalf("partition %d counts %d bytes of terms, want %d", id, p.letters, letters)
		}
		if p.living() == 0 || p.wasteful() {
			t.Fatalf("partition %d has %d dead of %d slots, want some living and few dead", id, p.dead, len(p.owners))
		}
	}
	if size != ix.size || len(memories) != ix.memories.count {
		t.Fatalf("size %d, want %d; %d memories, want %d", ix.size, size, ix.memories.count, len(memories))
	}
}
