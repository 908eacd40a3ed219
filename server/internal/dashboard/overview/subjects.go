package overview

import (
	"cmp"
	"context"
	"errors"
	"net/url"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/shorten"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// subjects holds the objects of calls: the memories, files and projects that the reader can see now.
type subjects struct {
	projects []souvenir.Project
	memories map[string]string  // titles by id
	files    map[string]string  // names by id
	deleted  map[string]string  // titles in the trash
	changes  map[string]*change // of updates, by call
}

const titleLength = 60 // characters

// subjectsOf looks up the objects of the reader's own calls. Objects of other users are not looked up.
func subjectsOf(ctx context.Context, c request.Caller, all []souvenir.Activity,
	projects []souvenir.Project) (subjects, error) {
	about := subjects{projects: projects, memories: map[string]string{}, files: map[string]string{},
		deleted: map[string]string{}}
	var ids []any
	histories := map[string]int{}
	for _, a := range all {
		if a.User != c.User.ID {
			continue
		}
		if a.MemoryID != "" {
			ids = append(ids, a.MemoryID)
		}
		if _, known := about.files[a.FileID]; a.FileID != "" && !known {
			f, err := c.Store.GetFile(ctx, a.FileID)
			if err != nil && !isUnknown(err) {
				return about, err
			}
			about.files[a.FileID] = f.Filename
		}
	}
	if len(ids) > 0 {
		for m, err := range c.Store.Memories(ctx,
			souvenir.MemoryList{Filter: souvenir.Filter{"id": map[string]any{"in": ids}}}) {
			if err != nil {
				return about, err
			}
			about.memories[m.ID] = shorten.Title(m.Content, titleLength)
			histories[m.ID] = m.Revision * (len(m.Content) + leastVersion)
		}
	}
	for _, a := range all {
		if a.User != c.User.ID || a.MemoryID+a.FileID == "" || about.memories[a.MemoryID]+about.files[a.FileID] != "" {
			continue
		}
		id := cmp.Or(a.MemoryID, a.FileID)
		entry, err := c.Store.Trash().Get(ctx, id)
		if err != nil && !isUnknown(err) {
			return about, err
		}
		about.deleted[id] = textview.Clip(entry.Title, titleLength)
	}
	var err error
	about.changes, err = changesOf(ctx, c, all, histories)
	return about, err
}

// isUnknown reports whether the store has no object with an id, or the id is invalid: ids are recorded as programs send
// them.
func isUnknown(err error) bool {
	return errors.Is(err, souvenir.ErrNotFound) || errors.Is(err, souvenir.ErrInvalid)
}

func (t subjects) memory(id string, own bool) web.Link {
	if title := t.memories[id]; own && title != "" {
		return web.Link{Noun: "memory", Name: title, Path: web.MemoryPath(id)}
	}
	return t.gone("memory", id, own)
}

func (t subjects) file(id string, own bool) web.Link {
	if name := t.files[id]; own && name != "" {
		return web.Link{Noun: "file", Name: name, Path: "/files/" + url.PathEscape(id)}
	}
	return t.gone("file", id, own)
}

// gone is an object that the reader cannot open: deleted, or of another user.
func (t subjects) gone(noun, id string, own bool) web.Link {
	if title := t.deleted[id]; own && title != "" {
		return web.Link{Noun: noun, Name: title, Path: web.TrashPath}
	}
	return web.Link{Noun: noun}
}

// project returns the project of a call; several users may use the same id.
func (t subjects) project(a souvenir.Activity, user string) web.Link {
	seen := -1
	for i, p := range t.projects {
		if p.ID == a.ProjectID && (seen < 0 || p.Owner == a.User) {
			seen = i
		}
	}
	if seen < 0 || a.User != user {
		return web.Link{Noun: "project", Name: a.ProjectID, Path: ""}
	}
	p := t.projects[seen]
	return web.Link{Noun: "project", Name: cmp.Or(p.Name, p.ID), Path: web.ProjectPath(p)}
}
