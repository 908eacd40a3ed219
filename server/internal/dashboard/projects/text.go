package projects

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// projectText is a text of a project that has a page of its own for editing.
type projectText struct {
	Key     string // in the address
	Title   string
	Hint    string // what the text is for
	rule    souvenir.RuleType
	section souvenir.Section
	tab     string // of the page that shows it
}

const (
	textTodo = "todo"
	textMain = "main"
)

// projectTexts maps keys to the texts of a project.
var projectTexts = map[string]projectText{
	"do": {Key: "do", Title: "Do", rule: souvenir.RuleDo, tab: "rules",
		Hint: "What agents must always do: how to test, what to name things, whom to ask."},
	"dont": {Key: "dont", Title: "Don’t", rule: souvenir.RuleDont, tab: "rules",
		Hint: "What agents must never do: what not to touch, which habits to drop."},
	textTodo: {Key: textTodo, Title: "The whole to-do", tab: "todo",
		Hint: "Markdown with the headings ## Constitution, ## Spec, ## Plan, ## Tasks and ## Gaps, once each and in this " +
			"order. A task is a line such as - [ ] T1 write the tests."},
	"constitution": {Key: "constitution", Title: "Constitution", section: souvenir.SectionConstitution, tab: "todo",
		Hint: "The principles and limits of the project."},
	"spec": {Key: "spec", Title: "Spec", section: souvenir.SectionSpec, tab: "todo",
		Hint: "The goals: what to build."},
	"plan": {Key: "plan", Title: "Plan", section: souvenir.SectionPlan, tab: "todo",
		Hint: "How to build it."},
	"tasks": {Key: "tasks", Title: "Tasks", section: souvenir.SectionTasks, tab: "todo",
		Hint: "One line per task, each with its own id: - [ ] T1 write the tests. An x in the brackets means done."},
	"gaps": {Key: "gaps", Title: "Gaps", section: souvenir.SectionGaps, tab: "todo",
		Hint: "What is missing, unclear or undecided. Lines can have check boxes, too: - [ ] ask Mia."},
	textMain: {Key: textMain, Title: "Main memory",
		Hint: "What to know first about the project: what it is, its status, where to look. Agents read it when they start."},
}

// firstTodo is the initial content of a project's to-do.
const firstTodo = "## Constitution\n\n\n## Spec\n\n\n## Plan\n\n\n## Tasks\n\n- [ ] T1 \n\n## Gaps\n\n"

// textState is a text as stored.
type textState struct {
	Text     string
	Revision int // of its memory; 0: the text does not exist yet
	memory   souvenir.Memory
}

// Changed returns when it was saved.
func (t textState) Changed() time.Time { return t.memory.UpdatedAt }

// digest identifies the content of a text, to detect changes.
func (t textState) digest() string {
	sum := sha256.Sum256([]byte(t.Text))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// load reads a text. A missing one is empty.
func (t projectText) load(ctx context.Context, store *souvenir.Store, ref souvenir.ProjectRef) (textState, error) {
	var m souvenir.Memory
	var err error
	switch {
	case t.rule != "":
		m, err = store.GetRule(ctx, ref, t.rule)
	case t.Key == textMain:
		var main souvenir.MainMemory
		main, err = store.GetMainMemory(ctx, ref)
		m = main.Memory
	default:
		var todo souvenir.Todo
		todo, err = store.GetTodo(ctx, ref)
		m = todo.Memory
		if err == nil && t.section != "" {
			return textState{strings.Trim(todo.Document.Section(t.section).Body, "\r\n"), m.Revision, m}, nil
		}
	}
	if errors.Is(err, souvenir.ErrNotFound) {
		return textState{}, nil
	}
	return textState{m.Content, m.Revision, m}, err
}

// save stores a text that was edited from a given state.
func (t projectText) save(ctx context.Context, store *souvenir.Store, ref souvenir.ProjectRef, text string,
	before textState) (souvenir.Memory, error) {
	switch {
	case t.rule != "":
		stored, err := store.SetRule(ctx,
			souvenir.NewRule{ProjectID: ref.ID, Type: t.rule, Content: text, ExpectedRevision: before.Revision})
		return stored.Memory, err
	case t.section != "":
		stored, err := store.UpdateTodoSection(ctx, souvenir.ProjectRef{ID: ref.ID}, t.section,
			souvenir.TodoSectionUpdate{Content: text, ExpectedRevision: before.Revision})
		return stored.Memory, err
	case t.Key == textTodo:
		stored, err := store.SetTodo(ctx,
			souvenir.NewTodo{ProjectID: ref.ID, Content: text, ExpectedRevision: before.Revision})
		return stored.Memory, err
	case before.Revision > 0:
		stored, err := store.UpdateMemory(ctx, before.memory.ID,
			souvenir.MemoryUpdate{Content: &text, ExpectedRevision: before.Revision})
		return stored.Memory, err
	}
	stored, err := store.AddMemory(ctx,
		souvenir.NewMemory{ProjectID: ref.ID, Content: text, EventType: souvenir.EventProjectMain,
			State: souvenir.StateActive})
	return stored.Memory, err
}

// ifNew runs save in a transaction that begins with a missing text; if others have stored it by now, the error is
// ErrConflict. For a present text, whose revision save expects, it only runs save.
func (t projectText) ifNew(ctx context.Context, store *souvenir.Store, ref souvenir.ProjectRef, revision int,
	save func(context.Context) error) error {
	if revision > 0 {
		return save(ctx)
	}
	return store.Transaction(ctx, func(ctx context.Context) error {
		now, err := t.load(ctx, store, ref)
		if err == nil && now.Revision > 0 {
			err = &souvenir.Error{Kind: souvenir.KindConflict, Message: "someone else has just stored " + t.Title}
		}
		if err != nil {
			return err
		}
		return save(ctx)
	})
}

// putBack restores a memory's former content, unless it has changed since.
func putBack(ctx context.Context, store *souvenir.Store, before textState, after souvenir.Memory) error {
	var err error
	if before.Revision > 0 {
		_, err = store.UpdateMemory(ctx, after.ID,
			souvenir.MemoryUpdate{Content: &before.memory.Content, ExpectedRevision: after.Revision})
	} else {
		var now souvenir.Memory
		now, err = store.GetMemory(ctx, after.ID)
		if err == nil && now.Revision != after.Revision {
			return web.ErrSavedSince
		}
		if err == nil {
			err = store.DeleteMemory(ctx, after.ID, nil)
		}
	}
	if errors.Is(err, souvenir.ErrConflict) {
		return web.ErrSavedSince
	}
	return err
}

// textPage is the data of the page on which a text is edited.
type textPage struct {
	projectText
	Head     *projectHead // nil: a rule for all work
	Action   string       // path of the form
	Back     string       // path of the page that shows the text
	Typed    string
	Revision int    // of the state that was edited
	Base     string // digest of that state
	Memory   string // id
	Error    string
	Theirs   *textState     // a concurrent change; nil: none
	Differs  *textview.Diff // from that to the edited text
	Preview  textview.Cut
}

// textAt returns the text that a request is about, and its state.
func (s *Service) textAt(r *http.Request, c request.Caller, key string) (textPage, souvenir.ProjectRef, error) {
	text, ok := projectTexts[key]
	if r.PathValue("id") == "" {
		if !ok || text.rule == "" {
			return textPage{}, souvenir.ProjectRef{},
				failure.Invalid("text", "text is "+failure.Quote(key)+"; expected do or dont")
		}
		return textPage{projectText: text, Action: generalRulesPath + "/edit", Back: generalRulesPath}, souvenir.ProjectRef{},
			nil
	}
	if !ok {
		return textPage{}, souvenir.ProjectRef{},
			failure.Invalid("text", "text is "+failure.Quote(key)+
				"; expected do, dont, todo, constitution, spec, plan, tasks, gaps or main")
	}
	head, err := s.projectAt(r, c, map[string]string{"rules": "Rules", "todo": "To-do"}[text.tab])
	if err != nil {
		return textPage{}, souvenir.ProjectRef{}, err
	}
	if !head.CanWrite() {
		return textPage{}, souvenir.ProjectRef{},
			&failure.Error{Status: http.StatusForbidden, Message: "project " + failure.Quote(head.Name) +
				" is shared with you read-only; its owners can make you a writer"}
	}
	back := head.Path
	if text.tab != "" {
		back += "/" + text.tab
	}
	return textPage{projectText: text, Head: &head, Action: head.Path + "/edit", Back: back}, head.Reference(), nil
}

func (p textPage) title() string {
	switch {
	case p.Head == nil:
		return "“" + p.Title + "” for all your work"
	case p.rule != "":
		return "“" + p.Title + "” of " + p.Head.Name
	case p.Key == textTodo:
		return "To-do of " + p.Head.Name
	}
	return p.Title + " of " + p.Head.Name
}

// page builds the page with the edited text.
func (p textPage) page() web.Page {
	p.Preview = textview.CutTo(p.Typed, 16<<10)
	return web.Page{Template: "projecttext", Title: p.title(), Data: p, Part: "text-preview"}
}

func (s *Service) showText(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	key := r.URL.Query().Get("text")
	if key == "" {
		key = map[bool]string{true: "do", false: textMain}[r.PathValue("id") == ""]
	}
	p, ref, err := s.textAt(r, c, key)
	if err != nil {
		return nil, err
	}
	state, err := p.load(r.Context(), c.Store, ref)
	if err != nil {
		return nil, err
	}
	if p.section != "" && state.Text == "" &&
		!readableTodo(state.memory.Content) { // without a document there is no section
		return web.Redirect(s.site.Path(p.Action + "?text=" + textTodo)), nil
	}
	p.Typed, p.Revision, p.Base, p.Memory = state.Text, state.Revision, state.digest(), state.memory.ID
	if p.Key == textTodo && state.Revision == 0 {
		p.Typed = firstTodo
	}
	rendered := p.page()
	rendered.Part = ""
	return rendered, nil
}

func readableTodo(content string) bool {
	_, err := souvenir.ParseTodo(content)
	return err == nil
}

// saveText stores an edited text, or previews it. It never overwrites another user's change unseen.
func (s *Service) saveText(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadLongForm(w, r)
	if err != nil {
		return nil, err
	}
	p, ref, err := s.textAt(r, c, values.Get("text"))
	if err != nil {
		return nil, err
	}
	p.take(values)
	if values.Get("preview") != "" {
		return p.page(), nil
	}
	before, err := p.load(r.Context(), c.Store, ref)
	if err != nil {
		return nil, err
	}
	typed := textview.WithLineEndings(p.Typed, before.Text) // a section gets those of its document when it is stored
	switch {
	case typed == before.Text && before.Revision > 0:
		return s.site.Done(p.Back, "unchanged"), nil
	case p.Base != before.digest(): // in a to-do others may have changed another section: no conflict
		return p.conflict(before), nil
	}
	var after souvenir.Memory
	err = p.ifNew(r.Context(), c.Store, ref, before.Revision, func(ctx context.Context) (err error) {
		after, err = p.save(ctx, c.Store, ref, typed, before)
		return err
	})
	switch {
	case errors.Is(err, souvenir.ErrConflict):
		now, failed := p.load(r.Context(), c.Store, ref)
		if failed != nil {
			return nil, failed
		}
		return p.conflict(now), nil
	case err != nil:
		return p.refused(err)
	}
	store, now := c.Store, souvenir.Memory{ID: after.ID, Revision: after.Revision}
	before.Text = "" // the memory holds it
	return s.site.StepDone(c, p.Back,
		web.Step{Text: "“" + p.Title + "” is saved.", Path: p.Back, Bytes: int64(len(before.memory.Content)) + 1024,
			Back: func(ctx context.Context) error {
				return putBack(ctx, store, before, now)
			}}), nil
}

// take copies the form's values into the page.
func (p *textPage) take(values url.Values) {
	p.Typed = textview.Typed(values.Get("content"))
	p.Base = values.Get("base")
}

// conflict shows both texts, and lets the user decide.
func (p textPage) conflict(now textState) web.Page {
	p.Theirs, p.Base, p.Memory = &now, now.digest(), now.memory.ID
	p.Differs = textview.Compare(textview.Typed(now.Text), p.Typed, textview.MaxDiffShown)
	rendered := p.page()
	rendered.Part, rendered.Status = "", http.StatusConflict
	return rendered
}

// refused shows the text again with its error.
func (p textPage) refused(err error) (any, error) {
	_, message := failure.Describe(err)
	var known *souvenir.Error
	if errors.As(err, &known) && known.Argument == "content" {
		message = "The text" + strings.TrimPrefix(message, "content")
	}
	p.Error = web.Sentence(message)
	rendered := p.page()
	rendered.Part = ""
	return web.Again(rendered, err)
}
