package souvenir

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// Moving items to the trash.

const (
	trashVersion = 1
	maxTitle     = 120      // characters of the title of an entry
	maxThrough   = 64       // characters of Access.Through that are kept
	trashBytes   = 16 << 20 // approximate limit that one transaction moves
)

// portion limits what one transaction deletes or erases: on a full disk, deletions go through the log, and so must fit
// into the reserve.
type portion struct {
	rows  int // memories, entries of the trash, or parts of one
	bytes int64
}

func fullPortion() portion { return portion{deletedAtOnce, trashBytes} }

// smaller returns a smaller portion, and whether there is one.
func (p portion) smaller() (portion, bool) {
	return portion{max(p.rows/8, 1), max(p.bytes/8, 1)}, p.rows > 1
}

// inPortions calls fn, which uses its own transaction, until it reports that all is done. If the disk has no room for a
// portion, it tries a smaller one.
func inPortions(fn func(p portion) (done bool, err error)) error {
	for p := fullPortion(); ; {
		done, err := fn(p)
		if errors.Is(err, ErrFull) {
			if smaller, more := p.smaller(); more {
				p = smaller
				continue
			}
		}
		if err != nil || done {
			return err
		}
	}
}

// trasher deletes within one transaction: into the trash, or permanently if requested or if the trash is off.
type trasher struct {
	s       *Store
	tx      db.Tx
	viewer  viewer
	forGood bool
	places  map[int64]kernel.TrashedPlace // of partitions
	rows    int                           // memories that this transaction may delete
	left    int64                         // bytes that it may move
}

func (s *Store) newTrasher(tx db.Tx, v viewer, p portion) *trasher {
	return &trasher{s: s, tx: tx, viewer: v, forGood: s.options.KeepTrash < 0, places: map[int64]kernel.TrashedPlace{},
		rows: p.rows,
		left: p.bytes}
}

// place returns the place of a partition's memories.
func (t *trasher) place(partition int64) (kernel.TrashedPlace, error) {
	if known, ok := t.places[partition]; ok {
		return known, nil
	}
	var p kernel.TrashedPlace
	err := t.tx.QueryRow(`SELECT u.uid, c.name, c.id, c.created_at, coalesce(f.dimensions, 0), coalesce(o.uid, ''),
		coalesce(j.uid, ''), coalesce(j.name, ''),
			coalesce(j.id, 0), coalesce(j.created_at, 0), coalesce(j.owner_id, c.owner_id)
		FROM partition p JOIN collection c ON c.id = p.collection_id JOIN users u ON u.id = c.owner_id
		LEFT JOIN profile f ON f.id = c.own_profile
		LEFT JOIN project j ON j.id = p.project_id LEFT JOIN users o ON o.id = j.owner_id WHERE p.id = ?`, partition).
		Scan(&p.Owner, &p.Collection, &p.CollectionRow, &p.CollectionCreated, &p.OwnSize, &p.ProjectOwner, &p.Project,
			&p.ProjectName,
			&p.ProjectRow, &p.ProjectCreated, &p.OwnerRow)
	t.places[partition] = p
	return p, err
}

// memory deletes one memory, as an entry of its own.
func (t *trasher) memory(m storedMemory) error {
	if t.forGood {
		return t.eraseMemories(m.row)
	}
	at, err := t.place(m.partition)
	if err != nil {
		return err
	}
	entry, err := t.add(trashEntry{
		TrashEntry: TrashEntry{ID: m.ID, Kind: TrashMemory, Title: titleOf(m.Content), Collection: at.Collection,
			ProjectID: at.Project, ProjectName: at.ProjectName},
		item: m.ID, owner: at.OwnerRow, collection: at.CollectionRow, project: at.ProjectRow, data: `{}`,
	})
	if err != nil {
		return err
	}
	return t.move(entry, m.row)
}

// add makes an entry and returns its row.
func (t *trasher) add(e trashEntry) (int64, error) {
	taken, err := db.Column[int64](t.tx, `SELECT id FROM trash WHERE uid = ?`, e.ID)
	if err != nil {
		return 0, err
	}
	if len(taken) > 0 { // deleted before, stored again (such as by an import), and now deleted again
		if _, err := t.tx.Exec(`UPDATE trash SET uid = ? WHERE id = ?`, t.s.newID(), taken[0]); err != nil {
			return 0, err
		}
	}
	now := t.s.now()
	return db.Insert(t.tx, `INSERT INTO trash (uid, kind, item, title, owner_id, collection_id, project_id, collection,
		project, project_name, data,
			memories, size, deleted_by, deleted_through, deleted_at, restorable_until) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
			0, ?, ?, ?, ?, ?) RETURNING id`,
		e.ID, string(e.Kind), e.item, e.Title, e.owner, db.OrNull(e.collection), db.OrNull(e.project), e.Collection,
		e.ProjectID, e.ProjectName, e.data,
		e.Size, t.viewer.User, leading(t.s.access.Through, maxThrough), now, now+t.s.options.KeepTrash.Microseconds())
}

// titleOf returns the beginning of a memory, in one line.
func titleOf(content string) string {
	head := leading(content, 4*maxTitle)
	title := strings.Join(strings.FieldsFunc(head,
		func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if short := leading(title, maxTitle); len(short) < len(title) || len(head) < len(content) {
		return short + "…"
	}
	return title
}

// leading returns the first characters of a text.
func leading(value string, most int) string {
	for i := range value {
		if most--; most < 0 {
			return value[:i]
		}
	}
	return value
}

// memories deletes one portion of the memories of the partitions p for which a condition holds, into an entry or
// permanently, and reports whether these were all. The calling function must have checked that the user may delete
// them.
func (t *trasher) memories(entry int64, condition string, arg int64) (done bool, err error) {
	rows, err := db.Column[int64](t.tx, `SELECT m.id FROM partition p JOIN memory m ON m.partition_id = p.id
		WHERE `+condition+` LIMIT ?`, arg, t.rows)
	if err != nil {
		return false, err
	}
	done = len(rows) < t.rows
	if t.forGood {
		return done, t.eraseMemories(rows...)
	}
	for _, row := range rows {
		if t.left <= 0 {
			return false, nil
		}
		if err := t.move(entry, row); err != nil {
			return false, err
		}
	}
	return done, nil
}

// eraseMemories deletes memories permanently.
func (t *trasher) eraseMemories(rows ...int64) error {
	if len(rows) == 0 {
		return nil
	}
	for _, statement := range []string{
		`DELETE FROM trash_link WHERE source IN (SELECT uid FROM memory WHERE id IN ` + db.Integers1 + `)
			OR target IN (SELECT uid FROM memory WHERE id IN ` + db.Integers1 + `)`,
		`DELETE FROM memory WHERE id IN ` + db.Integers1,
	} {
		if _, err := t.tx.Exec(statement, db.List(rows)); err != nil {
			return err
		}
	}
	return noteErasure(t.tx)
}

// move moves a memory with everything that belongs to it out of the live tables.
func (t *trasher) move(entry, row int64) error {
	var m kernel.TrashedMemory
	var id, tags string
	var partition int64
	err := t.tx.QueryRow(`SELECT uid, partition_id, content, coalesce(event_type, ''), coalesce(state, ''), coalesce(importance, ''), coalesce(classification, ''),
			coalesce(rule_type, ''), coalesce(key, ''), event_time, metadata, revision, created_at, updated_at,
			(SELECT `+db.ListOf+`(tag ORDER BY position) FROM memory_tag WHERE memory_id = memory.id) FROM memory WHERE id = ?`,
		row).
		Scan(&id, &partition, &m.Content, &m.EventType, &m.State, &m.Importance, &m.Classification, &m.RuleType, &m.Key,
			&m.EventTime, &m.Metadata,
			&m.Revision, &m.Created, &m.Updated, &tags)
	if err != nil {
		return err
	}
	m.Version = trashVersion
	if m.Tags, err = kernel.DecodeStrings(tags); err != nil {
		return err
	}
	if m.Place, err = t.place(partition); err != nil {
		return err
	}
	err = t.tx.Each(func(row db.Rows) error {
		var p kernel.TrashedPassage
		err := row.Scan(&p.Start, &p.Length, &p.Blank, &p.Profile, &p.Vector)
		m.Passages = append(m.Passages, p)
		return err
	}, `SELECT p.start, p.length, p.blank, coalesce(f.key, ''), p.vector FROM passage p `+
		`LEFT JOIN profile f ON f.id = p.profile_id WHERE p.memory_id = ? ORDER BY p.id`, row)
	if err != nil {
		return err
	}
	sound, err := kernel.RowSound(t.tx, kernel.MemoryKind, row)
	if err != nil {
		return err
	}
	if err := t.put(entry, "memory", id, m, sound); err != nil {
		return err
	}
	size := int64(len(m.Content) + len(m.Metadata)) // as quotas count them
	count, former, err := t.moveRevisions(entry, row, id)
	if err != nil {
		return err
	}
	if err := t.keepLinks(row); err != nil {
		return err
	}
	if _, err := t.tx.Exec(`DELETE FROM memory WHERE id = ?`, row); err != nil {
		return err
	}
	_, err = t.tx.Exec(`UPDATE trash SET memories = memories + 1, revisions = revisions + ?, size = size + ? WHERE id = ?`,
		count, size+former, entry)
	return err
}

// put writes a part of an entry. A damaged part stays marked as damaged.
func (t *trasher) put(entry int64, kind, id string, part any, sound bool) error {
	data, err := json.Marshal(part)
	if err != nil {
		return damaged(err, "memory %s", id)
	}
	t.left -= int64(len(data))
	item, err := db.Insert(t.tx, `INSERT INTO trash_item (entry_id, kind, uid, data) VALUES (?, ?, ?, ?) RETURNING id`,
		entry, kind, id, string(data))
	if err == nil && !sound {
		err = kernel.DoubtRow(t.tx, kernel.TrashItemKind, item)
	}
	return err
}

// moveRevisions writes the past versions of a memory, which move with it, and returns their number and their size in
// bytes.
func (t *trasher) moveRevisions(entry, row int64, id string) (count int, size int64, err error) {
	numbers, err := db.Column[int64](t.tx, `SELECT id FROM memory_revision WHERE memory_id = ? ORDER BY revision`, row)
	if err != nil {
		return 0, 0, err
	}
	for _, number := range numbers { // one by one: there may be very many
		r := kernel.TrashedRevision{Version: trashVersion}
		var partition int64
		if err := t.tx.QueryRow(`SELECT partition_id, revision, content, attributes, created_at FROM memory_revision `+
			`WHERE id = ?`, number).
			Scan(&partition, &r.Number, &r.Content, &r.Attributes, &r.Created); err != nil {
			return 0, 0, err
		}
		if r.Place, err = t.place(partition); err != nil {
			return 0, 0, err
		}
		sound, err := kernel.RowSound(t.tx, kernel.RevisionKind, number)
		if err != nil {
			return 0, 0, err
		}
		if err := t.put(entry, "revision", id, r, sound); err != nil {
			return 0, 0, err
		}
		size += int64(len(r.Content) + len(r.Attributes))
	}
	return len(numbers), size, nil
}

// keepLinks records the links from and to a deleted memory, and its files, which stay.
func (t *trasher) keepLinks(row int64) error {
	for _, statement := range []string{
		`INSERT INTO trash_link (kind, source, target, position) SELECT 'memory', m.uid, r.uid, l.position FROM memory_link l
			JOIN memory m ON m.id = l.memory_id JOIN memory r ON r.id = l.related_id WHERE l.memory_id = ?1 OR l.related_id = ?1
			ON CONFLICT (source, target, kind) DO UPDATE SET position = excluded.position`,
		`INSERT INTO trash_link (kind, source, target, position) SELECT 'file', f.uid, m.uid, 0 FROM file f
			JOIN memory m ON m.id = f.memory_id
			WHERE f.memory_id = ?1 AND f.state = 'stored' ON CONFLICT DO NOTHING`,
	} {
		if _, err := t.tx.Exec(statement, row); err != nil {
			return err
		}
	}
	return nil
}

// file deletes a file, as an entry of its own. Its chunks stay in place.
func (t *trasher) file(f storedFile) error {
	owner, err := ownerOfFilePlace(t.tx, f)
	if err != nil {
		return err
	}
	e := trashEntry{
		TrashEntry: TrashEntry{ID: f.ID, Kind: TrashFile, Title: f.Filename, ProjectID: f.ProjectID, Size: f.Size},
		item:       f.ID, owner: owner, project: f.project, data: `{}`,
	}
	if f.project != 0 {
		if err := t.tx.QueryRow(`SELECT uid, name FROM project WHERE id = ?`, f.project).Scan(&e.ProjectID,
			&e.ProjectName); err != nil {
			return err
		}
	}
	entry, err := t.add(e)
	if err != nil {
		return err
	}
	if _, err := t.tx.Exec(`INSERT INTO trash_link (kind, source, target, position) SELECT 'file', f.uid, m.uid, 0
		FROM file f JOIN memory m ON m.id = f.memory_id
			WHERE f.id = ? ON CONFLICT DO NOTHING`, f.row); err != nil {
		return err
	}
	_, err = t.tx.Exec(`UPDATE file SET state = 'trashed', uid = ?, memory_id = NULL, project_id = NULL WHERE id = ?`,
		trashedFileID(entry), f.row)
	return err
}

// ownerOfFilePlace returns the owner of a file's place: the project's owner, else that of its memory's collection, else
// its own.
func ownerOfFilePlace(tx db.Tx, f storedFile) (owner int64, err error) {
	err = tx.QueryRow(`SELECT coalesce(j.owner_id, c.owner_id, f.owner_id) `+kernel.FromFile+
		` LEFT JOIN project j ON j.id = `+
		kernel.ProjectOfFile+` WHERE f.id = ?`, f.row).Scan(&owner)
	return owner, err
}

// trashedFileID returns the id of an entry's file while in the trash: no caller can name it, so the original id is
// free.
func trashedFileID(entry int64) string { return fmt.Sprintf("trash/%d", entry) }

// trashedCollection is a collection in the trash, as JSON.
type trashedCollection struct {
	Version     int    `json:"v"`
	Description string `json:"description,omitempty"`
	OwnSize     int    `json:"own_vectors,omitempty"` // dimensions
	Created     int64  `json:"created_at"`
	Updated     int64  `json:"updated_at"`
}

// collection returns the entry for a collection (row) that is being deleted, 0 if it is deleted permanently. It
// continues the entry of an unfinished earlier call.
func (t *trasher) collection(row int64) (int64, error) {
	if t.forGood {
		return 0, nil
	}
	open, err := db.Column[int64](t.tx, `SELECT id FROM trash WHERE kind = 'collection' AND collection_id = ?`, row)
	if err != nil || len(open) > 0 {
		return first(open), err
	}
	c := trashedCollection{Version: trashVersion}
	e := trashEntry{TrashEntry: TrashEntry{ID: t.s.newID(), Kind: TrashCollection}, owner: t.viewer.User, collection: row}
	if err := t.tx.QueryRow(`SELECT c.name, c.description, coalesce(f.dimensions, 0), c.created_at, c.updated_at
		FROM collection c
		LEFT JOIN profile f ON f.id = c.own_profile WHERE c.id = ?`, row).Scan(&e.item, &c.Description, &c.OwnSize,
		&c.Created, &c.Updated); err != nil {
		return 0, err
	}
	e.Title, e.Collection = e.item, e.item
	data, err := json.Marshal(c)
	if err != nil {
		return 0, err
	}
	e.data = string(data)
	return t.add(e)
}

// trashedProject is a project in the trash, as JSON.
type trashedProject struct {
	Version int             `json:"v"`
	Created int64           `json:"created_at"`
	Updated int64           `json:"updated_at"`
	Members []trashedMember `json:"members,omitempty"`
	Former  []trashedName   `json:"former_names,omitempty"`
}

// trashedName is a former name of a project.
type trashedName struct {
	Name  string `json:"name"`
	Key   string `json:"name_key"`
	Until int64  `json:"until"`
}

type trashedMember struct {
	User    string     `json:"user"` // user id
	Role    MemberRole `json:"role"`
	Created int64      `json:"created_at"`
}

// project returns the entry for a project of the caller's that is being deleted, as collection does.
func (t *trasher) project(p projectRow) (int64, error) {
	if t.forGood {
		return 0, nil
	}
	open, err := db.Column[int64](t.tx, `SELECT id FROM trash WHERE kind = 'project' AND project_id = ?`, p.row)
	if err != nil || len(open) > 0 {
		return first(open), err
	}
	return t.add(trashEntry{
		TrashEntry: TrashEntry{ID: t.s.newID(), Kind: TrashProject, Title: p.name, ProjectID: p.uid, ProjectName: p.name},
		item:       p.uid, owner: t.viewer.User, project: p.row, data: `{}`,
	})
}

// finishProject records a project whose memories are all gone: its times, its members, its former names, and its
// owner's files in it, which stay.
func (t *trasher) finishProject(entry int64, p projectRow) error {
	if entry == 0 {
		return nil
	}
	kept := trashedProject{Version: trashVersion}
	if err := t.tx.QueryRow(`SELECT created_at, updated_at FROM project WHERE id = ?`, p.row).Scan(&kept.Created,
		&kept.Updated); err != nil {
		return err
	}
	err := t.tx.Each(func(row db.Rows) error {
		var m trashedMember
		err := row.Scan(&m.User, &m.Role, &m.Created)
		kept.Members = append(kept.Members, m)
		return err
	}, `SELECT u.uid, m.role, m.created_at FROM project_member m JOIN users u ON u.id = m.user_id `+
		`WHERE m.project_id = ? ORDER BY m.created_at, u.uid`, p.row)
	if err != nil {
		return err
	}
	err = t.tx.Each(func(row db.Rows) error {
		var n trashedName
		err := row.Scan(&n.Name, &n.Key, &n.Until)
		kept.Former = append(kept.Former, n)
		return err
	}, `SELECT name, name_key, created_at FROM project_alias WHERE project_id = ? ORDER BY created_at, name_key`, p.row)
	if err != nil {
		return err
	}
	data, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	if _, err := t.tx.Exec(`UPDATE trash SET data = ? WHERE id = ?`, string(data), entry); err != nil {
		return err
	}
	_, err = t.tx.Exec(`INSERT INTO trash_item (entry_id, kind, uid, data) SELECT ?, 'file', uid, '' FROM file
		WHERE project_id = ? AND owner_id = ? AND state = 'stored'`, entry, p.row, t.viewer.User)
	return err
}

// first returns the first row of a list, 0 if it is empty.
func first(rows []int64) int64 {
	if len(rows) == 0 {
		return 0
	}
	return rows[0]
}
