package souvenir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/souvenir-ai/souvenir/internal/activitylog"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/embedding"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/naming"
	"github.com/souvenir-ai/souvenir/internal/passwords"
	"github.com/souvenir-ai/souvenir/internal/retrieval"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Store is a memory in one SQLite file. It is safe for concurrent use, and several processes may have the same file
// open. Make one with [Open]; [Store.As] makes further views of it for other users.
//
// The Store that Open returns is the operator's: besides the local user's memories it has the methods for the whole
// store (users, OAuth state, backup, export, checks). Views that As makes belong to a user, and these methods return
// ErrForbidden there.
type Store struct {
	*shared
	access   Access
	operator bool  // it is what Open returned
	sealed   bool  // see Sealed
	denied   error // why every call is refused; nil: they are not
}

// shared is the state common to all views of a store.
type shared struct {
	db       *db.Spanning
	embedder Embedder
	profile  int64 // row of the embedder's profile; 0 if a read-only file does not have it
	index    *retrieval.Cache
	vectors  *embedding.Vectors
	worker   *embedding.Worker
	erased   atomic.Bool // something was erased, and its traces must be removed now
	scrubbed time.Time   // when the worker last removed traces
	activity *activitylog.Log[waitingActivity]
	users    sync.Map // user id -> row; a deleted user's row stays
	uses     sync.Map // id of an MCP token or a session -> when this handle last noted its use
	hashing  passwords.Hasher
	oauth    oauthState
	log      *slog.Logger
	clock    func() time.Time
	newID    func() string
	maxFile  int64   // bytes
	quota    int64   // bytes of all files of an owner; 0: none
	options  Options // with defaults
	closing  sync.Once
	closed   error
}

// applicationID marks a Souvenir file in the header of SQLite's file format: "Suvn".
const applicationID = 0x5375766e

// Open opens the store in a file, and creates the file if it does not exist; its folder must exist. ":memory:" makes a
// store that lives until Close and is private to it. Nil options mean the defaults.
//
// A file that is not a Souvenir store is ErrForeign, one of a newer version ErrNewer, a damaged one ErrCorrupt; none of
// them is touched. A file that may only be read is opened read-only.
func Open(ctx context.Context, path string, options *Options) (*Store, error) {
	o, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	engine, err := openFile(ctx, path, o)
	if err != nil {
		return nil, err
	}
	return newStore(ctx, engine, o)
}

// openFile opens the engine of a store in a file.
func openFile(ctx context.Context, path string, o Options) (db.DB, error) {
	switch {
	case path == "":
		return nil, invalid("path", `path is empty; give the path of a file, or ":memory:"`)
	case path == ":memory:" && o.ReadOnly:
		return nil, invalid("ReadOnly",
			"ReadOnly is set with the path :memory:, a new store that has nothing to read; leave it out")
	}
	if err := checkPath("path", path); err != nil {
		return nil, err
	}
	config := fileConfig(path, o.Now)
	config.ReadOnly, config.Readers, config.Logger, config.Reserve = o.ReadOnly, o.Readers, o.Logger, o.Reserve
	file, err := sqlite.Open(ctx, config)
	if err != nil {
		return nil, openError("path", path, err)
	}
	return file, nil
}

// newStore returns the store in an engine, which has the schema, and which it closes.
func newStore(ctx context.Context, engine db.DB, o Options) (*Store, error) {
	s := &Store{
		shared: &shared{
			db: &db.Spanning{DB: engine}, embedder: o.Embedder, log: o.Logger, clock: o.Now, newID: o.NewID,
			index: retrieval.NewCache(o.IndexMemory, o.Logger), maxFile: o.MaxFile, quota: o.FileQuota,
			hashing: make(passwords.Hasher, runtime.GOMAXPROCS(0)), options: o,
		},
		access: Access{User: LocalUser}, operator: true,
	}
	s.index.DB = s.db
	s.activity = activitylog.New(s.writeActivities, o.Logger)
	if err := s.startEmbedding(ctx); err != nil {
		_ = engine.Close() // the first error is the one that counts
		return nil, wrap(err)
	}
	if err := s.indexMetadata(ctx); err != nil {
		s.worker.Stop()
		_ = engine.Close()
		return nil, wrap(err)
	}
	s.index.Profile = s.profile
	s.activity.Start()
	return s, nil
}

// indexMetadata makes the index of own metadata again if the options ask for another length.
func (s *Store) indexMetadata(ctx context.Context) error {
	if s.options.IndexedMetadata == 0 || s.db.ReadOnly() {
		return nil
	}
	bytes := max(int64(s.options.IndexedMetadata), 0)
	same := false
	err := s.db.Read(ctx, func(tx db.Tx) (err error) {
		same, err = kernel.IndexesMetadata(tx, bytes)
		return err
	})
	if err != nil || same {
		return err
	}
	return s.db.Write(ctx, func(tx db.Tx) error { return kernel.IndexMetadata(tx, bytes) })
}

// fileConfig returns the configuration for opening the file of a store, including the upkeep of its hashes.
func fileConfig(path string, now func() time.Time) sqlite.Config {
	return sqlite.Config{
		Path:             path,
		ApplicationID:    applicationID,
		Migrations:       sqlite.Migrations(),
		Fill:             map[string]func(db.Tx) error{"project_names": naming.Fill, "turns": kernel.FillTurns},
		BeforeMigrations: kernel.MarkDamage,
		AfterMigrations:  func(tx db.Tx, version int) error { return kernel.MakeHashes(tx, version, now().UnixMicro()) },
		Prepare:          kernel.KeepHashes,
	}
}

// checkPath refuses a path that cannot name a file.
func checkPath(argument, path string) error {
	if strings.ContainsRune(path, 0) {
		return invalid(argument, "%s %q contains a zero byte; file names cannot contain one", argument, path)
	}
	return nil
}

// openError handles the errors of a path in addition to the ones that wrap handles.
func openError(argument, path string, err error) error {
	var cause *fs.PathError
	switch {
	case errors.Is(err, db.ErrFull):
	case errors.Is(err, fs.ErrNotExist):
		return &Error{Kind: KindNotFound, Argument: argument,
			Message: fmt.Sprintf("%s %q cannot be opened: %v", argument, path, err), Err: err}
	case errors.As(err, &cause):
		return &Error{Kind: KindInvalid, Argument: argument,
			Message: fmt.Sprintf("%s %q cannot be opened: %v", argument, path, err), Err: err}
	}
	return wrap(err)
}

// Close ends background work, waits for calls that are running, and closes the file. It closes all views of the store.
// Calls after the first do nothing and return the same result. Methods of a closed store return ErrClosed.
func (s *Store) Close() error {
	if err := s.checkUnsealed("Close"); err != nil {
		return err
	}
	s.closing.Do(func() {
		s.worker.Stop()
		s.index.Stop()
		s.activity.Stop()
		s.closed = wrap(s.db.Close())
	})
	return s.closed
}

// As returns a view of the store for the given access. It is cheap; make one for each request. Views share everything
// except their access. As called on a view is not limited by that view: give code that you do not trust a view that
// is [Store.Sealed].
func (s *Store) As(access Access) *Store {
	if s.sealed {
		return s.narrowed(access)
	}
	if access.User == "" {
		access.User = LocalUser
	}
	view := &Store{shared: s.shared, access: access}
	view.access = view.Access()
	return view
}

// Snapshot runs fn with a context in which everything read from this store, through any of its views, is the state of
// one moment. Writing with that context is ErrReadOnly; using it after Snapshot has returned is ErrClosed. Several
// goroutines may use it, one call at a time runs. Snapshots within a snapshot belong to the outer one.
//
// Data written to the store meanwhile stays in the write-ahead log until fn returns; writers do not wait, except in an
// in-memory store. fn must not wait for a write made with another context.
func (s *Store) Snapshot(ctx context.Context, fn func(ctx context.Context) error) error {
	if err := s.checkUnsealed("Snapshot"); err != nil {
		return err
	}
	s.flushActivity(ctx) // nothing is written within
	return wrap(s.db.Snapshot(ctx, fn))
}

// Transaction runs fn with a context in which everything written to this store, through any of its views, is one
// transaction: all of it is durable when Transaction returns nil, and none of it remains after an error or panic of fn,
// or the end of ctx. Transaction returns fn's error as it is. Reads and searches with that context see what was written
// before; other calls see none of it until the end. An operation that fails is undone alone: if fn goes on and returns
// nil, the rest is kept. A Transaction within a transaction belongs to the outer one, which fails with it; within a
// Snapshot it is ErrReadOnly. Using the context after the end is ErrClosed.
//
// All other writers wait meanwhile, for 30 seconds at most, and in an in-memory store so do readers: their error is
// ErrBusy. So fn should be short, and do slow work before. fn must call the store with the context that it gets: with
// another one it would wait for itself, which is ErrBusy after some seconds. It must not call Close. Several goroutines
// may use the context, one call at a time runs. With another database than SQLite, fn may run again: it sets its
// results anew each time, and does nothing elsewhere that must happen once.
//
// Only the built-in embedder runs within a transaction. With another one, texts are found by their words at first
// ([Stored.Indexed] is false), and embedded once the transaction is done; searches within it are by words.
//
// Before functions of [Hooks] run within the transaction, After when it has ended, with its error if all was undone.
// What works in several transactions of its own cannot be part of one and is ErrInvalid: AddFile, DeleteProject,
// DeleteCollection, [Trash.Empty], restoring a project or collection, and what changes anything in [Accounts] and
// [Upkeep]. On a full disk the whole transaction is ErrFull, deletions included.
func (s *Store) Transaction(ctx context.Context, fn func(ctx context.Context) error) error {
	if err := s.checkWritable(); err != nil {
		return err
	}
	if err := s.checkUnsealed("Transaction"); err != nil {
		return err
	}
	s.flushActivity(ctx) // which does not belong to it
	var own error
	err := s.db.Transaction(ctx, func(ctx context.Context) error {
		own = fn(ctx)
		return own
	})
	if own != nil && errors.Is(err, own) {
		return own
	}
	return wrap(err)
}

// outside refuses, within a transaction, what works in transactions of its own.
func (s *shared) outside(ctx context.Context, method string) error {
	if !s.db.InTransaction(ctx) {
		return nil
	}
	return invalid("ctx", "ctx belongs to a transaction, which %s cannot be part of; call it outside of Transaction",
		method)
}

// read runs fn on one snapshot of the file.
func (s *Store) read(ctx context.Context, fn func(db.Tx, viewer) error) error {
	return wrap(s.db.Read(ctx, func(tx db.Tx) error {
		v, err := s.viewer(tx)
		if err != nil {
			return err
		}
		return fn(tx, v)
	}))
}

// write runs fn in a transaction of its own: everything is durable when write returns nil, nothing when it returns an
// error. fn may run more than once and must set its results anew each time.
func (s *Store) write(ctx context.Context, fn func(db.Tx, viewer) error) error {
	if err := s.checkWritable(); err != nil {
		return err
	}
	return wrap(s.db.Write(ctx, func(tx db.Tx) error {
		v, err := s.viewer(tx)
		if err != nil {
			return err
		}
		if v.User == 0 {
			if v.User, err = s.addUser(tx); err != nil {
				return err
			}
		}
		return fn(tx, v)
	}))
}

// readStore runs fn on a snapshot like read, for data that belongs to the store and to no user.
func (s *Store) readStore(ctx context.Context, fn func(db.Tx) error) error {
	return wrap(s.db.Read(ctx, fn))
}

// writeStore runs fn in a transaction like write, for data that belongs to the store and to no user.
func (s *Store) writeStore(ctx context.Context, fn func(db.Tx) error) error {
	return wrap(s.db.Write(ctx, fn))
}

// checkWritable refuses writes through a read-only view or handle, or for an invalid user.
func (s *Store) checkWritable() error {
	if s.denied != nil {
		return s.denied
	}
	if s.access.ReadOnly {
		return newError(KindReadOnly, "", "this view of the store is read-only")
	}
	if s.db.ReadOnly() {
		return newError(KindReadOnly, "", "the store is opened read-only")
	}
	for _, id := range s.access.Projects {
		if err := valid.ProjectID(id); err != nil {
			return err
		}
	}
	return valid.Name("user", s.access.User)
}

// now returns the time in its stored form: microseconds since 1970 UTC.
func (s *shared) now() int64 { return s.clock().UnixMicro() }
