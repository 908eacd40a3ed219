package projects

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// latestDeleted is how many of the projects in the trash are searched for the one just deleted.
const latestDeleted = 20

// settingsOfProject is the data of the page on which a project is renamed and deleted.
type settingsOfProject struct {
	Head   projectHead
	Name   web.Form
	Keep   keepForm
	Delete web.Form
	Until  time.Time // the trash keeps the project until then; zero: the trash is off
}

func (s *Service) showProjectSettings(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	head, err := s.projectAt(r, c, "Settings")
	if err != nil {
		return nil, err
	}
	if !head.CanManage() {
		return nil, &failure.Error{Status: http.StatusForbidden, Message: "project " + failure.Quote(head.Name) +
			" is shared with you with the role " + string(head.Role) + "; only its owners may change it"}
	}
	return s.projectSettings(r, head)
}

// projectSettings is the page, with empty forms.
func (s *Service) projectSettings(r *http.Request, head projectHead) (web.Page, error) {
	until, err := web.TrashUntil(r, s.store)
	return web.Page{Template: "projectsettings", Title: "Settings of " + head.Name, Data: &settingsOfProject{
		Head: head, Until: until,
		Name: web.Form{Fields: []web.Field{{Name: "name", Label: "Name", Type: "text", Value: head.Name, Autocomplete: "off",
			Hint: "All memories in the project show the new name at once. Its id and address do not change."}}},
		Keep: newKeepForm(head.Path+"/retention", head.Retention),
		Delete: web.Form{Fields: []web.Field{{Name: "typed", Label: "Name of the project", Type: "text", Autocomplete: "off",
			Hint: "Type it to confirm: " + head.Name}}},
	}}, err
}

// settingsAgain returns the page again, with a change and the reason for showing it; a nil reason means that the page
// only asks a question.
func (s *Service) settingsAgain(r *http.Request, head projectHead, reason error, change func(*settingsOfProject)) (any,
	error) {
	p, err := s.projectSettings(r, head)
	if err != nil {
		return nil, err
	}
	if data, ok := p.Data.(*settingsOfProject); ok {
		change(data)
	}
	if reason == nil {
		return p, nil
	}
	return web.Again(p, reason)
}

// renameProject renames a project.
func (s *Service) renameProject(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	head, err := s.projectAt(r, c, "Settings")
	if err != nil {
		return nil, err
	}
	name := strings.TrimSpace(values.Get("name"))
	if name == head.Name {
		return s.site.Done(head.Path+"/settings", "unchanged"), nil
	}
	ref := head.Reference()
	if _, err := c.Store.UpdateProject(r.Context(), ref, souvenir.ProjectUpdate{Name: &name}); err != nil {
		return s.settingsAgain(r, head, err, func(data *settingsOfProject) {
			data.Name.Fill(values.Get)
			data.Name.Refuse(err)
		})
	}
	return s.site.DoneWithUndo(c, head.Path+"/settings", "The project is named “"+name+"” now.",
		undoSetting(c.Store, "the project has been renamed", func(ctx context.Context) (bool, error) {
			now, err := c.Store.GetProject(ctx, ref)
			return now.Name == name, err
		}, func(ctx context.Context) error {
			_, err := c.Store.UpdateProject(ctx, ref, souvenir.ProjectUpdate{Name: &head.Name})
			return err
		})), nil
}

// undoSetting returns a function that undoes a setting unless it has been changed again since. It checks and undoes in
// one transaction.
func undoSetting(store *souvenir.Store, what string, still func(context.Context) (bool, error),
	back func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		return store.Transaction(ctx, func(ctx context.Context) error {
			is, err := still(ctx)
			if err == nil && !is {
				err = &failure.Error{Status: http.StatusConflict, Message: "this cannot be undone: " + what + " again since"}
			}
			if err != nil {
				return err
			}
			return back(ctx)
		})
	}
}

// deleteProject deletes a project with its memories, if its name was typed as confirmation.
func (s *Service) deleteProject(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	head, err := s.projectAt(r, c, "Settings")
	if err != nil {
		return nil, err
	}
	if typed := strings.TrimSpace(values.Get("typed")); typed != strings.TrimSpace(head.Name) {
		wrong := failure.Invalid("typed", "typed is "+failure.Quote(typed)+", but the project is named "+
			failure.Quote(head.Name)+"; nothing was deleted")
		return s.settingsAgain(r, head, wrong, func(data *settingsOfProject) {
			data.Delete.Fill(values.Get)
			data.Delete.Refuse(wrong)
		})
	}
	if err := c.Store.DeleteProject(r.Context(),
		head.Reference(), &souvenir.DeletionOptions{WithMemories: true}); err != nil {
		return nil, err
	}
	text := "“" + head.Name + "” is deleted, with its memories."
	page, err := c.Store.Trash().Page(r.Context(), souvenir.TrashQuery{
		Kinds: []souvenir.TrashKind{souvenir.TrashProject}, Limit: latestDeleted})
	if err != nil {
		return nil, err
	}
	for _, entry := range page.Entries {
		if entry.ProjectID == head.ID && entry.Owner == head.Owner {
			return s.site.DeletedWithUndo(r, c, "/projects", head.Path, text, entry.ID), nil
		}
	}
	return s.site.Say(c, "/projects", text), nil // the trash is off
}
