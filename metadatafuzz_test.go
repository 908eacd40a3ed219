package souvenir

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/kernel"
)

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
			return // these have rules of their own
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
			if err := s.DeleteMemory(ctx, added.ID); err != nil {
				t.Fatal(err)
			}
		}()
		want := maps.Clone(metadata)
		for _, key := range kernel.KnownKeys {
			if want[key] == nil { // null means "not set" for these; elsewhere it is a value
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
				t.Fatalf("a refused patch changed the memory: %+v, %v, want no error and read %v", again, err, again)
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

// plainMerge is MergePatch of RFC 7396, section 2, word by word.
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

// normal is how known keys are shown: empty ones are not, and tags are trimmed and without repetition.
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
