package migrate

import (
	"context"
	"io"
	"iter"
	"path/filepath"

	"github.com/souvenir-ai/souvenir"
)

// mem0 reads the result of mem0's get_all as JSON: an object with a list "results", or a list alone. It also
// reads the folder of a local Qdrant in which mem0 stores memories, and its history.db. It skips scores, hashes and
// vectors.
func mem0(ctx context.Context, path string) iter.Seq2[Item, error] {
	if stores := qdrantStores(path); len(stores) > 0 {
		return mem0Qdrant(ctx, stores)
	}
	if hasFile(path, "history.db") && !hasFile(path, "mem0.json") {
		path = filepath.Join(path, "history.db")
	}
	if isSQLite(path) {
		return mem0Database(ctx, path)
	}
	return inFiles(path, []string{"mem0.json"}, func(in io.Reader) iter.Seq2[Item, error] {
		return func(yield func(Item, error) bool) {
			for m, err := range elements[mem0Memory](in, "results") {
				if !yield(m.item(), err) || err != nil {
					return
				}
			}
		}
	})
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
	Attributed string         `json:"attributed_to"`
	Expires    string         `json:"expiration_date"` // the last day on which it is shown, such as 2026-01-31
}

func (m mem0Memory) item() Item {
	memory := souvenir.NewMemory{Key: keyOf("mem0", m.ID), Content: m.Memory, Tags: tagsOf(m.Categories...),
		CreatedAt: past(textTime(m.CreatedAt)), Metadata: map[string]any{}}
	for key, value := range m.Metadata {
		memory.Metadata[key] = value
	}
	for key, value := range map[string]string{"user_id": m.UserID, "agent_id": m.AgentID, "run_id": m.RunID,
		"actor_id": m.ActorID, "role": m.Role, "attributed_to": m.Attributed, "expiration_date": m.Expires} {
		if value != "" {
			memory.Metadata[key] = value
		}
	}
	if last, _ := memory.Metadata["expiration_date"].(string); last != "" {
		// The day after 9999-12-31 cannot be stored: a memory that is shown until then stays valid.
		if day := textTime(last); !day.IsZero() && day.AddDate(0, 0, 1).Year() <= 9999 {
			memory.ValidUntil = day.AddDate(0, 0, 1)
		}
	}
	if m.ID == "" {
		return Item{Memory: memory, Skipped: "a memory has no id"}
	}
	return Item{Memory: memory}
}
