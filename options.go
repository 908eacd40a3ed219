package souvenir

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// Options change how [Open] works. The zero value of a field means its documented default; a nil *Options means all
// defaults.
type Options struct {
	// Embedder turns texts into vectors. Nil means [Builtin]: offline, no key, no download. An interface that holds a nil
	// pointer or function is ErrInvalid.
	Embedder Embedder

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

	// Reserve is the size in bytes of a file beside the store (its name plus -reserve) that holds back disk space, so that
	// deleting works when the disk is full. Zero means none; at most 1 GiB. The file stays when the store is closed.
	Reserve int64

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

// Usage is what one owner has stored, and the owner's quota.
type Usage struct {
	Memories  int   `json:"memories"`
	Revisions int   `json:"revisions"`  // past versions of memories
	Bytes     int64 `json:"bytes"`      // of contents and metadata: current, past and in the trash
	FileBytes int64 `json:"file_bytes"` // of files, including uploads in progress and the trash

	Quota     Quota `json:"-"` // zero fields: no limit
	FileQuota int64 `json:"-"` // bytes; zero: no limit
}

// Usage returns the usage of the view's user, counted in the user's collections, and the quota. A view limited to
// projects gets ErrForbidden.
func (h *Insights) Usage(ctx context.Context) (Usage, error) {
	s, err := h.own("Usage")
	if err != nil {
		return Usage{}, err
	}
	u := Usage{Quota: s.options.Quota, FileQuota: s.options.FileQuota}
	err = s.read(ctx, func(tx db.Tx, v viewer) (err error) {
		if u.Memories, u.Revisions, u.Bytes, err = used(tx, v.User); err != nil {
			return err
		}
		return tx.QueryRow(`SELECT coalesce(sum(size), 0) FROM file WHERE owner_id = ? `+
			`AND state IN ('arriving', 'stored', 'trashed')`, v.User).Scan(&u.FileBytes)
	})
	return u, err
}

// used counts the contents of an owner's collections (owner is a row); bytes include the trash.
func used(tx db.Tx, owner int64) (memories, revisions int, bytes int64, err error) {
	err = tx.QueryRow(`SELECT coalesce(sum(p.memories), 0), coalesce(sum(p.revisions), 0),
			coalesce(sum(p.bytes), 0) + (SELECT coalesce(sum(size), 0) FROM trash WHERE owner_id = ?1 AND kind <> 'file')
		FROM collection c JOIN partition p ON p.collection_id = c.id WHERE c.owner_id = ?1`, owner).Scan(&memories,
		&revisions, &bytes)
	return memories, revisions, bytes, err
}

// checkQuota refuses a transaction that exceeds the quota of an owner whose partitions it has grown.
func (w *memoryWriter) checkQuota() error {
	quota := w.store.options.Quota
	quota.Items = 0 // checked where an item is added
	if len(w.grown) == 0 || quota == (Quota{}) {
		return nil
	}
	checked := map[int64]bool{}
	for partition := range w.grown {
		owners, err := db.Column[int64](w.Tx,
			`SELECT c.owner_id FROM partition p JOIN collection c ON c.id = p.collection_id WHERE p.id = ?`, partition)
		if err != nil {
			return err
		}
		if len(owners) == 0 || checked[owners[0]] {
			continue
		}
		checked[owners[0]] = true
		if err := w.checkOwnersQuota(quota, owners[0]); err != nil {
			return err
		}
	}
	return nil
}

func (w *memoryWriter) checkOwnersQuota(quota Quota, owner int64) error {
	memories, revisions, bytes, err := used(w.Tx, owner)
	if err != nil {
		return err
	}
	if w.restoring { // bytes in the trash already counted
		quota.Bytes = 0
	} else if err := w.checkTrashRoom(quota, owner); err != nil {
		return err
	}
	var what string
	var held, most int64
	switch {
	case quota.Memories > 0 && memories > quota.Memories:
		what, held, most = "memories", int64(memories), int64(quota.Memories)
	case quota.Revisions > 0 && revisions > quota.Revisions:
		what, held, most = "past versions of memories", int64(revisions), int64(quota.Revisions)
	case quota.Bytes > 0 && bytes > quota.Bytes:
		what, held, most = "bytes in memories and their past versions", bytes, quota.Bytes
	default:
		return nil
	}
	if owner != w.Viewer.User { // members must not learn how much the owner has stored elsewhere
		return newError(KindTooLarge, "content",
			"the owner of this project has no quota left for more %s; ask for more, or delete what the project no longer needs",
			what)
	}
	argument := "content"
	if w.restoring {
		argument = "id"
	}
	return newError(KindTooLarge, argument, "with this there would be %d %s, and your quota is %d; delete some first",
		held, what, most)
}

// checkTrashRoom refuses to store while the owner's trash holds more than the quota: otherwise alternately storing and
// deleting would fill the disk.
func (w *memoryWriter) checkTrashRoom(quota Quota, owner int64) error {
	var memories, revisions int
	err := w.Tx.QueryRow(`SELECT coalesce(sum(memories), 0), coalesce(sum(revisions), 0) FROM trash WHERE owner_id = ?`,
		owner).
		Scan(&memories, &revisions)
	switch {
	case err != nil:
		return err
	case (quota.Memories == 0 || memories <= quota.Memories) && (quota.Revisions == 0 || revisions <= quota.Revisions):
		return nil
	case owner != w.Viewer.User:
		return newError(KindTooLarge, "content", "the trash of this project's owner is full; ask for it to be emptied")
	}
	return newError(KindTooLarge, "content",
		"the trash holds %d memories and %d past versions, and your quota is %d and %d; empty the trash, or erase some of "+
			"it, first",
		memories, revisions, quota.Memories, quota.Revisions)
}

// checkItems refuses one more collection, project or file of an owner.
func (s *shared) checkItems(tx db.Tx, v viewer, kind TrashKind, owner int64) error {
	most := s.options.Quota.Items
	if most == 0 {
		return nil
	}
	counts := map[TrashKind]string{
		TrashCollection: `SELECT (SELECT count(*) FROM collection WHERE owner_id = ?1)
			+ (SELECT count(*) FROM trash WHERE owner_id = ?1 AND kind = 'collection')`,
		TrashProject: `SELECT (SELECT count(*) FROM project WHERE owner_id = ?1)
			+ (SELECT count(*) FROM trash WHERE owner_id = ?1 AND kind = 'project')`,
		TrashFile: `SELECT count(*) FROM file WHERE owner_id = ?1 AND state IN ('arriving', 'stored', 'trashed')`,
	}
	arguments := map[TrashKind]string{TrashCollection: "collection_name", TrashProject: "project_name", TrashFile: "file"}
	var held int
	if err := tx.QueryRow(counts[kind], owner).Scan(&held); err != nil || held <= most {
		return err
	}
	if owner != v.User {
		return newError(KindTooLarge, arguments[kind], "the owner of this project has no quota left for more %ss", kind)
	}
	return newError(KindTooLarge, arguments[kind],
		"with this there would be %d %ss, those in the trash included, and your quota is %d; delete some, and empty the "+
			"trash, first",
		held, kind, most)
}

// grow records that a partition holds more than before.
func (w *memoryWriter) grow(partition int64) {
	if w.grown == nil {
		w.grown = map[int64]bool{}
	}
	w.grown[partition] = true
}
