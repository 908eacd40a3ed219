package tools_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/storetest"
	"github.com/souvenir-ai/souvenir/tools"
)

// FuzzCall calls any tool with any bytes. The result is a JSON object or a typed error, never a panic.
func FuzzCall(f *testing.F) {
	for _, seed := range []struct{ tool, args string }{
		{"create_collection", `{"collection_name": "a", "vector_size": "3", "own_vectors": "true"}`},
		{"list_collections", `null`},
		{"memory", `{"action": "get-context", "query": "x", "detected_identity": "{\"a\": [1]}", "token_budget": 600}`},
		{"memory", `{"action": "store", "content": "x", "metadata": {"tags": "a,b", "importance": "High", "n": 1e999}, ` +
			`"embedding": [1, 2]}`},
		{"memory", `{"action": "store", "content": "x", "event_type": "project-rule", "rule_type": "todo", ` +
			`"project_name": "p"}`},
		{"memory", `{"action": "search", "query": "x", "limit": 3.0, "tags": "[\"a\"]", "filter": {"n": {"gte": 1, "in": ` +
			`[null]}, "tags": []}, "sort_order": "Updated-At-Asc"}`},
		{"memory", `{"action": "search", "query_embedding": "1, 2.5e-3", "offset": -0}`},
		{"memory", `{"action": "retrieve", "id": "x", "collection_name": "default"}`},
		{"memory", `{"action": "update", "id": "x", "metadata": {"state": null}, "expected_revision": 1}`},
		{"memory", `{"action": "delete", "id": ""}`},
		{"rules", `{"action": "store", "rule_type": "don't", "content": "x"}`},
		{"todo", `{"action": "store", "project_id": "p", "content": "## Constitution\n## Spec\n## Plan\n## Tasks\n- [ ] T1 ` +
			`x\n## Gaps\n"}`},
		{"todo", `{"action": "complete", "project_id": "p", "task_id": "T1"}`},
		{"todo", `{"action": "update_section", "project_id": "p", "section": "gaps", "content": "x"}`},
		{"get_project_main_memory", `{"project_id": "a/b/c"}`},
		{"get_module_state", `{"module_name": "x", "limit": "NaN"}`},
		{"upload_document", `{"filename": "a\u0000/..", "content_base64": "data:;base64,eA=="}`},
		{"upload_document", `{"file_id": "x", "memory_id": "y", "tags": [[]]}`},
		{"memory", "{\"action\": \"search\", \"query\": \"\xed\xa0\x80\"}"},
		{"memory", `{"action": "search", "query": "\ud800"}`},
		{"memory", `"{\"action\": \"search\"}"`},
		{"memory", `[[[[`},
	} {
		f.Add(seed.tool, []byte(seed.args))
	}
	made, err := template()
	if err != nil {
		f.Fatal(err)
	}
	path := filepath.Join(f.TempDir(), "fuzz.db")
	if err := os.WriteFile(path, made.bytes, 0o600); err != nil {
		f.Fatal(err)
	}
	store, err := souvenir.Open(f.Context(), path, &souvenir.Options{Embedder: storetest.Words{}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { store.Close() })
	set := tools.New(store.As(souvenir.Access{User: "anna"}), nil)
	f.Fuzz(func(t *testing.T, tool string, args []byte) {
		result, err := set.Call(t.Context(), tool, args)
		if err != nil {
			var known *souvenir.Error
			if !errors.As(err, &known) || known.Kind == souvenir.KindInternal || known.Message == "" ||
				!utf8.ValidString(known.Message) {
				t.Errorf("%s %q: got the error %#v, want one with a message in UTF-8 and not of kind %v", tool, args,
					err, souvenir.KindInternal)
			}
			return
		}
		encoded, err := json.Marshal(result)
		if err != nil {
			t.Fatalf("%s %q: the result cannot be encoded: %v", tool, args, err)
		}
		var object map[string]any
		if err := json.Unmarshal(encoded, &object); err != nil || object == nil || !utf8.Valid(encoded) {
			t.Errorf("%s %q: got %s, %v, want a JSON object in UTF-8", tool, args, encoded, err)
		}
	})
}
