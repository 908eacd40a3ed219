package souvenir

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/retrieval/filter"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// ownRows counts the rows of the index of own metadata.
func ownRows(t *testing.T, s *Store) (n int) {
	t.Helper()
	err := s.db.Read(t.Context(), func(tx db.Tx) error {
		return tx.QueryRow(`SELECT count(*) FROM memory_own WHERE value <> x'00'`).Scan(&n)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTheIndexOfOwnMetadataIsAsLongAsTheOptionsSay(t *testing.T) {
	longtest.Only(t)
	path := filepath.Join(t.TempDir(), "own.db")
	for i, length := range []int{0, 40, 0, -1, MaxMetadata} {
		s := openWords(t, path, Options{IndexedMetadata: length})
		for _, m := range []NewMemory{
			{Content: "short", Metadata: map[string]any{"k": "v", "round": i}},
			{Content: "long", Metadata: map[string]any{"k": "v", "round": i, "filler": strings.Repeat("x", 100)}},
			{Content: "none"},
		} {
			if _, err := s.AddMemory(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		want := []int{5, 2 * 2, 3 * 2, 0, 5 * 5}[i]
		if got := ownRows(t, s); got != want {
			t.Errorf("with IndexedMetadata %d the index has %d rows, want %d", length, got, want)
		}
		found, err := s.Search(t.Context(), Query{Filter: Filter{"k": "v", "round": i}})
		if err != nil || found.Total != 2 {
			t.Errorf("with IndexedMetadata %d a filter finds %d, %v; want 2", length, found.Total, err)
		}
		if report, err := s.Upkeep().Check(t.Context(), nil); err != nil || !report.OK {
			t.Errorf("with IndexedMetadata %d: %+v, %v, want no error and OK", length, report.Findings, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(t.Context(), path, &Options{IndexedMetadata: MaxMetadata + 1}); !errors.Is(err, ErrInvalid) ||
		!strings.Contains(err.Error(), "65537") {
		t.Errorf(`longer than metadata can be: %v, want ErrInvalid and "65537" in the error`, err)
	}
}

func TestADamagedIndexOfOwnMetadataIsRepaired(t *testing.T) {
	s := openWords(t, "", Options{})
	for i := range 3 {
		m := NewMemory{Content: fmt.Sprint("memory ", i), Metadata: map[string]any{"k": i}}
		if _, err := s.AddMemory(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	err := s.db.Write(t.Context(), func(tx db.Tx) error {
		_, err := tx.Exec(`UPDATE memory_own SET value = 7 WHERE value = 1`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	report, err := s.Upkeep().Check(t.Context(), &CheckOptions{Repair: true})
	if err != nil || !report.OK || report.Repaired != 1 || report.Findings[0].Table != "memory_own" {
		t.Fatalf(`got %+v, %v, want no error, OK, repaired 1 and table "memory_own"`, report, err)
	}
	found, err := s.Search(t.Context(), Query{Filter: Filter{"k": 1}})
	if err != nil || found.Total != 1 {
		t.Fatalf("got %v %v, want no error and total 1", found.Total, err)
	}
}

func TestTheSameContentIsFoundByAnIndex(t *testing.T) {
	s := openWords(t, "", Options{})
	plan := queryPlan(t, s.db, statement{`SELECT id FROM memory WHERE partition_id = ?2 AND ` + db.SameContent,
		[]any{"x", 1}})
	if len(plan) != 1 || !strings.Contains(plan[0], "memory_content (partition_id=? AND <expr>=? AND <expr>=?)") {
		t.Errorf(`got %q, want one step with "memory_content (partition_id=? AND <expr>=? AND <expr>=?)"`, plan)
	}
}

func TestOnlyTheLinksOfAMemoryAreReadToReplaceThem(t *testing.T) {
	s := openWords(t, "", Options{})
	query, args := kernel.DeleteLinks(viewer{User: 1}, 7)
	plan := strings.Join(queryPlan(t, s.db, statement{query, args}), "\n")
	for _, step := range []string{"SEARCH memory_link USING PRIMARY KEY (memory_id=?)",
		"SEARCH m USING INTEGER PRIMARY KEY (rowid=?)"} {
		if !strings.Contains(plan, step) {
			t.Errorf("links are deleted so, want the step %q:\n%s", step, plan)
		}
	}
}

// recording is an engine that records the statements of reads with a marked context, and so not those of background
// work.
type recording struct {
	db.DB
	statements *[]statement
}

type statement struct {
	query string
	args  []any
}

type recorded struct{}

func marked(ctx context.Context) context.Context { return context.WithValue(ctx, recorded{}, true) }

func (d recording) Read(ctx context.Context, fn func(db.Tx) error) error {
	if ctx.Value(recorded{}) == nil {
		return d.DB.Read(ctx, fn)
	}
	return d.DB.Read(ctx, func(tx db.Tx) error { return fn(recordingTx{tx, d.statements}) })
}

type recordingTx struct {
	db.Tx
	statements *[]statement
}

func (tx recordingTx) Each(fn func(db.Rows) error, query string, args ...any) error {
	*tx.statements = append(*tx.statements, statement{query, args})
	return tx.Tx.Each(fn, query, args...)
}

func (tx recordingTx) Query(query string, args ...any) (db.Rows, error) {
	*tx.statements = append(*tx.statements, statement{query, args})
	return tx.Tx.Query(query, args...)
}

func TestSelectiveFiltersReadOnlyTheirMemories(t *testing.T) {
	var statements []statement
	var engine db.DB
	s := openThrough(t, filepath.Join(t.TempDir(), "own.db"), func(e db.DB) db.DB {
		engine = e
		return recording{e, &statements}
	})
	memories := make([]NewMemory, longtest.Size(400, 120))
	for i := range memories {
		memories[i] = NewMemory{Content: fmt.Sprint("memory ", i), Metadata: map[string]any{
			"session": fmt.Sprint("s", i/10), "n": i, "lead": i%3 == 0}}
	}
	if _, err := s.AddMemories(t.Context(), memories, nil); err != nil {
		t.Fatal(err)
	}
	for name, run := range map[string]func(f Filter) (int, error){
		"search": func(f Filter) (int, error) {
			found, err := s.Search(marked(t.Context()), Query{Filter: f, Limit: 2})
			return found.Total, err
		},
		"search with a text": func(f Filter) (int, error) {
			found, err := s.Search(marked(t.Context()), Query{Filter: f, Text: "memory", Limit: 2})
			return found.Total, err
		},
		"listing": func(f Filter) (n int, err error) {
			for _, err := range s.Memories(marked(t.Context()), MemoryList{Filter: f}) {
				if n++; err != nil {
					return n, err
				}
			}
			return n, nil
		},
	} {
		for _, f := range []Filter{{"session": "s7"}, {"n": Between(70, 79)}, {"lead": In(true, false), "session": "s7"},
			{"no": Not(1), "session": Condition{AtLeast: "s7", LessThan: "s8"}}} {
			statements = nil
			got, err := run(f)
			if err != nil || got != 10 {
				t.Errorf("%s by %v: %d memories, %v; want 10", name, f, got, err)
			}
			if len(statements) == 0 {
				t.Errorf("%s by %v: got no statement, want some", name, f)
			}
			for _, stmt := range statements {
				for _, step := range queryPlan(t, engine, stmt) {
					all := strings.Contains(step, "SEARCH m ") && !strings.Contains(step, "PRIMARY KEY")
					if all || strings.Contains(step, "SCAN m") {
						t.Errorf("%s by %v reads memories by %q, want an index for it:\n%s", name, f, step, stmt.query)
					}
				}
			}
		}
	}
}

// After a write, a filter that was used before looks up only the changed memories.
func TestAFilterThatIsUsedAgainLooksUpOnlyWhatHasChanged(t *testing.T) {
	var statements []statement
	var engine db.DB
	s := openThrough(t, filepath.Join(t.TempDir(), "again.db"), func(e db.DB) db.DB {
		engine = e
		return recording{e, &statements}
	})
	s.orders.Few, s.orders.Alone = 1, -1
	memories := make([]NewMemory, 60)
	for i := range memories {
		memories[i] = NewMemory{Content: fmt.Sprint("memory ", i), Tags: []string{"all", fmt.Sprint("t", i%2)},
			Metadata: map[string]any{"n": i % 2}}
	}
	stored, err := s.AddMemories(t.Context(), memories, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range []Filter{{"tags": "t1"}, {"n": 1}, {"tags": All("t1", "all")}} {
		q := Query{Filter: f, Sort: SortUpdatedDesc, Limit: 2}
		if found, err := s.Search(marked(t.Context()), q); err != nil || found.Total != 30 {
			t.Fatalf("%v: %d memories, %v; want 30", f, found.Total, err)
		}
		state := fmt.Sprint("seen ", i)
		if _, err := s.UpdateMemory(t.Context(), stored[1].ID, MemoryUpdate{State: &state}); err != nil {
			t.Fatal(err)
		}
		statements = nil
		found, err := s.Search(marked(t.Context()), q)
		if err != nil || found.Total != 30 || found.Hits[0].ID != stored[1].ID {
			t.Errorf("%v after a write: %d memories, %v; want 30, the changed one first", f, found.Total, err)
		}
		looked := false
		for _, stmt := range statements {
			if !strings.HasPrefix(stmt.query, "SELECT m.id ") || !strings.Contains(stmt.query, ".memory_id") {
				continue
			}
			looked = true
			for _, step := range queryPlan(t, engine, stmt) {
				if strings.Contains(step, " o ") || strings.Contains(step, " t ") {
					if !strings.Contains(step, "memory_id=?") {
						t.Errorf("%v reads by %q, want only the memories that have changed:\n%s", f, step, stmt.query)
					}
				}
			}
		}
		if !looked {
			t.Errorf("%v: got no statement about tags or own metadata, want one", f)
		}
	}
}

func TestTheNarrowestOfSeveralConditionsOnOwnMetadataIsReadFirst(t *testing.T) {
	longtest.Only(t)
	s := openWords(t, "", Options{IndexedMetadata: 100})
	memories := make([]NewMemory, 2*filter.FewRows+2)
	for i := range memories {
		memories[i] = NewMemory{Content: fmt.Sprint("memory ", i), Metadata: map[string]any{
			"half": i % 2, "session": fmt.Sprint("s", i/10), "object": map[string]any{"a": 1}}}
	}
	memories[79].Metadata["filler"] = strings.Repeat("x", 100)
	if _, err := s.AddMemories(t.Context(), memories, nil); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		filter Filter
		first  bool
		want   int
	}{
		{Filter{"session": "s7"}, false, 10}, // the index alone serves it
		{Filter{"half": 1, "session": "s7"}, true, 5},
		{Filter{"half": Not(1), "session": In("s7", "s8")}, true, 10},
		{Filter{"half": nil, "session": "s7"}, true, 0},
		{Filter{"object": `{"a":1}`, "session": "s7"}, true, 0},
		{Filter{"object": Not(`{"a":1}`), "session": "s7"}, true, 10},
		{Filter{"object": Not([]any{nil}), "session": Between("s7", "s7~")}, true, 10},
		{Filter{"half": 1, "object": Not([]any{nil})}, false, filter.FewRows + 1},
		{Filter{"state": nil, "session": "s7"}, false, 10},
	}
	for _, length := range []int64{0, 100} {
		err := s.write(t.Context(), func(tx db.Tx, _ viewer) error { return kernel.IndexMetadata(tx, length) })
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range tests {
			found, err := s.Search(t.Context(), Query{Filter: test.filter})
			if err != nil || found.Total != test.want {
				t.Errorf("%v with %d bytes indexed: %d memories, %v; want %d", test.filter, length, found.Total, err, test.want)
			}
		}
	}
	for _, test := range tests {
		err := s.read(t.Context(), func(tx db.Tx, v viewer) error {
			sel, err := s.selection(tx, v, Query{Filter: test.filter})
			if first := strings.HasPrefix(sel.Condition.String(), "m.id IN "+db.Integers); first != test.first {
				t.Errorf("%v: read first: %v, want %v", test.filter, first, test.first)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestFilesAreFoundByTheirTags(t *testing.T) {
	var statements []statement
	var engine db.DB
	s := openThrough(t, filepath.Join(t.TempDir(), "tags.db"), func(e db.DB) db.DB {
		engine = e
		return recording{e, &statements}
	})
	project := ""
	for i := range 5 {
		f, err := s.AddFile(t.Context(), NewFile{Filename: "plan", ProjectName: "p", Size: 1,
			Tags: []string{"T" + strconv.Itoa(i)}}, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		project = f.ProjectID
	}
	for name, run := range map[string]func() (int, error){
		"a list of files": func() (int, error) {
			page, err := s.FilePage(marked(t.Context()), FileQuery{FileList: FileList{Tags: []string{"T3"}}})
			return page.Total, err
		},
		"a module": func() (int, error) {
			state, err := s.GetModuleState(marked(t.Context()), ModuleQuery{Module: "t3", ProjectID: project})
			return len(state.Files), err
		},
	} {
		statements = nil
		got, err := run()
		if err != nil || got != 1 {
			t.Errorf("%s: got %d files and %v, want 1", name, got, err)
		}
		asked := false
		for _, stmt := range statements {
			if !strings.Contains(stmt.query, "file_tag t WHERE lower") {
				continue
			}
			asked = true
			plan := strings.Join(queryPlan(t, engine, stmt), "\n")
			if !strings.Contains(plan, "SEARCH f USING INTEGER PRIMARY KEY") || !strings.Contains(plan, "file_tag_name") {
				t.Errorf("%s reads files so, want an index on their tags and no scan:\n%s\n%s", name, plan, stmt.query)
			}
		}
		if !asked {
			t.Errorf("%s: got no statement about the tags of files, want one", name)
		}
	}
}

// queryPlan returns the steps of SQLite's plan for a statement.
func queryPlan(t *testing.T, engine db.DB, stmt statement) (steps []string) {
	t.Helper()
	err := engine.Read(t.Context(), func(tx db.Tx) error {
		return tx.Each(func(row db.Rows) error {
			var id, parent, unused int64
			var detail string
			err := row.Scan(&id, &parent, &unused, &detail)
			steps = append(steps, detail)
			return err
		}, `EXPLAIN QUERY PLAN `+stmt.query, stmt.args...)
	})
	if err != nil {
		t.Fatal(err, stmt.query)
	}
	return steps
}

// BenchmarkFilterByOwnKey finds 10 of 20,000 memories by a key of their own metadata.
func BenchmarkFilterByOwnKey(b *testing.B) {
	s := openWords(b, "", Options{})
	memories := make([]NewMemory, 20_000)
	for i := range memories {
		memories[i] = NewMemory{Content: fmt.Sprint("memory ", i), Metadata: map[string]any{
			"session": fmt.Sprint("s", i/10), "n": i, "lead": i%3 == 0}}
	}
	if _, err := s.AddMemories(b.Context(), memories, nil); err != nil {
		b.Fatal(err)
	}
	filter := Filter{"session": "s77"}
	b.Run("search", func(b *testing.B) {
		for b.Loop() {
			found, err := s.Search(b.Context(), Query{Filter: filter, Limit: 10})
			if err != nil || found.Total != 10 {
				b.Fatalf("got %v %v, want no error and total 10", found, err)
			}
		}
	})
	b.Run("count", func(b *testing.B) {
		for b.Loop() {
			found, err := s.Search(b.Context(), Query{Filter: filter, Limit: 1})
			if err != nil || found.Total != 10 {
				b.Fatalf("got %v %v, want no error and total 10", found, err)
			}
		}
	})
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			n := 0
			for _, err := range s.Memories(b.Context(), MemoryList{Filter: filter}) {
				if n++; err != nil {
					b.Fatal(err)
				}
			}
			if n != 10 {
				b.Fatalf("got %v, want 10", n)
			}
		}
	})
}

// BenchmarkAddWithMetadata stores memories with three keys of their own, 1,000 in each commit.
func BenchmarkAddWithMetadata(b *testing.B) {
	for name, indexed := range map[string]int{"indexed": 0, "unindexed": -1} {
		b.Run(name, func(b *testing.B) {
			s := openWords(b, "", Options{IndexedMetadata: indexed})
			n := 0
			for b.Loop() {
				memories := make([]NewMemory, 1000)
				for i := range memories {
					n++
					memories[i] = NewMemory{Content: fmt.Sprint("memory ", n), Metadata: map[string]any{
						"session": fmt.Sprint("s", n/10), "n": n, "lead": n%3 == 0}}
				}
				if _, err := s.AddMemories(b.Context(), memories, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
