package souvenir

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

func mustSetRule(t *testing.T, s *Store, r NewRule) StoredRule {
	t.Helper()
	stored, err := s.SetRule(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

func TestOfSeveralRulesInAnOldFileTheNewestCounts(t *testing.T) {
	s := openWords(t, "", Options{Now: newMovingClock(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)).Tick})
	var ids []string
	for i := range 3 {
		ids = append(ids, mustAdd(t, s, NewMemory{ProjectID: "p", Content: fmt.Sprint("rule ", i)}).ID)
	}
	if _, err := s.UpdateMemory(t.Context(), ids[1], MemoryUpdate{Content: content("the newest")}); err != nil {
		t.Fatal(err)
	}
	mustExec(t, s, `UPDATE memory SET event_type = 'project-rule', rule_type = 'do'`)
	warned := func(warnings []string) bool {
		return len(warnings) == 1 && strings.Contains(warnings[0], `using the newest, "`+ids[1]) &&
			strings.Contains(warnings[0], ids[0]) && strings.Contains(warnings[0], ids[2])
	}
	r, err := s.Rules(t.Context(), ProjectRef{ID: "p"})
	if err != nil || r.Do == nil || r.Do.ID != ids[1] || !warned(r.Warnings) {
		t.Errorf("rules are %+v, %v, want no error, the do rule %v and a warning", r, err, ids[1])
	}
	if m, err := s.GetRule(t.Context(), ProjectRef{Name: "p"}, RuleDo); err != nil || m.ID != ids[1] {
		t.Errorf("the rule is %+v, %v; want ID %v", m, err, ids[1])
	}
	if stored := mustSetRule(t, s, NewRule{ProjectID: "p", Type: RuleDo, Content: "set"}); stored.ID != ids[1] ||
		!warned(stored.Warnings) {
		t.Errorf("stored %+v, want ID %v and a warning", stored, ids[1])
	}
	if stored := mustAdd(t, s, NewMemory{ProjectID: "p", EventType: EventProjectRule, RuleType: RuleDo,
		Content: "added"}); stored.ID != ids[1] || !warned(stored.Warnings) {
		t.Errorf("added %+v, want ID %v and a warning", stored, ids[1])
	}
	if _, err := s.UpdateMemory(t.Context(), ids[0], MemoryUpdate{Content: content("still editable")}); err != nil {
		t.Errorf("a superfluous one cannot be updated: %v", err)
	}
	if err := s.DeleteRule(t.Context(), ProjectRef{ID: "p"}, RuleDo); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Rules(t.Context(), ProjectRef{ID: "p"}); err != nil || r.Do != nil || r.Warnings != nil {
		t.Errorf("after the deletion: %+v, %v, want no error, no do rule and no warnings", r, err)
	}
}

// A rule stored while the clock was ahead does not count forever, either.
func TestOfSeveralRulesOneStoredAheadOfTimeDoesNotCountForEver(t *testing.T) {
	clock := newMovingClock(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC))
	s := openWords(t, "", Options{Now: clock.Now})
	var ids []string
	for i, passes := range []time.Duration{0, 365 * 24 * time.Hour, -365 * 24 * time.Hour} {
		clock.Pass(passes)
		ids = append(ids, mustAdd(t, s, NewMemory{ProjectID: "p", Content: fmt.Sprint("rule ", i)}).ID)
	}
	mustExec(t, s, `UPDATE memory SET event_type = 'project-rule', rule_type = 'do'`)
	for _, want := range []string{ids[2], ids[1], ids[0]} {
		if m, err := s.GetRule(t.Context(), ProjectRef{ID: "p"}, RuleDo); err != nil || m.ID != want {
			t.Errorf("the rule is %+v, %v; want %s", m, err, want)
		}
		if c, err := s.GetContext(t.Context(), ContextQuery{ProjectID: "p"}); err != nil || c.ProjectRules.Do == nil ||
			c.ProjectRules.Do.ID != want {
			t.Errorf("the context has %+v, %v; want %s", c.ProjectRules, err, want)
		}
		mustExec(t, s, `UPDATE memory SET rule_type = NULL, event_type = NULL WHERE uid = ?`, want)
	}
}

func TestInvalidOldTodosAreReadAndNotEdited(t *testing.T) {
	s := openWords(t, "", Options{})
	id := mustAdd(t, s, NewMemory{ProjectID: "p", Content: "## Tasks\n- [ ] T1 a"}).ID
	mustExec(t, s, `UPDATE memory SET event_type = 'project-rule', rule_type = 'todo'`)
	got, err := s.GetTodo(t.Context(), ProjectRef{ID: "p"})
	if err != nil || got.ID != id || len(got.Document.Sections) != 0 || len(got.Warnings) != 1 ||
		!strings.Contains(got.Warnings[0], `missing: "## Constitution"`) {
		t.Errorf("the todo is %+v, %v, want the document with one warning", got, err)
	}
	_, sectionErr := s.UpdateTodoSection(t.Context(), ProjectRef{ID: "p"}, SectionTasks, TodoSectionUpdate{})
	_, taskErr := s.CompleteTask(t.Context(), TaskRef{ProjectID: "p", TaskID: "T1"})
	for _, err := range []error{sectionErr, taskErr} {
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "store it again") ||
			!strings.Contains(err.Error(), `missing: "## Constitution"`) {
			t.Errorf(`editing it gives %v, want ErrInvalid, "store it again" in the error and missing: "## Constitution" in `+
				"the error", err)
		}
	}
	if _, err := s.UpdateMemory(t.Context(), id,
		MemoryUpdate{ShownMetadata: map[string]any{"tags": []string{"old"}}}); err != nil {
		t.Errorf("its metadata cannot be changed: %v", err)
	}
	if stored, err := s.SetTodo(t.Context(), NewTodo{ProjectID: "p", Content: five(nil)}); err != nil || stored.ID != id {
		t.Errorf("stored again it is %+v, %v; want ID %v", stored, err, id)
	}
}

func TestRulesInACollectionOfOwnVectors(t *testing.T) {
	s := openWords(t, "", Options{})
	mustAddCollection(t, s, NewCollection{Name: DefaultCollection, OwnVectors: true, VectorSize: 2})
	for i, text := range []string{"one", "two"} {
		stored := mustSetRule(t, s, NewRule{Type: RuleDo, Content: text})
		if stored.Indexed || stored.Revision != i+1 || len(stored.Warnings) != 1 ||
			!strings.Contains(stored.Warnings[0], "own vectors") {
			t.Errorf(`stored %+v, want not indexed, revision %v and one warning with "own vectors"`, stored, i+1)
		}
	}
	if added, err := s.AddMemory(t.Context(),
		NewMemory{EventType: EventProjectRule, RuleType: RuleDo, Content: "three", Embedding: []float32{0, 1}}); err != nil ||
		!added.Indexed || added.Revision != 3 {
		t.Errorf("added %+v, %v, want no error, indexed and revision 3", added, err)
	}
	if found, err := s.Search(t.Context(), Query{Vector: []float32{0, 1}}); err != nil || found.Total != 1 ||
		found.Hits[0].Content != "three" {
		t.Errorf(`found %+v, %v, want no error, total 1 and content "three"`, found, err)
	}
}

func TestARuleThatOverlaysAnotherStaysWithinTheLimits(t *testing.T) {
	s := openWords(t, "", Options{})
	rule := NewMemory{EventType: EventProjectRule, RuleType: RuleDo, Content: "one",
		ShownMetadata: map[string]any{"a": strings.Repeat("x", MaxMetadata/2)}}
	mustAdd(t, s, rule)
	rule.Metadata = map[string]any{"b": strings.Repeat("x", MaxMetadata/2)}
	if _, err := s.AddMemory(t.Context(), rule); !errors.Is(err, ErrTooLarge) {
		t.Errorf("both together give %v, want ErrTooLarge", err)
	}
}

func TestARuleStaysTheOnlyOneUnderConcurrentChanges(t *testing.T) {
	longtest.Only(t)
	path := filepath.Join(t.TempDir(), "rules.db")
	handles := []*Store{openWords(t, path, Options{}), openWords(t, path, Options{})}
	ref := ProjectRef{ID: "p"}
	patches := []map[string]any{{"event_type": EventProjectRule, "rule_type": "do"}, {"event_type": nil, "rule_type": nil}}
	var group sync.WaitGroup
	for i := range 4 {
		s := handles[i%2]
		note := mustAdd(t, s, NewMemory{Content: "note", ProjectID: ref.ID}).ID
		expect := func(what string, err error, kinds ...error) {
			if err != nil && !isAny(err, kinds...) {
				t.Errorf("%s: got %v, want success or an expected kind", what, err)
			}
		}
		group.Go(func() {
			for k := range 10 {
				_, err := s.SetRule(t.Context(), NewRule{ProjectID: ref.ID, Type: RuleDo, Content: fmt.Sprint(i, k)})
				expect("SetRule", err)
				_, err = s.UpdateMemory(t.Context(), note, MemoryUpdate{ShownMetadata: patches[k%2]})
				expect("UpdateMemory", err, ErrConflict, ErrNotFound)
				_, err = s.RestoreRevision(t.Context(), note, 1+k%2)
				expect("RestoreRevision", err, ErrConflict, ErrNotFound)
			}
		})
		group.Go(func() {
			for range 10 {
				expect("DeleteRule", s.DeleteRule(t.Context(), ref, RuleDo), ErrNotFound)
				if r, err := s.Rules(t.Context(), ref); err != nil || r.Warnings != nil {
					t.Errorf("rules are %+v, %v, want no error and no warnings", r, err)
				}
			}
		})
	}
	group.Wait()
}

// With a slow embedder and two handles on a file, no edit of a todo is lost.
func TestATodoEditedAtOnceThroughASlowEmbedderLosesNothing(t *testing.T) {
	longtest.Only(t)
	words := wordEmbedder("words-1")
	slow := EmbedderFunc("words-1", wordSize, func(ctx context.Context, p Purpose, texts []string) ([][]float32, error) {
		time.Sleep(5 * time.Millisecond)
		return words.Embed(ctx, p, texts)
	})
	path := filepath.Join(t.TempDir(), "todo.db")
	handles := []*Store{openWords(t, path, Options{Embedder: slow}), openWords(t, path, Options{Embedder: slow})}
	const n = 32
	var tasks strings.Builder
	for i := range n {
		fmt.Fprintf(&tasks, "- [ ] T%d task\n", i)
	}
	if _, err := handles[0].SetTodo(t.Context(),
		NewTodo{ProjectID: "p", Content: five(map[Section]string{SectionTasks: "## Tasks\n" + tasks.String()})}); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			c, err := handles[i%2].CompleteTask(t.Context(), TaskRef{ProjectID: "p", TaskID: fmt.Sprint("T", i)})
			if err != nil || c.AlreadyCompleted || !c.Task.Done {
				t.Errorf("task %d: %+v, %v, want no error and a task that is done now and was not before", i, c, err)
			}
		})
	}
	group.Wait()
	got, err := handles[1].GetTodo(t.Context(), ProjectRef{ID: "p"})
	if done, _ := got.Document.Progress(); err != nil || done != n || got.Revision != n+1 {
		t.Fatalf("%d are done at revision %d, %v, want no error, done %v and revision %v", done, got.Revision, err, n, n+1)
	}
	for _, s := range handles {
		if err := s.Upkeep().WaitEmbedded(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	checkConsistency(t, handles[0])
}

func TestAnEditOfATodoEndsWithItsContext(t *testing.T) {
	waiting := make(chan struct{}, 1)
	s := openWords(t, "", Options{Embedder: blocked(waiting)})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-waiting
		cancel()
	}()
	if _, err := s.SetTodo(ctx, NewTodo{ProjectID: "p", Content: "block\n" + five(nil)}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("it gives %v, want context.Canceled", err)
	}
	if _, err := s.GetTodo(t.Context(), ProjectRef{ID: "p"}); !errors.Is(err, ErrNotFound) {
		t.Errorf("the todo: %v, want ErrNotFound", err)
	}
}

func TestRulesAreFoundByIndexes(t *testing.T) {
	s := openWords(t, "", Options{})
	for i := range 20 {
		mustSetRule(t, s, NewRule{ProjectID: fmt.Sprint("p", i), Type: RuleDo, Content: "x"})
	}
	err := s.read(t.Context(), func(tx db.Tx, v viewer) error {
		for _, project := range []string{`p.project_id = 3`, `p.project_id IS NULL AND c.owner_id = 1`} {
			visible, args := v.Visible()
			var plan []string
			err := tx.Each(func(row db.Rows) error {
				var id, parent, unused int64
				var detail string
				err := row.Scan(&id, &parent, &unused, &detail)
				plan = append(plan, detail)
				return err
			}, `EXPLAIN QUERY PLAN SELECT m.id `+kernel.FromMemory+` JOIN users u ON u.id = c.owner_id WHERE `+visible+
				` AND m.event_type = ? AND m.rule_type = ? AND `+project+` ORDER BY m.updated_at DESC, m.id DESC`,
				append(args, EventProjectRule, "do")...)
			if err != nil {
				return err
			}
			if all := strings.Join(plan, "\n"); strings.Contains(all, "SCAN m") || strings.Contains(all, "SCAN p") ||
				strings.Contains(all, "SCAN c") {
				t.Errorf("rules with %s: got the plan\n%s\nwant no scan of memories, projects or collections", project, all)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// five returns the five headings alone, some of them replaced.
func five(instead map[Section]string) string {
	var b strings.Builder
	for _, s := range []Section{SectionConstitution, SectionSpec, SectionPlan, SectionTasks, SectionGaps} {
		heading, replaced := instead[s]
		if !replaced {
			heading = s.Heading()
		}
		b.WriteString(heading + "\n")
	}
	return b.String()
}

// The schema allows one rule of each type in a project, even without any other check.
func TestTheSchemaAllowsOneRulePerType(t *testing.T) {
	s := openWords(t, "", Options{})
	mustSetRule(t, s, NewRule{ProjectID: "p", Type: RuleDo, Content: "the rule"})
	other := mustAdd(t, s, NewMemory{ProjectID: "p", Collection: "", Content: "another"})
	for _, c := range []struct {
		kind RuleType
		want error
	}{{RuleDont, nil}, {RuleDo, db.ErrUnique}} {
		err := s.db.Write(t.Context(), func(tx db.Tx) error {
			var row int64
			if err := tx.QueryRow(`SELECT id FROM memory WHERE uid = ?`, other.ID).Scan(&row); err != nil {
				return err
			}
			if _, err := tx.Exec(`UPDATE memory SET rule_type = ?, event_type = 'project-rule' WHERE id = ?`, string(c.kind),
				row); err != nil {
				return err
			}
			return kernel.KeepRule(tx, row)
		})
		if !errors.Is(err, c.want) {
			t.Errorf("a second memory as the rule %s: got %v, want %v", c.kind, err, c.want)
		}
	}
}
