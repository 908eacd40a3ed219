package projects

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// collectionsPath is the page of the user's own collections, and with a name the page of one.
const collectionsPath = "/collections"

// collectionRow is a collection in the list of the user's own.
type collectionRow struct {
	souvenir.Collection
	Memories, Settings string // paths
	Stay               string // how long memories stay; empty: always
}

// collectionsPage is the data of the page of the user's own collections.
type collectionsPage struct {
	Collections []collectionRow
	All         int // their total, without the search
	Search      string
	Found       int
	Pages       web.Leaves
}

// collectionPage is the data of the page on which the owner of a collection says how long its memories stay.
type collectionPage struct {
	collectionRow
	Keep keepForm
}

func rowOf(c souvenir.Collection) collectionRow {
	return collectionRow{c, "/memories?" + url.Values{"collection": {c.Name}}.Encode(), settingsPath(c.Name),
		stay(c.Retention)}
}

func settingsPath(name string) string {
	return collectionsPath + "?" + url.Values{"name": {name}}.Encode()
}

func (s *Service) showCollections(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	if name := r.URL.Query().Get("name"); name != "" {
		found, err := ownCollection(r, c, name)
		return pageOf(found), err
	}
	all, err := c.Store.Collections(r.Context())
	data := collectionsPage{Search: r.URL.Query().Get("search")}
	var found []souvenir.Collection
	sought := strings.ToLower(strings.TrimSpace(data.Search))
	for _, one := range all {
		if one.Owner != c.User.ID {
			continue
		}
		data.All++
		if strings.Contains(strings.ToLower(one.Name), sought) {
			found = append(found, one)
		}
	}
	data.Found = len(found)
	view, at := web.Paginate(found, r, "part")
	data.Pages = web.LeavesOf(at, url.Values{"search": {data.Search}})
	for _, one := range view {
		data.Collections = append(data.Collections, rowOf(one))
	}
	return web.Page{Template: "collections", Title: "Collections", Data: data, Part: "collection-list"}, err
}

// ownCollection finds one of the user's own collections.
func ownCollection(r *http.Request, c request.Caller, name string) (souvenir.Collection, error) {
	found, err := c.Store.GetCollection(r.Context(), name)
	if err == nil && found.Owner != c.User.ID {
		err = &failure.Error{Status: http.StatusForbidden,
			Message: "collection " + failure.Quote(name) + " belongs to another user; only its owner may change it"}
	}
	return found, err
}

func pageOf(c souvenir.Collection) web.Page {
	data := &collectionPage{rowOf(c), newKeepForm(collectionsPath, c.Retention)}
	data.Keep.Name = c.Name
	return web.Page{Template: "collection", Title: "Settings of " + c.Name, Data: data}
}

// changeCollection sets the rule of a collection.
func (s *Service) changeCollection(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	name := values.Get("name")
	found, err := ownCollection(r, c, name)
	if err != nil {
		return nil, err
	}
	return s.keep(r.Context(), c, values, keeper{noun: "collection", page: settingsPath(name),
		due: souvenir.DueQuery{Collection: name}, rule: found.Retention,
		read: func(ctx context.Context) (souvenir.Retention, error) {
			now, err := c.Store.GetCollection(ctx, name)
			return now.Retention, err
		},
		write: func(ctx context.Context, rule souvenir.Retention) error {
			_, err := c.Store.UpdateCollection(ctx, name, souvenir.CollectionUpdate{Retention: &rule})
			return err
		},
		again: func(reason error, change func(*keepForm)) (any, error) {
			p := pageOf(found)
			if data, ok := p.Data.(*collectionPage); ok {
				change(&data.Keep)
			}
			if reason == nil {
				return p, nil
			}
			return web.Again(p, reason)
		}})
}
