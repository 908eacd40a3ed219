package storetest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func modules() concept {
	return concept{"Modules", []promise{
		{"its own memories come first, the last updated first", moduleOwn},
		{"its name is known in any case, and nothing else is", moduleName},
		{"memories about something like it follow", moduleMeaning},
		{"the summary counts all of its own memories", moduleSummary},
		{"open tasks that name it are shown", moduleTasks},
		{"it keeps to the project and to the view", moduleScope},
		{"the modules that memories name are listed", moduleNames},
		{"a failed embedder costs the meaning only", moduleWords},
		{"wrong arguments are refused", moduleErrors},
	}}
}

func (f *fixture) module(q souvenir.ModuleQuery) souvenir.ModuleState {
	f.Helper()
	state, err := f.reader.GetModuleState(f.ctx, q)
	f.check("GetModuleState "+brief(q), err)
	return state
}

// matches returns the contents of a module's memories, with the reason for each.
func matches(state souvenir.ModuleState) []string {
	var all []string
	for _, m := range state.Memories {
		all = append(all, fmt.Sprint(m.Match, " ", m.Content))
	}
	return all
}

// addModule stores memories one second apart.
func addModule(f *fixture, memories ...souvenir.NewMemory) {
	f.Helper()
	for _, m := range memories {
		f.clock.Pass(time.Second)
		f.add(m)
	}
}

func named(name any) map[string]any { return map[string]any{"module_name": name} }

func moduleOwn(f *fixture) {
	addModule(f,
		souvenir.NewMemory{Content: "one", ShownMetadata: named("billing")},
		souvenir.NewMemory{Content: "two", Tags: []string{"x", "billing"}},
		souvenir.NewMemory{Content: "three", ShownMetadata: named("billing"), Tags: []string{"billing"}},
		souvenir.NewMemory{Content: "four", Tags: []string{"module:billing"}, State: "archived"},
		souvenir.NewMemory{Content: "five", ShownMetadata: named("shipping")},
		souvenir.NewMemory{Content: "six", Tags: []string{"billboard", "x"}})
	f.same("all", matches(f.module(souvenir.ModuleQuery{Module: "billing"})), "tag four", "module_name three", "tag two",
		"module_name one")
	f.same("two of them", matches(f.module(souvenir.ModuleQuery{Module: " billing ", Limit: 2})), "tag four",
		"module_name three")
	encoded := toJSON(f.module(souvenir.ModuleQuery{Module: "billing", Limit: 1}))
	for _, part := range []string{`{"module_name":"billing","memories":[{"id":`, `"match":"tag"`, `"files":[]`,
		`"summary":{"total":4,"by_event_type":{},"by_state":{"archived":1},"newest":[{"id":`, `"line":"four"`,
		`"open_tasks":[]`} {
		if !strings.Contains(encoded, part) {
			f.Errorf("got the JSON %s, want one that contains %s", encoded, part)
		}
	}
	f.equal("nothing", toJSON(f.module(souvenir.ModuleQuery{Module: "nothing"})),
		`{"module_name":"nothing","memories":[],"files":[],"summary":{"total":0,"by_event_type":{},"by_state":{},`+
			`"newest":[],"open_tasks":[]}}`)
}

func moduleName(f *fixture) {
	addModule(f,
		souvenir.NewMemory{Content: "one", ShownMetadata: named("Billing")},
		souvenir.NewMemory{Content: "two", Tags: []string{"BILLING"}},
		souvenir.NewMemory{Content: "three", ShownMetadata: named("ÜBERSICHT")},
		souvenir.NewMemory{Content: "four", Tags: []string{"Module:übersicht"}},
		souvenir.NewMemory{Content: "five", ShownMetadata: named([]any{"billing"})},
		souvenir.NewMemory{Content: "six", ShownMetadata: named(5)},
		souvenir.NewMemory{Content: "seven", ShownMetadata: map[string]any{"about": named("billing")}})
	f.same("ASCII", matches(f.module(souvenir.ModuleQuery{Module: "bILLING"})), "tag two", "module_name one")
	f.same("other letters", matches(f.module(souvenir.ModuleQuery{Module: "Übersicht"})), "tag four", "module_name three")
	f.same("a number", matches(f.module(souvenir.ModuleQuery{Module: "5"})))
	f.same("a pattern", matches(f.module(souvenir.ModuleQuery{Module: "%"})))
}

func moduleMeaning(f *fixture) {
	addModule(f,
		souvenir.NewMemory{Content: "own", ShownMetadata: named("car")},
		souvenir.NewMemory{Content: "the automobile"},
		souvenir.NewMemory{Content: "the car and the automobile"},
		souvenir.NewMemory{Content: "a long text that has nothing to do with any of it"})
	state := f.module(souvenir.ModuleQuery{Module: "car"})
	f.same("all", matches(state), "module_name own", "meaning the car and the automobile", "meaning the automobile")
	if state.Memories[0].Score != 0 || state.Memories[1].Score <= state.Memories[2].Score || state.Memories[2].Score <= 0 {
		f.Errorf("the scores are %v, %v, %v, want score 0, score more than %v and score more than 0", state.Memories[0].Score,
			state.Memories[1].Score, state.Memories[2].Score, state.Memories[2].Score)
	}
	f.equal("own ones", state.Summary.Total, 1)
	f.same("as many as asked for", matches(f.module(souvenir.ModuleQuery{Module: "car", Limit: 2})), "module_name own",
		"meaning the car and the automobile")
}

func moduleSummary(f *fixture) {
	for i := range 8 {
		m := souvenir.NewMemory{Content: fmt.Sprintf("\n  line %d %s\nmore", i, strings.Repeat("x", 200)),
			ShownMetadata: named("billing")}
		switch {
		case i < 3:
			m.EventType, m.State = "decision", "active"
		case i < 5:
			m.EventType = "incident"
		}
		addModule(f, m)
	}
	summary := f.module(souvenir.ModuleQuery{Module: "billing", Limit: 1}).Summary
	f.equal("total", summary.Total, 8)
	f.equal("event types", summary.EventTypes, map[string]int{"decision": 3, "incident": 2})
	f.equal("states", summary.States, map[string]int{"active": 3})
	f.equal("newest", len(summary.Newest), 5)
	first := summary.Newest[0]
	if !strings.HasPrefix(first.Line, "line 7") || len(first.Line) > 120 || !first.UpdatedAt.Equal(f.clock.Now()) {
		f.Errorf("the newest is %+v, want a line 7 of 120 bytes, by the clock", first)
	}
	f.equal("by its id", f.get(first.ID).UpdatedAt, first.UpdatedAt)
}

func moduleTasks(f *fixture) {
	todo := "## Constitution\n\n## Spec\n\n## Plan\n\n## Tasks\n\n- [ ] T1 write the Billing tests\n- [x] T2 billing " +
		"design\n- [ ] T3 rebilling\n- [ ] T4 (billing) invoices\n- [ ] T5 shipping\n\n## Gaps\n"
	f.add(souvenir.NewMemory{Content: todo, EventType: souvenir.EventProjectRule, RuleType: souvenir.RuleTodo,
		ProjectID: "p"})
	f.equal("tasks", f.module(souvenir.ModuleQuery{Module: "billing", ProjectID: "p"}).Summary.OpenTasks,
		[]souvenir.ModuleTask{{ID: "T1", Text: "write the Billing tests"}, {ID: "T4", Text: "(billing) invoices"}})
	f.equal("of another module", f.module(souvenir.ModuleQuery{Module: "search", ProjectID: "p"}).Summary.OpenTasks,
		[]souvenir.ModuleTask{})
	f.equal("without a project", f.module(souvenir.ModuleQuery{Module: "billing"}).Summary.OpenTasks,
		[]souvenir.ModuleTask{})
}

func moduleScope(f *fixture) {
	addModule(f,
		souvenir.NewMemory{Content: "in p", ShownMetadata: named("billing"), ProjectID: "p", ProjectName: "Apollo"},
		souvenir.NewMemory{Content: "in q", Tags: []string{"billing"}, ProjectID: "q"},
		souvenir.NewMemory{Content: "in none", Tags: []string{"billing"}})
	ann := f.as(souvenir.Access{User: "ann"})
	ann.add(souvenir.NewMemory{Content: "hers", ShownMetadata: named("billing"), ProjectID: "p"})
	f.same("everywhere", matches(f.module(souvenir.ModuleQuery{Module: "billing"})), "tag in none", "tag in q",
		"module_name in p")
	for _, q := range []souvenir.ModuleQuery{{ProjectID: "p"}, {ProjectName: "Apollo"}} {
		q.Module = "billing"
		state := f.module(q)
		f.same("in the project", matches(state), "module_name in p")
		f.equal("counted in the project", state.Summary.Total, 1)
	}
	f.same("in a limited view", matches(
		f.as(souvenir.Access{Projects: []string{"q"}}).module(souvenir.ModuleQuery{Module: "billing"})), "tag in q")
	f.same("hers", matches(ann.module(souvenir.ModuleQuery{Module: "billing"})), "module_name hers")
	f.same("read-only", matches(f.as(souvenir.Access{ReadOnly: true}).module(souvenir.ModuleQuery{Module: "billing",
		ProjectID: "p"})), "module_name in p")
	unknown := f.module(souvenir.ModuleQuery{Module: "billing", ProjectID: "nowhere"})
	f.equal("in an unknown project", []any{len(unknown.Memories), len(unknown.Files), unknown.Summary.Total},
		[]any{0, 0, 0})
	if !contains(unknown.Warnings, "nowhere") {
		f.Errorf(`got warnings %q, want "nowhere" in one`, unknown.Warnings)
	}
}

var errBroken = errors.New("no answer")

func moduleWords(f *fixture) {
	f.add(souvenir.NewMemory{Content: "own", ShownMetadata: named("car")})
	f.add(souvenir.NewMemory{Content: "a car"})
	f.embedder.Break(errBroken)
	state := f.module(souvenir.ModuleQuery{Module: "car"})
	f.same("all", matches(state), "module_name own", "meaning a car")
	if !contains(state.Warnings, "words only") {
		f.Errorf(`got warnings %q, want "words only" in one`, state.Warnings)
	}
}

func moduleErrors(f *fixture) {
	f.add(souvenir.NewMemory{Content: "a", ProjectID: "a", ProjectName: "Apollo"})
	for _, c := range []struct {
		query    souvenir.ModuleQuery
		kind     *souvenir.Error
		argument string
	}{
		{souvenir.ModuleQuery{}, souvenir.ErrInvalid, "module_name"},
		{souvenir.ModuleQuery{Module: " \n"}, souvenir.ErrInvalid, "module_name"},
		{souvenir.ModuleQuery{Module: "a\xff"}, souvenir.ErrInvalid, "module_name"},
		{souvenir.ModuleQuery{Module: strings.Repeat("x", 129)}, souvenir.ErrTooLarge, "module_name"},
		{souvenir.ModuleQuery{Module: "x", Limit: -1}, souvenir.ErrInvalid, "limit"},
		{souvenir.ModuleQuery{Module: "x", Limit: 101}, souvenir.ErrInvalid, "limit"},
		{souvenir.ModuleQuery{Module: "x", ProjectID: " "}, souvenir.ErrInvalid, "project_id"},
		{souvenir.ModuleQuery{Module: "x", ProjectID: "a", ProjectName: "Gemini"}, souvenir.ErrInvalid, "project_name"},
	} {
		_, err := f.reader.GetModuleState(f.ctx, c.query)
		f.failsAt("GetModuleState "+brief(c.query), err, c.kind, c.argument)
	}
}

func moduleNames(f *fixture) {
	addModule(f,
		souvenir.NewMemory{Content: "one", ProjectID: "p", ShownMetadata: named("Billing"),
			Tags: []string{"module:billing", "invoice"}},
		souvenir.NewMemory{Content: "two", ProjectID: "p", Tags: []string{"MODULE: BILLING", "module:", "modules"}},
		souvenir.NewMemory{Content: "three", ProjectID: "p", ShownMetadata: named(" shipping "),
			Tags: []string{"module:Ärger"}},
		souvenir.NewMemory{Content: "four", ProjectID: "p", ShownMetadata: named(7)},
		souvenir.NewMemory{Content: "five", ProjectID: "p", ShownMetadata: named(strings.Repeat("x", 129))},
		souvenir.NewMemory{Content: "six", ProjectID: "q", ShownMetadata: named("shipping")},
		souvenir.NewMemory{Content: "seven", ShownMetadata: named("shipping")})
	for _, c := range []struct {
		project souvenir.ProjectRef
		want    string
	}{
		{souvenir.ProjectRef{}, "shipping 3, billing 2, ärger 1"},
		{souvenir.ProjectRef{ID: "p"}, "billing 2, shipping 1, ärger 1"},
		{souvenir.ProjectRef{Name: "q"}, "shipping 1"},
		{souvenir.ProjectRef{ID: "r"}, ""},
	} {
		modules, err := f.reader.Insights().Modules(f.ctx, c.project)
		f.check("Modules", err)
		var lines []string
		for _, m := range modules {
			lines = append(lines, fmt.Sprint(strings.ToLower(m.Name), " ", m.Memories))
		}
		f.equal(fmt.Sprintf("modules of %+v", c.project), strings.Join(lines, ", "), c.want)
	}
}
