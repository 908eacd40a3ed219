package recovery

import (
	"context"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/recovery/salvage"
	"github.com/souvenir-ai/souvenir/internal/rowhash"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
)

// Table is a table of the file's schema.
type Table struct {
	Name    string
	Columns []Column
	RowID   int                 // index of the column that is the rowid; -1 for none
	Hash    *kernel.HashedTable // nil: its rows have no hashes

	order  []int    // the columns in the order of the records
	tree   bool     // it has rowids, unlike WITHOUT ROWID tables
	strays []uint32 // its pages that are not referenced
}

// Column is a column of a table.
type Column struct {
	Name     string
	kind     string
	required bool
	key      int    // its place in the primary key, from 1; 0: none
	Parent   string // the table whose id it is; empty: none
}

// NotRecovered lists tables that are rebuilt, or hold short-lived rows.
var NotRecovered = []string{"setting", "change", "session", "oauth_code", "row_hash", "memory_own", "shared_state",
	"segmented", "segment", "segment_stale", "file_object"}

// readSchema reads the tables of a file of this version from the migrations.
func (r *Recovery) readSchema(ctx context.Context) error {
	file, err := sqlite.Open(ctx, r.config(":memory:"))
	if err != nil {
		return err
	}
	defer file.Close()
	hashed := kernel.HashedTables()
	return file.Read(ctx, func(tx db.Tx) error {
		names, err := db.Column[string](tx,
			`SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND strict ORDER BY name`)
		if err != nil {
			return err
		}
		for _, name := range names {
			t := &Table{Name: name, RowID: -1}
			if i := slices.IndexFunc(hashed,
				func(h kernel.HashedTable) bool { return h.Name == name || h.Former == name }); i >= 0 {
				t.Hash = &hashed[i]
			}
			if err := t.readColumns(tx); err != nil {
				return err
			}
			r.Tables = append(r.Tables, t)
			r.Hashed = r.Hashed || name == "row_hash"
		}
		r.sortTables()
		return nil
	})
}

func (t *Table) readColumns(tx db.Tx) error {
	err := tx.Each(func(row db.Rows) error {
		var c Column
		err := row.Scan(&c.Name, &c.kind, &c.required, &c.key, &c.Parent)
		t.Columns = append(t.Columns, c)
		return err
	}, `SELECT c.name, c.type, c."notnull", c.pk, coalesce((SELECT f."table" FROM pragma_foreign_key_list(?1) f
		WHERE f."from" = c.name), '')
		FROM pragma_table_info(?1) c ORDER BY c.cid`, t.Name)
	if err != nil {
		return err
	}
	var without bool
	if err := tx.QueryRow(`SELECT wr FROM pragma_table_list WHERE schema = 'main' AND name = ?`,
		t.Name).Scan(&without); err != nil {
		return err
	}
	t.tree = !without
	for i, c := range t.Columns {
		if t.tree && c.key == 1 && c.kind == "INTEGER" {
			t.RowID = i
		}
		t.order = append(t.order, i)
	}
	if without { // the key comes first
		slices.SortStableFunc(t.order, func(a, b int) int {
			ka, kb := t.Columns[a].key, t.Columns[b].key
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

// sortTables sorts tables after the tables that they reference.
func (r *Recovery) sortTables() {
	var sorted []*Table
	placed := map[string]bool{}
	for len(sorted) < len(r.Tables) {
		before := len(sorted)
		for _, t := range r.Tables {
			waits := slices.ContainsFunc(t.Columns,
				func(c Column) bool { return c.Parent != "" && c.Parent != t.Name && !placed[c.Parent] })
			if !placed[t.Name] && !waits {
				placed[t.Name] = true
				sorted = append(sorted, t)
			}
		}
		if len(sorted) == before { // a cycle: break it anywhere
			for _, t := range r.Tables {
				if !placed[t.Name] {
					placed[t.Name] = true
					sorted = append(sorted, t)
					break
				}
			}
		}
	}
	r.Tables = sorted
}

// Table returns a table by name, nil if the file has no such table.
func (r *Recovery) Table(name string) *Table {
	if i := slices.IndexFunc(r.Tables, func(t *Table) bool { return t.Name == name }); i >= 0 {
		return r.Tables[i]
	}
	return nil
}

// Values puts the values of a record into the order of the table's columns. ok is false if it is not a row of the
// table.
func (t *Table) Values(row salvage.Row) ([]any, bool) {
	if len(row.Values) > len(t.Columns) {
		return nil, false
	}
	values := make([]any, len(t.Columns))
	for i, v := range row.Values {
		values[t.order[i]] = v
	}
	if t.RowID >= 0 {
		if values[t.RowID] != nil {
			return nil, false
		}
		values[t.RowID] = row.ID
	}
	for i, v := range values {
		c := t.Columns[i]
		given := i < len(row.Values)
		switch v.(type) {
		case nil:
			if c.required && given && c.key == 0 && i != t.RowID {
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

// sum returns the hash of a row, and the key that it is stored under.
func (t *Table) sum(values []any) (key int64, sum []byte) {
	var names []string
	var hashed []any
	for i, c := range t.Columns {
		if c.Name == t.Hash.Key {
			key, _ = values[i].(int64)
			if !t.Hash.Set {
				continue
			}
		}
		if slices.Contains(t.Hash.Except, c.Name) {
			continue
		}
		names, hashed = append(names, c.Name), append(hashed, values[i])
	}
	sum, err := rowhash.Hash(strings.Join(names, ","), hashed)
	if err != nil {
		return key, nil
	}
	return key, sum
}
