package anthropic_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"

	"github.com/souvenir-ai/souvenir"
	adapter "github.com/souvenir-ai/souvenir/adapters/anthropic"
)

func open(t testing.TB, path string) *souvenir.Store {
	t.Helper()
	store, err := souvenir.Open(context.Background(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func newStore(t testing.TB) *souvenir.Store {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), "memory.db"))
}

// command returns a command with its name and pairs of arguments.
func command(name string, pairs ...any) string {
	fields := map[string]any{"command": name}
	for i := 0; i < len(pairs); i += 2 {
		fields[pairs[i].(string)] = pairs[i+1]
	}
	encoded, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	return string(encoded)
}

func create(path, text string) string { return command("create", "path", path, "file_text", text) }
func view(path string, lines ...int) string {
	if lines == nil {
		return command("view", "path", path)
	}
	return command("view", "path", path, "view_range", lines)
}
func replace(path, from, to string) string {
	return command("str_replace", "path", path, "old_str", from, "new_str", to)
}
func insert(path string, line int, text string) string {
	return command("insert", "path", path, "insert_line", line, "insert_text", text)
}
func remove(path string) string     { return command("delete", "path", path) }
func rename(from, to string) string { return command("rename", "old_path", from, "new_path", to) }

// run executes a command as a loop over the Messages API does. failed reports whether the result has is_error.
func run(t testing.TB, m *adapter.Memory, input string) (text string, failed bool) {
	t.Helper()
	use := `{"id": "m", "type": "message", "role": "assistant", "content": [{"type": "tool_use", "id": "u", ` +
		`"name": "memory", "input": ` + input + `}]}`
	var message anthropic.Message
	if err := json.Unmarshal([]byte(use), &message); err != nil {
		t.Fatal(err)
	}
	results := adapter.Set{m}.Results(t.Context(), &message)
	if len(results) != 1 || results[0].OfToolResult == nil || results[0].OfToolResult.ToolUseID != "u" {
		t.Fatalf("got the results %+v, want one for the call u", results)
	}
	return results[0].OfToolResult.Content[0].OfText.Text, results[0].OfToolResult.IsError.Value
}

// must executes commands that succeed.
func must(t testing.TB, m *adapter.Memory, inputs ...string) {
	t.Helper()
	for _, input := range inputs {
		if text, failed := run(t, m, input); failed {
			t.Fatalf("%s: got %q, want no error", input, text)
		}
	}
}

// files returns all files of a view with their texts, as the command view shows them.
func files(t testing.TB, store *souvenir.Store, m *adapter.Memory) map[string]string {
	t.Helper()
	found := map[string]string{}
	all := souvenir.MemoryList{Filter: souvenir.Filter{"event_type": "memory_file"}}
	for memory, err := range store.Memories(t.Context(), all) {
		if err != nil {
			t.Fatal(err)
		}
		path := memory.Metadata["path"].(string)
		if _, twice := found[path]; twice {
			t.Fatalf("got two files %s, want one", path)
		}
		text, failed := run(t, m, view(path))
		if failed {
			t.Fatalf("view %s: got %q, want its text", path, text)
		}
		_, text, _ = strings.Cut(text, "\n")
		lines := strings.Split(text, "\n")
		for i := range lines {
			_, lines[i], _ = strings.Cut(lines[i], "\t")
		}
		found[path] = strings.Join(lines, "\n")
	}
	return found
}

func names(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// many is the part of an answer before the lines around a change.
const many = "Here is the snippet showing the change (with line numbers):\n"

// commandAnswers are commands with the answers that the tool's description gives for them.
var commandAnswers = []struct {
	name   string
	before []string
	input  string
	want   string
	failed bool
}{
	{name: "view nothing", input: view("/memories"), want: "Here're the files and directories up to 2 levels deep in " +
		"/memories, excluding hidden items and node_modules:\n0B\t/memories"},
	{name: "view a directory", before: []string{create("/memories/a/x.md", strings.Repeat("x", 5632)),
		create("/memories/a/b/y.md", strings.Repeat("y", 1024)), create("/memories/a/b/c/deep.md", "z"),
		create("/memories/z.md", "1"), create("/memories/.secret/a", "1"), create("/memories/node_modules/a/b", "1")},
		input: view("/memories/"), want: "Here're the files and directories up to 2 levels deep in /memories, " +
			"excluding hidden items and node_modules:\n6.5K\t/memories\n6.5K\t/memories/a/\n1K\t/memories/a/b/\n" +
			"5.5K\t/memories/a/x.md\n1B\t/memories/z.md"},
	{name: "view a hidden directory", before: []string{create("/memories/.git/a", "1")}, input: view("/memories/.git"),
		want: "Here're the files and directories up to 2 levels deep in /memories/.git, excluding hidden items and " +
			"node_modules:\n1B\t/memories/.git\n1B\t/memories/.git/a"},
	{name: "view a file", before: []string{create("/memories/a", "Line 1\nLine 2\nLine 3")}, input: view("/memories/a"),
		want: "Here's the content of /memories/a with line numbers:\n     1\tLine 1\n     2\tLine 2\n     3\tLine 3"},
	{name: "view lines", before: []string{create("/memories/a", "1\n2\n3\n4\n5\n")}, input: view("/memories/a", 2, 4),
		want: "Here's the content of /memories/a with line numbers:\n     2\t2\n     3\t3\n     4\t4"},
	{name: "view the rest", before: []string{create("/memories/a", "1\n2\n3\n")}, input: view("/memories/a", 2, -1),
		want: "Here's the content of /memories/a with line numbers:\n     2\t2\n     3\t3"},
	{name: "view lines that are not there", before: []string{create("/memories/a", "1\n2\n")},
		input: view("/memories/a", 3, 9), failed: true,
		want: "Error: Invalid `view_range` parameter: [3 9]. It should be [start, end] within the range of lines of the " +
			"file: [1, 2]"},
	{name: "view an empty file", before: []string{create("/memories/a", "")}, input: view("/memories/a"),
		want: "Here's the content of /memories/a with line numbers:\n     1\t"},
	{name: "view a missing file", input: view("/memories/a"), failed: true,
		want: "The path /memories/a does not exist. Please provide a valid path."},
	{name: "create", input: create("/memories/a/b/c", "x"), want: "File created successfully at: /memories/a/b/c"},
	{name: "create what exists", before: []string{create("/memories/a", "")}, input: create("/memories/a", "x"),
		want: "Error: File /memories/a already exists", failed: true},
	{name: "create where a directory is", before: []string{create("/memories/a/b", "")}, failed: true,
		input: create("/memories/a", ""), want: "Error: File /memories/a already exists"},
	{name: "create the root", input: create("/memories", ""), want: "Error: File /memories already exists", failed: true},
	{name: "create in a file", before: []string{create("/memories/a", "")}, input: create("/memories/a/b/c", ""),
		want: "Error: /memories/a is a file, not a directory", failed: true},
	{name: "replace", before: []string{create("/memories/a", "Line 1\nOld Text\nLine 3")},
		input: replace("/memories/a", "Old Text", "New Text"),
		want:  "The memory file has been edited. " + many + "     1\tLine 1\n     2\tNew Text\n     3\tLine 3"},
	{name: "replace in a long file", before: []string{create("/memories/a", "1\n2\n3\n4\n5\n6\n7\n8\n")},
		input: replace("/memories/a", "5", "five\nand a half"), want: "The memory file has been edited. " + many +
			"     3\t3\n     4\t4\n     5\tfive\n     6\tand a half\n     7\t6\n     8\t7"},
	{name: "replace with nothing", before: []string{create("/memories/a", "all")},
		input: command("str_replace", "path", "/memories/a", "old_str", "all"),
		want:  "The memory file has been edited. " + many + "     1\t"},
	{name: "replace missing text", before: []string{create("/memories/a", "Hello")},
		input: replace("/memories/a", "NotFound", "x"), failed: true,
		want: "No replacement was performed, old_str `NotFound` did not appear verbatim in /memories/a."},
	{name: "replace text that occurs twice", before: []string{create("/memories/a", "Hello\nMiddle\nHello Hello")},
		input: replace("/memories/a", "Hello", "x"), failed: true, want: "No replacement was performed. Multiple " +
			"occurrences of old_str `Hello` in lines: 1, 3. Please ensure it is unique"},
	{name: "replace what overlaps", before: []string{create("/memories/a", "aaa")}, failed: true,
		input: replace("/memories/a", "aa", ""), want: "No replacement was performed. Multiple occurrences of old_str " +
			"`aa` in lines: 1. Please ensure it is unique"},
	{name: "replace nothing", before: []string{create("/memories/a", "x")}, input: replace("/memories/a", "", "y"),
		failed: true, want: "Error: old_str is empty; give the text to replace, or use insert to add text"},
	{name: "replace in a missing file", input: replace("/memories/a", "x", "y"), failed: true,
		want: "Error: The path /memories/a does not exist. Please provide a valid path."},
	{name: "replace in a directory", before: []string{create("/memories/a/b", "x")}, failed: true,
		input: replace("/memories/a", "x", "y"),
		want:  "Error: The path /memories/a does not exist. Please provide a valid path."},
	{name: "insert", before: []string{create("/memories/a", "1\n2")}, input: insert("/memories/a", 1, "x"),
		want: "The file /memories/a has been edited."},
	{name: "insert too far", before: []string{create("/memories/a", "1\n2\n")}, input: insert("/memories/a", 3, "x"),
		failed: true, want: "Error: Invalid `insert_line` parameter: 3. It should be within the range of lines of the " +
			"file: [0, 2]"},
	{name: "insert before all", before: []string{create("/memories/a", "")}, input: insert("/memories/a", -1, "x"),
		failed: true, want: "Error: Invalid `insert_line` parameter: -1. It should be within the range of lines of the " +
			"file: [0, 0]"},
	{name: "insert into a missing file", input: insert("/memories/a", 0, "x"), failed: true,
		want: "Error: The path /memories/a does not exist"},
	{name: "delete", before: []string{create("/memories/a", "")}, input: remove("/memories/a"),
		want: "Successfully deleted /memories/a"},
	{name: "delete a missing file", input: remove("/memories/a"), failed: true,
		want: "Error: The path /memories/a does not exist"},
	{name: "delete the root", input: remove("/memories/"), failed: true,
		want: "Error: Cannot delete the /memories directory itself"},
	{name: "rename", before: []string{create("/memories/a", "")}, input: rename("/memories/a", "/memories/b/c"),
		want: "Successfully renamed /memories/a to /memories/b/c"},
	{name: "rename a missing file", input: rename("/memories/a", "/memories/b"), failed: true,
		want: "Error: The path /memories/a does not exist"},
	{name: "rename onto a file", before: []string{create("/memories/a", ""), create("/memories/b", "")}, failed: true,
		input: rename("/memories/a", "/memories/b"), want: "Error: The destination /memories/b already exists"},
	{name: "rename onto a directory", before: []string{create("/memories/a", ""), create("/memories/b/c", "")},
		input: rename("/memories/a", "/memories/b"), want: "Error: The destination /memories/b already exists",
		failed: true},
	{name: "rename to itself", before: []string{create("/memories/a", "")}, input: rename("/memories/a", "/memories/a"),
		want: "Error: The destination /memories/a already exists", failed: true},
	{name: "rename into itself", before: []string{create("/memories/a/b", "")}, failed: true,
		input: rename("/memories/a", "/memories/a/c"),
		want:  "Error: Cannot rename /memories/a to /memories/a/c, which is inside it"},
	{name: "rename into a file", before: []string{create("/memories/a", ""), create("/memories/b", "")}, failed: true,
		input: rename("/memories/a", "/memories/b/c"), want: "Error: /memories/b is a file, not a directory"},
	{name: "rename the root", input: rename("/memories", "/memories/x"), failed: true,
		want: "Error: Cannot rename the /memories directory itself"},
	{name: "an unknown command", input: command("undo_edit"), failed: true, want: `Error: Unknown command "undo_edit"; ` +
		`the commands are view, create, str_replace, insert, delete, rename`},
	{name: "a missing text", input: command("create", "path", "/memories/a", "content", "x"), failed: true,
		want: "Error: Missing required parameter: create needs `file_text`"},
	{name: "a number as text", before: []string{create("/memories/a", "1\n")},
		input: command("insert", "path", "/memories/a", "insert_line", "1", "insert_text", "2"),
		want:  "The file /memories/a has been edited."},
	{name: "no object", input: `[]`, failed: true, want: `Error: Unknown command ""; the commands are view, create, ` +
		`str_replace, insert, delete, rename`},
}

// The texts are from Anthropic's description of memory_20250818, and from the SDKs' own memory on a file system.
func TestCommandsAnswerAsDescribed(t *testing.T) {
	store := newStore(t)
	for _, c := range commandAnswers {
		t.Run(c.name, func(t *testing.T) {
			m := adapter.NewMemory(store.As(souvenir.Access{User: c.name}), nil)
			must(t, m, c.before...)
			if got, failed := run(t, m, c.input); got != c.want || failed != c.failed {
				t.Errorf("got %q, failed %v\nwant %q, failed %v", got, failed, c.want, c.failed)
			}
		})
	}
}

// A tool runner puts "Error: " before the text itself.
func TestErrorsForARunnerBeginOnce(t *testing.T) {
	m := adapter.NewMemory(newStore(t), nil)
	_, err := m.Execute(t.Context(), json.RawMessage(remove("/memories/a")))
	if want := "The path /memories/a does not exist"; err == nil || err.Error() != want {
		t.Errorf("got the error %v, want %q", err, want)
	}
}

func TestPathsOutsideAreRefused(t *testing.T) {
	store := newStore(t)
	m := adapter.NewMemory(store, nil)
	for path, want := range map[string]string{
		"":                              "must start with /memories",
		"/":                             "must start with /memories",
		"memories/a":                    "must start with /memories",
		"/memoriesx/a":                  "must start with /memories",
		"/etc/passwd":                   "must start with /memories",
		"/memories/../secrets.env":      "would escape",
		"/memories/a/../../b":           "would escape",
		"/memories/a/..":                "would escape",
		`/memories/..\secrets`:          "would escape",
		"/memories/%2e%2e%2fsecrets":    "would escape",
		"/memories/%2E%2E/secrets":      "would escape",
		`/memories/a\b`:                 "backslash",
		"/memories/a\x00b":              "control character",
		"/memories/a\nb":                "control character",
		"/memories/" + long("a", 600):   "has 610 bytes",
		"/memories" + long("/a", 34):    "in 33 directories",
		"/memories/中文/../../etc/passwd": "would escape",
	} {
		for _, input := range []string{view(path), create(path, "x"), replace(path, "a", "b"), insert(path, 0, "x"),
			remove(path), rename(path, "/memories/x"), rename("/memories/y", path)} {
			if strings.Contains(input, `"/memories/y"`) {
				must(t, m, create("/memories/y", ""))
			}
			if got, failed := run(t, m, input); !failed || !strings.Contains(got, want) {
				t.Errorf("%s: got %q, failed %v, want an error with %q", input, got, failed, want)
			}
			if strings.Contains(input, `"/memories/y"`) {
				must(t, m, remove("/memories/y"))
			}
		}
	}
	if got := names(files(t, store, m)); len(got) != 0 {
		t.Errorf("got the files %q, want none", got)
	}
}

func long(part string, n int) string { return strings.Repeat(part, n) }

func TestTextsStayAsTheyAre(t *testing.T) {
	store := newStore(t)
	m := adapter.NewMemory(store, &adapter.MemoryOptions{MaxView: -1})
	for _, text := range []string{"", " ", "\n", "\n\n", "\t", "\u200b", "x", "x\n", "x\r\ny\r\n", "  x", "x  \n\n",
		"/memories/a", "我们从不在星期五部署。\n周四可以。", "🚂 7:40", long("long line ", 1000), "a" + long("\n", 5000)} {
		must(t, m, create("/memories/a", text), rename("/memories/a", "/memories/b"))
		check := func(step, path, want string) {
			t.Helper()
			got, failed := run(t, m, view(path))
			want = "Here's the content of " + path + " with line numbers:\n" + numbered(want)
			if failed || got != want {
				t.Errorf("%.20q, %s: got %.200q, want %.200q", text, step, got, want)
			}
		}
		check("renamed", "/memories/b", text)
		must(t, m, insert("/memories/b", 0, "first"))
		want := "first\n" + text
		if text != "" && !strings.HasSuffix(text, "\n") {
			want += "\n"
		}
		check("inserted", "/memories/b", want)
		must(t, m, replace("/memories/b", "first\n", ""))
		check("replaced", "/memories/b", strings.TrimPrefix(want, "first\n"))
		must(t, m, remove("/memories/b"))
	}
}

// numbered numbers the lines of a text.
func numbered(text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := range lines {
		lines[i] = fmt.Sprintf("%6d\t%s", i+1, lines[i])
	}
	return strings.Join(lines, "\n")
}

func TestInsertsGoBetweenLines(t *testing.T) {
	store := newStore(t)
	m := adapter.NewMemory(store, nil)
	for _, c := range []struct {
		text   string
		line   int
		insert string
		want   string
	}{
		{"Line 1\nLine 2", 0, "x", "x\nLine 1\nLine 2\n"},
		{"Line 1\nLine 2", 1, "x", "Line 1\nx\nLine 2\n"},
		{"Line 1\nLine 2", 2, "x", "Line 1\nLine 2\nx\n"},
		{"Line 1\nLine 2\n", 2, "x\ny\n", "Line 1\nLine 2\nx\ny\n"},
		{"", 0, "x", "x\n"},
		{"\n\n", 1, "x", "\nx\n\n"},
		{"a\n", 1, "", "a\n"},
	} {
		must(t, m, create("/memories/a", c.text), insert("/memories/a", c.line, c.insert))
		var got string
		for memory, err := range store.Memories(t.Context(), souvenir.MemoryList{}) {
			if err != nil {
				t.Fatal(err)
			}
			got = memory.Content
		}
		if got != c.want {
			t.Errorf("insert %q after line %d of %q: got %q, want %q", c.insert, c.line, c.text, got, c.want)
		}
		must(t, m, remove("/memories/a"))
	}
}

func TestDirectoriesMoveAndGoAsAWhole(t *testing.T) {
	store := newStore(t)
	m := adapter.NewMemory(store, nil)
	must(t, m, create("/memories/a/1", "one"), create("/memories/a/b/2", ""), create("/memories/a/b/.c/3", "three"),
		create("/memories/ab", "beside"), create("/memories/a-b/4", "beside"), create("/memories/项目/笔记.md", "中文"))
	must(t, m, rename("/memories/a", "/memories/x/y"), rename("/memories/项目", "/memories/x/项目"))
	want := map[string]string{"/memories/x/y/1": "one", "/memories/x/y/b/2": "", "/memories/x/y/b/.c/3": "three",
		"/memories/ab": "beside", "/memories/a-b/4": "beside", "/memories/x/项目/笔记.md": "中文"}
	if got := files(t, store, m); !maps.Equal(got, want) {
		t.Errorf("after rename: got %q, want %q", got, want)
	}
	must(t, m, remove("/memories/x/y/b"), remove("/memories/ab"))
	for _, gone := range []string{"/memories/x/y/b/2", "/memories/x/y/b/.c/3", "/memories/ab"} {
		delete(want, gone)
	}
	if got := files(t, store, m); !maps.Equal(got, want) {
		t.Errorf("after delete: got %q, want %q", got, want)
	}
	if text, failed := run(t, m, view("/memories/x/y/b")); !failed {
		t.Errorf("a directory without files: got %q, want that it does not exist", text)
	}
}

// A path that would become too long is found before anything moves.
func TestARenameThatFailsMovesNothing(t *testing.T) {
	store := newStore(t)
	m := adapter.NewMemory(store, nil)
	must(t, m, create("/memories/a/1", ""), create("/memories/a/"+long("x", 480), ""))
	before := names(files(t, store, m))
	if text, failed := run(t, m, rename("/memories/a", "/memories/"+long("y", 40))); !failed {
		t.Errorf("got %q, want an error", text)
	}
	if got := names(files(t, store, m)); !slices.Equal(got, before) {
		t.Errorf("got the files %.100q, want %.100q", got, before)
	}
}

// A renamed file remains the same memory, so that what others attached to it stays.
func TestARenamedFileIsTheSameMemory(t *testing.T) {
	store := newStore(t)
	m := adapter.NewMemory(store, nil)
	must(t, m, create("/memories/a", "We deploy on Thursdays."))
	found, err := store.Search(t.Context(), souvenir.Query{Text: "deploy"})
	if err != nil || len(found.Hits) != 1 {
		t.Fatalf("got %d hits, %v, want 1", len(found.Hits), err)
	}
	id := found.Hits[0].ID
	if _, err := store.UpdateMemory(t.Context(), id, souvenir.MemoryUpdate{Tags: &[]string{"ops"},
		Metadata: map[string]any{"reviewed": true}}); err != nil {
		t.Fatal(err)
	}
	must(t, m, rename("/memories/a", "/memories/ops/deploy"), replace("/memories/ops/deploy", "Thursdays", "Mondays"))
	got, err := store.GetMemory(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if got.Content != "We deploy on Mondays." || !slices.Equal(got.Tags, []string{"ops"}) ||
		got.Metadata["reviewed"] != true {
		t.Errorf("got %q, tags %q, metadata %v, want the new text, ops and reviewed", got.Content, got.Tags, got.Metadata)
	}
	history, err := store.Revisions(t.Context(), id)
	if err != nil || len(history) != 4 {
		t.Errorf("got %d revisions, %v, want 4", len(history), err)
	}
}

func TestADeletedFileCanBeRestored(t *testing.T) {
	store := newStore(t)
	m := adapter.NewMemory(store, nil)
	must(t, m, create("/memories/a", "old"), remove("/memories/a"), create("/memories/a", "new"))
	for entry, err := range store.Trash().All(t.Context(), souvenir.TrashList{}) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Trash().Restore(t.Context(), entry.ID); err != nil {
			t.Fatal(err)
		}
	}
	text, failed := run(t, m, view("/memories/a"))
	if want := "Here's the content of /memories/a with line numbers:\n     1\tnew"; failed || text != want {
		t.Errorf("beside a newer one: got %q, want %q", text, want)
	}
	must(t, m, rename("/memories/a", "/memories/b"), remove("/memories/b"))
	if text, failed := run(t, m, view("/memories/b")); !failed {
		t.Errorf("after a deletion: got %q, want that neither exists", text)
	}
}

func TestMemoriesThatAreNoFilesAreNotSeen(t *testing.T) {
	store := newStore(t)
	m := adapter.NewMemory(store, nil)
	for _, other := range []souvenir.NewMemory{{Content: "a", Metadata: map[string]any{"path": "/memories/a"}},
		{Content: "b", Key: "/memories/a"}, {Content: "c", EventType: "memory_file", ProjectID: "p",
			Metadata: map[string]any{"path": "/memories/a"}}} {
		if _, err := store.AddMemory(t.Context(), other); err != nil {
			t.Fatal(err)
		}
	}
	if text, failed := run(t, m, view("/memories/a")); !failed {
		t.Errorf("got %q, want that it does not exist", text)
	}
}

func TestCancelledCommandsChangeNothing(t *testing.T) {
	store := newStore(t)
	m := adapter.NewMemory(store, nil)
	must(t, m, create("/memories/a/b", "x"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, input := range []string{view("/memories"), create("/memories/c", "x"), replace("/memories/a/b", "x", "y"),
		insert("/memories/a/b", 0, "y"), remove("/memories/a"), rename("/memories/a", "/memories/d")} {
		if _, err := m.Execute(ctx, json.RawMessage(input)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want context.Canceled", input, err)
		}
		var c anthropic.BetaMemoryTool20250818CommandUnion
		if err := json.Unmarshal([]byte(input), &c); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Run(ctx, c); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want context.Canceled", input, err)
		}
	}
	if got, want := files(t, store, m), map[string]string{"/memories/a/b": "x"}; !maps.Equal(got, want) {
		t.Errorf("got the files %q, want %q", got, want)
	}
}

func TestLongViewsAreCut(t *testing.T) {
	m := adapter.NewMemory(newStore(t), &adapter.MemoryOptions{MaxView: 20})
	must(t, m, create("/memories/a", "十个字的一行是这样的\n十个字的一行是这样的\nlast\n"), create("/memories/b", long("x", 30)))
	for _, c := range []struct{ input, want string }{
		{view("/memories/a"), "Here's the content of /memories/a with line numbers:\n     1\t十个字的一行是这样的\n" +
			"(cut after line 1; view the rest with view_range [2, -1])"},
		{view("/memories/a", 2, -1), "Here's the content of /memories/a with line numbers:\n     2\t十个字的一行是这样的\n" +
			"     3\tlast"},
		{view("/memories/b"), "Here's the content of /memories/b with line numbers:\n     1\t" + long("x", 20) +
			" (line 1 has 30 characters and is cut here)"},
		{view("/memories"), "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items " +
			"and node_modules:\n(and 3 more; view the directories below to see them)"},
	} {
		if got, failed := run(t, m, c.input); failed || got != c.want {
			t.Errorf("%s: got %q, want %q", c.input, got, c.want)
		}
	}
}

// All files move in one transaction, and other writers wait for it.
func TestARenameOfTooManyFilesIsRefused(t *testing.T) {
	store := newStore(t)
	memories := make([]souvenir.NewMemory, 10_001)
	for i := range memories {
		memories[i] = souvenir.NewMemory{EventType: "memory_file", Content: "x", Metadata: map[string]any{
			"path": fmt.Sprintf("/memories/many/%d", i), "directories": []string{"/memories/many"}}}
	}
	if _, err := store.AddMemories(t.Context(), memories, nil); err != nil {
		t.Fatal(err)
	}
	m := adapter.NewMemory(store, nil)
	text, failed := run(t, m, rename("/memories/many", "/memories/other"))
	if !failed || !strings.Contains(text, "has 10001 files; at most 10000") {
		t.Errorf("got %q, want an error that names both numbers", text)
	}
	must(t, m, rename("/memories/many/7", "/memories/seven"), view("/memories/many/8"))
}

func TestFilesHaveALimit(t *testing.T) {
	m := adapter.NewMemory(newStore(t), nil)
	must(t, m, create("/memories/a", long("a", souvenir.MaxContent)), create("/memories/lines", "a"+long("\n", 1_000_000)))
	for _, c := range []struct{ input, want string }{
		{create("/memories/b", long("a", souvenir.MaxContent+1)), "1048577 bytes"},
		{insert("/memories/a", 0, "b"), "1048579 bytes"},
		{create("/memories/nul", "a\x00b"), "U+0000"},
		{replace("/memories/a", long("a", 500_000), ""), "in lines: 1. Please"},
		{view("/memories/lines"), "File /memories/lines exceeds maximum line limit of 999,999 lines."},
	} {
		if got, failed := run(t, m, c.input); !failed || !strings.Contains(got, c.want) {
			t.Errorf("%.80s: got %.300q, want an error with %q", c.input, got, c.want)
		}
	}
}
