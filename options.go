package souvenir

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Options change how [Open] works. The zero value of each field, and a nil *Options, mean the default named there.
type Options struct {
	// Embedder turns texts into vectors. Nil means [Builtin]: offline, no key, no download. A nil pointer or function in
	// it is ErrInvalid.
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

	// KeepActivity is how long calls that [Upkeep.RecordActivity] has recorded are kept. Zero means 30 days. At most 100
	// years.
	KeepActivity time.Duration

	// MaxActivity is how many of them are kept. Zero means 100,000.
	MaxActivity int

	// KeepTrash is how long what was deleted can be restored. Zero means 30 days; a negative value means no trash:
	// deletions are for good. At most 100 years. What is in the trash keeps the time that it was given.
	KeepTrash time.Duration

	// Reserve is how many bytes a file beside the store (its name with -reserve behind) holds back, so that something can
	// be deleted when the disk is full. Zero means none; at most 1 GiB. The file stays when the store is closed.
	Reserve int64

	// Logger hears about background work and what it could not do. Nil means silence.
	Logger *slog.Logger

	// Now tells the time. Nil means time.Now. Tests set it to have the same times in each run. It is called from several
	// goroutines at once.
	Now func() time.Time

	// NewID makes the id of a new memory, project or file. Nil means UUIDv7 (RFC 9562), whose order is the order of
	// creation.
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

// Quota bounds what one owner may store. A field that is zero bounds nothing. What a member stores into a project
// counts for the project's owner. The trash may hold as many memories and past versions again: past that, nothing is
// stored until it has been emptied.
type Quota struct {
	Memories  int `json:"memories"`  // memories
	Revisions int `json:"revisions"` // past versions of memories; Purge removes old ones
	Items     int `json:"items"`     // collections, projects and files, of each of them; with those in the trash
	// bytes of contents and metadata, present, past and in the trash; files are bounded by Options.FileQuota
	Bytes int64 `json:"bytes"`
}

// Usage is what one owner has stored, and how much that may be.
type Usage struct {
	Memories  int   `json:"memories"`
	Revisions int   `json:"revisions"`  // past versions of memories
	Bytes     int64 `json:"bytes"`      // of contents and metadata, present, past and in the trash
	FileBytes int64 `json:"file_bytes"` // of files, those being stored and those in the trash included

	Quota     Quota `json:"-"` // zero fields: no bound
	FileQuota int64 `json:"-"` // bytes; zero: no bound
}

// Usage returns what lies in the collections of the view's user, and the quota. A view limited to projects gets
// ErrForbidden.
func (h *Insights) Usage(ctx context.Context) (Usage, error) {
	s, err := h.own("Usage")
	if err != nil {
		return Usage{}, err
	}
	u := Usage{Quota: s.options.Quota, FileQuota: s.options.FileQuota}
	err = s.read(ctx, func(tx db.Tx, sc scope) (err error) {
		if u.Memories, u.Revisions, u.Bytes, err = used(tx, sc.user); err != nil {
			return err
		}
		return tx.QueryRow(`SELECT coalesce(sum(size), 0) FROM file WHERE owner_id = ? AND state IN ('arriving', 'stored', 'trashed')`, sc.user).Scan(&u.FileBytes)
	})
	return u, err
}

// used counts what lies in the collections of an owner, by row; of bytes also those in the trash.
func used(tx db.Tx, owner int64) (memories, revisions int, bytes int64, err error) {
	err = tx.QueryRow(`SELECT coalesce(sum(p.memories), 0), coalesce(sum(p.revisions), 0),
			coalesce(sum(p.bytes), 0) + (SELECT coalesce(sum(size), 0) FROM trash WHERE owner_id = ?1 AND kind <> 'file')
		FROM collection c JOIN partition p ON p.collection_id = c.id WHERE c.owner_id = ?1`, owner).Scan(&memories,
		&revisions, &bytes)
	return memories, revisions, bytes, err
}

// checkQuota refuses a transaction that has stored more than the owners of some partitions may.
func (w *memoryWriter) checkQuota() error {
	quota := w.store.options.Quota
	quota.Items = 0 // is looked at where one is added
	if len(w.grown) == 0 || quota == (Quota{}) {
		return nil
	}
	checked := map[int64]bool{}
	for partition := range w.grown {
		owners, err := db.Column[int64](w.tx,
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
	memories, revisions, bytes, err := used(w.tx, owner)
	if err != nil {
		return err
	}
	if w.restoring { // what is in the trash has counted for the bytes
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
	if owner != w.sc.user { // how much the owner has stored elsewhere is not for members to know
		return newError(KindTooLarge, "content",
			"the owner of this project has no room for more %s; ask for some, or delete what the project no longer needs", what)
	}
	argument := "content"
	if w.restoring {
		argument = "id"
	}
	return newError(KindTooLarge, argument, "with this there would be %d %s, and your quota is %d; delete some first",
		held, what, most)
}

// checkTrashRoom refuses to store while the owner's trash holds more than the quota: otherwise storing and deleting in
// turn would fill the disk.
func (w *memoryWriter) checkTrashRoom(quota Quota, owner int64) error {
	var memories, revisions int
	err := w.tx.QueryRow(`SELECT coalesce(sum(memories), 0), coalesce(sum(revisions), 0) FROM trash WHERE owner_id = ?`,
		owner).
		Scan(&memories, &revisions)
	switch {
	case err != nil:
		return err
	case (quota.Memories == 0 || memories <= quota.Memories) && (quota.Revisions == 0 || revisions <= quota.Revisions):
		return nil
	case owner != w.sc.user:
		return newError(KindTooLarge, "content", "the trash of this project's owner is full; ask for it to be emptied")
	}
	return newError(KindTooLarge, "content",
		"the trash holds %d memories and %d past versions, and your quota is %d and %d; empty the trash, or erase some of it, first",
		memories, revisions, quota.Memories, quota.Revisions)
}

// checkItems refuses one more collection, project or file of an owner.
func (s *shared) checkItems(tx db.Tx, sc scope, kind TrashKind, owner int64) error {
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
	if owner != sc.user {
		return newError(KindTooLarge, arguments[kind], "the owner of this project has no room for more %ss", kind)
	}
	return newError(KindTooLarge, arguments[kind],
		"with this there would be %d %ss, those in the trash included, and your quota is %d; delete some, and empty the trash, first",
		held, kind, most)
}

// grow notes that more lies in a partition than before.
func (w *memoryWriter) grow(partition int64) {
	if w.grown == nil {
		w.grown = map[int64]bool{}
	}
	w.grown[partition] = true
}
