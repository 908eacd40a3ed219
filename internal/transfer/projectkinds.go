package transfer

import (
	"fmt"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// formerNameRecord is a former name of a project. ?5 is the folded name. A current name of one of the owner's projects
// is not a former one.
func formerNameRecord() Record {
	return Record{
		kind: kindFormerName, Table: "project_alias", owner: `a.owner_id`, namespace: `u.namespace`, Key: 3,
		Fields: []RecordField{
			{Name: "owner", absent: kernel.LocalUser, Check: valid.Name},
			{Name: "project_id", absent: required, Check: checkSlashless},
			{Name: "name", absent: required, Check: valid.ProjectName},
			{Name: "created_at", Form: TimeForm, absent: present},
		},
		Selection: `SELECT u.uid, j.uid, a.name, a.created_at FROM project_alias a JOIN project j ON j.id = a.project_id ` +
			`JOIN users u ON u.id = a.owner_id`,
		keyed: `u.uid = ? AND j.uid = ? AND a.name = ?`, Ordered: `a.owner_id, a.created_at, a.name_key`,
		insert: `INSERT INTO project_alias (name, created_at, name_key, project_id, owner_id) SELECT ?3, ?4, ?5, ?6,
			owner_id FROM project
			WHERE id = ?6 AND owner_id = ?7
				AND NOT EXISTS (SELECT 1 FROM project o WHERE o.owner_id = project.owner_id AND o.name_key = ?5)
			ON CONFLICT DO NOTHING`,
		update: `UPDATE project_alias SET name = ?3, created_at = ?4
			WHERE project_id = ?6 AND name_key = ?5 AND owner_id = ?7`,
		refs: func(t *importTx, v []any) ([]any, error) {
			name, _ := v[2].(string)
			project, err := t.knownProject(v[0], v[1])
			if err != nil {
				return nil, err
			}
			owner, err := t.owner(v[0])
			if err != nil {
				return nil, err
			}
			key, err := sealedrows.SealText(t.tx, owner, sealedrows.ProjectNameKey, foldname.Key(name))
			return []any{key, project, owner}, err
		},
		sealed: []sealedField{{2, sealedrows.ProjectName, `a.name`}}, of: 2,
	}
}

// projectID and projectTitle are the positions of the id and the name of a project.
const (
	projectID    = 1
	projectTitle = 2
)

// rename changes the name in the line of a project if another project of the owner has it, and returns a warning then:
// a project that exists, with some values, keeps its name, and a new one gets a free one. A project of the store that
// already has that name, from before names were compared folded, keeps it.
func (item *recordItem) rename(t *importTx, values, existing []any, found bool) (warning string, err error) {
	id, _ := values[projectID].(string)
	name, _ := values[projectTitle].(string)
	owner, err := t.owner(values[0])
	if err != nil {
		return "", err
	}
	t.declare(owner, id, name)
	is, stored, err := sealedrows.Is(t.tx, sealedrows.ProjectNameKey, owner, `name_key`, foldname.Key(name))
	if err != nil {
		return "", err
	}
	same, err := db.Column[int64](t.tx, `SELECT 1 FROM project WHERE owner_id = ? AND uid = ? AND `+is, owner, id, stored)
	if err != nil || len(same) > 0 {
		return "", err
	}
	free, warning, err := t.freeName(owner, id, name)
	if current, is := existing[projectTitle].(string); found && is && warning != "" {
		free, warning = current, takenName(id, name, current)
	}
	values[projectTitle] = free
	return warning, err
}

// declare notes that a project of the file has a name.
func (t *importTx) declare(owner int64, id, name string) {
	key := projectName{owner: owner, name: foldname.Key(name)}
	if !slices.Contains(t.declared[key], id) {
		t.declared[key] = append(t.declared[key], id)
	}
}

// takenName is the warning about a project that does not get its name, since it would be ambiguous.
func takenName(id, name, got string) string {
	return fmt.Sprintf("project %s of the export is named %s here: another project already has the name %s",
		fault.Show(id), fault.Show(got), fault.Show(name))
}

// freeName returns a name for a new project of an owner, and a warning if another project has the given one.
func (t *importTx) freeName(owner int64, id, name string) (free, warning string, err error) {
	taken := false
	for _, free = range []string{name, name + " (" + id + ")", id, t.NewID()} {
		if taken && valid.ProjectName("project_name", free) != nil { // too long
			continue
		}
		is, key, err := sealedrows.Is(t.tx, sealedrows.ProjectNameKey, owner, `name_key`, foldname.Key(free))
		if err != nil {
			return "", "", err
		}
		others, err := db.Column[int64](t.tx, `SELECT 1 FROM project WHERE owner_id = ? AND uid <> ? AND `+is+` LIMIT 1`,
			owner, id, key)
		if err != nil {
			return "", "", err
		}
		if len(others) == 0 {
			break
		}
		taken = true
	}
	if taken {
		warning = takenName(id, name, free)
	}
	return free, warning, nil
}

// memberRecord is a member of a project.
func memberRecord() Record {
	return Record{
		kind: KindMember, Table: "project_member", namespace: `o.namespace`, Key: 3,
		Fields: []RecordField{
			{Name: "project_owner", absent: kernel.LocalUser, Check: valid.Name},
			{Name: "project_id", absent: required, Check: valid.Name},
			{Name: "user", absent: required, Check: valid.Name},
			{Name: "role", absent: required, Check: selected("reader", "writer", "owner")},
			{Name: "created_at", Form: TimeForm, absent: present},
		},
		Selection: `SELECT o.uid, j.uid, u.uid, b.role, b.created_at FROM project_member b
			JOIN project j ON j.id = b.project_id JOIN users o ON o.id = j.owner_id JOIN users u ON u.id = b.user_id`,
		keyed: `o.uid = ? AND j.uid = ? AND u.uid = ?`, Ordered: `b.project_id, b.user_id`,
		insert: `INSERT INTO project_member (role, created_at, project_id, user_id) SELECT ?4, ?5, ?6, ?7 ` +
			`WHERE NOT EXISTS (SELECT 1 FROM project WHERE id = ?6 AND owner_id = ?7) ON CONFLICT DO NOTHING`,
		update: `UPDATE project_member SET role = ?4, created_at = ?5 WHERE project_id = ?6 AND user_id = ?7`,
		refs: func(t *importTx, v []any) ([]any, error) {
			project, err := t.rows(t.knownProject(v[0], v[1]))
			if err != nil {
				return nil, err
			}
			user, err := t.rows(t.person("user", v[2]))
			return append(project, user...), err
		},
	}
}
