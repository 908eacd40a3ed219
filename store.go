// Package souvenir is a memory for AI agents: a Go package over one SQLite file. It stores memories (text, metadata,
// vectors) in named collections and finds them again by meaning and by word, offline, without a key, a C compiler or a
// download: a small embedding model is part of the package.
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
// [Store.As] returns a view of it for one user, optionally limited to some projects or to reading.
// Methods of [Accounts], [Upkeep] and [Insights] are called on the handles that [Store.Accounts], [Store.Upkeep] and
// [Store.Insights] return: store.Accounts().AddUser(ctx, ...). [Store.Snapshot] makes several calls read the state of
// one moment, [Store.Transaction] makes several writes one.
//
//   - Memories: [Store.AddMemory], [Store.AddMemories], [Store.GetMemory], [Store.UpdateMemory], [Store.DeleteMemory],
//     [Store.Memories]; [Store.Revisions] returns the history of one, [Store.RelatedMemories] follows links. They are
//     in collections ([Store.AddCollection]). [Store.Search] finds them.
//   - The trash keeps deleted items for a time: [Store.Trash], [Trash.Restore], [Trash.Erase].
//   - Projects: [Store.AddProject], [Store.MainMemory], [Store.ModuleState]. They are shared by invitation:
//     [Store.AddMember], [Accounts.ProjectInvitations], [Accounts.AcceptProjectInvitation], [Accounts.BlockSender].
//   - What an agent begins with: [Store.GetContext], [Store.SetIdentityMemory].
//   - Rules and the to-do document of a project: [Store.SetRule], [Store.SetTodo], [Store.UpdateTodoSection],
//     [Store.CompleteTask], [ParseTodo].
//   - Files: [Store.AddFile], [Store.OpenFile], [Store.Files].
//   - People: [Accounts.AddUser], [Accounts.CheckPassword], [Accounts.AddSignIn], [Accounts.CheckSignIn],
//     [Accounts.AddInvitation], [Accounts.AddToken], [Accounts.CheckToken], [Store.Preferences].
//   - The state of an OAuth 2.1 server: [Accounts.RegisterClient], [Accounts.Authorize], [Accounts.ExchangeCode],
//     [Accounts.RefreshTokens], [Accounts.CheckAccessToken].
//   - Upkeep: [Upkeep.Backup], [Restore], [Upkeep.Check], [Upkeep.Export], [Upkeep.Import], [Upkeep.Reindex],
//     [Upkeep.Purge]. [Recover] makes a new store from the readable parts of a damaged file.
//   - Counts, pictures and recent activity: [Insights.Overview], [Insights.Activities], [Insights.Tags],
//     [Insights.Modules], [Insights.Graph], [Insights.Usage].
//
// # Promises
//
// A write that has returned is durable, even after a crash or loss of power, and every later search, in any process,
// finds it. Errors, except those of contexts, are of type [*Error] and say which field or parameter is wrong and what
// would be right; match them with errors.Is and ErrInvalid, ErrNotFound and the other Err values. Methods honour their
// context, even while they wait for a lock. Nothing leaves the process unless an [Embedder] of your own does so.
package souvenir

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/souvenir-ai/souvenir/internal/activitylog"
	"github.com/souvenir-ai/souvenir/internal/batch"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/embedding"
	"github.com/souvenir-ai/souvenir/internal/filetext"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/keyring"
	"github.com/souvenir-ai/souvenir/internal/naming"
	"github.com/souvenir-ai/souvenir/internal/objects"
	"github.com/souvenir-ai/souvenir/internal/passwords"
	"github.com/souvenir-ai/souvenir/internal/retrieval"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
	"github.com/souvenir-ai/souvenir/internal/standing"
)

// Options change how [Open] works. The zero value of a field means its documented default; a nil *Options means all
// defaults.
type Options struct {
	// Embedder turns texts into vectors. Nil means [Builtin]: offline, no key, no download. An interface that holds a nil
	// pointer or function is ErrInvalid.
	Embedder Embedder

	// KeepModel keeps the model that another program chose for a file, unless that is a version of the built-in one.
	// Searches then work by words, and new memories get their vectors once that program has the file open. False
	// switches the file to Embedder.
	KeepModel bool

	// Reranker reorders the best hits of searches. Nil means none.
	Reranker Reranker

	// ReadOnly opens the file without ever writing to it; every write returns ErrReadOnly. False means read and write, or
	// read-only if the file's permissions allow only that.
	ReadOnly bool

	// MasterKey encrypts the file, its log, its backups and its snapshots. A file that is there has to be encrypted with
	// it, else Open returns ErrMasterKey; [Reencrypt] encrypts a store that is not. The zero value means no encryption.
	// PostgreSQL refuses a key, and so does the driver in C; content in object storage is not encrypted by it.
	MasterKey MasterKey

	// MasterKeyNow is asked for the key before each backup, so that a running program notices that another one has changed
	// it, and does not go on to make backups under the old key. A key that is not that of the file counts for nothing, and
	// the program's log says so. Nil means MasterKey.
	MasterKeyNow func(ctx context.Context) (MasterKey, error)

	// UserKeys seal what users store under a key for each of them, which is erased with the user. The zero value means
	// none: a store with such keys is ErrUserKeys without them.
	UserKeys UserKeys

	// Readers is the number of searches and reads that may run at once; further ones wait. Zero means the number of
	// processors, at least 4. At most 1,000.
	Readers int

	// IndexMemory bounds the memory, in bytes, of the search index in memory. It holds the searched collections, by
	// project, and evicts the least recently searched first. If what a single search covers exceeds the limit, or is
	// still being loaded, the search runs on disk: with the same ranking, but slower. Zero means 1 GiB (about 500,000
	// short memories of the built-in model); a negative value means no index in memory at all.
	IndexMemory int64

	// BackupEvery and KeepBackups are for a program that makes scheduled backups: the time between them, at least an hour,
	// and how many it keeps. The store makes none by itself: [Upkeep.Configuration] returns both, for admins may change
	// them. Zero means that the program makes none.
	BackupEvery time.Duration
	KeepBackups int

	// MaxFile is the maximum size of a file, in bytes. Zero means 100 MiB, a negative value no limit.
	MaxFile int64

	// Objects is object storage for the content of files, such as package s3's. Nil means none: the content is in the
	// database. A store whose files are there must be opened with it; without it, reading them is an error, and nothing
	// else is. A copy of the store's file names the same objects: use it only with a copy of these, since what one of the
	// two deletes is gone for the other.
	Objects ObjectStorage

	// Documents reads what files say, in the background, so that searches find them (Query.Documents). Nil means none: new
	// files wait until a program with a reader opens the store. Package documents has one.
	Documents DocumentReader

	// NewFiles is where the content of new files goes. Empty means InObjects if Objects is set, else InDatabase. Files can
	// be read wherever they are; [Upkeep.MoveFiles] moves them.
	NewFiles FilePlace

	// FileQuota is the maximum total size of one owner's files, in bytes. Zero means no quota. Uploads in progress count,
	// and so do files in the trash; uploads interrupted by a crash count for 24 hours.
	FileQuota int64

	// Quota bounds the memories of each owner. The zero value means no quota; imports are never limited.
	Quota Quota

	// KeepActivity is how long to keep calls recorded by [Upkeep.RecordActivity]. Zero means 30 days. At most 100 years.
	KeepActivity time.Duration

	// MaxActivity is how many recorded calls to keep. Zero means 100,000.
	MaxActivity int

	// KeepTrash is how long deleted items can be restored. Zero means 30 days; a negative value means no trash: deletions
	// are permanent. At most 100 years. Entries already in the trash keep their expiry.
	KeepTrash time.Duration

	// Changeable are settings that [Upkeep.ChangeSetting] may change while the store is open. What it has changed counts
	// instead of the option, in each process that lists the setting here. Empty means none: the options hold.
	Changeable []SettingName

	// IndexedMetadata is the limit, in bytes of JSON, up to which a memory's metadata is indexed for a [Filter]: every
	// top-level key whose value is a string, a number, a boolean, or a list of these. Filters read longer metadata
	// memory by memory, which takes longer. Zero keeps the file's limit, which is 4,096 for a new file; a negative
	// value means no index. At most 65,536. Opening a file with a different limit rebuilds its index.
	IndexedMetadata int

	// Reserve is the size in bytes of a file beside the store (its name plus -reserve) that holds back disk space, so that
	// deleting works when the disk is full. Zero means none; at most 1 GiB. The file stays when the store is closed.
	Reserve int64

	// Hooks are called around the operations on memories, in this order; the After functions in reverse. Without any
	// there is no cost.
	Hooks []Hooks

	// Logger receives the progress and failures of background work. Nil means no logging.
	Logger *slog.Logger

	// Now returns the current time. Nil means time.Now. Tests set it for reproducible times. It must be safe for
	// concurrent use.
	Now func() time.Time

	// NewID returns the id for a new memory, project or file. Nil means UUIDv7 (RFC 9562), which sorts by creation time.
	NewID func() string
}

const (
	defaultIndexMemory = 1 << 30
	defaultMaxFile     = 100 << 20
	maxKeepActivity    = 100 * 365 * 24 * time.Hour
	defaultKeepTrash   = 30 * 24 * time.Hour
)

// withDefaults returns a copy with the defaults filled in, or an error that names the invalid field.
func (o *Options) withDefaults() (Options, error) {
	var full Options
	if o != nil {
		full = *o
	}
	if full.Readers < 0 || full.Readers > 1000 {
		return full, invalid("Readers", "{} is %d; 0 (the default) to 1000 are allowed", full.Readers)
	}
	if full.Embedder == nil {
		full.Embedder = Builtin()
	}
	guarded, err := guard(full.Embedder)
	if err != nil {
		return full, err
	}
	full.Embedder = guarded
	if full.Reranker != nil && isNil(full.Reranker) {
		return full, invalid("Reranker", "the Reranker is a nil %T; give an initialized one, or leave it out for none",
			full.Reranker)
	}
	if full.IndexMemory == 0 {
		full.IndexMemory = defaultIndexMemory
	}
	if full.FileQuota < 0 {
		return full, invalid("FileQuota", "{} is %d; a number of bytes is expected, or 0 for no quota", full.FileQuota)
	}
	if q := full.Quota; q.Memories < 0 || q.Revisions < 0 || q.Items < 0 || q.Bytes < 0 {
		return full, invalid("Quota", "{} is %+v; numbers of 0 (no bound) or more are expected", q)
	}
	if full.IndexedMetadata > MaxMetadata {
		return full, invalid("IndexedMetadata", "{} is %d; at most 65,536 bytes are allowed, 0 means what the "+
			"file has, and a negative value no index", full.IndexedMetadata)
	}
	if full.Reserve < 0 || full.Reserve > 1<<30 {
		return full, invalid("Reserve", "{} is %d; 0 to 1,073,741,824 bytes are allowed", full.Reserve)
	}
	if full.KeepActivity < 0 || full.KeepActivity > maxKeepActivity {
		return full, invalid("KeepActivity",
			"{} is %s; more than 0 and at most 100 years are allowed, or 0 for 30 days", full.KeepActivity)
	}
	if full.MaxActivity < 0 {
		return full, invalid("MaxActivity", "{} is %d; a number of calls is expected, or 0 for 100,000",
			full.MaxActivity)
	}
	if full.KeepTrash > maxKeepActivity {
		return full, invalid("KeepTrash",
			"{} is %s; at most 100 years are allowed, 0 means 30 days, and a negative value no trash", full.KeepTrash)
	}
	if full.BackupEvery < 0 {
		return full, invalid("BackupEvery", "{} is %s; more than 0 is expected, or 0 for no backups", full.BackupEvery)
	}
	if full.KeepBackups < 0 {
		return full, invalid("KeepBackups", "{} is %d; a number of backups is expected, or 0 for none", full.KeepBackups)
	}
	if err := full.checkChangeable(); err != nil {
		return full, err
	}
	if err := full.UserKeys.check(); err != nil {
		return full, err
	}
	full.KeepTrash = cmp.Or(full.KeepTrash, defaultKeepTrash)
	full.KeepActivity = cmp.Or(full.KeepActivity, defaultKeepActivity)
	full.MaxActivity = cmp.Or(full.MaxActivity, defaultMaxActivity)
	if full.MaxFile == 0 {
		full.MaxFile = defaultMaxFile
	}
	if full.MaxFile < 0 || full.MaxFile > kernel.LargestFile {
		full.MaxFile = kernel.LargestFile
	}
	if err := full.checkObjects(); err != nil {
		return full, err
	}
	full.Hooks = slices.Clone(full.Hooks)
	if full.Logger == nil {
		full.Logger = slog.New(slog.DiscardHandler)
	}
	if full.Now == nil {
		full.Now = time.Now
	}
	if full.NewID == nil {
		full.NewID = func() string { return uuid.Must(uuid.NewV7()).String() }
	}
	return full, nil
}

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
	operator bool  // it is what Open returned
	sealed   bool  // see Sealed
	denied   error // why every call is refused; nil: they are not
}

// shared is the state common to all views of a store.
type shared struct {
	db       *db.Spanning
	batches  *batch.Queue[*sharing]    // nil: the engine shares commits by itself
	unshared batch.Quarantine[userKey] // users whose calls share no transaction for now
	embedder Embedder
	profile  int64 // row of the embedder's profile; 0 if a read-only file does not have it
	index    *retrieval.Cache
	filters  retrieval.Filters
	orders   retrieval.Orders
	tallies  retrieval.Tallies
	likely   retrieval.Likenesses
	graphs   retrieval.Derived[Graph]
	maps     retrieval.Derived[Map]
	doDonts  standing.DoDonts
	vectors  *embedding.Vectors
	worker   *embedding.Worker
	objects  *objects.Objects
	ring     *keyring.Ring    // nil: nothing is sealed under keys of users
	lent     bool             // by the context: who gave it closes it
	erased   atomic.Bool      // something was erased, and its traces must be removed now
	scrubbed time.Time        // when the worker last removed traces
	texts    *filetext.Worker // that reads files; not started without Options.Documents
	activity *activitylog.Log[waitingActivity]
	counts   activitylog.Counts
	users    sync.Map // userKey -> row; a deleted user's row stays
	uses     sync.Map // id of an MCP token or a session -> when this handle last noted its use
	hashing  passwords.Hasher
	oauth    oauthState
	log      *slog.Logger
	clock    func() time.Time
	newID    func() string
	maxFile  int64   // bytes
	options  Options // with defaults
	limited  kernel.KeptSettings[*Options]
	closing  sync.Once
	closed   error

	sharedUpdates atomic.Int64 // calls of UpdateShared
}

// applicationID marks a Souvenir file in the header of SQLite's file format: "Suvn".
const applicationID = 0x5375766e

// Open opens the store in a file, and creates the file if it does not exist; its folder must exist. ":memory:" makes a
// store that lives until Close and is private to it. Nil options mean the defaults.
//
// A file that is not a Souvenir store is ErrForeign, one of a newer version ErrNewer, a damaged one ErrCorrupt, one
// that needs another key ErrMasterKey, or other keys of users ErrUserKeys; none of them is touched. A file that may
// only be read is opened read-only.
func Open(ctx context.Context, path string, options *Options) (_ *Store, err error) {
	defer inGo[Options](&err, "path", "path")
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
		return nil, invalid("MasterKey", "{} is set, and encrypts files only; leave it out, and have the database encrypt "+
			"its disk")
	}
	engine, err := open(ctx, db.Opening{ReadOnly: o.ReadOnly, Readers: o.Readers, Logger: o.Logger, Now: o.Now,
		Fill: fills()})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, causedBy(err, newError(KindNotFound, "", "the database has no store: %v", err))
	case err != nil:
		return nil, wrap(err)
	}
	return newStore(ctx, engine, o)
}

// fills returns the functions that complete migrations, by their names.
func fills() map[string]func(db.Tx) error {
	return map[string]func(db.Tx) error{"project_names": naming.Fill, "turns": kernel.FillTurns,
		"user_ids": kernel.FillUserKeys}
}

// openFile opens the engine of a store in a file.
func openFile(ctx context.Context, path string, o Options) (db.DB, error) {
	switch {
	case path == "":
		return nil, invalid("path", `{} is empty; give the path of a file, or ":memory:"`)
	case path == ":memory:" && o.ReadOnly:
		return nil, invalid("ReadOnly",
			"{} is set with the path :memory:, a new store that has nothing to read; leave it out")
	}
	if err := checkPath("path", path); err != nil {
		return nil, err
	}
	config := fileConfig(path, o.Now)
	config.MasterKey = o.MasterKey
	config.ReadOnly, config.Readers, config.Logger, config.Reserve = o.ReadOnly, o.Readers, o.Logger, o.Reserve
	if keyring.Of(ctx) != nil || !o.UserKeys.MasterKey.IsZero() {
		config.Cache = keyring.Cache
	}
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
			db: &db.Spanning{DB: engine, Wrote: index.Wrote}, embedder: o.Embedder, log: o.Logger, clock: o.Now, newID: o.NewID,
			index: index, maxFile: o.MaxFile,
			hashing: make(passwords.Hasher, runtime.GOMAXPROCS(0)), options: o, ring: ring, lent: keyring.Of(ctx) != nil,
		},
		access: Access{User: LocalUser}, operator: true,
	}
	if s.ring != nil {
		s.db.Sealing = s.ring
	}
	s.index.DB = s.db
	if u, says := engine.(db.Ungrouped); says && u.Ungrouped() {
		s.batches = &batch.Queue[*sharing]{Run: s.storeBatch, Most: mostSharing}
		s.counts.Settles = 5 * time.Minute // transactions that record calls end within seconds
	}
	s.objects = &objects.Objects{Storage: o.Objects, DB: s.db, Now: s.now, Log: o.Logger}
	if f, tells := engine.(db.Follower); tells {
		s.index.Others = f.Follow
	}
	s.activity = activitylog.New(s.writeActivities, o.Logger)
	if err := s.startEmbedding(ctx); err != nil {
		_ = s.closeAll() // the first error is the one that counts
		return nil, wrap(err)
	}
	if err := s.indexMetadata(ctx); err != nil {
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

// fileConfig returns the configuration for opening the file of a store, including the upkeep of its hashes.
func fileConfig(path string, now func() time.Time) sqlite.Config {
	return sqlite.Config{
		Path:             path,
		ApplicationID:    applicationID,
		Migrations:       sqlite.Migrations(),
		Fill:             fills(),
		BeforeMigrations: kernel.MarkDamage,
		AfterMigrations:  func(tx db.Tx, version int) error { return kernel.MakeHashes(tx, version, now().UnixMicro()) },
		Prepare:          kernel.KeepHashes,
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
	if err := s.checkUnsealed("Close"); err != nil {
		return err
	}
	s.closing.Do(func() {
		s.texts.Stop()
		s.worker.Stop()
		s.index.Stop()
		s.activity.Stop()
		if err := s.ring.Note(context.Background(), s.db); err != nil {
			s.log.Warn("the store could not note how many keys of users there are", "error", err)
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
