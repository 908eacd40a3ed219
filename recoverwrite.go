package souvenir

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/rowhash"
	"github.com/souvenir-ai/souvenir/internal/salvage"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
)

// recoverBatch is how many rows, and recoverBytes how many bytes of them, are written in one transaction.
const (
	recoverBatch = 1000
	recoverBytes = 8 << 20
)

// write makes a new file of the old one's version, with the rows that could be read and their expected hashes.
func (r *recovery) write(ctx context.Context, path string) (err error) {
	file, err := sqlite.Open(ctx, r.config(path))
	if err != nil {
		return err
	}
	defer func() {
		if closed := file.Close(); err == nil {
			err = closed
		}
	}()
	r.present, r.ownPlaces, r.ownVectors = map[string]map[int64]bool{}, map[int64]bool{}, map[int64]bool{}
	for i, t := range r.tables {
		r.progress("copy", i, len(r.tables))
		if slices.Contains(notRecovered, t.name) {
			continue
		}
		if t.name == "memory_revision" {
			if err := r.reviveMemories(ctx, file, t); err != nil {
				return err
			}
		}
		if err := r.writeTable(ctx, file, t); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	r.progress("copy", len(r.tables), len(r.tables))
	return file.Write(ctx, r.writeHashes)
}

// recoveredRow is a row on its way from the old file to the new one.
type recoveredRow struct {
	values     []any
	stray, cut bool
}

// writeTable copies the readable rows of a table.
func (r *recovery) writeTable(ctx context.Context, file db.DB, t *recoveredTable) error {
	w := &tableWriter{r: r, t: t, db: file, ctx: ctx, sums: map[int64][]byte{}, seen: map[int64]bool{}}
	found := &salvage.Found{Pages: map[uint32]bool{}}
	if root := r.roots[t.name]; root != 0 {
		if err := r.file.Walk(root, found, func(row salvage.Row) error { return w.take(row, false) }); err != nil {
			return err
		}
	}
	if err := w.takeStrays(); err != nil {
		return err
	}
	if err := w.flush(); err != nil {
		return err
	}
	if w.count != (RecoveredTable{}) {
		r.report.Tables[t.name] = w.count
	}
	r.rows += w.count.Rows
	return nil
}

type tableWriter struct {
	r     *recovery
	t     *recoveredTable
	db    db.DB
	ctx   context.Context //nolint:containedctx // it lives as long as the one call
	count RecoveredTable
	batch []recoveredRow
	bytes int
	sums  map[int64][]byte // of a set: the combined hash of its rows
	seen  map[int64]bool   // row ids
}

// take puts a row into the batch.
func (w *tableWriter) take(row salvage.Row, stray bool) error {
	values, ok := w.t.values(row)
	if !ok {
		if row.Cut || len(row.Values) > 0 {
			w.count.Refused++
		}
		return nil
	}
	if w.t.tree {
		if w.seen[row.ID] {
			return nil
		}
		w.seen[row.ID] = true
	}
	if w.t.hash != nil && w.t.hash.Set {
		if key, sum := w.t.sum(values); w.sums[key] == nil {
			w.sums[key] = sum
		} else {
			w.sums[key] = rowhash.Xor(w.sums[key], sum)
		}
	}
	if w.t.name == "passage" && !w.own(values) {
		return nil
	}
	w.batch = append(w.batch, recoveredRow{values, stray, row.Cut})
	for _, v := range values {
		switch v := v.(type) {
		case string:
			w.bytes += len(v)
		case []byte:
			w.bytes += len(v)
		}
	}
	if len(w.batch) >= recoverBatch || w.bytes >= recoverBytes {
		return w.flush()
	}
	return nil
}

// own reports whether a passage has the caller's own vector, which cannot be made again.
func (w *tableWriter) own(values []any) bool {
	id, _ := values[w.t.rowID].(int64)
	return w.r.ownPlaces[id>>kernel.PassageBits]
}

// takeStrays takes the rows of unreferenced pages: rows whose key has a hash, or all rows of a table without hashes. It
// takes no rows that the hashes show to be deleted.
func (w *tableWriter) takeStrays() error {
	var rows []salvage.Row
	for _, n := range w.t.strays {
		found, _, _ := w.r.file.Leaf(n, &salvage.Found{Pages: map[uint32]bool{}})
		rows = append(rows, found...)
	}
	h := w.t.hash
	if h == nil || !h.Set {
		for _, row := range rows {
			if h != nil && len(w.r.hashes[h.Kind]) > 0 {
				if values, ok := w.t.values(row); ok {
					key, _ := w.t.sum(values)
					if _, known := w.r.hashes[h.Kind][key]; !known {
						continue
					}
				}
			}
			if err := w.take(row, true); err != nil {
				return err
			}
		}
		return nil
	}
	return w.takeSets(rows)
}

// takeSets takes the unreferenced rows of sets. Pages of an index may look the same, so they count only if a set
// matches its hash: with the rows of one page, or with the rows of all. Nothing else looks like tags.
func (w *tableWriter) takeSets(rows []salvage.Row) error {
	h := w.t.hash
	sets := map[int64]map[uint32][]salvage.Row{}
	for _, row := range rows {
		if values, ok := w.t.values(row); ok {
			key, _ := w.t.sum(values)
			if sets[key] == nil {
				sets[key] = map[uint32][]salvage.Row{}
			}
			sets[key][row.Page] = append(sets[key][row.Page], row)
		}
	}
	for key, pages := range sets {
		stored, known := w.r.hashes[h.Kind][key]
		if known && bytes.Equal(stored, w.sums[key]) {
			continue // nothing is missing
		}
		var all, chosen []salvage.Row
		for _, set := range pages {
			all = append(all, set...)
			if known && bytes.Equal(stored, w.sumWith(key, set)) {
				chosen = set
			}
		}
		tags := (h.Name == "memory_tag" || h.Name == "file_tag") && (known || len(w.r.hashes) == 0)
		if chosen == nil && (tags || known && bytes.Equal(stored, w.sumWith(key, all))) {
			chosen = all
		}
		for _, row := range chosen {
			if err := w.take(row, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// sumWith returns the combined hash of a set with further rows.
func (w *tableWriter) sumWith(key int64, rows []salvage.Row) []byte {
	whole := w.sums[key]
	for _, row := range rows {
		values, _ := w.t.values(row)
		_, sum := w.t.sum(values)
		if whole == nil {
			whole = sum
		} else {
			whole = rowhash.Xor(whole, sum)
		}
	}
	return whole
}

// flush writes the batch. A row that does not fit does not hold up the others.
func (w *tableWriter) flush() error {
	batch := w.batch
	w.batch, w.bytes = nil, 0
	if len(batch) == 0 {
		return nil
	}
	var count RecoveredTable
	err := w.db.Write(w.ctx, func(tx db.Tx) error {
		count = RecoveredTable{}
		for _, row := range batch {
			if err := w.insert(tx, row, &count); err != nil {
				return err
			}
		}
		return nil
	})
	w.count.Rows += count.Rows
	w.count.Stray += count.Stray
	w.count.Cut += count.Cut
	w.count.Refused += count.Refused
	return err
}

func (w *tableWriter) insert(tx db.Tx, row recoveredRow, count *RecoveredTable) error {
	fits, err := w.mend(tx, row)
	if err != nil {
		return err
	}
	if fits {
		names, places := make([]string, len(w.t.columns)), make([]string, len(w.t.columns))
		for i, c := range w.t.columns {
			names[i], places[i] = `"`+c.name+`"`, "?"
		}
		_, err = tx.Exec(fmt.Sprintf(`INSERT INTO "%s" (%s) VALUES (%s)`, w.t.name, strings.Join(names, ", "),
			strings.Join(places, ", ")), row.values...)
		if errors.Is(err, db.ErrConstraint) {
			fits, err = false, nil
		}
		if err != nil {
			return err
		}
	}
	if !fits {
		count.Refused++
		return nil
	}
	w.r.keep(w.t, row.values)
	count.Rows++
	if row.stray {
		count.Stray++
	}
	if row.cut {
		count.Cut++
	}
	return nil
}

// keep remembers a row to which others refer.
func (r *recovery) keep(t *recoveredTable, values []any) {
	if t.rowID < 0 {
		return
	}
	id, _ := values[t.rowID].(int64)
	if t.name != "passage" && t.name != "file_chunk" && t.name != "memory_revision" && t.name != "activity" {
		if r.present[t.name] == nil {
			r.present[t.name] = map[int64]bool{}
		}
		r.present[t.name][id] = true
	}
	for i, c := range t.columns {
		if t.name == "collection" && c.name == "own_profile" && values[i] != nil {
			r.ownVectors[id] = true
		}
		if collection, ok := values[i].(int64); ok && t.name == "partition" && c.name == "collection_id" &&
			r.ownVectors[collection] {
			r.ownPlaces[id] = true
		}
	}
}

// mend makes a row fit into the new file: it replaces truncated values, invalid texts, and dangling references. The
// hashes reveal these changes. fits is false if the row it belongs to is lost.
func (w *tableWriter) mend(tx db.Tx, row recoveredRow) (fits bool, err error) {
	for i, c := range w.t.columns {
		if w.t.name == "partition" && slices.Contains(w.t.hash.Except, c.name) {
			row.values[i] = int64(0) // counts, which start again
			continue
		}
		switch v := row.values[i].(type) {
		case string:
			row.values[i] = mendedText(c.name, v)
		case int64:
			if c.parent == "" || w.r.present[c.parent][v] {
				continue
			}
			if !c.required {
				row.values[i] = nil
				w.r.note("%s: a reference to a %s that is lost was removed", w.t.name, c.parent)
				continue
			}
			made, err := w.r.standIn(tx, c.parent, v)
			if err != nil || !made {
				return false, err
			}
		case nil:
			if !c.required || i == w.t.rowID {
				continue
			}
			if c.parent != "" {
				return false, nil
			}
			switch {
			case c.name == "metadata" || c.name == "attributes" || c.name == "value":
				row.values[i] = "{}"
			case c.kind == "TEXT":
				row.values[i] = ""
			case c.kind == "BLOB":
				row.values[i] = []byte{}
			default:
				row.values[i] = int64(1)
			}
		}
	}
	return true, nil
}

// mendedText returns valid text, and a JSON object where one is expected.
func mendedText(column, value string) string {
	if !utf8.ValidString(value) {
		value = strings.ToValidUTF8(value, "\ufffd")
	}
	if column != "metadata" && column != "attributes" {
		return value
	}
	if object, err := jsonobject.Decode([]byte(value)); err == nil && object != nil {
		return value
	}
	kept, err := json.Marshal(map[string]any{"recovered_metadata": value})
	if err != nil {
		return "{}"
	}
	return string(kept)
}

// standIn makes a row in place of a lost one that others reference. Rows of a lost owner or place go to the local user,
// which only the operator can be.
func (r *recovery) standIn(tx db.Tx, table string, id int64) (bool, error) {
	now := time.Now().UnixMicro()
	name := fmt.Sprintf("recovered-%d", id)
	users := "users"
	if r.table(users) == nil {
		users = "user" // its name in older files
	}
	owner := func() (int64, error) {
		if _, err := tx.Exec(`INSERT INTO `+users+` (uid, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING`, LocalUser,
			now); err != nil {
			return 0, err
		}
		var row int64
		err := tx.QueryRow(`SELECT id FROM `+users+` WHERE uid = ?`, LocalUser).Scan(&row)
		r.keepID(users, row)
		return row, err
	}
	var err error
	switch table {
	case users:
		_, err = tx.Exec(`INSERT INTO `+users+` (id, uid, created_at) VALUES (?, ?, ?)`, id, name, now)
	case "collection", "project":
		var row int64
		if row, err = owner(); err != nil {
			return false, err
		}
		if table == "collection" {
			_, err = tx.Exec(`INSERT INTO collection (id, owner_id, name, description, created_at, updated_at) `+
				`VALUES (?, ?, ?, '', ?, ?)`, id, row, name, now, now)
		} else {
			_, err = tx.Exec(`INSERT INTO project (id, owner_id, uid, name, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)`,
				id, row, name, name, now, now)
		}
	case "partition":
		var row, collection int64
		if row, err = owner(); err != nil {
			return false, err
		}
		collection, err = db.Insert(tx,
			`INSERT INTO collection (owner_id, name, description, created_at, updated_at) VALUES (?, ?, '', ?, ?) RETURNING id`,
			row, "recovered-place-"+fmt.Sprint(id), now, now)
		if err != nil {
			return false, err
		}
		r.keepID("collection", collection)
		if _, err = tx.Exec(`INSERT INTO partition (id, collection_id) VALUES (?, ?)`, id, collection); err != nil {
			return false, err
		}
	default:
		return false, nil
	}
	if err != nil {
		return false, err
	}
	r.keepID(table, id)
	r.note("%s %d is lost, which other rows refer to; %q replaces it, for the local user", table, id, name)
	return true, nil
}

func (r *recovery) keepID(table string, id int64) {
	if r.present[table] == nil {
		r.present[table] = map[int64]bool{}
	}
	r.present[table][id] = true
}

// reviveMemories restores lost memories from the newest past version that is left.
func (r *recovery) reviveMemories(ctx context.Context, file db.DB, t *recoveredTable) error {
	column := func(name string) int {
		return slices.IndexFunc(t.columns, func(c recoveredColumn) bool { return c.name == name })
	}
	newest := map[int64][]any{}
	look := func(row salvage.Row) error {
		values, ok := t.values(row)
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
	if root := r.roots[t.name]; root != 0 {
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
		shown, _ := values[column("attributes")].(string)
		number, _ := values[column("revision")].(int64)
		created, _ := values[column("created_at")].(int64)
		partition, _ := values[column("partition_id")].(int64)
		err := file.Write(ctx, func(tx db.Tx) error { return r.revive(tx, id, number, created, partition, content, shown) })
		if err != nil && !errors.Is(err, db.ErrConstraint) {
			return err
		}
	}
	return nil
}

func (r *recovery) revive(tx db.Tx, id, number, created, partition int64, content, shown string) error {
	uid := r.names[id]
	if uid == "" {
		uid = uuid.Must(uuid.NewV7()).String()
	}
	a := kernel.Attributes{Own: map[string]any{}}
	if object, err := jsonobject.Decode([]byte(mendedText("attributes", shown))); err == nil {
		if known, err := kernel.AttributesOf(object); err == nil {
			a = known
		}
	}
	metadata, err := json.Marshal(kernel.OrEmpty(a.Own))
	if err != nil {
		return err
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

// mendTrash recounts the contents of the trash entries, and takes out files whose entries are lost.
func (r *recovery) mendTrash(tx db.Tx) error {
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

// writeHashes writes the expected hashes of the rows, so that a check of the new file reports the damaged and the lost
// rows.
func (r *recovery) writeHashes(tx db.Tx) error {
	if !r.hashed {
		return nil
	}
	for kind, hashes := range r.hashes {
		for id, hash := range hashes {
			if _, err := tx.Exec(`INSERT INTO row_hash (kind, id, hash) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, kind, id,
				hash); err != nil {
				return err
			}
		}
	}
	// Row ids of lost rows are not reused.
	for _, t := range r.tables {
		if t.hash == nil || t.hash.Set {
			continue
		}
		_, err := tx.Exec(`UPDATE sqlite_sequence SET seq = (SELECT max(id) FROM row_hash WHERE kind = ?1)
			WHERE name = ?2 AND seq < (SELECT max(id) FROM row_hash WHERE kind = ?1)`, t.hash.Kind, t.name)
		if err != nil {
			return err
		}
	}
	return nil
}
