package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	base "github.com/souvenir-ai/souvenir/internal/db"
)

// migrationsAnd returns testMigrations and one more.
func migrationsAnd(t *testing.T, name, sql string) fstest.MapFS {
	t.Helper()
	all := maps.Clone(testMigrations)
	all[name] = &fstest.MapFile{Data: []byte(sql)}
	return all
}

func TestNewMigrationsRun(t *testing.T) {
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
			t.Errorf(`name %q, more %q, version %d, want name "kept", more "new" and version 3`, name, more, version)
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
		t.Error("the file was changed, want no change")
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
			t.Errorf("%q is accepted as %v, want an error", names, steps)
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
			must(t, err)
			tables, err := base.Column[string](tx, `SELECT name FROM pragma_table_list WHERE type = 'table'
				AND name NOT LIKE 'sqlite%' ORDER BY name`)
			for _, table := range tables {
				var rows int
				must(t, tx.QueryRow(`SELECT count(*) FROM "`+table+`"`).Scan(&rows))
				all = append(all, fmt.Sprintf("rows of %s: %d", table, rows))
			}
			return err
		}))
		return all
	}
	files, err := fs.Glob(Migrations(), "schema/*.sql")
	must(t, err)
	if len(files) == 0 {
		t.Fatalf("there is no schema for new files: got %v, want some files", len(files))
	}
	got, want := schema(Migrations()), schema(eachStep{Migrations()})
	for _, s := range got {
		if !slices.Contains(want, s) {
			t.Errorf("got %s only in a new file, want it after all migrations, too", s)
		}
	}
	for _, s := range want {
		if !slices.Contains(got, s) {
			t.Errorf("got %s only after all migrations, want it in a new file, too", s)
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
			t.Errorf(`the columns are %q, want "id short more"`, got)
		}
		return err
	}))
}

// beforeMigration holds the migrations up to one number, as an older program had them.
type beforeMigration struct {
	fs.FS
	number string // four digits of the first one left out
}

func (b beforeMigration) Glob(pattern string) ([]string, error) {
	all, err := fs.Glob(b.FS, pattern)
	return slices.DeleteFunc(all, func(name string) bool { return strings.TrimPrefix(name, "schema/") >= b.number }), err
}

// An older file may hold several rules of one type for a project. The last changed one is marked, and none is lost.
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
			t.Errorf(`the marks are %s, want "1 of none, 2 of 1, 3 of 1, 4 of 2, 5 of none, 6 of none"`, got)
		}
		return err
	}))
}

// The unique index that namespaces replace becomes an ordinary one without being rewritten. Afterwards the file must be
// sound, and the rows that refer to users still refer to them.
func TestUsersOfAnOlderFileAreOfTheDefaultNamespace(t *testing.T) {
	c := testConfig(newFile(t))
	c.Migrations = beforeMigration{Migrations(), "0030"}
	old := openTest(t, c)
	must(t, old.Write(t.Context(), func(tx base.Tx) error {
		_, err := tx.Exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
			INSERT INTO users (id, uid, name, name_key, created_at) SELECT i, 'user ' || i, 'N' || i, 'n' || i, 0 FROM n`)
		if err == nil {
			_, err = tx.Exec(`INSERT INTO project (uid, owner_id, name, name_key, created_at, updated_at)
				SELECT 'p', id, 'P', 'p', 0, 0 FROM users`)
		}
		return err
	}))
	must(t, old.Close())
	c.Migrations = Migrations()
	d := openTest(t, c)
	must(t, d.Read(t.Context(), func(tx base.Tx) error {
		sound, err := base.Column[string](tx, `PRAGMA integrity_check`)
		if got := strings.Join(sound, ", "); got != "ok" {
			t.Errorf("integrity_check: got %s, want ok", got)
		}
		dangling, err2 := base.Column[string](tx, `SELECT "table" FROM pragma_foreign_key_check`)
		if len(dangling) > 0 {
			t.Errorf("rows that refer to nothing: got %d, want none", len(dangling))
		}
		moved, err3 := base.Column[int](tx, `SELECT count(*) FROM users WHERE namespace = '' AND uid = 'user ' || id`)
		if err3 == nil && moved[0] != 5000 {
			t.Errorf("users in the default namespace: got %d, want 5000", moved[0])
		}
		indexes, err4 := base.Column[string](tx, `SELECT name FROM sqlite_schema WHERE type = 'index'
			AND tbl_name = 'users' ORDER BY name`)
		if got := strings.Join(indexes, ", "); got != "user_name, users_uid, users_uid_key" {
			t.Errorf("indexes of users: got %s, want user_name, users_uid, users_uid_key", got)
		}
		return errors.Join(err, err2, err3, err4)
	}))
	must(t, d.Write(t.Context(), func(tx base.Tx) error {
		_, err := tx.Exec(`INSERT INTO users (id, namespace, uid, name, name_key, created_at)
			VALUES (9001, 'crm', 'user 1', 'N1', 'n1', 0)`)
		return err
	}))
	for what, statement := range map[string]string{
		"the same id":   `INSERT INTO users (namespace, uid, created_at) VALUES ('crm', 'user 1', 0)`,
		"the same name": `INSERT INTO users (namespace, uid, name_key, created_at) VALUES ('crm', 'x', 'n1', 0)`,
		"a member": `INSERT INTO project_member (project_id, user_id, role, created_at) VALUES (1, 9001,
			'reader', 0)`,
		"a move":                 `UPDATE users SET namespace = 'crm' WHERE id = 2`,
		"no namespace":           `UPDATE users SET namespace = NULL WHERE id = 2`,
		"the same id, as before": `INSERT INTO users (uid, created_at) VALUES ('user 2', 0)`,
		"an invitation": `INSERT INTO project_invitation (uid, project_id, sender_id, invited, recipient_id, role,
			created_at, expires_at) VALUES ('i', 1, 1, 'user 1', 9001, 'reader', 0, 1)`,
	} {
		err := d.Write(t.Context(), func(tx base.Tx) error {
			_, err := tx.Exec(statement)
			return err
		})
		if !errors.Is(err, base.ErrUnique) && !errors.Is(err, base.ErrConstraint) {
			t.Errorf("%s: got %v, want the schema to refuse it", what, err)
		}
	}
}
