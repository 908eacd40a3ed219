package storetest

import (
	"fmt"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// A member has to accept a higher role, since the project's owner then gets memories that a writer's agents store under
// the project's name.

func sharingHigher(f *fixture) {
	p := share(f)
	m := p.owner.list(souvenir.MemoryList{})[0]
	stays := func(who *fixture, role souvenir.MemberRole) {
		f.Helper()
		f.equal(who.name()+" stays", who.project(apollo.ID).Role, role)
		f.same("members", p.owner.members(), "olga owner", "cora owner", "rita reader", "will writer")
	}
	f.clock.Pass(time.Hour)
	i := p.coOwner.offer(p.reader, souvenir.MemberWriter)
	f.equal("shown to the member", toJSON(i), fmt.Sprintf(`{"id":%q,"project_id":"apollo","project_name":"Apollo 11",`+
		`"owner":"olga","invited_by":"cora","role":"writer","current_role":"reader","created_at":"2026-03-01T10:00:00Z",`+
		`"expires_at":"2026-03-31T10:00:00Z"}`, i.ID))
	f.same("shown to the owners", p.owner.pending("apollo"), "rita writer by cora")
	stays(p.reader, souvenir.MemberReader)
	_, err := p.reader.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "mine", ProjectID: apollo.ID})
	f.failsAt("AddMemory before accepting", err, souvenir.ErrForbidden, "project_id")
	_, err = p.reader.store.SetRule(f.ctx, souvenir.NewRule{ProjectID: apollo.ID, Type: souvenir.RuleDo, Content: "x"})
	f.fails("SetRule before accepting", err, souvenir.ErrForbidden)

	p.writer.add(souvenir.NewMemory{Content: "of the writer", ProjectID: apollo.ID})
	toOwner := p.owner.offer(p.writer, souvenir.MemberOwner)
	stays(p.writer, souvenir.MemberWriter)
	_, err = p.writer.store.UpdateProject(f.ctx, apollo, souvenir.ProjectUpdate{Name: new("taken")})
	f.fails("UpdateProject before accepting", err, souvenir.ErrForbidden)
	for _, other := range []*fixture{p.writer, p.owner, p.coOwner, p.stranger} {
		_, err = other.store.Accounts().AcceptProjectInvitation(f.ctx, i.ID)
		f.failsAt("accepting another's by "+other.name(), err, souvenir.ErrNotFound, "id")
	}

	p.reader.acceptInvited(i.ID)
	p.reader.rewrite(m.ID, "changed by rita")
	p.writer.acceptInvited(toOwner.ID)
	_, err = p.writer.store.UpdateProject(f.ctx, apollo, souvenir.ProjectUpdate{Name: new("Apollo 12")})
	f.check("UpdateProject after accepting", err)
	all, err := p.owner.reader.Members(f.ctx, apollo)
	f.check("Members", err)
	for _, m := range all[1:] {
		f.equal("since when "+m.User+" is a member", m.CreatedAt, start)
	}
	f.same("members", p.owner.members(), "olga owner", "cora owner", "rita writer", "will owner")
	same(f, "pending", p.owner.pending("apollo"), nil)
	_, err = p.reader.store.Accounts().AcceptProjectInvitation(f.ctx, i.ID)
	f.failsAt("accepting again", err, souvenir.ErrNotFound, "id")
}

func sharingHigherDeclined(f *fixture) {
	p := share(f)
	p.owner.offer(p.reader, souvenir.MemberOwner)
	p.reader.decline()
	f.equal("role", p.reader.project(apollo.ID).Role, souvenir.MemberReader)
	f.same("to the owners it is pending", p.owner.pending("apollo"), "rita owner by olga")
	m, err := p.coOwner.store.UpdateMember(f.ctx,
		apollo, "rita", souvenir.MemberUpdate{Role: souvenir.MemberWriter})
	f.check("UpdateMember", err)
	f.equal("answered as usual", m.Status, souvenir.MemberInvited)
	same(f, "what reaches the member", p.reader.waiting(), nil)
	f.clock.Pass(30*24*time.Hour + time.Second)
	p.reader.acceptInvited(p.owner.offer(p.reader, souvenir.MemberWriter).ID)
	f.equal("role", p.reader.project(apollo.ID).Role, souvenir.MemberWriter)
}

func sharingHigherEnds(f *fixture) {
	p := share(f)
	ended := func(what string, i souvenir.ProjectInvitation) {
		f.Helper()
		same(f, what+": waiting", p.reader.waiting(), nil)
		same(f, what+": pending", p.owner.pending("apollo"), nil)
		_, err := p.reader.store.Accounts().AcceptProjectInvitation(f.ctx, i.ID)
		f.failsAt(what, err, souvenir.ErrNotFound, "id")
	}
	first := p.owner.offer(p.reader, souvenir.MemberWriter)
	second := p.coOwner.offer(p.reader, souvenir.MemberOwner)
	_, err := p.reader.store.Accounts().AcceptProjectInvitation(f.ctx, first.ID)
	f.failsAt("accepting what is no longer offered", err, souvenir.ErrNotFound, "id")
	f.same("one is pending", p.owner.pending("apollo"), "rita owner by cora")

	p.owner.updateMember("rita", souvenir.MemberReader)
	ended("the role that the member has", second)
	f.setRole("rita", souvenir.MemberWriter)
	i := p.owner.offer(p.reader, souvenir.MemberOwner)
	p.owner.updateMember("rita", souvenir.MemberReader)
	ended("a lower role", i)
	i = p.owner.offer(p.reader, souvenir.MemberWriter)
	f.setRole("rita", souvenir.MemberOwner)
	ended("a role by the operator", i)
	f.setRole("rita", souvenir.MemberReader)
	i = p.owner.offer(p.reader, souvenir.MemberWriter)
	p.owner.deleteMember("rita")
	ended("the removal of the member", i)
	p.owner.addMember("rita", souvenir.MemberReader)
	i = p.owner.offer(p.reader, souvenir.MemberWriter)
	p.reader.deleteMember("rita")
	ended("the member has left", i)
	p.owner.addMember("rita", souvenir.MemberReader)
	ended("a member again", i)
	f.equal("role", p.reader.project(apollo.ID).Role, souvenir.MemberReader)
}

func sharingHigherBlocked(f *fixture) {
	p := share(f)
	p.owner.offer(p.reader, souvenir.MemberWriter)
	p.reader.block()
	f.equal("role", p.reader.project(apollo.ID).Role, souvenir.MemberReader)
	p.owner.updateMember("rita", souvenir.MemberReader)
	m, err := p.owner.store.UpdateMember(f.ctx,
		apollo, "rita", souvenir.MemberUpdate{Role: souvenir.MemberWriter})
	f.check("UpdateMember", err)
	f.equal("answered as usual", m.Status, souvenir.MemberInvited)
	f.same("pending", p.owner.pending("apollo"), "rita writer by olga")
	same(f, "what reaches the member", p.reader.waiting(), nil)
}

func sharingHigherRace(f *fixture) {
	p := share(f)
	for range 5 {
		f.setRole("will", souvenir.MemberWriter)
		id := p.owner.offer(p.writer, souvenir.MemberOwner).ID
		var accepted, lowered error
		var group sync.WaitGroup
		group.Go(func() { _, accepted = p.writer.store.Accounts().AcceptProjectInvitation(f.ctx, id) })
		group.Go(func() {
			_, lowered = p.owner.reader.UpdateMember(f.ctx,
				apollo, "will", souvenir.MemberUpdate{Role: souvenir.MemberReader})
		})
		group.Wait()
		f.check("lowering", lowered)
		if accepted != nil {
			f.fails("accepting what has ended", accepted, souvenir.ErrNotFound)
		}
		f.equal("role", p.writer.project(apollo.ID).Role, souvenir.MemberReader)
		same(f, "pending", p.owner.pending("apollo"), nil)
	}
}
