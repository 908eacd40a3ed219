package souvenir

import (
	"context"
	"encoding/json"
	"iter"
	"reflect"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/embedding"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/portions"
	"github.com/souvenir-ai/souvenir/internal/retrieval"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
	"github.com/souvenir-ai/souvenir/internal/retrieval/ranking"
)

// Search finds memories by meaning and by word, and returns one page of them, the best first. A query with neither a
// text nor a vector finds all memories that match its other fields, those updated last first. A query out of range is
// ErrInvalid, and a collection that does not exist ErrNotFound; a project that does not exist has no memories.
func (s *Store) Search(ctx context.Context, q Query) (Results, error) {
	return hooked(ctx, s, OperationSearch, "Search", func(ctx context.Context, o *operation) (_ Results, err error) {
		defer setGoNames[Query](&err)
		if err := q.prepare(ctx, o); err != nil {
			return Results{}, err
		}
		all, err := s.search(ctx, []Query{q})
		if err != nil {
			return Results{}, err
		}
		return all[0], nil
	})
}

// SearchBatch answers several queries, in their order, from one state of the store. Their texts are embedded in one
// call, and adjacent queries with the same filters resolve them once, so it costs less than single searches. At
// most 100 queries are allowed, and their limits add up to at most 1,000. An error names the query; then there are no
// results.
func (s *Store) SearchBatch(ctx context.Context, queries []Query) ([]Results, error) {
	return hooked(ctx, s, OperationSearch, "SearchBatch",
		func(ctx context.Context, o *operation) (_ []Results, err error) {
			defer setGoNames[Query](&err, "queries", "queries")
			if len(queries) > MaxQueries {
				return nil, newError(KindTooLarge, "queries", "{} has %d queries; at most %d are allowed", len(queries),
					MaxQueries)
			}
			queries := slices.Clone(queries)
			hits := 0
			for i := range queries {
				if err := queries[i].prepare(ctx, o); err != nil {
					return nil, located(err, "queries", i, len(queries))
				}
				hits += queries[i].Limit
			}
			if hits > MaxBatchHits {
				return nil, newError(KindTooLarge, "queries", "the limits of the queries add up to %d; at most %d are allowed",
					hits, MaxBatchHits)
			}
			return s.search(ctx, queries)
		})
}

// Results are a page of search results.
type Results struct {
	Hits   []Hit     `json:"hits"`
	Total  int       `json:"total"` // memories found, on all pages
	Offset int       `json:"offset"`
	Limit  int       `json:"limit"`
	Sort   SortOrder `json:"sort_order"` // the order that was used
	// how many of the found memories are probably about the text: hits with a Confidence of at least 0.5, of the best 30
	// or so and their neighbours in conversations. With MinScore, or without a text or a vector, it is Total.
	Found int        `json:"found"`
	Plan  SearchPlan `json:"way,omitempty"` // only with Query.Explain, in a search with a text or a vector
	// notes for the caller, for example that a part of the store is currently found by words only
	Warnings []string `json:"warnings,omitempty"`

	Documents []DocumentHit `json:"documents,omitempty"` // the best first; only with Query.Documents
}

// HasMore reports whether there are results after this page.
func (r Results) HasMore() bool { return r.Offset+len(r.Hits) < r.Total }

// MarshalJSON returns hits (never null), total, offset, limit, sort_order, has_more and warnings.
func (r Results) MarshalJSON() ([]byte, error) {
	type plain Results
	r.Hits = jsonobject.List(r.Hits)
	return json.Marshal(struct {
		plain
		HasMore bool `json:"has_more"`
	}{plain(r), r.HasMore()})
}

// SearchPlan is how a search by relevance was executed. All plans rank alike.
type SearchPlan string

// The values of [SearchPlan].
const (
	PlanMemory   SearchPlan = SearchPlan(retrieval.ByMemory)   // in the index in memory
	PlanSegments SearchPlan = SearchPlan(retrieval.BySegments) // likewise, after loading some of it from stored segments
	// in the database, comparing the nearest vectors from its vector index, and the memories that share words
	PlanVectorIndex SearchPlan = SearchPlan(retrieval.ByNearest)
	PlanScan        SearchPlan = SearchPlan(retrieval.ByScan) // in the database, comparing all vectors
)

// Hit is a memory found by a search.
type Hit struct {
	Memory
	Rank int // place in the whole result, from 1
	// relevance, 0 to 1, which orders the hits of one search unless a Reranker does; 0 when nothing was searched for
	Score float64

	// Confidence is how likely the memory is about the search text, 0 to 1. It is comparable between searches: 0.5 is
	// "probably". It is calibrated for the built-in model. Without a text it is the cosine similarity if that is above
	// 0; without text and vector it is 0.
	Confidence float64

	Parts Parts // the components of the score

	// Start and End are byte offsets into Content: the best matching passage.
	Start, End int

	Explanation *Explanation // only with Query.Explain, in a search by relevance with a text

	FileCount int           // files linked to the memory
	Files     []FileSummary // the newest first; only with Query.IncludeFiles
}

// MarshalJSON returns the memory's form with rank, score, parts, start, end, file_count and files (never null).
func (h Hit) MarshalJSON() ([]byte, error) {
	files := h.Files
	if files == nil {
		files = []FileSummary{}
	}
	return json.Marshal(struct {
		writtenMemory
		hitJSON
	}{written(h.Memory), hitJSON{h.Rank, h.Score, h.Confidence, h.Parts, h.Start, h.End, h.Explanation, h.FileCount,
		files}})
}

// UnmarshalJSON reads the output of MarshalJSON.
func (h *Hit) UnmarshalJSON(data []byte) error {
	var beside hitJSON
	var m Memory
	if err := withMemory(data, &m, &beside); err != nil {
		return err
	}
	*h = Hit{m, beside.Rank, beside.Score, beside.Confidence, beside.Parts, beside.Start, beside.End, beside.Explanation,
		beside.FileCount, beside.Files}
	return nil
}

// hitJSON has the fields of a hit besides its memory's.
type hitJSON struct {
	Rank        int           `json:"rank"`
	Score       float64       `json:"score"`
	Confidence  float64       `json:"confidence"`
	Parts       Parts         `json:"parts"`
	Start       int           `json:"start"`
	End         int           `json:"end"`
	Explanation *Explanation  `json:"explanation,omitempty"`
	FileCount   int           `json:"file_count"`
	Files       []FileSummary `json:"files"`
}

// Parts are the components of a relevance score.
type Parts struct {
	// cosine similarity of the best passage to the query, -1 to 1; 0 without a vector
	Vector float64 `json:"vector"`
	Text   float64 `json:"text"` // how well the words match, as a fraction of the best possible BM25 score: 0 to 1
}

// Group is the part of a page from one collection.
type Group struct {
	Collection string `json:"collection_name"`
	// user id of the collection's owner: collections of different owners may have the same name
	Owner string `json:"owner"`
	Hits  []Hit  `json:"hits"`
}

// Groups returns the page's hits by collection, in the order of each collection's best hit.
func (r Results) Groups() []Group {
	var groups []Group
	type collection struct{ owner, name string }
	place := map[collection]int{}
	for _, h := range r.Hits {
		of := collection{h.Owner, h.Collection}
		i, known := place[of]
		if !known {
			i = len(groups)
			place[of] = i
			groups = append(groups, Group{Collection: h.Collection, Owner: h.Owner})
		}
		groups[i].Hits = append(groups[i].Hits, h)
	}
	return groups
}

// Explanation breaks down the score of a hit. The gains add up to the score, unless that would exceed 1, or the score
// of a hit that precedes it for another reason.
type Explanation struct {
	Words   Evidence `json:"words"`             // BM25, as a fraction of the best that the query's words could reach
	Meaning Evidence `json:"meaning"`           // cosine similarity of the vectors
	Late    Evidence `json:"late_interaction"`  // the best match in the memory for each query word
	Exact   float64  `json:"exact,omitempty"`   // gain for a rare name or identifier of the query
	Asking  float64  `json:"asking,omitempty"`  // below 0: loss for being a question itself
	Speaker float64  `json:"speaker,omitempty"` // gain for a speaker named in the query
	// what was said around it in the same conversation, in order
	Neighbours []NeighbourEvidence `json:"lenders,omitempty"`

	// the gains of Query.Priors; nil without them
	Recency    *Evidence `json:"recency,omitempty"`
	Importance *Evidence `json:"importance,omitempty"`
	State      *Evidence `json:"state,omitempty"`

	Reranked *Reranking `json:"reranked,omitempty"` // the Reranker's score; nil: it was not called
}

// Evidence is one kind of evidence of a memory: how strong it is, 0 to 1, and what it adds to the score.
type Evidence struct {
	Value float64 `json:"value"`
	Gain  float64 `json:"gain"`
}

// NeighbourEvidence is a memory whose own evidence adds to the score of another memory of its conversation.
type NeighbourEvidence struct {
	ID string `json:"id"`
	// 1 is right after the hit, -1 right before it, 0 the hit itself: the best around it
	Place int     `json:"place"`
	Asks  bool    `json:"asks,omitempty"` // it is a question, and the hit may be the answer
	Value float64 `json:"value"`          // its own evidence, 0 to 1
	Gain  float64 `json:"gain"`
}

func explanationOf(e *ranking.Explanation) *Explanation {
	if e == nil {
		return nil
	}
	evidence := func(p ranking.Part) Evidence { return Evidence{float64(p.Value), float64(p.Gain)} }
	x := Explanation{Words: evidence(e.Words), Meaning: evidence(e.Meaning), Late: evidence(e.Late),
		Exact:  float64(e.Exact),
		Asking: float64(e.Asking), Speaker: float64(e.Speaker)}
	for _, prior := range []struct {
		field **Evidence
		ranking.Part
	}{{&x.Recency, e.Recency}, {&x.Importance, e.Importance}, {&x.State, e.State}} {
		if prior.Part != (ranking.Part{}) {
			*prior.field = &Evidence{float64(prior.Value), float64(prior.Gain)}
		}
	}
	for _, l := range e.Lenders {
		x.Neighbours = append(x.Neighbours, NeighbourEvidence{l.ID, l.Place, l.Asks, float64(l.Value), float64(l.Gain)})
	}
	return &x
}

// prepare checks a query, and lets the hooks rewrite it.
func (q *Query) prepare(ctx context.Context, o *operation) error {
	if err := q.check(); err != nil || o == nil {
		return err
	}
	if err := o.search(ctx, q); err != nil {
		return err
	}
	return q.check()
}

// search answers valid queries from one snapshot.
func (s *Store) search(ctx context.Context, queries []Query) ([]Results, error) {
	if s.options.Reranker != nil && s.db.InTransaction(ctx) { // it would hold the writer while another program works
		queries = slices.Clone(queries)
		for i := range queries {
			queries[i].Rerank = -1
		}
	}
	prepared, err := s.prepareQueries(ctx, queries)
	if err != nil {
		return nil, err
	}
	all := make([]Results, len(queries))
	err = s.readAhead(ctx, aheadOfSearch, func(tx db.Tx, v viewer) error {
		var scope Query // of the selection
		var sel selection
		for i, q := range queries {
			if next := q.scope(); i == 0 || !reflect.DeepEqual(next, scope) {
				if sel, err = s.selection(tx, v, q); err != nil {
					return located(err, "queries", i, len(queries))
				}
				scope = next
			}
			if all[i], err = s.searchIn(tx, v, s.candidates(q), prepared[i], sel); err != nil {
				return located(err, "queries", i, len(queries))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, q := range queries {
		if err := s.rerank(ctx, q, &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// aheadOfSearch announces the rows that a search without filters reads, besides its hits.
func aheadOfSearch(tx db.Tx, v viewer) {
	if !v.Limited {
		visible, args := v.VisibleOfAll()
		db.Ahead(tx, selectPartitions+visible+byNumber, args...)
	}
	embedding.Ahead(tx)
	db.MarkAhead(tx)
	kernel.LinkedFilesAhead(tx)
}

// searchIn answers one query within a selection.
func (s *Store) searchIn(tx db.Tx, v viewer, q Query, pq preparedQuery, sel selection) (results Results, err error) {
	p, results, err := s.page(tx, v, q, pq, sel)
	if err != nil {
		return Results{}, err
	}
	if results.Hits, err = s.show(tx, v, q, p, q.Offset); err != nil {
		return Results{}, err
	}
	results.Documents, err = s.documents(tx, v, q, pq)
	return results, err
}

// page finds the page of a query; the results have everything but the hits.
func (s *Store) page(tx db.Tx, v viewer, q Query, pq preparedQuery, sel selection) (p page, results Results,
	err error) {
	results = Results{Offset: q.Offset, Limit: q.Limit, Sort: q.Sort, Warnings: slices.Concat(pq.warnings, sel.warnings)}
	if q.rankable() {
		p, err = s.byRelevance(tx, v, q, pq, sel, &results)
		return p, results, err
	}
	rows, total, err := s.byTime(tx, q, sel)
	results.Total, results.Found = total, total
	for _, row := range rows {
		p.hits = append(p.hits, index.Hit{Row: row})
	}
	return p, results, err
}

// byTime returns the rows of a page in an order of time, or of keys, and how many memories match.
func (s *Store) byTime(tx db.Tx, q Query, sel selection) (rows []int64, total int, err error) {
	order := q.Sort.byTime()
	if q.Limit <= MaxLimit && s.orders.Worth(sel.Selection, order, q.Offset) {
		rows, total, done, err := s.orders.Page(tx, &s.filters, sel.Selection, order, q.Limit, q.Offset)
		if err != nil || done {
			return rows, total, err
		}
	}
	if total, err = sel.Count(tx); err != nil {
		return nil, 0, err
	}
	rows, err = sel.Page(tx, order, q.Limit, q.Offset)
	return rows, total, err
}

// SearchAll iterates over the hits of a query beyond a single page: the best 10,000 by relevance or, without a text or
// a vector, all of them. It ranks once, when the loop begins, and reads 100 memories at a time; memories deleted
// meanwhile, or no longer visible, are left out. Limit must be zero: break the loop instead. [Options.Reranker] is not
// called.
func (s *Store) SearchAll(ctx context.Context, q Query) iter.Seq2[Hit, error] {
	return func(yield func(Hit, error) bool) {
		q := q // a second loop begins with the query as it was given
		var all page
		shown := 0
		portions.ByRow(MaxLimit, func() (_ []index.Hit, err error) {
			all, err = hooked(ctx, s, OperationSearch, "SearchAll", func(ctx context.Context, o *operation) (_ page, err error) {
				defer setGoNames[Query](&err)
				if q.Limit != 0 {
					return page{}, invalid("limit", "{} is %d; it must be 0 here; break out of the loop instead", q.Limit)
				}
				if err := q.prepare(ctx, o); err != nil {
					return page{}, err
				}
				return s.pageOfAll(ctx, q)
			})
			return all.hits, err
		}, func(some []index.Hit) (hits []Hit, err error) {
			err = s.read(ctx, func(tx db.Tx, v viewer) (err error) {
				hits, err = s.show(tx, v, q, page{some, all.query}, q.Offset+shown)
				return err
			})
			shown += len(some)
			return hits, err
		})(yield)
	}
}

// pageOfAll finds all hits of a valid query.
func (s *Store) pageOfAll(ctx context.Context, q Query) (all page, err error) {
	pq, err := s.prepareQuery(ctx, q)
	if err != nil {
		return page{}, err
	}
	q.Limit = maxOffset
	if q.rankable() {
		q.Limit = maxRanked
	}
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		sel, err := s.selection(tx, v, q)
		if err != nil {
			return err
		}
		all, _, err = s.page(tx, v, q, pq, sel)
		return err
	})
	return all, err
}

// addFiles counts the files of each hit and, with summaries, adds their summaries.
func addFiles(tx db.Tx, v viewer, hits []Hit, summaries bool) error {
	ids := make([]string, len(hits))
	place := make(map[string]*Hit, len(hits))
	for i := range hits {
		ids[i], place[hits[i].ID] = hits[i].ID, &hits[i]
	}
	return kernel.LinkedFiles(tx, v, ids, summaries, func(memory string, n int, f kernel.File) {
		h := place[memory]
		if h.FileCount += n; summaries {
			h.Files = append(h.Files, FileSummary{f.ID, f.Name, f.Type, f.Size})
		}
	})
}

// page is a page of hits before their memories are read. A nil query means that nothing was ranked.
type page struct {
	hits  []index.Hit
	query *rankedQuery
}

// show reads the memories of a page with all that the query asks for. Offset is how many hits come before them.
func (s *Store) show(tx db.Tx, v viewer, q Query, p page, offset int) ([]Hit, error) {
	hits, err := s.showMemories(tx, v, q.contentColumn(), p, offset)
	if err != nil {
		return nil, err
	}
	if hits, err = hitsAsOf(tx, v, hits, q.AsOf); err != nil {
		return nil, err
	}
	if q.WithoutContent {
		withoutContent(hits)
	}
	return hits, addFiles(tx, v, hits, q.IncludeFiles)
}

// showMemories reads the memories of a page.
func (s *Store) showMemories(tx db.Tx, v viewer, content string, p page, offset int) ([]Hit, error) {
	rows := make([]int64, len(p.hits))
	byRow := make(map[int64]*index.Hit, len(p.hits))
	for i := range p.hits {
		rows[i] = p.hits[i].Row
		byRow[p.hits[i].Row] = &p.hits[i]
	}
	found, err := kernel.LoadRows(tx, v, content, rows)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	hits := make([]Hit, len(found))
	for i, m := range found {
		hits[i] = Hit{Memory: memoryOf(m), Rank: offset + i + 1, End: len(m.Content)}
		if p.query != nil {
			p.query.describe(&hits[i], byRow[m.Row])
		}
	}
	return hits, nil
}

// describe sets the hit's position in the memory, and its scores.
func (r *rankedQuery) describe(hit *Hit, h *index.Hit) {
	hit.Score, hit.Confidence = float64(h.Score), float64(h.Confidence)
	hit.Parts.Vector = float64(h.Cosine)
	if r.ideal > 0 {
		hit.Parts.Text = float64(h.BM25 / r.ideal)
	}
	hit.Explanation = explanationOf(r.explanations[h.Row])
	hit.Start, hit.End = h.Span.In(hit.Content)
}

func withoutContent(hits []Hit) {
	for i := range hits {
		hits[i].Content, hits[i].Start, hits[i].End = "", 0, 0
	}
}
