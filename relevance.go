package souvenir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/deferredcall"
	"github.com/souvenir-ai/souvenir/internal/embedding"
	"github.com/souvenir-ai/souvenir/internal/fairqueue"
	"github.com/souvenir-ai/souvenir/internal/retrieval"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
	"github.com/souvenir-ai/souvenir/internal/retrieval/ranking"
	"github.com/souvenir-ai/souvenir/internal/text"
)

// How relevant a memory is to a query: by words and meaning, by priors, and, for the best hits, by a Reranker.

// bm25 are the constants of BM25, fitted on the development part of LoCoMo and on Cranfield (docs/retrieval.md). The
// other constants of the ranking are in internal/retrieval/ranking.
var bm25 = index.BM25{K1: 0.9, B: 0.75, Pivot: 80}

// exactness converts the analysis of a search text to the weights of the index.
var exactness = map[text.Exactness]index.Exactness{text.Name: index.Name, text.Identifier: index.Identifier}

// rankedQuery is the request to both the index in memory and the search on disk; both give the same answer.
type rankedQuery struct {
	index.Query
	ideal        float32 // the best possible BM25, set once the query has run
	explanations map[int64]*ranking.Explanation
	ranking      *ranking.Ranking // nil: there is no text
	relevant     bool             // only hits that are relevant are wanted, see [retrieval.Relevant]
}

// search ranks in memory.
func (r *rankedQuery) search(ctx context.Context, ix *index.Index) (hits []index.Hit, total int, err error) {
	if r.relevant {
		return retrieval.SearchRelevant(ctx, ix, r.Query)
	}
	return ix.Search(ctx, r.Query)
}

// byRelevance finds the page of a query that has a text or a vector, and sets the counts of results.
func (s *Store) byRelevance(tx db.Tx, v viewer, q Query, pq preparedQuery, sel selection,
	results *Results) (page, error) {
	if pq.own && len(sel.Partitions) == 0 {
		return page{}, s.checkVectorSize(tx, v, q)
	}
	r, err := s.rankedQuery(tx, pq, sel, results)
	if err != nil {
		return page{}, err
	}
	r.Limit = q.Offset + q.Limit
	if q.MinScore > 0 {
		r.Limit = maxConfident
	}
	if q.Sort != SortRelevance {
		r.Limit, r.relevant = maxRanked, true
	}
	found, err := s.rank(tx, r)
	if err != nil {
		return page{}, err
	}
	if pq.explain {
		results.Plan = SearchPlan(found.Plan)
	}
	hits, total := found.Hits, found.Total
	if q.MinScore > 0 {
		hits = slices.DeleteFunc(hits, func(h index.Hit) bool { return float64(h.Confidence) < q.MinScore })
		total = len(hits)
	}
	if q.Sort != SortRelevance {
		if hits, total, err = retrieval.RelevantByTime(tx, hits, q.Sort.byTime(), q.Limit, q.Offset); err != nil {
			return page{}, err
		}
	} else {
		hits = hits[min(q.Offset, len(hits)):]
		hits = hits[:min(q.Limit, len(hits))]
	}
	results.Total, results.Found = total, total
	if q.MinScore == 0 && r.ranking != nil {
		results.Found = r.ranking.Confident
	}
	return page{hits, r}, nil
}

// maxConfident limits how many memories reach Query.MinScore.
const maxConfident = 1000

// maxRanked limits how many relevant memories an order by time covers.
const maxRanked = 10_000

// checkVectorSize checks the vector of a query for which nothing is stored yet.
func (s *Store) checkVectorSize(tx db.Tx, v viewer, q Query) error {
	all, err := s.listCollections(tx, v, "")
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
	return invalid("query_embedding", "{} has %d dimensions, but the vectors of what is searched have %d",
		len(q.Vector), size)
}

// rankedQuery returns what to rank and how.
func (s *Store) rankedQuery(tx db.Tx, pq preparedQuery, sel selection, results *Results) (*rankedQuery, error) {
	r := &rankedQuery{}
	r.BM25 = bm25
	for _, t := range pq.terms {
		r.Terms = append(r.Terms, index.Term{Text: t.Text, Weight: t.Weight, Exact: exactness[t.Exact], Chunk: t.Chunk})
	}
	ready, err := s.vectors.Ready(tx)
	if err != nil {
		return nil, err
	}
	compare, sizes := s.comparable(pq, sel, ready)
	if pq.own && len(sizes) > 0 && !slices.Contains(sizes, len(pq.vector)) {
		return nil, invalid("query_embedding",
			"{} has %d dimensions, but the vectors of what is searched have %d", len(pq.vector), sizes[0])
	}
	if len(compare) > 0 {
		r.Vector = pq.vector
	}
	for _, p := range sel.Partitions {
		r.Partitions = append(r.Partitions, p.ID)
	}
	r.Compare = func(partition int64) bool { return compare[partition] }
	if err := s.warnOfMissingVectors(tx, ready, pq, sel, results); err != nil {
		return nil, err
	}
	if len(sel.Condition) > 0 {
		rows, err := s.matching(tx, sel)
		if err != nil {
			return nil, err
		}
		r.Keep, r.Rows = func(row int64) bool { return rows.Has(row) && !sel.Hidden[row] }, rows
		r.Exactly = len(sel.Hidden) == 0
	} else if len(sel.Hidden) > 0 {
		r.Keep = func(row int64) bool { return !sel.Hidden[row] }
	}
	question := ranking.NewQuestion(pq.text, pq.terms)
	weights := ranking.Default.For(question, s.embedder.Model() == Builtin().Model())
	fused := ranking.Fuse(weights, len(r.Terms) > 0, r.Vector != nil)
	r.Fuse = func(stats index.Stats) func(index.Parts) float32 {
		r.ideal = stats.IdealBM25
		return fused(stats)
	}
	if len(r.Terms) > 0 {
		if pq.explain {
			r.explanations = map[int64]*ranking.Explanation{}
		}
		ranked := &ranking.Ranking{Weights: weights, Question: question,
			HasVector: r.Vector != nil, Explanations: r.explanations, Priors: s.priors(tx, pq)}
		r.Rerank, r.ranking = ranked.Rerank(), ranked
	}
	return r, nil
}

// comparable returns the partitions in which the vector can be compared, and the sizes of the vectors in all of them.
// ready says whether all vectors made by the store are already of the same model.
func (s *Store) comparable(pq preparedQuery, sel selection, ready bool) (compare map[int64]bool, sizes []int) {
	compare = map[int64]bool{}
	for _, p := range sel.Partitions {
		size, ours := p.OwnSize, p.OwnSize == 0
		if ours {
			size = s.embedder.Dimensions()
		}
		sizes = append(sizes, size)
		if len(pq.vector) == size && (ours && ready || !ours && pq.own) {
			compare[p.ID] = true
		}
	}
	return compare, sizes
}

func (s *Store) warnOfMissingVectors(tx db.Tx, ready bool, pq preparedQuery, sel selection, results *Results) error {
	if pq.vector == nil {
		return nil
	}
	if !ready {
		warning := fmt.Sprintf("the store is changing to the embedding model %s; it is searched by words only until that "+
			"is done", s.embedder.Model())
		other, err := s.vectors.Other(tx)
		switch {
		case err != nil:
			return err
		case other != "" && !s.db.ReadOnly():
			warning = fmt.Sprintf("the store has vectors of the embedding model %s, not of %s, so it is searched by words only",
				other, s.embedder.Model())
		case s.db.ReadOnly():
			warning = fmt.Sprintf("the store has no vectors of the embedding model %s and is open read-only, so it is "+
				"searched by words only", s.embedder.Model())
		}
		results.Warnings = append(results.Warnings, warning)
		return nil
	}
	const enough = 1000
	waiting, err := embedding.Pending(tx, sel.PartitionList(), enough)
	switch {
	case waiting == enough:
		results.Warnings = append(results.Warnings,
			fmt.Sprintf("%d passages or more are not embedded yet; they are found by words only", waiting))
	case waiting > 0:
		results.Warnings = append(results.Warnings,
			fmt.Sprintf("%d passages are not embedded yet; they are found by words only", waiting))
	}
	return err
}

// useIndex calls the Use method of the index, which all users share.
func (s *Store) useIndex(tx db.Tx, partitions []int64, search func(*index.Index) error) (plan retrieval.Plan,
	err error) {
	err = db.Beyond(tx, func() (err error) {
		if _, err = s.limits(tx); err != nil { // IndexMemory may have been changed
			return err
		}
		plan, err = s.index.Use(tx, partitions, search)
		return err
	})
	return plan, err
}

// rank finds the best memories: in memory if the index holds all searched partitions, else on disk.
func (s *Store) rank(tx db.Tx, r *rankedQuery) (found retrieval.Ranked, err error) {
	plan, err := s.useIndex(tx, r.Partitions, func(ix *index.Index) (err error) {
		found.Hits, found.Total, err = r.search(tx.Context(), ix)
		return err
	})
	found.Plan = plan
	switch {
	case err != nil:
		return retrieval.Ranked{}, err
	case plan == "":
		defer s.index.LoadIfDue()
		found, err = retrieval.SearchDatabase(tx, s.profile, r.Query)
	}
	if err == nil && r.ranking != nil {
		err = r.ranking.Failed
	}
	if r.ranking == nil {
		for i := range found.Hits {
			found.Hits[i].Confidence = max(0, found.Hits[i].Cosine)
		}
	}
	return found, err
}

// defaultHalfLife is the half-life of recency.
const defaultHalfLife = 30 * 24 * time.Hour

// priors returns the priors of a query for the ranking, which reads the evidence of the memories that it orders.
func (s *Store) priors(tx db.Tx, pq preparedQuery) ranking.Priors {
	p := pq.priors
	at := s.now()
	if !pq.at.IsZero() {
		at = pq.at.UnixMicro()
	}
	halfLife := float64(cmp.Or(p.HalfLife, defaultHalfLife)) / float64(time.Microsecond) // above 0, however short it is
	return ranking.Priors{Of: retrieval.PriorsIn(tx, at, halfLife, p.States),
		Weights: ranking.Prior{Recency: float32(p.Recency), Importance: float32(p.Importance), State: float32(p.State)}}
}

// preparedQuery is a query whose text has been analysed and embedded.
type preparedQuery struct {
	text     string
	terms    []text.Term
	explain  bool
	priors   Priors
	at       time.Time // AsOf; zero means now
	vector   []float32 // of unit length; nil: words only
	own      bool      // the caller's vector, which may be compared with own vectors, too
	warnings []string
}

// prepareQuery analyses a query, and embeds its text.
func (s *Store) prepareQuery(ctx context.Context, q Query) (preparedQuery, error) {
	all, err := s.prepareQueries(ctx, []Query{q})
	if err != nil {
		return preparedQuery{}, err
	}
	return all[0], nil
}

// prepareQueries analyses queries, and embeds their texts in one call. The error [deferredcall.ErrLater] means that the
// call will be repeated.
func (s *Store) prepareQueries(ctx context.Context, queries []Query) ([]preparedQuery, error) {
	all := make([]preparedQuery, len(queries))
	var texts []string
	askedBy := map[string][]int{} // the queries with a text
	for i, q := range queries {
		all[i] = preparedQuery{text: q.Text, terms: text.QueryTerms(q.Text), explain: q.Explain, priors: q.Priors,
			at: q.AsOf, vector: q.Vector, own: q.Vector != nil}
		if all[i].own || strings.TrimSpace(q.Text) == "" {
			continue
		}
		queryText := q.Text
		if most := maxInput(s.embedder); len(queryText) > most { // embeds only its beginning; all of its words count
			first := text.Split(queryText, most)[0]
			queryText = queryText[first.Start:first.End]
		}
		if askedBy[queryText] == nil {
			texts = append(texts, queryText)
		}
		askedBy[queryText] = append(askedBy[queryText], i)
	}
	if len(texts) == 0 {
		return all, nil
	}
	later := s.embedsLater(ctx)
	var vectors [][]float32
	var err error
	if !later {
		vectors, err = s.embedSearched(ctx, texts)
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, deferredcall.ErrTooLate):
		return nil, context.DeadlineExceeded
	case errors.Is(err, deferredcall.ErrLater):
		return nil, err
	case err != nil:
		s.log.WarnContext(ctx, "could not embed a search text; searching by words only", "error", err)
	}
	for n, queryText := range texts {
		for _, i := range askedBy[queryText] {
			why := "searched by words only, because the embedder " + s.embedder.Model()
			switch {
			case later:
				all[i].warnings = []string{why + " is not called within a transaction"}
			case err != nil:
				all[i].warnings = []string{why + " failed"}
			default:
				all[i].vector = vectors[n]
			}
		}
	}
	return all, nil
}

// embedSearched embeds search texts. In a snapshot, a model of another program is asked later, if it can be.
func (s *Store) embedSearched(ctx context.Context, texts []string) ([][]float32, error) {
	ask := func(ctx context.Context) ([][]float32, error) { return s.embed(ctx, ForQuery, texts, nil) }
	if isBuiltin(s.embedder) || !s.db.InSnapshot(ctx) {
		return ask(ctx)
	}
	return deferredcall.Ask(ctx, fmt.Sprintf("embed %q", texts), ask)
}

// Reranking is the score that [Options.Reranker] gave a hit. It adds nothing to the hit's own score.
type Reranking struct {
	Score float64 `json:"score"` // on the Reranker's own scale
	From  int     `json:"from"`  // the previous rank
}

// Reranker reorders the best hits of a search, for example with a cross-encoder. None is built in.
//
// [Store.Search] and [Store.SearchBatch] call it, also for tools and HTTP, after they have read the store: no
// transaction waits for it. If it fails, panics, or returns invalid scores, the order stays as it was, with a warning.
// Within [Store.Transaction] it is not called.
type Reranker interface {
	// Rerank returns a score for each text: the higher, the more relevant to the query. Scores may have any scale but
	// must be finite. The texts are the best passages of 2 to 100 hits, the best first, and the caller may see all of
	// them. It is called from several goroutines at once and must honour its context. Only the log sees its errors.
	Rerank(ctx context.Context, query string, texts []string) ([]float64, error)
}

// RerankerFunc makes a [Reranker] from a function.
type RerankerFunc func(ctx context.Context, query string, texts []string) ([]float64, error)

// Rerank calls the function.
func (f RerankerFunc) Rerank(ctx context.Context, query string, texts []string) ([]float64, error) {
	return f(ctx, query, texts)
}

// rerankDepth returns how many of the best hits of a valid query are reranked; 0: none.
func (s *Store) rerankDepth(q Query) int {
	n := q.Rerank
	if n == 0 {
		n = DefaultRerank
	}
	if s.options.Reranker == nil || q.Sort != SortRelevance || strings.TrimSpace(q.Text) == "" || q.Offset >= n {
		return 0
	}
	return n
}

// candidates returns the query for the reranked hits and all hits up to the end of the page.
func (s *Store) candidates(q Query) Query {
	if n := s.rerankDepth(q); n > 0 {
		q.Offset, q.Limit, q.WithoutContent = 0, max(n, q.Offset+q.Limit), false
	}
	return q
}

// rerank reorders the best of a query's candidates, and returns the page.
func (s *Store) rerank(ctx context.Context, q Query, r *Results) error {
	n := s.rerankDepth(q)
	if n == 0 {
		return nil
	}
	best := r.Hits[:min(n, len(r.Hits))]
	if len(best) > 1 {
		scores, err := s.rerankerScores(ctx, q.Text, best)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, deferredcall.ErrTooLate):
			return context.DeadlineExceeded
		case errors.Is(err, deferredcall.ErrLater): // the order is of no use
		case err != nil:
			s.log.WarnContext(ctx, "could not rerank hits; keeping their order", "error", err)
			r.Warnings = append(r.Warnings, "the results are in the order before reranking, because the reranker failed")
		default:
			order(best, scores)
		}
	}
	r.Offset, r.Limit = q.Offset, q.Limit
	page := r.Hits[min(q.Offset, len(r.Hits)):]
	r.Hits = slices.Clone(page[:min(q.Limit, len(page))])
	for i := range r.Hits {
		h := &r.Hits[i]
		h.Rank = q.Offset + i + 1
	}
	if q.WithoutContent {
		withoutContent(r.Hits)
	}
	return nil
}

// rerankerScores returns a score for each hit.
func (s *Store) rerankerScores(ctx context.Context, query string, hits []Hit) ([]float64, error) {
	texts := make([]string, len(hits))
	for i, h := range hits {
		texts[i] = h.Content[h.Start:h.End]
	}
	ask := func(ctx context.Context) ([]float64, error) { return s.callReranker(ctx, query, texts) }
	if !s.db.InSnapshot(ctx) {
		return ask(ctx)
	}
	return deferredcall.Ask(ctx, fmt.Sprintf("rerank %q %q", query, texts), ask)
}

// callReranker returns a score for each text. A panic is an error.
func (s *Store) callReranker(ctx context.Context, query string, texts []string) (scores []float64, err error) {
	defer fairqueue.Pause(ctx)()
	defer func() {
		if broken := recover(); broken != nil {
			scores, err = nil, fmt.Errorf("panic: %v\n%s", broken, debug.Stack())
		}
	}()
	scores, err = s.options.Reranker.Rerank(ctx, query, texts)
	if err == nil && len(scores) != len(texts) {
		err = fmt.Errorf("the reranker returned %d scores for %d texts", len(scores), len(texts))
	}
	if err == nil && slices.ContainsFunc(scores, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }) {
		err = fmt.Errorf("the reranker returned a score that is not finite: %v", scores)
	}
	return scores, err
}

// order sorts hits by their scores, the highest first. Hits with the same score keep their order.
func order(hits []Hit, scores []float64) {
	reranked := make([]Reranking, len(hits))
	for i := range hits {
		reranked[i] = Reranking{Score: scores[i], From: i + 1}
	}
	slices.SortStableFunc(reranked, func(a, b Reranking) int { return cmp.Compare(b.Score, a.Score) })
	before := slices.Clone(hits)
	for i, r := range reranked {
		hits[i] = before[r.From-1]
		if x := hits[i].Explanation; x != nil {
			x.Reranked = &r
		}
	}
}
