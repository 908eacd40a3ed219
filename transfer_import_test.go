package souvenir

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/testing/linediff"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/internal/transfer"
)

// openCopy opens an empty store.
func openCopy(tb testing.TB) *Store {
	tb.Helper()
	return openWords(tb, filepath.Join(tb.TempDir(), "copy.db"), Options{Now: sealedClock})
}

// byHand makes an export of handmade lines.
func byHand(lines ...string) string {
	return `{"souvenir":"export","version":1}` + "\n" + strings.Join(lines, "\n") + "\n"
}

func contentsOf(tb testing.TB, s *Store) []string {
	tb.Helper()
	var all []string
	for m, err := range s.Memories(context.Background(), MemoryList{}) {
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, m.Content)
	}
	return all
}

// Two projects of one name would make the name ambiguous in every later call.
func TestAnImportedProjectWhoseNameIsTakenGetsAnother(t *testing.T) {
	s := openCopy(t)
	mustAdd(t, s, NewMemory{Content: "of the store", ProjectID: "here", ProjectName: "Apollo"})
	export := byHand(`{"type":"project","project_id":"there","project_name":"APOLLO"}`,
		`{"type":"memory","content":"of the export","project_id":"there"}`,
		`{"type":"project","owner":"ann","project_id":"hers","project_name":"Apollo"}`,
		`{"type":"memory","content":"in a line of its own","project_id":"third","project_name":"Apollo"}`,
		`{"type":"memory","content":"by an id that is a name","project_id":"Apollo"}`)
	names := map[string]string{"here": "Apollo", "there": "APOLLO (there)", "third": "Apollo (third)",
		"Apollo": "Apollo (Apollo)"}
	for i, policy := range []ConflictPolicy{ConflictKeep, ConflictKeep, ConflictReplace} {
		report, err := s.Upkeep().Import(t.Context(), strings.NewReader(export), &ImportOptions{OnConflict: policy})
		if err != nil || len(report.Conflicts) > 0 || (len(report.Warnings) == 3) != (i == 0) {
			t.Fatalf("import %d: got %+v, %v; want no conflict, and 3 warnings of the first one", i, report, err)
		}
		if i == 0 && !strings.Contains(report.Warnings[0], `"there" of the export is named "APOLLO (there)" here`) {
			t.Errorf("got the warning %q, want it to name the project", report.Warnings[0])
		}
		all, err := s.Projects(t.Context())
		noError(t, err)
		for _, p := range all {
			if p.Name != names[p.ID] || len(all) != len(names) {
				t.Errorf("import %d: got %d projects, %q named %q; want %v", i, len(all), p.ID, p.Name, names)
			}
		}
		found, err := s.Search(t.Context(), Query{ProjectName: "apollo"})
		if err != nil || found.Total != 1 || found.Hits[0].Content != "of the store" {
			t.Errorf("import %d: got %d found by the name, %v; want the one of the store", i, found.Total, err)
		}
	}
	_, err := s.Upkeep().Import(t.Context(), strings.NewReader(byHand(
		`{"type":"project","project_id":"there","project_name":"APOLLO"}`,
		`{"type":"memory","content":"by the name in the file","project_name":"Apollo"}`)), nil)
	noError(t, err)
	found, err := s.Search(t.Context(), Query{ProjectID: "there"})
	if err != nil || found.Total != 2 {
		t.Errorf("a line with the name of a project of the file: got %d in it, %v; want 2", found.Total, err)
	}
	_, err = s.Upkeep().Import(t.Context(), strings.NewReader(byHand(
		`{"type":"project","project_id":"one","project_name":"Twin"}`,
		`{"type":"project","project_id":"two","project_name":"TWIN"}`,
		`{"type":"memory","content":"of one of them","project_name":"Twin"}`)), nil)
	if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "matches 2 projects; give project_id") {
		t.Errorf("a name of two projects of the file: got %v, want ErrInvalid", err)
	}
	long := strings.Repeat("x", 128)
	mustAdd(t, s, NewMemory{Content: "y", ProjectName: long})
	_, err = s.Upkeep().Import(t.Context(), strings.NewReader(byHand(
		`{"type":"project","project_id":"short","project_name":"`+long+`"}`)), nil)
	noError(t, err)
	if p, err := s.GetProject(t.Context(), ProjectRef{Name: "short"}); err != nil || p.ID != "short" {
		t.Errorf("a name with no room for the id: got %+v, %v; want the id as the name", p, err)
	}
}

func TestLinesByHandAreImported(t *testing.T) {
	s := openCopy(t)
	export := "\ufeff" + strings.ReplaceAll(byHand(
		`{"type":"memory","content":"the kettle is blue"}`, ``,
		`{"type":"memory","content":"tea at four","tags":["tea"],"project_name":"House","event_type":"decision",`+
			`"created_at":"2020-01-02T03:04:05+01:00"}`,
		`  {"content":"in the form of the interface","type":"memory","collection_name":"books","owner":"ann",`+
			`"metadata":{"importance":"high","tags":["a","b"],"n":9007199254740993,"related_memory_ids":["later"]}}`,
		`{"type":"memory","id":"later","owner":"ann","content":"linked to"}`,
		`{"type":"collection","collection_name":"mine","own_vectors":2}`,
		`{"type":"memory","collection_name":"mine","content":"a vector came along","embedding":[3,4]}`,
	), "\n", "\r\n")
	for name, r := range map[string]io.Reader{"a seeker": strings.NewReader(export),
		"a stream": iotest.OneByteReader(strings.NewReader(export))} {
		report, err := s.Upkeep().Import(t.Context(), r, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(report.Conflicts) != 0 || report.MissingLinks != 0 || report.Counts[transfer.KindMemory].Added+
			report.Counts[transfer.KindMemory].Unchanged != 5 {
			t.Errorf("%s: got %+v, want 5 memories and no conflict or missing link", name, report)
		}
	}
	if got := contentsOf(t, s); !slices.Equal(slices.Sorted(slices.Values(got)),
		[]string{"a vector came along", "tea at four", "the kettle is blue"}) {
		t.Errorf("got %q, want %v", got, []string{"a vector came along", "tea at four", "the kettle is blue"})
	}
	found, err := s.Search(t.Context(), Query{Text: "tea"})
	if err != nil || len(found.Hits) == 0 || found.Hits[0].Content != "tea at four" {
		t.Fatalf(`got %v %v, want no error, some hits and content "tea at four"`, found, err)
	}
	tea := found.Hits[0].Memory
	if tea.ProjectName != "House" || tea.Collection != DefaultCollection || tea.Revision != 1 ||
		tea.CreatedAt.Format(transfer.ExportTime) != "2020-01-02T02:04:05.000000Z" || !tea.UpdatedAt.Equal(tea.CreatedAt) {
		t.Errorf("got %+v, want revision 1 in House, with the line's time", tea)
	}
	later, err := s.As(Access{User: "ann"}).RelatedMemories(t.Context(), "later", 10)
	if err != nil || len(later) != 1 || later[0].Memory.Metadata["n"] != json.Number("9007199254740993") ||
		later[0].Memory.Importance != ImportanceHigh {
		t.Errorf("got %+v, %v; want one memory with its number and importance", later, err)
	}
}

func TestImportEmbedsMemoriesWithoutVectorsOfTheModel(t *testing.T) {
	longtest.Only(t)
	rich := openRich(t)
	with, without := exported(t, rich, ExportOptions{}), exported(t, rich, ExportOptions{WithoutVectors: true})
	for name, c := range map[string]struct {
		export   []byte
		model    string
		embedded bool
	}{
		"same model": {with, "words-1", false}, "same model, no vectors": {without, "words-1", true},
		"another model": {with, "words-2", true},
	} {
		t.Run(name, func(t *testing.T) {
			texts := 0
			counting := EmbedderFunc(c.model, wordSize,
				func(ctx context.Context, p Purpose, batch []string) ([][]float32, error) {
					texts += len(batch)
					return wordEmbedder("").Embed(ctx, p, batch)
				})
			s := openWords(t, filepath.Join(t.TempDir(), "copy.db"), Options{Embedder: counting, Now: sealedClock})
			imported(t, s, c.export, ImportOptions{})
			if (texts > 0) != c.embedded || pendingOf(t, s) != 0 {
				t.Errorf("%d texts were embedded, %d wait, want texts only where a model embeds, and none to wait", texts,
					pendingOf(t, s))
			}
			if again := exported(t, s, ExportOptions{WithoutVectors: true}); !bytes.Equal(again, without) {
				t.Errorf("got %v, want %.200q", linediff.First(again, without), without)
			}
			texts = 0
			imported(t, s, c.export, ImportOptions{})
			if texts > 0 {
				t.Errorf("the second import embedded %d texts, want none", texts)
			}
		})
	}
}

func TestImportContinuesWithoutItsEmbedder(t *testing.T) {
	longtest.Only(t)
	broken, calls := true, 0
	embedder := EmbedderFunc("words-3", wordSize,
		func(ctx context.Context, p Purpose, batch []string) ([][]float32, error) {
			calls++
			if broken {
				return nil, errors.New("out of order")
			}
			return wordEmbedder("").Embed(ctx, p, batch)
		})
	s := openWords(t, filepath.Join(t.TempDir(), "copy.db"), Options{Embedder: embedder})
	var lines []string
	for i := range 3*transfer.ImportBatch + 1 {
		lines = append(lines, fmt.Sprintf(`{"type":"memory","content":"lamp number%d"}`, i))
	}
	s.worker.Stop()
	report := imported(t, s, []byte(byHand(lines...)), ImportOptions{})
	if report.Counts[transfer.KindMemory].Added != len(lines) || len(report.Warnings) != 1 || calls != 1 {
		t.Errorf("%d calls, %+v, want added %v, 1 warning and calls 1", calls, report, len(lines))
	}
	if found, err := s.Search(t.Context(), Query{Text: "number7"}); err != nil || len(found.Hits) == 0 {
		t.Errorf("by words: %+v, %v, want no error and some hits", found, err)
	}
	if n := pendingOf(t, s); n != len(lines) {
		t.Errorf("%d wait to be embedded, want %v", n, len(lines))
	}
}

func TestOtherHandlesFindImportedMemories(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shared.db")
	one, other := openWords(t, path, Options{}), openWords(t, path, Options{})
	mustAdd(t, other, NewMemory{Content: "a lantern was here before"})
	if found, err := other.Search(t.Context(), Query{Text: "lantern"}); err != nil || len(found.Hits) != 1 {
		t.Fatalf("got %v %v, want no error and 1 hit", found, err)
	}
	imported(t, one, []byte(byHand(`{"type":"memory","content":"a lantern from elsewhere"}`)), ImportOptions{})
	if found, err := other.Search(t.Context(), Query{Text: "lantern elsewhere"}); err != nil || len(found.Hits) != 2 ||
		found.Hits[0].Content != "a lantern from elsewhere" {
		t.Errorf(`got %+v, %v, want no error, 2 hits and content "a lantern from elsewhere"`, found, err)
	}
}

func TestConflictsAreKeptOrReplacedAsAsked(t *testing.T) {
	longtest.Only(t)
	lines := byHand(
		`{"type":"collection","collection_name":"box","description":"new"}`,
		`{"type":"project","project_id":"p","project_name":"New"}`,
		`{"type":"preference","user":"local","value":{"new":true}}`,
		`{"type":"memory","id":"m","content":"the new kettle","revision":3,"tags":["new"],`+
			`"created_at":"2024-01-01T00:00:00Z","updated_at":"2024-01-03T00:00:00Z"}`,
		`{"type":"revision","memory":"m","revision":2,"content":"of the export","created_at":"2024-01-02T00:00:00Z"}`,
		`{"type":"link","memory":"m","updated_at":"2024-01-03T00:00:00Z","related_memory_ids":["n"]}`,
	)
	for _, o := range []ConflictPolicy{ConflictKeep, ConflictReplace} {
		t.Run(string(o), func(t *testing.T) {
			s := openCopy(t)
			imported(t, s, []byte(byHand(
				`{"type":"collection","collection_name":"box","description":"old"}`,
				`{"type":"project","project_id":"p","project_name":"Old"}`,
				`{"type":"preference","user":"local","value":{"old":true}}`,
				`{"type":"memory","id":"n","content":"another"}`,
				`{"type":"memory","id":"m","content":"the old teapot","revision":2,"tags":["old"],`+
					`"metadata":{"related_memory_ids":["n"]}}`,
				`{"type":"revision","memory":"m","revision":1,"content":"of the store","created_at":"2024-01-02T00:00:00Z"}`)),
				ImportOptions{})
			before := rowsOf(t, s)
			report := imported(t, s, []byte(lines), ImportOptions{OnConflict: o})
			if o == ConflictKeep {
				if rowsOf(t, s) != before || len(report.Conflicts) != 4 || report.Counts[transfer.KindRevision].Conflicts != 1 ||
					report.Counts[transfer.KindLink].Conflicts != 1 {
					t.Errorf("got %+v, want 4 conflicts and no change", report)
				}
				if c := report.Conflicts[3]; c.ID != "m" || c.Kind != transfer.KindMemory || c.Line != 5 {
					t.Errorf(`got %+v, want ID "m", kind %v and line 5`, c, transfer.KindMemory)
				}
				return
			}
			if n := report.Counts; n[transfer.KindMemory].Replaced != 1 || n[transfer.KindCollection].Replaced != 1 ||
				n[transfer.KindProject].Replaced != 1 || n[transfer.KindPreference].Replaced != 1 || len(report.Conflicts) != 0 {
				t.Errorf("got %+v, want one of each replaced and no conflict", report)
			}
			m, err := s.GetMemory(t.Context(), "m")
			if err != nil || m.Content != "the new kettle" || m.Revision != 3 || !slices.Equal(m.Tags, []string{"new"}) ||
				!slices.Equal(m.Related, []string{"n"}) {
				t.Errorf("got %+v, %v; want the memory as its line has it", m, err)
			}
			if former, err := s.Revisions(t.Context(), "m"); err != nil || len(former) != 2 ||
				former[1].Content != "of the export" {
				t.Errorf(`got %+v, %v, want no error and two revisions, the second with content "of the export"`,
					former, err)
			}
			if found, err := s.Search(t.Context(), Query{Text: "teapot"}); err != nil ||
				slices.ContainsFunc(found.Hits, func(h Hit) bool { return h.Content != "another" && h.ID != "m" }) {
				t.Errorf("got %+v, %v; want no hit by the former content", found, err)
			}
			again := imported(t, s, []byte(lines), ImportOptions{OnConflict: o})
			if again.Counts[transfer.KindMemory].Unchanged != 1 || again.Counts[transfer.KindRevision].Unchanged != 1 ||
				again.Counts[transfer.KindLink].Unchanged != 1 {
				t.Errorf("again: %+v, want unchanged 1, unchanged 1 and unchanged 1", again)
			}
		})
	}
}

func TestDataOfAnotherOwnerIsNeverReplaced(t *testing.T) {
	s := openCopy(t)
	mine := mustAdd(t, s.As(Access{User: "ann"}), NewMemory{Content: "ann's own"})
	putFile(t, s, "f", "ann", mine.ID, "", []byte("ann's file"))
	before := rowsOf(t, s)
	_, line, _ := strings.Cut(fileLines("f", "bob", "x"), "{")
	report := imported(t, s, []byte(byHand(
		`{"type":"user","id":"ann","created_at":"2020-01-01T00:00:00Z"}`,
		`{"type":"memory","id":"`+mine.ID+`","owner":"ann","content":"other words"}`,
		strings.Replace("{"+line, `"owner":"bob"`, `"owner":"ann"`, 1),
	)), ImportOptions{})
	if rowsOf(t, s) != before || len(report.Conflicts) != 2 {
		t.Errorf("got %+v, want 2 conflicts and no change", report)
	}
	statements(t, s, `INSERT INTO users (uid, created_at) VALUES ('bob', 1)`)
	before = rowsOf(t, s)
	report = imported(t, s, []byte(byHand(
		`{"type":"memory","id":"`+mine.ID+`","owner":"bob","content":"taken over"}`,
		`{"type":"revision","memory":"`+mine.ID+`","revision":1,"content":"x","created_at":"2020-01-01T00:00:00Z"}`,
		`{"type":"link","memory":"`+mine.ID+`","owner":"bob","related_memory_ids":["`+mine.ID+`"]}`,
		fileLines("f", "bob", "x"),
	)), ImportOptions{OnConflict: ConflictReplace})
	if rowsOf(t, s) != before || len(report.Conflicts) != 2 {
		t.Errorf("got %+v, want 2 conflicts and no change", report)
	}
	// A file can only be added to a memory of the owner that its line names.
	report = imported(t, s, []byte(byHand(strings.Replace(fileLines("g", "bob", "x"), `"size"`, `"memory_id":"`+mine.ID+
		`","size"`, 1))), ImportOptions{})
	if report.MissingLinks == 0 ||
		strings.Contains(string(exported(t, s, ExportOptions{})), `"id":"g","owner":"bob","memory_id"`) {
		t.Errorf(`got %+v, want missing links and no "id":"g","owner":"bob","memory_id" in it`, report)
	}
}

func TestAccountsAreNeitherReplacedNorSharedByName(t *testing.T) {
	s := openCopy(t)
	imported(t, s, []byte(byHand(`{"type":"user","id":"1","name":"Ann","role":"admin","password":"`+somePassword+`"}`,
		`{"type":"memory","owner":"3","content":"nameless"}`)), ImportOptions{})
	lines := byHand(
		`{"type":"user","id":"1","name":"Mallory","role":"user","password":"`+strings.Replace(somePassword, "c2", "d2", 1)+
			`"}`,
		`{"type":"user","id":"2","name":"ANN"}`, `{"type":"memory","owner":"2","content":"of the other ann"}`,
		`{"type":"user","id":"3","name":"Cid","email":"c@example.org"}`,
	)
	report := imported(t, s, []byte(lines), ImportOptions{OnConflict: ConflictReplace})
	if len(report.Conflicts) != 2 || report.Counts[transfer.KindUser] != (ImportCount{Added: 1, Conflicts: 2}) {
		t.Errorf("got %+v, want 2 conflicts and, of users, %+v", report, ImportCount{Added: 1, Conflicts: 2})
	}
	names := string(exported(t, s, ExportOptions{Credentials: true}))
	for _, want := range []string{`"id":"1","name":"Ann","role":"admin"`, `"id":"2","role":"user"`,
		`"id":"3","name":"Cid","email":"c@example.org"`, somePassword, `of the other ann`} {
		if !strings.Contains(names, want) {
			t.Errorf("got the export %s, want one that contains %s", names, want)
		}
	}
	before := rowsOf(t, s)
	imported(t, s, []byte(lines), ImportOptions{OnConflict: ConflictReplace})
	if rowsOf(t, s) != before {
		t.Error("again: something changed, want no change")
	}
}

func TestThereIsOneRuleOfAKindAfterAnImport(t *testing.T) {
	s := openCopy(t)
	mustAdd(t, s, NewMemory{Content: "present rule", EventType: EventProjectRule, RuleType: RuleDo, ProjectID: "p"})
	report := imported(t, s, []byte(byHand(
		`{"type":"memory","content":"second rule","event_type":"project-rule","rule_type":"do","project_id":"p"}`,
		`{"type":"memory","content":"other type","event_type":"project-rule","rule_type":"dont","project_id":"p"}`,
		`{"type":"memory","content":"general","event_type":"project-rule","rule_type":"do"}`,
		`{"type":"memory","content":"general, twice","event_type":"project-rule","rule_type":"do","collection_name":"c"}`,
		`{"type":"memory","content":"general of ann","event_type":"project-rule","rule_type":"do","owner":"ann"}`,
	)), ImportOptions{OnConflict: ConflictReplace})
	if report.Counts[transfer.KindMemory] != (ImportCount{Added: 3, Conflicts: 2}) {
		t.Errorf("got %+v, want %v", report, ImportCount{Added: 3, Conflicts: 2})
	}
}

func TestAMemoryThatIsKeptKeepsItsLinks(t *testing.T) {
	s := openCopy(t)
	imported(t, s, []byte(byHand(`{"type":"memory","id":"m1","content":"one"}`,
		`{"type":"memory","id":"m2","content":"two"}`,
		`{"type":"memory","id":"r1","content":"rule","metadata":{"event_type":"project-rule","rule_type":"do"}}`)),
		ImportOptions{})
	report := imported(t, s, []byte(byHand(`{"type":"memory","id":"m1","content":"other","related_memory_ids":["m2"]}`,
		`{"type":"memory","id":"r2","content":"second","metadata":{"event_type":"project-rule","rule_type":"do",`+
			`"related_memory_ids":["m2"]}}`)), ImportOptions{})
	if want := (ImportCount{Conflicts: 2}); report.Counts["memory"] != want || report.Counts["link"] != (ImportCount{}) ||
		report.MissingLinks != 0 {
		t.Errorf("got %+v, want memory %v, link %v and missing links 0", report, want, ImportCount{})
	}
	if m, err := s.GetMemory(t.Context(), "m1"); err != nil || len(m.Related) > 0 {
		t.Errorf("got %+v, %v, want no error and no links to the memory that was not imported", m, err)
	}
}

func TestCirclesOfLinksAndMissingEnds(t *testing.T) {
	s := openCopy(t)
	report := imported(t, s, []byte(byHand(
		`{"type":"memory","id":"a","content":"a"}`, `{"type":"memory","id":"b","content":"b"}`,
		`{"type":"memory","id":"c","content":"c"}`,
		`{"type":"link","memory":"a","related_memory_ids":["c","b","gone","a"]}`,
		`{"type":"link","memory":"b","related_memory_ids":["a"]}`,
		`{"type":"link","memory":"c","related_memory_ids":["a"]}`,
		`{"type":"link","memory":"gone","related_memory_ids":["a"]}`,
	)), ImportOptions{})
	a, err := s.GetMemory(t.Context(), "a")
	if err != nil || !slices.Equal(a.Related, []string{"c", "b"}) || report.MissingLinks != 3 {
		t.Errorf("got %v, %+v, %v, want no error, related %v and missing links 3", a.Related, report, err, []string{"c", "b"})
	}
}

func TestValidExportsPassTheCheck(t *testing.T) {
	var heard []string
	progress := func(stage string, _, _ int) { heard = append(heard, stage) }
	for name, export := range map[string][]byte{
		"sealed":  exported(t, openRich(t), ExportOptions{Credentials: true}),
		"by hand": []byte(byHand(`{"type":"memory","content":"x"}`)),
	} {
		if err := CheckExport(t.Context(), bytes.NewReader(export), &ExportCheckOptions{Progress: progress}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := CheckExport(t.Context(), bytes.NewReader(export[:len(export)-5]), nil); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s, cut off: %v, want ErrInvalid", name, err)
		}
	}
	if len(heard) == 0 || heard[0] != "check" {
		t.Errorf(`progress is %v, want it to begin with "check"`, heard)
	}
	if err := CheckExport(t.Context(), nil, nil); !errors.Is(err, ErrInvalid) {
		t.Errorf("without a reader: %v, want ErrInvalid", err)
	}
}

func TestProgressOfExportAndImport(t *testing.T) {
	longtest.Only(t)
	rich := openRich(t)
	last := map[string][2]int{}
	progress := func(stage string, done, total int) {
		if before := last[stage]; done < before[0] || total > 0 && done > total {
			t.Errorf("%s: %d of %d after %d, want it to rise up to the total", stage, done, total, before[0])
		}
		last[stage] = [2]int{done, total}
	}
	export := exported(t, rich, ExportOptions{Progress: progress})
	imported(t, openCopy(t), export, ImportOptions{Progress: progress})
	for _, stage := range []string{"memories", "files", "check", "import"} {
		if n := last[stage]; n[0] == 0 || n[0] != n[1] {
			t.Errorf("%s ends at %v, want all done of at least one", stage, n)
		}
	}
}

// fileLines returns the lines of a small file.
func fileLines(id, owner, data string) string {
	sum := sumOf(data)
	return fmt.Sprintf(
		`{"type":"file","id":%q,"owner":%q,"filename":"f.txt","mime_type":"text/plain","size":%d,"sha256":"%s",`+
			`"created_at":"2024-01-01T00:00:00Z","updated_at":"2024-01-01T00:00:00Z"}
{"type":"chunk","file":%q,"n":0,"data":%q}`, id, owner, len(data), sum, id, base64Of(data))
}

// invariants checks what must hold after any import.
func invariants(tb testing.TB, s *Store) {
	tb.Helper()
	if report := mustCheck(tb, s, nil); !report.OK {
		tb.Errorf("Check finds %+v, want OK", report.Findings)
	}
	for name, query := range map[string]string{
		"counts of memories": `SELECT count(*) FROM partition p WHERE memories <> (SELECT count(*) FROM memory m ` +
			`WHERE m.partition_id = p.id)`,
		"counts of passages": `SELECT count(*) FROM partition p WHERE passages <> (SELECT count(*) FROM passage a ` +
			`WHERE a.id >> 32 = p.id)`,
		"full text": `SELECT count(*) FROM passage a WHERE NOT EXISTS (SELECT 1 FROM passage_text t ` +
			`WHERE t.rowid = a.id)`,
		"places of passages": `SELECT count(*) FROM passage a JOIN memory m ON m.id = a.memory_id ` +
			`WHERE a.id >> 32 <> m.partition_id`,
		"memories' passages": `SELECT count(*) FROM memory m WHERE NOT EXISTS (SELECT 1 FROM passage a ` +
			`WHERE a.memory_id = m.id)`,
		"next passages": `SELECT count(*) FROM passage a JOIN partition p ON p.id = a.id >> 32 ` +
			`WHERE a.id & 4294967295 >= p.next_passage`,
		"sizes of vectors": `SELECT count(*) FROM passage a JOIN profile f ON f.id = a.profile_id ` +
			`WHERE length(a.vector) NOT IN (4 * f.dimensions, 1 + 2 * f.dimensions)`,
		"numbers of revision": `SELECT count(*) FROM memory m WHERE revision < 1 OR EXISTS (SELECT 1 ` +
			`FROM memory_revision r WHERE r.memory_id = m.id AND r.revision >= m.revision)`,
		"links to themselves": `SELECT count(*) FROM memory_link WHERE memory_id = related_id`,
		"rules": `SELECT count(*) FROM (SELECT 1 FROM memory m JOIN partition p ON p.id = m.partition_id ` +
			`JOIN collection c ON c.id = p.collection_id WHERE rule_type IS NOT NULL ` +
			`GROUP BY rule_type, project_id, iif(project_id IS NULL, owner_id, 0) HAVING count(*) > 1)`,
		"half files": `SELECT count(*) FROM file f WHERE state <> 'stored' OR size <> (SELECT ` +
			`ifnull(sum(length(data)), 0) FROM file_chunk k WHERE k.id >> 24 = f.id)`,
		"chunks without file": `SELECT count(*) FROM file_chunk k WHERE NOT EXISTS (SELECT 1 FROM file f ` +
			`WHERE f.id = k.id >> 24)`,
		"references": `SELECT count(*) FROM pragma_foreign_key_check`,
	} {
		err := s.db.Read(context.Background(), func(tx db.Tx) error {
			bad, err := db.Column[int64](tx, query)
			if err == nil && bad[0] > 0 {
				tb.Errorf("%s: %d are wrong, want at most 0", name, bad[0])
			}
			return err
		})
		if err != nil {
			tb.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzImport: an import of any bytes ends with a report or a typed error and keeps the store's invariants. The
// resulting store can be exported and imported again without loss.
func FuzzImport(f *testing.F) {
	for i, lines := range [][]string{
		{`{"type":"memory","content":"the kettle is blue","tags":["a"],"metadata":{"n":1.10}}`},
		{`{"type":"memory","id":"m","content":"x","revision":3}`,
			`{"type":"revision","memory":"m","revision":2,"content":"y","created_at":"2024-01-01T00:00:00Z"}`,
			`{"type":"link","memory":"m","related_memory_ids":["m","n"]}`},
		{`{"type":"collection","collection_name":"c","own_vectors":1}`,
			`{"type":"memory","collection_name":"c","id":"v","content":"x"}`,
			`{"type":"vectors","memory":"v","profile":"own:1","passages":[{"start":0,"length":1,"vector":"AACAPw=="}]}`},
		{`{"type":"memory","collection_name":"c","id":"v","content":"x"}`,
			`{"type":"vectors","memory":"v","profile":"own:1","passages":[{"start":0,"length":1,"vector":"AACAPw=="}]}`},
		{`{"type":"user","id":"u","name":"U"}`, `{"type":"project","owner":"u","project_id":"p","project_name":"P"}`,
			`{"type":"member","project_owner":"u","project_id":"p","user":"u","role":"reader"}`,
			`{"type":"preference","user":"u","value":{}}`},
		{fileLines("f", "local", "data")},
		{`{"type":"memory","content":"r","event_type":"project-rule","rule_type":"do"}`,
			`{"type":"memory","content":"s","event_type":"project-rule","rule_type":"do"}`},
		{`{"type":"token","id":"t","user":"local","hash":"` + base64Of(strings.Repeat("h", 32)) + `","scopes":[]}`},
		{`{"type":"end","counts":{},"sha256":""}`},
	} {
		if !longtest.Part(i, 1, 4) {
			continue
		}
		f.Add([]byte(byHand(lines...)), true)
		f.Add([]byte(strings.Join(lines, "\n")), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, whole bool) {
		if !whole {
			data = append([]byte(byHand()), data...)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s := openWords(t, "", Options{Now: sealedClock})
		for _, o := range []ImportOptions{{}, {OnConflict: ConflictReplace}} {
			_, err := s.Upkeep().Import(ctx, bytes.NewReader(data), &o)
			var known *Error
			if err != nil && (!errors.As(err, &known) ||
				!isAny(err, ErrInvalid, ErrTooLarge, ErrForeign, ErrNewer, ErrNotFound, ErrConflict)) {
				t.Fatalf("got %v, want an error of a known kind", err)
			}
		}
		invariants(t, s)
		if err := s.Upkeep().WaitEmbedded(ctx); err != nil {
			t.Fatal(err)
		}
		export := exported(t, s, ExportOptions{Credentials: true})
		if bytes.Count(export, []byte("\n")) == 2 {
			return // nothing was imported
		}
		copied := openWords(t, "", Options{Now: sealedClock})
		imported(t, copied, export, ImportOptions{})
		if again := exported(t, copied, ExportOptions{Credentials: true}); !bytes.Equal(again, export) {
			t.Errorf("got %v, want %.200q", linediff.First(again, export), export)
		}
	})
}

// An import keeps ids, even one that equals a user's name here. After it, no user can take such an id as a name.
func TestImportKeepsAnIDThatIsANameHere(t *testing.T) {
	longtest.Only(t)
	from := openWords(t, "", Options{})
	s := openWords(t, filepath.Join(t.TempDir(), "in.db"), Options{})
	mustAdd(t, from.As(Access{User: "OLGA"}), NewMemory{Content: "of the id"})
	addAccount(t, s, "u1", "Olga")
	data := exported(t, from, ExportOptions{})
	for range 2 {
		if _, err := s.Upkeep().Import(t.Context(), bytes.NewReader(data), nil); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(t.TempDir(), "out.db")
	if report, err := Recover(t.Context(), s.db.Upkeep().Path, out, nil); err != nil || !report.OK {
		t.Fatalf("recovery: got %+v, %v, want OK", report, err)
	}
	for what, s := range map[string]*Store{"the store": s, "recovered": openWords(t, out, Options{})} {
		found, err := s.As(Access{User: "OLGA"}).Search(t.Context(), Query{Text: "id"})
		if err != nil || found.Total != 1 {
			t.Errorf("%s: got %d memories of the id and %v, want 1", what, found.Total, err)
		}
		if report := mustCheck(t, s, nil); !report.OK {
			t.Errorf("%s: got %+v, want OK", what, report)
		}
		if err := s.Accounts().DeleteUser(t.Context(), "u1", nil); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Accounts().AddUser(t.Context(), NewUser{Name: "olga"}); !errors.Is(err, ErrConflict) {
			t.Errorf("%s: a new user with the name: got %v, want ErrConflict", what, err)
		}
	}
}
