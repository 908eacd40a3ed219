package kernel

import (
	"strconv"

	"github.com/souvenir-ai/souvenir/internal/db"
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
