package souvenir

import (
	"math"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/index"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
	"github.com/souvenir-ai/souvenir/internal/text"
)

// rankOnDisk answers a query as [index.Index.Search] does, from the file alone: full text finds the passages that share
// words, sqlite-vec computes every cosine similarity, and the same formulas score them. It serves stores that are too
// large for memory, and those whose index is still loading. Where more than maxMatches passages of a partition share words
// with the query, only the best of them by FTS5's ranking are scored by words.
func rankOnDisk(tx *sqlite.Tx, profile int64, q index.Query) ([]index.Hit, int, error) {
	d := diskRanking{tx: tx, profile: profile, q: q, words: map[int64]index.Hit{}, places: map[int64]int{}}
	for _, step := range []func() error{d.measure, d.matchWords} {
		if err := step(); err != nil {
			return nil, 0, err
		}
	}
	d.score = q.Fuse(d.stats) // all that it depends on is known now
	if err := d.compareVectors(); err != nil {
		return nil, 0, err
	}
	for _, hit := range d.words {
		d.offer(hit)
	}
	hits, err := d.best()
	return hits, len(d.hits), err
}

// maxMatches bounds the passages of one partition that are scored by words; those that FTS5's own ranking puts behind
// them are left out. In memory there is no such bound.
const maxMatches = 5000

type diskRanking struct {
	tx      *sqlite.Tx
	profile int64 // of the vectors that may be compared, besides callers' own
	q       index.Query
	stats   index.Stats
	idf     map[string]float32  // of the query's terms, times their weights
	rare    []text.Term         // the exact ones
	bonus   float32             // of a passage that holds one of them
	words   map[int64]index.Hit // the passages that share words, by id; those whose vector has been compared are gone
	score   func(index.Parts) float32
	hits    []index.Hit   // the best passage of each memory so far, without the memory's id: only a page of them needs one
	places  map[int64]int // of memories in hits
}

// measure counts the passages.
func (d *diskRanking) measure() error {
	return d.tx.QueryRow(`SELECT ifnull(sum(passages), 0) FROM partition WHERE id IN (SELECT value FROM json_each(?))`,
		jsonList(d.q.Partitions)).Scan(&d.stats.Passages)
}

// passageRange returns the first and the last id that a passage of the partition can have.
func passageRange(partition int64) (first, last int64) {
	return partition << passageBits, (partition+1)<<passageBits - 1
}

// matchWords scores the passages that share words with the query.
func (d *diskRanking) matchWords() error {
	d.idf = map[string]float32{}
	terms := make([]text.Term, len(d.q.Terms))
	exact := index.NewExact(d.stats.Passages)
	for i, t := range d.q.Terms {
		terms[i] = text.Term{Text: t.Text, Weight: t.Weight}
		match := text.Match(terms[i:i+1], "")
		containing, err := d.count(`SELECT count(*) FROM passage_text WHERE passage_text MATCH ? AND rowid BETWEEN ? AND ?`, match)
		if err != nil {
			return err
		}
		var failed error
		exact.Consider(i, t.Exact, containing, func(most int) (memories int) {
			memories, failed = d.count(`SELECT count(*) FROM (SELECT DISTINCT memory_id FROM passage WHERE id IN (
				SELECT rowid FROM passage_text WHERE passage_text MATCH ? AND rowid BETWEEN ? AND ?) LIMIT ?)`, match, most+1)
			return memories
		})
		if failed != nil {
			return failed
		}
		d.idf[t.Text] = t.Weight * index.IDF(d.stats.Passages, containing)
		d.stats.IdealBM25 += d.idf[t.Text] * d.q.BM25.Bound()
	}
	d.bonus = exact.Bonus(d.stats.IdealBM25)
	d.stats.IdealBM25 += d.bonus
	var rare []text.Term
	for _, i := range exact.Terms() {
		rare = append(rare, terms[i])
	}
	d.rare = rare
	match := text.Match(terms, "")
	if match == "" {
		return nil
	}
	for _, p := range d.q.Partitions {
		found, err := d.matching(p, match)
		if err != nil {
			return err
		}
		if len(found) == maxMatches && len(rare) > 0 { // those with an exact term may not be among them
			first, err := d.matching(p, text.Match(rare, ""))
			if err != nil {
				return err
			}
			found = slices.Compact(slices.Sorted(slices.Values(append(found, first...))))
		}
		for batch := range slices.Chunk(found, batchRows) {
			if err := d.scoreWords(batch); err != nil {
				return err
			}
		}
	}
	return nil
}

// count sums up what a query for a match counts in each partition.
func (d *diskRanking) count(query, match string, args ...any) (sum int, err error) {
	for _, p := range d.q.Partitions {
		first, last := passageRange(p)
		var n int
		if err := d.tx.QueryRow(query, append([]any{match, first, last}, args...)...).Scan(&n); err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// matching returns the passages of a partition that match best.
func (d *diskRanking) matching(partition int64, match string) ([]int64, error) {
	first, last := passageRange(partition)
	return sqlite.Column[int64](d.tx, `SELECT rowid FROM passage_text WHERE passage_text MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rank LIMIT ?`,
		match, first, last, maxMatches)
}

// scoreWords computes BM25 for some passages, from the words of their memories.
func (d *diskRanking) scoreWords(passages []int64) error {
	memories, err := sqlite.Column[int64](d.tx, `SELECT DISTINCT memory_id FROM passage WHERE id IN (SELECT value FROM json_each(?))`, jsonList(passages))
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

// bm25 scores the words of a passage. It adds in the order of the query's terms, the bonus last, as in memory, so that
// sums round alike.
func (d *diskRanking) bm25(e index.Entry, saturation index.Saturation) (score float32) {
	frequency := map[string]uint32{}
	for _, t := range e.Terms {
		if _, sought := d.idf[t]; sought {
			frequency[t]++
		}
	}
	for _, t := range d.q.Terms {
		if n := frequency[t.Text]; n > 0 {
			score += d.idf[t.Text] * saturation.Of(n, uint32(len(e.Terms)))
		}
	}
	if slices.ContainsFunc(d.rare, func(t text.Term) bool { return frequency[t.Text] > 0 }) {
		score += d.bonus
	}
	return score
}

func (d *diskRanking) compareVectors() error {
	if d.q.Vector == nil {
		return nil
	}
	blob := encodeVector(d.q.Vector)
	for _, p := range d.q.Partitions {
		if !d.q.Compare(p) {
			continue
		}
		first, last := passageRange(p)
		err := d.tx.Each(func(row *sqlite.Rows) error {
			var h index.Hit
			var start, length int
			var distance *float64
			if err := row.Scan(&h.Passage, &h.Row, &start, &length, &distance); err != nil {
				return err
			}
			if start < 0 || length < 0 || start > MaxContent || length > MaxContent {
				return damaged(errOutside, "the passages of memory %d", h.Row)
			}
			h.Span = index.Span{Start: uint32(start), End: uint32(start + length)}
			if d.q.Keep != nil && !d.q.Keep(h.Row) {
				return nil
			}
			if known, ok := d.words[h.Passage]; ok {
				h = known
				delete(d.words, h.Passage)
			}
			h.HasVector = true
			if distance != nil && !math.IsNaN(*distance) { // a vector of zeros has no direction
				h.Cosine = float32(max(-1, min(1, 1-*distance)))
			}
			d.offer(h)
			return nil
		}, `SELECT p.id, p.memory_id, p.start, p.length, vec_distance_cosine(p.vector, ?) FROM passage p
			WHERE p.id BETWEEN ? AND ? AND length(p.vector) = ? AND (p.profile_id = ? OR p.profile_id IN (SELECT id FROM profile WHERE model = ?))`,
			blob, first, last, len(blob), d.profile, OwnVectors)
		if err != nil {
			return err
		}
	}
	return nil
}

// offer scores a passage and keeps it if it is the best of its memory.
func (d *diskRanking) offer(h index.Hit) {
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

// best returns the best memories, as many as the query wants, the best one first.
func (d *diskRanking) best() ([]index.Hit, error) {
	n := min(d.q.Limit, len(d.hits))
	if n <= 0 {
		return nil, nil
	}
	scores := make([]float32, len(d.hits))
	for i := range d.hits {
		scores[i] = d.hits[i].Score
	}
	slices.Sort(scores)
	worst := scores[len(scores)-n]
	var best []index.Hit // n, or more where scores are alike: then ids decide
	var rows []int64
	places := map[int64]int{}
	for _, h := range d.hits {
		if h.Score >= worst {
			places[h.Row] = len(best)
			best, rows = append(best, h), append(rows, h.Row)
		}
	}
	err := d.tx.Each(func(row *sqlite.Rows) error {
		var memory int64
		var id string
		err := row.Scan(&memory, &id)
		best[places[memory]].ID = id
		return err
	}, `SELECT id, uid FROM memory WHERE id IN (SELECT value FROM json_each(?))`, jsonList(rows))
	slices.SortFunc(best, func(a, b index.Hit) int { return index.CompareHits(&a, &b) })
	return best[:n], err
}
