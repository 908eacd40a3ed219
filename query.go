package souvenir

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/retrieval"
	"github.com/souvenir-ai/souvenir/internal/retrieval/filter"
	"github.com/souvenir-ai/souvenir/internal/retrieval/ranking"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// What a search is asked, and what it answers.

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
type Filter map[string]any

// Condition is a [Filter]'s condition on one key. All of its fields that are set must hold.
type Condition struct {
	In  []any // equal to any of these, at most 1,000
	Not any   // not equal to it, or not set; a slice: equal to none of its elements
	All []any // for lists: contains all of these, at most 64
	// Bounds, of one type: numbers, strings, or times.
	AtLeast, MoreThan, AtMost, LessThan any
}

// Own returns the key by which a [Filter] names a key of the caller's own metadata, under any name: "custom." and the
// name.
func Own(key string) string { return filter.OwnPrefix + key }

// In matches a key that equals any of the values.
func In[T any](values ...T) Condition { return Condition{In: anys(values)} }

// Not matches a key that does not equal the value or is not set.
func Not(value any) Condition { return Condition{Not: value} }

// All matches lists that contain all of the values.
func All[T any](values ...T) Condition { return Condition{All: anys(values)} }

// Between matches a key that is at least low and at most high.
func Between(low, high any) Condition { return Condition{AtLeast: low, AtMost: high} }

func anys[T any](values []T) []any {
	list := make([]any, len(values))
	for i, v := range values {
		list[i] = v
	}
	return list
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

	Reranked *Reranked `json:"reranked,omitempty"` // the Reranker's score; nil: it was not called
}

// Evidence is one kind of evidence of a memory: how strong it is, 0 to 1, and what it adds to the score.
type Evidence struct {
	Value float64 `json:"value"`
	Gain  float64 `json:"gain"`
}

// Reranked is the score that [Options.Reranker] gave a hit. It adds nothing to the hit's own score.
type Reranked struct {
	Score float64 `json:"score"` // on the Reranker's own scale
	From  int     `json:"from"`  // the previous rank
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

// HasMore reports whether there are results after this page.
func (r Results) HasMore() bool { return r.Offset+len(r.Hits) < r.Total }

// MarshalJSON returns hits (never null), total, offset, limit, sort_order, has_more and warnings.
func (r Results) MarshalJSON() ([]byte, error) {
	type plain Results
	r.Hits = emptyList(r.Hits)
	return json.Marshal(struct {
		plain
		HasMore bool `json:"has_more"`
	}{plain(r), r.HasMore()})
}

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
	}{h.Memory.json(), hitJSON{h.Rank, h.Score, h.Confidence, h.Parts, h.Start, h.End, h.Explanation, h.FileCount, files}})
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
