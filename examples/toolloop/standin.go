package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// standIn answers like a model, with a few rules and no network. It is as strict about the form of requests as
// real models are.
func standIn(w http.ResponseWriter, r *http.Request) {
	var req request
	err := json.NewDecoder(r.Body).Decode(&req)
	if err == nil {
		err = req.check()
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(response{[]choice{{next(req.Messages)}}}); err != nil {
		return // the caller is gone
	}
}

// check reports whether a model would accept the request.
func (r request) check() error {
	if len(r.Tools) == 0 || len(r.Messages) == 0 {
		return errors.New("tools and messages are needed")
	}
	for _, t := range r.Tools {
		var parameters struct {
			Type       string         `json:"type"`
			Properties map[string]any `json:"properties"`
		}
		if err := json.Unmarshal(t.Function.Parameters, &parameters); err != nil || parameters.Type != "object" ||
			parameters.Properties == nil {
			return fmt.Errorf("the parameters of %s are no object schema: %s", t.Function.Name, t.Function.Parameters)
		}
		if t.Type != "function" || t.Function.Name == "" || t.Function.Description == "" {
			return fmt.Errorf("%q is no function with a name and a description", t.Function.Name)
		}
	}
	var open []string // calls that wait for their result
	for _, m := range r.Messages {
		if m.Role != "tool" && len(open) > 0 {
			return fmt.Errorf("the calls %v have no result", open)
		}
		if i := slices.Index(open, m.ToolCallID); m.Role == "tool" && i >= 0 {
			open = slices.Delete(open, i, i+1)
		} else if m.Role == "tool" {
			return fmt.Errorf("%q is no call that waits for its result", m.ToolCallID)
		}
		for _, c := range m.ToolCalls {
			open = append(open, c.ID)
		}
	}
	return nil
}

var didYouMean = regexp.MustCompile(`did you mean "([^"]+)"`)

// next is the stand-in's reply to a conversation.
func next(messages []message) message {
	asked := messages[1].Content
	calls := (len(messages) - 2) / 2
	memory := func(arguments map[string]any) message {
		encoded, err := json.Marshal(arguments)
		if err != nil {
			return message{Role: "assistant", Content: err.Error()}
		}
		return message{Role: "assistant",
			ToolCalls: []toolCall{{ID: fmt.Sprintf("call-%d", calls+1), Type: "function",
				Function: called{"memory", string(encoded)}}}}
	}
	if calls == 0 {
		return memory(map[string]any{"action": "get-context", "query": asked})
	}
	result := messages[len(messages)-1].Content
	if fact, ok := strings.CutPrefix(asked, "Please remember: "); ok {
		store := map[string]any{"action": "store", "content": fact, "collection_name": "team-note",
			"tags": "release, agreement"}
		switch hint := didYouMean.FindStringSubmatch(result); {
		case calls == 1:
			return memory(store)
		case hint != nil:
			store["collection_name"] = hint[1]
			return memory(store)
		}
		return message{Role: "assistant", Content: "I will remember that."}
	}
	if calls == 1 {
		return memory(map[string]any{"action": "search", "query": asked, "limit": "1"})
	}
	var found struct {
		Results []struct {
			Collection string `json:"collection_name"`
			Memories   []struct {
				Content string `json:"content"`
			} `json:"memories"`
		} `json:"results"`
	}
	if err := json.Unmarshal([]byte(result), &found); err != nil || len(found.Results) == 0 {
		return message{Role: "assistant", Content: "I do not know."}
	}
	first := found.Results[0]
	return message{Role: "assistant", Content: fmt.Sprintf("The %s say: %s", first.Collection, first.Memories[0].Content)}
}
