// Package souvenir is a memory for AI agents: a Go package over one SQLite file. It stores memories (text, metadata,
// vectors) in named collections and finds them again by meaning and by word, offline, without a key, a C compiler or a
// download: a small embedding model is part of the package. Package postgres opens the same Store in PostgreSQL.
//
// # Quick start
//
//	store, err := souvenir.Open(ctx, "agent.db", nil)
//	if err != nil {
//		log.Fatal(err)
//	}
//	defer store.Close()
//
//	for _, text := range []string{
//		"We deploy on Thursdays, never on Fridays.",
//		"Anna is allergic to peanuts.",
//		"The staging database is restored from production every night at 3.",
//	} {
//		if _, err := store.AddMemory(ctx, souvenir.NewMemory{Content: text}); err != nil {
//			log.Fatal(err)
//		}
//	}
//	found, err := store.Search(ctx, souvenir.Query{Text: "What food must we avoid for Anna?", Limit: 1})
//	if err != nil {
//		log.Fatal(err)
//	}
//	fmt.Println(found.Hits[0].Content)
//
// # Overview
//
// A [Store] is opened with [Open] and is safe for concurrent use; several processes may have the same file open.
// [Store.As] returns a view of it for one user, optionally limited to some projects or to reading. Methods of
// [Accounts], [Upkeep] and [Insights] are called on the handles that [Store.Accounts], [Store.Upkeep] and
// [Store.Insights] return: store.Accounts().AddUser(ctx, ...). So are those of [Conversation] and [Trash], on what
// [Store.Conversation] and [Store.Trash] return. [Store.Snapshot] makes several calls read the state of one moment,
// [Store.Transaction] makes several writes atomic.
//
//   - Memories: [Store.AddMemory], [Store.AddMemories], [Store.GetMemory], [Store.UpdateMemory], [Store.DeleteMemory],
//     [Store.Memories]; [Store.Revisions] returns the history of one, [Store.RelatedMemories] follows links. They are
//     in collections ([Store.AddCollection]). [Store.Search] finds them.
//   - Conversations with their turns in order: [Conversation.Append], [Conversation.Last], [Conversation.Window].
//   - The trash keeps deleted items for a time: [Store.Trash], [Trash.Restore], [Trash.Erase].
//   - Projects: [Store.AddProject], [Store.GetMainMemory], [Store.GetModuleState]. They are shared by invitation:
//     [Store.AddMember], [Accounts.ProjectInvitations], [Accounts.AcceptProjectInvitation], [Accounts.BlockSender].
//   - What an agent begins with: [Store.GetContext], [Store.SetIdentityMemory].
//   - Rules and the to-do document of a project: [Store.SetRule], [Store.SetTodo], [Store.UpdateTodoSection],
//     [Store.CompleteTask], [ParseTodo].
//   - Files: [Store.AddFile], [Store.OpenFile], [Store.Files].
//   - People: [Accounts.AddUser], [Accounts.CheckPassword], [Accounts.AddSignIn], [Accounts.CheckSignIn],
//     [Accounts.AddInvitation], [Accounts.AddToken], [Accounts.CheckToken], [Store.GetPreferences].
//   - The state of an OAuth 2.1 server: [Accounts.RegisterClient], [Accounts.Authorize], [Accounts.ExchangeCode],
//     [Accounts.RefreshTokens], [Accounts.CheckAccessToken].
//   - Upkeep: [Upkeep.Backup], [Restore], [Upkeep.Check], [Upkeep.Export], [Upkeep.Import], [Upkeep.Reindex],
//     [Upkeep.Purge]. [Recover] makes a new store from the readable parts of a damaged file.
//   - Counts, pictures and recent activity: [Insights.Overview], [Insights.ActivityPage], [Insights.Tags],
//     [Insights.Modules], [Insights.Graph], [Insights.Usage].
//
// # Promises
//
// A write that has returned is durable, even after a crash or loss of power, and every later search, in any process,
// finds it. Errors, except those of contexts, are of type [*Error] and say which field or parameter is wrong and what
// would be right; match them with errors.Is and ErrInvalid, ErrNotFound and the other Err values. Methods honour their
// context, even while they wait for a lock. The package connects to nothing: data leaves the process only through what
// you give it in [Options] ([Embedder], [Reranker], [ObjectStorage], [DocumentReader], [Hooks]).
package souvenir

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/souvenir-ai/souvenir/internal/auth/passwords"
	"github.com/souvenir-ai/souvenir/internal/batch"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/embedding"
	"github.com/souvenir-ai/souvenir/internal/files/filetext"
	"github.com/souvenir-ai/souvenir/internal/files/objects"
	"github.com/souvenir-ai/souvenir/internal/fixedcontext"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/records/activitylog"
	"github.com/souvenir-ai/souvenir/internal/retrieval"
	"github.com/souvenir-ai/souvenir/internal/sealing/keyring"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
	"github.com/souvenir-ai/souvenir/internal/storefile"
	"github.com/souvenir-ai/souvenir/internal/txcontext"
	"github.com/souvenir-ai/souvenir/internal/valid"
	"github.com/souvenir-ai/souvenir/internal/writing"
)

// Store is a memory in one SQLite file, or in a database that another package opens, such as postgres. It is safe for
// concurrent use, and several processes may have the same one open. Make one with [Open]; [Store.As] makes further
// views of it for other users.
//
// The Store that Open returns is the operator's: besides the local user's memories it has the methods for the whole
// store (users, OAuth state, backup, export, checks). Views that As makes belong to a user, and these methods return
// ErrForbidden there.
type Store struct {
	*shared
	access   Access
	operator bool  // returned by Open
	confined bool  // see Confined
	denied   error // why every call is refused; nil: calls are allowed
}

// Interfaces hide the generic types of a store: otherwise each package that uses Store would compile their methods
// again.
type (
	sharedCommits interface { // *batch.Transactions
		Do(ctx context.Context, call batch.Call) error
	}
	keptOptions interface { // *kernel.KeptSettings
		Get(tx db.Tx, now int64, from func(map[string]int64) *Options) (*Options, error)
		Forget()
	}
	activityLog interface { // *activitylog.Log
		Start()
		Stop()
		Add(ctx context.Context, a waitingActivity) bool
		Flush(ctx context.Context) error
		Lost() int
	}
)

// shared is the state common to all views of a store.
type shared struct {
	engine        db.DB // for operations that not all engines have
	db            *txcontext.DB
	batches       sharedCommits // nil: the engine shares commits by itself
	embedder      Embedder
	profile       int64 // row of the embedder's profile; 0 if a read-only file does not have it
	index         *retrieval.Cache
	filters       retrieval.Filters
	orders        retrieval.Orders
	tallies       retrieval.Tallies
	pairScores    retrieval.PairScores
	shown         retrieval.Derived // of graphs and maps
	graphs        retrieval.Derived // of Graph
	maps          retrieval.Derived // of Map
	doDonts       fixedcontext.DoDonts
	vectors       *embedding.Vectors
	worker        *embedding.Worker
	objects       *objects.Objects
	ring          *keyring.Ring    // nil: nothing is sealed under user keys
	restoredUsers []userKey        // deleted users whom an older backup has brought back; unchanged once the store is open
	lent          bool             // the ring is from the context, whose owner closes it
	erased        atomic.Bool      // something was erased, and its traces must be removed now
	scrubbed      time.Time        // when the worker last removed traces
	texts         *filetext.Worker // reads files; not started without Options.Documents
	activity      activityLog
	counts        activitylog.Counts
	users         knownUsers
	uses          notedUses // of MCP tokens and sign-ins
	hashing       passwords.Hasher
	oauth         oauthState
	log           *slog.Logger
	clock         func() time.Time
	newID         func() string
	maxFile       int64   // bytes
	options       Options // with defaults
	limited       keptOptions
	closing       sync.Once
	closed        error

	sharedUpdates atomic.Int64 // calls of UpdateSharedValues
}

// Open opens the store in a file, and creates the file if it does not exist; its folder must exist. ":memory:" makes a
// store that lives until Close and is private to it. Nil options mean the defaults.
//
// A file that is not a Souvenir store is ErrForeign, one of a newer version ErrNewer, a damaged one ErrCorrupt, one
// that needs another key ErrMasterKey, or other user keys ErrUserKeys; none of them is touched. A file that may
// only be read is opened read-only.
func Open(ctx context.Context, path string, options *Options) (_ *Store, err error) {
	defer setGoNames[Options](&err, "path", "path")
	o, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	open, ctx := db.OpenerOf(ctx)
	if open == nil {
		engine, err := openFile(ctx, path, o)
		if err != nil {
			return nil, err
		}
		return newStore(ctx, engine, o)
	}
	if !o.MasterKey.IsZero() {
		return nil, invalid("MasterKey", "{} is set, but encrypts only files; omit it, and let the database encrypt "+
			"its disk")
	}
	engine, err := open(ctx, db.Opening{ReadOnly: o.ReadOnly, Readers: o.Readers, Logger: o.Logger, Now: o.Now,
		Fill: storefile.Fills()})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, causedBy(err, newError(KindNotFound, "", "the database has no store: %v", err))
	case err != nil:
		return nil, wrap(err)
	}
	return newStore(ctx, engine, o)
}

// openFile opens the engine of a store in a file.
func openFile(ctx context.Context, path string, o Options) (db.DB, error) {
	switch {
	case path == "":
		return nil, invalid("path", `{} is empty; give the path of a file, or ":memory:"`)
	case path == ":memory:" && o.ReadOnly:
		return nil, invalid("ReadOnly",
			"{} is set with the path :memory:, a new store with nothing to read; omit it")
	}
	if scheme := valid.Scheme(path); scheme != "" { // the rest may have a password
		return nil, invalid("path", "{} is an address, %s://..., and not a file; open the store with the package of its "+
			"engine", scheme)
	}
	if err := checkPath("path", path); err != nil {
		return nil, err
	}
	config := storefile.Config(path, o.Now)
	config.MasterKey = o.MasterKey
	config.ReadOnly, config.Readers, config.Logger, config.Reserve = o.ReadOnly, o.Readers, o.Logger, o.Reserve
	file, err := sqlite.Open(ctx, config)
	if err != nil {
		return nil, openError("path", path, err)
	}
	return file, nil
}

// newStore returns the store in an engine that has the schema. It takes over closing the engine.
func newStore(ctx context.Context, engine db.DB, o Options) (*Store, error) {
	ring, err := openUserKeys(ctx, engine, o)
	if err != nil {
		_ = engine.Close() // the first error is the one that counts
		return nil, wrap(err)
	}
	index := retrieval.NewCache(o.IndexMemory, o.Logger)
	s := &Store{
		shared: &shared{
			engine: engine, db: &txcontext.DB{DB: engine, Wrote: index.Wrote},
			embedder: o.Embedder, log: o.Logger, clock: o.Now, newID: o.NewID,
			index: index, maxFile: o.MaxFile,
			hashing: make(passwords.Hasher, runtime.GOMAXPROCS(0)), options: o, ring: ring, lent: keyring.Of(ctx) != nil,
			limited: &kernel.KeptSettings[*Options]{},
		},
		access: Access{User: LocalUser}, operator: true,
	}
	if s.ring != nil {
		s.db.DB = &sealedrows.DB{DB: engine, Sealing: s.ring}
	}
	s.index.DB = s.db
	if u, ok := engine.(db.Ungrouped); ok && u.Ungrouped() {
		s.batches = batch.NewTransactions(s.db)
		s.counts.Settles = 5 * time.Minute // transactions that record calls end within seconds
	}
	s.objects = &objects.Objects{Storage: o.Objects, DB: s.db, Now: s.now, Log: o.Logger}
	if f, tells := engine.(db.Follower); tells {
		s.index.Others = f.Follow
	}
	s.activity = activitylog.New(s.writeActivities, o.Logger)
	s.db.OnlyRecords = storefile.OnlyRecords(ctx)
	if err := s.startEmbedding(ctx); err != nil {
		_ = s.closeAll() // the first error is the one that counts
		return nil, wrap(err)
	}
	if err := cmp.Or(s.indexMetadata(ctx), s.addLookups(ctx), s.deleteRestoredUsers(ctx)); err != nil {
		s.worker.Stop()
		_ = s.closeAll()
		return nil, wrap(err)
	}
	s.activity.Start()
	s.startDocuments()
	return s, nil
}

// indexMetadata rebuilds the index of own metadata if the options have a different limit.
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

// addLookups adds lookups to metadata that an earlier version sealed without them.
func (s *Store) addLookups(ctx context.Context) error {
	if s.ring == nil || s.db.ReadOnly() {
		return nil
	}
	missing := false
	if err := s.db.Read(ctx, func(tx db.Tx) (err error) {
		missing, err = kernel.MissingLookups(tx)
		return err
	}); err != nil || !missing {
		return err
	}
	for last, next := int64(0), int64(0); ; last = next {
		if err := s.db.Write(ctx, func(tx db.Tx) (err error) {
			next, err = kernel.AddLookups(tx, last)
			return err
		}); err != nil || next == 0 {
			return err
		}
	}
}

// checkPath refuses a path that cannot name a file.
func checkPath(argument, path string) error {
	if strings.ContainsRune(path, 0) {
		return invalid(argument, "{} %q contains a zero byte; file names cannot contain one", path)
	}
	return nil
}

// openError handles the errors of a path in addition to the ones that wrap handles.
func openError(argument, path string, err error) error {
	var cause *fs.PathError
	switch {
	case errors.Is(err, db.ErrFull):
	case errors.Is(err, fs.ErrNotExist):
		return causedBy(err, newError(KindNotFound, argument, "{} %q cannot be opened: %v", path, err))
	case errors.As(err, &cause):
		return causedBy(err, invalid(argument, "{} %q cannot be opened: %v", path, err))
	}
	return wrap(err)
}

// Close ends background work, waits for calls that are running, and closes the file. It closes all views of the store.
// Calls after the first do nothing and return the same result. Methods of a closed store return ErrClosed.
func (s *Store) Close() error {
	if err := s.checkUnconfined("Close"); err != nil {
		return err
	}
	s.closing.Do(func() {
		s.texts.Stop()
		s.worker.Stop()
		s.index.Stop()
		s.activity.Stop()
		if err := s.ring.Note(context.Background(), s.db); err != nil {
			s.log.Warn("could not record the number of user keys in the store", "error", err)
		}
		s.closed = wrap(s.closeAll())
	})
	return s.closed
}

// closeAll closes the database and the ring.
func (s *shared) closeAll() error {
	err := s.db.Close()
	if s.ring != nil && !s.lent {
		err = errors.Join(err, s.ring.Close())
	}
	return err
}

// now returns the time in its stored form: microseconds since 1970 UTC.
func (s *shared) now() int64 { return s.clock().UnixMicro() }

// Snapshot runs fn with a context in which everything read from this store, through any of its views, is the state of
// one moment. Writing with that context is ErrReadOnly; using it after Snapshot has returned is ErrClosed. Several
// goroutines may use it; their calls run one at a time. Snapshots within a snapshot belong to the outer one.
//
// Writers do not wait meanwhile, except in an in-memory store. Until fn returns, a file keeps what they write in its
// write-ahead log, and PostgreSQL keeps the rows that they replace, so fn should not take long. It must not wait for a
// write made with another context, nor call Close, which waits for it.
func (s *Store) Snapshot(ctx context.Context, fn func(ctx context.Context) error) error {
	if err := s.checkUnconfined("Snapshot"); err != nil {
		return err
	}
	s.flushActivity(ctx) // nothing is written within
	return wrap(s.db.Snapshot(ctx, fn))
}

// Transaction runs fn with a context in which everything written to this store, through any of its views, is one
// transaction: all of it is durable when Transaction returns nil, and none of it remains after an error or panic of fn,
// or the end of ctx. Transaction returns fn's error as it is. Reads and searches with that context see what was written
// before; other calls see none of it until the end. Only an operation that fails is rolled back: if fn continues and
// returns nil, the rest is kept. A Transaction within a transaction belongs to the outer one, which fails with it;
// within a Snapshot it is ErrReadOnly. Using the context after the end is ErrClosed.
//
// All other writers wait meanwhile, for 30 seconds at most, and in an in-memory store so do readers: their error is
// ErrBusy. So fn should be short; do slow work before. fn must call the store with its own context: a call with another
// one is not part of the transaction, and waits for it like any other writer. It must not call Close. Several
// goroutines may use the context; their calls run one at a time, and each waits 30 seconds at most. Calls to other
// stores, with this context or another one, are not part of the transaction. With a database other than SQLite, fn may
// run again: it must reset its results each time, and have no other side effects that must happen only once.
//
// Only the built-in embedder runs within a transaction. With another one, texts are found by their words at first
// ([StoredMemory.Indexed] is false), and embedded once the transaction is done; searches within it are by words.
//
// Before functions of [Hooks] run within the transaction; After functions run when it has ended, with its error if it
// was rolled back. Methods that need several transactions of their own return ErrInvalid within one: AddFile,
// DeleteProject, DeleteCollection, [Trash.Empty], restoring a project or collection, and all methods of [Accounts] and
// [Upkeep] that change anything. On a full disk the whole transaction is ErrFull, deletions included.
func (s *Store) Transaction(ctx context.Context, fn func(ctx context.Context) error) error {
	if err := s.checkWritable(); err != nil {
		return err
	}
	if err := s.checkUnconfined("Transaction"); err != nil {
		return err
	}
	s.flushActivity(ctx) // recorded calls do not belong to the transaction
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

// outside refuses, within a transaction, methods that need transactions of their own.
func (s *shared) outside(ctx context.Context, method string) error {
	if !s.db.InTransaction(ctx) {
		return nil
	}
	return withGoNames[struct{}](invalid("ctx", "{} belongs to a transaction, which %s cannot be part of; call it "+
		"outside of Transaction", method), "ctx", "ctx")
}

// read runs fn on one snapshot of the file.
func (s *Store) read(ctx context.Context, fn func(db.Tx, viewer) error) error {
	return s.readAhead(ctx, nil, fn)
}

// readAhead is like read, with a function that announces what will be read; see [db.Ahead].
func (s *Store) readAhead(ctx context.Context, ahead func(db.Tx, viewer), fn func(db.Tx, viewer) error) error {
	return wrap(s.db.Read(ctx, func(tx db.Tx) error {
		v, err := s.viewerWithBounds(tx, nil, ahead)
		if err != nil {
			return err
		}
		return db.As(tx, s.caller(v), func() error { return fn(tx, v) })
	}))
}

// caller returns the user of a view, nil for the operator's store.
func (s *Store) caller(v viewer) *db.Caller {
	if s.operator {
		return nil
	}
	return &db.Caller{User: v.User, Limited: v.Limited, Projects: v.Projects}
}

// write runs fn in a transaction of its own: everything is durable when write returns nil, nothing when it returns an
// error. fn may run more than once and must reset its results each time.
func (s *Store) write(ctx context.Context, fn func(db.Tx, viewer) error) error {
	return s.writeAhead(ctx, nil, fn)
}

// writeAhead is like write, with a function that announces what will be read; see [db.Ahead].
func (s *Store) writeAhead(ctx context.Context, ahead func(db.Tx, viewer), fn func(db.Tx, viewer) error) error {
	if err := s.checkWritable(); err != nil {
		return err
	}
	var user int64
	err := s.db.Write(ctx, func(tx db.Tx) error {
		v, err := s.viewerWithBounds(tx, nil, ahead)
		if err != nil {
			return err
		}
		if v.User == 0 {
			if v.User, err = s.addUser(tx); err != nil {
				return err
			}
		}
		user = v.User
		return db.As(tx, s.caller(v), func() error { return fn(tx, v) })
	})
	if err == nil {
		s.rememberUser(ctx, user)
	}
	return wrap(err)
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
		return wrap(db.ErrReadOnly)
	}
	return s.checkNames()
}

// checkNames refuses invalid names of users and projects in the view's access.
func (s *Store) checkNames() (err error) {
	defer setGoNames[Access](&err, "project_id", "Access.Projects")
	for _, id := range s.access.Projects {
		if err := valid.ProjectID(id); err != nil {
			return err
		}
	}
	if s.access.Namespace != "" {
		if err := valid.Name("namespace", s.access.Namespace); err != nil {
			return err
		}
	}
	return valid.Name("user", s.access.User)
}

// writing is what a write has to know of this view.
func (s *Store) writing() *writing.View {
	return &writing.View{User: s.access.User, Projects: s.access.Projects, Now: s.now, NewID: s.newID, Caller: s.caller,
		Profile: s.profile, Model: s.embedder.Model(), MaxInput: maxInput(s.embedder), Keys: s.ring,
		Quota: func(tx db.Tx) (writing.Quota, error) {
			o, err := s.limits(tx)
			if err != nil {
				return writing.Quota{}, err
			}
			return writing.Quota{Memories: o.Quota.Memories, Revisions: o.Quota.Revisions, Items: o.Quota.Items,
				Bytes: o.Quota.Bytes, Files: o.FileQuota}, nil
		}}
}
