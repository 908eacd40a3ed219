package writing

import (
	"cmp"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/turns"
)

// Writer writes memories for a view within one transaction: it finds and creates their places, and keeps to the quotas.
type Writer struct {
	*rows
	Restoring bool  // the memories come from the trash
	Index     Index // nil: it reads the memories
	view      *View
	places    map[placeName]*kernel.Place
	targets   map[[2]string]Target // by the id and the name given
	grown     map[int64]bool       // partitions that hold more than before
}

// rows keeps the embedded writer private: its Flush checks no quota.
type rows = kernel.RowWriter

// Index gets the memories that a write adds, so that it need not read them, and the rows of changed ones.
type Index interface {
	Add(m kernel.Memory, turn *turns.Turn, passages []kernel.Passage)
	Forget(row int64)
}

// NewWriter returns a writer for a transaction.
func (s *View) NewWriter(tx db.Tx, v kernel.Viewer) (*Writer, error) {
	written, err := kernel.NewRowWriter(tx, v, s.Profile, s.Model)
	return &Writer{rows: written, view: s, places: map[placeName]*kernel.Place{}, targets: map[[2]string]Target{}}, err
}

// Flush writes the counts held in memory, and refuses a write that exceeds a quota. It must be called before the
// transaction ends.
func (w *Writer) Flush() error {
	if err := w.checkQuota(); err != nil {
		return err
	}
	return w.rows.Flush()
}

// ShareCounts makes w one of several writers of a transaction; see [kernel.RowWriter.ShareCounts].
func (w *Writer) ShareCounts(other *Writer) { w.rows.ShareCounts(other.rows) }

// placeName is a place as callers name it; [Writer.Place] resolves it.
type placeName struct{ collection, projectID, projectName string }

// Place finds the partition for a collection and a project, both by name, and creates missing ones.
func (w *Writer) Place(collection, projectID, projectName string) (*kernel.Place, error) {
	name := placeName{collection, projectID, projectName}
	if p, ok := w.places[name]; ok {
		return p, nil
	}
	project, err := w.Project(projectID, projectName)
	if err != nil {
		return nil, err
	}
	p, err := w.placeIn(collection, project)
	if err == nil {
		w.places[name] = p
	}
	return p, err
}

// placeIn is like Place, for a project by row, 0 for none.
func (w *Writer) placeIn(collection string, project int64) (*kernel.Place, error) {
	owner, err := kernel.OwnerOfProject(w.Tx, w.Viewer, project)
	if err != nil {
		return nil, err
	}
	if owner == w.Viewer.User { // the caller's own existing collection needs no further checks
		if p, err := w.PlaceByName(owner, collection, project); p != nil || err != nil {
			return p, err
		}
	}
	at, err := w.view.collectionFor(w.Tx, w.Viewer, collection, owner)
	if err == nil && at.Collection == 0 {
		at.Collection, err = w.view.AddCollection(w.Tx, w.Viewer, owner, collection, "", at.Profile)
	}
	if err != nil {
		return nil, err
	}
	return w.Partition(at.Collection, project)
}

// PlaceExists reports whether the place of a draft already exists, and finds it.
func (w *Writer) PlaceExists(d *kernel.Draft) (bool, error) {
	name := placeName{d.Collection, d.ProjectID, d.ProjectName}
	if w.places[name] != nil {
		return true, nil
	}
	owner, project := w.Viewer.User, int64(0)
	if d.ProjectID != "" || d.ProjectName != "" || w.Viewer.Limited {
		at, err := w.view.Destination(w.Tx, w.Viewer, d)
		if err != nil || at.Collection == 0 || at.Project == 0 {
			return false, err
		}
		if project, err = w.Project(d.ProjectID, d.ProjectName); err != nil || project != at.Project {
			return false, err
		}
		if owner, err = kernel.OwnerOfProject(w.Tx, w.Viewer, project); err != nil {
			return false, err
		}
	}
	place, err := w.PlaceByName(owner, d.Collection, project)
	if place != nil {
		w.places[name] = place
	}
	return place != nil, err
}

// Project returns the row of the project that a write names, 0 for none, and creates an unknown one.
func (w *Writer) Project(id, name string) (int64, error) {
	ref := [2]string{id, name}
	if known, ok := w.targets[ref]; ok {
		return known.Row, nil
	}
	target, err := w.view.projectFor(w.Tx, w.Viewer, id, name)
	if err != nil {
		return 0, err
	}
	w.targets[ref] = target
	w.view.show(w.Tx, &w.Viewer, target)
	return target.Row, nil
}

// Notes returns notes about the project that a write names. Only the first call reports that it was created.
func (w *Writer) Notes(id, name string) (warnings []string, created bool) {
	ref := [2]string{id, name}
	target := w.targets[ref]
	if target.created {
		w.targets[ref] = Target{Row: target.Row}
	}
	return target.warnings, target.created
}

// move returns the place for a memory that is to be in a project, by the id and the name given: its present place or,
// in another project, the collection of that project's owner with the same name.
func (w *Writer) move(m kernel.Memory, id, name string) (*kernel.Place, error) {
	// The project's id or name as read from the memory is not a move: another project may have the same one.
	sameID := id == m.ProjectID || id == "" && name != ""
	sameName := foldname.Key(name) == foldname.Key(m.ProjectName) || name == "" && id != ""
	if sameID && sameName {
		return w.PlaceByRow(m.Partition)
	}
	project, err := w.Project(id, name)
	switch {
	case err == nil && project == m.ProjectRow: // in another form, such as OWNER/ID or a former name
		return w.PlaceByRow(m.Partition)
	case m.OwnerRow != w.Viewer.User:
		return nil, fault.New(fault.KindForbidden, "project_id",
			"memory %s belongs to project %s of %s; only its owner can move it to another project", fault.Show(m.ID),
			fault.Show(cmp.Or(m.ProjectName, m.ProjectID)), kernel.UserName(w.Tx, w.Viewer, m.Owner))
	case err != nil:
		return nil, err
	}
	return w.placeIn(m.Collection, project)
}
