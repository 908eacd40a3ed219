package memories

import (
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// memoryEdit is the data of the page on which a memory is written or edited.
type memoryEdit struct {
	memoryHead
	New         bool         // there is no memory yet; the head has only its owner and collection
	Collections []web.Option // to choose from, for a new memory
	Typed       memoryTyped
	Base        int // revision that was edited
	Error       string
	Wrong       map[string]string // errors by field
	Focus       string            // name of the field with the focus
	Projects    []web.Option      // possible targets of a move
	Linked      []relatedMemory   // the linked memories, as in the form
	Others      []string          // ids of further ones, which the form keeps without showing them
	Seek        string            // words or an id to find memories to link
	Seen        []relatedMemory   // the memories found
	Conflict    *memoryConflict   // a concurrent change; nil: none
	Preview     textview.Cut
	HTML        template.HTML // the rendered preview
}

// Choices returns the values of a field, the empty one first.
func (memoryEdit) Choices(field string) []string {
	switch field {
	case "importance":
		return []string{"", "low", "medium", "high", "critical"}
	case "classification":
		return []string{"", "do", "dont", "todo", "notes"}
	case "rule_type":
		return []string{"", "do", "dont", "todo"}
	case "state":
		return []string{"active", "archived", "completed"}
	case "event_type":
		return []string{"conversation", "decision", "case", "note", "project-main", souvenir.EventProjectRule,
			souvenir.EventIdentity}
	}
	return nil
}

// Own reports whether the user owns the memory: only owners move it to another project.
func (e memoryEdit) Own(user *souvenir.User) bool { return e.Owner == user.ID }

// memoryEdit loads the data of the page, with the memory as stored.
func (s *Service) memoryEdit(r *http.Request, c request.Caller) (*memoryEdit, error) {
	head, err := s.memoryHead(r, c, "Edit")
	if err != nil {
		return nil, err
	}
	if !head.Status.Writable {
		return nil, &souvenir.Error{Kind: souvenir.KindForbidden, Message: "this memory belongs to " +
			failure.Quote(nameOr(head.Status.OwnerName, head.Owner)) + ", who shares it with you read-only"}
	}
	e := &memoryEdit{memoryHead: head, Typed: typedOf(head), Base: head.Revision, Wrong: map[string]string{}}
	return e, nil
}

// addProjects adds the projects to which the memory can belong.
func (s *Service) addProjects(r *http.Request, c request.Caller, e *memoryEdit) error {
	projects, err := c.Store.Projects(r.Context())
	if err != nil {
		return err
	}
	projects = slices.DeleteFunc(projects, func(p souvenir.Project) bool {
		return p.Role == souvenir.MemberReader && p.Owner+"/"+p.ID != e.Typed.Project
	})
	e.Projects = web.Offered(web.ProjectOptions(projects, c.User.ID, e.Typed.Project, "none"))
	return nil
}

// editPage builds the form's page, with linked memories and the preview.
func (s *Service) editPage(r *http.Request, c request.Caller, e *memoryEdit) (web.Page, error) {
	if err := s.addProjects(r, c, e); err != nil {
		return web.Page{}, err
	}
	e.Collections = web.Offered(choose(e.Collections, e.Collection))
	e.Preview, e.HTML = renderBeginning(e.Typed.Content)
	e.Linked, e.Others = nil, nil
	for i, id := range relatedTyped(e.Typed.Related) {
		if i >= linksInForm {
			e.Others = append(e.Others, id)
			continue
		}
		m, err := c.Store.GetMemory(r.Context(), id)
		switch {
		case errors.Is(err, souvenir.ErrNotFound):
			e.Linked = append(e.Linked, relatedMemory{ID: id, Title: "A memory that you cannot see"})
			continue
		case err != nil:
			return web.Page{}, err
		}
		e.Linked = append(e.Linked, relatedMemory{ID: m.ID, Title: Title(m.Content), EventType: m.EventType,
			UpdatedAt: m.UpdatedAt})
	}
	var err error
	if e.Seen, err = s.toLink(r, c, e.Seek, append(relatedTyped(e.Typed.Related), e.ID)); err != nil {
		return web.Page{}, err
	}
	title := "Edit “" + e.Title + "”"
	if e.New {
		title = "New memory"
	}
	return web.Page{Template: "memoryedit", Title: title, Data: e}, nil
}

func (s *Service) showMemoryEdit(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	e, err := s.memoryEdit(r, c)
	if err != nil {
		return nil, err
	}
	return s.editPage(r, c, e)
}

// previewMemory renders a text.
func (s *Service) previewMemory(w http.ResponseWriter, r *http.Request, _ request.Caller) (any, error) {
	values, err := s.site.ReadLongForm(w, r)
	if err != nil {
		return nil, err
	}
	var data memoryEdit
	data.Preview, data.HTML = renderBeginning(values.Get("content"))
	return web.Page{Template: "memoryedit", Title: "Preview", Data: data, Part: "memory-preview"}, nil
}

// saveMemory stores an edited memory. It never overwrites another user's change unseen.
func (s *Service) saveMemory(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadLongForm(w, r)
	if err != nil {
		return nil, err
	}
	e, err := s.memoryEdit(r, c)
	if err != nil {
		return nil, err
	}
	e.Typed.take(values)
	if values.Get("preview") != "" { // the button without JavaScript
		e.Base, _ = strconv.Atoi(values.Get("base"))
		e.Focus, e.Seek = "content", strings.TrimSpace(values.Get("seek"))
		return s.editPage(r, c, e)
	}
	base, err := strconv.Atoi(values.Get("base"))
	if err != nil || base < 1 {
		return nil, failure.Invalid("base", "base is "+failure.Quote(values.Get("base"))+
			"; the form carries the number of the version that it edits, so open the page again")
	}
	if base != e.Revision {
		return s.conflict(r, c, e, base)
	}
	update, err := e.update()
	if err != nil {
		return s.refused(r, c, e, err)
	}
	stored, err := c.Store.UpdateMemory(r.Context(), e.ID, update)
	switch {
	case errors.Is(err, souvenir.ErrConflict) && argumentOf(err) == "expected_revision": // a change at the same moment
		now, failed := s.memoryEdit(r, c)
		if failed != nil {
			return nil, failed
		}
		now.Typed = e.Typed
		return s.conflict(r, c, now, base)
	case err != nil:
		return s.refused(r, c, e, err)
	}
	return s.changedWithUndo(c, web.MemoryPath(e.ID), "Memory saved.", e.Memory, stored.Memory), nil
}

// update returns the change that was entered.
func (e *memoryEdit) update() (souvenir.MemoryUpdate, error) {
	u := souvenir.MemoryUpdate{ExpectedRevision: e.Revision}
	if typed := textview.WithLineEndings(e.Typed.Content, e.Content); typed != e.Content {
		u.Content = &typed
	}
	var err error
	u.ShownMetadata, u.Metadata, err = e.Typed.patch(e.memoryHead)
	return u, err
}

func argumentOf(err error) string {
	var known *souvenir.Error
	if errors.As(err, &known) {
		return known.Argument
	}
	return ""
}

// fieldOf returns the form field of an argument of the store.
func fieldOf(argument string) string {
	switch argument {
	case "project_id", "project_name":
		return "project"
	case "related_memory_ids":
		return "related"
	case "collection_name":
		return "collection"
	}
	return argument
}

// refused shows the form again, with the error at its field.
func (s *Service) refused(r *http.Request, c request.Caller, e *memoryEdit, err error) (any, error) {
	_, message := failure.Describe(err)
	argument := argumentOf(err)
	for _, f := range append(slices.Clone(fieldNames), formField{"collection", "Collection"}) {
		if f.Name == fieldOf(argument) {
			if rest, ok := strings.CutPrefix(message, argument); ok {
				message = f.Label + rest // the label on the page
			}
			e.Wrong[f.Name], e.Focus = web.Sentence(message), f.Name
		}
	}
	if len(e.Wrong) == 0 {
		e.Error = web.Sentence(message)
	}
	p, failed := s.editPage(r, c, e)
	if failed != nil {
		return nil, failed
	}
	return web.Again(p, err)
}

// historyPath is the address of a revision in the history.
func (h memoryHead) historyPath(revision int) string {
	return h.Path + "/history?" + url.Values{"revision": {strconv.Itoa(revision)}}.Encode()
}
