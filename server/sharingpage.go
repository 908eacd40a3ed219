package server

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/souvenir-ai/souvenir"
)

const sharingPath = "/project-invitations"

// sharingPageRoutes are the page of the invitations to projects, and what it does.
func (s *Server) sharingPageRoutes() []route {
	return []route{
		get(sharingPath, person, s.showProjectInvitations),
		post(sharingPath, person, s.answerProjectInvitation),
	}
}

// sharingPage is what the page of the invitations to projects shows.
type sharingPage struct {
	Waiting      []shownInvitation
	Pages        pager
	Blocked      []souvenir.BlockedSender
	BlockedPages pager
	Error        string
}

// shownInvitation is an invitation on that page.
type shownInvitation struct {
	souvenir.ProjectInvitation
	From    string // who sent it
	OwnedBy string // whose project it is, where that is another
	May     string // what the role allows
}

func (s *Server) showProjectInvitations(_ http.ResponseWriter, r *http.Request, c caller) (any, error) {
	return s.sharingPage(r, c, "")
}

func (s *Server) sharingPage(r *http.Request, c caller, problem string) (page, error) {
	all, err := c.store.ProjectInvitations(r.Context())
	if err != nil {
		return page{}, err
	}
	data := sharingPage{Error: problem}
	all, data.Pages = part(all, r, "waiting")
	for _, i := range all {
		shown := shownInvitation{ProjectInvitation: i, From: cmp.Or(i.InvitedByName, i.InvitedBy)}
		if i.Owner != i.InvitedBy {
			shown.OwnedBy = cmp.Or(i.OwnerName, i.Owner)
		}
		for _, role := range rolesInWords {
			if role.Role == i.Role {
				shown.May = role.May
			}
		}
		data.Waiting = append(data.Waiting, shown)
	}
	blocked, err := c.store.BlockedSenders(r.Context())
	data.Blocked, data.BlockedPages = part(blocked, r, "blocked")
	return page{template: "sharing", title: "Project invitations", data: data}, err
}

// answerProjectInvitation accepts or declines an invitation, blocks its sender, or unblocks one.
func (s *Server) answerProjectInvitation(w http.ResponseWriter, r *http.Request, c caller) (any, error) {
	values, err := s.readForm(w, r)
	if err != nil {
		return nil, err
	}
	id, to, notice := values.Get("id"), sharingPath, ""
	switch answer := values.Get("answer"); answer {
	case "accept":
		var p souvenir.Project
		p, err = c.store.AcceptProjectInvitation(r.Context(), id)
		to, notice = projectPath(p), "accepted"
	case "decline":
		err, notice = c.store.DeclineProjectInvitation(r.Context(), id), "declined"
	case "block":
		_, err = c.store.BlockSender(r.Context(), id)
		notice = "blocked"
	case "unblock":
		err, notice = c.store.UnblockSender(r.Context(), values.Get("user")), "unblocked"
		if errors.Is(err, souvenir.ErrNotFound) { // in another window
			err = nil
		}
	default:
		err = invalid("answer", "answer is "+quoted(answer)+"; allowed are accept, decline, block and unblock")
	}
	if err == nil {
		return s.done(to, notice), nil
	}
	_, message := told(err)
	p, failed := s.sharingPage(r, c, sentence(message))
	if failed != nil {
		return nil, failed
	}
	return again(p, err)
}
