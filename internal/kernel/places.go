package kernel

import (
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
)

// OwnCollection returns the row of an owner's collection, and the profile of its own vectors (0: none).
func OwnCollection(tx db.Tx, owner int64, name string) (row, profile int64, found bool, err error) {
	is, stored, err := sealedrows.Is(tx, sealedrows.CollectionName, owner, `name`, name)
	if err != nil {
		return 0, 0, false, err
	}
	err = tx.Each(func(r db.Rows) error {
		found = true
		return r.Scan(&row, &profile)
	}, `SELECT id, coalesce(own_profile, 0) FROM collection WHERE owner_id = ? AND `+is, owner, stored)
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
	is, key, err := sealedrows.Is(tx, sealedrows.ProjectNameKey, owner, `name_key`, foldname.Key(name))
	if err != nil {
		return 0, err
	}
	if _, err := tx.Exec(`DELETE FROM project_alias WHERE owner_id = ? AND `+is, owner, key); err != nil {
		return 0, err
	}
	sealed, sealedKey, err := SealProject(tx, owner, name)
	if err != nil {
		return 0, err
	}
	return db.Insert(tx, `INSERT INTO project (owner_id, uid, name, name_key, created_at, updated_at) `+
		`VALUES (?, ?, ?, ?, ?, ?) RETURNING id`,
		owner, id, sealed, sealedKey, now, now)
}

// SealProject returns the arguments for the name of a project of an owner, a row in the users, and for the name folded.
func SealProject(tx db.Tx, owner int64, name string) (sealed, key any, err error) {
	if sealed, err = sealedrows.SealText(tx, owner, sealedrows.ProjectName, name); err == nil {
		key, err = sealedrows.SealText(tx, owner, sealedrows.ProjectNameKey, foldname.Key(name))
	}
	return sealed, key, err
}

// AddCollection adds a collection of an owner, a row in the users, with the profile of its own vectors, 0 for none.
func AddCollection(tx db.Tx, owner int64, name, description string, profile, now int64) (row int64, err error) {
	taken := fault.New(fault.KindConflict, "collection_name",
		"{} %s already exists; choose another name, or store into it", fault.Show(name))
	if sealedrows.Seals(tx) { // it may be there from before the store had keys
		switch _, _, found, err := OwnCollection(tx, owner, name); {
		case err != nil:
			return 0, err
		case found:
			return 0, taken
		}
	}
	sealedName, err := sealedrows.SealText(tx, owner, sealedrows.CollectionName, name)
	if err != nil {
		return 0, err
	}
	sealed, err := sealedrows.SealText(tx, owner, sealedrows.CollectionDescription, description)
	if err != nil {
		return 0, err
	}
	row, err = db.Insert(tx, `INSERT INTO collection (owner_id, name, description, own_profile, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (owner_id, name) DO NOTHING RETURNING id`, owner, sealedName, sealed,
		db.OrNull(profile), now, now)
	if err == nil && row == 0 {
		err = taken
	}
	return row, err
}

// RenameCollection changes the name of a collection of an owner, a row in the users.
func RenameCollection(tx db.Tx, owner, row int64, name string) error {
	sealed, err := sealedrows.SealText(tx, owner, sealedrows.CollectionName, name)
	if err == nil {
		_, err = tx.Exec(`UPDATE collection SET name = ? WHERE id = ?`, sealed, row)
	}
	return err
}

// DescribeCollection changes the description of a collection of an owner, a row in the users.
func DescribeCollection(tx db.Tx, owner, row int64, description string) error {
	sealed, err := sealedrows.SealText(tx, owner, sealedrows.CollectionDescription, description)
	if err == nil {
		_, err = tx.Exec(`UPDATE collection SET description = ? WHERE id = ?`, sealed, row)
	}
	return err
}

// OwnerOfProject returns the row of the user who owns the contents of a project (0: outside any), and whose quota they
// count towards.
func OwnerOfProject(tx db.Tx, v Viewer, project int64) (owner int64, err error) {
	if project == 0 {
		return v.User, nil
	}
	err = tx.QueryRow(`SELECT owner_id FROM project WHERE id = ?`, project).Scan(&owner)
	return owner, err
}
