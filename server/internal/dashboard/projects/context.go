package projects

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// contextPage shows the context that an agent gets when it begins to work on a project.
type contextPage struct {
	Head     projectHead // without a Path: none is chosen
	Tabs     bool        // it is a page of the project
	Action   string      // path of the page
	Projects []web.Option
	Query    string
	Budget   string
	Error    string // about the budget
	Swapped  bool   // a script gets the error alone
	Parts    []contextPart
	Tokens   int
	Warnings []string
	Late     string // address from which a script requests the parts; empty: they are here
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
	data := contextPage{Head: head, Tabs: true, Action: head.Path + "/context"}
	return s.contextPage(r, c, data, "Context of "+head.Name)
}

// showAnyContext shows the context in any project, or in none.
func (s *Service) showAnyContext(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	data := contextPage{Action: "/context"}
	all, err := c.Store.Projects(r.Context())
	if err != nil {
		return nil, err
	}
	chosen := r.URL.Query().Get("project")
	data.Projects = web.Offered(web.ProjectOptions(all, c.User.ID, chosen, "No project"))
	for _, p := range all {
		if p.Owner+"/"+p.ID == chosen {
			data.Head = projectHead{Project: p, Path: web.ProjectPath(p)}
		}
	}
	if chosen != "" && data.Head.Path == "" {
		return nil, &failure.Error{Status: http.StatusNotFound, Message: "project " + failure.Quote(chosen) +
			" not found, or you have no access to it"}
	}
	return s.contextPage(r, c, data, "What agents get")
}

func (s *Service) contextPage(r *http.Request, c request.Caller, data contextPage, title string) (any, error) {
	data.Query, data.Budget = r.URL.Query().Get("query"), r.URL.Query().Get("budget")
	page := web.Page{Template: "projectcontext", Title: title, Part: "context-parts"}
	q := souvenir.ContextQuery{Query: data.Query}
	if data.Head.Path != "" {
		q.ProjectID = data.Head.Reference().ID
	}
	var err error
	if data.Budget != "" {
		if q.TokenBudget, err = strconv.Atoi(data.Budget); err != nil {
			q.TokenBudget = -1
		}
	}
	if data.Query != "" && !web.FromScript(r) && q.TokenBudget >= 0 {
		if data.Late, err = s.site.Late(r, c); data.Late != "" || err != nil {
			page.Data = data
			return page, err
		}
	}
	given, err := c.Store.GetContext(r.Context(), q)
	if err != nil {
		_, message := failure.Describe(err)
		if q.TokenBudget < 0 {
			message = "the token budget is " + failure.Quote(data.Budget) +
				"; expected a whole number of 500 or more, or nothing"
		}
		data.Error = web.Sentence(message)
		data.Swapped = web.FromScript(r)
		page.Data = data
		return web.Again(page, err)
	}
	data.fill(given)
	page.Data = data
	return page, nil
}

// idInBrackets is the id of a memory in a warning: agents need it, people have links.
var idInBrackets = regexp.MustCompile(` \([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\)`)

// partNames has the names of parts, in JSON and on the page.
var partNames = strings.NewReplacer("general_do_dont", "“"+generalPart+"”", "project_do_dont", "“"+shortPart+"”",
	"related_memories", "“"+relatedPart+"”", "project_rules.dont", "“"+dontPart+"”", "project_rules.do", "“"+doPart+"”",
	"project_rules.todo", "“"+todoPart+"”", "identity_suggestion", "the suggestion of an identity", "token_budget",
	"the token budget")

const (
	generalPart = "Rules for all your work"
	shortPart   = "Short dos and don’ts"
	relatedPart = "Related memories"
	doPart      = "Project rules: do"
	dontPart    = "Project rules: don’t"
	todoPart    = "To-do"
)

// fill splits a context into parts.
func (p *contextPage) fill(given souvenir.Context) {
	p.Tokens = given.Tokens
	for _, warning := range given.Warnings {
		p.Warnings = append(p.Warnings, web.Sentence(partNames.Replace(idInBrackets.ReplaceAllString(warning, ""))))
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
	if p.Head.Path == "" {
		p.addGeneral(add, given)
		return
	}
	add(doPart, "Nothing here yet.", p.Head.Path+"/edit?text=do", rules.Do)
	add(dontPart, "Nothing here yet.", p.Head.Path+"/edit?text=dont", rules.Dont)
	add(todoPart, "Nothing here yet.", p.Head.Path+"/edit?text=todo", rules.Todo)
	p.addGeneral(add, given)
}

// addGeneral adds the parts that are not a project's own.
func (p *contextPage) addGeneral(add func(string, string, string, ...*souvenir.ContextMemory),
	given souvenir.Context) {
	add(generalPart, "Nothing here yet.", generalRulesPath, pointers(given.GeneralDoDont)...)
	if p.Head.Path != "" {
		add(shortPart,
			"Nothing here. Memories of the project with the classification do or dont are listed here.", "",
			pointers(given.ProjectDoDont)...)
	}
	add(relatedPart, "Nothing here.", "", pointers(given.Related)...)
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
