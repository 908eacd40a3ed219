package tools_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/tools"
)

func TestReadOnlyToolsOnlyRead(t *testing.T) {
	var names []string
	for _, tool := range tools.ListReadOnly() {
		names = append(names, tool.Name)
		if !tool.Annotations.ReadOnly || tool.Annotations.Destructive {
			t.Errorf("%s: got %+v, want it read-only and not destructive", tool.Name, tool.Annotations)
		}
		for _, word := range []string{"- store", "- update", "- delete", `"expected_revision"`, `"store"`, `"embedding"`} {
			if strings.Contains(tool.Description, word) || strings.Contains(string(tool.InputSchema), word) {
				t.Errorf("%s mentions %s, want neither the description nor the input schema to:\n%s\n%s", tool.Name, word,
					tool.Description, tool.InputSchema)
			}
		}
	}
	if want := []string{"memory", "get_project_main_memory", "get_module_state", "list_collections"}; !slices.Equal(names,
		want) {
		t.Errorf("the tools are %v, want %v", names, want)
	}
	memory := tools.ListReadOnly()[0]
	for _, word := range []string{"- get_context", "- search", "- retrieve", "For reading only"} {
		if !strings.Contains(memory.Description, word) {
			t.Errorf("got the description\n%s\nwant one that contains %s", memory.Description, word)
		}
	}
	if !strings.Contains(string(memory.InputSchema), `"enum":["get_context","search","retrieve"]`) {
		t.Errorf(`the schema is %s, want "enum":["get_context","search","retrieve"] in the input schema`, memory.InputSchema)
	}
}

func TestReadOnlyToolsRefuseChanges(t *testing.T) {
	w := newWorld(t)
	set := tools.New(w.store.As(souvenir.Access{User: "anna"}), &tools.Options{ReadOnly: true})
	for tool, arguments := range map[string]string{
		"memory": `{"action": "store", "content": "x"}`, "rules": `{"action": "store", "rule_type": "do", "content": "x"}`,
		"todo":              `{"action": "complete", "project_id": "p-bridge", "task_id": "T2"}`,
		"create_collection": `{"collection_name": "new"}`,
		"upload_document":   `{"filename": "a.txt", "content": "x"}`,
	} {
		_, err := set.Call(t.Context(), tool, json.RawMessage(arguments))
		if !errors.Is(err, souvenir.ErrReadOnly) || !strings.Contains(err.Error(), tool) {
			t.Errorf("%s: got %v, want ErrReadOnly with the word in the error", tool, err)
		}
	}
	for tool, arguments := range map[string]string{"memory": `{"action": "get_context"}`, "list_collections": `{}`} {
		if _, err := set.Call(t.Context(), tool, json.RawMessage(arguments)); err != nil {
			t.Errorf("%s: %v", tool, err)
		}
	}
}
