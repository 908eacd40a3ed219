package souvenir

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/budget"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/embedding"
	"github.com/souvenir-ai/souvenir/internal/fixedcontext"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/naming"
	"github.com/souvenir-ai/souvenir/internal/recency"
	"github.com/souvenir-ai/souvenir/internal/retrieval/filter"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
	"github.com/souvenir-ai/souvenir/internal/shorten"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// ContextQuery says what an interaction is about. The zero value asks for the context that applies everywhere.
type ContextQuery struct {
	// Query describes the interaction, in plain language: the context has the related memories and the conversation that
	// match it best. Empty means the newest ones.
	Query string

	ProjectID   string // the current project; an unknown one is empty
	ProjectName string // the project by name

	// DetectedIdentity describes the caller and the person it talks to, as far as it knows. While no identity is stored,
	// it widens the query and the answer suggests storing it. At most 16 KiB as JSON.
	DetectedIdentity map[string]any

	// MinScore is the least [Hit.Confidence] of the best related memory: if none reaches it, none is returned, with a
	// warning. Zero means 0.5, which is "probably about the query"; a negative value returns every memory that has
	// something in common with the query.
	MinScore float64

	Related int // related memories to return, 1 to 50; zero means 7
	Preview int // characters to show of each related memory, 50 to 100,000; zero means 600

	// TokenBudget bounds the answer, in tokens: 1 token = 4 bytes of the answer's JSON (estimate). At least 500; zero
	// means no bound. [Store.GetContext] says how the answer is shortened.
	TokenBudget int
}

// Limits of a context.
const (
	MaxContextRelated = 50  // related memories of a context
	MinTokenBudget    = 500 // the least token budget of an answer

	probably        = 0.5 // the least confidence of a memory that is probably about a text
	defaultPreview  = 600
	minPreview      = 50
	maxPreview      = 100_000
	maxDetected     = 16 << 10 // bytes of a detected identity, as JSON
	maxWidening     = 2000     // bytes of it that may widen a query
	maxDoDont       = 50       // memories in each list of dos and don'ts
	maxOwnInPreview = 1 << 10  // bytes of own metadata, as JSON, that a preview still shows
)

// Context gathers what an agent should know when an interaction begins.
type Context struct {
	// Identity is the newest active memory of event type IDENTITY in the caller's own collections; nil if there is none.
	Identity *ContextMemory `json:"identity"`

	// IdentitySuggestion is the call that would store the detected identity. Nil unless an identity was given, none is
	// stored, and this view may write and is not limited to projects.
	IdentitySuggestion *ToolCall `json:"identity_suggestion,omitempty"`

	// ConversationID is the id of the active memory of event type conversation or case that matches the query best, or,
	// without a query, of the newest one: in the project if one is given, else in the caller's own collections, and only a
	// memory that the caller may update. Empty if there is none.
	ConversationID string `json:"conversation_memory_id"`

	// previews of related memories: the project's first, then others; each once
	Related []ContextMemory `json:"related_memories"`
	Guide   []string        `json:"get_context_do_dont"` // how to work with the memory, for a model

	// GeneralDoDont holds the caller's general rules and dos and don'ts: the ones outside projects.
	GeneralDoDont []ContextMemory `json:"general_do_dont"`

	// ProjectDoDont holds the project's short dos and don'ts, besides ProjectRules; nil when no project is given.
	ProjectDoDont []ContextMemory `json:"project_do_dont"`

	ProjectRules *ContextRules `json:"project_rules,omitempty"` // nil when no project is given
	Warnings     []string      `json:"warnings,omitempty"`      // notes for the caller, for example about parts left out
	// size of this answer: a quarter of the bytes of its JSON, rounded up
	Tokens int `json:"tokens"`
}

// ContextRules are the rules of a project; nil for missing ones.
type ContextRules struct {
	Do   *ContextMemory `json:"do"`
	Dont *ContextMemory `json:"dont"`
	Todo *ContextMemory `json:"todo"`
}

// contextFields has the fields of a Context without its methods.
type contextFields Context

// MarshalJSON writes conversation_memory_id as null for none, and the lists that a context always has as [].
func (c Context) MarshalJSON() ([]byte, error) {
	c.Related, c.Guide = jsonobject.List(c.Related), jsonobject.List(c.Guide)
	c.GeneralDoDont = jsonobject.List(c.GeneralDoDont)
	form := struct {
		Identity       *ContextMemory `json:"identity"`
		Suggestion     *ToolCall      `json:"identity_suggestion,omitempty"`
		ConversationID *string        `json:"conversation_memory_id"`
		contextFields
	}{Identity: c.Identity, Suggestion: c.IdentitySuggestion, contextFields: contextFields(c)}
	if c.ConversationID != "" {
		form.ConversationID = &c.ConversationID
	}
	return json.Marshal(form)
}

// check validates the query and fills in the defaults.
func (q *ContextQuery) check() error {
	text := Query{Text: q.Query}
	if err := text.check(); err != nil {
		return err
	}
	if err := valid.Project(q.ProjectID, q.ProjectName); err != nil {
		return err
	}
	if q.MinScore == 0 {
		q.MinScore = probably
	}
	if !(q.MinScore <= 1) {
		return invalid("min_score", "{} is %v; expected at most 1; a negative value leaves nothing out", q.MinScore)
	}
	var err error
	if q.DetectedIdentity, err = jsonobject.Canonical("detected_identity", q.DetectedIdentity); err != nil {
		return err
	}
	if size := budget.Size(q.DetectedIdentity); size > maxDetected {
		return newError(KindTooLarge, "detected_identity", "{} is %d bytes as JSON; at most %d are allowed",
			size, maxDetected)
	}
	q.Related, q.Preview = cmp.Or(q.Related, DefaultLimit), cmp.Or(q.Preview, defaultPreview)
	err = cmp.Or(checkRange("related", q.Related, 1, MaxContextRelated),
		checkRange("preview", q.Preview, minPreview, maxPreview))
	if err == nil && q.TokenBudget != 0 {
		err = checkRange("token_budget", q.TokenBudget, MinTokenBudget, 1<<30)
	}
	return err
}

// GetContext gathers what an agent should know when an interaction begins: its identity, the rules to follow, the
// conversation to continue, and the memories related to the query. All of it is from one snapshot.
//
// If an answer does not fit into the token budget, it is filled in this order: the identity and the project's rules and
// todo (if they do not all fit, the longest ones are shortened), the suggested identity, general and project dos and
// don'ts, related memories. Shortened memories are marked as truncated, and a warning says what was left out.
func (s *Store) GetContext(ctx context.Context, q ContextQuery) (Context, error) {
	return hooked(ctx, s, OperationSearch, "GetContext", func(ctx context.Context, o *operation) (_ Context, err error) {
		defer setGoNames[ContextQuery](&err)
		if err := q.check(); err != nil {
			return Context{}, err
		}
		text, err := s.contextText(ctx, q)
		if err == nil {
			text, err = o.searchText(ctx, ProjectRef{ID: q.ProjectID, Name: q.ProjectName}, text)
		}
		if err != nil {
			return Context{}, err
		}
		return s.getContext(ctx, q, text)
	})
}

// contextReader gathers a context from one snapshot.
type contextReader struct {
	store    *Store
	tx       db.Tx
	viewer   viewer
	query    ContextQuery
	hasText  bool // there is a text to search for
	prepared preparedQuery

	places   []fixedcontext.Place
	project  *naming.Project // nil: none given, or unknown
	included map[int64]bool  // memories already in the context
	found    Results         // collects the warnings of searches

	unrelated bool // memories that are probably about something else were left out
}

func (s *Store) getContext(ctx context.Context, q ContextQuery, text string) (Context, error) {
	prepared, err := s.prepareQuery(ctx, Query{Text: text})
	if err != nil {
		return Context{}, err
	}
	var c Context
	err = s.readAhead(ctx, aheadOfContext, func(tx db.Tx, v viewer) error {
		r := contextReader{store: s, tx: tx, viewer: v, query: q, prepared: prepared, included: map[int64]bool{}}
		r.hasText = (&Query{Text: text}).rankable()
		r.found.Warnings = slices.Clone(prepared.warnings)
		c, err = r.gather()
		return err
	})
	if err != nil {
		return Context{}, err
	}
	c.fit(q.TokenBudget)
	c.Tokens = c.tokens()
	return c, nil
}

func (r *contextReader) gather() (c Context, err error) {
	if r.places, err = fixedcontext.Places(r.tx, r.viewer); err != nil {
		return c, err
	}
	if r.named() {
		if r.project, err = naming.Find(r.tx, r.viewer, r.query.ProjectID, r.query.ProjectName); err != nil {
			return c, err
		}
		r.found.Warnings = append(r.found.Warnings, r.project.Notes()...)
		if r.project == nil {
			r.found.Warnings = append(r.found.Warnings, noProject(r.query.ProjectID, r.query.ProjectName))
		}
	}
	c.Guide = fixedcontext.Guide()
	if err := r.direct(&c); err != nil {
		return c, err
	}
	// A limited view does not know whether an identity exists outside its projects, and one stored inside them would
	// replace it.
	if c.Identity == nil && len(r.query.DetectedIdentity) > 0 && !r.viewer.Limited && !r.store.access.ReadOnly &&
		!r.store.db.ReadOnly() {
		c.IdentitySuggestion = suggestIdentity(r.query.DetectedIdentity)
	}
	if c.ConversationID, err = r.conversation(); err == nil {
		c.Related, err = r.related()
	}
	c.Warnings = valid.Distinct(r.found.Warnings)
	return c, err
}

// named reports whether the query names a project.
func (r *contextReader) named() bool { return r.query.ProjectID != "" || r.query.ProjectName != "" }

func (r *contextReader) warn(format string, args ...any) {
	r.found.Warnings = append(r.found.Warnings, fmt.Sprintf(format, args...))
}

// inProject reports whether a place is in the query's project.
func (r *contextReader) inProject(p fixedcontext.Place) bool {
	return r.project != nil && p.Project == r.project.Row
}

// direct fills in the memories that filters alone find, regardless of the query.
func (r *contextReader) direct(c *Context) error {
	fixedcontext.NewestAhead(r.tx, r.resumable().Selection, EventConversation, EventCase)
	chosen, err := r.store.doDonts.Choose(r.tx, r.viewer, r.store.now(), r.places, r.inProject, maxDoDont)
	if err != nil {
		return err
	}
	general, project := r.important("general_do_dont", chosen.General), r.important("project_do_dont", chosen.InProject)
	found, err := r.load(slices.Concat([]int64{chosen.Identity, chosen.Do, chosen.Dont, chosen.Todo}, general, project))
	if err != nil {
		return err
	}
	all := func(rows []int64) []ContextMemory {
		list := []ContextMemory{}
		for _, row := range rows {
			if m := found[row]; m != nil {
				list = append(list, *m)
			}
		}
		return list
	}
	c.Identity, c.GeneralDoDont = found[chosen.Identity], all(general)
	if r.named() {
		c.ProjectDoDont = all(project)
		c.ProjectRules = &ContextRules{Do: found[chosen.Do], Dont: found[chosen.Dont], Todo: found[chosen.Todo]}
	}
	return nil
}

// load reads memories by row and marks them as shown in the context. Row 0 means none.
func (r *contextReader) load(rows []int64) (map[int64]*ContextMemory, error) {
	rows = slices.DeleteFunc(rows, func(row int64) bool { return row == 0 })
	stored, err := kernel.LoadRows(r.tx, r.viewer, kernel.WholeContent, rows)
	found := make(map[int64]*ContextMemory, len(stored))
	for _, m := range stored {
		found[m.Row], r.included[m.Row] = &ContextMemory{Memory: memoryOf(m)}, true
	}
	return found, err
}

// important returns the rows of a list of dos and don'ts, and warns if it leaves some out.
func (r *contextReader) important(key string, list fixedcontext.Important) []int64 {
	if list.Total > maxDoDont {
		r.warn("%s shows %d of %d memories, the most important and newest ones; the others are found by search with "+
			"classification do and dont", key, maxDoDont, list.Total)
	}
	return list.Rows
}

// in selects the places that fit.
func (r *contextReader) in(fits func(fixedcontext.Place) bool) selection {
	return selection{Selection: fixedcontext.Select(r.viewer, r.places, fits), rows: new(*index.RowSet)}
}

// resumable selects the places of conversations and cases that can be continued.
func (r *contextReader) resumable() selection {
	return r.in(func(p fixedcontext.Place) bool {
		if r.named() {
			return p.Writable && r.inProject(p)
		}
		// Otherwise the conversation would be stored where other people can read it, and they could choose which one
		// continues.
		return p.Own && !p.Shared
	})
}

// conversation returns the id of the conversation or case to continue, "" for none.
func (r *contextReader) conversation() (string, error) {
	sel := r.resumable()
	row, err := fixedcontext.Newest(r.tx, r.store.now(), sel.Selection, EventConversation, EventCase)
	if err != nil || row == 0 {
		return "", err
	}
	if r.hasText {
		sel.Condition, sel.Args = filter.Plain(fixedcontext.Active), []any{db.LowerList(EventConversation, EventCase)}
		hits, _, err := r.search(sel, 1)
		if err != nil {
			return "", err
		}
		if len(hits) > 0 && hits[0].Score > 0 {
			row = hits[0].Row
		}
	}
	var id string
	err = r.tx.QueryRow(`SELECT uid FROM memory WHERE id = ?`, row).Scan(&id)
	return id, err
}

// search ranks a selection by the search text.
func (r *contextReader) search(sel selection, limit int) (hits []index.Hit, ranked *rankedQuery, err error) {
	ranked, err = r.store.rankedQuery(r.tx, r.prepared, sel, &r.found)
	if err != nil {
		return nil, nil, err
	}
	ranked.Limit = limit
	found, err := r.store.rank(r.tx, ranked)
	return found.Hits, ranked, err
}

// related returns previews of the memories that match the query best, or of the newest ones: the project's first, then
// all others, without memories already in the context.
func (r *contextReader) related() ([]ContextMemory, error) {
	var list []ContextMemory
	for _, sel := range []selection{
		r.in(r.inProject),
		r.in(func(p fixedcontext.Place) bool { return !r.inProject(p) }),
	} {
		if len(sel.Partitions) == 0 || len(list) == r.query.Related {
			continue
		}
		hits, err := r.hits(sel, r.query.Related-len(list))
		if err != nil {
			return nil, err
		}
		for _, h := range hits {
			m := ContextMemory{Memory: h.Memory, Score: math.Round(h.Score*1000) / 1000}
			m.Truncated = m.shorten(r.query.Preview)
			list = append(list, m)
		}
	}
	if len(list) == 0 && r.unrelated {
		r.warn("probably no memory is about the query; search shows the nearest ones")
	}
	return list, nil
}

func (r *contextReader) hits(sel selection, limit int) ([]Hit, error) {
	if !r.hasText {
		rows, err := recency.Newest(r.tx, r.store.now(), limit+len(r.included), fixedcontext.NewestOfAll(sel.Current),
			sel.PartitionList())
		if err != nil {
			return nil, err
		}
		rows = slices.DeleteFunc(rows, func(row int64) bool { return r.included[row] })
		newest := page{hits: make([]index.Hit, min(limit, len(rows)))}
		for i := range newest.hits {
			newest.hits[i].Row = rows[i]
		}
		return r.store.showMemories(r.tx, r.viewer, kernel.WholeContent, newest, 0)
	}
	hits, ranked, err := r.search(sel, limit+len(r.included))
	if err != nil {
		return nil, err
	}
	hits = slices.DeleteFunc(hits, func(h index.Hit) bool { return r.included[h.Row] || h.Score <= 0 })
	if !slices.ContainsFunc(hits, func(h index.Hit) bool { return float64(h.Confidence) >= r.query.MinScore }) {
		r.unrelated = r.unrelated || len(hits) > 0
		return nil, nil
	}
	return r.store.showMemories(r.tx, r.viewer, kernel.WholeContent, page{hits[:min(limit, len(hits))], ranked}, 0)
}

// tokens is the size of the context, including the field tokens itself.
func (c Context) tokens() int {
	c.Tokens = 0
	return budget.Tokens(budget.Size(c))
}

// mandatory lists the parts of a context that are never left out.
func (c *Context) mandatory() (parts []budget.Part) {
	add := func(name string, m *ContextMemory) {
		if m != nil {
			parts = append(parts, budget.Part{Name: name, ID: m.ID, Piece: asPiece(m)})
		}
	}
	add("identity", c.Identity)
	if rules := c.ProjectRules; rules != nil {
		add("project_rules.do", rules.Do)
		add("project_rules.dont", rules.Dont)
		add("project_rules.todo", rules.Todo)
	}
	return parts
}

// fit shortens the context to a token budget, 0 for none.
func (c *Context) fit(most int) {
	if most == 0 || c.tokens() <= most {
		return
	}
	answer := budget.Answer[ContextMemory]{Tokens: most, Parts: c.mandatory(), Piece: asPiece,
		Optional: budget.Optional{Name: "identity_suggestion", Drop: func() { c.IdentitySuggestion = nil }},
		Lists: []budget.List[ContextMemory]{{Name: "general_do_dont", Items: &c.GeneralDoDont},
			{Name: "project_do_dont", Items: &c.ProjectDoDont}, {Name: "related_memories", Items: &c.Related}}}
	if c.IdentitySuggestion != nil {
		answer.Optional.Size = len(`"identity_suggestion":,`) + budget.Size(c.IdentitySuggestion)
	}
	c.Warnings = append(slices.Clone(c.Warnings), answer.Fit(func(warnings ...string) int {
		rest := *c
		rest.Identity, rest.IdentitySuggestion, rest.GeneralDoDont, rest.Related = nil, nil, nil, nil
		if rest.ProjectRules != nil {
			rest.ProjectRules, rest.ProjectDoDont = &ContextRules{}, []ContextMemory{}
		}
		rest.Warnings = append(slices.Clone(c.Warnings), warnings...)
		return rest.tokens()
	})...)
	if needed := c.tokens(); needed > most {
		c.Warnings = append(c.Warnings,
			fmt.Sprintf("token_budget %d is too small: the required parts take %d tokens", most, needed))
	}
}

// ContextMemory is a memory as a context shows it.
type ContextMemory struct {
	Memory
	Score     float64 // relevance to the query, 0 to 1, in three digits; 0 when nothing was searched for
	Truncated bool    // shortened: Content ends early, or long metadata is left out. GetMemory returns all of it
}

// MarshalJSON returns the memory's form with score and truncated, and without zero values.
func (m ContextMemory) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		writtenMemory
		contextMemoryJSON
	}{written(m.Memory), contextMemoryJSON{m.Score, m.Truncated}})
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

// asPiece returns the memory as it is fitted into a budget.
func asPiece(m *ContextMemory) budget.Piece {
	return budget.PieceOf(m, &m.Content, &m.Truncated, func() {
		m.Memory = Memory{ID: m.ID, Content: m.Content, EventType: m.EventType, RuleType: m.RuleType,
			Classification: m.Classification, SharedBy: m.SharedBy} // a don't must not read as a do
	})
}

// within shortens the memory until its JSON fits into most bytes, as far as its identifying fields allow.
func (m *ContextMemory) within(most int) { budget.Within(asPiece(m), most) }

// ToolCall is a call of one of the tools.
type ToolCall struct {
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
}

// suggestIdentity returns the call that stores a detected identity.
func suggestIdentity(detected map[string]any) *ToolCall {
	content, metadata := fixedcontext.IdentityFrom(detected)
	if content == "" {
		return nil
	}
	return &ToolCall{Tool: "memory", Arguments: map[string]any{"action": "store", "event_type": EventIdentity,
		"state": StateActive, "content": content, "metadata": metadata}}
}

// contextText returns the search text for related memories: the query and, while no identity is stored, the detected
// identity.
func (s *Store) contextText(ctx context.Context, q ContextQuery) (string, error) {
	if len(q.DetectedIdentity) == 0 {
		return q.Query, nil
	}
	known, err := s.hasIdentity(ctx)
	if err != nil || known {
		return q.Query, err
	}
	widening := shorten.Bytes(strings.Join(jsonobject.Leaves(nil, q.DetectedIdentity), "\n"),
		min(maxWidening, MaxQuery-len(q.Query)-1))
	return strings.TrimSpace(q.Query + "\n" + widening), nil
}

// aheadOfContext announces the rows that each context reads.
func aheadOfContext(tx db.Tx, v viewer) {
	if !v.Limited {
		fixedcontext.PlacesAhead(tx, v)
	}
	embedding.Ahead(tx)
	db.MarkAhead(tx)
}
