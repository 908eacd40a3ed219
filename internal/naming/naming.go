// Package naming finds projects by the names and ids that callers give, and renames them.
//
// Names are compared folded (internal/foldname), and a project's former names resolve to it (project_alias). The order
// of look-up is: the caller's own projects, the caller's own by former names, shared projects, shared projects by
// former names. A former name of another user's project counts only if the caller was a member while the project had
// it: otherwise its owner could collect names that members think are new.
package naming

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
)

// Project is a project as one of its members sees it.
type Project struct {
	Row       int64
	UID, Name string
	Owner     string // the owner's user id
	Own       bool   // the caller owns it
	Role      string // the caller's: reader, writer or owner
	Argument  string // the argument that named it
	Former    string // the former name, if it was found by that
}

// Ref names the project unambiguously for the caller.
func (p Project) Ref() string { return Ref(p.Own, p.Owner, p.UID) }

// Ref names a project unambiguously for a caller, who owns it or not.
func Ref(own bool, owner, id string) string {
	if own {
		return id
	}
	return owner + "/" + id
}

// ReadOnly reports whether the caller has only read access to the project.
func (p Project) ReadOnly() bool { return p.Role == "reader" }

// CheckWritable refuses writes to a project that the caller may only read.
func (p *Project) CheckWritable() error {
	if p.ReadOnly() {
		return fault.New(fault.KindForbidden, "project_id", "project %s is shared with this user read-only",
			fault.Whole(p.Ref()))
	}
	return nil
}

// maxAliases is the maximum number of former names kept for a project.
const maxAliases = 16

// maxAmbiguous is the maximum number of projects in the error for an ambiguous name or id.
const maxAmbiguous = 20

// Find looks up a project as callers name it, among the visible ones: by id (own first, then shared; OWNER/ID decides
// between two shared ones), else by name. Nil means unknown. It is an error if id and name disagree, or if two projects
// match. A limited view only sees its own projects, in errors as well.
func Find(tx db.Tx, v kernel.Viewer, id, name string) (*Project, error) {
	if id == "" {
		fitting, err := Named(tx, v, name)
		if err != nil || len(fitting) == 0 {
			return nil, err
		}
		return Only("project_name", name, fitting)
	}
	found, err := FindID(tx, v, id)
	switch {
	case err != nil || name == "":
		return found, err
	case found != nil:
		return Agreeing(tx, v, *found, id, name)
	}
	named, err := Named(tx, v, name)
	if err != nil || len(named) == 0 {
		return nil, err
	}
	return nil, DisagreeingID(id, name, named[0])
}

// OwnerIn finds the project that a caller names, 0 if none is named, and the row of its owner, or else of the caller.
// Without such a project it returns false.
func OwnerIn(tx db.Tx, v kernel.Viewer, id, name string) (owner, project int64, known bool, err error) {
	if id == "" && name == "" {
		return v.User, 0, true, nil
	}
	p, err := Find(tx, v, id, name)
	if err != nil || p == nil {
		return 0, 0, false, err
	}
	owner, err = kernel.OwnerOfProject(tx, v, p.Row)
	return owner, p.Row, err == nil, err
}

// DisagreeingID is the error for an unknown id with the name of a project.
func DisagreeingID(id, name string, named Project) error {
	return fault.Invalid("project_id",
		"{project_name} %s and {project_id} %s disagree: the project of that name has the id %s; "+
			"give one of the two",
		fault.Show(name), fault.Show(id), fault.Whole(named.Ref()))
}

// Agreeing returns the project found by an id, if the name given with it is its current or a former name.
func Agreeing(tx db.Tx, v kernel.Viewer, found Project, id, name string) (*Project, error) {
	if foldname.Key(found.Name) == foldname.Key(name) {
		return &found, nil
	}
	named, err := Named(tx, v, name)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(named, func(p Project) bool { return p.Row == found.Row }); i >= 0 {
		found.Former = named[i].Former
		return &found, nil
	}
	return nil, fault.Invalid("project_name",
		"{} %s and {project_id} %s disagree: that project is named %s; give one of the two",
		fault.Show(name), fault.Show(id), fault.Show(found.Name))
}

// FindID finds a project by id or OWNER/ID, nil if it is unknown.
func FindID(tx db.Tx, v kernel.Viewer, id string) (*Project, error) {
	condition, args := `j.uid = ?`, []any{id}
	owner, ofOwner := "", false
	if slash := strings.LastIndexByte(id, '/'); slash >= 0 { // ids have no slash, but user ids may
		owner, ofOwner = id[:slash], true
		condition, args = `j.uid = ? AND (u.uid = ? OR u.name_key = ?)`, []any{id[slash+1:], owner, foldname.Key(owner)}
	}
	fitting, err := findWhere(tx, v, condition, args...)
	if err != nil || len(fitting) == 0 {
		return nil, err
	}
	// User ids are unique, but a project may have a name that looks like one.
	for _, first := range []func(p Project) bool{
		func(p Project) bool { return ofOwner && p.Owner == owner },
		func(p Project) bool { return p.Own },
	} {
		if slices.ContainsFunc(fitting, first) {
			fitting = slices.DeleteFunc(fitting, func(p Project) bool { return !first(p) })
		}
	}
	return Only("project_id", id, fitting)
}

// ByRow returns a project, nil if it is not visible.
func ByRow(tx db.Tx, v kernel.Viewer, row int64) (*Project, error) {
	found, err := findWhere(tx, v, `j.id = ?`, row)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// Only returns the one matching project; several are an error that lists them.
func Only(argument, value string, fitting []Project) (*Project, error) {
	if len(fitting) == 1 {
		fitting[0].Argument = argument
		return &fitting[0], nil
	}
	refs := make([]string, 0, maxAmbiguous)
	for _, p := range fitting[:min(len(fitting), maxAmbiguous)] {
		refs = append(refs, fault.Whole(p.Ref())) // not shortened: it is meant to be copied
	}
	more := ""
	if n := len(fitting) - len(refs); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return nil, fault.Invalid(argument, "{} %s matches %d projects; give {project_id} as one of %s%s",
		fault.Show(value),
		len(fitting), strings.Join(refs, ", "), more)
}

// Named returns the visible projects that match a name with the highest precedence; more than one is ambiguous.
func Named(tx db.Tx, v kernel.Viewer, name string) ([]Project, error) {
	key := foldname.Key(name)
	if key == "" {
		return nil, nil
	}
	owners, err := v.Owners(tx)
	if err != nil {
		return nil, err
	}
	current, stored, err := sealedrows.IsAny(tx, sealedrows.ProjectNameKey, owners, `j.name_key`, key)
	if err != nil {
		return nil, err
	}
	former, _, err := sealedrows.IsAny(tx, sealedrows.ProjectNameKey, owners, `a.name_key`, key)
	if err != nil {
		return nil, err
	}
	visible, visibleArgs := v.VisibleProject()
	role, roleArgs := v.ProjectRole()
	var all []Project
	err = tx.Each(func(row db.Rows) error {
		var p Project
		err := row.Scan(&p.Row, &p.UID, &p.Name, &p.Owner, &p.Own, &p.Role, &p.Former)
		all = append(all, p)
		return err
	}, `SELECT j.id, j.uid, j.name, u.uid, j.owner_id = ?1, `+role+`, CASE WHEN `+current+` THEN '' ELSE a.name END
		FROM project j JOIN users u ON u.id = j.owner_id
		LEFT JOIN project_alias a ON a.owner_id = j.owner_id AND `+former+` AND a.project_id = j.id
		WHERE `+visible+` AND (`+current+` OR a.name IS NOT NULL AND (j.owner_id = ? OR a.created_at >=
			(SELECT b.created_at FROM project_member b WHERE b.project_id = j.id AND b.user_id = ?)))
		ORDER BY j.id`, slices.Concat([]any{v.User}, roleArgs, []any{stored, stored}, visibleArgs,
		[]any{stored, v.User, v.User})...)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	rank := func(p Project) int {
		switch {
		case p.Own && p.Former == "":
			return 0
		case p.Own:
			return 1
		case p.Former == "":
			return 2
		}
		return 3
	}
	best := slices.MinFunc(all, func(a, b Project) int { return cmp.Compare(rank(a), rank(b)) })
	all = slices.DeleteFunc(all, func(p Project) bool { return rank(p) != rank(best) })
	// Older projects of one owner may have names that are equal when folded; then the exact name decides. Between owners,
	// nothing decides.
	exact := func(p Project) bool { return p.Name == name && p.Owner == all[0].Owner }
	if !slices.ContainsFunc(all, func(p Project) bool { return p.Owner != all[0].Owner }) &&
		slices.ContainsFunc(all, exact) {
		all = slices.DeleteFunc(all, func(p Project) bool { return !exact(p) })
	}
	return all, nil
}

// findWhere returns the visible projects for which a condition on project j and its owner u holds.
func findWhere(tx db.Tx, v kernel.Viewer, condition string, args ...any) ([]Project, error) {
	visible, visibleArgs := v.VisibleProject()
	role, roleArgs := v.ProjectRole()
	var found []Project
	err := tx.Each(func(row db.Rows) error {
		var p Project
		err := row.Scan(&p.Row, &p.UID, &p.Name, &p.Owner, &p.Own, &p.Role)
		found = append(found, p)
		return err
	}, `SELECT j.id, j.uid, j.name, u.uid, j.owner_id = ?, `+role+` FROM project j JOIN users u ON u.id = j.owner_id
		WHERE `+visible+` AND (`+condition+`) ORDER BY j.id`, slices.Concat([]any{v.User}, roleArgs, visibleArgs, args)...)
	return found, err
}

// Notes returns notes for the caller about how a project was found.
func (p *Project) Notes() []string {
	if p == nil || p.Former == "" {
		return nil
	}
	return []string{fmt.Sprintf("project %s is now named %s; use that name", fault.Show(p.Former), fault.Show(p.Name))}
}

// CheckFree refuses a name that one of the caller's projects already has, since it would be ambiguous.
func CheckFree(tx db.Tx, v kernel.Viewer, argument, name string, except int64) error {
	is, key, err := sealedrows.Is(tx, sealedrows.ProjectNameKey, v.User, `name_key`, foldname.Key(name))
	if err != nil {
		return err
	}
	return tx.Each(func(row db.Rows) error {
		var id, taken string
		if err := row.Scan(&id, &taken); err != nil {
			return err
		}
		if taken != name {
			return fault.New(fault.KindConflict, argument,
				"project_name %s is the same name as %s, which the project with project_id %s has; choose another name",
				fault.Show(name), fault.Show(taken), fault.Show(id))
		}
		return fault.New(fault.KindConflict, argument,
			"project_name %s is taken by the project with project_id %s; choose another name", fault.Show(name), fault.Show(id))
	}, `SELECT uid, name FROM project WHERE owner_id = ? AND `+is+` AND id <> ? LIMIT 1`, v.User, key, except)
}

// Rename renames a project. The previous name becomes a former name, unless it is equal when folded.
func Rename(tx db.Tx, p Project, name string, now int64) error {
	var owner int64
	if err := tx.QueryRow(`SELECT owner_id FROM project WHERE id = ?`, p.Row).Scan(&owner); err != nil {
		return err
	}
	is, key, err := sealedrows.Is(tx, sealedrows.ProjectNameKey, owner, `name_key`, foldname.Key(name))
	if err != nil {
		return err
	}
	sealed, sealedKey, err := kernel.SealProject(tx, owner, name)
	if err != nil {
		return err
	}
	statements := []struct {
		sql  string
		args []any
	}{
		{`DELETE FROM project_alias WHERE ` + is + ` AND owner_id = ?`, []any{key, owner}},
		{`INSERT INTO project_alias (owner_id, name_key, name, project_id, created_at)
			SELECT owner_id, name_key, name, id, ? FROM project j WHERE id = ? AND NOT ` + is + ` AND name_key <> ''
				AND NOT EXISTS (SELECT 1 FROM project o WHERE o.owner_id = j.owner_id AND o.name_key = j.name_key AND o.id <> j.id)
			ON CONFLICT (owner_id, name_key) DO UPDATE SET name = excluded.name, project_id = excluded.project_id,
			created_at = excluded.created_at`, []any{now, p.Row, key}},
		{`DELETE FROM project_alias WHERE project_id = ?1 AND name_key NOT IN
			(SELECT name_key FROM project_alias WHERE project_id = ?1 ORDER BY created_at DESC, name_key LIMIT ?2)`,
			[]any{p.Row, maxAliases}},
		{`UPDATE project SET name = ?, name_key = ?, updated_at = ? WHERE id = ?`, []any{sealed, sealedKey, now, p.Row}},
	}
	for _, statement := range statements {
		if _, err := tx.Exec(statement.sql, statement.args...); err != nil {
			return err
		}
	}
	return nil
}

// Fill computes the name keys of an older file that does not store them, and the keys of user names with letters that
// older versions folded wrongly.
func Fill(tx db.Tx) error {
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

// maxNearNames is the maximum number of projects searched for names similar to a new one, the newest first.
const maxNearNames = 10_000

// Near returns warnings about a project that a write has just created: other projects whose names differ by only a
// typo or two.
func Near(tx db.Tx, v kernel.Viewer, made int64) ([]string, error) {
	const most = 3
	visible, args := v.VisibleProject()
	var name, key string
	if err := tx.QueryRow(`SELECT name, name_key FROM project WHERE id = ?`, made).Scan(&name, &key); err != nil {
		return nil, err
	}
	var near []string
	err := tx.Each(func(row db.Rows) error {
		p := Project{}
		var other string
		if err := row.Scan(&p.UID, &p.Name, &p.Owner, &p.Own, &other); err != nil {
			return err
		}
		if len(near) < most && foldname.Typo(key, other) {
			near = append(near, fmt.Sprintf("%s (project_id %s)", fault.Show(p.Name), fault.Whole(p.Ref())))
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
		fault.Show(name), strings.Join(near, " or "))}, nil
}
