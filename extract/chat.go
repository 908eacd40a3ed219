package extract

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

const (
	openaiURL    = "https://api.openai.com/v1"
	anthropicURL = "https://api.anthropic.com/v1"
)

// cutOff is the fault of an answer that reached the limit of tokens.
const cutOff = "the answer was cut off; give a larger MaxOutput"

// Chat returns an extractor for any server with the endpoint /chat/completions and JSON output by a schema: OpenAI's,
// and vLLM, llama.cpp, Ollama, LM Studio, Mistral and others at their own BaseURL. Chat itself does not use the
// network.
func Chat(o ModelOptions) (*Model, error) {
	return newModel(api{name: "extract.Chat", official: openaiURL, encode: encodeChat, decode: decodeChat}, o)
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// chatRequest is the body of POST /chat/completions.
type chatRequest struct {
	Model               string    `json:"model"`
	Messages            []message `json:"messages"`
	ResponseFormat      any       `json:"response_format"`
	MaxTokens           int       `json:"max_tokens,omitempty"`
	MaxCompletionTokens int       `json:"max_completion_tokens,omitempty"`
	Temperature         *float64  `json:"temperature,omitempty"`
}

func encodeChat(o ModelOptions, system, user string) (string, any) {
	r := chatRequest{Model: o.Model, Messages: []message{{"system", system}, {"user", user}},
		ResponseFormat: map[string]any{"type": "json_schema", "json_schema": map[string]any{
			"name": answerName, "strict": true, "schema": schema}}}
	if strings.TrimSuffix(o.BaseURL, "/") == openaiURL { // newer models have no max_tokens and temperature
		r.MaxCompletionTokens = o.MaxOutput
	} else {
		r.MaxTokens, r.Temperature = o.MaxOutput, new(float64)
	}
	return "/chat/completions", r
}

func decodeChat(body []byte) (reply, error) {
	var a struct {
		Choices []struct {
			Message struct {
				Content string `json:"content"`
				Refusal string `json:"refusal"`
			} `json:"message"`
			FinishReason string `json:"finish_reason"`
		} `json:"choices"`
		Usage struct {
			Prompt     int `json:"prompt_tokens"`
			Completion int `json:"completion_tokens"`
		} `json:"usage"`
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return reply{}, fmt.Errorf("the answer is not as documented: %w", err)
	}
	r := reply{input: a.Usage.Prompt, output: a.Usage.Completion}
	if len(a.Choices) == 0 {
		return r, errors.New("the answer has no choices")
	}
	choice := a.Choices[0]
	r.text = choice.Message.Content
	switch {
	case choice.Message.Refusal != "" || choice.FinishReason == "content_filter":
		r.fault = "the model refused"
	case choice.FinishReason == "length":
		r.fault = cutOff
	}
	return r, nil
}

// Anthropic returns an extractor for Anthropic's messages API, or a compatible server at BaseURL. Anthropic itself does
// not use the network.
func Anthropic(o ModelOptions) (*Model, error) {
	return newModel(api{name: "extract.Anthropic", official: anthropicURL, encode: encodeMessages, decode: decodeMessages,
		authorize: func(request *http.Request, key string) { request.Header.Set("X-Api-Key", key) },
		header:    http.Header{"Anthropic-Version": {"2023-06-01"}}}, o)
}

// messagesRequest is the body of POST /messages. The model answers by calling the one tool.
type messagesRequest struct {
	Model      string            `json:"model"`
	MaxTokens  int               `json:"max_tokens"`
	System     string            `json:"system"`
	Messages   []message         `json:"messages"`
	Tools      []map[string]any  `json:"tools"`
	ToolChoice map[string]string `json:"tool_choice"`
}

func encodeMessages(o ModelOptions, system, user string) (string, any) {
	return "/messages", messagesRequest{Model: o.Model, MaxTokens: o.MaxOutput, System: system,
		Messages: []message{{"user", user}},
		Tools: []map[string]any{{"name": answerName, "description": "Records what to remember.",
			"input_schema": schema}},
		ToolChoice: map[string]string{"type": "tool", "name": answerName}}
}

func decodeMessages(body []byte) (reply, error) {
	var a struct {
		Content []struct {
			Type  string          `json:"type"`
			Name  string          `json:"name"`
			Input json.RawMessage `json:"input"`
		} `json:"content"`
		StopReason string `json:"stop_reason"`
		Usage      struct {
			Input       int `json:"input_tokens"`
			CacheRead   int `json:"cache_read_input_tokens"`
			CacheWrites int `json:"cache_creation_input_tokens"`
			Output      int `json:"output_tokens"`
		} `json:"usage"`
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return reply{}, fmt.Errorf("the answer is not as documented: %w", err)
	}
	r := reply{input: a.Usage.Input + a.Usage.CacheRead + a.Usage.CacheWrites, output: a.Usage.Output}
	switch a.StopReason {
	case "max_tokens", "model_context_window_exceeded":
		r.fault = cutOff
		return r, nil
	case "refusal":
		r.fault = "the model refused"
		return r, nil
	}
	for _, part := range a.Content {
		if part.Type == "tool_use" && part.Name == answerName {
			r.text = string(part.Input)
			return r, nil
		}
	}
	return r, errors.New("the answer does not call the tool")
}
