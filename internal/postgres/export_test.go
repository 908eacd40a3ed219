package postgres

import (
	"context"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Unanswered exports unanswered for tests.
var Unanswered = unanswered

// SetLockTimeout sets how long a Write waits for a lock.
func (d *DB) SetLockTimeout(to time.Duration) { d.lockTimeout = to }

// SetPatience sets how long a call waits for a connection.
func (d *DB) SetPatience(to time.Duration) { d.patience = to }

// SetPatience sets how long a call waits for a connection.
func (k *Keys) SetPatience(to time.Duration) { k.d.patience = to }

// SetAnswerTime sets how long a COMMIT waits for its answer once its context has ended.
func (d *DB) SetAnswerTime(to time.Duration) { d.answerTime = to }

// Plans returns the number of plans for reading ahead.
func Plans(d *DB) int { return len(d.ahead.all) }

// Cut ends the connections that listen, on any schema, and returns their number.
func Cut(d *DB) (n int) {
	_ = d.pool.QueryRow(context.Background(),
		`SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'`).Scan(&n)
	return n
}

// WithoutWrites begins a migration, up to where no Write is running, and undoes it.
func (d *DB) WithoutWrites(ctx context.Context) error {
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	tx := &Tx{d: d, conn: conn.Conn(), ctx: ctx, writable: true, begun: true}
	if err := tx.command("BEGIN"); err != nil {
		return err
	}
	defer tx.rollback()
	return d.withoutWrites(tx)
}

// Fail makes a statement fail without the transaction's knowledge.
func Fail(tx db.Tx) {
	_, _ = tx.(*Tx).conn.PgConn().Exec(tx.Context(), `SELECT 1 / 0`).ReadAll()
}

// Hold takes a connection without a turn, as the announcer does, until its result is called.
func Hold(ctx context.Context, d *DB) (release func(), err error) {
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return conn.Release, nil
}

// SetUpgrading sets how long a migration waits for a lock, pauses, and tries again.
func (d *DB) SetUpgrading(lock, pause, patience time.Duration) {
	d.upgrading = upgrading{lock, pause, patience}
}

// Migrate runs one more migration.
func (d *DB) Migrate(ctx context.Context, script string) error {
	steps, err := loadMigrations()
	if err != nil {
		return err
	}
	next := migration{number: steps[len(steps)-1].number + 1, name: "next", sql: script}
	return d.migrateBy(ctx, append(steps, next), db.Opening{})
}

// OneAtATime is the lock of a migration.
var OneAtATime = oneAtATime(migrating)
