// Package memories serves the pages of memories: the list and its search, one memory, its past versions, changes of
// one or of many, and merging.
package memories

import (
	"context"
	"log/slog"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/route"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// Options are the dependencies of a Service.
type Options struct {
	Site   *web.Site
	Store  *souvenir.Store // the operator's
	Logger *slog.Logger

	// Graph computes a graph of memories, as many at once as there are processors.
	Graph func(context.Context, request.Caller, souvenir.GraphQuery) (souvenir.Graph, error)
}

// Service serves the pages of memories. Create one with [New].
type Service struct {
	site      *web.Site
	store     *souvenir.Store
	log       *slog.Logger
	readGraph func(context.Context, request.Caller, souvenir.GraphQuery) (souvenir.Graph, error)
}

// New creates a Service.
func New(o Options) *Service {
	return &Service{site: o.Site, store: o.Store, log: o.Logger, readGraph: o.Graph}
}

// Routes are the routes of the list, bulk changes, and a memory's own pages and changes.
func (s *Service) Routes() []route.Route {
	const memory = "/memories/{id}"
	return []route.Route{
		route.Page("/memories", route.Person, s.showMemories),
		route.Post("/memories/bulk", route.Person, s.changeMemories),
		route.Page("/memories/compare", route.Person, s.showCompare),
		route.Page("/memories/found", route.Person, s.showToLink),
		route.Page("/find", route.Person, s.showFind),
		route.Page("/memories/new", route.Person, s.showNewMemory),
		route.Post("/memories/new", route.Person, s.addMemory),
		route.Post("/memories/preview", route.Person, s.previewMemory),
		route.Page("/memories/duplicates", route.Person, s.showDuplicates),
		route.Page("/memories/merge", route.Person, s.showMerge),
		route.Post("/memories/merge", route.Person, s.mergeMemories),

		route.Page(memory, route.Person, s.showMemory),
		route.Page(memory+"/similar", route.Person, s.showSimilar),
		route.Post(memory+"/set", route.Person, s.setOfMemory),
		route.Post(memory+"/delete", route.Person, s.deleteMemory),
		route.Post(memory+"/files", route.Person, s.linkFile),
		route.Post(memory+"/files/add", route.Person, s.addFileToMemory),
		route.Post(memory+"/files/unlink", route.Person, s.unlinkFile),

		route.Page(memory+"/edit", route.Person, s.showMemoryEdit),
		route.Post(memory+"/edit", route.Person, s.saveMemory),

		route.Page(memory+"/history", route.Person, s.showHistory),
		route.Post(memory+"/restore", route.Person, s.restoreRevision),
	}
}
