package souvenir

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/check"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/text"
)

// SortOrder is the order of search results and listings.
type SortOrder string

// The values of [SortOrder]. Among equals the id decides, so that pages neither repeat nor skip. Orders by time use the stored
// times, also those given by a clock that was ahead.
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
	Hits     []Hit     `json:"hits"`
	Total    int       `json:"total"` // of the memories found, over all pages
	Offset   int       `json:"offset"`
	Limit    int       `json:"limit"`
	Sort     SortOrder `json:"sort_order"`         // the order that was used
	Warnings []string  `json:"warnings,omitempty"` // what a caller should know, for example that a part of the store is found by words only for now
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
		hitJSON
	}{h.Memory.json(), hitJSON{h.Rank, h.Score, h.Parts, h.Start, h.End, h.FileCount, files}})
}

// hitJSON is what a hit has beside the members of its memory.
type hitJSON struct {
	Rank      int           `json:"rank"`
	Score     float64       `json:"score"`
	Parts     Parts         `json:"parts"`
	Start     int           `json:"start"`
	End       int           `json:"end"`
	FileCount int           `json:"file_count"`
	Files     []FileSummary `json:"files"`
}

// Parts are what a relevance is made of.
type Parts struct {
	Vector float64 `json:"vector"` // cosine similarity of the best passage to the query, -1 to 1; 0 when there is no vector
	Text   float64 `json:"text"`   // how well the words fit, as a part of the best possible BM25 score: 0 to 1
}

// Group is the part of a page that lies in one collection.
type Group struct {
	Collection string `json:"collection_name"`
	Owner      string `json:"owner"` // user id of the collection's owner: collections of different owners may have one name
	Hits       []Hit  `json:"hits"`
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
	if err := check.UTF8("query", q.Text); err != nil {
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
	if err := check.Enum("sort_order", q.Sort, sortOrders); err != nil {
		return err
	}
	if q.Sort == SortRelevance && !q.sought() {
		q.Sort = SortUpdatedDesc // nothing to be relevant to; Results.Sort says so
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
	err = s.read(ctx, func(tx db.Tx, sc scope) error {
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
		w.warnings = append(w.warnings, "searched by words only, because the embedder "+s.embedder.Model()+" failed")
		return w, nil
	}
	w.vector = vectors[0]
	return w, nil
}

func (s *Store) searchByTime(tx db.Tx, sc scope, q Query, sel selection, results *Results) error {
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
