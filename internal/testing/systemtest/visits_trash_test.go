package systemtest

import (
	"errors"
	"slices"
	"strings"

	. "github.com/souvenir-ai/souvenir"
)

// What each visitor of the neighbourhood can do with deleted items.

var trashVisits = map[string]func(v visit){
	"Page": func(v visit) {
		for _, m := range neighbours {
			v.trashes(m.name)
		}
		p, err := v.view.Trash().Page(v.Context(), TrashQuery{})
		v.check("Trash.Page", p, err)
		for _, e := range p.Entries {
			if name, _, _ := strings.Cut(e.Title, " "); !v.access.ReadOnly && !slices.Contains(v.changes, name) {
				v.Errorf("the trash shows %s, want only what the visitor may change", name)
			}
		}
		if !v.access.ReadOnly && p.Total != len(v.changes) {
			v.Errorf("the trash shows %d entries, want %v", p.Total, v.changes)
		}
	},
	"All": func(v visit) {
		for _, m := range neighbours {
			v.trashes(m.name)
		}
		p, err := v.view.Trash().Page(v.Context(), TrashQuery{})
		v.check("Trash.Page", p, err)
		var listed []TrashEntry
		for e, err := range v.view.Trash().All(v.Context(), TrashList{}) {
			v.check("Trash.All", e, err)
			listed = append(listed, e)
		}
		if !slices.Equal(listed, p.Entries) {
			v.Errorf("the trash lists %+v, and its pages have %+v, want the same", listed, p.Entries)
		}
		if !v.access.ReadOnly && len(listed) != len(v.changes) {
			v.Errorf("the trash lists %d entries, want %v", len(listed), v.changes)
		}
	},
	"Get": func(v visit) {
		v.onEachTrashed("Trash.Get", nil, nil,
			func(s *Store, id string) (any, error) { return s.Trash().Get(v.Context(), id) })
	},
	"Restore": func(v visit) {
		v.onEachTrashed("Trash.Restore", ErrReadOnly, nil,
			func(s *Store, id string) (any, error) { return s.Trash().Restore(v.Context(), id) })
	},
	"Erase": func(v visit) {
		v.onEachTrashed("Trash.Erase", ErrReadOnly, ErrForbidden,
			func(s *Store, id string) (any, error) { return nil, s.Trash().Erase(v.Context(), id) })
	},
	"Empty": func(v visit) {
		for _, m := range neighbours {
			v.trashes(m.name)
		}
		n, err := v.view.Trash().Empty(v.Context())
		v.check("Trash.Empty", n, err)
		if v.access.ReadOnly != errors.Is(err, ErrReadOnly) {
			v.Errorf("Trash.Empty gives %v, want ErrReadOnly only for views that are read-only", err)
		}
		for _, m := range neighbours {
			owner := placeOwner(m.user, m.project)
			_, err := v.n.store.As(Access{User: owner}).Trash().Get(v.Context(), v.n.ids[m.name])
			if gone := owner == v.access.User && slices.Contains(v.changes, m.name); gone != errors.Is(err, ErrNotFound) {
				v.Errorf("after Trash.Empty %s: got %v, want gone %v", m.name, err, gone)
			}
		}
	},
	"DeleteMemory, erasing": func(v visit) {
		for _, m := range neighbours {
			id := v.n.ids[m.name]
			err := v.view.DeleteMemory(v.Context(), id, &DeletionOptions{Erase: true})
			v.erasedLive("DeleteMemory", m.name, placeOwner(m.user, m.project), id, err)
		}
	},
	"DeleteFile, erasing": func(v visit) {
		for _, m := range neighbours {
			f := v.attach(m.name)
			err := v.view.DeleteFile(v.Context(), f.ID, &DeletionOptions{Erase: true})
			v.erasedLive("DeleteFile", m.name, placeOwner(m.user, m.project), f.ID, err)
		}
	},
}

// placeOwner returns the owner of what a neighbour stores: the project's owner, or else the neighbour.
func placeOwner(user, project string) string {
	if owner, _, found := strings.Cut(project, "/"); found {
		return owner
	}
	return user
}

// trashes deletes a memory as the user who stored it.
func (v visit) trashes(name string) {
	v.Helper()
	for _, m := range neighbours {
		if m.name == name {
			if err := v.n.store.As(Access{User: m.user}).DeleteMemory(v.Context(), v.n.ids[name], nil); err != nil {
				v.Fatal(err)
			}
		}
	}
}

// onEachTrashed calls a method on each memory after its deletion. readOnly is the error for a read-only view, and
// others the error for users who may write there but do not own the place.
func (v visit) onEachTrashed(what string, readOnly, others error, call func(s *Store, id string) (any, error)) {
	v.Helper()
	for _, m := range neighbours {
		v.trashes(m.name)
	}
	for _, m := range neighbours {
		id := v.n.ids[m.name]
		before := rowsOf(v.T, v.n.store)
		answer, err := call(v.view, id)
		v.check(what+" of "+m.name, answer, err, id)
		var want error
		switch {
		case v.access.ReadOnly:
			if want = readOnly; want == nil {
				continue // it sees what its user sees
			}
		case !slices.Contains(v.changes, m.name):
			want = ErrNotFound
		case placeOwner(m.user, m.project) != v.access.User:
			want = others
		}
		if want == nil && err != nil || want != nil && !errors.Is(err, want) {
			v.Errorf("%s of %s gives %v, want %v", what, m.name, err, want)
		}
		if err != nil && rowsOf(v.T, v.n.store) != before {
			v.Errorf("%s of %s was refused and changed something, want nothing changed", what, m.name)
		}
	}
}

// erasedLive checks the result of erasing something that had not been deleted.
func (v visit) erasedLive(what, name, owner, id string, err error) {
	v.Helper()
	v.check(what+" of "+name, nil, err, id)
	want := ErrForbidden
	switch {
	case v.access.ReadOnly:
		want = ErrReadOnly
	case !slices.Contains(v.sees, name):
		want = ErrNotFound
	case slices.Contains(v.changes, name) && owner == v.access.User:
		want = nil
	}
	if want == nil && err != nil || want != nil && !errors.Is(err, want) {
		v.Errorf("%s of %s gives %v, want %v", what, name, err, want)
	}
}
