package migrate

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"path/filepath"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/db"
)

// mcpMemoryService reads the database of mcp-memory-service with its backend sqlite_vec: sqlite_vec.db, or the folder
// with it. Its associations become links. Deleted memories, vectors and beliefs are not imported.
func mcpMemoryService(ctx context.Context, path string) iter.Seq2[Item, error] {
	if folder := filepath.Join(path, "sqlite_vec.db"); isFile(folder) {
		path = folder
	}
	return inSQLite(ctx, path, func(tx db.Tx, yield func(Item) error) error {
		has, err := columns(tx, "memories")
		if err != nil {
			return err
		}
		if !has["content_hash"] || !has["content"] {
			return fmt.Errorf("%q is not a database of mcp-memory-service: it has no table memories with content_hash and "+
				"content", path)
		}
		links, err := mcpMemoryLinks(tx)
		if err != nil {
			return err
		}
		query := `SELECT content_hash, content, coalesce(tags, ''), coalesce(memory_type, ''), coalesce(metadata, ''),
			coalesce(created_at, 0.0) FROM memories`
		if has["deleted_at"] {
			query += ` WHERE deleted_at IS NULL`
		}
		return tx.Each(func(row db.Rows) error {
			var m mcpMemory
			if err := row.Scan(&m.hash, &m.content, &m.tags, &m.kind, &m.metadata, &m.created); err != nil {
				return err
			}
			return yield(m.item(links[m.hash]))
		}, query+` ORDER BY id`)
	})
}

// mcpMemoryLinks returns the hashes of the memories with which each one is associated.
func mcpMemoryLinks(tx db.Tx) (map[string][]string, error) {
	links := map[string][]string{}
	has, err := columns(tx, "memory_graph") // missing in files of earlier versions
	if err != nil || !has["source_hash"] || !has["target_hash"] {
		return links, err
	}
	err = tx.Each(func(row db.Rows) error {
		var from, to string
		err := row.Scan(&from, &to)
		links[from] = append(links[from], to)
		return err
	}, `SELECT source_hash, target_hash FROM memory_graph ORDER BY source_hash, target_hash`)
	return links, err
}

// mcpMemory is a row of the table memories.
type mcpMemory struct {
	hash, content, tags, kind, metadata string
	created                             float64 // seconds since 1970
}

func (m mcpMemory) item(links []string) Item {
	memory := souvenir.NewMemory{Key: keyOf("mcp-memory-service", m.hash), Content: m.content,
		CreatedAt: past(secondsTime(m.created)), Metadata: map[string]any{}}
	var tags []string
	for tag := range strings.SplitSeq(m.tags, ",") {
		if tag = strings.TrimSpace(tag); tag != "untagged" { // stands for none
			tags = append(tags, tag)
		}
	}
	memory.Tags = tagsOf(tags...)
	if m.metadata != "" && json.Unmarshal([]byte(m.metadata), &memory.Metadata) != nil || memory.Metadata == nil {
		memory.Metadata = map[string]any{"metadata": m.metadata} // not an object
	}
	if m.kind != "" {
		memory.Metadata["memory_type"] = m.kind
	}
	item := Item{Memory: memory}
	for _, other := range links {
		item.Links = append(item.Links, keyOf("mcp-memory-service", other))
	}
	return item
}
