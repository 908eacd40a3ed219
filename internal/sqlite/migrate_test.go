package sqlite

import (
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	base "github.com/souvenir-ai/souvenir/internal/db"
)

// migrationsAnd is testMigrations and one more.
func migrationsAnd(t *testing.T, name, sql string) fstest.MapFS {
	t.Helper()
	all := maps.Clone(testMigrations)
	all[name] = &fstest.MapFile{Data: []byte(sql)}
	return all
}

func TestMigrationsThatAreNewAreRun(t *testing.T) {
	path := newFile(t)
	c := testConfig(path)
	db := openTest(t, c)
	must(t, db.Write(t.Context(), insert("kept")))
	must(t, db.Close())

	c.Migrations = migrationsAnd(t, "0003_more.sql", "ALTER TABLE item ADD COLUMN more TEXT; UPDATE item SET more = 'new'")
	db = openTest(t, c)
	must(t, db.Read(t.Context(), func(tx base.Tx) error {
		var name, more string
		var version int
		must(t, tx.QueryRow("SELECT name, more FROM item").Scan(&name, &more))
		must(t, tx.QueryRow("PRAGMA user_version").Scan(&version))
		if name != "kept" || more != "new" || version != 3 {
			t.Errorf("name %q, more %q, version %d", name, more, version)
		}
		return nil
	}))
}

func TestFailedMigrationChangesNothing(t *testing.T) {
	path := newFile(t)
	c := testConfig(path)
	must(t, openTest(t, c).Close())
	before := fileBytes(t, path)

	c.Migrations = migrationsAnd(t, "0003_bad.sql", "CREATE TABLE half (id INTEGER PRIMARY KEY); CREATE TABLE item (id)")
	if _, err := Open(t.Context(), c); err == nil || !strings.Contains(err.Error(), "0003_bad.sql") {
		t.Errorf("error is %v, want one that names the migration", err)
	}
	if fileBytes(t, path) != before {
		t.Error("the file was changed")
	}
	openTest(t, testConfig(path)) // still at its old version
}

func TestMigrationsWithWrongNamesOrGapsAreRefused(t *testing.T) {
	for _, names := range [][]string{
		{"0002_first.sql"},
		{"0001_a.sql", "0003_b.sql"},
		{"0001_a.sql", "0001_b.sql"},
		{"1_a.sql"},
		{"0001.sql"},
		{"0001_a.sql", "extra.sql"},
	} {
		fsys := fstest.MapFS{}
		for _, n := range names {
			fsys[n] = &fstest.MapFile{}
		}
		if steps, err := loadMigrations(fsys); err == nil {
			t.Errorf("%q is accepted as %v", names, steps)
		}
	}
	steps, err := loadMigrations(fstest.MapFS{"0001_a.sql": {}, "0002_b.sql": {}, "README.md": {}})
	must(t, err)
	if len(steps) != 2 {
		t.Errorf("%d steps, want 2", len(steps))
	}
}

func TestTheProgramsOwnSchemaCanBeCreated(t *testing.T) {
	for _, path := range []string{newFile(t), ":memory:"} {
		c := testConfig(path)
		c.Migrations = Migrations()
		db := openTest(t, c)
		must(t, db.Read(t.Context(), func(tx base.Tx) error {
			var violations int
			return tx.QueryRow("SELECT count(*) FROM pragma_foreign_key_check").Scan(&violations)
		}))
	}
}

// eachStep hides the schemas of new files, so that every migration runs.
type eachStep struct{ fs.FS }

func (e eachStep) Glob(pattern string) ([]string, error) {
	if strings.HasPrefix(pattern, "schema/") {
		return nil, nil
	}
	return fs.Glob(e.FS, pattern)
}

func TestNewFilesHaveTheSchemaThatAllMigrationsMake(t *testing.T) {
	schema := func(migrations fs.FS) (all []string) {
		c := testConfig(newFile(t))
		c.Migrations = migrations
		must(t, openTest(t, c).Read(t.Context(), func(tx base.Tx) (err error) {
			all, err = base.Column[string](tx, `SELECT type || ' ' || name || ' on ' || tbl_name || ': ' || coalesce(sql, '')
				FROM sqlite_schema UNION ALL SELECT 'version ' || user_version FROM pragma_user_version ORDER BY 1`)
			return err
		}))
		return all
	}
	files, err := fs.Glob(Migrations(), "schema/*.sql")
	must(t, err)
	if len(files) == 0 {
		t.Fatal("there is no schema for new files")
	}
	got, want := schema(Migrations()), schema(eachStep{Migrations()})
	for _, s := range got {
		if !slices.Contains(want, s) {
			t.Errorf("only in a new file: %s", s)
		}
	}
	for _, s := range want {
		if !slices.Contains(got, s) {
			t.Errorf("only after all migrations: %s", s)
		}
	}
}

func TestNewFilesRunOnlyTheMigrationsAfterTheirSchema(t *testing.T) {
	c := testConfig(newFile(t))
	migrations := migrationsAnd(t, "0003_more.sql", "ALTER TABLE item ADD COLUMN more TEXT")
	migrations["schema/0002.sql"] = &fstest.MapFile{Data: []byte("CREATE TABLE item (id INTEGER PRIMARY KEY, short)")}
	migrations["schema/0004.sql"] = &fstest.MapFile{Data: []byte("CREATE TABLE future (id)")}
	c.Migrations = migrations
	must(t, openTest(t, c).Read(t.Context(), func(tx base.Tx) error {
		columns, err := base.Column[string](tx, "SELECT name FROM pragma_table_info('item') ORDER BY cid")
		if got := strings.Join(columns, " "); got != "id short more" {
			t.Errorf("the columns are %q", got)
		}
		return err
	}))
}

// beforeMigration is the migrations up to one number, as an older program had them.
type beforeMigration struct {
	fs.FS
	number string // of the first that is left out, four digits
}

func (b beforeMigration) Glob(pattern string) ([]string, error) {
	all, err := fs.Glob(b.FS, pattern)
	return slices.DeleteFunc(all, func(name string) bool { return strings.TrimPrefix(name, "schema/") >= b.number }), err
}

// An older file may hold several rules of one type for a project. The one that changed last is marked; none is lost.
func TestOneOfSeveralOldRulesIsMarked(t *testing.T) {
	c := testConfig(newFile(t))
	c.Migrations = beforeMigration{Migrations(), "0027"}
	old := openTest(t, c)
	must(t, old.Write(t.Context(), func(tx base.Tx) error {
		for _, statement := range strings.Split(`INSERT INTO users (id, uid, created_at) VALUES (1, 'ann', 0);
			INSERT INTO collection (id, owner_id, name, description, created_at, updated_at)
				VALUES (1, 1, 'a', '', 0, 0), (2, 1, 'b', '', 0, 0);
			INSERT INTO project (id, uid, owner_id, name, name_key, created_at, updated_at)
				VALUES (1, 'p', 1, 'P', 'p', 0, 0), (2, 'q', 1, 'Q', 'q', 0, 0);
			INSERT INTO partition (id, collection_id, project_id) VALUES (1, 1, 1), (2, 2, 1), (3, 1, 2), (4, 1, NULL);
			INSERT INTO memory (uid, partition_id, content, event_type, rule_type, metadata, revision, created_at, updated_at)
			VALUES ('1', 1, 'old', 'project-rule', 'do', '{}', 1, 0, 1), ('2', 2, 'new', 'project-rule', 'do', '{}', 1, 0, 9),
				('3', 1, 'other', 'project-rule', 'dont', '{}', 1, 0, 2), ('4', 3, 'of q', 'project-rule', 'do', '{}', 1, 0, 3),
				('5', 4, 'general', 'project-rule', 'do', '{}', 1, 0, 4), ('6', 1, 'plain', NULL, NULL, '{}', 1, 0, 5)`, ";") {
			if _, err := tx.Exec(statement); err != nil {
				return err
			}
		}
		return nil
	}))
	must(t, old.Close())
	c.Migrations = Migrations()
	must(t, openTest(t, c).Read(t.Context(), func(tx base.Tx) error {
		marked, err := base.Column[string](tx, `SELECT uid || ' of ' || coalesce(rule_of, 'none') FROM memory ORDER BY uid`)
		if got := strings.Join(marked, ", "); got != "1 of none, 2 of 1, 3 of 1, 4 of 2, 5 of none, 6 of none" {
			t.Errorf("the marks are %s", got)
		}
		return err
	}))
}
