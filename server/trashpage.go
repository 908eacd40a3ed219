package server

import (
	"net/http"
	"strconv"

	"github.com/souvenir-ai/souvenir"
)

const trashPath = "/trash"

// trashPageRoutes are the page of the trash, and what it does.
func (s *Server) trashPageRoutes() []route {
	return []route{
		get(trashPath, person, s.showTrash),
		post(trashPath, person, s.changeTrash),
	}
}

// trashPage is what the page of the trash shows.
type trashPage struct {
	Entries []souvenir.TrashEntry
	Total   int
	Own     bool // there is something here that the user may erase
	Pages   pager
	Asks    *question // nil: nothing is asked
	Error   string
}

func (s *Server) showTrash(_ http.ResponseWriter, r *http.Request, c caller) (any, error) {
	return s.trashPage(r, c, "")
}

func (s *Server) trashPage(r *http.Request, c caller, problem string) (page, error) {
	data := trashPage{Error: problem, Pages: pager{Name: "entries", Page: 1}}
	if asked, err := strconv.Atoi(r.URL.Query().Get("entries")); err == nil {
		data.Pages.Page = min(max(asked, 1), 1_000_000)
	}
	p, err := c.store.ListTrash(r.Context(), souvenir.TrashQuery{Limit: listed, Offset: (data.Pages.Page - 1) * listed})
	if err != nil {
		return page{}, err
	}
	if r.URL.Query().Get("empty") != "" {
		data.Asks = &question{ID: "empty", Title: "Erase everything here?", Action: trashPath, Button: "Empty the trash", Back: trashPath,
			Text: "Everything below that lies in your own places is erased for good. This cannot be undone.", Kept: []fact{{"action", "empty"}}}
	}
	data.Pages.Pages = max(1, (p.Total+listed-1)/listed)
	data.Entries, data.Total = p.Entries, p.Total
	for _, e := range p.Entries {
		data.Own = data.Own || e.Own
	}
	return page{template: "trash", title: "Trash", data: data}, nil
}

// changeTrash restores or erases an entry, or erases all.
func (s *Server) changeTrash(w http.ResponseWriter, r *http.Request, c caller) (any, error) {
	values, err := s.readForm(w, r)
	if err != nil {
		return nil, err
	}
	notice := ""
	switch action := values.Get("action"); action {
	case "restore":
		_, err = c.store.RestoreTrashed(r.Context(), values.Get("id"))
		notice = "restored"
	case "erase":
		err, notice = c.store.EraseTrashed(r.Context(), values.Get("id")), "erased"
	case "empty":
		_, err = c.store.EmptyTrash(r.Context())
		notice = "emptied"
	default:
		err = invalid("action", "action is "+quoted(action)+"; allowed are empty, erase and restore")
	}
	if err == nil {
		return s.done(trashPath, notice), nil
	}
	_, message := told(err)
	p, failed := s.trashPage(r, c, sentence(message))
	if failed != nil {
		return nil, failed
	}
	return again(p, err)
}
