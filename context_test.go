package souvenir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/budget"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fixedcontext"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/shorten"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// Contexts are requested at the start of every interaction, so they must not scan all memories.
func TestContextsUseTheirIndexes(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "plans.db"), Options{})
	for _, c := range []struct {
		query, index string
		args         []any
	}{
		{fixedcontext.NewestActive("").ByTime,
			`COVERING INDEX memory_active (partition_id=? AND <expr>=? AND updated_at>? AND updated_at<?)`,
			[]any{"[1]", "identity", 0, 9, 1}},
		{`SELECT m.id ` + kernel.FromMemory + ` WHERE m.partition_id IN (SELECT value FROM json_each(?)) AND ` +
			fixedcontext.Active,
			`memory_active (partition_id=? AND <expr>=?)`, []any{"[1]", `["case"]`}},
		{fixedcontext.DoDontQuery(""), `memory_do_dont (partition_id=?)`, []any{"[1]"}},
		{fixedcontext.RuleQuery, `memory_event (partition_id=? AND event_type=?)`, []any{"[1]"}},
		{fixedcontext.NewestActive("").ByRow,
			`COVERING INDEX memory_active (partition_id=? AND <expr>=? AND updated_at>? AND updated_at<?)`,
			[]any{"[1]", "identity", 0, 9, 1}},
		{fixedcontext.NewestOfAll("").ByTime, `memory_updated (partition_id=? AND updated_at>? AND updated_at<?)`,
			[]any{"[1]", 0, 9, 7}},
		{fixedcontext.NewestOfAll("").ByRow,
			`COVERING INDEX memory_updated (partition_id=? AND updated_at>? AND updated_at<?)`,
			[]any{"[1]", 0, 9, 7}},
		{kernel.ModuleQuery(`lower(t.tag) IN `+db.Texts, ""), `memory_module (<expr>=?)`, []any{`["a"]`, `["a"]`, "[1]"}},
		{kernel.ModuleQuery(`lower(t.tag) IN `+db.Texts, ""), `memory_tag_name (<expr>=?)`, []any{`["a"]`, `["a"]`, "[1]"}},
	} {
		var plan strings.Builder
		err := s.db.Read(t.Context(), func(tx db.Tx) error {
			return tx.Each(func(row db.Rows) error {
				var id, parent, unused int64
				var detail string
				err := row.Scan(&id, &parent, &unused, &detail)
				plan.WriteString(detail + "\n")
				return err
			}, `EXPLAIN QUERY PLAN `+c.query, c.args...)
		})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(plan.String(), c.index) {
			t.Errorf("%s\ndoes not use %s, want it in the plan:\n%s", c.query, c.index, plan.String())
		}
	}
}

func TestPreviewsEndWhereWordsDo(t *testing.T) {
	for _, c := range []struct {
		content    string
		characters int
		want       string
	}{
		{"", 5, ""},
		{"short", 5, "short"},
		{"two words", 5, "two"},
		{"two words", 3, "two"},
		{"two  words", 4, "two"},
		{"two words", 8, "two"},
		{"two words", 9, "two words"},
		{"日本語の文章です", 5, "日本語の文"},
		{"日本語", 3, "日本語"},
		{"a " + strings.Repeat("x", 100), 60, "a " + strings.Repeat("x", 58)}, // a long word is cut, not dropped
		{"      after spaces", 4, ""},
	} {
		if got := shorten.Words(c.content, c.characters); got != c.want {
			t.Errorf("%d characters of %q are %q, want %q", c.characters, c.content, got, c.want)
		}
	}
}

func TestBytesAreCutBetweenCharacters(t *testing.T) {
	for most, want := range map[int]string{-1: "", 0: "", 1: "a", 2: "a", 3: "aä", 4: "aä", 6: "aä語", 7: "aä語"} {
		if got := shorten.Bytes("aä語", most); got != want {
			t.Errorf("%d bytes are %q, want %q", most, got, want)
		}
	}
}

func TestShortenedMemoriesFitAndKeepTheirID(t *testing.T) {
	for name, m := range map[string]Memory{
		"text":     {Content: strings.Repeat("plain words ", 500)},
		"escapes":  {Content: strings.Repeat("<\"\n\u2028", 500)},
		"Japanese": {Content: strings.Repeat("日本語。", 500)},
		"long metadata": {Content: strings.Repeat("plain words ", 500),
			Metadata: map[string]any{"k": strings.Repeat("v", 5000)}},
		"long names": {Content: "short", Collection: strings.Repeat("c", 128), Owner: strings.Repeat("o", 128),
			ProjectName: strings.Repeat("<", 128)},
	} {
		m.ID, m.EventType, m.RuleType = "0190a5f2-0000-7000-8000-000000000000", EventProjectRule, RuleDo
		whole := ContextMemory{Memory: m}
		for _, most := range []int{150, 200, 400, 1000, 3000, 1 << 20} {
			c := whole
			c.within(most)
			if size := budget.Size(c); size > most || c.ID != m.ID || c.RuleType != RuleDo ||
				!strings.HasPrefix(m.Content, c.Content) || !utf8.ValidString(c.Content) {
				t.Errorf("%s within %d bytes takes %d: %s, want the start of the rule, within the limit", name, most,
					size, asJSON(t, c))
			}
			if c.Truncated != (budget.Size(whole) > most) {
				t.Errorf("%s within %d bytes: truncated is %v, want %v", name, most, c.Truncated, !c.Truncated)
			}
			if most >= 400 && len(c.Content) < min(len(m.Content), budget.MinShown/2) {
				t.Errorf("%s within %d bytes: of the content is left %q, want more", name, most, c.Content)
			}
		}
	}
}

// hostileText returns a text of about size bytes. Many of its characters take more bytes in JSON.
func hostileText(r *rand.Rand, size int) string {
	pieces := []string{"<", "\x01", "\"", "\\", "é", "日本", "👩‍👩‍👧", "e\u0301", "\u2028", "word ", " ", "\n", "\u202e", "a"}
	text := []byte("x")
	for len(text) < size {
		text = append(text, strings.Repeat(pieces[r.IntN(len(pieces))], 1+r.IntN(20))...)
	}
	return string(text)
}

func TestBudgetsBoundContextsOfAnyMemories(t *testing.T) {
	for seed := range uint64(12) {
		if !longtest.Part(int(seed), 1, 6) {
			continue
		}
		r := rand.New(rand.NewPCG(seed, 0))
		s := openWords(t, "", Options{})
		var all []NewMemory
		for range 3 + r.IntN(15) {
			m := NewMemory{Content: hostileText(r, 1<<r.IntN(16)), ProjectID: []string{"", "p"}[r.IntN(2)]}
			switch r.IntN(4) {
			case 0:
				m.EventType, m.RuleType = EventProjectRule, RuleType(kernel.RuleTypes[r.IntN(2)])
			case 1:
				m.Classification = ClassDo
			case 2:
				m.EventType = []string{EventIdentity, EventCase}[r.IntN(2)]
			}
			if r.IntN(3) == 0 {
				m.Metadata = map[string]any{hostileText(r, 10): hostileText(r, 1<<r.IntN(12))}
			}
			all = append(all, m)
		}
		if _, err := s.AddMemories(t.Context(), all, nil); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			q := ContextQuery{TokenBudget: MinTokenBudget + r.IntN(1<<(4+r.IntN(11))), Query: []string{"", "word"}[r.IntN(2)],
				ProjectID:        []string{"", "p"}[r.IntN(2)],
				DetectedIdentity: map[string]any{"name": hostileText(r, 1<<r.IntN(11))}}
			c, err := s.GetContext(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if encoded := budget.Size(c); encoded > budget.BytesPerToken*q.TokenBudget ||
				(encoded+budget.BytesPerToken-1)/budget.BytesPerToken != c.Tokens {
				t.Errorf("seed %d: a context of %d bytes and %d tokens, with a budget of %d; warnings %q, want it within "+
					"the budget, and the tokens of the bytes", seed, encoded, c.Tokens,
					q.TokenBudget, c.Warnings)
			}
		}
	}
}

func TestLongMetadataOfADontLeaveRoomForTheOthers(t *testing.T) {
	s := openWords(t, "", Options{})
	for _, m := range []NewMemory{{Content: "Tea is oolong."}, {Content: "Ask first.", Classification: ClassDo},
		{Content: "Ship on Fridays.", Classification: ClassDont, Importance: ImportanceCritical,
			Metadata: map[string]any{"notes": strings.Repeat("x", 20_000)}}} {
		if _, err := s.AddMemory(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	c, err := s.GetContext(t.Context(), ContextQuery{TokenBudget: 1000})
	if err != nil || len(c.GeneralDoDont) != 2 || len(c.Related) != 1 {
		t.Fatalf("got %+v, %v, want the do, the don't and the related memory", c, err)
	}
	if dont := c.GeneralDoDont[0]; dont.Content != "Ship on Fridays." || dont.Classification != ClassDont ||
		!dont.Truncated || dont.Metadata != nil {
		t.Errorf("got %+v, want the text and that it is a don't, without the metadata, marked as truncated", dont)
	}
}

func TestExceededBudgetsGiveAWarning(t *testing.T) {
	c := Context{Identity: &ContextMemory{Memory: Memory{ID: "i", Content: strings.Repeat("x", 5000)}},
		Warnings: []string{strings.Repeat("w", 4000)}}
	c.fit(500)
	if last := c.Warnings[len(c.Warnings)-1]; !strings.Contains(last, "token_budget 500 is too small") ||
		c.Identity.ID != "i" || !c.Identity.Truncated {
		t.Errorf(`the identity is %+v, the last warning %q, want identity "i" truncated and a last warning with `+
			`"token_budget 500 is too small"`, c.Identity, last)
	}
}

// addFileRow inserts an empty file.
func addFileRow(t *testing.T, s *Store, id, user, memory, project, tag string) {
	t.Helper()
	err := s.db.Write(t.Context(), func(tx db.Tx) error {
		row, err := db.Insert(tx,
			`INSERT INTO file (uid, owner_id, memory_id, project_id, state, filename, mime_type, size, sha256,
			description, category, created_at, updated_at)
			SELECT ?, u.id, (SELECT id FROM memory WHERE uid = ?), (SELECT id FROM project WHERE uid = ?), 'stored', 'f',
			'text/plain', 0, x'', '', '', 0, 0
			FROM users u WHERE u.uid = ? RETURNING id`, id, memory, project, user)
		if err == nil && tag != "" {
			_, err = tx.Exec(`INSERT INTO file_tag (file_id, tag, position) VALUES (?, ?, 0)`, row, tag)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func fileIDs(files []File) string {
	var ids []string
	for _, f := range files {
		ids = append(ids, f.ID)
	}
	return strings.Join(ids, " ")
}

func TestMainMemoriesAndModulesBringTheirFiles(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "files.db"), Options{})
	main := mustAdd(t, s, NewMemory{Content: "main", EventType: EventProjectMain, ProjectID: "p",
		Tags: []string{"engine"}})
	other := mustAdd(t, s, NewMemory{Content: "other", ProjectID: "q", Related: []string{main.ID},
		Tags: []string{"engine"}})
	mustAdd(t, s.As(Access{User: "eve"}), NewMemory{Content: "hers", Tags: []string{"engine"}})
	addFileRow(t, s, "a", LocalUser, main.ID, "", "Engine")
	addFileRow(t, s, "b", LocalUser, other.ID, "", "")
	addFileRow(t, s, "c", LocalUser, "", "p", "ENGINE")
	addFileRow(t, s, "d", LocalUser, "", "", "module:engine")
	addFileRow(t, s, "e", "eve", "", "", "engine")
	addFileRow(t, s, "f", LocalUser, "", "", "engines")

	m, err := s.GetMainMemory(t.Context(), ProjectRef{ID: "p"})
	if err != nil || fileIDs(m.Files) != "a" {
		t.Errorf("the main memory brings %q, %v; want \"a\"", fileIDs(m.Files), err)
	}
	for _, c := range []struct{ project, want string }{{"", "b a c d"}, {"p", "a c"}, {"q", "b"}, {"nowhere", ""}} {
		state, err := s.GetModuleState(t.Context(), ModuleQuery{Module: "engine", ProjectID: c.project, Limit: 1})
		if err != nil || fileIDs(state.Files) != c.want {
			t.Errorf("in project %q the module brings %q, %v; want %q", c.project, fileIDs(state.Files), err, c.want)
		}
	}
}

func TestUnreadableTodosGiveAWarning(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "todo.db"), Options{})
	m := mustAdd(t, s, NewMemory{Content: "## Constitution\n\n## Spec\n\n## Plan\n\n## Tasks\n\n- [ ] T1 " +
		"engine\n\n## Gaps\n", EventType: EventProjectRule, RuleType: RuleTodo, ProjectID: "p"})
	err := s.db.Write(t.Context(), func(tx db.Tx) error {
		_, err := tx.Exec(`UPDATE memory SET content = replace(content, '## Gaps', 'no gaps') WHERE uid = ?`, m.ID)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	state, err := s.GetModuleState(t.Context(), ModuleQuery{Module: "engine", ProjectID: "p"})
	if err != nil || len(state.Summary.OpenTasks) != 0 || !strings.Contains(strings.Join(state.Warnings, "\n"), m.ID) {
		t.Errorf("a todo that cannot be read gives %v, %q, %v, want no error, no open tasks and %q in the warnings",
			state.Summary.OpenTasks, state.Warnings, err, m.ID)
	}
}

// Older files may hold several rules of one type. The newest one counts.
func TestOfSeveralRulesTheNewestCounts(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "rules.db"), Options{})
	old := mustAdd(t, s, NewMemory{Content: "old", ProjectID: "p"})
	mustAdd(t, s, NewMemory{Content: "new", ProjectID: "p"})
	err := s.db.Write(t.Context(), func(tx db.Tx) error {
		_, err := tx.Exec(`UPDATE memory SET event_type = 'project-rule', rule_type = 'do'`)
		if err == nil {
			_, err = tx.Exec(`UPDATE memory SET updated_at = updated_at + 1 WHERE uid = ?`, old.ID)
		}
		if err == nil {
			_, err = tx.Exec(`UPDATE memory SET updated_at = updated_at - 1000000 WHERE uid <> ?`, old.ID)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.GetContext(t.Context(), ContextQuery{ProjectID: "p"})
	if err != nil || c.ProjectRules.Do == nil || c.ProjectRules.Do.Content != "old" {
		t.Errorf(`the rule is %+v, %v, want no error and the do rule "old"`, c.ProjectRules.Do, err)
	}
}

func TestContextsEndWithTheirContext(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "ended.db"), Options{})
	mustAdd(t, s, NewMemory{Content: "x", ProjectID: "p"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range map[string]func() error{
		"GetContext": func() error { _, err := s.GetContext(ctx, ContextQuery{Query: "x"}); return err },
		"with an identity": func() error {
			_, err := s.GetContext(ctx, ContextQuery{DetectedIdentity: map[string]any{"a": "b"}})
			return err
		},
		"GetModuleState":    func() error { _, err := s.GetModuleState(ctx, ModuleQuery{Module: "x"}); return err },
		"Modules":           func() error { _, err := s.Insights().Modules(ctx, ProjectRef{}); return err },
		"GetMainMemory":     func() error { _, err := s.GetMainMemory(ctx, ProjectRef{ID: "p"}); return err },
		"GetIdentityMemory": func() error { _, err := s.GetIdentityMemory(ctx); return err },
		"SetIdentityMemory": func() error { _, err := s.SetIdentityMemory(ctx, IdentityMemory{Content: "x"}); return err },
	} {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want context.Canceled", name, err)
		}
	}
}

func asJSON(t *testing.T, answer any) string {
	t.Helper()
	encoded, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

// Whatever a context always includes is up to date after each change, also for another handle that reads it for the
// first time.
func TestContextsFollowEachChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "follow.db")
	s := openWords(t, path, Options{})
	random := rand.New(rand.NewPCG(3, 9))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	var ids []string
	for step := range longtest.Size(200, 24) {
		class := Classification(pick("", "do", "do", "dont"))
		importance, event, state := Importance(pick("", "low", "critical")), pick("", "case", "Conversation"),
			pick("", "active", "archived")
		switch n := random.IntN(10); {
		case n < 6 || len(ids) < 5:
			m := NewMemory{Content: fmt.Sprint("note ", step), Classification: class, Importance: importance,
				EventType: event, State: state, ProjectID: pick("", "p")}
			ids = append(ids, mustAdd(t, s, m).ID)
		case n < 9:
			u := MemoryUpdate{Classification: &class, Importance: &importance, EventType: &event, State: &state}
			if _, err := s.UpdateMemory(t.Context(), ids[random.IntN(len(ids))], u); err != nil {
				t.Fatal(err)
			}
		default:
			at := random.IntN(len(ids))
			if err := s.DeleteMemory(t.Context(), ids[at], nil); err != nil {
				t.Fatal(err)
			}
			ids = slices.Delete(ids, at, at+1)
		}
		if _, err := s.GetContext(t.Context(), ContextQuery{}); err != nil || step%4 != 0 {
			if err != nil {
				t.Fatal(err)
			}
			continue
		}
		other := openWords(t, path, Options{})
		for _, project := range []string{"", "p"} {
			var given [2][]byte
			for i, handle := range []*Store{s, other} {
				c, err := handle.GetContext(t.Context(), ContextQuery{ProjectID: project})
				if err == nil {
					given[i], err = json.Marshal(c)
				}
				if err != nil && (project == "" || !errors.Is(err, ErrNotFound)) {
					t.Fatal(err)
				}
			}
			if string(given[0]) != string(given[1]) {
				t.Fatalf("step %d, project %q: got %s, want %s as another handle reads it", step, project, given[0], given[1])
			}
		}
	}
}
