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

	"github.com/souvenir-ai/souvenir/internal/deferredcall"
	"github.com/souvenir-ai/souvenir/internal/fairqueue"
)

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
