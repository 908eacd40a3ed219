package souvenir

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/jsonobject"
)

// Revision is a state that a memory is or was in.
type Revision struct {
	Number    int            `json:"revision"`
	Content   string         `json:"content"`
	Metadata  map[string]any `json:"metadata"`   // as shown: the known keys and the memory's own
	CreatedAt time.Time      `json:"created_at"` // when the memory came into this state
	Current   bool           `json:"current"`    // it is in this state now
}

// Revisions returns the history of a memory, the present state first.
func (s *Store) Revisions(ctx context.Context, id string) ([]Revision, error) {
	var all []Revision
	err := s.read(ctx, func(tx db.Tx, sc scope) error {
		m, err := s.memory(tx, sc, id)
		if err != nil {
			return err
		}
		former, err := formerRevisions(tx, sc, m, 0)
		current := Revision{Number: m.Revision, Content: m.Content, Metadata: m.ShownMetadata(), CreatedAt: m.UpdatedAt, Current: true}
		all = append([]Revision{current}, former...)
		return err
	})
	return all, err
}

// RestoreRevision brings a memory back to the content and metadata of an earlier revision. It is an update like any
// other: it makes a new revision, and the state before it is kept. Links to memories that are gone are left out. A vector of
// the caller's own is not part of a revision.
func (s *Store) RestoreRevision(ctx context.Context, id string, number int) (Stored, error) {
	var current storedMemory
	var former []Revision
	err := s.read(ctx, func(tx db.Tx, sc scope) (err error) {
		if current, err = s.memoryForWriting(tx, sc, id); err != nil {
			return err
		}
		former, err = formerRevisions(tx, sc, current, number)
		return err
	})
	if err != nil {
		return Stored{}, err
	}
	if number < 1 || len(former) == 0 {
		return Stored{}, newError(KindNotFound, "revision", "revision %d of memory %s does not exist; it has revision %d now and keeps those before it",
			number, show(id), current.Revision)
	}
	content := &draft{content: former[0].Content}
	if former[0].Content == current.Content {
		content = nil
	}
	return s.change(ctx, id, current.Revision, content, func(w *memoryWriter, before attributes) (attributes, error) {
		metadata, err := jsonobject.Canonical("metadata", former[0].Metadata)
		if err != nil {
			return attributes{}, err
		}
		a, err := attributesOf(metadata)
		if err != nil {
			return attributes{}, err
		}
		return w.renamed(a, before)
	})
}

// renamed gives the attributes of a former state the name that their project has now.
func (w *memoryWriter) renamed(a, now attributes) (attributes, error) {
	switch a.projectID {
	case "":
	case now.projectID:
		a.projectName = now.projectName
	default:
		p, err := findProject(w.tx, w.sc, a.projectID, "")
		if err != nil {
			return a, err
		}
		if p != nil {
			a.projectName = p.name
		}
	}
	return a, nil
}

// keepRevision records the state that a memory is in before it changes. All links are kept, also those that this
// caller cannot see.
func (w *memoryWriter) keepRevision(m storedMemory) error {
	a := m.attributes()
	var err error
	if a.related, err = db.Column[string](w.tx, `SELECT r.uid FROM memory_link l JOIN memory r ON r.id = l.related_id
		WHERE l.memory_id = ? ORDER BY l.position`, m.row); err != nil {
		return err
	}
	encoded, err := json.Marshal(a.shown())
	if err != nil {
		return err
	}
	_, err = w.tx.Exec(`INSERT INTO memory_revision (memory_id, revision, partition_id, content, attributes, created_at) VALUES (?, ?, ?, ?, ?, ?)`,
		m.row, m.Revision, m.partition, m.Content, string(encoded), m.UpdatedAt.UnixMicro())
	return err
}

// formerRevisions reads the states before the present one, newest first; only one of them when number is not 0. A state
// from before the memory came into a project is for those who could see it there, and of the links only those to memories
// that the caller can see now are left.
func formerRevisions(tx db.Tx, sc scope, m storedMemory, number int) ([]Revision, error) {
	visible, args := sc.visible()
	var all []Revision
	err := tx.Each(func(row db.Rows) error {
		var r Revision
		var attributes string
		var created int64
		if err := row.Scan(&r.Number, &r.Content, &attributes, &created); err != nil {
			return err
		}
		r.CreatedAt = toTime(created)
		var err error
		if r.Metadata, err = jsonobject.Decode([]byte(attributes)); err != nil {
			return damaged(err, "the attributes of revision %d of memory %s", r.Number, m.ID)
		}
		all = append(all, r)
		return nil
	}, `SELECT r.revision, r.content, r.attributes, r.created_at
		FROM memory_revision r JOIN partition p ON p.id = r.partition_id JOIN collection c ON c.id = p.collection_id
		WHERE r.memory_id = ? AND (? = 0 OR r.revision = ?) AND `+visible+` ORDER BY r.revision DESC`, append([]any{m.row, number, number}, args...)...)
	if err != nil {
		return nil, err
	}
	for i, r := range all {
		if err := onlyVisibleLinks(tx, sc, r.Metadata); err != nil {
			return nil, err
		}
		a, err := attributesOf(r.Metadata)
		if err != nil {
			return nil, damaged(err, "revision %d of memory %s", r.Number, m.ID)
		}
		all[i].Metadata = a.shown() // with the types that the present state has
	}
	return all, nil
}

func onlyVisibleLinks(tx db.Tx, sc scope, metadata map[string]any) error {
	value, linked := metadata["related_memory_ids"]
	if !linked {
		return nil
	}
	ids, err := jsonobject.Strings("related_memory_ids", value)
	if err != nil {
		return damaged(err, "the links of a revision")
	}
	encoded, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	condition, args := sc.visible()
	seen, err := db.Column[string](tx, `SELECT m.uid `+fromMemory+` WHERE m.uid IN `+db.Texts+` AND `+condition,
		append([]any{string(encoded)}, args...)...)
	if err != nil {
		return err
	}
	delete(metadata, "related_memory_ids")
	if ids = slices.DeleteFunc(ids, func(id string) bool { return !slices.Contains(seen, id) }); len(ids) > 0 {
		metadata["related_memory_ids"] = anys(ids)
	}
	return nil
}
