package projects

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// membersPage is the data of the page of a project's members.
type membersPage struct {
	Head    projectHead
	Members []memberView
	Pages   web.Pager
	Invited []souvenir.InvitedMember // pending invitations; for users who may invite
	Waiting web.Pager
	New     web.Form
	Role    souvenir.MemberRole // selected for a new member
	People  []person            // whom the page suggests
	Sought  string              // a part of their names; empty: any
	All     bool                // they are found among all users, for an admin
	Roles   []roleLabel
}

// memberView is a member as the page shows it.
type memberView struct {
	souvenir.Member
	Shown    string // name, or id of a user without one
	You      bool
	OfRecord bool // the project's owner of record
}

// roleLabel describes what a role allows.
type roleLabel struct {
	Role souvenir.MemberRole
	Name string
	May  string
}

var roleLabels = []roleLabel{
	{souvenir.MemberReader, "Reader", "can search and read the project, and see its members"},
	{souvenir.MemberWriter, "Writer",
		"can also store, change and delete memories, and write rules and the to-do"},
	{souvenir.MemberOwner, "Owner", "can also rename the project and manage its members"},
}

func newMemberForm() web.Form {
	return web.Form{Fields: []web.Field{{Name: "user", Label: "Name", Type: "text", Autocomplete: "off",
		Hint: "The name they sign in with here. They see nothing of the project until they accept."}}}
}

func (s *Service) showMembers(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	return s.membersPage(r, c, newMemberForm(), souvenir.MemberReader)
}

func (s *Service) membersPage(r *http.Request, c request.Caller, form web.Form, role souvenir.MemberRole) (web.Page,
	error) {
	head, err := s.projectAt(r, c, "Members")
	if err != nil {
		return web.Page{}, err
	}
	members, err := c.Store.Members(r.Context(), head.Reference())
	if err != nil {
		return web.Page{}, err
	}
	data := membersPage{Head: head, New: form, Role: role, Roles: roleLabels}
	if head.CanManage() {
		if data.Invited, err = c.Store.InvitedMembers(r.Context(), head.Reference()); err != nil {
			return web.Page{}, err
		}
		data.All = c.User.Role == souvenir.RoleAdmin
		data.Sought = strings.TrimSpace(r.URL.Query().Get("user"))
		if data.People, err = s.people(r.Context(), c, data.Sought, members, data.Invited); err != nil {
			return web.Page{}, err
		}
		data.Invited, data.Waiting = web.Paginate(data.Invited, r, "invited")
	}
	members, data.Pages = web.Paginate(members, r, "members")
	for _, m := range members {
		data.Members = append(data.Members, memberView{m, cmp.Or(m.Name, m.User), m.User == c.User.ID, m.User == head.Owner})
	}
	return web.Page{Template: "projectmembers", Title: "Members of " + head.Name, Data: data,
		Part: "member-people"}, nil
}

// changeMembers invites a user to a project, withdraws an invitation, changes a role, or removes a member.
func (s *Service) changeMembers(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	head, err := s.projectAt(r, c, "Members")
	if err != nil {
		return nil, err
	}
	user := strings.TrimSpace(cmp.Or(values.Get("pick"), values.Get("user")))
	role := souvenir.MemberRole(values.Get("role"))
	switch change := values.Get("change"); change {
	case "add":
		return s.addToProject(r, c, head, user, role)
	case "withdraw":
		return s.withdrawInvitation(r, c, head, user)
	case "role":
		return s.changeRole(r, c, head, user, role)
	case "end":
		return s.removeMember(r, c, head, user)
	default:
		return nil, failure.Invalid("change", "change is "+failure.Quote(change)+"; expected add, withdraw, role or end")
	}
}

func (s *Service) addToProject(r *http.Request, c request.Caller, head projectHead, user string,
	role souvenir.MemberRole) (any, error) {
	ref := head.Reference()
	added, err := c.Store.AddMember(r.Context(), souvenir.NewMember{Project: ref, User: user, Role: role})
	if err != nil {
		form := newMemberForm()
		form.Fields[0].Value = user
		form.Refuse(err)
		p, failed := s.membersPage(r, c, form, role)
		if failed != nil {
			return nil, failed
		}
		return web.Again(p, err)
	}
	return s.site.DoneWithUndo(c, head.Path+"/members", added.User+" is invited: "+string(added.Role)+".",
		func(ctx context.Context) error {
			if _, err := stillInvited(ctx, c.Store, ref, added.User); err != nil {
				return err
			}
			return c.Store.DeleteMember(ctx, ref, added.User)
		}), nil
}

// stillInvited returns a user's pending invitation, with the name as typed.
func stillInvited(ctx context.Context, store *souvenir.Store, ref souvenir.ProjectRef,
	user string) (souvenir.InvitedMember, error) {
	all, err := store.InvitedMembers(ctx, ref)
	if err != nil {
		return souvenir.InvitedMember{}, err
	}
	i := slices.IndexFunc(all, func(i souvenir.InvitedMember) bool { return i.User == user })
	if i < 0 {
		return souvenir.InvitedMember{},
			&failure.Error{Status: http.StatusConflict, Message: "the invitation of " + failure.Quote(user) +
				" is no longer pending"}
	}
	return all[i], nil
}

// withdrawInvitation withdraws a pending invitation. A member's pending invitation is to a higher role: the member
// keeps the current one.
func (s *Service) withdrawInvitation(r *http.Request, c request.Caller, head projectHead, user string) (any, error) {
	ref := head.Reference()
	before, err := stillInvited(r.Context(), c.Store, ref, user)
	if err != nil {
		return nil, err
	}
	members, err := c.Store.Members(r.Context(), ref)
	if err != nil {
		return nil, err
	}
	invite := func(ctx context.Context) error {
		_, err := c.Store.AddMember(ctx, souvenir.NewMember{Project: ref, User: user, Role: before.Role})
		return err
	}
	if i := slices.IndexFunc(members, func(m souvenir.Member) bool { return cmp.Or(m.Name, m.User) == user }); i < 0 {
		err = c.Store.DeleteMember(r.Context(), ref, user)
	} else {
		member := members[i]
		_, err = c.Store.UpdateMember(r.Context(), ref, member.User, souvenir.MemberUpdate{Role: member.Role})
		invite = func(ctx context.Context) error { return setRole(ctx, c.Store, ref, member, before.Role) }
	}
	if err != nil {
		return nil, err
	}
	return s.site.DoneWithUndo(c, head.Path+"/members", "The invitation of "+user+" is withdrawn.", invite), nil
}

// memberOf returns a member of a project.
func memberOf(ctx context.Context, store *souvenir.Store, ref souvenir.ProjectRef, user string) (souvenir.Member,
	error) {
	members, err := store.Members(ctx, ref)
	if err != nil {
		return souvenir.Member{}, err
	}
	i := slices.IndexFunc(members, func(m souvenir.Member) bool { return m.User == user })
	if i < 0 {
		return souvenir.Member{}, &failure.Error{Status: http.StatusNotFound, Message: "user " + failure.Quote(user) +
			" is no longer a member of the project"}
	}
	return members[i], nil
}

// setRole gives a member a role, to undo a step, unless the role has changed since.
func setRole(
	ctx context.Context, store *souvenir.Store, ref souvenir.ProjectRef, since souvenir.Member, role souvenir.MemberRole,
) error {
	now, err := memberOf(ctx, store, ref, since.User)
	if err == nil && now.Role != since.Role {
		err = &failure.Error{Status: http.StatusConflict, Message: "this cannot be undone: " +
			failure.Quote(cmp.Or(since.Name, since.User)) + " has been given another role since"}
	}
	if err == nil {
		_, err = store.UpdateMember(ctx, ref, since.User, souvenir.MemberUpdate{Role: role})
	}
	return err
}

func (s *Service) changeRole(r *http.Request, c request.Caller, head projectHead, user string,
	role souvenir.MemberRole) (any, error) {
	ref := head.Reference()
	before, err := memberOf(r.Context(), c.Store, ref, user)
	if err != nil {
		return nil, err
	}
	after, err := c.Store.UpdateMember(r.Context(), ref, user, souvenir.MemberUpdate{Role: role})
	if err != nil {
		return nil, err
	}
	name := cmp.Or(after.Name, after.User)
	if after.Status == souvenir.MemberInvited {
		text := name + " is invited to be " + string(role) + ", and stays " + string(before.Role) + " until then."
		return s.site.DoneWithUndo(c, head.Path+"/members", text, func(ctx context.Context) error {
			if _, err := stillInvited(ctx, c.Store, ref, name); err != nil {
				return err
			}
			return setRole(ctx, c.Store, ref, before, before.Role)
		}), nil
	}
	text := name + " has the role " + string(after.Role) + " now."
	if before.Role != after.Role { // a lower one
		text += " Undo sends an invitation to be " + string(before.Role) + " again."
	}
	return s.site.DoneWithUndo(c, head.Path+"/members", text, func(ctx context.Context) error {
		return setRole(ctx, c.Store, ref, after, before.Role)
	}), nil
}

// removeMember removes a member, or lets one leave. Undoing either needs a new invitation: before an owner presses
// undo, the former member may have been invited again and have declined, or left.
func (s *Service) removeMember(r *http.Request, c request.Caller, head projectHead, user string) (any, error) {
	ref := head.Reference()
	before, err := memberOf(r.Context(), c.Store, ref, user)
	if err != nil {
		return nil, err
	}
	if err := c.Store.DeleteMember(r.Context(), ref, user); err != nil {
		return nil, err
	}
	if user == c.User.ID {
		return s.site.Done("/projects", "left"), nil
	}
	name := cmp.Or(before.Name, before.User)
	text := name + " is removed. Undo sends an invitation."
	return s.site.DoneWithUndo(c, head.Path+"/members", text, func(ctx context.Context) error {
		_, err := c.Store.AddMember(ctx, souvenir.NewMember{Project: ref, User: name, Role: before.Role})
		return err
	}), nil
}
