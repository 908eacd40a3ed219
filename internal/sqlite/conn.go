package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// conn is one connection of SQLite, used by one goroutine at a time. It calls database/sql/driver's interfaces
// itself: this package's pool and writer assign connections, so the pool of database/sql would only add its cost.
type conn struct {
	raw       driver.Conn
	stmts     stmtCache
	interrupt func() // stops the running statement, from any goroutine; nil if the driver cannot
	release   func() // frees what interrupt uses
	args      []driver.NamedValue
	argBytes  int   // size of the strings and blobs bound so far
	pages     int64 // bytes of the file that it held when they were counted; see DB.count
	removed   bool  // a statement of the present transaction may have removed rows
}

// background is the only context that drivers see: they would interrupt on a cancellable one, and an interrupted
// write rolls the other callers' work back with it.
var background = context.Background()

// connect opens one connection and configures it. It writes nothing to the file.
func connect(dsn string, settings []string) (*conn, error) {
	raw, err := openDriver(dsn)
	if err != nil {
		return nil, err
	}
	c := &conn{raw: raw}
	c.stmts.closeStmt = func(s *stmt) { _ = s.ds.Close() }
	c.interrupt, c.release = interrupter(raw)
	if len(settings) > 0 {
		if err := c.script(pragmaScript(settings)); err != nil {
			_ = c.close()
			return nil, err
		}
	}
	return c, nil
}

func (c *conn) close() error {
	c.stmts.clear()
	c.release()
	return c.raw.Close()
}

// script runs any number of statements, without arguments and without the cache.
func (c *conn) script(sql string) error {
	c.removed = true
	_, err := c.raw.(driver.ExecerContext).ExecContext(background, sql, nil)
	return err
}

func (c *conn) exec(query string, args []any) (db.Result, error) {
	s, err := c.prepare(query)
	if err != nil {
		return db.Result{}, err
	}
	defer c.stmts.release(s)
	defer c.unbind()
	named, err := c.bind(s, args)
	if err != nil {
		return db.Result{}, err
	}
	if s.rows {
		return c.execDrain(s, named)
	}
	r, err := s.ds.(driver.StmtExecContext).ExecContext(background, named)
	if err != nil {
		return db.Result{}, err
	}
	if !s.writes {
		return db.Result{}, nil
	}
	affected, _ := r.RowsAffected() // neither driver fails here
	return db.Result{RowsAffected: affected}, nil
}

// execDrain runs a statement that returns rows to its end and discards the rows.
func (c *conn) execDrain(s *stmt, args []driver.NamedValue) (db.Result, error) {
	rows, err := s.ds.(driver.StmtQueryContext).QueryContext(background, args)
	if err != nil {
		return db.Result{}, err
	}
	row := make([]driver.Value, len(rows.Columns()))
	for err == nil {
		err = rows.Next(row)
	}
	closed := rows.Close()
	if !errors.Is(err, io.EOF) {
		return db.Result{}, err
	}
	if closed != nil || !s.writes {
		return db.Result{}, closed
	}
	var r db.Result
	err = c.one("SELECT changes()", &r.RowsAffected)
	return r, err
}

// query starts a query and fetches its first row, so that both drivers report the errors of
// the first step (a lock, a full-text syntax error) here.
func (c *conn) query(query string, args []any) (*Rows, error) {
	s, err := c.prepare(query)
	if err != nil {
		return nil, err
	}
	defer c.unbind()
	named, err := c.bind(s, args)
	if err != nil {
		c.stmts.release(s)
		return nil, err
	}
	raw, err := s.ds.(driver.StmtQueryContext).QueryContext(background, named)
	if err != nil {
		c.stmts.release(s)
		return nil, err
	}
	r := &Rows{conn: c, stmt: s, raw: raw, row: make([]driver.Value, len(raw.Columns()))}
	if err := r.fetch(); err != nil {
		_ = r.Close()
		return nil, err
	}
	return r, nil
}

// one scans the single row of an internal query.
func (c *conn) one(query string, dest ...any) error {
	r, err := c.query(query, nil)
	if err != nil {
		return err
	}
	return (&row{rows: r}).Scan(dest...)
}

// integers reads the single column of an internal query.
func (c *conn) integers(query string, args ...any) (values []int64, err error) {
	r, err := c.query(query, args)
	if err != nil {
		return nil, err
	}
	defer r.finish()
	for r.Next() {
		var v int64
		if err := r.Scan(&v); err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, r.Err()
}

// inTransaction reports whether a transaction is open. It is called only after failures: some errors make SQLite
// roll everything back by itself, and later statements would commit on their own.
func (c *conn) inTransaction() bool {
	if _, err := c.exec("BEGIN", nil); err != nil {
		return true // a BEGIN inside a transaction is an error
	}
	_, _ = c.exec("ROLLBACK", nil)
	return false
}

var errManyStatements = errors.New("sqlite: more than one statement; use ExecScript for scripts")

func (c *conn) prepare(query string) (*stmt, error) {
	s, err := c.prepared(query)
	if err == nil && !s.keeps {
		c.removed = true
	}
	return s, err
}

// keepsRows reports whether a statement certainly removes no row, not even by a trigger. Of the schema's triggers, only
// those of a deletion remove rows.
func keepsRows(query string) bool {
	for _, start := range []string{"SELECT ", "INSERT INTO ", "UPDATE ", "SAVEPOINT ", "RELEASE "} {
		if strings.HasPrefix(query, start) {
			return true
		}
	}
	return false
}

// writes reports whether the rows of a statement count as affected. After others, SQLite has the count of an earlier
// one.
func writes(query string) bool {
	query = strings.TrimLeft(query, " \t\n")
	for _, start := range []string{"INSERT", "UPDATE", "DELETE"} {
		if strings.HasPrefix(query, start) {
			return true
		}
	}
	return false
}

func (c *conn) prepared(query string) (*stmt, error) {
	if s := c.stmts.take(query); s != nil {
		return s, nil
	}
	// One of the drivers would silently run only the first statement.
	if i := strings.IndexByte(query, ';'); i >= 0 && strings.TrimSpace(query[i+1:]) != "" {
		return nil, errManyStatements
	}
	ds, err := c.raw.(driver.ConnPrepareContext).PrepareContext(background, query)
	if err != nil {
		return nil, err
	}
	s := &stmt{query: query, ds: ds, params: ds.NumInput(), rows: execReturnsRows(ds), keeps: keepsRows(query),
		writes: writes(query)}
	c.stmts.add(s)
	return s, nil
}

// bind converts arguments into the few types that both drivers bind alike.
func (c *conn) bind(s *stmt, args []any) ([]driver.NamedValue, error) {
	if s.params >= 0 && len(args) != s.params {
		return nil, fmt.Errorf("sqlite: %d arguments for %d parameters", len(args), s.params)
	}
	c.args = c.args[:0]
	for i, a := range args {
		v, size, err := db.ToValue(a)
		if err != nil {
			return nil, fmt.Errorf("sqlite: argument %d: %w", i+1, err)
		}
		c.argBytes += size
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return c.args, nil
}

// unbind releases the caller's strings and blobs.
func (c *conn) unbind() { clear(c.args) }

// setBusyTimeout makes SQLite itself wait up to ms milliseconds for locks.
func (c *conn) setBusyTimeout(ms int) error {
	return c.script(fmt.Sprintf("PRAGMA busy_timeout = %d", ms))
}
