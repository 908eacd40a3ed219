package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"time"

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

// oneAtATime returns statements that take the lock of a key for the current schema, until the end of the transaction.
// Programs from before 2026-11-30 lock the key itself, for the whole database: the shared lock keeps them out, and lets
// programs with other schemas go on.
func oneAtATime(key int64) string {
	return fmt.Sprintf("SELECT pg_advisory_xact_lock_shared(%[1]d); "+
		"SELECT pg_advisory_xact_lock(hashtextextended(current_schema(), %[1]d))", key)
}

// upgrading limits the waits of a migration for the locks of others, such as that of an export, which reads for long.
// Reads and Writes wait behind it meanwhile.
type upgrading struct {
	lock     time.Duration // for each lock
	pause    time.Duration // at least, before it tries again; at most three times as long
	patience time.Duration // in all
}

// migrate makes the schema, or brings it up to date.
func (d *DB) migrate(ctx context.Context, o db.Opening) error {
	steps, err := loadMigrations()
	if err != nil {
		return err
	}
	return d.migrateBy(ctx, steps, o)
}

func (d *DB) migrateBy(ctx context.Context, steps []migration, o db.Opening) (err error) {
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
	for began, again := time.Now(), false; ; again = true {
		holders, err := d.tryMigrating(ctx, conn.Conn(), steps, o, again)
		if !errors.Is(err, db.ErrBusy) {
			return err
		}
		if time.Since(began) > d.upgrading.patience {
			return &Error{Op: "migrate", kind: db.ErrBusy, err: fmt.Errorf("for %v other transactions held what the upgrade "+
				"of the schema has to lock, at last %s; nothing was changed; end them, or start again once they have ended",
				d.upgrading.patience, holders)}
		}
		d.log.WarnContext(ctx, "the upgrade of the schema waits for other transactions", "schema", d.schema,
			"transactions", holders)
	}
}

// tryMigrating runs the migrations in one transaction. If it cannot have a lock soon, the error is db.ErrBusy, and
// holders says who has it. It pauses first if it was so before, or if it had to wait for another process that migrates:
// then the others' calls go on.
func (d *DB) tryMigrating(ctx context.Context, conn *pgx.Conn, steps []migration, o db.Opening, again bool) (
	holders string, err error) {
	tx := &Tx{d: d, conn: conn, ctx: ctx, writable: true, begun: true}
	began := time.Now()
	if err := tx.command("BEGIN; SET LOCAL citus.enable_unsafe_triggers = on; SET LOCAL lock_timeout = 0; " +
		oneAtATime(migrating)); err != nil {
		return "", err
	}
	defer tx.rollback()
	latest := steps[len(steps)-1].number
	version, err := schemaVersion(ctx, conn) // another process may have been faster
	switch {
	case err != nil || version == latest:
		return "", err
	case version > latest:
		return "", newer(version, latest)
	case again || time.Since(began) > d.upgrading.lock:
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(d.upgrading.pause + rand.N(2*d.upgrading.pause)):
		}
	}
	limit := fmt.Sprintf("SET LOCAL lock_timeout = %d", d.upgrading.lock.Milliseconds())
	if d.distributed { // the worker gets it, too
		limit = "SET LOCAL citus.propagate_set_commands = 'local'; " + limit
	}
	for _, text := range d.scriptParts(limit) {
		if err := tx.command(text); err != nil {
			return "", err
		}
	}
	watched, err := d.watchHolders(ctx, conn)
	if err != nil {
		return "", err
	}
	err = d.withoutWrites(tx)
	if err == nil {
		err = tx.upgrade(steps, version, o)
	}
	if err == nil {
		err = tx.commit()
	}
	holders = watched()
	if err == nil {
		d.log.InfoContext(ctx, "schema migrated", "schema", d.schema, "from", version, "to", latest)
	}
	return holders, err
}

// holders describes the transactions that hold up a process of the server.
const holders = `SELECT coalesce(string_agg(format('%s (process %s, %s, for %s)',
		coalesce(nullif(a.application_name, ''), 'a program without a name'), b.pid, coalesce(a.state, 'hidden'),
		coalesce(date_trunc('second', clock_timestamp() - a.xact_start)::text, 'a hidden time')), ', '
		ORDER BY a.xact_start, b.pid), '')
	FROM unnest(pg_blocking_pids($1)) b (pid) LEFT JOIN pg_stat_activity a ON a.pid = b.pid`

// watchHolders looks for the transactions that hold up a connection. Its result ends this and returns the last ones.
func (d *DB) watchHolders(ctx context.Context, conn *pgx.Conn) (watched func() string, err error) {
	var waiting int
	if err := conn.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&waiting); err != nil {
		return nil, classify("open", err)
	}
	last := "some that this server does not know"
	end, ended := make(chan struct{}), make(chan struct{})
	look := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.upgrading.lock)
		defer cancel()
		var found string
		if err := d.pool.QueryRow(ctx, holders, waiting).Scan(&found); err == nil && found != "" {
			last = found
		}
	}
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			case <-time.After(d.upgrading.lock / 4):
				look()
			}
		}
	}()
	return func() string {
		close(end)
		<-ended
		return last
	}, nil
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
