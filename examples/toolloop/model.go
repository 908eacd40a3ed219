package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// The part of OpenAI's chat completions that a loop with tools needs.

type request struct {
	Model    string     `json:"model"`
	Messages []message  `json:"messages"`
	Tools    []function `json:"tools"`
}

type response struct {
	Choices []choice `json:"choices"`
}

type choice struct {
	Message message `json:"message"`
}

type message struct {
	Role       string     `json:"role"` // system, user, assistant or tool
	Content    string     `json:"content"`
	ToolCalls  []toolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"` // of role tool: which call it answers
}

type toolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function called `json:"function"`
}

type called struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // JSON in a string
}

type function struct {
	Type     string      `json:"type"`
	Function declaration `json:"function"`
}

type declaration struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// model is a language model behind HTTP.
type model struct{ url, name string }

// complete asks the model for the next message of a conversation.
func (m model) complete(ctx context.Context, messages []message, tools []function) (message, error) {
	body, err := json.Marshal(request{Model: m.name, Messages: messages, Tools: tools})
	if err != nil {
		return message{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, bytes.NewReader(body))
	if err != nil {
		return message{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return message{}, err
	}
	defer resp.Body.Close()
	const most = 16 << 20
	body, err = io.ReadAll(io.LimitReader(resp.Body, most))
	if err != nil {
		return message{}, err
	}
	if resp.StatusCode != http.StatusOK {
		return message{}, fmt.Errorf("the model answers %s: %.200s", resp.Status, body)
	}
	var answer response
	if err := json.Unmarshal(body, &answer); err != nil {
		return message{}, fmt.Errorf("the model's answer cannot be read: %w", err)
	}
	if len(answer.Choices) == 0 {
		return message{}, errors.New("the model has no answer")
	}
	return answer.Choices[0].Message, nil
}
