// Package files serves the pages of files: the list, one file with its preview, and uploads.
package files

import (
	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/route"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// Service serves the pages of files. Create one with [New].
type Service struct {
	site  *web.Site
	store *souvenir.Store
}

// New creates a Service for a store, which must be the operator's.
func New(site *web.Site, store *souvenir.Store) *Service { return &Service{site: site, store: store} }

// Routes are the routes of files.
func (s *Service) Routes() []route.Route {
	return []route.Route{
		route.Page("/files", route.Person, s.showFiles),
		route.Post("/files", route.Person, s.uploadOnPage),
		route.Page("/files/{id}", route.Person, s.showFile),
		route.Post("/files/{id}/edit", route.Person, s.editFile),
		route.Post("/files/{id}/link", route.Person, s.linkToMemory),
		route.Post("/files/{id}/delete", route.Person, s.deleteFileOnPage),
	}
}
