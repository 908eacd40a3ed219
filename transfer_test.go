package souvenir

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/testing/linediff"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/internal/transfer"
)

// gibberish makes random values, and knows the ids of the memories and files made of them.
type gibberish struct {
	*rand.Rand
	memories, files []string
}

func (g *gibberish) pick(from ...string) string { return from[g.IntN(len(from))] }

func (g *gibberish) user() string { return g.pick("local", "ann", "bob", "ü/x", "東京") }

func (g *gibberish) project() string { return g.pick("", "", "p", "q", "ann/p", "bob/q", "Plan \"x\"") }

// one returns one of the ids, or an unknown one.
func (g *gibberish) one(ids []string) string { return append(ids, "unknown")[g.IntN(max(1, len(ids)))] }

func (g *gibberish) words() string {
	return strings.Repeat(g.pick("kettle ", "Ümlaut\n\n# Head\n", "\x01\u2028\\\"", " \t", "東京の天気 ", "- [ ] T1 do\n"), 1+
		g.IntN(1+g.IntN(300)))
}

func (g *gibberish) metadata() map[string]any {
	m := map[string]any{}
	for range g.IntN(4) {
		m[g.pick("a", "<b>", "", "n\n", "module_name")] = []any{nil, true, 1.5, json.Number("12345678901234567890.10"),
			"\u2028&", []any{1, map[string]any{"x": nil}}}[g.IntN(6)]
	}
	return m
}

func (g *gibberish) own() []float32 {
	return []float32{g.Float32(), g.Float32() - 0.5, float32(g.IntN(2))}
}

func (g *gibberish) memory() NewMemory {
	m := NewMemory{Content: g.words(), Collection: g.pick("", "c", "own"), ProjectID: g.project(),
		ShownMetadata: g.metadata(), State: g.pick("", "active", "done")}
	m.Tags = []string{g.pick("a", "ü b", "Z"), g.pick("a", "m\"", "9")}
	if m.Collection == "own" && g.IntN(3) > 0 {
		m.Embedding = g.own()
	}
	if g.IntN(2) == 0 {
		m.Related = []string{g.one(g.memories)}
	}
	if g.IntN(8) == 0 {
		m.EventType, m.RuleType = EventProjectRule, RuleType(g.pick("do", "dont"))
	}
	return m
}

// randomly makes n random changes of a store, through its methods. Refused calls are ignored.
func randomly(t *testing.T, s *Store, r *rand.Rand, n int) {
	t.Helper()
	ctx, g := context.Background(), &gibberish{Rand: r}
	for range n {
		v := s.As(Access{User: g.pick("ann", "bob", g.user())})
		var err error
		switch g.IntN(20) {
		case 0:
			_, err = v.AddProject(ctx, NewProject{ID: g.pick("p", "q", "r"), Name: g.pick("", "Plan \"x\"", "Zwei")})
		case 1:
			_, err = s.AddMember(ctx, NewMember{Project: ProjectRef{ID: g.pick("ann/", "bob/") + g.pick("p", "q", "r")},
				User: g.user(), Role: MemberRole(g.pick("reader", "writer", "owner"))})
		case 2:
			_, err = v.AddCollection(ctx,
				NewCollection{Name: g.pick("c", "own", "Ö"), Description: g.words()[:1], OwnVectors: g.IntN(2) == 0, VectorSize: 3})
		case 3, 4, 5, 6, 7:
			var added StoredMemory
			if added, err = v.AddMemory(ctx, g.memory()); err == nil {
				g.memories = append(g.memories, added.ID)
			}
		case 8, 9, 10:
			change := g.metadata()
			change[g.pick("project_id", "importance", "tags", "related_memory_ids", "k")] = []any{nil, "p", "high", []any{"t"},
				[]any{g.one(g.memories)}}[g.IntN(5)]
			u := MemoryUpdate{ShownMetadata: change}
			if g.IntN(2) == 0 {
				u.Content = content(g.words())
			}
			_, err = v.UpdateMemory(ctx, g.one(g.memories), u)
		case 11:
			err = v.DeleteMemory(ctx, g.one(g.memories), nil)
		case 12, 13:
			var added File
			f := NewFile{Filename: g.words(), ProjectID: g.project(), Tags: []string{g.pick("z", "y"), "a"},
				Category: g.pick("", "c"), Description: g.words()[:1]}
			if g.IntN(2) == 0 {
				f.ProjectID, f.MemoryID = "", g.one(g.memories)
			}
			if added, err = v.AddFile(ctx, f, bytes.NewReader(pattern(g.IntN(2)*g.IntN(2*kernel.ChunkSize)))); err == nil {
				g.files = append(g.files, added.ID)
			}
		case 14:
			_, err = v.UpdateFile(ctx, g.one(g.files),
				FileUpdate{MemoryID: new(g.pick("", g.one(g.memories))), Tags: []string{g.pick("n", "o")}})
		case 15:
			err = v.DeleteFile(ctx, g.one(g.files), nil)
		case 16:
			_, err = v.UpdatePreferences(ctx, g.metadata())
		case 17:
			_, err = s.Accounts().AddUser(ctx,
				NewUser{ID: g.pick("", g.user()), Name: g.pick("Ann", "Bob", "Œuvre"), Email: g.pick("", "a@b.example")})
		case 18:
			_, err = v.Accounts().AddToken(ctx, NewToken{Name: g.pick("t", "ü"), Projects: [][]string{nil, {"p"}}[g.IntN(2)]})
		case 19:
			if g.IntN(3) > 0 {
				continue
			}
			err = v.DeleteProject(ctx, ProjectRef{ID: g.project()}, &DeletionOptions{WithMemories: g.IntN(3) == 0})
		}
		if err != nil && !isAny(err, ErrInvalid, ErrConflict, ErrNotFound, ErrForbidden, ErrTooLarge) {
			t.Fatal(err)
		}
	}
}

func TestAnExportOfAnythingComesBackTheSame(t *testing.T) {
	longtest.Only(t)
	for seed := range uint64(4) {
		if !longtest.Part(int(seed), 1, 4) {
			continue
		}
		clock := newMovingClock(sealedClock())
		s := openWords(t, filepath.Join(t.TempDir(), "random.db"), Options{Now: clock.Now})
		r := rand.New(rand.NewPCG(seed, 1))
		for range 4 {
			clock.Pass(time.Hour)
			randomly(t, s, r, 100)
		}
		clock.Pass(sealedClock().Sub(clock.Now()))
		if report := mustCheck(t, s, nil); !report.OK {
			t.Fatalf("seed %d: %+v, want OK", seed, report)
		}
		first := exported(t, s, ExportOptions{Credentials: true})
		for name, o := range map[string]ImportOptions{"kept": {}, "replaced": {OnConflict: ConflictReplace}} {
			copied := openWords(t, "", Options{Now: sealedClock})
			for range 2 {
				report, err := copied.Upkeep().Import(t.Context(), stream(first), &o)
				if err != nil || len(report.Conflicts) > 0 || report.Ignored > 0 || report.MissingLinks > 0 ||
					len(report.Warnings) > 0 {
					t.Fatalf("seed %d: %+v, %v, want all read", seed, report, err)
				}
			}
			if second := exported(t, copied, ExportOptions{Credentials: true}); !bytes.Equal(first, second) {
				t.Errorf("seed %d, %s: got a copy that differs, want the same: %s", seed, name, linediff.First(second, first))
			}
			if report := mustCheck(t, copied, nil); !report.OK {
				t.Errorf("seed %d, the copy: %+v, want OK", seed, report)
			}
			checkConsistency(t, copied)
		}
	}
}

func TestMismatchedVectorsAreRecomputed(t *testing.T) {
	longtest.Only(t)
	rich := openRich(t)
	long := strings.Repeat("A long memory has passages. ", 300) + "\n\n# End"
	var lines []string
	for _, line := range strings.Split(string(exported(t, rich, ExportOptions{})), "\n") {
		if strings.Contains(line, `"type":"memory"`) && strings.Contains(line, "A long memory") ||
			strings.Contains(line, `"type":"vectors"`) && strings.Count(line, "start") > 2 {
			lines = append(lines, line)
		}
	}
	if len(lines) != 2 {
		t.Fatalf("%d lines, want 2", len(lines))
	}
	one := lines[1][strings.Index(lines[1], `{"start"`) : strings.Index(lines[1], `}`)+1]
	for name, vectors := range map[string]string{
		"all":              lines[1],
		"the first only":   lines[1][:strings.Index(lines[1], `}`)+1] + "]}",
		"another length":   strings.Replace(lines[1], `"length":`, `"length":1`, 1),
		"the same twice":   strings.Replace(lines[1], one, one+","+one, 1),
		"of another size":  strings.Replace(lines[1], one, `{"start":0,"length":28,"vector":"AACAPw=="}`, 1),
		"of another model": strings.Replace(lines[1], `"profile":"`, `"profile":"x`, 1),
		"of two models":    lines[1] + "\n" + strings.Replace(lines[1], `"profile":"`, `"profile":"x`, 1),
		"of a caller": `{"type":"vectors","memory":` +
			lines[1][strings.Index(lines[1], `"memory":`)+9:strings.Index(lines[1], `,"profile"`)] +
			`,"profile":"own:1","passages":[{"start":0,"length":3,"vector":"AACAPw=="}]}`,
	} {
		s := openCopy(t)
		imported(t, s, []byte(byHand(lines[0], vectors)), ImportOptions{})
		if n := pendingOf(t, s); n != 0 && name != "of a caller" {
			t.Errorf("%s: %d passages wait, want none", name, n)
		}
		if err := s.Upkeep().WaitEmbedded(t.Context()); err != nil {
			t.Error(err)
		}
		invariants(t, s)
		found, err := s.Search(t.Context(), Query{Vector: wordVector("a long memory has passages.")})
		if err != nil || len(found.Hits) != 1 || found.Hits[0].Content != long || found.Hits[0].Score < 0.3 {
			t.Errorf("%s: got %+v, %v, want no error, 1 hit, content %v and score at least 0.3", name, found, err, long)
		}
	}
}

func TestVectorsOfCallersGoOnlyWhereTheyFit(t *testing.T) {
	lines := []string{
		`{"type":"memory","id":"v","collection_name":"c","content":"with a vector"}`,
		`{"type":"vectors","memory":"v","profile":"own:2","passages":[{"start":0,"length":13,"vector":"AACAPwAAAAA="}]}`,
	}
	for collection, vectors := range map[string]int{
		`{"type":"collection","collection_name":"c","own_vectors":2}`: 1,
		`{"type":"collection","collection_name":"c","own_vectors":3}`: 0,
		`{"type":"collection","collection_name":"c"}`:                 0,
	} {
		s := openCopy(t)
		imported(t, s, []byte(byHand(append([]string{collection}, lines...)...)), ImportOptions{})
		if got := bytes.Count(exported(t, s, ExportOptions{WithoutVectors: true}),
			[]byte(`"vector":"AACAPwAAAAA="`)); got != vectors {
			t.Errorf("%s: %d vectors, want %d", collection, got, vectors)
		}
		invariants(t, s)
		report := imported(t, s, []byte(byHand(strings.Replace(collection, `"c"`, `"c","own_vectors":7`, 1))),
			ImportOptions{OnConflict: ConflictReplace})
		if strings.Contains(collection, "own_vectors") {
			continue // duplicate key
		}
		if len(report.Conflicts) != 1 {
			t.Errorf("the kind of vectors was replaced: %+v; got %v, want 1", report, len(report.Conflicts))
		}
	}
}

func TestManyMemoriesWithRevisionsCrossBatches(t *testing.T) {
	longtest.Only(t)
	var lines []string
	for i := range 2*transfer.ImportBatch + 3 {
		id := fmt.Sprintf("m%d", i)
		lines = append(lines, fmt.Sprintf(`{"type":"memory","id":%q,"content":"entry %d","revision":3}`, id, i))
		for n := range 2 {
			lines = append(lines, fmt.Sprintf(
				`{"type":"revision","memory":%q,"revision":%d,"content":"former %d","created_at":"2024-01-01T00:00:00Z"}`, id, n+1,
				i))
		}
	}
	lines = append(lines, `{"type":"memory","id":"m0","content":"entry 0"}`,
		`{"type":"memory","id":"m1","content":"another"}`)
	s := openCopy(t)
	report := imported(t, s, []byte(byHand(lines...)), ImportOptions{})
	if report.Counts[transfer.KindMemory] != (ImportCount{Added: 2*transfer.ImportBatch + 3, Unchanged: 1,
		Conflicts: 1}) ||
		report.Counts[transfer.KindRevision].Added != 2*(2*transfer.ImportBatch+3) {
		t.Errorf("got %+v, want all lines added but one unchanged and one in conflict", report)
	}
	invariants(t, s)
}

func TestLinesBeforeAFaultyLineStayImported(t *testing.T) {
	s := openCopy(t)
	report, err := s.Upkeep().Import(t.Context(), strings.NewReader(byHand(
		`{"type":"user","id":"u"}`, `{"type":"project","project_id":"1","project_name":"One"}`,
		`{"type":"memory","content":"before"}`, `{"type":"member","project_id":"2","user":"u","role":"reader"}`,
		`{"type":"memory","content":"after"}`,
	)), nil)
	if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "line 5: project_id") || report.Line != 4 ||
		report.Counts[transfer.KindMemory].Added != 1 {
		t.Errorf(`got %v, %+v, want ErrInvalid, "line 5: project_id" in the error, line 4 and added 1`, err, report)
	}
	if got := contentsOf(t, s); !slices.Equal(got, []string{"before"}) {
		t.Errorf("got %q, want %v", got, []string{"before"})
	}
}

// The owner of record would be listed twice, and nothing could remove the second role.
func TestAnOwnerIsNotImportedAsAMember(t *testing.T) {
	s := openCopy(t)
	report := imported(t, s, []byte(byHand(`{"type":"user","id":"ann"}`, `{"type":"user","id":"ben"}`,
		`{"type":"project","owner":"ann","project_id":"p","project_name":"P"}`,
		`{"type":"member","project_owner":"ann","project_id":"p","user":"ann","role":"reader"}`,
		`{"type":"member","project_owner":"ann","project_id":"p","user":"ben","role":"reader"}`,
	)), ImportOptions{})
	if got := report.Counts[transfer.KindMember]; got != (ImportCount{Added: 1, Conflicts: 1}) {
		t.Errorf("got %+v, want one member added and one conflict", got)
	}
	members, err := s.As(Access{User: "ann"}).Members(t.Context(), ProjectRef{ID: "p"})
	if err != nil || len(members) != 2 || members[0].User != "ann" || members[1].User != "ben" {
		t.Errorf("got the members %+v, %v; want ann and ben", members, err)
	}
}

func TestUniqueRowsAreNotImportedTwice(t *testing.T) {
	s := openCopy(t)
	hash := base64Of(strings.Repeat("h", 32))
	report := imported(t, s, []byte(byHand(
		`{"type":"user","id":"u"}`,
		`{"type":"token","id":"t1","user":"u","hash":"`+hash+`","scopes":[]}`,
		`{"type":"token","id":"t2","user":"u","hash":"`+hash+`","scopes":[]}`,
		`{"type":"client","client_id":"c","kind":"registered","auth_method":"none","redirect_uris":[]}`,
		`{"type":"client","client_id":"c","kind":"admin","owner":"u","auth_method":"none","redirect_uris":[]}`,
	)), ImportOptions{OnConflict: ConflictReplace})
	if report.Counts[transfer.KindToken] != (ImportCount{Added: 1, Conflicts: 1}) ||
		report.Counts[transfer.KindClient] != (ImportCount{Added: 1, Conflicts: 1}) {
		t.Errorf("got %+v, want, of tokens and of clients, %+v each", report, ImportCount{Added: 1, Conflicts: 1})
	}
}

func TestImportKeepsTheSigningKey(t *testing.T) {
	s := openCopy(t)
	key := func(kid string) string {
		return `{"type":"signing_key","kid":"` + kid + `","algorithm":"EdDSA","private_key":"` +
			base64Of(strings.Repeat(kid, 32)) + `"}`
	}
	imported(t, s, []byte(byHand(key("a"))), ImportOptions{})
	for _, want := range []ImportCount{{Added: 1, Unchanged: 1}, {Unchanged: 2}} {
		if report := imported(t, s, []byte(byHand(key("a"), key("b"))),
			ImportOptions{}); report.Counts[transfer.KindSigningKey] != want {
			t.Errorf("%+v; want kindSigningKey] %v", report, want)
		}
	}
	keys := exported(t, s, ExportOptions{Credentials: true})
	if n := bytes.Count(keys, []byte(`"retired_at"`)); n != 1 ||
		!bytes.Contains(keys, []byte(`"kid":"b","algorithm":"EdDSA","private_key":"`+base64Of(strings.Repeat("b", 32))+
			`","created_at":"2026-11-21T08:00:00.123456Z","retired_at"`)) {
		t.Errorf("got %s, want the first key retired, and only that", keys)
	}
}

func TestDeletedUsersStayDeleted(t *testing.T) {
	s := openCopy(t)
	line := `{"type":"user","id":"u","name":"Una"}`
	imported(t, s, []byte(byHand(line)), ImportOptions{})
	if err := s.Accounts().DeleteUser(t.Context(), "u", nil); err != nil {
		t.Fatal(err)
	}
	before := rowsOf(t, s)
	if report := imported(t, s, []byte(byHand(line)),
		ImportOptions{OnConflict: ConflictReplace}); len(report.Conflicts) != 1 || rowsOf(t, s) != before {
		t.Errorf("got %+v, want one conflict and no change", report)
	}
	// Nor does data that a deleted user left elsewhere disable a user here.
	imported(t, s, []byte(byHand(`{"type":"memory","owner":"v","content":"x"}`)), ImportOptions{})
	before = rowsOf(t, s)
	if report := imported(t, s, []byte(byHand(`{"type":"user","id":"v","disabled_at":"2024-01-01T00:00:00Z"}`)),
		ImportOptions{}); rowsOf(t, s) != before {
		t.Errorf("got %+v, want no change", report)
	}
}

func TestALaterLastUseOfATokenIsNoConflict(t *testing.T) {
	longtest.Only(t)
	rich := openRich(t)
	export := exported(t, rich, ExportOptions{Credentials: true})
	statements(t, rich, `UPDATE token SET last_used_at = 999`, `UPDATE oauth_grant SET last_used_at = 999`)
	if report := imported(t, rich, export, ImportOptions{}); len(report.Conflicts) > 0 {
		t.Errorf("%+v; got %v, want none", report, len(report.Conflicts))
	}
}

func TestReportsListALimitedNumberOfConflicts(t *testing.T) {
	var old, changed []string
	for i := range 3 * transfer.MaxConflicts {
		old = append(old, fmt.Sprintf(`{"type":"memory","id":"m%d","content":"old"}`, i))
		changed = append(changed, fmt.Sprintf(`{"type":"memory","id":"m%d","content":"new"}`, i))
	}
	s := openCopy(t)
	imported(t, s, []byte(byHand(old...)), ImportOptions{})
	if report := imported(t, s, []byte(byHand(changed...)),
		ImportOptions{}); len(report.Conflicts) != transfer.MaxConflicts ||
		report.Counts[transfer.KindMemory].Conflicts != 3*transfer.MaxConflicts {
		t.Errorf("%d listed, %+v, want %v conflicts and conflicts %v", len(report.Conflicts), report.Counts,
			transfer.MaxConflicts, 3*transfer.MaxConflicts)
	}
}

func TestTheLargestMemoryFitsALine(t *testing.T) {
	longtest.Only(t)
	s := openCopy(t)
	large := mustAdd(t, s, NewMemory{Content: strings.Repeat("\x01", MaxContent),
		ShownMetadata: map[string]any{"k": strings.Repeat("\x01", MaxMetadata/6-10)}})
	if _, err := s.UpdateMemory(t.Context(), large.ID,
		MemoryUpdate{Content: content(strings.Repeat("\x02", MaxContent))}); err != nil {
		t.Fatal(err)
	}
	export := exported(t, s, ExportOptions{})
	copied := openCopy(t)
	imported(t, copied, export, ImportOptions{})
	if again := exported(t, copied, ExportOptions{}); !bytes.Equal(again, export) {
		t.Errorf("got %v, want %.200q", linediff.First(again, export), export)
	}
}

func TestImportsAtOnceBringEverythingOnce(t *testing.T) {
	longtest.Only(t)
	export := exported(t, openRich(t), ExportOptions{})
	path := filepath.Join(t.TempDir(), "shared.db")
	var group sync.WaitGroup
	for range 3 {
		s := openWords(t, path, Options{Now: sealedClock})
		group.Go(func() {
			report, err := s.Upkeep().Import(t.Context(), bytes.NewReader(export), nil)
			if err != nil || report.MissingLinks > 0 {
				t.Errorf("%+v, %v; want missingLinks at most 0", report, err)
			}
			for _, c := range report.Conflicts {
				if c.Kind != transfer.KindFile { // two may arrive at the same time
					t.Errorf("%+v; want kind %v", c, transfer.KindFile)
				}
			}
		})
	}
	group.Wait()
	s := openWords(t, path, Options{Now: sealedClock})
	invariants(t, s)
	report := imported(t, s, export, ImportOptions{})
	for kind, n := range report.Counts {
		if n.Added+n.Conflicts > 0 {
			t.Errorf("%s: %+v; want conflicts at most 0", kind, n)
		}
	}
}

// Handmade lines may name owners by account name. An id takes precedence, and unknown owners become users as usual.
func TestHandmadeOwnersMayBeAccountNames(t *testing.T) {
	s := openCopy(t)
	anna, err := s.Accounts().AddUser(t.Context(), NewUser{Name: "Anna"})
	if err != nil {
		t.Fatal(err)
	}
	lines := byHand(
		`{"type":"collection","owner":"anna","collection_name":"house"}`,
		`{"type":"project","owner":"Anna","project_id":"p","project_name":"The project"}`,
		`{"type":"former_name","owner":"anna","project_id":"p","name":"The plan"}`,
		`{"type":"memory","id":"m1","owner":"anna","project_owner":"ANNA","content":"hers","metadata":{"project_id":"p"}}`,
		`{"type":"memory","id":"m2","owner":"`+anna.ID+`","content":"hers, too","metadata":{"related_memory_ids":["m1"]}}`,
		`{"type":"memory","owner":"anna","content":"hers without an id","metadata":{"related_memory_ids":["m2"]}}`,
		`{"type":"memory","owner":"ben","content":"of a new user"}`)
	imported(t, s, []byte(lines), ImportOptions{})
	again := imported(t, s, []byte(lines), ImportOptions{})
	if n := again.Counts["memory"]; n.Unchanged != 4 || len(again.Conflicts) > 0 {
		t.Errorf("the same again: %+v, want unchanged 4 and no conflicts", again)
	}
	for _, kind := range []string{"collection", "project", "former_name"} {
		if n := again.Counts[kind]; n.Unchanged != 1 {
			t.Errorf("the same again: %s %+v, want unchanged 1", kind, n)
		}
	}
	view := s.As(Access{User: anna.ID})
	found, err := view.Search(t.Context(), Query{})
	if err != nil || found.Total != 3 {
		t.Errorf("anna finds %+v, %v; want total 3", found, err)
	}
	for _, h := range found.Hits {
		if h.ID != "m1" && len(h.Related) != 1 {
			t.Errorf("%s has the links %v, want one", h.Content, h.Related)
		}
	}
	page, err := s.Accounts().UserPage(t.Context(), UserQuery{})
	users := page.Users
	var ids []string
	for _, u := range users {
		ids = append(ids, u.ID)
	}
	if slices.Sort(ids); err != nil || len(ids) != 2 || !slices.Contains(ids, "ben") {
		t.Errorf(`users are %v, %v, want no error, 2 ids and "ben" among them`, ids, err)
	}
	invariants(t, s)
}

// Memories that supersede each other in a circle would all count as replaced, and none would be found.
func TestAnImportBreaksCirclesOfSupersedingMemories(t *testing.T) {
	longtest.Only(t)
	line := func(id, supersedes string) string {
		return fmt.Sprintf(`{"type":"memory","id":%q,"content":"the fact %[1]s","supersedes":%q}`+"\n", id, supersedes)
	}
	for name, c := range map[string]struct {
		lines    string
		current  []string
		warnings int
	}{
		"itself":    {line("a", "a"), []string{"a"}, 1},
		"two":       {line("a", "b") + line("b", "a"), []string{"a"}, 1},
		"three":     {line("a", "c") + line("b", "a") + line("c", "b"), []string{"b"}, 1},
		"a chain":   {line("a", "") + line("b", "a") + line("c", "b"), []string{"c"}, 0},
		"backwards": {line("c", "b") + line("b", "a") + line("a", ""), []string{"c"}, 0},
		"a fork":    {line("b", "a") + line("c", "a") + line("a", ""), []string{"b", "c"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := openWords(t, filepath.Join(t.TempDir(), "circle.db"), Options{})
			report, err := s.Upkeep().Import(t.Context(),
				strings.NewReader(`{"souvenir":"export","version":1}`+"\n"+c.lines), nil)
			if err != nil || len(report.Warnings) != c.warnings {
				t.Errorf("got the warnings %q, %v, want %d", report.Warnings, err, c.warnings)
			}
			results, err := s.Search(t.Context(), Query{Text: "fact", Sort: SortCreatedAsc})
			if err != nil {
				t.Fatal(err)
			}
			var current []string
			for _, h := range results.Hits {
				current = append(current, h.ID)
			}
			slices.Sort(current)
			if !slices.Equal(current, c.current) {
				t.Errorf("got %v, want %v", current, c.current)
			}
		})
	}
	// A line may close a circle with memories of the store.
	s := openWords(t, filepath.Join(t.TempDir(), "stored.db"), Options{})
	for range 2 {
		for _, lines := range []string{line("a", ""), line("b", "a"), line("a", "b")} {
			if _, err := s.Upkeep().Import(t.Context(), strings.NewReader(`{"souvenir":"export","version":1}`+"\n"+lines),
				&ImportOptions{OnConflict: ConflictReplace}); err != nil {
				t.Fatal(err)
			}
		}
		if results, err := s.Search(t.Context(), Query{Text: "fact"}); err != nil || len(results.Hits) != 1 ||
			results.Hits[0].ID != "b" {
			t.Errorf("got %+v, %v, want b alone", results.Hits, err)
		}
	}
}
