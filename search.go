package souvenir

import (
	"context"
	"iter"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/index"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/retrieval"
	"github.com/souvenir-ai/souvenir/internal/text"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// SortOrder is the order of search results and listings.
type SortOrder string

// The values of [SortOrder]. The id breaks ties, so that pages neither repeat nor skip results. Orders by time use the
// stored times, even from a clock that was ahead. Memories without a key or an event time come last in the orders by
// it, which searches and listings of memories take.
const (
	SortRelevance   SortOrder = "relevance" // best first
	SortUpdatedAsc  SortOrder = "updated_at_asc"
	SortUpdatedDesc SortOrder = "updated_at_desc"
	SortCreatedAsc  SortOrder = "created_at_asc"
	SortCreatedDesc SortOrder = "created_at_desc"

	SortKeyAsc    SortOrder = "key_asc" // by the bytes of the caller's own key
	SortKeyDesc   SortOrder = "key_desc"
	SortEventAsc  SortOrder = "event_time_asc"
	SortEventDesc SortOrder = "event_time_desc"
)

// byTime returns the order by a time or the key; the default is the latest change.
func (o SortOrder) byTime() retrieval.Order {
	order := retrieval.Order{Created: o == SortCreatedAsc || o == SortCreatedDesc,
		Ascending: slices.Contains([]SortOrder{SortCreatedAsc, SortUpdatedAsc, SortKeyAsc, SortEventAsc}, o)}
	switch o {
	case SortKeyAsc, SortKeyDesc:
		order.By = retrieval.ByKey
	case SortEventAsc, SortEventDesc:
		order.By = retrieval.ByEventTime
	}
	return order
}

var sortOrders = []SortOrder{SortRelevance, SortUpdatedAsc, SortUpdatedDesc, SortCreatedAsc, SortCreatedDesc}

// memoryOrders are the orders that only memories have: other things have no keys and event times.
var memoryOrders = append(slices.Clone(sortOrders), SortKeyAsc, SortKeyDesc, SortEventAsc, SortEventDesc)

// Limits of a search.
const (
	DefaultLimit = 7
	MaxLimit     = 100
	MaxQuery     = 64 << 10 // bytes of search text

	MaxQueries   = 100  // queries of a SearchBatch
	MaxBatchHits = 1000 // the sum of their limits

	DefaultRerank = 30  // hits that Options.Reranker reorders
	MaxRerank     = 100 // the most that Query.Rerank may name
)

// Query says what to search for. A memory must match every field that is set.
type Query struct {
	// Text is searched for by meaning and by word, in plain language: no character has a special meaning.
	Text string

	// Vector replaces the text's own vector. It must be of the embedder's model, or for collections with OwnVectors.
	// With Text, words count as well.
	Vector []float32

	Collections    []string // names; none means all
	ProjectID      string   // only memories of this project; an unknown project has none
	ProjectName    string   // the project by name
	Classification Classification
	Tags           []string // memories with any of these tags
	Keys           []string // memories with any of these keys of the caller's own, at most 1,000; none means all
	Filter         Filter

	// Sort is the order. Empty means SortRelevance if there is a text or a vector, else SortUpdatedDesc. An order by time
	// with a text or a vector covers only memories that are at least half as relevant as the best one.
	Sort SortOrder

	Limit  int // results to return, 1 to 100; zero means 7
	Offset int // results to skip before them

	// AsOf searches memories that were stored by a time and valid then, and returns them in the state of that time;
	// zero means now. The text and the conditions are matched against the present state. See docs/time.md.
	AsOf time.Time

	whenever bool // memories that are not valid now, too

	// Documents is how many files to return besides, found by their texts: 0, for none, to 20. They are ranked on their
	// own, and searched with a Text or a Vector in the whole store or in a project: none is found with any other
	// condition on memories, since files have no such attributes. With the built-in model and without MinScore, those
	// with a Confidence below 0.25 are left out: a few files always come next.
	Documents int

	IncludeFiles bool // summaries of each hit's files; without it they are only counted

	// WithoutContent leaves Content empty, and Start and End zero: for callers that need ids, keys and metadata only.
	WithoutContent bool

	Explain bool // break down the score of each hit

	// Rerank is how many of the best hits [Options.Reranker] reorders, at most 100; zero means 30, and a negative value
	// none. It applies to searches by relevance with a text, on the pages that begin among these hits.
	Rerank int

	// Priors rank memories higher by recency, importance and state; the zero value has no effect.
	Priors Priors

	// MinScore leaves out hits with less Confidence: 0 to 1. 0.5 keeps the memories that are probably about the text.
	// Zero keeps all. At most 1,000 memories reach it.
	MinScore float64
}

// check validates the query and fills in the defaults.
func (q *Query) check() error {
	if len(q.Text) > MaxQuery {
		return newError(KindTooLarge, "query", "{} is %d bytes; at most %d are allowed", len(q.Text), MaxQuery)
	}
	if err := valid.UTF8("query", q.Text); err != nil {
		return err
	}
	if q.Limit == 0 {
		q.Limit = DefaultLimit
	}
	if q.Limit < 1 || q.Limit > MaxLimit {
		return invalid("limit", "{} is %d; 1 to %d are allowed", q.Limit, MaxLimit)
	}
	if q.Offset < 0 || q.Offset > maxOffset {
		return invalid("offset", "{} is %d; 0 to %d are allowed", q.Offset, maxOffset)
	}
	if q.Documents < 0 || q.Documents > MaxDocuments {
		return invalid("documents", "{} is %d; 0 to %d are allowed", q.Documents, MaxDocuments)
	}
	if !(q.MinScore >= 0 && q.MinScore <= 1) {
		return invalid("min_score", "{} is %v; 0 to 1 are allowed", q.MinScore)
	}
	if err := q.Priors.check(); err != nil {
		return err
	}
	if q.Rerank > MaxRerank {
		return invalid("rerank", "{} is %d; at most %d are allowed, 0 means %d, and a negative value none", q.Rerank,
			MaxRerank, DefaultRerank)
	}
	if q.Sort == "" {
		q.Sort = SortUpdatedDesc
		if q.rankable() {
			q.Sort = SortRelevance
		}
	}
	if err := valid.Enum("sort_order", q.Sort, memoryOrders); err != nil {
		return err
	}
	if q.Sort == SortRelevance && !q.rankable() {
		q.Sort = SortUpdatedDesc // nothing to rank by; Results.Sort says so
	}
	if err := checkAsOf(q.AsOf); err != nil {
		return err
	}
	if q.Vector != nil {
		unit, err := kernel.UnitVector(q.Vector, len(q.Vector))
		if err != nil {
			return invalid("query_embedding", "{}: %v", err)
		}
		q.Vector = unit
	}
	return nil
}

// checkAsOf checks a time AsOf.
func checkAsOf(at time.Time) error {
	if at.IsZero() {
		return nil
	}
	return valid.Time("as_of", at.UnixMicro())
}

const maxOffset = 1 << 30

// rankable reports whether the query has a text or a vector to rank by.
func (q *Query) rankable() bool { return strings.TrimSpace(q.Text) != "" || len(q.Vector) > 0 }

// Search finds memories.
func (s *Store) Search(ctx context.Context, q Query) (Results, error) {
	return hooked(ctx, s, OperationSearch, "Search", func(ctx context.Context, o *operation) (_ Results, err error) {
		defer inGo[Query](&err)
		if err := o.query(ctx, &q); err != nil {
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
			defer inGo[Query](&err, "queries", "queries")
			if len(queries) > MaxQueries {
				return nil, newError(KindTooLarge, "queries", "{} has %d queries; at most %d are allowed", len(queries),
					MaxQueries)
			}
			queries := slices.Clone(queries)
			hits := 0
			for i := range queries {
				if err := o.query(ctx, &queries[i]); err != nil {
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
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
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

// scope returns the part of a query that selects the searched memories.
func (q *Query) scope() Query {
	return Query{Collections: q.Collections, ProjectID: q.ProjectID, ProjectName: q.ProjectName,
		Classification: q.Classification, Tags: q.Tags, Keys: q.Keys, Filter: q.Filter, AsOf: q.AsOf,
		whenever: q.whenever}
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
		var matching *index.RowSet
		if sel.Condition != "" {
			if matching, err = s.filters.Indexed(tx, sel.Selection); err != nil {
				return nil, 0, err
			}
		}
		rows, total, done, err := s.orders.Page(tx, sel.Selection, order, q.Limit, q.Offset, matching, sel.hidden)
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

// SearchAll iterates over the hits of a query, for reading deeper than a page: by relevance the best 10,000, and
// without a text or a vector all. It ranks once, when the loop begins, and reads 100 memories at a time; memories
// deleted meanwhile, or no longer visible, are left out. Limit must be zero: break the loop instead. [Options.Reranker]
// is not called.
func (s *Store) SearchAll(ctx context.Context, q Query) iter.Seq2[Hit, error] {
	return func(yield func(Hit, error) bool) {
		all, err := hooked(ctx, s, OperationSearch, "SearchAll", func(ctx context.Context, o *operation) (_ page, err error) {
			defer inGo[Query](&err)
			if q.Limit != 0 {
				return page{}, invalid("limit", "{} is %d; it must be 0 here, as the loop may be left at any time", q.Limit)
			}
			if err := o.query(ctx, &q); err != nil {
				return page{}, err
			}
			return s.pageOfAll(ctx, q)
		})
		if err != nil {
			yield(Hit{}, err)
			return
		}
		offset := q.Offset
		for some := range slices.Chunk(all.hits, MaxLimit) {
			var hits []Hit
			err := s.read(ctx, func(tx db.Tx, v viewer) (err error) {
				hits, err = s.show(tx, v, q, page{some, all.query}, offset)
				return err
			})
			if err != nil {
				yield(Hit{}, err)
				return
			}
			for _, h := range hits {
				if !yield(h, nil) {
					return
				}
			}
			offset += len(some)
		}
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

// prepareQueries analyses queries, and embeds their texts in one call.
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
		vectors, err = s.embed(ctx, ForQuery, texts, nil)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		s.log.WarnContext(ctx, "a search text could not be embedded; searching by words only", "error", err)
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

// orderByTime takes the hits that are at least half as relevant as the best one, and returns a page of them by time.
func orderByTime(tx db.Tx, hits []index.Hit, q Query) (page []index.Hit, total int, err error) {
	byRow := map[int64]index.Hit{}
	var rows []int64
	for i, h := range hits {
		if !relevant(hits, i) {
			break
		}
		byRow[h.Row] = h
		rows = append(rows, h.Row)
	}
	const from = `FROM memory m WHERE m.id IN ` + db.Integers
	var ordered []int64
	if order := q.Sort.byTime(); order.Opens(tx) {
		ordered, err = order.Opened(tx, from, q.Limit, q.Offset, db.List(rows))
	} else {
		ordered, err = db.Column[int64](tx, `SELECT m.id `+from+` ORDER BY `+order.SQL(`m`)+` LIMIT ? OFFSET ?`,
			db.List(rows), q.Limit, q.Offset)
	}
	for _, row := range ordered {
		page = append(page, byRow[row])
	}
	return page, len(rows), err
}

func (q *Query) contentColumn() string { return contentColumn(q.WithoutContent, q.AsOf) }
