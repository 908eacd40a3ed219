// Package turns recognises memories that are turns of a conversation: which conversation, by which speaker, at what
// time, and whether they ask a question. Memories come from very different programs, so it understands several metadata
// keys.
package turns

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/shorten"
)

// Names of metadata of the turns that are appended to a conversation.
const (
	KeyConversation = "conversation_id"
	KeySpeaker      = "speaker"
	KeyRole         = "role"
	KeyToolCalls    = "tool_calls"
)

// Metadata keys; the first that is set counts.
var (
	conversationKeys = []string{KeyConversation, "conversation", "conv", "thread_id", "chat_id", "session_id", "session"}
	speakerKeys      = []string{KeySpeaker, KeyRole}
	timeKeys         = []string{"session_ts", "time", "created"}
)

// EventConversation is the event type of memories that are turns of a conversation even if their metadata names none.
const EventConversation = "conversation"

const (
	maxSpeaker = 64 // bytes of a name
	askWithin  = 40 // characters at the end in which a question mark counts
)

// Turn is a part of a conversation.
type Turn struct {
	Conversation int64 // a hash of its name, to distinguish conversations within one place
	At           int64 // microseconds since 1970
	Speaker      string
}

// Memory has the parts of a memory that make a turn.
type Memory struct {
	Content, EventType string
	Metadata           map[string]any
	InProject          bool
	EventTime          *int64 // when it was said, in microseconds since 1970; nil: taken from the metadata, if there
	Created            int64  // when it was stored
}

// Of returns the turn of a memory, nil if it does not belong to a conversation. A memory of event type conversation
// that names none belongs to the conversation of its day, if it is in a project.
func Of(m Memory) *Turn {
	t := &Turn{At: m.Created}
	if m.EventTime != nil {
		t.At = *m.EventTime
	} else if at, ok := timeOf(m.Metadata); ok {
		t.At = at
	}
	switch name := Conversation(m.Metadata); {
	case name != "":
		t.Conversation = Hash(name)
	case m.InProject && strings.EqualFold(m.EventType, EventConversation):
		t.Conversation = hash("day", time.UnixMicro(t.At).UTC().Format(time.DateOnly))
	default:
		return nil
	}
	for _, key := range speakerKeys {
		if t.Speaker = word(m.Metadata[key]); t.Speaker != "" {
			break
		}
	}
	if t.Speaker == "" {
		t.Speaker = prefix(m.Content)
	}
	t.Speaker = shorten.Bytes(t.Speaker, maxSpeaker)
	return t
}

// Conversation returns the name of the conversation in metadata, as written there; empty: none.
func Conversation(metadata map[string]any) string {
	for _, key := range conversationKeys {
		if word(metadata[key]) == "" {
			continue
		}
		if name, ok := metadata[key].(string); ok {
			return name
		}
		return word(metadata[key])
	}
	return ""
}

// Hash returns the number of the conversation with a name.
func Hash(name string) int64 { return hash("named", name) }

// hash returns a number that is practically unique for each name of a kind.
func hash(kind, name string) int64 {
	sum := sha256.Sum256([]byte(kind + "\x00" + name))
	return int64(binary.LittleEndian.Uint64(sum[:]) & math.MaxInt64)
}

// word returns a text or a number of metadata as text, "" for anything else.
func word(value any) string {
	switch v := value.(type) {
	case string:
		return strings.TrimSpace(v)
	case json.Number:
		return v.String()
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case int:
		return strconv.Itoa(v)
	}
	return ""
}

// timeLayouts are understood in metadata. Without a zone it is UTC: only the order counts.
var timeLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00",
	"2006-01-02 15:04:05.999999999", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly}

// timeOf returns the time in metadata: a date, or seconds or milliseconds since 1970.
func timeOf(metadata map[string]any) (micros int64, ok bool) {
	for _, key := range timeKeys {
		text := word(metadata[key])
		if text == "" {
			continue
		}
		for _, layout := range timeLayouts {
			if at, err := time.Parse(layout, text); err == nil {
				return at.UnixMicro(), true
			}
		}
		if seconds, err := strconv.ParseFloat(text, 64); err == nil {
			if seconds >= 1e11 { // as seconds this would be the year 5138
				seconds /= 1000
			}
			if seconds > 0 && seconds < 1e11 {
				return int64(seconds * 1e6), true
			}
		}
	}
	return 0, false
}

// prefix returns the name before a colon at the beginning of a content, after an optional remark in brackets: "Mara: I
// will", "(8 May) Mara: I will". A name has at most three words that look like names.
func prefix(content string) string {
	if rest, found := strings.CutPrefix(content, "("); found {
		end := strings.IndexByte(rest[:min(len(rest), maxSpeaker)], ')')
		if end < 0 {
			return ""
		}
		content = strings.TrimLeft(rest[end+1:], " ")
	}
	name, rest, found := strings.Cut(content[:min(len(content), maxSpeaker)], ":")
	if !found || rest == "" || rest[0] != ' ' && rest[0] != '\n' || !utf8.ValidString(name) {
		return ""
	}
	words := strings.Fields(name)
	if len(words) == 0 || len(words) > 3 {
		return ""
	}
	for _, w := range words {
		if first, _ := utf8.DecodeRuneInString(w); !unicode.IsLetter(first) || unicode.IsLower(first) {
			return ""
		}
	}
	return strings.Join(words, " ")
}

// Asks reports whether a content ends with a question: a question mark among its last characters.
func Asks(content string) bool {
	at := len(content)
	for range askWithin {
		if at == 0 {
			return false
		}
		r, size := utf8.DecodeLastRuneInString(content[:at])
		if r == '?' || r == '？' || r == '؟' || r == '⸮' {
			return true
		}
		at -= size
	}
	return false
}
