package dashboard_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/server/internal/dashboard/memories"
)

// applied applies a merge patch of RFC 7396 to an object.
func applied(target, patch any) any {
	object, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	merged, _ := target.(map[string]any)
	result := map[string]any{}
	for key, value := range merged {
		result[key] = value
	}
	for key, value := range object {
		if value == nil {
			delete(result, key)
		} else {
			result[key] = applied(result[key], value)
		}
	}
	return result
}

func TestMetadataPatchesProduceTheTypedText(t *testing.T) {
	objects := []string{`{}`, `{"a":1}`, `{"a":{}}`, `{"a":{"b":1}}`, `{"a":{"b":{"c":[1,null]}}}`, `{"a":[],"b":{}}`,
		`{"a":"x","b":{"a":{}}}`, `{"b":{"a":{"x":1},"y":2}}`, `{"a":9007199254740993}`, `{"a":null}`}
	for _, from := range objects {
		for _, to := range objects {
			before, err := memories.ParseMetadata(from)
			if err != nil {
				t.Fatal(err)
			}
			after, err := memories.ParseMetadata(to)
			if err != nil {
				t.Fatal(err)
			}
			patch, err := memories.MetadataPatch("metadata", before, after)
			if (err != nil) != (to == `{"a":null}` && from != to) {
				t.Errorf("%s to %s: got %v, want an error only for a value that becomes null", from, to, err)
			}
			if err != nil {
				continue
			}
			if got := applied(before, patch); !reflect.DeepEqual(got, any(after)) {
				encoded, err := json.Marshal(patch)
				t.Errorf("%s to %s: the patch %s (%v) makes %v, want %v", from, to, encoded, err, got, after)
			}
			if from == to && len(patch) > 0 {
				t.Errorf("%s changes by %v, want patch empty", from, patch)
			}
		}
	}
}

func TestTitlesOfTexts(t *testing.T) {
	for content, want := range map[string]string{
		"# How it works\n\ntext": "How it works", "\n\n - **first** `thing`": "first thing", "plain": "plain",
		"": "An empty memory", "\n#\n---\n": "An empty memory",
		"a\tb\x01c": "a b c", strings.Repeat("é", 100): strings.Repeat("é", 80) + "…", "> quoted": "quoted",
		"***": "An empty memory",
	} {
		if got := memories.Title(content); got != want {
			t.Errorf("%q has the title %q, want %q", content, got, want)
		}
	}
}
