package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Upkeep returns all parts; the database itself implements each of them.
func (d *DB) Upkeep() db.Upkeep {
	return db.Upkeep{Name: "SQLite " + version(), Path: d.path, File: d, Space: d, Check: d, Scratch: d.Scratch}
}

// Size returns the size of the file and its log.
func (d *DB) Size(tx db.Tx) (s db.Size, err error) {
	var page, pages, free int64
	err = tx.QueryRow(`SELECT page_size, page_count, freelist_count `+
		`FROM pragma_page_size, pragma_page_count, pragma_freelist_count`).
		Scan(&page, &pages, &free)
	return db.Size{Database: page * pages, Free: page * free, Log: d.LogSize()}, err
}

// Damaged reports whether an error means that the file is damaged. SQLite and full text report damage in many ways, so
// every error without another known cause counts.
func (d *DB) Damaged(err error) bool {
	if err == nil {
		return false
	}
	for _, other := range []error{
		context.Canceled, context.DeadlineExceeded, db.ErrClosed, db.ErrBusy, db.ErrFull, db.ErrIO, db.ErrReadOnly,
		db.ErrNoMemory, db.ErrUnavailable, db.ErrInterrupted, db.ErrUnsupported, db.ErrOutcomeUnknown, db.ErrTxDone,
		db.ErrNested,
	} {
		if errors.Is(err, other) {
			return false
		}
	}
	return true
}

// Damage runs SQLite's checks of the file's structure, indexes and full text.
func (d *DB) Damage(tx db.Tx, limit int) ([]db.Damage, error) {
	lines, err := db.Column[string](tx, fmt.Sprintf(`PRAGMA integrity_check(%d)`, limit))
	if err != nil {
		return nil, err
	}
	var problems []db.Damage
	for _, line := range lines {
		if line == "ok" {
			continue
		}
		words := strings.Contains(line, "FTS5")
		index := strings.Contains(line, "from index ") || strings.Contains(line, "in index ")
		problems = append(problems, db.Damage{Text: line, Words: words, Indexes: index && !words})
	}
	if len(problems) > 0 {
		return problems, nil
	}
	return unreadable(tx)
}

// unreadable tries each table and index: SQLite's check accepts an empty index whose root is a page of a table, which
// no statement can use.
func unreadable(tx db.Tx) (problems []db.Damage, err error) {
	type tree struct{ kind, name, table, sql string }
	var trees []tree
	err = tx.Each(func(row db.Rows) error {
		var t tree
		err := row.Scan(&t.kind, &t.name, &t.table, &t.sql)
		trees = append(trees, t)
		return err
	}, `SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema WHERE rootpage > 0`)
	if err != nil {
		return nil, err
	}
	for _, t := range trees {
		query := fmt.Sprintf(`SELECT count(*) FROM (SELECT 1 FROM "%s"`, t.table)
		if t.kind == "index" {
			query += fmt.Sprintf(` INDEXED BY "%s"`, t.name)
			if at := strings.LastIndex(t.sql, "WHERE "); at >= 0 { // only a statement with its condition may use it
				query += " " + t.sql[at:]
			}
		}
		var n int
		switch err := tx.QueryRow(query + ` LIMIT 1)`).Scan(&n); {
		case errors.Is(err, db.ErrCorrupt):
			problems = append(problems, db.Damage{Text: fmt.Sprintf("the %s %s cannot be read", t.kind, t.name),
				Indexes: t.kind == "index"})
		case err != nil:
			return nil, err
		}
	}
	return problems, nil
}

// Sound checks for damage, faster than Check, and returns the first that SQLite finds.
func Sound(tx db.Tx) error {
	found, err := db.Column[string](tx, `PRAGMA quick_check(1)`)
	if err == nil && (len(found) != 1 || found[0] != "ok") {
		err = fmt.Errorf("SQLite's check finds: %w: %q", db.ErrCorrupt, found)
	}
	return err
}

// Broken asks SQLite for rows with a foreign key to a missing row.
func (d *DB) Broken(tx db.Tx) ([]db.Broken, error) {
	var all []db.Broken
	err := tx.Each(func(row db.Rows) error {
		var b db.Broken
		err := row.Scan(&b.Table, &b.Column, &b.Parent, &b.Key, &b.OnDelete, &b.Rows)
		all = append(all, b)
		return err
	}, `SELECT v."table", l."from", l."table", ifnull(l."to", 'id'), l.on_delete, count(*)
		FROM pragma_foreign_key_check v JOIN pragma_foreign_key_list(v."table") l ON l.id = v.fkid GROUP BY 1, 2, 3, 4, 5`)
	return all, err
}

// RebuildIndexes rebuilds all indexes of the file.
func (d *DB) RebuildIndexes(ctx context.Context) error {
	return d.Write(ctx, func(tx db.Tx) error {
		_, err := tx.Exec(`REINDEX`)
		return err
	})
}
