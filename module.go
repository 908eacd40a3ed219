package souvenir

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/budget"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fixedcontext"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/naming"
	"github.com/souvenir-ai/souvenir/internal/recency"
	"github.com/souvenir-ai/souvenir/internal/retrieval/filter"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
	"github.com/souvenir-ai/souvenir/internal/shorten"
	"github.com/souvenir-ai/souvenir/internal/text"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// ModuleQuery names a module of a project.
type ModuleQuery struct {
	// Module is the module's name, in any case: 1 to 128 characters. A memory is the module's own if its metadata has
	// this name as module_name, or if one of its tags is the name or module:NAME.
	Module string

	ProjectID   string // only memories of this project; an unknown one has none. Empty means all visible memories
	ProjectName string // the project by name

	Limit int // memories to return, 1 to 100; zero means 10
}

// DefaultModuleLimit is how many memories of a module are returned if a query does not say.
const DefaultModuleLimit = 10

// ModuleState is the state of a module.
type ModuleState struct {
	Module string `json:"module_name"`
	// its own memories, the last updated first; then memories related to it by meaning
	Memories []ModuleMemory `json:"memories"`
	// linked to the module's own memories or to one of Memories, or with tags that name the module
	Files    []File        `json:"files"`
	Summary  ModuleSummary `json:"summary"`
	Warnings []string      `json:"warnings"` // notes for the caller
}

// ModuleMemory is a memory of a module.
type ModuleMemory struct {
	Memory
	Match ModuleMatch
	Score float64 // relevance to the module's name, 0 to 1; 0 for its own memories

	Truncated bool // shortened; see [ModuleState.Within]
}

// ModuleMatch says why a memory belongs to a module.
type ModuleMatch string

// The values of [ModuleMatch].
const (
	MatchModuleName ModuleMatch = kernel.InMetadata // its metadata names the module
	MatchTag        ModuleMatch = kernel.InTag      // one of its tags names it
	MatchMeaning    ModuleMatch = "meaning"         // it is similar in meaning
)

// ModuleSummary counts the module's own memories, however many of them are returned.
type ModuleSummary struct {
	Total      int            `json:"total"`
	EventTypes map[string]int `json:"by_event_type"` // of memories that have one
	States     map[string]int `json:"by_state"`      // of memories that have one
	Newest     []ModuleChange `json:"newest"`        // the five last updated
	OpenTasks  []ModuleTask   `json:"open_tasks"`    // tasks of the project's todo that name the module
}

// ModuleChange is a memory of a module that was stored or updated lately.
type ModuleChange struct {
	ID        string    `json:"id"`
	Line      string    `json:"line"` // the first line of its content, or the beginning of that line
	UpdatedAt time.Time `json:"updated_at"`
}

// ModuleTask is an open task.
type ModuleTask struct {
	ID   string `json:"task_id"`
	Text string `json:"text"`
}

const (
	moduleNewest = 5

	// leastCosine is the minimum similarity to a module's name for a memory without any word of it. With the built-in
	// model, memories unrelated to a name mostly stay below 0.15.
	leastCosine = 0.2
)

// MarshalJSON returns the memory's form with match, and score for memories found by meaning.
func (m ModuleMemory) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		writtenMemory
		moduleMemoryJSON
	}{written(m.Memory), moduleMemoryJSON{m.Match, m.Score, m.Truncated}})
}

// UnmarshalJSON reads the output of MarshalJSON.
func (m *ModuleMemory) UnmarshalJSON(data []byte) error {
	var beside moduleMemoryJSON
	var memory Memory
	if err := withMemory(data, &memory, &beside); err != nil {
		return err
	}
	*m = ModuleMemory{Memory: memory, Match: beside.Match, Score: beside.Score, Truncated: beside.Truncated}
	return nil
}

// moduleMemoryJSON holds the additional members of a module's memory.
type moduleMemoryJSON struct {
	Match     ModuleMatch `json:"match"`
	Score     float64     `json:"score,omitempty"`
	Truncated bool        `json:"truncated,omitempty"`
}

// MarshalJSON returns an object of module_name, memories, files, summary and warnings.
func (m ModuleState) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Module   string         `json:"module_name"`
		Memories []ModuleMemory `json:"memories"`
		Files    []File         `json:"files"`
		Summary  ModuleSummary  `json:"summary"`
		Warnings []string       `json:"warnings,omitempty"`
	}{m.Module, jsonobject.List(m.Memories), jsonobject.List(m.Files), m.Summary, m.Warnings})
}

func (q *ModuleQuery) check() error {
	q.Module = strings.TrimSpace(q.Module)
	if err := valid.Name("module_name", q.Module); err != nil {
		return err
	}
	if err := valid.Project(q.ProjectID, q.ProjectName); err != nil {
		return err
	}
	q.Limit = cmp.Or(q.Limit, DefaultModuleLimit)
	if err := checkRange("limit", q.Limit, 1, MaxLimit); err != nil {
		return err
	}
	return nil
}

// GetModuleState returns the state of a module: its own memories and related ones, their files, and a summary.
func (s *Store) GetModuleState(ctx context.Context, q ModuleQuery) (ModuleState, error) {
	return hooked(ctx, s, OperationSearch, "GetModuleState",
		func(ctx context.Context, o *operation) (_ ModuleState, err error) {
			defer setGoNames[ModuleQuery](&err)
			if err := q.check(); err != nil {
				return ModuleState{}, err
			}
			if q.Module, err = o.searchText(ctx, ProjectRef{ID: q.ProjectID, Name: q.ProjectName}, q.Module); err != nil {
				return ModuleState{}, err
			}
			if err := q.check(); err != nil {
				return ModuleState{}, err
			}
			return s.moduleState(ctx, q)
		})
}

func (s *Store) moduleState(ctx context.Context, q ModuleQuery) (ModuleState, error) {
	prepared, err := s.prepareQuery(ctx, Query{Text: q.Module})
	if err != nil {
		return ModuleState{}, err
	}
	var state ModuleState
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		search := Query{Text: q.Module, ProjectID: q.ProjectID, ProjectName: q.ProjectName}
		sel, err := s.selection(tx, v, search)
		if err != nil {
			return err
		}
		r := moduleReader{store: s, tx: tx, viewer: v, query: q, prepared: prepared, sel: sel}
		if r.named() {
			if r.project, err = naming.Find(tx, v, q.ProjectID, q.ProjectName); err != nil {
				return err
			}
		}
		r.state = ModuleState{Module: q.Module, Warnings: slices.Concat(prepared.warnings, sel.warnings)}
		err = r.gather()
		state = r.state
		return err
	})
	return state, err
}

// moduleReader gathers the state of a module from one snapshot.
type moduleReader struct {
	store    *Store
	tx       db.Tx
	viewer   viewer
	query    ModuleQuery
	prepared preparedQuery
	sel      selection

	project *naming.Project // nil: none named, or unknown

	own   []int64 // rows of the module's own memories, the last updated first
	match map[int64]ModuleMatch
	state ModuleState
}

func (r *moduleReader) gather() error {
	if err := r.count(); err != nil {
		return err
	}
	found, err := kernel.LoadRows(r.tx, r.viewer, kernel.WholeContent,
		r.own[:min(max(r.query.Limit, moduleNewest), len(r.own))])
	if err != nil {
		return err
	}
	for i, m := range found {
		if i < moduleNewest {
			r.state.Summary.Newest = append(r.state.Summary.Newest,
				ModuleChange{ID: m.ID, Line: shorten.FirstLine(m.Content), UpdatedAt: kernel.ToTime(m.Updated)})
		}
		if i < r.query.Limit {
			r.state.Memories = append(r.state.Memories, ModuleMemory{Memory: memoryOf(m), Match: r.match[m.Row]})
		}
	}
	related, err := r.byMeaning()
	if err != nil {
		return err
	}
	if err := r.files(slices.Concat(r.own, related)); err != nil {
		return err
	}
	if !r.named() {
		return nil
	}
	return r.openTasks()
}

// count finds the module's own memories and counts them.
func (r *moduleReader) count() error {
	summary := &r.state.Summary
	*summary = ModuleSummary{EventTypes: map[string]int{}, States: map[string]int{}, Newest: []ModuleChange{},
		OpenTasks: []ModuleTask{}}
	r.match = map[int64]ModuleMatch{}
	var own []recency.Row
	found, err := kernel.OfModule(r.tx, r.viewer, r.query.Module, r.sel.PartitionList(), r.sel.Current)
	for _, m := range found {
		own, r.match[m.Row] = append(own, recency.Row{Row: m.Row, At: m.At}), ModuleMatch(m.Match)
		summary.Total++
		if m.EventType != "" {
			summary.EventTypes[m.EventType]++
		}
		if m.State != "" {
			summary.States[m.State]++
		}
	}
	if err == nil {
		err = recency.Sort(r.tx, r.store.now(), own)
	}
	r.own = recency.Rows(own)
	return err
}

// byMeaning fills up the memories with ones related to the module's name: they share words with it, or are similar in
// meaning.
func (r *moduleReader) byMeaning() (rows []int64, err error) {
	room := r.query.Limit - len(r.state.Memories)
	if room <= 0 || len(r.sel.Partitions) == 0 {
		return nil, nil
	}
	found := Results{Warnings: r.state.Warnings}
	ranked, err := r.store.rankedQuery(r.tx, r.prepared, r.sel, &found)
	if err != nil {
		return nil, err
	}
	r.state.Warnings = found.Warnings
	ranked.Limit = room + len(r.own)
	ranked.Rerank = nil // a module's name is not a question, so neighbouring messages say nothing about it
	nearest, err := r.store.rank(r.tx, ranked)
	hits := nearest.Hits
	if err != nil || len(hits) == 0 {
		return nil, err
	}
	closest := slices.MaxFunc(hits, func(a, b index.Hit) int { return cmp.Compare(a.Cosine, b.Cosine) }).Cosine
	hits = slices.DeleteFunc(hits, func(h index.Hit) bool {
		_, own := r.match[h.Row]
		return own || h.BM25 <= 0 && h.Cosine < max(leastCosine, closest/2)
	})
	hits = hits[:min(room, len(hits))]
	for _, h := range hits {
		rows = append(rows, h.Row)
	}
	similar, err := r.store.showMemories(r.tx, r.viewer, kernel.WholeContent, page{hits, ranked}, 0)
	if err != nil {
		return nil, err
	}
	for _, h := range similar {
		r.state.Memories = append(r.state.Memories, ModuleMemory{Memory: h.Memory, Match: MatchMeaning, Score: h.Score})
	}
	return rows, nil
}

// files fills in the files of some memories, in their order, and then files whose tags name the module.
func (r *moduleReader) files(memories []int64) error {
	linked, err := r.store.filesOf(r.tx, r.viewer, memories)
	if err != nil {
		return err
	}
	listed := map[string]bool{}
	for _, row := range memories {
		for _, f := range linked[row] {
			r.state.Files, listed[f.ID] = append(r.state.Files, f), true
		}
	}
	if r.named() && r.project == nil {
		return nil
	}
	condition, args, err := filter.FileTagged(r.tx, r.viewer, kernel.TagSpellings(r.query.Module), false)
	if err != nil {
		return err
	}
	tagged, err := r.store.loadFiles(r.tx, r.viewer, condition+` ORDER BY f.created_at DESC, f.uid`, args...)
	for _, f := range tagged {
		if !listed[f.ID] && (r.project == nil || f.project == r.project.Row) {
			r.state.Files = append(r.state.Files, f.File)
		}
	}
	return err
}

// named reports whether the query names a project.
func (r *moduleReader) named() bool { return r.query.ProjectID != "" || r.query.ProjectName != "" }

// openTasks fills in the tasks of the project's todo that name the module.
func (r *moduleReader) openTasks() error {
	rules, err := fixedcontext.Rules[RuleType](r.tx, r.store.now(), r.sel.Selection)
	if err != nil || rules[RuleTodo] == 0 {
		return err
	}
	var id, content string
	if err := r.tx.QueryRow(`SELECT uid, content FROM memory WHERE id = ?`, rules[RuleTodo]).Scan(&id,
		&content); err != nil {
		return err
	}
	todo, err := ParseTodo(content)
	if err != nil {
		r.state.Warnings = append(r.state.Warnings, "the todo of the project ("+id+
			") cannot be read, so its tasks are left out: "+err.Error())
		return nil //nolint:nilerr // a warning reports it
	}
	for _, task := range todo.Tasks {
		if !task.Done && text.HasName(task.Text, r.query.Module) {
			r.state.Summary.OpenTasks = append(r.state.Summary.OpenTasks, ModuleTask{ID: task.ID, Text: task.Text})
		}
	}
	return nil
}

// Within returns the state shortened until its JSON has about this many tokens (at least [MinTokenBudget]). If it fits,
// it stays whole. Otherwise the summary keeps the most frequent entries, files and open tasks get up to an eighth of
// the room each, and memories the rest, in previews. Warnings say what was left out, and how to get it.
func (m ModuleState) Within(tokens int) ModuleState {
	tokens = max(tokens, MinTokenBudget)
	room := budget.BytesPerToken * tokens
	if budget.Size(m) <= room {
		return m
	}
	m.Warnings = slices.Clone(m.Warnings)
	note := func(format string, args ...any) {
		m.Warnings = append(m.Warnings, fmt.Sprintf("token_budget %d: ", tokens)+fmt.Sprintf(format, args...))
	}
	memories, files, tasks := m.Memories, m.Files, m.Summary.OpenTasks
	types, states := len(m.Summary.EventTypes), len(m.Summary.States)
	m.Summary.EventTypes, m.Summary.States = mostFrequent(m.Summary.EventTypes), mostFrequent(m.Summary.States)
	if types > mostCounts || states > mostCounts {
		note("the summary counts the %d most frequent of %d event types and %d states", mostCounts, types, states)
	}
	m.Memories, m.Files, m.Summary.OpenTasks = nil, nil, []ModuleTask{}
	room -= budgetNotes + budget.Size(m)

	m.Files, m.Summary.OpenTasks = budget.Fitting(files, room/8), budget.Fitting(tasks, room/8)
	if len(m.Files) < len(files) {
		note("files shows %d of %d; GET /api/files?tags=%s lists those with the module's tag", len(m.Files), len(files),
			m.Module)
	}
	if len(m.Summary.OpenTasks) < len(tasks) {
		note("open_tasks shows %d of %d; memory get_context gives the whole todo", len(m.Summary.OpenTasks), len(tasks))
	}
	room -= budget.Size(m.Files) + budget.Size(m.Summary.OpenTasks)

	memories = slices.Clone(memories)
	shortened := 0
	for i := range memories {
		if memories[i].Truncated = memories[i].shorten(defaultPreview); memories[i].Truncated {
			shortened++
		}
	}
	m.Memories = budget.Fitting(memories, room)
	if left := len(memories) - len(m.Memories); left > 0 || shortened > 0 {
		note("memories shows %d of %d, in previews; memory retrieve gives one whole, and memory search with query %q pages "+
			"through the others", len(m.Memories), len(memories), m.Module)
	}
	return m
}

// mostFrequent returns the largest counts.
func mostFrequent(counts map[string]int) map[string]int {
	if len(counts) <= mostCounts {
		return counts
	}
	names := slices.SortedFunc(maps.Keys(counts),
		func(a, b string) int { return cmp.Or(counts[b]-counts[a], strings.Compare(a, b)) })
	kept := map[string]int{}
	for _, name := range names[:mostCounts] {
		kept[name] = counts[name]
	}
	return kept
}

// Module is a module that memories name.
type Module struct {
	Name     string `json:"module_name"`
	Memories int    `json:"memories"` // that name it
}

// maxModules is how many modules are listed at most.
const maxModules = 100

// Modules returns the modules that the memories of a project name, by module_name in their metadata or by a tag
// module:NAME. The zero ProjectRef means all visible memories. It returns the 100 modules with the most memories, the
// most first. Names that differ only in case are the same module. An unknown project has none, which is not an error.
func (h *Insights) Modules(ctx context.Context, project ProjectRef) (_ []Module, err error) {
	defer setGoNames[ProjectRef](&err)
	s := h.s
	if err := valid.Project(project.ID, project.Name); err != nil {
		return nil, err
	}
	var all []Module
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		all = []Module{}
		sel, err := s.selection(tx, v, Query{ProjectID: project.ID, ProjectName: project.Name, whenever: true})
		if err != nil || len(sel.Partitions) == 0 {
			return err
		}
		counts, err := kernel.ModulesNamed(tx, v, sel.PartitionList())
		for name, n := range counts {
			all = append(all, Module{name, n})
		}
		slices.SortFunc(all, func(a, b Module) int {
			return cmp.Or(b.Memories-a.Memories, cmp.Compare(a.Name, b.Name))
		})
		all = all[:min(len(all), maxModules)]
		return err
	})
	return all, err
}

// mostCounts is how many event types or states a summary within a budget counts.
const mostCounts = 30
