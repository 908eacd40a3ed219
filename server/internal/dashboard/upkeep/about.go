package upkeep

import (
	"cmp"
	"net/http"
	"runtime"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// aboutPage is the data of the about page.
type aboutPage struct {
	Database bool // the store is in a database server, not in a file
	Program  []web.Fact
	Store    []web.Fact // nil unless the user is an admin
	Mine     []web.Fact
	Licences string // of third-party code served here
}

// place describes where a store is, and its size.
func place(c souvenir.Configuration, s souvenir.Stats) []web.Fact {
	if c.Path == "" {
		return []web.Fact{{Key: "Size", Value: web.Bytes(s.DatabaseBytes)}}
	}
	return []web.Fact{
		{Key: "File", Value: c.Path},
		{Key: "Size", Value: web.Bytes(s.DatabaseBytes) + " (" + web.Bytes(s.FreeBytes) + " unused)"},
		{Key: "Write-ahead log", Value: web.Bytes(s.LogBytes)},
	}
}

// changedSoFar describes the progress of a change of the embedding model.
func changedSoFar(e souvenir.EmbeddingStatus) string {
	return web.Thousands(e.Changed) + " of " + web.Count(e.Memories, "memory") + " done; searches use words until then"
}

func (s *Service) showAbout(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	configuration, err := s.store.Upkeep().Configuration(r.Context())
	if err != nil {
		return nil, err
	}
	status, err := c.Store.Upkeep().EmbeddingStatus(r.Context())
	if err != nil {
		return nil, err
	}
	data := aboutPage{
		Database: configuration.Path == "",
		Program: []web.Fact{
			{Key: "Souvenir", Value: cmp.Or(s.config.Version, "a build without a version")},
			{Key: "Interface", Value: s.config.APIVersion},
			{Key: "Go", Value: runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH},
			{Key: "Database", Value: configuration.Engine},
			{Key: "Embedding model", Value: configuration.Model + ", " + web.Count(configuration.Dimensions, "dimension")},
		},
		Mine: []web.Fact{{Key: "Searchable passages", Value: web.Thousands(status.Passages)},
			{Key: "Waiting for vectors", Value: web.Thousands(status.Pending)}},
	}
	if other := status.StoredModel; other != "" {
		data.Mine = append(data.Mine, web.Fact{Key: "Vectors of another model", Value: other + "; searches use words only"})
	}
	if status.Changing {
		data.Mine = append(data.Mine, web.Fact{Key: "Changing the embedding model", Value: changedSoFar(status)})
	}
	if c.User.Role == souvenir.RoleAdmin {
		stats, err := s.store.Upkeep().Stats(r.Context())
		if err != nil {
			return nil, err
		}
		data.Store = []web.Fact{
			{Key: "Users", Value: web.Thousands(stats.Users)},
			{Key: "Projects", Value: web.Thousands(stats.Projects)},
			{Key: "Memories", Value: web.Thousands(stats.Memories) + ", in " + web.Count(stats.Passages, "passage")},
			{Key: "Past versions of memories", Value: web.Thousands(stats.Revisions)},
			{Key: "Files", Value: web.Thousands(stats.Files) + ", " + web.Bytes(stats.FileBytes)},
			{Key: "Waiting for vectors", Value: web.Thousands(stats.Embedding.Pending)},
		}
		data.Store = append(place(configuration, stats), data.Store...)
	}
	if data.Licences, err = web.Licences(); err != nil {
		return nil, err
	}
	return web.Page{Template: "about", Title: "About", Data: data}, nil
}
