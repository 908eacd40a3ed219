package tools_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/internal/testing/storetest"
	"github.com/souvenir-ai/souvenir/tools"
)

// A budgeted call returns at most so many bytes, with warnings that contain the texts in says, or without any.
type budgeted struct {
	tool, arguments string
	most            int
	says            []string
}

func (c budgeted) check(t *testing.T, set *tools.Set) {
	t.Helper()
	result, err := set.Call(t.Context(), c.tool, json.RawMessage(c.arguments))
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s %s: %d bytes", c.tool, c.arguments, len(encoded))
	var got struct {
		Warnings []string
		Related  []struct{ Truncated bool } `json:"related_memories"`
		Memories []struct{ Truncated bool }
	}
	if err := json.Unmarshal(encoded, &got); err != nil {
		t.Fatal(err)
	}
	if len(encoded) > c.most || len(c.says) == 0 && len(got.Warnings) > 0 {
		t.Errorf("%s %s: %d bytes, at most %d are wanted; warnings %q", c.tool, c.arguments, len(encoded), c.most,
			got.Warnings)
	}
	for _, part := range c.says {
		if !strings.Contains(strings.Join(got.Warnings, "; "), part) {
			t.Errorf("%s %s: got the warnings %q, want one that contains %q", c.tool, c.arguments, got.Warnings, part)
		}
	}
	if len(c.says) > 2 && len(got.Related)+len(got.Memories) < 10 {
		t.Errorf("%s %s shows %d memories only, want at least 10", c.tool, c.arguments,
			len(got.Related)+len(got.Memories))
	}
	for _, m := range append(got.Related, got.Memories...) {
		if m.Truncated != (len(c.says) > 0) {
			t.Errorf("%s %s: a memory is truncated: %v, want %v", c.tool, c.arguments, m.Truncated, (len(c.says) > 0))
		}
	}
}

func TestMainMemoryAndModuleStateFitABudget(t *testing.T) {
	longtest.Only(t)
	store, err := souvenir.Open(t.Context(), ":memory:", &souvenir.Options{Embedder: storetest.Words{}})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	content := strings.Repeat("What is to be known of the parser. ", 25)
	add := func(m souvenir.NewMemory) string {
		t.Helper()
		m.ProjectID = "p"
		stored, err := store.AddMemory(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		return stored.ID
	}
	main := add(souvenir.NewMemory{Content: strings.Repeat("The main memory. ", 2000), EventType: "project-main"})
	module := map[string]any{"module_name": "parser"}
	for i := range 300 {
		add(souvenir.NewMemory{Content: fmt.Sprint(content, i), Related: []string{main}, ShownMetadata: module,
			EventType: fmt.Sprint("type ", i)})
	}
	set := tools.New(store, nil)
	for _, c := range []budgeted{
		{"get_project_main_memory", `{"project_id": "p"}`, 4 * souvenir.DefaultTokenBudget,
			[]string{"main memory is shortened", main, "of 300", "linked directly", "related_memory_ids"}},
		{"get_project_main_memory", `{"project_id": "p", "token_budget": 500}`, 4 * 700,
			[]string{"token_budget 500", "of 300"}},
		{"get_project_main_memory", `{"project_id": "p", "token_budget": 1000000}`, 1 << 20, nil},
		{"get_module_state", `{"project_id": "p", "module_name": "parser", "limit": 100}`, 4 * souvenir.DefaultTokenBudget,
			[]string{"of 100", "memory search", "of 300 event types"}},
		{"get_module_state", `{"project_id": "p", "module_name": "parser", "limit": 100, "token_budget": 500}`, 4 * 900,
			[]string{"of 100"}},
		{"get_module_state", `{"project_id": "p", "module_name": "parser", "limit": 2, "token_budget": 100000}`, 1 << 20,
			nil},
	} {
		c.check(t, set)
	}
	if _, err := set.Call(t.Context(), "get_module_state",
		json.RawMessage(`{"module_name": "x", "token_budget": 10}`)); err == nil {
		t.Error("a budget of 10 tokens is accepted, want an error")
	}
}
