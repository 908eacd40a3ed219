package souvenir

import (
	"context"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/index"
	"github.com/souvenir-ai/souvenir/internal/retrieval"
	"github.com/souvenir-ai/souvenir/internal/text"
)

// The hybrid ranking. Both parts of a score lie between 0 and 1, so that a score means the same in every query: the
// cosine similarity, and BM25 as a part of the best that the query's words could reach. Rare names and identifiers of the
// query take four fifths of the words' part (index.Exact). The constants were fitted on the development part of LoCoMo and
// on Cranfield (docs/benchmarks.md).
const vectorWeight = 0.35

var bm25 = index.BM25{K1: 0.9, B: 0.75, Pivot: 80}

// fuse builds the function that scores a passage.
func fuse(hasText, hasVector bool) func(index.Stats) func(index.Parts) float32 {
	return func(stats index.Stats) func(index.Parts) float32 {
		return func(p index.Parts) float32 {
			var words, meaning float32
			if stats.IdealBM25 > 0 {
				words = p.BM25 / stats.IdealBM25
			}
			meaning = max(0, p.Cosine)
			switch {
			case !hasVector:
				return words
			case !hasText:
				return meaning
			}
			return (1-vectorWeight)*words + vectorWeight*meaning
		}
	}
}

// exactness translates what the analysis of a search text found into what the index weighs.
var exactness = map[text.Exactness]index.Exactness{text.Name: index.Name, text.Identifier: index.Identifier}

// ranking is what the index in memory and the search on disk are asked alike, and answer alike.
type ranking struct {
	index.Query
	ideal float32 // set when the query has run: the best possible BM25
}

// searchByRelevance fills in the page of a query that has a text or a vector.
func (s *Store) searchByRelevance(tx db.Tx, sc scope, q Query, w want, sel selection, results *Results) error {
	if w.own && len(sel.partitions) == 0 {
		return s.checkVectorSize(tx, sc, q)
	}
	r, err := s.ranking(tx, w, sel, results)
	if err != nil {
		return err
	}
	r.Limit = q.Offset + q.Limit
	if q.Sort != SortRelevance {
		r.Limit = maxRanked
	}
	hits, total, err := s.rank(tx, r)
	if err != nil {
		return err
	}
	if q.Sort != SortRelevance {
		if hits, total, err = orderByTime(tx, hits, q); err != nil {
			return err
		}
	} else {
		hits = hits[min(q.Offset, len(hits)):]
	}
	results.Total = total
	return s.showHits(tx, sc, hits, r.ideal, results)
}

// maxRanked bounds how many relevant memories an order by time goes through.
const maxRanked = 10_000

// checkVectorSize checks the vector of a query for which nothing is stored yet.
func (s *Store) checkVectorSize(tx db.Tx, sc scope, q Query) error {
	all, err := s.listCollections(tx, sc, "")
	if err != nil {
		return err
	}
	size := s.embedder.Dimensions()
	for _, c := range all {
		if len(q.Collections) > 0 && !slices.Contains(q.Collections, c.Name) {
			continue
		}
		if size = c.VectorSize; size == len(q.Vector) {
			return nil
		}
	}
	if size == len(q.Vector) {
		return nil
	}
	return invalid("query_embedding", "query_embedding has %d dimensions, but the vectors of what is searched have %d", len(q.Vector), size)
}

// ranking says what is to be ranked and how.
func (s *Store) ranking(tx db.Tx, w want, sel selection, results *Results) (*ranking, error) {
	r := &ranking{}
	r.BM25 = bm25
	for _, t := range w.terms {
		r.Terms = append(r.Terms, index.Term{Text: t.Text, Weight: t.Weight, Exact: exactness[t.Exact]})
	}
	ready, err := s.embeddingReady(tx)
	if err != nil {
		return nil, err
	}
	compare, sizes := s.comparable(w, sel, ready)
	if w.own && len(sizes) > 0 && !slices.Contains(sizes, len(w.vector)) {
		return nil, invalid("query_embedding", "query_embedding has %d dimensions, but the vectors of what is searched have %d", len(w.vector), sizes[0])
	}
	if len(compare) > 0 {
		r.Vector = w.vector
	}
	for _, p := range sel.partitions {
		r.Partitions = append(r.Partitions, p.id)
	}
	r.Compare = func(partition int64) bool { return compare[partition] }
	if err := s.warnOfMissingVectors(tx, ready, w, sel, results); err != nil {
		return nil, err
	}
	if sel.condition != "" {
		condition, args := sel.where()
		rows, err := db.Column[int64](tx, `SELECT m.id `+fromMemory+` WHERE `+condition, args...)
		if err != nil {
			return nil, err
		}
		keep := make(map[int64]bool, len(rows))
		for _, row := range rows {
			keep[row] = true
		}
		r.Keep = func(row int64) bool { return keep[row] }
	}
	fused := fuse(len(r.Terms) > 0, r.Vector != nil)
	r.Fuse = func(stats index.Stats) func(index.Parts) float32 {
		r.ideal = stats.IdealBM25
		return fused(stats)
	}
	return r, nil
}

// comparable returns in which partitions the vector can be compared, and the sizes of the vectors in all of them. Ready says
// whether all vectors that the store makes are of the same model by now.
func (s *Store) comparable(w want, sel selection, ready bool) (compare map[int64]bool, sizes []int) {
	compare = map[int64]bool{}
	for _, p := range sel.partitions {
		size, ours := p.ownSize, p.ownSize == 0
		if ours {
			size = s.embedder.Dimensions()
		}
		sizes = append(sizes, size)
		if len(w.vector) == size && (ours && ready || !ours && w.own) {
			compare[p.id] = true
		}
	}
	return compare, sizes
}

func (s *Store) warnOfMissingVectors(tx db.Tx, ready bool, w want, sel selection, results *Results) error {
	if w.vector == nil {
		return nil
	}
	if !ready {
		warning := fmt.Sprintf("the store is changing to the embedding model %s; until that is done it is searched by words only", s.embedder.Model())
		if s.db.ReadOnly() {
			warning = fmt.Sprintf("the store has no vectors of the embedding model %s and is opened for reading only, so it is searched by words only", s.embedder.Model())
		}
		results.Warnings = append(results.Warnings, warning)
		return nil
	}
	const enough = 1000
	waiting, err := pendingPassages(tx, sel.partitionList(), enough)
	switch {
	case waiting == enough:
		results.Warnings = append(results.Warnings, fmt.Sprintf("%d passages or more wait to be embedded; they are found by words only", waiting))
	case waiting > 0:
		results.Warnings = append(results.Warnings, fmt.Sprintf("%d passages wait to be embedded; they are found by words only", waiting))
	}
	return err
}

// rank finds the best memories: in memory if the index is there, else on disk.
func (s *Store) rank(tx db.Tx, r *ranking) ([]index.Hit, int, error) {
	ix, err := s.index.Current(tx)
	if err != nil {
		return nil, 0, err
	}
	if ix == nil {
		defer s.index.LoadIfDue()
		return retrieval.SearchDatabase(tx, s.profile, r.Query)
	}
	return ix.Search(tx.Context(), r.Query)
}

// orderByTime takes those hits that are at least half as relevant as the best one, and returns a page of them by time.
func orderByTime(tx db.Tx, hits []index.Hit, q Query) (page []index.Hit, total int, err error) {
	byRow := map[int64]index.Hit{}
	var rows []int64
	for _, h := range hits {
		if h.Score < hits[0].Score/2 {
			break
		}
		byRow[h.Row] = h
		rows = append(rows, h.Row)
	}
	ordered, err := db.Column[int64](tx, `SELECT m.id FROM memory m WHERE m.id IN `+db.Integers+` ORDER BY `+timeOrder(q.Sort)+` LIMIT ? OFFSET ?`,
		jsonList(rows), q.Limit, q.Offset)
	for _, row := range ordered {
		page = append(page, byRow[row])
	}
	return page, len(rows), err
}

// showHits reads the memories of a page.
func (s *Store) showHits(tx db.Tx, sc scope, hits []index.Hit, ideal float32, results *Results) error {
	rows := make([]int64, len(hits))
	byRow := make(map[int64]*index.Hit, len(hits))
	for i := range hits {
		rows[i] = hits[i].Row
		byRow[hits[i].Row] = &hits[i]
	}
	found, err := s.loadRows(tx, sc, rows)
	for _, m := range found {
		h := byRow[m.row]
		hit := Hit{Memory: m.Memory, Rank: results.Offset + len(results.Hits) + 1, Score: float64(h.Score), Parts: Parts{Vector: float64(h.Cosine)}}
		if ideal > 0 {
			hit.Parts.Text = float64(h.BM25 / ideal)
		}
		hit.Start, hit.End = passageOf(m.Content, h.Span)
		results.Hits = append(results.Hits, hit)
	}
	return err
}

// passageOf returns where a passage lies in a content: all of it where the passage does not fit. The index may know of a
// change that this snapshot does not, and then the passage is one of another content.
func passageOf(content string, span index.Span) (start, end int) {
	start, end = int(span.Start), int(span.End)
	if start > end || end > len(content) || !utf8.ValidString(content[start:end]) {
		return 0, len(content)
	}
	return start, end
}

// LoadIndex begins to load what searches compare into memory, and does not wait for it: a program that answers many searches calls it
// when it begins, so that the first of them need not go to disk. Without it, the first search does the same once it is answered. Where
// IndexMemory allows no index, or there is one, nothing happens. Only for the operator's store.
func (h *Upkeep) LoadIndex(ctx context.Context) error {
	s, err := h.operator("LoadIndex")
	if err != nil {
		return err
	}
	defer s.index.LoadIfDue()
	return s.inspect(ctx, func(tx db.Tx) error {
		_, err := s.index.Current(tx)
		return err
	})
}
