package postgres_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/postgres"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
)

// kinds are SQLite's column types by PostgreSQL's.
var kinds = map[string]string{"bigint": "INTEGER", "text": "TEXT", "bytea": "BLOB", "jsonb": "ANY"}

// unshared are the tables that each of the two engines has for itself, such as its full text and its log of changes.
var unshared = regexp.MustCompile(`^(passage_text\w*|passage_term|change|change_floor|word_partition|write_turn|` +
	`sqlite_sequence|schema_version)$`)

// columnsOf returns the columns of the tables that both engines have, as "table.column TYPE required".
func columnsOf(t *testing.T, d db.DB, query string) []string {
	t.Helper()
	defer d.Close()
	all := map[string]bool{}
	if err := d.Read(t.Context(), func(tx db.Tx) error {
		return tx.Each(func(row db.Rows) error {
			var table, column, kind string
			var required bool
			err := row.Scan(&table, &column, &kind, &required)
			if same, known := kinds[kind]; known {
				kind = same
			}
			if !unshared.MatchString(table) {
				all[fmt.Sprintf("%s.%s %s %t", table, column, kind, required)] = true
			}
			return err
		}, query)
	}); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(all))
}

// TestMigrationsMakeTheTablesOfSQLite compares the tables that the migrations make with those of SQLite.
func TestMigrationsMakeTheTablesOfSQLite(t *testing.T) {
	address := pgtest.Address(t)
	file, err := sqlite.Open(t.Context(),
		sqlite.Config{Path: ":memory:", ApplicationID: 1, Migrations: sqlite.Migrations()})
	if err != nil {
		t.Fatal(err)
	}
	want := columnsOf(t, file, `SELECT t.name, c.name, c.type, c."notnull" OR c.pk > 0
		FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table'`)
	if len(want) < 200 {
		t.Errorf("got %d columns of SQLite's tables, want at least 200", len(want))
	}
	server, err := postgres.Open(t.Context(), address, db.Opening{Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	got := columnsOf(t, server, `SELECT table_name::text, column_name::text, data_type::text, is_nullable = 'NO'
		FROM information_schema.columns WHERE table_schema = current_schema()`)
	for _, column := range want {
		if !slices.Contains(got, column) {
			t.Errorf("PostgreSQL lacks %s, want it as in SQLite: add it to internal/postgres/migrations, too", column)
		}
	}
	for _, column := range got {
		if !slices.Contains(want, column) {
			t.Errorf("PostgreSQL has %s, want no column that SQLite lacks", column)
		}
	}
}

// TestMigrationsHaveTheNamesOfSQLites compares the names of the migrations with SQLite's, from the one that made the
// first schema.
func TestMigrationsHaveTheNamesOfSQLites(t *testing.T) {
	const first = "0029"
	names := func(folder string) map[string]bool {
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]bool{}
		for _, entry := range entries {
			if name := entry.Name(); strings.HasSuffix(name, ".sql") && name[:len(first)] > first {
				all[name] = true
			}
		}
		return all
	}
	additional := regexp.MustCompile(`^\d{4}_\d_`) // the parts that PostgreSQL has besides
	want, got := names("../sqlite/migrations"), names("migrations")
	for name := range want {
		if !got[name] {
			t.Errorf("internal/postgres/migrations lacks %s, want a file as in SQLite, even if it changes nothing", name)
		}
	}
	for name := range got {
		if !want[name] && !additional.MatchString(name) {
			t.Errorf("internal/postgres/migrations has %s, want only numbers and names of SQLite's", name)
		}
	}
	if len(want) < 15 {
		t.Errorf("got %d migrations after %s, want at least 15", len(want), first)
	}
}
