package projects

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// contextPage shows the context that an agent gets when it begins to work on a project.
type contextPage struct {
	Head     projectHead
	Query    string
	Budget   string
	Error    string // about the budget
	Parts    []contextPart
	Tokens   int
	Warnings []string
}

// contextPart is a part of it.
type contextPart struct {
	Name     string
	Missing  string // text for an empty part
	Path     string // where it is edited; empty: no single place
	Memories []contextMemory
	Lines    []string
	Tokens   int
}

// contextMemory is a memory in it.
type contextMemory struct {
	ID        string
	Line      string
	Text      textview.Cut
	Score     int  // in percent; 0: not from a search
	Truncated bool // the agent gets only a part
}

func (s *Service) showContext(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	head, err := s.projectAt(r, c, "Context")
	if err != nil {
		return nil, err
	}
	data := contextPage{Head: head, Query: r.URL.Query().Get("query"), Budget: r.URL.Query().Get("budget")}
	page := web.Page{Template: "projectcontext", Title: "Context of " + head.Name, Part: "context-parts"}
	q := souvenir.ContextQuery{Query: data.Query, ProjectID: head.Reference().ID}
	if data.Budget != "" {
		if q.TokenBudget, err = strconv.Atoi(data.Budget); err != nil {
			q.TokenBudget = -1
		}
	}
	given, err := c.Store.GetContext(r.Context(), q)
	if err != nil {
		_, message := failure.Describe(err)
		if q.TokenBudget < 0 {
			message = "the token budget is " + failure.Quote(data.Budget) +
				"; a whole number of 500 or more is needed, or nothing"
		}
		data.Error = web.Sentence(message)
		page.Data, page.Part = data, ""
		return web.Again(page, err)
	}
	data.fill(given)
	page.Data = data
	return page, nil
}

// fill splits a context into parts.
func (p *contextPage) fill(given souvenir.Context) {
	p.Tokens = given.Tokens
	for _, warning := range given.Warnings {
		p.Warnings = append(p.Warnings, web.Sentence(warning))
	}
	add := func(name, missing, path string, memories ...*souvenir.ContextMemory) {
		part := contextPart{Name: name, Missing: missing, Path: path}
		for _, m := range memories {
			if m == nil {
				continue
			}
			part.Memories = append(part.Memories,
				contextMemory{m.ID, openingLine(m.Content), textview.CutTo(m.Content, 4<<10), int(m.Score*100 + 0.5), m.Truncated})
			part.Tokens += tokensOf(m)
		}
		p.Parts = append(p.Parts, part)
	}
	rules := souvenir.ContextRules{}
	if given.ProjectRules != nil {
		rules = *given.ProjectRules
	}
	add("Identity", "Nothing here yet. To set it, store a memory with the event type IDENTITY.", "", given.Identity)
	add("Project rules: do", "Nothing here yet.", p.Head.Path+"/edit?text=do", rules.Do)
	add("Project rules: don’t", "Nothing here yet.", p.Head.Path+"/edit?text=dont", rules.Dont)
	add("To-do", "Nothing here yet.", p.Head.Path+"/edit?text=todo", rules.Todo)
	add("Rules for all your work", "Nothing here yet.", generalRulesPath, pointers(given.GeneralDoDont)...)
	add("Short dos and don’ts",
		"Nothing here. Memories classified as do or dont are listed here; the rules above replace them.", "",
		pointers(given.ProjectDoDont)...)
	add("Related memories", "Nothing here.", "", pointers(given.Related)...)
	p.Parts = append(p.Parts, contextPart{Name: "How to work with the memory", Lines: given.Guide,
		Tokens: tokensOf(given.Guide)})
}

func pointers(list []souvenir.ContextMemory) []*souvenir.ContextMemory {
	all := make([]*souvenir.ContextMemory, len(list))
	for i := range list {
		all[i] = &list[i]
	}
	return all
}

// tokensOf estimates the size of a value in tokens as the store does: a quarter of the bytes of its JSON, rounded
// up.
func tokensOf(value any) int {
	encoded, err := json.Marshal(value)
	if err != nil {
		return 0 // values from the store can be encoded
	}
	return (len(encoded) + 3) / 4
}
