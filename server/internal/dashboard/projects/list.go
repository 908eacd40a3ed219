package projects

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// projectHead is the data that all pages of a project share.
type projectHead struct {
	souvenir.Project
	Path     string // of its first page
	OfRecord bool   // the user is the project's owner of record
	Here     string // name of the open tab
}

// Tabs are the pages of the project.
func (h projectHead) Tabs() []web.Tab {
	var tabs []web.Tab
	for _, tab := range [][2]string{{"Overview", ""}, {"Memories", "/memories"}, {"Files", "/files"},
		{"Conversations", "/conversations"}, {"Rules", "/rules"}, {"To-do", "/todo"}, {"Context", "/context"},
		{"Members", "/members"}, {"Modules", "/modules"}} {
		tabs = append(tabs, web.Tab{Path: h.Path + tab[1], Name: tab[0]})
	}
	if h.CanManage() {
		tabs = append(tabs, web.Tab{Path: h.Path + "/settings", Name: "Settings"})
	}
	for i := range tabs {
		tabs[i].Here = tabs[i].Name == h.Here
	}
	return tabs
}

// CanWrite reports whether the user may change the project's content.
func (h projectHead) CanWrite() bool {
	return h.Role == souvenir.MemberWriter || h.Role == souvenir.MemberOwner
}

// CanManage reports whether the user may rename the project and manage its members.
func (h projectHead) CanManage() bool { return h.Role == souvenir.MemberOwner }

// Reference identifies the project to the store, for any caller.
func (h projectHead) Reference() souvenir.ProjectRef {
	return souvenir.ProjectRef{ID: h.Owner + "/" + h.ID}
}

// projectAt returns the project in the path of a page, as the caller sees it.
func (s *Service) projectAt(r *http.Request, c request.Caller, tab string) (projectHead, error) {
	owner, id := strings.TrimPrefix(r.PathValue("owner"), "~"), strings.TrimPrefix(r.PathValue("id"), "~")
	p, err := c.Store.GetProject(r.Context(), souvenir.ProjectRef{ID: owner + "/" + id})
	return projectHead{Project: p, Path: web.ProjectPath(p), OfRecord: p.Owner == c.User.ID, Here: tab}, err
}

// projectsPage is the data of the page of all projects.
type projectsPage struct {
	Projects []listedProject
	All      int // their total, without the search
	Search   string
	Found    int
	Pages    web.Leaves
	New      web.Form
}

// listedProject is a project in the list.
type listedProject struct {
	projectHead
	ChangedAt time.Time // latest change of the project or of a memory in it
	HasTodo   bool
	Progress  souvenir.TodoProgress
}

func newProjectForm() web.Form {
	return web.Form{Fields: []web.Field{
		{Name: "name", Label: "Name", Type: "text", Autocomplete: "off",
			Hint: "What people and agents call it, such as Atlas or Garden plans.", Argument: "project_name"},
		{Name: "project", Label: "Id", Type: "text", Autocomplete: "off", Optional: true, Argument: "project_id",
			Hint: "A short name for agents and addresses, without a slash. Left empty, the server creates one. Renaming the " +
				"project does not change it."},
	}}
}

func (s *Service) showProjects(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	return s.projectsPage(r, c, newProjectForm())
}

// projectsPage is the page of the projects, with a form that may have errors.
func (s *Service) projectsPage(r *http.Request, c request.Caller, form web.Form) (web.Page, error) {
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
	view, at := web.Paginate(found, r, "part")
	data.Pages = web.LeavesOf(at, url.Values{"search": {data.Search}})
	if data.Projects, err = listedProjects(r, c, view); err != nil {
		return web.Page{}, err
	}
	return web.Page{Template: "projects", Title: "Projects", Data: data, Part: "project-list"}, nil
}

// listedProjects loads the further data of projects in the list.
func listedProjects(r *http.Request, c request.Caller, view []souvenir.Project) (listed []listedProject, err error) {
	queries := make([]souvenir.Query, len(view))
	for i, p := range view {
		l := listedProject{projectHead: projectHead{Project: p, Path: web.ProjectPath(p), OfRecord: p.Owner == c.User.ID},
			ChangedAt: p.UpdatedAt}
		queries[i] = souvenir.Query{ProjectID: l.Reference().ID, Limit: 1}
		listed = append(listed, l)
	}
	newest, err := c.Store.SearchBatch(r.Context(), queries)
	if err != nil {
		return nil, err
	}
	for i := range listed {
		l := &listed[i]
		if hits := newest[i].Hits; len(hits) > 0 && hits[0].UpdatedAt.After(l.ChangedAt) {
			l.ChangedAt = hits[0].UpdatedAt
		}
		if l.MemoryCount == 0 {
			continue
		}
		todo, err := c.Store.GetTodo(r.Context(), l.Reference())
		switch {
		case err == nil:
			l.HasTodo = true
			l.Progress.Done, l.Progress.Total = todo.Document.Progress()
		case !errors.Is(err, souvenir.ErrNotFound):
			return nil, err
		}
	}
	return listed, nil
}

// addProject creates a project and opens it.
func (s *Service) addProject(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	added, err := c.Store.AddProject(r.Context(),
		souvenir.NewProject{ID: strings.TrimSpace(values.Get("project")), Name: strings.TrimSpace(values.Get("name"))})
	if err == nil {
		return s.site.Done(web.ProjectPath(added), "project"), nil
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
