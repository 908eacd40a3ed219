package recovery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/files/objects"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/recovery/salvage"
	"github.com/souvenir-ai/souvenir/internal/rowhash"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
)

// batchRows and batchBytes limit the rows of one transaction, and their bytes.
const (
	batchRows  = 1000
	batchBytes = 8 << 20
)

// Write makes a new file of the old file's version, with the readable rows and their expected hashes.
func (r *Recovery) Write(ctx context.Context, path string) (err error) {
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
	for i, t := range r.Tables {
		r.progress("copy", i, len(r.Tables))
		if slices.Contains(NotRecovered, t.Name) {
			continue
		}
		if t.Name == "memory_revision" {
			if err := r.reviveMemories(ctx, file, t); err != nil {
				return err
			}
		}
		if err := r.writeTable(ctx, file, t); err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
	}
	r.progress("copy", len(r.Tables), len(r.Tables))
	if err := file.Write(ctx, r.fillUserKeys); err != nil {
		return err
	}
	if err := file.Write(ctx, r.writeHashes); err != nil {
		return err
	}
	if !slices.ContainsFunc(r.Tables, func(t *Table) bool { return t.Name == "file_object" }) {
		return nil
	}
	return file.Write(ctx, objects.Restore)
}

// pendingRow is a row on its way from the old file to the new one.
type pendingRow struct {
	id         int64 // its row id, in a table that has them
	values     []any
	stray, cut bool
}

// writeTable copies the readable rows of a table.
func (r *Recovery) writeTable(ctx context.Context, file db.DB, t *Table) error {
	w := &tableWriter{r: r, t: t, db: file, ctx: ctx, sums: map[int64][]byte{}, seen: map[int64]bool{}}
	found := &salvage.Found{Pages: map[uint32]bool{}}
	if root := r.Roots[t.Name]; root != 0 {
		if err := r.file.Walk(root, found, func(row salvage.Row) error { return w.take(row, false) }); err != nil {
			return err
		}
	}
	if err := w.takeStrays(); err != nil {
		return err
	}
	if err := w.takeWrong(); err != nil {
		return err
	}
	if err := w.flush(); err != nil {
		return err
	}
	if w.count != (Count{}) {
		r.Counts[t.Name] = w.count
	}
	r.Rows += w.count.Rows
	return nil
}

type tableWriter struct {
	r     *Recovery
	t     *Table
	db    db.DB
	ctx   context.Context //nolint:containedctx // it lives as long as the one call
	count Count
	batch []pendingRow
	bytes int
	sums  map[int64][]byte // of a set: the combined hash of its rows
	seen  map[int64]bool   // row ids
	wrong []pendingRow     // rows that differ from their hashes; another page may have the original row
	held  int              // bytes of wrong
}

const mostHeld = 64 << 20 // bytes of rows that wait for a better one

// take takes a row, unless one with its id was taken.
func (w *tableWriter) take(row salvage.Row, stray bool) error {
	values, ok := w.t.Values(row)
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
		if w.held < mostHeld && w.differs(values) {
			w.held += size(values)
			w.wrong = append(w.wrong, pendingRow{row.ID, values, stray, row.Cut})
			return nil
		}
		w.seen[row.ID] = true
	}
	if w.t.Hash != nil && w.t.Hash.Set {
		if key, sum := w.t.sum(values); w.sums[key] == nil {
			w.sums[key] = sum
		} else {
			w.sums[key] = rowhash.Xor(w.sums[key], sum)
		}
	}
	if w.t.Name == "passage" && !w.own(values) {
		return nil
	}
	return w.add(pendingRow{row.ID, values, stray, row.Cut})
}

// differs reports whether a row differs from its hash.
func (w *tableWriter) differs(values []any) bool {
	h := w.t.Hash
	if h == nil || h.Set {
		return false
	}
	key, sum := w.t.sum(values)
	stored, known := w.r.hashes[h.Kind][key]
	return known && !bytes.Equal(stored, sum)
}

// takeWrong takes the rows that differ from their hashes and were not found in the right form.
func (w *tableWriter) takeWrong() error {
	for _, row := range w.wrong {
		if w.seen[row.id] {
			continue
		}
		w.seen[row.id] = true
		if w.t.Name == "passage" && !w.own(row.values) {
			continue
		}
		if err := w.add(row); err != nil {
			return err
		}
	}
	return nil
}

// add puts a row into the batch, and writes the batch when it is full.
func (w *tableWriter) add(row pendingRow) error {
	w.batch = append(w.batch, row)
	w.bytes += size(row.values)
	if len(w.batch) >= batchRows || w.bytes >= batchBytes {
		return w.flush()
	}
	return nil
}

// size returns the bytes of a row's texts and blobs, and a few for the rest.
func size(values []any) (bytes int) {
	for _, v := range values {
		switch v := v.(type) {
		case string:
			bytes += len(v)
		case []byte:
			bytes += len(v)
		}
	}
	return bytes + 16*len(values)
}

// own reports whether a passage has the caller's own vector, which cannot be recomputed.
func (w *tableWriter) own(values []any) bool {
	id, _ := values[w.t.RowID].(int64)
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
	h := w.t.Hash
	if h == nil || !h.Set {
		for _, row := range rows {
			if h != nil && len(w.r.hashes[h.Kind]) > 0 {
				if values, ok := w.t.Values(row); ok {
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

// takeSets takes the unreferenced rows of sets. Pages of an index may look the same, so rows count only if their set
// then matches its hash, with the rows of one page or of all pages. Only tags are taken without a match, since nothing
// else looks like them.
func (w *tableWriter) takeSets(rows []salvage.Row) error {
	h := w.t.Hash
	sets := map[int64]map[uint32][]salvage.Row{}
	for _, row := range rows {
		if values, ok := w.t.Values(row); ok {
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
		values, _ := w.t.Values(row)
		_, sum := w.t.sum(values)
		if whole == nil {
			whole = sum
		} else {
			whole = rowhash.Xor(whole, sum)
		}
	}
	return whole
}

// flush writes the batch. It skips rows that violate a constraint.
func (w *tableWriter) flush() error {
	batch := w.batch
	w.batch, w.bytes = nil, 0
	if len(batch) == 0 {
		return nil
	}
	var count Count
	err := w.db.Write(w.ctx, func(tx db.Tx) error {
		count = Count{}
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

func (w *tableWriter) insert(tx db.Tx, row pendingRow, count *Count) error {
	fits, err := w.mend(tx, row)
	if err == nil && fits {
		names, places := make([]string, len(w.t.Columns)), make([]string, len(w.t.Columns))
		for i, c := range w.t.Columns {
			names[i], places[i] = `"`+c.Name+`"`, "?"
		}
		_, err = tx.Exec(fmt.Sprintf(`INSERT INTO "%s" (%s) VALUES (%s)`, w.t.Name, strings.Join(names, ", "),
			strings.Join(places, ", ")), row.values...)
	}
	if errors.Is(err, db.ErrConstraint) { // of this row, or of the stand-in for one that it refers to
		fits, err = false, nil
	}
	if err != nil {
		return err
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

// keep records the id of a row that others may refer to.
func (r *Recovery) keep(t *Table, values []any) {
	if t.RowID < 0 {
		return
	}
	id, _ := values[t.RowID].(int64)
	if t.Name != "passage" && t.Name != "file_chunk" && t.Name != "memory_revision" && t.Name != "activity" {
		if r.present[t.Name] == nil {
			r.present[t.Name] = map[int64]bool{}
		}
		r.present[t.Name][id] = true
	}
	for i, c := range t.Columns {
		if t.Name == "collection" && c.Name == "own_profile" && values[i] != nil {
			r.ownVectors[id] = true
		}
		if collection, ok := values[i].(int64); ok && t.Name == "partition" && c.Name == "collection_id" &&
			r.ownVectors[collection] {
			r.ownPlaces[id] = true
		}
	}
}

// writeHashes writes the expected hashes of the rows, so that a check of the new file reports the damaged and the lost
// rows.
func (r *Recovery) writeHashes(tx db.Tx) error {
	if !r.Hashed {
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
	for _, t := range r.Tables {
		if t.Hash == nil || t.Hash.Set {
			continue
		}
		_, err := tx.Exec(`UPDATE sqlite_sequence SET seq = (SELECT max(id) FROM row_hash WHERE kind = ?1)
			WHERE name = ?2 AND seq < (SELECT max(id) FROM row_hash WHERE kind = ?1)`, t.Hash.Kind, t.Name)
		if err != nil {
			return err
		}
	}
	return nil
}
