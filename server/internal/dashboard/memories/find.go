package memories

import (
	"net/http"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// findPage is the data of the page that finds everything by its name or words. A script shows it over any page.
type findPage struct {
	Text     string
	Error    string
	Projects []web.Link
	Memories []web.Link
	Files    []web.Link
	Late     string // address from which a script requests the rest; empty: it is here
}

// None reports whether nothing was found.
func (p findPage) None() bool {
	return p.Text != "" && p.Error == "" && len(p.Projects)+len(p.Memories)+len(p.Files) == 0
}

const (
	projectsFound = 5
	memoriesFound = 7
	filesFound    = 3
)

// showFind finds projects by name, and memories and files by what they say. For a field that names a project, a
// collection or a type, it finds their names instead.
func (s *Service) showFind(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	data := findPage{Text: strings.TrimSpace(strings.ToValidUTF8(r.URL.Query().Get("q"), "\uFFFD"))}
	page := web.Page{Template: "find", Title: "Find", Part: "find-results"}
	projects, err := c.Store.Projects(r.Context())
	if err != nil {
		return nil, err
	}
	if named, err := web.FindNames(r, projects); named != nil || err != nil {
		page.Part, page.Data = "names-like", named
		return page, err
	}
	sought := strings.ToLower(data.Text)
	for _, p := range projects {
		if len(data.Projects) < projectsFound && strings.Contains(strings.ToLower(p.Name), sought) {
			data.Projects = append(data.Projects, web.Link{Noun: "project", Name: p.Name, Path: web.ProjectPath(p)})
		}
	}
	if data.Text == "" {
		page.Data = data
		return page, nil
	}
	if !web.FromScript(r) {
		if data.Late, err = s.site.Late(r, c); data.Late != "" || err != nil {
			page.Data = data
			return page, err
		}
	}
	found, err := c.Store.Search(r.Context(), souvenir.Query{Text: data.Text, Limit: memoriesFound, Documents: filesFound})
	if err != nil {
		_, message := failure.Describe(err)
		data.Error = web.Sentence(relabel(message, "query", searchLabels["query"]))
		page.Data = data
		return web.Again(page, err)
	}
	for _, hit := range found.Hits {
		data.Memories = append(data.Memories, web.Link{Noun: "memory", Name: Title(hit.Content),
			Path: web.MemoryPath(hit.ID)})
	}
	for _, d := range found.Documents {
		data.Files = append(data.Files, web.Link{Noun: "file", Name: d.Filename, Path: "/files/" + d.FileID})
	}
	page.Data = data
	return page, nil
}
