package souvenir

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// These tests pass every argument of every method a value that it must refuse. The error must be typed and name the
// argument, its value and what is allowed; the call must have no effect.

// foreignWord is in everything that another user stores here, and never in an attack.
const foreignWord = "zqxvault"

// attacked is a store with data of the local user and of alice.
type attacked struct {
	store   *Store
	id      string // a memory of the local user
	former  string // another one, with two revisions
	foreign string // a memory of alice
}

func openAttacked(t *testing.T) attacked {
	s := openWords(t, "", Options{})
	mustAddCollection(t, s, NewCollection{Name: "notes"})
	mustAddCollection(t, s, NewCollection{Name: "own", OwnVectors: true, VectorSize: 3})
	mustAdd(t, s, NewMemory{Collection: "own", Content: "a vector of mine", Embedding: []float32{1, 0, 0}})
	a := attacked{store: s}
	a.id = mustAdd(t, s, NewMemory{Collection: "notes", Content: "the kettle is blue", ProjectID: "kitchen",
		ProjectName: "The Kitchen", Tags: []string{"home"}}).ID
	a.former = mustAdd(t, s, NewMemory{Content: "the cup is red"}).ID
	content := "the cup is green"
	if _, err := s.UpdateMemory(t.Context(), a.former, MemoryUpdate{Content: &content}); err != nil {
		t.Fatal(err)
	}
	alice := s.As(Access{User: "alice-" + foreignWord})
	mustAddCollection(t, alice, NewCollection{Name: foreignWord + "-garden", Description: foreignWord})
	a.foreign = mustAdd(t, alice, NewMemory{
		Collection: foreignWord + "-garden", Content: "the kettle of " + foreignWord, ProjectName: foreignWord,
		Tags: []string{foreignWord}, ShownMetadata: map[string]any{foreignWord: foreignWord},
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
	return func(ctx context.Context, a attacked) error { _, err := a.store.AddMemory(ctx, m); return err }
}

func addingContent(content string) func(context.Context, attacked) error {
	return func(ctx context.Context, a attacked) error {
		_, err := a.store.AddMemory(ctx, NewMemory{Content: content})
		return err
	}
}

func addingMetadata(metadata map[string]any) func(context.Context, attacked) error {
	return adding(NewMemory{ShownMetadata: metadata})
}

func patching(metadata map[string]any) func(context.Context, attacked) error {
	return updating(MemoryUpdate{ShownMetadata: metadata})
}

func updating(u MemoryUpdate) func(context.Context, attacked) error {
	return func(ctx context.Context, a attacked) error { _, err := a.store.UpdateMemory(ctx, a.id, u); return err }
}

func addingCollection(c NewCollection) func(context.Context, attacked) error {
	return func(ctx context.Context, a attacked) error { _, err := a.store.AddCollection(ctx, c); return err }
}

func searching(q Query) func(context.Context, attacked) error {
	return func(ctx context.Context, a attacked) error { _, err := a.store.Search(ctx, q); return err }
}

func filtering(key string, value any) func(context.Context, attacked) error {
	return searching(Query{Text: "kettle", Filter: Filter{key: value}})
}

func listing(l MemoryList) func(context.Context, attacked) error {
	return func(ctx context.Context, a attacked) error {
		for _, err := range a.store.Memories(ctx, l) {
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

// adder adds one attack.
type adder func(name string, kind error, argument string, do func(context.Context, attacked) error, says ...string)

// attacks returns all attacks but those on ids, which idAttacks returns.
func attacks() []attack {
	var all []attack
	for _, on := range []func(adder){
		nameAttacks, collectionAttacks, contentAttacks, knownKeyAttacks,
		tagAttacks, metadataAttacks, vectorAttacks, numberAttacks,
		pageAttacks, searchAttacks, filterAttacks,
	} {
		on(func(name string, kind error, argument string, do func(context.Context, attacked) error, says ...string) {
			all = append(all, attack{name, do, kind, argument, says})
		})
	}
	return all
}

func TestBadArgumentsAreRefusedByNameAndChangeNothing(t *testing.T) {
	a := openAttacked(t)
	before := rowsOf(t, a.store)
	all := append(attacks(), idAttacks()...)
	slices.SortFunc(all, func(x, y attack) int { return strings.Compare(x.name, y.name) })
	for i, attack := range all {
		if !longtest.Part(i, 1, 4) {
			continue
		}
		t.Run(attack.name, func(t *testing.T) {
			err := attack.do(t.Context(), a)
			var known *Error
			if !errors.As(err, &known) {
				before = rowsOf(t, a.store)
				t.Fatalf("answer is %v; an *Error is wanted", err)
			}
			kinds := []error{attack.kind}
			if attack.kind == nil { // any of these kinds will do
				kinds = []error{ErrInvalid, ErrTooLarge, ErrNotFound}
			}
			if !slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) }) {
				t.Errorf("kind is %q, want one of %v: %v", known.Kind, kinds, brief(err))
			}
			if known.Argument != attack.argument {
				t.Errorf("argument is %q, want %q: %v", known.Argument, attack.argument, brief(err))
			}
			for _, part := range append(attack.says, attack.argument) {
				if !strings.Contains(known.Message, part) {
					t.Errorf("got the message %s, want one that contains %s", known.Message, part)
				}
			}
			if known.Field == "" || strings.HasPrefix(known.Message, known.Argument) &&
				!strings.HasPrefix(err.Error(), known.Field) {
				t.Errorf("got %v with the field %q, want a message that begins with the field", brief(err), known.Field)
			}
			if len(err.Error()) > 1000 {
				t.Errorf("got a message of %d bytes, want at most 1000: %v", len(err.Error()), brief(err))
			}
			if strings.Contains(err.Error(), foreignWord) {
				t.Errorf("the message contains another user's data: %v, want no %q in the error", brief(err), foreignWord)
			}
			if after := rowsOf(t, a.store); after != before {
				t.Errorf("the refused call changed the store:\nbefore:\n%s\nafter, want no change:\n%s", before, after)
				before = after
			}
			found, err := a.store.Search(t.Context(), Query{Text: "blue kettle", Limit: 1})
			if err != nil || len(found.Hits) != 1 || found.Hits[0].ID != a.id {
				t.Errorf("a search after it found %v, %v, want no error, 1 hit and ID %v", found.Hits, err, a.id)
			}
		})
	}
	id := mustAdd(t, a.store, NewMemory{Content: "a last word", Tags: []string{"last"}}).ID
	if found, err := a.store.Search(t.Context(), Query{Text: "last word", Limit: 1}); err != nil || len(found.Hits) != 1 ||
		found.Hits[0].ID != id {
		t.Errorf("storing after all of it: found %v, %v, want no error, 1 hit and ID %v", found.Hits, err, id)
	}
}

// brief shortens an error whose message is too long to read.
func brief(err error) string {
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
		{"embedder of small texts", ":memory:", Options{Embedder: limitedEmbedder{wordEmbedder("m"), 199}}, "Embedder",
			[]string{"199", "200"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Open(t.Context(), c.path, &c.options)
			if err == nil {
				s.Close()
				t.Fatal("it was opened, want an error")
			}
			var known *Error
			if !errors.As(err, &known) || !errors.Is(err, ErrInvalid) || known.Argument != c.argument {
				t.Errorf("error is %#v; want one of kind invalid about %s", err, c.argument)
			}
			for _, part := range append(c.says, c.argument) {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("got the error %v, want one that contains %s", err, part)
				}
			}
		})
	}
}

// nameAttacks are attacks on the names of collections, projects and users.
func nameAttacks(add adder) {
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
		{"control character", "a\x01b", ErrInvalid, []string{"U+0001"}},
		{"line break", "a\nb", ErrInvalid, []string{"U+000A"}},
	} {
		add("AddCollection: collection name "+name.what, name.kind, "collection_name",
			addingCollection(NewCollection{Name: name.value}), name.says...)
		for method, do := range map[string]func(context.Context, attacked) error{
			"GetCollection": func(ctx context.Context, a attacked) error {
				_,
					err := a.store.GetCollection(ctx, name.value)
				return err
			},
			"UpdateCollection": func(ctx context.Context, a attacked) error {
				_, err := a.store.UpdateCollection(ctx, name.value, CollectionUpdate{Description: content("described")})
				return err
			},
			"DeleteCollection": func(ctx context.Context, a attacked) error {
				return a.store.DeleteCollection(ctx, name.value, &DeletionOptions{WithMemories: true})
			},
			"Search":   searching(Query{Collections: []string{"notes", name.value}}),
			"Memories": listing(MemoryList{Collections: []string{name.value}}),
			"Tags": func(ctx context.Context, a attacked) error {
				_, err := a.store.Insights().Tags(ctx, name.value)
				return err
			},
		} { // "not found" is also a valid answer
			add(method+": collection name "+name.what, nil, "collection_name", do)
		}
		if name.value != "" { // which stands for the default
			add("AddMemory: collection name "+name.what, name.kind, "collection_name", adding(NewMemory{Collection: name.value}),
				name.says...)
			add("AddMemory: project id "+name.what, name.kind, "project_id", adding(NewMemory{ProjectID: name.value}),
				name.says...)
			add("AddMemory: project name "+name.what, name.kind, "project_name", adding(NewMemory{ProjectName: name.value}),
				name.says...)
			if name.what != "invalid UTF-8" && name.what != "huge" { // refused as metadata before the name is checked
				add("UpdateMemory: project id "+name.what, name.kind, "project_id",
					patching(map[string]any{"project_id": name.value}), name.says...)
			}
			add("AddMemory: user "+name.what, name.kind, "user", func(ctx context.Context, a attacked) error {
				_, err := a.store.As(Access{User: name.value}).AddMemory(ctx, NewMemory{Content: "a tea pot"})
				return err
			}, name.says...)
		}
	}
}

// collectionAttacks are attacks on collections.
func collectionAttacks(add adder) {
	add("AddCollection: again", ErrConflict, "collection_name", addingCollection(NewCollection{Name: "notes"}), `"notes"`,
		"exists")
	add("AddCollection: description too long", ErrTooLarge, "description",
		addingCollection(NewCollection{Name: "n", Description: long(4097)}), "4097", "4096")
	add("AddCollection: description not UTF-8", ErrInvalid, "description",
		addingCollection(NewCollection{Name: "n", Description: badUTF8}), badUTF8Says...)
	add("AddCollection: negative size", ErrInvalid, "vector_size",
		addingCollection(NewCollection{Name: "n", VectorSize: -1}), "-1", "16384")
	add("AddCollection: huge size", ErrInvalid, "vector_size",
		addingCollection(NewCollection{Name: "n", VectorSize: 16385, OwnVectors: true}), "16385", "16384")
	add("AddCollection: another size", ErrInvalid, "vector_size",
		addingCollection(NewCollection{Name: "n", VectorSize: 31}), "31", "32", "words-1")
	add("AddCollection: own vectors of no size", ErrInvalid, "vector_size",
		addingCollection(NewCollection{Name: "n", OwnVectors: true}), "missing")
	add("UpdateCollection: description too long", ErrTooLarge, "description", func(ctx context.Context, a attacked) error {
		_, err := a.store.UpdateCollection(ctx, "notes", CollectionUpdate{Description: content(long(4097))})
		return err
	}, "4097", "4096")
	add("UpdateCollection: description not UTF-8", ErrInvalid, "description", func(ctx context.Context, a attacked) error {
		_, err := a.store.UpdateCollection(ctx, "notes", CollectionUpdate{Description: content(badUTF8)})
		return err
	}, badUTF8Says...)
	add("DeleteCollection: not empty", ErrConflict, "collection_name", func(ctx context.Context, a attacked) error {
		return a.store.DeleteCollection(ctx, "notes", nil)
	}, `"notes"`, "1 mem", "together")
	for method, do := range map[string]func(context.Context, attacked, string) error{
		"GetCollection": func(ctx context.Context, a attacked, name string) error {
			_, err := a.store.GetCollection(ctx, name)
			return err
		},
		"UpdateCollection": func(ctx context.Context, a attacked, name string) error {
			_, err := a.store.UpdateCollection(ctx, name, CollectionUpdate{})
			return err
		},
		"DeleteCollection": func(ctx context.Context, a attacked, name string) error {
			return a.store.DeleteCollection(ctx, name, &DeletionOptions{WithMemories: true})
		},
		"AddMemory": func(ctx context.Context, a attacked, name string) error {
			return adding(NewMemory{Collection: name})(ctx, a)
		},
		"Search": func(ctx context.Context, a attacked, name string) error {
			return searching(Query{Collections: []string{name}})(ctx, a)
		},
		"Memories": func(ctx context.Context, a attacked, name string) error {
			return listing(MemoryList{Collections: []string{name}})(ctx, a)
		},
		"Tags": func(ctx context.Context, a attacked, name string) error {
			_, err := a.store.Insights().Tags(ctx, name)
			return err
		},
	} {
		add(method+": unknown collection", ErrNotFound, "collection_name",
			func(ctx context.Context, a attacked) error { return do(ctx, a, "notess") }, `"notess"`, `"notes"`,
			"create_collection")
		add(method+": collection of another", ErrNotFound, "collection_name", // one letter away, so no hint may name it
			func(ctx context.Context, a attacked) error { return do(ctx, a, "zqxvaul-garden") }, `"zqxvaul-garden"`)
	}
}
