package langchaingo

import (
	"context"
	"slices"
	"strings"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/memory"
	"github.com/tmc/langchaingo/schema"

	"github.com/souvenir-ai/souvenir"
)

// Memory is the memory of a chain: the last messages of a history that fit a number of tokens, and if RecallKey is set,
// what else the store knows about the input. Unlike langchaingo's own buffers of limited size it deletes nothing: older
// messages stay in the store. Set its fields before its first use.
type Memory struct {
	memory.ConversationBuffer

	// Tokens is the most tokens of messages that LoadMemoryVariables returns, at 4 bytes a token.
	Tokens int

	// RecallKey is the name of a further variable: the contents of the memories that are probably about the input, the
	// best first, one in each line. Empty means none.
	RecallKey string

	// Query says where and how to search for RecallKey; its Text is the input. The zero value means everything that the
	// view of the store can see, at most 7 memories with a confidence of at least 0.5.
	Query souvenir.Query

	history *ChatMessageHistory
}

var _ schema.Memory = (*Memory)(nil)

// NewMemory returns a memory over a history. The options are those of langchaingo's ConversationBuffer, except for the
// history, which they do not replace.
func NewMemory(history *ChatMessageHistory, tokens int, options ...memory.ConversationBufferOption) *Memory {
	buffer := memory.NewConversationBuffer(append(slices.Clone(options), memory.WithChatHistory(history))...)
	return &Memory{ConversationBuffer: *buffer, Tokens: tokens, history: history}
}

// MemoryVariables returns the names of the variables that LoadMemoryVariables returns.
func (m *Memory) MemoryVariables(context.Context) []string {
	if m.RecallKey == "" {
		return []string{m.MemoryKey}
	}
	return []string{m.MemoryKey, m.RecallKey}
}

// LoadMemoryVariables returns the last messages, as []llms.ChatMessage if ReturnMessages is set, else as a text; and,
// if RecallKey is set, the memories that it recalls about the input. It does not recall messages that are among the
// last ones.
func (m *Memory) LoadMemoryVariables(ctx context.Context, inputs map[string]any) (map[string]any, error) {
	turns, err := m.history.conversation.Window(ctx, m.Tokens)
	if err != nil {
		return nil, err
	}
	messages := messagesOf(turns)
	variables := map[string]any{m.MemoryKey: messages}
	if !m.ReturnMessages {
		if variables[m.MemoryKey], err = llms.GetBufferString(messages, m.HumanPrefix, m.AIPrefix); err != nil {
			return nil, err
		}
	}
	if m.RecallKey != "" {
		variables[m.RecallKey], err = m.recall(ctx, inputs, turns)
	}
	return variables, err
}

// recall returns the memories about the input that are not among the turns.
func (m *Memory) recall(ctx context.Context, inputs map[string]any, turns []souvenir.Turn) (string, error) {
	if len(inputs) == 0 {
		return "", nil
	}
	input, err := memory.GetInputValue(inputs, m.InputKey)
	if err != nil || isBlank(input) {
		return "", err
	}
	q := m.Query
	q.Text = beginning(input)
	if q.MinScore == 0 {
		q.MinScore = 0.5
	}
	results, err := m.history.store.Search(ctx, q)
	if err != nil {
		return "", err
	}
	var lines []string
	for _, hit := range results.Hits {
		if !slices.ContainsFunc(turns, func(t souvenir.Turn) bool { return t.ID == hit.ID }) {
			lines = append(lines, strings.Join(strings.Fields(hit.Content), " "))
		}
	}
	return strings.Join(lines, "\n"), nil
}

// SaveContext adds the input as a message of the human and the output as one of the model, in one commit.
func (m *Memory) SaveContext(ctx context.Context, inputs, outputs map[string]any) error {
	input, err := memory.GetInputValue(inputs, m.InputKey)
	if err != nil {
		return err
	}
	output, err := memory.GetInputValue(outputs, m.OutputKey)
	if err != nil {
		return err
	}
	return m.history.add(ctx, llms.HumanChatMessage{Content: input}, llms.AIChatMessage{Content: output})
}
