package retrieval

import (
	"math"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
	"github.com/souvenir-ai/souvenir/internal/valid"
	"github.com/souvenir-ai/souvenir/internal/vectorform"
)

// SearchDatabase executes a query as [index.Index.Search] does, from the database alone: full text finds the passages
// that share words, the engine computes every cosine similarity, and the same formulas score them. It serves
// stores that are too large for memory, and those whose index is still loading. If more than maxMatches passages
// of a partition share words with the query, only the best of them by the engine's ranking are scored by words. An
// engine with an index of vectors finds the nearest ones instead of comparing all, and the rest stays the same.
func SearchDatabase(tx db.Tx, profile int64, q index.Query) (Ranked, error) {
	d := databaseSearch{tx: tx, profile: profile, q: q, words: map[int64]index.Hit{}, places: map[int64]int{},
		weights: make([]float32, len(q.Terms)), near: map[int64]bool{}}
	for _, step := range []func() error{d.measure, d.matchWords} {
		if err := step(); err != nil {
			return Ranked{}, err
		}
	}
	d.score = q.Fuse(d.stats) // all of its inputs are known now
	if err := d.compareVectors(); err != nil {
		return Ranked{}, err
	}
	for _, hit := range d.words {
		d.offer(hit)
	}
	hits, err := d.best()
	if err == nil && q.Rerank != nil && q.Limit > 0 && len(hits) > 0 {
		hits, err = d.rerank(hits)
	}
	found := Ranked{Hits: hits[:max(0, min(q.Limit, len(hits)))], Total: len(d.hits), Plan: ByScan}
	if len(d.near) > 0 && err == nil {
		found.Plan = ByNearest
		found.Total, err = d.total()
	}
	return found, err
}

// Ranked is the result of a search.
type Ranked struct {
	Hits  []index.Hit
	Total int
	Plan  Plan
}

// Plan is how a search was executed.
type Plan string

// The values of [Plan].
const (
	ByMemory   Plan = "memory"       // in the index in memory
	BySegments Plan = "segments"     // likewise, after loading some of it from segments
	ByNearest  Plan = "vector_index" // in the database, at least partly by its index of vectors
	ByScan     Plan = "scan"         // in the database, comparing all vectors, or all that a filter selects
)

// maxMatches bounds the passages of one partition that are scored by words; the rest, by the engine's own ranking, is
// left out. In memory there is no such bound.
const maxMatches = 5000

type databaseSearch struct {
	tx      db.Tx
	profile int64 // of the comparable vectors, besides callers' own
	q       index.Query
	stats   index.Stats
	idf     map[string]float32  // of the query's terms, times their weights
	weights []float32           // the same by term of the query
	rare    []string            // the exact ones
	words   map[int64]index.Hit // passages that share words, by id, until their vectors are compared
	score   func(index.Parts) float32
	hits    []index.Hit   // the best passage of each memory so far, without the memory's id: only those on a page need it
	places  map[int64]int // of memories in hits
	// near has the partitions where only the nearest passages, and the ones that share words, were compared.
	near map[int64]bool
}

// measure counts the passages.
func (d *databaseSearch) measure() error {
	return d.tx.QueryRow(`SELECT coalesce(sum(passages), 0) FROM partition WHERE id IN `+db.Integers,
		db.List(d.q.Partitions)).Scan(&d.stats.Passages)
}

// matchWords scores the passages that share words with the query.
func (d *databaseSearch) matchWords() error {
	d.idf = map[string]float32{}
	terms := make([]string, len(d.q.Terms))
	exact := index.NewExact(d.stats.Passages)
	for i, t := range d.q.Terms {
		terms[i] = t.Text
		containing, err := d.count(func(in db.Range) (int, error) { return d.tx.Words().Count(in, terms[i:i+1]) })
		if err != nil {
			return err
		}
		var failed error
		exact.Consider(i, t, containing, func(most int) (memories int) {
			memories, failed = d.count(func(in db.Range) (int, error) {
				return d.tx.Words().CountMemories(in, terms[i:i+1], most+1)
			})
			return memories
		})
		if failed != nil {
			return failed
		}
		d.idf[t.Text] = t.Weight * index.IDF(d.stats.Passages, containing)
		d.weights[i] = d.idf[t.Text]
		d.stats.IdealBM25 += d.idf[t.Text] * d.q.BM25.Bound()
	}
	d.stats.Exact = exact.Bonus(d.stats.IdealBM25)
	d.stats.IdealBM25 += d.stats.Exact
	for _, i := range exact.Terms() {
		d.rare = append(d.rare, terms[i])
	}
	for _, p := range d.q.Partitions {
		found, err := d.matching(p, terms)
		if err != nil {
			return err
		}
		if err := d.scorePassages(p, found, terms); err != nil {
			return err
		}
	}
	return nil
}

// matching returns passages of a partition that may share words: all of the memories that a filter selects if these are
// few, or else the ones that match best.
func (d *databaseSearch) matching(partition int64, terms []string) ([]int64, error) {
	in := kernel.PassageRange(partition)
	if rows := d.selected(mostSelected); rows != nil {
		return db.Column[int64](d.tx, `SELECT id FROM passage WHERE memory_id IN `+db.Integers+
			` AND id BETWEEN ? AND ? ORDER BY id`, db.List(rows), in.First, in.Last)
	}
	found, err := d.tx.Words().Best(in, terms, maxMatches)
	if err == nil && len(found) == maxMatches && len(d.rare) > 0 { // those with an exact term may be missing
		var first []int64
		first, err = d.tx.Words().Best(in, d.rare, maxMatches)
		found = slices.Compact(slices.Sorted(slices.Values(append(found, first...))))
	}
	return found, err
}

// count adds up the counts of all partitions.
func (d *databaseSearch) count(in func(db.Range) (int, error)) (sum int, err error) {
	for _, p := range d.q.Partitions {
		n, err := in(kernel.PassageRange(p))
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// scorePassages computes BM25 for passages of a partition.
func (d *databaseSearch) scorePassages(partition int64, passages []int64, terms []string) error {
	if engine, able := d.tx.Words().(db.Counting); able {
		return d.scoreFrequencies(engine, kernel.PassageRange(partition), passages, terms)
	}
	for batch := range slices.Chunk(passages, kernel.BatchRows) {
		if err := d.scoreWords(batch); err != nil {
			return err
		}
	}
	return nil
}

// scoreFrequencies is scorePassages with the engine's frequencies of terms.
func (d *databaseSearch) scoreFrequencies(engine db.Counting, in db.Range, passages []int64, terms []string) error {
	type passage struct {
		db.Frequency
		times []uint32 // by term
	}
	var all []*passage
	places := make(map[int64]*passage, len(passages))
	err := engine.Frequencies(in, passages, terms, func(f db.Frequency) error {
		p := places[f.Passage]
		if p == nil {
			if d.q.Keep != nil && !d.q.Keep(f.Memory) {
				return nil
			}
			if !inside(f.Start, f.Length) {
				return fault.Damaged(kernel.ErrOutside, "the passages of memory %d", f.Memory)
			}
			p = &passage{f, make([]uint32, len(terms))}
			places[f.Passage], all = p, append(all, p)
		}
		p.times[f.Term] = uint32(f.Times)
		return nil
	})
	saturation := d.q.BM25.Saturation()
	for _, p := range all {
		span := index.Span{Start: uint32(p.Start), End: uint32(p.Start + p.Length)}
		score := d.bm25Of(func(term int) uint32 { return p.times[term] }, uint32(p.Terms), saturation)
		if score > 0 {
			d.stats.MaxBM25 = max(d.stats.MaxBM25, score)
			d.words[p.Passage] = index.Hit{Row: p.Memory, Passage: p.Passage, Span: span, Parts: index.Parts{BM25: score}}
		}
	}
	return err
}

// inside reports whether a memory may have a passage with this start and length.
func inside(start, length int) bool {
	return start >= 0 && length >= 0 && start <= valid.MaxContent && length <= valid.MaxContent
}

// scoreWords computes BM25 for some passages, from the words of their memories.
func (d *databaseSearch) scoreWords(passages []int64) error {
	memories, err := db.Column[int64](d.tx, `SELECT DISTINCT memory_id FROM passage WHERE id IN `+db.Integers,
		db.List(passages))
	if err != nil {
		return err
	}
	loaded, err := entries(d.tx, 0, memories)
	if err != nil {
		return err
	}
	saturation := d.q.BM25.Saturation()
	for _, m := range loaded {
		if d.q.Keep != nil && !d.q.Keep(m.Row) {
			continue
		}
		for _, e := range m.Entries {
			if score := d.bm25(e, saturation); score > 0 {
				d.stats.MaxBM25 = max(d.stats.MaxBM25, score)
				d.words[e.Passage] = index.Hit{Row: m.Row, Passage: e.Passage, Span: e.Span, Parts: index.Parts{BM25: score}}
			}
		}
	}
	return nil
}

// bm25 scores the words of a passage.
func (d *databaseSearch) bm25(e index.Entry, saturation index.Saturation) (score float32) {
	frequency := map[string]uint32{}
	for _, t := range e.Terms {
		if _, sought := d.idf[t]; sought {
			frequency[t]++
		}
	}
	return d.bm25Of(func(term int) uint32 { return frequency[d.q.Terms[term].Text] }, uint32(len(e.Terms)), saturation)
}

// bm25Of scores a passage of some terms, by how often it has each of the query's. It adds in the order of the query's
// terms, the bonus last, as in memory, so that sums round alike.
func (d *databaseSearch) bm25Of(times func(term int) uint32, terms uint32,
	saturation index.Saturation) (score float32) {
	exact := false
	for i, t := range d.q.Terms {
		if n := times(i); n > 0 {
			score += float32(d.idf[t.Text] * saturation.Of(n, terms)) // in memory, it is not fused with the sum either
			exact = exact || slices.Contains(d.rare, t.Text)
		}
	}
	if exact {
		score += d.stats.Exact
	}
	return score
}

func (d *databaseSearch) compareVectors() error {
	if d.q.Vector == nil {
		return nil
	}
	profiles, err := db.Column[int64](d.tx, `SELECT id FROM profile WHERE id = ? OR model = ?`, d.profile,
		kernel.OwnVectors)
	if err != nil {
		return err
	}
	vector := vectorform.Exact(d.q.Vector)
	for _, p := range d.q.Partitions {
		if !d.q.Compare(p) {
			continue
		}
		found, err := d.nearest(p, vector, profiles)
		if err == nil && !found {
			err = d.compareAll(p, vector, profiles)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mostSelected is how many memories of a filter count as few, regardless of the total.
const mostSelected = 2000

// selected returns the memories that a filter selects if they are known and few enough; otherwise nil.
func (d *databaseSearch) selected(most int) []int64 {
	if _, able := d.tx.Vectors().(db.Selective); !able || d.q.Rows == nil || d.q.Rows.Len() > most {
		return nil
	}
	return append([]int64{}, slices.Collect(d.q.Rows.All())...)
}

// compareAll compares the vectors of a partition, or only those of a filter's memories if these are a small part.
func (d *databaseSearch) compareAll(partition int64, vector []byte, profiles []int64) error {
	in := kernel.PassageRange(partition)
	if rows := d.selected(max(mostSelected, d.stats.Passages/4)); rows != nil {
		return d.tx.Vectors().(db.Selective).CompareOf(in, vector, profiles, rows, d.compared)
	}
	return d.tx.Vectors().Compare(in, vector, profiles, d.compared)
}

// compared handles a passage whose vector was compared.
func (d *databaseSearch) compared(c db.Compared) error {
	if !inside(c.Start, c.Length) {
		return fault.Damaged(kernel.ErrOutside, "the passages of memory %d", c.Memory)
	}
	if d.q.Keep != nil && !d.q.Keep(c.Memory) {
		return nil
	}
	h, ok := d.words[c.Passage]
	if ok {
		delete(d.words, c.Passage)
	} else {
		h = index.Hit{Passage: c.Passage, Row: c.Memory}
		h.Span = index.Span{Start: uint32(c.Start), End: uint32(c.Start + c.Length)}
	}
	h.HasVector = true
	if !math.IsNaN(c.Cosine) { // a vector of zeros has no direction
		h.Cosine = float32(max(-1, min(1, c.Cosine)))
	}
	d.offer(h)
	return nil
}

// offer scores a passage and keeps it if it is the best of its memory.
func (d *databaseSearch) offer(h index.Hit) {
	h.Score = d.score(h.Parts)
	place, ok := d.places[h.Row]
	if !ok {
		d.places[h.Row] = len(d.hits)
		d.hits = append(d.hits, h)
		return
	}
	if old := d.hits[place]; h.Score > old.Score || h.Score == old.Score && h.Passage < old.Passage {
		d.hits[place] = h
	}
}

// best returns the best memories, at most as many as the query's limit, the best one first.
func (d *databaseSearch) best() ([]index.Hit, error) {
	n := min(d.wanted(), len(d.hits))
	if n <= 0 {
		return nil, nil
	}
	scores := make([]float32, len(d.hits))
	for i := range d.hits {
		scores[i] = d.hits[i].Score
	}
	slices.Sort(scores)
	worst := scores[len(scores)-n]
	var best []index.Hit // n, or more with equal scores: then ids decide
	var rows []int64
	places := map[int64]int{}
	for _, h := range d.hits {
		if h.Score >= worst {
			places[h.Row] = len(best)
			best, rows = append(best, h), append(rows, h.Row)
		}
	}
	err := d.tx.Each(func(row db.Rows) error {
		var memory int64
		var id string
		err := row.Scan(&memory, &id)
		best[places[memory]].ID = id
		return err
	}, `SELECT id, uid FROM memory WHERE id IN `+db.Integers, db.List(rows))
	slices.SortFunc(best, func(a, b index.Hit) int { return index.CompareHits(&a, &b) })
	return best[:n], err
}
