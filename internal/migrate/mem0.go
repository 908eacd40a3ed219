package migrate

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"path/filepath"

	"github.com/souvenir-ai/souvenir"
)

// mem0 reads the result of mem0's get_all as JSON: an object with a list "results", or the list alone. It also
// reads the folder of a local Qdrant in which mem0 stores memories, and its history.db. It skips scores, hashes and
// vectors.
func mem0(ctx context.Context, path string) iter.Seq2[Item, error] {
	if stores := qdrantStores(path); len(stores) > 0 {
		return mem0Qdrant(ctx, stores)
	}
	if history := filepath.Join(path, "history.db"); isFile(history) && !isFile(filepath.Join(path, "mem0.json")) {
		path = history
	}
	if isSQLite(path) {
		return mem0Database(ctx, path)
	}
	return inFile(path, "mem0.json", func(in io.Reader) iter.Seq2[Item, error] {
		return func(yield func(Item, error) bool) {
			list, err := results(in)
			if err != nil {
				yield(Item{}, err)
				return
			}
			for m, err := range elements[mem0Memory](list) {
				if !yield(m.item(), err) || err != nil {
					return
				}
			}
		}
	})
}

// results returns a reader that starts at the list. An object must begin with "results", as mem0 writes it.
func results(in io.Reader) (io.Reader, error) {
	buffered := bufio.NewReader(in)
	for {
		c, err := buffered.ReadByte()
		switch {
		case err != nil:
			return nil, fmt.Errorf("a list of JSON is expected, or an object with a list \"results\": %w", err)
		case c == '[':
			return buffered, buffered.UnreadByte()
		case c == '{':
			var name []byte // at most as long as the buffer
			if name, err = buffered.ReadSlice('['); err != nil || !beginsResults(string(name)) {
				return nil, fmt.Errorf("the object begins with %.40q; \"results\" and a list are expected", name)
			}
			return buffered, buffered.UnreadByte()
		case c != ' ' && c != '\t' && c != '\r' && c != '\n':
			return nil, fmt.Errorf("the file begins with %q; [ or { is expected", c)
		}
	}
}

// beginsResults reports whether a text, which ends with [, starts the list.
func beginsResults(text string) bool {
	var object struct{ Results []any }
	return json.Unmarshal([]byte("{"+text+"]}"), &object) == nil && object.Results != nil
}

type mem0Memory struct {
	ID         string         `json:"id"`
	Memory     string         `json:"memory"`
	Metadata   map[string]any `json:"metadata"`
	Categories []string       `json:"categories"`
	CreatedAt  string         `json:"created_at"`
	UserID     string         `json:"user_id"`
	AgentID    string         `json:"agent_id"`
	RunID      string         `json:"run_id"`
	ActorID    string         `json:"actor_id"`
	Role       string         `json:"role"`
}

func (m mem0Memory) item() Item {
	memory := souvenir.NewMemory{Key: keyOf("mem0", m.ID), Content: m.Memory, Tags: tagsOf(m.Categories...),
		CreatedAt: past(textTime(m.CreatedAt)), Metadata: map[string]any{}}
	for key, value := range m.Metadata {
		memory.Metadata[key] = value
	}
	for key, value := range map[string]string{"user_id": m.UserID, "agent_id": m.AgentID, "run_id": m.RunID,
		"actor_id": m.ActorID, "role": m.Role} {
		if value != "" {
			memory.Metadata[key] = value
		}
	}
	if m.ID == "" {
		return Item{Memory: memory, Skipped: "a memory has no id"}
	}
	return Item{Memory: memory}
}
