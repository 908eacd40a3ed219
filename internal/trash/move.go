package trash

import (
	"cmp"
	"encoding/json"
	"strings"
	"unicode"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/naming"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/shorten"
)

const (
	maxTitle   = 120 // characters of the title of an entry
	maxThrough = 64  // characters of Mover.Through to keep
)

// Mover deletes within one transaction: into the trash, or permanently. The calling function has checked that the
// viewer may delete.
type Mover struct {
	Tx      db.Tx
	Viewer  kernel.Viewer
	Forever bool          // permanently
	Now     int64         // when
	Until   int64         // how long it can be restored
	Through string        // the origin of the call, such as a client
	NewID   func() string // for entries without an id of their own

	places map[int64]kernel.TrashedPlace // of partitions
	owners map[int64]int64               // of entries
	rows   int                           // memories that this transaction may still delete
	left   int64                         // bytes that it may still move
}

// Bounded limits the mover to a portion and returns it.
func (t *Mover) Bounded(p Portion) *Mover {
	t.places, t.owners = map[int64]kernel.TrashedPlace{}, map[int64]int64{}
	t.rows, t.left = p.Rows, p.Bytes
	return t
}

// Memory is a memory to delete.
type Memory struct {
	Row, Partition int64
	ID, Content    string
}

// File is a file to delete.
type File struct {
	Row, Project int64 // 0: in no project
	ID, Filename string
	Size         int64
}

// Place returns the place of a partition's memories.
func (t *Mover) Place(partition int64) (kernel.TrashedPlace, error) {
	if known, ok := t.places[partition]; ok {
		return known, nil
	}
	var p kernel.TrashedPlace
	err := t.Tx.QueryRow(`SELECT u.uid, c.name, c.id, c.created_at, coalesce(f.dimensions, 0), coalesce(o.uid, ''),
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

// Memory deletes one memory, as an entry of its own.
func (t *Mover) Memory(m Memory) error {
	if t.Forever {
		return t.EraseMemories(m.Row)
	}
	at, err := t.Place(m.Partition)
	if err != nil {
		return err
	}
	var expires *int64
	if err := t.Tx.QueryRow(`SELECT expires_at FROM memory WHERE id = ?`, m.Row).Scan(&expires); err != nil {
		return err
	}
	until := t.Until
	if expires != nil {
		until = min(until, *expires)
	}
	entry, err := t.add(Entry{
		until: until, ID: m.ID, Kind: Memories, Title: titleOf(m.Content), Collection: at.Collection, ProjectID: at.Project,
		ProjectName: at.ProjectName, Item: m.ID, Owner: at.OwnerRow, CollectionRow: at.CollectionRow,
		ProjectRow: at.ProjectRow, Data: `{}`,
	})
	if err != nil {
		return err
	}
	return t.move(entry, m.Row)
}

// add makes an entry and returns its row.
func (t *Mover) add(e Entry) (int64, error) {
	taken, err := db.Column[int64](t.Tx, `SELECT id FROM trash WHERE uid = ?`, e.ID)
	if err != nil {
		return 0, err
	}
	if len(taken) > 0 { // deleted before, stored again (by an import, say), and now deleted again
		if _, err := t.Tx.Exec(`UPDATE trash SET uid = ? WHERE id = ?`, t.NewID(), taken[0]); err != nil {
			return 0, err
		}
	}
	title, err := sealedrows.SealText(t.Tx, e.Owner, sealedrows.TrashTitle, e.Title)
	if err != nil {
		return 0, err
	}
	data, err := sealedrows.SealText(t.Tx, e.Owner, sealedrows.TrashData, e.Data)
	if err != nil {
		return 0, err
	}
	collection, err := sealedrows.SealText(t.Tx, e.Owner, sealedrows.CollectionName, e.Collection)
	if err != nil {
		return 0, err
	}
	project, err := sealedrows.SealText(t.Tx, e.Owner, sealedrows.ProjectName, e.ProjectName)
	if err != nil {
		return 0, err
	}
	item := any(e.Item)
	if e.Kind == Collections {
		item = collection
	}
	through := strings.ReplaceAll(strings.ToValidUTF8(t.Through, "\uFFFD"), "\x00", "\uFFFD") // any text of a program
	return db.Insert(t.Tx, `INSERT INTO trash (uid, kind, item, title, owner_id, collection_id, project_id, collection,
		project, project_name, data,
			memories, size, deleted_by, deleted_through, deleted_at, restorable_until) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
			0, ?, ?, ?, ?, ?) RETURNING id`,
		e.ID, string(e.Kind), item, title, e.Owner, db.OrNull(e.CollectionRow), db.OrNull(e.ProjectRow), collection,
		e.ProjectID, project, data,
		e.Size, t.Viewer.User, shorten.Characters(through, maxThrough), t.Now, cmp.Or(e.until, t.Until))
}

// titleOf returns the Markdown heading at the beginning of a memory, or else its beginning as one line.
func titleOf(content string) string {
	head := shorten.Characters(content, 4*maxTitle)
	first := strings.TrimLeft(head, " \t\r\n")
	if words := strings.TrimLeft(first, "#"); len(words) < len(first) && strings.HasPrefix(words, " ") {
		if heading := shorten.Title(head, maxTitle); heading != "" {
			return heading
		}
	}
	title := strings.Join(strings.FieldsFunc(head,
		func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if short := shorten.Characters(title, maxTitle); len(short) < len(title) || len(head) < len(content) {
		return short + "…"
	}
	return title
}

// Memories deletes one portion of the memories of the partitions p for which a condition holds, into an entry or
// permanently, and reports whether these were all. The calling function must have checked that the user may delete
// them.
func (t *Mover) Memories(entry int64, condition string, arg int64) (done bool, err error) {
	if !t.Forever { // the texts of files do not go to the trash; the files have them
		condition += ` AND p.id NOT IN (` + kernel.TextPartitions + `)`
	}
	rows, err := db.Column[int64](t.Tx, `SELECT m.id FROM partition p JOIN memory m ON m.partition_id = p.id
		WHERE `+condition+` LIMIT ?`, arg, t.rows)
	if err != nil {
		return false, err
	}
	done = len(rows) < t.rows
	if t.Forever {
		return done, t.EraseMemories(rows...)
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

// EraseMemories deletes memories permanently.
func (t *Mover) EraseMemories(rows ...int64) error {
	if len(rows) == 0 {
		return nil
	}
	for _, statement := range []string{
		`DELETE FROM trash_link WHERE source IN (SELECT uid FROM memory WHERE id IN ` + db.Integers1 + `)
			OR target IN (SELECT uid FROM memory WHERE id IN ` + db.Integers1 + `)`,
		`DELETE FROM memory WHERE id IN ` + db.Integers1,
	} {
		if _, err := t.Tx.Exec(statement, db.List(rows)); err != nil {
			return err
		}
	}
	return NoteErasure(t.Tx)
}

// move moves a memory with everything that belongs to it out of the live tables, including past versions from other
// places, and links to and from memories of others.
func (t *Mover) move(entry, row int64) error {
	return db.Beyond(t.Tx, func() error { return t.moveWhole(entry, row) })
}

func (t *Mover) moveWhole(entry, row int64) error {
	var m kernel.TrashedMemory
	var id, tags string
	var partition int64
	err := t.Tx.QueryRow(`SELECT uid, partition_id, content, coalesce(event_type, ''), coalesce(state, ''),
			coalesce(importance, ''), coalesce(classification, ''), coalesce(rule_type, ''), coalesce(key, ''), event_time,
			expires_at, valid_from, valid_until, coalesce(supersedes, ''), metadata, revision, created_at, updated_at,
			(SELECT `+db.ListOf+`(tag ORDER BY position) FROM memory_tag WHERE memory_id = memory.id) FROM memory WHERE id = ?`,
		row).
		Scan(&id, &partition, &m.Content, &m.EventType, &m.State, &m.Importance, &m.Classification, &m.RuleType, &m.Key,
			&m.EventTime, &m.Times.Expires, &m.Times.From, &m.Times.Until, &m.Times.Supersedes, &m.Metadata,
			&m.Revision, &m.Created, &m.Updated, &tags)
	if err != nil {
		return err
	}
	m.Version = version
	if m.Tags, err = kernel.DecodeTags(t.Tx, tags); err != nil {
		return err
	}
	if m.Place, err = t.Place(partition); err != nil {
		return err
	}
	err = t.Tx.Each(func(row db.Rows) error {
		var p kernel.TrashedPassage
		err := row.Scan(&p.Start, &p.Length, &p.Blank, &p.Profile, &p.Vector)
		m.Passages = append(m.Passages, p)
		return err
	}, `SELECT p.start, p.length, p.blank, coalesce(f.key, ''), p.vector FROM passage p `+
		`LEFT JOIN profile f ON f.id = p.profile_id WHERE p.memory_id = ? ORDER BY p.id`, row)
	if err != nil {
		return err
	}
	sound, err := kernel.RowSound(t.Tx, kernel.MemoryKind, row)
	if err != nil {
		return err
	}
	if err := t.put(entry, "memory", id, m, sound); err != nil {
		return err
	}
	size := kernel.MemoryBytes(t.Tx, m.Content, m.Metadata)
	count, former, err := t.moveRevisions(entry, row, id)
	if err != nil {
		return err
	}
	if err := t.keepLinks(row); err != nil {
		return err
	}
	if _, err := t.Tx.Exec(`DELETE FROM memory WHERE id = ?`, row); err != nil {
		return err
	}
	_, err = t.Tx.Exec(`UPDATE trash SET memories = memories + 1, revisions = revisions + ?, size = size + ? WHERE id = ?`,
		count, size+former, entry)
	return err
}

// put writes a part of an entry. A damaged part stays marked as damaged.
func (t *Mover) put(entry int64, kind, id string, part any, sound bool) error {
	data, err := json.Marshal(part)
	if err != nil {
		return fault.Damaged(err, "memory %s", id)
	}
	t.left -= int64(len(data))
	sealed, err := t.sealed(entry, sealedrows.TrashItemData, string(data))
	if err != nil {
		return err
	}
	item, err := db.Insert(t.Tx, `INSERT INTO trash_item (entry_id, kind, uid, data) VALUES (?, ?, ?, ?) RETURNING id`,
		entry, kind, id, sealed)
	if err == nil && !sound {
		err = kernel.DoubtRow(t.Tx, kernel.TrashItemKind, item)
	}
	return err
}

// sealed returns the argument for a value of an entry; see [sealedrows.SealText].
func (t *Mover) sealed(entry int64, c sealedrows.SealedColumn, value string) (any, error) {
	if !sealedrows.Seals(t.Tx) {
		return value, nil
	}
	owner, known := t.owners[entry]
	if !known {
		if err := t.Tx.QueryRow(`SELECT owner_id FROM trash WHERE id = ?`, entry).Scan(&owner); err != nil {
			return nil, err
		}
		if t.owners == nil {
			t.owners = map[int64]int64{}
		}
		t.owners[entry] = owner
	}
	return sealedrows.SealText(t.Tx, owner, c, value)
}

// moveRevisions writes the past versions of a memory, which move with it, and returns their number and their size in
// bytes.
func (t *Mover) moveRevisions(entry, row int64, id string) (count int, size int64, err error) {
	numbers, err := db.Column[int64](t.Tx, `SELECT id FROM memory_revision WHERE memory_id = ? ORDER BY revision`, row)
	if err != nil {
		return 0, 0, err
	}
	for _, number := range numbers { // one by one: there may be very many
		r := kernel.TrashedRevision{Version: version}
		var partition int64
		if err := t.Tx.QueryRow(`SELECT partition_id, revision, content, attributes, created_at FROM memory_revision `+
			`WHERE id = ?`, number).
			Scan(&partition, &r.Number, &r.Content, &r.Attributes, &r.Created); err != nil {
			return 0, 0, err
		}
		if r.Place, err = t.Place(partition); err != nil {
			return 0, 0, err
		}
		sound, err := kernel.RowSound(t.Tx, kernel.RevisionKind, number)
		if err != nil {
			return 0, 0, err
		}
		if err := t.put(entry, "revision", id, r, sound); err != nil {
			return 0, 0, err
		}
		size += kernel.RevisionBytes(t.Tx, r.Content, r.Attributes)
	}
	return len(numbers), size, nil
}

// keepFiles and keptFiles record the memories of files for which a condition holds. Citus plans the query of an INSERT
// separately if the rows get numbers, and then supports a join of tables only within WITH.
const (
	keepFiles = `INSERT INTO trash_link (kind, source, target, position) WITH link (source, target) AS MATERIALIZED (
		SELECT f.uid, m.uid FROM file f JOIN memory m ON m.id = f.memory_id WHERE `
	keptFiles = ` SELECT 'file', source, target, 0 FROM link WHERE true ON CONFLICT DO NOTHING`
)

// keepLinks records the links from and to a deleted memory, and its files, which stay.
func (t *Mover) keepLinks(row int64) error {
	for _, statement := range []string{
		`INSERT INTO trash_link (kind, source, target, position) WITH link (source, target, position) AS MATERIALIZED (
				SELECT m.uid, r.uid, l.position FROM memory_link l JOIN memory m ON m.id = l.memory_id
				JOIN memory r ON r.id = l.related_id WHERE l.memory_id = ?1 OR l.related_id = ?1)
			SELECT 'memory', source, target, position FROM link WHERE true
			ON CONFLICT (source, target, kind) DO UPDATE SET position = excluded.position`,
		keepFiles + `f.memory_id = ?1 AND f.state = 'stored')` + keptFiles,
	} {
		if _, err := t.Tx.Exec(statement, row); err != nil {
			return err
		}
	}
	return nil
}

// File deletes a file, as an entry of its own. Its chunks stay in place.
func (t *Mover) File(f File) error {
	return db.Beyond(t.Tx, func() error { return t.moveFile(f) }) // in the trash it belongs to the owner of its place
}

func (t *Mover) moveFile(f File) error {
	owner, err := OwnerOfFile(t.Tx, f.Row)
	if err != nil {
		return err
	}
	e := Entry{
		ID: f.ID, Kind: Files, Title: f.Filename, Size: f.Size, Item: f.ID, Owner: owner, ProjectRow: f.Project,
		Data: `{}`,
	}
	if f.Project != 0 {
		if err := t.Tx.QueryRow(`SELECT uid, name FROM project WHERE id = ?`, f.Project).Scan(&e.ProjectID,
			&e.ProjectName); err != nil {
			return err
		}
	}
	entry, err := t.add(e)
	if err != nil {
		return err
	}
	if _, err := t.Tx.Exec(keepFiles+`f.id = ?)`+keptFiles, f.Row); err != nil {
		return err
	}
	_, err = t.Tx.Exec(`UPDATE file SET state = 'trashed', uid = ?, memory_id = NULL, project_id = NULL WHERE id = ?`,
		fileID(entry), f.Row)
	return err
}

// OwnerOfFile returns the owner of a file's place: the project's owner, else that of its memory's collection, else
// its own.
func OwnerOfFile(tx db.Tx, file int64) (owner int64, err error) {
	err = tx.QueryRow(`SELECT coalesce(j.owner_id, c.owner_id, f.owner_id) `+kernel.FromFile+
		` LEFT JOIN project j ON j.id = `+
		kernel.ProjectOfFile+` WHERE f.id = ?`, file).Scan(&owner)
	return owner, err
}

// Collection returns the entry for a collection (row) that is being deleted, 0 if it is deleted permanently. It
// continues the entry of an unfinished earlier call.
func (t *Mover) Collection(row int64) (int64, error) {
	if t.Forever {
		return 0, nil
	}
	open, err := db.Column[int64](t.Tx, `SELECT id FROM trash WHERE kind = 'collection' AND collection_id = ?`, row)
	if err != nil || len(open) > 0 {
		return first(open), err
	}
	c := collection{Version: version}
	e := Entry{ID: t.NewID(), Kind: Collections, Owner: t.Viewer.User, CollectionRow: row}
	if err := t.Tx.QueryRow(`SELECT c.name, c.description, coalesce(f.dimensions, 0), c.created_at, c.updated_at
		FROM collection c
		LEFT JOIN profile f ON f.id = c.own_profile WHERE c.id = ?`, row).Scan(&e.Item, &c.Description, &c.OwnSize,
		&c.Created, &c.Updated); err != nil {
		return 0, err
	}
	e.Title, e.Collection = e.Item, e.Item
	if c.Retention, err = ReadRetention(t.Tx, "collection", row); err != nil {
		return 0, err
	}
	data, err := json.Marshal(c)
	if err != nil {
		return 0, err
	}
	e.Data = string(data)
	return t.add(e)
}

// Project returns the entry for a project of the caller's that is being deleted, as Collection does.
func (t *Mover) Project(p naming.Project) (int64, error) {
	if t.Forever {
		return 0, nil
	}
	open, err := db.Column[int64](t.Tx, `SELECT id FROM trash WHERE kind = 'project' AND project_id = ?`, p.Row)
	if err != nil || len(open) > 0 {
		return first(open), err
	}
	return t.add(Entry{
		ID: t.NewID(), Kind: Projects, Title: p.Name, ProjectID: p.UID, ProjectName: p.Name, Item: p.UID,
		Owner: t.Viewer.User, ProjectRow: p.Row, Data: `{}`,
	})
}

// FinishProject records a project whose memories are all deleted: its times, its members, its former names, and its
// owner's files in it, which stay.
func (t *Mover) FinishProject(entry int64, p naming.Project) error {
	if entry == 0 {
		return nil
	}
	kept := project{Version: version}
	if err := t.Tx.QueryRow(`SELECT created_at, updated_at FROM project WHERE id = ?`, p.Row).Scan(&kept.Created,
		&kept.Updated); err != nil {
		return err
	}
	var err error
	if kept.Retention, err = ReadRetention(t.Tx, "project", p.Row); err != nil {
		return err
	}
	err = t.Tx.Each(func(row db.Rows) error {
		var m Member
		err := row.Scan(&m.User, &m.Role, &m.Created)
		kept.Members = append(kept.Members, m)
		return err
	}, `SELECT u.uid, m.role, m.created_at FROM project_member m JOIN users u ON u.id = m.user_id `+
		`WHERE m.project_id = ? ORDER BY m.created_at, u.uid`, p.Row)
	if err != nil {
		return err
	}
	err = t.Tx.Each(func(row db.Rows) error {
		var n formerName
		err := row.Scan(&n.Name, &n.Key, &n.Until)
		kept.Former = append(kept.Former, n)
		return err
	}, `SELECT name, name_key, created_at FROM project_alias WHERE project_id = ? ORDER BY created_at, name_key`, p.Row)
	if err != nil {
		return err
	}
	data, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	sealed, err := t.sealed(entry, sealedrows.TrashData, string(data))
	if err != nil {
		return err
	}
	if _, err := t.Tx.Exec(`UPDATE trash SET data = ? WHERE id = ?`, sealed, entry); err != nil {
		return err
	}
	_, err = t.Tx.Exec(`INSERT INTO trash_item (entry_id, kind, uid, data) SELECT ?, 'file', uid, '' FROM file
		WHERE project_id = ? AND owner_id = ? AND state = 'stored'`, entry, p.Row, t.Viewer.User)
	return err
}
