package memories

import (
	"context"
	"net/http"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// newMemory loads the data of the form for a memory that does not exist yet.
func (s *Service) newMemory(r *http.Request, c request.Caller) (*memoryEdit, error) {
	e := &memoryEdit{Wrong: map[string]string{}, New: true}
	e.Owner, e.Path = c.User.ID, "/memories"
	collections, err := c.Store.Collections(r.Context())
	if err != nil {
		return nil, err
	}
	e.Collections = []web.Option{{Label: "Default"}}
	for i, found := range collections {
		again := i > 0 && collections[i-1].Name == found.Name // several owners may use the same name
		if found.Name != souvenir.DefaultCollection && !again {
			e.Collections = append(e.Collections, web.Option{Value: found.Name, Label: found.Name})
		}
	}
	return e, nil
}

func (s *Service) showNewMemory(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	e, err := s.newMemory(r, c)
	if err != nil {
		return nil, err
	}
	e.Typed.take(r.URL.Query()) // a link can lead to the form of a project
	e.Collection = r.URL.Query().Get("collection")
	return s.editPage(r, c, e)
}

// addMemory stores a memory. If near duplicates exist, it redirects to the page that compares them.
func (s *Service) addMemory(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadLongForm(w, r)
	if err != nil {
		return nil, err
	}
	e, err := s.newMemory(r, c)
	if err != nil {
		return nil, err
	}
	e.Typed.take(values)
	e.Collection = strings.TrimSpace(values.Get("collection"))
	if values.Get("preview") != "" { // the button without JavaScript
		e.Focus, e.Seek = "content", strings.TrimSpace(values.Get("seek"))
		return s.editPage(r, c, e)
	}
	m := souvenir.NewMemory{Content: strings.TrimSpace(e.Typed.Content), Collection: e.Collection, Similar: maxMerge - 1}
	if m.ShownMetadata, m.Metadata, err = e.Typed.patch(memoryHead{}); err != nil {
		return s.refused(r, c, e, err)
	}
	stored, err := c.Store.AddMemory(r.Context(), m)
	if err != nil {
		return s.refused(r, c, e, err)
	}
	return s.added(c, stored), nil
}

// added redirects to a memory that was stored, or to the page that compares it with its near duplicates.
func (s *Service) added(c request.Caller, stored souvenir.StoredMemory) web.Redirect {
	path, text := "/memories/"+stored.ID, "Memory stored."
	if len(stored.Similar) > 0 {
		ids := []string{stored.ID}
		for _, similar := range stored.Similar {
			ids = append(ids, similar.ID)
		}
		path = mergeAddress(ids)
		text = "Memory stored. " + web.Count(len(stored.Similar), "other memory") +
			" are near duplicates: merge them here, or cancel."
		if len(stored.Similar) == 1 {
			text = "Memory stored. Another one is a near duplicate: merge them here, or cancel."
		}
	}
	step := web.Step{Text: text, Path: "/memories", Bytes: 256, Back: func(ctx context.Context) error {
		now, err := c.Store.GetMemory(ctx, stored.ID)
		if err != nil {
			return err
		}
		if now.Revision != stored.Revision {
			return &failure.Error{Status: http.StatusConflict,
				Message: "the memory has been changed since; delete it on its page if you do not want it"}
		}
		return c.Store.DeleteMemory(ctx, stored.ID, nil)
	}}
	return s.site.StepDone(c, path, step)
}
