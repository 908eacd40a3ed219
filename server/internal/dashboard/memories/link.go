package memories

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

const (
	linksInForm = 50 // linked memories that the form shows
	linksFound  = 8  // memories that a search offers for a link
)

// showToLink finds memories that could be linked to one.
func (s *Service) showToLink(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values := r.URL.Query()
	e := memoryEdit{Seek: strings.TrimSpace(values.Get("seek"))}
	var err error
	e.Seen, err = s.toLink(r, c, e.Seek, append(values["related"], values.Get("self")))
	return web.Page{Template: "memoryfound", Title: "Memories to link", Data: e, Part: "memory-seen"}, err
}

// toLink returns memories that fit words, or have an id or the address of a page, except for some.
func (s *Service) toLink(r *http.Request, c request.Caller, seek string, except []string) ([]relatedMemory, error) {
	if seek == "" {
		return nil, nil
	}
	var found []relatedMemory
	add := func(m souvenir.Memory) {
		if !slices.Contains(except, m.ID) && len(found) < linksFound {
			found = append(found, relatedMemory{ID: m.ID, Title: Title(m.Content), EventType: m.EventType,
				UpdatedAt: m.UpdatedAt})
		}
	}
	if ids := relatedTyped(seek); len(ids) == 1 {
		m, err := c.Store.GetMemory(r.Context(), ids[0])
		if err == nil {
			add(m)
			return found, nil
		}
		if !errors.Is(err, souvenir.ErrNotFound) && !errors.Is(err, souvenir.ErrInvalid) {
			return nil, err
		}
	}
	results, err := c.Store.Search(r.Context(), souvenir.Query{Text: seek, Limit: 2 * linksFound})
	for _, hit := range results.Hits {
		add(hit.Memory)
	}
	return found, err
}
