package turns_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/turns"
)

func TestTurnsRoundTrip(t *testing.T) {
	calls := []any{map[string]any{"name": "a<b", "n": 1.0}}
	for _, want := range []turns.Message{
		{Content: "hello"}, {Role: "user", Speaker: "李", Content: "你好", Metadata: map[string]any{"state": "x"}},
		{Content: "with calls", ToolCalls: calls}, {Role: "assistant", ToolCalls: calls},
	} {
		content, metadata, err := want.Store("k")
		if got := turns.Read(content, metadata); err != nil || !reflect.DeepEqual(got, want) ||
			metadata["conversation_id"] != "k" {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
	for _, refused := range []turns.Message{{}, {Content: "  "}, {Content: "x", Metadata: map[string]any{"role": "user"}},
		{Content: "x", Role: strings.Repeat("r", 65)}, {Content: "x", ToolCalls: func() {}}} {
		if _, _, err := refused.Store("k"); err == nil {
			t.Errorf("%+v is accepted, want an error", refused)
		}
	}
}

func TestLongTurnsAreShortened(t *testing.T) {
	for _, content := range []string{strings.Repeat("word ", 5000), strings.Repeat("很长的话。", 3000),
		strings.Repeat("<", 5000)} {
		for _, size := range []int{60, 100, 1000, 5000} {
			got, cut := turns.Message{Role: "user", Content: content, ToolCalls: strings.Repeat("x", 500)}.Within(size)
			if !cut || got.Size() > size || got.Content == "" {
				t.Errorf("%.20q: got %d bytes, cut %v, want it cut to 1 to %d bytes", content, got.Size(), cut, size)
			}
		}
	}
	short := turns.Message{Content: "short"}
	if got, cut := short.Within(100); cut || !reflect.DeepEqual(got, short) {
		t.Errorf("got %+v, %v, want it as it was", got, cut)
	}
}

func TestTheEventTimeIsThePlaceOfATurn(t *testing.T) {
	at := int64(5)
	got := turns.Of(turns.Memory{EventTime: &at, Created: 7, Metadata: map[string]any{"conv": "a", "time": "2023-05-08"}})
	if got.At != at {
		t.Errorf("got the time %d, want the event time %d", got.At, at)
	}
}
