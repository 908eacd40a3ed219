package storetest

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func sharing() concept {
	return concept{"Sharing", []promise{
		{"a member is added by id and listed", sharingMembers},
		{"errors name bad arguments, and the allowed values", sharingArguments},
		{"members find a project's memories in whichever collection of the owner", sharingVisibility},
		{"members see nothing else of each other", sharingNothingElse},
		{"readers read, writers write, owners manage", sharingRoles},
		{"a writer stores into, changes and deletes in the project", sharingWriter},
		{"what members store belongs to the project, in a collection of its owner", sharingBelongs},
		{"collections of the owner are known as far as the project reaches", sharingCollections},
		{"a memory that is moved into a project is given to it", sharingGiven},
		{"a lower role counts from the next call on", sharingUpdate},
		{"a higher role counts when the member accepts it", sharingHigher},
		{"declining a higher role keeps the old one", sharingHigherDeclined},
		{"an offer of a higher role ends with a new decision, and with the membership", sharingHigherEnds},
		{"a blocked owner offers no higher role, and does not learn it", sharingHigherBlocked},
		{"accepting and lowering a role concurrently leave no role that was not accepted", sharingHigherRace},
		{"a removed member loses the project, and the memories they stored there", sharingRemoval},
		{"every member may leave, the owner of record may not", sharingLeave},
		{"the owner of record can be neither changed nor removed", sharingOwnerOfRecord},
		{"a project in two parts is named by its owner and id", sharingNames},
		{"a limited view reads the members of its projects and manages none", sharingLimited},
		{"deleting a project takes it from its members", sharingDelete},
		{"owners lists whose projects can be seen", sharingOwners},
		{"the status of a memory says whose it and its project are, and who may change it", sharingStatus},
		{"concurrent writes to one unknown name create one project", sharingRace},
	}}
}

// user returns the fixture as one of its users, who then exists in the store.
func (f *fixture) user(id string) *fixture {
	f.Helper()
	view := f.as(souvenir.Access{User: id})
	_, err := view.store.AddMemories(f.ctx, nil, nil)
	f.check("AddMemories of nothing", err)
	return view
}

// people are a project's owner and three members.
type people struct{ owner, reader, writer, coOwner, stranger *fixture }

// apollo is the reference to the project that all of them can use.
var apollo = souvenir.ProjectRef{ID: "olga/apollo"}

// share creates a project with a memory in it, and its members.
func share(f *fixture) people {
	f.Helper()
	p := people{f.user("olga"), f.user("rita"), f.user("will"), f.user("cora"), f.user("sam")}
	p.owner.addCollection(souvenir.NewCollection{Name: "plans", Description: "private notes"})
	p.owner.add(souvenir.NewMemory{Collection: "plans", Content: "the rocket", ProjectID: "apollo",
		ProjectName: "Apollo 11", Tags: []string{"space"}})
	p.owner.addMember("rita", souvenir.MemberReader)
	p.owner.addMember("will", souvenir.MemberWriter)
	p.owner.addMember("cora", souvenir.MemberOwner)
	return p
}

func (p people) members() []*fixture { return []*fixture{p.reader, p.writer, p.coOwner} }

func (f *fixture) name() string { return f.store.Access().User }

func sharingVisibility(f *fixture) {
	p := share(f)
	p.writer.addCollection(souvenir.NewCollection{Name: "drafts"})
	f.clock.Pass(time.Second)
	p.writer.add(souvenir.NewMemory{Collection: "drafts", Content: "the rocket engine", ProjectID: apollo.ID,
		Tags: []string{"space"}})
	f.clock.Pass(time.Second)
	p.coOwner.add(souvenir.NewMemory{Content: "the rocket crew",
		ProjectID: "apollo"}) // the only visible project of that id
	want := []string{"the rocket", "the rocket engine", "the rocket crew"}
	for _, m := range append(p.members(), p.owner) {
		who := m.name()
		f.same(who+" lists", texts(m.list(souvenir.MemoryList{})), want...)
		f.equal(who+" finds by words", len(m.byWord("rocket")), 3)
		f.equal(who+" finds by meaning",
			m.search(souvenir.Query{Vector: Words{}.Vector("rocket"), ProjectID: apollo.ID}).Total, 3)
		f.equal(who+" finds in the project by name", m.search(souvenir.Query{ProjectName: "Apollo 11"}).Total, 3)
		f.equal(who+" finds by tag", m.search(souvenir.Query{Tags: []string{"space"}}).Total, 2)
		f.equal(who+" finds in a collection of another", m.search(souvenir.Query{Collections: []string{"drafts"}}).Total, 1)
		f.equal(who+"'s tags", m.tags(), []souvenir.Tag{{Name: "space", Count: 2}})
		f.equal(who+"'s count", m.project(apollo.ID).MemoryCount, 3)
		f.equal(who+" reads where it lies", m.collection("plans").MemoryCount, 1)
		groups := m.search(souvenir.Query{Collections: []string{"plans", "drafts"}}).Groups()
		f.equal(who+"'s groups", len(groups), 2)
	}
	seesNothing(p.stranger, "a stranger")
}

func sharingNothingElse(f *fixture) {
	p := share(f)
	outside := p.owner.add(souvenir.NewMemory{Collection: "plans", Content: "the rocket diary", Tags: []string{"private"}})
	other := p.owner.add(souvenir.NewMemory{Collection: "plans", Content: "the rocket merger", ProjectID: "secret"})
	inside := p.owner.add(souvenir.NewMemory{Content: "links", ProjectID: "apollo",
		Related: []string{outside.ID, other.ID}})
	p.writer.add(souvenir.NewMemory{Content: "a rocket of my own"})
	for _, m := range []*fixture{p.reader, p.coOwner} {
		who := m.name()
		f.same(who+" finds", m.byWord("rocket"), "the rocket")
		f.same(who+"'s projects", m.projects(), "olga/apollo")
		f.equal(who+"'s count of the collection", m.collection("plans").MemoryCount, 1)
		f.equal(who+" is shown the description", m.collection("plans").Description, "")
		same(f, who+"'s links", m.get(inside.ID).Related, nil)
		f.equal(who+"'s tags", m.tags(), []souvenir.Tag{{Name: "space", Count: 1}})
		for _, c := range m.calls(outside.ID, "nowhere") {
			f.fails(c.name+" by "+who, c.do(m.store), souvenir.ErrNotFound)
		}
		for _, c := range m.projectCalls(souvenir.ProjectRef{ID: "olga/secret"}) {
			f.failsAt(c.name+" by "+who, c.do(m.store), souvenir.ErrNotFound, "project_id", `"olga/secret"`)
		}
	}
	f.equal("the owner's links", len(p.owner.get(inside.ID).Related), 2)
	for _, c := range p.stranger.projectCalls(apollo) {
		f.failsAt(c.name+" by a stranger", c.do(p.stranger.store), souvenir.ErrNotFound, "project_id", `"olga/apollo"`)
	}
	if w := p.stranger.search(souvenir.Query{ProjectName: "Apollo 11"}).Warnings; len(w) != 1 {
		f.Errorf("a stranger's search in the project warns %q; want one warning, that it is unknown", w)
	}
}

func sharingRoles(f *fixture) {
	f.user("zoe")
	p := share(f)
	people := []string{"olga owner", "cora owner", "rita reader", "will writer"} // at the same time, so by id
	for _, m := range append(p.members(), p.owner) {
		f.same(m.name()+" sees the members", m.members(), people...)
		role := map[string]souvenir.MemberRole{"rita": souvenir.MemberReader, "will": souvenir.MemberWriter}[m.name()]
		if role == "" {
			role = souvenir.MemberOwner
		}
		got := m.project(apollo.ID)
		f.equal(m.name()+"'s role", []any{got.Role, got.Members, got.Owner, got.Name}, []any{role, 4, "olga", "Apollo 11"})
	}
	f.equal("named by its owner", p.owner.project("apollo").Ref(), "apollo")
	f.equal("named by a member", p.coOwner.project("apollo").Ref(), "olga/apollo")
	for _, m := range []*fixture{p.reader, p.writer} {
		for _, c := range m.projectCalls(apollo) {
			if c.writes {
				f.failsAt(c.name+" by "+m.name(), c.do(m.store), souvenir.ErrForbidden, "project_id", `"olga/apollo"`)
			} else {
				f.check(c.name+" by "+m.name(), c.do(m.reader))
			}
		}
	}
	for _, c := range p.coOwner.projectCalls(apollo) {
		err := c.do(p.coOwner.store)
		if c.name == "DeleteProject" {
			f.failsAt(c.name+" by a member who is an owner", err, souvenir.ErrForbidden, "project_id", `"olga/apollo"`, `"olga"`)
			continue
		}
		f.check(c.name+" by a member who is an owner", err)
	}
	f.equal("the name that a member gave it", p.reader.project(apollo.ID).Name, "changed")
	p.owner.add(souvenir.NewMemory{Content: "x", ProjectID: "secret"})
	p.coOwner.addProject(souvenir.NewProject{ID: "mine"})
	for _, name := range []string{"secret", "mine"} {
		_, err := p.coOwner.store.UpdateProject(f.ctx, apollo, souvenir.ProjectUpdate{Name: &name})
		f.check("a member gives it a name that another project of an owner has", err)
	}
}

func sharingWriter(f *fixture) {
	p := share(f)
	theirs := p.owner.list(souvenir.MemoryList{})[0]
	p.writer.addCollection(souvenir.NewCollection{Name: "drafts"})
	mine := p.writer.add(souvenir.NewMemory{Collection: "drafts", Content: "engine", ProjectName: "Apollo 11"})
	f.equal("stored", []string{mine.Owner, mine.ProjectID, mine.ProjectName, mine.Collection},
		[]string{"olga", "apollo", "Apollo 11", "drafts"})
	same(f, "the writer's projects", p.writer.projects(), []string{"olga/apollo"})
	f.equal("changed by the writer", p.writer.rewrite(theirs.ID, "the big rocket").Owner, "olga")
	f.equal("read by the owner", p.owner.get(theirs.ID).Content, "the big rocket")
	f.equal("changed by the owner", p.owner.rewrite(mine.ID, "the engine").Owner, "olga")
	f.equal("history for a reader", len(p.reader.revisions(mine.ID)), 2)
	for _, c := range p.writer.calls(theirs.ID, "plans") {
		if c.name == "UpdateCollection" || c.name == "DeleteCollection" {
			f.fails(c.name+" of the owner's collection by a writer", c.do(p.writer.store), souvenir.ErrForbidden)
		}
	}
	named := p.writer.update(theirs.ID, souvenir.MemoryUpdate{ProjectID: &apollo.ID, Tags: &[]string{"named"}})
	f.equal("changed under the full name of its project", []any{named.ProjectID, named.Tags},
		[]any{"apollo", []string{"named"}})
	_, err := p.writer.store.UpdateMemory(f.ctx, theirs.ID,
		souvenir.MemoryUpdate{ShownMetadata: map[string]any{"project_name": "new"}})
	f.failsAt("moving another's memory", err, souvenir.ErrForbidden, "project_id")
	same(f, "the writer's projects after that", p.writer.projects(), []string{"olga/apollo"})
	_, err = p.writer.store.UpdateMemory(f.ctx, theirs.ID,
		souvenir.MemoryUpdate{ShownMetadata: map[string]any{"project_id": nil}})
	f.failsAt("taking another's memory out of the project", err, souvenir.ErrForbidden, "project_id")
	_, err = p.writer.store.UpdateMemory(f.ctx, mine.ID,
		souvenir.MemoryUpdate{ShownMetadata: map[string]any{"project_id": nil}})
	f.failsAt("taking out of the project what one has stored", err, souvenir.ErrForbidden, "project_id", `"olga"`)
	p.owner.delete(mine.ID)
	p.writer.delete(theirs.ID)
	f.equal("left", p.reader.project(apollo.ID).MemoryCount, 0)

	kept := p.owner.add(souvenir.NewMemory{Content: "kept", ProjectID: "apollo"})
	for _, c := range p.reader.calls(kept.ID, "plans") {
		if c.writes && strings.Contains(c.name, "Memory") && !strings.Contains(c.name, "Add") || c.name == "RestoreRevision" {
			f.fails(c.name+" by a reader", c.do(p.reader.store), souvenir.ErrForbidden)
		}
	}
	_, err = p.reader.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "x", ProjectID: apollo.ID})
	f.failsAt("AddMemory by a reader", err, souvenir.ErrForbidden, "project_id", "read-only")
}

func sharingNames(f *fixture) {
	rita, olga, ben := f.user("rita"), f.user("olga"), f.user("ben")
	for _, owner := range []*fixture{olga, ben} {
		owner.add(souvenir.NewMemory{Content: "of " + owner.name(), ProjectID: "apollo", ProjectName: "Apollo"})
		_, err := f.operator.AddMember(f.ctx,
			souvenir.NewMember{Project: souvenir.ProjectRef{ID: owner.name() + "/apollo"}, User: "rita",
				Role: souvenir.MemberWriter})
		f.check("AddMember", err)
	}
	for _, ref := range []souvenir.ProjectRef{{ID: "apollo"}, {Name: "Apollo"}, {ID: "apollo", Name: "Apollo"}} {
		argument := "project_id"
		if ref.ID == "" {
			argument = "project_name"
		}
		for _, c := range rita.projectCalls(ref) {
			f.failsAt(c.name, c.do(rita.store), souvenir.ErrInvalid, argument, `"ben/apollo"`, `"olga/apollo"`)
		}
		_, err := rita.reader.Search(f.ctx, souvenir.Query{ProjectID: ref.ID, ProjectName: ref.Name})
		f.failsAt("Search", err, souvenir.ErrInvalid, argument, `"ben/apollo"`, `"olga/apollo"`)
		if ref.ID == "" {
			continue // storing by name creates one of her own; see projectNames
		}
		_, err = rita.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "x", ProjectID: ref.ID, ProjectName: ref.Name})
		f.failsAt("AddMemory", err, souvenir.ErrInvalid, argument, `"ben/apollo"`, `"olga/apollo"`)
	}
	f.same("one of the two", contents(rita.search(souvenir.Query{ProjectID: "ben/apollo"})), "of ben")
	f.equal("by owner, id and name", rita.search(souvenir.Query{ProjectID: "ben/apollo", ProjectName: "Apollo"}).Total, 1)
	rita.add(souvenir.NewMemory{Content: "for olga", ProjectID: "olga/apollo"})
	f.equal("stored there", olga.search(souvenir.Query{ProjectID: "apollo"}).Total, 2)
	f.same("projects", rita.projects(), "ben/apollo", "olga/apollo")

	rita.addProject(souvenir.NewProject{ID: "apollo", Name: "Apollo"})
	rita.add(souvenir.NewMemory{Content: "of rita", ProjectName: "Apollo"})
	f.same("her own comes first", contents(rita.search(souvenir.Query{ProjectID: "apollo"})), "of rita")
	f.same("her own comes first in the list, too", rita.projects(), "rita/apollo", "ben/apollo", "olga/apollo")
	f.equal("another's, still", rita.project("olga/apollo").Owner, "olga")

	m := rita.add(souvenir.NewMemory{Content: "between the two", ProjectID: "olga/apollo"})
	for _, as := range []map[string]any{{"project_id": "apollo"}, {"project_name": "Apollo"},
		{"project_id": "apollo", "project_name": "Apollo"}} {
		f.equal("given as it is shown: "+toJSON(as), rita.patch(m.ID, as).Revision, 1)
	}
	_, err := rita.store.UpdateMemory(f.ctx, m.ID,
		souvenir.MemoryUpdate{ShownMetadata: map[string]any{"project_id": "rita/apollo"}})
	f.failsAt("moving to one that is named alike", err, souvenir.ErrForbidden, "project_id")
	own := rita.add(souvenir.NewMemory{Content: "of her own", ProjectID: "apollo"})
	f.equal("moved to one that is named alike", rita.patch(own.ID, map[string]any{"project_id": "olga/apollo"}).Revision,
		2)
	f.equal("in its new project", olga.search(souvenir.Query{ProjectID: "apollo"}).Total, 4)
}

func sharingLimited(f *fixture) {
	p := share(f)
	p.owner.add(souvenir.NewMemory{Content: "x", ProjectID: "secret"})
	for _, access := range []souvenir.Access{
		{User: "olga", Projects: []string{"apollo"}}, {User: "cora", Projects: []string{"olga/apollo"}},
		{User: "rita", Projects: []string{"olga/apollo"}},
	} {
		view := f.as(access)
		f.equal(access.User+" reads the members", len(view.members()), 4)
		f.same(access.User+"'s projects", view.projects(), "olga/apollo")
		for _, c := range view.projectCalls(apollo) {
			if c.writes {
				f.failsAt(c.name+" through a limited view of "+access.User, c.do(view.store), souvenir.ErrForbidden, "project_id")
			}
		}
		err := view.store.DeleteMember(f.ctx, apollo, access.User)
		f.fails("leaving through a limited view", err, souvenir.ErrForbidden)
		_, err = view.reader.Members(f.ctx, souvenir.ProjectRef{ID: "secret"})
		f.fails("Members of another project", err, souvenir.ErrNotFound)
	}
	readOnly := f.as(souvenir.Access{User: "olga", ReadOnly: true})
	for _, c := range readOnly.projectCalls(apollo) {
		if c.writes {
			f.fails(c.name+" for reading only", c.do(readOnly.store), souvenir.ErrReadOnly)
		} else {
			f.check(c.name+" for reading only", c.do(readOnly.reader))
		}
	}
	_, err := readOnly.store.AddProject(f.ctx, souvenir.NewProject{ID: "more"})
	f.fails("AddProject for reading only", err, souvenir.ErrReadOnly)
	f.equal("members", len(p.owner.members()), 4)
}

func sharingDelete(f *fixture) {
	p := share(f)
	theirs := p.writer.add(souvenir.NewMemory{Content: "engine", ProjectID: apollo.ID})
	apart := p.writer.add(souvenir.NewMemory{Content: "apart"})
	p.owner.deleteProject(apollo, &souvenir.DeletionOptions{WithMemories: true})
	for _, m := range append(p.members(), p.owner) {
		same(f, m.name()+"'s projects", m.projects(), nil)
		_, err := m.reader.GetMemory(f.ctx, theirs.ID)
		f.fails("GetMemory", err, souvenir.ErrNotFound)
	}
	f.same("what lay elsewhere", texts(p.writer.list(souvenir.MemoryList{})), apart.Content)
	p.owner.addProject(souvenir.NewProject{ID: "apollo"})
	f.same("members of a new one of that id", p.owner.members(), "olga owner")
}

func sharingOwners(f *fixture) {
	p := share(f)
	ann := f.user("ann")
	ann.addProject(souvenir.NewProject{ID: "hers"})
	_, err := f.operator.AddMember(f.ctx,
		souvenir.NewMember{Project: souvenir.ProjectRef{ID: "ann/hers"}, User: "will", Role: souvenir.MemberReader})
	f.check("AddMember", err)
	p.writer.addProject(souvenir.NewProject{ID: "mine"})
	describe := func(view *fixture) []string {
		all, err := view.reader.Insights().Owners(f.ctx)
		f.check("Owners", err)
		var list []string
		for _, o := range all {
			line := o.ID
			for _, p := range o.Projects {
				line += fmt.Sprintf(" %s:%s", p.Ref(), p.Role)
			}
			list = append(list, line)
		}
		return list
	}
	f.same("a writer's", describe(p.writer), "will mine:owner", "ann ann/hers:reader", "olga olga/apollo:writer")
	f.same("the owner's", describe(p.owner), "olga apollo:owner")
	f.same("a stranger's", describe(p.stranger), "sam")
	f.same("through a limited view", describe(f.as(souvenir.Access{User: "will", Projects: []string{"ann/hers"}})), "will",
		"ann ann/hers:reader")
}

func sharingRace(f *fixture) {
	var group sync.WaitGroup
	stored := make([]souvenir.StoredMemory, 16)
	for i := range stored {
		s := f.store
		if i%2 == 1 {
			s = f.reader // another handle, where there are two
		}
		group.Go(func() {
			var err error
			if stored[i], err = s.AddMemory(f.ctx,
				souvenir.NewMemory{Content: fmt.Sprint("memory ", i), ProjectName: "Apollo"}); err != nil {
				f.Errorf("AddMemory: %v", err)
			}
		})
	}
	group.Wait()
	f.equal("projects", len(f.projects()), 1)
	for _, m := range stored {
		f.equal("project", m.ProjectID, stored[0].ProjectID)
	}
	f.equal("memories in it", f.search(souvenir.Query{ProjectName: "Apollo"}).Total, len(stored))
}

func sharingStatus(f *fixture) {
	p := share(f)
	id := p.owner.search(souvenir.Query{}).Hits[0].ID
	for _, view := range append(p.members(), p.owner) {
		status, err := view.reader.Insights().MemoryStatus(f.ctx, id)
		f.check("MemoryStatus by "+view.name(), err)
		f.equal("seen by "+view.name(), status,
			souvenir.MemoryStatus{Owner: "olga", ProjectID: "apollo", ProjectOwner: "olga", Writable: view.name() != "rita",
				Passages: 1})
	}
	_, err := p.stranger.reader.Insights().MemoryStatus(f.ctx, id)
	f.failsAt("MemoryStatus by a stranger", err, souvenir.ErrNotFound, "id")
	f.addUser(souvenir.NewUser{ID: "nora", Name: "Nora"})
	own := f.user("nora")
	f.embedder.Break(errOffline)
	alone := own.add(souvenir.NewMemory{Content: "a heron"})
	status, err := own.reader.Insights().MemoryStatus(f.ctx, alone.ID)
	f.check("MemoryStatus", err)
	f.equal("of one in no project", status,
		souvenir.MemoryStatus{Owner: "nora", OwnerName: "Nora", Writable: true, Passages: 1, Pending: 1})
}
