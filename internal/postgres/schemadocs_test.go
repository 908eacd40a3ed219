package postgres

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
)

// ownTables are the tables that only PostgreSQL has: its full text, and its log of changes.
var ownTables = []string{"passage_text", "passage_term", "change", "change_floor", "word_partition", "write_turn"}

var (
	ofMany     = []string{"id", "uid", "created_at", "updated_at", "position"} // columns that are explained once
	purpose    = regexp.MustCompile("(?m)^- `(\\w+)`: \\S")
	quoted     = regexp.MustCompile("`(\\w+)`")
	ownTrigger = regexp.MustCompile(`CREATE TRIGGER (\w+)`)
)

// TestDocsDescribeTheSchema checks that docs/schema.md explains each table, column, trigger and unique index, and names
// only existing ones.
func TestDocsDescribeTheSchema(t *testing.T) {
	page, err := os.ReadFile("../../docs/schema.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for section := range strings.SplitSeq(string(page), "\n## ") {
		title, text, _ := strings.Cut(section, "\n")
		sections[title] = text
	}
	columns, triggers, indexes := schemaOf(t)
	for table, has := range columns {
		text, ok := sections[table]
		if !ok {
			t.Errorf("docs/schema.md has no section about the table %s; want one", table)
			continue
		}
		var described []string
		for _, m := range purpose.FindAllStringSubmatch(text, -1) {
			described = append(described, m[1])
		}
		for _, column := range has {
			if !slices.Contains(described, column) && !slices.Contains(ofMany, column) {
				t.Errorf("docs/schema.md does not say what %s.%s is for; want a line about it", table, column)
			}
		}
		for _, column := range described {
			if !slices.Contains(has, column) {
				t.Errorf("docs/schema.md describes %s.%s, which does not exist; want no line about it", table, column)
			}
		}
	}
	steps, err := loadMigrations()
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range steps {
		for _, m := range ownTrigger.FindAllStringSubmatch(step.sql, -1) {
			triggers = append(triggers, m[1])
		}
	}
	for title, want := range map[string][]string{"Triggers": triggers, "Unique indexes": indexes,
		"Full text, and other tables of an engine": append(slices.Clone(ownTables[:2]), ownTables[3:]...)} {
		for _, name := range want {
			if !strings.Contains(sections[title], "`"+name+"`") {
				t.Errorf("docs/schema.md, %s: got nothing about %s, want a line", title, name)
			}
		}
	}
	for _, title := range []string{"Triggers", "Unique indexes"} {
		for _, m := range quoted.FindAllStringSubmatch(sections[title], -1) {
			known := slices.Contains(triggers, m[1]) || slices.Contains(indexes, m[1])
			if !known && columns[m[1]] == nil && !slices.Contains(ownTables, m[1]) {
				t.Errorf("docs/schema.md, %s: got %s, which does not exist; want it gone", title, m[1])
			}
		}
	}
	for title := range sections {
		if regexp.MustCompile(`^[a-z_]+$`).MatchString(title) && columns[title] == nil {
			t.Errorf("docs/schema.md has a section about the table %s, which does not exist; want it gone", title)
		}
	}
}

// schemaOf returns the schema made by SQLite's migrations: the columns of each table, and the names of triggers and of
// unique indexes.
func schemaOf(t *testing.T) (columns map[string][]string, triggers, indexes []string) {
	t.Helper()
	d, err := sqlite.Open(t.Context(), sqlite.Config{Path: ":memory:", ApplicationID: 1, Migrations: sqlite.Migrations()})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	columns = map[string][]string{}
	err = d.Read(t.Context(), func(tx db.Tx) (err error) {
		triggers, err = db.Column[string](tx, `SELECT name FROM sqlite_schema WHERE type = 'trigger'`)
		if err != nil {
			return err
		}
		indexes, err = db.Column[string](tx, `SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE UNIQUE INDEX%'`)
		if err != nil {
			return err
		}
		return tx.Each(func(row db.Rows) error {
			var table, column string
			err := row.Scan(&table, &column)
			columns[table] = append(columns[table], column)
			return err
		}, `SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c
			WHERE t.type = 'table' AND t.name NOT LIKE 'passage_text%' AND t.name <> 'sqlite_sequence'`)
	})
	if err != nil {
		t.Fatal(err)
	}
	return columns, triggers, indexes
}
