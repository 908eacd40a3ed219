package migrate_test

import (
	"archive/zip"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/migrate"
	"github.com/souvenir-ai/souvenir/internal/testing/emptystore"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/secrets"
)

const chatGPTExport = `[{"conversation_id":"c1","title":"Trip","current_node":"n4","mapping":{
	"root":{"parent":"","message":null},
	"n1":{"parent":"root","message":{"id":"m1","create_time":1700000000.25,"author":{"role":"system"},
		"content":{"content_type":"text","parts":["Be brief."]}}},
	"n2":{"parent":"n1","message":{"id":"m2","create_time":1700000001.5,"author":{"role":"user"},
		"content":{"content_type":"multimodal_text","parts":[{"asset_pointer":"file:1"},"When does the train leave?",7,null,
			{"content_type":"audio_transcription","text":"Spoken, it was the same."}]}}},
	"n3":{"parent":"n2","message":{"id":"m3","create_time":1700000002,"author":{"role":"assistant"},
		"content":{"content_type":"text","parts":["An answer that was made again."]}}},
	"n4":{"parent":"n2","message":{"id":"m4","create_time":1700000003,"author":{"role":"assistant"},
		"content":{"content_type":"text","parts":["At eight."]}}}}},
	{"title":"no id","mapping":{}},
	{"id":"c2","title":"A circle","current_node":"a","mapping":{"a":{"parent":"b","message":{"author":{"role":"user"},
		"content":{"parts":["Round and round."]}}},"b":{"parent":"a","message":null}}}]`

const claudeExport = `[{"uuid":"u1","name":"Kettle","chat_messages":[
	{"uuid":"a","sender":"human","created_at":"2026-01-02T03:04:05.678901Z","text":"",
		"content":[{"type":"text","text":"Which colour has the kettle?"}],
		"attachments":[{"file_name":"list.txt","extracted_content":"kettle: blue"}]},
	{"uuid":"b","sender":"assistant","created_at":"2026-01-02T03:04:09Z","text":"Blue.",
		"content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"Blue."}]}]}]`

const mem0Export = `{"results": [{"id":"e1","memory":"Anna eats no peanuts","hash":"x","metadata":{"source":"chat"},
	"categories":["food"],"created_at":"2025-03-04T05:06:07.123456-07:00","user_id":"anna","score":0.5},
	{"id":"e2","memory":"Ben plays the cello"}],"relations":[]}`

// files writes files into a folder, and returns it.
func files(t *testing.T, contents map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, content := range contents {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// zipped writes a ZIP archive with files, given by names and contents.
func zipped(t *testing.T, contents ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "export.zip")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	archive := zip.NewWriter(file)
	for i := 0; i < len(contents) && err == nil; i += 2 {
		var w io.Writer
		if w, err = archive.Create(contents[i]); err == nil {
			_, err = io.WriteString(w, contents[i+1])
		}
	}
	if err = errors.Join(err, archive.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// unpacked decompresses a database of testdata into a folder under a name, and returns the folder.
func unpacked(t *testing.T, packed, name string) string {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", packed+".gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	in, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return files(t, map[string]string{name: string(content)})
}

func notesFolder(t *testing.T) string {
	return files(t, map[string]string{
		"people/anna.md": "---\ntitle: Anna\ntype: person\npermalink: people/anna\ntags:\n- team\n- '#food'\n" +
			"created: 2025-01-02 03:04:05\n---\n\n# Anna\n\n- [diet] no peanuts\n" +
			"- works_on [[Atlas|the project]] and [[Nothing]]\n",
		"atlas.md":         "Deploys on Thursdays. See [[people/anna]] and [[atlas]].\r\n",
		"bad.md":           "---\ntags: [a\n---\nText",
		".obsidian/x.md":   "hidden",
		"picture.png":      "not Markdown",
		"sub/empty/no.txt": "",
	})
}

func openStore(t *testing.T) *souvenir.Store {
	t.Helper()
	store, err := souvenir.Open(t.Context(), emptystore.Path(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// contents returns the contents of memories and of turns, sorted.
func contents(t *testing.T, store *souvenir.Store) []string {
	t.Helper()
	var all []string
	for m, err := range store.Memories(t.Context(), souvenir.MemoryList{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m.Content)
	}
	slices.Sort(all)
	return all
}

type source struct {
	from, path     string
	memories       int
	turns, skipped int
	links, missing int
	want           []string // parts of contents
}

func (test source) importOnce(t *testing.T) {
	store := openStore(t)
	dry, err := migrate.Import(t.Context(), store, test.from, test.path, &migrate.Options{DryRun: true})
	if err != nil || len(contents(t, store)) != 0 {
		t.Fatalf("a dry run: got %v and stored %q, want no error and nothing", err, contents(t, store))
	}
	first, err := migrate.Import(t.Context(), store, test.from, test.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	stored := test.memories - test.skipped
	if test.turns > 0 {
		stored = 0
	}
	if first.Added != stored || first.Turns != test.turns || first.TurnsAdded != test.turns ||
		first.Skipped != test.skipped || first.Links != test.links || first.MissingLinks != test.missing {
		t.Errorf("got %+v, want %d added, %d turns, %d skipped, %d links, %d missing", first, stored, test.turns,
			test.skipped, test.links, test.missing)
	}
	if dry.Memories != first.Memories || dry.Turns != first.Turns || dry.Skipped != first.Skipped {
		t.Errorf("the dry run said %+v, want what was done: %+v", dry, first)
	}
	all := contents(t, store)
	for _, want := range test.want {
		if !slices.ContainsFunc(all, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("stored: %q, want one that begins with %q", all, want)
		}
	}
	second, err := migrate.Import(t.Context(), store, test.from, test.path, nil)
	if err != nil || second.Added+second.Updated+second.TurnsAdded != 0 || second.Unchanged != stored ||
		second.Links != test.links {
		t.Errorf("the second run: got %+v and %v, want %d unchanged, %d links and nothing else", second, err, stored,
			test.links)
	}
	if again := contents(t, store); !slices.Equal(again, all) {
		t.Errorf("after the second run: got %q, want %q", again, all)
	}
	report, err := store.Upkeep().Check(t.Context(), nil)
	if err != nil || !report.OK {
		t.Errorf("the check says %+v and %v, want OK", report, err)
	}
	migrate.KeepNothing(t)
	other := openStore(t)
	reread, err := migrate.Import(t.Context(), other, test.from, test.path, nil)
	if err != nil || !reflect.DeepEqual(reread, first) || !slices.Equal(contents(t, other), all) {
		t.Errorf("an import that keeps nothing: got %+v and %v, want %+v and the same memories", reread, err, first)
	}
}

func TestEachSourceIsImportedOnce(t *testing.T) {
	for i, test := range []source{
		{"server-memory", "testdata/server-memory.jsonl", 3, 0, 0, 2, 0,
			[]string{"Anna (person)\n- is allergic to peanuts\n- speaks Norwegian\n- works on Atlas", `Größe "X"`}},
		{"chromem", "testdata/chromem/plain", 3, 0, 0, 0, 0, []string{"The kettle is blue.", "Der Topf fasst fünf Liter."}},
		{"chromem", "testdata/chromem/compressed", 3, 0, 0, 0, 0, []string{"The rain barrel holds 200 litres."}},
		{"chromem", "testdata/chromem/plain.gob", 3, 0, 0, 0, 0, []string{"The kettle is blue."}},
		{"chromem", "testdata/chromem/compressed.gob", 3, 0, 0, 0, 0, []string{"The kettle is blue."}},
		{"chatgpt", files(t, map[string]string{"conversations.json": chatGPTExport}), 0, 3, 1, 0, 0,
			[]string{"When does the train leave?", "At eight.", "Round and round."}},
		{"chatgpt", zipped(t, "export/conversations.json", chatGPTExport), 0, 3, 1, 0, 0, []string{"At eight."}},
		{"chatgpt", zipped(t, "conversations-001.json", `[{"id":"c4","current_node":"n","mapping":{"n":{"message":{
			"author":{"role":"user"},"create_time":null,"content":{"parts":["Second."]}}}},"title":null}]`,
			"conversations-000.json", chatGPTExport, "shared_conversations.json", "no JSON"), 0, 4, 1, 0, 0,
			[]string{"At eight.", "Second."}},
		{"chatgpt", files(t, map[string]string{"conversations-000.json": chatGPTExport, "conversations-1.json": "[]",
			"conversations.json.index": "no JSON"}), 0, 3, 1, 0, 0, []string{"At eight."}},
		{"claude", zipped(t, "conversations.json", claudeExport), 0, 2, 0, 0, 0,
			[]string{"Which colour has the kettle?\n\nlist.txt\nkettle: blue", "Blue."}},
		{"mem0", filepath.Join(files(t, map[string]string{"all.json": mem0Export}), "all.json"), 2, 0, 0, 0, 0,
			[]string{"Anna eats no peanuts", "Ben plays the cello"}},
		{"mem0", filepath.Join(files(t, map[string]string{"page.json": `{"count": 1, "next": null, "previous": {"results": 7},
			"results": [{"id": "e1", "memory": "Of the platform"}], "more": 0}`}), "page.json"), 1, 0, 0, 0, 0,
			[]string{"Of the platform"}},
		{"mem0", "testdata/mem0-all.json", 4, 0, 0, 0, 0, []string{"The deploy window is Tuesday at 10.", "我喜欢喝乌龙茶。"}},
		{"mem0", unpacked(t, "mem0-qdrant.sqlite", "qdrant/collection/mem0/storage.sqlite"), 5, 0, 0, 0, 0,
			[]string{"The deploy window is Tuesday at 10.", "我喜欢喝乌龙茶。", "Changed to this"}},
		{"mem0", unpacked(t, "mem0-history.db", "history.db"), 5, 0, 0, 0, 0, []string{"Noted.", "Changed to this"}},
		{"mcp-memory-service", unpacked(t, "mcp-memory-service.db", "sqlite_vec.db"), 4, 0, 0, 3, 0,
			[]string{"The deploy window is Tuesday at 10.", "我喜欢喝乌龙茶。"}},
		{"basic-memory", "testdata/basic-memory", 3, 0, 0, 3, 0, []string{"# Anna\n\n## Observations\n- [diet] allergic",
			"# Größe & Form\n\nlínea 1\nlínea 2 — 我喜欢喝乌龙茶。", "# Atlas\n\nDeploys on Thursdays"}},
		{"basic-memory", notesFolder(t), 3, 0, 1, 2, 0, []string{"# Anna\n\n- [diet] no peanuts",
			"# atlas\n\nDeploys on Thursdays."}},
	} {
		if !longtest.Part(i, 1, 6) {
			continue
		}
		t.Run(test.from+" "+filepath.Base(test.path), test.importOnce)
	}
}

func TestTagsTimesLinksAndMetadataAreImported(t *testing.T) {
	store := openStore(t)
	for from, path := range map[string]string{"basic-memory": notesFolder(t), "mem0": filepath.Join(
		files(t, map[string]string{"all.json": mem0Export}), "all.json")} {
		if _, err := migrate.Import(t.Context(), store, from, path, &migrate.Options{ProjectName: "atlas"}); err != nil {
			t.Fatal(err)
		}
	}
	get := func(key string) souvenir.Memory {
		m, err := store.GetMemoryByKey(t.Context(), souvenir.MemoryKey{ProjectName: "atlas", Key: key})
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		return m
	}
	anna, atlas, peanuts := get("basic-memory:people/anna"), get("basic-memory:atlas"), get("mem0:e1")
	if want := []string{"team", "food", "person"}; !slices.Equal(anna.Tags, want) {
		t.Errorf("tags of a note: got %q, want %q", anna.Tags, want)
	}
	if want := time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC); !anna.CreatedAt.Equal(want) {
		t.Errorf("a note was created at %s, want %s", anna.CreatedAt, want)
	}
	if want := []string{atlas.ID}; !slices.Equal(anna.Related, want) {
		t.Errorf("links of a note: got %q, want %q", anna.Related, want)
	}
	if want := time.Date(2025, 3, 4, 12, 6, 7, 123456000, time.UTC); !peanuts.CreatedAt.Equal(want) ||
		peanuts.Metadata["source"] != "chat" || peanuts.Metadata["user_id"] != "anna" ||
		!slices.Equal(peanuts.Tags, []string{"food"}) {
		t.Errorf("a memory of mem0: got %s, %v and %q, want %s, source, user_id and food", peanuts.CreatedAt,
			peanuts.Metadata, peanuts.Tags, want)
	}
}

func TestMem0sListMatchesItsDatabase(t *testing.T) {
	store := openStore(t)
	database := unpacked(t, "mem0-qdrant.sqlite", "collection/m/storage.sqlite")
	if _, err := migrate.Import(t.Context(), store, "mem0", database, nil); err != nil {
		t.Fatal(err)
	}
	report, err := migrate.Import(t.Context(), store, "mem0", "testdata/mem0-all.json", nil)
	if err != nil || report.Unchanged != 4 || report.Added+report.Updated != 0 {
		t.Errorf("the list after the database: got %+v and %v, want 4 unchanged", report, err)
	}
}

func TestDatabasesOfOtherProgramsKeepTheirDetails(t *testing.T) {
	store := openStore(t)
	mem0, service := unpacked(t, "mem0-qdrant.sqlite", "collection/m/storage.sqlite"),
		unpacked(t, "mcp-memory-service.db", "sqlite_vec.db")
	for from, path := range map[string]string{"mem0": mem0, "mcp-memory-service": service} {
		if _, err := migrate.Import(t.Context(), store, from, path, nil); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]string{}
	for m, err := range store.Memories(t.Context(), souvenir.MemoryList{}) {
		if err != nil {
			t.Fatal(err)
		}
		source, _, _ := strings.Cut(m.Key, ":")
		got[source+": "+m.Content] = fmt.Sprint(m.Tags, m.Metadata, m.CreatedAt.Year())
	}
	for memory, want := range map[string]string{
		"mem0: The deploy window is Tuesday at 10.": "[] map[n:3 project:berth role:user user_id:ann] 2026",
		"mem0: 我喜欢喝乌龙茶。":                            "[] map[agent_id:cursor role:user run_id:r1 user_id:ann] 2026",
		"mcp-memory-service: The deploy window is Tuesday at 10.": "[berth deploy] " +
			"map[memory_type:decision n:3 source:cursor] 2026",
	} {
		if got[memory] != want {
			t.Errorf("%s: got %s, want %s", memory, got[memory], want)
		}
	}
	for _, folder := range []string{filepath.Join(mem0, "collection", "m"), service} {
		if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
			t.Errorf("afterwards: got the files %v and %v, want the database alone", entries, err)
		}
	}
}

// What a program no longer shows is not valid here: it can be read, but searches do not find it.
func TestOutdatedMemoriesAreImportedAsNoLongerValid(t *testing.T) {
	store := openStore(t)
	for from, path := range map[string]string{"mem0": "testdata/mem0-all.json",
		"mcp-memory-service": unpacked(t, "mcp-memory-service.db", "sqlite_vec.db")} {
		if _, err := migrate.Import(t.Context(), store, from, path, nil); err != nil {
			t.Fatal(err)
		}
	}
	find := func(content string, asOf time.Time) (found souvenir.Memory) {
		t.Helper()
		for m, err := range store.Memories(t.Context(), souvenir.MemoryList{AsOf: asOf}) {
			if err != nil {
				t.Fatal(err)
			}
			if m.Content == content {
				found = m
			}
		}
		return found
	}
	const old = "Anna works in Kiel."
	for _, content := range []string{"Expired long ago", old} {
		if m := find(content, time.Time{}); m.ID != "" {
			t.Errorf("got %q as valid now, want it not", content)
		}
	}
	successor := find("Anna works in Bremen.", time.Time{})
	before, err := store.GetMemory(t.Context(), find(old, successor.CreatedAt.Add(-time.Microsecond)).ID)
	if err != nil {
		t.Fatal(err)
	}
	if !before.ValidUntil.Equal(successor.CreatedAt) || !slices.Equal(before.Related, []string{successor.ID}) {
		t.Errorf("got a version valid until %s and linked to %q, want %s and %s", before.ValidUntil, before.Related,
			successor.CreatedAt, successor.ID)
	}
	list := files(t, map[string]string{"all.json": `[{"id":"x","memory":"x","expiration_date":"2020-01-31"},
		{"id":"y","memory":"y","expiration_date":"9999-12-31"}]`})
	if _, err := migrate.Import(t.Context(), store, "mem0", filepath.Join(list, "all.json"), nil); err != nil {
		t.Fatal(err)
	}
	expired, err := store.GetMemoryByKey(t.Context(), souvenir.MemoryKey{Key: "mem0:x"})
	if want := time.Date(2020, 2, 1, 0, 0, 0, 0, time.UTC); err != nil || !expired.ValidUntil.Equal(want) ||
		expired.Metadata["expiration_date"] != "2020-01-31" {
		t.Errorf("got %+v and %v, want that it was valid until %s", expired, err, want)
	}
	lasting, err := store.GetMemoryByKey(t.Context(), souvenir.MemoryKey{Key: "mem0:y"})
	if err != nil || !lasting.ValidUntil.IsZero() || lasting.Metadata["expiration_date"] != "9999-12-31" {
		t.Errorf("got %+v and %v, want that it stays valid", lasting, err)
	}
}

func TestTurnsHaveTheirTimesAndRoles(t *testing.T) {
	store := openStore(t)
	if _, err := migrate.Import(t.Context(), store, "chatgpt", zipped(t, "conversations.json", chatGPTExport),
		nil); err != nil {
		t.Fatal(err)
	}
	turns, err := store.Conversation("chatgpt:c1").Last(t.Context(), 10)
	if err != nil || len(turns) != 2 {
		t.Fatalf("got %d turns and %v, want 2", len(turns), err)
	}
	if want := "When does the train leave?\nSpoken, it was the same."; turns[0].Content != want {
		t.Errorf("got %q, want %q", turns[0].Content, want)
	}
	if got := turns[0]; got.Role != "user" || !got.Time.Equal(time.UnixMilli(1700000001500)) ||
		got.Metadata["title"] != "Trip" {
		t.Errorf("got %+v, want the user's at 1700000001.5 with the title", got)
	}
}

func TestAChangeThereIsAChangeHere(t *testing.T) {
	store := openStore(t)
	folder := files(t, map[string]string{"a.md": "one"})
	if _, err := migrate.Import(t.Context(), store, "basic-memory", folder, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "a.md"), []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	report, err := migrate.Import(t.Context(), store, "basic-memory", folder, nil)
	if err != nil || report.Updated != 1 {
		t.Errorf("got %+v and %v, want one updated", report, err)
	}
	if got := contents(t, store); !slices.Equal(got, []string{"# a\n\ntwo"}) {
		t.Errorf("stored: %q, want the new content", got)
	}
}

func TestOnlyRefusedItemsAreSkipped(t *testing.T) {
	store := openStore(t)
	long := strings.Repeat("long ", 250_000)
	path := filepath.Join(files(t, map[string]string{"x.json": fmt.Sprintf(
		`[{"id":"1","memory":"one"},{"id":"2","memory":%q},{"id":"3","memory":""},{"id":"4","memory":"four"},{"memory":"x"}]`,
		long)}), "x.json")
	report, err := migrate.Import(t.Context(), store, "mem0", path, nil)
	if err != nil || report.Added != 2 || report.Skipped != 3 || len(report.Reasons) != 3 {
		t.Errorf("got %+v and %v, want 2 added and 3 skipped with their reasons", report, err)
	}
	if got := contents(t, store); !slices.Equal(got, []string{"four", "one"}) {
		t.Errorf("stored: %q, want four and one", got)
	}
}

func TestSecretsInItemsAreTreatedAndCounted(t *testing.T) {
	const secret = "AKIA" + "Y7QW3ERTU5OPASDF"
	memories := filepath.Join(files(t, map[string]string{"x.json": `[{"id":"1","memory":"use ` + secret +
		`"},{"id":"2","memory":"two"}]`}), "x.json")
	graph := filepath.Join(files(t, map[string]string{"x.json": `{"type":"entity","name":"A","observations":["` + secret +
		`"]}
{"type":"entity","name":"B"}
{"type":"relation","from":"A","to":"B","relationType":"needs"}`}), "x.json")
	chats := zipped(t, "conversations.json", strings.Replace(claudeExport, `"Blue."`, `"Say `+secret+` twice."`, 2))
	for _, test := range []struct {
		mode    secrets.Mode
		skipped int
		holds   string
	}{{secrets.Off, 0, secret}, {secrets.Flag, 0, secret}, {secrets.Mask, 0, "[secret: aws-access-token]"},
		{secrets.Refuse, 1, ""}} {
		finder, err := secrets.New(test.mode)
		if err != nil {
			t.Fatal(err)
		}
		for from, path := range map[string]string{"mem0": memories, "server-memory": graph, "claude": chats} {
			store := openStore(t)
			for _, dry := range []bool{true, false, false} {
				report, err := migrate.Import(t.Context(), store, from, path, &migrate.Options{DryRun: dry, Treat: finder.Treat})
				if err != nil || report.Skipped != test.skipped || (report.Secrets["aws-access-token"] == 1) == (test.mode ==
					secrets.Off) {
					t.Errorf("%s, %s: got %+v, %v, want %d skipped, and 1 secret counted unless off", from, test.mode, report, err,
						test.skipped)
				}
				if report.Updated > 0 && report.Added == 0 {
					t.Errorf("%s, %s: got %+v for the second import, want no update", from, test.mode, report)
				}
			}
			all := strings.Join(contents(t, store), "\n")
			if strings.Contains(all, secret) != (test.holds == secret) || !strings.Contains(all, test.holds) {
				t.Errorf("%s, %s: got %q, want %q", from, test.mode, all, test.holds)
			}
		}
	}
}

func TestOfItemsWithOneKeyTheFirstStays(t *testing.T) {
	for from, path := range map[string]string{
		"basic-memory": files(t, map[string]string{"a.md": "---\npermalink: x\n---\none [[b]] [[c]]",
			"b.md": "---\npermalink: x\n---\ntwo [[a]] [[c]]", "c.md": "three"}),
		"server-memory": files(t, map[string]string{"memory.json": `{"type":"entity","name":"one"}
{"type":"entity","name":"one","observations":["two"]}
{"type":"entity","name":"three"}
{"type":"relation","from":"one","to":"three","relationType":"precedes"}`}),
	} {
		store := openStore(t)
		first, err := migrate.Import(t.Context(), store, from, path, nil)
		if err != nil || first.Added != 2 || first.Updated > 1 || first.Skipped != 1 { // links may need an update
			t.Errorf("%s: got %+v and %v, want 2 added and 1 skipped", from, first, err)
		}
		second, err := migrate.Import(t.Context(), store, from, path, nil)
		if err != nil || second.Unchanged != 2 || second.Updated != 0 || second.Skipped != 1 {
			t.Errorf("%s, again: got %+v and %v, want 2 unchanged and 1 skipped", from, second, err)
		}
		if all := contents(t, store); slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, "two") }) {
			t.Errorf("%s stored %q, want the first of two items with the same key", from, all)
		}
	}
}

func TestMessagesWithoutIdsAreImportedOnce(t *testing.T) {
	store := openStore(t)
	folder := files(t, map[string]string{"conversations.json": `[{"uuid":"c1","chat_messages":[
		{"sender":"human","text":"When?"},{"sender":"assistant","text":"At eight."}]}]`})
	for run, want := range []int{2, 0} {
		report, err := migrate.Import(t.Context(), store, "claude", folder, nil)
		if err != nil || report.TurnsAdded != want {
			t.Errorf("run %d: got %+v and %v, want %d turns added", run+1, report, err, want)
		}
	}
}

func TestTheContextEndsAnImport(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := migrate.Import(ctx, openStore(t), "server-memory", "testdata/server-memory.jsonl",
		nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got the error %v, want the context's", err)
	}
}

// BenchmarkImport measures memories per second, with the built-in model.
func BenchmarkImport(b *testing.B) {
	var all strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&all, "%s{\"id\":\"%d\",\"memory\":\"The kettle number %d is blue, and stands in room %d.\"}",
			[]string{",", "["}[min(1, 1/(i+1))], i, i, i%77)
	}
	path := filepath.Join(b.TempDir(), "x.json")
	if err := os.WriteFile(path, []byte(all.String()+"]"), 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		store, err := souvenir.Open(b.Context(), filepath.Join(b.TempDir(), "store.db"), nil)
		if err != nil {
			b.Fatal(err)
		}
		report, err := migrate.Import(b.Context(), store, "mem0", path, nil)
		if err != nil || report.Added != 3000 {
			b.Fatalf("got %+v and %v, want 3000 added", report, err)
		}
		store.Close()
	}
	b.ReportMetric(3000*float64(b.N)/b.Elapsed().Seconds(), "memories/s")
}
