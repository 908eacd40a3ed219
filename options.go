package souvenir

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/records/audit"
)

// The options of a store: as they are given to Open, as an admin changes some of them (settings), and as they apply
// (Configuration).

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

	// MasterKey encrypts the file, its log, its backups and its snapshots. An existing file must be encrypted with it,
	// else Open returns ErrMasterKey; [Reencrypt] encrypts an unencrypted store. The zero value means no encryption.
	// PostgreSQL refuses a key, and so does the driver in C; content in object storage is not encrypted by it.
	MasterKey MasterKey

	// MasterKeyNow returns the key. It is called before each backup, so that a running program notices when another one
	// has changed the key, and does not continue to make backups under the old one. A key that does not fit the file is
	// ignored, with a warning in the program's log. Nil means MasterKey.
	MasterKeyNow func(ctx context.Context) (MasterKey, error)

	// UserKeys seal each user's data under a key of the user's own, which is erased with the user. The zero value means
	// none; opening a store that has user keys without them is ErrUserKeys.
	UserKeys UserKeys

	// Readers is the number of searches and reads that may run at once; further ones wait. Zero means the number of
	// processors, at least 4. At most 1,000.
	Readers int

	// IndexMemory bounds the memory, in bytes, of the search index in memory. It holds the searched collections, by
	// project, and evicts the least recently searched first. If the data that a single search covers exceeds the limit,
	// or is still being loaded, the search runs on disk: with the same ranking, but slower. Zero means 1 GiB (about
	// 500,000 short memories of the built-in model); a negative value means no index in memory at all.
	IndexMemory int64

	// BackupEvery and KeepBackups are for a program that makes scheduled backups: the time between them, and how many it
	// keeps. The store makes none by itself: [Upkeep.Configuration] returns both, since admins may change them, in whole
	// hours. Zero means that the program makes none.
	BackupEvery time.Duration
	KeepBackups int

	// MaxFile is the maximum size of a file, in bytes. Zero means 100 MiB, a negative value no limit.
	MaxFile int64

	// Objects is object storage for the content of files, such as package s3's. Nil means none: the content is in the
	// database. A store whose files are there must be opened with it; without it, only reading these files is an error. A
	// copy of the store's file names the same objects: use it only with a copy of the objects, since an object that one
	// of the two deletes is gone for the other.
	Objects ObjectStorage

	// Documents reads the text of files, in the background, so that searches find them (Query.Documents). Nil means none:
	// new files wait until a program with a reader opens the store. Package documents has one.
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

	// Changeable are settings that [Upkeep.SetSetting] may change while the store is open. A changed value replaces
	// the option in each process that lists the setting here. Empty means none: the options apply.
	Changeable []SettingName

	// IndexedMetadata is the limit, in bytes of JSON, up to which a memory's metadata is indexed for a [Filter]: every
	// top-level key whose value is a string, a number, a boolean, or a list of these. Filters read longer metadata
	// memory by memory, which takes longer. Zero keeps the file's limit, which is 4,096 for a new file; a negative
	// value means no index. At most 65,536. Opening a file with a different limit rebuilds its index.
	IndexedMetadata int

	// Reserve is the size in bytes of a file beside the store (its name plus -reserve) that holds back disk space, so that
	// deleting works when the disk is full. Zero means none; at most 1 GiB. The file stays when the store is closed.
	Reserve int64

	// Hooks are called around the operations on memories, in this order; the After functions in reverse. Without hooks
	// there is no cost.
	Hooks []Hooks

	// Logger receives the progress and failures of background work. Its handler must not call the store, which may wait
	// for it. Nil means no logging.
	Logger *slog.Logger

	// Now returns the current time. Nil means time.Now. Tests set it for reproducible times. It must be safe for
	// concurrent use.
	Now func() time.Time

	// NewID returns the id for a new memory, project or file: 1 to 128 characters of UTF-8 on one line, without a slash,
	// and never one that it has returned before. The store does not check this. Nil means UUIDv7 (RFC 9562), which sorts
	// by creation time.
	NewID func() string
}

// Quota limits what one owner may store. A zero field means no limit. What a member stores into a project counts
// towards the project owner's quota. The trash may hold the same number of memories and past versions again: above
// that, nothing is stored until it has been emptied.
type Quota struct {
	Memories  int `json:"memories"`  // memories
	Revisions int `json:"revisions"` // past versions of memories; Purge removes old ones
	Items     int `json:"items"`     // collections, projects and files, each; including the trash
	// bytes of contents and metadata: current, past and in the trash; Options.FileQuota limits files
	Bytes int64 `json:"bytes"`
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
	if full.Embedder == nil {
		full.Embedder = Builtin()
	}
	guarded, err := guard(full.Embedder)
	if err != nil {
		return full, err
	}
	full.Embedder = guarded
	if err := full.check(); err != nil {
		return full, err
	}
	full.IndexMemory = cmp.Or(full.IndexMemory, defaultIndexMemory)
	full.KeepTrash = cmp.Or(full.KeepTrash, defaultKeepTrash)
	full.KeepActivity = cmp.Or(full.KeepActivity, defaultKeepActivity)
	full.MaxActivity = cmp.Or(full.MaxActivity, defaultMaxActivity)
	full.MaxFile = cmp.Or(full.MaxFile, defaultMaxFile)
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

// check checks the values of options, except the options about files.
func (o *Options) check() error {
	q := o.Quota
	for _, c := range []struct {
		bad             bool
		option, message string
		value           any
	}{
		{o.Readers < 0 || o.Readers > 1000, "Readers", "{} is %d; expected 0 (the default) to 1000", o.Readers},
		{o.Reranker != nil && isNil(o.Reranker), "Reranker",
			"the Reranker is a nil %T; give an initialized one, or nil for none", o.Reranker},
		{o.FileQuota < 0, "FileQuota", "{} is %d; expected a number of bytes, or 0 for no quota", o.FileQuota},
		{q.Memories < 0 || q.Revisions < 0 || q.Items < 0 || q.Bytes < 0, "Quota",
			"{} is %+v; expected 0 (no limit) or more", q},
		{o.IndexedMetadata > MaxMetadata, "IndexedMetadata", "{} is %d; expected at most 65,536 bytes, 0 for the " +
			"file's setting, or a negative value for no index", o.IndexedMetadata},
		{o.Reserve < 0 || o.Reserve > 1<<30, "Reserve", "{} is %d; expected 0 to 1,073,741,824 bytes", o.Reserve},
		{o.KeepActivity < 0 || o.KeepActivity > maxKeepActivity, "KeepActivity",
			"{} is %s; expected more than 0 and at most 100 years, or 0 for 30 days", o.KeepActivity},
		{o.MaxActivity < 0, "MaxActivity", "{} is %d; expected a number of calls, or 0 for 100,000", o.MaxActivity},
		{o.KeepTrash > maxKeepActivity, "KeepTrash",
			"{} is %s; expected at most 100 years, 0 for 30 days, or a negative value for no trash", o.KeepTrash},
		{o.BackupEvery < 0, "BackupEvery", "{} is %s; expected more than 0, or 0 for no backups", o.BackupEvery},
		{o.KeepBackups < 0, "KeepBackups", "{} is %d; expected a number of backups, or 0 for none", o.KeepBackups},
	} {
		if c.bad {
			return invalid(c.option, c.message, c.value)
		}
	}
	return cmp.Or(o.checkChangeable(), o.UserKeys.check())
}

// checkObjects checks the options about files, and fills in the default of NewFiles.
func (o *Options) checkObjects() error {
	if o.Objects != nil && isNil(o.Objects) {
		return invalid("Objects", "the ObjectStorage is a nil %T; give an initialized one, or nil for none",
			o.Objects)
	}
	if o.NewFiles == "" {
		o.NewFiles = InDatabase
		if o.Objects != nil {
			o.NewFiles = InObjects
		}
	}
	if err := o.checkDocuments(); err != nil {
		return err
	}
	return o.checkPlace("NewFiles", o.NewFiles)
}

// checkPlace refuses a place that the store does not have.
func (o *Options) checkPlace(argument string, place FilePlace) error {
	switch {
	case !slices.Contains([]FilePlace{InDatabase, InObjects}, place):
		return invalid(argument, "{} is %s; expected %s", show(string(place)), oneOf([]FilePlace{InDatabase, InObjects}))
	case place == InObjects && o.Objects == nil:
		return invalid(argument, "{} is %s, but there is no object storage; set Options.Objects", show(string(place)))
	}
	return nil
}

// Progress receives the progress of a long operation: stage names the current step, done of total are finished. It is
// called from the goroutine that does the work: it should return quickly and must not call the store. Done may go back
// when a part of the work runs again.
type Progress func(stage string, done, total int)

// SettingName names a setting of a store that can be changed while it is open.
type SettingName string

// The settings that [Options.Changeable] may list.
const (
	SettingMemories  SettingName = "memories"       // Quota.Memories
	SettingRevisions SettingName = "revisions"      // Quota.Revisions
	SettingItems     SettingName = "items"          // Quota.Items
	SettingBytes     SettingName = "bytes"          // Quota.Bytes
	SettingFileBytes SettingName = "file_bytes"     // Options.FileQuota, in bytes
	SettingTrash     SettingName = "trash_days"     // Options.KeepTrash, in days
	SettingActivity  SettingName = "activity_days"  // Options.KeepActivity, in days
	SettingCalls     SettingName = "activity_calls" // Options.MaxActivity
	SettingIndex     SettingName = "index_bytes"    // Options.IndexMemory
	SettingBackups   SettingName = "backup_hours"   // Options.BackupEvery, in hours
	SettingKept      SettingName = "backups_kept"   // Options.KeepBackups
)

// settingNames are all settings, in the order in which Settings returns them.
var settingNames = []SettingName{SettingMemories, SettingRevisions, SettingItems, SettingBytes, SettingFileBytes,
	SettingTrash, SettingActivity, SettingCalls, SettingIndex, SettingBackups, SettingKept}

// Setting is a setting that can be changed while the store is open.
type Setting struct {
	Name    SettingName `json:"name"`
	Value   int64       `json:"value"`   // a number, bytes or days; for quotas, 0 means no limit
	Default int64       `json:"default"` // the value of the option
	Changed bool        `json:"changed"` // by SetSetting
	Least   int64       `json:"least"`   // the least value allowed
	Most    int64       `json:"most"`
}

const dayLong = 24 * time.Hour

// Bounds of scheduled backups. They keep a few hasty backups from replacing all others within an afternoon, so that
// damage noticed days later is not in all of them.
const (
	leastBackups, mostBackups = 1, 31 * 24 // hours between two
	leastKept, mostKept       = 7, 1000
)

// leastIndex is the least memory of an index: with less, searches would load it again and again.
const leastIndex = 1 << 20

// number returns functions that read and write a setting in the options, in its unit, and its bounds.
func (o *Options) number(name SettingName) (get func() int64, set func(int64), least, most int64) {
	whole := func(n *int) (func() int64, func(int64), int64, int64) {
		return func() int64 { return int64(*n) }, func(v int64) { *n = int(v) }, 0, 1_000_000_000
	}
	days := func(d *time.Duration) (func() int64, func(int64), int64, int64) {
		return func() int64 { return int64(*d / dayLong) }, func(v int64) { *d = time.Duration(v) * dayLong }, 1,
			int64(maxKeepActivity / dayLong)
	}
	bytes := func(n *int64) (func() int64, func(int64), int64, int64) {
		return func() int64 { return *n }, func(v int64) { *n = v }, 0, 1 << 50
	}
	switch name {
	case SettingMemories:
		return whole(&o.Quota.Memories)
	case SettingRevisions:
		return whole(&o.Quota.Revisions)
	case SettingItems:
		return whole(&o.Quota.Items)
	case SettingBytes:
		return bytes(&o.Quota.Bytes)
	case SettingFileBytes:
		return bytes(&o.FileQuota)
	case SettingTrash:
		return days(&o.KeepTrash)
	case SettingActivity:
		return days(&o.KeepActivity)
	case SettingIndex:
		get, set, _, most = bytes(&o.IndexMemory)
		return get, set, leastIndex, most
	case SettingBackups:
		return func() int64 { return int64(o.BackupEvery / time.Hour) },
			func(v int64) { o.BackupEvery = time.Duration(v) * time.Hour }, leastBackups, mostBackups
	case SettingKept:
		get, set, _, _ = whole(&o.KeepBackups)
		return get, set, leastKept, mostKept
	}
	get, set, _, most = whole(&o.MaxActivity)
	return get, set, 1, most
}

// checkChangeable refuses unknown settings, and settings of a part that is turned off: it cannot be turned on later.
func (o *Options) checkChangeable() error {
	for _, name := range o.Changeable {
		if !slices.Contains(settingNames, name) {
			return invalid("Changeable", "{} lists %s; expected %s", show(string(name)), oneOf(settingNames))
		}
		if name == SettingTrash && o.KeepTrash < 0 {
			return invalid("Changeable", "{} lists %s, but KeepTrash turns the trash off", show(string(name)))
		}
		if name == SettingIndex && o.IndexMemory < 0 {
			return invalid("Changeable", "{} lists %s, but IndexMemory turns the index off", show(string(name)))
		}
	}
	return nil
}

// limits returns the options with the changed settings.
func (s *shared) limits(tx db.Tx) (*Options, error) {
	if len(s.options.Changeable) == 0 {
		return &s.options, nil
	}
	o, err := s.limited.Get(tx, s.now(), func(changed map[string]int64) *Options {
		o := s.options
		for _, name := range o.Changeable {
			if value, is := changed[string(name)]; is {
				_, set, least, most := o.number(name)
				set(min(max(value, least), most))
			}
		}
		return &o
	})
	if err == nil {
		s.index.SetLimit(o.IndexMemory)
	}
	return o, err
}

// Settings returns the settings that [Options.Changeable] lists. It is for the Store that Open returned; a view
// gets ErrForbidden.
func (h *Upkeep) Settings(ctx context.Context) (all []Setting, err error) {
	s, err := h.operator(ctx, "Settings")
	if err != nil {
		return nil, err
	}
	err = s.read(ctx, func(tx db.Tx, _ viewer) error {
		changed, err := kernel.ChangedSettings(tx)
		for _, name := range settingNames {
			if !slices.Contains(s.options.Changeable, name) {
				continue
			}
			get, _, least, most := s.options.number(name)
			one := Setting{Name: name, Value: get(), Default: get(), Least: least, Most: most}
			if value, is := changed[string(name)]; is {
				one.Value, one.Changed = value, true
			}
			all = append(all, one)
		}
		return err
	})
	return all, err
}

// SetSetting changes a setting that [Options.Changeable] lists, for all processes: others follow within ten seconds.
// Nil restores the value of the option. Lower quotas delete nothing: a user above the quota can store nothing new.
// Calls that are too old or too many are deleted when the next ones are recorded; entries already in the trash keep
// their expiry. The search index frees memory with the next search. It is for the Store that Open returned; a view gets
// ErrForbidden.
func (h *Upkeep) SetSetting(ctx context.Context, name SettingName, value *int64) error {
	s, err := h.operator(ctx, "SetSetting")
	if err != nil {
		return err
	}
	if !slices.Contains(s.options.Changeable, name) {
		return invalid("name", "{} is %s; expected one of %s", show(string(name)),
			cmp.Or(oneOf(s.options.Changeable), "nothing"))
	}
	if _, _, least, most := s.options.number(name); value != nil && (*value < least || *value > most) {
		return invalid(string(name), "{} is %d; expected %d to %d", *value, least, most)
	}
	err = s.write(ctx, func(tx db.Tx, _ viewer) error {
		err := kernel.ChangeSetting(tx, string(name), value)
		return s.note(ctx, tx, err, event{"setting.change", "setting", string(name), audit.Details{"value": value}})
	})
	s.limited.Forget()
	return err
}

// Configuration describes how a store works: the options passed to Open, with their defaults, and what they apply to.
type Configuration struct {
	Path       string `json:"path"`       // absolute path of the file; ":memory:" for none; "" for a store not in a file
	ReadOnly   bool   `json:"read_only"`  // the file is never written to
	Engine     string `json:"engine"`     // the storage engine and its version
	Model      string `json:"model"`      // of the embedder
	Dimensions int    `json:"dimensions"` // of its vectors

	IndexMemory  int64         `json:"index_memory"` // bytes; negative: no index in memory
	MaxFile      int64         `json:"max_file"`     // bytes of a file
	FileQuota    int64         `json:"file_quota"`   // bytes of all files of an owner; 0: no quota
	NewFiles     FilePlace     `json:"new_files"`    // where the content of new files goes
	Quota        Quota         `json:"quota"`        // of memories
	KeepActivity time.Duration `json:"keep_activity"`
	MaxActivity  int           `json:"max_activity"` // recorded calls
	KeepTrash    time.Duration `json:"keep_trash"`   // negative: no trash, deletions are permanent
	BackupEvery  time.Duration `json:"backup_every"` // 0: the program makes no scheduled backups
	KeepBackups  int           `json:"keep_backups"`
}

// Configuration returns the store's configuration. It is for the Store that Open returned; a view gets ErrForbidden.
func (h *Upkeep) Configuration(ctx context.Context) (Configuration, error) {
	s, err := h.operator(ctx, "Configuration")
	if err != nil {
		return Configuration{}, err
	}
	o := &s.options
	if err := s.read(ctx, func(tx db.Tx, _ viewer) (err error) { // an error on a closed store
		o, err = s.limits(tx)
		return err
	}); err != nil {
		return Configuration{}, err
	}
	c := Configuration{
		Path: s.db.Upkeep().Path, Engine: s.db.Upkeep().Name, ReadOnly: s.db.ReadOnly(),
		Model: s.embedder.Model(), Dimensions: s.embedder.Dimensions(),
		IndexMemory: o.IndexMemory, MaxFile: o.MaxFile, FileQuota: o.FileQuota, NewFiles: o.NewFiles, Quota: o.Quota,
		KeepActivity: o.KeepActivity, MaxActivity: o.MaxActivity,
		KeepTrash: o.KeepTrash, BackupEvery: o.BackupEvery, KeepBackups: o.KeepBackups,
	}
	if s.db.Upkeep().InFile() {
		absolute, err := filepath.Abs(c.Path)
		if err != nil {
			return Configuration{}, wrap(err)
		}
		c.Path = absolute
	}
	return c, nil
}

// RecordConfiguration adds the store's configuration to the audit log, unless it has not changed since it was last
// added. A server calls it when it starts.
//
// It is for the Store that Open returned; a view gets ErrForbidden. On a read-only store it is ErrReadOnly.
func (h *Upkeep) RecordConfiguration(ctx context.Context) error {
	s, err := h.operator(ctx, "RecordConfiguration")
	if err == nil {
		err = s.checkWritable()
	}
	if err != nil {
		return err
	}
	c, err := h.Configuration(ctx)
	if err != nil {
		return err
	}
	e := event{"configuration", "store", "", audit.Details{"model": audit.ID("model", c.Model), "dimensions": c.Dimensions,
		"index_memory": c.IndexMemory, "max_file": c.MaxFile, "file_quota": c.FileQuota, "new_files": c.NewFiles,
		"quota": c.Quota, "keep_activity": c.KeepActivity.String(), "max_activity": c.MaxActivity,
		"keep_trash": c.KeepTrash.String()}}
	return s.writeStore(ctx, func(tx db.Tx) error {
		encoded, err := json.Marshal(e.details)
		if err != nil {
			return err
		}
		before := ""
		err = audit.Each(tx, func(last audit.Entry) error {
			before = last.Canonical
			return nil
		}, `a.action = ? ORDER BY a.id DESC LIMIT 1`, e.action)
		if before == string(encoded) {
			return err
		}
		return s.note(ctx, tx, err, e)
	})
}
