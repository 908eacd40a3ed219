package overview

import (
	"net/http"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// healthID is the id of the overview's part about the state of search.
const healthID = "health"

// health is the state of search.
type health struct {
	souvenir.EmbeddingStatus
	Index souvenir.IndexState // empty: as before
}

// PercentChanged is the progress of a change of the model.
func (h health) PercentChanged() int {
	if h.Memories == 0 {
		return 100
	}
	return int(int64(h.Changed) * 100 / int64(h.Memories))
}

// Done is the number of passages with vectors.
func (h health) Done() int { return h.Passages - h.Pending }

// Percent is Done in percent: 100 only when nothing is pending.
func (h health) Percent() int {
	if h.Passages == 0 {
		return 100
	}
	return int(int64(h.Done()) * 100 / int64(h.Passages))
}

// showHealth shows the progress of the vectors, for a script that polls it until they are complete.
func (s *Service) showHealth(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	status, err := c.Store.Upkeep().EmbeddingStatus(r.Context())
	if err != nil {
		return nil, err
	}
	return web.Page{Template: "overview", Title: "Overview", Part: "backlog",
		Data: overviewPage{Health: health{EmbeddingStatus: status}}}, nil
}
