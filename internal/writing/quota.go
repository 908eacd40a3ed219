package writing

import (
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// Quota limits what one owner may store; a zero field means no limit.
type Quota struct {
	Memories, Revisions int   // current memories, and past versions
	Items               int   // collections, projects and files, each
	Bytes, Files        int64 // bytes in memories and their past versions, and in files
}

// Item is a kind of what [Quota].Items limits.
type Item string

// The values of [Item].
const (
	ItemCollection Item = "collection"
	ItemProject    Item = "project"
	ItemFile       Item = "file"
)

// UsedByFiles counts the bytes in the files of an owner, a row in the users: also those that arrive, and in the trash.
func UsedByFiles(tx db.Tx, owner int64) (bytes int64, err error) {
	err = tx.QueryRow(`SELECT coalesce(sum(size), 0) FROM file WHERE owner_id = ? `+
		`AND state IN ('arriving', 'stored', 'trashed')`, owner).Scan(&bytes)
	return bytes, err
}

// Used counts the contents of an owner's collections (owner is a row); bytes include the trash.
func Used(tx db.Tx, owner int64) (memories, revisions int, bytes int64, err error) {
	err = db.Beyond(tx, func() error {
		return tx.QueryRow(`SELECT coalesce(sum(p.memories), 0), coalesce(sum(p.revisions), 0),
				coalesce(sum(p.bytes), 0) + (SELECT coalesce(sum(size), 0) FROM trash WHERE owner_id = ?1 AND kind <> 'file')
			FROM collection c JOIN partition p ON p.collection_id = c.id WHERE c.owner_id = ?1 AND c.name <> ''`, owner).
			Scan(&memories, &revisions, &bytes)
	})
	return memories, revisions, bytes, err
}

// Grow records that a partition holds more than before.
func (w *Writer) Grow(partition int64) {
	if w.grown == nil {
		w.grown = map[int64]bool{}
	}
	w.grown[partition] = true
}

// checkQuota refuses a transaction that exceeds the quota of an owner whose partitions it has grown.
func (w *Writer) checkQuota() error {
	if len(w.grown) == 0 {
		return nil
	}
	quota, err := w.view.Quota(w.Tx)
	if err != nil {
		return err
	}
	quota.Items, quota.Files = 0, 0 // checked where they are added
	if quota == (Quota{}) {
		return nil
	}
	checked := map[int64]bool{}
	for partition := range w.grown {
		owner, err := kernel.OwnerOfPartition(w.Tx, partition)
		if err == nil && !checked[owner] {
			checked[owner] = true
			err = w.checkOwnersQuota(quota, owner)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) checkOwnersQuota(quota Quota, owner int64) error {
	memories, revisions, bytes, err := Used(w.Tx, owner)
	if err != nil {
		return err
	}
	if w.Restoring { // bytes in the trash already counted
		quota.Bytes = 0
	} else if err := w.checkTrashRoom(quota, owner); err != nil {
		return err
	}
	var what string
	var held, most int64
	advice := "delete some first"
	switch {
	case quota.Memories > 0 && memories > quota.Memories:
		what, held, most = "memories", int64(memories), int64(quota.Memories)
	case quota.Revisions > 0 && revisions > quota.Revisions:
		what, held, most = "past versions of memories", int64(revisions), int64(quota.Revisions)
	case quota.Bytes > 0 && bytes > quota.Bytes:
		what, held, most = "bytes in memories and their past versions, those in the trash included", bytes, quota.Bytes
		advice = "delete some, and empty the trash, first"
	default:
		return nil
	}
	if owner != w.Viewer.User { // members must not learn how much the owner has stored elsewhere
		return fault.New(fault.KindTooLarge, "content",
			"the owner of this project has no quota left for more %s; ask for more, or delete what the project no longer needs",
			what)
	}
	argument := "content"
	if w.Restoring {
		argument = "id"
	}
	return fault.New(fault.KindTooLarge, argument,
		"with this there would be %d %s, and your quota is %d; %s", held, what, most, advice)
}

// checkTrashRoom refuses to store while the owner's trash holds more than the quota: otherwise alternately storing and
// deleting would fill the disk.
func (w *Writer) checkTrashRoom(quota Quota, owner int64) error {
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
		return fault.New(fault.KindTooLarge, "content", "the trash of this project's owner is full; ask for it to be emptied")
	}
	return fault.New(fault.KindTooLarge, "content",
		"the trash holds %d memories and %d past versions, and your quota is %d and %d; empty the trash, or erase some of "+
			"it, first",
		memories, revisions, quota.Memories, quota.Revisions)
}

// CheckItems refuses one more collection, project or file of an owner.
func (s *View) CheckItems(tx db.Tx, v kernel.Viewer, kind Item, owner int64) error {
	quota, err := s.Quota(tx)
	if err != nil || quota.Items == 0 {
		return err
	}
	most := quota.Items
	counts := map[Item]string{
		ItemCollection: `SELECT (SELECT count(*) FROM collection WHERE owner_id = ?1 AND name <> '')
			+ (SELECT count(*) FROM trash WHERE owner_id = ?1 AND kind = 'collection')`,
		ItemProject: `SELECT (SELECT count(*) FROM project WHERE owner_id = ?1)
			+ (SELECT count(*) FROM trash WHERE owner_id = ?1 AND kind = 'project')`,
		ItemFile: `SELECT count(*) FROM file WHERE owner_id = ?1 AND state IN ('arriving', 'stored', 'trashed')`,
	}
	arguments := map[Item]string{ItemCollection: "collection_name", ItemProject: "project_name", ItemFile: "file"}
	var held int
	err = db.Beyond(tx, func() error { return tx.QueryRow(counts[kind], owner).Scan(&held) })
	if err != nil || held <= most {
		return err
	}
	if owner != v.User {
		return fault.New(fault.KindTooLarge, arguments[kind],
			"the owner of this project has no quota left for more %ss", kind)
	}
	return fault.New(fault.KindTooLarge, arguments[kind],
		"with this there would be %d %ss, those in the trash included, and your quota is %d; delete some, and empty the "+
			"trash, first",
		held, kind, most)
}

// CheckFiles refuses a write that takes an owner's files, including the bytes just written, over the quota.
func (s *View) CheckFiles(tx db.Tx, v kernel.Viewer, owner, size int64) error {
	quota, err := s.Quota(tx)
	if err != nil || quota.Files == 0 {
		return err
	}
	var all int64
	err = db.Beyond(tx, func() error {
		all, err = UsedByFiles(tx, owner)
		return err
	})
	if err != nil {
		return err
	}
	switch {
	case all <= quota.Files:
		return nil
	case owner != v.User: // the owner's usage is private
		return fault.New(fault.KindTooLarge, "size",
			"the owner of this project has no quota left for a file of %d bytes; files in a project count for its owner, who "+
				"may have %d bytes",
			size, quota.Files)
	}
	return fault.New(fault.KindTooLarge, "size",
		"with this file of %d bytes, the files of %s would have %d bytes, those in the trash included; at most %d are "+
			"allowed",
		size, fault.Show(s.User), all, quota.Files)
}

// GiveFile gives an owner, a row in the users, a file of another one.
func (s *View) GiveFile(tx db.Tx, v kernel.Viewer, owner, file int64) error {
	return s.giveFiles(tx, v, owner, `id = ?`, file)
}

// GiveFilesOf gives an owner, a row in the users, the files of a memory.
func (s *View) GiveFilesOf(tx db.Tx, v kernel.Viewer, owner, memory int64) error {
	return s.giveFiles(tx, v, owner, `memory_id = ?`, memory)
}

func (s *View) giveFiles(tx db.Tx, v kernel.Viewer, owner int64, condition string, arg int64) error {
	var size int64
	var given bool
	err := db.Beyond(tx, func() (err error) {
		size, given, err = kernel.GiveFiles(tx, owner, s.Keys, condition, arg)
		return err
	})
	if err != nil || !given {
		return err
	}
	return s.CheckFiles(tx, v, owner, size)
}
