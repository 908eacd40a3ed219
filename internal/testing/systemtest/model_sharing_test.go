package systemtest

import (
	"fmt"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/souvenir-ai/souvenir"
)

// The part of the model about consent: invitations and their answers.

// modelInvited is a pending invitation. One that is not delivered is pending only for its sender.
type modelInvited struct {
	by        string
	role      souvenir.MemberRole
	delivered bool
}

// modelDeclined is an invitation that someone declined.
type modelDeclined struct {
	user, by string
	project  *modelProject
}

// delivers reports whether an invitation reaches a user.
func (w *world) delivers(by, user string, p *modelProject) bool {
	ofSender := 0
	for _, d := range w.declined {
		if d.user == user && d.project == p {
			return false
		}
		if d.user == user && d.by == by {
			ofSender++
		}
	}
	return ofSender < 3 && !w.blocked[[2]string{user, by}]
}

// endInvitationsOf withdraws the invitations of a user who no longer owns the project.
func (p *modelProject) endInvitationsOf(user string) {
	maps.DeleteFunc(p.invited, func(_ string, i modelInvited) bool { return i.by == user })
}

func (tr *trial) share(t *rapid.T) {
	owner, ref, member, role := user(t), ref(t), user(t), rapid.SampledFrom(modelRoles).Draw(t, "role")
	added, err := tr.as(owner).AddMember(t.Context(),
		souvenir.NewMember{Project: souvenir.ProjectRef{ID: ref}, User: member, Role: role})
	p, kind := tr.managed(owner, ref)
	if kind == "" && (p.members[member] != "" || p.owner == member) {
		kind = souvenir.KindConflict
	}
	expect(t, fmt.Sprintf("%s invites %s to %q as %s", owner, member, ref, role), err, kind)
	if kind != "" {
		return
	}
	if added.Status != souvenir.MemberInvited || added.User != member || added.Name != "" {
		t.Fatalf("the answer to an invitation is %+v, want status %v, user %v and no name", added, souvenir.MemberInvited,
			member)
	}
	tr.invite(owner, member, p, role)
}

// invite adds a pending invitation.
func (tr *trial) invite(by, user string, p *modelProject, role souvenir.MemberRole) {
	if p.invited == nil {
		p.invited = map[string]modelInvited{}
	}
	p.invited[user] = modelInvited{by, role, tr.delivers(by, user, p)}
}

// answer answers one of a user's pending invitations.
func (tr *trial) answer(t *rapid.T) {
	user, answer, which := user(t),
		rapid.SampledFrom([]string{"accept", "accept", "accept", "decline", "block", "unblock"}).Draw(t, "answer"),
		rapid.IntRange(0, 2).Draw(t, "which")
	view := tr.as(user)
	if answer == "unblock" {
		by := modelUsers[which]
		kind := souvenir.Kind("")
		if !tr.blocked[[2]string{user, by}] {
			kind = souvenir.KindNotFound
		}
		expect(t, fmt.Sprintf("%s unblocks %s", user, by), view.Accounts().UnblockSender(t.Context(), by), kind)
		delete(tr.blocked, [2]string{user, by})
		return
	}
	waiting, err := view.Accounts().ProjectInvitations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(waiting) == 0 {
		expect(t, "declining nothing", view.Accounts().DeclineProjectInvitation(t.Context(), "id-0"), souvenir.KindNotFound)
		return
	}
	i := waiting[which%len(waiting)]
	p := tr.projects[i.Owner+"/"+i.ProjectID]
	switch answer {
	case "accept":
		_, err = view.Accounts().AcceptProjectInvitation(t.Context(), i.ID)
		p.members[user] = p.invited[user].role
		delete(p.invited, user)
		tr.declined = slices.DeleteFunc(tr.declined, func(d modelDeclined) bool { return d.user == user && d.project == p })
	case "decline", "block":
		tr.declined = append(tr.declined, modelDeclined{user, i.InvitedBy, p})
		p.invited[user] = modelInvited{i.InvitedBy, i.Role, false}
		if answer == "decline" {
			err = view.Accounts().DeclineProjectInvitation(t.Context(), i.ID)
			break
		}
		_, err = view.Accounts().BlockSender(t.Context(), i.ID)
		if tr.blocked == nil {
			tr.blocked = map[[2]string]bool{}
		}
		tr.blocked[[2]string{user, i.InvitedBy}] = true
		for _, p := range tr.projects {
			if other, ok := p.invited[user]; ok && other.by == i.InvitedBy {
				p.invited[user] = modelInvited{other.by, other.role, false}
			}
		}
	}
	expect(t, fmt.Sprintf("%s answers %q to %s's invitation", user, answer, i.InvitedBy), err, "")
	expect(t, fmt.Sprintf("%s answers %q once more", user, answer),
		view.Accounts().DeclineProjectInvitation(t.Context(), i.ID),
		souvenir.KindNotFound)
}

// checkInvitations compares each user's pending invitations, and the owners' view of them, with the model.
func (tr *trial) checkInvitations(t *rapid.T) {
	t.Helper()
	for _, user := range modelUsers {
		view := tr.as(user)
		waiting, err := view.Accounts().ProjectInvitations(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got, want := []string{}, []string{}
		for _, i := range waiting {
			got = append(got, fmt.Sprintf("%s/%s by %s as %s", i.Owner, i.ProjectID, i.InvitedBy, i.Role))
		}
		for key, p := range tr.projects {
			if i := p.invited[user]; i.delivered {
				want = append(want, fmt.Sprintf("%s by %s as %s", key, i.by, i.role))
			}
			if !p.managedBy(user) {
				continue
			}
			sent, err := view.InvitedMembers(t.Context(), souvenir.ProjectRef{ID: key})
			if err != nil || len(sent) != len(p.invited) {
				t.Fatalf("%s sees the invitations %+v to %s, %v; want %+v", user, sent, key, err, p.invited)
			}
			for _, i := range sent {
				if p.invited[i.User].role != i.Role || p.invited[i.User].by != i.InvitedBy {
					t.Fatalf("%s sees the invitation %+v to %s; want %+v", user, i, key, p.invited)
				}
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("for %s wait %q, want %q", user, got, want)
		}
	}
}
