package server

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// settingsOfProject is what the page shows on which a project is renamed and deleted.
type settingsOfProject struct {
	Head   projectHead
	Name   pageForm
	Delete pageForm
	Until  time.Time // the trash keeps the project until then; zero: the trash is off
}

func (s *Server) showProjectSettings(_ http.ResponseWriter, r *http.Request, c caller) (any, error) {
	head, err := s.projectAt(r, c, "Settings")
	if err != nil {
		return nil, err
	}
	if !head.CanManage() {
		return nil, &failure{http.StatusForbidden, "project " + quoted(head.Name) + " is shared with you with the role " + string(head.Role) + "; only its owners may change it"}
	}
	return s.projectSettings(r.Context(), head)
}

// projectSettings is the page, with forms that nobody has filled in yet.
func (s *Server) projectSettings(ctx context.Context, head projectHead) (page, error) {
	until, err := s.trashUntil(ctx)
	return page{template: "projectsettings", title: "Settings of " + head.Name, data: &settingsOfProject{
		Head: head, Until: until,
		Name: pageForm{Fields: []field{{Name: "name", Label: "Name", Type: "text", Value: head.Name, Autocomplete: "off",
			Hint: "All memories in the project show the new name at once. Its id and its address stay."}}},
		Delete: pageForm{Fields: []field{{Name: "typed", Label: "Name of the project", Type: "text", Autocomplete: "off", Hint: "Type it, to be sure: " + head.Name}}},
	}}, err
}

// renameProject gives a project another name.
func (s *Server) renameProject(w http.ResponseWriter, r *http.Request, c caller) (any, error) {
	values, err := s.readForm(w, r)
	if err != nil {
		return nil, err
	}
	head, err := s.projectAt(r, c, "Settings")
	if err != nil {
		return nil, err
	}
	name := strings.TrimSpace(values.Get("name"))
	if name == head.Name {
		return s.done(head.Path+"/settings", "unchanged"), nil
	}
	ref := head.Reference()
	if _, err := c.store.UpdateProject(r.Context(), ref, souvenir.UpdateProject{Name: &name}); err != nil {
		p, failed := s.projectSettings(r.Context(), head)
		if failed != nil {
			return nil, failed
		}
		if data, ok := p.data.(*settingsOfProject); ok {
			data.Name.fill(values.Get)
			data.Name.refuse(err)
		}
		return again(p, err)
	}
	return s.doneWithUndo(c, head.Path+"/settings", "The project is named “"+name+"” now.", func(ctx context.Context) error {
		now, err := c.store.GetProject(ctx, ref)
		if err == nil && now.Name != name {
			err = &failure{http.StatusConflict, "this cannot be taken back: the project was renamed once more since"}
		}
		if err == nil {
			_, err = c.store.UpdateProject(ctx, ref, souvenir.UpdateProject{Name: &head.Name})
		}
		return err
	}), nil
}

// deleteProject deletes a project with its memories, if its name was typed.
func (s *Server) deleteProject(w http.ResponseWriter, r *http.Request, c caller) (any, error) {
	values, err := s.readForm(w, r)
	if err != nil {
		return nil, err
	}
	head, err := s.projectAt(r, c, "Settings")
	if err != nil {
		return nil, err
	}
	if typed := strings.TrimSpace(values.Get("typed")); typed != strings.TrimSpace(head.Name) {
		wrong := invalid("typed", "typed is "+quoted(typed)+", but the project is named "+quoted(head.Name)+"; nothing was deleted")
		p, failed := s.projectSettings(r.Context(), head)
		if failed != nil {
			return nil, failed
		}
		if data, ok := p.data.(*settingsOfProject); ok {
			data.Delete.fill(values.Get)
			data.Delete.refuse(wrong)
		}
		return again(p, wrong)
	}
	if err := c.store.DeleteProject(r.Context(), souvenir.DeleteProject{Project: head.Reference(), WithMemories: true}); err != nil {
		return nil, err
	}
	until, err := s.trashUntil(r.Context())
	if err != nil {
		return nil, err
	}
	if until.IsZero() {
		return s.done("/projects", "project-deleted"), nil
	}
	return s.done("/projects", "project-trashed"), nil
}
