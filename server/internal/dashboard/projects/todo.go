package projects

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// todoPage is the data of the page of a project's to-do board, or of one of its sections.
type todoPage struct {
	Head     projectHead
	Memory   *souvenir.Memory // nil: there is none
	Unread   string           // why it cannot be parsed; empty: it can
	Raw      textview.Cut     // its text then
	Warnings []string
	Progress souvenir.TodoProgress
	Percent  int
	Sections []todoCard // the active ones first, then their background
	One      bool       // only one section is shown, part by part
	Notice   string     // the result of the last change
	CSRF     string     // of the form that adds the first task
	Path     string     // of the project's page
}

// boardOrder is the order of the sections on the board, the actionable ones first.
var boardOrder = []souvenir.Section{souvenir.SectionTasks, souvenir.SectionGaps, souvenir.SectionConstitution,
	souvenir.SectionSpec, souvenir.SectionPlan}

// Main returns the cards in the wide column; Aside returns those beside them.
func (p todoPage) Main() []todoCard { return p.cards(true) }

// Aside returns the cards beside the wide column.
func (p todoPage) Aside() []todoCard { return p.cards(false) }

func (p todoPage) cards(main bool) []todoCard {
	var some []todoCard
	for _, card := range p.Sections {
		if main == (p.One || card.Key == "tasks" || card.Key == "gaps") {
			some = append(some, card)
		}
	}
	return some
}

// todoCard is a section on the board.
type todoCard struct {
	projectText
	Path     string // of the project's page
	CSRF     string // token of the form
	Board    bool   // it is on the board, among the others
	CanWrite bool
	Count    int // of its check boxes
	Done     int
	View     todoView
	Rows     []todoRow
	Pages    web.Leaves
	More     bool // the board shows only part of it
	Problem  string
}

// Adds reports whether the card has the line that adds a task.
func (c todoCard) Adds() bool { return c.CanWrite && c.Key == string(souvenir.SectionTasks) }

// Tagged reports whether the card shows its count: the count of the tasks is at the head of the page instead.
func (c todoCard) Tagged() bool { return c.Count > 0 && c.Key != string(souvenir.SectionTasks) }

// Lists reports whether the card shows a check box.
func (c todoCard) Lists() bool {
	for _, row := range c.Rows {
		if row.Box != nil {
			return true
		}
	}
	return false
}

// todoView selects the visible part of a section.
type todoView struct {
	Section souvenir.Section // empty: the board
	Show    string           // all, open or done
	Part    int
	keep    map[int]bool // lines that stay visible in any state
}

// query returns the view as query parameters.
func (v todoView) query() url.Values {
	query := url.Values{}
	if v.Section != "" {
		query.Set("section", string(v.Section))
		query.Set("show", v.Show)
	}
	return query
}

// viewOf reads a view from an address or a form.
func viewOf(values url.Values) (todoView, error) {
	v := todoView{Section: souvenir.Section(values.Get("section")), Show: values.Get("show"),
		Part: wholeNumber(values.Get("part"), 1)}
	if v.Section != "" && projectTexts[string(v.Section)].section == "" {
		return v, failure.Invalid("section", "section is "+failure.Quote(string(v.Section))+
			"; expected constitution, spec, plan, tasks or gaps")
	}
	switch v.Show {
	case "":
		v.Show = "all"
	case "all", "open", "done":
	default:
		return v, failure.Invalid("show", "show is "+failure.Quote(v.Show)+"; expected all, open or done")
	}
	return v, nil
}

func (s *Service) showTodo(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	head, err := s.projectAt(r, c, "To-do")
	if err != nil {
		return nil, err
	}
	view, err := viewOf(r.URL.Query())
	if err != nil {
		return nil, err
	}
	todo, err := c.Store.GetTodo(r.Context(), head.Reference())
	if errors.Is(err, souvenir.ErrNotFound) {
		return web.Page{Template: "projecttodo", Title: "To-do of " + head.Name,
			Data: todoPage{Head: head, CSRF: s.site.FormToken(w, r), Path: s.site.Path(head.Path)}}, nil
	}
	if err != nil {
		return nil, err
	}
	data := s.todoPageOf(w, r, head, todo, view)
	title := "To-do of " + head.Name
	if data.One {
		title = projectTexts[string(view.Section)].Title + " of " + head.Name
	}
	return web.Page{Template: "projecttodo", Title: title, Data: data}, nil
}

// todoPageOf builds the page of a to-do.
func (s *Service) todoPageOf(w http.ResponseWriter, r *http.Request, head projectHead, todo souvenir.Todo,
	view todoView) todoPage {
	data := todoPage{Head: head, Memory: &todo.Memory, One: view.Section != ""}
	if len(todo.Document.Sections) == 0 {
		data.One = false
		data.Raw = textview.CutTo(todo.Content, 32<<10)
		for _, warning := range todo.Warnings {
			data.Unread = web.Sentence(warning)
		}
		return data
	}
	for _, warning := range todo.Warnings {
		data.Warnings = append(data.Warnings, web.Sentence(warning))
	}
	data.Progress.Done, data.Progress.Total = todo.Document.Progress()
	if data.Progress.Total > 0 {
		data.Percent = data.Progress.Done * 100 / data.Progress.Total
	}
	for _, section := range boardOrder {
		if view.Section == "" || view.Section == section {
			card := cardOf(todo.Document.Section(section), view)
			card.Path, card.CSRF, card.CanWrite = s.site.Path(head.Path), s.site.FormToken(w, r), head.CanWrite()
			data.Sections = append(data.Sections, card)
		}
	}
	return data
}

// cardOf builds the card of a section.
func cardOf(section souvenir.TodoSection, view todoView) todoCard {
	boxes := section.Checkboxes()
	card := todoCard{projectText: projectTexts[string(section.Section)], Board: view.Section == "", Count: len(boxes),
		View: view}
	for _, box := range boxes {
		if box.Done {
			card.Done++
		}
	}
	rows := rowsOf(section, boxes)
	size := partSize{boxes: 100, bytes: 20 << 10}
	if view.Section == "" {
		size = partSize{boxes: 15, bytes: 6 << 10}
		if section.Section == souvenir.SectionTasks {
			size.boxes = 40
		}
		if parts := partsOf(rows, size); len(parts) > 1 && card.Done < card.Count { // of a long list, only open items
			card.View.Show = "open"
		}
	}
	rows = filterRows(rows, card.View)
	parts := partsOf(rows, size)
	at := web.Pager{Name: "part", Page: min(max(view.Part, 1), len(parts)), Pages: len(parts)}
	if view.Section == "" {
		at.Page = 1
	}
	card.View.Part = at.Page
	card.Rows = parts[at.Page-1]
	card.More = view.Section == "" && (len(parts) > 1 || card.View.Show != "all")
	if view.Section != "" {
		card.Pages = web.LeavesOf(at, view.query())
	}
	return card
}

// tickTodo sets the check boxes that the user ticked or cleared in a section. It finds each by its text, wherever
// it is by now, and changes one byte of the document: concurrent changes are not lost.
func (s *Service) tickTodo(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	head, err := s.projectAt(r, c, "To-do")
	if err != nil {
		return nil, err
	}
	view, err := viewOf(url.Values{"section": values["section"], "show": values["show"], "part": values["part"]})
	if err != nil {
		return nil, err
	}
	marks, err := marksOf(values)
	if err != nil {
		return nil, err
	}
	todo, ticked, err := tick(r.Context(), c.Store, head.Reference(), view.Section, marks)
	if err != nil {
		return nil, err
	}
	if !web.FromScript(r) && ticked.lost == 0 {
		query := url.Values{web.NoticeParameter: {"ticked"}}
		if values.Get("board") == "" {
			query = view.query()
			query.Set("part", values.Get("part"))
			query.Set(web.NoticeParameter, "ticked")
		}
		return web.Redirect(s.site.Path(head.Path + "/todo?" + query.Encode())), nil
	}
	view.keep = ticked.form
	if values.Get("board") != "" { // as on the board
		view.Section = ""
	}
	data := s.todoPageOf(w, r, head, todo, view)
	section := values.Get("section")
	for i := range data.Sections {
		if data.Sections[i].Key == section && ticked.lost > 0 {
			data.Sections[i].Problem = web.Sentence(lostText(ticked.lost))
		}
	}
	data.Notice = ticked.report(todo)
	if web.FromScript(r) {
		for _, card := range data.Sections {
			if card.Key == section {
				data.Sections = []todoCard{card}
			}
		}
	}
	return web.Page{Template: "projecttodo", Title: "To-do of " + head.Name, Data: data, Part: "todo-ticked"}, nil
}

// lostText says that lines have changed meanwhile.
func lostText(n int) string {
	if n == 1 {
		return "someone else has changed or removed that line meanwhile, so it was not ticked; this is the current text"
	}
	return "someone else has changed or removed " + web.Count(n, "line") +
		" meanwhile, so they were not ticked; this is the current section"
}

// tick sets check boxes in the document as it is at the time of writing.
func tick(ctx context.Context, store *souvenir.Store, ref souvenir.ProjectRef, section souvenir.Section,
	marks []mark) (souvenir.Todo, ticked, error) {
	const tries = 20 // each lost to a concurrent change
	for try := 1; ; try++ {
		todo, err := store.GetTodo(ctx, ref)
		if err != nil {
			return todo, ticked{}, err
		}
		content, done := applyMarks(todo, section, marks)
		if content == todo.Content {
			return todo, done, nil
		}
		stored, err := store.SetTodo(ctx,
			souvenir.NewTodo{ProjectID: ref.ID, Content: content, ExpectedRevision: todo.Revision})
		if errors.Is(err, souvenir.ErrConflict) && try < tries {
			continue
		}
		return souvenir.Todo{Memory: stored.Memory, Document: stored.Document, Warnings: stored.Warnings}, done, err
	}
}
