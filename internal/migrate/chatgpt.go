package migrate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// conversationFiles are the names of the files of an account's conversations. Large exports have several.
var conversationFiles = []string{"conversations.json", "conversations-[0-9]*.json"}

// chatGPT reads the export of an account: the files of conversations, alone, in their folder or in the ZIP archive. It
// takes the branch of each conversation that the service shows, with the messages of people and the model, typed or
// spoken. It skips messages of tools and of the system, pictures and sounds.
func chatGPT(_ context.Context, path string) iter.Seq2[Item, error] {
	return conversations[chatGPTConversation](path)
}

// conversations reads files of conversations.
func conversations[C interface{ items() []Item }](path string) iter.Seq2[Item, error] {
	return inFiles(path, conversationFiles, func(in io.Reader) iter.Seq2[Item, error] {
		return func(yield func(Item, error) bool) {
			for c, err := range elements[C](in, "") {
				if err != nil {
					yield(Item{}, err)
					return
				}
				for _, item := range c.items() {
					if !yield(item, nil) {
						return
					}
				}
			}
		}
	})
}

// chatGPTConversation is a tree of messages; each regenerated answer is a branch.
type chatGPTConversation struct {
	ID             string                 `json:"id"`
	ConversationID string                 `json:"conversation_id"`
	Title          string                 `json:"title"`
	CurrentNode    string                 `json:"current_node"`
	Mapping        map[string]chatGPTNode `json:"mapping"`
}

type chatGPTNode struct {
	Parent  string `json:"parent"`
	Message *struct {
		ID         string  `json:"id"`
		CreateTime float64 `json:"create_time"`
		Author     struct {
			Role string `json:"role"`
		} `json:"author"`
		Content struct {
			Type  string       `json:"content_type"`
			Parts chatGPTParts `json:"parts"`
			Text  string       `json:"text"`
		} `json:"content"`
		Metadata struct {
			Hidden bool `json:"is_visually_hidden_from_conversation"`
		} `json:"metadata"`
	} `json:"message"`
}

// chatGPTParts is the text of a message's parts: what was typed, and the transcript of speech.
type chatGPTParts string

// UnmarshalJSON reads parts one by one, since all at once could take sixty times the memory of the text.
func (p *chatGPTParts) UnmarshalJSON(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	if start, err := decoder.Token(); err != nil || start != json.Delim('[') {
		return err
	}
	var all strings.Builder
	var part json.RawMessage
	for decoder.More() {
		if err := decoder.Decode(&part); err != nil {
			return err
		}
		var text string
		switch part[0] {
		case '"':
			_ = json.Unmarshal(part, &text)
		case '{':
			var object struct {
				Type string `json:"content_type"`
				Text string `json:"text"`
			}
			if json.Unmarshal(part, &object) == nil && object.Type == "audio_transcription" {
				text = object.Text
			}
		}
		if strings.TrimSpace(text) != "" {
			if all.Len() > 0 {
				all.WriteByte('\n')
			}
			all.WriteString(text)
		}
	}
	*p = chatGPTParts(all.String())
	return nil
}

// items returns the turns of a conversation.
func (c chatGPTConversation) items() []Item {
	id := cmp.Or(c.ConversationID, c.ID)
	if id == "" {
		return []Item{{Memory: souvenir.NewMemory{Key: "chatgpt:?"}, Skipped: "a conversation has no id"}}
	}
	var items []Item
	seen := map[string]bool{} // a damaged file may have cycles
	for at := c.CurrentNode; at != "" && !seen[at]; at = c.Mapping[at].Parent {
		seen[at] = true
		m := c.Mapping[at].Message
		if m == nil || m.Metadata.Hidden || m.Author.Role != "user" && m.Author.Role != "assistant" {
			continue
		}
		text := string(m.Content.Parts)
		if m.Content.Type != "code" && m.Content.Text != "" {
			text = strings.TrimPrefix(text+"\n"+m.Content.Text, "\n")
		}
		if text == "" {
			continue
		}
		items = append(items, turnItem("chatgpt", id, c.Title, souvenir.Turn{Key: cmp.Or(m.ID, at), Role: m.Author.Role,
			Content: text, Time: secondsTime(m.CreateTime)}))
	}
	slices.Reverse(items)
	return items
}

// turnItem returns a turn of a conversation, whose key names its source.
func turnItem(source, conversation, title string, t souvenir.Turn) Item {
	t.Key = strings.TrimPrefix(keyOf("", t.Key), ":")
	t.Content, t.Time = strings.ToValidUTF8(t.Content, "\uFFFD"), past(t.Time)
	if title != "" {
		t.Metadata = map[string]any{"title": strings.ToValidUTF8(title, "\uFFFD")}
	}
	return Item{Conversation: keyOf(source, conversation), Turn: t}
}
