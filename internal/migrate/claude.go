package migrate

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// claude reads the export of an account: the files of conversations, alone, in their folder or in the ZIP archive. It
// takes texts of attachments; it skips the model's thoughts, tool calls and files.
func claude(_ context.Context, path string) iter.Seq2[Item, error] {
	return conversations[claudeConversation](path)
}

type claudeConversation struct {
	ID       string `json:"uuid"`
	Name     string `json:"name"`
	Messages []struct {
		ID        string `json:"uuid"`
		Text      string `json:"text"`
		Sender    string `json:"sender"`
		CreatedAt string `json:"created_at"`
		Content   []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
		Attachments []struct {
			Name    string `json:"file_name"`
			Content string `json:"extracted_content"`
		} `json:"attachments"`
	} `json:"chat_messages"`
}

// items returns the turns of a conversation.
func (c claudeConversation) items() []Item {
	if c.ID == "" {
		return []Item{{Memory: souvenir.NewMemory{Key: "claude:?"}, Skipped: "a conversation has no uuid"}}
	}
	var items []Item
	for i, m := range c.Messages {
		var texts []string
		for _, part := range m.Content {
			if part.Type == "text" && strings.TrimSpace(part.Text) != "" {
				texts = append(texts, part.Text)
			}
		}
		if len(texts) == 0 && strings.TrimSpace(m.Text) != "" {
			texts = append(texts, m.Text)
		}
		for _, a := range m.Attachments {
			if strings.TrimSpace(a.Content) != "" {
				texts = append(texts, strings.TrimSpace(a.Name+"\n"+a.Content))
			}
		}
		role := "assistant"
		if m.Sender == "human" {
			role = "user"
		}
		if len(texts) > 0 {
			items = append(items, turnItem("claude", c.ID, c.Name, souvenir.Turn{Key: cmp.Or(m.ID, fmt.Sprint(i)),
				Role: role, Content: strings.Join(texts, "\n\n"), Time: textTime(m.CreatedAt)}))
		}
	}
	return items
}
