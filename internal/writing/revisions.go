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

// InProjectOf sets the project in the attributes of a past version of a memory to the project that the version was in,
// by its present name. If that one is gone, a project of the caller's with its id takes its place, or a new one. But
// another user's project never does: then the memory stays where it is, and a warning says so.
func (w *Writer) InProjectOf(version int, now kernel.Memory, a kernel.Attributes) (_ kernel.Attributes, warning string,
	err error) {
	if a.ProjectID == "" {
		return a, "", nil
	}
	rows, err := db.Column[int64](w.Tx, `SELECT p.project_id FROM memory_revision r JOIN partition p
		ON p.id = r.partition_id WHERE r.memory_id = ? AND r.revision = ? AND p.project_id IS NOT NULL`, now.Row, version)
	if err != nil {
		return a, "", err
	}
	if len(rows) > 0 && rows[0] == now.ProjectRow {
		a.ProjectID, a.ProjectName = now.ProjectID, now.ProjectName
		return a, "", nil
	}
	if len(rows) > 0 {
		p, err := naming.ByRow(w.Tx, w.Viewer, rows[0])
		if p != nil {
			a.ProjectID, a.ProjectName = p.Ref(), p.Name
		}
		return a, "", err
	}
	p, err := naming.FindID(w.Tx, w.Viewer, a.ProjectID)
	several := errors.Is(err, &fault.Error{Kind: fault.KindInvalid}) // of other users
	switch {
	case several, err == nil && p != nil && !p.Own:
		warning = "the project " + fault.Show(a.ProjectID) + " of that version is gone, and the one with its id belongs to " +
			"another user; the memory stays where it is"
		a.ProjectID, a.ProjectName, err = now.ProjectID, now.ProjectName, nil
	case err == nil && p != nil:
		a.ProjectName = p.Name
	}
	return a, warning, err
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
