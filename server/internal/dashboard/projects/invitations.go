package projects

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// sharingPage is the data of the page of invitations to projects.
type sharingPage struct {
	Waiting      []invitationView
	Pages        web.Pager
	Blocked      []souvenir.BlockedSender
	BlockedPages web.Pager
	Error        string
}

// invitationView is an invitation on that page.
type invitationView struct {
	souvenir.ProjectInvitation
	From    string // the sender
	OwnedBy string // owner of the project, if not the sender
	May     string // the permissions of the role
}

func (s *Service) showProjectInvitations(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	return s.sharingPage(r, c, "")
}

func (s *Service) sharingPage(r *http.Request, c request.Caller, problem string) (web.Page, error) {
	all, err := c.Store.Accounts().ProjectInvitations(r.Context())
	if err != nil {
		return web.Page{}, err
	}
	data := sharingPage{Error: problem}
	all, data.Pages = web.Paginate(all, r, "waiting")
	for _, i := range all {
		view := invitationView{ProjectInvitation: i, From: cmp.Or(i.InvitedByName, i.InvitedBy)}
		if i.Owner != i.InvitedBy {
			view.OwnedBy = cmp.Or(i.OwnerName, i.Owner)
		}
		for _, role := range roleLabels {
			if role.Role == i.Role {
				view.May = role.May
			}
		}
		data.Waiting = append(data.Waiting, view)
	}
	blocked, err := c.Store.Accounts().BlockedSenders(r.Context())
	data.Blocked, data.BlockedPages = web.Paginate(blocked, r, "blocked")
	return web.Page{Template: "sharing", Title: "Project invitations", Data: data}, err
}

// answerProjectInvitation accepts or declines an invitation, blocks its sender, or unblocks one.
func (s *Service) answerProjectInvitation(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	id, to, notice := values.Get("id"), web.SharingPath, ""
	switch answer := values.Get("answer"); answer {
	case "accept":
		var p souvenir.Project
		p, err = c.Store.Accounts().AcceptProjectInvitation(r.Context(), id)
		to, notice = web.ProjectPath(p), "accepted"
	case "decline":
		err, notice = c.Store.Accounts().DeclineProjectInvitation(r.Context(), id), "declined"
	case "block":
		_, err = c.Store.Accounts().BlockSender(r.Context(), id)
		notice = "blocked"
	case "unblock":
		err, notice = c.Store.Accounts().UnblockSender(r.Context(), values.Get("user")), "unblocked"
		if errors.Is(err, souvenir.ErrNotFound) { // answered in another window
			err = nil
		}
	default:
		err = failure.Invalid("answer", "answer is "+failure.Quote(answer)+"; expected accept, decline, block or unblock")
	}
	if err == nil {
		return s.site.Done(to, notice), nil
	}
	_, message := failure.Describe(err)
	p, failed := s.sharingPage(r, c, web.Sentence(message))
	if failed != nil {
		return nil, failed
	}
	return web.Again(p, err)
}
