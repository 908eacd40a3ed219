package souvenir

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir/internal/audit"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
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

// settingNames are the known ones, in the order in which ListSettings returns them.
var settingNames = []SettingName{SettingMemories, SettingRevisions, SettingItems, SettingBytes, SettingFileBytes,
	SettingTrash, SettingActivity, SettingCalls, SettingIndex, SettingBackups, SettingKept}

// Setting is a setting that can be changed while the store is open.
type Setting struct {
	Name    SettingName `json:"name"`
	Value   int64       `json:"value"`   // a number, bytes or days; of quotas, 0 is no limit
	Default int64       `json:"default"` // what the option says
	Changed bool        `json:"changed"` // by ChangeSetting
	Least   int64       `json:"least"`   // of the values that are allowed
	Most    int64       `json:"most"`
}

const dayLong = 24 * time.Hour

// Backups are seldom enough that those of seven times do not replace all others within an afternoon, and kept long
// enough that a damage that is noticed days later is not in all of them.
const (
	leastBackups, mostBackups = 1, 31 * 24 // hours between two
	leastKept, mostKept       = 7, 1000
)

// leastIndex is the least memory of an index: with less, searches would load it again and again.
const leastIndex = 1 << 20

// number returns where a setting is in the options, in its unit.
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

// limits returns the options with what has been changed.
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

// ListSettings returns the settings that [Options.Changeable] lists. It is for the Store that Open returned; a view
// gets ErrForbidden.
func (h *Upkeep) ListSettings(ctx context.Context) (all []Setting, err error) {
	s, err := h.operator(ctx, "ListSettings")
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

// ChangeSetting changes a setting that [Options.Changeable] lists, for all processes: others follow within ten seconds.
// Nil makes the option count again. Lower quotas delete nothing: a user above the quota can store nothing new. Calls
// that are too old or too many are deleted when the next ones are recorded; entries of the trash keep their time. The
// search index gives memory back with the next search. It is for the Store that Open returned; a view gets
// ErrForbidden.
func (h *Upkeep) ChangeSetting(ctx context.Context, name SettingName, value *int64) error {
	s, err := h.operator(ctx, "ChangeSetting")
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
