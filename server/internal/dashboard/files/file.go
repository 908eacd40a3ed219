package files

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/upload"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// filePage is the data of the page of a file.
type filePage struct {
	web.Form
	souvenir.File
	Status   souvenir.FileStatus
	By       string   // name of the uploader
	Own      bool     // the caller uploaded it; only the uploader may move it to another project
	Kind     string   // its type in words
	Project  web.Link // its project; without a Noun: none
	Memory   string   // the beginning of its linked memory; empty: none
	Preview  preview
	Projects []web.Option // targets of a move
	Chosen   string       // one of them, from the form
	Find     string       // search text for a memory to link
	Found    []souvenir.Memory
	Looked   bool   // a search was made
	Trash    string // what happens to the file on deletion
}

// clipShown is how much of its memory a file's page shows, in bytes.
const clipShown = 300

// fileFieldsOf returns the form for a file's metadata.
func fileFieldsOf(f souvenir.File) web.Form {
	return web.Form{Fields: []web.Field{
		{Name: "filename", Label: "Name", Type: "text", Autocomplete: "off", Value: f.Filename},
		{Name: "description", Label: "Description", Type: "text", Autocomplete: "off", Value: f.Description, Optional: true},
		{Name: "tags", Label: "Tags", Type: "text", Autocomplete: "off", Value: strings.Join(f.Tags, ", "),
			Hint: "Separated by commas.", Optional: true},
		{Name: "category", Label: "Category", Type: "text", Autocomplete: "off", Value: f.Category, Optional: true},
	}}
}

// showFile shows a file. A script that searches for a memory to link gets only the matches.
func (s *Service) showFile(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	p, data, err := s.file(r, c)
	if err != nil {
		return nil, err
	}
	if err := findMemories(r, c, data); err != nil {
		return nil, err
	}
	p.Part = "found-memories"
	return p, nil
}

// file loads the page.
func (s *Service) file(r *http.Request, c request.Caller) (web.Page, *filePage, error) {
	f, err := c.Store.GetFile(r.Context(), r.PathValue("id"))
	if err != nil {
		return web.Page{}, nil, err
	}
	data := &filePage{Form: fileFieldsOf(f), File: f, Kind: kindOf(f.MIMEType)}
	p := web.Page{Template: "file", Title: f.Filename, Data: data}
	if data.Status, err = c.Store.Insights().FileStatus(r.Context(), f.ID); err != nil {
		return p, nil, err
	}
	data.Own, data.By = f.Owner == c.User.ID, cmp.Or(data.Status.OwnerName, "a deleted user")
	if f.MemoryID != "" {
		memory, err := c.Store.GetMemory(r.Context(), f.MemoryID)
		if err != nil && !errors.Is(err, souvenir.ErrNotFound) {
			return p, nil, err
		}
		data.Memory = textview.Clip(memory.Content, clipShown)
	}
	projects, err := c.Store.Projects(r.Context())
	if err != nil {
		return p, nil, err
	}
	for _, project := range projects {
		if project.ID == data.Status.ProjectID && project.Owner == data.Status.ProjectOwner {
			data.Chosen = project.Owner + "/" + project.ID
			data.Project = web.Link{Noun: "project", Name: project.Name, Path: web.ProjectPath(project)}
		}
	}
	data.Projects = writable(projects, c.User.ID, data.Chosen)
	until, err := web.TrashUntil(r, s.store)
	if err != nil {
		return p, data, err
	}
	data.Trash = web.TrashNote(1, until)
	data.Preview, err = s.preview(r, c, f)
	return p, data, err
}

// findMemories searches for memories to link: by words, or by an id.
func findMemories(r *http.Request, c request.Caller, data *filePage) error {
	const most = 5
	data.Find = strings.TrimSpace(r.URL.Query().Get("find"))
	if data.Find == "" {
		return nil
	}
	data.Looked = true
	if memory, err := c.Store.GetMemory(r.Context(), data.Find); err == nil {
		memory.Content = textview.Clip(memory.Content, clipShown)
		data.Found = []souvenir.Memory{memory}
		return nil
	}
	found, err := c.Store.Search(r.Context(), souvenir.Query{Text: data.Find, Limit: most})
	if err != nil {
		return err
	}
	for _, hit := range found.Hits {
		hit.Content = textview.Clip(hit.Content, clipShown)
		data.Found = append(data.Found, hit.Memory)
	}
	return nil
}

// editFile changes a file's metadata.
func (s *Service) editFile(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	p, data, err := s.file(r, c)
	if err != nil {
		return nil, err
	}
	before := data.File
	name, description, category := values.Get("filename"), values.Get("description"), values.Get("category")
	tags := append([]string{}, upload.Tags(values["tags"])...)
	change := souvenir.FileUpdate{Filename: &name, Description: &description, Category: &category, Tags: tags}
	if values.Has("project") && values.Get("project") != data.Chosen && before.MemoryID == "" {
		change.Project = &souvenir.ProjectRef{ID: values.Get("project")}
	}
	changed, err := c.Store.UpdateFile(r.Context(), before.ID, change)
	if err != nil {
		data.Fill(values.Get)
		data.Chosen = values.Get("project")
		for i, o := range data.Projects {
			data.Projects[i].Chosen = o.Value == data.Chosen
		}
		data.Refuse(err)
		return web.Again(p, err)
	}
	back := souvenir.FileUpdate{Filename: &before.Filename, Description: &before.Description, Category: &before.Category,
		Tags: append([]string{}, before.Tags...)}
	if change.Project != nil {
		former := projectRefOf(data)
		back.Project = &former
	}
	return s.site.DoneWithUndo(c, "/files/"+before.ID, changed.Filename+" is changed.", func(ctx context.Context) error {
		return putFileBack(ctx, c.Store, changed, back)
	}), nil
}

// projectRefOf returns the file's former project; the zero value: none.
func projectRefOf(data *filePage) souvenir.ProjectRef {
	return *upload.ProjectOf(data.Status)
}

// linkToMemory links a file to a memory, or, for an empty id, to none.
func (s *Service) linkToMemory(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	p, data, err := s.file(r, c)
	if err != nil {
		return nil, err
	}
	before, memory := data.File, strings.TrimSpace(values.Get("memory_id"))
	changed, err := c.Store.UpdateFile(r.Context(), before.ID, souvenir.FileUpdate{MemoryID: &memory})
	if err != nil {
		data.Refuse(err)
		return web.Again(p, err)
	}
	notice := before.Filename + " is linked to the memory."
	if memory == "" {
		notice = before.Filename + " is no longer linked to a memory."
	}
	former := projectRefOf(data)
	return s.site.DoneWithUndo(c, "/files/"+before.ID, notice, func(ctx context.Context) error {
		back := souvenir.FileUpdate{MemoryID: &before.MemoryID}
		if before.MemoryID == "" {
			back.Project = &former
		}
		return putFileBack(ctx, c.Store, changed, back)
	}), nil
}

// putFileBack undoes a change of a file, unless it has changed again since.
func putFileBack(ctx context.Context, store *souvenir.Store, changed souvenir.File, back souvenir.FileUpdate) error {
	now, err := store.GetFile(ctx, changed.ID)
	if err != nil {
		return err
	}
	if !now.UpdatedAt.Equal(changed.UpdatedAt) {
		return &failure.Error{Status: http.StatusConflict,
			Message: "this cannot be undone: the file has been changed since"}
	}
	_, err = store.UpdateFile(ctx, changed.ID, back)
	return err
}

// deleteFileOnPage deletes a file.
func (s *Service) deleteFileOnPage(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	if _, err := s.site.ReadForm(w, r); err != nil {
		return nil, err
	}
	id, name := r.PathValue("id"), "The file"
	if file, err := c.Store.GetFile(r.Context(), id); err == nil {
		name = file.Filename
	}
	if err := c.Store.DeleteFile(r.Context(), id, nil); err != nil && !errors.Is(err, souvenir.ErrNotFound) {
		return nil, err
	}
	return s.site.DeletedWithUndo(r, c, "/files", "/files/"+id, "“"+name+"” is deleted.", id), nil
}
