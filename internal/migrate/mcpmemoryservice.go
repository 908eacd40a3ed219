package migrate

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/db"
)

// mcpMemoryService reads the database of mcp-memory-service with its backend sqlite_vec: sqlite_vec.db, or the folder
// with it. Its associations become links. A superseded version is valid until the next one was stored, and has a link
// to it. Deleted memories, vectors and beliefs are not imported.
func mcpMemoryService(ctx context.Context, path string) iter.Seq2[Item, error] {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		if !hasFile(path, "sqlite_vec.db") {
			return func(yield func(Item, error) bool) {
				yield(Item{}, fmt.Errorf("%q has no sqlite_vec.db; name the file or its folder", path))
			}
		}
		path = filepath.Join(path, "sqlite_vec.db")
	}
	return inSQLite(ctx, path, func(tx db.Tx, yield func(Item) error) error {
		has, err := columns(tx, "memories")
		if err != nil {
			return err
		}
		for _, name := range []string{"content_hash", "content", "tags", "memory_type", "metadata", "created_at"} {
			if !has[name] {
				return fmt.Errorf("%q is not a database of mcp-memory-service: it has no table memories with %s", path, name)
			}
		}
		links, err := mcpMemoryLinks(tx)
		if err != nil {
			return err
		}
		where, next := "", "NULL"
		if has["deleted_at"] {
			where = "WHERE m.deleted_at IS NULL"
		}
		if has["superseded_by"] {
			next = "m.superseded_by"
		}
		return tx.Each(func(row db.Rows) error {
			var m mcpMemory
			err := row.Scan(&m.hash, &m.content, &m.tags, &m.kind, &m.metadata, &m.created, &m.next, &m.replaced)
			if err != nil {
				return err
			}
			return yield(m.item(links[m.hash]))
		}, fmt.Sprintf(`SELECT coalesce(CAST(m.content_hash AS TEXT), ''), coalesce(CAST(m.content AS TEXT), ''),
			coalesce(CAST(m.tags AS TEXT), ''), coalesce(CAST(m.memory_type AS TEXT), ''),
			coalesce(CAST(m.metadata AS TEXT), ''), coalesce(CAST(m.created_at AS REAL), 0.0),
			coalesce(CAST(%[1]s AS TEXT), ''), coalesce(CAST(
				(SELECT n.created_at FROM memories n WHERE n.content_hash = %[1]s) AS REAL), 0.0)
			FROM memories m %[2]s ORDER BY m.id`, next, where))
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
	}, `SELECT CAST(source_hash AS TEXT), CAST(target_hash AS TEXT) FROM memory_graph
		WHERE source_hash IS NOT NULL AND target_hash IS NOT NULL ORDER BY source_hash, target_hash`)
	return links, err
}

// mcpMemory is a row of the table memories.
type mcpMemory struct {
	hash, content, tags, kind, metadata string
	created                             float64 // seconds since 1970
	next                                string  // the hash of the version that supersedes it; empty: none
	replaced                            float64 // when the next version was stored
}

func (m mcpMemory) item(links []string) Item {
	memory := souvenir.NewMemory{Key: keyOf("mcp-memory-service", m.hash), Content: m.content,
		CreatedAt: past(secondsTime(m.created)), Metadata: map[string]any{}}
	var tags []string
	for tag := range strings.SplitSeq(m.tags, ",") {
		if tag = strings.TrimSpace(tag); tag != "untagged" { // this tag means none
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
	if m.next != "" {
		links = append(slices.Clip(links), m.next)
		memory.ValidUntil = past(secondsTime(max(m.replaced, m.created)))
		if memory.ValidUntil.IsZero() {
			memory.ValidUntil = time.Unix(0, 0).UTC()
		}
	}
	item := Item{Memory: memory}
	for _, other := range links {
		item.Links = append(item.Links, keyOf("mcp-memory-service", other))
	}
	return item
}
