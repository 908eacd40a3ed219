package turns

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/shorten"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Said is the content of a turn, apart from the memory that stores it.
type Said struct {
	Role      string         `json:"role,omitempty"`
	Speaker   string         `json:"speaker,omitempty"`
	Content   string         `json:"content,omitempty"`
	ToolCalls any            `json:"tool_calls,omitempty"`
	Metadata  map[string]any `json:"-"` // the caller's own
}

// ownKeys are the names of metadata that have fields in a turn.
var ownKeys = []string{KeyConversation, KeyRole, KeySpeaker, KeyToolCalls}

// Store checks a turn, and returns the content and the metadata of its memory.
func (s Said) Store(conversation string) (content string, metadata map[string]any, err error) {
	for _, key := range slices.Sorted(maps.Keys(s.Metadata)) {
		if slices.Contains(ownKeys, key) {
			return "", nil, fault.Invalid("metadata", "{} has %s, which a turn has a field for; choose another name",
				fault.Show(key))
		}
	}
	metadata = map[string]any{KeyConversation: conversation}
	maps.Copy(metadata, s.Metadata)
	for _, word := range []struct {
		name, value string
		check       func(argument, value string) error
	}{{KeyRole, s.Role, valid.Word}, {KeySpeaker, s.Speaker, valid.Name}} {
		if word.value == "" {
			continue
		}
		if err := word.check(word.name, word.value); err != nil {
			return "", nil, err
		}
		metadata[word.name] = word.value
	}
	content = s.Content
	if s.ToolCalls != nil {
		calls, err := jsonobject.Canonical(KeyToolCalls, map[string]any{KeyToolCalls: s.ToolCalls})
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
func Read(content string, metadata map[string]any) Said {
	s := Said{Content: content, ToolCalls: metadata[KeyToolCalls]}
	s.Role, _ = metadata[KeyRole].(string)
	s.Speaker, _ = metadata[KeySpeaker].(string)
	if s.ToolCalls != nil && content == textOf(s.ToolCalls) {
		s.Content = ""
	}
	for key, value := range metadata {
		if slices.Contains(ownKeys, key) {
			continue
		}
		if s.Metadata == nil {
			s.Metadata = map[string]any{}
		}
		s.Metadata[key] = value
	}
	return s
}

// textOf returns tool calls as a text, which is the content of a memory whose turn has no other.
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
func (s Said) Size() int {
	encoded, err := json.Marshal(s)
	if err != nil {
		return 0
	}
	return len(encoded)
}

// Within shortens a turn to a size, and reports whether that was necessary: it drops tool calls that alone are larger,
// and cuts the content. The result can still exceed a very small size.
func (s Said) Within(size int) (Said, bool) {
	if s.Size() <= size {
		return s, false
	}
	whole := s.Content
	if s.Content = ""; s.Size() > size {
		s.ToolCalls = nil
	}
	s.Content = whole
	for characters := utf8.RuneCountInString(whole); characters > 0; {
		now := s.Size()
		if now <= size {
			break
		}
		characters = min(characters-1, characters*size/now)
		s.Content = shorten.Words(whole, characters)
	}
	return s, true
}
