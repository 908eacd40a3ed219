package anthropic_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
)

// scripted serves the Messages API with given answers. It refuses requests that the API refuses, too: two tools with
// one name, or calls without their results.
type scripted struct {
	*httptest.Server
	mu       sync.Mutex
	answers  []string // blocks of content
	requests []request
	waiting  map[string]bool // ids of calls
}

// request holds the parts of a request that the tests read.
type request struct {
	Tools []struct {
		Type, Name, Description string
		InputSchema             json.RawMessage `json:"input_schema"`
	}
	Messages []struct {
		Role    string
		Content []struct {
			Type      string
			ToolUseID string `json:"tool_use_id"`
			IsError   bool   `json:"is_error"`
			Content   []struct{ Text string }
		}
	}
}

// calls returns an answer that calls a tool, and says one that only talks.
func calls(tool, input string) string {
	return fmt.Sprintf(`{"type": "tool_use", "id": "@", "name": %q, "input": %s}`, tool, input)
}

func says(text string) string { return fmt.Sprintf(`{"type": "text", "text": %q}`, text) }

func script(answers ...string) *scripted {
	s := &scripted{answers: answers, waiting: map[string]bool{}}
	s.Server = httptest.NewServer(s)
	return s
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	var got request
	if err == nil {
		err = json.Unmarshal(body, &got)
	}
	if err == nil {
		err = s.accept(got)
	}
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"type": "error", "error": {"type": "invalid_request_error", "message": %q}}`, err)
		return
	}
	answer, stop := s.answers[len(s.requests)-1], "end_turn"
	id := fmt.Sprintf("toolu_%d", len(s.requests))
	var block map[string]any
	if err := json.Unmarshal([]byte(answer), &block); err != nil {
		panic(err)
	}
	if block["type"] == "tool_use" {
		block["id"], stop = id, "tool_use"
		s.waiting[id] = true
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"id": "msg_" + id, "type": "message", "role": "assistant",
		"model": "claude-sonnet-4-5", "stop_reason": stop, "content": []any{block},
		"usage": map[string]any{"input_tokens": 1, "output_tokens": 1}})
}

func (s *scripted) accept(r request) error {
	names := map[string]bool{}
	for _, t := range r.Tools {
		if names[t.Name] {
			return fmt.Errorf("tools: Tool names must be unique: %s", t.Name)
		}
		names[t.Name] = true
	}
	for _, block := range r.Messages[len(r.Messages)-1].Content {
		if block.Type == "tool_result" {
			delete(s.waiting, block.ToolUseID)
		}
	}
	if len(s.waiting) > 0 {
		return fmt.Errorf("tool_use ids without tool_result: %v", s.waiting)
	}
	if len(s.requests) == len(s.answers) {
		return fmt.Errorf("the script has %d answers, and this is a further request", len(s.answers))
	}
	s.requests = append(s.requests, r)
	return nil
}
