package souvenir

import (
	"context"

	"github.com/souvenir-ai/souvenir/internal/sqlite"
)

// Quota bounds what one owner may store. A field that is zero bounds nothing. What a member stores into a project counts
// for the project's owner.
type Quota struct {
	Memories  int   `json:"memories"`  // memories
	Revisions int   `json:"revisions"` // past versions of memories; Purge removes old ones
	Bytes     int64 `json:"bytes"`     // bytes of contents and metadata, present, past and in the trash; files are bounded by Options.FileQuota
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
func (s *Store) Usage(ctx context.Context) (Usage, error) {
	if err := s.checkAccount("Usage"); err != nil {
		return Usage{}, err
	}
	u := Usage{Quota: s.options.Quota, FileQuota: s.options.FileQuota}
	err := s.read(ctx, func(tx *sqlite.Tx, sc scope) (err error) {
		if u.Memories, u.Revisions, u.Bytes, err = used(tx, sc.user); err != nil {
			return err
		}
		return tx.QueryRow(`SELECT ifnull(sum(size), 0) FROM file WHERE owner_id = ? AND state IN ('arriving', 'stored', 'trashed')`, sc.user).Scan(&u.FileBytes)
	})
	return u, err
}

// used counts what lies in the collections of an owner, by row; of bytes also those in the trash.
func used(tx *sqlite.Tx, owner int64) (memories, revisions int, bytes int64, err error) {
	err = tx.QueryRow(`SELECT ifnull(sum(p.memories), 0), ifnull(sum(p.revisions), 0),
			ifnull(sum(p.bytes), 0) + (SELECT ifnull(sum(size), 0) FROM trash WHERE owner_id = ?1 AND kind <> 'file')
		FROM collection c JOIN partition p ON p.collection_id = c.id WHERE c.owner_id = ?1`, owner).Scan(&memories, &revisions, &bytes)
	return memories, revisions, bytes, err
}

// checkQuota refuses a transaction that has stored more than the owners of some partitions may.
func (w *memoryWriter) checkQuota() error {
	quota := w.store.options.Quota
	if len(w.grown) == 0 || quota == (Quota{}) {
		return nil
	}
	checked := map[int64]bool{}
	for partition := range w.grown {
		owners, err := sqlite.Column[int64](w.tx, `SELECT c.owner_id FROM partition p JOIN collection c ON c.id = p.collection_id WHERE p.id = ?`, partition)
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
	whose := "your quota"
	if owner != w.sc.user {
		whose = "the quota of the project's owner"
	}
	switch {
	case quota.Memories > 0 && memories > quota.Memories:
		return newError(KindTooLarge, "content", "this would make %d memories, and %s is %d; delete some first", memories, whose, quota.Memories)
	case quota.Revisions > 0 && revisions > quota.Revisions:
		return newError(KindTooLarge, "content", "this would make %d past versions of memories, and %s is %d; delete memories that have many, or ask for old versions to be purged",
			revisions, whose, quota.Revisions)
	case quota.Bytes > 0 && bytes > quota.Bytes:
		return newError(KindTooLarge, "content", "with this, memories and their past versions would take %d bytes, what is in the trash included, and %s is %d; delete some first, and empty the trash", bytes, whose, quota.Bytes)
	}
	return nil
}

// grow notes that more lies in a partition than before.
func (w *memoryWriter) grow(partition int64) {
	if w.grown == nil {
		w.grown = map[int64]bool{}
	}
	w.grown[partition] = true
}
