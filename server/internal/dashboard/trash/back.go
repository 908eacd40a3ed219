package trash

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// restored is an entry that was restored, as it was just after that.
type restored struct {
	souvenir.TrashEntry
	revision int // of a memory
	count    int // of the memories in a project or collection
}

// restoredNow notes the state of an entry that was just restored.
func restoredNow(ctx context.Context, store *souvenir.Store, e souvenir.TrashEntry) (r restored, err error) {
	r.TrashEntry = e
	switch e.Kind {
	case souvenir.TrashMemory:
		var m souvenir.Memory
		m, err = store.GetMemory(ctx, e.ID)
		r.revision = m.Revision
	case souvenir.TrashProject:
		var p souvenir.Project
		p, err = store.GetProject(ctx, projectOf(e))
		r.count = p.MemoryCount
	case souvenir.TrashCollection:
		var c souvenir.Collection
		c, err = store.GetCollection(ctx, e.Collection)
		r.count = c.MemoryCount
	}
	return r, err
}

func projectOf(e souvenir.TrashEntry) souvenir.ProjectRef {
	return souvenir.ProjectRef{ID: e.Owner + "/" + e.ProjectID}
}

// takeBack deletes restored things, the last first, unless one was changed since.
func takeBack(ctx context.Context, store *souvenir.Store, all []restored) error {
	for _, was := range all {
		now, err := restoredNow(ctx, store, was.TrashEntry)
		if errors.Is(err, souvenir.ErrNotFound) { // deleted already
			continue
		}
		if err != nil {
			return err
		}
		if now.revision != was.revision || now.count != was.count {
			return &failure.Error{Status: http.StatusConflict, Message: "“" + was.Title +
				"” has been changed since it was restored, so nothing is deleted again; delete it on its page"}
		}
	}
	for _, was := range slices.Backward(all) {
		if err := deleteRestoredUsers(ctx, store, was.TrashEntry); err != nil && !errors.Is(err, souvenir.ErrNotFound) {
			return err
		}
	}
	return nil
}

func deleteRestoredUsers(ctx context.Context, store *souvenir.Store, e souvenir.TrashEntry) error {
	with := &souvenir.DeletionOptions{WithMemories: true}
	switch e.Kind {
	case souvenir.TrashMemory:
		return store.DeleteMemory(ctx, e.ID, nil)
	case souvenir.TrashFile:
		return store.DeleteFile(ctx, e.ID, nil)
	case souvenir.TrashProject:
		return store.DeleteProject(ctx, projectOf(e), with)
	case souvenir.TrashCollection:
		return store.DeleteCollection(ctx, e.Collection, with)
	}
	return nil
}

// restoredWithUndo reports a restoration, and offers to delete the things again.
func (s *Service) restoredWithUndo(ctx context.Context, c request.Caller, entries []souvenir.TrashEntry) (any, error) {
	all := make([]restored, 0, len(entries))
	var size int64
	for _, e := range entries {
		r, err := restoredNow(ctx, c.Store, e)
		if errors.Is(err, souvenir.ErrNotFound) { // someone has deleted it meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, r)
		size += int64(256 + len(e.Title))
	}
	text := web.Count(len(entries), "entry") + " restored."
	if len(entries) == 1 {
		text = "“" + web.Shortened(entries[0].Title) + "” is restored."
	}
	return s.site.StepDone(c, web.TrashPath, web.Step{Text: text, Path: web.TrashPath, Bytes: size,
		Back: func(ctx context.Context) error { return takeBack(ctx, c.Store, all) }}), nil
}
