package migrate

import (
	"context"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// qdrantStores returns the databases of the collections of a local Qdrant in a folder, or in its folder "qdrant",
// sorted. The collection in which mem0 records its own migrations does not count.
func qdrantStores(path string) []string {
	for _, folder := range []string{path, filepath.Join(path, "qdrant")} {
		root, err := openFolder(folder)
		if err != nil {
			continue
		}
		names, _ := fs.Glob(root.FS(), "collection/*/storage.sqlite")
		_ = root.Close()
		var stores []string
		for _, name := range names {
			store := filepath.Join(folder, filepath.FromSlash(name))
			if filepath.Base(filepath.Dir(store)) != "mem0migrations" && hasFile(folder, name) && isSQLite(store) {
				stores = append(stores, store)
			}
		}
		if len(stores) > 0 {
			return stores
		}
	}
	return nil
}

// mem0Qdrant reads the memories of several collections.
func mem0Qdrant(ctx context.Context, stores []string) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for _, store := range stores {
			for item, err := range mem0Database(ctx, store) {
				if !yield(item, err) || err != nil {
					return
				}
			}
		}
	}
}

// mem0Database reads a Qdrant collection, or the history of memories.
func mem0Database(ctx context.Context, path string) iter.Seq2[Item, error] {
	return inSQLite(ctx, path, func(tx db.Tx, yield func(Item) error) error {
		points, err := columns(tx, "points")
		if err != nil {
			return err
		}
		if points["point"] {
			return tx.Each(func(row db.Rows) error {
				var point []byte
				if err := row.Scan(&point); err != nil {
					return err
				}
				return yield(pointItem(point))
			}, `SELECT CAST(point AS BLOB) FROM points ORDER BY rowid`)
		}
		history, err := columns(tx, "history")
		if err != nil {
			return err
		}
		if !history["memory_id"] || !history["new_memory"] {
			return fmt.Errorf("%q has neither the points of Qdrant nor the history of mem0", path)
		}
		return mem0History(tx, yield)
	})
}

// maxPoint bounds a point, in bytes: its text, metadata and vector.
const maxPoint = 16 << 20

// pointItem reads a point of Qdrant, which has the text of a memory as "data" in its payload.
func pointItem(point []byte) Item {
	if len(point) > maxPoint {
		return Item{Skipped: fmt.Sprintf("a point has %d bytes; at most %d are read", len(point), maxPoint)}
	}
	value, err := unpickle(point)
	if err != nil {
		return Item{Skipped: err.Error()}
	}
	var fields map[string]any
	if o, ok := value.(*object); ok {
		fields, _ = o.state.(map[string]any)
		if inner, ok := fields["__dict__"].(map[string]any); ok { // of pydantic
			fields = inner
		}
	}
	payload, _ := new(plainer).plain(fields["payload"]).(map[string]any)
	text := func(key string) string {
		value, _ := payload[key].(string)
		delete(payload, key)
		return value
	}
	id, _ := fields["id"].(string)
	m := mem0Memory{ID: id, Memory: text("data"), CreatedAt: text("created_at"), UserID: text("user_id"),
		AgentID: text("agent_id"), RunID: text("run_id"), Metadata: payload}
	for _, derived := range []string{"hash", "text_lemmatized", "updated_at"} {
		delete(payload, derived)
	}
	if m.Memory == "" {
		return Item{Memory: m.item().Memory, Skipped: "a point has no text in data"}
	}
	return m.item()
}

// mem0History reads the last text of each memory that was not deleted. The history does not contain the owners of
// memories.
func mem0History(tx db.Tx, yield func(Item) error) error {
	return tx.Each(func(row db.Rows) error {
		var m mem0Memory
		if err := row.Scan(&m.ID, &m.Memory, &m.CreatedAt); err != nil {
			return err
		}
		return yield(m.item())
	}, `SELECT CAST(memory_id AS TEXT), CAST(new_memory AS TEXT), coalesce(CAST(created_at AS TEXT), '') FROM history h
		WHERE memory_id IS NOT NULL AND new_memory IS NOT NULL AND event <> 'DELETE'
			AND rowid = (SELECT max(rowid) FROM history WHERE memory_id = h.memory_id)
		ORDER BY rowid`)
}
