package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

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
	return d.outside(ctx, func(conn *pgx.Conn) error { return each(ctx, conn, tables, `VACUUM (ANALYZE) %s`) })
}

// outside runs fn on a connection, outside of transactions. Its statements wait for locks without a limit, and locks of
// the session end with it.
func (d *DB) outside(ctx context.Context, fn func(conn *pgx.Conn) error) error {
	if d.readOnly {
		return db.ErrReadOnly
	}
	if err := d.begin(); err != nil {
		return err
	}
	defer d.running.Done()
	conn, err := d.connection(ctx, d.writing) // Reads may have a single one
	if err != nil {
		return err
	}
	defer conn.Release()
	if d.sessions {
		if _, err := conn.Exec(ctx, `SET lock_timeout = 0`); err != nil {
			return d.unavailable(ctx, err)
		}
		defer func() {
			ctx := context.WithoutCancel(ctx)
			if _, err := conn.Exec(ctx, `RESET lock_timeout; SELECT pg_advisory_unlock_all()`); err != nil {
				_ = conn.Conn().Close(ctx) // it must not serve others as it is
			}
		}()
	}
	if err := fn(conn.Conn()); err != nil {
		return d.unavailable(ctx, err)
	}
	return nil
}

// each runs a statement for each name that a query returns.
func each(ctx context.Context, conn *pgx.Conn, names, statement string) error {
	rows, err := conn.Query(ctx, names)
	if err != nil {
		return err
	}
	all, err := collect(rows, 0)
	for i := 0; i < len(all) && err == nil; i++ {
		_, err = conn.Exec(ctx, fmt.Sprintf(statement, all[i][0]))
	}
	return err
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

// Damage reports indexes and constraints that PostgreSQL knows to be invalid. Its pages have checksums of their own.
func (d *DB) Damage(tx db.Tx, limit int) (problems []db.Damage, err error) {
	names, err := db.Column[string](tx, `SELECT c.relname::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
		JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND NOT i.indisvalid
		ORDER BY 1 LIMIT ?`, limit)
	for _, name := range names {
		problems = append(problems, db.Damage{Text: fmt.Sprintf("the index %s is not valid", name), Indexes: true})
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

// RebuildIndexes rebuilds the indexes of all tables, one after the other, while others read and write. It waits for
// their transactions, such as an export. PostgreSQL leaves out indexes that are not valid, so these come first; what an
// interrupted call has left is of no use. Except behind a pooler, one process at a time does it.
func (d *DB) RebuildIndexes(ctx context.Context) error {
	return d.outside(ctx, func(conn *pgx.Conn) error {
		alone := true
		if d.sessions { // one that is being rebuilt is not valid, either
			if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock(hashtextextended(current_schema(), $1))`,
				rebuilding).Scan(&alone); err != nil {
				return err
			}
		}
		if !alone {
			return &Error{Op: "rebuild indexes", kind: db.ErrBusy, err: errors.New("another process is doing it")}
		}
		const unfinished = `c.relname ~ '_cc(new|old)[0-9]*$'`
		err := each(ctx, conn, invalid+unfinished, `DROP INDEX CONCURRENTLY IF EXISTS %s`)
		if err == nil {
			err = each(ctx, conn, invalid+`NOT `+unfinished, `REINDEX INDEX CONCURRENTLY %s`)
		}
		if err == nil {
			err = each(ctx, conn, tables, `REINDEX TABLE CONCURRENTLY %s`)
		}
		return err
	})
}

// rebuilding is the key of the lock of a process that rebuilds indexes.
const rebuilding = 0x53757669

// invalid selects the indexes that are not valid; a condition follows.
const invalid = `SELECT quote_ident(c.relname) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
	JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND NOT i.indisvalid AND `
