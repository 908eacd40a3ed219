package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// Who is a member of a project, and with which role; sharing.go has what members may do.

func (f *fixture) addMember(user string, role souvenir.MemberRole) souvenir.Member {
	f.Helper()
	added, err := f.operator.AddMember(f.ctx, souvenir.NewMember{Project: apollo, User: user, Role: role})
	f.check("AddMember "+user, err)
	return added
}

func (f *fixture) updateMember(user string, role souvenir.MemberRole) {
	f.Helper()
	updated, err := f.store.UpdateMember(f.ctx, apollo, user, souvenir.MemberUpdate{Role: role})
	f.check("UpdateMember "+user, err)
	f.equal("updated", []any{updated.User, updated.Role, updated.Status}, []any{user, role, souvenir.MemberAccepted})
}

// setRole sets the role of a member of olga's project as the operator, so it takes effect at once.
func (f *fixture) setRole(user string, role souvenir.MemberRole) {
	f.Helper()
	updated, err := f.operator.UpdateMember(f.ctx, apollo, user, souvenir.MemberUpdate{Role: role})
	f.check("UpdateMember "+user, err)
	f.equal("set", []any{updated.User, updated.Role, updated.Status}, []any{user, role, souvenir.MemberAccepted})
}

// offer offers a member of olga's project a higher role, and returns the member's pending invitation.
func (f *fixture) offer(to *fixture, role souvenir.MemberRole) souvenir.ProjectInvitation {
	f.Helper()
	m, err := f.store.UpdateMember(f.ctx, apollo, to.name(), souvenir.MemberUpdate{Role: role})
	f.check("UpdateMember "+to.name(), err)
	f.equal("offered", []any{m.User, m.Role, m.Status}, []any{to.name(), role, souvenir.MemberInvited})
	return to.only()
}

func (f *fixture) deleteMember(user string) {
	f.Helper()
	f.check("DeleteMember "+user, f.store.DeleteMember(f.ctx, apollo, user))
}

// members returns a project's people as "user role".
func (f *fixture) members() []string {
	f.Helper()
	all, err := f.reader.Members(f.ctx, apollo)
	f.check("Members", err)
	var list []string
	for _, m := range all {
		list = append(list, m.User+" "+string(m.Role))
	}
	return list
}

func sharingMembers(f *fixture) {
	owner := f.user("olga")
	f.user("rita")
	f.user("ann/bea")
	owner.addProject(souvenir.NewProject{ID: "apollo"})
	f.clock.Pass(time.Hour)
	added := owner.addMember("rita", souvenir.MemberReader)
	f.equal("added", toJSON(added),
		`{"user":"rita","role":"reader","status":"accepted","created_at":"2026-03-01T10:00:00Z"}`)
	f.clock.Pass(time.Hour)
	owner.addMember("ann/bea", souvenir.MemberWriter)
	all, err := owner.reader.Members(f.ctx, souvenir.ProjectRef{ID: "apollo"})
	f.check("Members", err)
	f.equal("members", all, []souvenir.Member{
		{User: "olga", Role: souvenir.MemberOwner, Status: souvenir.MemberAccepted, CreatedAt: start},
		{User: "rita", Role: souvenir.MemberReader, Status: souvenir.MemberAccepted, CreatedAt: start.Add(time.Hour)},
		{User: "ann/bea", Role: souvenir.MemberWriter, Status: souvenir.MemberAccepted, CreatedAt: start.Add(2 * time.Hour)},
	})
	f.equal("counted", owner.project("apollo").Members, 3)

	for user, says := range map[string]string{"rita": "reader", "olga": "owns", "ann/bea": "writer"} {
		for _, s := range []*souvenir.Store{owner.store, f.operator} {
			_, err := s.AddMember(f.ctx, souvenir.NewMember{Project: apollo, User: user, Role: souvenir.MemberWriter})
			f.failsAt("AddMember again", err, souvenir.ErrConflict, "user", `"`+user+`"`, says)
		}
	}
	_, err = f.operator.AddMember(f.ctx, souvenir.NewMember{Project: apollo, User: "noah", Role: souvenir.MemberReader})
	f.failsAt("AddMember of an unknown user", err, souvenir.ErrNotFound, "user", `"noah"`)
	for _, id := range []string{"olga/nothing", "unknown/apollo", "rita/apollo", "apollo"} {
		_, err = f.operator.AddMember(f.ctx,
			souvenir.NewMember{Project: souvenir.ProjectRef{ID: id}, User: "rita", Role: souvenir.MemberReader})
		f.failsAt("AddMember to an unknown project", err, souvenir.ErrNotFound, "project_id", `"`+id+`"`)
	}
	_, err = owner.store.UpdateMember(f.ctx,
		apollo, "local", souvenir.MemberUpdate{Role: souvenir.MemberReader})
	f.failsAt("UpdateMember of no member", err, souvenir.ErrNotFound, "user", `"local"`)
	f.failsAt("DeleteMember of no member",
		owner.store.DeleteMember(f.ctx, apollo, "local"), souvenir.ErrNotFound,
		"user", `"local"`)
	f.check("DeleteMember by the operator", f.operator.DeleteMember(f.ctx, apollo, "rita"))
	f.equal("rita is a member", slices.Contains(owner.members(), "rita reader"), false)
}

func sharingArguments(f *fixture) {
	owner := f.user("olga")
	f.user("rita")
	owner.addProject(souvenir.NewProject{ID: "apollo"})
	for _, c := range []struct {
		name     string
		user     string
		role     souvenir.MemberRole
		kind     *souvenir.Error
		argument string
		says     string
	}{
		{"no user", "", souvenir.MemberReader, souvenir.ErrInvalid, "user", "1 to 128"},
		{"a long user", strings.Repeat("x", 129), souvenir.MemberReader, souvenir.ErrTooLarge, "user", "128"},
		{"a user that is not UTF-8", "\xff", souvenir.MemberReader, souvenir.ErrInvalid, "user", "UTF-8"},
		{"no role", "rita", "", souvenir.ErrInvalid, "role", `"reader", "writer" or "owner"`},
		{"an unknown role", "rita", "admin", souvenir.ErrInvalid, "role", `"admin"`},
	} {
		_, err := owner.store.AddMember(f.ctx, souvenir.NewMember{Project: apollo, User: c.user, Role: c.role})
		f.failsAt("AddMember with "+c.name, err, c.kind, c.argument, c.says)
		_, err = owner.store.UpdateMember(f.ctx, apollo, c.user, souvenir.MemberUpdate{Role: c.role})
		f.failsAt("UpdateMember with "+c.name, err, c.kind, c.argument, c.says)
		if c.argument == "user" {
			err = owner.store.DeleteMember(f.ctx, apollo, c.user)
			f.failsAt("DeleteMember with "+c.name, err, c.kind, c.argument, c.says)
		}
	}
	f.same("members", owner.members(), "olga owner")
}

func sharingUpdate(f *fixture) {
	p := share(f)
	m := p.owner.list(souvenir.MemoryList{})[0]
	before, err := p.owner.reader.Members(f.ctx, apollo)
	f.check("Members", err)
	f.clock.Pass(time.Hour)
	f.setRole("rita", souvenir.MemberWriter) // the operator may raise it at once
	p.reader.rewrite(m.ID, "changed by rita")
	p.coOwner.updateMember("rita", souvenir.MemberReader)
	content := "again"
	_, err = p.reader.store.UpdateMemory(f.ctx, m.ID, souvenir.MemoryUpdate{Content: &content})
	f.fails("UpdateMemory by a reader", err, souvenir.ErrForbidden)
	f.setRole("rita", souvenir.MemberOwner)
	p.reader.updateMember("cora", souvenir.MemberReader)
	_, err = p.coOwner.store.UpdateMember(f.ctx,
		apollo, "cora", souvenir.MemberUpdate{Role: souvenir.MemberOwner})
	f.fails("taking a role back", err, souvenir.ErrForbidden)
	after, err := p.owner.reader.Members(f.ctx, apollo)
	f.check("Members", err)
	for i := range before {
		f.equal("since when", after[i].CreatedAt, before[i].CreatedAt)
	}
	f.same("members", p.owner.members(), "olga owner", "cora reader", "rita owner", "will writer")
}

func sharingRemoval(f *fixture) {
	p := share(f)
	rocket := p.owner.list(souvenir.MemoryList{})[0]
	mine := p.writer.add(souvenir.NewMemory{Content: "the rocket engine", ProjectID: apollo.ID,
		Related: []string{rocket.ID}})
	limited := f.as(souvenir.Access{User: "will", Projects: []string{"olga/apollo"}})
	f.equal("before", []int{p.writer.search(souvenir.Query{}).Total, limited.search(souvenir.Query{}).Total}, []int{2, 2})
	listing := p.writer.reader.Memories(f.ctx, souvenir.MemoryList{})
	p.owner.deleteMember("will")

	same(f, "found", p.writer.byWord("rocket"), nil)
	for m, err := range listing {
		f.check("Memories", err)
		f.Errorf("a listing made before: got %q, want no memory", m.Content)
	}
	for _, c := range p.writer.calls(mine.ID, "plans") {
		if c.name != "AddCollection" {
			f.fails(c.name+" of what they stored", c.do(p.writer.store), souvenir.ErrNotFound)
		}
	}
	_, err := p.writer.reader.GetMemory(f.ctx, rocket.ID)
	f.fails("GetMemory", err, souvenir.ErrNotFound)
	for _, c := range p.writer.projectCalls(apollo) {
		f.fails(c.name+" by a former member", c.do(p.writer.store), souvenir.ErrNotFound)
	}
	same(f, "projects", p.writer.projects(), nil)
	_, err = p.writer.reader.GetCollection(f.ctx, "plans")
	f.fails("GetCollection", err, souvenir.ErrNotFound)
	_, err = p.writer.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "x", ProjectID: apollo.ID})
	f.fails("AddMemory into it", err, souvenir.ErrInvalid)
	f.equal("through a limited view", limited.search(souvenir.Query{}).Total, 0)

	f.equal("for the others", p.reader.get(mine.ID).Content, "the rocket engine")
	p.owner.addMember("will", souvenir.MemberReader)
	f.equal("a member again", p.writer.project(apollo.ID).Role, souvenir.MemberReader)
}

func sharingLeave(f *fixture) {
	p := share(f)
	for _, m := range p.members() {
		m.deleteMember(m.name())
		_, err := m.reader.GetProject(f.ctx, apollo)
		f.fails("GetProject after leaving", err, souvenir.ErrNotFound)
	}
	f.failsAt("the owner of record leaving",
		p.owner.store.DeleteMember(f.ctx, apollo, "olga"), souvenir.ErrForbidden,
		"user", `"olga"`)
	f.same("members", p.owner.members(), "olga owner")
}

func sharingOwnerOfRecord(f *fixture) {
	p := share(f)
	for _, m := range []*fixture{p.owner, p.coOwner} {
		f.failsAt("DeleteMember by "+m.name(),
			m.store.DeleteMember(f.ctx, apollo, "olga"), souvenir.ErrForbidden, "user",
			`"olga"`)
		_, err := m.store.UpdateMember(f.ctx,
			apollo, "olga", souvenir.MemberUpdate{Role: souvenir.MemberReader})
		f.failsAt("UpdateMember by "+m.name(), err, souvenir.ErrForbidden, "user", `"olga"`)
	}
	p.coOwner.deleteMember("rita")
	p.coOwner.addMember("sam", souvenir.MemberOwner)
	p.stranger.deleteMember("cora")
	f.same("members", p.owner.members(), "olga owner", "sam owner", "will writer")
}
