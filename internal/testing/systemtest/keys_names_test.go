package systemtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/db"
)

// namesOf returns everything that a view returns about names, keys and tags, in its order.
func (s *safe) namesOf(view *Store, project ProjectRef) (all []string) {
	s.Helper()
	ctx := s.Context()
	note := func(what string, err error, values ...string) {
		s.Helper()
		if err != nil {
			s.Errorf("%s: %v", what, err)
		}
		all = append(all, what+": "+strings.Join(values, ", "))
	}
	collections, err := view.Collections(ctx)
	var names []string
	for _, c := range collections {
		names = append(names, c.Name)
	}
	note("collections", err, names...)
	projects, err := view.Projects(ctx)
	names = nil
	for _, p := range projects {
		names = append(names, p.Name)
	}
	note("projects", err, names...)
	named, err := view.GetProject(ctx, ProjectRef{Name: "THE gate"})
	note("a project by its name", err, named.Name)
	former, err := view.GetProject(ctx, ProjectRef{Name: "old gate"})
	note("by its former name", err, former.Name)
	byKey, err := view.GetMemoryByKey(ctx, MemoryKey{Collection: "locks", ProjectName: "the gate", Key: "code"})
	note("a memory by its key", err, byKey.Content, byKey.Key, byKey.Collection, byKey.ProjectName,
		strings.Join(byKey.Tags, "+"))
	for _, f := range []Filter{{"tags": "Metal"}, {"tags": "metal"}, {"tags": Condition{MoreThan: "N"}}, {"key": "code"},
		{"key": Not("code")}, {"key": Condition{AtLeast: "a"}}, {"collection_name": "locks"},
		{"collection_name": In("locks", "default")}, {"collection_name": Condition{LessThan: "m"}}, {"project_name": "The Gate"},
		{"project_name": Not("the gate")}, {"tags": Condition{All: []any{"Metal", "module:Doors"}}}, {"level": 3},
		{"level": 3.0}, {"level": "3"}, {"level": Not(3)}, {"level": Condition{MoreThan: 3}}, {"level": nil},
		{"level": Condition{In: []any{4, nil}}}, {"level": Condition{Not: []any{3, nil}}}, {"of": "a"}, {"of": 2},
		{"of": true}, {"of": 1}, {"of": Condition{All: []any{"a", 1}}}, {"deep": Condition{Not: []any{nil}}},
		{"deep": nil}, {"empty": Condition{Not: []any{nil}}}, {"long": "y"},
		{"long": Condition{AtLeast: "y"}}, {"long": Not("y")}, {"level": 3, "of": "a"}} {
		var contents []string
		for _, m := range s.list(view, f) {
			contents = append(contents, m.Content)
		}
		slices.Sort(contents)
		note(fmt.Sprintf("%v", f), nil, contents...)
	}
	tags, err := view.Insights().Tags(ctx)
	names = nil
	for _, t := range tags {
		names = append(names, fmt.Sprintf("%d %s", t.Count, t.Name))
	}
	note("tags", err, names...)
	modules, err := view.Insights().Modules(ctx, project)
	note("modules", err, fmt.Sprintf("%v", modules))
	state, err := view.GetModuleState(ctx, ModuleQuery{Module: "dOORS"})
	note("a module", err, fmt.Sprint(state.Summary.Total), fmt.Sprint(len(state.Files)))
	for _, l := range []FileList{{Filename: "GATE"}, {Category: "plans"}, {MIMEType: "text/*"}, {MIMEType: "text/plain"},
		{MIMEType: "text/pl"}, {Tags: []string{"module:Doors"}}, {Tags: []string{"MODULE:doors"}}} {
		page, err := view.FilePage(ctx, FileQuery{FileList: l})
		names = nil
		for _, f := range page.Files {
			names = append(names, f.Filename, f.Description, f.Category, f.MIMEType, strings.Join(f.Tags, "+"))
		}
		note(fmt.Sprintf("files %+v", l), err, names...)
	}
	for c, err := range view.Conversations(ctx, ConversationList{}) {
		note("a conversation", err, c.Key, fmt.Sprint(c.Turns))
	}
	overview, err := view.Insights().Overview(ctx, OverviewQuery{})
	note("an overview", err, fmt.Sprintf("%+v", overview.Collections))
	return all
}

// addNames stores what namesOf reads: a project of one user, and another user who stores there, too.
func (s *safe) addNames(owner, member *Store, ownerID, memberID string) (project ProjectRef) {
	s.Helper()
	ctx := s.Context()
	must := func(what string, err error) {
		s.Helper()
		if err != nil {
			s.Fatalf("%s: %v", what, err)
		}
	}
	for _, name := range []string{"locks", "apples"} {
		_, err := owner.AddCollection(ctx, NewCollection{Name: name})
		must("AddCollection", err)
	}
	_, err := member.AddCollection(ctx, NewCollection{Name: "locks"})
	must("AddCollection of the member", err)
	_, err = owner.AddProject(ctx, NewProject{ID: "g", Name: "Old Gate"})
	must("AddProject", err)
	_, err = owner.AddProject(ctx, NewProject{ID: "a", Name: "Apple trees"})
	must("AddProject", err)
	project = ProjectRef{ID: ownerID + "/g"}
	_, err = s.store.AddMember(ctx, NewMember{Project: project, User: memberID, Role: MemberWriter})
	must("AddMember", err)
	_, err = owner.UpdateProject(ctx, ProjectRef{ID: "g"}, ProjectUpdate{Name: new("The Gate")})
	must("UpdateProject", err)
	mustAdd(s, owner, NewMemory{Content: "code", Collection: "locks", ProjectID: project.ID, Key: "code",
		Tags: []string{"Metal", "module:Doors"}, Metadata: map[string]any{"level": 3, "of": []any{"a", 2.0, true},
			"deep": map[string]any{"x": 1}, "empty": []any{}}})
	mustAdd(s, owner, NewMemory{Content: "long", Metadata: map[string]any{"long": "y", "level": 4,
		"filler": strings.Split(strings.Repeat("a b ", 200), " ")}})
	mustAdd(s, member, NewMemory{Content: "of the member", Collection: "locks", ProjectID: project.ID, Key: "other",
		Tags: []string{"Metal"}, Metadata: map[string]any{"level": 3.5, "of": "a"}})
	mustAdd(s, member, NewMemory{Content: "mine", Tags: []string{"Metal", "wood"}, Key: "mine"})
	mustAdd(s, owner, NewMemory{Content: "his", Collection: "apples"})
	mustAddFile(s, owner, NewFile{Filename: "Gate.txt", Category: "plans", Description: "of the gate",
		ProjectID: project.ID, Tags: []string{"module:Doors"}}, "text")
	_, err = member.Conversation("talk").Append(ctx, Turn{Role: "user", Speaker: "ann", Content: "hello"},
		Turn{Role: "assistant", Content: "hello, ann"})
	must("Append", err)
	return project
}

// namesAreFound compares the results of a store with keys and one without.
func namesAreFound(s *safe) {
	without := &safe{T: s.T, in: emptyInFile(s).copied(s)}
	without.store = s.open(without.in, nil, Options{})
	says := func(of *safe) (all [][]string) {
		ann, ben := of.user("ann"), of.user("ben")
		annID, benID := mustAdd(s, ann, NewMemory{Content: "x"}).Owner, mustAdd(s, ben, NewMemory{Content: "x"}).Owner
		project := of.addNames(ben, ann, benID, annID)
		for _, view := range []*Store{ann, ben} {
			var lines []string
			for _, line := range of.namesOf(view, project) {
				lines = append(lines, strings.NewReplacer(annID, "ANN", benID, "BEN").Replace(line))
			}
			all = append(all, lines)
		}
		return all
	}
	want, got := says(without), says(s)
	for v := range want {
		for i, line := range want[v] {
			if i >= len(got[v]) || got[v][i] != line {
				s.Errorf("view %d: got\n%s\nwant, as without keys,\n%s", v, got[v][i], line)
			}
		}
	}
	if text := strings.Join(want[0], "\n"); !strings.Contains(text, "by its former name: The Gate") ||
		!strings.Contains(text, "code, code, locks, The Gate, Metal+module:Doors") {
		s.Errorf("without keys: got\n%s\nwant names in it", text)
	}
	s.wantSound(s.store)
}

// namesFromBefore opens a store with keys whose names, keys and tags were stored before it had keys.
func namesFromBefore(s *safe) {
	in := emptyInFile(s).copied(s)
	plain := s.open(in, nil, Options{})
	before := mustAdd(s, plain, NewMemory{Content: "before", Key: "code", Tags: []string{"Metal"},
		ProjectName: "The Gate"})
	if _, err := plain.AddCollection(s.Context(), NewCollection{Name: "locks"}); err != nil {
		s.Fatal(err)
	}
	if err := plain.Close(); err != nil {
		s.Fatal(err)
	}
	store := s.open(in, s.ring, Options{})
	after := mustAdd(s, store, NewMemory{Content: "after", Tags: []string{"Metal"}, ProjectName: "the gate"})
	if after.ProjectID != before.ProjectID {
		s.Errorf("project of the name: got %s, want %s, which is from before", after.ProjectID, before.ProjectID)
	}
	if found := s.list(store, Filter{"tags": "Metal", "collection_name": "default"}); len(found) != 2 {
		s.Errorf("memories with the tag: got %+v, want both", found)
	}
	if _, err := store.AddCollection(s.Context(), NewCollection{Name: "locks"}); !errors.Is(err, ErrConflict) {
		s.Errorf("AddCollection of a name from before: got %v, want ErrConflict", err)
	}
	_, err := store.AddMemory(s.Context(), NewMemory{Content: "again", Key: "code", ProjectName: "The Gate"})
	if !errors.Is(err, ErrConflict) {
		s.Errorf("AddMemory with a key from before: got %v, want ErrConflict", err)
	}
}

// movedNamesStay deletes the former owner of a memory, and of a partition that a repair gave to another user. Both are
// sealed again.
func movedNamesStay(s *safe) {
	ann, ben := s.user("ann"), s.user("ben")
	if _, err := ben.AddProject(s.Context(), NewProject{ID: "garden"}); err != nil {
		s.Fatal(err)
	}
	benID := mustAddFile(s, ben, NewFile{}, "x").Owner
	project := benID + "/garden"
	n := NewMemory{Content: "moved", Key: "moved", Tags: []string{"Red", "module:m"},
		Metadata: map[string]any{"conversation_id": "talk", "speaker": "ann"}}
	moved := mustAdd(s, ann, n)
	file := mustAddFile(s, ann, NewFile{MemoryID: moved.ID, Filename: "plan.txt", Description: "a plan", Category: "plans",
		Tags: []string{"Red"}}, "x")
	if _, err := s.store.AddMember(s.Context(), NewMember{Project: ProjectRef{ID: project}, User: moved.Owner,
		Role: MemberWriter}); err != nil {
		s.Fatal(err)
	}
	if _, err := ann.UpdateMemory(s.Context(), moved.ID, MemoryUpdate{ProjectID: &project}); err != nil {
		s.Fatal(err)
	}
	n.Key, n.Content, n.Collection = "given", "given", "hers"
	if _, err := ann.AddCollection(s.Context(), NewCollection{Name: "hers"}); err != nil {
		s.Fatal(err)
	}
	given := mustAdd(s, ann, n)
	if _, err := ann.UpdateMemory(s.Context(), given.ID, MemoryUpdate{Content: new("given twice")}); err != nil {
		s.Fatal(err)
	}
	s.change("a partition in a project of another user", func(tx db.Tx) error {
		_, err := tx.Exec(`UPDATE partition SET project_id = (SELECT id FROM project) WHERE id = (SELECT partition_id
			FROM memory WHERE uid = ?)`, given.ID)
		return err
	})
	if report := s.check(s.store, &CheckOptions{Repair: true}); !report.OK || report.Repaired == 0 {
		s.Fatalf("Check: got %+v, want the partition given to the owner of the project", report)
	}
	s.deleteUser("ann")
	for key, collection := range map[string]string{"moved": "default", "given": "hers"} {
		m, err := ben.GetMemoryByKey(s.Context(), MemoryKey{Collection: collection, ProjectID: "garden", Key: key})
		if err != nil || !strings.HasPrefix(m.Content, key) || !slices.Equal(m.Tags, []string{"Red", "module:m"}) ||
			m.Metadata["speaker"] != "ann" {
			s.Errorf("the memory %s: got %+v and %v, want it as it was", key, m, err)
		}
	}
	if found := s.list(ben, Filter{"tags": "Red"}); len(found) != 2 {
		s.Errorf("memories with the tag: got %+v, want both", found)
	}
	past, err := ben.Revisions(s.Context(), given.ID)
	if err != nil || len(past) < 2 || past[len(past)-1].Content != "given" {
		s.Errorf("Revisions: got %+v and %v, want the first one", past, err)
	}
	page, err := ben.FilePage(s.Context(), FileQuery{FileList: FileList{Filename: "plan", Tags: []string{"Red"}}})
	if err != nil || len(page.Files) != 1 || page.Files[0].ID != file.ID || page.Files[0].Description != "a plan" {
		s.Errorf("FilePage: got %+v and %v, want the file that was given", page.Files, err)
	}
	talks := 0
	for c, err := range ben.Conversations(s.Context(), ConversationList{Collection: "hers"}) {
		if err != nil || c.Key != "talk" {
			s.Errorf("Conversations: got %+v and %v, want talk", c, err)
		}
		talks++
	}
	if talks != 1 {
		s.Errorf("conversations in the collection that was given: got %d, want 1", talks)
	}
	s.wantSound(s.store)
}
