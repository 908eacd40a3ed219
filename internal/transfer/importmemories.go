package transfer

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// memoryItem is a memory to import. Everything but its content is optional.
type memoryItem struct {
	lineNumber
	namespace        string // of the users in the line
	draft            kernel.Draft
	id, owner        string
	projectOwner     string
	metadata         string // the own keys, in stored form
	revision         *int64
	created, updated *int64
	profile          string // of the vectors in the export; empty: none
	spans            []vectorSpan
	brought          bool      // the vectors come from separate lines, and are dropped if they do not match
	links            *linkItem // the links in its own line
	row              int64
	outcome          outcome
	ownSize          int   // dimensions of the callers' vectors in its collection; 0: the store's embedder makes them
	stands           int64 // its current revision in the store
}

// memoryLine is the line of a memory in an export.
type memoryLine struct {
	ID             string          `json:"id"`
	Owner          string          `json:"owner"`
	Collection     string          `json:"collection_name"`
	ProjectOwner   string          `json:"project_owner"`
	ProjectID      string          `json:"project_id"`
	ProjectName    string          `json:"project_name"`
	Content        string          `json:"content"`
	EventType      string          `json:"event_type"`
	State          string          `json:"state"`
	Importance     string          `json:"importance"`
	Classification string          `json:"classification"`
	RuleType       string          `json:"rule_type"`
	Tags           []string        `json:"tags"`
	Related        []string        `json:"related_memory_ids"`
	Metadata       json.RawMessage `json:"metadata"`
	Embedding      []float32       `json:"embedding"`
	Revision       *int64          `json:"revision"`
	CreatedAt      *string         `json:"created_at"`
	UpdatedAt      *string         `json:"updated_at"`
	Key            string          `json:"key"`
	EventTime      *string         `json:"event_time"`
	ExpiresAt      *string         `json:"expires_at"`
	ValidFrom      *string         `json:"valid_from"`
	ValidUntil     *string         `json:"valid_until"`
	Supersedes     string          `json:"supersedes"`
}

// otherVersion is the conflict of a memory or file that the store has in another version.
const otherVersion = "the store has another version of it, or one with another owner, which was kept"

// fields returns the memory of a line, without its times.
func (l memoryLine) fields() (m kernel.DraftFields, err error) {
	m = kernel.DraftFields{
		Collection: l.Collection, Content: l.Content, Embedding: l.Embedding, Key: l.Key,
		Known: kernel.Attributes{
			EventType: l.EventType, State: l.State, ProjectID: l.ProjectID, ProjectName: l.ProjectName,
			Importance: l.Importance, Classification: l.Classification, RuleType: l.RuleType,
			Tags: l.Tags, Related: l.Related,
		},
	}
	m.Metadata, err = ParseMetadata(l.Metadata)
	return m, err
}

// setTimes sets the times of a memory and the memory it supersedes.
func (l memoryLine) setTimes(m *kernel.DraftFields) (err error) {
	for _, at := range []struct {
		argument string
		given    *string
		into     **int64
	}{
		{"event_time", l.EventTime, &m.EventTime}, {"expires_at", l.ExpiresAt, &m.Times.Expires},
		{"valid_from", l.ValidFrom, &m.Times.From}, {"valid_until", l.ValidUntil, &m.Times.Until},
	} {
		if *at.into, err = parseOptionalTime(at.argument, at.given); err != nil {
			return err
		}
	}
	m.Times.Supersedes = l.Supersedes
	return nil
}

// check checks the ids and the revision of a memory to import.
func (m *memoryItem) check() error {
	for _, name := range []struct{ argument, value string }{{"id", cmp.Or(m.id, "-")}, {"owner", m.owner},
		{"project_owner", m.projectOwner}} {
		if err := valid.Name(name.argument, name.value); err != nil {
			return err
		}
	}
	if r := m.revision; r != nil && (*r < 1 || *r > kernel.MaxRevision) {
		return fault.Invalid("revision", "revision is %d; expected 1 and more", *r)
	}
	return nil
}

// parseMemory reads the line of a memory whose users are of a namespace.
func parseMemory(line []byte, n int, namespace string) (importItem, error) {
	var given memoryLine
	if err := decodeLine(line, &given); err != nil {
		return nil, err
	}
	m, err := given.fields()
	if err != nil {
		return nil, err
	}
	item := &memoryItem{lineNumber: lineNumber(n), namespace: namespace, id: given.ID,
		owner: cmp.Or(given.Owner, kernel.LocalUser), revision: given.Revision}
	item.projectOwner = cmp.Or(given.ProjectOwner, item.owner)
	if err := item.check(); err != nil {
		return nil, err
	}
	if item.created, err = parseOptionalTime("created_at", given.CreatedAt); err != nil {
		return nil, err
	}
	if item.updated, err = parseOptionalTime("updated_at", given.UpdatedAt); err != nil {
		return nil, err
	}
	if err := given.setTimes(&m); err != nil {
		return nil, err
	}
	if item.draft, err = kernel.NewDraft(m); err != nil {
		return nil, err
	}
	if item.metadata, err = ownMetadata(item.draft); err != nil {
		return nil, err
	}
	if item.id == "" {
		item.id, err = item.derivedID()
	}
	if item.moved() && strings.EqualFold(item.draft.EventType, kernel.EventIdentity) {
		item.draft.State = kernel.StateArchived // it is a member's, and must not become the identity of the project's owner
	}
	return item, err
}

// ownMetadata returns the own metadata of a memory in stored form.
func ownMetadata(d kernel.Draft) (string, error) {
	own, err := json.Marshal(kernel.OrEmpty(d.Own))
	return string(own), err
}

// moved reports whether the line dates from before memories in a project belonged to the project's owner.
func (m *memoryItem) moved() bool {
	return m.owner != m.projectOwner && (m.draft.ProjectID != "" || m.draft.ProjectName != "")
}

// ParseMetadata reads metadata without loss.
func ParseMetadata(raw json.RawMessage) (map[string]any, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	object, err := jsonobject.Decode(raw)
	if err != nil {
		return nil, fault.Invalid("metadata", "metadata is %s; expected a JSON object", fault.Show(string(raw)))
	}
	return object, nil
}

func parseOptionalTime(name string, value *string) (*int64, error) {
	if value == nil {
		return nil, nil
	}
	micros, err := parseTime(name, *value)
	return &micros, err
}

// derivedID derives an id from all fields of a memory without one, so that importing the same file again changes
// nothing: a UUID of version 8 (RFC 9562, section 5.8).
func (m *memoryItem) derivedID() (string, error) {
	fields := []any{m.owner, m.projectOwner, m.draft.Collection, m.draft.Content, m.draft.Shown(), m.created}
	if m.namespace != "" {
		fields = append(fields, m.namespace)
	}
	encoded, err := json.Marshal(fields)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(encoded)
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	text := hex.EncodeToString(sum[:16])
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:], nil
}

// storedState is the state of a memory in the store, for comparison.
type storedState struct {
	exportMemory
	namespace   string
	projectName string
	tagList     string
}

// compare looks up a memory with this id in the store, and its state. The row is 0 if there is none.
func (m *memoryItem) compare(tx db.Tx, replace bool) (row int64, o outcome, err error) {
	for _, owner := range []*string{&m.owner, &m.projectOwner} {
		if *owner, err = idOfOwner(tx, m.namespace, *owner); err != nil {
			return 0, added, err
		}
	}
	if m.draft.ProjectID != "" || m.draft.ProjectName != "" {
		m.owner = m.projectOwner // who owns everything in the project
	}
	if m.links != nil {
		m.links.owner = m.owner
	}
	var s storedState
	err = tx.Each(func(r db.Rows) error {
		return r.Scan(&s.row, &s.namespace, &s.owner, &s.collection, &s.projectOwner, &s.project, &s.projectName, &s.content,
			&s.eventType,
			&s.state,
			&s.importance, &s.classification, &s.ruleType, &s.key, &s.eventTime, &s.times.Expires, &s.times.From, &s.times.Until,
			&s.times.Supersedes, &s.own, &s.revision, &s.created, &s.updated,
			&s.tagList)
	},
		`SELECT m.id, u.namespace, u.uid, c.name, coalesce(o.uid, ''), coalesce(j.uid, ''), coalesce(j.name, ''), m.content,
			coalesce(m.event_type, ''), coalesce(m.state, ''),
			coalesce(m.importance, ''), coalesce(m.classification, ''), coalesce(m.rule_type, ''), coalesce(m.key, ''),
				m.event_time,
			m.expires_at, m.valid_from, m.valid_until, coalesce(m.supersedes, ''), m.metadata, m.revision, m.created_at,
				m.updated_at,
			(SELECT `+db.ListOf+`(t.tag ORDER BY t.position) FROM memory_tag t WHERE t.memory_id = m.id)
		`+kernel.FromMemory+` JOIN users u ON u.id = c.owner_id LEFT JOIN project j ON j.id = p.project_id
			LEFT JOIN users o ON o.id = j.owner_id
		WHERE m.uid = ?`, m.id)
	if err != nil {
		return 0, added, err
	}
	if s.row == 0 {
		o, err = unlessTrashed(tx, `i.kind = 'memory' AND i.uid = ?`, m.id, m.namespace, m.owner)
		return 0, o, err
	}
	if s.tags, err = kernel.DecodeTags(tx, s.tagList); err != nil {
		return 0, added, err
	}
	m.stands = s.revision
	switch {
	case s.owner != m.owner || s.namespace != m.namespace || s.collection == kernel.TextCollection:
		return s.row, conflicting, nil
	case m.equals(s):
		return s.row, unchanged, nil
	case replace:
		return s.row, replaced, nil
	}
	return s.row, conflicting, nil
}

// unlessTrashed returns the outcome for an item that is not in the store: it is added, unless it is in the trash of
// another owner, who may restore it. The condition contains the id and is for an item i of an entry t.
func unlessTrashed(tx db.Tx, condition, id, namespace, owner string) (outcome, error) {
	found, err := db.Column[int64](tx, `SELECT 1 FROM trash t JOIN users u ON u.id = t.owner_id
		LEFT JOIN trash_item i ON i.entry_id = t.id WHERE `+condition+` AND (u.namespace <> ? OR u.uid <> ?) LIMIT 1`, id,
		namespace, owner)
	if err != nil || len(found) == 0 {
		return added, err
	}
	return conflicting, nil
}

// idOfOwner returns the id of the user in an owner field, which may be an account name: authors of handmade files do
// not know ids. An id takes precedence; a value that is neither becomes the id of a new user.
func idOfOwner(tx db.Tx, namespace, owner string) (string, error) {
	found, err := db.Column[string](tx, `SELECT uid FROM users WHERE namespace = ? AND uid = ?`, namespace, owner)
	if err == nil && len(found) == 0 && len(owner) <= valid.MaxFoldedName {
		found, err = db.Column[string](tx, `SELECT uid FROM users WHERE namespace = ? AND name_key = ?`, namespace,
			foldname.Key(owner))
	}
	if err != nil || len(found) == 0 {
		return owner, err
	}
	return found[0], nil
}

// equals reports whether the memory in the store matches the fields that the line sets.
func (m *memoryItem) equals(s storedState) bool {
	d := &m.draft
	project := s.project == d.ProjectID
	if d.ProjectID == "" && d.ProjectName != "" {
		project = foldname.Key(s.projectName) == foldname.Key(d.ProjectName)
	}
	agrees := func(value *int64, stored int64) bool { return value == nil || *value == stored }
	return s.content == d.Content && s.collection == d.Collection && project &&
		(s.project == "" || s.projectOwner == m.projectOwner) &&
		s.eventType == d.EventType && s.state == d.State && s.importance == d.Importance &&
		s.classification == d.Classification && s.ruleType == d.RuleType &&
		(d.Key == "" || s.key == d.Key) && (d.EventTime == nil || s.eventTime != nil && *s.eventTime == *d.EventTime) &&
		(d.Times.IsZero() || s.times.Equal(d.Times)) &&
		s.own == m.metadata && slices.Equal(s.tags, d.Tags) &&
		agrees(m.revision, s.revision) && agrees(m.created, s.created) && agrees(m.updated, s.updated)
}

// apply writes the memory and its derived data.
func (m *memoryItem) apply(t *importTx) error {
	var err error
	if m.row, m.outcome, err = m.compare(t.tx, t.replace); err != nil {
		return err
	}
	defer func() {
		if m.links != nil {
			m.links.kept = m.outcome == conflicting
		}
	}()
	switch m.outcome {
	case unchanged:
		t.count(KindMemory, unchanged)
		return nil
	case conflicting:
		t.conflict(m.line(), KindMemory, m.id, otherVersion)
		return nil
	}
	at, err := t.place(m.owner, m.draft.Collection, m.projectOwner, m.draft.ProjectID, m.draft.ProjectName)
	if err != nil {
		return err
	}
	rule, err := m.secondRule(t, at)
	if err != nil {
		return err
	}
	if rule != "" {
		m.outcome = conflicting
		t.conflict(m.line(), KindMemory, m.id, "memory "+fault.Show(rule)+" is already the rule of this type here")
		return nil
	}
	holder, err := m.keyHolder(t, at)
	if err != nil {
		return err
	}
	if holder != "" {
		m.outcome = conflicting
		t.conflict(m.line(), KindMemory, m.id, "memory "+fault.Show(holder)+" already has this key here")
		return nil
	}
	if err := m.breakCircle(t); err != nil {
		return err
	}
	if err := m.write(t, at); err != nil {
		return err
	}
	t.count(KindMemory, m.outcome)
	return nil
}

// breakCircle drops the memory's Supersedes if it would close a cycle, directly or through others: in a cycle all would
// be superseded, and searches would find none. It follows the chain only if a stored memory supersedes this one, which
// in an export comes later.
func (m *memoryItem) breakCircle(t *importTx) error {
	old := m.draft.Times.Supersedes
	if old == "" {
		return nil
	}
	circle, err := db.Column[int64](t.tx, `WITH RECURSIVE chain (uid) AS (SELECT CAST(?1 AS TEXT) WHERE ?1 = ?2
			OR EXISTS (SELECT 1 FROM memory WHERE supersedes = ?2)
			UNION SELECT m.supersedes FROM chain c JOIN memory m ON m.uid = c.uid WHERE m.supersedes IS NOT NULL AND c.uid <> ?2)
		SELECT 1 FROM chain WHERE uid = ?2`, old, m.id)
	if err != nil || len(circle) == 0 {
		return err
	}
	m.draft.Times.Supersedes = ""
	t.warnings = append(t.warnings, fmt.Sprintf("line %d: memory %s supersedes %s, which supersedes it, too; it was "+
		"imported without that", m.line(), fault.Show(m.id), fault.Show(old)))
	return nil
}

// place returns the place of an item, and creates its missing parts.
func (t *importTx) place(owner, collection, projectOwner, projectID, projectName string) (*kernel.Place, error) {
	named := projectID != "" || projectName != ""
	if named {
		owner = projectOwner // as in compare
	}
	ownerRow, err := t.owner(owner)
	if err != nil {
		return nil, err
	}
	collectionRow, err := t.collection(ownerRow, collection)
	if err != nil {
		return nil, err
	}
	var projectRow int64
	if named {
		if projectRow, err = t.project(ownerRow, projectID, projectName); err != nil {
			return nil, err
		}
	}
	key := [2]int64{collectionRow, projectRow}
	if at, ok := t.places[key]; ok {
		return at, nil
	}
	at, err := t.w.Partition(collectionRow, projectRow)
	t.places[key] = at
	return at, err
}

// secondRule returns another rule of the same type that the project, or the owner without a project, already has.
func (m *memoryItem) secondRule(t *importTx, at *kernel.Place) (string, error) {
	if m.draft.RuleType == "" {
		return "", nil
	}
	others, err := db.Column[string](t.tx, `SELECT m.uid `+kernel.FromMemory+` JOIN partition here ON here.id = ?1
		WHERE m.event_type = ?2 AND m.rule_type = ?3 AND m.uid <> ?4 AND p.project_id IS NOT DISTINCT FROM here.project_id
			AND (p.project_id IS NOT NULL OR c.owner_id = (SELECT owner_id FROM collection
			WHERE id = here.collection_id)) LIMIT 1`,
		at.Partition, kernel.EventProjectRule, m.draft.RuleType, m.id)
	if err != nil || len(others) == 0 {
		return "", err
	}
	return others[0], nil
}

// keyHolder returns another memory with the same key in the same place: the key of the line, or else the stored key.
func (m *memoryItem) keyHolder(t *importTx, at *kernel.Place) (string, error) {
	if err := kernel.FreeKey(t.tx, kernel.Viewer{Bounds: kernel.Bounds{Expired: t.now}}, at.Partition,
		m.draft.Key); err != nil {
		return "", err
	}
	key := m.draft.Key
	if key == "" {
		kept, err := db.Column[string](t.tx, `SELECT key FROM memory WHERE uid = ? AND key IS NOT NULL`, m.id)
		if err != nil || len(kept) == 0 {
			return "", err
		}
		key = kept[0]
	}
	is, stored, err := sealedrows.Is(t.tx, sealedrows.MemoryKey, at.Owner, `key`, key)
	if err != nil {
		return "", err
	}
	others, err := db.Column[string](t.tx, `SELECT uid FROM memory WHERE partition_id = ? AND uid <> ? AND `+is,
		at.Partition, m.id, stored)
	if err != nil || len(others) == 0 {
		return "", err
	}
	return others[0], nil
}

// write inserts the memory, or replaces the one in the store.
func (m *memoryItem) write(t *importTx, at *kernel.Place) error {
	d := &m.draft
	created, revision := t.now, int64(1)
	if m.created != nil {
		created = *m.created
	}
	updated := created
	if m.updated != nil {
		updated = *m.updated
	}
	if m.revision != nil {
		revision = *m.revision
	}
	m.stands = revision
	stored := kernel.MemoryRow{ID: m.id, Content: d.Content, EventType: d.EventType, State: d.State,
		Importance: d.Importance, Classification: d.Classification, RuleType: d.RuleType, Key: d.Key,
		EventTime: d.EventTime, Times: d.Times, Metadata: m.metadata, Revision: revision, Created: created,
		Updated: updated}
	var err error
	if m.outcome == replaced {
		err = t.w.ReplaceMemory(m.row, at, stored)
	} else {
		m.row, err = t.w.InsertMemory(at, stored)
	}
	if err != nil {
		return err
	}
	if err := t.w.AddTags(m.row, at.Owner, d.Tags); err != nil {
		return err
	}
	if err := kernel.KeepTurns(t.tx, m.row); err != nil {
		return err
	}
	return m.writePassages(t, at)
}

// writePassages writes the passages, the parts that are embedded and searched.
func (m *memoryItem) writePassages(t *importTx, at *kernel.Place) error {
	passages, own := m.draft.Passages, m.draft.Vector
	if m.brought && own != nil && len(own) != at.OwnSize {
		passages, own = nil, nil // the collection now has another vector size
	}
	if passages == nil {
		passages = kernel.Split(m.draft.Content, t.MaxInput)
	}
	indexed, _, err := t.w.AddPassages(m.row, at, passages, own, m.draft.Tags)
	t.waiting = t.waiting || !indexed && at.OwnProfile == 0
	return err
}
