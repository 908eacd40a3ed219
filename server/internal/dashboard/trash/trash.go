// Package trash serves the page of deleted items that can be restored.
package trash

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/route"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

const maxChosen = 1000 // entries that one step restores or erases

// Service serves the page of the trash. Create one with [New].
type Service struct {
	site *web.Site
}

// New creates a Service.
func New(site *web.Site) *Service { return &Service{site: site} }

// Routes are the routes of the trash.
func (s *Service) Routes() []route.Route {
	return []route.Route{
		route.Page(web.TrashPath, route.Person, s.showTrash),
		route.Post(web.TrashPath, route.Person, s.changeTrash),
	}
}

// trashPage is the data of the page of the trash.
type trashPage struct {
	Entries []trashRow
	Kinds   []kindLink
	Kind    souvenir.TrashKind // only these; empty: all
	Total   int
	Own     bool // there are entries that the user may erase
	Pages   web.Pager
	Leaves  web.Leaves    // the same, with the kind
	Asks    *web.Question // nil: no question
	Error   string
}

// trashRow is a deleted item.
type trashRow struct {
	souvenir.TrashEntry
	Client string // the user's client that deleted it; empty: none, or not known
}

// kindLink is a link to the items of a kind.
type kindLink struct {
	Name, Path string
	Here       bool
}

// kindLinks are the links to choose a kind of items.
func kindLinks(chosen souvenir.TrashKind) []kindLink {
	links := []kindLink{{"Everything", web.TrashPath, chosen == ""}}
	for _, kind := range []struct {
		value souvenir.TrashKind
		name  string
	}{{souvenir.TrashMemory, "Memories"}, {souvenir.TrashFile, "Files"}, {souvenir.TrashProject, "Projects"},
		{souvenir.TrashCollection, "Collections"}} {
		links = append(links, kindLink{kind.name, web.TrashPath + "?kind=" + string(kind.value), chosen == kind.value})
	}
	return links
}

// deleters returns the names of the user's clients that deleted memories, by memory, of the latest deletions.
func deleters(ctx context.Context, c request.Caller) (map[string]string, error) {
	found, err := c.Store.Insights().ActivityPage(ctx, souvenir.ActivityQuery{Tool: "memory", Action: "delete",
		Outcome: souvenir.OutcomeOK, Limit: souvenir.MaxActivityLimit})
	names := map[string]string{}
	for _, a := range found.Activities {
		if name := cmp.Or(web.ShortName(a.Credential.Name), web.ClientName(a.Client)); names[a.MemoryID] == "" {
			names[a.MemoryID] = name
		}
	}
	return names, err
}

func (s *Service) showTrash(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	return s.trashPage(r, c, "")
}

func (s *Service) trashPage(r *http.Request, c request.Caller, problem string) (web.Page, error) {
	data := trashPage{Error: problem, Pages: web.Pager{Name: "entries", Page: 1}}
	if asked, err := strconv.Atoi(r.URL.Query().Get("entries")); err == nil {
		data.Pages.Page = min(max(asked, 1), 1_000_000)
	}
	q := souvenir.TrashQuery{Limit: web.PerPage, Offset: (data.Pages.Page - 1) * web.PerPage}
	if data.Kind = souvenir.TrashKind(r.URL.Query().Get("kind")); data.Kind != "" {
		q.Kinds = []souvenir.TrashKind{data.Kind}
	}
	data.Kinds = kindLinks(data.Kind)
	p, err := c.Store.Trash().Page(r.Context(), q)
	if err != nil {
		return web.Page{}, err
	}
	if r.URL.Query().Get("empty") != "" {
		data.Asks = &web.Question{ID: "empty", Title: fmt.Sprintf("Erase %s?", web.Count(p.Total, "entry")),
			Action: web.TrashPath, Button: "Empty the trash", Back: web.TrashPath,
			Text: fmt.Sprintf("%s here. Those that are yours are erased permanently, with their history. "+
				"This cannot be undone.", web.Count(p.Total, "entry")),
			Kept: []web.Fact{{Key: "action", Value: "empty"}}}
	}
	data.Pages.Pages = max(1, (p.Total+web.PerPage-1)/web.PerPage)
	data.Leaves = web.LeavesOf(data.Pages, url.Values{"kind": {string(data.Kind)}})
	data.Total = p.Total
	names := map[string]string{}
	if slices.ContainsFunc(p.Entries, func(e souvenir.TrashEntry) bool { return e.Through == "tool" }) {
		if names, err = deleters(r.Context(), c); err != nil {
			return web.Page{}, err
		}
	}
	for _, e := range p.Entries {
		data.Own = data.Own || e.Own
		data.Entries = append(data.Entries, trashRow{e, names[e.ID]})
	}
	return web.Page{Template: "trash", Title: "Trash", Data: data}, nil
}

// changeTrash restores or erases the chosen entries, or erases all.
func (s *Service) changeTrash(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	ids, notice := values["id"], ""
	action := values.Get("action")
	if (action == "restore" || action == "erase") && (len(ids) == 0 || len(ids) > maxChosen) {
		return nil, failure.Invalid("id", fmt.Sprintf("id is given %d times; select 1 to %d entries", len(ids), maxChosen))
	}
	switch action {
	case "restore":
		var back []souvenir.TrashEntry
		err = eachTrashed(r.Context(), ids, func(ctx context.Context, id string) error {
			entry, err := c.Store.Trash().Restore(ctx, id)
			if err == nil {
				back = append(back, entry)
			}
			return err
		})
		if err == nil {
			return s.restoredWithUndo(r.Context(), c, back)
		}
	case "erase":
		if values.Get("sure") == "" {
			return askErase(r.Context(), c, ids), nil
		}
		err, notice = eachTrashed(r.Context(), ids, c.Store.Trash().Erase), "erased"
	case "empty":
		_, err = c.Store.Trash().Empty(r.Context())
		notice = "emptied"
	default:
		err = failure.Invalid("action", "action is "+failure.Quote(action)+"; expected empty, erase or restore")
	}
	if err == nil {
		return s.site.Done(web.TrashPath, notice), nil
	}
	_, message := failure.Describe(err)
	if some := (*someFailed)(nil); errors.As(err, &some) {
		message = some.Error()
	}
	p, failed := s.trashPage(r, c, web.Sentence(message))
	if failed != nil {
		return nil, failed
	}
	return web.Again(p, err)
}

// askErase asks for confirmation before entries are erased, with their number, or the title of the only one.
func askErase(ctx context.Context, c request.Caller, ids []string) web.Page {
	kept := []web.Fact{{Key: "action", Value: "erase"}, {Key: "sure", Value: "yes"}}
	for _, id := range ids {
		kept = append(kept, web.Fact{Key: "id", Value: id})
	}
	title, text := web.Count(len(ids), "entry"), "The selected items are erased with their history. This cannot be undone."
	if len(ids) == 1 {
		if entry, err := c.Store.Trash().Get(ctx, ids[0]); err == nil {
			title, text = "“"+web.Shortened(entry.Title)+"”", "It is erased with its history. This cannot be undone."
		}
	}
	return web.Page{Template: "asks", Title: "Erase", Data: web.QuestionPage{Asks: &web.Question{
		ID: "erase", Title: "Erase " + title + " permanently?", Action: web.TrashPath,
		Button: "Erase", Back: web.TrashPath, Text: text, Kept: kept,
	}}}
}

// someFailed reports how many of several entries were left unchanged, and the first error.
type someFailed struct {
	failed, all int
	first       error
}

func (e *someFailed) Error() string {
	_, message := failure.Describe(e.first)
	return fmt.Sprintf("%d of the %d entries are unchanged, the first because %s", e.failed, e.all, message)
}

func (e *someFailed) Unwrap() error { return e.first }

// eachTrashed applies do to each entry. An entry that depends on another one, such as a memory on its project, is
// retried after that.
func eachTrashed(ctx context.Context, ids []string, do func(context.Context, string) error) error {
	left := slices.Clone(ids)
	for {
		var failed []string
		var first error
		for _, id := range left {
			if err := do(ctx, id); err != nil {
				if first == nil {
					first = err
				}
				failed = append(failed, id)
			}
		}
		switch {
		case first == nil:
			return nil
		case len(ids) == 1 || ctx.Err() != nil:
			return first
		case len(failed) == len(left):
			return &someFailed{len(failed), len(ids), first}
		}
		left = failed
	}
}
