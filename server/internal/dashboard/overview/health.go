package overview

import (
	"net/http"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// healthID is the id of the part of the overview that tells how well searches go.
const healthID = "health"

// health tells how well searches go.
type health struct {
	souvenir.EmbeddingStatus
	Index souvenir.IndexState // empty: as it was told before
}

// PercentChanged is how far a change of the model has come.
func (h health) PercentChanged() int {
	if h.Memories == 0 {
		return 100
	}
	return int(int64(h.Changed) * 100 / int64(h.Memories))
}

// Done is how many passages have their vectors.
func (h health) Done() int { return h.Passages - h.Pending }

// Percent is the same in percent: 100 only when nothing waits.
func (h health) Percent() int {
	if h.Passages == 0 {
		return 100
	}
	return int(int64(h.Done()) * 100 / int64(h.Passages))
}

// showHealth shows how far the vectors have come, for a script that asks again and again while there is something to
// do.
func (s *Service) showHealth(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	status, err := c.Store.Upkeep().EmbeddingStatus(r.Context())
	if err != nil {
		return nil, err
	}
	return web.Page{Template: "overview", Title: "Overview", Part: "backlog",
		Data: overviewPage{Health: health{EmbeddingStatus: status}}}, nil
}
