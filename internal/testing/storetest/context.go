package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir"
)

func contexts() concept {
	return concept{"Contexts", []promise{
		{"an empty store gives an empty one", contextEmpty},
		{"rules, dos and don'ts are whole, in order and where they belong", contextRules},
		{"the lists of dos and don'ts are bounded, and say so", contextBound},
		{"rules come with every query, however it ranks", contextDirect},
		{"an unknown project is empty, with a warning", contextUnknownProject},
		{"the conversation is the active one that fits best", contextConversation},
		{"related memories are previews, the project's first, each once", contextRelated},
		{"what nothing is about has no related memories", contextUnrelated},
		{"without a query the newest memories are related", contextNewest},
		{"a detected identity is suggested until one is stored", contextSuggestion},
		{"a detected identity widens the query", contextWidening},
		{"a token budget bounds the answer, and says what gave way", contextBudget},
		{"a small budget keeps every rule, in short", contextSmallBudget},
		{"a failed embedder costs the meaning, not the context", contextWords},
		{"views keep to what they see", contextViews},
		{"members see what a project is about, and nothing else of its people", contextShared},
		{"wrong arguments are refused", contextErrors},
	}}
}

// context gets a context, and checks that it is JSON of the reported size.
func (f *fixture) context(q souvenir.ContextQuery) souvenir.Context {
	f.Helper()
	c, err := f.reader.GetContext(f.ctx, q)
	f.check("GetContext "+brief(q), err)
	encoded, err := json.Marshal(c)
	f.check("JSON of a context", err)
	if want := (len(encoded) + 3) / 4; c.Tokens != want {
		f.Errorf("a context of %d bytes says that it has %d tokens, want %d", len(encoded), c.Tokens, want)
	}
	return c
}

// contextCalls returns the methods that build contexts.
func (f *fixture) contextCalls(project souvenir.ProjectRef) []call {
	return []call{
		{"GetContext", false, func(s *souvenir.Store) error {
			_, err := s.GetContext(f.ctx, souvenir.ContextQuery{ProjectID: project.ID, ProjectName: project.Name})
			return err
		}},
		{"GetContext of a detected identity", false, func(s *souvenir.Store) error {
			_, err := s.GetContext(f.ctx, souvenir.ContextQuery{DetectedIdentity: map[string]any{"name": "Ada"}})
			return err
		}},
		{"GetIdentityMemory", false, func(s *souvenir.Store) error { _, err := s.GetIdentityMemory(f.ctx); return err }},
		{"SetIdentityMemory", true, func(s *souvenir.Store) error {
			_, err := s.SetIdentityMemory(f.ctx, souvenir.IdentityMemory{Content: "x"})
			return err
		}},
		{"GetMainMemory", false, func(s *souvenir.Store) error { _, err := s.GetMainMemory(f.ctx, project); return err }},
		{"GetModuleState", false, func(s *souvenir.Store) error {
			_, err := s.GetModuleState(f.ctx, souvenir.ModuleQuery{Module: "m", ProjectID: project.ID,
				ProjectName: project.Name})
			return err
		}},
	}
}

// listed returns the contents of a part of a context.
func listed(list []souvenir.ContextMemory) []string {
	var all []string
	for _, m := range list {
		all = append(all, m.Content)
	}
	return all
}

// only returns the content of a single part, "" for nil.
func only(m *souvenir.ContextMemory) string {
	if m == nil {
		return ""
	}
	return m.Content
}

func contextEmpty(f *fixture) {
	c := f.context(souvenir.ContextQuery{Query: "anything"})
	c.Tokens, c.Guide = 0, nil
	f.equal("as JSON", toJSON(c),
		`{"identity":null,"conversation_memory_id":null,"related_memories":[],"get_context_do_dont":[],`+
			`"general_do_dont":[],"project_do_dont":null,"tokens":0}`)
	c = f.context(souvenir.ContextQuery{ProjectID: "p"})
	if len(c.Guide) < 5 {
		f.Errorf("the guide is %q, want at least a length of 5", c.Guide)
	}
	c.Tokens, c.Guide, c.Warnings = 0, nil, nil
	f.equal("as JSON, for a project", toJSON(c),
		`{"identity":null,"conversation_memory_id":null,"related_memories":[],"get_context_do_dont":[],`+
			`"general_do_dont":[],"project_do_dont":[],"project_rules":{"do":null,"dont":null,"todo":null},"tokens":0}`)
}

func contextRules(f *fixture) {
	for _, m := range []souvenir.NewMemory{
		{Content: "low", Classification: souvenir.ClassDo, Importance: souvenir.ImportanceLow},
		{Content: "older", Classification: souvenir.ClassDont},
		{Content: "newer", Classification: souvenir.ClassDo, Importance: souvenir.ImportanceMedium},
		{Content: "critical", Classification: souvenir.ClassDont, Importance: souvenir.ImportanceCritical},
		{Content: "high", Classification: souvenir.ClassDo, Importance: souvenir.ImportanceHigh, State: "completed"},
		{Content: "archived", Classification: souvenir.ClassDo, State: "Archived"},
		{Content: "a note", Classification: souvenir.ClassNotes},
		{Content: "general do", EventType: souvenir.EventProjectRule, RuleType: souvenir.RuleDo},
		{Content: "project do", EventType: souvenir.EventProjectRule, RuleType: souvenir.RuleDo,
			Classification: souvenir.ClassDo, ProjectID: "p"},
		{Content: "project dont " + strings.Repeat("x", 5000), EventType: souvenir.EventProjectRule,
			RuleType: souvenir.RuleDont, ProjectID: "p"},
		{Content: "short", Classification: souvenir.ClassDont, ProjectID: "p"},
		{Content: "elsewhere", Classification: souvenir.ClassDo, ProjectID: "q"},
	} {
		f.clock.Pass(time.Second)
		f.add(m)
	}
	general := []string{"general do", "critical", "high", "newer", "older", "low"}
	c := f.context(souvenir.ContextQuery{})
	f.same("general", listed(c.GeneralDoDont), general...)
	if c.ProjectDoDont != nil || c.ProjectRules != nil {
		f.Errorf("without a project: got do and don't %v and rules %v, want neither", c.ProjectDoDont, c.ProjectRules)
	}
	c = f.context(souvenir.ContextQuery{ProjectName: "p"})
	f.same("general, with a project", listed(c.GeneralDoDont), general...)
	f.same("the project's", listed(c.ProjectDoDont), "short")
	f.equal("rule do", only(c.ProjectRules.Do), "project do")
	f.equal("its rule_type", c.ProjectRules.Do.ShownMetadata()["rule_type"], "do")
	f.equal("rule dont", len(only(c.ProjectRules.Dont)), len("project dont ")+5000)
	f.equal("todo", c.ProjectRules.Todo, (*souvenir.ContextMemory)(nil))
}

func contextBound(f *fixture) {
	memories := make([]souvenir.NewMemory, 60)
	for i := range memories {
		memories[i] = souvenir.NewMemory{Content: fmt.Sprint("do ", i), Classification: souvenir.ClassDo}
	}
	_, err := f.store.AddMemories(f.ctx, memories, nil)
	f.check("AddMemories", err)
	c := f.context(souvenir.ContextQuery{})
	f.equal("shown", len(c.GeneralDoDont), 50)
	f.equal("first", c.GeneralDoDont[0].Content, "do 59")
	if !contains(c.Warnings, "50 of 60") {
		f.Errorf(`ten are left out: got warnings %q, want "50 of 60" in one`, c.Warnings)
	}
}

func contextDirect(f *fixture) {
	f.add(souvenir.NewMemory{Content: "unrelated words", EventType: souvenir.EventProjectRule, RuleType: souvenir.RuleDo,
		ProjectID: "p"})
	memories := make([]souvenir.NewMemory, 300)
	for i := range memories {
		memories[i] = souvenir.NewMemory{Content: fmt.Sprint("the coffee machine ", i), ProjectID: "p"}
	}
	_, err := f.store.AddMemories(f.ctx, memories, nil)
	f.check("AddMemories", err)
	c := f.context(souvenir.ContextQuery{Query: "coffee machine", ProjectID: "p"})
	f.equal("rule", only(c.ProjectRules.Do), "unrelated words")
	f.equal("related", len(c.Related), 7)
	if slices.Contains(listed(c.Related), "unrelated words") {
		f.Errorf(`the rule is shown twice, want no "unrelated words" among it`)
	}
}

func contextUnknownProject(f *fixture) {
	f.add(souvenir.NewMemory{Content: "a dog", ProjectID: "p"})
	f.add(souvenir.NewMemory{Content: "talk", EventType: "conversation"})
	for _, q := range []souvenir.ContextQuery{{ProjectID: "nowhere", Query: "dog"}, {ProjectName: "nowhere"}} {
		c := f.context(q)
		f.equal("rules", *c.ProjectRules, souvenir.ContextRules{})
		f.equal("dos and don'ts", c.ProjectDoDont, []souvenir.ContextMemory{})
		f.equal("conversation", c.ConversationID, "")
		if !contains(c.Warnings, "nowhere") {
			f.Errorf(`got warnings %q, want "nowhere" in one`, c.Warnings)
		}
		if !slices.Contains(listed(c.Related), "a dog") {
			f.Errorf(`related are %q, want "a dog" among it`, listed(c.Related))
		}
	}
}

func contextConversation(f *fixture) {
	id := func(m souvenir.NewMemory) string { f.clock.Pass(time.Second); return f.add(m).ID }
	q := func(query, project string) string {
		f.Helper()
		return f.context(souvenir.ContextQuery{Query: query, ProjectID: project}).ConversationID
	}
	f.equal("none", q("dog", ""), "")
	dog := id(souvenir.NewMemory{Content: "about the dog", EventType: "Conversation", State: "Active", ProjectID: "p"})
	f.equal("the only one", q("ocean", ""), dog)
	sea := id(souvenir.NewMemory{Content: "about the sea", EventType: "case"})
	id(souvenir.NewMemory{Content: "dog dog dog", EventType: "conversation", State: "completed"})
	id(souvenir.NewMemory{Content: "dog dog", EventType: "conversation", State: "archived"})
	id(souvenir.NewMemory{Content: "the dog", EventType: "decision"})
	f.equal("by words", q("dog", ""), dog)
	f.equal("by meaning", q("puppy", ""), dog)
	f.equal("by meaning, the other", q("the ocean", ""), sea)
	f.equal("the newest", q("", ""), sea)
	f.equal("what fits none", q("zzz", ""), sea)
	f.equal("in the project", q("sea", "p"), dog)
	f.equal("in the project, newest", q("", "p"), dog)
	f.patch(dog, map[string]any{"state": "completed"})
	f.equal("once it is completed", q("dog", "p"), "")
	f.equal("once it is completed, anywhere", q("dog", ""), sea)
}

func contextRelated(f *fixture) {
	long := "The coffee report. " + strings.Repeat("Ä word or two. ", 100)
	for _, m := range []souvenir.NewMemory{
		{Content: long, ProjectID: "p", Tags: []string{"report"}, EventType: "report"},
		{Content: "coffee elsewhere"},
		{Content: "coffee rule", EventType: souvenir.EventProjectRule, RuleType: souvenir.RuleDo, ProjectID: "p"},
		{Content: "coffee do", Classification: souvenir.ClassDo},
		{Content: "coffee with much metadata", ProjectID: "q", ShownMetadata: map[string]any{"data": strings.Repeat("x",
			3000)}},
		{Content: "nothing in common", ProjectID: "p"},
	} {
		f.add(m)
	}
	c := f.context(souvenir.ContextQuery{MinScore: -1, Query: "espresso coffee", ProjectID: "p"})
	f.equal("related", len(c.Related), 3)
	first := c.Related[0]
	f.equal("first is the project's",
		[]any{first.Truncated, first.EventType, first.Tags, first.ProjectID, first.Collection},
		[]any{true, "report", []string{"report"}, "p", "default"})
	if n := utf8.RuneCountInString(first.Content); n > 600 || n < 550 || !strings.HasPrefix(long, first.Content) ||
		first.Score <= 0 || first.Score > 1 {
		f.Errorf("the preview has %d characters and the score %v: %q, want 550 to 600, and a score up to 1", n,
			first.Score, first.Content)
	}
	for _, m := range c.Related[1:] {
		switch m.Content {
		case "coffee elsewhere":
			f.equal("short ones are whole", m.Truncated, false)
		case "coffee with much metadata":
			f.equal("long metadata is left out", []any{m.Truncated, len(m.Metadata)}, []any{true, 0})
		default:
			f.Errorf("got the related memory %q, want the coffee memories alone", m.Content)
		}
	}
	c = f.context(souvenir.ContextQuery{MinScore: -1, Query: "coffee", Related: 1, Preview: 50})
	f.equal("one", len(c.Related), 1)
	if n := utf8.RuneCountInString(c.Related[0].Content); n > 50 {
		f.Errorf("a preview of 50 characters has %d, want at most 50", n)
	}
}

func contextNewest(f *fixture) {
	for _, m := range []souvenir.NewMemory{
		{Content: "one"}, {Content: "two", ProjectID: "p"}, {Content: "three"}, {Content: "four", ProjectID: "p"},
		{Content: "me", EventType: "identity"},
	} {
		f.clock.Pass(time.Second)
		f.add(m)
	}
	c := f.context(souvenir.ContextQuery{})
	f.same("newest", listed(c.Related), "four", "three", "two", "one")
	f.same("newest, the project's first", listed(f.context(souvenir.ContextQuery{ProjectID: "p"}).Related), "four", "two",
		"three", "one")
	f.same("newest three", listed(f.context(souvenir.ContextQuery{ProjectID: "p", Related: 3}).Related), "four", "two",
		"three")
	if strings.Contains(toJSON(c), `"score"`) {
		f.Errorf(`nothing was searched for, and there is a score: %s, want no "score" in it`, toJSON(c))
	}
}

func contextSuggestion(f *fixture) {
	detected := map[string]any{"name": "Mira", "nicknames": []any{"Mi", "Mimi"}, "age": 3, "known": true, "state": "tired"}
	c := f.context(souvenir.ContextQuery{DetectedIdentity: detected})
	if c.IdentitySuggestion == nil || c.IdentitySuggestion.Tool != "memory" {
		f.Fatalf(`the suggestion is %+v, want one for tool "memory"`, c.IdentitySuggestion)
	}
	arguments := c.IdentitySuggestion.Arguments
	f.sameJSON("arguments", arguments, map[string]any{
		"action": "store", "event_type": "IDENTITY", "state": "active",
		"content":  "age: 3\nname: Mira\nnicknames: Mi, Mimi\nstate: tired",
		"metadata": map[string]any{"name": "Mira", "nicknames": []any{"Mi", "Mimi"}, "age": 3, "known": true},
	})
	if !strings.Contains(toJSON(c), `"identity_suggestion":{"tool":"memory","arguments":{`) {
		f.Errorf(`the JSON is %s, want "identity_suggestion":{"tool":"memory","arguments":{ in it`, toJSON(c))
	}
	f.equal("through a view that may not write",
		f.as(souvenir.Access{ReadOnly: true}).context(souvenir.ContextQuery{DetectedIdentity: detected}).IdentitySuggestion,
		(*souvenir.ToolCall)(nil))
	for _, projects := range [][]string{{}, {"p"}, {"p", "q"}} {
		limited := f.as(souvenir.Access{Projects: projects})
		f.equal("through a limited view",
			limited.context(souvenir.ContextQuery{DetectedIdentity: detected}).IdentitySuggestion, (*souvenir.ToolCall)(nil))
	}
	f.equal("of nothing", f.context(
		souvenir.ContextQuery{DetectedIdentity: map[string]any{"name": nil}}).IdentitySuggestion, (*souvenir.ToolCall)(nil))

	f.add(souvenir.NewMemory{
		Content: arguments["content"].(string), EventType: arguments["event_type"].(string),
		State:         arguments["state"].(string),
		ShownMetadata: arguments["metadata"].(map[string]any),
	})
	c = f.context(souvenir.ContextQuery{DetectedIdentity: detected})
	f.equal("suggestion once it is stored", c.IdentitySuggestion, (*souvenir.ToolCall)(nil))
	f.equal("identity", only(c.Identity), arguments["content"].(string))
}

func contextWidening(f *fixture) {
	f.add(souvenir.NewMemory{Content: "zebra crossing"})
	f.add(souvenir.NewMemory{Content: "giraffe house"})
	q := souvenir.ContextQuery{Query: "giraffe", DetectedIdentity: map[string]any{"likes": []any{"zebra"}}}
	f.same("widened", listed(f.context(q).Related), "giraffe house", "zebra crossing")
	f.add(souvenir.NewMemory{Content: "me", EventType: souvenir.EventIdentity})
	f.same("with an identity", listed(f.context(q).Related), "giraffe house")
}

// crowd fills a project with everything that a context can contain.
func crowd(f *fixture) {
	f.Helper()
	memories := []souvenir.NewMemory{
		{Content: "I am Mira. " + strings.Repeat("Kind and quick. ", 40), EventType: souvenir.EventIdentity,
			ShownMetadata: map[string]any{"personality": "kind"}},
		{Content: strings.Repeat("Do <this> & \"that\".\n", 40), EventType: souvenir.EventProjectRule,
			RuleType: souvenir.RuleDo, ProjectID: "p"},
		{Content: "Never on Fridays.", EventType: souvenir.EventProjectRule, RuleType: souvenir.RuleDont, ProjectID: "p",
			ShownMetadata: map[string]any{"why": strings.Repeat("w", 500)}},
	}
	for i := range 12 {
		memories = append(memories,
			souvenir.NewMemory{Content: fmt.Sprint("general ", i), Classification: souvenir.ClassDo},
			souvenir.NewMemory{Content: fmt.Sprint("short ", i), Classification: souvenir.ClassDont, ProjectID: "p"},
			souvenir.NewMemory{Content: fmt.Sprint("coffee ", i, strings.Repeat(" 日本語", 500)), ProjectID: "p"})
	}
	_, err := f.store.AddMemories(f.ctx, memories, nil)
	f.check("AddMemories", err)
}

func contextBudget(f *fixture) {
	crowd(f)
	whole := f.context(souvenir.ContextQuery{MinScore: -1, Query: "coffee", ProjectID: "p"})
	f.equal("whole", len(whole.Warnings), 0)
	roomy := f.context(souvenir.ContextQuery{MinScore: -1, Query: "coffee", ProjectID: "p", TokenBudget: whole.Tokens})
	f.sameJSON("with a budget that is enough", roomy, whole)
	for budget := 500; budget < whole.Tokens; budget += 250 {
		c := f.context(souvenir.ContextQuery{MinScore: -1, Query: "coffee", ProjectID: "p", TokenBudget: budget})
		if c.Tokens > budget {
			f.Errorf("the answer has %d tokens, want at most %d: %q", c.Tokens, budget, c.Warnings)
		}
		for name, m := range map[string][2]*souvenir.ContextMemory{
			"identity": {c.Identity, whole.Identity}, "do": {c.ProjectRules.Do, whole.ProjectRules.Do},
			"dont": {c.ProjectRules.Dont, whole.ProjectRules.Dont},
		} {
			switch got, all := m[0], m[1]; {
			case got == nil || got.ID != all.ID || got.RuleType != all.RuleType || !strings.HasPrefix(all.Content, got.Content):
				f.Errorf("budget %d: %s: got %+v, want the beginning of %+v", budget, name, got, all)
			case got.Truncated && !contains(c.Warnings, got.ID):
				f.Errorf("budget %d: %s is shortened: got the warnings %q, want one about %s", budget, name, c.Warnings, got.ID)
			case !got.Truncated && toJSON(got) != toJSON(all):
				f.Errorf("budget %d: %s: got %s, want %s, or Truncated set", budget, name, toJSON(got), toJSON(all))
			}
		}
		for name, lists := range map[string][2][]souvenir.ContextMemory{
			"general_do_dont": {c.GeneralDoDont, whole.GeneralDoDont}, "project_do_dont": {c.ProjectDoDont, whole.ProjectDoDont},
			"related_memories": {c.Related, whole.Related},
		} {
			for i, m := range lists[0] {
				if m.ID != lists[1][i].ID || m.Content != lists[1][i].Content && !m.Truncated {
					f.Errorf("budget %d: %s holds %s, want the memory of the same place, or less of it", budget, name, toJSON(m))
				}
			}
			if left := len(lists[1]) - len(lists[0]); left > 0 && !contains(c.Warnings, fmt.Sprintf("%d of %s", left,
				name)) {
				f.Errorf("budget %d: %d of %s are left out, and the warnings are %q; want them named there", budget, left,
					name, c.Warnings)
			}
		}
	}
}

func contextSmallBudget(f *fixture) {
	crowd(f)
	c := f.context(souvenir.ContextQuery{ProjectID: "p", TokenBudget: 500, DetectedIdentity: map[string]any{"a": "b"}})
	f.equal("dont", only(c.ProjectRules.Dont), "Never on Fridays.")
	f.equal("do is shortened", c.ProjectRules.Do.Truncated, true)
	if len(c.ProjectRules.Do.Content) < 50 {
		f.Errorf("of do is left %q, want at least a length of 50", c.ProjectRules.Do.Content)
	}
	f.same("related", listed(c.Related))
	suggestion := strings.Repeat("long ", 1000)
	c = f.as(souvenir.Access{User: "ann"}).context(souvenir.ContextQuery{TokenBudget: 500,
		DetectedIdentity: map[string]any{"name": suggestion}})
	f.equal("the suggestion is left out", c.IdentitySuggestion, (*souvenir.ToolCall)(nil))
	if !contains(c.Warnings, "identity_suggestion") {
		f.Errorf(`the suggestion is left out: got warnings %q, want "identity_suggestion" in one`, c.Warnings)
	}
	c = f.as(souvenir.Access{User: "ann"}).context(souvenir.ContextQuery{TokenBudget: 500,
		DetectedIdentity: map[string]any{"name": "Ann"}})
	f.equal("a short one fits", c.IdentitySuggestion != nil, true)
}

func contextWords(f *fixture) {
	f.add(souvenir.NewMemory{Content: "the red car"})
	f.embedder.Break(errors.New("no answer"))
	c := f.context(souvenir.ContextQuery{Query: "red automobile"})
	f.same("related", listed(c.Related), "the red car")
	if !contains(c.Warnings, "words only") || contains(c.Warnings, "no answer") {
		f.Errorf(`got warnings %q, want one with "words only" and none with "no answer"`, c.Warnings)
	}
}

func contextViews(f *fixture) {
	crowd(f)
	f.add(souvenir.NewMemory{Content: "coffee talk", EventType: "conversation"})
	project := f.as(souvenir.Access{Projects: []string{"p"}})
	c := project.context(souvenir.ContextQuery{Query: "coffee", ProjectID: "p", Related: 50})
	f.equal("rules in a limited view", c.ProjectRules.Dont != nil, true)
	f.equal("what is in no project", []any{c.Identity == nil, len(c.GeneralDoDont), c.ConversationID},
		[]any{true, 0, ""})
	for _, m := range c.Related {
		f.equal("project of a related memory", m.ProjectID, "p")
	}
	reader := f.as(souvenir.Access{ReadOnly: true})
	f.sameJSON("read-only", reader.context(souvenir.ContextQuery{Query: "coffee", ProjectID: "p"}),
		f.context(souvenir.ContextQuery{Query: "coffee", ProjectID: "p"}))
	for _, access := range []souvenir.Access{{User: "ann"}, {Projects: []string{}}, {Projects: []string{"q"}}} {
		c := f.as(access).context(souvenir.ContextQuery{Query: "coffee", ProjectID: "p"})
		c.Guide, c.Warnings, c.Tokens = nil, nil, 0
		f.equal(brief(access), c, souvenir.Context{Related: nil, GeneralDoDont: []souvenir.ContextMemory{},
			ProjectDoDont: []souvenir.ContextMemory{}, ProjectRules: &souvenir.ContextRules{}})
	}
}

func contextShared(f *fixture) {
	p := share(f)
	for _, m := range []souvenir.NewMemory{
		{Content: "I am Olga's.", EventType: souvenir.EventIdentity, ProjectID: "apollo"},
		{Content: "launch on Fridays", EventType: souvenir.EventProjectRule, RuleType: souvenir.RuleDo, ProjectID: "apollo"},
		{Content: "never at night", Classification: souvenir.ClassDont, ProjectID: "apollo"},
		{Content: "the countdown talk", EventType: souvenir.EventConversation, ProjectID: "apollo"},
		{Content: "main", EventType: souvenir.EventProjectMain, ProjectID: "apollo", Tags: []string{"engine"}},
		{Content: "Olga's habit", Classification: souvenir.ClassDo},
		{Content: "Olga's general rule", EventType: souvenir.EventProjectRule, RuleType: souvenir.RuleDo},
	} {
		p.owner.add(m)
	}
	p.writer.add(souvenir.NewMemory{Content: "never without Will", EventType: souvenir.EventProjectRule,
		RuleType: souvenir.RuleDont, ProjectID: "olga/apollo"})
	talk := p.owner.context(souvenir.ContextQuery{ProjectID: "apollo"}).ConversationID
	for _, member := range p.members() {
		for _, q := range []souvenir.ContextQuery{{ProjectID: "olga/apollo"}, {ProjectName: "Apollo 11", Query: "rocket"}} {
			c := member.context(q)
			f.equal("rules", []string{only(c.ProjectRules.Do), only(c.ProjectRules.Dont), only(c.ProjectRules.Todo)},
				[]string{"launch on Fridays", "never without Will", ""})
			f.same("the project's dos and don'ts", listed(c.ProjectDoDont), "never at night")
			f.equal("what is not the project's", []any{c.Identity, len(c.GeneralDoDont)},
				[]any{(*souvenir.ContextMemory)(nil), 0})
			f.equal("the rocket is related", slices.Contains(listed(c.Related), "the rocket"), true)
			want := talk
			if member == p.reader {
				want = "" // a user who could not update it
			}
			f.equal("conversation", c.ConversationID, want)
		}
		f.equal("main memory", member.mainMemory(apollo).Memory.Content, "main")
		f.equal("module", member.module(souvenir.ModuleQuery{Module: "engine", ProjectName: "Apollo 11"}).Summary.Total, 1)
	}
	for _, q := range []souvenir.ContextQuery{{}, {Query: "countdown"}} {
		f.equal("a member's conversation outside of the project", p.writer.context(q).ConversationID, "")
		f.equal("the owner's, who shares the project", p.owner.context(q).ConversationID, "")
	}
	c := p.stranger.context(souvenir.ContextQuery{ProjectID: "olga/apollo", Query: "rocket"})
	f.equal("a stranger's", []any{*c.ProjectRules, len(c.Related)}, []any{souvenir.ContextRules{}, 0})
}

func contextErrors(f *fixture) {
	f.add(souvenir.NewMemory{Content: "a", ProjectID: "a", ProjectName: "Apollo"})
	for _, c := range []struct {
		query    souvenir.ContextQuery
		kind     *souvenir.Error
		argument string
		says     string
	}{
		{souvenir.ContextQuery{Query: strings.Repeat("x", souvenir.MaxQuery+1)}, souvenir.ErrTooLarge, "query", "65536"},
		{souvenir.ContextQuery{Query: "a\xff"}, souvenir.ErrInvalid, "query", "0xff"},
		{souvenir.ContextQuery{ProjectID: " "}, souvenir.ErrInvalid, "project_id", "1 to"},
		{souvenir.ContextQuery{ProjectName: "a\nb"}, souvenir.ErrInvalid, "project_name", "control"},
		{souvenir.ContextQuery{ProjectID: "a", ProjectName: "Gemini"}, souvenir.ErrInvalid, "project_name", "disagree"},
		{souvenir.ContextQuery{Related: -1}, souvenir.ErrInvalid, "related", "1 to 50"},
		{souvenir.ContextQuery{Related: 51}, souvenir.ErrInvalid, "related", "51"},
		{souvenir.ContextQuery{Preview: 49}, souvenir.ErrInvalid, "preview", "49"},
		{souvenir.ContextQuery{TokenBudget: 499}, souvenir.ErrInvalid, "token_budget", "500"},
		{souvenir.ContextQuery{TokenBudget: -500}, souvenir.ErrInvalid, "token_budget", "-500"},
		{souvenir.ContextQuery{DetectedIdentity: map[string]any{"f": func() {}}}, souvenir.ErrInvalid, "detected_identity",
			"JSON"},
		{souvenir.ContextQuery{DetectedIdentity: map[string]any{"f": strings.Repeat("x", 20_000)}}, souvenir.ErrTooLarge,
			"detected_identity", "16384"},
	} {
		_, err := f.reader.GetContext(f.ctx, c.query)
		f.failsAt("GetContext "+brief(c.query), err, c.kind, c.argument, c.says)
	}
}
