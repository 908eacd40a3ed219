package extract_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/extract"
)

const testKey = "sk-secret-0123456789"

// proposal is a part of a model's answer.
type proposal struct {
	Action     string  `json:"action"`
	Content    string  `json:"content"`
	Memory     int     `json:"memory"`
	Turns      []int   `json:"turns"`
	Reason     string  `json:"reason"`
	Confidence float64 `json:"confidence"`
}

// document is the input of a model.
type document struct {
	Known []struct {
		Memory int
		Text   string
	}
	Before []struct{ Text string }
	Turns  []struct {
		Turn                int
		Role, Speaker, Text string
	}
}

// model is a server with both APIs that answers with a function. It refuses requests that the real ones would refuse.
type model struct {
	*httptest.Server
	mu       sync.Mutex
	requests int
	answer   func(document) any // []proposal, or the raw text of an answer
	fail     func(request int, w http.ResponseWriter) bool
}

func newModel(t testing.TB, answer func(document) any) *model {
	t.Helper()
	m := &model{answer: answer}
	m.Server = httptest.NewServer(m.handler())
	t.Cleanup(m.Close)
	return m
}

func (m *model) handler() http.Handler { return http.HandlerFunc(m.serve) }

func (m *model) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.requests
}

func (m *model) serve(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	m.requests++
	n := m.requests
	m.mu.Unlock()
	data, err := io.ReadAll(r.Body)
	var body struct {
		Model    string
		System   string
		Messages []struct{ Role, Content string }
		Format   struct {
			Type   string
			Schema struct {
				Name   string
				Strict bool
				Schema map[string]any
			} `json:"json_schema"`
		} `json:"response_format"`
		Tools []struct {
			Name   string
			Schema map[string]any `json:"input_schema"`
		}
		ToolChoice struct{ Type, Name string } `json:"tool_choice"`
		MaxTokens  int                         `json:"max_tokens"`
	}
	chat := r.URL.Path == "/v1/chat/completions"
	bad := func(message string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": message}})
	}
	switch {
	case err != nil || json.Unmarshal(data, &body) != nil || body.Model == "" || body.MaxTokens == 0:
		bad("the body is not as documented")
		return
	case chat && r.Header.Get("Authorization") != "Bearer "+testKey,
		!chat && (r.Header.Get("X-Api-Key") != testKey || r.Header.Get("Anthropic-Version") == ""):
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, "wrong key "+testKey)
		return
	case chat && (body.Format.Type != "json_schema" || !body.Format.Schema.Strict || len(body.Format.Schema.Schema) == 0):
		bad("response_format is missing")
		return
	case !chat && (r.URL.Path != "/v1/messages" || body.System == "" || len(body.Tools) != 1 ||
		len(body.Tools[0].Schema) == 0 || body.ToolChoice.Name != body.Tools[0].Name):
		bad("the tool is missing")
		return
	}
	if m.fail != nil && m.fail(n, w) {
		return
	}
	var d document
	if err := json.Unmarshal([]byte(body.Messages[len(body.Messages)-1].Content), &d); err != nil {
		bad(err.Error())
		return
	}
	text, ok := "", false
	given := m.answer(d)
	if text, ok = given.(string); !ok {
		encoded, _ := json.Marshal(map[string]any{"proposals": given})
		text = string(encoded)
	}
	w.Header().Set("Content-Type", "application/json")
	var out any
	if chat {
		out = map[string]any{"choices": []any{map[string]any{"message": map[string]any{"role": "assistant",
			"content": text}, "finish_reason": "stop"}},
			"usage": map[string]int{"prompt_tokens": len(data) / 4, "completion_tokens": len(text) / 4}}
	} else {
		out = map[string]any{"content": []any{map[string]any{"type": "tool_use", "name": body.Tools[0].Name,
			"input": json.RawMessage(text)}}, "stop_reason": "tool_use",
			"usage": map[string]int{"input_tokens": len(data) / 4, "output_tokens": len(text) / 4}}
	}
	_ = json.NewEncoder(w).Encode(out)
}

// chat returns an extractor that uses the model's chat completions.
func (m *model) chat(t testing.TB) *extract.Model {
	t.Helper()
	x, err := extract.Chat(extract.ModelOptions{Key: testKey, Model: "m", BaseURL: m.URL + "/v1",
		Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// messages returns one that uses Anthropic's API.
func (m *model) messages(t testing.TB) *extract.Model {
	t.Helper()
	x, err := extract.Anthropic(extract.ModelOptions{Key: testKey, Model: "m", BaseURL: m.URL + "/v1"})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// factual answers as a simple model does: each turn that begins with "Fact: " is a fact.
func factual(d document) any {
	all := []proposal{}
	for _, t := range d.Turns {
		if fact, ok := strings.CutPrefix(t.Text, "Fact: "); ok {
			all = append(all, proposal{"add", fact, 0, []int{t.Turn}, "It was said.", 0.9})
		}
	}
	return all
}
