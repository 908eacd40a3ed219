package transfer

import (
	"cmp"
	"encoding/json"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// revisionItem is a past version of the preceding memory.
type revisionItem struct {
	lineNumber
	of                    *memoryItem
	memory                string
	number, created       int64
	owner, collection     string
	projectOwner, project string
	content, attributes   string
}

func parseRevision(line []byte, n int) (importItem, error) {
	var given struct {
		Memory          string          `json:"memory"`
		Revision        int64           `json:"revision"`
		CollectionOwner string          `json:"collection_owner"`
		Collection      string          `json:"collection_name"`
		ProjectOwner    string          `json:"project_owner"`
		ProjectID       string          `json:"project_id"`
		Content         string          `json:"content"`
		Metadata        json.RawMessage `json:"metadata"`
		CreatedAt       string          `json:"created_at"`
	}
	if err := decodeLine(line, &given); err != nil {
		return nil, err
	}
	r := &revisionItem{
		lineNumber: lineNumber(n), memory: given.Memory, number: given.Revision,
		owner:      cmp.Or(given.CollectionOwner, kernel.LocalUser),
		collection: cmp.Or(given.Collection, kernel.DefaultCollection), project: given.ProjectID, content: given.Content,
	}
	r.projectOwner = cmp.Or(given.ProjectOwner, r.owner)
	for _, name := range []struct{ argument, value string }{{"memory", r.memory}, {"collection_owner", r.owner},
		{"collection_name", r.collection}, {"project_owner", r.projectOwner}} {
		if err := valid.Name(name.argument, name.value); err != nil {
			return nil, err
		}
	}
	if err := valid.Project(r.project, ""); err != nil {
		return nil, err
	}
	if err := valid.Content(r.content); err != nil {
		return nil, err
	}
	if r.number < 1 || r.number > kernel.MaxRevision {
		return nil, fault.Invalid("revision", "revision is %d; expected 1 and more", r.number)
	}
	var err error
	if r.created, err = parseTime("created_at", given.CreatedAt); err != nil {
		return nil, err
	}
	metadata, err := ParseMetadata(given.Metadata)
	if err != nil {
		return nil, err
	}
	if metadata, err = jsonobject.Canonical("metadata", kernel.OrEmpty(metadata)); err != nil {
		return nil, err
	}
	a, err := kernel.AttributesOf(metadata)
	if err == nil {
		err = a.Check()
	}
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(metadata)
	r.attributes = string(encoded)
	return r, err
}

// apply writes the version, unless the store has another memory under this id.
func (r *revisionItem) apply(t *importTx) error {
	if r.of.outcome == conflicting || r.number >= r.of.stands {
		t.count(KindRevision, conflicting)
		return nil
	}
	at, err := t.place(r.owner, r.collection, r.projectOwner, r.project, "")
	if err != nil {
		return err
	}
	var same []bool
	err = t.tx.Each(func(row db.Rows) error {
		var content, attributes string
		var created, partition int64
		err := row.Scan(&content, &attributes, &created, &partition)
		same = append(same, content == r.content && attributes == r.attributes && created == r.created &&
			partition == at.Partition)
		return err
	}, `SELECT content, attributes, created_at, partition_id FROM memory_revision WHERE memory_id = ? AND revision = ?`,
		r.of.row, r.number)
	if err != nil {
		return err
	}
	switch {
	case len(same) == 0:
		if _, err := (kernel.Revision{Memory: r.of.row, Partition: at.Partition, Owner: at.Owner, Number: r.number,
			Created: r.created, Content: r.content, Attributes: r.attributes}).Insert(t.tx); err != nil {
			return err
		}
		t.count(KindRevision, added)
	case same[0]:
		t.count(KindRevision, unchanged)
	default:
		t.conflict(r.line(), KindRevision, r.memory, "the store has another revision of this number, which was kept")
	}
	return err
}

// linkItem lists the memories that a memory links to.
type linkItem struct {
	lineNumber
	memory, owner string
	updated       *int64 // time of the state that the links belong to
	related       []string
	kept          bool // they are from the memory's own line, and the store kept another memory
}

func parseLink(line []byte, n int) (importItem, error) {
	var given struct {
		Memory    string   `json:"memory"`
		Owner     string   `json:"owner"`
		UpdatedAt *string  `json:"updated_at"`
		Related   []string `json:"related_memory_ids"`
	}
	if err := decodeLine(line, &given); err != nil {
		return nil, err
	}
	l := &linkItem{lineNumber: lineNumber(n), memory: given.Memory, owner: cmp.Or(given.Owner, kernel.LocalUser),
		related: valid.Distinct(given.Related)}
	if err := cmp.Or(valid.Name("memory", l.memory), valid.Name("owner", l.owner)); err != nil {
		return nil, err
	}
	var err error
	l.updated, err = parseOptionalTime("updated_at", given.UpdatedAt)
	return l, err
}

// apply adds the missing links, unless the store has another memory under this id. It counts links to memories that are
// not in the store.
func (l *linkItem) apply(t *importTx) error {
	if l.kept {
		return nil
	}
	found, err := db.Column[int64](t.tx, `SELECT m.id `+kernel.FromMemory+
		` JOIN users u ON u.id = c.owner_id WHERE m.uid = ?1 AND u.uid = ?2 AND m.updated_at = coalesce(?3, m.updated_at)
		AND u.namespace = ?4`, l.memory, l.owner, l.updated, t.namespace)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		t.missing += len(l.related)
		t.count(KindLink, conflicting)
		return nil
	}
	o := unchanged
	for i, id := range l.related {
		target, err := db.Column[int64](t.tx, `SELECT m.id `+kernel.FromMemory+
			` JOIN users u ON u.id = c.owner_id WHERE m.uid = ? AND u.namespace = ?`, id, t.namespace)
		if err != nil {
			return err
		}
		if len(target) == 0 || target[0] == found[0] {
			t.missing++
			continue
		}
		result, err := t.tx.Exec(`INSERT INTO memory_link (memory_id, related_id, position) VALUES (?, ?, ?) `+
			`ON CONFLICT DO NOTHING`, found[0], target[0], i)
		if err != nil {
			return err
		}
		if result.RowsAffected > 0 {
			o = added
		}
	}
	t.count(KindLink, o)
	if o == added {
		return db.AddChange(t.tx, found[0]) // cached pictures show links
	}
	return nil
}
