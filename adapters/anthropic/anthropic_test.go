package anthropic_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/souvenir-ai/souvenir"
	adapter "github.com/souvenir-ai/souvenir/adapters/anthropic"
	"github.com/souvenir-ai/souvenir/tools"
)

func toolNames(set adapter.Set) (names []string) {
	for _, t := range set {
		names = append(names, t.Name())
	}
	return names
}

func TestToolsCanBeChosenAndRenamed(t *testing.T) {
	store := newStore(t)
	for _, c := range []struct {
		options *adapter.Options
		want    []string
	}{
		{nil, []string{"memory", "get_project_main_memory", "get_module_state", "rules", "todo", "upload_document",
			"list_collections", "create_collection"}},
		{&adapter.Options{Only: []string{"todo", "memory"}, Prefix: "s_"}, []string{"s_memory", "s_todo"}},
		{&adapter.Options{Tools: &tools.Options{ReadOnly: true}}, []string{"memory", "get_project_main_memory",
			"get_module_state", "list_collections"}},
	} {
		set, err := adapter.Tools(store, c.options)
		if err != nil {
			t.Fatal(err)
		}
		if got := toolNames(set); !slices.Equal(got, c.want) {
			t.Errorf("%+v: got the tools %q, want %q", c.options, got, c.want)
		}
	}
	for _, bad := range []adapter.Options{{Only: []string{"memories"}}, {Prefix: "a b"}, {Prefix: "é"},
		{Only: []string{"create_collection"}, Tools: &tools.Options{ReadOnly: true}}} {
		if _, err := adapter.Tools(store, &bad); !errors.Is(err, souvenir.ErrInvalid) {
			t.Errorf("%+v: got %v, want ErrInvalid", bad, err)
		}
	}
}

// The definitions are sent as those of package tools, in the order of the arguments. The memory tool has its own type.
func TestDefinitionsAreSentAsTheyAre(t *testing.T) {
	set, err := adapter.Tools(newStore(t), &adapter.Options{Prefix: "s_"})
	if err != nil {
		t.Fatal(err)
	}
	set = append(set, adapter.NewMemory(newStore(t), nil))
	for _, params := range []any{set.Params(), set.BetaParams()} {
		encoded, err := json.Marshal(params)
		if err != nil {
			t.Fatal(err)
		}
		var sent []struct {
			Type, Name, Description string
			InputSchema             struct{ Properties, Required json.RawMessage } `json:"input_schema"`
		}
		if err := json.Unmarshal(encoded, &sent); err != nil {
			t.Fatal(err)
		}
		if last := sent[len(sent)-1]; last.Type != "memory_20250818" || last.Name != "memory" || last.Description != "" {
			t.Errorf("the memory tool: got %+v, want its type and name alone", last)
		}
		for i, tool := range tools.List() {
			var want struct{ Properties, Required json.RawMessage }
			if err := json.Unmarshal(tool.InputSchema, &want); err != nil {
				t.Fatal(err)
			}
			got := sent[i]
			if got.Name != "s_"+tool.Name || got.Description != tool.Description ||
				string(got.InputSchema.Properties) != string(want.Properties) ||
				string(got.InputSchema.Required) != string(want.Required) {
				t.Errorf("%s: got %+v, want %s", tool.Name, got, tool.InputSchema)
			}
		}
	}
}

// A whole loop of the SDK's runner: what it sends, and how the model sees errors.
func TestARunnerSendsTheMemoryToolByItsType(t *testing.T) {
	service := script(calls("memory", view("/memories/a")), calls("memory", create("/memories/a", "x")),
		calls("s_memory", `{"action": "search", "limit": 1000}`), says("done"))
	defer service.Close()
	store := newStore(t)
	set, err := adapter.Tools(store, &adapter.Options{Only: []string{"memory"}, Prefix: "s_"})
	if err != nil {
		t.Fatal(err)
	}
	set = append(set, adapter.NewMemory(store, nil))
	client := anthropic.NewClient(option.WithBaseURL(service.URL), option.WithAPIKey("none"), option.WithMaxRetries(0))
	runner := client.Beta.Messages.NewToolRunner(set, anthropic.BetaToolRunnerParams{
		BetaMessageNewParams: anthropic.BetaMessageNewParams{Model: "claude-sonnet-4-5", MaxTokens: 10,
			Messages: []anthropic.BetaMessageParam{anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock("hello"))}}})
	runner.Params.Tools = set.BetaParams()
	if _, err := runner.RunToCompletion(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range service.requests {
		if len(r.Tools) != 2 || r.Tools[1].Type != "memory_20250818" {
			t.Fatalf("got the tools %+v, want the last of type memory_20250818", r.Tools)
		}
		for _, block := range r.Messages[len(r.Messages)-1].Content {
			if block.Type == "tool_result" && block.IsError {
				got = append(got, "failed: "+block.Content[0].Text)
			} else if block.Type == "tool_result" {
				got = append(got, block.Content[0].Text)
			}
		}
	}
	want := []string{"failed: Error: The path /memories/a does not exist. Please provide a valid path.",
		"File created successfully at: /memories/a", "failed: Error: limit is 1000; expected 1 to 100"}
	if !slices.Equal(got, want) {
		t.Errorf("got the results %q, want %q", got, want)
	}
}

func TestResultsAnswerEachCall(t *testing.T) {
	set, err := adapter.Tools(newStore(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	var message anthropic.Message
	if err := json.Unmarshal([]byte(`{"content": [{"type": "text", "text": "Let me see."},
		{"type": "tool_use", "id": "1", "name": "memory", "input": {"action": "store", "content": "周四部署"}},
		{"type": "tool_use", "id": "2", "name": "weather", "input": {}},
		{"type": "tool_use", "id": "3", "name": "memory", "input": {}},
		{"type": "tool_use", "id": "4", "name": "list_collections", "input": {}}]}`), &message); err != nil {
		t.Fatal(err)
	}
	results := set.Results(t.Context(), &message)
	want := []struct {
		failed bool
		says   string
	}{{false, `"id"`}, {true, "Error: Tool 'weather' not found"}, {true, "Error: action is missing"},
		{false, `"collections"`}}
	if len(results) != len(want) {
		t.Fatalf("got %d results, want %d", len(results), len(want))
	}
	for i, w := range want {
		got := results[i].OfToolResult
		if text := got.Content[0].OfText.Text; got.IsError.Value != w.failed || !strings.Contains(text, w.says) {
			t.Errorf("result %s: got %q, failed %v, want %q, %v", got.ToolUseID, text, got.IsError.Value, w.says, w.failed)
		}
	}
	if got := set.Results(t.Context(), &anthropic.Message{}); len(got) != 0 {
		t.Errorf("without calls: got %d results, want none", len(got))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := set.Results(ctx, &message)[0].OfToolResult; !got.IsError.Value {
		t.Errorf("canceled: got %q, want an error", got.Content[0].OfText.Text)
	}
}
