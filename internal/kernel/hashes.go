package kernel

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/rowhash"
)

// Rows with data that people and programs have stored have hashes. The engine's triggers keep them in step with the
// rows, so every write updates the hash as well; see internal/rowhash. [Upkeep.Check] compares them, and [Recover]
// relies on them.

// HashedTable is a table whose rows have hashes, and how callers identify a row of it.
type HashedTable struct {
	rowhash.Table
	What  string // a row, or a set of rows, in words
	Named string // SQL for the callers' id of the row with the key ?1

	Former string // the table's name in older files, if different
}

// Kinds that other code uses by number.
const (
	MemoryKind   = 6
	RevisionKind = 9

	TrashItemKind = 31
)

// SettingHashed is when the file's present hashes were first computed, from its content at that time. Zero:
// when the file was created.
const SettingHashed = "hashed_since"

// HashedTables returns all tables with hashes. Sessions, codes and refresh tokens have none: they expire soon, and
// a damaged one opens nothing. Passages, vectors and full text can be rebuilt from the memories.
func HashedTables() []HashedTable {
	row := func(kind int, name, what, named string, except ...string) HashedTable {
		return HashedTable{Table: rowhash.Table{Kind: kind, Name: name, Key: "id", Except: except}, What: what, Named: named}
	}
	set := func(kind int, name, key, what, named string) HashedTable {
		return HashedTable{Table: rowhash.Table{Kind: kind, Name: name, Key: key, Set: true}, What: what, Named: named}
	}
	const ofMemory, ofUser = `SELECT uid FROM memory WHERE id = ?1`, `SELECT uid FROM users WHERE id = ?1`
	preference := row(12, "preference", "the settings of the user", ofUser)
	preference.Key = "user_id"
	users := row(1, "users", "the user", ofUser)
	users.Former = "user"
	return []HashedTable{
		users,
		row(2, "collection", "the collection", `SELECT name FROM collection WHERE id = ?1`),
		row(3, "project", "the project", `SELECT uid FROM project WHERE id = ?1`),
		set(4, "project_member", "project_id", "the list of members of the project", `SELECT uid FROM project WHERE id = ?1`),
		row(5, "partition", "the partition of memories",
			`SELECT name FROM collection WHERE id = (SELECT collection_id FROM partition WHERE id = ?1)`,
			"next_passage", "memories", "passages", "bytes", "revisions"),
		row(MemoryKind, "memory", "the memory", ofMemory),
		set(7, "memory_tag", "memory_id", "the list of tags of the memory", ofMemory),
		set(8, "memory_link", "memory_id", "the list of links of the memory", ofMemory),
		row(RevisionKind, "memory_revision", "the past version of the memory",
			`SELECT uid FROM memory WHERE id = (SELECT memory_id FROM memory_revision WHERE id = ?1)`),
		row(10, "file", "the entry of the file", `SELECT uid FROM file WHERE id = ?1`, "text_id", "text_state",
			"text_info", "text_places"), // the file is read again for them
		set(11, "file_tag", "file_id", "the list of tags of the file", `SELECT uid FROM file WHERE id = ?1`),
		preference,
		set(13, "external_identity", "user_id", "the list of external accounts of the user", ofUser),
		row(14, "token", "the token", `SELECT uid FROM token WHERE id = ?1`, "last_used_at"),
		row(15, "oauth_client", "the application", `SELECT client_id FROM oauth_client WHERE id = ?1`),
		row(16, "oauth_grant", "the consent", `SELECT uid FROM oauth_grant WHERE id = ?1`, "last_used_at"),
		row(17, "signing_key", "the signing key", `SELECT kid FROM signing_key WHERE id = ?1`),
		row(18, "invitation", "the invitation", `SELECT uid FROM invitation WHERE id = ?1`),
		set(19, "project_alias", "project_id", "the list of former names of the project",
			`SELECT uid FROM project WHERE id = ?1`),
		row(30, "trash", "the entry of the trash", `SELECT uid FROM trash WHERE id = ?1`, "memories", "revisions", "size"),
		row(TrashItemKind, "trash_item", "the part of an entry of the trash", `SELECT uid FROM trash_item WHERE id = ?1`),
		row(32, "trash_link", "the link of the item in the trash", `SELECT source FROM trash_link WHERE id = ?1`),
		set(20, "blocked_sender", "user_id", "the list of blocked senders of the user", ofUser),
		row(33, "audit", "the entry of the audit log", `SELECT CAST(id AS TEXT) FROM audit WHERE id = ?1`),
	}
}

// HashedColumns returns the columns that a table's hashes cover: all of them, including those added by later versions.
// None: the table does not exist yet, or has no hashes yet.
func HashedColumns(tx db.Tx, t HashedTable) ([]string, error) {
	columns, err := db.ColumnsOf(tx, t.Name)
	return t.hashed(columns[t.Name]), err
}

// hashed returns which columns of the table its hashes cover.
func (t HashedTable) hashed(columns []string) []string {
	if !slices.Contains(columns, t.Key) {
		return nil
	}
	return slices.DeleteFunc(columns, func(c string) bool { return !t.Set && c == t.Key || slices.Contains(t.Except, c) })
}

// hashedTablesIn returns the tables with hashes, under the names that they have in a file with a possibly older
// schema.
func hashedTablesIn(tx db.Tx) ([]HashedTable, error) {
	tables := HashedTables()
	for i, t := range tables {
		if t.Former == "" {
			continue
		}
		columns, err := HashedColumns(tx, t)
		if err != nil {
			return nil, err
		}
		if len(columns) == 0 {
			tables[i].Name = t.Former
		}
	}
	return tables, nil
}

// KeepHashes returns the tables whose hashes an engine keeps in step with their rows.
func KeepHashes(tx db.Tx) ([]rowhash.Kept, error) {
	tables := HashedTables()
	var names []string
	for _, t := range tables {
		names = append(names, t.Name)
		if t.Former != "" {
			names = append(names, t.Former)
		}
	}
	columns, err := db.ColumnsOf(tx, names...)
	if err != nil {
		return nil, err
	}
	var memory string
	var kept []rowhash.Kept
	for _, t := range tables {
		if len(columns[t.Name]) == 0 && t.Former != "" {
			t.Name = t.Former
		}
		hashed := t.hashed(columns[t.Name])
		if len(hashed) == 0 {
			break
		}
		switch t.Kind {
		case MemoryKind:
			memory = t.Expression("m", hashed)
		case RevisionKind: // a revision of a damaged memory is damaged, too
			t.Doubt = fmt.Sprintf(`(SELECT h.hash <> %s FROM row_hash h JOIN memory m ON m.id = h.id WHERE h.kind = %d `+
				`AND h.id = NEW.memory_id)`, memory, MemoryKind)
		}
		kept = append(kept, rowhash.Kept{Table: t.Table, Columns: hashed})
	}
	return kept, nil
}

// RowHash holds the hashes of a row, or a set of rows: the stored one (nil: none), and the current one (nil: the
// row is missing).
type RowHash struct {
	ID          int64
	Stored, Now []byte
}

// Sound reports whether the row is as it was stored.
func (h RowHash) Sound() bool { return h.Now != nil && bytes.Equal(h.Stored, h.Now) }

// EachHash iterates over the hashes of a table: first those of its rows, then those of lost rows. An engine without
// hashes has none.
func EachHash(tx db.Tx, t HashedTable, fn func(h RowHash) error) error {
	if !db.Hashes(tx) {
		return nil
	}
	columns, err := HashedColumns(tx, t)
	if err != nil || len(columns) == 0 {
		return err
	}
	var held RowHash // the set whose rows are being read
	flush := func() error {
		if held.Now == nil {
			return nil
		}
		h := held
		held = RowHash{}
		return fn(h)
	}
	err = tx.Each(func(row db.Rows) error {
		var h RowHash
		if err := row.Scan(&h.ID, &h.Stored, &h.Now); err != nil {
			return err
		}
		if t.Set && held.Now != nil && held.ID == h.ID {
			held.Now = rowhash.Xor(held.Now, h.Now)
			return nil
		}
		if err := flush(); err != nil {
			return err
		}
		held = h
		return nil
	}, fmt.Sprintf(`SELECT t."%s", h.hash, %s FROM "%s" t LEFT JOIN row_hash h ON h.kind = %d AND h.id = t."%[1]s" `+
		`ORDER BY t."%[1]s"`,
		t.Key, t.Expression("t", columns), t.Name, t.Kind))
	if err != nil {
		return err
	}
	if err := flush(); err != nil {
		return err
	}
	return tx.Each(func(row db.Rows) error {
		var h RowHash
		if err := row.Scan(&h.ID, &h.Stored); err != nil {
			return err
		}
		return fn(h)
	}, fmt.Sprintf(`SELECT id, hash FROM row_hash WHERE kind = %d AND id NOT IN (SELECT "%s" FROM "%s") ORDER BY id`,
		t.Kind, t.Key, t.Name))
}

// MarkDamage records, before the schema changes, which rows do not match their hashes: afterwards, hashes are
// computed again, which must not make damaged rows sound.
func MarkDamage(tx db.Tx, _ int) error {
	columns, err := db.ColumnsOf(tx, "row_hash")
	if err != nil || len(columns) == 0 { // an old schema
		return err
	}
	tables, err := hashedTablesIn(tx)
	if err != nil {
		return err
	}
	for _, t := range tables {
		var wrong []int64
		err := EachHash(tx, t, func(h RowHash) error {
			if !h.Sound() {
				wrong = append(wrong, h.ID)
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, id := range wrong {
			if err := WriteHash(tx, t, id, []byte{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// WriteHash stores the hash of a row, in place of an earlier one.
func WriteHash(tx db.Tx, t HashedTable, id int64, hash []byte) error {
	_, err := tx.Exec(`INSERT INTO row_hash (kind, id, hash) VALUES (?, ?, ?) ON CONFLICT (kind, id) DO UPDATE `+
		`SET hash = excluded.hash`, t.Kind, id, hash)
	return err
}

// MakeHashes recomputes the hashes after the schema has changed, except those of rows damaged before.
func MakeHashes(tx db.Tx, version int, now int64) error {
	if version == 0 {
		return nil // a new file
	}
	had, err := db.Column[int64](tx, `SELECT 1 FROM row_hash LIMIT 1`)
	if err != nil {
		return err
	}
	for _, t := range HashedTables() {
		if err := acceptRows(tx, t, func(h RowHash) bool {
			return !h.Sound() &&
				(h.Stored == nil || len(h.Stored) > 0)
		}); err != nil {
			return err
		}
	}
	if len(had) > 0 {
		return nil
	}
	return SetSetting(tx, SettingHashed, now)
}

// RowSound reports whether a row of a kind has its hash. Where there are no hashes, every row counts as sound.
func RowSound(tx db.Tx, kind int, id int64) (bool, error) {
	if !db.Hashes(tx) {
		return true, nil
	}
	t, err := kindOf(kind)
	if err != nil {
		return false, err
	}
	columns, err := HashedColumns(tx, t)
	if err != nil {
		return false, err
	}
	sound, err := db.Column[bool](tx,
		fmt.Sprintf(`SELECT h.hash = %s FROM "%s" t JOIN row_hash h ON h.kind = %d AND h.id = t."%s" WHERE t."%[4]s" = ?`,
			t.Expression("t", columns), t.Name, t.Kind, t.Key), id)
	return len(sound) == 1 && sound[0], err
}

// DoubtRow records that a row was made from a damaged one, and so counts as damaged.
func DoubtRow(tx db.Tx, kind int, id int64) error {
	if !db.Hashes(tx) {
		return nil
	}
	t, err := kindOf(kind)
	if err != nil {
		return err
	}
	return WriteHash(tx, t, id, []byte{})
}

func kindOf(kind int) (HashedTable, error) {
	all := HashedTables()
	i := slices.IndexFunc(all, func(t HashedTable) bool { return t.Kind == kind })
	if i < 0 {
		return HashedTable{}, fmt.Errorf("there are no hashes of kind %d", kind)
	}
	return all[i], nil
}

// acceptRows accepts the current state of rows.
func acceptRows(tx db.Tx, t HashedTable, which func(h RowHash) bool) error {
	var wrong []RowHash
	err := EachHash(tx, t, func(h RowHash) error {
		if which(h) {
			wrong = append(wrong, h)
		}
		return nil
	})
	for _, h := range wrong {
		if err == nil && h.Now == nil {
			_, err = tx.Exec(`DELETE FROM row_hash WHERE kind = ? AND id = ?`, t.Kind, h.ID)
		} else if err == nil {
			err = WriteHash(tx, t, h.ID, h.Now)
		}
	}
	return err
}
