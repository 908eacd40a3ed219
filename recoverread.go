package souvenir

import (
	"bytes"
	"context"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/rowhash"
	"github.com/souvenir-ai/souvenir/internal/salvage"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
)

// recovery is a run of [Recover].
type recovery struct {
	file     *salvage.File
	report   *RecoveryReport
	progress Progress
	version  int // of the file's schema
	known    int // the newest one
	hashed   bool
	rows     int // that are in the new store

	tables []*recoveredTable // those that others refer to first
	roots  map[string]uint32 // table or index -> its first page
	hashes map[int]map[int64][]byte

	present    map[string]map[int64]bool // table -> the ids of its rows in the new store, of tables that are referred to
	ownPlaces  map[int64]bool            // partitions whose vectors are the caller's own
	ownVectors map[int64]bool            // collections of such
	names      map[int64]string          // memory -> uid, as the index has it
}

// recoveredTable is a table of the file's schema.
type recoveredTable struct {
	name    string
	columns []recoveredColumn
	order   []int // the columns in the order in which records have them
	rowID   int   // the column that is the row's number; -1 for none
	tree    bool  // it has row ids, other than those that are an index themselves
	hash    *kernel.HashedTable
	strays  []uint32 // pages of it that nothing leads to
}

type recoveredColumn struct {
	name, kind string
	required   bool
	key        int    // its place in the primary key, from 1; 0: none
	parent     string // the table whose id it is; empty: none
}

// migrationsUpTo are the first migrations only.
type migrationsUpTo struct {
	fs.FS
	version int
}

func (f migrationsUpTo) Glob(pattern string) ([]string, error) {
	names, err := fs.Glob(f.FS, pattern)
	return names[:min(f.version, len(names))], err
}

// config is how a file of the same version is made, without what keeps hashes.
func (r *recovery) config(path string) sqlite.Config {
	config := fileConfig(path, time.Now)
	config.Migrations = migrationsUpTo{config.Migrations, r.version}
	config.BeforeMigrations, config.AfterMigrations, config.Prepare = nil, nil, nil
	return config
}

// notRecovered are tables that are made anew, or are for a short time only.
var notRecovered = []string{"setting", "change", "session", "oauth_code", "row_hash"}

// readSchema learns from the migrations which tables a file of this version has.
func (r *recovery) readSchema(ctx context.Context) error {
	file, err := sqlite.Open(ctx, r.config(":memory:"))
	if err != nil {
		return err
	}
	defer file.Close()
	hashed := kernel.HashedTables()
	return file.Read(ctx, func(tx db.Tx) error {
		names, err := db.Column[string](tx, `SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND strict ORDER BY name`)
		if err != nil {
			return err
		}
		for _, name := range names {
			t := &recoveredTable{name: name, rowID: -1}
			if i := slices.IndexFunc(hashed, func(h kernel.HashedTable) bool { return h.Name == name || h.Former == name }); i >= 0 {
				t.hash = &hashed[i]
			}
			if err := t.readColumns(tx); err != nil {
				return err
			}
			r.tables = append(r.tables, t)
			r.hashed = r.hashed || name == "row_hash"
		}
		r.sortTables()
		return nil
	})
}

func (t *recoveredTable) readColumns(tx db.Tx) error {
	err := tx.Each(func(row db.Rows) error {
		var c recoveredColumn
		err := row.Scan(&c.name, &c.kind, &c.required, &c.key, &c.parent)
		t.columns = append(t.columns, c)
		return err
	}, `SELECT c.name, c.type, c."notnull", c.pk, coalesce((SELECT f."table" FROM pragma_foreign_key_list(?1) f WHERE f."from" = c.name), '')
		FROM pragma_table_info(?1) c ORDER BY c.cid`, t.name)
	if err != nil {
		return err
	}
	var without bool
	if err := tx.QueryRow(`SELECT wr FROM pragma_table_list WHERE schema = 'main' AND name = ?`, t.name).Scan(&without); err != nil {
		return err
	}
	t.tree = !without
	for i, c := range t.columns {
		if t.tree && c.key == 1 && c.kind == "INTEGER" {
			t.rowID = i
		}
		t.order = append(t.order, i)
	}
	if without { // the key comes first
		slices.SortStableFunc(t.order, func(a, b int) int {
			ka, kb := t.columns[a].key, t.columns[b].key
			switch {
			case ka == 0 && kb == 0:
				return 0
			case ka == 0:
				return 1
			case kb == 0:
				return -1
			}
			return ka - kb
		})
	}
	return nil
}

// sortTables puts tables behind those that they refer to.
func (r *recovery) sortTables() {
	var sorted []*recoveredTable
	placed := map[string]bool{}
	for len(sorted) < len(r.tables) {
		before := len(sorted)
		for _, t := range r.tables {
			waits := slices.ContainsFunc(t.columns, func(c recoveredColumn) bool { return c.parent != "" && c.parent != t.name && !placed[c.parent] })
			if !placed[t.name] && !waits {
				placed[t.name] = true
				sorted = append(sorted, t)
			}
		}
		if len(sorted) == before { // a circle: whatever comes first
			for _, t := range r.tables {
				if !placed[t.name] {
					placed[t.name] = true
					sorted = append(sorted, t)
					break
				}
			}
		}
	}
	r.tables = sorted
}

func (r *recovery) table(name string) *recoveredTable {
	if i := slices.IndexFunc(r.tables, func(t *recoveredTable) bool { return t.name == name }); i >= 0 {
		return r.tables[i]
	}
	return nil
}

// values puts the values of a record into the order of the table's columns. Not ok: it is no row of the table.
func (t *recoveredTable) values(row salvage.Row) ([]any, bool) {
	if len(row.Values) > len(t.columns) {
		return nil, false
	}
	values := make([]any, len(t.columns))
	for i, v := range row.Values {
		values[t.order[i]] = v
	}
	if t.rowID >= 0 {
		if values[t.rowID] != nil {
			return nil, false
		}
		values[t.rowID] = row.ID
	}
	for i, v := range values {
		c := t.columns[i]
		given := i < len(row.Values)
		switch v.(type) {
		case nil:
			if c.required && given && c.key == 0 && i != t.rowID {
				return nil, false
			}
		case int64:
			if c.kind != "INTEGER" {
				return nil, false
			}
		case string:
			if c.kind != "TEXT" {
				return nil, false
			}
		case []byte:
			if c.kind != "BLOB" {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	return values, true
}

// sum is the hash that a row has, and the key by which it is kept.
func (t *recoveredTable) sum(values []any) (key int64, sum []byte) {
	var names []string
	var hashed []any
	for i, c := range t.columns {
		if c.name == t.hash.Key {
			key, _ = values[i].(int64)
			if !t.hash.Set {
				continue
			}
		}
		if slices.Contains(t.hash.Except, c.name) {
			continue
		}
		names, hashed = append(names, c.name), append(hashed, values[i])
	}
	sum, err := rowhash.Hash(strings.Join(names, ","), hashed)
	if err != nil {
		return key, nil
	}
	return key, sum
}

// readFile finds out which page belongs to which table, and reads the hashes.
func (r *recovery) readFile(ctx context.Context) error {
	r.roots, r.hashes, r.names = map[string]uint32{}, map[int]map[int64][]byte{}, map[int64]string{}
	found := &salvage.Found{Pages: map[uint32]bool{}}
	err := r.file.Walk(1, found, func(row salvage.Row) error {
		if len(row.Values) < 4 {
			return nil
		}
		name, _ := row.Values[1].(string)
		root, _ := row.Values[3].(int64)
		if name != "" && root > 1 && root <= int64(r.file.Pages()) {
			r.roots[name] = uint32(root)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if found.Problems > 0 || len(r.roots) == 0 {
		r.note("the list of tables is damaged")
	}
	done := 0
	for name, root := range r.roots {
		r.progress("read", done, len(r.roots))
		done++
		if err := ctx.Err(); err != nil {
			return err
		}
		before := found.Problems
		err := r.file.Walk(root, found, func(row salvage.Row) error {
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
		if n := found.Problems - before; n > 0 && !strings.HasPrefix(name, "sqlite_") && !strings.HasPrefix(name, "passage_text") && r.table(name) != nil {
			r.note("%s: %d pages or rows cannot be read", name, n)
		}
	}
	r.progress("read", done, len(r.roots))
	for _, p := range r.file.Problems {
		r.note("%s", p)
	}
	return r.readStrays(ctx, found)
}

func (r *recovery) keepHash(row salvage.Row) {
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

// readStrays finds the pages of tables that no tree leads to: what is behind a damaged page.
func (r *recovery) readStrays(ctx context.Context, found *salvage.Found) error {
	free := r.file.Free()
	var strays []uint32
	hashes := r.table("row_hash")
	for n := uint32(2); n <= r.file.Pages(); n++ {
		if free[n] || found.Pages[n] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		rows, inTable, ok := r.file.Leaf(n, &salvage.Found{Pages: map[uint32]bool{}})
		if !ok {
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
		var best *recoveredTable
		most := 0
		for _, t := range r.tables {
			if t.tree != inTable || slices.Contains(notRecovered, t.name) {
				continue
			}
			score := r.fits(t, rows)
			if 2*score <= len(rows) {
				continue
			}
			if score = 2*score + 4*r.verifies(t, rows); score > most {
				best, most = t, score
			}
		}
		if best != nil {
			best.strays = append(best.strays, n)
		}
	}
	return nil
}

// fits counts the rows that could be of a table.
func (r *recovery) fits(t *recoveredTable, rows []salvage.Row) (n int) {
	for _, row := range rows {
		if _, ok := t.values(row); ok && len(row.Values) > len(t.columns)/2 {
			n++
		}
	}
	return n
}

// verifies counts the rows whose hash says that they are of a table.
func (r *recovery) verifies(t *recoveredTable, rows []salvage.Row) (n int) {
	if t.hash == nil {
		return 0
	}
	for _, row := range rows {
		values, ok := t.values(row)
		if !ok {
			continue
		}
		key, sum := t.sum(values)
		stored, kept := r.hashes[t.hash.Kind][key]
		if kept && (t.hash.Set || bytes.Equal(stored, sum)) {
			n++
		}
	}
	return n
}
