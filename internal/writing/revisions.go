package writing

import (
	"encoding/json"
	"errors"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/naming"
)

// keepRevision records the state of a memory before a change. It keeps all links, including links that this caller
// cannot see.
func (w *Writer) keepRevision(m kernel.Memory) error {
	a := m.Attributes
	var err error
	if a.Related, err = db.Column[string](w.Tx, `SELECT r.uid FROM memory_link l JOIN memory r ON r.id = l.related_id
		WHERE l.memory_id = ? ORDER BY l.position`, m.Row); err != nil {
		return err
	}
	encoded, err := json.Marshal(a.Shown())
	if err != nil {
		return err
	}
	_, err = kernel.Revision{Memory: m.Row, Partition: m.Partition, Owner: m.OwnerRow, Number: int64(m.Revision),
		Created: m.Updated, Content: m.Content, Attributes: string(encoded)}.Insert(w.Tx)
	return err
}

// Renamed sets the current name of the project in the attributes of a past version.
func (w *Writer) Renamed(a, now kernel.Attributes) (kernel.Attributes, error) {
	switch a.ProjectID {
	case "":
	case now.ProjectID:
		a.ProjectName = now.ProjectName
	default:
		p, err := naming.Find(w.Tx, w.Viewer, a.ProjectID, "")
		if err != nil {
			return a, err
		}
		if p != nil {
			a.ProjectName = p.Name
		}
	}
	return a, nil
}

// checkTimes checks the times of an update, and the memory that it now supersedes.
func (w *Writer) checkTimes(before kernel.Memory, after *kernel.Memory, at *kernel.Place) error {
	err := kernel.CheckRuleTimes(after.RuleType, after.Times)
	if err == nil {
		err = after.Times.Check()
	}
	if err == nil && after.Times.Supersedes != before.Times.Supersedes {
		after.Times.Supersedes, err = w.superseded(after.Times.Supersedes, before.ID, at)
	}
	return err
}

// superseded checks that the caller may supersede a memory with one in a place, and returns the stored id of the
// superseded memory. by is the id of the new memory, empty if it is not stored yet.
func (w *Writer) superseded(id, by string, at *kernel.Place) (string, error) {
	if id == "" {
		return "", nil
	}
	old, err := kernel.LoadForWriting(w.Tx, w.Viewer, id)
	var known *fault.Error
	switch {
	case errors.As(err, &known):
		return "", fault.New(known.Kind, "supersedes", "{}: %s", known.Message)
	case err != nil:
		return "", err
	case old.Partition != at.Partition:
		return "", fault.Invalid("supersedes", "{} is memory %s of collection %s; a memory replaces one of its own "+
			"collection and project, so store it there", fault.Show(old.ID), fault.Show(old.Collection))
	case old.RuleType != "":
		return "", fault.Invalid("supersedes", "{} is memory %s, which is a rule; SetRule replaces it", fault.Show(old.ID))
	}
	if by == "" { // nothing supersedes a memory that is new
		return old.ID, nil
	}
	circle, err := db.Column[int64](w.Tx, `WITH RECURSIVE chain (uid) AS (SELECT ?1 UNION SELECT m.supersedes FROM chain c
		JOIN memory m ON m.uid = c.uid WHERE m.supersedes IS NOT NULL) SELECT 1 FROM chain WHERE uid = ?2`, old.ID, by)
	if err == nil && len(circle) > 0 {
		err = fault.Invalid("supersedes", "{} is memory %s, which is this memory, or replaces it", fault.Show(old.ID))
	}
	return old.ID, err
}
