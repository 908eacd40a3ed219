package sqlite

import (
	"fmt"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/rowhash"
)

// trigger is a temporary trigger of a table, and its SQL as SQLite stores it: without the word TEMP.
type trigger struct{ name, table, sql string }

// hashTriggers returns the triggers that keep a table's hashes in step with its rows, as [rowhash.Kept] describes it.
// They are temporary, so that programs without them can write to the file.
func hashTriggers(t rowhash.Kept) []trigger {
	before, after := t.Expression("OLD", t.Columns), t.Expression("NEW", t.Columns)
	of := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		of[i] = `"` + c + `"`
	}
	where := fmt.Sprintf(`WHERE kind = %d AND id = OLD."%s"`, t.Kind, t.Key)
	fresh := after
	if t.Doubt != "" {
		fresh = fmt.Sprintf("iif(%s, x'', %s)", t.Doubt, after)
	}
	joined := "excluded.hash"
	if t.Set {
		joined = rowhash.FunctionXor + "(hash, excluded.hash)"
	}
	join := fmt.Sprintf(`INSERT INTO row_hash (kind, id, hash) VALUES (%d, NEW."%s", %s) `+
		`ON CONFLICT (kind, id) DO UPDATE SET hash = %s;`, t.Kind, t.Key, fresh, joined)
	part := fmt.Sprintf(`DELETE FROM row_hash %s;`, where)
	change := fmt.Sprintf(`UPDATE row_hash SET hash = iif(hash = %s, %s, x'') %s;`, before, after, where)
	if t.Set {
		part = fmt.Sprintf(`UPDATE row_hash SET hash = %s(hash, %s) %s; DELETE FROM row_hash %[3]s AND hash = zeroblob(%d);`,
			rowhash.FunctionXor, before, where, rowhash.Size)
		change = part + " " + join
	}
	made := func(name, event, body string) trigger {
		name = "hash_" + t.Name + "_" + name
		return trigger{name, t.Name, fmt.Sprintf(`CREATE TRIGGER %s AFTER %s ON main."%s" BEGIN %s END`, name, event, t.Name,
			body)}
	}
	return []trigger{
		made("added", "INSERT", join),
		made("changed", "UPDATE OF "+strings.Join(of, ", "), change),
		made("deleted", "DELETE", part),
	}
}

// ColumnsOf returns the columns of tables, for the hashes of their rows.
func (tx *Tx) ColumnsOf(tables ...string) (map[string][]string, error) {
	columns := map[string][]string{}
	err := tx.Each(func(row db.Rows) error {
		var table, column string
		err := row.Scan(&table, &column)
		columns[table] = append(columns[table], column)
		return err
	}, `SELECT t.value, c.name FROM json_each(?) t, pragma_table_info(t.value) c ORDER BY 1, c.cid`, db.List(tables))
	return columns, err
}

// temporary returns a script that makes temporary triggers.
//
// SQLite parses each CREATE TRIGGER several times. Rows of the temporary schema are parsed once, when the changed
// version makes SQLite read that schema again, as the last statement does: for the triggers of the hashes, a third of
// the time of opening a file.
func temporary(triggers []trigger) string {
	rows := make([]string, len(triggers))
	for i, t := range triggers {
		rows[i] = fmt.Sprintf(`('trigger', '%s', '%s', 0, '%s')`, t.name, t.table, strings.ReplaceAll(t.sql, "'", "''"))
	}
	return `PRAGMA writable_schema = ON;
		INSERT INTO temp.sqlite_schema (type, name, tbl_name, rootpage, sql) VALUES ` + strings.Join(rows, ",\n") + `;
		PRAGMA writable_schema = OFF;
		PRAGMA temp.schema_version = 1;
		SELECT 1 FROM temp.sqlite_schema LIMIT 1;`
}
