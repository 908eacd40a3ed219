package projects

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/shorten"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// projectPage is the data of a project's first page.
type projectPage struct {
	Head      projectHead
	OwnerName string
	Main      *souvenir.MainMemory // nil: not set
	Body      textview.Cut         // of the main memory
	Related   []listedMemory
	Latest    []listedMemory
	Open      []souvenir.Task // the first open tasks
	HasTodo   bool
	Progress  souvenir.TodoProgress
	Rules     souvenir.Rules
	Files     int
	Tokens    int // size of the context that an agent gets at the start
}

// listedMemory is a memory in lists on a project's pages.
type listedMemory struct {
	souvenir.Memory
	Path string // of its page
	Line string // its opening line
	Tags []string
	Note string // why it is listed; empty: none
}

// listMemory builds an entry of a list.
func (s *Service) listMemory(m souvenir.Memory, note string) listedMemory {
	return listedMemory{m, s.site.Path("/memories/" + m.ID), openingLine(m.Content), m.Tags[:min(len(m.Tags), 4)], note}
}

// openingLine returns a text's first line with words in it, without the marks of a heading, a list or emphasis.
func openingLine(text string) string {
	return cmp.Or(shorten.Title(text, 140), "(only white space)")
}

func (s *Service) showProject(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	head, err := s.projectAt(r, c, "Overview")
	if err != nil {
		return nil, err
	}
	data := projectPage{Head: head, OwnerName: cmp.Or(head.OwnerName, head.Owner)}
	for _, step := range []func(context.Context, *Service, *souvenir.Store) error{data.readMain, data.readLatest,
		data.readTodo} {
		if err := step(r.Context(), s, c.Store); err != nil {
			return nil, err
		}
	}
	if data.Rules, err = c.Store.Rules(r.Context(), head.Reference()); err != nil {
		return nil, err
	}
	files, err := c.Store.FilePage(r.Context(), souvenir.FileQuery{Limit: 1,
		FileList: souvenir.FileList{ProjectID: head.Reference().ID}})
	if err != nil {
		return nil, err
	}
	data.Files = files.Total
	given, err := c.Store.GetContext(r.Context(), souvenir.ContextQuery{ProjectID: head.Reference().ID})
	if err != nil {
		return nil, err
	}
	data.Tokens = given.Tokens
	return web.Page{Template: "project", Title: head.Name, Data: data}, nil
}

func (p *projectPage) readMain(ctx context.Context, s *Service, store *souvenir.Store) error {
	main, err := store.GetMainMemory(ctx, p.Head.Reference())
	if errors.Is(err, souvenir.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	p.Main, p.Body = &main, textview.CutTo(main.Memory.Content, 12<<10)
	for _, related := range main.Related[:min(len(main.Related), 8)] {
		note := "linked from it"
		if related.Direction == souvenir.Incoming {
			note = "links to it"
		}
		if related.Depth > 1 {
			note = web.Count(related.Depth, "link") + " away"
		}
		p.Related = append(p.Related, s.listMemory(related.Memory, note))
	}
	return nil
}

func (p *projectPage) readLatest(ctx context.Context, s *Service, store *souvenir.Store) error {
	latest, err := store.Search(ctx, souvenir.Query{ProjectID: p.Head.Reference().ID, Limit: 8})
	for _, hit := range latest.Hits {
		p.Latest = append(p.Latest, s.listMemory(hit.Memory, hit.EventType))
	}
	return err
}

// openShown is how many open tasks a project's first page shows.
const openShown = 5

func (p *projectPage) readTodo(ctx context.Context, _ *Service, store *souvenir.Store) error {
	todo, err := store.GetTodo(ctx, p.Head.Reference())
	if errors.Is(err, souvenir.ErrNotFound) {
		return nil
	}
	p.HasTodo = err == nil
	p.Progress.Done, p.Progress.Total = todo.Document.Progress()
	for _, task := range todo.Document.Tasks {
		if !task.Done && len(p.Open) < openShown {
			task.Text = textview.CutTo(task.Text, 300).Text
			p.Open = append(p.Open, task)
		}
	}
	return err
}
