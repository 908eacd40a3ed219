package systemtest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/internal/testing/storetest"
)

// The store is compared with a small model of its rules: who owns what, who may see and change it, and what each call
// must return. Three users do random things, and after each step everyone must see exactly what the model says. rapid
// shrinks a failure to the fewest and smallest steps.

// world is the model. The names of its projects are their ids.
type world struct {
	projects map[string]*modelProject // by OWNER/ID
	memories map[string]*modelMemory  // by id
	declined []modelDeclined
	blocked  map[[2]string]bool // user and the user whose invitations are not delivered
}

type modelProject struct {
	owner, id string
	members   map[string]souvenir.MemberRole
	invited   map[string]modelInvited // by user
}

func (p *modelProject) key() string { return p.owner + "/" + p.id }

func (p *modelProject) sharedWith(user string) bool {
	return p.owner == user || p.members[user] != ""
}

func (p *modelProject) writableBy(user string) bool {
	return p.owner == user || p.members[user] == souvenir.MemberWriter || p.members[user] == souvenir.MemberOwner
}

func (p *modelProject) managedBy(user string) bool {
	return p.owner == user || p.members[user] == souvenir.MemberOwner
}

type modelMemory struct {
	id, owner, content string
	project            *modelProject // nil for none
	rule               souvenir.RuleType
	revision           int
}

// A memory in a project belongs to the project, whichever member stored it.
func (m *modelMemory) visibleTo(user string) bool {
	if m.project != nil {
		return m.project.sharedWith(user)
	}
	return m.owner == user
}

func (m *modelMemory) writableBy(user string) bool {
	if m.project != nil {
		return m.project.writableBy(user)
	}
	return m.owner == user
}

// lies moves a memory into a project or, if nil, out of any.
func (m *modelMemory) lies(project *modelProject) *modelMemory {
	if m.project = project; project != nil {
		m.owner = project.owner
	}
	return m
}

// find finds a project by a user's reference: an own id comes before shared ones, and OWNER/ID is unambiguous.
func (w *world) find(user, ref string) (*modelProject, souvenir.Kind) {
	if p := w.projects[user+"/"+ref]; p != nil {
		return p, ""
	}
	var found []*modelProject
	for _, p := range w.projects {
		if p.sharedWith(user) && (p.id == ref || p.key() == ref) {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 0:
		return nil, ""
	case 1:
		return found[0], ""
	}
	return nil, souvenir.KindInvalid
}

// place finds the project that a write goes to. It creates an unknown one if its name is not a reference.
func (w *world) place(user, ref string) (*modelProject, souvenir.Kind) {
	if ref == "" {
		return nil, ""
	}
	p, kind := w.find(user, ref)
	switch {
	case kind != "":
		return nil, kind
	case p == nil && strings.Contains(ref, "/"):
		return nil, souvenir.KindInvalid
	case p == nil:
		p = &modelProject{owner: user, id: ref, members: map[string]souvenir.MemberRole{}}
		w.projects[p.key()] = p
	case !p.writableBy(user):
		return nil, souvenir.KindForbidden
	}
	return p, ""
}

// ruleIn returns the rule of a type in a project, or the user's general one.
func (w *world) ruleIn(user string, project *modelProject, rule souvenir.RuleType) *modelMemory {
	for _, m := range w.memories {
		if m.rule == rule && m.project == project && (project != nil || m.owner == user) {
			return m
		}
	}
	return nil
}

// touch is the beginning of every call on a memory: one that the user cannot see is not found, and one that the user
// can only read is forbidden.
func (w *world) touch(user, id string) souvenir.Kind {
	m := w.memories[id]
	switch {
	case m == nil || !m.visibleTo(user):
		return souvenir.KindNotFound
	case !m.writableBy(user):
		return souvenir.KindForbidden
	}
	return ""
}

func (w *world) seenBy(user string) []string {
	var seen []string
	for id, m := range w.memories {
		if m.visibleTo(user) {
			seen = append(seen, id)
		}
	}
	slices.Sort(seen)
	return seen
}

// trial is a store and its model.
type trial struct {
	world
	store *souvenir.Store
	again opener
	count int // number of contents and ids made
	gone  []string
}

// newID makes the same ids in each run, so that rapid can repeat and shrink a failure.
func (tr *trial) newID() string {
	tr.count++
	return fmt.Sprintf("id-%d", tr.count)
}

var (
	modelUsers = []string{"anna", "ben", "cleo"}
	modelRefs  = []string{"", "boat", "house", "anna/boat", "ben/boat", "cleo/house"}
	modelRoles = []souvenir.MemberRole{souvenir.MemberReader, souvenir.MemberWriter, souvenir.MemberOwner}
)

func (tr *trial) as(user string) *souvenir.Store { return tr.store.As(souvenir.Access{User: user}) }

func (tr *trial) open(t *rapid.T) {
	store, err := tr.again(t.Context(), &souvenir.Options{Embedder: storetest.Words{}, NewID: tr.newID})
	if err != nil {
		t.Fatal(err)
	}
	tr.store = store
}

func user(t *rapid.T) string { return rapid.SampledFrom(modelUsers).Draw(t, "user") }
func ref(t *rapid.T) string  { return rapid.SampledFrom(modelRefs).Draw(t, "project") }

// id draws the id of a memory that exists, has existed, or never did.
func (tr *trial) id(t *rapid.T) string {
	ids := slices.Sorted(maps.Keys(tr.memories))
	ids = append(ids, tr.gone...)
	return rapid.SampledFrom(append(ids, "never-made")).Draw(t, "memory")
}

func (tr *trial) content() string {
	tr.count++
	return fmt.Sprintf("kettle %d", tr.count)
}

// expect compares the result of a call with the model's.
func expect(t *rapid.T, what string, err error, want souvenir.Kind) {
	t.Helper()
	var got souvenir.Kind
	var known *souvenir.Error
	if errors.As(err, &known) {
		got = known.Kind
	}
	if got != want || err != nil && got == "" {
		t.Fatalf("%s: %v; the model says %q, want the same", what, err, want)
	}
}

func (tr *trial) add(t *rapid.T) {
	user, ref, content := user(t), ref(t), tr.content()
	stored, err := tr.as(user).AddMemory(t.Context(), souvenir.NewMemory{Content: content, ProjectID: ref})
	project, kind := tr.place(user, ref)
	expect(t, fmt.Sprintf("%s adds to %q", user, ref), err, kind)
	if kind == "" {
		m := &modelMemory{id: stored.ID, owner: user, content: content, revision: 1}
		tr.memories[stored.ID] = m.lies(project)
	}
}

func (tr *trial) update(t *rapid.T) {
	user, id, content := user(t), tr.id(t), tr.content()
	expected := rapid.IntRange(0, 3).Draw(t, "expected revision")
	_, err := tr.as(user).UpdateMemory(t.Context(), id,
		souvenir.MemoryUpdate{Content: &content, ExpectedRevision: expected})
	kind := tr.touch(user, id)
	if kind == "" && expected != 0 && expected != tr.memories[id].revision {
		kind = souvenir.KindConflict
	}
	expect(t, fmt.Sprintf("%s updates %s", user, id), err, kind)
	if kind == "" {
		tr.memories[id].content = content
		tr.memories[id].revision++
	}
}

func (tr *trial) move(t *rapid.T) {
	user, id, ref := user(t), tr.id(t), ref(t)
	var to any
	if ref != "" {
		to = ref
	}
	_, err := tr.as(user).UpdateMemory(t.Context(), id,
		souvenir.MemoryUpdate{ShownMetadata: map[string]any{"project_id": to}})
	kind := tr.touch(user, id)
	var project *modelProject
	if kind == "" {
		project, kind = tr.moveTo(user, ref, tr.memories[id])
	}
	expect(t, fmt.Sprintf("%s moves %s to %q", user, id, ref), err, kind)
	if kind == "" && tr.memories[id].project != project {
		tr.memories[id].lies(project)
		tr.memories[id].revision++
	}
}

// moveTo is place with more rules: a reference to the memory's present project is not a move, only its owner may move
// it, and a project has one rule of each type.
func (tr *trial) moveTo(user, ref string, m *modelMemory) (*modelProject, souvenir.Kind) {
	switch {
	case m.project != nil && m.project.id == ref, m.project == nil && ref == "":
		return m.project, ""
	case m.owner != user:
		return nil, souvenir.KindForbidden
	}
	before := maps.Clone(tr.projects)
	project, kind := tr.place(user, ref)
	if kind == "" && m.rule != "" {
		if other := tr.ruleIn(m.owner, project, m.rule); other != nil && other != m {
			tr.projects = before
			return nil, souvenir.KindConflict
		}
	}
	return project, kind
}

func (tr *trial) delete(t *rapid.T) {
	user, id := user(t), tr.id(t)
	err := tr.as(user).DeleteMemory(t.Context(), id, nil)
	kind := tr.touch(user, id)
	expect(t, fmt.Sprintf("%s deletes %s", user, id), err, kind)
	if kind == "" {
		delete(tr.memories, id)
		tr.gone = append(tr.gone, id)
	}
}

func (tr *trial) setRule(t *rapid.T) {
	user, ref, content := user(t), ref(t), tr.content()
	rule := rapid.SampledFrom([]souvenir.RuleType{souvenir.RuleDo, souvenir.RuleDont}).Draw(t, "rule")
	stored, err := tr.as(user).SetRule(t.Context(), souvenir.NewRule{ProjectID: ref, Type: rule, Content: content})
	project, kind := tr.place(user, ref)
	expect(t, fmt.Sprintf("%s sets the %s rule of %q", user, rule, ref), err, kind)
	if kind != "" {
		return
	}
	if m := tr.ruleIn(user, project, rule); m != nil {
		if m.id != stored.ID {
			t.Fatalf("%s sets the %s rule of %q: it has the id %s; the one that is there has %s, want the same", user, rule, ref,
				stored.ID, m.id)
		}
		m.content = content
		m.revision++
		return
	}
	m := &modelMemory{id: stored.ID, owner: user, content: content, rule: rule, revision: 1}
	tr.memories[stored.ID] = m.lies(project)
}

// managed finds the project whose members a user wants to change.
func (tr *trial) managed(user, ref string) (*modelProject, souvenir.Kind) {
	p, kind := tr.find(user, ref)
	switch {
	case ref == "":
		return nil, souvenir.KindInvalid
	case kind != "":
		return nil, kind
	case p == nil:
		return nil, souvenir.KindNotFound
	case !p.managedBy(user):
		return p, souvenir.KindForbidden
	}
	return p, ""
}

func (tr *trial) unshare(t *rapid.T) {
	owner, ref, member := user(t), ref(t), user(t)
	err := tr.as(owner).DeleteMember(t.Context(),
		souvenir.ProjectRef{ID: ref}, member)
	p, kind := tr.managed(owner, ref)
	if kind == souvenir.KindForbidden && owner == member {
		kind = "" // any member may leave
	}
	if kind == "" && p.owner == member {
		kind = souvenir.KindForbidden
	}
	invited := false
	if kind == "" && p.managedBy(owner) {
		_, invited = p.invited[member]
	}
	if kind == "" && p.members[member] == "" && !invited {
		kind = souvenir.KindNotFound
	}
	expect(t, fmt.Sprintf("%s takes %q from %s", owner, ref, member), err, kind)
	switch {
	case kind != "":
	case p.members[member] == "":
		delete(p.invited, member)
	default:
		delete(p.members, member)
		delete(p.invited, member)
		p.endInvitationsOf(member)
	}
}

func (tr *trial) promote(t *rapid.T) {
	owner, ref, member, role := user(t), ref(t), user(t), rapid.SampledFrom(modelRoles).Draw(t, "role")
	given, err := tr.as(owner).UpdateMember(t.Context(),
		souvenir.ProjectRef{ID: ref}, member, souvenir.MemberUpdate{Role: role})
	p, kind := tr.managed(owner, ref)
	switch {
	case kind != "":
	case p.owner == member:
		kind = souvenir.KindForbidden
	case p.members[member] == "" && p.invited[member].by == "":
		kind = souvenir.KindNotFound
	}
	expect(t, fmt.Sprintf("%s makes %s %s of %q", owner, member, role, ref), err, kind)
	switch {
	case kind != "":
	case p.members[member] == "":
		i := p.invited[member]
		p.invited[member] = modelInvited{i.by, role, i.delivered}
	case slices.Index(modelRoles, role) > slices.Index(modelRoles, p.members[member]):
		if given.Status != souvenir.MemberInvited {
			t.Fatalf("a higher role is answered with %+v; want status %v", given, souvenir.MemberInvited)
		}
		tr.invite(owner, member, p, role)
	default:
		p.members[member] = role
		delete(p.invited, member)
		if role != souvenir.MemberOwner {
			p.endInvitationsOf(member)
		}
	}
}

func (tr *trial) deleteProject(t *rapid.T) {
	user, ref, all := user(t), ref(t), rapid.Bool().Draw(t, "with memories")
	err := tr.as(user).DeleteProject(t.Context(),
		souvenir.ProjectRef{ID: ref}, &souvenir.DeletionOptions{WithMemories: all})
	p, kind := tr.managed(user, ref)
	if kind == "" && p.owner != user {
		kind = souvenir.KindForbidden
	}
	var within []string
	for id, m := range tr.memories {
		if p != nil && m.project == p {
			within = append(within, id)
		}
	}
	if kind == "" && len(within) > 0 && !all {
		kind = souvenir.KindConflict
	}
	expect(t, fmt.Sprintf("%s deletes %q", user, ref), err, kind)
	if kind != "" {
		return
	}
	delete(tr.projects, p.key())
	slices.Sort(within)
	for _, id := range within {
		delete(tr.memories, id)
		tr.gone = append(tr.gone, id)
	}
}

func (tr *trial) reopen(t *rapid.T) {
	if err := tr.store.Close(); err != nil {
		t.Fatal(err)
	}
	tr.open(t)
}

// check compares everything that everyone sees with the model, also through a view limited to one project.
func (tr *trial) check(t *rapid.T) {
	tr.checkInvitations(t)
	for _, user := range modelUsers {
		view := tr.as(user)
		tr.compare(t, user, view, tr.seenBy(user))
		for _, id := range slices.Sorted(maps.Keys(tr.memories)) {
			tr.checkMemory(t, user, view, tr.memories[id])
		}
		limit := ref(t)
		if limit == "" {
			continue
		}
		project, kind := tr.find(user, limit)
		var seen []string
		for _, id := range tr.seenBy(user) {
			if m := tr.memories[id]; kind == "" && project != nil && m.project == project {
				seen = append(seen, id)
			}
		}
		tr.compare(t, user+" limited to "+limit,
			tr.store.As(souvenir.Access{User: user, Projects: []string{limit}, ReadOnly: true}), seen)
	}
}

// compare checks that a search and a listing find exactly these memories.
func (tr *trial) compare(t *rapid.T, who string, view *souvenir.Store, want []string) {
	t.Helper()
	results, err := view.Search(t.Context(), souvenir.Query{Text: "kettle", Limit: souvenir.MaxLimit})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, hit := range results.Hits {
		found = append(found, hit.ID)
	}
	if slices.Sort(found); !slices.Equal(found, want) || results.Total != len(want) {
		t.Fatalf("%s finds %v (%d in all), want %v (%d in all), as in the model", who, found, results.Total, want,
			len(want))
	}
	var listed []string
	for m, err := range view.Memories(t.Context(), souvenir.MemoryList{}) {
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, m.ID)
	}
	if slices.Sort(listed); !slices.Equal(listed, want) {
		t.Fatalf("%s lists %v; the model says %v, want the same", who, listed, want)
	}
}

func (tr *trial) checkMemory(t *rapid.T, user string, view *souvenir.Store, m *modelMemory) {
	t.Helper()
	got, err := view.GetMemory(t.Context(), m.id)
	if !m.visibleTo(user) {
		expect(t, user+" gets "+m.id, err, souvenir.KindNotFound)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	project := ""
	if m.project != nil {
		project = m.project.id
	}
	if got.Content != m.content || got.Owner != m.owner || got.ProjectID != project || got.Revision != m.revision ||
		got.RuleType != m.rule {
		t.Fatalf("%s sees %+v; the model says %+v in %q; want the same", user, got, *m, project)
	}
}

func TestTheStoreKeepsToAModelOfItsRules(t *testing.T) {
	quick := "2"
	if longtest.All() || testing.Short() { // with -short, rapid runs a fifth of them
		quick = ""
	}
	folder := t.TempDir()
	keepsToTheModel(t, quick, func(run int) opener {
		return func(ctx context.Context, options *souvenir.Options) (*souvenir.Store, error) {
			return souvenir.Open(ctx, fmt.Sprintf("%s/%d.db", folder, run), options)
		}
	})
}

// Each statement takes longer than in a file, so there are few runs.
func TestServersKeepToAModelOfTheRules(t *testing.T) {
	for _, e := range engines {
		if e.server == nil || e.walled {
			continue
		}
		t.Run(e.name, func(t *testing.T) {
			e.server(t)
			keepsToTheModel(t, strconv.Itoa(longtest.Size(20, 3)), func(int) opener {
				empty := e.empty(t)
				return func(ctx context.Context, options *souvenir.Options) (*souvenir.Store, error) {
					return empty.openWith(ctx, *options)
				}
			})
		})
	}
}

// opener opens the store of one run: an empty one at first, then the same one.
type opener = func(context.Context, *souvenir.Options) (*souvenir.Store, error)

// keepsToTheModel makes the given number of runs, or rapid's default if "", each with a new store.
func keepsToTheModel(t *testing.T, checks string, newStore func(run int) opener) {
	if checks != "" {
		wanted := flag.Lookup("rapid.checks").Value
		all := wanted.String()
		defer func() { _ = wanted.Set(all) }()
		if err := wanted.Set(checks); err != nil {
			t.Fatal(err)
		}
	}
	runs := 0
	rapid.Check(t, func(t *rapid.T) {
		runs++
		tr := &trial{
			world: world{projects: map[string]*modelProject{}, memories: map[string]*modelMemory{}},
			again: newStore(runs),
		}
		tr.open(t)
		defer func() { tr.store.Close() }()
		for _, user := range modelUsers {
			if _, err := tr.store.Accounts().AddUser(t.Context(), souvenir.NewUser{ID: user, Name: user}); err != nil {
				t.Fatal(err)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": tr.add, "update": tr.update, "move": tr.move, "delete": tr.delete, "rule": tr.setRule,
			"share": tr.share, "answer": tr.answer, "unshare": tr.unshare, "promote": tr.promote,
			"delete project": tr.deleteProject, "reopen": tr.reopen, "": tr.check,
		})
	})
}
