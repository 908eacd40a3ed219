// Package postgres stores everything in a PostgreSQL database, in the schema (search_path) that its address names. It
// implements package db over pgx.
//
// A Write is SERIALIZABLE and runs again when PostgreSQL undoes it (40001, 40P01). After a few times it runs alone:
// every Write locks the table write_turn, in a mode that admits others, or in an exclusive one to run alone.
//
// On Citus a schema lies on one worker. Backups are PostgreSQL's own.
package postgres

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/readahead"
)

// DB is an open database.
type DB struct {
	pool       *pgxpool.Pool
	statements *statements
	reading    chan struct{} // holds an element for each Read that has a connection, or will get one
	writing    chan struct{} // the same for Writes
	hurried    chan struct{} // the same for those of db.Hurried
	readOnly   bool
	sessions   bool  // connections are sessions of the server, and not of a pooler of transactions
	ofKeys     bool  // it has user keys, and not a store; see keys.go
	walled     bool  // policies hold for the role of the connections; see wall.go
	near       *near // nil: there is no index of vectors; see near.go
	// distributed says that Citus keeps the schema on a worker; see citus.go.
	distributed bool
	version     int // of the schema that this program knows; 0: not looked at yet
	// lockTimeout is how long a Write waits for a lock that another one holds, such as a long transaction; then it is
	// ErrBusy. A Read, which waits only for a change of the schema, waits as long, unless the address says otherwise.
	lockTimeout time.Duration
	patience    time.Duration // how long a call waits for a connection, and a Write runs again
	answerTime  time.Duration // how long a COMMIT waits for its answer once its context has ended
	upgrading   upgrading
	log         *slog.Logger
	name        string
	schema      string
	announcer   *announcer
	ahead       ahead

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
}

// maxStatements bounds the texts of statements that are kept.
const maxStatements = 5000

// Open connects to a database and brings its schema up to date.
func Open(ctx context.Context, url string, o db.Opening) (*DB, error) {
	d, err := connect(ctx, url, o)
	if err != nil {
		return nil, err
	}
	err = d.lookForCitus(ctx)
	if err == nil {
		err = d.migrate(ctx, o)
	}
	if err == nil {
		err = d.checkIsolation(ctx)
	}
	if err == nil {
		err = d.lookForWall(ctx)
	}
	if err == nil {
		err = d.lookForNear(ctx)
	}
	if err != nil {
		d.pool.Close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	return d, nil
}

// connect makes the connections to a database, at the first use of each.
func connect(ctx context.Context, url string, o db.Opening) (*DB, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, &Error{Op: "address", err: errors.New("the address of the database is not valid; " +
			"expected an address such as postgres://user:password@host:5432/name")} // the driver's error may quote a password
	}
	readers := o.Readers
	if readers <= 0 {
		readers = max(4, runtime.GOMAXPROCS(0))
	}
	config.MaxConns = max(config.MaxConns, int32(readers)+writers+others)
	config.ConnConfig.RuntimeParams["jit"] = "off" // it takes longer than most statements
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "souvenir"
	}
	// The other modes are for poolers of transactions. There, a request to cancel may reach another client's statement,
	// and has ended PgBouncer 1.18: so a statement ends with its connection.
	sessions := config.ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement
	if sessions {
		// Planning takes longer than running most statements. A pooler would have to know this parameter.
		config.ConnConfig.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
		// The driver prepares a statement before its transaction begins, and that may wait for a lock, too.
		if config.ConnConfig.RuntimeParams["lock_timeout"] == "" {
			config.ConnConfig.RuntimeParams["lock_timeout"] = strconv.FormatInt(lockTimeout.Milliseconds(), 10)
		}
		config.ConnConfig.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
			return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: 2 * time.Second}
		}
	}
	config.ConnConfig.OnNotification = ignored
	config.ConnConfig.OnNotice = noticed
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, classify("open", err)
	}
	d := &DB{pool: pool, statements: newStatements(maxStatements), writing: make(chan struct{}, writers),
		reading: make(chan struct{}, config.MaxConns-writers-others), hurried: make(chan struct{}, 1), readOnly: o.ReadOnly,
		sessions:    sessions,
		lockTimeout: lockTimeout, patience: patience, answerTime: answerTime, log: o.Logger,
		upgrading: upgrading{lock: 2 * time.Second, pause: time.Second, patience: 10 * time.Minute},
		ahead:     ahead{all: map[string]*list.Element{}}}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	d.announcer = newAnnouncer(d)
	return d, nil
}

const (
	writers = 8 // connections that Writes may have, besides those for reading
	others  = 2 // one for a Write of db.Hurried, and one for the announcer
)

// ReadOnly reports whether every Write returns db.ErrReadOnly.
func (d *DB) ReadOnly() bool { return d.readOnly }

// Ungrouped reports that each Write has a transaction of its own.
func (d *DB) Ungrouped() bool { return true }

// Close waits for running calls and closes all connections.
func (d *DB) Close() error {
	d.mu.Lock()
	again := d.closed
	d.closed = true
	d.mu.Unlock()
	if !again {
		d.running.Wait()
		d.announcer.stop()
		d.pool.Close()
	}
	return nil
}

// begin counts a call as running.
func (d *DB) begin() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return db.ErrClosed
	}
	d.running.Add(1)
	return nil
}

// inside marks the contexts of transactions.
type inside struct{ d *DB }

// Read runs fn on one snapshot.
func (d *DB) Read(ctx context.Context, fn func(db.Tx) error) (err error) {
	if ctx.Value(inside{d}) != nil {
		return db.ErrNested
	}
	if err := d.begin(); err != nil {
		return err
	}
	defer d.running.Done()
	conn, err := d.connection(ctx, d.reading)
	if err != nil {
		return err
	}
	tx := &Tx{d: d, conn: conn.Conn(), ctx: context.WithValue(ctx, inside{d}, true), seen: newSeen(),
		pending: d.beginning("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", d.lockWaits()...)}
	defer d.leave(tx, conn)
	tx.expect(readahead.NextKey(ctx))
	err = fn(tx)
	tx.learn()
	if ctx.Err() != nil {
		return ctx.Err() // even if fn returned none
	}
	return err
}

// leave ends a transaction that read, and gives its connection back. The caller does not wait for the server's answer,
// except with user keys: a later VACUUM does not remove keys that a transaction may still see.
func (d *DB) leave(tx *Tx, conn connection) {
	tx.over = true
	end := func() {
		tx.end()
		conn.Release()
	}
	if d.ofKeys {
		end()
		return
	}
	d.running.Go(end)
}

func (d *DB) unavailable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return classify("connect", err)
}

// noneFree is the error of a call that has waited in vain for a connection, as nested calls do when the calls around
// them hold all connections.
var noneFree = &Error{Op: "connect", kind: db.ErrBusy, err: errors.New("all connections were in use for too long")}

// connection is one of the pool, with its turn among Reads, or among Writes.
type connection struct {
	*pooled
	turns chan struct{}
}

type pooled = pgxpool.Conn

// Release gives both back.
func (c connection) Release() {
	c.pooled.Release()
	<-c.turns
}

// connection returns a connection of the pool, once one is free. Reads and Writes have turns of their own, so that
// neither takes the connections of the other.
func (d *DB) connection(ctx context.Context, turns chan struct{}) (connection, error) {
	waiting, cancel := context.WithTimeoutCause(ctx, d.patience, noneFree)
	defer cancel()
	var conn *pgxpool.Conn
	var err error
	select {
	case turns <- struct{}{}:
		if conn, err = d.pool.Acquire(waiting); err == nil {
			return connection{conn, turns}, nil
		}
		<-turns
	case <-waiting.Done():
		err = waiting.Err()
	}
	if ctx.Err() == nil && errors.Is(context.Cause(waiting), noneFree) {
		return connection{}, noneFree
	}
	return connection{}, d.unavailable(ctx, err)
}

// Write runs fn in a serializable transaction, and again if PostgreSQL undoes it in favour of another.
func (d *DB) Write(ctx context.Context, fn func(db.Tx) error) error {
	switch {
	case ctx.Value(inside{d}) != nil:
		return db.ErrNested
	case d.readOnly:
		return db.ErrReadOnly
	}
	if err := d.begin(); err != nil {
		return err
	}
	defer d.running.Done()
	began := time.Now()
	for attempt := 0; ; attempt++ {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		err, rerun := d.try(ctx, attempt >= alone, fn)
		pause := rand.N(time.Millisecond << min(attempt, 6))
		switch {
		case !rerun || again(err):
		case errors.Is(err, db.ErrBusy): // the Writes that wait for its end come first, and then it tries again beside them
			attempt, pause = 0, turnTime
		default:
			attempt = alone - 1 // it may have met a transaction that its snapshot does not show: look again, alone
		}
		if !rerun {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Since(began) > d.patience {
			return outOfTime(err)
		}
		d.log.DebugContext(ctx, "a transaction runs again", "attempt", attempt+1, "reason", err)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// outOfTime is the error of a Write that would have to run again. A violation of a constraint may be due to a row that
// its snapshot did not show, so it is none.
func outOfTime(err error) error {
	if again(err) || errors.Is(err, db.ErrBusy) {
		return err
	}
	return fmt.Errorf("%w: other transactions changed the same rows, at last: %s", db.ErrBusy, err.Error())
}

// try runs fn once. With rerun, the error does not count.
func (d *DB) try(ctx context.Context, exclusive bool, fn func(db.Tx) error) (err error, rerun bool) {
	turns, wait := d.writing, d.lockTimeout
	if locks, is := db.IsHurried(ctx); is {
		turns, wait = d.hurried, min(wait, locks)
	}
	conn, err := d.connection(ctx, turns)
	if err != nil {
		return err, false
	}
	defer conn.Release()
	tx := &Tx{d: d, conn: conn.Conn(), ctx: context.WithValue(ctx, inside{d}, true), writable: true, alone: exclusive,
		pending: d.beginning("BEGIN ISOLATION LEVEL SERIALIZABLE", d.takeTurn(exclusive, wait)...)}
	defer tx.rollback() // also in a panic
	err = fn(tx)
	switch {
	case tx.rerun != nil:
		return tx.rerun, true
	case ctx.Err() != nil:
		return ctx.Err(), false
	case err != nil:
		return err, tx.violated && !exclusive
	case tx.lost != nil:
		return tx.lost, false
	}
	if err := tx.commit(); err != nil {
		return err, tx.rerun != nil || tx.violated && !exclusive && !errors.Is(err, db.ErrOutcomeUnknown)
	}
	if tx.changed {
		d.announcer.committed()
	}
	return nil, false
}
