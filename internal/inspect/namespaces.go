package inspect

import (
	"fmt"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// apart selects rows that connect a project with a user of another namespace. Triggers refuse such rows.
const (
	memberApart = `EXISTS (SELECT 1 FROM users u, project j JOIN users o ON o.id = j.owner_id
		WHERE u.id = project_member.user_id AND j.id = project_member.project_id AND u.namespace <> o.namespace)`
	recipientApart = `EXISTS (SELECT 1 FROM users u, project j JOIN users o ON o.id = j.owner_id
		WHERE u.id = project_invitation.recipient_id AND j.id = project_invitation.project_id AND u.namespace <> o.namespace)`
)

// checkNamespaces checks the names of namespaces, and that users of different namespaces share nothing. Partitions are
// checked with their owners.
func (in *inspection) checkNamespaces() error {
	for _, c := range []struct{ table, what, condition string }{
		{"project_member", "member", memberApart}, {"project_invitation", "recipient", recipientApart},
	} {
		err := in.tx.Each(func(row db.Rows) error {
			var project string
			if err := row.Scan(&project); err != nil {
				return err
			}
			in.find(Finding{Table: c.table, ID: project, Repairable: true,
				Problem: fmt.Sprintf("project %s has a %s of another namespace", fault.Show(project), c.what)})
			in.repairs.apart = true
			return nil
		}, `SELECT (SELECT uid FROM project WHERE id = project_id) FROM `+c.table+` WHERE `+c.condition)
		if err != nil {
			return err
		}
	}
	return in.tx.Each(func(row db.Rows) error {
		var name string
		if err := row.Scan(&name); err != nil {
			return err
		}
		if err := valid.Name("namespace", name); err != nil {
			in.find(Finding{Table: "users", ID: name, Problem: err.Error()})
		}
		return nil
	}, `SELECT DISTINCT namespace FROM users WHERE namespace <> ''`)
}
