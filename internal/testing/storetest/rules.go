package storetest

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func rules() concept {
	return concept{"Rules", []promise{
		{"a project has one of each type, and storing another replaces it", ruleInPlace},
		{"what stores the same again changes nothing", ruleSame},
		{"without a project they are general, and a user's own", ruleGeneral},
		{"tags and links stay unless they are given", ruleLists},
		{"storing a rule as a memory replaces the current one", ruleByMemory},
		{"no update, move or restoration makes a second one", ruleConflicts},
		{"a deleted one is gone with its history, and may be set again", ruleDelete},
		{"an unknown project has none", ruleUnknown},
		{"errors name bad arguments, and the allowed values", ruleArguments},
		{"an expected revision is kept to", ruleExpected},
		{"concurrent calls that store one leave one memory", ruleConcurrent},
		{"a rule is stored without an embedder, and embedded later", ruleUnembedded},
	}}
}

// ruleCalls returns the methods about rules and todos.
func (f *fixture) ruleCalls(project souvenir.ProjectRef) []call {
	return []call{
		{"SetRule", true, func(s *souvenir.Store) error {
			_, err := s.SetRule(f.ctx, souvenir.NewRule{ProjectID: project.ID, ProjectName: project.Name, Type: souvenir.RuleDo,
				Content: "x"})
			return err
		}},
		{"GetRule", false, func(s *souvenir.Store) error {
			_,
				err := s.GetRule(f.ctx, project, souvenir.RuleDo)
			return err
		}},
		{"Rules", false, func(s *souvenir.Store) error { _, err := s.Rules(f.ctx, project); return err }},
		{"DeleteRule", true, func(s *souvenir.Store) error { return s.DeleteRule(f.ctx, project, souvenir.RuleDo) }},
		{"SetTodo", true, func(s *souvenir.Store) error {
			_, err := s.SetTodo(f.ctx, souvenir.NewTodo{ProjectID: project.ID, ProjectName: project.Name, Content: document()})
			return err
		}},
		{"GetTodo", false, func(s *souvenir.Store) error { _, err := s.GetTodo(f.ctx, project); return err }},
		{"UpdateTodoSection", true, func(s *souvenir.Store) error {
			_, err := s.UpdateTodoSection(f.ctx, project, souvenir.SectionPlan, souvenir.TodoSectionUpdate{})
			return err
		}},
		{"CompleteTask", true, func(s *souvenir.Store) error {
			_, err := s.CompleteTask(f.ctx, souvenir.TaskRef{ProjectID: project.ID, ProjectName: project.Name, TaskID: "T1"})
			return err
		}},
	}
}

func (f *fixture) setRule(r souvenir.NewRule) souvenir.StoredRule {
	f.Helper()
	stored, err := f.store.SetRule(f.ctx, r)
	f.check("SetRule "+brief(r), err)
	return stored
}

func (f *fixture) rules(project string) souvenir.Rules {
	f.Helper()
	r, err := f.reader.Rules(f.ctx, souvenir.ProjectRef{ID: project})
	f.check("Rules of "+project, err)
	return r
}

func ruleInPlace(f *fixture) {
	first := f.setRule(souvenir.NewRule{ProjectName: "Apollo", Type: souvenir.RuleDo, Content: "write a heron",
		Tags: []string{"style"}})
	f.equal("created", first.Created, true)
	f.equal("stored", first.Memory, souvenir.Memory{
		ID: first.ID, Collection: souvenir.DefaultCollection, Owner: souvenir.LocalUser, Content: "write a heron",
		EventType: souvenir.EventProjectRule, RuleType: souvenir.RuleDo, ProjectID: first.ProjectID, ProjectName: "Apollo",
		Tags: []string{"style"}, Metadata: map[string]any{}, Revision: 1, CreatedAt: start, UpdatedAt: start,
	})
	dont := f.setRule(souvenir.NewRule{ProjectID: first.ProjectID, Type: souvenir.RuleDont, Content: "write an otter"})
	other := f.setRule(souvenir.NewRule{ProjectID: "gemini", Type: souvenir.RuleDo, Content: "another"})
	f.clock.Pass(time.Hour)
	again := f.setRule(souvenir.NewRule{ProjectID: first.ProjectID, Type: souvenir.RuleDo, Content: "write an ibis"})
	f.equal("again", []any{again.ID, again.Created, again.Revision, again.CreatedAt, again.UpdatedAt, again.Indexed},
		[]any{first.ID, false, 2, start, start.Add(time.Hour), true})
	f.equal("read", f.get(first.ID), again.Memory)
	f.equal("history", f.revisions(first.ID)[1].Content, "write a heron")
	f.same("found", f.find("ibis"), "write an ibis")
	f.same("found by what it was", f.find("heron"))
	r := f.rules(first.ProjectID)
	f.equal("rules", []any{*r.Do, *r.Dont, r.Todo, r.Warnings == nil},
		[]any{again.Memory, dont.Memory, (*souvenir.Memory)(nil), true})
	f.equal("of another project", f.rules("gemini").Do.ID, other.ID)
	m, err := f.reader.GetRule(f.ctx, souvenir.ProjectRef{Name: "Apollo"}, souvenir.RuleDont)
	f.check("GetRule", err)
	f.equal("one of them", m, dont.Memory)
	f.sameJSON("a rule as JSON", object(toJSON(again)), storedForm(again, nil))
}

// storedForm returns the form in the interface of a changed rule, with more keys.
func storedForm(r souvenir.StoredRule, more map[string]any) map[string]any {
	all := map[string]any{"id": r.ID, "created": false, "updated": true, "revision": r.Revision, "indexed": true,
		"memory": object(toJSON(r.Memory))}
	maps.Copy(all, more)
	return all
}

// withKeys returns a memory as JSON with more keys.
func withKeys(m souvenir.Memory, keys map[string]any) map[string]any {
	all := object(toJSON(m))
	for key, value := range keys {
		all[key] = value
	}
	return all
}

func ruleSame(f *fixture) {
	rule := souvenir.NewRule{ProjectID: "apollo", Type: souvenir.RuleDo, Content: "the same",
		Tags: []string{"a", " b ", "a"}}
	first := f.setRule(rule)
	f.clock.Pass(time.Hour)
	f.equal("again", f.setRule(rule).Memory, first.Memory)
	f.equal("revisions", len(f.revisions(first.ID)), 1)
}

func ruleGeneral(f *fixture) {
	general := f.setRule(souvenir.NewRule{Type: souvenir.RuleDont, Content: "mine"})
	hers := f.as(souvenir.Access{User: "ann"})
	f.equal("another user's", hers.rules("").Dont == nil, true)
	f.equal("is another one", hers.setRule(souvenir.NewRule{Type: souvenir.RuleDont, Content: "hers"}).Created, true)
	f.equal("again", f.setRule(souvenir.NewRule{Type: souvenir.RuleDont, Content: "mine, too"}).ID, general.ID)
	f.equal("general", []string{f.rules("").Dont.Content, hers.rules("").Dont.Content}, []string{"mine, too", "hers"})
	f.equal("in a project", f.rules("apollo").Dont == nil, true)
	limited := f.as(souvenir.Access{Projects: []string{"apollo"}})
	f.equal("through a view of one project", limited.rules("").Dont == nil, true)
	f.setRule(souvenir.NewRule{ProjectID: "apollo", Type: souvenir.RuleDont, Content: "of apollo"})
	for _, call := range []call{
		{"SetRule", true, func(s *souvenir.Store) error {
			_, err := s.SetRule(f.ctx, souvenir.NewRule{Type: souvenir.RuleDont, Content: "over it"})
			return err
		}},
		{"AddMemory", true, func(s *souvenir.Store) error {
			_, err := s.AddMemory(f.ctx,
				souvenir.NewMemory{EventType: souvenir.EventProjectRule, RuleType: souvenir.RuleDont, Content: "over it"})
			return err
		}},
		{"DeleteRule", true, func(s *souvenir.Store) error {
			return s.DeleteRule(f.ctx, souvenir.ProjectRef{},
				souvenir.RuleDont)
		}},
	} {
		f.failsAt(call.name+" of a general rule through it", call.do(limited.store), souvenir.ErrForbidden, "project_id",
			`"apollo"`, "general rule")
	}
	seen := limited.rules("")
	f.equal("no general rule is seen through it", seen.Dont == nil, true)
	f.warned("Rules", seen.Warnings, "limited to projects")
	_, err := limited.reader.GetRule(f.ctx, souvenir.ProjectRef{}, souvenir.RuleDont)
	f.failsAt("GetRule through it", err, souvenir.ErrNotFound, "project_id", `"apollo"`)
	_, err = limited.store.SetTodo(f.ctx, souvenir.NewTodo{Content: emptyTodo})
	f.failsAt("SetTodo through it", err, souvenir.ErrInvalid, "project_id")
	f.equal("the project's", limited.rules("apollo").Dont.Content, "of apollo")
	f.equal("the general one", f.rules("").Dont.Content, "mine, too")
}

func ruleLists(f *fixture) {
	targets := f.addTexts("one", "two")
	rule := souvenir.NewRule{ProjectID: "apollo", Type: souvenir.RuleDo, Content: "a", Tags: []string{"x", "y"},
		Related: targets}
	id := f.setRule(rule).ID
	f.patch(id, object(`{"state":"active","mine":1}`))
	for _, c := range []struct {
		content       string
		tags, related []string
		want          []any
	}{
		{"b", nil, nil, []any{"b", []string{"x", "y"}, targets}},
		{"b", []string{"z"}, targets[1:], []any{"b", []string{"z"}, targets[1:]}},
		{"c", []string{}, []string{}, []any{"c", []string(nil), []string(nil)}},
	} {
		rule.Content, rule.Tags, rule.Related = c.content, c.tags, c.related
		r := f.setRule(rule)
		f.equal("stored", []any{r.Content, r.Tags, r.Related}, c.want)
		f.equal("read", f.get(id), r.Memory)
		f.equal("what else it has", []any{r.State, r.Metadata["mine"]}, []any{"active", 1.0})
	}
	_, err := f.store.SetRule(f.ctx, souvenir.NewRule{Type: souvenir.RuleDo, Content: "x", Related: []string{"nowhere"}})
	f.failsAt("SetRule with an unknown link", err, souvenir.ErrNotFound, "related_memory_ids", "nowhere")
	f.equal("general", f.rules("").Do == nil, true)
}

func ruleByMemory(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "notes"})
	rule := souvenir.NewMemory{Content: "first heron", Collection: "notes", EventType: souvenir.EventProjectRule,
		RuleType: souvenir.RuleDo, ProjectID: "apollo",
		State: "active", Tags: []string{"a"}, ShownMetadata: map[string]any{"k": 1, "l": 1}}
	first := f.add(rule)
	second := f.add(souvenir.NewMemory{Content: "second heron", ProjectName: "apollo",
		ShownMetadata: map[string]any{"event_type": "project-rule", "rule_type": "do", "l": 2, "m": 3}, Similar: 20})
	f.equal("again", []any{second.ID, second.Revision, second.Content, second.State, second.Tags, second.Collection,
		second.Metadata},
		[]any{first.ID, 2, "second heron", "active", []string{"a"}, "notes", map[string]any{"k": 1.0, "l": 2.0, "m": 3.0}})
	f.equal("it is not similar to itself", len(second.Similar), 0)
	f.equal("read", f.get(first.ID), second.Memory)
	f.equal("by SetRule", f.setRule(souvenir.NewRule{ProjectID: "apollo", Type: souvenir.RuleDo, Content: "third"}).ID,
		first.ID)
	f.addCollection(souvenir.NewCollection{Name: "others"})
	both, err := f.store.AddMemories(f.ctx, []souvenir.NewMemory{
		{Content: "fourth", Collection: "others", ProjectID: "apollo", EventType: "project-rule", RuleType: "do",
			Importance: "high"},
		{Content: "beside it"},
		{Content: "fifth", ProjectID: "apollo", EventType: "project-rule", RuleType: "do", Classification: "do"},
	}, nil)
	f.check("AddMemories", err)
	f.equal("two of many", []any{both[0].ID, both[2].ID, both[2].Revision, both[2].Importance, both[2].Classification},
		[]any{first.ID, first.ID, 5, souvenir.ImportanceHigh, souvenir.ClassDo})
	f.equal("a warning about the collection", contains(both[0].Warnings, "notes"), true)
	f.equal("memories", f.search(souvenir.Query{}).Total, 2)
	_, err = f.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "x", EventType: "project-rule"})
	f.failsAt("AddMemory of a rule without a type", err, souvenir.ErrInvalid, "rule_type", `"do", "dont" or "todo"`)
	_, err = f.store.AddMemory(f.ctx,
		souvenir.NewMemory{Content: "x", ProjectID: "apollo", EventType: "project-rule", RuleType: "todo"})
	f.failsAt("AddMemory of a todo that is none", err, souvenir.ErrInvalid, "content", "## Constitution")
	_, err = f.store.AddMemory(f.ctx,
		souvenir.NewMemory{Content: document("- [ ] T1 a"), EventType: "project-rule", RuleType: "todo"})
	f.failsAt("AddMemory of a todo without a project", err, souvenir.ErrInvalid, "project_id", "project")
}

func ruleConflicts(f *fixture) {
	do := f.setRule(souvenir.NewRule{ProjectID: "apollo", Type: souvenir.RuleDo, Content: "do"})
	dont := f.setRule(souvenir.NewRule{ProjectID: "apollo", Type: souvenir.RuleDont, Content: "dont"})
	elsewhere := f.setRule(souvenir.NewRule{ProjectID: "gemini", Type: souvenir.RuleDo, Content: "elsewhere"})
	general := f.setRule(souvenir.NewRule{Type: souvenir.RuleDo, Content: "general"})
	note := f.add(souvenir.NewMemory{Content: "note", ProjectID: "apollo"})
	for _, c := range []struct{ id, patch, taken string }{
		{dont.ID, `{"rule_type":"do"}`, do.ID},
		{elsewhere.ID, `{"project_id":"apollo"}`, do.ID},
		{do.ID, `{"project_id":null,"project_name":null}`, general.ID},
		{note.ID, `{"event_type":"project-rule","rule_type":"dont"}`, dont.ID},
	} {
		_, err := f.store.UpdateMemory(f.ctx, c.id, souvenir.MemoryUpdate{ShownMetadata: object(c.patch)})
		f.failsAt("UpdateMemory "+c.patch, err, souvenir.ErrConflict, "rule_type", c.taken)
	}
	_, err := f.store.UpdateMemory(f.ctx, do.ID, souvenir.MemoryUpdate{ShownMetadata: object(`{"rule_type":null}`)})
	f.failsAt("UpdateMemory to no type", err, souvenir.ErrInvalid, "rule_type", `"do", "dont" or "todo"`)
	_, err = f.store.UpdateMemory(f.ctx, do.ID, souvenir.MemoryUpdate{ShownMetadata: object(`{"rule_type":"todo"}`)})
	f.failsAt("UpdateMemory to a todo", err, souvenir.ErrInvalid, "content", "## Constitution")

	f.patch(dont.ID, object(`{"event_type":null,"rule_type":null}`))
	f.equal("the rule is gone", f.rules("apollo").Dont == nil, true)
	f.patch(note.ID, object(`{"event_type":"project-rule","rule_type":"dont"}`))
	f.equal("another one in its place", f.rules("apollo").Dont.ID, note.ID)
	_, err = f.store.RestoreRevision(f.ctx, dont.ID, 1)
	f.failsAt("RestoreRevision to a rule", err, souvenir.ErrConflict, "rule_type", note.ID)
	f.rewrite(do.ID, "done")
	_, err = f.store.RestoreRevision(f.ctx, do.ID, 1)
	f.check("RestoreRevision of a rule", err)
	f.equal("restored", f.rules("apollo").Do.Content, "do")
}

func ruleDelete(f *fixture) {
	ref := souvenir.ProjectRef{ID: "apollo"}
	first := f.setRule(souvenir.NewRule{ProjectID: "apollo", Type: souvenir.RuleDo, Content: "first"})
	f.setRule(souvenir.NewRule{Type: souvenir.RuleDo, Content: "general"})
	f.check("DeleteRule", f.store.DeleteRule(f.ctx, ref, souvenir.RuleDo))
	f.equal("rules", f.rules("apollo").Do == nil, true)
	f.equal("the general one", f.rules("").Do.Content, "general")
	_, err := f.reader.Revisions(f.ctx, first.ID)
	f.fails("Revisions", err, souvenir.ErrNotFound)
	f.failsAt("DeleteRule again", f.store.DeleteRule(f.ctx, ref, souvenir.RuleDo), souvenir.ErrNotFound, "project_id",
		"apollo")
	second := f.setRule(souvenir.NewRule{ProjectID: "apollo", Type: souvenir.RuleDo, Content: "second"})
	f.equal("again", []any{second.Created, second.ID != first.ID, second.Revision}, []any{true, true, 1})
	f.check("DeleteRule", f.store.DeleteRule(f.ctx, souvenir.ProjectRef{}, souvenir.RuleDo))
	f.failsAt("DeleteRule", f.store.DeleteRule(f.ctx, souvenir.ProjectRef{}, souvenir.RuleDo), souvenir.ErrNotFound,
		"rule_type", `"do"`)
}

func ruleUnknown(f *fixture) {
	for _, ref := range []souvenir.ProjectRef{{}, {ID: "nowhere"}, {Name: "nowhere"}, {ID: "a/b"}} {
		r, err := f.reader.Rules(f.ctx, ref)
		f.check("Rules", err)
		f.equal("rules", r, souvenir.Rules{})
		_, err = f.reader.GetRule(f.ctx, ref, souvenir.RuleDo)
		f.fails("GetRule", err, souvenir.ErrNotFound, ref.ID+ref.Name)
		f.fails("DeleteRule", f.store.DeleteRule(f.ctx, ref, souvenir.RuleDo), souvenir.ErrNotFound, ref.ID+ref.Name)
	}
	m := f.add(souvenir.NewMemory{Content: "x", ProjectID: "apollo", ProjectName: "Apollo 11"})
	_, err := f.reader.Rules(f.ctx, souvenir.ProjectRef{ID: "apollo", Name: "Apollo 12"})
	f.failsAt("Rules of what disagrees", err, souvenir.ErrInvalid, "project_name", m.ProjectName)
}

func ruleArguments(f *fixture) {
	long := strings.Repeat("p", 129)
	for _, c := range []struct {
		rule     souvenir.NewRule
		kind     *souvenir.Error
		argument string
		says     string
	}{
		{souvenir.NewRule{Content: "x"}, souvenir.ErrInvalid, "rule_type", "empty"},
		{souvenir.NewRule{Content: "x", Type: "notes"}, souvenir.ErrInvalid, "rule_type", `"notes"`},
		{souvenir.NewRule{Content: "x", Type: souvenir.RuleTodo}, souvenir.ErrInvalid, "rule_type", "SetTodo"},
		{souvenir.NewRule{Type: souvenir.RuleDo}, souvenir.ErrInvalid, "content", "empty"},
		{souvenir.NewRule{Content: strings.Repeat("x", souvenir.MaxContent+1), Type: souvenir.RuleDo}, souvenir.ErrTooLarge,
			"content", "1048577"},
		{souvenir.NewRule{Content: "\xff", Type: souvenir.RuleDo}, souvenir.ErrInvalid, "content", "UTF-8"},
		{souvenir.NewRule{Content: "x", Type: souvenir.RuleDo, Tags: []string{" "}}, souvenir.ErrInvalid, "tags", "tags[0]"},
		{souvenir.NewRule{Content: "x", Type: souvenir.RuleDo, Related: make([]string, 1)}, souvenir.ErrNotFound,
			"related_memory_ids", "related_memory_ids[0]"},
		{souvenir.NewRule{Content: "x", Type: souvenir.RuleDo, ProjectID: long}, souvenir.ErrTooLarge, "project_id", "129"},
		{souvenir.NewRule{Content: "x", Type: souvenir.RuleDo, ProjectName: "\n"}, souvenir.ErrInvalid, "project_name",
			"characters"},
		{souvenir.NewRule{Content: "x", Type: souvenir.RuleDo, ExpectedRevision: -1}, souvenir.ErrInvalid,
			"expected_revision", "-1"},
	} {
		_, err := f.store.SetRule(f.ctx, c.rule)
		f.failsAt("SetRule "+brief(c.rule), err, c.kind, c.argument, c.says)
	}
	for _, ruleType := range []souvenir.RuleType{"", "notes"} {
		_, err := f.reader.GetRule(f.ctx, souvenir.ProjectRef{}, ruleType)
		f.failsAt("GetRule", err, souvenir.ErrInvalid, "rule_type", `"todo"`)
		f.failsAt("DeleteRule", f.store.DeleteRule(f.ctx, souvenir.ProjectRef{}, ruleType), souvenir.ErrInvalid, "rule_type",
			`"todo"`)
	}
	_, err := f.reader.Rules(f.ctx, souvenir.ProjectRef{ID: long})
	f.failsAt("Rules", err, souvenir.ErrTooLarge, "project_id", "129")
	f.equal("memories", f.search(souvenir.Query{}).Total, 0)
	view := f.as(souvenir.Access{ReadOnly: true})
	_, err = view.store.SetRule(f.ctx, souvenir.NewRule{Content: "x", Type: souvenir.RuleDo})
	f.fails("SetRule for reading only", err, souvenir.ErrReadOnly)
}

func ruleExpected(f *fixture) {
	rule := souvenir.NewRule{ProjectID: "apollo", Type: souvenir.RuleDo, Content: "one", ExpectedRevision: 1}
	_, err := f.store.SetRule(f.ctx, rule)
	f.failsAt("SetRule of one that is not there", err, souvenir.ErrConflict, "expected_revision", "no such rule")
	rule.ExpectedRevision = 0
	f.setRule(rule)
	rule.Content, rule.ExpectedRevision = "two", 1
	f.equal("revision", f.setRule(rule).Revision, 2)
	_, err = f.store.SetRule(f.ctx, rule)
	f.failsAt("SetRule of an older one", err, souvenir.ErrConflict, "expected_revision", "revision 2")
}

func ruleConcurrent(f *fixture) {
	stores := []*souvenir.Store{f.store, f.reader}
	ids, contents := make([]string, workers), make([]string, workers)
	var group sync.WaitGroup
	for i := range workers {
		group.Go(func() {
			contents[i] = "rule of " + nameOf(i)
			var err error
			if i%4 == 3 {
				var m souvenir.StoredMemory
				m, err = stores[i%2].AddMemory(f.ctx,
					souvenir.NewMemory{Content: contents[i], ProjectName: "apollo", EventType: "project-rule", RuleType: "do"})
				ids[i] = m.ID
			} else {
				var r souvenir.StoredRule
				r, err = stores[i%2].SetRule(f.ctx,
					souvenir.NewRule{ProjectName: "apollo", Type: souvenir.RuleDo, Content: contents[i]})
				ids[i] = r.ID
			}
			if err != nil {
				f.Errorf("worker %d: %v", i, err)
			}
		})
	}
	group.Wait()
	f.equal("ids", slices.Compact(ids), ids[:1])
	history := f.revisions(ids[0])
	f.equal("revisions", len(history), workers)
	for _, r := range history {
		f.equal("stored by one of them", slices.Contains(contents, r.Content), true)
	}
	f.equal("memories", f.search(souvenir.Query{}).Total, 1)
}

func ruleUnembedded(f *fixture) {
	f.embedder.Break(errOffline)
	stored := f.setRule(souvenir.NewRule{ProjectID: "apollo", Type: souvenir.RuleDo, Content: "a heron by the house"})
	f.equal("indexed", []any{stored.Indexed, len(stored.Warnings)}, []any{false, 1})
	f.same("by its words", f.byWord("heron"), stored.Content)
	f.embedder.Mend()
	f.waitEmbedded(f.store)
	f.equal("indexed later", f.setRule(souvenir.NewRule{ProjectID: "apollo", Type: souvenir.RuleDo,
		Content: stored.Content}).Indexed, true)
}
