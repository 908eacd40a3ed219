package langchaingo_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/memory"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/adapters/langchaingo"
)

func TestMemoryReturnsTheLastMessages(t *testing.T) {
	store := open(t)
	h := langchaingo.NewChatMessageHistory(store, "a")
	m := langchaingo.NewMemory(h, 30, memory.WithHumanPrefix("Anna"), memory.WithMemoryKey("said"))
	for i := range 20 {
		err := m.SaveContext(t.Context(), map[string]any{"in": fmt.Sprint("question ", i)},
			map[string]any{"out": fmt.Sprint("answer ", i)})
		if err != nil {
			t.Fatal(err)
		}
	}
	got, err := m.LoadMemoryVariables(t.Context(), nil)
	said, _ := got["said"].(string)
	if want := "Anna: question 19\nAI: answer 19"; err != nil || !strings.HasSuffix(said, want) {
		t.Errorf("got %q, %v, want %q at its end", said, err, want)
	}
	if len(said) > 30*4 {
		t.Errorf("got %d bytes, want at most 30 tokens of 4", len(said))
	}
	if all, err := h.Messages(t.Context()); err != nil || len(all) != 40 {
		t.Errorf("got %d messages, %v, want all 40", len(all), err)
	}
	names, key := m.MemoryVariables(t.Context()), m.GetMemoryKey(t.Context())
	if !slices.Equal(names, []string{"said"}) || key != "said" {
		t.Errorf("got the variables %q and the key %q, want said", names, key)
	}

	m.ReturnMessages = true
	got, err = m.LoadMemoryVariables(t.Context(), nil)
	messages, _ := got["said"].([]llms.ChatMessage)
	if err != nil || len(messages) < 2 || messages[len(messages)-1] == nil ||
		messages[len(messages)-1].GetContent() != "answer 19" {
		t.Errorf("got %v, %v, want messages up to answer 19", got, err)
	}
	if err := m.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantMessages(t, h)
}

func TestMemoryRecallsWhatTheStoreKnows(t *testing.T) {
	store := open(t)
	anna := store.As(souvenir.Access{User: "anna"})
	for content, view := range map[string]*souvenir.Store{
		"Anna is allergic\nto peanuts.": anna, "Ben is allergic to peanuts and cats.": store.As(souvenir.Access{User: "ben"}),
		"The office closes at eight.": anna} {
		if _, err := view.AddMemory(t.Context(), souvenir.NewMemory{Content: content}); err != nil {
			t.Fatal(err)
		}
	}
	h := langchaingo.NewChatMessageHistory(anna, "a")
	m := langchaingo.NewMemory(h, 2000, memory.WithInputKey("question"))
	m.RecallKey = "known"
	for _, test := range []struct {
		inputs map[string]any
		want   string
	}{
		{map[string]any{"question": "Is Anna allergic to peanuts?", "other": 1}, "Anna is allergic to peanuts."},
		{map[string]any{"question": "如何修理自行车？"}, ""},
		{map[string]any{"question": " "}, ""},
		{map[string]any{}, ""},
		{nil, ""},
	} {
		got, err := m.LoadMemoryVariables(t.Context(), test.inputs)
		if err != nil || got["known"] != test.want || got["history"] != "" {
			t.Errorf("%v: got %q, %v, want %q", test.inputs, got, err, test.want)
		}
	}
	if got := m.MemoryVariables(t.Context()); !slices.Equal(got, []string{"history", "known"}) {
		t.Errorf("got the variables %q, want history and known", got)
	}
	_, err := m.LoadMemoryVariables(t.Context(), map[string]any{"x": 1})
	if !errors.Is(err, memory.ErrInvalidInputValues) {
		t.Errorf("got %v, want ErrInvalidInputValues", err)
	}
	long := map[string]any{"question": strings.Repeat("peanut ", 20_000)}
	if _, err := m.LoadMemoryVariables(t.Context(), long); err != nil {
		t.Errorf("a long question: got %v", err)
	}
	if err := h.AddUserMessage(t.Context(), "I am allergic to peanuts, says Anna."); err != nil {
		t.Fatal(err)
	}
	got, err := m.LoadMemoryVariables(t.Context(), map[string]any{"question": "Is Anna allergic to peanuts?"})
	if known, _ := got["known"].(string); err != nil || strings.Contains(known, "says") {
		t.Errorf("got %q, %v, want nothing that is in the history, too", got, err)
	}
}

func TestSaveContextStoresBothOrNone(t *testing.T) {
	h := langchaingo.NewChatMessageHistory(open(t), "a")
	m := langchaingo.NewMemory(h, 100)
	for _, outputs := range []map[string]any{nil, {"out": 1}, {"out": "a", "more": "b"}, {"out": "a\x00b"}} {
		if err := m.SaveContext(t.Context(), map[string]any{"in": "question"}, outputs); err == nil {
			t.Errorf("outputs %q: got no error, want one", outputs)
		}
	}
	if err := m.SaveContext(t.Context(), nil, map[string]any{"out": "x"}); !errors.Is(err, memory.ErrInvalidInputValues) {
		t.Errorf("no inputs: got %v, want ErrInvalidInputValues", err)
	}
	wantMessages(t, h)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.LoadMemoryVariables(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	m.Tokens = 0
	if _, err := m.LoadMemoryVariables(t.Context(), nil); !errors.Is(err, souvenir.ErrInvalid) {
		t.Errorf("no tokens: got %v, want ErrInvalid", err)
	}
}
