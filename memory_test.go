package souvenir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// contentAttacks are attacks on the text of memories.
func contentAttacks(add adder) {
	tooMuch := strings.Repeat("x", MaxContent+1)
	add("AddMemory: no content", ErrInvalid, "content", addingContent(""), "empty", "1048576")
	add("AddMemory: a byte too much", ErrTooLarge, "content", addingContent(tooMuch), "1048577", "1048576")
	add("AddMemory: content not UTF-8", ErrInvalid, "content", addingContent(badUTF8), badUTF8Says...)
	add("UpdateMemory: no content", ErrInvalid, "content", updating(MemoryUpdate{Content: content("")}), "empty",
		"1048576")
	add("UpdateMemory: a byte too much", ErrTooLarge, "content", updating(MemoryUpdate{Content: &tooMuch}), "1048577",
		"1048576")
	add("UpdateMemory: content not UTF-8", ErrInvalid, "content", updating(MemoryUpdate{Content: content(badUTF8)}),
		badUTF8Says...)
}

// knownKeyAttacks are attacks on the known keys of metadata.
func knownKeyAttacks(add adder) {
	add("AddMemory: importance", ErrInvalid, "importance", adding(NewMemory{Importance: "urgent"}), `"urgent"`,
		`"low", "medium", "high" or "critical"`)
	add("AddMemory: classification", ErrInvalid, "classification", adding(NewMemory{Classification: "Do"}), `"Do"`,
		`"do", "dont", "todo" or "notes"`)
	add("AddMemory: rule type", ErrInvalid, "rule_type", adding(NewMemory{RuleType: "never", EventType: EventProjectRule}),
		`"never"`, `"do", "dont" or "todo"`)
	add("AddMemory: rule type on no rule", ErrInvalid, "rule_type",
		adding(NewMemory{RuleType: RuleDo, EventType: "decision"}), `"do"`, `"decision"`, `"project-rule"`)
	add("AddMemory: id and name disagree", ErrInvalid, "project_name",
		adding(NewMemory{ProjectID: "kitchen", ProjectName: "Garage"}), `"Garage"`, `"kitchen"`, `"The Kitchen"`)
	add("AddMemory: slash in a new project's id", ErrInvalid, "project_id", adding(NewMemory{ProjectID: "unknown/thing"}),
		`"unknown/thing"`, "slash")
	for key, allowed := range map[string]string{"event_type": "64", "state": "64"} {
		for _, method := range []struct {
			name string
			with func(map[string]any) func(context.Context, attacked) error
		}{{"AddMemory", addingMetadata}, {"UpdateMemory", patching}} {
			add(method.name+": metadata."+key+" too long", ErrTooLarge, key, method.with(map[string]any{key: long(65)}), "65",
				allowed)
			add(method.name+": metadata."+key+" with a control character", ErrInvalid, key,
				method.with(map[string]any{key: "a\x07b"}), "U+0007")
			add(method.name+": metadata."+key+" blank", ErrInvalid, key, method.with(map[string]any{key: "  "}), `"  "`)
		}
	}
	add("AddMemory: event type not UTF-8", ErrInvalid, "event_type", adding(NewMemory{EventType: badUTF8}), badUTF8Says...)
	add("AddMemory: state not UTF-8", ErrInvalid, "state", adding(NewMemory{State: badUTF8}), badUTF8Says...)
	add("AddMemory: event type too long", ErrTooLarge, "event_type", adding(NewMemory{EventType: long(65)}), "65", "64")
	for _, key := range []string{"event_type", "state", "project_id", "project_name", "importance", "classification",
		"rule_type"} {
		for _, value := range []any{7, true, []string{"a"}, map[string]any{"a": 1}} {
			says := []string{jsonobject.Show(value), "string"}
			add(fmt.Sprintf("AddMemory: metadata.%s is a %T", key, value), ErrInvalid, key,
				addingMetadata(map[string]any{key: value}), says...)
			add(fmt.Sprintf("UpdateMemory: metadata.%s is a %T", key, value), ErrInvalid, key,
				patching(map[string]any{key: value}), says...)
		}
	}
	for key, value := range map[string]string{"importance": "urgent", "classification": "maybe"} {
		add("AddMemory: metadata."+key, ErrInvalid, key, addingMetadata(map[string]any{key: value}), value, "expected")
		add("UpdateMemory: metadata."+key, ErrInvalid, key, patching(map[string]any{key: value}), value, "expected")
	}
	for _, key := range []string{"tags", "related_memory_ids"} {
		add("AddMemory: metadata."+key+" is a string", ErrInvalid, key, addingMetadata(map[string]any{key: "a, b"}), `"a, b"`,
			"list of strings")
		add("UpdateMemory: metadata."+key+" is a string", ErrInvalid, key, patching(map[string]any{key: "a, b"}), `"a, b"`,
			"list of strings")
		add("AddMemory: metadata."+key+" holds a number", ErrInvalid, key, addingMetadata(map[string]any{key: []any{"a", 7}}),
			key+"[1] is 7", "string")
	}
}

// tagAttacks are attacks on tags and links.
func tagAttacks(add adder) {
	add("AddMemory: 65 tags", ErrTooLarge, "tags", adding(NewMemory{Tags: numbered(65)}), "65", "64")
	add("UpdateMemory: 65 tags", ErrTooLarge, "tags", patching(map[string]any{"tags": numbered(65)}), "65", "64")
	add("AddMemory: empty tag", ErrInvalid, "tags", adding(NewMemory{Tags: []string{"a", " "}}), `tags[1] is " "`,
		"1 to 128")
	add("AddMemory: long tag", nil, "tags", adding(NewMemory{Tags: []string{long(129)}}), "tags[0]", "ää", "128")
	add("AddMemory: tag not UTF-8", ErrInvalid, "tags", adding(NewMemory{Tags: []string{badUTF8}}), badUTF8Says...)
	add("AddMemory: tag with a control character", ErrInvalid, "tags", adding(NewMemory{Tags: []string{"a\nb"}}),
		"tags[0]", "U+000A")
	add("AddMemory: 257 links", ErrTooLarge, "related_memory_ids", adding(NewMemory{Related: numbered(257)}), "257", "256")
	add("AddMemory: unknown link", ErrNotFound, "related_memory_ids", adding(NewMemory{Related: []string{"nowhere"}}),
		`related_memory_ids[0]: memory "nowhere" not found`)
	add("AddMemory: link not UTF-8", nil, "related_memory_ids", adding(NewMemory{Related: []string{badUTF8}}),
		`related_memory_ids`)
	add("AddMemory: link to another's memory", ErrNotFound, "related_memory_ids",
		func(ctx context.Context, a attacked) error {
			return adding(NewMemory{Related: []string{a.id, a.foreign}})(ctx, a)
		}, "related_memory_ids[1]")
	add("UpdateMemory: link to itself", ErrInvalid, "related_memory_ids", func(ctx context.Context, a attacked) error {
		return patching(map[string]any{"related_memory_ids": []string{a.id}})(ctx, a)
	}, "itself")
	add("UpdateMemory: link to another's memory", ErrNotFound, "related_memory_ids",
		func(ctx context.Context, a attacked) error {
			return patching(map[string]any{"related_memory_ids": []string{a.foreign}})(ctx, a)
		}, "related_memory_ids[0]")
}

// metadataAttacks are attacks on the values of metadata.
func metadataAttacks(add adder) {
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
		{"nested text that is not UTF-8", map[string]any{"n": []any{map[string]any{"deep": badUTF8}}}, ErrInvalid,
			[]string{"UTF-8"}},
		{"a key that is not UTF-8", map[string]any{badUTF8: 1}, ErrInvalid, []string{"UTF-8"}},
		{"a byte too much", map[string]any{"n": strings.Repeat("x", MaxMetadata-len(`{"n":""}`)+1)}, ErrTooLarge,
			[]string{"65537", "65536"}},
		{"a megabyte", map[string]any{"n": strings.Repeat("x", 1<<20)}, ErrTooLarge, []string{"65536"}},
		{"10,000 keys", manyKeys(10_000), ErrTooLarge, []string{"65536"}},
		{"65 levels", deep(65), ErrTooLarge, []string{"64"}},
		{"10,000 levels", deep(10_000), ErrTooLarge, []string{"64"}},
	} {
		add("AddMemory: metadata holds "+m.what, m.kind, "metadata", addingMetadata(m.value), m.says...)
		add("UpdateMemory: metadata holds "+m.what, m.kind, "metadata", patching(m.value), m.says...)
	}
}

// vectorAttacks are attacks on the vectors of callers.
func vectorAttacks(add adder) {
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
		add("AddMemory: embedding of "+v.what, ErrInvalid, "embedding",
			adding(NewMemory{Collection: "own", Embedding: v.value}), v.says...)
		if v.what != "another size" && v.what != "no size" {
			add("UpdateMemory: embedding of "+v.what, ErrInvalid, "embedding",
				updating(MemoryUpdate{Content: content("new"), Embedding: v.value}), v.says...)
			add("Search: embedding of "+v.what, ErrInvalid, "query_embedding", searching(Query{Vector: v.value}), v.says...)
		}
	}
	add("AddMemory: embedding where the embedder makes them", ErrInvalid, "embedding",
		adding(NewMemory{Embedding: make([]float32, 32)}), `"default"`, "words-1", "own_vectors")
	add("UpdateMemory: embedding without content", ErrInvalid, "embedding",
		updating(MemoryUpdate{Embedding: make([]float32, 32)}), "content")
	add("Search: embedding of another size", ErrInvalid, "query_embedding",
		searching(Query{Collections: []string{"notes"}, Vector: []float32{1, 2, 3}}), "3 dimensions", "have 32")
	add("Search: embedding of another size than own", ErrInvalid, "query_embedding",
		searching(Query{Collections: []string{"own"}, Vector: []float32{1, 2}}), "2 dimensions", "have 3")
}

// numberAttacks are attacks on numbers of memories.
func numberAttacks(add adder) {
	add("AddMemory: similar -1", ErrInvalid, "Similar", adding(NewMemory{Similar: -1}), "-1", "0 to 20")
	add("AddMemory: similar 21", ErrInvalid, "Similar", adding(NewMemory{Similar: 21}), "21", "0 to 20")
	add("UpdateMemory: negative revision", ErrInvalid, "expected_revision", updating(MemoryUpdate{ExpectedRevision: -1}),
		"-1")
	add("UpdateMemory: another revision", ErrConflict, "expected_revision", updating(MemoryUpdate{ExpectedRevision: 7}),
		"7", "revision 1")
	add("UpdateMemory: huge revision", ErrConflict, "expected_revision",
		updating(MemoryUpdate{ExpectedRevision: math.MaxInt}), fmt.Sprint(math.MaxInt))
	for _, number := range []int{0, -1, 2, 3, math.MaxInt, math.MinInt} {
		add(fmt.Sprint("RestoreRevision: ", number), nil, "revision", func(ctx context.Context, a attacked) error {
			_, err := a.store.RestoreRevision(ctx, a.former, number)
			return err
		}, fmt.Sprint(number), "revision 2 now")
	}
	for _, depth := range []int{0, -1, 11, math.MaxInt} {
		add(fmt.Sprint("RelatedMemories: depth ", depth), ErrInvalid, "depth", func(ctx context.Context, a attacked) error {
			_, err := a.store.RelatedMemories(ctx, a.id, depth)
			return err
		}, fmt.Sprint(depth), "1 to 10")
	}
}

// idAttacks passes unknown ids to every method that takes one.
func idAttacks() []attack {
	methods := map[string]func(context.Context, attacked, string) error{
		"GetMemory": func(ctx context.Context, a attacked, id string) error {
			_, err := a.store.GetMemory(ctx, id)
			return err
		},
		"DeleteMemory": func(ctx context.Context, a attacked, id string) error { return a.store.DeleteMemory(ctx, id, nil) },
		"MemoryStatus": func(ctx context.Context, a attacked, id string) error {
			_, err := a.store.Insights().MemoryStatus(ctx, id)
			return err
		},
		"erasing": func(ctx context.Context, a attacked, id string) error {
			return a.store.DeleteMemory(ctx, id, &DeletionOptions{Erase: true})
		},
		"Trash.Erase": func(ctx context.Context, a attacked, id string) error { return a.store.Trash().Erase(ctx, id) },
		"Trash.Restore": func(ctx context.Context, a attacked, id string) error {
			_, err := a.store.Trash().Restore(ctx, id)
			return err
		},
		"Revisions": func(ctx context.Context, a attacked, id string) error {
			_, err := a.store.Revisions(ctx, id)
			return err
		},
		"RevisionPage": func(ctx context.Context, a attacked, id string) error {
			_, err := a.store.Insights().RevisionPage(ctx, id, RevisionQuery{})
			return err
		},
		"RestoreRevision": func(ctx context.Context, a attacked, id string) error {
			_, err := a.store.RestoreRevision(ctx, id, 1)
			return err
		},
		"RelatedMemories": func(ctx context.Context, a attacked, id string) error {
			_, err := a.store.RelatedMemories(ctx, id, 2)
			return err
		},
		"UpdateMemory": func(ctx context.Context, a attacked, id string) error {
			_, err := a.store.UpdateMemory(ctx, id, MemoryUpdate{Content: content("new"), ExpectedRevision: 99})
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
			all = append(all, attack{method + ": id " + what,
				func(ctx context.Context, a attacked) error { return do(ctx, a, id) }, ErrNotFound, "id", []string{show(id)}})
		}
		all = append(all, attack{method + ": id of another",
			func(ctx context.Context, a attacked) error { return do(ctx, a, a.foreign) }, ErrNotFound, "id", nil})
	}
	return all
}

type limitedEmbedder struct {
	Embedder
	most int
}

func (l limitedEmbedder) MaxInput() int { return l.most }

func TestLargestAllowedValuesAreStored(t *testing.T) {
	longtest.Only(t)
	s := openWords(t, "", Options{})
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
		{"a control character", NewMemory{Content: "a\x01b", ShownMetadata: map[string]any{"z\x01z": "a\x01b"}}},
		{"tags", NewMemory{Content: "tagged", Tags: tags}},
		{"links", NewMemory{Content: "linking", Related: related}},
		{"words", NewMemory{Content: "words", EventType: long(MaxWord), State: long(MaxWord)}},
		{"names", NewMemory{Content: "names", Collection: long(128), ProjectID: long(128), ProjectName: long(128)}},
		{"metadata", NewMemory{Content: "much is known",
			ShownMetadata: map[string]any{"n": strings.Repeat("x", MaxMetadata-len(`{"n":""}`))}}},
		{"depth", NewMemory{Content: "deep", ShownMetadata: deep(valid.MaxDepth)}},
		{"a vector", NewMemory{Content: "wide", Collection: "widest", Embedding: make([]float32, 16384)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			added, err := s.AddMemory(t.Context(), c.m)
			if err != nil {
				t.Fatal(brief(err))
			}
			got, err := s.GetMemory(t.Context(), added.ID)
			if err != nil {
				t.Fatal(err)
			}
			if got.Content != c.m.Content || !slices.Equal(got.Tags, c.m.Tags) || !slices.Equal(got.Related, c.m.Related) ||
				got.EventType != c.m.EventType || got.State != c.m.State || got.ProjectID != c.m.ProjectID ||
				got.ProjectName != c.m.ProjectName {
				t.Errorf("stored: got %+v, want %+v", got, c.m)
			}
			if c.m.Metadata != nil && !reflect.DeepEqual(got.Metadata, c.m.Metadata) {
				t.Errorf("metadata: got %v, want %v", got.Metadata, c.m.Metadata)
			}
			if !reflect.DeepEqual(got, added.Memory) {
				t.Errorf("GetMemory differs from what AddMemory returned: got %v, want %v", got, added.Memory)
			}
		})
	}
	checkConsistency(t, s)
}

func TestOneBadMemoryOfManyIsNamedAndNoneIsStored(t *testing.T) {
	longtest.Only(t)
	a := openAttacked(t)
	before := rowsOf(t, a.store)
	for _, bad := range []NewMemory{{}, {Content: "x", Collection: "nowhere"},
		{Content: "x", Related: []string{"nowhere"}}, {Content: "x", Embedding: []float32{1}}} {
		many := slices.Repeat([]NewMemory{{Content: "good", ProjectName: "New", Tags: []string{"new"}}}, 1500)
		many[1234] = bad
		_, err := a.store.AddMemories(t.Context(), many, nil)
		if err == nil || !strings.HasPrefix(err.Error(), "memories[1234].") {
			t.Errorf("got the error %v, want one about memories[1234] and its field", err)
		}
		if rowsOf(t, a.store) != before {
			t.Fatal("a part of the memories was stored, want no change")
		}
	}
}

func TestArgumentsAreNotModified(t *testing.T) {
	s := openWords(t, "", Options{})
	first := mustAdd(t, s, NewMemory{Content: "first"})
	given := func() NewMemory {
		return NewMemory{
			Content: "mine", Tags: []string{" padded ", "b", "b"}, Related: []string{first.ID, first.ID},
			ShownMetadata: map[string]any{"list": []any{"a", map[string]any{"k": 1.0}}, "n": 7},
		}
	}
	m := given()
	added := mustAdd(t, s, m)
	if !reflect.DeepEqual(m, given()) {
		t.Errorf("AddMemory changed its argument: got %+v, want %+v", m, given())
	}
	m.ShownMetadata["list"].([]any)[0] = "changed"
	m.Tags[1] = "changed"
	added.Tags[0], added.Metadata["n"] = "changed", "changed"
	got, err := s.GetMemory(t.Context(), added.ID)
	if err != nil || !slices.Equal(got.Tags, []string{"padded", "b"}) || got.Metadata["n"] != 7.0 ||
		got.Metadata["list"].([]any)[0] != "a" {
		t.Errorf("what the caller did to its own later is seen in the store: %+v, %v, want it as it was given", got, err)
	}

	patch := map[string]any{"tags": []any{" c "}, "sub": map[string]any{"x": nil, "y": []any{1.0}}}
	if _, err := s.UpdateMemory(t.Context(), added.ID, MemoryUpdate{ShownMetadata: patch}); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(patch, map[string]any{"tags": []any{" c "}, "sub": map[string]any{"x": nil, "y": []any{1.0}}}) {
		t.Errorf("UpdateMemory changed its argument: got %v, want it unchanged", patch)
	}

	q := Query{Text: "mine", Vector: append(make([]float32, wordSize-1), 5), Tags: []string{"c", " b "},
		Filter: Filter{"n": []any{7, "x"}}, Collections: []string{"default"}}
	copied := Query{Text: "mine", Vector: append(make([]float32, wordSize-1), 5), Tags: []string{"c", " b "},
		Filter: Filter{"n": []any{7, "x"}}, Collections: []string{"default"}}
	if _, err := s.Search(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(q, copied) {
		t.Errorf("Search changed its argument: %+v; want %v", q, copied)
	}
}

func FuzzMetadataPatch(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"a":"b"}`, `{"a":"c"}`}, {`{"a":"b"}`, `{"b":"c"}`}, {`{"a":"b"}`, `{"a":null}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`}, {`{"a":["b"]}`, `{"a":"c"}`}, // RFC 7396, appendix A
		{`{"a":"c"}`, `{"a":["b"]}`}, {`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`}, {`{"a":[{"b":"c"}]}`, `{"a":[1]}`},
		{`{"e":null}`, `{"a":1}`}, {`{}`, `{"a":{"bb":{"ccc":null}}}`},
		{`{"tags":["a"," b "],"state":"active"}`, `{"tags":null,"state":""}`},
		{`{"importance":"high"}`, `{"importance":"urgent"}`}, {`{"n":1e400}`, `{"n":9007199254740993}`},
		{`{"n":1e-7,"m":-0,"k":100000000000000000000000}`, `{"n":{"deep":{"er":[null,{"x":null}]}}}`},
		{`{"\u0000":"\u0000","é":"\ud83d\ude00"}`, `{"\u0000":null}`},
		{`{"event_type":"x","tags":[]}`, `{"event_type":7}`}, {`{"a":1,"a":2}`, `{"":{"":{}}}`},
		{`{"a":{"b":{}}}`, `{"a":{"b":[]}}`},
	} {
		f.Add(seed[0], seed[1])
	}
	s := openWords(f, "", Options{})
	f.Fuzz(func(t *testing.T, original, patch string) {
		metadata, ok := exactObject(original)
		if !ok || strings.Contains(original+patch, "project_") || strings.Contains(original+patch, "rule_type") ||
			strings.Contains(original+patch, "related_memory_ids") || strings.Contains(original+patch, "custom") {
			return // these have their own rules
		}
		change, ok := exactObject(patch)
		if !ok {
			return
		}
		ctx := context.Background()
		added, err := s.AddMemory(ctx, NewMemory{Content: "x", ShownMetadata: metadata})
		if err != nil {
			mustBeRefusal(t, err)
			return
		}
		defer func() {
			if err := s.DeleteMemory(ctx, added.ID, nil); err != nil {
				t.Fatal(err)
			}
		}()
		want := maps.Clone(metadata)
		for _, key := range kernel.KnownKeys {
			if want[key] == nil { // for these, null means "not set"; elsewhere it is a value
				delete(want, key)
			}
		}
		want = normal(want)
		sameJSON(t, "stored", want, added.ShownMetadata())
		read, err := s.GetMemory(ctx, added.ID)
		if err != nil {
			t.Fatal(err)
		}
		sameJSON(t, "read", want, read.ShownMetadata())

		updated, err := s.UpdateMemory(ctx, added.ID, MemoryUpdate{ShownMetadata: change})
		if err != nil {
			mustBeRefusal(t, err)
			again, err := s.GetMemory(ctx, added.ID)
			if err != nil || !reflect.DeepEqual(read, again) {
				t.Fatalf("after a refused patch: %+v, %v, want no error and %v", again, err, read)
			}
			return
		}
		merged := normal(plainMerge(want, change).(map[string]any))
		sameJSON(t, "patched", merged, updated.ShownMetadata())
		if updated.Revision == 1 {
			sameJSON(t, "unchanged", want, merged)
			return
		}
		history, err := s.Revisions(ctx, added.ID)
		if err != nil || len(history) != 2 {
			t.Fatalf("history %v, %v; want a length of 2", history, err)
		}
		sameJSON(t, "present revision", merged, history[0].Metadata)
		sameJSON(t, "former revision", want, history[1].Metadata)
		restored, err := s.RestoreRevision(ctx, added.ID, 1)
		if err != nil {
			t.Fatal(err)
		}
		sameJSON(t, "restored", want, restored.ShownMetadata())
	})
}

func mustBeRefusal(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrTooLarge) {
		t.Fatalf("got %v, want ErrInvalid or ErrTooLarge", err)
	}
}

func exactObject(encoded string) (map[string]any, bool) {
	decoder := json.NewDecoder(strings.NewReader(encoded))
	decoder.UseNumber()
	var object map[string]any
	err := decoder.Decode(&object)
	return object, err == nil && object != nil
}

// plainMerge is MergePatch of RFC 7396, section 2, word for word.
func plainMerge(target, patch any) any {
	object, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	result := map[string]any{}
	if old, ok := target.(map[string]any); ok {
		for k, v := range old {
			result[k] = v
		}
	}
	for name, value := range object {
		if value == nil {
			delete(result, name)
		} else {
			result[name] = plainMerge(result[name], value)
		}
	}
	return result
}

// normal returns known keys as they are shown: without empty ones, and with tags trimmed and unique.
func normal(metadata map[string]any) map[string]any {
	for _, key := range []string{"event_type", "state", "importance", "classification"} {
		if metadata[key] == "" {
			delete(metadata, key)
		}
	}
	if tags, ok := metadata["tags"].([]any); ok {
		var kept []any
		for _, tag := range tags {
			if trimmed := strings.TrimSpace(tag.(string)); !slices.Contains(kept, any(trimmed)) {
				kept = append(kept, trimmed)
			}
		}
		metadata["tags"] = kept
		if len(kept) == 0 {
			delete(metadata, "tags")
		}
	}
	return metadata
}

func sameJSON(t *testing.T, what string, want, got any) {
	t.Helper()
	a, b := toJSON(t, want), toJSON(t, got)
	if !equalJSON(a, b) {
		t.Fatalf("%s: %v, want %v", what, b, a)
	}
}

func toJSON(t *testing.T, v any) any {
	t.Helper()
	encoded, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	object, ok := exactObject(string(encoded))
	if !ok {
		t.Fatalf("got %s, want an object", encoded)
	}
	return object
}

func equalJSON(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for k, v := range x {
			if other, ok := y[k]; !ok || !equalJSON(v, other) {
				return false
			}
		}
		return true
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, equalJSON)
	case json.Number:
		y, ok := b.(json.Number)
		return ok && (x == y || sameNumber(x, y))
	}
	return a == b
}

func sameNumber(x, y json.Number) bool {
	a, _, errA := big.ParseFloat(x.String(), 10, 8000, big.ToNearestEven)
	b, _, errB := big.ParseFloat(y.String(), 10, 8000, big.ToNearestEven)
	return errA == nil && errB == nil && a.Cmp(b) == 0
}
