package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// The numbers are those of SQLite's migrations, so that one number means the same tables in both. The first one makes
// the schema as it was when this engine began. A number may have several files, which run in order.
//
//go:embed migrations/*.sql
var migrations embed.FS

// migration is a file.
type migration struct {
	number    int
	name, sql string
}

var migrationName = regexp.MustCompile(`^migrations/(\d{4})_(?:\d_)?(\w+)\.sql$`)

func loadMigrations() ([]migration, error) {
	names, err := fs.Glob(migrations, "migrations/*.sql") // sorted
	if err != nil {
		return nil, err
	}
	var all []migration
	for _, name := range names {
		m := migrationName.FindStringSubmatch(name)
		if m == nil {
			return nil, fmt.Errorf("postgres: migration %q is not named NNNN_name.sql", name)
		}
		sql, err := fs.ReadFile(migrations, name)
		if err != nil {
			return nil, err
		}
		number, _ := strconv.Atoi(m[1])
		all = append(all, migration{number: number, name: m[2], sql: string(sql)})
	}
	return all, nil
}

// migrating is the key of the lock under which one process at a time changes the schema.
const migrating = 0x5375766e

// migrate makes the schema, or brings it up to date, in one transaction.
func (d *DB) migrate(ctx context.Context, o db.Opening) (err error) {
	steps, err := loadMigrations()
	if err != nil {
		return err
	}
	latest := steps[len(steps)-1].number
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return classify("open", err)
	}
	defer conn.Release()
	if err := d.checkDatabase(ctx, conn.Conn()); err != nil {
		return err
	}
	version, err := schemaVersion(ctx, conn.Conn())
	if err != nil {
		return err
	}
	defer func() {
		if err == nil {
			d.version = latest
		}
	}()
	switch {
	case version == latest:
		return nil
	case version > latest:
		return newer(version, latest)
	case d.readOnly && version == 0:
		return &Error{Op: "open", kind: fs.ErrNotExist, err: fmt.Errorf("the schema %s has no tables of Souvenir", d.schema)}
	case d.readOnly:
		return &Error{Op: "open", kind: db.ErrOlder,
			err: fmt.Errorf("the schema has version %d, but a read-only store needs %d", version, latest)}
	}
	tx := &Tx{d: d, conn: conn.Conn(), ctx: ctx, writable: true, begun: true}
	if err := tx.command(fmt.Sprintf("BEGIN; SET LOCAL citus.enable_unsafe_triggers = on; "+
		"SELECT pg_advisory_xact_lock(%d)", migrating)); err != nil {
		return err
	}
	defer tx.rollback()
	if version, err = schemaVersion(ctx, conn.Conn()); err != nil { // another process may have been faster
		return err
	}
	if version > latest {
		return newer(version, latest)
	}
	if err := d.withoutWrites(tx); err != nil {
		return err
	}
	if err := tx.upgrade(steps, version, o); err != nil {
		return err
	}
	if err := tx.commit(); err != nil {
		return err
	}
	d.log.InfoContext(ctx, "schema migrated", "schema", d.schema, "from", version, "to", latest)
	return nil
}

// checkDatabase refuses a database that treats texts differently, and reads the names of the server and schema.
func (d *DB) checkDatabase(ctx context.Context, conn *pgx.Conn) error {
	var server, schema, encoding string
	var byBytes bool
	err := conn.QueryRow(ctx, `SELECT current_setting('server_version'), coalesce(current_schema(), ''),
		current_setting('server_encoding'), 'Z' < 'a'`).
		Scan(&server, &schema, &encoding, &byBytes)
	if err != nil {
		return classify("open", err)
	}
	if encoding != "UTF8" || !byBytes { // values in jsonb are compared by the collation of the database
		return &Error{Op: "open", err: fmt.Errorf("the database has the encoding %s, and orders texts by their bytes: %t; "+
			"it must have UTF8 and order by bytes: create it with "+
			"CREATE DATABASE name TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'", encoding, byBytes)}
	}
	d.schema = schema
	d.name = "PostgreSQL " + strings.Fields(server + " ")[0]
	if schema == "" {
		return &Error{Op: "open", err: errors.New("the schema of the address (search_path) does not exist; create it")}
	}
	return nil
}

// checkIsolation refuses a server, or a pooler in front of it, that gives a Write a weaker isolation than it asks for.
func (d *DB) checkIsolation(ctx context.Context) error {
	if d.readOnly {
		return nil
	}
	conn, err := d.connection(ctx, d.reading)
	if err != nil {
		return err
	}
	defer conn.Release()
	results, err := conn.Conn().PgConn().Exec(ctx, "BEGIN ISOLATION LEVEL SERIALIZABLE; "+
		"SELECT current_setting('transaction_isolation'); ROLLBACK").ReadAll()
	if err != nil {
		return classify("open", err)
	}
	if got := string(results[1].Rows[0][0]); got != "serializable" {
		return &Error{Op: "open", err: fmt.Errorf("transactions are to be serializable, and the database, or a pooler in "+
			"front of it, makes them %q; connect to a PostgreSQL server that has serializable ones", got)}
	}
	return nil
}

// upgrade runs the migrations after a version.
func (tx *Tx) upgrade(steps []migration, version int, o db.Opening) error {
	if version == 0 {
		if err := tx.ExecScript(`CREATE TABLE schema_version (version bigint NOT NULL);
			INSERT INTO schema_version (version) VALUES (0)`); err != nil {
			return err
		}
	}
	for _, m := range steps {
		if m.number <= version {
			continue
		}
		if err := tx.ExecScript(m.sql); err != nil {
			return fmt.Errorf("postgres: migration %04d_%s: %w", m.number, m.name, foreign(err))
		}
		if fill := o.Fill[m.name]; fill != nil {
			if err := fill(tx); err != nil {
				return fmt.Errorf("postgres: migration %04d_%s: %w", m.number, m.name, err)
			}
		}
	}
	_, err := tx.Exec(`UPDATE schema_version SET version = ?`, steps[len(steps)-1].number)
	return err
}

// withoutWrites waits until no Write is running, and keeps others from beginning before the schema has its new version,
// which they then see: so no Write of an older program adds rows to newer tables.
func (d *DB) withoutWrites(tx *Tx) error {
	var known bool
	if err := tx.conn.QueryRow(tx.ctx, `SELECT to_regclass('write_turn') IS NOT NULL`).Scan(&known); err != nil || !known {
		return classify("open", err)
	}
	texts := []string{"LOCK TABLE write_turn IN EXCLUSIVE MODE"}
	if d.distributed { // see takeTurn
		texts = []string{"SET LOCAL citus.enable_ddl_propagation = off", texts[0],
			"SET LOCAL citus.enable_ddl_propagation = on"}
	}
	for _, text := range texts {
		if err := tx.command(text); err != nil {
			return err
		}
	}
	return nil
}

// sameVersion is a statement that fails if a newer program has migrated the schema since this one opened it.
func (d *DB) sameVersion() pending {
	return pending{text: fmt.Sprintf("SELECT 1 / (version <= %d)::int FROM schema_version", d.version), version: true}
}

// outdated is the error of a transaction for which that statement failed.
func (tx *Tx) outdated(err error) error {
	var known *Error
	if errors.As(err, &known) && known.Code == codeDivision {
		err = &Error{Op: "begin", kind: db.ErrNewer, err: fmt.Errorf("a newer program has changed the schema, and this one "+
			"supports version %d; nothing was changed; use the newer program", tx.d.version)}
		tx.lost = err
	}
	return err
}

// schemaVersion returns the number of the schema, 0 for none.
func schemaVersion(ctx context.Context, conn *pgx.Conn) (version int, err error) {
	var known bool
	err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = current_schema()
		AND tablename = 'schema_version')`).Scan(&known)
	if err == nil && known {
		err = conn.QueryRow(ctx, `SELECT version FROM schema_version`).Scan(&version)
	}
	return version, classify("open", err)
}

func newer(version, latest int) error {
	return &Error{Op: "open", kind: db.ErrNewer,
		err: fmt.Errorf("the schema has version %d, but this program supports up to %d; use a newer program", version,
			latest)}
}

// foreign says that a schema holds tables of another program.
func foreign(err error) error {
	var e *Error
	if errors.As(err, &e) && e.Code == codeDuplicate {
		e.kind = db.ErrForeign
	}
	return err
}
