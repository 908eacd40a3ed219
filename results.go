package souvenir

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/budget"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fairqueue"
	"github.com/souvenir-ai/souvenir/internal/ranking"
	"github.com/souvenir-ai/souvenir/internal/shorten"
)

// Explanation says what the score of a hit consists of. What it names as gains adds up to the score, unless that would
// be above 1, or above the score of a hit that comes before it for another reason.
type Explanation struct {
	Words   Evidence `json:"words"`             // BM25, as a part of the best that the query's words could reach
	Meaning Evidence `json:"meaning"`           // cosine similarity of the vectors
	Late    Evidence `json:"late_interaction"`  // how near each of the query's words is to the nearest one in the memory
	Exact   float64  `json:"exact,omitempty"`   // what it gains because it holds a rare name or identifier of the query
	Asking  float64  `json:"asking,omitempty"`  // below 0: what it loses because it asks itself
	Speaker float64  `json:"speaker,omitempty"` // what it gains because the query names who said it
	Lenders []Lender `json:"lenders,omitempty"` // what was said around it in the same conversation, in order

	Reranked *Reranked `json:"reranked,omitempty"` // what the Reranker said of it; nil: it was not asked
}

// Evidence is one kind of evidence of a memory: how strong it is, 0 to 1, and what it adds to the score.
type Evidence struct {
	Value float64 `json:"value"`
	Gain  float64 `json:"gain"`
}

// Reranked is what [Options.Reranker] said of a hit. It adds nothing to the hit's score.
type Reranked struct {
	Score float64 `json:"score"` // by its own measure
	From  int     `json:"from"`  // the rank before
}

// Lender is a memory whose own evidence adds to the score of another one of its conversation.
type Lender struct {
	ID string `json:"id"`
	// 1 is right after the hit, -1 right before it, 0 the hit itself: the best around it
	Place int     `json:"place"`
	Asks  bool    `json:"asks,omitempty"` // it asks, and the hit may be the answer
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
	for _, l := range e.Lenders {
		x.Lenders = append(x.Lenders, Lender{l.ID, l.Place, l.Asks, float64(l.Value), float64(l.Gain)})
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
	// how many of the memories found are probably about the text: of those whose Confidence was computed from all
	// evidence, some 30 and their neighbours in conversations, the ones that reach 0.5. With MinScore it is Total, and
	// without a text or a vector, too.
	Found int `json:"found"`
	// what a caller should know, for example that a part of the store is currently found by words only
	Warnings []string `json:"warnings,omitempty"`
}

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

	// Confidence is how likely the memory is about the text that was searched for, 0 to 1. It means the same in each
	// search: 0.5 is "probably". It is calibrated for the built-in model. Without a text it is the cosine similarity if
	// that is above 0, and without a vector, too, it is 0.
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
		memoryJSON
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

// What is read as the content of a memory.
const (
	wholeContent = `m.content`
	noContent    = `''`
)

// contentColumn returns the column for a caller who does without contents. A look back compares the content itself.
func contentColumn(without bool, asOf time.Time) string {
	if without && asOf.IsZero() {
		return noContent
	}
	return wholeContent
}

func (q *Query) contentColumn() string { return contentColumn(q.WithoutContent, q.AsOf) }

// loadColumns does the same as loadRows with another column as the content.
func (s *Store) loadColumns(tx db.Tx, v viewer, content string, rows []int64) ([]storedMemory, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	found, err := s.loadMemoriesWith(tx, v, content, `m.id IN `+db.Integers, db.List(rows))
	if err != nil {
		return nil, err
	}
	place := make(map[int64]int, len(rows))
	for i, row := range rows {
		place[row] = i
	}
	slices.SortFunc(found, func(a, b storedMemory) int { return place[a.row] - place[b.row] })
	return found, nil
}

// Reranker orders the best hits of a search again, for example by a cross-encoder. None is built in.
//
// [Store.Search] and [Store.SearchBatch] ask it, also for tools and HTTP, after they have read the store: no
// transaction waits for it. When it fails, panics, or returns scores that do not fit, the order before it stays, with a
// warning. Within [Store.Transaction] it is not asked.
type Reranker interface {
	// Rerank returns a score for each text: the higher, the more relevant to the query. They may have any measure but must
	// be finite. The texts are the best passages of 2 to 100 hits, the best first, and the caller may see all of them. It
	// is called from several goroutines at once and must honour its context. Only the log sees its errors.
	Rerank(ctx context.Context, query string, texts []string) ([]float64, error)
}

// RerankerFunc is a function that is a [Reranker].
type RerankerFunc func(ctx context.Context, query string, texts []string) ([]float64, error)

// Rerank calls the function.
func (f RerankerFunc) Rerank(ctx context.Context, query string, texts []string) ([]float64, error) {
	return f(ctx, query, texts)
}

// reranks returns how many hits of a valid query are ordered again.
func (s *Store) reranks(q Query) int {
	n := q.Rerank
	if n == 0 {
		n = DefaultRerank
	}
	if s.options.Reranker == nil || q.Sort != SortRelevance || strings.TrimSpace(q.Text) == "" || q.Offset >= n {
		return 0
	}
	return n
}

// candidates returns the query for the hits that are ordered again and the ones up to the end of the page.
func (s *Store) candidates(q Query) Query {
	if n := s.reranks(q); n > 0 {
		q.Offset, q.Limit, q.WithoutContent = 0, max(n, q.Offset+q.Limit), false
	}
	return q
}

// rerank orders the best of a query's candidates again, and cuts the page out of them.
func (s *Store) rerank(ctx context.Context, q Query, r *Results) error {
	n := s.reranks(q)
	if n == 0 {
		return nil
	}
	best := r.Hits[:min(n, len(r.Hits))]
	if len(best) > 1 {
		scores, err := s.callReranker(ctx, q.Text, best)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			s.log.WarnContext(ctx, "hits could not be reranked; their order stays", "error", err)
			r.Warnings = append(r.Warnings, "the results are in the order before reranking, because the reranker failed")
		} else {
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

func withoutContent(hits []Hit) {
	for i := range hits {
		hits[i].Content, hits[i].Start, hits[i].End = "", 0, 0
	}
}

// callReranker returns a score for each hit. A panic is an error.
func (s *Store) callReranker(ctx context.Context, query string, hits []Hit) (scores []float64, err error) {
	texts := make([]string, len(hits))
	for i, h := range hits {
		texts[i] = h.Content[h.Start:h.End]
	}
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
		err = fmt.Errorf("the reranker returned a score that is no finite number: %v", scores)
	}
	return scores, err
}

// order sorts hits by their scores, the highest first. Hits with the same score keep their order.
func order(hits []Hit, scores []float64) {
	reranked := make([]Reranked, len(hits))
	for i := range hits {
		reranked[i] = Reranked{Score: scores[i], From: i + 1}
	}
	slices.SortStableFunc(reranked, func(a, b Reranked) int { return cmp.Compare(b.Score, a.Score) })
	before := slices.Clone(hits)
	for i, r := range reranked {
		hits[i] = before[r.From-1]
		if x := hits[i].Explanation; x != nil {
			x.Reranked = &r
		}
	}
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

// ContextMemory is a memory as a context shows it.
type ContextMemory struct {
	Memory
	Score     float64 // relevance to the query, 0 to 1, in three digits; 0 when nothing was searched for
	Truncated bool    // shortened: Content ends early, or long metadata is left out. GetMemory returns the whole
}

// MarshalJSON returns the memory's form with score and truncated, and without what is zero.
func (m ContextMemory) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		ID         string         `json:"id"`
		Content    string         `json:"content"`
		Collection string         `json:"collection_name,omitempty"`
		Owner      string         `json:"owner,omitempty"`
		Metadata   map[string]any `json:"metadata"`
		Revision   int            `json:"revision,omitempty"`
		CreatedAt  time.Time      `json:"created_at,omitzero"`
		UpdatedAt  time.Time      `json:"updated_at,omitzero"`
		SharedBy   string         `json:"shared_by,omitempty"`
		Key        string         `json:"key,omitempty"`
		EventTime  time.Time      `json:"event_time,omitzero"`
		ExpiresAt  time.Time      `json:"expires_at,omitzero"`
		memoryValidity
		contextMemoryJSON
	}{m.ID, m.Content, m.Collection, m.Owner, m.ShownMetadata(), m.Revision, m.CreatedAt, m.UpdatedAt, m.SharedBy,
		m.Key, m.EventTime, m.ExpiresAt, memoryValidity{m.ValidFrom, m.ValidUntil, m.Supersedes, m.SupersededBy},
		contextMemoryJSON{m.Score, m.Truncated}})
}

// UnmarshalJSON reads the output of MarshalJSON.
func (m *ContextMemory) UnmarshalJSON(data []byte) error {
	var beside contextMemoryJSON
	var memory Memory
	if err := withMemory(data, &memory, &beside); err != nil {
		return err
	}
	*m = ContextMemory{Memory: memory, Score: beside.Score, Truncated: beside.Truncated}
	return nil
}

// contextMemoryJSON holds the additional members of a context's memory.
type contextMemoryJSON struct {
	Score     float64 `json:"score,omitempty"`
	Truncated bool    `json:"truncated,omitempty"`
}

// emptyList returns a list that JSON writes as [] even if it is nil.
func emptyList[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// shorten cuts the content to a number of characters, and omits own metadata that is too long for a preview.
func (m *ContextMemory) shorten(characters int) {
	if cut := shorten.Words(m.Content, characters); cut != m.Content {
		m.Content, m.Truncated = cut, true
	}
	if budget.Size(m.Metadata) > maxOwnInPreview {
		m.Metadata, m.Truncated = nil, true
	}
}

// piece is a memory as it is fitted into a budget.
type piece ContextMemory

func (p *piece) Text() string { return p.Content }

func (p *piece) Cut(text string) { p.Content, p.Truncated = text, true }

func (p *piece) Strip() {
	p.Memory = Memory{ID: p.ID, Content: p.Content, EventType: p.EventType, RuleType: p.RuleType, SharedBy: p.SharedBy}
}

func asPiece(m *ContextMemory) budget.Piece { return (*piece)(m) }

func (p piece) MarshalJSON() ([]byte, error) { return ContextMemory(p).MarshalJSON() }

// within shortens the memory until its JSON has at most most bytes, if its identifying fields leave room for that.
func (m *ContextMemory) within(most int) { budget.Within((*piece)(m), most) }

// shorten cuts the content to a number of characters, and omits own metadata that is too long for a preview. It reports
// whether anything was left out.
func (m *Memory) shorten(characters int) bool {
	preview := ContextMemory{Memory: *m}
	preview.shorten(characters)
	*m = preview.Memory
	return preview.Truncated
}
