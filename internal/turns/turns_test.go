package turns_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/turns"
)

func of(content string, metadata map[string]any) *turns.Turn {
	return turns.Of(turns.Memory{Content: content, Metadata: metadata, Created: 7})
}

func TestTheFirstNameOfAConversationCounts(t *testing.T) {
	keys := []string{"conversation_id", "conversation", "conv", "thread_id", "chat_id", "session_id", "session"}
	for i, key := range keys {
		metadata := map[string]any{}
		for _, later := range keys[i:] {
			metadata[later] = later
		}
		got, want := of("", metadata), of("", map[string]any{key: key})
		if got == nil || *got != *want {
			t.Errorf("%v is of %v, want that of %s", metadata, got, key)
		}
	}
	one, two := of("", map[string]any{"conv": "a", "session": 1}), of("", map[string]any{"conv": "a", "session": 2})
	if one.Conversation != two.Conversation {
		t.Errorf("two sessions of one conversation are two conversations: got %v, want %v", one.Conversation,
			two.Conversation)
	}
	if of("", map[string]any{"session": json.Number("1")}).Conversation != of("",
		map[string]any{"session": 1.0}).Conversation {
		t.Error("the same number names two conversations, want one")
	}
	if of("", map[string]any{"conv": "a"}).Conversation == of("", map[string]any{"conv": "b"}).Conversation {
		t.Error("two names are one conversation, want two")
	}
}

func TestMemoriesWithoutAConversationKeyHaveNone(t *testing.T) {
	for _, metadata := range []map[string]any{nil, {"conv": ""}, {"conv": "  "}, {"conv": map[string]any{"a": 1}},
		{"conv": true}, {"speaker": "Mara", "time": "2024-01-02"}} {
		if got := of("Mara: hello", metadata); got != nil {
			t.Errorf("%v is %v, want none", metadata, got)
		}
	}
}

func TestConversationsOfADay(t *testing.T) {
	at := func(when string, project bool, event string) *turns.Turn {
		created, err := time.Parse(time.RFC3339, when)
		if err != nil {
			t.Fatal(err)
		}
		return turns.Of(turns.Memory{EventType: event, InProject: project, Created: created.UnixMicro()})
	}
	morning, evening := at("2024-05-01T00:00:00Z", true, "conversation"), at("2024-05-01T23:59:59Z", true, "Conversation")
	if morning == nil || evening == nil || morning.Conversation != evening.Conversation {
		t.Errorf("got %+v and %+v, want two turns of one conversation", morning, evening)
	}
	if next := at("2024-05-02T00:00:00Z", true, "conversation"); next.Conversation == morning.Conversation {
		t.Errorf("two days are one conversation: got %v, want conversation other than %v", next.Conversation,
			morning.Conversation)
	}
	if at("2024-05-01T00:00:00Z", false, "conversation") != nil || at("2024-05-01T00:00:00Z", true, "decision") != nil {
		t.Error("a memory outside of conversations belongs to one")
	}
}

func TestTimesOfTurns(t *testing.T) {
	want := time.Date(2023, 5, 8, 13, 56, 0, 0, time.UTC).UnixMicro()
	for _, metadata := range []map[string]any{
		{"session_ts": "2023-05-08T13:56:00"}, {"time": "2023-05-08T13:56:00Z"}, {"created": "2023-05-08 13:56"},
		{"time": "2023-05-08T15:56:00+02:00"}, {"time": 1683554160.0}, {"time": "1683554160000"},
		{"session_ts": "some day", "time": "2023-05-08T13:56:00"},
		{"session_ts": "2023-05-08T13:56:00", "time": "2020-01-01"},
	} {
		metadata["conv"] = "a"
		if got := of("", metadata); got.At != want {
			t.Errorf("%v is at %v, want %v", metadata, got.At, want)
		}
	}
	for _, metadata := range []map[string]any{{}, {"time": "soon"}, {"time": -1.0}, {"time": "NaN"}, {"time": 1e300}} {
		metadata["conv"] = "a"
		if got := of("", metadata); got.At != 7 {
			t.Errorf("%v is at %v, want the time of storing", metadata, got.At)
		}
	}
}

func TestSpeakers(t *testing.T) {
	for content, want := range map[string]string{
		"Mara: I will": "Mara", "(1:56 pm on 8 May, 2023) Mara Quill: I will": "Mara Quill", "Zoë:\nhello": "Zoë",
		"李明: 你好": "李明", "note: milk": "", "https://example.com": "", "At 5:30 we met": "", "A b C D: x": "",
		"Mara:": "", "(Mara: x": "", ": x": "", "": "", "One Two Three Four: x": "",
		strings.Repeat("A", 100) + ": x": "",
	} {
		if got := of(content, map[string]any{"conv": "a"}).Speaker; got != want {
			t.Errorf("%q is said by %q, want %q", content, got, want)
		}
	}
	if got := of("Mara: x", map[string]any{"conv": "a", "role": "user", "speaker": "Ann"}).Speaker; got != "Ann" {
		t.Errorf("said by %q, want what speaker says", got)
	}
	if got := of("Mara: x", map[string]any{"conv": "a", "role": "user"}).Speaker; got != "user" {
		t.Errorf("said by %q, want what role says", got)
	}
	if got := of("", map[string]any{"conv": "a", "speaker": strings.Repeat("ä", 100)}).Speaker; got != strings.Repeat("ä",
		32) {
		t.Errorf("a long name is kept as %q, want %v", got, strings.Repeat("ä", 32))
	}
}

func TestAsks(t *testing.T) {
	for content, want := range map[string]bool{
		"Where were you?": true, "Where were you? I waited.": true, "你在哪里？": true, "أين كنت؟": true, "": false,
		"I waited.": false,
		"Where were you? I waited for hours at the station in the rain.": false, "?": true,
		"?" + strings.Repeat("ä", 39): true, "?" + strings.Repeat("ä", 40): false,
	} {
		if got := turns.Asks(content); got != want {
			t.Errorf("%q asks: %v, want %v", content, got, want)
		}
	}
}
