package souvenir

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/sqlite"
	"github.com/souvenir-ai/souvenir/internal/text"
)

// SortOrder is the order of search results and listings.
type SortOrder string

// The values of [SortOrder]. Among equals the id decides, so that pages neither repeat nor skip.
const (
	SortRelevance   SortOrder = "relevance" // best first
	SortUpdatedAsc  SortOrder = "updated_at_asc"
	SortUpdatedDesc SortOrder = "updated_at_desc"
	SortCreatedAsc  SortOrder = "created_at_asc"
	SortCreatedDesc SortOrder = "created_at_desc"
)

var sortOrders = []SortOrder{SortRelevance, SortUpdatedAsc, SortUpdatedDesc, SortCreatedAsc, SortCreatedDesc}

// Limits of a search.
const (
	DefaultLimit = 7
	MaxLimit     = 100
	MaxQuery     = 64 << 10 // bytes of search text
)

// Query says what to search for. Everything that is set must fit.
type Query struct {
	// Text is searched for by meaning and by word, in plain language: no character of it has a special sense.
	Text string

	// Vector is searched for instead of the text's own vector: of the embedder's model, or for collections with
	// OwnVectors. With Text, words count as well.
	Vector []float32

	Collections    []string // names; none means all
	ProjectID      string   // only memories of this project; an unknown one has none
	ProjectName    string   // the same by name
	Classification Classification
	Tags           []string // memories with any of these tags
	Filter         Filter

	// Sort is the order. Empty means SortRelevance if there is a text or a vector, else SortUpdatedDesc. An order by time
	// with a text or a vector goes through those memories only that are at least half as relevant as the best one.
	Sort SortOrder

	Limit  int // results to return, 1 to 100; zero means 7
	Offset int // results to skip before them

	IncludeFiles bool // summaries of each hit's files; without it they are only counted
}

// Results are a page of what a search found.
type Results struct {
	Hits     []Hit
	Total    int // of the memories found, over all pages
	Offset   int
	Limit    int
	Sort     SortOrder // the order that was used
	Warnings []string  // what a caller should know, for example that a part of the store is found by words only for now
}

// HasMore reports whether there are results after this page.
func (r Results) HasMore() bool { return r.Offset+len(r.Hits) < r.Total }

// Hit is a memory that was found.
type Hit struct {
	Memory
	Rank  int     // place in the whole result, from 1
	Score float64 // relevance, 0 to 1; 0 when nothing was searched for
	Parts Parts   // what the score is made of

	// Start and End are byte offsets into Content: the passage that fits best.
	Start, End int

	FileCount int           // files linked to the memory
	Files     []FileSummary // the newest first; with Query.IncludeFiles only
}

// MarshalJSON gives the memory's form with rank, score, parts, start, end, file_count and files (never null).
func (h Hit) MarshalJSON() ([]byte, error) {
	files := h.Files
	if files == nil {
		files = []FileSummary{}
	}
	return json.Marshal(struct {
		memoryJSON
		Rank      int           `json:"rank"`
		Score     float64       `json:"score"`
		Parts     Parts         `json:"parts"`
		Start     int           `json:"start"`
		End       int           `json:"end"`
		FileCount int           `json:"file_count"`
		Files     []FileSummary `json:"files"`
	}{h.Memory.json(), h.Rank, h.Score, h.Parts, h.Start, h.End, h.FileCount, files})
}

// Parts are what a relevance is made of.
type Parts struct {
	Vector float64 `json:"vector"` // cosine similarity of the best passage to the query, -1 to 1; 0 when there is no vector
	Text   float64 `json:"text"`   // how well the words fit, as a part of the best possible BM25 score: 0 to 1
}

// Group is the part of a page that lies in one collection.
type Group struct {
	Collection string
	Owner      string // user id of the collection's owner: collections of different owners may have one name
	Hits       []Hit
}

// Groups returns the page's hits by collection, in the order of each collection's best one.
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

// check validates the query and fills in the defaults.
func (q *Query) check() error {
	if len(q.Text) > MaxQuery {
		return newError(KindTooLarge, "query", "query is %d bytes; at most %d are allowed", len(q.Text), MaxQuery)
	}
	if err := checkUTF8("query", q.Text); err != nil {
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
	if q.Sort == "" {
		q.Sort = SortUpdatedDesc
		if q.sought() {
			q.Sort = SortRelevance
		}
	}
	if err := checkEnum("sort_order", q.Sort, sortOrders); err != nil {
		return err
	}
	if q.Sort == SortRelevance && !q.sought() {
		q.Sort = SortUpdatedDesc // nothing to be relevant to; Results.Sort says so
	}
	if q.Vector != nil {
		unit, err := unitVector(q.Vector, len(q.Vector))
		if err != nil {
			return invalid("query_embedding", "query_embedding: %v", err)
		}
		q.Vector = unit
	}
	return nil
}

const maxOffset = 1 << 30

// sought reports whether there is something to be relevant to.
func (q *Query) sought() bool { return strings.TrimSpace(q.Text) != "" || len(q.Vector) > 0 }

// Search finds memories.
func (s *Store) Search(ctx context.Context, q Query) (Results, error) {
	if err := q.check(); err != nil {
		return Results{}, err
	}
	results := Results{Offset: q.Offset, Limit: q.Limit, Sort: q.Sort}
	want, err := s.want(ctx, q)
	if err != nil {
		return Results{}, err
	}
	err = s.read(ctx, func(tx *sqlite.Tx, sc scope) error {
		results.Hits, results.Total, results.Warnings = nil, 0, slices.Clone(want.warnings)
		selection, err := s.selection(tx, sc, q)
		if err != nil {
			return err
		}
		results.Warnings = append(results.Warnings, selection.warnings...)
		if q.sought() {
			err = s.searchByRelevance(tx, sc, q, want, selection, &results)
		} else {
			err = s.searchByTime(tx, sc, q, selection, &results)
		}
		if err != nil {
			return err
		}
		return addFiles(tx, sc, results.Hits, q.IncludeFiles)
	})
	if err != nil {
		return Results{}, err
	}
	return results, nil
}

// want is what a search looks for, once its text is analysed and embedded.
type want struct {
	terms    []text.Term
	vector   []float32 // of unit length; nil: words only
	own      bool      // the caller brought the vector, which may be compared with own vectors, too
	warnings []string
}

func (s *Store) want(ctx context.Context, q Query) (want, error) {
	w := want{terms: text.QueryTerms(q.Text), vector: q.Vector, own: q.Vector != nil}
	if w.own || strings.TrimSpace(q.Text) == "" {
		return w, nil
	}
	sought := q.Text
	if most := maxInput(s.embedder); len(sought) > most { // its beginning stands for it; all of its words count
		first := text.Split(sought, most)[0]
		sought = sought[first.Start:first.End]
	}
	vectors, err := s.embed(ctx, ForQuery, []string{sought}, nil)
	if ctx.Err() != nil {
		return w, ctx.Err()
	}
	if err != nil {
		s.log.Warn("a search text could not be embedded; searching by words only", "error", err)
		w.warnings = append(w.warnings, fmt.Sprintf("searched by words only, because the %v", err))
		return w, nil
	}
	w.vector = vectors[0]
	return w, nil
}

// selection is the part of the store that a query is about.
type selection struct {
	partitions []selectedPartition
	condition  string // further condition on m, p and c; "" for none
	args       []any
	warnings   []string
}

type selectedPartition struct {
	id       int64
	memories int
	fitting  int      // of them that fit the condition, once they are counted
	last     timedRow // that was read
	ownSize  int      // dimensions of the collection's own vectors; 0: the embedder makes them
}

// partitionList is the ids for json_each.
func (sel selection) partitionList() string {
	ids := make([]int64, len(sel.partitions))
	for i, p := range sel.partitions {
		ids[i] = p.id
	}
	return jsonList(ids)
}

// selection resolves the collections, the project and the filters of a query.
func (s *Store) selection(tx *sqlite.Tx, sc scope, q Query) (selection, error) {
	var sel selection
	if err := sel.addFilters(sc, q); err != nil {
		return sel, err
	}
	condition, args := sc.visible()
	collections := distinct(q.Collections)
	if len(collections) > maxCollections {
		return sel, newError(KindTooLarge, "collection_name", "collection_name lists %d collections; at most %d are allowed", len(collections), maxCollections)
	}
	for _, name := range collections {
		if _, err := s.collection(tx, sc, name); err != nil {
			return sel, err
		}
	}
	if len(collections) > 0 {
		condition += ` AND c.name IN (` + questionMarks(len(collections)) + `)`
		args = append(args, anys(collections)...)
	}
	if q.ProjectID != "" || q.ProjectName != "" {
		if err := checkProject(q.ProjectID, q.ProjectName); err != nil {
			return sel, err
		}
		project, err := findProject(tx, sc, q.ProjectID, q.ProjectName)
		if err != nil {
			return sel, err
		}
		if project == nil {
			sel.warnings = append(sel.warnings, fmt.Sprintf("no project %s can be seen here, so nothing is found in it", show(q.ProjectID+q.ProjectName)))
			return sel, nil
		}
		condition += ` AND p.project_id = ?`
		args = append(args, project.row)
	}
	err := tx.Each(func(row *sqlite.Rows) error {
		var p selectedPartition
		err := row.Scan(&p.id, &p.memories, &p.ownSize)
		sel.partitions = append(sel.partitions, p)
		return err
	}, `SELECT p.id, p.memories, ifnull(f.dimensions, 0) FROM partition p JOIN collection c ON c.id = p.collection_id
		LEFT JOIN profile f ON f.id = c.own_profile WHERE p.memories > 0 AND `+condition, args...)
	return sel, err
}

// maxCollections bounds how many collections one search may name.
const maxCollections = 100

func (sel *selection) addFilters(sc scope, q Query) error {
	var parts []string
	add := func(f Filter) error {
		condition, args, err := f.compile(sc)
		if err == nil && condition != "" {
			parts, sel.args = append(parts, condition), append(sel.args, args...)
		}
		return err
	}
	if err := checkEnum("classification", q.Classification, classifications); err != nil {
		return err
	}
	if q.Classification != "" {
		if err := add(Filter{"classification": q.Classification}); err != nil {
			return err
		}
	}
	if len(q.Tags) > 0 {
		tags, err := checkTags(q.Tags, maxAlternatives)
		if err != nil {
			return err
		}
		if err := add(Filter{"tags": tags}); err != nil {
			return err
		}
	}
	if err := add(q.Filter); err != nil {
		return err
	}
	sel.condition = strings.Join(parts, ` AND `)
	return nil
}

// where is the selection as a condition on m, p and c.
func (sel selection) where() (condition string, args []any) {
	condition, args = `m.partition_id IN (SELECT value FROM json_each(?))`, []any{sel.partitionList()}
	if sel.condition != "" {
		condition += ` AND ` + sel.condition
		args = append(args, sel.args...)
	}
	return condition, args
}

// count counts the memories that are selected, in each partition.
func (sel *selection) count(tx *sqlite.Tx) (total int, err error) {
	fitting := map[int64]int{}
	if sel.condition != "" {
		err = tx.Each(func(row *sqlite.Rows) error {
			var partition int64
			var n int
			err := row.Scan(&partition, &n)
			fitting[partition] = n
			return err
		}, `SELECT p.id, count(*) `+fromPartitions(``)+` WHERE p.id IN (SELECT value FROM json_each(?))`+sel.further()+` GROUP BY p.id`, append([]any{sel.partitionList()}, sel.args...)...)
	}
	for i := range sel.partitions {
		p := &sel.partitions[i]
		p.fitting = p.memories
		if sel.condition != "" {
			p.fitting = fitting[p.id]
		}
		total += p.fitting
	}
	return total, err
}

// all returns the rows of the selection in an order by time.
func (sel selection) all(tx *sqlite.Tx, order SortOrder) ([]int64, error) {
	condition, args := sel.where()
	return sqlite.Column[int64](tx, `SELECT m.id `+fromMemory+` WHERE `+condition+` ORDER BY `+timeOrder(order), args...)
}

// page returns rows of a counted selection in an order by time, up to limit of them after skipping offset.
func (sel selection) page(tx *sqlite.Tx, order SortOrder, limit, offset int) ([]int64, error) {
	if sel.worthMerging(limit + offset) {
		return sel.merged(tx, order, limit, offset)
	}
	return sqlite.Column[int64](tx, `SELECT m.id `+fromPartitions(`INDEXED BY memory_updated`)+` WHERE p.id IN (SELECT value FROM json_each(?))`+sel.further()+
		` ORDER BY +`+timeOrder(order)+` LIMIT ? OFFSET ?`, append(append([]any{sel.partitionList()}, sel.args...), limit, offset)...)
}

// mostMerged is how many rows of all partitions are worth reading along indexes, rather than letting SQLite sort them.
const mostMerged = 200_000

// worthMerging tells whether the first rows of each partition are found with less work along the index of an order than by sorting
// all that fit. Without a condition these are the first rows of the index; with one, a part of those that are looked at. A condition
// with a list in it would be made anew for each partition.
func (sel selection) worthMerging(first int) bool {
	lookedAt, fitting := 0, 0
	for _, p := range sel.partitions {
		if p.fitting > 0 {
			lookedAt += p.memories / p.fitting * min(first, p.fitting)
			fitting += p.fitting
		}
	}
	return lookedAt <= mostMerged && (sel.condition == "" || !strings.Contains(sel.condition, `m.id IN (`) && lookedAt < fitting)
}

// merged does what page does, from the first rows of each partition: at first somewhat more than its share, and all that a page could
// have where these do not reach as far as the page does.
func (sel selection) merged(tx *sqlite.Tx, order SortOrder, limit, offset int) ([]int64, error) {
	total := 0
	for _, p := range sel.partitions {
		total += p.fitting
	}
	first := min(limit+offset, total)
	var all []timedRow
	var further []selectedPartition // which may have more
	for _, p := range sel.partitions {
		if p.fitting == 0 {
			continue
		}
		share := min(first*p.fitting/total*3/2+32, first)
		rows, err := sel.first(tx, p, order, share)
		if err != nil {
			return nil, err
		}
		if len(rows) == share && share < min(first, p.fitting) {
			p.last = rows[len(rows)-1]
			further = append(further, p)
		}
		all = append(all, rows...)
	}
	compare := inTime(order)
	slices.SortFunc(all, compare)
	for _, p := range further {
		if len(all) >= first && compare(p.last, all[first-1]) >= 0 {
			continue
		}
		rows, err := sel.first(tx, p, order, first)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			if compare(row, p.last) > 0 {
				all = append(all, row)
			}
		}
		slices.SortFunc(all, compare)
	}
	rows := []int64{}
	for _, t := range all[min(offset, len(all)):min(first, len(all))] {
		rows = append(rows, t.row)
	}
	return rows, nil
}

// timedRow is a memory with what it is ordered by.
type timedRow struct {
	at, row int64
	id      string
}

// inTime compares as timeOrder orders.
func inTime(order SortOrder) func(a, b timedRow) int {
	sign := -1
	if order == SortCreatedAsc || order == SortUpdatedAsc {
		sign = 1
	}
	return func(a, b timedRow) int {
		return cmp.Or(sign*cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id))
	}
}

// first returns the first rows of a partition in an order by time, along the index of that order.
func (sel selection) first(tx *sqlite.Tx, p selectedPartition, order SortOrder, limit int) (rows []timedRow, err error) {
	column, index := `m.updated_at`, `INDEXED BY memory_updated`
	if order == SortCreatedAsc || order == SortCreatedDesc {
		column, index = `m.created_at`, `INDEXED BY memory_created`
	}
	err = tx.Each(func(row *sqlite.Rows) error {
		var t timedRow
		err := row.Scan(&t.at, &t.id, &t.row)
		rows = append(rows, t)
		return err
	}, `SELECT `+column+`, m.uid, m.id `+fromPartitions(index)+` WHERE p.id = ?`+sel.further()+` ORDER BY `+timeOrder(order)+` LIMIT ?`,
		append(append([]any{p.id}, sel.args...), limit)...)
	return rows, err
}

// fromPartitions goes through memories partition by partition, with what a condition may speak of, along an index if one is named.
func fromPartitions(index string) string {
	return `FROM partition p CROSS JOIN collection c ON c.id = p.collection_id CROSS JOIN memory m ` + index + ` ON m.partition_id = p.id`
}

// further is the condition as what goes on after another one.
func (sel selection) further() string {
	if sel.condition == "" {
		return ""
	}
	return ` AND ` + sel.condition
}

// timeOrder is an order by time in SQL.
func timeOrder(order SortOrder) string {
	switch order {
	case SortCreatedAsc:
		return `m.created_at, m.uid`
	case SortCreatedDesc:
		return `m.created_at DESC, m.uid`
	case SortUpdatedAsc:
		return `m.updated_at, m.uid`
	}
	return `m.updated_at DESC, m.uid`
}

func (s *Store) searchByTime(tx *sqlite.Tx, sc scope, q Query, sel selection, results *Results) error {
	var err error
	if results.Total, err = sel.count(tx); err != nil {
		return err
	}
	rows, err := sel.page(tx, q.Sort, q.Limit, q.Offset)
	if err != nil {
		return err
	}
	found, err := s.loadRows(tx, sc, rows)
	for i, m := range found {
		results.Hits = append(results.Hits, Hit{Memory: m.Memory, Rank: q.Offset + i + 1, End: len(m.Content)})
	}
	return err
}
