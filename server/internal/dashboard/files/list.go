package files

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/params"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/upload"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// filesPage is the data of the page of files.
type filesPage struct {
	Filter     fileFilter
	Files      []listedFile
	Total      int
	First      int    // number of the first visible file
	Wrong      string // error in the filter; empty: none
	Before     string // address of the previous part; empty: there is none
	After      string
	Kinds      []fileKind
	Categories []string // for the filter
	Tags       []string
	Projects   []souvenir.Project
	Places     []web.Option // projects of the filter
	Writable   []web.Option // projects to which files can be uploaded
	MaxFile    int64        // bytes
	Refused    string       // error of an upload; empty: none
}

// Last is the number of the last visible file.
func (p filesPage) Last() int { return p.First + len(p.Files) - 1 }

// fileFilter is the filter of the files.
type fileFilter struct {
	Name, Type, Category, Tag, Project, Memory string
	Part                                       int
}

// Some reports whether a filter is on.
func (f fileFilter) Some() bool { return f.Name+f.Memory != "" || f.Folded() }

// Folded reports whether a filter applies that is folded away otherwise.
func (f fileFilter) Folded() bool { return f.Type+f.Category+f.Tag+f.Project != "" }

// listedFile is a file of the list.
type listedFile struct {
	souvenir.File
	Kind    string   // its type in words
	By      string   // name of the uploader
	Project web.Link // its project; without a Noun: none
}

// fileKind is a file type in the filter.
type fileKind struct{ Type, Name string }

var fileKinds = []fileKind{
	{"image/*", "Images"}, {"text/*", "Texts"}, {"application/pdf", "PDF"}, {"application/json", "JSON"},
	{"audio/*", "Audio"}, {"video/*", "Video"}, {"application/zip", "ZIP archives"},
}

const (
	filesShown  = 50  // on a page
	filesLooked = 200 // newest files that supply the values of the filter
)

func (s *Service) showFiles(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	p, _, err := s.files(r, c)
	return p, err
}

// files loads the page.
func (s *Service) files(r *http.Request, c request.Caller) (web.Page, *filesPage, error) {
	data := &filesPage{Filter: fileFilterOf(r.URL.Query()), Kinds: fileKinds}
	p := web.Page{Template: "files", Title: "Files", Part: "files-list", Data: data}
	var err error
	if data.Projects, err = c.Store.Projects(r.Context()); err != nil {
		return p, nil, err
	}
	if err := s.fillFileChoices(r, c, data); err != nil {
		return p, nil, err
	}
	found, err := c.Store.FilePage(r.Context(), data.Filter.query())
	if err != nil {
		status, message := failure.Describe(err)
		if status != http.StatusBadRequest {
			return p, nil, err
		}
		p.Status, data.Wrong = status, web.Sentence(message)
		return p, data, nil
	}
	data.Total, data.First = found.Total, found.Offset+1
	names, err := s.namesOfUsers(r, c, found.Files)
	if err != nil {
		return p, nil, err
	}
	for _, f := range found.Files {
		data.Files = append(data.Files, listedFile{f, kindOf(f.MIMEType), names[f.Owner], projectOfFile(f, data.Projects)})
	}
	if data.Filter.Part > 1 {
		data.Before = data.Filter.address(data.Filter.Part - 1)
	}
	if found.HasMore() {
		data.After = data.Filter.address(data.Filter.Part + 1)
	}
	return p, data, nil
}

// writable are the projects to which the user may add files.
func writable(all []souvenir.Project, user, chosen string) []web.Option {
	some := slices.DeleteFunc(slices.Clone(all), func(p souvenir.Project) bool { return p.Role == souvenir.MemberReader })
	return web.Offered(web.ProjectOptions(some, user, chosen, "None: for yourself"))
}

// fileFilterOf reads the filter from an address.
func fileFilterOf(query url.Values) fileFilter {
	get := func(name string) string { return strings.TrimSpace(query.Get(name)) }
	f := fileFilter{get("name"), get("type"), get("category"), get("tag"), get("project"), get("memory"), 1}
	if asked, err := strconv.Atoi(query.Get("part")); err == nil && asked > 0 {
		f.Part = min(asked, params.MaxOffset/filesShown)
	}
	return f
}

// address returns the address of a part of the list.
func (f fileFilter) address(part int) string {
	values := url.Values{}
	for name, value := range map[string]string{"name": f.Name, "type": f.Type, "category": f.Category, "tag": f.Tag,
		"project": f.Project, "memory": f.Memory} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if part > 1 {
		values.Set("part", strconv.Itoa(part))
	}
	if len(values) == 0 {
		return "/files"
	}
	return "/files?" + values.Encode()
}

// query returns the store's query.
func (f fileFilter) query() souvenir.FileQuery {
	return souvenir.FileQuery{Limit: filesShown, Offset: (f.Part - 1) * filesShown, FileList: souvenir.FileList{
		Filename: f.Name, MIMEType: f.Type, Category: f.Category, Tags: upload.Tags([]string{f.Tag}), ProjectID: f.Project,
		MemoryID: f.Memory}}
}

// fillFileChoices loads the values of the filter from the newest files.
func (s *Service) fillFileChoices(r *http.Request, c request.Caller, data *filesPage) error {
	if web.FromScript(r) {
		return nil // only the list was requested
	}
	data.Places = web.Offered(web.ProjectOptions(data.Projects, c.User.ID, data.Filter.Project, "All"))
	data.Writable = writable(data.Projects, c.User.ID, "")
	configuration, err := s.store.Upkeep().Configuration(r.Context())
	if err != nil {
		return err
	}
	data.MaxFile = configuration.MaxFile
	newest, err := c.Store.FilePage(r.Context(), souvenir.FileQuery{Limit: filesLooked})
	if err != nil {
		return err
	}
	const most = 50
	for _, f := range newest.Files {
		if f.Category != "" && len(data.Categories) < most {
			data.Categories = append(data.Categories, f.Category)
		}
		if len(data.Tags) < most {
			data.Tags = append(data.Tags, f.Tags...)
		}
	}
	for _, list := range []*[]string{&data.Categories, &data.Tags} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return nil
}

// namesOfUsers maps the ids of the files' uploaders to their names.
func (s *Service) namesOfUsers(r *http.Request, c request.Caller, files []souvenir.File) (map[string]string, error) {
	names := map[string]string{c.User.ID: c.User.Name}
	for _, f := range files {
		if _, known := names[f.Owner]; known {
			continue
		}
		u, err := s.store.Accounts().GetUser(r.Context(), f.Owner)
		if err != nil && !errors.Is(err, souvenir.ErrNotFound) {
			return nil, err
		}
		names[f.Owner] = cmp.Or(u.Name, "a deleted user")
	}
	return names, nil
}

// projectOfFile returns the project of a file; several users may use the same id.
func projectOfFile(f souvenir.File, projects []souvenir.Project) web.Link {
	if f.ProjectID == "" {
		return web.Link{}
	}
	seen := -1
	for i, p := range projects {
		if p.ID == f.ProjectID && (seen < 0 || p.Owner == f.Owner) {
			seen = i
		}
	}
	if seen < 0 {
		return web.Link{Noun: "project", Name: f.ProjectID, Path: ""}
	}
	p := projects[seen]
	return web.Link{Noun: "project", Name: cmp.Or(p.Name, p.ID), Path: web.ProjectPath(p)}
}

// kindOf returns the name of a type, or the type itself.
func kindOf(mimeType string) string {
	kind, _, _ := strings.Cut(mimeType, ";")
	if label, ok := kindLabels[kind]; ok {
		return label
	}
	return kind
}

var kindLabels = map[string]string{
	"text/plain": "Text", "text/markdown": "Markdown", "text/html": "Web page", "text/csv": "CSV table", "text/css": "CSS",
	"text/javascript":  "JavaScript",
	"application/json": "JSON", "application/jsonl": "JSON lines", "application/xml": "XML", "application/yaml": "YAML",
	"application/toml": "TOML", "application/pdf": "PDF",
	"image/png": "PNG image", "image/jpeg": "JPEG image", "image/gif": "GIF image", "image/webp": "WebP image",
	"image/avif": "AVIF image", "image/svg+xml": "SVG image",
	"message/rfc822":  "E-mail",
	"application/zip": "ZIP archive", "application/gzip": "gzip archive", "application/x-tar": "tar archive",
	"audio/mpeg": "MP3", "video/mp4": "MP4 video", "application/octet-stream": "Bytes",
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document":   "Word document",
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":         "Excel table",
	"application/vnd.openxmlformats-officedocument.presentationml.presentation": "PowerPoint slides",
}
