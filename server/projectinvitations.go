package server

import (
	"net/http"

	"github.com/souvenir-ai/souvenir"
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

// sharingRoutes are who takes part in which project. They are for people, and no tool offers them.
func (s *Server) sharingRoutes() []route {
	return []route{
		post("/api/projects/{id}/members", account, s.addMember),
		patch("/api/projects/{id}/members/{user}", account, s.updateMember),
		del("/api/projects/{id}/members/{user}", account, s.deleteMember),

		get("/api/project-invitations", account, s.listProjectInvitations),
		post("/api/project-invitations/{id}/accept", account, s.acceptProjectInvitation),
		post("/api/project-invitations/{id}/decline", account, s.declineProjectInvitation),
		post("/api/project-invitations/{id}/block", account, s.blockSender),

		get("/api/blocked-users", account, s.listBlockedUsers),
		del("/api/blocked-users/{user}", account, s.unblockUser),
	}
}

func (s *Server) listProjectInvitations(_ http.ResponseWriter, r *http.Request, c caller) (any, error) {
	all, err := c.store.ProjectInvitations(r.Context())
	return ProjectInvitationList{all, len(all)}, err
}

func (s *Server) acceptProjectInvitation(_ http.ResponseWriter, r *http.Request, c caller) (any, error) {
	p, err := c.store.AcceptProjectInvitation(r.Context(), r.PathValue("id"))
	return AcceptedInvitation{true, p, "you are a member of the project"}, err
}

func (s *Server) declineProjectInvitation(_ http.ResponseWriter, r *http.Request, c caller) (any, error) {
	err := c.store.DeclineProjectInvitation(r.Context(), r.PathValue("id"))
	return Done{true, "the invitation is declined; its sender is not told"}, err
}

func (s *Server) blockSender(_ http.ResponseWriter, r *http.Request, c caller) (any, error) {
	_, err := c.store.BlockSender(r.Context(), r.PathValue("id"))
	return Done{true, "the invitation is declined and its sender blocked, who is not told"}, err
}

func (s *Server) listBlockedUsers(_ http.ResponseWriter, r *http.Request, c caller) (any, error) {
	all, err := c.store.BlockedSenders(r.Context())
	return BlockedUserList{all, len(all)}, err
}

func (s *Server) unblockUser(_ http.ResponseWriter, r *http.Request, c caller) (any, error) {
	err := c.store.UnblockSender(r.Context(), r.PathValue("user"))
	return Done{true, "the user may send you invitations again"}, err
}
