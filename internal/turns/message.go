package turns

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/shorten"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Message is a turn, apart from the memory that stores it.
type Message struct {
	Role      string         `json:"role,omitempty"`
	Speaker   string         `json:"speaker,omitempty"`
	Content   string         `json:"content,omitempty"`
	ToolCalls any            `json:"tool_calls,omitempty"`
	Metadata  map[string]any `json:"-"` // the caller's own
}

// ownKeys are the names of metadata that have fields in a turn.
var ownKeys = []string{KeyConversation, KeyRole, KeySpeaker, KeyToolCalls}

// Store checks a turn, and returns the content and the metadata of its memory.
func (m Message) Store(conversation string) (content string, metadata map[string]any, err error) {
	for _, key := range slices.Sorted(maps.Keys(m.Metadata)) {
		if slices.Contains(ownKeys, key) {
			return "", nil, fault.Invalid("metadata", "{} has %s, for which a turn has its own field; choose another name",
				fault.Show(key))
		}
	}
	metadata = map[string]any{KeyConversation: conversation}
	maps.Copy(metadata, m.Metadata)
	for _, word := range []struct {
		name, value string
		check       func(argument, value string) error
	}{{KeyRole, m.Role, valid.Word}, {KeySpeaker, m.Speaker, valid.Name}} {
		if word.value == "" {
			continue
		}
		if err := word.check(word.name, word.value); err != nil {
			return "", nil, err
		}
		metadata[word.name] = word.value
	}
	content = m.Content
	if m.ToolCalls != nil {
		calls, err := jsonobject.Canonical(KeyToolCalls, map[string]any{KeyToolCalls: m.ToolCalls})
		if err != nil {
			return "", nil, err
		}
		if value := calls[KeyToolCalls]; value != nil {
			metadata[KeyToolCalls] = value
			if content == "" {
				content = textOf(value)
			}
		}
	}
	return content, metadata, valid.NewContent(content)
}

// Read returns the content of a turn from the content and the metadata of its memory.
func Read(content string, metadata map[string]any) Message {
	m := Message{Content: content, ToolCalls: metadata[KeyToolCalls]}
	m.Role, _ = metadata[KeyRole].(string)
	m.Speaker, _ = metadata[KeySpeaker].(string)
	if m.ToolCalls != nil && content == textOf(m.ToolCalls) {
		m.Content = ""
	}
	for key, value := range metadata {
		if slices.Contains(ownKeys, key) {
			continue
		}
		if m.Metadata == nil {
			m.Metadata = map[string]any{}
		}
		m.Metadata[key] = value
	}
	return m
}

// textOf returns tool calls as text, for the content of a memory whose turn has no other content.
func textOf(calls any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(calls); err != nil {
		return ""
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// Size is the length of the turn's content as JSON, in bytes.
func (m Message) Size() int {
	encoded, err := json.Marshal(m)
	if err != nil {
		return 0
	}
	return len(encoded)
}

// Within shortens a turn to a size, and reports whether that was necessary: it drops tool calls that alone are larger,
// and cuts the content. The result can still exceed a very small size.
func (m Message) Within(size int) (Message, bool) {
	if m.Size() <= size {
		return m, false
	}
	whole := m.Content
	if m.Content = ""; m.Size() > size {
		m.ToolCalls = nil
	}
	m.Content = whole
	for characters := utf8.RuneCountInString(whole); characters > 0; {
		now := m.Size()
		if now <= size {
			break
		}
		characters = min(characters-1, characters*size/now)
		m.Content = shorten.Words(whole, characters)
	}
	return m, true
}
