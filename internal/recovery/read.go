package recovery

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/recovery/salvage"
	"github.com/souvenir-ai/souvenir/internal/rowhash"
)

// readFile assigns the pages to tables, and reads the hashes.
func (r *Recovery) readFile(ctx context.Context) error {
	r.Roots, r.hashes, r.names = map[string]uint32{}, map[int]map[int64][]byte{}, map[int64]string{}
	found := &salvage.Found{Pages: map[uint32]bool{}}
	err := r.file.Walk(1, found, func(row salvage.Row) error {
		if len(row.Values) < 4 {
			return nil
		}
		name, _ := row.Values[1].(string)
		root, _ := row.Values[3].(int64)
		if name != "" && root > 1 && root <= int64(r.file.Pages()) {
			r.Roots[name] = uint32(root)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if found.Problems > 0 || len(r.Roots) == 0 {
		r.note("the list of tables is damaged")
	}
	done, derived := 0, map[uint32]bool{} // pages of data that is rebuilt, such as full text
	for name, root := range r.Roots {
		r.progress("read", done, len(r.Roots))
		done++
		if err := ctx.Err(); err != nil {
			return err
		}
		before := found.Problems
		table, fit := r.Table(name), map[uint32]int{}
		longer, rows := 0, 0
		err := r.file.Walk(root, found, func(row salvage.Row) error {
			switch {
			case table == nil:
				derived[row.Page] = true
			case table.tree:
				rows++
				if len(row.Values) > len(table.Columns) {
					longer++
				}
				if _, ok := table.Values(row); ok {
					fit[row.Page]++
				} else {
					fit[row.Page]--
				}
			}
			switch {
			case name == "row_hash":
				r.keepHash(row)
			case name == "sqlite_autoindex_memory_1" && len(row.Values) == 2:
				uid, _ := row.Values[0].(string)
				id, _ := row.Values[1].(int64)
				r.names[id] = uid
			}
			return nil
		})
		if err != nil {
			return err
		}
		r.later = r.later || longer > rows/2
		for page, n := range fit {
			if n < 0 { // reached from an outdated page; it belongs to another table by now
				delete(found.Pages, page)
			}
		}
		if n := found.Problems - before; n > 0 && !strings.HasPrefix(name, "sqlite_") &&
			!strings.HasPrefix(name, "passage_text") && r.Table(name) != nil {
			r.note("%s: %d pages or rows cannot be read", name, n)
		}
	}
	r.progress("read", done, len(r.Roots))
	for _, p := range r.file.Problems {
		r.note("%s", p)
	}
	return r.readStrays(ctx, found, derived)
}

func (r *Recovery) keepHash(row salvage.Row) {
	if len(row.Values) != 3 {
		return
	}
	kind, ok1 := row.Values[0].(int64)
	id, ok2 := row.Values[1].(int64)
	hash, ok3 := row.Values[2].([]byte)
	if !ok1 || !ok2 || !ok3 || row.Cut || len(hash) != rowhash.Size && len(hash) != 0 || kind < 1 || kind > 1000 {
		return
	}
	if r.hashes[int(kind)] == nil {
		r.hashes[int(kind)] = map[int64][]byte{}
	}
	r.hashes[int(kind)][id] = hash
}

// readStrays finds table pages that no tree references, such as those behind a damaged page. A page that an outdated
// one counts among derived data is included if hashes show that its rows belong to a table.
func (r *Recovery) readStrays(ctx context.Context, found *salvage.Found, derived map[uint32]bool) error {
	free := r.file.Free()
	var strays []uint32
	hashes := r.Table("row_hash")
	for n := uint32(2); n <= r.file.Pages(); n++ {
		if free[n] || found.Pages[n] && !derived[n] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		rows, inTable, ok := r.file.Leaf(n, &salvage.Found{Pages: map[uint32]bool{}})
		if !ok || derived[n] && !inTable {
			continue
		}
		if !inTable && hashes != nil && r.fits(hashes, rows) == len(rows) {
			for _, row := range rows {
				r.keepHash(row)
			}
			continue
		}
		strays = append(strays, n)
	}
	for _, n := range strays {
		rows, inTable, _ := r.file.Leaf(n, &salvage.Found{Pages: map[uint32]bool{}})
		var best *Table
		most := 0
		for _, t := range r.Tables {
			if t.tree != inTable || slices.Contains(NotRecovered, t.Name) {
				continue
			}
			score := r.fits(t, rows)
			if 2*score <= len(rows) {
				continue
			}
			verified := r.verifies(t, rows)
			if verified == 0 && derived[n] {
				continue
			}
			if score = 2*score + 4*verified; score > most {
				best, most = t, score
			}
		}
		if best != nil {
			best.strays = append(best.strays, n)
		}
	}
	return nil
}

// fits counts the rows that could belong to a table.
func (r *Recovery) fits(t *Table, rows []salvage.Row) (n int) {
	for _, row := range rows {
		if _, ok := t.Values(row); ok && len(row.Values) > len(t.Columns)/2 {
			n++
		}
	}
	return n
}

// verifies counts the rows whose hash shows that they belong to a table.
func (r *Recovery) verifies(t *Table, rows []salvage.Row) (n int) {
	if t.Hash == nil {
		return 0
	}
	for _, row := range rows {
		values, ok := t.Values(row)
		if !ok {
			continue
		}
		key, sum := t.sum(values)
		stored, kept := r.hashes[t.Hash.Kind][key]
		if kept && (t.Hash.Set || bytes.Equal(stored, sum)) {
			n++
		}
	}
	return n
}
