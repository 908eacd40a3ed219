package storetest

import (
	"errors"
	"slices"

	"github.com/souvenir-ai/souvenir"
)

func access() concept {
	return concept{"Access", []promise{
		{"a stranger finds and learns nothing through any method", accessStranger},
		{"a limited view finds nothing outside its projects", accessLimited},
		{"a limited view stores into its projects only", accessLimitedWrites},
		{"a limited view of nothing sees nothing", accessLimitedToNothing},
		{"a read-only view refuses every write and reads everything", accessReadOnlyView},
		{"a read-only handle refuses every write and reads everything", accessReadOnlyHandle},
		{"no user given means the local user", accessLocalUser},
		{"a view keeps what it was made with", accessCopied},
		{"a user's name is checked when something is stored", accessUserName},
	}}
}

// call is a method of a store, called on one memory and its collection.
type call struct {
	name   string
	writes bool
	do     func(s *souvenir.Store) error
}

// calls returns all methods that name existing items: memory id in the collection.
func (f *fixture) calls(id, collection string) []call {
	content := "changed"
	return []call{
		{"GetMemory", false, func(s *souvenir.Store) error { _, err := s.GetMemory(f.ctx, id); return err }},
		{"Revisions", false, func(s *souvenir.Store) error { _, err := s.Revisions(f.ctx, id); return err }},
		{"RelatedMemories", false, func(s *souvenir.Store) error { _, err := s.RelatedMemories(f.ctx, id, 2); return err }},
		{"GetCollection", false, func(s *souvenir.Store) error { _, err := s.GetCollection(f.ctx, collection); return err }},
		{"Search", false, func(s *souvenir.Store) error {
			_, err := s.Search(f.ctx, souvenir.Query{Text: "secret", Collections: []string{collection}})
			return err
		}},
		{"Memories", false, func(s *souvenir.Store) error {
			for _, err := range s.Memories(f.ctx, souvenir.MemoryList{Collections: []string{collection}}) {
				return err
			}
			return nil
		}},
		{"Tags", false, func(s *souvenir.Store) error { _, err := s.Insights().Tags(f.ctx, collection); return err }},
		{"AddMemory with a link", true, func(s *souvenir.Store) error {
			_, err := s.AddMemory(f.ctx, souvenir.NewMemory{Content: "x", Related: []string{id}})
			return err
		}},
		{"AddMemory into the collection", true, func(s *souvenir.Store) error {
			_, err := s.AddMemory(f.ctx, souvenir.NewMemory{Content: "x", Collection: collection})
			return err
		}},
		{"UpdateMemory", true, func(s *souvenir.Store) error {
			_, err := s.UpdateMemory(f.ctx, id, souvenir.MemoryUpdate{Content: &content})
			return err
		}},
		{"UpdateMemory of metadata", true, func(s *souvenir.Store) error {
			_, err := s.UpdateMemory(f.ctx, id, souvenir.MemoryUpdate{ShownMetadata: map[string]any{"a": 1},
				ExpectedRevision: 77})
			return err
		}},
		{"RestoreRevision", true, func(s *souvenir.Store) error { _, err := s.RestoreRevision(f.ctx, id, 1); return err }},
		{"UpdateCollection", true, func(s *souvenir.Store) error {
			_, err := s.UpdateCollection(f.ctx, collection, souvenir.CollectionUpdate{Description: &content})
			return err
		}},
		{"DeleteCollection", true, func(s *souvenir.Store) error {
			return s.DeleteCollection(f.ctx, collection, &souvenir.DeletionOptions{WithMemories: true})
		}},
		{"DeleteMemory", true, func(s *souvenir.Store) error { return s.DeleteMemory(f.ctx, id, nil) }},
	}
}

// secret stores a memory with all fields, in a collection and a project of the local user.
func secret(f *fixture) souvenir.Memory {
	f.Helper()
	f.addCollection(souvenir.NewCollection{Name: "vault", Description: "hidden"})
	target := f.add(souvenir.NewMemory{Content: "secret calendar", Collection: "vault", ProjectID: "apollo"})
	m := complete(f, target.ID)
	m.Collection, m.Content = "vault", "the secret formula"
	id := f.add(m).ID
	f.rewrite(id, "the secret formula, mended")
	return f.get(id)
}

// seesNothing checks all methods that list or count.
func seesNothing(f *fixture, who string) {
	f.Helper()
	for _, q := range []souvenir.Query{
		{}, {Text: "secret"}, {Text: "secret formula mended", Sort: souvenir.SortCreatedAsc},
		{Vector: Words{}.Vector("secret")}, {Tags: []string{"deploy"}},
		{Filter: souvenir.Filter{"author": "ann"}}, {Filter: souvenir.Filter{"project_id": "apollo"}}, {ProjectID: "apollo"},
		{ProjectName: "apollo", Text: "secret"}, {ProjectID: "local/apollo"},
	} {
		r := f.search(q)
		f.equal(who+" searches "+brief(q), []int{len(r.Hits), r.Total}, []int{0, 0})
	}
	for _, l := range []souvenir.MemoryList{{}, {ProjectID: "apollo"}, {Tags: []string{"deploy"}}} {
		f.equal(who+" lists", len(f.list(l)), 0)
	}
	same(f, who+"'s tags", f.tags(), nil)
	all, err := f.reader.Collections(f.ctx)
	f.check("Collections", err)
	same(f, who+"'s collections", all, nil)
	projects, err := f.reader.Projects(f.ctx)
	f.check("Projects", err)
	same(f, who+"'s projects", projects, nil)
	owners, err := f.reader.Insights().Owners(f.ctx)
	f.check("Owners", err)
	f.equal(who+"'s owners", owners, []souvenir.Owner{{ID: f.reader.Access().User, Projects: []souvenir.Project{}}})
}

func accessStranger(f *fixture) {
	m := secret(f)
	before := f.revisions(m.ID)
	ann := f.as(souvenir.Access{User: "ann"})
	seesNothing(ann, "a stranger")
	for _, c := range f.calls(m.ID, "vault") {
		s := ann.reader
		if c.writes {
			s = ann.store
		}
		err := c.do(s)
		f.fails(c.name+" by a stranger", err, souvenir.ErrNotFound)
		if unknown := callUnknown(f, s, c.name); err != nil && unknown != nil &&
			errors.Is(err, souvenir.ErrNotFound) != errors.Is(unknown, souvenir.ErrNotFound) {
			f.Errorf("%s: a stranger can distinguish existing (%v) from missing (%v); want the same error", c.name, err,
				unknown)
		}
	}
	hers := ann.add(souvenir.NewMemory{Content: "her secret", ProjectID: "apollo", Tags: []string{"deploy"}})
	f.equal("her project", hers.ProjectName, "apollo")
	f.same("hers", ann.find("secret"), "her secret")
	f.equal("my memory", f.get(m.ID), m)
	f.equal("its history", f.revisions(m.ID), before)
	f.equal("mine", len(f.find("secret")), 2)
	f.equal("the description of my collection", f.collection("vault").Description, "hidden")
	f.equal("my tags", f.tags()[0].Count, 1)
}

// callUnknown makes the same call about an item that does not exist.
func callUnknown(f *fixture, s *souvenir.Store, name string) error {
	for _, c := range f.calls("noah", "nowhere") {
		if c.name == name {
			return c.do(s)
		}
	}
	return nil
}

func accessLimited(f *fixture) {
	m := secret(f)
	f.add(souvenir.NewMemory{Content: "other car", ProjectID: "gemini", Tags: []string{"g"}})
	f.addTexts("no project")
	gemini := f.as(souvenir.Access{Projects: []string{"gemini"}})
	f.same("by time", contents(gemini.search(souvenir.Query{})), "other car")
	f.same("by text", contents(gemini.search(souvenir.Query{Text: "secret"})), "other car")
	f.same("listed", texts(gemini.list(souvenir.MemoryList{})), "other car")
	f.equal("tags", gemini.tags(), []souvenir.Tag{{Name: "g", Count: 1}})
	f.equal("a project beyond it", gemini.search(souvenir.Query{ProjectID: "apollo"}).Total, 0)
	for _, c := range f.calls(m.ID, "vault") {
		if c.name != "AddMemory into the collection" {
			f.fails(c.name+" through a view limited to another project", c.do(gemini.store), souvenir.ErrNotFound)
		}
	}
	both := f.as(souvenir.Access{Projects: []string{"gemini", "apollo", "unknown"}})
	f.equal("two projects", both.search(souvenir.Query{}).Total, 3)
	f.equal("in the collection, as far as it is visible", both.collection("vault").MemoryCount, 2)
	f.equal("the memory", both.get(m.ID), m)
	f.equal("named with its owner",
		f.as(souvenir.Access{Projects: []string{"local/apollo"}}).search(souvenir.Query{}).Total, 2)
	f.equal("named with another owner",
		f.as(souvenir.Access{Projects: []string{"ann/apollo"}}).search(souvenir.Query{}).Total, 0)
	f.equal("everything", f.search(souvenir.Query{}).Total, 4)
}

func accessLimitedWrites(f *fixture) {
	m := secret(f)
	f.addCollection(souvenir.NewCollection{Name: "notes"})
	apollo := f.as(souvenir.Access{Projects: []string{"apollo"}})
	f.equal("stored without a project", apollo.add(souvenir.NewMemory{Content: "x"}).ProjectID, "apollo")
	for _, p := range []souvenir.NewMemory{{ProjectID: "gemini"}, {ProjectName: "gemini"},
		{ShownMetadata: map[string]any{"project_id": "gemini"}}} {
		p.Content = "x"
		_, err := apollo.store.AddMemory(f.ctx, p)
		f.failsAt("AddMemory into another project", err, souvenir.ErrForbidden, "project_id", "apollo", "gemini")
	}
	_, err := apollo.store.UpdateMemory(f.ctx, m.ID,
		souvenir.MemoryUpdate{ShownMetadata: map[string]any{"project_id": "gemini"}})
	f.failsAt("UpdateMemory into another project", err, souvenir.ErrForbidden, "project_id", "gemini")
	f.equal("moving out of all projects stays within the view",
		apollo.patch(m.ID, map[string]any{"project_id": nil}).ProjectID, "apollo")
	_, err = apollo.store.AddCollection(f.ctx, souvenir.NewCollection{Name: "more"})
	f.failsAt("AddCollection", err, souvenir.ErrForbidden, "collection_name")
	_, err = apollo.store.UpdateCollection(f.ctx, "vault", souvenir.CollectionUpdate{Description: new(string)})
	f.failsAt("UpdateCollection", err, souvenir.ErrForbidden, "collection_name", `"vault"`)
	f.failsAt("DeleteCollection",
		apollo.store.DeleteCollection(f.ctx, "vault", &souvenir.DeletionOptions{WithMemories: true}),
		souvenir.ErrForbidden, "collection_name", `"vault"`)
	two := f.as(souvenir.Access{Projects: []string{"apollo", "fresh"}})
	_, err = two.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "x"})
	f.failsAt("AddMemory through a view of two projects", err, souvenir.ErrForbidden, "project_id", `"apollo" or "fresh"`)
	fresh := f.as(souvenir.Access{Projects: []string{"fresh"}})
	stored, err := fresh.store.AddMemories(f.ctx,
		[]souvenir.NewMemory{{Content: "one"}, {Content: "two", Collection: "notes"}}, nil)
	f.check("AddMemories through a view of a project that is not there yet", err)
	f.equal("its project", []string{stored[0].ProjectID, stored[1].ProjectID}, []string{"fresh", "fresh"})
	f.equal("found", fresh.search(souvenir.Query{}).Total, 2)
}

func accessLimitedToNothing(f *fixture) {
	m := secret(f)
	nothing := f.as(souvenir.Access{Projects: []string{}})
	seesNothing(nothing, "a view of nothing")
	for _, c := range f.calls(m.ID, "vault") {
		if err := c.do(nothing.store); err == nil {
			f.Errorf("%s through a view of nothing succeeds, want an error", c.name)
		}
	}
	_, err := nothing.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "x"})
	f.failsAt("AddMemory", err, souvenir.ErrForbidden, "project_id", "limited to an empty list of projects")
	f.equal("the memory", f.get(m.ID), m)
}

func accessReadOnlyView(f *fixture) {
	m := secret(f)
	readOnly(f, m, f.as(souvenir.Access{ReadOnly: true}))
	ann := f.as(souvenir.Access{User: "ann", ReadOnly: true})
	seesNothing(ann, "a stranger who may only read")
}

func accessReadOnlyHandle(f *fixture) {
	m := secret(f)
	options := f.options(f.embedder)
	options.ReadOnly = true
	view := *f
	view.reader = f.open(f.T, options)
	view.store = view.reader
	readOnly(f, m, &view)
	f.rewrite(m.ID, "the secret recipe")
	f.same("a write through another handle", view.byWord("recipe"), "the secret recipe")
}

// readOnly checks that a view of the whole store reads all and writes nothing.
func readOnly(f *fixture, m souvenir.Memory, view *fixture) {
	f.Helper()
	for _, c := range slices.Concat(f.calls(m.ID, "vault"), f.projectCalls(souvenir.ProjectRef{ID: "apollo"}),
		f.projectLists()) {
		switch err := c.do(view.store); {
		case c.writes:
			f.fails(c.name+" for reading only", err, souvenir.ErrReadOnly)
		case err != nil:
			f.Errorf("%s for reading only: %v", c.name, err)
		}
	}
	for _, c := range slices.Concat(f.ruleCalls(souvenir.ProjectRef{ID: "apollo"}),
		f.contextCalls(souvenir.ProjectRef{ID: "apollo"})) {
		if err := c.do(view.store); c.writes || errors.Is(err, souvenir.ErrReadOnly) {
			f.fails(c.name+" for reading only", err, souvenir.ErrReadOnly)
			f.equal(c.name+" writes", c.writes, true)
		}
	}
	_, err := view.store.AddCollection(f.ctx, souvenir.NewCollection{Name: "more"})
	f.fails("AddCollection for reading only", err, souvenir.ErrReadOnly)
	_, err = view.store.AddMemories(f.ctx, []souvenir.NewMemory{{Content: "x"}}, nil)
	f.fails("AddMemories for reading only", err, souvenir.ErrReadOnly)
	f.equal("the memory", view.get(m.ID), m)
	f.equal("by meaning", len(view.find("secret")), 2)
	f.equal("collections", view.collection("vault").MemoryCount, 2)
	f.equal("memories", f.search(souvenir.Query{}).Total, 2)
}

func accessLocalUser(f *fixture) {
	f.addTexts("mine")
	for _, a := range []souvenir.Access{{}, {User: souvenir.LocalUser}} {
		view := f.as(a)
		f.same("by time", contents(view.search(souvenir.Query{})), "mine")
		f.equal("user", view.store.Access().User, souvenir.LocalUser)
	}
	f.equal("a view of a view is not narrower",
		f.as(souvenir.Access{User: "ann", ReadOnly: true}).as(souvenir.Access{}).search(souvenir.Query{}).Total, 1)
}

func accessCopied(f *fixture) {
	f.add(souvenir.NewMemory{Content: "a", ProjectID: "a"})
	f.add(souvenir.NewMemory{Content: "b", ProjectID: "b"})
	list := []string{"a"}
	view := f.as(souvenir.Access{Projects: list})
	list[0] = "b"
	view.store.Access().Projects[0] = "b"
	f.same("seen", contents(view.search(souvenir.Query{})), "a")
	f.equal("access", view.store.Access(), souvenir.Access{User: souvenir.LocalUser, Projects: []string{"a"}})
	if got := f.as(souvenir.Access{Projects: []string{}}).store.Access().Projects; got == nil {
		f.Errorf("a view of no projects: got no limit, want an empty list")
	}
}

func accessUserName(f *fixture) {
	for _, user := range []string{" ", "a\nb", "a\xff"} {
		_, err := f.as(souvenir.Access{User: user}).store.AddMemory(f.ctx, souvenir.NewMemory{Content: "x"})
		f.failsAt("AddMemory", err, souvenir.ErrInvalid, "user")
	}
	for _, user := range []string{"Ann", "ann", "日本", "a/b", "'"} {
		view := f.as(souvenir.Access{User: user})
		m := view.add(souvenir.NewMemory{Content: "of " + user})
		f.equal("owner", m.Owner, user)
		f.same("seen", contents(view.search(souvenir.Query{})), "of "+user)
	}
}
