package server

import (
	"errors"
	"net/http"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// ProjectList is the answer of GET /api/projects.
type ProjectList struct {
	Projects []souvenir.Project `json:"projects"`
	Count    int                `json:"count"`
}

// MemberList is the answer of GET /api/projects/:id/members.
type MemberList struct {
	Members []souvenir.Member        `json:"members"`
	Count   int                      `json:"count"`
	Invited []souvenir.InvitedMember `json:"invited,omitzero"` // pending invitations, for users who may invite
}

// ChangedMember is the answer to a change of a project's members.
type ChangedMember struct {
	Success bool                  `json:"success"` // true
	Status  souvenir.MemberStatus `json:"status"`  // of the member
	Member  souvenir.Member       `json:"member"`
	Message string                `json:"message"`
}

// newMember and newRole are the bodies of changes of a project's members.
type (
	newMember struct {
		strictBody
		User string              `json:"user"`
		Role souvenir.MemberRole `json:"role"`
	}
	newRole struct {
		strictBody
		Role souvenir.MemberRole `json:"role"`
	}
)

// Done is the answer to a deletion.
type Done struct {
	Success bool   `json:"success"` // true
	Message string `json:"message"`
}

// projectOf returns the project that a path names: its id, or OWNER%2FID.
func projectOf(r *http.Request) souvenir.ProjectRef {
	return souvenir.ProjectRef{ID: r.PathValue("id")}
}

func (s *Server) listProjects(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	all, err := c.Store.Projects(r.Context())
	return ProjectList{all, len(all)}, err
}

func (s *Server) getProject(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	return c.Store.GetProject(r.Context(), projectOf(r))
}

func (s *Server) listMembers(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	all, err := c.Store.Members(r.Context(), projectOf(r))
	if err != nil {
		return nil, err
	}
	invited, err := c.Store.InvitedMembers(r.Context(), projectOf(r))
	if errors.Is(err, souvenir.ErrForbidden) {
		invited, err = nil, nil
	}
	return MemberList{all, len(all), invited}, err
}

func (s *Server) addMember(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	var given newMember
	if err := s.readJSON(w, r, &given); err != nil {
		return nil, err
	}
	m, err := c.Store.AddMember(r.Context(), souvenir.NewMember{Project: projectOf(r), User: given.User, Role: given.Role})
	if err != nil {
		return nil, err
	}
	return ChangedMember{true, m.Status, m,
		"invited: the project is visible to a user of this name who accepts the invitation"}, nil
}

func (s *Server) updateMember(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	var given newRole
	if err := s.readJSON(w, r, &given); err != nil {
		return nil, err
	}
	m, err := c.Store.UpdateMember(r.Context(),
		projectOf(r), r.PathValue("user"), souvenir.MemberUpdate{Role: given.Role})
	if err != nil {
		return nil, err
	}
	message := "the role is " + string(m.Role)
	if m.Status == souvenir.MemberInvited {
		message = "invited: the role is " + string(m.Role) +
			" once the invitation is accepted; a member keeps the current role until then"
	}
	return ChangedMember{true, m.Status, m, message}, nil
}

func (s *Server) deleteMember(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	if err := c.Store.DeleteMember(r.Context(),
		projectOf(r), r.PathValue("user")); err != nil {
		return nil, err
	}
	return Done{true, "the user is no longer a member of the project, or invited to it"}, nil
}
