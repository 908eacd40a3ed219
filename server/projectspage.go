package server

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// projectPageRoutes are the projects, their members, rules and to-do documents.
func (s *Server) projectPageRoutes() []route {
	const project = "/projects/{owner}/{id}"
	return []route{
		get("/projects", person, s.showProjects),
		post("/projects", person, s.makeProject),
		get(generalRulesPath, person, s.showGeneralRules),
		get(generalRulesPath+"/edit", person, s.showText),
		post(generalRulesPath+"/edit", person, s.saveText),
		post(generalRulesPath+"/delete", person, s.deleteRule),

		get(project, person, s.showProject),
		get(project+"/rules", person, s.showRules),
		post(project+"/rules/delete", person, s.deleteRule),
		get(project+"/todo", person, s.showTodo),
		post(project+"/todo/tick", person, s.tickTodo),
		get(project+"/members", person, s.showMembers),
		post(project+"/members", person, s.changeMembers),
		get(project+"/modules", person, s.showModules),
		get(project+"/context", person, s.showContext),
		get(project+"/settings", person, s.showProjectSettings),
		post(project+"/settings", person, s.renameProject),
		post(project+"/delete", person, s.deleteProject),
		get(project+"/edit", person, s.showText),
		post(project+"/edit", person, s.saveText),
	}
}

// projectHead is what all pages of a project have in common.
type projectHead struct {
	souvenir.Project
	Path     string // of its first page
	OfRecord bool   // the user is its owner of record
	Here     string // name of the tab that is open
}

// projectTab is one of the pages of a project.
type projectTab struct {
	Path, Name string
	Here       bool
}

// Tabs are the pages of the project.
func (h projectHead) Tabs() []projectTab {
	tabs := []projectTab{
		{h.Path, "Overview", false}, {h.Path + "/rules", "Rules", false}, {h.Path + "/todo", "To-do", false}, {h.Path + "/members", "Members", false},
		{h.Path + "/modules", "Modules", false}, {h.Path + "/context", "Context", false},
	}
	if h.CanManage() {
		tabs = append(tabs, projectTab{h.Path + "/settings", "Settings", false})
	}
	for i := range tabs {
		tabs[i].Here = tabs[i].Name == h.Here
	}
	return tabs
}

// CanWrite reports whether the user may change what lies in the project.
func (h projectHead) CanWrite() bool {
	return h.Role == souvenir.MemberWriter || h.Role == souvenir.MemberOwner
}

// CanManage reports whether the user may rename the project and decide about its members.
func (h projectHead) CanManage() bool { return h.Role == souvenir.MemberOwner }

// Reference names the project to the store, whoever asks.
func (h projectHead) Reference() souvenir.ProjectRef {
	return souvenir.ProjectRef{ID: h.Owner + "/" + h.ID}
}

// projectPath is the path of a project's pages, for an address.
func projectPath(p souvenir.Project) string {
	return "/projects/" + projectSegment(p.Owner) + "/" + projectSegment(p.ID)
}

// projectSegment is an id as part of a path. Browsers take dots alone for a way up, and a few words name other pages.
func projectSegment(id string) string {
	if strings.Trim(id, ".") == "" || strings.HasPrefix(id, "~") || id == "rules" {
		id = "~" + id
	}
	return url.PathEscape(id)
}

// projectAt returns the project that the path of a page names, as the caller sees it.
func (s *Server) projectAt(r *http.Request, c caller, tab string) (projectHead, error) {
	owner, id := strings.TrimPrefix(r.PathValue("owner"), "~"), strings.TrimPrefix(r.PathValue("id"), "~")
	p, err := c.store.GetProject(r.Context(), souvenir.ProjectRef{ID: owner + "/" + id})
	return projectHead{Project: p, Path: projectPath(p), OfRecord: p.Owner == c.User.ID, Here: tab}, err
}

// projectsPage is what the page of all projects shows.
type projectsPage struct {
	Projects []listedProject
	All      int // how many there are, whatever is searched for
	Search   string
	Found    int
	Pages    leaves
	New      pageForm
}

// listedProject is a project in the list.
type listedProject struct {
	projectHead
	ChangedAt time.Time // when a memory in it, or the project itself, was changed last
	HasTodo   bool
	Progress  souvenir.TodoProgress
}

func newProjectForm() pageForm {
	return pageForm{Fields: []field{
		{Name: "name", Label: "Name", Type: "text", Autocomplete: "off", Hint: "As people and agents call it, such as Atlas or Garden plans.", argument: "project_name"},
		{Name: "project", Label: "Id", Type: "text", Autocomplete: "off", Optional: true, argument: "project_id",
			Hint: "A short name for agents and addresses, without a slash. Left empty, one is made. It stays the same when the project is renamed."},
	}}
}

func (s *Server) showProjects(_ http.ResponseWriter, r *http.Request, c caller) (any, error) {
	return s.projectsPage(r, c, newProjectForm())
}

// projectsPage is the page of the projects, with a form that may have been refused.
func (s *Server) projectsPage(r *http.Request, c caller, form pageForm) (page, error) {
	all, err := c.store.Projects(r.Context())
	if err != nil {
		return page{}, err
	}
	data := projectsPage{All: len(all), Search: r.URL.Query().Get("search"), New: form}
	var found []souvenir.Project
	sought := strings.ToLower(strings.TrimSpace(data.Search))
	for _, p := range all {
		if strings.Contains(strings.ToLower(p.Name+"\n"+p.ID+"\n"+p.OwnerName), sought) {
			found = append(found, p)
		}
	}
	data.Found = len(found)
	shown, at := part(found, r, "part")
	data.Pages = leavesOf(at, url.Values{"search": {data.Search}})
	for _, p := range shown {
		l, err := s.listedProject(r, c, p)
		if err != nil {
			return page{}, err
		}
		data.Projects = append(data.Projects, l)
	}
	return page{template: "projects", title: "Projects", data: data, part: "project-list"}, nil
}

// listedProject adds to a project what the list shows of it.
func (s *Server) listedProject(r *http.Request, c caller, p souvenir.Project) (listedProject, error) {
	l := listedProject{projectHead: projectHead{Project: p, Path: projectPath(p), OfRecord: p.Owner == c.User.ID}, ChangedAt: p.UpdatedAt}
	newest, err := c.store.Search(r.Context(), souvenir.Query{ProjectID: l.Reference().ID, Limit: 1})
	if err != nil {
		return l, err
	}
	if len(newest.Hits) > 0 && newest.Hits[0].UpdatedAt.After(l.ChangedAt) {
		l.ChangedAt = newest.Hits[0].UpdatedAt
	}
	todo, err := c.store.GetTodo(r.Context(), l.Reference())
	switch {
	case err == nil:
		l.HasTodo = true
		l.Progress.Done, l.Progress.Total = todo.Document.Progress()
	case !errors.Is(err, souvenir.ErrNotFound):
		return l, err
	}
	return l, nil
}

// makeProject adds a project and opens it.
func (s *Server) makeProject(w http.ResponseWriter, r *http.Request, c caller) (any, error) {
	values, err := s.readForm(w, r)
	if err != nil {
		return nil, err
	}
	added, err := c.store.AddProject(r.Context(), souvenir.NewProject{ID: strings.TrimSpace(values.Get("project")), Name: strings.TrimSpace(values.Get("name"))})
	if err == nil {
		return s.done(projectPath(added), "project"), nil
	}
	form := newProjectForm()
	form.fill(values.Get)
	form.refuse(err)
	p, failed := s.projectsPage(r, c, form)
	if failed != nil {
		return nil, failed
	}
	p.part = ""
	return again(p, err)
}

// leaves lead through a list whose address says more than the part that is shown.
type leaves struct {
	Page, Pages   int
	Before, After string // addresses; empty: there is none
}

// leavesOf makes addresses of what a pager knows and the other parameters of the page.
func leavesOf(p pager, others url.Values) leaves {
	address := func(number int) string {
		if number < 1 {
			return ""
		}
		query := url.Values{}
		for name, values := range others {
			if values[0] != "" {
				query[name] = values
			}
		}
		query.Set(p.Name, strconv.Itoa(number))
		return "?" + query.Encode()
	}
	return leaves{p.Page, p.Pages, address(p.Before()), address(p.After())}
}
