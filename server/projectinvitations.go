package server

import (
	"net/http"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// ProjectInvitationList is the answer of GET /api/project-invitations.
type ProjectInvitationList struct {
	Invitations []souvenir.ProjectInvitation `json:"invitations"`
	Count       int                          `json:"count"`
}

// AcceptedInvitation is the answer to POST /api/project-invitations/:id/accept.
type AcceptedInvitation struct {
	Success bool             `json:"success"` // true
	Project souvenir.Project `json:"project"`
	Message string           `json:"message"`
}

// BlockedUserList is the answer of GET /api/blocked-users.
type BlockedUserList struct {
	Blocked []souvenir.BlockedSender `json:"blocked"`
	Count   int                      `json:"count"`
}

func (s *Server) listProjectInvitations(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	all, err := c.Store.Accounts().ProjectInvitations(r.Context())
	return ProjectInvitationList{all, len(all)}, err
}

func (s *Server) acceptProjectInvitation(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	p, err := c.Store.Accounts().AcceptProjectInvitation(r.Context(), r.PathValue("id"))
	return AcceptedInvitation{true, p, "you are a member of the project"}, err
}

func (s *Server) declineProjectInvitation(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	err := c.Store.Accounts().DeclineProjectInvitation(r.Context(), r.PathValue("id"))
	return Done{true, "the invitation is declined; its sender is not notified"}, err
}

func (s *Server) blockSender(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	_, err := c.Store.Accounts().BlockSender(r.Context(), r.PathValue("id"))
	return Done{true, "the invitation is declined and its sender blocked, who is not notified"}, err
}

func (s *Server) listBlockedUsers(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	all, err := c.Store.Accounts().BlockedSenders(r.Context())
	return BlockedUserList{all, len(all)}, err
}

func (s *Server) unblockUser(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	err := c.Store.Accounts().UnblockSender(r.Context(), r.PathValue("user"))
	return Done{true, "the user may send you invitations again"}, err
}
