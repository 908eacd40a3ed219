package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func projectNames() concept {
	return concept{"ProjectNames", []promise{
		{"are compared without regard to case, width, spaces and invisible characters", projectNamesFolded},
		{"that are invisible are refused", projectNamesUnseen},
		{"of the caller's own projects go before those of others", projectNamesOwnFirst},
		{"of others' projects never block a name for one's own", projectNamesNeverBlocked},
		{"that may be typing errors are reported", projectNamesTypo},
		{"that a project had lead to it until another one gets them", projectNamesFormer},
		{"that others' projects had lead members to them, of the time of their membership", projectNamesFormerShared},
		{"that a project had are bounded", projectNamesFormerBounded},
		{"of others' projects come with who shares them", projectNamesShared},
		{"that a project had in an export", projectNamesExported},
	}}
}

// stored stores a text in a project and returns the result.
func (f *fixture) stored(project, content string) souvenir.StoredMemory {
	f.Helper()
	return f.add(souvenir.NewMemory{Content: content, ProjectName: project})
}

func (f *fixture) rename(id, name string) {
	f.Helper()
	f.clock.Pass(time.Hour)
	_, err := f.store.UpdateProject(f.ctx, souvenir.ProjectRef{ID: id}, souvenir.ProjectUpdate{Name: &name})
	f.check("UpdateProject "+id, err)
}

func (f *fixture) share(id, user string, role souvenir.MemberRole) {
	f.Helper()
	m := souvenir.NewMember{Project: souvenir.ProjectRef{ID: f.name() + "/" + id}, User: user, Role: role}
	_, err := f.operator.AddMember(f.ctx, m)
	f.check("AddMember "+user, err)
}

// warned checks that one warning contains all of some words.
func (f *fixture) warned(what string, warnings []string, words ...string) {
	f.Helper()
	for _, w := range warnings {
		n := 0
		for _, word := range words {
			if strings.Contains(w, word) {
				n++
			}
		}
		if n == len(words) {
			return
		}
	}
	f.Errorf("%s: warnings %q; want one with %q", what, warnings, words)
}

func projectNamesFolded(f *fixture) {
	for i, names := range [][]string{
		{"Apollo", "apollo", "APOLLO", " apollo ", "ａｐｏｌｌｏ", "A\u200dpollo", "\u202eapollo\u202c"},
		{"billing api", "Billing  API", "billing\u00a0api"},
		{"订单服务", "订单服务\u3000", "订单\u200b服务"},
		{"プロジェクト", "ﾌﾟﾛｼﾞｪｸﾄ"},
		{"Straße", "STRASSE"},
		{"oﬃce café", "OFFICE cafe\u0301"},
	} {
		first := f.stored(names[0], "x")
		f.equal("made by "+names[0], []any{first.ProjectName, first.ProjectCreated}, []any{names[0], true})
		for _, name := range names[1:] {
			next := f.stored(name, "y")
			f.equal(fmt.Sprintf("stored by %q", name), []any{next.ProjectID, next.ProjectName, next.ProjectCreated},
				[]any{first.ProjectID, names[0], false})
			f.equal("found", f.search(souvenir.Query{ProjectName: name}).Total > 1, true)
			f.equal("filtered", f.search(souvenir.Query{Filter: souvenir.Filter{"project_name": name}}).Total > 1, true)
			rule, err := f.store.SetRule(f.ctx,
				souvenir.NewRule{ProjectID: first.ProjectID, ProjectName: name, Type: souvenir.RuleDo, Content: "r"})
			f.check("SetRule by id and name", err)
			f.equal("its project", rule.ProjectID, first.ProjectID)
			_, err = f.store.AddProject(f.ctx, souvenir.NewProject{Name: name})
			f.failsAt("AddProject", err, souvenir.ErrConflict, "project_name", first.ProjectID)
			_, err = f.store.AddProject(f.ctx, souvenir.NewProject{ID: fmt.Sprint("other", i), Name: name})
			f.failsAt("AddProject of another id", err, souvenir.ErrConflict, "project_name", first.ProjectID)
		}
	}
	f.equal("projects", len(f.projects()), 6)
	f.stored("аpollo", "a Cyrillic а is another letter")
	f.stored("ıstanbul", "x")
	f.stored("istanbul", "a Turkish ı is another letter, too")
	f.equal("projects", len(f.projects()), 9)
	id := f.stored("Apollo", "x").ProjectID
	f.rename(id, "APOLLO")
	f.equal("another form of the name", f.project(id).Name, "APOLLO")
	f.equal("the form before is no former name", len(f.search(souvenir.Query{ProjectName: "Apollo"}).Warnings), 0)
	_, err := f.store.UpdateProject(f.ctx, souvenir.ProjectRef{ID: id}, souvenir.ProjectUpdate{Name: new("BILLING api")})
	f.failsAt("UpdateProject to a name that another one has", err, souvenir.ErrConflict, "name", "billing api")
	_, err = f.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "y", ProjectID: "ａpollo"})
	f.failsAt("a name as an id", err, souvenir.ErrConflict, "project_id", id)
}

func projectNamesUnseen(f *fixture) {
	for _, name := range []string{"\u200b", "\u200d\u202e", "\u3164", "\U000E0061\ufe0f"} {
		_, err := f.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "x", ProjectName: name})
		f.failsAt("AddMemory", err, souvenir.ErrInvalid, "project_name", "visible character")
		_, err = f.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "x", ProjectID: name})
		f.failsAt("AddMemory by id", err, souvenir.ErrInvalid, "project_id", "visible character")
		_, err = f.store.AddProject(f.ctx, souvenir.NewProject{ID: name})
		f.failsAt("AddProject", err, souvenir.ErrInvalid, "project_id", "visible character")
		_, err = f.reader.Search(f.ctx, souvenir.Query{ProjectName: name})
		f.failsAt("Search", err, souvenir.ErrInvalid, "project_name", "visible character")
	}
	long := strings.Repeat("ﷺ", 128) // each is 18 characters when folded
	f.equal("as long as a name may be before it is folded", f.stored(long, "x").ProjectID, f.stored(long, "y").ProjectID)
	_, err := f.store.AddProject(f.ctx, souvenir.NewProject{Name: strings.Repeat("x\u200b", 65)})
	f.failsAt("what is not shown counts", err, souvenir.ErrTooLarge, "project_name", "130")
}

func projectNamesOwnFirst(f *fixture) {
	ann, bob := f.user("ann"), f.user("bob")
	bait := bob.addProject(souvenir.NewProject{Name: "billing-api"})
	bob.share(bait.ID, "ann", souvenir.MemberWriter)
	bob.stored("billing-api", "bait")
	f.equal("without an own one the shared one", ann.stored("Billing-API", "x").ProjectID, bait.ID)
	own := ann.addProject(souvenir.NewProject{Name: "BILLING-API"})
	f.equal("stored", ann.stored("billing-api", "y").ProjectID, own.ID)
	f.same("found", contents(ann.search(souvenir.Query{ProjectName: "billing-api"})), "y")
	_, err := ann.store.SetRule(f.ctx,
		souvenir.NewRule{ProjectName: "billing-api", Type: souvenir.RuleDo, Content: "mine"})
	f.check("SetRule", err)
	rules, err := ann.reader.Rules(f.ctx, souvenir.ProjectRef{Name: "ｂilling-api"})
	f.check("Rules", err)
	f.equal("rule", rules.Do.Content, "mine")
	ann.rename(own.ID, "ledger")
	other := ann.stored("billing-api", "z")
	f.equal("an own former name goes before others' names", other.ProjectID, own.ID)
	f.warned("stored by it", other.Warnings, "ledger")
	f.equal("by id", ann.add(souvenir.NewMemory{Content: "x", ProjectID: "bob/" + bait.ID}).ProjectID, bait.ID)
}

func projectNamesNeverBlocked(f *fixture) {
	ann, bob, cy := f.user("ann"), f.user("bob"), f.user("cy")
	for i, c := range []struct {
		name  string
		roles []souvenir.MemberRole
		own   bool
	}{
		{"read only", []souvenir.MemberRole{souvenir.MemberReader}, true},
		{"written", []souvenir.MemberRole{souvenir.MemberWriter}, false},
		{"two of them", []souvenir.MemberRole{souvenir.MemberWriter, souvenir.MemberWriter}, true},
		{"one of each", []souvenir.MemberRole{souvenir.MemberReader, souvenir.MemberWriter}, true},
	} {
		for j, role := range c.roles {
			owner := []*fixture{bob, cy}[j]
			owner.addProject(souvenir.NewProject{ID: fmt.Sprint("p", i), Name: strings.ToUpper(c.name)})
			owner.share(fmt.Sprint("p", i), "ann", role)
		}
		m := ann.stored(c.name, "x")
		p, err := ann.reader.GetProject(f.ctx, souvenir.ProjectRef{Name: c.name})
		f.check("GetProject "+c.name, err)
		f.equal(c.name+": the project is her own", []any{p.Owner == "ann", m.ProjectCreated, p.ID},
			[]any{c.own, c.own, m.ProjectID})
		if c.own {
			f.warned(c.name, m.Warnings, "as your own", fmt.Sprint("bob/p", i))
		}
		f.equal("the warning comes once", len(ann.stored(c.name, "y").Warnings), 0)
	}
	bob.addProject(souvenir.NewProject{ID: "r", Name: "rules"})
	bob.share("r", "ann", souvenir.MemberReader)
	_, err := bob.store.SetTodo(f.ctx, souvenir.NewTodo{ProjectID: "r", Content: emptyTodo})
	f.check("SetTodo", err)
	_, err = ann.store.CompleteTask(f.ctx, souvenir.TaskRef{ProjectName: "rules", TaskID: "T1"})
	f.fails("CompleteTask of what she reads only", err, souvenir.ErrForbidden)
	rule, err := ann.store.SetRule(f.ctx, souvenir.NewRule{ProjectName: "rules", Type: souvenir.RuleDo, Content: "mine"})
	f.check("SetRule", err)
	f.equal("the rule's project", []any{rule.ProjectCreated, rule.ProjectID == "r"}, []any{true, false})
	f.warned("SetRule", rule.Warnings, "as your own", "bob/r")
	bob.addProject(souvenir.NewProject{ID: "s", Name: "explicit"})
	bob.share("s", "ann", souvenir.MemberWriter)
	f.equal("added beside the shared one", ann.addProject(souvenir.NewProject{Name: "Explicit"}).Owner, "ann")
	bob.addProject(souvenir.NewProject{ID: "t", Name: "both"})
	bob.share("t", "ann", souvenir.MemberWriter)
	f.equal("an id of her own with that name",
		ann.add(souvenir.NewMemory{Content: "x", ProjectID: "new", ProjectName: "both"}).ProjectID, "new")

	limited := f.as(souvenir.Access{User: "ann", Projects: []string{"bob/p0"}})
	_, err = limited.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "x", ProjectName: "read only"})
	f.fails("a limited view makes none", err, souvenir.ErrForbidden)
}

// emptyTodo is a todo with one task.
const emptyTodo = "## Constitution\n\n## Spec\n\n## Plan\n\n## Tasks\n- [ ] T1 one\n\n## Gaps\n"

// gone has the form of an id that the store makes.
const gone = "01a206e1-960c-7c7e-bc61-edc4e7703ee7"

func projectNamesTypo(f *fixture) {
	first := f.stored("Apollo", "x")
	f.equal("nothing to say", len(first.Warnings), 0)
	for _, c := range []struct {
		name string
		near bool
	}{{"Appolo", true}, {"apolo", true}, {"Gemini", false}, {"apollo 11", false}, {"v1", false}, {"v2", false},
		{"app-1", false}, {"app-2", false}} {
		m := f.stored(c.name, "y")
		f.equal(c.name, []any{m.ProjectCreated, len(m.Warnings) == 1}, []any{true, c.near})
		if c.near {
			f.warned(c.name, m.Warnings, "did you mean", `"Apollo"`, first.ProjectID)
		}
		again := f.stored(c.name, "z")
		f.equal(c.name+" again", []any{again.ProjectCreated, len(again.Warnings)}, []any{false, 0})
	}
	rule, err := f.store.SetRule(f.ctx, souvenir.NewRule{ProjectName: "Geminy", Type: souvenir.RuleDo, Content: "r"})
	f.check("SetRule", err)
	f.warned("SetRule", rule.Warnings, "did you mean", `"Gemini"`)
	todo, err := f.store.SetTodo(f.ctx, souvenir.NewTodo{ProjectName: "Gemyni", Content: emptyTodo})
	f.check("SetTodo", err)
	f.warned("SetTodo", todo.Warnings, "did you mean", `"Gemini"`)
	f.equal("made", []bool{rule.ProjectCreated, todo.ProjectCreated}, []bool{true, true})
	ann := f.as(souvenir.Access{User: "ann"})
	f.equal("nothing is reported of others' projects", len(ann.stored("Apollo", "x").Warnings)+
		len(ann.stored("Gemina", "x").Warnings), 0)
	lost := f.add(souvenir.NewMemory{Content: "by the id of a project that is gone", ProjectID: gone})
	f.warned("by id", lost.Warnings, gone, "no longer shared")
	again := f.add(souvenir.NewMemory{Content: "by the same id", ProjectID: gone})
	f.equal("warnings of the second", len(again.Warnings), 0)
	m := f.stored("Saturn", "x")
	_, err = f.store.UpdateMemory(f.ctx, m.ID,
		souvenir.MemoryUpdate{ShownMetadata: map[string]any{"project_name": "Saturm"}})
	f.check("UpdateMemory", err)
}

func projectNamesFormer(f *fixture) {
	f.add(souvenir.NewMemory{Content: "car one", ProjectID: "p", ProjectName: "Apollo"})
	f.rename("p", "Artemis")
	m := f.stored("apollo", "car two")
	f.equal("stored", []any{m.ProjectID, m.ProjectName, m.ProjectCreated}, []any{"p", "Artemis", false})
	f.warned("stored", m.Warnings, `"Apollo"`, `"Artemis"`)
	both := f.add(souvenir.NewMemory{Content: "car three", ProjectID: "p", ProjectName: "APOLLO"})
	f.equal("stored by id and former name", both.ProjectID, "p")
	found := f.search(souvenir.Query{Text: "car", ProjectName: "Apollo"})
	f.equal("found", found.Total, 3)
	f.warned("found", found.Warnings, `"Artemis"`)
	c, err := f.reader.GetContext(f.ctx, souvenir.ContextQuery{ProjectName: "Apollo"})
	f.check("GetContext", err)
	f.equal("related", len(c.Related), 3)
	f.warned("GetContext", c.Warnings, `"Artemis"`)
	rule, err := f.store.SetRule(f.ctx, souvenir.NewRule{ProjectName: "Apollo", Type: souvenir.RuleDo, Content: "r"})
	f.check("SetRule", err)
	f.warned("SetRule", rule.Warnings, `"Artemis"`)
	rule, err = f.store.SetRule(f.ctx, souvenir.NewRule{ProjectName: "Apollo", Type: souvenir.RuleDo, Content: "s"})
	f.check("SetRule", err)
	f.equal("warned once", len(rule.Warnings), 1)
	rules, err := f.reader.Rules(f.ctx, souvenir.ProjectRef{Name: "Apollo"})
	f.check("Rules", err)
	f.warned("Rules", rules.Warnings, `"Artemis"`)
	f.equal("projects", len(f.projects()), 1)
	_, err = f.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "x", ProjectID: "Apollo"})
	f.failsAt("a former name as an id", err, souvenir.ErrConflict, "project_id", `"p"`)

	f.rename("p", "Ares")
	f.rename("p", "Apollo")
	f.equal("the name again", len(f.stored("Apollo", "x").Warnings), 0)
	f.equal("each former name", []string{f.stored("Artemis", "x").ProjectID, f.stored("ares", "x").ProjectID},
		[]string{"p", "p"})

	f.addProject(souvenir.NewProject{ID: "q", Name: "artemis"})
	f.equal("a new project takes the name", f.stored("Artemis", "x").ProjectID, "q")
	f.rename("q", "Ares")
	f.equal("so does one that is renamed", []string{f.stored("Ares", "x").ProjectID, f.stored("Artemis", "x").ProjectID},
		[]string{"q", "q"})
	f.deleteProject(souvenir.ProjectRef{ID: "q"}, &souvenir.DeletionOptions{WithMemories: true})
	f.equal("names end with their project", f.stored("Artemis", "x").ProjectCreated, true)
}

func projectNamesFormerShared(f *fixture) {
	ann, bob := f.user("ann"), f.user("bob")
	bob.addProject(souvenir.NewProject{ID: "p", Name: "before"})
	bob.rename("p", "Apollo")
	f.clock.Pass(time.Hour)
	bob.share("p", "ann", souvenir.MemberWriter)
	bob.rename("p", "Artemis")
	m := ann.stored("apollo", "x")
	f.equal("stored by a name of her time", []any{m.ProjectID, m.ProjectName}, []any{"p", "Artemis"})
	f.warned("stored", m.Warnings, `"Artemis"`)
	former := "Apollo"
	f.equal("updated by a name of her time", ann.update(m.ID,
		souvenir.MemoryUpdate{ProjectName: &former, Tags: &[]string{"t"}}).ProjectName, "Artemis")
	f.equal("one from before is new", ann.stored("before", "x").ProjectCreated, true)
	f.check("DeleteMember", bob.store.DeleteMember(f.ctx,
		souvenir.ProjectRef{ID: "p"}, "ann"))
	f.equal("without membership it is new", ann.stored("apollo", "x").ProjectCreated, true)
}

func projectNamesFormerBounded(f *fixture) {
	f.addProject(souvenir.NewProject{ID: "p", Name: "number 0"})
	for i := range 20 {
		f.rename("p", fmt.Sprint("number ", i+1))
	}
	f.equal("the last sixteen", []bool{f.stored("number 3", "x").ProjectCreated, f.stored("number 4", "x").ProjectCreated},
		[]bool{true, false})
}

func projectNamesShared(f *fixture) {
	f.addUser(souvenir.NewUser{ID: "u7", Name: "Bob"})
	ann, bob := f.user("ann"), f.user("u7")
	bob.addProject(souvenir.NewProject{ID: "p", Name: "Apollo"})
	bob.share("p", "ann", souvenir.MemberWriter)
	long := strings.Repeat("A car is kept. ", 400)
	for _, c := range []souvenir.NewMemory{
		{Content: long, EventType: souvenir.EventProjectRule, RuleType: souvenir.RuleDo},
		{Content: "the car", Classification: souvenir.ClassDo}, {Content: "a car", EventType: souvenir.EventProjectMain},
	} {
		c.ProjectID = "p"
		f.equal("to its owner it is their own", bob.add(c).SharedBy, "")
	}
	own := ann.addTexts("my car")
	stored := ann.add(souvenir.NewMemory{Content: "her car", ProjectName: "apollo"})
	f.equal("as stored and read", []string{stored.SharedBy, ann.get(stored.ID).SharedBy, ann.get(own[0]).SharedBy},
		[]string{"Bob", "Bob", ""})
	for _, h := range ann.search(souvenir.Query{Text: "car"}).Hits {
		f.equal("found "+brief(h.Content), h.SharedBy == "Bob", h.ID != own[0])
	}
	for _, budget := range []int{0, 500} {
		c, err := ann.reader.GetContext(f.ctx,
			souvenir.ContextQuery{ProjectName: "Apollo", Query: "car", TokenBudget: budget})
		f.check("GetContext", err)
		f.equal("rule", c.ProjectRules.Do.SharedBy, "Bob")
		if !strings.Contains(toJSON(c.ProjectRules.Do), `"shared_by":"Bob"`) {
			f.Errorf(`the rule is shown as %s, want "shared_by":"Bob" in it`, toJSON(c.ProjectRules.Do))
		}
		for _, m := range append(c.Related, c.ProjectDoDont...) {
			f.equal("of the context: "+brief(m.Content), m.SharedBy == "Bob", m.ID != own[0])
		}
		f.equal("the rules are called the user's own",
			contains(c.Guide, "project_rules and general_do_dont; they are the user's own"), false)
		f.equal("the guide says what the mark means", contains(c.Guide, "shared_by"), true)
	}
	main, err := ann.reader.GetMainMemory(f.ctx, souvenir.ProjectRef{Name: "Apollo"})
	f.check("GetMainMemory", err)
	f.equal("main memory", main.Memory.SharedBy, "Bob")
	if s := toJSON(ann.get(own[0])); strings.Contains(s, "shared_by") {
		f.Errorf(`her own is marked: %s, want no "shared_by" in it`, s)
	}
}

func projectNamesExported(f *fixture) {
	f.addProject(souvenir.NewProject{ID: "p", Name: "Apollo"})
	f.rename("p", "Artemis")
	f.addProject(souvenir.NewProject{ID: "q", Name: "Q"})
	var lines strings.Builder
	_, err := f.operator.Upkeep().Export(f.ctx, &lines, nil)
	f.check("Export", err)
	if !strings.Contains(lines.String(), `"former_name"`) {
		f.Fatalf("no former name in the export, want \"former_name\" in the lines:\n%s", lines.String())
	}
	f.deleteProject(souvenir.ProjectRef{ID: "p"}, nil)
	report, err := f.operator.Upkeep().Import(f.ctx, strings.NewReader(lines.String()), nil)
	f.check("Import", err)
	f.equal("conflicts", len(report.Conflicts), 0)
	f.equal("the former name", f.stored("APOLLO", "x").ProjectID, "p")
	f.deleteProject(souvenir.ProjectRef{ID: "p"}, &souvenir.DeletionOptions{WithMemories: true})
	f.addProject(souvenir.NewProject{ID: "r", Name: "apollo"})
	_, err = f.operator.Upkeep().Import(f.ctx, strings.NewReader(lines.String()), nil)
	f.check("Import", err)
	f.equal("one that a project has now", f.stored("Apollo", "x").ProjectID, "r")
}
