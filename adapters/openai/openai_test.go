package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/souvenir-ai/souvenir"
	memory "github.com/souvenir-ai/souvenir/adapters/openai"
	"github.com/souvenir-ai/souvenir/tools"
)

// open opens a new store.
func open(t *testing.T) *souvenir.Store {
	t.Helper()
	store, err := souvenir.Open(t.Context(), filepath.Join(t.TempDir(), "test.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// newTools returns tools.
func newTools(t *testing.T, store *souvenir.Store, c *memory.ToolsConfig) *memory.Tools {
	t.Helper()
	list, err := memory.NewTools(store, c)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// api is a server that gives its answers in turn, the last one repeatedly, and records the requests.
type api struct {
	answers []string

	mu       sync.Mutex
	requests []map[string]any
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request map[string]any
	if err == nil {
		err = json.Unmarshal(body, &request)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, a.answers[min(len(a.requests), len(a.answers)-1)])
	a.requests = append(a.requests, request)
}

// client starts the server.
func (a *api) client(t *testing.T) openai.Client {
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	return openai.NewClient(option.WithBaseURL(server.URL), option.WithAPIKey("none"), option.WithMaxRetries(0))
}

// chatCalls returns a completion whose message calls tools: names and arguments in turn.
func chatCalls(calls ...string) string {
	var list []map[string]any
	for i := 0; i < len(calls); i += 2 {
		list = append(list, map[string]any{"id": fmt.Sprint("call_", i/2), "type": "function",
			"function": map[string]any{"name": calls[i], "arguments": calls[i+1]}})
	}
	encoded, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"message": map[string]any{
		"role": "assistant", "tool_calls": list}}}})
	return string(encoded)
}

const (
	said      = `{"choices": [{"message": {"role": "assistant", "content": "Done."}}]}`
	storeTea  = `{"action": "store", "content": "安娜喜欢乌龙茶。"}`
	searchTea = `{"action": "search", "query": "乌龙茶"}`

	searches = `{"type": "function_call", "call_id": "call_0", "name": "memory",
		"arguments": "{\"action\": \"search\"}"}`
	responding = `{"type": "message", "id": "m", "role": "assistant",
		"content": [{"type": "output_text", "text": "Done."}]}`
)

// at returns a value deep in decoded JSON.
func at(value any, path ...any) any {
	for _, step := range path {
		switch s := step.(type) {
		case string:
			value = value.(map[string]any)[s]
		case int:
			value = value.([]any)[s]
		}
	}
	return value
}

// wantJSON compares the JSON of a value with what was wanted.
func wantJSON(t *testing.T, name string, value any, want string) {
	t.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var is, should any
	if err := errors.Join(json.Unmarshal(encoded, &is), json.Unmarshal([]byte(want), &should)); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(is, should) {
		t.Errorf("%s: got %s, want %s", name, encoded, want)
	}
}

func TestDefinitionsAreThoseOfTheStore(t *testing.T) {
	all := newTools(t, open(t), nil)
	chat, response := all.ChatTools(), all.ResponseTools()
	want := tools.List()
	if len(chat) != len(want) || len(response) != len(want) {
		t.Fatalf("got %d and %d tools, want %d", len(chat), len(response), len(want))
	}
	for i, w := range want {
		description, err := json.Marshal(w.Description)
		if err != nil {
			t.Fatal(err)
		}
		function := fmt.Sprintf(`"name": %q, "description": %s, "parameters": %s`, w.Name, description, w.InputSchema)
		wantJSON(t, w.Name, chat[i], `{"type": "function", "function": {`+function+`}}`)
		wantJSON(t, w.Name, response[i], `{"type": "function", "strict": false, `+function+`}`)
	}
}

func TestToolsAreChosenByName(t *testing.T) {
	store := open(t)
	for _, test := range []struct {
		config memory.ToolsConfig
		want   []string
	}{
		{memory.ToolsConfig{Only: []string{"todo", "memory", "todo"}}, []string{"memory", "todo"}},
		{memory.ToolsConfig{Only: []string{"memory"}, Prefix: "souvenir_"}, []string{"souvenir_memory"}},
		{memory.ToolsConfig{ReadOnly: true, Only: []string{"memory"}, Prefix: "m-"}, []string{"m-memory"}},
	} {
		chosen := newTools(t, store, &test.config)
		var got []string
		for _, tool := range chosen.ChatTools() {
			name := tool.GetFunction().Name
			if got = append(got, name); !chosen.Has(name) {
				t.Errorf("%s: got false, want that the tools have it", name)
			}
		}
		if !slices.Equal(got, test.want) || chosen.Has("rules") || chosen.Has("") || chosen.Has("souvenir_") {
			t.Errorf("%v: got %q, want %q and no others", test.config.Only, got, test.want)
		}
	}
	for _, bad := range []memory.ToolsConfig{{Only: []string{"memories"}}, {Only: []string{""}}, {Prefix: "a b"},
		{Prefix: strings.Repeat("x", 60)}, {Prefix: "记忆"}, {ReadOnly: true, Only: []string{"create_collection"}},
		{MaxRequests: -1}} {
		if got, err := memory.NewTools(store, &bad); err == nil {
			t.Errorf("%+v: got %d tools, want an error", bad, len(got.ChatTools()))
		}
	}
}

func TestCompleteRunsTheCallsOfAModel(t *testing.T) {
	store := open(t)
	var calls []string
	set := newTools(t, store.As(souvenir.Access{User: "anna"}), &memory.ToolsConfig{Only: []string{"memory"},
		Prefix: "s_", OnCall: func(_ context.Context, c tools.Call) { calls = append(calls, c.Action) }})
	a := &api{answers: []string{chatCalls("s_memory", storeTea, "s_memory", searchTea), chatCalls("s_memory",
		`{"action": "search", "limit": 1000}`), said}}
	client := a.client(t)
	own := openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: "own"})
	params := openai.ChatCompletionNewParams{Model: "x", Tools: []openai.ChatCompletionToolUnionParam{own},
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("My tea is oolong.")}}
	completion, err := set.Complete(t.Context(), client.Chat.Completions, &params)
	if err != nil || completion.Choices[0].Message.Content != "Done." {
		t.Fatalf("got %v, %v, want Done.", completion, err)
	}
	if want := []string{"store", "search", "search"}; !slices.Equal(calls, want) {
		t.Errorf("got the calls %q, want %q", calls, want)
	}
	if len(a.requests) != 3 || len(params.Messages) != 7 || len(params.Tools) != 1 {
		t.Fatalf("got %d requests, %d messages, %d tools, want 3, 7 and 1", len(a.requests), len(params.Messages),
			len(params.Tools))
	}
	last := a.requests[2]
	if at(last, "tools", 0, "function", "name") != "own" || at(last, "tools", 1, "function", "name") != "s_memory" {
		t.Errorf("got the tools %v, want own and s_memory", last["tools"])
	}
	for i, want := range map[int]string{2: `"indexed":true`, 3: "安娜喜欢乌龙茶。", 5: "error: limit is 1000; expected 1 to 100"} {
		content, _ := at(last, "messages", i, "content").(string)
		if at(last, "messages", i, "role") != "tool" || !strings.Contains(content, want) {
			t.Errorf("got the message %v, want a result with %q", at(last, "messages", i), want)
		}
	}
	if got := at(last, "messages", 3, "tool_call_id"); got != "call_1" {
		t.Errorf("got the result of %v, want call_1", got)
	}
	ben := newTools(t, store.As(souvenir.Access{User: "ben"}), nil)
	var message openai.ChatCompletionMessage
	if err := json.Unmarshal([]byte(`{"tool_calls": [{"id": "c", "type": "function", "function": {"name": "memory",
		"arguments": "{\"action\": \"search\", \"query\": \"乌龙茶\"}"}}]}`), &message); err != nil {
		t.Fatal(err)
	}
	results, err := ben.RunChat(t.Context(), message)
	if err != nil || len(results) != 1 || strings.Contains(results[0].OfTool.Content.OfString.Value, "安娜") {
		t.Errorf("got %v, %v, want nothing of Anna's", results, err)
	}
}

func TestCompleteLeavesTheCallsOfOtherTools(t *testing.T) {
	set := newTools(t, open(t), &memory.ToolsConfig{Only: []string{"memory"}})
	for name, test := range map[string]struct {
		answer string
		added  int
	}{
		"others beside ours": {chatCalls("own", "{}", "memory", searchTea), 2},
		"others alone":       {chatCalls("own", "{}", "memory_2", "{}"), 1},
		"one not chosen":     {chatCalls("rules", `{"action": "get"}`), 1},
		"a custom tool": {`{"choices": [{"message": {"role": "assistant", "tool_calls": [{"id": "c", "type": "custom",
			"custom": {"name": "memory", "input": "x"}}]}}]}`, 1},
	} {
		a := &api{answers: []string{test.answer, said}}
		client := a.client(t)
		params := openai.ChatCompletionNewParams{Model: "x"}
		got, err := set.Complete(t.Context(), client.Chat.Completions, &params)
		if err != nil || len(got.Choices[0].Message.ToolCalls) == 0 || len(params.Messages) != test.added {
			t.Errorf("%s: got %v, %v and %d messages, want the calls and %d", name, got, err, len(params.Messages),
				test.added)
		}
		params.Messages = append(params.Messages, openai.ToolMessage("own result", "call_0"))
		got, err = set.Complete(t.Context(), client.Chat.Completions, &params)
		if err != nil || got.Choices[0].Message.Content != "Done." || len(params.Messages) != test.added+2 {
			t.Errorf("%s: got %v, %v, want Done.", name, got, err)
		}
	}
}

func TestRespondRunsTheCallsOfAModel(t *testing.T) {
	store := open(t)
	if _, err := store.AddMemory(t.Context(), souvenir.NewMemory{Content: "安娜喜欢乌龙茶。"}); err != nil {
		t.Fatal(err)
	}
	set := newTools(t, store, nil)
	reasoning := `{"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "x"}`
	hosted := `{"type": "web_search_call", "id": "w", "status": "completed"}`
	answers := []string{`{"output": [` + reasoning + `, ` + hosted + `, ` + searches + `]}`,
		`{"output": [` + responding + `]}`}

	a := &api{answers: answers}
	client := a.client(t)
	params := responses.ResponseNewParams{Model: "x",
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("你好")}}
	response, err := set.Respond(t.Context(), client.Responses, &params)
	if err != nil || response.OutputText() != "Done." || len(a.requests) != 2 {
		t.Fatalf("got %v, %v after %d requests, want Done. after 2", response, err, len(a.requests))
	}
	input := at(a.requests[1], "input").([]any)
	output, _ := at(input, 4, "output").(string)
	if len(input) != 5 || !strings.Contains(output, "安娜喜欢乌龙茶。") {
		t.Fatalf("got the input %v, want 5 items, the last one with the memory", input)
	}
	wantJSON(t, "reasoning", input[1], reasoning)
	wantJSON(t, "a call of the API's own", input[2], hosted)
	wantJSON(t, "call", input[3], searches)
	if at(input, 0, "role") != "user" || at(input, 0, "content") != "你好" || at(input, 4, "call_id") != "call_0" ||
		at(input, 4, "type") != "function_call_output" {
		t.Errorf("got the input %v, want the question first and the result of call_0 last", input)
	}
	if n := len(params.Input.OfInputItemList); n != 6 {
		t.Errorf("got %d items, want 6", n)
	}

	a = &api{answers: answers}
	client = a.client(t)
	params = responses.ResponseNewParams{Model: "x", Conversation: responses.ResponseNewParamsConversationUnion{
		OfString: openai.String("conv_1")}}
	if _, err := set.Respond(t.Context(), client.Responses, &params); err != nil {
		t.Fatal(err)
	}
	if input := at(a.requests[1], "input").([]any); len(input) != 1 || at(input, 0, "call_id") != "call_0" {
		t.Errorf("in a conversation: got the input %v, want the result alone", input)
	}
}

func TestRespondLeavesTheCallsOfOtherTools(t *testing.T) {
	set := newTools(t, open(t), nil)
	for other, want := range map[string]int{
		`{"type": "function_call", "call_id": "o", "name": "own", "arguments": "{}"}`:           1,
		`{"type": "custom_tool_call", "call_id": "o", "name": "memory", "input": ""}`:           1,
		`{"type": "mcp_approval_request", "id": "o"}`:                                           1,
		`{"type": "shell_call", "call_id": "o", "id": "s"}`:                                     1,
		`{"type": "shell_call", "call_id": "o"}, {"type": "shell_call_output", "call_id": "o"}`: 2,
		`{"type": "mcp_call", "id": "o"}`:                                                       2,
	} {
		a := &api{answers: []string{`{"output": [` + other + `, ` + searches + `]}`, `{"output": [` + responding + `]}`}}
		client := a.client(t)
		params := responses.ResponseNewParams{Model: "x"}
		if _, err := set.Respond(t.Context(), client.Responses, &params); err != nil || len(a.requests) != want {
			t.Errorf("%s: got %d requests, %v, want %d", other, len(a.requests), err, want)
		}
		if items := params.Input.OfInputItemList; len(items) < 3 {
			t.Errorf("%s: got %d items, want at least the two calls and a result", other, len(items))
		}
	}
}

func TestRequestsEnd(t *testing.T) {
	store := open(t)
	set := newTools(t, store, &memory.ToolsConfig{MaxRequests: 3})
	a := &api{answers: []string{chatCalls("memory", searchTea)}}
	client := a.client(t)
	params := openai.ChatCompletionNewParams{Model: "x"}
	_, err := set.Complete(t.Context(), client.Chat.Completions, &params)
	if !errors.Is(err, memory.ErrTooManyRequests) || len(a.requests) != 3 {
		t.Errorf("got %v after %d requests, want ErrTooManyRequests after 3", err, len(a.requests))
	}
	a = &api{answers: []string{`{"output": [` + searches + `]}`}}
	client = a.client(t)
	_, err = set.Respond(t.Context(), client.Responses, &responses.ResponseNewParams{Model: "x"})
	if !errors.Is(err, memory.ErrTooManyRequests) || len(a.requests) != 3 {
		t.Errorf("got %v after %d requests, want ErrTooManyRequests after 3", err, len(a.requests))
	}
	for _, answer := range []string{`{}`, `{"choices": []}`, `[`} {
		client := (&api{answers: []string{answer}}).client(t)
		params := openai.ChatCompletionNewParams{Model: "x"}
		if got, err := set.Complete(t.Context(), client.Chat.Completions, &params); err == nil || len(params.Messages) > 0 {
			t.Errorf("%s: got %v and %d messages, want an error and none", answer, got, len(params.Messages))
		}
	}
}

func TestFailuresOfTheStoreAreErrors(t *testing.T) {
	store := open(t)
	set := newTools(t, store, nil)
	client := (&api{answers: []string{chatCalls("memory", searchTea)}}).client(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	params := openai.ChatCompletionNewParams{Model: "x"}
	if _, err := set.Complete(ctx, client.Chat.Completions, &params); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := set.Complete(t.Context(), client.Chat.Completions, &params)
	if !errors.Is(err, souvenir.ErrClosed) || len(params.Messages) > 0 {
		t.Errorf("got %v and %d messages, want ErrClosed and none", err, len(params.Messages))
	}
	client = (&api{answers: []string{`{"output": [` + searches + `]}`}}).client(t)
	_, err = set.Respond(t.Context(), client.Responses, &responses.ResponseNewParams{Model: "x"})
	if !errors.Is(err, souvenir.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}

func TestManyGoroutinesComplete(t *testing.T) {
	store := open(t)
	set := newTools(t, store, nil)
	var group sync.WaitGroup
	for range 8 {
		client := (&api{answers: []string{chatCalls("memory", storeTea, "memory", storeTea), said}}).client(t)
		group.Go(func() {
			params := openai.ChatCompletionNewParams{Model: "x"}
			if _, err := set.Complete(t.Context(), client.Chat.Completions, &params); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	count := 0
	for _, err := range store.Memories(t.Context(), souvenir.MemoryList{}) {
		if err != nil {
			t.Fatal(err)
		}
		count++
	}
	if count != 16 {
		t.Errorf("got %d memories, want 16", count)
	}
}
