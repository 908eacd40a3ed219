package recovery

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/recovery/salvage"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
)

// reviveMemories restores lost memories from their newest remaining past version.
func (r *Recovery) reviveMemories(ctx context.Context, file db.DB, t *Table) error {
	column := func(name string) int {
		return slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name })
	}
	newest := map[int64][]any{}
	look := func(row salvage.Row) error {
		values, ok := t.Values(row)
		if !ok || row.Cut {
			return nil
		}
		id, _ := values[column("memory_id")].(int64)
		number, _ := values[column("revision")].(int64)
		if id == 0 || r.present["memory"][id] {
			return nil
		}
		if _, known := r.hashes[kernel.MemoryKind][id]; !known && len(r.hashes[kernel.MemoryKind]) > 0 {
			return nil // it was deleted
		}
		if before, found := newest[id]; !found || before[column("revision")].(int64) < number {
			newest[id] = values
		}
		return nil
	}
	if root := r.Roots[t.Name]; root != 0 {
		if err := r.file.Walk(root, &salvage.Found{Pages: map[uint32]bool{}}, look); err != nil {
			return err
		}
	}
	for _, n := range t.strays {
		rows, _, _ := r.file.Leaf(n, &salvage.Found{Pages: map[uint32]bool{}})
		for _, row := range rows {
			_ = look(row) // it returns no error
		}
	}
	for id, values := range newest {
		content, _ := values[column("content")].(string)
		attributes, _ := values[column("attributes")].(string)
		number, _ := values[column("revision")].(int64)
		created, _ := values[column("created_at")].(int64)
		partition, _ := values[column("partition_id")].(int64)
		err := file.Write(ctx, func(tx db.Tx) error {
			return r.revive(tx, id, number, created, partition, content, attributes)
		})
		if err != nil && !errors.Is(err, db.ErrConstraint) {
			return err
		}
	}
	return nil
}

func (r *Recovery) revive(tx db.Tx, id, number, created, partition int64, content, attributes string) error {
	uid := r.names[id]
	if uid == "" {
		uid = uuid.Must(uuid.NewV7()).String()
	}
	a := kernel.Attributes{Own: map[string]any{}}
	if object, err := jsonobject.Decode([]byte(mendedText("attributes", attributes))); err == nil {
		if known, err := kernel.AttributesOf(object); err == nil {
			a = known
		}
	}
	metadata, err := json.Marshal(kernel.OrEmpty(a.Own))
	if err != nil {
		return err
	}
	if sealedrows.IsSealed(attributes) { // a sealed value names its column, so it also opens in the other one
		metadata = []byte(attributes)
	}
	if !r.present["partition"][partition] {
		if made, err := r.standIn(tx, "partition", partition); err != nil || !made {
			return err
		}
	}
	_, err = tx.Exec(`INSERT INTO memory (id, uid, partition_id, content, event_type, state, importance, classification,
		rule_type, metadata, revision, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, id, uid, partition, strings.ToValidUTF8(content, "\ufffd"),
		db.OrNull(a.EventType), db.OrNull(a.State), db.OrNull(a.Importance),
		db.OrNull(a.Classification), db.OrNull(a.RuleType), string(metadata), number+1, created, created)
	if err != nil {
		return err
	}
	r.keepID("memory", id)
	r.note("memory %s is lost; its revision %d replaces it", uid, number)
	return nil
}

// mendTrash recounts the contents of trash entries, and takes files whose entries are lost out of the trash.
func (r *Recovery) mendTrash(tx db.Tx) error {
	for _, count := range []struct{ column, kind string }{{"memories", "memory"}, {"revisions", "revision"}} {
		if _, err := tx.Exec(`UPDATE trash SET `+count.column+` = (SELECT count(*) FROM trash_item i
			WHERE i.entry_id = trash.id AND i.kind = ?) WHERE restorable_until > 0`, count.kind); err != nil {
			return err
		}
	}
	lost, err := db.Column[int64](tx,
		`SELECT id FROM file WHERE state = 'trashed' AND uid NOT IN (SELECT 'trash/' || id FROM trash WHERE kind = 'file')`)
	for _, row := range lost {
		if err == nil {
			uid := uuid.Must(uuid.NewV7()).String()
			_, err = tx.Exec(`UPDATE file SET uid = ?, state = 'stored' WHERE id = ?`, uid, row)
			r.note("the entry of a file in the trash is lost; the file is among its owner's files again, as %s", uid)
		}
	}
	return err
}
