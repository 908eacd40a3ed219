package server

import (
	"cmp"
	"net/http"
	"runtime"

	"github.com/souvenir-ai/souvenir"
)

// aboutPage is what the page shows that says what this is.
type aboutPage struct {
	Program  []fact
	Store    []fact // nil unless the user is an admin
	Mine     []fact
	Licences string // of what others have written and is served here
}

// changedSoFar tells how far a change of the embedding model has come.
func changedSoFar(e souvenir.EmbeddingStatus) string {
	return thousands(e.Changed) + " of " + count(e.Memories, "memory") + " done; searches use words until then"
}

// licences is the file of web/static that says under which terms the others' files there are.
const licences = "vendor/LICENSES.txt"

func (s *Server) showAbout(_ http.ResponseWriter, r *http.Request, c caller) (any, error) {
	configuration, err := s.store.Configuration(r.Context())
	if err != nil {
		return nil, err
	}
	status, err := c.store.EmbeddingStatus(r.Context())
	if err != nil {
		return nil, err
	}
	data := aboutPage{
		Program: []fact{
			{"Souvenir", cmp.Or(s.options.Version, "a build without a version")},
			{"Interface", APIVersion},
			{"Go", runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH},
			{"SQLite", configuration.SQLite},
			{"Embedding model", configuration.Model + ", " + count(configuration.Dimensions, "dimension")},
		},
		Mine: []fact{{"Passages that are searched", thousands(status.Passages)}, {"Waiting for their vectors", thousands(status.Pending)}},
	}
	if status.Changing {
		data.Mine = append(data.Mine, fact{"Changing the embedding model", changedSoFar(status)})
	}
	if c.User.Role == souvenir.RoleAdmin {
		stats, err := s.store.Stats(r.Context())
		if err != nil {
			return nil, err
		}
		data.Store = []fact{
			{"File", configuration.Path},
			{"Its size", bytesInWords(stats.DatabaseBytes) + ", of which " + bytesInWords(stats.FreeBytes) + " are free for new content"},
			{"Log beside it", bytesInWords(stats.WALBytes)},
			{"Users", thousands(stats.Users)},
			{"Projects", thousands(stats.Projects)},
			{"Memories", thousands(stats.Memories) + ", in " + count(stats.Passages, "passage")},
			{"Former states of memories", thousands(stats.Revisions)},
			{"Files", thousands(stats.Files) + ", " + bytesInWords(stats.FileBytes)},
			{"Waiting for their vectors", thousands(stats.Embedding.Pending)},
		}
	}
	all, err := assets()
	if err != nil {
		return nil, err
	}
	data.Licences = string(all[licences].plain)
	return page{template: "about", title: "About", data: data}, nil
}
