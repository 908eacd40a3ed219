package tools_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/documents"
	"github.com/souvenir-ai/souvenir/tools"
)

func call(t *testing.T, set *tools.Set, name, arguments string) (result map[string]any) {
	t.Helper()
	answer, err := set.Call(context.Background(), name, json.RawMessage(arguments))
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(answer)
	if err == nil {
		err = json.Unmarshal(encoded, &result)
	}
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestSearchFindsDocumentsByWhatTheySay(t *testing.T) {
	store, err := souvenir.Open(t.Context(), ":memory:",
		&souvenir.Options{Documents: documents.New(&documents.Options{TrustPDF: true})})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	anna := store.As(souvenir.Access{User: "anna"})
	pdf, err := os.ReadFile(filepath.Join("..", "documents", "testdata", "runbook.pdf"))
	if err != nil {
		t.Fatal(err)
	}
	all := tools.New(anna, nil)
	call(t, all, "memory", `{"action": "store", "content": "Lunch is at noon."}`)
	file := call(t, all, "upload_document", `{"filename": "runbook.pdf", "project_name": "Ops", "content_base64": "`+
		base64.StdEncoding.EncodeToString(pdf)+`"}`)
	if text, _ := file["text"].(map[string]any); text["state"] != "indexed" || text["passages"] != 1.0 {
		t.Errorf("upload_document returned %v, want what was indexed", file["text"])
	}
	call(t, all, "upload_document", `{"filename": "值班.md", "content": "# 值班\n\n部署窗口在星期二上午九点打开。"}`)

	const search = `{"action": "search", "query": "where are backups restored and verified?"}`
	found, _ := call(t, all, "memory", search)["documents"].([]any)
	if len(found) != 1 {
		t.Fatalf("got the documents %v, want the runbook alone", found)
	}
	hit, _ := found[0].(map[string]any)
	if hit["type"] != "file" || hit["file_id"] != file["id"] || hit["place"] != "page 2" ||
		!strings.Contains(hit["text"].(string), "Utrecht") {
		t.Errorf("got %v, want the passage of the file, with its page", hit)
	}
	if found, _ = call(t, all, "memory",
		`{"action": "search", "query": "部署窗口什么时候打开"}`)["documents"].([]any); len(found) == 0 ||
		found[0].(map[string]any)["place"] != "line 3, 值班" {
		t.Errorf("got the documents %v, want the Chinese one", found)
	}
	const about = `{"action": "get_context", "query": "where are backups restored and verified?"}`
	asked := call(t, all, "memory", about)
	if found, _ = asked["documents"].([]any); len(found) != 1 || found[0].(map[string]any)["place"] != "page 2" {
		t.Errorf("get_context returned the documents %v, want the passage of the runbook", asked["documents"])
	}
	for _, budget := range []int{500, 600, 700, 800, 1000} {
		asked = call(t, all, "memory", strings.Replace(about, "{", fmt.Sprintf(`{"token_budget": %d, `, budget), 1))
		encoded, err := json.Marshal(asked)
		if tokens := int(asked["tokens"].(float64)); err != nil || tokens > budget || (len(encoded)+3)/4 > tokens+1 {
			t.Errorf("with the budget %d: %d tokens of %d bytes, %v, want it within the budget, and the tokens of the "+
				"bytes", budget, tokens, len(encoded), err)
		}
	}
	for name, result := range map[string]map[string]any{
		"get_context without a query": call(t, all, "memory", `{"action": "get_context"}`),
		"get_context of another user": call(t, tools.New(store.As(souvenir.Access{User: "eve"}), nil), "memory", about),
		"get_context without files:read": call(t, tools.New(anna, &tools.Options{Allows: func(s souvenir.Scope) bool {
			return s != souvenir.ScopeFilesRead
		}}), "memory", about),
		"only memories": call(t, all, "memory", strings.Replace(search, "{", `{"only_memories": true, `, 1)),
		"the next page": call(t, all, "memory", strings.Replace(search, "{", `{"offset": 1, `, 1)),
		"another user":  call(t, tools.New(store.As(souvenir.Access{User: "eve"}), nil), "memory", search),
		"another project": call(t, tools.New(store.As(souvenir.Access{User: "anna", Projects: []string{"x"}}), nil), "memory",
			search),
		"a credential without files:read": call(t, tools.New(anna, &tools.Options{Allows: func(s souvenir.Scope) bool {
			return s != souvenir.ScopeFilesRead
		}}), "memory", search),
	} {
		if result["documents"] != nil {
			t.Errorf("%s: got the documents %v, want none", name, result["documents"])
		}
	}
}

// The files of a context are not reranked: they cause neither the call of a model nor its errors.
func TestTheDocumentsOfAContextAreNotReranked(t *testing.T) {
	calls := 0
	store, err := souvenir.Open(t.Context(), ":memory:", &souvenir.Options{Documents: documents.New(nil),
		Reranker: souvenir.RerankerFunc(func(_ context.Context, _ string, texts []string) ([]float64, error) {
			calls++
			return make([]float64, len(texts)), nil
		})})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	set := tools.New(store.As(souvenir.Access{User: "anna"}), nil)
	for _, content := range []string{"Lunch is at noon.", "Lunch is in the garden."} {
		_, err := set.Call(t.Context(), "memory", json.RawMessage(`{"action": "store", "content": "`+content+`"}`))
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := store.As(souvenir.Access{User: "anna"}).GetContext(t.Context(),
		souvenir.ContextQuery{Query: "when is lunch?"}); err != nil {
		t.Fatal(err)
	}
	alone := calls
	if _, err := set.Call(t.Context(), "memory",
		json.RawMessage(`{"action": "get_context", "query": "when is lunch?"}`)); err != nil {
		t.Fatal(err)
	}
	if calls-alone != alone {
		t.Errorf("got %d calls, want the %d of the context", calls-alone, alone)
	}
}
