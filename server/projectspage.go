package server

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/route"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// projectPageRoutes are the projects, their members, rules and to-do documents.
func (s *Server) projectPageRoutes() []route.Route {
	const project = "/projects/{owner}/{id}"
	return []route.Route{
		route.Get("/projects", route.Person, s.showProjects),
		route.Post("/projects", route.Person, s.makeProject),
		route.Get(generalRulesPath, route.Person, s.showGeneralRules),
		route.Get(generalRulesPath+"/edit", route.Person, s.showText),
		route.Post(generalRulesPath+"/edit", route.Person, s.saveText),
		route.Post(generalRulesPath+"/delete", route.Person, s.deleteRule),

		route.Get(project, route.Person, s.showProject),
		route.Get(project+"/rules", route.Person, s.showRules),
		route.Post(project+"/rules/delete", route.Person, s.deleteRule),
		route.Get(project+"/todo", route.Person, s.showTodo),
		route.Post(project+"/todo/tick", route.Person, s.tickTodo),
		route.Get(project+"/members", route.Person, s.showMembers),
		route.Post(project+"/members", route.Person, s.changeMembers),
		route.Get(project+"/modules", route.Person, s.showModules),
		route.Get(project+"/context", route.Person, s.showContext),
		route.Get(project+"/settings", route.Person, s.showProjectSettings),
		route.Post(project+"/settings", route.Person, s.renameProject),
		route.Post(project+"/delete", route.Person, s.deleteProject),
		route.Get(project+"/edit", route.Person, s.showText),
		route.Post(project+"/edit", route.Person, s.saveText),
	}
}

// projectHead is what all pages of a project have in common.
type projectHead struct {
	souvenir.Project
	Path     string // of its first page
	OfRecord bool   // the user is its owner of record
	Here     string // name of the tab that is open
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

// projectAt returns the project that the path of a page names, as the caller sees it.
func (s *Server) projectAt(r *http.Request, c request.Caller, tab string) (projectHead, error) {
	owner, id := strings.TrimPrefix(r.PathValue("owner"), "~"), strings.TrimPrefix(r.PathValue("id"), "~")
	p, err := c.Store.GetProject(r.Context(), souvenir.ProjectRef{ID: owner + "/" + id})
	return projectHead{Project: p, Path: projectPath(p), OfRecord: p.Owner == c.User.ID, Here: tab}, err
}

// projectsPage is what the page of all projects shows.
type projectsPage struct {
	Projects []listedProject
	All      int // how many there are, whatever is searched for
	Search   string
	Found    int
	Pages    leaves
	New      web.Form
}

// listedProject is a project in the list.
type listedProject struct {
	projectHead
	ChangedAt time.Time // when a memory in it, or the project itself, was changed last
	HasTodo   bool
	Progress  souvenir.TodoProgress
}

func newProjectForm() web.Form {
	return web.Form{Fields: []web.Field{
		{Name: "name", Label: "Name", Type: "text", Autocomplete: "off", Hint: "As people and agents call it, such as Atlas or Garden plans.", Argument: "project_name"},
		{Name: "project", Label: "Id", Type: "text", Autocomplete: "off", Optional: true, Argument: "project_id",
			Hint: "A short name for agents and addresses, without a slash. Left empty, one is made. It stays the same when the project is renamed."},
	}}
}

func (s *Server) showProjects(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	return s.projectsPage(r, c, newProjectForm())
}

// projectsPage is the page of the projects, with a form that may have been refused.
func (s *Server) projectsPage(r *http.Request, c request.Caller, form web.Form) (web.Page, error) {
	all, err := c.Store.Projects(r.Context())
	if err != nil {
		return web.Page{}, err
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
	shown, at := web.Paginate(found, r, "part")
	data.Pages = leavesOf(at, url.Values{"search": {data.Search}})
	for _, p := range shown {
		l, err := s.listedProject(r, c, p)
		if err != nil {
			return web.Page{}, err
		}
		data.Projects = append(data.Projects, l)
	}
	return web.Page{Template: "projects", Title: "Projects", Data: data, Part: "project-list"}, nil
}

// listedProject adds to a project what the list shows of it.
func (s *Server) listedProject(r *http.Request, c request.Caller, p souvenir.Project) (listedProject, error) {
	l := listedProject{projectHead: projectHead{Project: p, Path: projectPath(p), OfRecord: p.Owner == c.User.ID}, ChangedAt: p.UpdatedAt}
	newest, err := c.Store.Search(r.Context(), souvenir.Query{ProjectID: l.Reference().ID, Limit: 1})
	if err != nil {
		return l, err
	}
	if len(newest.Hits) > 0 && newest.Hits[0].UpdatedAt.After(l.ChangedAt) {
		l.ChangedAt = newest.Hits[0].UpdatedAt
	}
	todo, err := c.Store.GetTodo(r.Context(), l.Reference())
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
func (s *Server) makeProject(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	added, err := c.Store.AddProject(r.Context(), souvenir.NewProject{ID: strings.TrimSpace(values.Get("project")), Name: strings.TrimSpace(values.Get("name"))})
	if err == nil {
		return s.site.Done(projectPath(added), "project"), nil
	}
	form := newProjectForm()
	form.Fill(values.Get)
	form.Refuse(err)
	p, failed := s.projectsPage(r, c, form)
	if failed != nil {
		return nil, failed
	}
	p.Part = ""
	return web.Again(p, err)
}
