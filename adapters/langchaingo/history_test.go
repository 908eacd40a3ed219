package langchaingo_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/memory"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/adapters/langchaingo"
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

// wantMessages compares the messages of a history.
func wantMessages(t *testing.T, h *langchaingo.ChatMessageHistory, want ...llms.ChatMessage) {
	t.Helper()
	got, err := h.Messages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Errorf("got the messages %.2000s, want %.2000s", fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want))
	}
}

// everyKind are messages of every kind, with all their fields.
var everyKind = []llms.ChatMessage{
	llms.SystemChatMessage{Content: "You are kind."},
	llms.HumanChatMessage{Content: "我喜欢乌龙茶。"},
	llms.AIChatMessage{Content: "好的。", ReasoningContent: "She likes tea."},
	llms.AIChatMessage{ToolCalls: []llms.ToolCall{
		{ID: "call_1", Type: "function", FunctionCall: &llms.FunctionCall{Name: "add", Arguments: `{"a": 1}`}},
		{ID: "call_2"}}},
	llms.ToolChatMessage{ID: "call_1", Content: "2"},
	llms.ToolChatMessage{ID: "call_2"},
	llms.AIChatMessage{FunctionCall: &llms.FunctionCall{Name: "old", Arguments: "{}"}},
	llms.AIChatMessage{Content: " ", ToolCalls: []llms.ToolCall{{ID: "call_3"}}},
	llms.FunctionChatMessage{Name: "old", Content: "done"},
	llms.GenericChatMessage{Role: "user", Name: "李", Content: "Hello."},
	llms.GenericChatMessage{Role: "critic", Content: "(empty message)"},
	llms.HumanChatMessage{},
	llms.AIChatMessage{Content: " \n\u200b"},
	llms.HumanChatMessage{Content: strings.Repeat("long ", 100_000)},
}

func TestMessagesOfEveryKindAreReadAsWritten(t *testing.T) {
	store := open(t)
	h := langchaingo.NewChatMessageHistory(store, "a")
	wantMessages(t, h)
	for _, m := range everyKind {
		if err := h.AddMessage(t.Context(), m); err != nil {
			t.Fatalf("%+v: %v", m, err)
		}
	}
	wantMessages(t, h, everyKind...)
	wantMessages(t, langchaingo.NewChatMessageHistory(store, "a"), everyKind...)
	wantMessages(t, langchaingo.NewChatMessageHistory(store, "b"))

	ai := llms.AIChatMessage{ToolCalls: []llms.ToolCall{{ID: "call_4"}}}
	if err := h.AddMessage(t.Context(), &ai); err != nil {
		t.Fatal(err)
	}
	wantMessages(t, h, append(everyKind[:len(everyKind):len(everyKind)], ai)...)
	if err := h.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantMessages(t, h)
}

func TestInvalidMessagesAreRefused(t *testing.T) {
	h := langchaingo.NewChatMessageHistory(open(t), "a")
	var none *llms.AIChatMessage
	for _, m := range []llms.ChatMessage{nil, none, odd{}, llms.HumanChatMessage{Content: "a\x00b"},
		llms.AIChatMessage{Content: "\xff"}, llms.AIChatMessage{Content: "x", ReasoningContent: "\xff"},
		llms.HumanChatMessage{Content: strings.Repeat("x", souvenir.MaxContent+1)}} {
		if err := h.AddMessage(t.Context(), m); err == nil {
			t.Errorf("%.60s: got no error, want one", fmt.Sprintf("%T %v", m, m))
		}
	}
	wantMessages(t, h)
	for _, key := range []string{"", " ", strings.Repeat("k", 513)} {
		h := langchaingo.NewChatMessageHistory(open(t), key)
		err := h.AddUserMessage(t.Context(), "x")
		if !errors.Is(err, souvenir.ErrInvalid) && !errors.Is(err, souvenir.ErrTooLarge) {
			t.Errorf("key %.20q: got %v, want it refused", key, err)
		}
	}
}

// odd is a message of a type that langchaingo does not know.
type odd struct{}

func (odd) GetType() llms.ChatMessageType { return "odd" }
func (odd) GetContent() string            { return "x" }

// ids returns the ids of the turns of a conversation.
func ids(t *testing.T, store *souvenir.Store, key string) (ids []string) {
	t.Helper()
	turns, err := store.Conversation(key).Last(t.Context(), souvenir.MaxTurns)
	if err != nil {
		t.Fatal(err)
	}
	for _, turn := range turns {
		ids = append(ids, turn.ID)
	}
	return ids
}

func TestSetMessagesKeepsWhatStays(t *testing.T) {
	store := open(t)
	h := langchaingo.NewChatMessageHistory(store, "a")
	human := func(n int) llms.ChatMessage { return llms.HumanChatMessage{Content: fmt.Sprint("message ", n)} }
	set := func(messages ...llms.ChatMessage) []string {
		t.Helper()
		if err := h.SetMessages(t.Context(), messages); err != nil {
			t.Fatal(err)
		}
		wantMessages(t, h, messages...)
		return ids(t, store, "a")
	}
	first := set(human(1), human(2), human(3))
	if got := set(human(1), human(2), human(3)); !reflect.DeepEqual(got, first) {
		t.Errorf("the same again: got turns %v, want %v", got, first)
	}
	if got := set(human(1), human(2), human(3), human(4)); !reflect.DeepEqual(got[:3], first) {
		t.Errorf("continued: got turns %v, want %v at the beginning", got, first)
	}
	if got := set(human(3), human(4)); got[0] != first[2] {
		t.Errorf("cut: got turns %v, want %s first", got, first[2])
	}
	if got := set(human(5), human(4), human(6)); len(got) != 3 || got[0] == first[2] {
		t.Errorf("replaced: got turns %v, want three new ones", got)
	}
	before := ids(t, store, "a")
	err := h.SetMessages(t.Context(), []llms.ChatMessage{human(7), llms.HumanChatMessage{Content: "a\x00b"}})
	if got := ids(t, store, "a"); err == nil || !reflect.DeepEqual(got, before) {
		t.Errorf("a message that is refused: got %v and the turns %v, want an error and %v", err, got, before)
	}
	set()
	many := make([]llms.ChatMessage, 2100)
	for i := range many {
		many[i] = human(i)
	}
	set(many...)
}

func TestBuffersOfLangchaingoWorkOnAHistory(t *testing.T) {
	store := open(t)
	h := langchaingo.NewChatMessageHistory(store, "a")
	window := memory.NewConversationWindowBuffer(1, memory.WithChatHistory(h))
	whole := memory.NewConversationBuffer(memory.WithChatHistory(h))
	for _, said := range []string{"one", "two"} {
		err := window.SaveContext(t.Context(), map[string]any{"in": said}, map[string]any{"out": said + "!"})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range []interface {
		LoadMemoryVariables(context.Context, map[string]any) (map[string]any, error)
	}{window, whole} {
		got, err := m.LoadMemoryVariables(t.Context(), nil)
		if want := "Human: two\nAI: two!"; err != nil || got["history"] != want {
			t.Errorf("%T: got %q, %v, want %q", m, got["history"], err, want)
		}
	}
}

func TestTurnsOfOtherProgramsAreMessages(t *testing.T) {
	store := open(t)
	_, err := store.Conversation("a").Append(t.Context(), souvenir.Turn{Role: "user", Speaker: "Anna", Content: "Hi."},
		souvenir.Turn{Role: "narrator", Speaker: "N", Content: "She waits."}, souvenir.Turn{Content: "?"},
		souvenir.Turn{Role: "assistant", ToolCalls: map[string]any{"odd": true}},
		souvenir.Turn{Role: "assistant", ToolCalls: []any{map[string]any{"id": "c", "type": "function",
			"function": map[string]any{"name": "f", "arguments": "{}"}}}},
		souvenir.Turn{Role: "assistant", Content: "x", Metadata: map[string]any{"function_call": 7, "blank_content": "y"}})
	if err != nil {
		t.Fatal(err)
	}
	wantMessages(t, langchaingo.NewChatMessageHistory(store, "a"), llms.HumanChatMessage{Content: "Hi."},
		llms.GenericChatMessage{Role: "narrator", Name: "N", Content: "She waits."}, llms.GenericChatMessage{Content: "?"},
		llms.AIChatMessage{Content: `{"odd":true}`},
		llms.AIChatMessage{ToolCalls: []llms.ToolCall{
			{ID: "c", Type: "function", FunctionCall: &llms.FunctionCall{Name: "f", Arguments: "{}"}}}},
		llms.AIChatMessage{Content: "x"})
}

func TestUsersHaveHistoriesOfTheirOwn(t *testing.T) {
	store := open(t)
	anna := langchaingo.NewChatMessageHistory(store.As(souvenir.Access{User: "anna"}), "same")
	ben := langchaingo.NewChatMessageHistory(store.As(souvenir.Access{User: "ben"}), "same")
	if err := anna.AddUserMessage(t.Context(), "Anna's."); err != nil {
		t.Fatal(err)
	}
	wantMessages(t, ben)
	if err := ben.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := ben.SetMessages(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	wantMessages(t, anna, llms.HumanChatMessage{Content: "Anna's."})
}

func TestManyGoroutinesAddToOneHistory(t *testing.T) {
	store := open(t)
	var group sync.WaitGroup
	for g := range 8 {
		group.Go(func() {
			h := langchaingo.NewChatMessageHistory(store, "a")
			for i := range 25 {
				if err := h.AddUserMessage(t.Context(), fmt.Sprint(g, " ", i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	messages, err := langchaingo.NewChatMessageHistory(store, "a").Messages(t.Context())
	if err != nil || len(messages) != 200 {
		t.Fatalf("got %d messages, %v, want 200", len(messages), err)
	}
	next := map[string]int{}
	for _, m := range messages {
		var g, i int
		if _, err := fmt.Sscan(m.GetContent(), &g, &i); err != nil || next[fmt.Sprint(g)] != i {
			t.Fatalf("got %q, %v, want the message %d of %d", m.GetContent(), err, next[fmt.Sprint(g)], g)
		}
		next[fmt.Sprint(g)]++
	}
}

func TestSetMessagesIsAtomicAmongOthers(t *testing.T) {
	store := open(t)
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			h := langchaingo.NewChatMessageHistory(store, "a")
			for i := range 5 {
				list := make([]llms.ChatMessage, 1+g)
				for j := range list {
					list[j] = llms.HumanChatMessage{Content: fmt.Sprint(g, " ", i)}
				}
				if err := h.SetMessages(t.Context(), list); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	messages, err := langchaingo.NewChatMessageHistory(store, "a").Messages(t.Context())
	if err != nil || len(messages) == 0 {
		t.Fatalf("got %v, %v, want those of one call", messages, err)
	}
	var g, i int
	if _, err := fmt.Sscan(messages[0].GetContent(), &g, &i); err != nil || len(messages) != 1+g || i != 4 {
		t.Errorf("got %v, %v, want the last ones of one goroutine", messages, err)
	}
	for _, m := range messages {
		if m.GetContent() != messages[0].GetContent() {
			t.Errorf("got %v, want the messages of one call", messages)
		}
	}
}

func TestCancelledCallsOfAHistoryEnd(t *testing.T) {
	h := langchaingo.NewChatMessageHistory(open(t), "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := h.Messages(ctx)
	for name, err := range map[string]error{"Messages": err, "Clear": h.Clear(ctx),
		"AddUserMessage": h.AddUserMessage(ctx, "x"), "AddAIMessage": h.AddAIMessage(ctx, "x"),
		"SetMessages": h.SetMessages(ctx, []llms.ChatMessage{llms.HumanChatMessage{Content: "x"}})} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want context.Canceled", name, err)
		}
	}
	wantMessages(t, h)
}
