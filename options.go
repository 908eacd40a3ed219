package souvenir

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/google/uuid"
)

// Options change how [Open] works. The zero value of each field, and a nil *Options, mean the default named there.
type Options struct {
	// Embedder turns texts into vectors. Nil means [Builtin]: offline, no key, no download. A nil pointer or function in it is
	// ErrInvalid.
	Embedder Embedder

	// ReadOnly opens the file without ever writing to it; every write gives ErrReadOnly. False means read and write,
	// or read-only if the file's permissions allow no more.
	ReadOnly bool

	// Readers is the number of searches and reads that may run at the same moment; more wait their turn.
	// Zero means the number of processors, at least 4. At most 1,000.
	Readers int

	// IndexMemory bounds the memory, in bytes, of the search index that is held beside the file. Past it, and while a
	// large index is still loading, search runs on disk: the same ranking, more slowly. Zero means 1 GiB (about
	// 500,000 short memories of the built-in model); a negative value means no index in memory at all.
	IndexMemory int64

	// MaxFile is the most bytes that a file may have. Zero means 100 MiB, a negative value no limit.
	MaxFile int64

	// FileQuota is the most bytes that all files of one owner may have together. Zero means no quota. What is being stored
	// counts, and what is in the trash; what a crash left unfinished does so for 24 hours.
	FileQuota int64

	// Quota bounds the memories of each owner. The zero value bounds nothing; imports are never bounded.
	Quota Quota

	// KeepActivity is how long calls that [Upkeep.RecordActivity] has recorded are kept. Zero means 30 days. At most 100 years.
	KeepActivity time.Duration

	// MaxActivity is how many of them are kept. Zero means 100,000.
	MaxActivity int

	// KeepTrash is how long what was deleted can be restored. Zero means 30 days; a negative value means no trash: deletions are
	// for good. At most 100 years. What is in the trash keeps the time that it was given.
	KeepTrash time.Duration

	// Reserve is how many bytes a file beside the store (its name with -reserve behind) holds back, so that something can be deleted when the disk
	// is full. Zero means none; at most 1 GiB. The file stays when the store is closed.
	Reserve int64

	// Logger hears about background work and what it could not do. Nil means silence.
	Logger *slog.Logger

	// Now tells the time. Nil means time.Now. Tests set it to have the same times in each run. It is called from several
	// goroutines at once.
	Now func() time.Time

	// NewID makes the id of a new memory, project or file. Nil means UUIDv7 (RFC 9562), whose order is the order of creation.
	NewID func() string
}

const (
	defaultIndexMemory = 1 << 30
	defaultMaxFile     = 100 << 20
	maxKeepActivity    = 100 * 365 * 24 * time.Hour
	defaultKeepTrash   = 30 * 24 * time.Hour
)

// withDefaults returns a copy in which no field is zero, or says which field is wrong.
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
	if full.IndexMemory == 0 {
		full.IndexMemory = defaultIndexMemory
	}
	if full.FileQuota < 0 {
		return full, invalid("FileQuota", "FileQuota is %d; a number of bytes is expected, or 0 for no quota", full.FileQuota)
	}
	if q := full.Quota; q.Memories < 0 || q.Revisions < 0 || q.Items < 0 || q.Bytes < 0 {
		return full, invalid("Quota", "Quota is %+v; numbers of 0 (no bound) or more are expected", q)
	}
	if full.Reserve < 0 || full.Reserve > 1<<30 {
		return full, invalid("Reserve", "Reserve is %d; 0 to 1,073,741,824 bytes are allowed", full.Reserve)
	}
	if full.KeepActivity < 0 || full.KeepActivity > maxKeepActivity {
		return full, invalid("KeepActivity", "KeepActivity is %s; more than 0 and at most 100 years are allowed, or 0 for 30 days", full.KeepActivity)
	}
	if full.MaxActivity < 0 {
		return full, invalid("MaxActivity", "MaxActivity is %d; a number of calls is expected, or 0 for 100,000", full.MaxActivity)
	}
	if full.KeepTrash > maxKeepActivity {
		return full, invalid("KeepTrash", "KeepTrash is %s; at most 100 years are allowed, 0 means 30 days, and a negative value no trash", full.KeepTrash)
	}
	full.KeepTrash = cmp.Or(full.KeepTrash, defaultKeepTrash)
	full.KeepActivity = cmp.Or(full.KeepActivity, defaultKeepActivity)
	full.MaxActivity = cmp.Or(full.MaxActivity, defaultMaxActivity)
	if full.MaxFile == 0 {
		full.MaxFile = defaultMaxFile
	}
	if full.MaxFile < 0 || full.MaxFile > largestFile {
		full.MaxFile = largestFile
	}
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
