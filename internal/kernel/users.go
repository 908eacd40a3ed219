package kernel

import (
	"strconv"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/foldname"
)

// KeepUserKey sets the folded id of a user who was added without one: for data from elsewhere, whose ids are kept even
// if another user here has such a name. With the key, no other user can get such a name.
func KeepUserKey(tx db.Tx, namespace, id string) error {
	_, err := tx.Exec(keepUserKey, foldname.Key(id), namespace, id)
	return err
}

const keepUserKey = `UPDATE users SET uid_key = ? WHERE namespace = ? AND uid = ?`

// FillUserKeys sets the folded ids of all users who have none, or a wrong one.
func FillUserKeys(tx db.Tx) error {
	type user struct{ namespace, id string }
	var users []user
	err := tx.Each(func(row db.Rows) error {
		var u user
		var key string
		err := row.Scan(&u.namespace, &u.id, &key)
		if key != foldname.Key(u.id) {
			users = append(users, u)
		}
		return err
	}, `SELECT namespace, uid, coalesce(uid_key, '') FROM users`)
	for i := 0; err == nil && i < len(users); i++ {
		u := users[i]
		err = db.Queue(tx, keepUserKey, foldname.Key(u.id), u.namespace, u.id)
	}
	return err
}

// UserName returns the name of a user whose data the caller can see, for errors: the account name, or the id if there
// is none. All users whose data a caller can see are of the caller's namespace.
func UserName(tx db.Tx, v Viewer, uid string) string {
	names, err := db.Column[string](tx, `SELECT name FROM users WHERE namespace = ? AND uid = ? AND name IS NOT NULL`,
		v.Namespace, uid)
	if err != nil || len(names) == 0 {
		return strconv.Quote(uid)
	}
	return strconv.Quote(names[0])
}

// CheckUserIDFree checks that the id of a new user is not the name of another user, so that a reference always means
// the same user.
func CheckUserIDFree(tx db.Tx, argument, namespace, id string) error {
	taken, err := db.Column[int64](tx, `SELECT 1 FROM users WHERE namespace = ? AND name_key = ? AND uid <> ?`,
		namespace, foldname.Key(id), id)
	if err == nil && len(taken) > 0 {
		return fault.New(fault.KindConflict, argument,
			"{} %s is the name of a user with another id; give that id, or choose another one", fault.Show(id))
	}
	return err
}

// CheckUserNameFree checks that no user other than the one with this id has the name, as a name or as an id.
func CheckUserNameFree(tx db.Tx, namespace, id, name string) error {
	key := foldname.Key(name)
	taken, err := db.Column[string](tx, `SELECT name FROM users WHERE namespace = ? AND name_key = ? AND uid <> ?`,
		namespace, key, id)
	if err != nil {
		return err
	}
	if len(taken) > 0 {
		return fault.New(fault.KindConflict, "name", "{} %s is taken by the user %s; choose another name", fault.Show(name),
			fault.Show(taken[0]))
	}
	ids, err := db.Column[string](tx, `SELECT uid FROM users WHERE namespace = ? AND uid_key = ? AND uid <> ?
		ORDER BY id LIMIT 1`, namespace, key, id)
	if err == nil && len(ids) > 0 {
		return fault.New(fault.KindConflict, "name",
			"{} %s is the id of another user; choose another name, or give the id %s, too, if the account is for that user",
			fault.Show(name), fault.Show(ids[0]))
	}
	return err
}

// Owners names the owner of a memory or a file, and of its project.
type Owners struct {
	Name                                      string // of the owner's account; empty: none
	ProjectID, ProjectOwner, ProjectOwnerName string // empty: it is in no project
}

// OwnersOf names a user of a namespace, by id, and the owner of a project, 0 for none.
func OwnersOf(tx db.Tx, namespace, user string, project int64) (o Owners, err error) {
	err = tx.QueryRow(`SELECT coalesce(name, '') FROM users WHERE namespace = ? AND uid = ?`, namespace,
		user).Scan(&o.Name)
	if err != nil || project == 0 {
		return o, err
	}
	err = tx.QueryRow(`SELECT j.uid, u.uid, coalesce(u.name, '') FROM project j JOIN users u ON u.id = j.owner_id `+
		`WHERE j.id = ?`, project).Scan(&o.ProjectID, &o.ProjectOwner, &o.ProjectOwnerName)
	return o, err
}
