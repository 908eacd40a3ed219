package souvenir

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/index"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/ranking"
	"github.com/souvenir-ai/souvenir/internal/retrieval"
)

// Explanation breaks down the score of a hit. The gains add up to the score, unless that would exceed 1, or the score
// of a hit that precedes it for another reason.
type Explanation struct {
	Words   Evidence `json:"words"`             // BM25, as a fraction of the best that the query's words could reach
	Meaning Evidence `json:"meaning"`           // cosine similarity of the vectors
	Late    Evidence `json:"late_interaction"`  // the best match in the memory for each query word
	Exact   float64  `json:"exact,omitempty"`   // gain for a rare name or identifier of the query
	Asking  float64  `json:"asking,omitempty"`  // below 0: loss for being a question itself
	Speaker float64  `json:"speaker,omitempty"` // gain for a speaker named in the query
	Lenders []Lender `json:"lenders,omitempty"` // what was said around it in the same conversation, in order

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

// Lender is a memory whose own evidence adds to the score of another memory of its conversation.
type Lender struct {
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
		shown **Evidence
		ranking.Part
	}{{&x.Recency, e.Recency}, {&x.Importance, e.Importance}, {&x.State, e.State}} {
		if prior.Part != (ranking.Part{}) {
			*prior.shown = &Evidence{float64(prior.Value), float64(prior.Gain)}
		}
	}
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
	// how many of the found memories are probably about the text: those that reach a Confidence of 0.5, of the best 30
	// or so and their neighbours in conversations. With MinScore, or without a text or a vector, it is Total.
	Found int `json:"found"`
	Way   Way `json:"way,omitempty"` // only with Query.Explain, in a search with a text or a vector
	// notes for the caller, for example that a part of the store is currently found by words only
	Warnings []string `json:"warnings,omitempty"`

	Documents []DocumentHit `json:"documents,omitempty"` // the best first; only with Query.Documents
}

// Way is how a search by relevance was executed. All ways rank alike.
type Way string

// The values of [Way].
const (
	WayMemory   Way = Way(retrieval.ByMemory)   // in the index in memory
	WaySegments Way = Way(retrieval.BySegments) // likewise, after loading some of it from stored segments
	// in the database, comparing the nearest vectors that its index of vectors named, and what shares words
	WayVectorIndex Way = Way(retrieval.ByNearest)
	WayScan        Way = Way(retrieval.ByScan) // in the database, comparing all vectors
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

// Stored is a memory as it was stored or changed.
type Stored struct {
	Memory
	Indexed  bool      // searches find it by meaning; false: only by its words, until it has a vector
	Similar  []Similar // earlier near duplicates, the most similar first
	Warnings []string  // notes for the caller; the memory is stored

	// ProjectCreated reports whether this call created the project.
	ProjectCreated bool

	Effect Effect // the effect of a write by key, or with IfAbsent; empty for other writes
}

// Effect is the effect of a write by key, or with IfAbsent.
type Effect string

// The values of [Effect].
const (
	EffectAdded     Effect = "added"     // there was no memory with this key, or this content
	EffectUpdated   Effect = "updated"   // the memory has a new revision
	EffectUnchanged Effect = "unchanged" // the memory was already in this state
)

// MarshalJSON returns the memory's form with indexed, similar, project_created and warnings.
func (s Stored) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		writtenMemory
		storedJSON
	}{s.Memory.json(), storedJSON{s.Indexed, s.Similar, s.ProjectCreated, s.Warnings, s.Effect}})
}

// UnmarshalJSON reads the output of MarshalJSON.
func (s *Stored) UnmarshalJSON(data []byte) error {
	var beside storedJSON
	var m Memory
	if err := withMemory(data, &m, &beside); err != nil {
		return err
	}
	*s = Stored{Memory: m, Indexed: beside.Indexed, Similar: beside.Similar, Warnings: beside.Warnings,
		ProjectCreated: beside.ProjectCreated, Effect: beside.Effect}
	return nil
}

// storedJSON holds the additional members of a stored memory.
type storedJSON struct {
	Indexed        bool      `json:"indexed"`
	Similar        []Similar `json:"similar,omitempty"`
	ProjectCreated bool      `json:"project_created,omitempty"`
	Warnings       []string  `json:"warnings,omitempty"`
	Effect         Effect    `json:"effect,omitempty"`
}
