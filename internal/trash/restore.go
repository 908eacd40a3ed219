package trash

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/text"
	"github.com/souvenir-ai/souvenir/internal/valid"
	"github.com/souvenir-ai/souvenir/internal/writing"
)

const restoreBatch = 200 // maximum number of memories that one transaction restores

// Restorer restores one portion of an entry, within one transaction.
type Restorer struct {
	*writing.Writer
	Entry    *Entry
	Now      int64
	NewID    func() string // for an item that lost its id
	Profile  int64         // of the store's model
	MaxInput int           // maximum input of the embedder, in bytes

	AddMember func(project int64, m Member) error // or invites the member

	After   int64 // row of the last part processed
	Indexed bool  // searches find everything restored by meaning
	Refused error // why a part of a project or collection was not restored

	ruled map[int64]bool // whether partitions have a rule for how long memories stay
}

// Restore restores one portion, and reports whether that was all. This may concern other users: past versions from
// other places, and links to and from their memories.
func (r *Restorer) Restore() (done bool, err error) {
	err = db.Beyond(r.Tx, func() (err error) {
		done, err = r.restore()
		return err
	})
	return done, err
}

func (r *Restorer) restore() (done bool, err error) {
	switch r.Entry.Kind {
	case Files:
		err = r.file()
	case Collections:
		err = r.collection()
	case Projects:
		err = r.project()
	}
	if err == nil && r.Entry.Kind != Files {
		done, err = r.memories()
	} else {
		done = true
	}
	if err != nil || !done {
		return false, err
	}
	left, err := db.Column[int64](r.Tx, `SELECT count(*) FROM trash_item WHERE entry_id = ? AND kind = 'memory'`,
		r.Entry.Row)
	if err != nil || left[0] > 0 {
		return true, err
	}
	_, err = r.Tx.Exec(`DELETE FROM trash WHERE id = ?`, r.Entry.Row)
	return true, err
}

// file restores a file, to its memory if that exists, else into its project.
func (r *Restorer) file() error {
	e := r.Entry
	taken, err := db.Column[int64](r.Tx, `SELECT id FROM file WHERE uid = ?`, e.Item)
	if err != nil {
		return err
	}
	if len(taken) > 0 {
		return fault.New(fault.KindConflict, "id", "file %s already exists; delete it first", fault.Show(e.Item))
	}
	project := e.ProjectRow
	if project == 0 && e.ProjectID != "" {
		there, err := db.Column[int64](r.Tx, `SELECT id FROM project WHERE owner_id = ? AND uid = ?`, e.Owner, e.ProjectID)
		if err != nil {
			return err
		}
		if project = first(there); project == 0 {
			if err := r.checkNotTrashed(Projects, e.Owner, e.ProjectID); err != nil {
				return err
			}
		}
	}
	if _, err := r.Tx.Exec(`UPDATE file SET uid = ?, state = 'stored', project_id = ? WHERE uid = ? AND state = 'trashed'`,
		e.Item, db.OrNull(project), fileID(e.Row)); err != nil {
		return err
	}
	return r.attachFiles(`l.source = ?`, e.Item)
}

// checkNotTrashed returns an error if the project or collection of an item is in the trash and must be restored first.
func (r *Restorer) checkNotTrashed(kind Kind, owner int64, item string) error {
	is, named := `item = ?`, any(item)
	if kind == Collections {
		var err error
		if is, named, err = sealedrows.Is(r.Tx, sealedrows.CollectionName, owner, `item`, item); err != nil {
			return err
		}
	}
	found, err := db.Column[string](r.Tx,
		`SELECT uid FROM trash WHERE kind = ? AND owner_id = ? AND `+is+` AND restorable_until > ? ORDER BY id DESC`,
		string(kind), owner, named, r.Now)
	if err != nil || len(found) == 0 {
		return err
	}
	return fault.New(fault.KindNotFound, "id", "the %s %s that contained it is in the trash; restore that first (id %s)",
		kind, fault.Show(item), fault.Show(found[0]))
}

// collection recreates the collection of the entry, unless it exists because it was partly deleted or partly restored.
func (r *Restorer) collection() error {
	e := r.Entry
	if e.CollectionRow != 0 {
		return nil
	}
	var c collection
	if err := json.Unmarshal([]byte(e.Data), &c); err != nil {
		return fault.Damaged(err, "entry %s of the trash", e.ID)
	}
	there, _, found, err := kernel.OwnCollection(r.Tx, r.Viewer.User, e.Item)
	switch {
	case err != nil:
		return err
	case found && e.Item == kernel.DefaultCollection: // created again by a later write
		e.CollectionRow = there
	case found:
		return fault.New(fault.KindConflict, "id", "collection %s exists again; rename or delete that one first",
			fault.Show(e.Item))
	default:
		row, err := r.addCollection(r.Viewer.User, e.Item, c.Description, c.OwnSize)
		if err != nil {
			return err
		}
		if _, err := r.Tx.Exec(`UPDATE collection SET created_at = ?, updated_at = ? WHERE id = ?`, c.Created, c.Updated,
			row); err != nil {
			return err
		}
		if err := SetRetention(r.Tx, "collection", row, c.Retention); err != nil {
			return err
		}
		e.CollectionRow = row
	}
	is, name, err := sealedrows.Is(r.Tx, sealedrows.CollectionName, e.Owner, `collection`, e.Item)
	if err != nil {
		return err
	}
	_, err = r.Tx.Exec(`UPDATE trash SET collection_id = ? WHERE id = ? OR kind = 'memory' AND owner_id = ? `+
		`AND collection_id IS NULL AND `+is,
		e.CollectionRow, e.Row, e.Owner, name)
	return err
}

// project recreates the project of the entry, unless it exists, and adds or invites its members.
func (r *Restorer) project() error {
	e := r.Entry
	if e.ProjectRow == 0 {
		if err := r.addProject(); err != nil {
			return err
		}
	}
	// Files first: they are linked to their memories when these are restored.
	if _, err := r.Tx.Exec(`UPDATE file SET project_id = ?1 WHERE uid IN (SELECT uid FROM trash_item WHERE entry_id = ?2
		AND kind = 'file')
		AND state = 'stored' AND memory_id IS NULL AND project_id IS NULL AND owner_id = ?3`, e.ProjectRow, e.Row,
		e.Owner); err != nil {
		return err
	}
	_, err := r.Tx.Exec(`DELETE FROM trash_item WHERE entry_id = ? AND kind = 'file'`, e.Row)
	return err
}

func (r *Restorer) addProject() error {
	e := r.Entry
	var p project
	if err := json.Unmarshal([]byte(e.Data), &p); err != nil {
		return fault.Damaged(err, "entry %s of the trash", e.ID)
	}
	taken, err := db.Column[int64](r.Tx, `SELECT id FROM project WHERE owner_id = ? AND uid = ?`, e.Owner, e.Item)
	if err != nil {
		return err
	}
	if len(taken) > 0 {
		return fault.New(fault.KindConflict, "id", "project %s exists again; delete that one first", fault.Show(e.Item))
	}
	is, key, err := sealedrows.Is(r.Tx, sealedrows.ProjectNameKey, e.Owner, `name_key`, foldname.Key(e.Title))
	if err != nil {
		return err
	}
	named, err := db.Column[string](r.Tx, `SELECT uid FROM project WHERE owner_id = ? AND `+is+` LIMIT 1`, e.Owner, key)
	if err != nil {
		return err
	}
	if len(named) > 0 {
		return fault.New(fault.KindConflict, "id", "another project, %s, has the name %s now; rename that one first",
			fault.Show(named[0]), fault.Show(e.Title))
	}
	if e.ProjectRow, err = kernel.InsertProject(r.Tx, r.Viewer.User, cmp.Or(e.Item, r.NewID()), e.Title,
		r.Now); err != nil {
		return err
	}
	if _, err := r.Tx.Exec(`UPDATE project SET created_at = ?, updated_at = ? WHERE id = ?`, p.Created, p.Updated,
		e.ProjectRow); err != nil {
		return err
	}
	if err := SetRetention(r.Tx, "project", e.ProjectRow, p.Retention); err != nil {
		return err
	}
	for _, m := range p.Members {
		if err := r.AddMember(e.ProjectRow, m); err != nil {
			return err
		}
	}
	for _, n := range p.Former { // except names that another project has now
		name, err := sealedrows.SealText(r.Tx, e.Owner, sealedrows.ProjectName, n.Name)
		if err != nil {
			return err
		}
		key, err := sealedrows.SealText(r.Tx, e.Owner, sealedrows.ProjectNameKey, n.Key)
		if err != nil {
			return err
		}
		if _, err := r.Tx.Exec(`INSERT INTO project_alias (owner_id, name_key, name, project_id, created_at) SELECT ?1, ?2,
			?3, ?4, ?5
			WHERE NOT EXISTS (SELECT 1 FROM project WHERE owner_id = ?1 AND name_key = ?2) ON CONFLICT DO NOTHING`, e.Owner,
			key, name, e.ProjectRow, n.Until); err != nil {
			return err
		}
	}
	_, err = r.Tx.Exec(`UPDATE trash SET project_id = ?1 WHERE id = ?2 OR kind IN ('memory', 'file') AND owner_id = ?3 `+
		`AND project_id IS NULL AND project = ?4`,
		e.ProjectRow, e.Row, e.Owner, e.Item)
	return err
}

// memories restores the next memories of the entry, and reports whether these were the last.
func (r *Restorer) memories() (done bool, err error) {
	rows, err := db.Column[int64](r.Tx,
		`SELECT id FROM trash_item WHERE entry_id = ? AND kind = 'memory' AND id > ? ORDER BY id LIMIT ?`,
		r.Entry.Row, r.After, restoreBatch)
	if err != nil {
		return false, err
	}
	left := fullBytes
	for i, row := range rows {
		item := kernel.TrashItem{Row: row}
		if err := r.Tx.QueryRow(`SELECT uid, data FROM trash_item WHERE id = ?`, row).Scan(&item.ID, &item.Data); err != nil {
			return false, err
		}
		m, at, err := r.prepare(item)
		alone := r.Entry.Kind == Memories
		switch {
		case err == nil:
			err = r.memory(item, m, at)
		case !alone && slices.ContainsFunc([]fault.Kind{fault.KindConflict, fault.KindCorrupt, fault.KindNotFound},
			func(k fault.Kind) bool { return isKind(err, k) }):
			r.Refused, err = cmp.Or(r.Refused, err), nil
		}
		if err != nil {
			return false, err
		}
		r.After = row
		if left -= len(item.Data); left < 0 {
			return i == len(rows)-1 && len(rows) < restoreBatch, nil
		}
	}
	return len(rows) < restoreBatch, nil
}

// prepare decodes a memory and finds its place. If it returns an error, the memory cannot be restored, and nothing was
// written.
func (r *Restorer) prepare(item kernel.TrashItem) (m kernel.TrashedMemory, at *kernel.Place, err error) {
	if err := item.Into(&m); err != nil {
		return m, nil, err
	}
	there, err := db.Column[int64](r.Tx, `SELECT id FROM memory WHERE uid = ?`, item.ID)
	if err != nil {
		return m, nil, err
	}
	if len(there) > 0 {
		return m, nil, fault.New(fault.KindConflict, "id", "memory %s already exists; delete it first", fault.Show(item.ID))
	}
	if at, err = r.place(m.Place); err != nil {
		return m, nil, err
	}
	return m, at, r.CheckRule(kernel.Memory{ID: item.ID}, kernel.Memory{ID: item.ID, Content: m.Content,
		Attributes: kernel.Attributes{RuleType: m.RuleType}}, at)
}

// place finds the original place of a memory, and recreates the parts that were permanently deleted.
func (r *Restorer) place(p kernel.TrashedPlace) (*kernel.Place, error) {
	collection, err := r.collectionOf(p)
	if err != nil {
		return nil, err
	}
	project, err := r.projectOf(p)
	if err != nil {
		return nil, err
	}
	return r.Partition(collection, project)
}

func (r *Restorer) collectionOf(p kernel.TrashedPlace) (int64, error) {
	if r.Entry.Kind == Collections {
		return r.Entry.CollectionRow, nil
	}
	owner, err := db.Column[int64](r.Tx, `SELECT u.id FROM users u WHERE `+byPlaceOwner, r.Entry.Owner, p.Owner)
	if err != nil {
		return 0, err
	}
	there, err := r.collectionThere(p, owner)
	if err != nil || len(there) > 0 {
		return first(there), err
	}
	if err := r.checkNotTrashed(Collections, first(owner), p.Collection); err != nil {
		return 0, err
	}
	return r.addCollection(first(owner), p.Collection, "", p.OwnSize)
}

// addCollection adds a collection of an owner; ownSize is 0 unless its vectors are the callers'. The quota counts it in
// the trash already.
func (r *Restorer) addCollection(owner int64, name, description string, ownSize int) (row int64, err error) {
	var profile int64
	if ownSize != 0 {
		if profile, err = kernel.ProfileRow(r.Tx, kernel.OwnProfile(ownSize), r.Now); err != nil {
			return 0, err
		}
	}
	return kernel.AddCollection(r.Tx, owner, name, description, profile, r.Now)
}

// byPlaceOwner is the condition for the user u of a trashed place, by id in the namespace of the entry's owner.
const byPlaceOwner = `u.namespace = (SELECT namespace FROM users WHERE id = ?) AND u.uid = ?`

// formerPlace finds the place of a past version, nil if it is gone: the version is then dropped, as for memories that
// were not deleted. If its project is gone, the version belongs to the collection's owner.
func (r *Restorer) formerPlace(p kernel.TrashedPlace, of kernel.TrashedMemory, at *kernel.Place) (*kernel.Place,
	error) {
	if p == of.Place {
		return at, nil
	}
	var collection int64
	if p.CollectionRow == of.Place.CollectionRow && p.Owner == of.Place.Owner {
		if err := r.Tx.QueryRow(`SELECT collection_id FROM partition WHERE id = ?`,
			at.Partition).Scan(&collection); err != nil {
			return nil, err
		}
	} else {
		owner, err := db.Column[int64](r.Tx, `SELECT u.id FROM users u WHERE `+byPlaceOwner, r.Entry.Owner, p.Owner)
		if err != nil {
			return nil, err
		}
		there, err := r.collectionThere(p, owner)
		if err != nil || len(there) == 0 {
			return nil, err
		}
		collection = there[0]
	}
	var project int64
	if p.Project != "" {
		there, err := db.Column[int64](r.Tx,
			`SELECT j.id FROM project j JOIN users u ON u.id = j.owner_id WHERE `+byPlaceOwner+
				` AND j.uid = ? AND j.created_at = ?`, r.Entry.Owner, p.ProjectOwner, p.Project, p.ProjectCreated)
		if err != nil {
			return nil, err
		}
		project = first(there)
	}
	return r.Partition(collection, project)
}

// memory writes a memory into its place, with everything that belongs to it, and removes it from the trash.
func (r *Restorer) memory(item kernel.TrashItem, m kernel.TrashedMemory, at *kernel.Place) error {
	if err := kernel.FreeKey(r.Tx, r.Viewer, at.Partition, m.Key); err != nil {
		return err
	}
	if other, err := kernel.KeyHolder(r.Tx, at.Partition, m.Key); err != nil {
		return err
	} else if other != 0 {
		m.Key = "" // another memory has been stored under it since
	}
	if err := r.young(&m, at.Partition); err != nil {
		return err
	}
	row, err := r.InsertMemory(at, kernel.MemoryRow{ID: item.ID, Content: m.Content, EventType: m.EventType,
		State: m.State, Importance: m.Importance, Classification: m.Classification, RuleType: m.RuleType, Key: m.Key,
		EventTime: m.EventTime, Times: m.Times, Metadata: m.Metadata, Revision: m.Revision, Created: m.Created,
		Updated: m.Updated})
	if err != nil {
		return err
	}
	r.Grow(at.Partition)
	if err := r.carryDoubt(item.Row, kernel.MemoryKind, row); err != nil {
		return err
	}
	if err := r.AddTags(row, at.Owner, m.Tags); err != nil {
		return err
	}
	former, size, err := r.revisions(item.ID, row, m, at)
	if err != nil {
		return err
	}
	passages, own, err := r.passages(m, at)
	if err != nil {
		return err
	}
	if err := kernel.KeepTurns(r.Tx, row); err != nil {
		return err
	}
	indexed, _, err := r.AddPassages(row, at, passages, own, m.Tags)
	if err != nil {
		return err
	}
	r.Indexed = r.Indexed && indexed
	if err := r.attach(item.ID); err != nil {
		return err
	}
	if _, err := r.Tx.Exec(`DELETE FROM trash_item WHERE entry_id = ? AND uid = ?`, r.Entry.Row, item.ID); err != nil {
		return err
	}
	_, err = r.Tx.Exec(`UPDATE trash SET memories = CASE WHEN memories > 1 THEN memories - 1 ELSE 0 END,
		revisions = CASE WHEN revisions > ?1 THEN revisions - ?1 ELSE 0 END,
		size = CASE WHEN size > ?2 THEN size - ?2 ELSE 0 END WHERE id = ?3`,
		former, size+kernel.MemoryBytes(r.Tx, m.Content, m.Metadata), r.Entry.Row)
	return err
}

// carryDoubt marks a row restored from a damaged part of the trash as damaged.
func (r *Restorer) carryDoubt(item int64, kind int, row int64) error {
	sound, err := kernel.RowSound(r.Tx, kernel.TrashItemKind, item)
	if err != nil || sound {
		return err
	}
	return kernel.DoubtRow(r.Tx, kind, row)
}

// revisions writes the past versions of a memory, and returns their number and their size in bytes.
func (r *Restorer) revisions(id string, row int64, m kernel.TrashedMemory, at *kernel.Place) (count int, size int64,
	err error) {
	items, err := db.Column[int64](r.Tx,
		`SELECT id FROM trash_item WHERE entry_id = ? AND uid = ? AND kind = 'revision' ORDER BY id`, r.Entry.Row, id)
	if err != nil {
		return 0, 0, err
	}
	for _, number := range items { // one by one: there may be very many
		item, former := kernel.TrashItem{ID: id}, kernel.TrashedRevision{}
		if err := r.Tx.QueryRow(`SELECT data FROM trash_item WHERE id = ?`, number).Scan(&item.Data); err != nil {
			return 0, 0, err
		}
		if err := item.Into(&former); err != nil {
			return 0, 0, err
		}
		size += kernel.RevisionBytes(r.Tx, former.Content, former.Attributes)
		place, err := r.formerPlace(former.Place, m, at)
		if err != nil {
			return 0, 0, err
		}
		if place == nil {
			continue
		}
		copied, err := kernel.Revision{Memory: row, Partition: place.Partition, Owner: place.Owner, Number: former.Number,
			Created: former.Created, Content: former.Content, Attributes: former.Attributes}.Insert(r.Tx)
		if err != nil {
			return 0, 0, err
		}
		if err := r.carryDoubt(number, kernel.RevisionKind, copied); err != nil {
			return 0, 0, err
		}
	}
	return len(items), size, nil
}

// passages returns the passages of a memory in the trash, and its owner's own vector, if any. If the store's model has
// changed since, or one of its vectors cannot be read, the text is split anew, and its vectors are made later.
func (r *Restorer) passages(m kernel.TrashedMemory, at *kernel.Place) (passages []kernel.Passage, own []float32,
	err error) {
	keys, anew := map[string]int64{}, false
	for _, p := range m.Passages {
		if p.Start < 0 || p.Length < 0 || p.Start+p.Length > len(m.Content) {
			return nil, nil, fault.Damaged(kernel.ErrOutside, "the passages of a memory in the trash")
		}
		if _, known := keys[p.Profile]; !known && p.Profile != "" {
			rows, err := db.Column[int64](r.Tx, `SELECT id FROM profile WHERE key = ?`, p.Profile)
			if err != nil {
				return nil, nil, err
			}
			keys[p.Profile] = first(rows)
		}
		restored := kernel.Passage{Start: p.Start, Length: p.Length, Blank: p.Blank, Profile: keys[p.Profile],
			Indexed: text.Indexed(m.Content[p.Start : p.Start+p.Length])}
		if restored.Vector, err = kernel.DecodeVector(p.Vector); err != nil {
			if at.OwnProfile != 0 {
				return nil, nil, err
			}
			anew = true
		}
		passages = append(passages, restored)
	}
	switch {
	case len(passages) == 0:
	case at.OwnProfile != 0:
		if passages[0].Profile == at.OwnProfile {
			own = passages[0].Vector
		}
	case anew || passages[0].Profile != r.Target && r.Target == r.Profile && !passages[0].Blank:
		passages = kernel.Split(m.Content, r.MaxInput)
	}
	return passages, own, nil
}

// attach restores a memory's links to memories that exist, and its files, unless they are linked to another memory now.
func (r *Restorer) attach(id string) error {
	for _, statement := range []string{
		`INSERT INTO memory_link (memory_id, related_id, position) SELECT m.id, r.id, l.position FROM trash_link l
			JOIN memory m ON m.uid = l.source JOIN memory r ON r.uid = l.target
			WHERE l.kind = 'memory' AND (l.source = ?1 OR l.target = ?1)
			AND (SELECT count(*) FROM memory_link o WHERE o.memory_id = m.id) < ?2 ON CONFLICT DO NOTHING`,
		`DELETE FROM trash_link WHERE kind = 'memory' AND (source = ?1 OR target = ?1) AND ?2 > 0
			AND EXISTS (SELECT 1 FROM memory WHERE uid = source) AND EXISTS (SELECT 1 FROM memory WHERE uid = target)`,
	} {
		if _, err := r.Tx.Exec(statement, id, valid.MaxRelated); err != nil {
			return err
		}
	}
	return r.attachFiles(`l.target = ?`, id)
}

// attachFiles restores the links l between files and memories for which a condition holds.
func (r *Restorer) attachFiles(condition, id string) error {
	var found [][2]int64
	err := r.Tx.Each(func(row db.Rows) error {
		var link [2]int64
		err := row.Scan(&link[0], &link[1])
		found = append(found, link)
		return err
	}, `SELECT f.id, m.id FROM trash_link l JOIN file f ON f.uid = l.source JOIN memory m ON m.uid = l.target
		JOIN partition p ON p.id = m.partition_id
		WHERE l.kind = 'file' AND `+condition+
		` AND f.state = 'stored' AND f.memory_id IS NULL AND f.project_id IS NOT DISTINCT FROM p.project_id`, id)
	if err != nil {
		return err
	}
	for _, link := range found {
		if _, err := r.Tx.Exec(`UPDATE file SET memory_id = ?, project_id = NULL WHERE id = ?`, link[1],
			link[0]); err != nil {
			return err
		}
	}
	_, err = r.Tx.Exec(`DELETE FROM trash_link AS l WHERE kind = 'file' AND `+condition+`
		AND EXISTS (SELECT 1 FROM memory WHERE uid = target) AND EXISTS (SELECT 1 FROM file WHERE uid = source
		AND state = 'stored')`, id)
	return err
}
