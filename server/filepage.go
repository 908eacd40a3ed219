package server

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// filePage is what the page of a file shows.
type filePage struct {
	pageForm
	souvenir.File
	Status   souvenir.FileStatus
	By       string // name of who stored it
	Own      bool   // the caller has, who alone may move it to another project
	Kind     string // its type in words
	Project  thing  // that it lies in; without a Noun: none
	Memory   string // the beginning of the memory that it is linked to; empty: none
	Preview  preview
	Projects []souvenir.Project // into which it can be moved
	Chosen   string             // one of them, as the form says
	Find     string             // what memories are searched for, to link it to one
	Found    []souvenir.Memory
	Looked   bool   // memories were searched for
	Trash    string // what becomes of the file when it is deleted
}

// clipShown is how much of a memory is shown with a file, in bytes.
const clipShown = 300

// fileFieldsOf are the fields of the form in which a file is described.
func fileFieldsOf(f souvenir.File) pageForm {
	return pageForm{Fields: []field{
		{Name: "filename", Label: "Name", Type: "text", Autocomplete: "off", Value: f.Filename},
		{Name: "description", Label: "Description", Type: "text", Autocomplete: "off", Value: f.Description, Optional: true},
		{Name: "tags", Label: "Tags", Type: "text", Autocomplete: "off", Value: strings.Join(f.Tags, ", "), Hint: "Separated by commas.", Optional: true},
		{Name: "category", Label: "Category", Type: "text", Autocomplete: "off", Value: f.Category, Optional: true},
	}}
}

// showFile shows a file. A script that searches for a memory to link it to gets what was found alone.
func (s *Server) showFile(_ http.ResponseWriter, r *http.Request, c caller) (any, error) {
	p, data, err := s.file(r, c)
	if err != nil {
		return nil, err
	}
	if err := findMemories(r, c, data); err != nil {
		return nil, err
	}
	p.part = "found-memories"
	return p, nil
}

// file gathers the page.
func (s *Server) file(r *http.Request, c caller) (page, *filePage, error) {
	f, err := c.store.GetFile(r.Context(), r.PathValue("id"))
	if err != nil {
		return page{}, nil, err
	}
	data := &filePage{pageForm: fileFieldsOf(f), File: f, Kind: kindOf(f.MIMEType)}
	p := page{template: "file", title: f.Filename, data: data}
	if data.Status, err = c.store.GetFileStatus(r.Context(), f.ID); err != nil {
		return p, nil, err
	}
	data.Own, data.By = f.Owner == c.User.ID, cmp.Or(data.Status.OwnerName, "no user any more")
	if f.MemoryID != "" {
		memory, err := c.store.GetMemory(r.Context(), f.MemoryID)
		if err != nil && !errors.Is(err, souvenir.ErrNotFound) {
			return p, nil, err
		}
		data.Memory = clipped(memory.Content, clipShown)
	}
	projects, err := c.store.Projects(r.Context())
	if err != nil {
		return p, nil, err
	}
	for _, project := range projects {
		if project.Role != souvenir.MemberReader {
			data.Projects = append(data.Projects, project)
		}
		if project.ID == data.Status.ProjectID && project.Owner == data.Status.ProjectOwner {
			data.Chosen = project.Ref()
			data.Project = thing{"project", project.Name, projectPath(project)}
		}
	}
	until, err := s.trashUntil(r.Context())
	if err != nil {
		return p, data, err
	}
	data.Trash = trashWords(1, until)
	data.Preview, err = s.preview(r, c, f)
	return p, data, err
}

// findMemories searches for memories to link a file to: by words, or by an id.
func findMemories(r *http.Request, c caller, data *filePage) error {
	const shown = 5
	data.Find = strings.TrimSpace(r.URL.Query().Get("find"))
	if data.Find == "" {
		return nil
	}
	data.Looked = true
	if memory, err := c.store.GetMemory(r.Context(), data.Find); err == nil {
		memory.Content = clipped(memory.Content, clipShown)
		data.Found = []souvenir.Memory{memory}
		return nil
	}
	found, err := c.store.Search(r.Context(), souvenir.Query{Text: data.Find, Limit: shown})
	if err != nil {
		return err
	}
	for _, hit := range found.Hits {
		hit.Content = clipped(hit.Content, clipShown)
		data.Found = append(data.Found, hit.Memory)
	}
	return nil
}

// editFile changes what is known about a file.
func (s *Server) editFile(w http.ResponseWriter, r *http.Request, c caller) (any, error) {
	values, err := s.readForm(w, r)
	if err != nil {
		return nil, err
	}
	p, data, err := s.file(r, c)
	if err != nil {
		return nil, err
	}
	before := data.File
	name, description, category := values.Get("filename"), values.Get("description"), values.Get("category")
	tags := append([]string{}, tagsOf(values["tags"])...)
	change := souvenir.UpdateFile{Filename: &name, Description: &description, Category: &category, Tags: tags}
	if values.Has("project") && values.Get("project") != data.Chosen && before.MemoryID == "" {
		change.Project = &souvenir.ProjectRef{ID: values.Get("project")}
	}
	changed, err := c.store.UpdateFile(r.Context(), before.ID, change)
	if err != nil {
		data.fill(values.Get)
		data.Chosen = values.Get("project")
		data.refuse(err)
		return again(p, err)
	}
	back := souvenir.UpdateFile{Filename: &before.Filename, Description: &before.Description, Category: &before.Category, Tags: append([]string{}, before.Tags...)}
	if change.Project != nil {
		former := projectRefOf(data)
		back.Project = &former
	}
	return s.doneWithUndo(c, "/files/"+before.ID, changed.Filename+" is changed.", func(ctx context.Context) error {
		return putFileBack(ctx, c.store, changed, back)
	}), nil
}

// projectRefOf names the project that a file lay in; the zero value: none.
func projectRefOf(data *filePage) souvenir.ProjectRef {
	return *projectOfStatus(data.Status)
}

func projectOfStatus(status souvenir.FileStatus) *souvenir.ProjectRef {
	if status.ProjectID == "" {
		return &souvenir.ProjectRef{}
	}
	return &souvenir.ProjectRef{ID: status.ProjectOwner + "/" + status.ProjectID}
}

// linkToMemory links a file to a memory, or (by an empty id) to none.
func (s *Server) linkToMemory(w http.ResponseWriter, r *http.Request, c caller) (any, error) {
	values, err := s.readForm(w, r)
	if err != nil {
		return nil, err
	}
	p, data, err := s.file(r, c)
	if err != nil {
		return nil, err
	}
	before, memory := data.File, strings.TrimSpace(values.Get("memory_id"))
	changed, err := c.store.UpdateFile(r.Context(), before.ID, souvenir.UpdateFile{MemoryID: &memory})
	if err != nil {
		data.refuse(err)
		return again(p, err)
	}
	said := before.Filename + " is linked to the memory."
	if memory == "" {
		said = before.Filename + " is linked to no memory any more."
	}
	former := projectRefOf(data)
	return s.doneWithUndo(c, "/files/"+before.ID, said, func(ctx context.Context) error {
		back := souvenir.UpdateFile{MemoryID: &before.MemoryID}
		if before.MemoryID == "" {
			back.Project = &former
		}
		return putFileBack(ctx, c.store, changed, back)
	}), nil
}

// putFileBack takes a change of a file back, unless it was changed once more since.
func putFileBack(ctx context.Context, store *souvenir.Store, changed souvenir.File, back souvenir.UpdateFile) error {
	now, err := store.GetFile(ctx, changed.ID)
	if err != nil {
		return err
	}
	if !now.UpdatedAt.Equal(changed.UpdatedAt) {
		return &failure{http.StatusConflict, "this cannot be taken back: the file has been changed since"}
	}
	_, err = store.UpdateFile(ctx, changed.ID, back)
	return err
}

// deleteFileOnPage deletes a file.
func (s *Server) deleteFileOnPage(w http.ResponseWriter, r *http.Request, c caller) (any, error) {
	if _, err := s.readForm(w, r); err != nil {
		return nil, err
	}
	if err := c.store.DeleteFile(r.Context(), r.PathValue("id")); err != nil && !errors.Is(err, souvenir.ErrNotFound) {
		return nil, err
	}
	until, err := s.trashUntil(r.Context())
	if err != nil {
		return nil, err
	}
	if until.IsZero() {
		return s.done("/files", "file-deleted"), nil
	}
	return s.done("/files", "file-trashed"), nil
}
