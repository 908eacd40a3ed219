package kernel

import (
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/foldname"
)

// OwnCollection returns the row of an owner's collection, and the profile of its own vectors (0: none).
func OwnCollection(tx db.Tx, owner int64, name string) (row, profile int64, found bool, err error) {
	err = tx.Each(func(r db.Rows) error {
		found = true
		return r.Scan(&row, &profile)
	}, `SELECT id, coalesce(own_profile, 0) FROM collection WHERE owner_id = ? AND name = ?`, owner, name)
	return row, profile, found, err
}

// InsertProject adds a project of an owner. An empty name is the id. If the name is a former name of others, it
// resolves only to the new project from then on.
func InsertProject(tx db.Tx, owner int64, id, name string, now int64) (int64, error) {
	if strings.Contains(id, "/") {
		return 0, fault.Invalid("project_id",
			"{} %s is not an existing project; the id of a new project has no slash",
			fault.Show(id))
	}
	if name == "" {
		name = id
	}
	key := foldname.Key(name)
	if _, err := tx.Exec(`DELETE FROM project_alias WHERE owner_id = ? AND name_key = ?`, owner, key); err != nil {
		return 0, err
	}
	return db.Insert(tx, `INSERT INTO project (owner_id, uid, name, name_key, created_at, updated_at) `+
		`VALUES (?, ?, ?, ?, ?, ?) RETURNING id`,
		owner, id, name, key, now, now)
}
