package adk_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/loadmemorytool"
	"google.golang.org/genai"

	"github.com/souvenir-ai/souvenir"
	adapter "github.com/souvenir-ai/souvenir/adapters/adk"
	"github.com/souvenir-ai/souvenir/tools"
)

// run asks an agent with the toolset one question, as a user of an application, and returns its tools' answers.
func run(t *testing.T, s *adapter.MemoryService, options *adapter.ToolsetOptions, user string,
	answers ...*genai.Content) (responses []map[string]any, m *script) {
	t.Helper()
	toolset, err := s.Toolset(options)
	if err != nil {
		t.Fatal(err)
	}
	m = &script{answers: append(answers, says("done"))}
	a, err := llmagent.New(llmagent.Config{Name: "guide", Model: m, Toolsets: []tool.Toolset{toolset},
		Tools: []tool.Tool{loadmemorytool.New()}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.New(runner.Config{AppName: "travel", Agent: a, SessionService: session.InMemoryService(),
		MemoryService: s, AutoCreateSession: true})
	if err != nil {
		t.Fatal(err)
	}
	for event, err := range r.Run(t.Context(), user, "s", genai.NewContentFromText("hello", genai.RoleUser),
		agent.RunConfig{}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range event.Content.Parts {
			if part.FunctionResponse != nil {
				responses = append(responses, part.FunctionResponse.Response)
			}
		}
	}
	return responses, m
}

func TestAgentsCallToolsForTheirUser(t *testing.T) {
	s := adapter.NewMemoryService(newStore(t), nil)
	store := calls("s_memory", map[string]any{"action": "store", "content": "Anna takes the ferry on Thursdays. 周四坐船。"})
	load := calls("load_memory", map[string]any{"query": "Which day does she take the ferry?"})
	options := &adapter.ToolsetOptions{Prefix: "s_", Only: []string{"rules", "memory"}}

	got, m := run(t, s, options, "anna", store, load, calls("s_memory", map[string]any{"action": "search", "limit": 1000}))
	if len(got) != 3 || got[0]["id"] == nil || !strings.Contains(text(t, got[1]), "周四坐船") {
		t.Errorf("got %v, want the id of a memory, and its text from load_memory", got)
	}
	if want := "limit is 1000; expected 1 to 100"; len(got) == 3 && !strings.Contains(text(t, got[2]), want) {
		t.Errorf("a call with a mistake: got %v, want %q", got[2], want)
	}
	var declared []string
	for _, d := range m.requests[0].Config.Tools[0].FunctionDeclarations {
		declared = append(declared, d.Name)
		schema := text(t, d.ParametersJsonSchema)
		if strings.HasPrefix(d.Name, "s_") && !strings.Contains(schema, `"action"`) {
			t.Errorf("%s: got the schema %s, want one with its action", d.Name, schema)
		}
	}
	slices.Sort(declared)
	if want := []string{"load_memory", "s_memory", "s_rules"}; !slices.Equal(declared, want) {
		t.Errorf("got the tools %q, want %q", declared, want)
	}
	if got, _ := run(t, s, options, "ben", load); len(got) != 1 || strings.Contains(text(t, got[0]), "ferry") {
		t.Errorf("another user: got %v, want nothing", got)
	}
}

func text(t *testing.T, value any) string {
	t.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

func TestToolsetsCanBeForReading(t *testing.T) {
	s := adapter.NewMemoryService(newStore(t), nil)
	_, m := run(t, s, &adapter.ToolsetOptions{Tools: &tools.Options{ReadOnly: true}}, "anna")
	var got []string
	for _, d := range m.requests[0].Config.Tools[0].FunctionDeclarations {
		got = append(got, d.Name)
	}
	slices.Sort(got)
	want := []string{"get_module_state", "get_project_main_memory", "list_collections", "load_memory", "memory"}
	if !slices.Equal(got, want) {
		t.Errorf("got the tools %q, want %q", got, want)
	}
	if _, err := s.Toolset(&adapter.ToolsetOptions{Only: []string{"memories"}}); !errors.Is(err, souvenir.ErrInvalid) {
		t.Errorf("an unknown tool: got %v, want ErrInvalid", err)
	}
}
