package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Upkeep returns the parts that this engine has: the server manages its files and their log.
func (d *DB) Upkeep() db.Upkeep {
	return db.Upkeep{Name: d.name, Space: d, Check: d}
}

// tables selects the tables of the store, in its schema.
const tables = `SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1`

// Compact runs VACUUM on each table. It makes room for new rows; VACUUM FULL, which gives it back to the system, locks
// tables for long and is left to operators.
func (d *DB) Compact(ctx context.Context) error {
	if d.readOnly {
		return db.ErrReadOnly
	}
	if err := d.begin(); err != nil {
		return err
	}
	defer d.running.Done()
	conn, err := d.connection(ctx, d.reading)
	if err != nil {
		return err
	}
	defer conn.Release()
	rows, err := conn.Query(ctx, tables)
	if err != nil {
		return classify("compact", err)
	}
	names, err := collect(rows, 0)
	if err != nil {
		return classify("compact", err)
	}
	for _, name := range names {
		if _, err := conn.Exec(ctx, fmt.Sprint("VACUUM (ANALYZE) ", name[0])); err != nil {
			return d.unavailable(ctx, err)
		}
	}
	return nil
}

// Size returns the size of the store's tables and indexes.
func (d *DB) Size(tx db.Tx) (s db.Size, err error) {
	size := "pg_total_relation_size(c.oid)"
	if d.distributed {
		size = "citus_total_relation_size(c.oid)"
	}
	err = tx.QueryRow(`SELECT coalesce(sum(` + size + `), 0)::int8 FROM pg_class c
		JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND c.relkind = 'r'`).
		Scan(&s.Database)
	return s, err
}

// Problems reports indexes and constraints that PostgreSQL knows to be invalid. Its pages have checksums of their own.
func (d *DB) Problems(tx db.Tx, limit int) (problems []db.Problem, err error) {
	names, err := db.Column[string](tx, `SELECT c.relname::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
		JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND NOT i.indisvalid
		ORDER BY 1 LIMIT ?`, limit)
	for _, name := range names {
		problems = append(problems, db.Problem{Text: fmt.Sprintf("the index %s is not valid", name), Indexes: true})
	}
	return problems, err
}

// Damaged reports whether an error is about damaged pages or indexes, or about values that do not fit the schema: the
// class of data exceptions (22), such as a text that is not JSON, and constraints that a repair meets.
func (d *DB) Damaged(err error) bool {
	var e *Error
	data := errors.As(err, &e) && strings.HasPrefix(e.Code, "22")
	return data || errors.Is(err, db.ErrCorrupt) || errors.Is(err, db.ErrMisfit) || errors.Is(err, db.ErrConstraint)
}

// actions are what foreign keys do when their row is deleted, by pg_constraint's letters.
var actions = map[string]string{"a": "NO ACTION", "r": "RESTRICT", "c": "CASCADE", "n": "SET NULL", "d": "SET DEFAULT"}

// Broken looks for the row behind each reference. PostgreSQL keeps references intact, except ones that existed before a
// constraint that is NOT VALID, and ones of rows that were loaded with triggers off or lost with a damaged page.
func (d *DB) Broken(tx db.Tx) ([]db.Broken, error) {
	var all, broken []db.Broken
	err := tx.Each(func(row db.Rows) error {
		var b db.Broken
		err := row.Scan(&b.Table, &b.Column, &b.Parent, &b.Key, &b.OnDelete)
		b.OnDelete = actions[b.OnDelete]
		all = append(all, b)
		return err
	}, `SELECT c.conrelid::regclass::text, f.attname::text, c.confrelid::regclass::text, k.attname::text,
			c.confdeltype::text
		FROM pg_constraint c JOIN pg_namespace n ON n.oid = c.connamespace
			JOIN pg_attribute f ON f.attrelid = c.conrelid AND f.attnum = c.conkey[1]
			JOIN pg_attribute k ON k.attrelid = c.confrelid AND k.attnum = c.confkey[1]
		WHERE n.nspname = current_schema() AND c.contype = 'f' AND cardinality(c.conkey) = 1 ORDER BY 1, 2`)
	if err != nil {
		return nil, err
	}
	for _, b := range all {
		err := tx.QueryRow(fmt.Sprintf(`SELECT count(*) FROM %[1]s c WHERE c.%[2]s IS NOT NULL
			AND NOT EXISTS (SELECT 1 FROM %[3]s p WHERE p.%[4]s = c.%[2]s)`, b.Table, b.Column, b.Parent, b.Key)).Scan(&b.Rows)
		if err != nil {
			return nil, err
		}
		if b.Rows > 0 {
			broken = append(broken, b)
		}
	}
	return broken, nil
}

// Reindex rebuilds the indexes of all tables.
func (d *DB) Reindex(tx db.Tx) error {
	names, err := db.Column[string](tx, tables)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := tx.Exec(`REINDEX TABLE ` + name); err != nil {
			return err
		}
	}
	return nil
}
