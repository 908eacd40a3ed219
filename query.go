package souvenir

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/naming"
	"github.com/souvenir-ai/souvenir/internal/retrieval"
	"github.com/souvenir-ai/souvenir/internal/retrieval/filter"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/valid"
	"github.com/souvenir-ai/souvenir/internal/writing"
)

// What a search is asked, and which part of the store it covers. search.go answers it.

// SortOrder is the order of search results and listings.
type SortOrder string

// The values of [SortOrder]. The id breaks ties, so that pages neither repeat nor skip results. Orders by time use the
// stored times, even from a clock that was ahead. Memories without a key or an event time come last in the orders by
// it. Only searches and listings of memories take these orders.
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
	// zero means now. The text and the conditions are matched against the current state. See docs/time.md.
	AsOf time.Time

	whenever bool // include memories that are not valid now
	named    bool // the names of collections were checked: by now, one may be empty, and invisible for it

	// Documents is how many files to return as well, found by their texts: 0 (none) to 20. They are ranked separately, by
	// Text or Vector, in the whole store or in a project. With any other condition on memories no file is found, since
	// files have no such attributes. With the built-in model and without MinScore, files with a Confidence below 0.25 are
	// left out, because the nearest of a few files may still be unrelated.
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
	if err := checkRange("limit", q.Limit, 1, MaxLimit); err != nil {
		return err
	}
	if err := checkRange("offset", q.Offset, 0, maxOffset); err != nil {
		return err
	}
	if err := checkRange("documents", q.Documents, 0, MaxDocuments); err != nil {
		return err
	}
	if !(q.MinScore >= 0 && q.MinScore <= 1) {
		return invalid("min_score", "{} is %v; expected 0 to 1", q.MinScore)
	}
	if err := q.Priors.check(); err != nil {
		return err
	}
	if q.Rerank > MaxRerank {
		return invalid("rerank", "{} is %d; expected at most %d, 0 for %d, or a negative value for none", q.Rerank,
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

func (q *Query) contentColumn() string { return contentColumn(q.WithoutContent, q.AsOf) }

// Filter limits a search or a listing to memories whose fields match. The keys are the known keys of a memory
// (event_type, state, importance, classification, rule_type, tags, related_memory_ids, project_id, project_name,
// collection_name, id, created_at, updated_at, event_time, key) or any key of its own metadata; all of them must match.
// An own key that has the name of a known one, or whose name begins with "custom.", is named by [Own]. Own keys are
// found by an index in metadata of up to 4,096 bytes; see Options.IndexedMetadata. A value is
//
//   - a string, number or bool: equal to it (for lists, such as tags: contains it);
//   - nil: the key is not set;
//   - a slice of these: equal to any of its elements, as [In];
//   - a [Condition], or a map in its JSON form: {"in": [...]}, {"ne": x}, {"gte": x, "lt": y}, {"all": [...]}.
//
// Times are compared as time.Time, RFC 3339 ("2026-03-01T09:00:00Z") or a date ("2026-03-01"), which means the whole
// day (UTC): times in that day are equal to it, times before the day's end are at most it, and later times are greater.
// A project_id can be OWNER/ID, as in ProjectRef, except in bounds. A collection_name that must be equal to one that
// does not exist, alone or in a list, is ErrNotFound, as in Query.Collections.
type Filter map[string]any

// Condition is a [Filter]'s condition on one key. All of its fields that are set must hold.
type Condition struct {
	In  []any // equal to any of these, at most 1,000
	Not any   // not equal to it, or not set; a slice: equal to none of its elements
	All []any // for lists: contains all of these, at most 64
	// Bounds, of one type: numbers, strings, or times. Those of importance follow its order: low, medium, high, critical.
	AtLeast, MoreThan, AtMost, LessThan any
}

// CustomKey returns the key by which a [Filter] names a key of the caller's own metadata, under any name: "custom." and
// the name.
func CustomKey(key string) string { return filter.OwnPrefix + key }

// In matches a key that equals any of the values.
func In[T any](values ...T) Condition { return Condition{In: anys(values)} }

// Not matches a key that does not equal the value or is not set.
func Not(value any) Condition { return Condition{Not: value} }

// All matches lists that contain all of the values.
func All[T any](values ...T) Condition { return Condition{All: anys(values)} }

// Between matches a key that is at least low and at most high.
func Between(low, high any) Condition { return Condition{AtLeast: low, AtMost: high} }

// Priors are evidence for memories that does not depend on the query. Each weight is relative to 1 for all other
// evidence; zero means no effect. They count for the best hits of searches by relevance with a text: about 30, and
// their neighbours in conversations. They do not count for further hits, nor in Confidence. Weights of 0.1 to 0.3
// decide between similarly good hits.
type Priors struct {
	// Recency counts memories by their latest change: 1 for now (or Query.AsOf), and half as much for each HalfLife
	// before; a HalfLife of zero means 30 days.
	Recency  float64
	HalfLife time.Duration

	// Importance counts 1 for critical, 2/3 for high, 0 for low, and 1/3 for all others.
	Importance float64

	// State counts memories by their state, with the values in States: 0 to 1; 0 for states that are not in it.
	State  float64
	States map[string]float64
}

func (p Priors) check() error {
	for _, weight := range []struct {
		name  string
		value float64
	}{{"recency", p.Recency}, {"importance", p.Importance}, {"state", p.State}} {
		if !(weight.value >= 0 && weight.value <= 1) {
			return invalid("priors", "the weight of %s in {} is %v; expected 0 to 1", weight.name, weight.value)
		}
	}
	if p.HalfLife < 0 {
		return invalid("priors", "the half-life in {} is %v; it must not be negative", p.HalfLife)
	}
	for state, value := range p.States {
		if !(value >= 0 && value <= 1) {
			return invalid("priors", "state %q in {} is %v; expected 0 to 1", state, value)
		}
	}
	return nil
}

func anys[T any](values []T) []any {
	list := make([]any, len(values))
	for i, v := range values {
		list[i] = v
	}
	return list
}

// contentColumn returns the column for a caller that needs no contents. With AsOf, the content itself is compared.
func contentColumn(without bool, asOf time.Time) string {
	if without && asOf.IsZero() {
		return kernel.NoContent
	}
	return kernel.WholeContent
}

// compile turns the filter into SQL conditions on m, p and c.
func (f Filter) compile(v viewer) ([]filter.Part, error) {
	conditions := make(map[string]any, len(f))
	for key, value := range f {
		if c, ok := value.(Condition); ok {
			value = filter.Condition{In: c.In, Not: c.Not, All: c.All, AtLeast: c.AtLeast, MoreThan: c.MoreThan,
				AtMost: c.AtMost, LessThan: c.LessThan}
		}
		conditions[key] = value
	}
	return filter.Compile(v, conditions)
}

// scope returns the part of a query that selects the searched memories.
func (q *Query) scope() Query {
	return Query{Collections: q.Collections, ProjectID: q.ProjectID, ProjectName: q.ProjectName,
		Classification: q.Classification, Tags: q.Tags, Keys: q.Keys, Filter: q.Filter, AsOf: q.AsOf,
		whenever: q.whenever}
}

// selection is the part of the store that a query covers.
type selection struct {
	retrieval.Selection
	warnings []string
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
		sel.Add(p, hidden[p.ID])
	}
	return nil
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
		if q.named {
			break
		}
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
	if !q.named {
		if err := checkCollections(tx, v, parts); err != nil {
			return err
		}
	}
	parts, err := filter.Opened(tx, v, parts)
	if err != nil {
		return err
	}
	if !q.AsOf.IsZero() {
		condition, args := v.AsOf(q.AsOf.UnixMicro())
		parts = append(parts, filter.Part{SQL: filter.Plain(condition), Args: args})
	}
	joined, err := filter.Join(tx, parts)
	sel.Condition, sel.Args, sel.Steady, sel.Indexed = joined.SQL, joined.Args, joined.Steady, joined.Indexed
	return err
}

// checkCollections refuses a filter for the name of a collection that does not exist, as for Query.Collections.
func checkCollections(tx db.Tx, v viewer, parts []filter.Part) error {
	var asked []string
	for _, p := range parts {
		asked = append(asked, p.Collections()...)
	}
	there := []string{kernel.DefaultCollection, kernel.ConversationCollection} // made when first used
	asked = slices.DeleteFunc(valid.Distinct(asked), func(name string) bool { return slices.Contains(there, name) })
	if len(asked) == 0 {
		return nil
	}
	owners, err := v.Owners(tx)
	if err != nil {
		return err
	}
	named, forms, err := sealedrows.IsAny(tx, sealedrows.CollectionName, owners, `c.name`, asked...)
	if err != nil {
		return err
	}
	visible, args := v.VisibleCollection()
	found, err := db.Column[string](tx, `SELECT c.name FROM collection c WHERE `+visible+` AND `+named,
		append(args, forms)...)
	if err != nil {
		return err
	}
	there = append(there, found...)
	for _, name := range asked {
		if !slices.Contains(there, name) {
			return writing.UnknownInFilter(tx, v, name)
		}
	}
	return nil
}

// noProject is the warning about a project that a search cannot look into.
func noProject(id, name string) string {
	return fmt.Sprintf("project %s not found, or you have no access to it, so nothing is found in it", show(id+name))
}
