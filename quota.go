package souvenir

import (
	"context"

	"github.com/souvenir-ai/souvenir/internal/db"
)

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

// Usage counts an owner's stored items and bytes, with the owner's quota.
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
	var u Usage
	err = s.read(ctx, func(tx db.Tx, v viewer) (err error) {
		o, err := s.limits(tx)
		if err != nil {
			return err
		}
		u.Quota, u.FileQuota = o.Quota, o.FileQuota
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
	err = db.Beyond(tx, func() error {
		return tx.QueryRow(`SELECT coalesce(sum(p.memories), 0), coalesce(sum(p.revisions), 0),
				coalesce(sum(p.bytes), 0) + (SELECT coalesce(sum(size), 0) FROM trash WHERE owner_id = ?1 AND kind <> 'file')
			FROM collection c JOIN partition p ON p.collection_id = c.id WHERE c.owner_id = ?1 AND c.name <> ''`, owner).
			Scan(&memories, &revisions, &bytes)
	})
	return memories, revisions, bytes, err
}

// checkQuota refuses a transaction that exceeds the quota of an owner whose partitions it has grown.
func (w *memoryWriter) checkQuota() error {
	if len(w.grown) == 0 {
		return nil
	}
	o, err := w.store.limits(w.Tx)
	if err != nil {
		return err
	}
	quota := o.Quota
	quota.Items = 0 // checked where an item is added
	if quota == (Quota{}) {
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
	err := db.Beyond(w.Tx, func() error {
		return w.Tx.QueryRow(`SELECT coalesce(sum(memories), 0), coalesce(sum(revisions), 0) FROM trash WHERE owner_id = ?`,
			owner).Scan(&memories, &revisions)
	})
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
	o, err := s.limits(tx)
	if err != nil || o.Quota.Items == 0 {
		return err
	}
	most := o.Quota.Items
	counts := map[TrashKind]string{
		TrashCollection: `SELECT (SELECT count(*) FROM collection WHERE owner_id = ?1 AND name <> '')
			+ (SELECT count(*) FROM trash WHERE owner_id = ?1 AND kind = 'collection')`,
		TrashProject: `SELECT (SELECT count(*) FROM project WHERE owner_id = ?1)
			+ (SELECT count(*) FROM trash WHERE owner_id = ?1 AND kind = 'project')`,
		TrashFile: `SELECT count(*) FROM file WHERE owner_id = ?1 AND state IN ('arriving', 'stored', 'trashed')`,
	}
	arguments := map[TrashKind]string{TrashCollection: "collection_name", TrashProject: "project_name", TrashFile: "file"}
	var held int
	err = db.Beyond(tx, func() error { return tx.QueryRow(counts[kind], owner).Scan(&held) })
	if err != nil || held <= most {
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

// checkFileQuota refuses a write that takes an owner's files, including the bytes just written, over the quota.
func (s *Store) checkFileQuota(tx db.Tx, v viewer, owner, size int64) error {
	o, err := s.limits(tx)
	if err != nil || o.FileQuota == 0 {
		return err
	}
	var all int64
	err = db.Beyond(tx, func() error {
		return tx.QueryRow(`SELECT coalesce(sum(size), 0) FROM file WHERE owner_id = ? `+
			`AND state IN ('arriving', 'stored', 'trashed')`, owner).Scan(&all)
	})
	if err != nil {
		return err
	}
	switch {
	case all <= o.FileQuota:
		return nil
	case owner != v.User: // the owner's usage is private
		return newError(KindTooLarge, "size",
			"the owner of this project has no quota left for a file of %d bytes; files in a project count for its owner, who "+
				"may have %d bytes",
			size, o.FileQuota)
	}
	return newError(KindTooLarge, "size",
		"with this file of %d bytes, the files of %s would have %d bytes, those in the trash included; at most %d are "+
			"allowed",
		size, show(s.access.User), all, o.FileQuota)
}

// grow records that a partition holds more than before.
func (w *memoryWriter) grow(partition int64) {
	if w.grown == nil {
		w.grown = map[int64]bool{}
	}
	w.grown[partition] = true
}

// checkFileSize refuses a file over the size limit.
func (s *Store) checkFileSize(size int64) error {
	if size > s.maxFile {
		return newError(KindTooLarge, "size", "the file has %d bytes or more; at most %d are allowed", size, s.maxFile)
	}
	return nil
}
