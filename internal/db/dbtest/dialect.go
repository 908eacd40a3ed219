package dbtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
)

func dialect(t *testing.T, d db.DB) {
	write(t, d, func(tx db.Tx) error {
		for i, key := range []string{"a", "B", "Ä", "ä", "b"} {
			if err := set(tx, key, int64(i)); err != nil {
				return err
			}
		}
		return nil
	})
	read(t, d, func(tx db.Tx) error {
		for what, c := range map[string]struct {
			query string
			args  []any
			want  string
		}{
			"texts are ordered by their bytes": {`SELECT key FROM setting WHERE length(key) = 1 ORDER BY key`, nil, "B a b Ä ä"},
			"lower folds ASCII only": {`SELECT lower(key) FROM setting WHERE length(key) = 1 ORDER BY value`, nil,
				"a b Ä ä b"},
			"a list of integers": {`SELECT key FROM setting WHERE value IN ` + db.Integers + ` ORDER BY value`,
				[]any{db.List([]int64{3, 0, 9})}, "a ä"},
			"a list of texts": {`SELECT key FROM setting WHERE key IN ` + db.Texts + ` ORDER BY key`,
				[]any{db.List([]string{"b", `"`, "Ä"})}, "b Ä"},
			"a whole number divided by another": {`SELECT CAST(value AS TEXT) FROM setting WHERE ` +
				db.Quotient(`value + 2`, `1 + ?1`) + ` = 1 ORDER BY value`, []any{1}, "0 1"},
			"a column without its index": {`SELECT key FROM setting WHERE ` + db.NoIndex + `key = ? AND ` + db.NoIndex +
				`value < ?`, []any{"a", 1}, "a"},
			"an empty list": {`SELECT key FROM setting WHERE key IN ` + db.Texts, []any{db.List[string](nil)},
				""},
			"a numbered parameter": {`SELECT key FROM setting WHERE key <> ?2 AND value IN ` + db.Integers1 + ` ORDER BY key`,
				[]any{db.List([]int64{0, 1}), "B"}, "a"},
			"a list in the second parameter": {`SELECT key FROM setting WHERE key <> ?1 AND value IN ` + db.Integers2 +
				` ORDER BY value`, []any{"B", db.List([]int64{0, 1, 2})}, "a Ä"},
			"lists in later parameters": {`SELECT CAST(b.value - e.value AS TEXT) FROM ` + db.Numbered3 + ` b JOIN ` +
				db.Numbered4 + ` e ON e.key = b.key WHERE b.value > ?1 AND e.value < ?2 ORDER BY b.key`,
				[]any{7, 5, db.List([]int64{9, 7, 8}), db.List([]int64{4, 3, 2})}, "5 6"},
			"a list in its order": {`SELECT s.key FROM ` + db.Numbered + ` r ` + db.InOrder +
				` setting s ON s.value = r.value ORDER BY r.key`,
				[]any{db.List([]int64{4, 0, 2})}, "b a Ä"},
			"places count from 0": {`SELECT CAST(r.key AS TEXT) FROM ` + db.Numbered1 + ` r ORDER BY r.value`,
				[]any{db.List([]int64{4, 0, 2})}, "1 2 0"},
			"where a part begins": {`SELECT key FROM setting WHERE ` + db.Within + `(key, ?) = 1`, []any{"Ä"}, "Ä"},
			"a part that is not there": {`SELECT key FROM setting WHERE length(key) = 1 AND ` + db.Within +
				`(key, ?) = 0 ORDER BY value`,
				[]any{"a"}, "B Ä ä b"},
			"texts of a group": {`SELECT ` + db.ListOf +
				`(key ORDER BY value DESC) FROM setting WHERE value > 2 AND length(key) = 1`, nil, `["b","ä"]`},
			"no texts of a group": {`SELECT ` + db.ListOf + `(key ORDER BY value) FROM setting WHERE value > 100000`, nil, `[]`},
			"joined by lines": {`SELECT string_agg(key, ` + db.Newline +
				` ORDER BY value) FROM setting WHERE value IN (0, 1) AND length(key) = 1`, nil, "a\nB"},
			"bytes of a text": {`SELECT CAST(octet_length(key) + length(` + db.Slice(`key`, `2`, `9`) +
				`) AS TEXT) FROM setting WHERE key = 'Ä'`, nil, "3"},
		} {
			got, err := db.Column[string](tx, c.query, c.args...)
			if err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			for i := range got { // spaces in JSON are an engine's own affair
				got[i] = strings.ReplaceAll(got[i], `", "`, `","`)
			}
			equal(t, what, strings.Join(got, " "), c.want)
		}
		return nil
	})
}

func metadata(t *testing.T, d db.DB) {
	partition := place(t, d)
	write(t, d, func(tx db.Tx) error {
		for uid, metadata := range map[string]string{
			"a": `{"k": "x", "module_name": "Motor"}`, "b": `{"k": 2, "module_name": 5}`, "c": `{"k": ["x", 3, true]}`,
			"d": `{"k": null}`, "e": `{}`, "f": `{"k": tr`,
		} {
			if _, err := addMemory(tx, partition, uid, metadata); err != nil {
				return err
			}
		}
		return nil
	})
	read(t, d, func(tx db.Tx) error {
		for what, c := range map[string]struct {
			condition string
			args      []any
			want      string
		}{
			"a text":            {db.Key + `e.value = ` + db.Scalar + `)`, []any{"k", "x"}, "a c"},
			"a number":          {db.Key + `e.value = ` + db.Scalar + `)`, []any{"k", int64(2)}, "b"},
			"a boolean":         {db.Key + `e.value = ` + db.Scalar + `)`, []any{"k", int64(1)}, "c"},
			"some of both":      {db.Key + `e.value IN ` + db.Values + `)`, []any{"k", `["x",2]`}, "a b c"},
			"a number beyond":   {db.Key + db.KeyIsNumber + ` AND e.value >= ` + db.Scalar + `)`, []any{"k", int64(2)}, "b c"},
			"a fraction beyond": {db.Key + db.KeyIsNumber + ` AND e.value > ` + db.Scalar + `)`, []any{"k", 2.5}, "c"},
			"a text beyond":     {db.Key + db.KeyIsText + ` AND e.value >= ` + db.Scalar + `)`, []any{"k", "w"}, "a c"},
			"no stored text":    {db.Key + `e.value = ` + db.Scalar + `)`, []any{"k", "x\x00"}, ""},
			"a key that is set": {db.KeyIsSet, []any{"k"}, "a b c"},
			"no key":            {db.KeyIsSet, []any{"none"}, ""},
			"a module":          {`lower(` + db.Module + `) = ?`, []any{"motor"}, "a"},
			"any module":        {db.Module + ` IS NOT NULL`, nil, "a"},
			"not, of an unset": {`NOT coalesce(` + db.Key + `e.value = ` + db.Scalar + `), false)`, []any{"k", "x"},
				"b d e f"},
			"a quote in the name": {db.KeyIsSet, []any{`k"'`}, ""},
		} {
			got, err := db.Column[string](tx, `SELECT m.uid FROM memory m WHERE `+c.condition+` ORDER BY m.uid`, c.args...)
			if err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			equal(t, what, strings.Join(got, " "), c.want)
		}
		return nil
	})
}

// found returns the ids of the memories that a query selects, in their order.
func found(t *testing.T, d db.DB, what, query string, args ...any) string {
	t.Helper()
	var uids []string
	read(t, d, func(tx db.Tx) (err error) {
		uids, err = db.Column[string](tx, query, args...)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	})
	return strings.Join(uids, " ")
}

// ownIndex checks that the schema maintains the index of own metadata, and that it can be rebuilt.
func ownIndex(t *testing.T, d db.DB) {
	partition := place(t, d)
	rows := map[string]int64{}
	write(t, d, func(tx db.Tx) error {
		for uid, metadata := range map[string]string{
			"a": `{"k": "x"}`, "b": `{"k": 2}`, "c": `{"k": ["x", 3, true]}`, "d": `{"k": null}`, "e": `{"k": {"x": 1}}`,
			"f": `{"k": []}`, "g": `{"k": "` + strings.Repeat("x", 5000) + `"}`, "h": `{}`,
			"i": `{"k": 1.5, "l": false, "m": "\udbff\udfff"}`,
		} {
			row, err := addMemory(tx, partition, uid, metadata)
			if err != nil {
				return err
			}
			rows[uid] = row
		}
		return nil
	})
	const from = `SELECT DISTINCT m.uid FROM memory_own o ` + db.InOrder + ` memory m ON m.id = o.memory_id
		WHERE o.partition_id = ? AND `
	look := func(when string, changed map[string]string) {
		t.Helper()
		for what, c := range map[string]struct {
			condition string
			args      []any
			want      string
		}{
			"a text":            {`o.key = ? AND o.value = ` + db.Scalar, []any{"k", "x"}, "a c"},
			"a number":          {`o.key = ? AND o.value = ` + db.Scalar, []any{"k", int64(2)}, "b"},
			"a fraction":        {`o.key = ? AND o.value = ` + db.Scalar, []any{"k", 1.5}, "i"},
			"a boolean":         {`o.key = ? AND o.value = ` + db.Scalar, []any{"k", int64(1)}, "c"},
			"another boolean":   {`o.key = ? AND o.value = ` + db.Scalar, []any{"l", int64(0)}, "i"},
			"some of both":      {`o.key = ? AND o.value IN ` + db.Values, []any{"k", `["x",2]`}, "a b c"},
			"a number beyond":   {`o.key = ? AND ` + db.OwnIsNumber + ` AND o.value >= ` + db.Scalar, []any{"k", 1.75}, "b c"},
			"a text beyond":     {`o.key = ? AND ` + db.OwnIsText + ` AND o.value > ` + db.Scalar, []any{"k", "w"}, "a c"},
			"none of a list":    {`o.key = ? AND o.value IN ` + db.Values, []any{"m", `["\u0000",2]`}, ""},
			"no stored text":    {`o.key = ? AND o.value = ` + db.Scalar, []any{"k", "x\x00"}, ""},
			"no text beyond":    {`o.key = ? AND ` + db.OwnIsText + ` AND o.value > ` + db.Scalar, []any{"k", "é"}, ""},
			"a key that is set": {`o.key = ? AND o.value <> ` + db.OwnOfLong, []any{"k"}, "a b c e f i"},
			"long metadata":     {`o.key = '' AND o.value = ` + db.OwnOfLong, nil, "g"},
		} {
			want := c.want
			if other, is := changed[what]; is {
				want = other
			}
			equal(t, what+when, found(t, d, what, from+c.condition+` ORDER BY m.uid`, append([]any{partition}, c.args...)...),
				want)
		}
	}
	look("", nil)
	again := func() {
		write(t, d, func(tx db.Tx) error {
			if _, err := tx.Exec(`DELETE FROM memory_own`); err != nil {
				return err
			}
			_, err := tx.Exec(`INSERT INTO memory_own (partition_id, key, value, memory_id) `+db.OwnRows+
				` UNION SELECT m.partition_id, '', `+db.OwnOfLong+`, m.id FROM memory m WHERE `+db.OwnLong, 4096, 4096)
			return err
		})
	}
	again()
	look(", of the index made again", nil)
	write(t, d, func(tx db.Tx) error {
		_, err := tx.Exec(`UPDATE memory SET metadata = '{"k": "y"}' WHERE id = ?`, rows["a"])
		if err == nil {
			_, err = tx.Exec(`UPDATE memory SET metadata = '{"k": "x"}' WHERE id = ?`, rows["g"])
		}
		if err == nil {
			_, err = tx.Exec(`DELETE FROM memory WHERE id = ?`, rows["b"])
		}
		return err
	})
	now := map[string]string{"a text": "c g", "a number": "", "some of both": "c g", "a number beyond": "c",
		"a text beyond": "a c g", "a key that is set": "a c e f g i", "long metadata": ""}
	look(", after updates", now)
	again()
	look(", after updates, of the index made again", now)
}

func sameContent(t *testing.T, d db.DB) {
	partition := place(t, d)
	long := strings.Repeat("ö", 100)
	write(t, d, func(tx db.Tx) error {
		for uid, content := range map[string]string{"a": "tea", "b": "tea", "c": "Tea", "d": long, "e": "x" + long[1:],
			"f": long + "ö", "g": "ünï", "h": "tea "} {
			if _, err := tx.Exec(`INSERT INTO memory (uid, partition_id, content, metadata, revision, created_at, updated_at)
				VALUES (?, ?, ?, '{}', 1, 0, 0)`, uid, partition, strings.ToValidUTF8(content, "?")); err != nil {
				return err
			}
		}
		return nil
	})
	for content, want := range map[string]string{"tea": "a b", long: "d", "ünï": "g", "coffee": "", "ea": ""} {
		equal(t, "the content "+content, found(t, d, content, `SELECT uid FROM memory m WHERE partition_id = ?2 AND `+
			db.SameContent+` ORDER BY uid`, content, partition), want)
	}
}

// hints checks that statements with hints for indexes run, and find what they find without.
func hints(t *testing.T, d db.DB) {
	partition := place(t, d)
	write(t, d, func(tx db.Tx) error {
		row, err := addMemory(tx, partition, "a", `{"module_name": "Motor"}`)
		if err != nil {
			return err
		}
		if _, err = tx.Exec(`UPDATE memory SET event_type = 'note', classification = 'do' WHERE id = ?`, row); err != nil {
			return err
		}
		if _, err = tx.Exec(`INSERT INTO passage (id, memory_id, start, length, blank) VALUES (?, ?, 0, 1, 0)`,
			partition<<32, row); err != nil {
			return err
		}
		_, err = tx.Exec(`INSERT INTO activity (uid, user_uid, credential, credential_id, client, tool, action, memory, file,
			outcome, started_at, duration, bytes) VALUES ('a', 'ann', '', '', 'c', 't', 'a', '', '', 'ok', 5, 1, 0)`)
		return err
	})
	for hint, condition := range map[string]string{
		db.ByUpdated: `partition_id = 1 AND updated_at >= 0`, db.ByCreated: `partition_id = 1 AND created_at >= 0`,
		db.ByEvent: `partition_id = 1 AND event_type IS NOT NULL`, db.ByUID: `uid = 'a'`,
		db.ByDoDont: `partition_id = 1 AND classification IN ('do', 'dont')`,
		db.ByModule: db.Module + ` IS NOT NULL AND lower(` + db.Module + `) = 'motor'`,
	} {
		equal(t, hint, found(t, d, hint, `SELECT uid FROM memory `+hint+` WHERE `+
			strings.Replace(condition, `partition_id = 1`, `partition_id IN (SELECT id FROM partition)`, 1)), "a")
	}
	equal(t, db.ByPassageMemory, found(t, d, db.ByPassageMemory, `SELECT m.uid FROM memory m `+db.InOrder+` passage p `+
		db.ByPassageMemory+` ON p.memory_id = m.id`), "a")
	for hint, condition := range map[string]string{db.ByActivityStarted: `started_at > 4`,
		db.ByActivityClient: `user_uid = 'ann' AND client = 'c'`} {
		equal(t, hint, found(t, d, hint, `SELECT uid FROM activity `+hint+` WHERE `+condition), "a")
	}
}
