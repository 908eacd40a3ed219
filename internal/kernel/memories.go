package kernel

import (
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/lifespan"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Memory is a memory as a caller sees it, with its rows. Times are microseconds since 1970.
type Memory struct {
	Attributes
	Row, Partition, CollectionRow int64
	OwnerRow                      int64 // of the collection
	ProjectRow                    int64 // 0 for none
	OwnVectors                    bool  // its collection takes vectors from callers
	Writable                      bool  // the caller may change it

	ID, Key, Content string
	Collection       string // name
	Owner            string // user id of the collection's owner
	SharedBy         string // the owner of the project, if not the caller
	Revision         int
	Created, Updated int64
	EventTime        *int64
	Times            lifespan.Times
	Successor        string // id of the newest memory that supersedes it
	SupersededAt     *int64 // since when one does
}

// The columns that are read as the content of a memory.
const (
	WholeContent = `m.content`
	NoContent    = `''`
)

// LoadMemories reads the visible memories that satisfy a condition on m, p, c or j, which may end with an order and a
// limit. content is the column that is read as the content.
func LoadMemories(tx db.Tx, v Viewer, content, condition string, args ...any) ([]Memory, error) {
	var read readMemory
	columns := read.columns(v, content)
	targets := columns.To()
	visible, visibleArgs := v.Visible()
	var found []Memory
	err := tx.Each(func(row db.Rows) error {
		read = readMemory{}
		if err := row.Scan(targets...); err != nil {
			return err
		}
		m, err := read.decode(tx)
		found = append(found, m)
		return err
	}, `SELECT `+columns.SQL()+` `+FromMemory+` JOIN users u ON u.id = c.owner_id
		LEFT JOIN project j ON j.id = p.project_id
		WHERE `+visible+v.Alive(`m`)+` AND `+condition, slices.Concat(columns.Args(), visibleArgs, args)...)
	return found, err
}

// LoadRows reads the visible memories among the given rows, in their order.
func LoadRows(tx db.Tx, v Viewer, content string, rows []int64) ([]Memory, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	found, err := LoadMemories(tx, v, content, `m.id IN `+db.Integers, db.List(rows))
	if err != nil {
		return nil, err
	}
	place := make(map[int64]int, len(rows))
	for i, row := range rows {
		place[row] = i
	}
	slices.SortFunc(found, func(a, b Memory) int { return place[a.Row] - place[b.Row] })
	return found, nil
}

// LoadMemory returns a visible memory by id.
func LoadMemory(tx db.Tx, v Viewer, id string) (Memory, error) {
	found, err := LoadMemories(tx, v, WholeContent, `m.uid IN (?, ?) ORDER BY m.uid = ? DESC`, id, valid.CanonicalID(id),
		id)
	if err != nil {
		return Memory{}, err
	}
	if len(found) == 0 {
		return Memory{}, fault.New(fault.KindNotFound, "id", "memory id %s not found, or you have no access to it",
			fault.Show(id))
	}
	return found[0], nil
}

// LoadForWriting returns a memory that the caller may change: an invisible one is ErrNotFound, a read-only one
// ErrForbidden.
func LoadForWriting(tx db.Tx, v Viewer, id string) (Memory, error) {
	m, err := LoadMemory(tx, v, id)
	if err == nil && !m.Writable {
		err = SharedReadOnly(tx, v, "id", "memory", id, m.Owner)
	}
	return m, err
}

// LinksAmong returns the links between some memories, by their places in the list of rows, in its order.
func LinksAmong(tx db.Tx, rows []int64) (links [][2]int, err error) {
	place := make(map[int64]int, len(rows))
	for i, row := range rows {
		place[row] = i
	}
	err = tx.Each(func(row db.Rows) error {
		var from, to int64
		err := row.Scan(&from, &to)
		if at, ok := place[to]; ok {
			links = append(links, [2]int{place[from], at})
		}
		return err
	}, `SELECT memory_id, related_id FROM `+db.Numbered+` r `+db.InOrder+
		` memory_link ON memory_id = r.value ORDER BY r.key, position, related_id`, db.List(rows))
	return links, err
}

// SharedReadOnly refuses a write to something that its owner shares for reading only.
func SharedReadOnly(tx db.Tx, v Viewer, argument, kind, id, owner string) error {
	return fault.New(fault.KindForbidden, argument, "%s %s belongs to %s, who shares it read-only", kind, fault.Show(id),
		UserName(tx, v, owner))
}

// Expect compares the revision with the one that the caller expects, 0 for any.
func (m Memory) Expect(revision int) error {
	if revision == 0 || revision == m.Revision {
		return nil
	}
	return fault.New(fault.KindConflict, "expected_revision",
		"{} is %d, but memory %s has revision %d; read it again and apply the change to that",
		revision, fault.Show(m.ID), m.Revision)
}

// readMemory is a memory as read from its columns.
type readMemory struct {
	Memory
	metadata, tags, related string // JSON
}

// columns returns a memory's columns for a caller, from the tables that LoadMemories joins.
func (m *readMemory) columns(v Viewer, content string) db.Columns {
	visible, visibleArgs := v.Visible()
	writable, writableArgs := v.Writable()
	by, since := `''`, `NULL`
	if v.Superseded {
		from := ` FROM memory s WHERE ` + Successor + v.Alive(`s`)
		by = `coalesce((SELECT s.uid` + from + ` ORDER BY s.id DESC LIMIT 1), '')`
		since = `(SELECT min(coalesce(s.valid_from, s.created_at))` + from + `)`
	}
	return db.Columns{
		{SQL: by, To: &m.Memory.Successor}, {SQL: since, To: &m.SupersededAt},
		{SQL: `m.id`, To: &m.Row}, {SQL: `p.id`, To: &m.Partition}, {SQL: `c.id`, To: &m.CollectionRow},
		{SQL: `c.owner_id`, To: &m.OwnerRow}, {SQL: `coalesce(j.id, 0)`, To: &m.ProjectRow},
		{SQL: `c.own_profile IS NOT NULL`, To: &m.OwnVectors}, {SQL: `m.uid`, To: &m.ID},
		{SQL: `c.name`, To: &m.Collection}, {SQL: `u.uid`, To: &m.Owner}, {SQL: content, To: &m.Content},
		{SQL: `coalesce(m.event_type, '')`, To: &m.EventType}, {SQL: `coalesce(m.state, '')`, To: &m.State},
		{SQL: `coalesce(m.importance, '')`, To: &m.Importance},
		{SQL: `coalesce(m.classification, '')`, To: &m.Classification},
		{SQL: `coalesce(m.rule_type, '')`, To: &m.RuleType}, {SQL: `coalesce(j.uid, '')`, To: &m.ProjectID},
		{SQL: `coalesce(j.name, '')`, To: &m.ProjectName}, {SQL: `m.metadata`, To: &m.metadata},
		{SQL: `(SELECT ` + db.ListOf + `(t.tag ORDER BY t.position) FROM memory_tag t WHERE t.memory_id = m.id)`,
			To: &m.tags},
		{SQL: `(SELECT ` + db.ListOf + `(r.uid ORDER BY l.position) FROM memory_link l JOIN memory r ON r.id = l.related_id
			WHERE l.memory_id = m.id` + v.Alive(`r`) + `
			AND EXISTS (SELECT 1 FROM partition p JOIN collection c ON c.id = p.collection_id
			WHERE p.id = r.partition_id AND ` + visible + `))`, To: &m.related, Args: visibleArgs},
		{SQL: `m.revision`, To: &m.Revision}, {SQL: `m.created_at`, To: &m.Created},
		{SQL: `m.updated_at`, To: &m.Updated}, {SQL: writable, To: &m.Writable, Args: writableArgs},
		{SQL: `CASE WHEN j.owner_id <> ? THEN (SELECT coalesce(o.name, o.uid) FROM users o WHERE o.id = j.owner_id)
			ELSE '' END`, To: &m.SharedBy, Args: []any{v.User}},
		{SQL: `coalesce(m.key, '')`, To: &m.Key}, {SQL: `m.event_time`, To: &m.EventTime},
		{SQL: `m.expires_at`, To: &m.Times.Expires}, {SQL: `m.valid_from`, To: &m.Times.From},
		{SQL: `m.valid_until`, To: &m.Times.Until}, {SQL: `coalesce(m.supersedes, '')`, To: &m.Times.Supersedes},
	}
}

// decode returns the memory.
func (m *readMemory) decode(tx db.Tx) (Memory, error) {
	var err error
	if m.Own, err = jsonobject.Decode([]byte(m.metadata)); err != nil {
		return Memory{}, fault.Damaged(err, "the metadata of memory %s", m.ID)
	}
	if m.Tags, err = DecodeTags(tx, m.tags); err != nil {
		return Memory{}, err
	}
	m.Related, err = DecodeStrings(m.related)
	return m.Memory, err
}
