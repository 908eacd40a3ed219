package souvenir

import (
	"context"
	"encoding/json"
	"iter"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/index"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/text"
)

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

// addFiles counts the files of each hit and, with summaries, adds their summaries.
func addFiles(tx db.Tx, v viewer, hits []Hit, summaries bool) error {
	var some bool
	if err := tx.QueryRow(`SELECT EXISTS (SELECT 1 FROM file)`).Scan(&some); err != nil || !some || len(hits) == 0 {
		return err
	}
	ids := make([]string, len(hits))
	place := make(map[string]*Hit, len(hits))
	for i := range hits {
		ids[i], place[hits[i].ID] = hits[i].ID, &hits[i]
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	visible, args := v.VisibleFile()
	from := kernel.FromFile + ` WHERE f.memory_id IN (SELECT id FROM memory WHERE uid IN ` + db.Texts + `) AND ` + visible
	args = append([]any{string(list)}, args...)
	var memory string
	if !summaries {
		return tx.Each(func(row db.Rows) error {
			var files int
			if err := row.Scan(&memory, &files); err != nil {
				return err
			}
			place[memory].FileCount = files
			return nil
		}, `SELECT m.uid, count(*) `+from+` GROUP BY m.uid`, args...)
	}
	return tx.Each(func(row db.Rows) error {
		var f FileSummary
		if err := row.Scan(&memory, &f.ID, &f.Filename, &f.MIMEType, &f.Size); err != nil {
			return err
		}
		h := place[memory]
		h.FileCount++
		h.Files = append(h.Files, f)
		return nil
	}, `SELECT m.uid, f.uid, f.filename, f.mime_type, f.size `+from+` ORDER BY f.created_at DESC, f.uid`, args...)
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
	found, err := s.loadColumns(tx, v, content, rows)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	hits := make([]Hit, len(found))
	for i, m := range found {
		hits[i] = Hit{Memory: m.Memory, Rank: offset + i + 1, End: len(m.Content)}
		if p.query != nil {
			p.query.describe(&hits[i], byRow[m.row])
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
	hit.Start, hit.End = passageOf(hit.Content, h.Span)
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
