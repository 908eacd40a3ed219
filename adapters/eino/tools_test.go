package eino_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/adapters/eino"
	"github.com/souvenir-ai/souvenir/tools"
)

// newTools returns tools.
func newTools(t *testing.T, store *souvenir.Store, c *eino.ToolsConfig) []tool.BaseTool {
	t.Helper()
	list, err := eino.NewTools(store, c)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// run calls a tool.
func run(t *testing.T, of tool.BaseTool, arguments string) string {
	t.Helper()
	got, err := of.(tool.InvokableTool).InvokableRun(t.Context(), arguments)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestToolsAreThoseOfTheStore(t *testing.T) {
	store := open(t)
	want := tools.List()
	got := newTools(t, store, nil)
	if len(got) != len(want) {
		t.Fatalf("got %d tools, want %d", len(got), len(want))
	}
	for i, w := range want {
		info, err := got[i].Info(t.Context())
		if err != nil || info.Name != w.Name || info.Desc != w.Description {
			t.Errorf("got %v, %v, want the tool %s", info, err, w.Name)
			continue
		}
		arguments, err := info.ToJSONSchema()
		if err != nil {
			t.Fatal(err)
		}
		encoded, err := json.Marshal(arguments)
		if err != nil {
			t.Fatal(err)
		}
		var is, should any
		if err := errors.Join(json.Unmarshal(encoded, &is), json.Unmarshal(w.InputSchema, &should)); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(is, should) {
			t.Errorf("%s: got the arguments %s, want %s", w.Name, encoded, w.InputSchema)
		}
	}
}

func TestToolsAreChosenByName(t *testing.T) {
	store := open(t)
	for _, test := range []struct {
		config eino.ToolsConfig
		want   []string
	}{
		{eino.ToolsConfig{Only: []string{"todo", "memory", "todo"}}, []string{"memory", "todo"}},
		{eino.ToolsConfig{Only: []string{"memory"}, Prefix: "souvenir_"}, []string{"souvenir_memory"}},
		{eino.ToolsConfig{ReadOnly: true, Only: []string{"memory"}, Prefix: "m-"}, []string{"m-memory"}},
	} {
		var got []string
		for _, one := range newTools(t, store, &test.config) {
			info, err := one.Info(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, info.Name)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%v: got %q, want %q", test.config.Only, got, test.want)
		}
	}
	for _, bad := range []eino.ToolsConfig{{Only: []string{"memories"}}, {Only: []string{""}}, {Prefix: "a b"},
		{Prefix: strings.Repeat("x", 60)}, {Prefix: "记忆"}, {ReadOnly: true, Only: []string{"create_collection"}}} {
		if got, err := eino.NewTools(store, &bad); err == nil {
			t.Errorf("%+v: got %d tools, want an error", bad, len(got))
		}
	}
}

func TestCallsOfToolsReachTheStore(t *testing.T) {
	store := open(t)
	var calls []string
	anna := newTools(t, store.As(souvenir.Access{User: "anna"}), &eino.ToolsConfig{Only: []string{"memory"},
		OnCall: func(_ context.Context, c tools.Call) { calls = append(calls, c.Tool+" "+c.Action) }})[0]
	ben := newTools(t, store.As(souvenir.Access{User: "ben"}), nil)[0]
	search := `{"action": "search", "query": "乌龙茶"}`
	if got := run(t, anna, `{"action": "store", "content": "安娜喜欢乌龙茶。"}`); !json.Valid([]byte(got)) {
		t.Errorf("got %q, want JSON", got)
	}
	if got := run(t, anna, search); !strings.Contains(got, "安娜喜欢乌龙茶。") || !json.Valid([]byte(got)) {
		t.Errorf("got %q, want Anna's memory as JSON", got)
	}
	if got := run(t, ben, search); strings.Contains(got, "安娜") {
		t.Errorf("got %q, want nothing of Anna's", got)
	}
	for arguments, want := range map[string]string{
		`{"action": "search", "limit": 1000}`: "error: limit is 1000", `{"action": "x"}`: "error: action",
		"": "error: action", "null": "error: action", "[1]": "error: arguments", "{": "error: arguments", "\xff": "error: ",
		`{"action": "delete", "id": "none"}`: "error: ", `{"action": "store", "content": "a\u0000b"}`: "error: content",
	} {
		if got := run(t, anna, arguments); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q, want %q at its beginning", arguments, got, want)
		}
	}
	if want := []string{"memory store", "memory search"}; len(calls) != 11 || !slices.Equal(calls[:2], want) {
		t.Errorf("got the calls %q, want 11, first %q", calls, want)
	}
	reading := newTools(t, store, &eino.ToolsConfig{ReadOnly: true})[0]
	if got := run(t, reading, `{"action": "store", "content": "x"}`); !strings.HasPrefix(got, "error: ") {
		t.Errorf("got %q, want an error", got)
	}
}

func TestFailuresOfTheStoreAreErrors(t *testing.T) {
	store := open(t)
	memory := newTools(t, store, nil)[0].(tool.InvokableTool)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := memory.InvokableRun(ctx, `{"action": "search"}`); !errors.Is(err, context.Canceled) {
		t.Errorf("got %q, %v, want context.Canceled", got, err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := memory.InvokableRun(t.Context(), `{"action": "search"}`); !errors.Is(err, souvenir.ErrClosed) {
		t.Errorf("got %q, %v, want ErrClosed", got, err)
	}
}

func TestToolNodeRunsManyCallsAtOnce(t *testing.T) {
	store := open(t)
	node, err := compose.NewToolNode(t.Context(), &compose.ToolsNodeConfig{
		Tools: newTools(t, store, &eino.ToolsConfig{Prefix: "s_"})})
	if err != nil {
		t.Fatal(err)
	}
	message := schema.AssistantMessage("", nil)
	for range 20 {
		call := calling("s_memory", `{"action": "store", "content": "Tea at four."}`).ToolCalls[0]
		message.ToolCalls = append(message.ToolCalls, call)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if got, err := node.Invoke(t.Context(), message); err != nil || len(got) != 20 {
				t.Errorf("got %d results, %v, want 20", len(got), err)
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
	if count != 80 {
		t.Errorf("got %d memories, want 80", count)
	}
}
