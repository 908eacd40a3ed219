package memories

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/upload"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// quickly maps the keys that the buttons of a memory's page set to the allowed values. An empty value removes the
// key.
var quickly = map[string][]string{
	"state":      {"", "active", "archived", "completed"},
	"importance": {"", "low", "medium", "high", "critical"},
}

// setOfMemory sets one of the known keys of a memory.
func (s *Service) setOfMemory(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	key, value := values.Get("key"), values.Get("value")
	if !slices.Contains(quickly[key], value) {
		return nil, failure.Invalid("key", "key is "+failure.Quote(key)+" and value is "+failure.Quote(value)+
			"; the buttons of a memory's page set only state and importance")
	}
	id := r.PathValue("id")
	before, err := c.Store.GetMemory(r.Context(), id)
	if err != nil {
		return nil, err
	}
	after, err := c.Store.UpdateMemory(r.Context(), id,
		souvenir.MemoryUpdate{ShownMetadata: map[string]any{key: orNone(value)}})
	if err != nil {
		return nil, err
	}
	return s.changedWithUndo(c, web.MemoryPath(id), changeLabel(key, value), before, after.Memory), nil
}

// orNone converts a value for a merge patch: an empty one removes the key.
func orNone(value string) any {
	if value == "" {
		return nil
	}
	return value
}

// changeLabel describes the effect of setting a key.
func changeLabel(key, value string) string {
	switch {
	case key == "state" && value == "archived":
		return "The memory is archived: agents no longer get it by default. Searches still find it."
	case value == "":
		return "The memory no longer has " + key + "."
	case key == "importance":
		return "The memory is of " + value + " importance."
	}
	return "The memory is " + value + "."
}

// changedWithUndo redirects from a form that has changed a memory. Undoing does not overwrite later changes. A memory
// that now belongs to another user cannot be moved back.
func (s *Service) changedWithUndo(c request.Caller, path, text string, before, after souvenir.Memory) web.Redirect {
	if after.Revision == before.Revision {
		return s.site.Done(path, "memory-unchanged")
	}
	if name := givenTo(before, after); name != "" {
		return s.site.Say(c, path, text+belongsTo(name))
	}
	id, revision := after.ID, after.Revision // the texts need not be remembered: the history has them
	return s.site.DoneWithUndo(c, path, text, func(ctx context.Context) error {
		return revert(ctx, c.Store, id, revision)
	})
}

// revert restores the state right before a change. A page may have shown another one: other users change memories,
// too.
func revert(ctx context.Context, store *souvenir.Store, id string, revision int) error {
	now, err := store.GetMemory(ctx, id)
	if err != nil {
		return err
	}
	if now.Revision != revision {
		return &failure.Error{Status: http.StatusConflict,
			Message: "this cannot be undone: the memory has been changed again since; its history has all its versions"}
	}
	_, err = store.RestoreRevision(ctx, id, revision-1)
	return err
}

// deleteMemory deletes a memory, and offers to restore it.
func (s *Service) deleteMemory(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	if _, err := s.site.ReadForm(w, r); err != nil {
		return nil, err
	}
	m, err := c.Store.GetMemory(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if err := c.Store.DeleteMemory(r.Context(), m.ID, nil); err != nil {
		return nil, err
	}
	return s.site.DeletedWithUndo(r, c, "/memories", web.MemoryPath(m.ID), "“"+Title(m.Content)+
		"” is deleted.", m.ID), nil
}

// linkFile links an existing file to a memory.
func (s *Service) linkFile(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	id := r.PathValue("id")
	return s.relink(r, c, id, values, id, " is linked to this memory.")
}

// unlinkFile unlinks a file from a memory; the file itself stays.
func (s *Service) unlinkFile(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	return s.relink(r, c, r.PathValue("id"), values, "", " is unlinked from this memory. It is still in your files.")
}

// relink links a file to a memory, or to none, and reports it on the memory's page.
func (s *Service) relink(r *http.Request, c request.Caller, at string, values url.Values, memory, notice string) (any,
	error) {
	before, err := c.Store.GetFile(r.Context(), values.Get("file"))
	if err != nil {
		return nil, err
	}
	if memory == "" && before.MemoryID != at {
		return nil, failure.Invalid("file", "file "+failure.Quote(before.Filename)+" is not linked to this memory")
	}
	lay, err := c.Store.Insights().FileStatus(r.Context(), before.ID)
	if err != nil {
		return nil, err
	}
	after, err := c.Store.UpdateFile(r.Context(), before.ID, souvenir.FileUpdate{MemoryID: &memory})
	if err != nil {
		return nil, err
	}
	return s.site.DoneWithUndo(c, web.MemoryPath(at), "“"+after.Filename+"”"+notice, func(ctx context.Context) error {
		now, err := c.Store.GetFile(ctx, before.ID)
		if err == nil && now.MemoryID != after.MemoryID {
			err = &failure.Error{Status: http.StatusConflict,
				Message: "this cannot be undone: the file has been linked elsewhere since"}
		}
		if err == nil {
			back := souvenir.FileUpdate{MemoryID: &before.MemoryID}
			if before.MemoryID == "" { // it is now in the memory's project, which others may see
				back.Project = upload.ProjectOf(lay)
			}
			_, err = c.Store.UpdateFile(ctx, before.ID, back)
		}
		return err
	}), nil
}
