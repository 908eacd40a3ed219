package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Name returns PostgreSQL's name and version.
func (d *DB) Name() string { return d.name }

// Path returns "": there is no file.
func (d *DB) Path() string { return "" }

func unsupported(what string) error {
	return &Error{Op: what, kind: db.ErrUnsupported,
		err: fmt.Errorf("PostgreSQL has its own tools for this, such as pg_dump and pg_basebackup")}
}

// Backup is not supported: PostgreSQL has its own tools.
func (d *DB) Backup(context.Context, string, func(done, total int)) error {
	return unsupported("backup")
}

// Snapshot is not supported, either.
func (d *DB) Snapshot(context.Context, func(done, total int)) (io.ReadCloser, error) {
	return nil, unsupported("snapshot")
}

// tables are those of the store, in its schema.
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
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return d.unavailable(ctx, err)
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

// Flush has nothing to do: the write-ahead log belongs to the server, which keeps it for its own purposes.
func (d *DB) Flush(ctx context.Context) error { return ctx.Err() }

// Room always reports room: the disk is the server's.
func (d *DB) Room(ctx context.Context) error { return ctx.Err() }

// Scratch is Read in a transaction that may create temporary tables.
func (d *DB) Scratch(ctx context.Context, fn func(db.Tx) error) error {
	return d.read(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ", true, fn)
}

// Size returns the size of the store's tables and indexes.
func (d *DB) Size(tx db.Tx) (s db.Size, err error) {
	err = tx.QueryRow(`SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c
		JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND c.relkind = 'r'`).
		Scan(&s.Database)
	return s, err
}

// Check reports indexes and constraints that PostgreSQL knows to be invalid. Its pages have checksums of their own.
func (d *DB) Check(tx db.Tx, limit int) (problems []db.Problem, err error) {
	names, err := db.Column[string](tx, `SELECT c.relname::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
		JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND NOT i.indisvalid
		ORDER BY 1 LIMIT ?`, limit)
	for _, name := range names {
		problems = append(problems, db.Problem{Text: fmt.Sprintf("the index %s is not valid", name), Indexes: true})
	}
	return problems, err
}

// Damaged reports what PostgreSQL says of damaged pages and indexes, and of values that are not what the schema holds:
// the class of data exceptions (22), such as a text that is not JSON, and constraints that a repair meets.
func (d *DB) Damaged(err error) bool {
	var e *Error
	data := errors.As(err, &e) && strings.HasPrefix(e.Code, "22")
	return data || errors.Is(err, db.ErrCorrupt) || errors.Is(err, db.ErrMisfit) || errors.Is(err, db.ErrConstraint)
}

// Broken returns no references: PostgreSQL keeps them whole. It reports those that are not validated.
func (d *DB) Broken(tx db.Tx) (all []db.Broken, err error) {
	err = tx.Each(func(row db.Rows) error {
		var b db.Broken
		err := row.Scan(&b.Table, &b.Column, &b.Parent)
		b.Key = "id"
		all = append(all, b)
		return err
	}, `SELECT c.conrelid::regclass::text, c.conname::text, c.confrelid::regclass::text FROM pg_constraint c
		JOIN pg_namespace n ON n.oid = c.connamespace
		WHERE n.nspname = current_schema() AND c.contype = 'f' AND NOT c.convalidated`)
	return all, err
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
