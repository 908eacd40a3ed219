// Package trash is the page of what was deleted and can be restored.
package trash

import (
	"net/http"
	"strconv"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/route"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// Service answers on the page of the trash. Make one with [New].
type Service struct {
	site *web.Site
}

// New makes the room.
func New(site *web.Site) *Service { return &Service{site: site} }

// Routes are the page of the trash, and what it does.
func (s *Service) Routes() []route.Route {
	return []route.Route{
		route.Get(web.TrashPath, route.Person, s.showTrash),
		route.Post(web.TrashPath, route.Person, s.changeTrash),
	}
}

// trashPage is what the page of the trash shows.
type trashPage struct {
	Entries []souvenir.TrashEntry
	Total   int
	Own     bool // there is something here that the user may erase
	Pages   web.Pager
	Asks    *web.Question // nil: nothing is asked
	Error   string
}

func (s *Service) showTrash(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	return s.trashPage(r, c, "")
}

func (s *Service) trashPage(r *http.Request, c request.Caller, problem string) (web.Page, error) {
	data := trashPage{Error: problem, Pages: web.Pager{Name: "entries", Page: 1}}
	if asked, err := strconv.Atoi(r.URL.Query().Get("entries")); err == nil {
		data.Pages.Page = min(max(asked, 1), 1_000_000)
	}
	p, err := c.Store.ListTrash(r.Context(), souvenir.TrashQuery{Limit: web.PerPage, Offset: (data.Pages.Page - 1) * web.PerPage})
	if err != nil {
		return web.Page{}, err
	}
	if r.URL.Query().Get("empty") != "" {
		data.Asks = &web.Question{ID: "empty", Title: "Erase everything here?", Action: web.TrashPath, Button: "Empty the trash", Back: web.TrashPath,
			Text: "Everything below that lies in your own places is erased for good. This cannot be undone.", Kept: []web.Fact{{Key: "action", Value: "empty"}}}
	}
	data.Pages.Pages = max(1, (p.Total+web.PerPage-1)/web.PerPage)
	data.Entries, data.Total = p.Entries, p.Total
	for _, e := range p.Entries {
		data.Own = data.Own || e.Own
	}
	return web.Page{Template: "trash", Title: "Trash", Data: data}, nil
}

// changeTrash restores or erases an entry, or erases all.
func (s *Service) changeTrash(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	notice := ""
	switch action := values.Get("action"); action {
	case "restore":
		_, err = c.Store.RestoreTrashed(r.Context(), values.Get("id"))
		notice = "restored"
	case "erase":
		err, notice = c.Store.EraseTrashed(r.Context(), values.Get("id")), "erased"
	case "empty":
		_, err = c.Store.EmptyTrash(r.Context())
		notice = "emptied"
	default:
		err = failure.Invalid("action", "action is "+failure.Quote(action)+"; allowed are empty, erase and restore")
	}
	if err == nil {
		return s.site.Done(web.TrashPath, notice), nil
	}
	_, message := failure.Describe(err)
	p, failed := s.trashPage(r, c, web.Sentence(message))
	if failed != nil {
		return nil, failed
	}
	return web.Again(p, err)
}
