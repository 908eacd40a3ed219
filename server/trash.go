package server

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/params"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// TrashList is the answer of GET /api/trash.
type TrashList struct {
	Entries []souvenir.TrashEntry `json:"entries"`
	Page
}

// RestoredEntry is the answer to POST /api/trash/:id/restore.
type RestoredEntry struct {
	Success bool                `json:"success"` // true
	Entry   souvenir.TrashEntry `json:"entry"`
	Message string              `json:"message"`
}

// EmptiedTrash is the answer to DELETE /api/trash.
type EmptiedTrash struct {
	Success bool   `json:"success"` // true
	Erased  int    `json:"erased"`
	Message string `json:"message"`
}

// trashScopes are the scopes for seeing and restoring entries of a kind.
func trashScopes(kind souvenir.TrashKind) (read, write souvenir.Scope) {
	if kind == souvenir.TrashFile {
		return souvenir.ScopeFilesRead, souvenir.ScopeFilesWrite
	}
	return souvenir.ScopeMemoryRead, souvenir.ScopeMemoryWrite
}

// trashKinds are the kinds of entries in a list: the requested one, or all that the credential may see.
func trashKinds(c request.Caller, asked string) ([]souvenir.TrashKind, error) {
	all := []souvenir.TrashKind{souvenir.TrashMemory, souvenir.TrashFile, souvenir.TrashProject, souvenir.TrashCollection}
	if kind := souvenir.TrashKind(asked); asked != "" {
		if !slices.Contains(all, kind) {
			return nil, failure.Invalid("kind", "kind is "+failure.Quote(asked)+
				"; expected memory, file, project or collection")
		}
		all = []souvenir.TrashKind{kind}
	}
	seen := slices.DeleteFunc(slices.Clone(all), func(kind souvenir.TrashKind) bool {
		read, _ := trashScopes(kind)
		return !c.Allows(read)
	})
	if len(seen) == 0 {
		read, _ := trashScopes(all[0])
		return nil, failure.MissingScope(read)
	}
	return seen, nil
}

func (s *Server) listTrash(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	wanted, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, failure.Invalid("query", "the query cannot be read: "+err.Error())
	}
	q := souvenir.TrashQuery{}
	if q.Kinds, err = trashKinds(c, wanted.Get("kind")); err != nil {
		return nil, err
	}
	if q.Limit, err = params.Number(wanted, "limit", 1, souvenir.MaxTrashLimit); err != nil {
		return nil, err
	}
	if q.Offset, err = params.Number(wanted, "offset", 0, params.MaxOffset); err != nil {
		return nil, err
	}
	p, err := c.Store.Trash().Page(r.Context(), q)
	return TrashList{p.Entries, Page{len(p.Entries), p.Total, p.Offset, p.Limit, p.HasMore()}}, err
}

func (s *Server) restoreTrashed(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	if !c.Allows(souvenir.ScopeMemoryWrite) && !c.Allows(souvenir.ScopeFilesWrite) {
		return nil, failure.MissingScope(souvenir.ScopeMemoryWrite)
	}
	found, err := c.Store.Trash().Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	read, write := trashScopes(found.Kind)
	switch {
	case !c.Allows(read): // it must not learn that the entry exists
		return nil, &souvenir.Error{Kind: souvenir.KindNotFound, Argument: "id",
			Message: "id " + failure.Quote(r.PathValue("id")) + " is not in the trash, or you have no access to it"}
	case !c.Allows(write):
		return nil, failure.MissingScope(write)
	}
	e, err := c.Store.Trash().Restore(r.Context(), r.PathValue("id"))
	return RestoredEntry{true, e, "it is restored"}, err
}

func (s *Server) eraseTrashed(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	err := c.Store.Trash().Erase(r.Context(), r.PathValue("id"))
	return Done{true, "it is erased permanently; earlier backups still contain it"}, err
}

func (s *Server) emptyTrash(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	n, err := c.Store.Trash().Empty(r.Context())
	return EmptiedTrash{true, n, "everything of yours in the trash is erased permanently; earlier backups still " +
		"contain it"}, err
}
