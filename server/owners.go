package server

import (
	"net/http"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// OwnerIDs is the answer of GET /api/owner-ids/me.
type OwnerIDs struct {
	OwnerID  string             `json:"owner_id"` // user id of the caller
	User     souvenir.User      `json:"user"`
	Projects []souvenir.Project `json:"projects"` // the caller's own
	Shared   []souvenir.Owner   `json:"shared"`   // other owners whose projects the caller can see, with these projects
}

// ownerIDs returns the caller's id, and the users who share projects with the caller.
func (s *Server) ownerIDs(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	user, err := c.Store.Accounts().Me(r.Context())
	if err != nil {
		return nil, err
	}
	owners, err := c.Store.Insights().Owners(r.Context())
	if err != nil {
		return nil, err
	}
	return OwnerIDs{OwnerID: user.ID, User: user, Projects: owners[0].Projects,
		Shared: append([]souvenir.Owner{}, owners[1:]...)}, nil
}
