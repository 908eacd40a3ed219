package souvenir

import (
	"context"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// memoryWriter writes memories for a view within one transaction: it finds and creates their places, and keeps to
// the quotas.
type memoryWriter struct {
	*kernel.Writer
	store     *Store
	places    map[placeName]*kernel.Place
	targets   map[ProjectRef]projectTarget // by their reference
	grown     map[int64]bool               // partitions that hold more than before
	restoring bool                         // the memories come from the trash
}

// placeName is a place as callers name it; place is the resolved place.
type placeName struct{ collection, projectID, projectName string }

func (s *Store) newWriter(tx db.Tx, v viewer) (*memoryWriter, error) {
	rows, err := kernel.NewWriter(tx, v, s.profile, s.embedder.Model())
	return &memoryWriter{Writer: rows, store: s, places: map[placeName]*kernel.Place{},
		targets: map[ProjectRef]projectTarget{}}, err
}

// flush writes the counts held in memory, and refuses a write that exceeds a quota. It must be called before the
// transaction ends.
func (w *memoryWriter) flush() error {
	if err := w.checkQuota(); err != nil {
		return err
	}
	return w.Writer.Flush()
}

// place finds the partition for a collection and a project, both by name, and creates missing ones.
func (w *memoryWriter) place(collection, projectID, projectName string) (*kernel.Place, error) {
	name := placeName{collection, projectID, projectName}
	if p, ok := w.places[name]; ok {
		return p, nil
	}
	project, err := w.project(projectID, projectName)
	if err != nil {
		return nil, err
	}
	p, err := w.placeIn(collection, project)
	if err == nil {
		w.places[name] = p
	}
	return p, err
}

// placeIn is place for a project by row, 0 for none.
func (w *memoryWriter) placeIn(collection string, project int64) (*kernel.Place, error) {
	owner, err := projectOwner(w.Tx, w.Viewer, project)
	if err != nil {
		return nil, err
	}
	at, err := w.store.collectionFor(w.Tx, w.Viewer, collection, owner)
	if err == nil && at.row == 0 {
		at.row, err = w.store.addFor(w.Tx, w.Viewer, collection, owner, at)
	}
	if err != nil {
		return nil, err
	}
	return w.Partition(at.row, project)
}

// projectOwner returns the row of the user who owns what lies in a project (0: outside any), and whose quota it counts
// towards.
func projectOwner(tx db.Tx, v viewer, project int64) (owner int64, err error) {
	if project == 0 {
		return v.User, nil
	}
	err = tx.QueryRow(`SELECT owner_id FROM project WHERE id = ?`, project).Scan(&owner)
	return owner, err
}

// project returns the row of the project that a write names, 0 for none, and creates an unknown one.
func (w *memoryWriter) project(id, name string) (int64, error) {
	ref := ProjectRef{ID: id, Name: name}
	if known, ok := w.targets[ref]; ok {
		return known.row, nil
	}
	target, err := w.store.projectForWriting(w.Tx, w.Viewer, id, name)
	if err != nil {
		return 0, err
	}
	w.targets[ref] = target
	if w.Viewer.Limited && !slices.Contains(w.Viewer.Projects, target.row) {
		w.Viewer.Projects = append(w.Viewer.Projects,
			target.row) // the view is limited to this project, which has just been created
	}
	return target.row, nil
}

// addProjectWarnings adds to a result what its caller should know about the project. Only the first memory in it
// reports that it was created.
func (w *memoryWriter) addProjectWarnings(stored *Stored, id, name string) {
	ref := ProjectRef{ID: id, Name: name}
	target := w.targets[ref]
	stored.Warnings = slices.Concat(stored.Warnings, target.warnings)
	if target.created {
		stored.ProjectCreated = true
		w.targets[ref] = projectTarget{row: target.row}
	}
}

// embedDrafts splits and embeds drafts. A failing embedder is not an error: the passages stay without vectors, and the
// warnings say so. The end of the caller's context is an error.
func (s *Store) embedDrafts(ctx context.Context, drafts []kernel.Draft, progress Progress) (warnings []string,
	err error) {
	return kernel.EmbedDrafts(drafts, maxInput(s.embedder), func(texts []string) ([][]float32, []string, error) {
		return s.embedTexts(ctx, texts, progress)
	})
}

// embedTexts embeds pieces of documents. A failing embedder is not an error: it returns no vectors, and the warnings
// say so. The end of the caller's context is an error.
func (s *Store) embedTexts(ctx context.Context, texts []string, progress Progress) (vectors [][]float32,
	warnings []string, err error) {
	vectors, err = s.embed(ctx, ForDocument, texts, func(done int) { progress("embed", done, len(texts)) })
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if err != nil {
		s.log.Warn("texts could not be embedded; they are found by words until they are", "texts", len(texts), "error", err)
		return nil, []string{"stored and found by its words, but not yet by meaning, because the embedder " +
			s.embedder.Model() + " failed"}, nil
	}
	return vectors, nil, nil
}
