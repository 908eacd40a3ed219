package souvenir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/sqlite"
)

// These tests hand every argument of every method something that it must refuse, and see that the refusal is of use:
// typed, naming the argument, its value and what is allowed, and without any effect.

// wordSize is the length of wordEmbedder's vectors.
const wordSize = 32

// wordEmbedder is a small model that is the same everywhere: each word counts in one dimension.
func wordEmbedder(model string) Embedder {
	return EmbedderFunc(model, wordSize, func(ctx context.Context, _ Purpose, texts []string) ([][]float32, error) {
		vectors := make([][]float32, len(texts))
		for i, t := range texts {
			vectors[i] = wordVector(t)
		}
		return vectors, ctx.Err()
	})
}

func wordVector(t string) []float32 {
	v := make([]float32, wordSize)
	for _, word := range strings.Fields(strings.ToLower(t)) {
		h := fnv.New32a()
		h.Write([]byte(word))
		v[h.Sum32()%wordSize]++
	}
	return v
}

// openWords opens a store with wordEmbedder, unless the options have another one, and closes it at the end of the test.
func openWords(tb testing.TB, path string, o Options) *Store {
	tb.Helper()
	if o.Embedder == nil {
		o.Embedder = wordEmbedder("words-1")
	}
	s, err := Open(context.Background(), path, &o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error("close:", err)
		}
	})
	return s
}

func mustAdd(tb testing.TB, s *Store, m NewMemory) Stored {
	tb.Helper()
	added, err := s.AddMemory(context.Background(), m)
	if err != nil {
		tb.Fatal(err)
	}
	return added
}

func mustAddCollection(tb testing.TB, s *Store, c NewCollection) {
	tb.Helper()
	if _, err := s.AddCollection(context.Background(), c); err != nil {
		tb.Fatal(err)
	}
}

// rowsOf reads everything that a store's file holds, as text: two equal answers mean that nothing was changed between them.
func rowsOf(tb testing.TB, s *Store) string {
	tb.Helper()
	query, err := everyRow()
	if err != nil {
		tb.Fatal(err)
	}
	var rows []string
	err = s.db.Read(context.Background(), func(tx *sqlite.Tx) error {
		rows, err = sqlite.Column[string](tx, query)
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return strings.Join(rows, "\n")
}

// everyRow is one query of all rows of all tables, of which a connection keeps the statement.
var everyRow = sync.OnceValues(func() (string, error) {
	ctx := context.Background()
	s, err := Open(ctx, ":memory:", &Options{Embedder: wordEmbedder("words-1")})
	if err != nil {
		return "", err
	}
	defer s.Close()
	var queries []string
	err = s.db.Read(ctx, func(tx *sqlite.Tx) error {
		queries, err = sqlite.Column[string](tx, `
			SELECT 'SELECT ''' || t.name || ' '' || ' || group_concat('quote("' || c.name || '")', ' || '','' || ') || ' FROM "' || t.name || '"'
			FROM sqlite_schema t, pragma_table_info(t.name) c
			WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%' AND t.name NOT LIKE 'passage_text%'
			GROUP BY t.name`)
		return err
	})
	queries = append(queries, `SELECT * FROM (SELECT 'passage_text ' || rowid FROM passage_text ORDER BY rowid)`)
	return strings.Join(queries, " UNION ALL "), err
})

// foreignWord is part of everything that another user stores here, and never of an attack.
const foreignWord = "zqxvault"

// attacked is a store with something of the local user in it, and something of alice.
type attacked struct {
	*Store
	id      string // a memory of the local user
	former  string // another one, with two revisions
	foreign string // a memory of alice
}

func openAttacked(t *testing.T) attacked {
	s := openWords(t, ":memory:", Options{})
	mustAddCollection(t, s, NewCollection{Name: "notes"})
	mustAddCollection(t, s, NewCollection{Name: "own", OwnVectors: true, VectorSize: 3})
	mustAdd(t, s, NewMemory{Collection: "own", Content: "a vector of mine", Embedding: []float32{1, 0, 0}})
	a := attacked{Store: s}
	a.id = mustAdd(t, s, NewMemory{Collection: "notes", Content: "the kettle is blue", ProjectID: "kitchen", ProjectName: "The Kitchen", Tags: []string{"home"}}).ID
	a.former = mustAdd(t, s, NewMemory{Content: "the cup is red"}).ID
	content := "the cup is green"
	if _, err := s.UpdateMemory(t.Context(), a.former, UpdateMemory{Content: &content}); err != nil {
		t.Fatal(err)
	}
	alice := s.As(Access{User: "alice-" + foreignWord})
	mustAddCollection(t, alice, NewCollection{Name: foreignWord + "-garden", Description: foreignWord})
	a.foreign = mustAdd(t, alice, NewMemory{
		Collection: foreignWord + "-garden", Content: "the kettle of " + foreignWord, ProjectName: foreignWord,
		Tags: []string{foreignWord}, Metadata: map[string]any{foreignWord: foreignWord},
	}).ID
	return a
}

type attack struct {
	name     string
	do       func(ctx context.Context, a attacked) error
	kind     error
	argument string
	says     []string // what the message must contain besides the argument
}

func adding(m NewMemory) func(context.Context, attacked) error {
	if m.Content == "" {
		m.Content = "a tea pot"
	}
	return func(ctx context.Context, a attacked) error { _, err := a.AddMemory(ctx, m); return err }
}

func addingContent(content string) func(context.Context, attacked) error {
	return func(ctx context.Context, a attacked) error {
		_, err := a.AddMemory(ctx, NewMemory{Content: content})
		return err
	}
}

func addingMetadata(metadata map[string]any) func(context.Context, attacked) error {
	return adding(NewMemory{Metadata: metadata})
}

func patching(metadata map[string]any) func(context.Context, attacked) error {
	return updating(UpdateMemory{Metadata: metadata})
}

func updating(u UpdateMemory) func(context.Context, attacked) error {
	return func(ctx context.Context, a attacked) error { _, err := a.UpdateMemory(ctx, a.id, u); return err }
}

func addingCollection(c NewCollection) func(context.Context, attacked) error {
	return func(ctx context.Context, a attacked) error { _, err := a.AddCollection(ctx, c); return err }
}

func searching(q Query) func(context.Context, attacked) error {
	return func(ctx context.Context, a attacked) error { _, err := a.Search(ctx, q); return err }
}

func filtering(key string, value any) func(context.Context, attacked) error {
	return searching(Query{Text: "kettle", Filter: Filter{key: value}})
}

func listing(l List) func(context.Context, attacked) error {
	return func(ctx context.Context, a attacked) error {
		for _, err := range a.Memories(ctx, l) {
			if err != nil {
				return err
			}
		}
		return nil
	}
}

const badUTF8 = "ab\xffcd"

var badUTF8Says = []string{"UTF-8", "0xff", "offset 2"}

func long(n int) string { return strings.Repeat("ä", n) }

func deep(n int) map[string]any {
	nested := map[string]any{}
	for range n - 1 {
		nested = map[string]any{"a": nested}
	}
	return nested
}

func cyclicMap() map[string]any {
	m := map[string]any{}
	m["self"] = m
	return m
}

type ring struct{ Next *ring }

func cyclicPointer() *ring {
	r := &ring{}
	r.Next = r
	return r
}

func manyKeys(n int) map[string]any {
	m := make(map[string]any, n)
	for i := range n {
		m[fmt.Sprintf("key%07d", i)] = i
	}
	return m
}

func numbered(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint("n", i)
	}
	return all
}

// content returns a pointer, as UpdateMemory wants it.
func content(s string) *string { return &s }

// attacks on everything but ids, which have their own list.
func attacks() []attack {
	var all []attack
	add := func(name string, kind error, argument string, do func(context.Context, attacked) error, says ...string) {
		all = append(all, attack{name, do, kind, argument, says})
	}

	// names of collections
	for _, name := range []struct {
		what, value string
		kind        error
		says        []string
	}{
		{"empty", "", ErrInvalid, []string{`""`, "1 to 128"}},
		{"blank", " \t ", ErrInvalid, []string{`" \t "`, "1 to 128"}},
		{"too long", long(129), ErrTooLarge, []string{"129", "128", "ää"}},
		{"huge", strings.Repeat("x", 1<<20), ErrTooLarge, []string{"1048576", "128"}},
		{"invalid UTF-8", badUTF8, ErrInvalid, badUTF8Says},
		{"control character", "a\x00b", ErrInvalid, []string{"U+0000"}},
		{"line break", "a\nb", ErrInvalid, []string{"U+000A"}},
	} {
		add("AddCollection: collection name "+name.what, name.kind, "collection_name", addingCollection(NewCollection{Name: name.value}), name.says...)
		for method, do := range map[string]func(context.Context, attacked) error{
			"GetCollection": func(ctx context.Context, a attacked) error { _, err := a.GetCollection(ctx, name.value); return err },
			"UpdateCollection": func(ctx context.Context, a attacked) error {
				_, err := a.UpdateCollection(ctx, name.value, UpdateCollection{Description: content("described")})
				return err
			},
			"DeleteCollection": func(ctx context.Context, a attacked) error {
				return a.DeleteCollection(ctx, DeleteCollection{Name: name.value, WithMemories: true})
			},
			"Search":   searching(Query{Collections: []string{"notes", name.value}}),
			"Memories": listing(List{Collections: []string{name.value}}),
			"Tags":     func(ctx context.Context, a attacked) error { _, err := a.Tags(ctx, name.value); return err },
		} { // that there is no such collection is a fair answer, too
			add(method+": collection name "+name.what, nil, "collection_name", do)
		}
		if name.value != "" { // which stands for the default
			add("AddMemory: collection name "+name.what, name.kind, "collection_name", adding(NewMemory{Collection: name.value}), name.says...)
			add("AddMemory: project id "+name.what, name.kind, "project_id", adding(NewMemory{ProjectID: name.value}), name.says...)
			add("AddMemory: project name "+name.what, name.kind, "project_name", adding(NewMemory{ProjectName: name.value}), name.says...)
			if name.what != "invalid UTF-8" && name.what != "huge" { // which is too much metadata before it is a name
				add("UpdateMemory: project id "+name.what, name.kind, "project_id", patching(map[string]any{"project_id": name.value}), name.says...)
			}
			add("AddMemory: user "+name.what, name.kind, "user", func(ctx context.Context, a attacked) error {
				_, err := a.As(Access{User: name.value}).AddMemory(ctx, NewMemory{Content: "a tea pot"})
				return err
			}, name.says...)
		}
	}

	// collections
	add("AddCollection: again", ErrConflict, "collection_name", addingCollection(NewCollection{Name: "notes"}), `"notes"`, "exists")
	add("AddCollection: description too long", ErrTooLarge, "description", addingCollection(NewCollection{Name: "n", Description: long(4097)}), "4097", "4096")
	add("AddCollection: description not UTF-8", ErrInvalid, "description", addingCollection(NewCollection{Name: "n", Description: badUTF8}), badUTF8Says...)
	add("AddCollection: negative size", ErrInvalid, "vector_size", addingCollection(NewCollection{Name: "n", VectorSize: -1}), "-1", "16384")
	add("AddCollection: huge size", ErrInvalid, "vector_size", addingCollection(NewCollection{Name: "n", VectorSize: 16385, OwnVectors: true}), "16385", "16384")
	add("AddCollection: another size", ErrInvalid, "vector_size", addingCollection(NewCollection{Name: "n", VectorSize: 31}), "31", "32", "words-1")
	add("AddCollection: own vectors of no size", ErrInvalid, "vector_size", addingCollection(NewCollection{Name: "n", OwnVectors: true}), "missing")
	add("UpdateCollection: description too long", ErrTooLarge, "description", func(ctx context.Context, a attacked) error {
		_, err := a.UpdateCollection(ctx, "notes", UpdateCollection{Description: content(long(4097))})
		return err
	}, "4097", "4096")
	add("UpdateCollection: description not UTF-8", ErrInvalid, "description", func(ctx context.Context, a attacked) error {
		_, err := a.UpdateCollection(ctx, "notes", UpdateCollection{Description: content(badUTF8)})
		return err
	}, badUTF8Says...)
	add("DeleteCollection: not empty", ErrConflict, "collection_name", func(ctx context.Context, a attacked) error {
		return a.DeleteCollection(ctx, DeleteCollection{Name: "notes"})
	}, `"notes"`, "1 mem", "WithMemories")
	for method, do := range map[string]func(context.Context, attacked, string) error{
		"GetCollection": func(ctx context.Context, a attacked, name string) error {
			_, err := a.GetCollection(ctx, name)
			return err
		},
		"UpdateCollection": func(ctx context.Context, a attacked, name string) error {
			_, err := a.UpdateCollection(ctx, name, UpdateCollection{})
			return err
		},
		"DeleteCollection": func(ctx context.Context, a attacked, name string) error {
			return a.DeleteCollection(ctx, DeleteCollection{Name: name, WithMemories: true})
		},
		"AddMemory": func(ctx context.Context, a attacked, name string) error {
			return adding(NewMemory{Collection: name})(ctx, a)
		},
		"Search": func(ctx context.Context, a attacked, name string) error {
			return searching(Query{Collections: []string{name}})(ctx, a)
		},
		"Memories": func(ctx context.Context, a attacked, name string) error {
			return listing(List{Collections: []string{name}})(ctx, a)
		},
		"Tags": func(ctx context.Context, a attacked, name string) error { _, err := a.Tags(ctx, name); return err },
	} {
		add(method+": unknown collection", ErrNotFound, "collection_name",
			func(ctx context.Context, a attacked) error { return do(ctx, a, "notess") }, `"notess"`, `"notes"`, "create_collection")
		add(method+": collection of another", ErrNotFound, "collection_name", // but for a letter, so that no hint may name it
			func(ctx context.Context, a attacked) error { return do(ctx, a, "zqxvaul-garden") }, `"zqxvaul-garden"`)
	}

	// content
	tooMuch := strings.Repeat("x", MaxContent+1)
	add("AddMemory: no content", ErrInvalid, "content", addingContent(""), "empty", "1048576")
	add("AddMemory: a byte too much", ErrTooLarge, "content", addingContent(tooMuch), "1048577", "1048576")
	add("AddMemory: content not UTF-8", ErrInvalid, "content", addingContent(badUTF8), badUTF8Says...)
	add("UpdateMemory: no content", ErrInvalid, "content", updating(UpdateMemory{Content: content("")}), "empty", "1048576")
	add("UpdateMemory: a byte too much", ErrTooLarge, "content", updating(UpdateMemory{Content: &tooMuch}), "1048577", "1048576")
	add("UpdateMemory: content not UTF-8", ErrInvalid, "content", updating(UpdateMemory{Content: content(badUTF8)}), badUTF8Says...)

	// known keys
	add("AddMemory: importance", ErrInvalid, "importance", adding(NewMemory{Importance: "urgent"}), `"urgent"`, `"low", "medium", "high" or "critical"`)
	add("AddMemory: classification", ErrInvalid, "classification", adding(NewMemory{Classification: "Do"}), `"Do"`, `"do", "dont", "todo" or "notes"`)
	add("AddMemory: rule type", ErrInvalid, "rule_type", adding(NewMemory{RuleType: "never", EventType: EventProjectRule}), `"never"`, `"do", "dont" or "todo"`)
	add("AddMemory: rule type on no rule", ErrInvalid, "rule_type", adding(NewMemory{RuleType: RuleDo, EventType: "decision"}), `"do"`, `"decision"`, `"project-rule"`)
	add("AddMemory: id and name disagree", ErrInvalid, "project_name", adding(NewMemory{ProjectID: "kitchen", ProjectName: "Garage"}), `"Garage"`, `"kitchen"`, `"The Kitchen"`)
	add("AddMemory: slash in a new project's id", ErrInvalid, "project_id", adding(NewMemory{ProjectID: "nobody/thing"}), `"nobody/thing"`, "slash")
	for key, allowed := range map[string]string{"event_type": "64", "state": "64"} {
		for _, method := range []struct {
			name string
			with func(map[string]any) func(context.Context, attacked) error
		}{{"AddMemory", addingMetadata}, {"UpdateMemory", patching}} {
			add(method.name+": metadata."+key+" too long", ErrTooLarge, key, method.with(map[string]any{key: long(65)}), "65", allowed)
			add(method.name+": metadata."+key+" with a control character", ErrInvalid, key, method.with(map[string]any{key: "a\x07b"}), "U+0007")
			add(method.name+": metadata."+key+" blank", ErrInvalid, key, method.with(map[string]any{key: "  "}), `"  "`)
		}
	}
	add("AddMemory: event type not UTF-8", ErrInvalid, "event_type", adding(NewMemory{EventType: badUTF8}), badUTF8Says...)
	add("AddMemory: state not UTF-8", ErrInvalid, "state", adding(NewMemory{State: badUTF8}), badUTF8Says...)
	add("AddMemory: event type too long", ErrTooLarge, "event_type", adding(NewMemory{EventType: long(65)}), "65", "64")
	for _, key := range []string{"event_type", "state", "project_id", "project_name", "importance", "classification", "rule_type"} {
		for _, value := range []any{7, true, []string{"a"}, map[string]any{"a": 1}} {
			says := []string{showJSON(value), "string"}
			add(fmt.Sprintf("AddMemory: metadata.%s is a %T", key, value), ErrInvalid, key, addingMetadata(map[string]any{key: value}), says...)
			add(fmt.Sprintf("UpdateMemory: metadata.%s is a %T", key, value), ErrInvalid, key, patching(map[string]any{key: value}), says...)
		}
	}
	for key, value := range map[string]string{"importance": "urgent", "classification": "maybe"} {
		add("AddMemory: metadata."+key, ErrInvalid, key, addingMetadata(map[string]any{key: value}), value, "allowed")
		add("UpdateMemory: metadata."+key, ErrInvalid, key, patching(map[string]any{key: value}), value, "allowed")
	}
	for _, key := range []string{"tags", "related_memory_ids"} {
		add("AddMemory: metadata."+key+" is a string", ErrInvalid, key, addingMetadata(map[string]any{key: "a, b"}), `"a, b"`, "list of strings")
		add("UpdateMemory: metadata."+key+" is a string", ErrInvalid, key, patching(map[string]any{key: "a, b"}), `"a, b"`, "list of strings")
		add("AddMemory: metadata."+key+" holds a number", ErrInvalid, key, addingMetadata(map[string]any{key: []any{"a", 7}}), key+"[1] is 7", "string")
	}
	add("AddMemory: 65 tags", ErrTooLarge, "tags", adding(NewMemory{Tags: numbered(65)}), "65", "64")
	add("UpdateMemory: 65 tags", ErrTooLarge, "tags", patching(map[string]any{"tags": numbered(65)}), "65", "64")
	add("AddMemory: empty tag", ErrInvalid, "tags", adding(NewMemory{Tags: []string{"a", " "}}), `tags[1] is " "`, "1 to 128")
	add("AddMemory: long tag", nil, "tags", adding(NewMemory{Tags: []string{long(129)}}), "tags[0]", "ää", "128")
	add("AddMemory: tag not UTF-8", ErrInvalid, "tags", adding(NewMemory{Tags: []string{badUTF8}}), badUTF8Says...)
	add("AddMemory: tag with a control character", ErrInvalid, "tags", adding(NewMemory{Tags: []string{"a\nb"}}), "tags[0]", "U+000A")
	add("AddMemory: 257 links", ErrTooLarge, "related_memory_ids", adding(NewMemory{Related: numbered(257)}), "257", "256")
	add("AddMemory: unknown link", ErrNotFound, "related_memory_ids", adding(NewMemory{Related: []string{"nowhere"}}), `related_memory_ids[0] is "nowhere"`)
	add("AddMemory: link not UTF-8", nil, "related_memory_ids", adding(NewMemory{Related: []string{badUTF8}}), `related_memory_ids`)
	add("AddMemory: link to another's memory", ErrNotFound, "related_memory_ids", func(ctx context.Context, a attacked) error {
		return adding(NewMemory{Related: []string{a.id, a.foreign}})(ctx, a)
	}, "related_memory_ids[1]")
	add("UpdateMemory: link to itself", ErrInvalid, "related_memory_ids", func(ctx context.Context, a attacked) error {
		return patching(map[string]any{"related_memory_ids": []string{a.id}})(ctx, a)
	}, "itself")
	add("UpdateMemory: link to another's memory", ErrNotFound, "related_memory_ids", func(ctx context.Context, a attacked) error {
		return patching(map[string]any{"related_memory_ids": []string{a.foreign}})(ctx, a)
	}, "related_memory_ids[0]")

	// metadata
	for _, m := range []struct {
		what  string
		value map[string]any
		kind  error
		says  []string
	}{
		{"a function", map[string]any{"f": func() {}}, ErrInvalid, []string{"func"}},
		{"a channel", map[string]any{"c": make(chan int)}, ErrInvalid, []string{"chan"}},
		{"a complex number", map[string]any{"c": 1i}, ErrInvalid, []string{"complex"}},
		{"a cyclic map", cyclicMap(), ErrInvalid, []string{"cycle"}},
		{"a cyclic pointer", map[string]any{"r": cyclicPointer()}, ErrInvalid, []string{"cycle"}},
		{"NaN", map[string]any{"n": math.NaN()}, ErrInvalid, []string{"NaN"}},
		{"infinity", map[string]any{"n": math.Inf(-1)}, ErrInvalid, []string{"Inf"}},
		{"text that is not UTF-8", map[string]any{"n": badUTF8}, ErrInvalid, []string{"UTF-8"}},
		{"nested text that is not UTF-8", map[string]any{"n": []any{map[string]any{"deep": badUTF8}}}, ErrInvalid, []string{"UTF-8"}},
		{"a key that is not UTF-8", map[string]any{badUTF8: 1}, ErrInvalid, []string{"UTF-8"}},
		{"a byte too much", map[string]any{"n": strings.Repeat("x", MaxMetadata-len(`{"n":""}`)+1)}, ErrTooLarge, []string{"65537", "65536"}},
		{"a megabyte", map[string]any{"n": strings.Repeat("x", 1<<20)}, ErrTooLarge, []string{"65536"}},
		{"10,000 keys", manyKeys(10_000), ErrTooLarge, []string{"65536"}},
		{"65 levels", deep(65), ErrTooLarge, []string{"64"}},
		{"10,000 levels", deep(10_000), ErrTooLarge, []string{"64"}},
	} {
		add("AddMemory: metadata holds "+m.what, m.kind, "metadata", addingMetadata(m.value), m.says...)
		add("UpdateMemory: metadata holds "+m.what, m.kind, "metadata", patching(m.value), m.says...)
	}

	// vectors
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, v := range []struct {
		what  string
		value []float32
		says  []string
	}{
		{"NaN", []float32{1, nan, 0}, []string{"element 1", "NaN", "finite"}},
		{"infinity", []float32{1, 0, inf}, []string{"element 2", "Inf", "finite"}},
		{"another size", []float32{1, 0}, []string{"2 dimensions", "have 3", `"own"`}},
		{"no size", []float32{}, []string{"0 dimensions", "have 3"}},
	} {
		add("AddMemory: embedding of "+v.what, ErrInvalid, "embedding", adding(NewMemory{Collection: "own", Embedding: v.value}), v.says...)
		if v.what != "another size" && v.what != "no size" {
			add("UpdateMemory: embedding of "+v.what, ErrInvalid, "embedding", updating(UpdateMemory{Content: content("new"), Embedding: v.value}), v.says...)
			add("Search: embedding of "+v.what, ErrInvalid, "query_embedding", searching(Query{Vector: v.value}), v.says...)
		}
	}
	add("AddMemory: embedding where the embedder makes them", ErrInvalid, "embedding", adding(NewMemory{Embedding: make([]float32, 32)}), `"default"`, "words-1", "own_vectors")
	add("UpdateMemory: embedding without content", ErrInvalid, "embedding", updating(UpdateMemory{Embedding: make([]float32, 32)}), "content")
	add("Search: embedding of another size", ErrInvalid, "query_embedding", searching(Query{Collections: []string{"notes"}, Vector: []float32{1, 2, 3}}), "3 dimensions", "have 32")
	add("Search: embedding of another size than own", ErrInvalid, "query_embedding", searching(Query{Collections: []string{"own"}, Vector: []float32{1, 2}}), "2 dimensions", "have 3")

	// numbers
	add("AddMemory: similar -1", ErrInvalid, "Similar", adding(NewMemory{Similar: -1}), "-1", "0 to 20")
	add("AddMemory: similar 21", ErrInvalid, "Similar", adding(NewMemory{Similar: 21}), "21", "0 to 20")
	add("UpdateMemory: negative revision", ErrInvalid, "expected_revision", updating(UpdateMemory{ExpectedRevision: -1}), "-1")
	add("UpdateMemory: another revision", ErrConflict, "expected_revision", updating(UpdateMemory{ExpectedRevision: 7}), "7", "revision 1")
	add("UpdateMemory: huge revision", ErrConflict, "expected_revision", updating(UpdateMemory{ExpectedRevision: math.MaxInt}), fmt.Sprint(math.MaxInt))
	for _, number := range []int{0, -1, 2, 3, math.MaxInt, math.MinInt} {
		add(fmt.Sprint("RestoreRevision: ", number), nil, "revision", func(ctx context.Context, a attacked) error {
			_, err := a.RestoreRevision(ctx, a.former, number)
			return err
		}, fmt.Sprint(number), "revision 2 now")
	}
	for _, depth := range []int{0, -1, 11, math.MaxInt} {
		add(fmt.Sprint("RelatedMemories: depth ", depth), ErrInvalid, "depth", func(ctx context.Context, a attacked) error {
			_, err := a.RelatedMemories(ctx, a.id, depth)
			return err
		}, fmt.Sprint(depth), "1 to 10")
	}
	for _, limit := range []int{-1, 101, math.MaxInt, math.MinInt} {
		add(fmt.Sprint("Search: limit ", limit), ErrInvalid, "limit", searching(Query{Limit: limit}), fmt.Sprint(limit), "1 to 100")
	}
	for _, offset := range []int{-1, math.MaxInt, math.MinInt} {
		add(fmt.Sprint("Search: offset ", offset), ErrInvalid, "offset", searching(Query{Offset: offset}), fmt.Sprint(offset), "0 to")
	}

	// searches and listings
	add("Search: query too long", ErrTooLarge, "query", searching(Query{Text: strings.Repeat("x", MaxQuery+1)}), "65537", "65536")
	add("Search: query not UTF-8", ErrInvalid, "query", searching(Query{Text: badUTF8}), badUTF8Says...)
	add("Search: sort order", ErrInvalid, "sort_order", searching(Query{Sort: "newest"}), `"newest"`, `"relevance"`, `"created_at_desc"`)
	add("Search: classification", ErrInvalid, "classification", searching(Query{Classification: "maybe"}), `"maybe"`, `"do", "dont", "todo" or "notes"`)
	add("Search: tag not UTF-8", ErrInvalid, "tags", searching(Query{Tags: []string{badUTF8}}), "UTF-8")
	add("Search: 1,001 tags", ErrTooLarge, "tags", searching(Query{Tags: numbered(1001)}), "1001")
	add("Search: id and name disagree", ErrInvalid, "project_name", searching(Query{ProjectID: "kitchen", ProjectName: "Garage"}), `"Garage"`, `"kitchen"`)
	add("Memories: sort order relevance", ErrInvalid, "sort_order", listing(List{Sort: SortRelevance}), `"relevance"`, `"updated_at_asc"`)
	add("Memories: sort order", ErrInvalid, "sort_order", listing(List{Sort: "newest"}), `"newest"`, `"created_at_desc"`)
	add("Memories: tag not UTF-8", ErrInvalid, "tags", listing(List{Tags: []string{badUTF8}}), "UTF-8")
	add("Memories: filter", ErrInvalid, "filter", listing(List{Filter: Filter{"state": 7}}), "filter.state is 7", "string")

	// filters
	add("Search: filter by a function", ErrInvalid, "filter", filtering("a", func() {}), "func")
	add("Search: filter by a channel", ErrInvalid, "filter", filtering("a", make(chan int)), "chan")
	add("Search: filter by a cyclic map", ErrInvalid, "filter", filtering("a", cyclicMap()), `"self"`)
	add("Search: filter by a cyclic pointer", ErrInvalid, "filter", filtering("a", cyclicPointer()), "ring")
	add("Search: filter in a cycle", ErrInvalid, "filter", filtering("a", map[string]any{"in": []any{cyclicMap()}}), "map")
	add("Search: filter by a struct", ErrInvalid, "filter", filtering("a", struct{ A int }{1}), `{"A":1}`)
	add("Search: filter by an empty object", ErrInvalid, "filter", filtering("a", map[string]any{}), "filter.a", `"in"`)
	add("Search: filter by nothing", ErrInvalid, "filter", filtering("a", Condition{}), "filter.a")
	add("Search: filter operator", ErrInvalid, "filter", filtering("a", map[string]any{"$gt": 1}), `"$gt"`, `"gte"`)
	add("Search: filter in no list", ErrInvalid, "filter", filtering("a", map[string]any{"in": "x"}), "filter.a.in", `"x"`, "list")
	add("Search: filter all of no list", ErrInvalid, "filter", filtering("tags", map[string]any{"all": "x"}), "filter.tags.all", `"x"`, "list")
	for _, operator := range []string{"gte", "gt", "lte", "lt"} {
		add("Search: filter "+operator+" null", ErrInvalid, "filter", filtering("a", map[string]any{operator: nil, "in": []any{1}}), "filter.a."+operator, "null")
		add("Search: filter "+operator+" a list", ErrInvalid, "filter", filtering("a", map[string]any{operator: []any{1}}), "filter.a", "[1]")
	}
	add("Search: filter by a nested list", ErrInvalid, "filter", filtering("a", []any{[]any{1}}), "[1]")
	add("Search: filter by a list of bytes", ErrInvalid, "filter", filtering("a", []byte("x")), "filter.a")
	add("Search: filter by NaN", ErrInvalid, "filter", filtering("a", math.NaN()), "filter.a", "NaN")
	add("Search: filter text not UTF-8", ErrInvalid, "filter", filtering("a", badUTF8), "UTF-8")
	add("Search: filter known text not UTF-8", ErrInvalid, "filter", filtering("state", badUTF8), "UTF-8")
	add("Search: filter key not UTF-8", ErrInvalid, "filter", filtering(badUTF8, 1), "UTF-8")
	add("Search: filter by 1,001 values", ErrTooLarge, "filter", filtering("a", numbered(1001)), "filter.a", "1001", "1000")
	add("Search: filter by not 1,001 values", ErrTooLarge, "filter", filtering("a", Not(numbered(1001))), "filter.a", "1001", "1000")
	add("Search: filter by all of 1,001 values", ErrTooLarge, "filter", filtering("tags", All(numbered(1001)...)), "filter.tags", "1001", "64")
	add("Search: 33 filter keys", ErrTooLarge, "filter", searching(Query{Filter: manyKeys(33)}), "33", "32")
	for _, key := range []string{"event_type", "state", "importance", "classification", "rule_type", "project_id", "project_name", "collection_name", "tags", "related_memory_ids"} {
		add("Search: filter."+key+" is a number", ErrInvalid, "filter", filtering(key, 7), "filter."+key+" is 7", "string")
		add("Search: filter."+key+" is a bool", ErrInvalid, "filter", filtering(key, true), "filter."+key+" is true", "string")
	}
	for _, key := range []string{"created_at", "updated_at"} {
		for _, value := range []any{"yesterday", 7, true, "2026-13-01", ""} {
			add(fmt.Sprintf("Search: filter.%s is %v", key, value), ErrInvalid, "filter", filtering(key, value), "filter."+key+" is "+showJSON(value), "2026-03-01")
		}
	}
	return all
}

// idAttacks tries ids that lead nowhere on every method that takes one.
func idAttacks() []attack {
	methods := map[string]func(context.Context, attacked, string) error{
		"GetMemory":    func(ctx context.Context, a attacked, id string) error { _, err := a.GetMemory(ctx, id); return err },
		"DeleteMemory": func(ctx context.Context, a attacked, id string) error { return a.DeleteMemory(ctx, id) },
		"Revisions":    func(ctx context.Context, a attacked, id string) error { _, err := a.Revisions(ctx, id); return err },
		"RestoreRevision": func(ctx context.Context, a attacked, id string) error {
			_, err := a.RestoreRevision(ctx, id, 1)
			return err
		},
		"RelatedMemories": func(ctx context.Context, a attacked, id string) error {
			_, err := a.RelatedMemories(ctx, id, 2)
			return err
		},
		"UpdateMemory": func(ctx context.Context, a attacked, id string) error {
			_, err := a.UpdateMemory(ctx, id, UpdateMemory{Content: content("new"), ExpectedRevision: 99})
			return err
		},
	}
	ids := map[string]string{
		"empty": "", "unknown": "0190a5f2-0000-7000-8000-000000000000", "a quote": `' OR 1=1 --`, "not UTF-8": badUTF8,
		"a zero": "a\x00b", "a wildcard": "%", "huge": strings.Repeat("x", 1<<20),
	}
	var all []attack
	for method, do := range methods {
		for what, id := range ids {
			all = append(all, attack{method + ": id " + what, func(ctx context.Context, a attacked) error { return do(ctx, a, id) }, ErrNotFound, "id", []string{show(id)}})
		}
		all = append(all, attack{method + ": id of another", func(ctx context.Context, a attacked) error { return do(ctx, a, a.foreign) }, ErrNotFound, "id", nil})
	}
	return all
}

func TestBadArgumentsAreRefusedByNameAndChangeNothing(t *testing.T) {
	a := openAttacked(t)
	before := rowsOf(t, a.Store)
	all := append(attacks(), idAttacks()...)
	slices.SortFunc(all, func(x, y attack) int { return strings.Compare(x.name, y.name) })
	for _, attack := range all {
		t.Run(attack.name, func(t *testing.T) {
			err := attack.do(t.Context(), a)
			var known *Error
			if !errors.As(err, &known) {
				before = rowsOf(t, a.Store)
				t.Fatalf("answer is %v; an *Error is wanted", err)
			}
			kinds := []error{attack.kind}
			if attack.kind == nil { // which of these it is, is a matter of taste
				kinds = []error{ErrInvalid, ErrTooLarge, ErrNotFound}
			}
			if !slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) }) {
				t.Errorf("kind is %q, want one of %v: %v", known.Kind, kinds, shorten(err))
			}
			if known.Argument != attack.argument {
				t.Errorf("argument is %q, want %q: %v", known.Argument, attack.argument, shorten(err))
			}
			for _, part := range append(attack.says, attack.argument) {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("message does not contain %s: %v", part, shorten(err))
				}
			}
			if len(err.Error()) > 1000 {
				t.Errorf("message is %d bytes long: %v", len(err.Error()), shorten(err))
			}
			if strings.Contains(err.Error(), foreignWord) {
				t.Errorf("message tells of another user's data: %v", shorten(err))
			}
			if after := rowsOf(t, a.Store); after != before {
				t.Errorf("the refused call changed the store:\nbefore:\n%s\nafter:\n%s", before, after)
				before = after
			}
			if found, err := a.Search(t.Context(), Query{Text: "blue kettle", Limit: 1}); err != nil || len(found.Hits) != 1 || found.Hits[0].ID != a.id {
				t.Errorf("a search after it found %v, %v", found.Hits, err)
			}
		})
	}
	id := mustAdd(t, a.Store, NewMemory{Content: "a last word", Tags: []string{"last"}}).ID
	if found, err := a.Search(t.Context(), Query{Text: "last word", Limit: 1}); err != nil || len(found.Hits) != 1 || found.Hits[0].ID != id {
		t.Errorf("storing after all of it: found %v, %v", found.Hits, err)
	}
}

// shorten keeps a failure's output readable when the message is what is too long.
func shorten(err error) string {
	if message := err.Error(); len(message) > 500 {
		return message[:500] + "…"
	}
	return err.Error()
}

func TestBadOptionsAreRefusedByName(t *testing.T) {
	model := func(model string, size int) Options { return Options{Embedder: EmbedderFunc(model, size, nil)} }
	for _, c := range []struct {
		name, path string
		options    Options
		argument   string
		says       []string
	}{
		{"no path", "", Options{}, "path", []string{"empty"}},
		{"zero byte in the path", filepath.Join(t.TempDir(), "a\x00b"), Options{}, "path", []string{"zero byte"}},
		{"read-only in memory", ":memory:", Options{ReadOnly: true}, "ReadOnly", []string{":memory:"}},
		{"readers below zero", ":memory:", Options{Readers: -1}, "Readers", []string{"-1", "1000"}},
		{"too many readers", ":memory:", Options{Readers: 1001}, "Readers", []string{"1001", "1000"}},
		{"embedder without identity", ":memory:", model("", 3), "Embedder", []string{`""`}},
		{"embedder that says own", ":memory:", model(OwnVectors, 3), "Embedder", []string{`"own"`}},
		{"embedder of no dimensions", ":memory:", model("m", 0), "Embedder", []string{"0 dim", "16384"}},
		{"embedder below zero", ":memory:", model("m", -1), "Embedder", []string{"-1 dim", "16384"}},
		{"embedder of too many", ":memory:", model("m", 16385), "Embedder", []string{"16385", "16384"}},
		{"embedder of small texts", ":memory:", Options{Embedder: limitedEmbedder{wordEmbedder("m"), 199}}, "Embedder", []string{"199", "200"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Open(t.Context(), c.path, &c.options)
			if err == nil {
				s.Close()
				t.Fatal("it was opened")
			}
			var known *Error
			if !errors.As(err, &known) || !errors.Is(err, ErrInvalid) || known.Argument != c.argument {
				t.Errorf("error is %#v; want one of kind invalid about %s", err, c.argument)
			}
			for _, part := range append(c.says, c.argument) {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("message does not contain %s: %v", part, err)
				}
			}
		})
	}
}

type limitedEmbedder struct {
	Embedder
	most int
}

func (l limitedEmbedder) MaxInput() int { return l.most }

func TestWhatIsJustAllowedIsStoredAsItIs(t *testing.T) {
	s := openWords(t, ":memory:", Options{})
	mustAddCollection(t, s, NewCollection{Name: long(128), Description: long(4096)})
	mustAddCollection(t, s, NewCollection{Name: "widest", OwnVectors: true, VectorSize: 16384})
	linked := make([]NewMemory, MaxRelated)
	for i := range linked {
		linked[i].Content = fmt.Sprint("linked ", i)
	}
	stored, err := s.AddMemories(t.Context(), linked, nil)
	if err != nil {
		t.Fatal(err)
	}
	var related []string
	for _, m := range stored {
		related = append(related, m.ID)
	}
	tags := make([]string, MaxTags)
	for i := range tags {
		tags[i] = fmt.Sprint(long(MaxTag-2), 10+i)
	}
	for _, c := range []struct {
		name string
		m    NewMemory
	}{
		{"1 MiB", NewMemory{Content: strings.Repeat("é ", MaxContent/3) + "x"}},
		{"one byte", NewMemory{Content: "x"}},
		{"a space", NewMemory{Content: " "}},
		{"a zero byte", NewMemory{Content: "a\x00b", Metadata: map[string]any{"z\x00z": "a\x00b"}}},
		{"tags", NewMemory{Content: "tagged", Tags: tags}},
		{"links", NewMemory{Content: "linking", Related: related}},
		{"words", NewMemory{Content: "words", EventType: long(MaxWord), State: long(MaxWord)}},
		{"names", NewMemory{Content: "names", Collection: long(128), ProjectID: long(128), ProjectName: long(128)}},
		{"metadata", NewMemory{Content: "much is known", Metadata: map[string]any{"n": strings.Repeat("x", MaxMetadata-len(`{"n":""}`))}}},
		{"depth", NewMemory{Content: "deep", Metadata: deep(maxDepth)}},
		{"a vector", NewMemory{Content: "wide", Collection: "widest", Embedding: make([]float32, 16384)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			added, err := s.AddMemory(t.Context(), c.m)
			if err != nil {
				t.Fatal(shorten(err))
			}
			got, err := s.GetMemory(t.Context(), added.ID)
			if err != nil {
				t.Fatal(err)
			}
			if got.Content != c.m.Content || !slices.Equal(got.Tags, c.m.Tags) || !slices.Equal(got.Related, c.m.Related) ||
				got.EventType != c.m.EventType || got.State != c.m.State || got.ProjectID != c.m.ProjectID || got.ProjectName != c.m.ProjectName {
				t.Errorf("what is stored differs from what was given")
			}
			if c.m.Metadata != nil && !reflect.DeepEqual(got.Metadata, c.m.Metadata) {
				t.Errorf("metadata differs from what was given")
			}
			if !reflect.DeepEqual(got, added.Memory) {
				t.Errorf("GetMemory differs from what AddMemory returned")
			}
		})
	}
	checkConsistency(t, s)
}

func TestLargeFiltersAreAnsweredOrRefused(t *testing.T) {
	a := openAttacked(t)
	mustAdd(t, a.Store, NewMemory{Content: "wanted", Tags: []string{"n7"}, EventType: "n7", Metadata: map[string]any{"a": "n7", "list": numbered(1000)}})
	wide := func(keys, values int) Filter {
		f := Filter{}
		for i := range keys {
			f[fmt.Sprintf("key%d", i)] = Not(numbered(values))
		}
		return f
	}
	for _, c := range []struct {
		name  string
		query Query
		must  bool // it is within the limits, so it must be answered, and find the memory
	}{
		{"1,000 event types", Query{Filter: Filter{"event_type": numbered(1000)}}, true},
		{"1,000 tags in the filter", Query{Filter: Filter{"tags": numbered(1000)}}, true},
		{"1,000 tags", Query{Tags: numbered(1000)}, true},
		{"1,000 values of metadata", Query{Filter: Filter{"a": numbered(1000)}}, true},
		{"all of 64 values of metadata", Query{Filter: Filter{"list": All(numbered(64)...)}}, true},
		{"not 1,000 values", Query{Text: "wanted", Filter: Filter{"b": Not(numbered(1000))}}, true},
		{"32 keys", Query{Text: "wanted", Filter: wide(32, 10)}, true},
		{"32 keys of 1,000 values", Query{Text: "wanted", Filter: wide(32, 1000)}, false},
		{"no value at all", Query{Text: "wanted", Filter: Filter{"a": []any{}}}, false},
		{"empty but not nil", Query{Text: "wanted", Filter: Filter{}, Tags: []string{}, Collections: []string{}, Vector: []float32{}}, false},
		{"the furthest offset", Query{Text: "wanted", Offset: maxOffset, Limit: MaxLimit}, false},
		{"the furthest offset by time", Query{Offset: maxOffset, Limit: MaxLimit}, false},
		{"one collection 40,000 times", Query{Text: "wanted", Collections: slices.Repeat([]string{"default"}, 40_000)}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, err := a.Search(t.Context(), c.query)
			if err != nil && (c.must || !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrTooLarge)) {
				t.Fatal(shorten(err))
			}
			if c.must && (len(found.Hits) == 0 || found.Hits[0].Content != "wanted") {
				t.Errorf("found %d memories, not the one that fits", len(found.Hits))
			}
		})
	}
	t.Run("a view of 40,000 projects", func(t *testing.T) {
		view := a.As(Access{Projects: append(numbered(40_000), "kitchen")})
		found, err := view.Search(t.Context(), Query{Text: "kettle"})
		if err != nil && !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrTooLarge) {
			t.Fatal(shorten(err))
		}
		if err == nil && len(found.Hits) != 1 {
			t.Errorf("found %d memories", len(found.Hits))
		}
	})
}

func TestNoSearchWordsAndNoMemories(t *testing.T) {
	a := openAttacked(t)
	for _, text := range []string{"", " ", "\n\t", "\x00", "\u00a0", "\u200b", "?!", "the"} {
		if _, err := a.Search(t.Context(), Query{Text: text}); err != nil {
			t.Errorf("search for %q: %v", text, err)
		}
	}
	before := rowsOf(t, a.Store)
	for _, none := range [][]NewMemory{nil, {}} {
		added, err := a.AddMemories(t.Context(), none, nil)
		if err != nil || len(added) != 0 {
			t.Errorf("adding nothing: %v, %v", added, err)
		}
	}
	unchanged, err := a.UpdateMemory(t.Context(), a.id, UpdateMemory{Metadata: map[string]any{}})
	if err != nil || unchanged.Revision != 1 {
		t.Errorf("an empty patch: revision %d, %v", unchanged.Revision, err)
	}
	if rowsOf(t, a.Store) != before {
		t.Error("doing nothing changed the store")
	}
}

func TestOneBadMemoryOfManyIsNamedAndNoneIsStored(t *testing.T) {
	a := openAttacked(t)
	before := rowsOf(t, a.Store)
	for _, bad := range []NewMemory{{}, {Content: "x", Collection: "nowhere"}, {Content: "x", Related: []string{"nowhere"}}, {Content: "x", Embedding: []float32{1}}} {
		many := slices.Repeat([]NewMemory{{Content: "good", ProjectName: "New", Tags: []string{"new"}}}, 1500)
		many[1234] = bad
		_, err := a.AddMemories(t.Context(), many, nil)
		if err == nil || !strings.HasPrefix(err.Error(), "memories[1234]: ") {
			t.Errorf("error is %v", err)
		}
		if rowsOf(t, a.Store) != before {
			t.Fatal("a part of the memories was stored")
		}
	}
}

func TestArgumentsStayTheCallers(t *testing.T) {
	s := openWords(t, ":memory:", Options{})
	first := mustAdd(t, s, NewMemory{Content: "first"})
	given := func() NewMemory {
		return NewMemory{
			Content: "mine", Tags: []string{" padded ", "b", "b"}, Related: []string{first.ID, first.ID},
			Metadata: map[string]any{"list": []any{"a", map[string]any{"k": 1.0}}, "n": 7},
		}
	}
	m := given()
	added := mustAdd(t, s, m)
	if !reflect.DeepEqual(m, given()) {
		t.Errorf("AddMemory changed its argument: %+v", m)
	}
	m.Metadata["list"].([]any)[0] = "changed"
	m.Tags[1] = "changed"
	added.Tags[0], added.Metadata["n"] = "changed", "changed"
	got, err := s.GetMemory(t.Context(), added.ID)
	if err != nil || !slices.Equal(got.Tags, []string{"padded", "b"}) || got.Metadata["n"] != 7.0 || got.Metadata["list"].([]any)[0] != "a" {
		t.Errorf("what the caller did to its own later is seen in the store: %+v, %v", got, err)
	}

	patch := map[string]any{"tags": []any{" c "}, "sub": map[string]any{"x": nil, "y": []any{1.0}}}
	if _, err := s.UpdateMemory(t.Context(), added.ID, UpdateMemory{Metadata: patch}); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(patch, map[string]any{"tags": []any{" c "}, "sub": map[string]any{"x": nil, "y": []any{1.0}}}) {
		t.Errorf("UpdateMemory changed its argument: %v", patch)
	}

	q := Query{Text: "mine", Vector: append(make([]float32, wordSize-1), 5), Tags: []string{"c", " b "}, Filter: Filter{"n": []any{7, "x"}}, Collections: []string{"default"}}
	copied := Query{Text: "mine", Vector: append(make([]float32, wordSize-1), 5), Tags: []string{"c", " b "}, Filter: Filter{"n": []any{7, "x"}}, Collections: []string{"default"}}
	if _, err := s.Search(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(q, copied) {
		t.Errorf("Search changed its argument: %+v", q)
	}
}

func TestFiltersTakeWhatMetadataTakes(t *testing.T) {
	s := openWords(t, ":memory:", Options{})
	at := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	for _, value := range []any{1, int8(1), int16(1), int32(1), int64(1), uint(1), uint8(1), uint16(1), uint32(1), uint64(1), float32(0.1), 0.1, json.Number("7"), true, "x", ImportanceHigh, at} {
		id := mustAdd(t, s, NewMemory{Content: "known by its value", Metadata: map[string]any{"v": value}}).ID
		for _, demand := range []any{value, In(value), Between(value, value)} {
			found, err := s.Search(t.Context(), Query{Filter: Filter{"v": demand}})
			if err != nil || len(found.Hits) != 1 || found.Hits[0].ID != id {
				t.Errorf("stored with %T %v, a filter by %T finds %d: %v", value, value, demand, len(found.Hits), err)
			}
		}
		if err := s.DeleteMemory(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	mustAdd(t, s, NewMemory{Content: "one of several", Importance: ImportanceHigh, Metadata: map[string]any{"v": 2}})
	for _, f := range []Filter{{"v": []int{1, 2}}, {"v": []float64{2}}, {"importance": []Importance{ImportanceHigh}}} {
		if found, err := s.Search(t.Context(), Query{Filter: f}); err != nil || len(found.Hits) != 1 {
			t.Errorf("a filter by %v finds %d: %v", f, len(found.Hits), err)
		}
	}
}
