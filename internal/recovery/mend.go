package recovery

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
)

// mend makes a row valid in the new file: it replaces truncated values, invalid texts, and dangling references. The
// hashes reveal these changes. fits is false if a row that it belongs to is lost.
func (w *tableWriter) mend(tx db.Tx, row pendingRow) (fits bool, err error) {
	for i, c := range w.t.Columns {
		switch {
		case w.t.Name == "partition" && slices.Contains(w.t.Hash.Except, c.Name):
			row.values[i] = int64(0) // counts start again
			continue
		case w.t.Name == "users" && c.Name == "uid_key":
			row.values[i] = nil // an import may have made an id that is another's name; fillUserKeys sets the keys
			continue
		}
		switch v := row.values[i].(type) {
		case string:
			row.values[i] = mendedText(c.Name, v)
		case int64:
			if c.Parent == "" || w.r.present[c.Parent][v] {
				continue
			}
			if !c.required {
				row.values[i] = nil
				w.r.note("%s: a reference to a %s that is lost was removed", w.t.Name, c.Parent)
				continue
			}
			made, err := w.r.standIn(tx, c.Parent, v)
			if err != nil || !made {
				return false, err
			}
		case nil:
			if !c.required || i == w.t.RowID {
				continue
			}
			if c.Parent != "" {
				return false, nil
			}
			switch {
			case c.Name == "metadata" || c.Name == "attributes" || c.Name == "value":
				row.values[i] = "{}"
			case c.kind == "TEXT":
				row.values[i] = ""
			case c.kind == "BLOB":
				row.values[i] = []byte{}
			default:
				row.values[i] = int64(1)
			}
		}
	}
	return true, nil
}

// fillUserKeys sets the folded ids of users, in a file of a version that has them.
func (r *Recovery) fillUserKeys(tx db.Tx) error {
	t := r.Table("users")
	if t == nil || !slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Name == "uid_key" }) {
		return nil
	}
	return kernel.FillUserKeys(tx)
}

// mendedText returns valid text, and a JSON object where one is expected. A sealed value stays as it is, since its
// content is known only with the key of its owner.
func mendedText(column, value string) string {
	if !utf8.ValidString(value) {
		value = strings.ToValidUTF8(value, "\ufffd")
	}
	if column != "metadata" && column != "attributes" || sealedrows.IsSealed(value) {
		return value
	}
	if object, err := jsonobject.Decode([]byte(value)); err == nil && object != nil {
		return value
	}
	kept, err := json.Marshal(map[string]any{"recovered_metadata": value})
	if err != nil {
		return "{}"
	}
	return string(kept)
}

// standIn makes a row in place of a lost one that others reference. Rows of a lost owner or place go to the local user,
// whom only the operator can act as.
func (r *Recovery) standIn(tx db.Tx, table string, id int64) (bool, error) {
	now := time.Now().UnixMicro()
	name := fmt.Sprintf("recovered-%d", id)
	users, local := "users", `uid = ?`
	if r.Table(users) == nil {
		users = "user" // its name in older files
	} else if slices.ContainsFunc(r.Table(users).Columns, func(c Column) bool { return c.Name == "namespace" }) {
		local += ` AND namespace = ''`
	}
	owner := func() (int64, error) {
		if _, err := tx.Exec(`INSERT INTO `+users+` (uid, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING`, kernel.LocalUser,
			now); err != nil {
			return 0, err
		}
		var row int64
		err := tx.QueryRow(`SELECT id FROM `+users+` WHERE `+local, kernel.LocalUser).Scan(&row)
		r.keepID(users, row)
		return row, err
	}
	var err error
	switch table {
	case users:
		_, err = tx.Exec(`INSERT INTO `+users+` (id, uid, created_at) VALUES (?, ?, ?)`, id, name, now)
	case "collection", "project":
		var row int64
		if row, err = owner(); err != nil {
			return false, err
		}
		if table == "collection" {
			_, err = tx.Exec(`INSERT INTO collection (id, owner_id, name, description, created_at, updated_at) `+
				`VALUES (?, ?, ?, '', ?, ?)`, id, row, name, now, now)
		} else {
			_, err = tx.Exec(`INSERT INTO project (id, owner_id, uid, name, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)`,
				id, row, name, name, now, now)
		}
	case "partition":
		var row, collection int64
		if row, err = owner(); err != nil {
			return false, err
		}
		collection, err = db.Insert(tx,
			`INSERT INTO collection (owner_id, name, description, created_at, updated_at) VALUES (?, ?, '', ?, ?) RETURNING id`,
			row, "recovered-place-"+fmt.Sprint(id), now, now)
		if err != nil {
			return false, err
		}
		r.keepID("collection", collection)
		if _, err = tx.Exec(`INSERT INTO partition (id, collection_id) VALUES (?, ?)`, id, collection); err != nil {
			return false, err
		}
	default:
		return false, nil
	}
	if err != nil {
		return false, err
	}
	r.keepID(table, id)
	r.note("%s %d is lost, which other rows refer to; %q replaces it, for the local user", table, id, name)
	return true, nil
}

func (r *Recovery) keepID(table string, id int64) {
	if r.present[table] == nil {
		r.present[table] = map[int64]bool{}
	}
	r.present[table][id] = true
}
