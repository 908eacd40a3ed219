package postgres

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
)

var (
	createTable = regexp.MustCompile(`(?s)CREATE TABLE (\w+) \((.*?)\n\);`)
	addColumn   = regexp.MustCompile(`ALTER TABLE (\w+) ADD COLUMN ([^;]*);`)
	columnLine  = regexp.MustCompile(`(?s)^\s*(\w+)\s+(bigint|text|bytea|jsonb|xid8)\b(.*)`)
)

// kindsOfColumns are SQLite's column types by those of PostgreSQL.
var kindsOfColumns = map[string]string{"bigint": "INTEGER", "text": "TEXT", "bytea": "BLOB", "jsonb": "ANY"}

// ownTables are the tables that only PostgreSQL has: its full text, and its log of changes.
var ownTables = []string{"passage_text", "passage_term", "change", "change_floor", "word_partition", "write_turn"}

// columnsOf lists the columns of the tables that migrations make, as "table.column TYPE NOT NULL".
func columnsOf(t *testing.T) []string {
	t.Helper()
	steps, err := loadMigrations()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	add := func(table, line string) {
		if m := columnLine.FindStringSubmatch(line); m != nil && !slices.Contains(ownTables, table) {
			required := strings.Contains(m[3], "NOT NULL") || strings.Contains(m[3], "PRIMARY KEY")
			all = append(all, fmt.Sprintf("%s.%s %s %t", table, m[1], kindsOfColumns[m[2]], required))
		}
	}
	for _, step := range steps {
		for _, table := range createTable.FindAllStringSubmatch(step.sql, -1) {
			for line := range strings.SplitSeq(table[2], "\n") {
				add(table[1], line)
			}
		}
		for _, column := range addColumn.FindAllStringSubmatch(step.sql, -1) {
			add(column[1], column[2])
		}
	}
	slices.Sort(all)
	return all
}

// Both engines have one schema: a change of one engine's tables must be made in the other, too.
func TestBothEnginesHaveTheSameTables(t *testing.T) {
	d, err := sqlite.Open(t.Context(), sqlite.Config{Path: ":memory:", ApplicationID: 1, Migrations: sqlite.Migrations()})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var want []string
	err = d.Read(t.Context(), func(tx db.Tx) error {
		return tx.Each(func(row db.Rows) error {
			var table, column, kind string
			var required bool
			err := row.Scan(&table, &column, &kind, &required)
			if !slices.Contains(ownTables, table) && !strings.HasPrefix(table, "passage_text") {
				want = append(want, fmt.Sprintf("%s.%s %s %t", table, column, kind, required))
			}
			return err
		}, `SELECT t.name, c.name, c.type, c."notnull" OR c.pk > 0 FROM sqlite_schema t, pragma_table_info(t.name) c
			WHERE t.type = 'table' AND t.name <> 'sqlite_sequence'`)
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	got := columnsOf(t)
	for _, column := range want {
		if !slices.Contains(got, column) {
			t.Errorf("PostgreSQL lacks %s, which SQLite has; add it to internal/postgres/migrations, too", column)
		}
	}
	for _, column := range got {
		if !slices.Contains(want, column) {
			t.Errorf("PostgreSQL has %s, and SQLite has not", column)
		}
	}
	if len(want) < 200 {
		t.Errorf("SQLite's tables have %d columns; want at least 200", len(want))
	}
	steps, err := loadMigrations()
	if err != nil {
		t.Fatal(err)
	}
	names, err := fs.Glob(sqlite.Migrations(), "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	if got := steps[len(steps)-1].number; got != len(names) {
		t.Errorf("the newest migration: got %d, want %d as in SQLite; it may change nothing", got, len(names))
	}
}
