package sqlite

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"log/slog"
	"regexp"
	"strconv"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
)

//go:embed migrations/*.sql migrations/schema/*.sql
var migrations embed.FS

// Migrations returns the schema of the program, for Config.Migrations.
func Migrations() fs.FS {
	sub, err := fs.Sub(migrations, "migrations")
	if err != nil {
		panic(err) // the name above is not a valid path: impossible
	}
	return sub
}

// migration brings the schema from version number-1 to number.
type migration struct {
	number int
	name   string
	sql    string
}

var migrationName = regexp.MustCompile(`^(\d{4})_\w+\.sql$`)

// loadMigrations reads NNNN_name.sql files. It ignores other files, but a .sql file with a wrong name or number is an
// error: it would be skipped silently.
func loadMigrations(fsys fs.FS) ([]migration, error) {
	if fsys == nil {
		return nil, nil
	}
	names, err := fs.Glob(fsys, "*.sql") // sorted
	if err != nil {
		return nil, fmt.Errorf("sqlite: migrations: %w", err)
	}
	var steps []migration
	for i, name := range names {
		m := migrationName.FindStringSubmatch(name)
		if m == nil {
			return nil, fmt.Errorf("sqlite: migration %q is not named NNNN_name.sql", name)
		}
		if n, _ := strconv.Atoi(m[1]); n != i+1 {
			return nil, fmt.Errorf("sqlite: migration %q should have number %04d: numbers start at 0001 and leave no gap", name,
				i+1)
		}
		sql, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("sqlite: migration %q: %w", name, err)
		}
		steps = append(steps, migration{number: i + 1, name: name, sql: string(sql)})
	}
	return steps, nil
}

// schemaName matches the name of the file with the schema that the migrations up to a number produce.
var schemaName = regexp.MustCompile(`^schema/(\d{4})\.sql$`)

// startNewFile creates the schema of a new file in one step, as far as a generated schema exists, and returns the
// number of the last migration that it includes. Running each migration takes several times as long.
func startNewFile(c *conn, fsys fs.FS, steps int) (version int, err error) {
	names, err := fs.Glob(fsys, "schema/*.sql") // sorted
	if err != nil {
		return 0, fmt.Errorf("sqlite: migrations: %w", err)
	}
	var best string
	for _, name := range names {
		m := schemaName.FindStringSubmatch(name)
		if m == nil {
			continue
		}
		if n, _ := strconv.Atoi(m[1]); n <= steps {
			best, version = name, n
		}
	}
	if best == "" {
		return 0, nil
	}
	sql, err := fs.ReadFile(fsys, best)
	if err != nil {
		return 0, fmt.Errorf("sqlite: schema %q: %w", best, err)
	}
	return version, c.script(string(sql))
}

// fill completes a migration.
func (m migration) fill(tx *Tx, fills map[string]func(db.Tx) error) error {
	_, name, _ := strings.Cut(strings.TrimSuffix(m.name, ".sql"), "_")
	if fill := fills[name]; fill != nil {
		return fill(tx)
	}
	return nil
}

// migrate updates the schema: all steps in one transaction, so a file is never half-migrated. It reads the version
// again under the lock: another process may have been faster.
func (d *DB) migrate(ctx context.Context, c *conn, config Config, steps []migration) (err error) {
	d.known = len(steps)
	version, err := d.version(ctx, c)
	if err != nil || version == len(steps) {
		return err
	}
	if version > len(steps) {
		return d.newer(version, len(steps))
	}
	if err := d.locked(ctx, c, "BEGIN IMMEDIATE"); err != nil {
		return classify("migrate "+d.path, err)
	}
	defer func() {
		if err != nil {
			_, _ = c.exec("ROLLBACK", nil)
		}
	}()
	if err := c.one("PRAGMA user_version", &version); err != nil {
		return classify("migrate "+d.path, err)
	}
	if version > len(steps) {
		return d.newer(version, len(steps))
	}
	tx := &Tx{conn: c, ctx: ctx, writable: true}
	defer tx.end()
	if config.BeforeMigrations != nil && version < len(steps) {
		if err := config.BeforeMigrations(tx, version); err != nil {
			return err
		}
	}
	done := version
	if version == 0 && config.Migrations != nil {
		if done, err = startNewFile(c, config.Migrations, len(steps)); err != nil {
			return classify("migrate "+d.path, err)
		}
	}
	if version > 0 {
		d.log.Info("upgrading the file; this takes a while for large files", "path", d.path, "from", version, "to",
			len(steps))
	}
	for _, m := range steps[done:] {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.script(m.sql); err != nil {
			return classify(fmt.Sprintf("migrate %s: %s", d.path, m.name), err)
		}
		if err := m.fill(tx, config.Fill); err != nil {
			return fmt.Errorf("migrate %s: %s: %w", d.path, m.name, err)
		}
		level := slog.LevelInfo
		if version == 0 {
			level = slog.LevelDebug // for a new file, the steps are of no interest
		}
		d.log.Log(ctx, level, "schema migrated", "path", d.path, "migration", m.name)
	}
	if config.AfterMigrations != nil && version < len(steps) {
		if err := config.AfterMigrations(tx, version); err != nil {
			return err
		}
	}
	if err := c.script(fmt.Sprintf("PRAGMA user_version = %d", len(steps))); err != nil {
		return classify("migrate "+d.path, err)
	}
	if _, err = c.exec("COMMIT", nil); err != nil {
		return classify("migrate "+d.path, err)
	}
	if version == 0 && !d.memory {
		d.log.Info("created a new file", "path", d.path)
	}
	return nil
}

// prepare makes the triggers of the hashes on the connection that writes.
func (d *DB) prepare(ctx context.Context, c *conn) error {
	if d.hashed == nil {
		return nil
	}
	// It reads the file's schema, and creates nothing in a file: a transaction for reading is enough.
	err := d.patience().retry(ctx, func() error {
		if _, err := c.exec("BEGIN", nil); err != nil {
			return err
		}
		tx := &Tx{conn: c, ctx: ctx, writable: true}
		hashed, err := d.hashed(tx)
		tx.end()
		if err == nil && len(hashed) > 0 {
			var triggers []trigger
			for _, t := range hashed {
				triggers = append(triggers, hashTriggers(t)...)
			}
			err = c.script(temporary(triggers))
		}
		if err == nil {
			_, err = c.exec("COMMIT", nil)
		}
		if err != nil {
			_, _ = c.exec("ROLLBACK", nil)
		}
		return err
	})
	return classify("open "+d.path, err)
}

// version returns the number of the file's last migration.
func (d *DB) version(ctx context.Context, c *conn) (version int, err error) {
	err = d.patience().retry(ctx, func() error { return c.one("PRAGMA user_version", &version) })
	return version, classify("open "+d.path, err)
}

func (d *DB) newer(version, known int) error {
	return &FileError{Path: d.path, kind: db.ErrNewer,
		Found: fmt.Sprintf("the file has schema version %d, but this program supports up to %d; use a newer program", version,
			known)}
}
