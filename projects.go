package souvenir

import (
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/sqlite"
)

// projectRow is a project as one of its people sees it.
type projectRow struct {
	row       int64
	uid, name string
	owner     string // the owner's user id
	own       bool   // the caller owns it
}

// ref is how the caller can name the project without doubt.
func (p projectRow) ref() string {
	if p.own {
		return p.uid
	}
	return p.owner + "/" + p.uid
}

// findProject looks a project up as callers name it, among those that the user owns or is member of: by id (own first,
// then shared; OWNER/ID decides between two shared ones), else by name. Nil means unknown. Id and name that disagree,
// and a name or id that two projects share, are errors.
// A limited view knows of its own projects only, also in errors.
func findProject(tx *sqlite.Tx, sc scope, id, name string) (*projectRow, error) {
	argument, value := "project_id", id
	condition, args := `(j.uid = ? OR u.uid || '/' || j.uid = ?)`, []any{id, id}
	if id == "" {
		argument, value = "project_name", name
		condition, args = `j.name = ?`, []any{name}
	}
	var candidates []projectRow
	err := tx.Each(func(row *sqlite.Rows) error {
		var p projectRow
		err := row.Scan(&p.row, &p.uid, &p.name, &p.owner, &p.own)
		candidates = append(candidates, p)
		return err
	}, `SELECT j.id, j.uid, j.name, u.uid, j.owner_id = ? FROM project j JOIN user u ON u.id = j.owner_id
		WHERE j.id IN (`+sharedWith+`) AND `+condition+` ORDER BY j.id`, append([]any{sc.user, sc.user, sc.user}, args...)...)
	if err != nil {
		return nil, err
	}
	if sc.limited {
		candidates = slices.DeleteFunc(candidates, func(p projectRow) bool { return !slices.Contains(sc.projects, p.row) })
	}
	if slices.ContainsFunc(candidates, func(p projectRow) bool { return p.own }) {
		candidates = slices.DeleteFunc(candidates, func(p projectRow) bool { return !p.own })
	}
	switch {
	case len(candidates) > 1:
		refs := make([]string, len(candidates))
		for i, p := range candidates {
			refs[i] = show(p.ref())
		}
		return nil, invalid(argument, "%s %s fits %d projects; give project_id as one of %s",
			argument, show(value), len(candidates), strings.Join(refs, ", "))
	case len(candidates) == 1 && id != "" && name != "" && candidates[0].name != name:
		return nil, invalid("project_name", "project_name %s and project_id %s disagree: that project is named %s; give one of the two",
			show(name), show(id), show(candidates[0].name))
	case len(candidates) == 1:
		return &candidates[0], nil
	case id != "" && name != "":
		named, err := findProject(tx, sc, "", name)
		if err != nil || named == nil {
			return nil, err
		}
		return nil, invalid("project_id", "project_name %s and project_id %s disagree: the project of that name has the id %s; give one of the two",
			show(name), show(id), show(named.ref()))
	}
	return nil, nil
}

// projectForWriting finds the project that a write names and makes an unknown one for the caller: an unknown id becomes
// the new project's id. It returns 0 for no project. A view limited to a single project stores there when none is named.
func (s *Store) projectForWriting(tx *sqlite.Tx, sc scope, id, name string) (int64, error) {
	if id == "" && name == "" {
		switch {
		case !sc.limited:
			return 0, nil
		case len(s.access.Projects) == 1:
			id = s.access.Projects[0]
		default:
			return 0, newError(KindForbidden, "project_id", "this view is limited to the projects %s; name one of them", oneOf(s.access.Projects))
		}
	}
	p, err := findProject(tx, sc, id, name)
	if err != nil {
		return 0, err
	}
	if sc.limited && p == nil && (id == "" || !slices.Contains(s.access.Projects, id)) {
		return 0, newError(KindForbidden, "project_id", "this view is limited to the projects %s; %s is none of them",
			oneOf(s.access.Projects), show(id+name))
	}
	if p == nil {
		if _, err := findProject(tx, scope{user: sc.user}, id, name); sc.limited && err != nil {
			return 0, err // two projects have the id that the view is limited to
		}
		return s.addProject(tx, sc, id, name)
	}
	writable, err := sqlite.Column[int64](tx, `SELECT 1 WHERE ? IN (`+writableBy+`)`, p.row, sc.user, sc.user)
	if err != nil {
		return 0, err
	}
	if len(writable) == 0 {
		return 0, newError(KindForbidden, "project_id", "project %s is shared with this user for reading only", show(p.ref()))
	}
	return p.row, nil
}

func (s *Store) addProject(tx *sqlite.Tx, sc scope, id, name string) (int64, error) {
	if strings.Contains(id, "/") {
		return 0, invalid("project_id", "project_id %s names nobody's project; the id of a new project has no slash", show(id))
	}
	if id == "" {
		id = s.newID()
	}
	if name == "" {
		name = id
	}
	now := s.now()
	result, err := tx.Exec(`INSERT INTO project (owner_id, uid, name, created_at, updated_at) VALUES (?, ?, ?, ?, ?)`, sc.user, id, name, now, now)
	return result.LastInsertID, err
}
