package upkeep

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/signin"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// usersPage is the data of the page of users.
type usersPage struct {
	Search string // a part of the name or e-mail address; empty: all users
	Users  []managedUser
	Pages  web.Leaves
	Error  string
}

// managedUser is an account, as an admin sees it.
type managedUser struct {
	souvenir.User
	Own bool // it is the admin's own
}

func (s *Service) users(r *http.Request, c request.Caller) (web.Page, *usersPage, error) {
	data := &usersPage{Search: strings.TrimSpace(r.URL.Query().Get("search"))}
	q := souvenir.UserQuery{Text: data.Search, Accounts: true, Limit: web.PerPage}
	q.Offset = (web.PageNumber(r, "users") - 1) * q.Limit
	page, err := s.store.Accounts().UserPage(r.Context(), q)
	if err == nil && len(page.Users) == 0 && page.Total > 0 { // past the last page
		q.Offset = (page.Total - 1) / q.Limit * q.Limit
		page, err = s.store.Accounts().UserPage(r.Context(), q)
	}
	if err != nil {
		return web.Page{}, nil, err
	}
	pager := web.Pager{Name: "users", Page: q.Offset/q.Limit + 1, Pages: max(1, (page.Total+q.Limit-1)/q.Limit)}
	data.Pages = web.LeavesOf(pager, url.Values{"search": {data.Search}})
	for _, u := range page.Users {
		data.Users = append(data.Users, managedUser{u, u.ID == c.User.ID})
	}
	return web.Page{Template: "users", Title: "Users", Data: data}, data, nil
}

func (s *Service) showUsers(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	p, _, err := s.users(r, c)
	return p, err
}

// updateUser changes a user as the form requests. Admins can change only others, so that they cannot lock
// themselves out.
func (s *Service) updateUser(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	yes, no, admin, user := true, false, souvenir.RoleAdmin, souvenir.RoleUser
	switch values.Get("change") {
	case "user-password":
		return s.resetPassword(w, r, c, values)
	case "user-delete":
		return s.deleteUser(w, r, c, values)
	}
	changes := map[string]souvenir.UserUpdate{
		"user-disabled": {Disabled: &yes}, "user-enabled": {Disabled: &no}, "user-admin": {Role: &admin},
		"user-user": {Role: &user},
	}
	change, known := changes[values.Get("change")]
	switch {
	case !known:
		err = failure.Invalid("change", "change is "+failure.Quote(values.Get("change"))+
			"; expected user-disabled, user-enabled, user-admin, user-user, user-password or user-delete")
	case values.Get("id") == c.User.ID:
		err = ownAccount
	default:
		_, err = s.store.Accounts().UpdateUser(r.Context(), values.Get("id"), change)
	}
	if err != nil {
		return s.usersAgain(r, c, err)
	}
	return s.site.Done("/users", values.Get("change")), nil
}

// ownAccount is the error for an admin's change of their own account.
var ownAccount = &failure.Error{Status: http.StatusBadRequest, Message: "this is your own account; ask another admin"}

// usersAgain is the page of users with an error.
func (s *Service) usersAgain(r *http.Request, c request.Caller, err error) (any, error) {
	p, data, failed := s.users(r, c)
	if failed != nil {
		return nil, failed
	}
	_, message := failure.Describe(err)
	data.Error = web.Sentence(message)
	return web.Again(p, err)
}

// invitationsPage is the data of the page of invitations.
type invitationsPage struct {
	web.Form
	Role  string // the chosen one
	Open  []souvenir.Invitation
	Pages web.Pager
	Names map[string]string // of users, by id
	Link  string            // to a new invitation, which is shown this once; empty: none
	Made  souvenir.Invitation
}

func (s *Service) invitations(r *http.Request) (web.Page, *invitationsPage, error) {
	data := &invitationsPage{Role: string(souvenir.RoleUser), Names: map[string]string{},
		Form: web.Form{Fields: []web.Field{
			{Name: "note", Label: "Note", Type: "text", Autocomplete: "off", Hint: "Shown only in this list.", Optional: true},
			{Name: "email", Label: "E-mail", Type: "email", Autocomplete: "off",
				Hint: "The e-mail address of the account. Nothing is sent to it.", Optional: true},
		}}}
	all, err := s.store.Accounts().Invitations(r.Context())
	if err != nil {
		return web.Page{}, nil, err
	}
	now := time.Now()
	all = slices.DeleteFunc(all, func(i souvenir.Invitation) bool { return !i.UsedAt.IsZero() || i.ExpiresAt.Before(now) })
	data.Open, data.Pages = web.Paginate(all, r, "open")
	for _, i := range data.Open {
		if _, known := data.Names[i.CreatedBy]; known || i.CreatedBy == "" {
			continue
		}
		u, err := s.store.Accounts().GetUser(r.Context(), i.CreatedBy)
		if err != nil && !errors.Is(err, souvenir.ErrNotFound) { // deleted
			return web.Page{}, nil, err
		}
		data.Names[i.CreatedBy] = u.Name
	}
	return web.Page{Template: "invitations", Title: "Invitations", Data: data}, data, nil
}

func (s *Service) showInvitations(_ http.ResponseWriter, r *http.Request, _ request.Caller) (any, error) {
	p, _, err := s.invitations(r)
	return p, err
}

// invite creates an invitation and shows its link, this once.
func (s *Service) invite(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	added, err := s.store.Accounts().AddInvitation(r.Context(), souvenir.NewInvitation{
		Role: souvenir.Role(values.Get("role")), Email: values.Get("email"), Note: values.Get("note"), CreatedBy: c.User.ID,
	})
	p, data, failed := s.invitations(r)
	if failed != nil {
		return nil, failed
	}
	if err != nil {
		data.Role = values.Get("role")
		data.Fill(values.Get)
		data.Refuse(err)
		return web.Again(p, err)
	}
	data.Link, data.Made = s.site.PublicURL+signin.InvitePath(added.Value), added.Invitation
	return p, nil
}

func (s *Service) revokeInvitation(w http.ResponseWriter, r *http.Request, _ request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	if err := s.store.Accounts().RevokeInvitation(r.Context(), values.Get("id")); err != nil &&
		!errors.Is(err, souvenir.ErrNotFound) {
		return nil, err
	}
	return s.site.Done("/invitations", "invitation"), nil
}
