package souvenir

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/embedding"
	"github.com/souvenir-ai/souvenir/internal/index"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/ranking"
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

// byTime returns the order by a time or the key; any other is by the latest change.
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

// memoryOrders are the orders of memories; what else is listed has no keys and event times.
var memoryOrders = append(slices.Clone(sortOrders), SortKeyAsc, SortKeyDesc, SortEventAsc, SortEventDesc)

// Limits of a search.
const (
	DefaultLimit = 7
	MaxLimit     = 100
	MaxQuery     = 64 << 10 // bytes of search text

	MaxQueries   = 100  // queries of a SearchBatch
	MaxBatchHits = 1000 // their limits, added up

	DefaultRerank = 30  // hits that Options.Reranker orders again
	MaxRerank     = 100 // the most that it can be asked to
)

// Query says what to search for. A memory must match every field that is set.
type Query struct {
	// Text is searched for by meaning and by word, in plain language: no character has a special meaning.
	Text string

	// Vector replaces the text's own vector: it is of the embedder's model, or for collections with OwnVectors. With Text,
	// words count as well.
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

	// AsOf searches what was stored by a time and valid then, and returns it in the words of that time; zero means now.
	// The text and the conditions are compared with what memories say today. See docs/time.md.
	AsOf time.Time

	whenever bool // memories that are not valid now, too

	IncludeFiles bool // summaries of each hit's files; without it they are only counted

	// WithoutContent leaves Content empty, and Start and End zero: for callers that need ids, keys and metadata only.
	WithoutContent bool

	Explain bool // say of each hit what its score consists of

	// Rerank is how many of the best hits [Options.Reranker] orders again, at most 100; zero means 30, and a negative
	// value none. It applies to searches by relevance with a text, on the pages that begin among these hits.
	Rerank int

	// MinScore leaves out hits whose Confidence is less: 0 to 1, where 0.5 leaves what is probably about the text. Zero
	// leaves out none. At most 1,000 memories reach it.
	MinScore float64
}

// check validates the query and fills in the defaults.
func (q *Query) check() error {
	if len(q.Text) > MaxQuery {
		return newError(KindTooLarge, "query", "query is %d bytes; at most %d are allowed", len(q.Text), MaxQuery)
	}
	if err := valid.UTF8("query", q.Text); err != nil {
		return err
	}
	if q.Limit == 0 {
		q.Limit = DefaultLimit
	}
	if q.Limit < 1 || q.Limit > MaxLimit {
		return invalid("limit", "limit is %d; 1 to %d are allowed", q.Limit, MaxLimit)
	}
	if q.Offset < 0 || q.Offset > maxOffset {
		return invalid("offset", "offset is %d; 0 to %d are allowed", q.Offset, maxOffset)
	}
	if !(q.MinScore >= 0 && q.MinScore <= 1) {
		return invalid("min_score", "min_score is %v; 0 to 1 are allowed", q.MinScore)
	}
	if q.Rerank > MaxRerank {
		return invalid("rerank", "rerank is %d; at most %d are allowed, 0 means %d, and a negative value none", q.Rerank,
			MaxRerank, DefaultRerank)
	}
	if q.Sort == "" {
		q.Sort = SortUpdatedDesc
		if q.sought() {
			q.Sort = SortRelevance
		}
	}
	if err := valid.Enum("sort_order", q.Sort, memoryOrders); err != nil {
		return err
	}
	if q.Sort == SortRelevance && !q.sought() {
		q.Sort = SortUpdatedDesc // nothing to rank by; Results.Sort says so
	}
	if err := checkAsOf(q.AsOf); err != nil {
		return err
	}
	if q.Vector != nil {
		unit, err := kernel.UnitVector(q.Vector, len(q.Vector))
		if err != nil {
			return invalid("query_embedding", "query_embedding: %v", err)
		}
		q.Vector = unit
	}
	return nil
}

// checkAsOf checks the time of a look back.
func checkAsOf(at time.Time) error {
	if at.IsZero() {
		return nil
	}
	return valid.Time("as_of", at.UnixMicro())
}

const maxOffset = 1 << 30

// sought reports whether the query has a text or a vector.
func (q *Query) sought() bool { return strings.TrimSpace(q.Text) != "" || len(q.Vector) > 0 }

// Search finds memories.
func (s *Store) Search(ctx context.Context, q Query) (Results, error) {
	return hooked(ctx, s, OperationSearch, "Search", func(ctx context.Context, o *operation) (Results, error) {
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
// call, and queries that follow each other with the same filters look them up once, so it costs less than single
// searches. At most 100 queries are allowed, whose limits add up to at most 1,000. An error names the query, and there
// are no results then.
func (s *Store) SearchBatch(ctx context.Context, queries []Query) ([]Results, error) {
	return hooked(ctx, s, OperationSearch, "SearchBatch", func(ctx context.Context, o *operation) ([]Results, error) {
		if len(queries) > MaxQueries {
			return nil, newError(KindTooLarge, "queries", "queries has %d queries; at most %d are allowed", len(queries),
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
	if s.options.Reranker != nil && s.db.InTransaction(ctx) { // which would hold the writer while another program works
		queries = slices.Clone(queries)
		for i := range queries {
			queries[i].Rerank = -1
		}
	}
	wants, err := s.wants(ctx, queries)
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
			if all[i], err = s.searchIn(tx, v, s.candidates(q), wants[i], sel); err != nil {
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

// scope returns the part of a query that selects what is searched.
func (q *Query) scope() Query {
	return Query{Collections: q.Collections, ProjectID: q.ProjectID, ProjectName: q.ProjectName,
		Classification: q.Classification, Tags: q.Tags, Keys: q.Keys, Filter: q.Filter, AsOf: q.AsOf,
		whenever: q.whenever}
}

// searchIn answers one query within a selection.
func (s *Store) searchIn(tx db.Tx, v viewer, q Query, w want, sel selection) (results Results, err error) {
	results = Results{Offset: q.Offset, Limit: q.Limit, Sort: q.Sort, Warnings: slices.Concat(w.warnings, sel.warnings)}
	if q.sought() {
		err = s.searchByRelevance(tx, v, q, w, sel, &results)
	} else {
		err = s.searchByTime(tx, v, q, sel, &results)
	}
	if err != nil {
		return Results{}, err
	}
	if results.Hits, err = hitsAsOf(tx, v, results.Hits, q.AsOf); err != nil {
		return Results{}, err
	}
	if q.WithoutContent {
		withoutContent(results.Hits)
	}
	return results, addFiles(tx, v, results.Hits, q.IncludeFiles)
}

// want is a query whose text has been analysed and embedded.
type want struct {
	text     string
	terms    []text.Term
	explain  bool
	vector   []float32 // of unit length; nil: words only
	own      bool      // the caller's vector, which may be compared with own vectors, too
	warnings []string
}

func (s *Store) want(ctx context.Context, q Query) (want, error) {
	all, err := s.wants(ctx, []Query{q})
	if err != nil {
		return want{}, err
	}
	return all[0], nil
}

// wants analyses queries, and embeds their texts in one call.
func (s *Store) wants(ctx context.Context, queries []Query) ([]want, error) {
	all := make([]want, len(queries))
	var texts []string
	places := map[string][]int{} // of a text: the queries that search for it
	for i, q := range queries {
		all[i] = want{text: q.Text, terms: text.QueryTerms(q.Text), explain: q.Explain, vector: q.Vector,
			own: q.Vector != nil}
		if all[i].own || strings.TrimSpace(q.Text) == "" {
			continue
		}
		sought := q.Text
		if most := maxInput(s.embedder); len(sought) > most { // embeds only its beginning; all of its words count
			first := text.Split(sought, most)[0]
			sought = sought[first.Start:first.End]
		}
		if places[sought] == nil {
			texts = append(texts, sought)
		}
		places[sought] = append(places[sought], i)
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
	for n, sought := range texts {
		for _, i := range places[sought] {
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

func (s *Store) searchByTime(tx db.Tx, v viewer, q Query, sel selection, results *Results) error {
	var err error
	if results.Total, err = sel.Count(tx); err != nil {
		return err
	}
	rows, err := sel.Page(tx, q.Sort.byTime(), q.Limit, q.Offset)
	if err != nil {
		return err
	}
	results.Found = results.Total
	found, err := s.loadColumns(tx, v, q.contentColumn(), rows)
	for i, m := range found {
		results.Hits = append(results.Hits, Hit{Memory: m.Memory, Rank: q.Offset + i + 1, End: len(m.Content)})
	}
	return err
}

// bm25 are the constants of BM25, fitted on the development part of LoCoMo and on Cranfield (docs/retrieval.md). The
// other constants of the ranking are in internal/ranking.
var bm25 = index.BM25{K1: 0.9, B: 0.75, Pivot: 80}

// exactness converts the analysis of a search text to the weights of the index.
var exactness = map[text.Exactness]index.Exactness{text.Name: index.Name, text.Identifier: index.Identifier}

// rankedQuery is the request to both the index in memory and the search on disk; both give the same answer.
type rankedQuery struct {
	index.Query
	ideal        float32 // the best possible BM25, set once the query has run
	explanations map[int64]*ranking.Explanation
	again        *ranking.Ranking // nil: there is no text
}

// searchByRelevance fills in the page of a query that has a text or a vector.
func (s *Store) searchByRelevance(tx db.Tx, v viewer, q Query, w want, sel selection, results *Results) error {
	if w.own && len(sel.Partitions) == 0 {
		return s.checkVectorSize(tx, v, q)
	}
	r, err := s.rankedQuery(tx, w, sel, results)
	if err != nil {
		return err
	}
	r.Limit = q.Offset + q.Limit
	if q.MinScore > 0 {
		r.Limit = maxConfident
	}
	if q.Sort != SortRelevance {
		r.Limit = maxRanked
	}
	hits, total, err := s.rank(tx, r)
	if err != nil {
		return err
	}
	if q.MinScore > 0 {
		hits = slices.DeleteFunc(hits, func(h index.Hit) bool { return float64(h.Confidence) < q.MinScore })
		total = len(hits)
	}
	if q.Sort != SortRelevance {
		if hits, total, err = orderByTime(tx, hits, q); err != nil {
			return err
		}
	} else {
		hits = hits[min(q.Offset, len(hits)):]
		hits = hits[:min(q.Limit, len(hits))]
	}
	results.Total, results.Found = total, total
	if q.MinScore == 0 && r.again != nil {
		results.Found = r.again.Confident
	}
	return s.showHits(tx, v, hits, r, q, results)
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
	return invalid("query_embedding", "query_embedding has %d dimensions, but the vectors of what is searched have %d",
		len(q.Vector), size)
}

// rankedQuery returns what to rank and how.
func (s *Store) rankedQuery(tx db.Tx, w want, sel selection, results *Results) (*rankedQuery, error) {
	r := &rankedQuery{}
	r.BM25 = bm25
	for _, t := range w.terms {
		r.Terms = append(r.Terms, index.Term{Text: t.Text, Weight: t.Weight, Exact: exactness[t.Exact], Chunk: t.Chunk})
	}
	ready, err := s.vectors.Ready(tx)
	if err != nil {
		return nil, err
	}
	compare, sizes := s.comparable(w, sel, ready)
	if w.own && len(sizes) > 0 && !slices.Contains(sizes, len(w.vector)) {
		return nil, invalid("query_embedding",
			"query_embedding has %d dimensions, but the vectors of what is searched have %d", len(w.vector), sizes[0])
	}
	if len(compare) > 0 {
		r.Vector = w.vector
	}
	for _, p := range sel.Partitions {
		r.Partitions = append(r.Partitions, p.ID)
	}
	r.Compare = func(partition int64) bool { return compare[partition] }
	if err := s.warnOfMissingVectors(tx, ready, w, sel, results); err != nil {
		return nil, err
	}
	if sel.Condition != "" {
		keep, err := sel.keep(tx)
		if err != nil {
			return nil, err
		}
		r.Keep = func(row int64) bool { return keep[row] }
	} else if len(sel.hidden) > 0 {
		r.Keep = func(row int64) bool { return !sel.hidden[row] }
	}
	question := ranking.NewQuestion(w.text, w.terms)
	weights := ranking.Default.For(question, s.embedder.Model() == Builtin().Model())
	fused := ranking.Fuse(weights, len(r.Terms) > 0, r.Vector != nil)
	r.Fuse = func(stats index.Stats) func(index.Parts) float32 {
		r.ideal = stats.IdealBM25
		return fused(stats)
	}
	if len(r.Terms) > 0 {
		if w.explain {
			r.explanations = map[int64]*ranking.Explanation{}
		}
		again := &ranking.Ranking{Weights: weights, Question: question,
			HasVector: r.Vector != nil, Explanations: r.explanations}
		r.Again, r.again = again.Again(), again
	}
	return r, nil
}

// comparable returns the partitions in which the vector can be compared, and the sizes of the vectors in all of them.
// ready reports whether all vectors made by the store are of the same model by now.
func (s *Store) comparable(w want, sel selection, ready bool) (compare map[int64]bool, sizes []int) {
	compare = map[int64]bool{}
	for _, p := range sel.Partitions {
		size, ours := p.OwnSize, p.OwnSize == 0
		if ours {
			size = s.embedder.Dimensions()
		}
		sizes = append(sizes, size)
		if len(w.vector) == size && (ours && ready || !ours && w.own) {
			compare[p.ID] = true
		}
	}
	return compare, sizes
}

func (s *Store) warnOfMissingVectors(tx db.Tx, ready bool, w want, sel selection, results *Results) error {
	if w.vector == nil {
		return nil
	}
	if !ready {
		warning := fmt.Sprintf("the store is changing to the embedding model %s; it is searched by words only until that "+
			"is done", s.embedder.Model())
		if s.db.ReadOnly() {
			warning = fmt.Sprintf("the store has no vectors of the embedding model %s and is opened read-only, so it is "+
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

// rank finds the best memories: in memory if the index is loaded, else on disk.
func (s *Store) rank(tx db.Tx, r *rankedQuery) (hits []index.Hit, total int, err error) {
	ix, err := s.index.Current(tx)
	switch {
	case err != nil:
		return nil, 0, err
	case ix == nil:
		defer s.index.LoadIfDue()
		hits, total, err = retrieval.SearchDatabase(tx, s.profile, r.Query)
	default:
		hits, total, err = ix.Search(tx.Context(), r.Query)
	}
	if r.again == nil {
		for i := range hits {
			hits[i].Confidence = max(0, hits[i].Cosine)
		}
	}
	return hits, total, err
}

// orderByTime takes the hits that are at least half as relevant as the best one, and returns a page of them by time.
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
	ordered, err := db.Column[int64](tx, `SELECT m.id FROM memory m WHERE m.id IN `+db.Integers+` ORDER BY `+
		q.Sort.byTime().SQL(`m`)+` LIMIT ? OFFSET ?`,
		db.List(rows), q.Limit, q.Offset)
	for _, row := range ordered {
		page = append(page, byRow[row])
	}
	return page, len(rows), err
}

// showHits reads the memories of a page.
func (s *Store) showHits(tx db.Tx, v viewer, hits []index.Hit, r *rankedQuery, q Query, results *Results) error {
	rows := make([]int64, len(hits))
	byRow := make(map[int64]*index.Hit, len(hits))
	for i := range hits {
		rows[i] = hits[i].Row
		byRow[hits[i].Row] = &hits[i]
	}
	found, err := s.loadColumns(tx, v, q.contentColumn(), rows)
	for _, m := range found {
		h := byRow[m.row]
		hit := Hit{Memory: m.Memory, Rank: results.Offset + len(results.Hits) + 1, Score: float64(h.Score),
			Parts: Parts{Vector: float64(h.Cosine)}}
		if r.ideal > 0 {
			hit.Parts.Text = float64(h.BM25 / r.ideal)
		}
		hit.Confidence = float64(h.Confidence)
		hit.Explanation = explanationOf(r.explanations[h.Row])
		hit.Start, hit.End = passageOf(m.Content, h.Span)
		results.Hits = append(results.Hits, hit)
	}
	return err
}

// passageOf returns the offsets of a passage in a content, or the whole content if the passage does not fit. The index
// may reflect a change that this snapshot does not contain; then the passage belongs to other content.
func passageOf(content string, span index.Span) (start, end int) {
	start, end = int(span.Start), int(span.End)
	if start > end || end > len(content) || !utf8.ValidString(content[start:end]) {
		return 0, len(content)
	}
	return start, end
}
