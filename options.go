package souvenir

import (
	"cmp"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// Options change how [Open] works. The zero value of a field means its documented default; a nil *Options means all
// defaults.
type Options struct {
	// Embedder turns texts into vectors. Nil means [Builtin]: offline, no key, no download. An interface that holds a nil
	// pointer or function is ErrInvalid.
	Embedder Embedder

	// Reranker orders the best hits of searches again. Nil means none.
	Reranker Reranker

	// ReadOnly opens the file without ever writing to it; every write returns ErrReadOnly. False means read and write, or
	// read-only if the file's permissions allow only that.
	ReadOnly bool

	// Readers is the number of searches and reads that may run at once; further ones wait. Zero means the number of
	// processors, at least 4. At most 1,000.
	Readers int

	// IndexMemory bounds the memory, in bytes, of the in-memory search index. Above it, and while a large index is still
	// loading, search runs on disk: the same ranking, but slower. Zero means 1 GiB (about 500,000 short memories of the
	// built-in model); a negative value means no index in memory at all.
	IndexMemory int64

	// MaxFile is the maximum size of a file, in bytes. Zero means 100 MiB, a negative value no limit.
	MaxFile int64

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

	// IndexedMetadata is how long the metadata of a memory may be, in bytes as JSON, for a [Filter] to find it by an
	// index: by any key at the top, whose value is a text, a number or a boolean, or a list of these. Filters read longer
	// metadata, which takes longer. Zero means what the file has, which is 4,096 when it is created; a negative value
	// means no index. At most 65,536. Opening a file with another length than it has makes its index again.
	IndexedMetadata int

	// Reserve is the size in bytes of a file beside the store (its name plus -reserve) that holds back disk space, so that
	// deleting works when the disk is full. Zero means none; at most 1 GiB. The file stays when the store is closed.
	Reserve int64

	// Hooks are called around the operations on memories, in this order; the After functions in the reverse one. None
	// means no cost.
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
		return full, invalid("Readers", "Readers is %d; 0 (the default) to 1000 are allowed", full.Readers)
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
		return full, invalid("FileQuota", "FileQuota is %d; a number of bytes is expected, or 0 for no quota", full.FileQuota)
	}
	if q := full.Quota; q.Memories < 0 || q.Revisions < 0 || q.Items < 0 || q.Bytes < 0 {
		return full, invalid("Quota", "Quota is %+v; numbers of 0 (no bound) or more are expected", q)
	}
	if full.IndexedMetadata > MaxMetadata {
		return full, invalid("IndexedMetadata", "IndexedMetadata is %d; at most 65,536 bytes are allowed, 0 means what the "+
			"file has, and a negative value no index", full.IndexedMetadata)
	}
	if full.Reserve < 0 || full.Reserve > 1<<30 {
		return full, invalid("Reserve", "Reserve is %d; 0 to 1,073,741,824 bytes are allowed", full.Reserve)
	}
	if full.KeepActivity < 0 || full.KeepActivity > maxKeepActivity {
		return full, invalid("KeepActivity",
			"KeepActivity is %s; more than 0 and at most 100 years are allowed, or 0 for 30 days", full.KeepActivity)
	}
	if full.MaxActivity < 0 {
		return full, invalid("MaxActivity", "MaxActivity is %d; a number of calls is expected, or 0 for 100,000",
			full.MaxActivity)
	}
	if full.KeepTrash > maxKeepActivity {
		return full, invalid("KeepTrash",
			"KeepTrash is %s; at most 100 years are allowed, 0 means 30 days, and a negative value no trash", full.KeepTrash)
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
