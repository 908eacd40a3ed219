// Package langchaingo lets programs with langchaingo keep their chat histories and documents in a Souvenir store: as
// [ChatMessageHistory], [Memory], [VectorStore] and [Retriever]. It is a module of its own, so that programs without
// langchaingo do not depend on it. docs/frameworks/langchaingo.md describes the mapping.
//
// A view of the store decides whose data it is: give each user their own, with [souvenir.Store.As].
package langchaingo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/schema"

	"github.com/souvenir-ai/souvenir"
)

// The roles of turns.
const (
	roleUser      = "user"
	roleAssistant = "assistant"
	roleSystem    = "system"
	roleTool      = "tool"
	roleFunction  = "function"
	roleGeneric   = "generic"
)

// The keys of a turn's metadata for the parts of a message that a turn has no field for.
const (
	keyRole      = "message_role"      // the Role of a generic message, whose turn has the role generic
	keyCallID    = "tool_call_id"      // the ID of a tool message
	keyFunction  = "function_call"     // the FunctionCall of an AI message
	keyReasoning = "reasoning_content" // the ReasoningContent of an AI message
	keyBlank     = "blank_content"     // the content of a message that has only white space
)

// blankContent is the content of a turn whose message has none: a turn needs some.
const blankContent = "(empty message)"

// toolCall is a tool call in the form that most programs use, and turns. The JSON of an llms.ToolCall has another form,
// and loses the function when it is read.
type toolCall struct {
	ID       string             `json:"id"`
	Type     string             `json:"type,omitempty"`
	Function *llms.FunctionCall `json:"function,omitempty"`
}

// ChatMessageHistory is a chat history in a conversation of a store. Each message is a turn of it, which searches find.
// It is safe for concurrent use, and several histories with one key share their messages.
type ChatMessageHistory struct {
	store        *souvenir.Store
	conversation *souvenir.Conversation
}

var _ schema.ChatMessageHistory = (*ChatMessageHistory)(nil)

// NewChatMessageHistory returns the history of the conversation with a key, such as a session id: any text of at most
// 512 bytes that is not blank. Give at most one place; without one it is as for [souvenir.Store.Conversation]. An
// invalid key or place makes every method return an error.
func NewChatMessageHistory(store *souvenir.Store, key string, in ...souvenir.ConversationPlace) *ChatMessageHistory {
	return &ChatMessageHistory{store: store, conversation: store.Conversation(key, in...)}
}

// AddMessage adds a message at the end.
func (h *ChatMessageHistory) AddMessage(ctx context.Context, message llms.ChatMessage) error {
	return h.add(ctx, message)
}

// AddUserMessage adds a message of a human.
func (h *ChatMessageHistory) AddUserMessage(ctx context.Context, message string) error {
	return h.add(ctx, llms.HumanChatMessage{Content: message})
}

// AddAIMessage adds a message of the model.
func (h *ChatMessageHistory) AddAIMessage(ctx context.Context, message string) error {
	return h.add(ctx, llms.AIChatMessage{Content: message})
}

// Messages returns all messages, in their order. Nil means none.
func (h *ChatMessageHistory) Messages(ctx context.Context) ([]llms.ChatMessage, error) {
	turns, err := h.turns(ctx)
	if err != nil {
		return nil, err
	}
	return messagesOf(turns), nil
}

// Clear deletes all messages. They go to the trash.
func (h *ChatMessageHistory) Clear(ctx context.Context) error {
	_, err := h.conversation.Clear(ctx, nil)
	return err
}

// SetMessages replaces the messages, in one transaction. A history that is cut at its beginning or continued at its end
// keeps the turns that stay; the others go to the trash.
func (h *ChatMessageHistory) SetMessages(ctx context.Context, messages []llms.ChatMessage) error {
	turns, err := turnsOf(messages)
	if err != nil {
		return err
	}
	return h.store.Transaction(ctx, func(ctx context.Context) error {
		present, err := h.turns(ctx)
		if err != nil {
			return err
		}
		had, wanted := messagesOf(present), messagesOf(turns)
		cut := max(0, len(had)-len(wanted))
		kept := len(had) - cut
		if !reflect.DeepEqual(had[cut:], wanted[:kept]) {
			cut, kept = len(had), 0
		}
		for _, turn := range present[:cut] {
			if err := h.conversation.Delete(ctx, turn.ID); err != nil {
				return err
			}
		}
		return h.append(ctx, turns[kept:])
	})
}

// add adds messages in one commit.
func (h *ChatMessageHistory) add(ctx context.Context, messages ...llms.ChatMessage) error {
	turns, err := turnsOf(messages)
	if err != nil {
		return err
	}
	return h.append(ctx, turns)
}

// append appends turns, as many at a time as a conversation takes.
func (h *ChatMessageHistory) append(ctx context.Context, turns []souvenir.Turn) error {
	for len(turns) > 0 {
		n := min(len(turns), souvenir.MaxTurns)
		if _, err := h.conversation.Append(ctx, turns[:n]...); err != nil {
			return err
		}
		turns = turns[n:]
	}
	return nil
}

// turns returns all turns of the conversation.
func (h *ChatMessageHistory) turns(ctx context.Context) ([]souvenir.Turn, error) {
	var all []souvenir.Turn
	for turn, err := range h.conversation.Since(ctx, time.Time{}) {
		if err != nil {
			return nil, err
		}
		all = append(all, turn)
	}
	return all, nil
}

// turnsOf returns messages as turns.
func turnsOf(messages []llms.ChatMessage) ([]souvenir.Turn, error) {
	turns := make([]souvenir.Turn, len(messages))
	for i, message := range messages {
		var err error
		if turns[i], err = turnOf(message); err != nil {
			return nil, fmt.Errorf("messages[%d] %w", i, err)
		}
	}
	return turns, nil
}

// turnOf returns a message as a turn.
func turnOf(message llms.ChatMessage) (souvenir.Turn, error) {
	if v := reflect.ValueOf(message); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return souvenir.Turn{}, errors.New("is nil; expected a message")
	} else if v.Kind() == reflect.Pointer {
		if pointed, ok := v.Elem().Interface().(llms.ChatMessage); ok {
			message = pointed
		}
	}
	turn := souvenir.Turn{Content: message.GetContent(), Metadata: map[string]any{}}
	switch message.GetType() {
	case llms.ChatMessageTypeHuman:
		turn.Role = roleUser
	case llms.ChatMessageTypeAI:
		turn.Role = roleAssistant
	case llms.ChatMessageTypeSystem:
		turn.Role = roleSystem
	case llms.ChatMessageTypeTool:
		turn.Role = roleTool
	case llms.ChatMessageTypeFunction:
		turn.Role = roleFunction
	case llms.ChatMessageTypeGeneric:
		turn.Role = roleGeneric
	default:
		return turn, fmt.Errorf("has the type %q, which langchaingo has no message for", message.GetType())
	}
	if named, ok := message.(llms.Named); ok {
		turn.Speaker = named.GetName()
	}
	switch m := message.(type) {
	case llms.AIChatMessage:
		var calls []toolCall
		for _, call := range m.ToolCalls {
			calls = append(calls, toolCall{call.ID, call.Type, call.FunctionCall})
		}
		if calls != nil {
			turn.ToolCalls = calls
		}
		if m.FunctionCall != nil {
			turn.Metadata[keyFunction] = *m.FunctionCall
		}
		if m.ReasoningContent != "" {
			turn.Metadata[keyReasoning] = m.ReasoningContent
		}
	case llms.ToolChatMessage:
		turn.Metadata[keyCallID] = m.ID
	case llms.GenericChatMessage:
		turn.Metadata[keyRole] = m.Role
	}
	if isBlank(turn.Content) && (turn.ToolCalls == nil || turn.Content != "") {
		turn.Metadata[keyBlank], turn.Content = turn.Content, blankContent
	}
	return turn, nil
}

// messagesOf returns turns as messages; nil for none.
func messagesOf(turns []souvenir.Turn) []llms.ChatMessage {
	var messages []llms.ChatMessage
	for _, turn := range turns {
		messages = append(messages, messageOf(turn))
	}
	return messages
}

// messageOf returns a turn as a message. One with a role that langchaingo does not have is a generic message.
func messageOf(turn souvenir.Turn) llms.ChatMessage {
	text := func(key string) string {
		value, _ := turn.Metadata[key].(string)
		return value
	}
	content := turn.Content
	if blank, ok := turn.Metadata[keyBlank].(string); ok && content == blankContent {
		content = blank
	}
	switch turn.Role {
	case roleUser:
		return llms.HumanChatMessage{Content: content}
	case roleSystem:
		return llms.SystemChatMessage{Content: content}
	case roleTool:
		return llms.ToolChatMessage{ID: text(keyCallID), Content: content}
	case roleFunction:
		return llms.FunctionChatMessage{Name: turn.Speaker, Content: content}
	case roleGeneric:
		return llms.GenericChatMessage{Role: text(keyRole), Name: turn.Speaker, Content: content}
	case roleAssistant:
		m := llms.AIChatMessage{Content: content, ReasoningContent: text(keyReasoning)}
		m.FunctionCall, _ = converted[*llms.FunctionCall](turn.Metadata[keyFunction])
		calls, ok := converted[[]toolCall](turn.ToolCalls)
		for _, call := range calls {
			m.ToolCalls = append(m.ToolCalls, llms.ToolCall{ID: call.ID, Type: call.Type, FunctionCall: call.Function})
		}
		if !ok && content == "" {
			text, _ := json.Marshal(turn.ToolCalls) // another program's, in a form of its own
			m.Content = string(text)
		}
		return m
	}
	return llms.GenericChatMessage{Role: turn.Role, Name: turn.Speaker, Content: content}
}

// converted returns a value that was stored as JSON; the zero value if it has another form.
func converted[T any](stored any) (value T, ok bool) {
	encoded, err := json.Marshal(stored)
	if err == nil {
		err = json.Unmarshal(encoded, &value)
	}
	if err != nil {
		return *new(T), false
	}
	return value, true
}

// isBlank reports whether a text has only white space and invisible characters, which is no content for a turn.
func isBlank(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return !unicode.IsSpace(r) && !unicode.Is(unicode.Cf, r) }) < 0
}
