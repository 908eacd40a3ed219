package souvenir

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/embedding"
	"github.com/souvenir-ai/souvenir/internal/fixedcontext"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/naming"
	"github.com/souvenir-ai/souvenir/internal/retrieval"
	"github.com/souvenir-ai/souvenir/internal/retrieval/filter"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Search finds memories.
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
	db.Ahead(tx, anyFiles)
}

// aheadOfContext announces the rows that each context reads.
func aheadOfContext(tx db.Tx, v viewer) {
	if !v.Limited {
		fixedcontext.PlacesAhead(tx, v)
	}
	embedding.Ahead(tx)
	db.MarkAhead(tx)
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

// SearchAll iterates over the hits of a query beyond a single page: the best 10,000 by relevance or, without a text or
// a vector, all of them. It ranks once, when the loop begins, and reads 100 memories at a time; memories deleted
// meanwhile, or no longer visible, are left out. Limit must be zero: break the loop instead. [Options.Reranker] is not
// called.
func (s *Store) SearchAll(ctx context.Context, q Query) iter.Seq2[Hit, error] {
	return func(yield func(Hit, error) bool) {
		q := q // a second loop begins with the query as it was given
		all, err := hooked(ctx, s, OperationSearch, "SearchAll", func(ctx context.Context, o *operation) (_ page, err error) {
			defer setGoNames[Query](&err)
			if q.Limit != 0 {
				return page{}, invalid("limit", "{} is %d; it must be 0 here; break out of the loop instead", q.Limit)
			}
			if err := q.prepare(ctx, o); err != nil {
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

const anyFiles = `SELECT EXISTS (SELECT 1 FROM file)`

// addFiles counts the files of each hit and, with summaries, adds their summaries.
func addFiles(tx db.Tx, v viewer, hits []Hit, summaries bool) error {
	var some bool
	if err := tx.QueryRow(anyFiles).Scan(&some); err != nil || !some || len(hits) == 0 {
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

// selection is the part of the store that a query covers.
type selection struct {
	retrieval.Selection
	warnings []string
	hidden   map[int64]bool // rows in the partitions that are not current
	rows     **index.RowSet // rows that match the condition, once they are read; for the searches of a batch
}

// current limits a selection to memories that have not expired and that are valid now, or were at the time of the
// query.
func (sel *selection) current(tx db.Tx, v viewer, q Query) error {
	all := q.whenever || !q.AsOf.IsZero()
	hidden, err := v.Hidden(tx, sel.PartitionList(), all)
	if err != nil {
		return err
	}
	if sel.Current = v.Current(); all {
		sel.Current = v.Alive(`m`)
	}
	partitions := sel.Partitions
	sel.Partitions = nil
	for _, p := range partitions {
		sel.add(p, hidden[p.ID])
	}
	return nil
}

// add adds a partition without its hidden memories, unless no memory is left.
func (sel *selection) add(p retrieval.Partition, hidden []int64) {
	if p.Memories -= len(hidden); p.Memories <= 0 {
		return
	}
	sel.Partitions = append(sel.Partitions, p)
	if sel.hidden == nil && len(hidden) > 0 {
		sel.hidden = map[int64]bool{}
	}
	for _, row := range hidden {
		sel.hidden[row] = true
	}
}

// matching returns the rows that match the selection's condition; some of them may be hidden.
func (s *Store) matching(tx db.Tx, sel selection) (rows *index.RowSet, err error) {
	if *sel.rows == nil {
		*sel.rows, err = s.filters.Matching(tx, sel.Selection)
	}
	return *sel.rows, err
}

// selection resolves the collections, the project and the filters of a query.
func (s *Store) selection(tx db.Tx, v viewer, q Query) (selection, error) {
	sel := selection{rows: new(*index.RowSet)}
	if err := sel.addFilters(tx, v, q); err != nil {
		return sel, err
	}
	if v.Limited && len(v.Projects) == 0 && len(s.access.Projects) > 0 {
		sel.warnings = append(sel.warnings, s.writing().ExplainGoneProjects())
	}
	condition, args := v.VisibleOfAll()
	collections := valid.Distinct(q.Collections)
	if len(collections) > maxCollections {
		return sel, newError(KindTooLarge, "collection_name", "{} lists %d collections; at most %d are allowed",
			len(collections), maxCollections)
	}
	for _, name := range collections {
		if _, err := s.collection(tx, v, name); err != nil {
			return sel, err
		}
	}
	if len(collections) > 0 {
		owners, err := v.Owners(tx)
		if err != nil {
			return sel, err
		}
		forms, err := sealedrows.Forms(tx, sealedrows.CollectionName, owners, collections...)
		if err != nil {
			return sel, err
		}
		condition += ` AND c.name IN ` + db.Texts
		args = append(args, db.List(forms))
	}
	if q.ProjectID != "" || q.ProjectName != "" {
		if err := valid.Project(q.ProjectID, q.ProjectName); err != nil {
			return sel, err
		}
		project, err := naming.Find(tx, v, q.ProjectID, q.ProjectName)
		if err != nil {
			return sel, err
		}
		if project == nil {
			sel.warnings = append(sel.warnings, noProject(q.ProjectID, q.ProjectName))
			return sel, nil
		}
		sel.warnings = append(sel.warnings, project.Notes()...)
		condition += ` AND p.project_id = ?`
		args = append(args, project.Row)
	}
	err := tx.Each(func(row db.Rows) error {
		var p retrieval.Partition
		err := row.Scan(&p.ID, &p.Memories, &p.OwnSize)
		sel.Partitions = append(sel.Partitions, p)
		return err
	}, selectPartitions+condition+byNumber, args...)
	if err == nil {
		err = sel.current(tx, v, q)
	}
	return sel, err
}

const (
	selectPartitions = `SELECT p.id, p.memories, coalesce(f.dimensions, 0) FROM partition p
	JOIN collection c ON c.id = p.collection_id LEFT JOIN profile f ON f.id = c.own_profile WHERE p.memories > 0 AND `
	byNumber = ` ORDER BY p.id` // keeps lists the same, so that cached results are found again
)

// maxCollections bounds how many collections one search may name.
const maxCollections = 100

func (sel *selection) addFilters(tx db.Tx, v viewer, q Query) error {
	var parts []filter.Part
	add := func(f Filter) error {
		compiled, err := f.compile(v)
		parts = append(parts, compiled...)
		return err
	}
	if err := valid.Enum("classification", string(q.Classification), kernel.Classifications); err != nil {
		return err
	}
	if q.Classification != "" {
		if err := add(Filter{"classification": q.Classification}); err != nil {
			return err
		}
	}
	if len(q.Tags) > 0 {
		tags, err := valid.Tags(q.Tags, filter.MaxAlternatives)
		if err != nil {
			return err
		}
		if err := add(Filter{"tags": tags}); err != nil {
			return err
		}
	}
	if len(q.Keys) > filter.MaxAlternatives {
		return newError(KindTooLarge, "keys", "{} has %d keys; at most %d are allowed", len(q.Keys),
			filter.MaxAlternatives)
	}
	for _, key := range q.Keys {
		if err := valid.UTF8("keys", key); err != nil {
			return err
		}
	}
	if len(q.Keys) > 0 {
		if err := add(Filter{"key": q.Keys}); err != nil {
			return err
		}
	}
	if err := add(q.Filter); err != nil {
		return err
	}
	parts, err := filter.Opened(tx, v, parts)
	if err != nil {
		return err
	}
	if !q.AsOf.IsZero() {
		condition, args := v.AsOf(q.AsOf.UnixMicro())
		parts = append(parts, filter.Part{SQL: condition, Args: args})
	}
	joined, err := filter.Join(tx, parts)
	sel.Condition, sel.Args, sel.Steady, sel.Indexed = joined.SQL, joined.Args, joined.Steady, joined.Indexed
	return err
}

// selectPlaces returns a selection of the matching places.
func selectPlaces(v viewer, places []fixedcontext.Place, fits func(fixedcontext.Place) bool) selection {
	sel := selection{rows: new(*index.RowSet)}
	sel.Current = v.Current()
	for _, p := range places {
		if fits(p) {
			sel.add(p.Partition, p.Hidden)
		}
	}
	return sel
}

func ownPlace(p fixedcontext.Place) bool { return p.Own }

func generalPlace(p fixedcontext.Place) bool { return p.Own && p.Project == 0 }

// newestActive returns the row of the newest active memory of some event types in a selection, 0 if there is none.
func (s *shared) newestActive(tx db.Tx, sel selection, types ...string) (int64, error) {
	return fixedcontext.Newest(tx, s.now(), sel.Selection, types...)
}

// noProject is the warning about a project that a search cannot look into.
func noProject(id, name string) string {
	return fmt.Sprintf("project %s not found, or you have no access to it, so nothing is found in it", show(id+name))
}
