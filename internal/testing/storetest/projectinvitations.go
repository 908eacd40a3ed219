package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func projectInvitations() concept {
	return concept{"ProjectInvitations", []promise{
		{"who is invited sees nothing of the project, and stores nothing there, before accepting", invitedSeeNothing},
		{"accepting makes a member with the role of the invitation", invitedAccept},
		{"an invitation is answered once, and by the invited alone", invitedAnswerOnce},
		{"a declined project does not come again for 30 days, a declined sender not after three", invitedDecline},
		{"a blocked sender reaches none of those who blocked them, until unblocked", invitedBlock},
		{"what senders see is the same whether or not the user exists, has declined or has blocked them", invitedNoOracle},
		{"an invitation to an unknown name never becomes valid", invitedLater},
		{"pending invitations are bounded per sender, and say so", invitedSenderBound},
		{"pending invitations are bounded per recipient, and no sender crowds out others", invitedRecipientBound},
		{"an invitation ends with the rights of its sender, the project, and after 30 days", invitedEnds},
		{"an invitation follows the project's name and the role that it is given", invitedFollows},
		{"owners list, change and withdraw pending invitations", invitedManage},
		{"the operator adds members at once, which ends invitations", invitedOperator},
		{"limited views take no part", invitedLimited},
		{"accepting and withdrawing concurrently leaves one outcome", invitedRace},
	}}
}

// inviteTo invites a user to olga's project.
func (f *fixture) inviteTo(project, user string, role souvenir.MemberRole) souvenir.Member {
	f.Helper()
	m, err := f.store.AddMember(f.ctx,
		souvenir.NewMember{Project: souvenir.ProjectRef{ID: project}, User: user, Role: role})
	f.check("AddMember "+user, err)
	return m
}

// waiting returns the pending invitations of the fixture's user, as "OWNER/ID by SENDER as ROLE".
func (f *fixture) waiting() []string {
	f.Helper()
	all, err := f.reader.Accounts().ProjectInvitations(f.ctx)
	f.check("ProjectInvitations", err)
	var list []string
	for _, i := range all {
		list = append(list, fmt.Sprintf("%s/%s by %s as %s", i.Owner, i.ProjectID, i.InvitedBy, i.Role))
	}
	return list
}

// only returns the one pending invitation.
func (f *fixture) only() souvenir.ProjectInvitation {
	f.Helper()
	all, err := f.reader.Accounts().ProjectInvitations(f.ctx)
	f.check("ProjectInvitations", err)
	if len(all) != 1 {
		f.Fatalf("%s has the invitations %+v; want one", f.name(), all)
	}
	return all[0]
}

// pending returns a project's invitations in the owners' view, as "USER ROLE by SENDER".
func (f *fixture) pending(project string) []string {
	f.Helper()
	all, err := f.reader.InvitedMembers(f.ctx, souvenir.ProjectRef{ID: project})
	f.check("InvitedMembers", err)
	var list []string
	for _, i := range all {
		list = append(list, fmt.Sprintf("%s %s by %s", i.User, i.Role, i.InvitedBy))
	}
	return list
}

func (f *fixture) acceptInvited(id string) {
	f.Helper()
	_, err := f.store.Accounts().AcceptProjectInvitation(f.ctx, id)
	f.check("AcceptProjectInvitation", err)
}

func (f *fixture) decline() {
	f.Helper()
	f.check("DeclineProjectInvitation", f.store.Accounts().DeclineProjectInvitation(f.ctx, f.only().ID))
}

func (f *fixture) block() {
	f.Helper()
	_, err := f.store.Accounts().BlockSender(f.ctx, f.only().ID)
	f.check("BlockSender", err)
}

func invitedSeeNothing(f *fixture) {
	olga, vic := f.user("olga"), f.user("vic")
	olga.add(souvenir.NewMemory{Content: "rocket fuel", ProjectID: "billing-api", EventType: souvenir.EventProjectMain,
		State: souvenir.StateActive, Tags: []string{"bait"}})
	for _, rule := range []souvenir.RuleType{souvenir.RuleDo, souvenir.RuleDont} {
		_, err := olga.store.SetRule(f.ctx, souvenir.NewRule{ProjectID: "billing-api", Type: rule, Content: "rocket rules"})
		f.check("SetRule", err)
	}
	m := olga.inviteTo("billing-api", "vic", souvenir.MemberWriter)
	f.equal("the answer", toJSON(m),
		`{"user":"vic","role":"writer","status":"invited","created_at":"2026-03-01T09:00:00Z"}`)
	limited := f.as(souvenir.Access{User: "vic", Projects: []string{"olga/billing-api"}})
	for _, view := range []*fixture{vic, limited} {
		seesNothing(view, "the invited")
		for _, ref := range []souvenir.ProjectRef{{ID: "billing-api"}, {ID: "olga/billing-api"}, {Name: "billing-api"}} {
			for _, c := range view.projectCalls(ref) {
				f.fails(c.name, c.do(view.store), souvenir.ErrNotFound)
			}
		}
	}
	context, err := vic.reader.GetContext(f.ctx, souvenir.ContextQuery{ProjectName: "billing-api", Query: "rocket"})
	f.check("GetContext", err)
	if listed := toJSON(context); strings.Contains(listed, "rocket") || strings.Contains(listed, "olga") {
		f.Errorf(`the context of the invited is %s, want no "rocket" and no "olga" in it`, listed)
	}
	_, err = vic.reader.GetMainMemory(f.ctx, souvenir.ProjectRef{Name: "billing-api"})
	f.fails("GetMainMemory", err, souvenir.ErrNotFound)
	owners, err := vic.reader.Insights().Owners(f.ctx)
	f.check("Owners", err)
	f.equal("owners", len(owners), 1)
	vic.add(souvenir.NewMemory{Content: "the invoices", ProjectName: "billing-api"})
	f.same("whose project it went to", vic.projects(), "vic/"+vic.list(souvenir.MemoryList{})[0].ProjectID)
	f.equal("found by the owner", len(olga.byWord("invoices")), 0)
	f.equal("members", olga.project("billing-api").Members, 1)
}

func invitedAccept(f *fixture) {
	p := share(f)
	sam := p.stranger
	p.coOwner.inviteTo(apollo.ID, "sam", souvenir.MemberWriter)
	i := sam.only()
	f.clock.Pass(time.Hour)
	f.equal("shown", toJSON(i), fmt.Sprintf(
		`{"id":%q,"project_id":"apollo","project_name":"Apollo 11","owner":"olga","invited_by":"cora","role":"writer",`+
			`"created_at":"2026-03-01T09:00:00Z","expires_at":"2026-03-31T09:00:00Z"}`, i.ID))
	accepted, err := sam.store.Accounts().AcceptProjectInvitation(f.ctx, i.ID)
	f.check("AcceptProjectInvitation", err)
	f.equal("accepted", []any{accepted.ID, accepted.Name, accepted.Owner, accepted.Role, accepted.Members,
		accepted.MemoryCount}, []any{"apollo", "Apollo 11", "olga", souvenir.MemberWriter, 5, 1})
	f.same("found", sam.byWord("rocket"), "the rocket")
	sam.add(souvenir.NewMemory{Content: "stored by the new one", ProjectID: apollo.ID})
	f.equal("for the others", len(p.reader.byWord("stored")), 1)
	all, err := p.reader.reader.Members(f.ctx, apollo)
	f.check("Members", err)
	f.equal("since when", all[len(all)-1],
		souvenir.Member{User: "sam", Role: souvenir.MemberWriter, Status: souvenir.MemberAccepted,
			CreatedAt: start.Add(time.Hour)})
	same(f, "pending", p.owner.pending("apollo"), nil)
	same(f, "waiting", sam.waiting(), nil)
}

func invitedAnswerOnce(f *fixture) {
	p := share(f)
	p.owner.inviteTo("apollo", "sam", souvenir.MemberReader)
	id := p.stranger.only().ID
	for _, view := range []*fixture{p.owner, p.reader, f.as(souvenir.Access{User: "new"})} {
		for _, given := range []string{id, "nowhere", ""} {
			_, err := view.store.Accounts().AcceptProjectInvitation(f.ctx, given)
			f.failsAt("AcceptProjectInvitation by "+view.name(), err, souvenir.ErrNotFound, "id",
				"pending invitation of this user")
			f.failsAt("DeclineProjectInvitation by "+view.name(), view.store.Accounts().DeclineProjectInvitation(f.ctx, given),
				souvenir.ErrNotFound, "id")
			_, err = view.store.Accounts().BlockSender(f.ctx, given)
			f.failsAt("BlockSender by "+view.name(), err, souvenir.ErrNotFound, "id")
		}
	}
	p.stranger.acceptInvited(id)
	_, err := p.stranger.store.Accounts().AcceptProjectInvitation(f.ctx, id)
	f.failsAt("accepting again", err, souvenir.ErrNotFound, "id")
	f.failsAt("declining what was accepted", p.stranger.store.Accounts().DeclineProjectInvitation(f.ctx, id),
		souvenir.ErrNotFound,
		"id")
	f.equal("role", p.stranger.project(apollo.ID).Role, souvenir.MemberReader)
}

func invitedDecline(f *fixture) {
	olga, sam := f.user("olga"), f.user("sam")
	cora := f.user("cora")
	for _, id := range []string{"a", "b", "c", "d"} {
		olga.addProject(souvenir.NewProject{ID: id})
	}
	_, err := f.operator.AddMember(f.ctx,
		souvenir.NewMember{Project: souvenir.ProjectRef{ID: "olga/a"}, User: "cora", Role: souvenir.MemberOwner})
	f.check("AddMember", err)
	olga.inviteTo("a", "sam", souvenir.MemberReader)
	sam.decline()
	same(f, "after declining", sam.waiting(), nil)
	f.same("to the sender", olga.pending("a"), "sam reader by olga")
	olga.inviteTo("a", "sam", souvenir.MemberReader)
	olga.inviteTo("a", "SAM", souvenir.MemberReader)
	cora.inviteTo("olga/a", "sam", souvenir.MemberWriter)
	olga.check("withdrawing", olga.store.DeleteMember(f.ctx,
		souvenir.ProjectRef{ID: "a"}, "sam"))
	olga.inviteTo("a", "sam", souvenir.MemberReader)
	same(f, "sent again", sam.waiting(), nil)
	for _, id := range []string{"b", "c"} {
		olga.inviteTo(id, "sam", souvenir.MemberReader)
		sam.decline()
	}
	olga.deleteProject(souvenir.ProjectRef{ID: "c"}, nil)
	olga.addProject(souvenir.NewProject{ID: "c"})
	olga.inviteTo("c", "sam", souvenir.MemberReader)
	olga.inviteTo("d", "sam", souvenir.MemberReader)
	same(f, "of a sender who was declined three times", sam.waiting(), nil)
	cora.addProject(souvenir.NewProject{ID: "hers"})
	cora.inviteTo("hers", "sam", souvenir.MemberReader)
	f.same("of another user", sam.waiting(), "cora/hers by cora as reader")
	f.clock.Pass(30*24*time.Hour + time.Second)
	olga.inviteTo("a", "sam", souvenir.MemberReader)
	f.same("after 30 days", sam.waiting(), "olga/a by olga as reader")
}

func invitedBlock(f *fixture) {
	olga, sam, cora := f.user("olga"), f.user("sam"), f.user("cora")
	for _, id := range []string{"a", "b", "c"} {
		olga.addProject(souvenir.NewProject{ID: id})
	}
	_, err := f.operator.AddMember(f.ctx,
		souvenir.NewMember{Project: souvenir.ProjectRef{ID: "olga/c"}, User: "sam", Role: souvenir.MemberReader})
	f.check("AddMember", err)
	olga.inviteTo("a", "sam", souvenir.MemberReader)
	olga.inviteTo("b", "sam", souvenir.MemberReader)
	first, err := sam.reader.Accounts().ProjectInvitations(f.ctx)
	f.check("ProjectInvitations", err)
	blocked, err := sam.store.Accounts().BlockSender(f.ctx, first[0].ID)
	f.check("BlockSender", err)
	f.equal("blocked", blocked, souvenir.BlockedSender{User: "olga", CreatedAt: start})
	same(f, "all of the sender's", sam.waiting(), nil)
	f.same("to the sender", olga.pending("a"), "sam reader by olga")
	olga.inviteTo("a", "sam", souvenir.MemberReader)
	same(f, "sent again", sam.waiting(), nil)
	f.equal("what is shared stays so", sam.project("olga/c").Role, souvenir.MemberReader)
	olga.inviteTo("a", "cora", souvenir.MemberReader)
	f.equal("to others", len(cora.waiting()), 1)

	all, err := sam.reader.Accounts().BlockedSenders(f.ctx)
	f.check("BlockedSenders", err)
	f.equal("list", all, []souvenir.BlockedSender{{User: "olga", CreatedAt: start}})
	f.failsAt("UnblockSender of another", sam.store.Accounts().UnblockSender(f.ctx, "cora"), souvenir.ErrNotFound, "user",
		`"cora"`)
	f.failsAt("UnblockSender by another", cora.store.Accounts().UnblockSender(f.ctx, "olga"), souvenir.ErrNotFound, "user",
		`"olga"`)
	f.check("UnblockSender", sam.store.Accounts().UnblockSender(f.ctx, "olga"))
	f.failsAt("UnblockSender again", sam.store.Accounts().UnblockSender(f.ctx, "olga"), souvenir.ErrNotFound, "user",
		`"olga"`)
	same(f, "what was sent meanwhile", sam.waiting(), nil)
	olga.inviteTo("a", "sam", souvenir.MemberReader)
	f.same("sent again, of the project that was not declined", sam.waiting(), "olga/a by olga as reader")
	olga.addProject(souvenir.NewProject{ID: "d"})
	olga.inviteTo("d", "sam", souvenir.MemberReader)
	f.equal("and another", len(sam.waiting()), 2)
}

func invitedNoOracle(f *fixture) {
	olga := f.user("olga")
	sams := []*fixture{f.user("sam1"), f.user("sam2"), f.user("sam3")}
	olga.addProject(souvenir.NewProject{ID: "a"})
	olga.addProject(souvenir.NewProject{ID: "b"})
	for _, sam := range sams[1:] {
		olga.inviteTo("b", sam.name(), souvenir.MemberReader)
	}
	sams[1].decline()
	sams[2].block()
	olga.inviteTo("a", "sam2", souvenir.MemberReader)
	sams[1].decline()
	f.check("DeleteMember", olga.store.DeleteMember(f.ctx,
		souvenir.ProjectRef{ID: "a"}, "sam2"))
	ref := souvenir.ProjectRef{ID: "a"}
	transcript := func(user string) string {
		var said []any
		note := func(answer any, err error) {
			var known *souvenir.Error
			if errors.As(err, &known) {
				answer = []any{known.Kind, known.Argument, known.Message}
			}
			said = append(said, answer)
		}
		add := func() {
			note(olga.store.AddMember(f.ctx, souvenir.NewMember{Project: ref, User: user, Role: souvenir.MemberReader}))
		}
		list := func() {
			note(olga.reader.InvitedMembers(f.ctx, ref))
			note(olga.reader.Members(f.ctx, ref))
			note(olga.reader.GetProject(f.ctx, ref))
		}
		remove := func(user string) {
			note(nil, olga.store.DeleteMember(f.ctx, ref, user))
		}
		for _, step := range []func(){
			func() { remove(user); said = nil }, add, list, add, list,
			func() {
				note(olga.store.UpdateMember(f.ctx, ref, user, souvenir.MemberUpdate{Role: souvenir.MemberOwner}))
			}, list,
			func() { remove(strings.ToUpper(user)) }, list, func() { remove(user) },
			func() {
				note(olga.store.UpdateMember(f.ctx, ref, user, souvenir.MemberUpdate{Role: souvenir.MemberOwner}))
			},
		} {
			step()
		}
		return strings.NewReplacer(user, "NAME", strings.ToUpper(user), "NAME").Replace(toJSON(said))
	}
	want := transcript("noah")
	if !strings.Contains(want, `"invited"`) || !strings.Contains(want, "nor invited to it") {
		f.Fatalf(`the answers are %s, want "invited" and "nor invited to it" in it`, want)
	}
	for _, sam := range sams {
		if got := transcript(sam.name()); got != want {
			f.Errorf("for %s the answers are\n%s\nwant\n%s", sam.name(), got, want)
		}
	}
}

func invitedLater(f *fixture) {
	olga := f.user("olga")
	olga.addProject(souvenir.NewProject{ID: "a"})
	olga.inviteTo("a", "late", souvenir.MemberReader)
	late := f.user("late")
	same(f, "waiting", late.waiting(), nil)
	f.same("pending", olga.pending("a"), "late reader by olga")
	olga.inviteTo("a", "late", souvenir.MemberWriter)
	f.same("sent again", late.waiting(), "olga/a by olga as writer")
}

func invitedSenderBound(f *fixture) {
	olga := f.user("olga")
	f.user("sam")
	olga.addProject(souvenir.NewProject{ID: "a"})
	for i := range souvenir.MaxSentInvitations {
		olga.inviteTo("a", fmt.Sprint("guess ", i), souvenir.MemberReader)
	}
	refused := func(user string) {
		f.Helper()
		_, err := olga.store.AddMember(f.ctx,
			souvenir.NewMember{Project: souvenir.ProjectRef{ID: "a"}, User: user, Role: souvenir.MemberReader})
		f.failsAt("one more", err, souvenir.ErrTooLarge, "user", fmt.Sprint(souvenir.MaxSentInvitations), "withdraw some")
	}
	refused("sam")
	refused("noah")
	olga.inviteTo("a", "guess 7", souvenir.MemberWriter) // replaces the previous one
	f.check("withdrawing one", olga.store.DeleteMember(f.ctx,
		souvenir.ProjectRef{ID: "a"}, "guess 8"))
	olga.inviteTo("a", "sam", souvenir.MemberReader)
	refused("noah")
	f.clock.Pass(30*24*time.Hour + time.Second)
	olga.inviteTo("a", "noah", souvenir.MemberReader)
	f.same("after they have expired", olga.pending("a"), "noah reader by olga")
}

func invitedRecipientBound(f *fixture) {
	sam, friend := f.user("sam"), f.user("friend")
	for _, name := range []string{"pest1", "pest2"} {
		pest := f.user(name)
		for i := range souvenir.MaxReceivedInvitations - 20 {
			id := fmt.Sprint("p", i)
			pest.addProject(souvenir.NewProject{ID: id})
			pest.inviteTo(id, "sam", souvenir.MemberReader)
		}
	}
	f.equal("received", len(sam.waiting()), souvenir.MaxReceivedInvitations)
	friend.addProject(souvenir.NewProject{ID: "ours"})
	friend.inviteTo("ours", "sam", souvenir.MemberWriter)
	all := sam.waiting()
	f.equal("received with a friend's", len(all), souvenir.MaxReceivedInvitations)
	f.equal("the friend's", all[0], "friend/ours by friend as writer")
	f.equal("what the pest sees", len(f.as(souvenir.Access{User: "pest2"}).pending("p79")), 1)
}

func invitedEnds(f *fixture) {
	p := share(f)
	sam := p.stranger
	invite := func() string {
		f.Helper()
		p.coOwner.inviteTo(apollo.ID, "sam", souvenir.MemberReader)
		return sam.only().ID
	}
	ended := func(what, id string) {
		f.Helper()
		same(f, what+": waiting", sam.waiting(), nil)
		_, err := sam.store.Accounts().AcceptProjectInvitation(f.ctx, id)
		f.failsAt(what, err, souvenir.ErrNotFound, "id", "its sender may no longer own the project")
	}
	id := invite()
	p.owner.updateMember("cora", souvenir.MemberWriter)
	ended("its sender is a writer now", id)
	same(f, "pending", p.owner.pending("apollo"), nil)
	f.setRole("cora", souvenir.MemberOwner)
	ended("its sender is an owner again", id)

	id = invite()
	p.owner.deleteMember("cora")
	ended("its sender was removed", id)
	p.owner.addMember("cora", souvenir.MemberOwner)
	ended("its sender was added again", id)

	id = invite()
	f.check("DeleteMember", p.owner.store.DeleteMember(f.ctx, apollo, "sam"))
	ended("it was withdrawn", id)

	id = invite()
	f.clock.Pass(30*24*time.Hour + time.Second)
	ended("it is older than 30 days", id)
	same(f, "pending", p.owner.pending("apollo"), nil)
	purged, err := f.operator.Upkeep().Purge(f.ctx, &souvenir.PurgeOptions{TrustClock: true})
	f.check("Purge", err)
	f.equal("purged", purged.Invitations, 1)

	id = invite()
	p.owner.deleteProject(apollo, &souvenir.DeletionOptions{WithMemories: true})
	ended("the project was deleted", id)
}

func invitedFollows(f *fixture) {
	p := share(f)
	p.owner.inviteTo("apollo", "sam", souvenir.MemberReader)
	before := p.stranger.only()
	_, err := p.owner.store.UpdateProject(f.ctx, apollo, souvenir.ProjectUpdate{Name: new("Apollo 12")})
	f.check("UpdateProject", err)
	f.equal("the name", p.stranger.only().ProjectName, "Apollo 12")
	updated, err := p.owner.store.UpdateMember(f.ctx,
		apollo, "Sam", souvenir.MemberUpdate{Role: souvenir.MemberOwner})
	f.check("UpdateMember", err)
	f.equal("updated", updated, souvenir.Member{User: "sam", Role: souvenir.MemberOwner, Status: souvenir.MemberInvited,
		CreatedAt: start})
	_, err = p.stranger.store.Accounts().AcceptProjectInvitation(f.ctx, before.ID)
	f.failsAt("accepting what is no longer offered", err, souvenir.ErrNotFound, "id", "changed")
	p.stranger.acceptInvited(p.stranger.only().ID)
	f.equal("role", p.stranger.project(apollo.ID).Role, souvenir.MemberOwner)
}

func invitedManage(f *fixture) {
	p := share(f)
	_, err := f.operator.Accounts().AddUser(f.ctx, souvenir.NewUser{ID: "sam", Name: "Samuel"})
	f.check("AddUser", err)
	p.owner.inviteTo("apollo", "sam", souvenir.MemberReader)
	f.clock.Pass(time.Second)
	p.coOwner.inviteTo(apollo.ID, "SAMUEL ", souvenir.MemberWriter)
	for _, view := range []*fixture{p.owner, p.coOwner} {
		f.same(view.name()+" sees", view.pending(apollo.ID), "SAMUEL  writer by cora", "sam reader by olga")
	}
	f.same("the latest is delivered", p.stranger.waiting(), "olga/apollo by cora as writer")
	for _, view := range []*fixture{p.reader, p.writer} {
		_, err := view.reader.InvitedMembers(f.ctx, apollo)
		f.failsAt("InvitedMembers by "+view.name(), err, souvenir.ErrForbidden, "project_id")
		_, err = view.store.AddMember(f.ctx, souvenir.NewMember{Project: apollo, User: "sam", Role: souvenir.MemberReader})
		f.failsAt("AddMember by "+view.name(), err, souvenir.ErrForbidden, "project_id")
		f.fails("DeleteMember by "+view.name(),
			view.store.DeleteMember(f.ctx, apollo, "sam"), souvenir.ErrForbidden)
	}
	_, err = p.stranger.reader.InvitedMembers(f.ctx, apollo)
	f.fails("InvitedMembers by the invited", err, souvenir.ErrNotFound)
	p.stranger.acceptInvited(p.stranger.only().ID)
	same(f, "pending, under whichever name", p.owner.pending("apollo"), nil)
}

func invitedOperator(f *fixture) {
	p := share(f)
	p.owner.inviteTo("apollo", "sam", souvenir.MemberReader)
	id := p.stranger.only().ID
	added, err := f.operator.AddMember(f.ctx,
		souvenir.NewMember{Project: apollo, User: "sam", Role: souvenir.MemberWriter})
	f.check("AddMember", err)
	f.equal("status", added.Status, souvenir.MemberAccepted)
	same(f, "pending", p.owner.pending("apollo"), nil)
	same(f, "waiting", p.stranger.waiting(), nil)
	_, err = p.stranger.store.Accounts().AcceptProjectInvitation(f.ctx, id)
	f.fails("accepting what has ended", err, souvenir.ErrNotFound)
	f.equal("role", p.stranger.project(apollo.ID).Role, souvenir.MemberWriter)

	local := f.as(souvenir.Access{})
	local.addProject(souvenir.NewProject{ID: "mine"})
	f.equal("through the local user's view", local.inviteTo("mine", "sam", souvenir.MemberReader).Status,
		souvenir.MemberInvited)
	added, err = f.operator.AddMember(f.ctx,
		souvenir.NewMember{Project: souvenir.ProjectRef{ID: "mine"}, User: "sam", Role: souvenir.MemberReader})
	f.check("AddMember to a project of the local user", err)
	f.equal("status", added.Status, souvenir.MemberAccepted)
}

func invitedLimited(f *fixture) {
	p := share(f)
	p.owner.inviteTo("apollo", "rocco", souvenir.MemberReader)
	p.owner.addProject(souvenir.NewProject{ID: "other"})
	p.owner.inviteTo("other", "rita", souvenir.MemberReader)
	id := p.reader.only().ID
	limited := f.as(souvenir.Access{User: "rita", Projects: []string{"olga/apollo", "olga/other"}})
	readOnly := f.as(souvenir.Access{User: "rita", ReadOnly: true})
	for what, call := range map[string]func(s *souvenir.Store) error{
		"ProjectInvitations": func(s *souvenir.Store) error { _, err := s.Accounts().ProjectInvitations(f.ctx); return err },
		"BlockedSenders":     func(s *souvenir.Store) error { _, err := s.Accounts().BlockedSenders(f.ctx); return err },
		"AcceptProjectInvitation": func(s *souvenir.Store) error {
			_,
				err := s.Accounts().AcceptProjectInvitation(f.ctx, id)
			return err
		},
		"DeclineProjectInvitation": func(s *souvenir.Store) error { return s.Accounts().DeclineProjectInvitation(f.ctx, id) },
		"BlockSender": func(s *souvenir.Store) error {
			_,
				err := s.Accounts().BlockSender(f.ctx, id)
			return err
		},
		"UnblockSender": func(s *souvenir.Store) error { return s.Accounts().UnblockSender(f.ctx, "olga") },
	} {
		f.fails(what+" through a limited view", call(limited.store), souvenir.ErrForbidden)
		if err := call(readOnly.store); strings.HasSuffix(what, "s") {
			f.check(what+" for reading only", err)
		} else {
			f.fails(what+" for reading only", err, souvenir.ErrReadOnly)
		}
	}
	owner := f.as(souvenir.Access{User: "olga", Projects: []string{"apollo"}})
	_, err := owner.reader.InvitedMembers(f.ctx, apollo)
	f.fails("InvitedMembers through a limited view", err, souvenir.ErrForbidden)
	f.same("waiting", p.reader.waiting(), "olga/other by olga as reader")
}

func invitedRace(f *fixture) {
	p := share(f)
	for range 5 {
		p.owner.inviteTo("apollo", "sam", souvenir.MemberReader)
		id := p.stranger.only().ID
		var accepted, withdrawn error
		var group sync.WaitGroup
		group.Go(func() { _, accepted = p.stranger.store.Accounts().AcceptProjectInvitation(f.ctx, id) })
		group.Go(func() {
			withdrawn = p.owner.reader.DeleteMember(f.ctx, apollo, "sam")
		})
		group.Wait()
		f.check("withdrawing", withdrawn) // of a member, if accepting came first
		if accepted != nil {
			f.fails("accepting what was withdrawn", accepted, souvenir.ErrNotFound)
		}
		same(f, "pending", p.owner.pending("apollo"), nil)
		same(f, "waiting", p.stranger.waiting(), nil)
		same(f, "projects of the stranger", p.stranger.projects(), nil)
	}
	// If many calls accept one invitation at once, only one succeeds.
	p.owner.inviteTo("apollo", "sam", souvenir.MemberReader)
	id := p.stranger.only().ID
	var group sync.WaitGroup
	outcomes := make([]error, 8)
	for i := range outcomes {
		s := p.stranger.store
		if i%2 == 1 {
			s = p.stranger.reader
		}
		group.Go(func() { _, outcomes[i] = s.Accounts().AcceptProjectInvitation(f.ctx, id) })
	}
	group.Wait()
	succeeded := 0
	for _, err := range outcomes {
		if err == nil {
			succeeded++
		} else {
			f.fails("accepting again", err, souvenir.ErrNotFound)
		}
	}
	f.equal("accepted", succeeded, 1)
}
