// Package sqlite implements package db over SQLite files, and is the only importer of the driver: a pool of reading
// connections, one writing connection whose commits concurrent callers share, migrations, and error classes.
//
// What runs transactions knows nothing about the tables, except that only triggers of a deletion remove rows
// (keepsRows). Full text, the log of changes, the hashes of rows and the user keys are in tables that their files know.
//
// It supports two drivers: modernc.org/sqlite, pure Go, by default, and mattn/go-sqlite3 under the build tags
// "souvenir_cgo sqlite_fts5". Both behave alike; tables should be STRICT, since mattn/go-sqlite3 converts columns
// declared as DATE, DATETIME, TIMESTAMP or BOOLEAN.
package sqlite

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fairqueue"
	"github.com/souvenir-ai/souvenir/internal/rowhash"
	"github.com/souvenir-ai/souvenir/internal/sealing"
	"github.com/souvenir-ai/souvenir/internal/sqlite/sealedvfs"
)

// Config says what to open and how.
type Config struct {
	// Path is a file path, taken literally, or ":memory:" for a database of this DB alone.
	Path string

	// ReadOnly opens an existing file without ever writing to it. A file that cannot be written is always opened
	// this way.
	ReadOnly bool

	// AnyVersion allows a file with an older schema, with ReadOnly: for callers that need not understand it.
	AnyVersion bool

	// Readers is the highest number of reads that run at once; 0 means the larger of 4 and GOMAXPROCS.
	Readers int

	// ApplicationID marks the files of this program (PRAGMA application_id). A new file gets it; Open refuses a
	// file with another one. It must not be 0.
	ApplicationID int32

	// Migrations holds files named NNNN_name.sql, numbered from 0001 without gaps. Open runs the ones that the file
	// has not seen, in one transaction; PRAGMA user_version holds the last.
	Migrations fs.FS

	// BeforeMigrations and AfterMigrations run in the transaction of the migrations, with the version of the file
	// before them (0: a new file). Nil: nothing.
	BeforeMigrations, AfterMigrations func(tx db.Tx, version int) error

	// Hashed returns the tables whose rows have hashes. The connection that writes calls it after the migrations, and
	// gets triggers that maintain the hashes. Nil: none.
	Hashed func(tx db.Tx) ([]rowhash.Kept, error)

	// Fill completes migrations with what SQL cannot compute. The keys are their names without the number:
	// "project_names" for 0014_project_names.sql. Each runs after its migration, in the same transaction, if that
	// is new to the file.
	Fill map[string]func(db.Tx) error

	// MasterKey encrypts the file, its log and the copies that [DB.Backup] and [DB.Copy] make. An existing file has
	// to be encrypted with it. The zero value means files that are not encrypted.
	MasterKey sealing.MasterKey

	// Reserve is the size of a file beside the database that holds disk space in reserve, for writes of a
	// [Freeing] context on a full disk; 0 means none.
	Reserve int64

	// LockTimeout is how long a write waits for another process's lock when its context
	// ends no earlier; 0 means 30 seconds.
	LockTimeout time.Duration

	// Logger receives errors that no caller sees, such as a failed checkpoint; nil is silent.
	Logger *slog.Logger
}

// DB is an open database, safe for concurrent use.
type DB struct {
	path        string // absolute, or ":memory:"
	log         *slog.Logger
	lockTimeout time.Duration
	logPath     string          // of the write-ahead log
	keys        *sealedvfs.Keys // nil: the file is not encrypted
	keyMissing  error           // the file is encrypted, though
	readMode    string          // how reading connections open the file
	sidesBefore map[string]bool // which side files existed before a read-only opening
	readers     *readers
	writer      *writer                                // nil: read-only
	known       int                                    // the schema version that this program knows
	memory      bool                                   // one connection for everything, the writer's
	hashed      func(tx db.Tx) ([]rowhash.Kept, error) // Config.Hashed

	reserve int64       // bytes in reserve beside the file
	full    atomic.Bool // the last write found no room

	room      sync.Mutex // guards the result of Room
	roomError error
	roomAsked time.Time
	roomEvery time.Duration // how long that result holds
	fileMade  time.Time     // when a file was last made beside the database, to check that the disk accepts one

	pages  atomic.Int64 // bytes that its connections hold, as far as they were counted
	caches atomic.Int64 // those connections

	closing chan struct{} // closed when Close begins

	mu     sync.Mutex
	active int           // calls and background work that use connections
	closed bool          // no further ones may begin
	idle   chan struct{} // closed when closed and active is 0
	gone   chan struct{} // closed when everything is closed
}

// Open opens or creates the database that c describes, and migrates its schema. A refused file gives a [FileError]
// and stays unchanged, byte for byte.
func Open(ctx context.Context, c Config) (*DB, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.ApplicationID == 0 {
		return nil, fmt.Errorf("sqlite: open: ApplicationID is 0, which is every file's; choose another number")
	}
	if c.Readers <= 0 {
		c.Readers = max(4, runtime.GOMAXPROCS(0))
	}
	if c.LockTimeout <= 0 {
		c.LockTimeout = 30 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	steps, err := loadMigrations(c.Migrations)
	if err != nil {
		return nil, err
	}
	d := &DB{
		path: c.Path, log: c.Logger, lockTimeout: c.LockTimeout,
		readers: newReaders(c.Readers), hashed: c.Hashed, reserve: c.Reserve, roomEvery: 5 * time.Second,
		closing: make(chan struct{}), idle: make(chan struct{}), gone: make(chan struct{}),
	}
	if err := d.useKey(c.MasterKey); err != nil {
		return nil, err
	}
	if err := d.open(ctx, c, steps); err != nil {
		d.forgetKey()
		return nil, err
	}
	if err := d.takeReserve(); err != nil {
		d.log.Warn("no disk space can be reserved for deleting on a full disk", "path", d.path, "error", err)
	}
	return d, nil
}

// Path returns the absolute path of the file, or ":memory:".
func (d *DB) Path() string { return d.path }

// ReadOnly reports whether every Write returns ErrReadOnly.
func (d *DB) ReadOnly() bool { return d.writer == nil }

// inside is the key of a mark in the contexts of a database's transactions.
type inside struct{ d *DB }

// enter returns the context of a transaction. One of the same database is ErrNested: it would wait for itself.
func (d *DB) enter(ctx context.Context) (context.Context, error) {
	if ctx.Value(inside{d}) != nil {
		return nil, db.ErrNested
	}
	return context.WithValue(ctx, inside{d}, true), nil
}

// Read runs fn in a read transaction: all its statements see one snapshot, taken by the first of them. It never waits
// for writers. When ctx ends, a running statement is interrupted and Read returns ctx's error. fn must not call Write,
// Close, or Read, which would need one more connection. Read waits for a connection for at most Config.LockTimeout;
// then the error is ErrBusy.
func (d *DB) Read(ctx context.Context, fn func(db.Tx) error) error {
	ctx, err := d.enter(ctx)
	if err != nil {
		return err
	}
	if err := d.begin(ctx); err != nil {
		return err
	}
	defer d.end()
	if d.memory {
		return d.readMemory(ctx, fn)
	}
	c, err := d.reader(ctx)
	if err != nil {
		return err
	}
	clean := false
	defer func() {
		if clean {
			d.balance(c)
		} else {
			d.uncount(c)
		}
		d.readers.put(c, clean)
	}()
	clean, err = c.snapshot(ctx, d.patience(), fn)
	return err
}

// Write runs fn in a write transaction and returns nil only after its work is committed and on disk. Concurrent calls
// share transactions and commits, but an error or panic of one fn undoes only its own work.
//
// fn runs in the calling goroutine, one fn at a time; the others wait, so it should be short. It must be safe to run
// again: if the shared commit fails because of another member's work, each member's work is repeated in a transaction
// of its own. It must not begin or end transactions itself (savepoints are fine), nor call Read, Write or Close on the
// same DB: with the context of tx that is ErrNested, with another one, ErrBusy after a limited time.
//
// A call whose ctx ends while it waits, for its turn or for another process's lock, returns ctx's error at once and
// does not run fn. A running statement is never interrupted, since that would undo the others' work too: ctx is checked
// between statements.
//
// Without a deadline, Write waits for another process's lock, or for a transaction of this one that spans several
// calls, for at most Config.LockTimeout; then the error is ErrBusy.
func (d *DB) Write(ctx context.Context, fn func(db.Tx) error) error {
	ctx, err := d.enter(ctx)
	if err != nil {
		return err
	}
	if err := d.begin(ctx); err != nil {
		return err
	}
	defer d.end()
	if d.writer == nil {
		return readOnlyError(d.path)
	}
	defer fairqueue.Pause(ctx)() // waiting for the disk needs no processor
	return d.writeOnFullDisk(ctx, fn)
}

func readOnlyError(path string) error {
	return fmt.Errorf("sqlite: write: %s: %w", path, db.ErrReadOnly)
}

// begin counts a call that uses connections.
func (d *DB) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fmt.Errorf("sqlite: %s: %w", d.path, db.ErrClosed)
	}
	d.active++
	return nil
}

func (d *DB) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.active--
	if d.closed && d.active == 0 {
		close(d.idle)
	}
}

// Close waits for running calls, including queued writes, and closes the file; calls that wait for another
// process's lock get ErrClosed. Later calls return ErrClosed; closing again is no error. The -wal and -shm files
// vanish with the last process that closes.
func (d *DB) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		<-d.gone
		return nil
	}
	d.closed = true
	if d.active == 0 {
		close(d.idle)
	}
	d.mu.Unlock()
	close(d.closing)
	<-d.idle
	defer close(d.gone)
	defer d.forgetKey()

	d.readers.close()
	if d.writer == nil {
		d.leaveNoTrace()
		return nil
	}
	if !d.memory {
		d.writer.lastCheckpoint()
	}
	if err := d.writer.conn.close(); err != nil {
		return classify("close "+d.path, err)
	}
	return nil
}
