package souvenir

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/foldname"
)

// Finding a project by the name or id that callers give.
//
// Names are compared folded (internal/foldname), and a project's former names resolve to it (project_alias). The order
// of look-up is: the caller's own projects, the caller's own by former names, shared projects, shared projects by
// former names. A former name of another user's project counts only if the caller was a member while the project had
// it: otherwise its owner could collect names that members think are new.

// maxAliases is how many former names are kept for a project.
const maxAliases = 16

// maxAmbiguous is how many projects the error for an ambiguous name or id lists.
const maxAmbiguous = 20

// findProject looks up a project as callers name it, among the visible ones: by id (own first, then shared; OWNER/ID
// decides between two shared ones), else by name. Nil means unknown. It is an error if id and name disagree, or if two
// projects match. A limited view knows only its own projects, also in errors.
func findProject(tx db.Tx, v viewer, id, name string) (*projectRow, error) {
	if id == "" {
		fitting, err := findNamed(tx, v, name)
		if err != nil || len(fitting) == 0 {
			return nil, err
		}
		return onlyProject("project_name", name, fitting)
	}
	found, err := findProjectID(tx, v, id)
	switch {
	case err != nil || name == "":
		return found, err
	case found != nil:
		return agreeing(tx, v, *found, id, name)
	}
	named, err := findNamed(tx, v, name)
	if err != nil || len(named) == 0 {
		return nil, err
	}
	return nil, disagreeingID(id, name, named[0])
}

// disagreeingID is the error for an unknown id with the name of a project.
func disagreeingID(id, name string, named projectRow) error {
	return invalid("project_id", "project_name %s and project_id %s disagree: the project of that name has the id %s; "+
		"give one of the two",
		show(name), show(id), whole(named.ref()))
}

// agreeing returns the project found by an id, if the name given with it is its current or a former name.
func agreeing(tx db.Tx, v viewer, found projectRow, id, name string) (*projectRow, error) {
	if foldname.Key(found.name) == foldname.Key(name) {
		return &found, nil
	}
	named, err := findNamed(tx, v, name)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(named, func(p projectRow) bool { return p.row == found.row }); i >= 0 {
		found.former = named[i].former
		return &found, nil
	}
	return nil, invalid("project_name",
		"project_name %s and project_id %s disagree: that project is named %s; give one of the two",
		show(name), show(id), show(found.name))
}

// findProjectID finds a project by id or OWNER/ID, nil if it is unknown.
func findProjectID(tx db.Tx, v viewer, id string) (*projectRow, error) {
	condition, args := `j.uid = ?`, []any{id}
	owner, ofOwner := "", false
	if slash := strings.LastIndexByte(id, '/'); slash >= 0 { // ids have none, user ids may
		owner, ofOwner = id[:slash], true
		condition, args = `j.uid = ? AND (u.uid = ? OR u.name_key = ?)`, []any{id[slash+1:], owner, foldname.Key(owner)}
	}
	fitting, err := findProjects(tx, v, condition, args...)
	if err != nil || len(fitting) == 0 {
		return nil, err
	}
	// User ids are unique, but a name may be chosen to look like one.
	for _, first := range []func(p projectRow) bool{
		func(p projectRow) bool { return ofOwner && p.owner == owner },
		func(p projectRow) bool { return p.own },
	} {
		if slices.ContainsFunc(fitting, first) {
			fitting = slices.DeleteFunc(fitting, func(p projectRow) bool { return !first(p) })
		}
	}
	return onlyProject("project_id", id, fitting)
}

// onlyProject returns the one matching project; several are an error that lists them.
func onlyProject(argument, value string, fitting []projectRow) (*projectRow, error) {
	if len(fitting) == 1 {
		fitting[0].argument = argument
		return &fitting[0], nil
	}
	refs := make([]string, 0, maxAmbiguous)
	for _, p := range fitting[:min(len(fitting), maxAmbiguous)] {
		refs = append(refs, whole(p.ref())) // not shortened: it is meant to be copied
	}
	more := ""
	if n := len(fitting) - len(refs); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return nil, invalid(argument, "%s %s fits %d projects; give project_id as one of %s%s", argument, show(value),
		len(fitting), strings.Join(refs, ", "), more)
}

// findNamed returns the visible projects that match a name with the highest precedence; more than one is ambiguous.
func findNamed(tx db.Tx, v viewer, name string) ([]projectRow, error) {
	key := foldname.Key(name)
	if key == "" {
		return nil, nil
	}
	visible, visibleArgs := v.VisibleProject()
	role, roleArgs := v.ProjectRole()
	var all []projectRow
	err := tx.Each(func(row db.Rows) error {
		var p projectRow
		err := row.Scan(&p.row, &p.uid, &p.name, &p.owner, &p.own, &p.role, &p.former)
		all = append(all, p)
		return err
	}, `SELECT j.id, j.uid, j.name, u.uid, j.owner_id = ?1, `+role+`, CASE WHEN j.name_key = ? THEN '' ELSE a.name END
		FROM project j JOIN users u ON u.id = j.owner_id
		LEFT JOIN project_alias a ON a.owner_id = j.owner_id AND a.name_key = ? AND a.project_id = j.id
		WHERE `+visible+` AND (j.name_key = ? OR a.name IS NOT NULL AND (j.owner_id = ? OR a.created_at >=
			(SELECT b.created_at FROM project_member b WHERE b.project_id = j.id AND b.user_id = ?)))
		ORDER BY j.id`, slices.Concat([]any{v.User}, roleArgs, []any{key, key}, visibleArgs,
		[]any{key, v.User, v.User})...)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	rank := func(p projectRow) int {
		switch {
		case p.own && p.former == "":
			return 0
		case p.own:
			return 1
		case p.former == "":
			return 2
		}
		return 3
	}
	best := slices.MinFunc(all, func(a, b projectRow) int { return cmp.Compare(rank(a), rank(b)) })
	all = slices.DeleteFunc(all, func(p projectRow) bool { return rank(p) != rank(best) })
	// Among one owner's projects from before names were compared folded, the exact name decides; between owners, nothing
	// does.
	exact := func(p projectRow) bool { return p.name == name && p.owner == all[0].owner }
	if !slices.ContainsFunc(all, func(p projectRow) bool { return p.owner != all[0].owner }) &&
		slices.ContainsFunc(all, exact) {
		all = slices.DeleteFunc(all, func(p projectRow) bool { return !exact(p) })
	}
	return all, nil
}

// findProjects returns the visible projects for which a condition on project j and its owner u holds.
func findProjects(tx db.Tx, v viewer, condition string, args ...any) ([]projectRow, error) {
	visible, visibleArgs := v.VisibleProject()
	role, roleArgs := v.ProjectRole()
	var found []projectRow
	err := tx.Each(func(row db.Rows) error {
		var p projectRow
		err := row.Scan(&p.row, &p.uid, &p.name, &p.owner, &p.own, &p.role)
		found = append(found, p)
		return err
	}, `SELECT j.id, j.uid, j.name, u.uid, j.owner_id = ?, `+role+` FROM project j JOIN users u ON u.id = j.owner_id
		WHERE `+visible+` AND (`+condition+`) ORDER BY j.id`, slices.Concat([]any{v.User}, roleArgs, visibleArgs, args)...)
	return found, err
}

// notes returns what a caller should know about how a project was found.
func (p *projectRow) notes() []string {
	if p == nil || p.former == "" {
		return nil
	}
	return []string{fmt.Sprintf("project %s is named %s now; use that name", show(p.former), show(p.name))}
}

// checkFreeName refuses a name that one of the caller's projects has: it would be ambiguous.
func checkFreeName(tx db.Tx, v viewer, argument, name string, except int64) error {
	return tx.Each(func(row db.Rows) error {
		var id, taken string
		if err := row.Scan(&id, &taken); err != nil {
			return err
		}
		if taken != name {
			return newError(KindConflict, argument,
				"project_name %s is the same name as %s, which the project with project_id %s has; choose another name",
				show(name), show(taken), show(id))
		}
		return newError(KindConflict, argument,
			"project_name %s is taken by the project with project_id %s; choose another name", show(name), show(id))
	}, `SELECT uid, name FROM project WHERE owner_id = ? AND name_key = ? AND id <> ? LIMIT 1`, v.User,
		foldname.Key(name), except)
}

// renameProject renames a project. The previous name becomes a former name, unless it is equal when folded.
func (s *Store) renameProject(tx db.Tx, p projectRow, name string) error {
	now, key := s.now(), foldname.Key(name)
	statements := []struct {
		sql  string
		args []any
	}{
		{`DELETE FROM project_alias WHERE name_key = ? AND owner_id = (SELECT owner_id FROM project WHERE id = ?)`,
			[]any{key, p.row}},
		{`INSERT INTO project_alias (owner_id, name_key, name, project_id, created_at)
			SELECT owner_id, name_key, name, id, ?1 FROM project j WHERE id = ?2 AND name_key NOT IN (?3, '')
				AND NOT EXISTS (SELECT 1 FROM project o WHERE o.owner_id = j.owner_id AND o.name_key = j.name_key AND o.id <> j.id)
			ON CONFLICT (owner_id, name_key) DO UPDATE SET name = excluded.name, project_id = excluded.project_id,
			created_at = excluded.created_at`, []any{now, p.row, key}},
		{`DELETE FROM project_alias WHERE project_id = ?1 AND name_key NOT IN
			(SELECT name_key FROM project_alias WHERE project_id = ?1 ORDER BY created_at DESC, name_key LIMIT ?2)`,
			[]any{p.row, maxAliases}},
		{`UPDATE project SET name = ?, name_key = ?, updated_at = ? WHERE id = ?`, []any{name, key, now, p.row}},
	}
	for _, statement := range statements {
		if _, err := tx.Exec(statement.sql, statement.args...); err != nil {
			return err
		}
	}
	return nil
}

// fillProjectNames computes the name keys in a file from before they were stored, and the keys of user names with
// letters that were folded wrongly then.
func fillProjectNames(tx db.Tx) error {
	for _, statement := range []struct{ selection, update string }{
		{`SELECT id, name, name_key FROM project`, `UPDATE project SET name_key = ? WHERE id = ?`},
		{`SELECT id, name, name_key FROM user WHERE name IS NOT NULL`, `UPDATE OR IGNORE user SET name_key = ? WHERE id = ?`},
	} {
		keys := map[int64]string{}
		err := tx.Each(func(row db.Rows) error {
			var id int64
			var name, key string
			err := row.Scan(&id, &name, &key)
			if folded := foldname.Key(name); folded != key {
				keys[id] = folded
			}
			return err
		}, statement.selection)
		if err != nil {
			return err
		}
		for id, key := range keys {
			if _, err := tx.Exec(statement.update, key, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxNearNames is how many projects are searched for names similar to a new one, the newest first.
const maxNearNames = 10_000

// nearNames returns warnings about a project that a write has just created: other projects whose names differ by only a
// typo or two.
func nearNames(tx db.Tx, v viewer, made int64) ([]string, error) {
	const most = 3
	visible, args := v.VisibleProject()
	var name, key string
	if err := tx.QueryRow(`SELECT name, name_key FROM project WHERE id = ?`, made).Scan(&name, &key); err != nil {
		return nil, err
	}
	var near []string
	err := tx.Each(func(row db.Rows) error {
		p := projectRow{}
		var other string
		if err := row.Scan(&p.uid, &p.name, &p.owner, &p.own, &other); err != nil {
			return err
		}
		if len(near) < most && foldname.Typo(key, other) {
			near = append(near, fmt.Sprintf("%s (project_id %s)", show(p.name), whole(p.ref())))
		}
		return nil
	}, `SELECT j.uid, j.name, u.uid, j.owner_id = ?, j.name_key FROM project j JOIN users u ON u.id = j.owner_id
		WHERE `+visible+` AND j.id <> ? ORDER BY j.id DESC LIMIT ?`,
		slices.Concat([]any{v.User}, args, []any{made, maxNearNames})...)
	if err != nil || len(near) == 0 {
		return nil, err
	}
	return []string{fmt.Sprintf("project %s is new and was created; did you mean %s? If so, move what you stored there "+
		"and delete the new project",
		show(name), strings.Join(near, " or "))}, nil
}
