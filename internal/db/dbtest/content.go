package dbtest

import (
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
)

func changesComplete(t *testing.T, e Engine, d db.DB) {
	partition := place(t, d)
	_, begin, _ := since(t, d, "", 1)
	var rows []int64
	write(t, d, func(tx db.Tx) error {
		rows = nil
		for i := range 10 {
			row, err := addMemory(tx, partition, fmt.Sprint(i), "{}")
			if err != nil {
				return err
			}
			rows = append(rows, row)
		}
		return nil
	})
	all, mark, complete := since(t, d, begin, 100)
	misses(t, "changes", all, complete, rows...)
	if mark == begin {
		t.Errorf("the mark is the same after changes: got %v, want one other than %v", mark, begin)
	}
	for _, row := range all {
		if !slices.Contains(rows, row) {
			t.Errorf("got the changed memory %d, want one that exists: %v", row, rows)
		}
	}
	// A mark may name other transactions on the server that were still running. When they end, it moves.
	_, same, complete := since(t, d, mark, 100)
	for i := 0; complete && same != mark && i < 1000; i++ {
		mark = same
		_, same, complete = since(t, d, mark, 100)
	}
	equal(t, "the mark where nothing changed", fmt.Sprint(same, complete), fmt.Sprint(mark, true))
	if _, _, complete = since(t, d, begin, 9); complete {
		t.Error("9 of 10 changes: got complete, want incomplete")
	}
	write(t, d, func(tx db.Tx) error {
		_, err := tx.Exec(`DELETE FROM memory WHERE id = ?`, rows[0])
		if err == nil {
			_, err = tx.Exec(`UPDATE memory SET updated_at = 1 WHERE id = ?`, rows[1])
		}
		return err
	})
	some, _, complete := since(t, d, mark, 100)
	misses(t, "a deletion and an update", some, complete, rows[:2]...)

	// Even if the log is long, changes beyond its reach must not be skipped silently.
	t.Run("beyond the reach of the log", func(t *testing.T) {
		if e.Flood == nil {
			t.Skip("the log has no end, as Engine.Flood is nil")
		}
		for range 70 {
			write(t, d, func(tx db.Tx) error { return e.Flood(tx, rows[2]) })
		}
		if late, _, complete := since(t, d, mark, 1<<20); complete {
			misses(t, "after many changes", late, complete, rows[0], rows[2])
		}
	})
}

// Half of the writers, and the reader, may have another handle.
func changesAmongWriters(t *testing.T, d, other db.DB) {
	partition := place(t, d)
	const writers, each = 8, 15
	var mu sync.Mutex
	stored := map[int64]bool{}
	var wg sync.WaitGroup
	for w := range writers {
		handle := []db.DB{d, other}[w%2]
		wg.Go(func() {
			for i := range each {
				var row int64
				err := handle.Write(t.Context(), func(tx db.Tx) (err error) {
					row, err = addMemory(tx, partition, fmt.Sprint(w, "/", i), "{}")
					return err
				})
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				stored[row] = true
				mu.Unlock()
			}
		})
	}
	over := make(chan struct{})
	go func() { wg.Wait(); close(over) }()
	seen := map[int64]bool{}
	var mark db.Mark
	follow := func() {
		memories, next, complete := since(t, other, mark, 1000)
		if !complete {
			t.Error("all changes of a short log: got incomplete, want complete")
		}
		mark = next
		for _, m := range memories {
			seen[m] = true
		}
	}
	for done := false; !done; {
		select {
		case <-over:
			done = true
		default:
		}
		follow()
	}
	for row := range stored {
		if !seen[row] {
			t.Errorf("memory %d was written, and no change says so", row)
		}
	}
}

func rowsScanned(t *testing.T, d db.DB) {
	place(t, d)
	write(t, d, func(tx db.Tx) error {
		_, err := tx.Exec(`INSERT INTO file_chunk (id, sha256, data) VALUES (1, ?, ?)`, []byte{}, []byte{0, 1, 255})
		return err
	})
	read(t, d, func(tx db.Tx) error {
		var id int64
		var small int
		var name *string
		var uid sql.NullString
		var kind struct{ role string }
		var newer bool
		err := tx.QueryRow(`SELECT id, created_at, name, uid, role, created_at >= 0 FROM users`).Scan(&id, &small, &name,
			&uid, &kind.role, &newer)
		equal(t, "a row", fmt.Sprintf("%v %v %v %v %v %v", id > 0, small, name == nil, uid.String, kind.role, newer),
			"true 0 true ann user true")
		var empty, data []byte
		err = errors.Join(err, tx.QueryRow(`SELECT sha256, data FROM file_chunk`).Scan(&empty, &data))
		equal(t, "bytes", fmt.Sprint(empty != nil, data), "true [0 1 255]")
		rows, queryErr := tx.Query(`SELECT id FROM users WHERE id IN `+db.Integers, db.List([]int64{id}))
		if queryErr != nil {
			return queryErr
		}
		var again int64
		equal(t, "Next", rows.Next(), true)
		err = errors.Join(err, rows.Scan(&again),
			tx.QueryRow(`SELECT count(*) FROM users`).Scan(&small)) // while rows are open
		equal(t, "Next at the end", rows.Next(), false)
		equal(t, "again", again, id)
		stop := errors.New("stop")
		is(t, "Each", tx.Each(func(db.Rows) error { return stop }, `SELECT id FROM users`), stop)
		return errors.Join(err, rows.Err(), rows.Close(), rows.Close())
	})
	write(t, d, func(tx db.Tx) error {
		r, err := tx.Exec(`UPDATE users SET created_at = 2`)
		equal(t, "rows affected", r.RowsAffected, 1)
		row, insertErr := db.Insert(tx,
			`INSERT INTO users (uid, created_at) VALUES ('ann', 0) ON CONFLICT (namespace, uid) DO NOTHING RETURNING id`)
		equal(t, "the row of nothing inserted", row, 0)
		return errors.Join(err, insertErr)
	})
}

func parameters(t *testing.T, d db.DB) {
	place(t, d)
	type named string
	read(t, d, func(tx db.Tx) error {
		for what, c := range map[string]struct {
			query string
			args  []any
			want  string
		}{
			"in order":        {`SELECT CAST(? AS TEXT) || ?`, []any{"a", "b"}, "ab"},
			"numbered":        {`SELECT CAST(?2 AS TEXT) || ?1 || ?2`, []any{"a", "b"}, "bab"},
			"a type of texts": {`SELECT CAST(? AS TEXT)`, []any{named("x")}, "x"},
			"null":            {`SELECT coalesce(CAST(? AS TEXT), 'none')`, []any{nil}, "none"},
			"a nil pointer":   {`SELECT coalesce(CAST(? AS TEXT), 'none')`, []any{(*string)(nil)}, "none"},
			"a number":        {`SELECT uid FROM users WHERE created_at = ?`, []any{0}, "ann"},
			"a large number":  {`SELECT uid FROM users WHERE created_at < ?`, []any{int64(1) << 62}, "ann"},
			"a boolean":       {`SELECT uid FROM users WHERE (created_at = 0) = ?`, []any{true}, "ann"},
			"a quote":         {`SELECT CAST(? AS TEXT)`, []any{`'; DROP TABLE users; --`}, `'; DROP TABLE users; --`},
		} {
			got, err := db.Column[string](tx, c.query, c.args...)
			if err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			equal(t, what, strings.Join(got, " "), c.want)
		}
		return nil
	})
	for what, args := range map[string][]any{"none": nil, "one of two": {"a"}} {
		err := d.Read(t.Context(), func(tx db.Tx) error {
			_, err := db.Column[string](tx, `SELECT uid FROM users WHERE uid = ? OR uid = ?`, args...)
			return err
		})
		if err == nil {
			t.Errorf("%s of the arguments: no error, want an error", what)
		}
	}
}

// counters checks what the schema does by itself: it counts memories and passages of a partition, and deletes what
// belongs to a deleted row.
func counters(t *testing.T, d db.DB) {
	partition := place(t, d)
	var rows []int64
	write(t, d, func(tx db.Tx) error {
		rows = nil
		for m := range 3 {
			row, err := addMemory(tx, partition, fmt.Sprint(m), "{}")
			if err != nil {
				return err
			}
			rows = append(rows, row)
			if _, err := tx.Exec(`INSERT INTO memory_tag (memory_id, tag, position) VALUES (?, 'tag', 0)`, row); err != nil {
				return err
			}
			for n := range 2 {
				if _, err := tx.Exec(`INSERT INTO passage (id, memory_id, start, length, blank) VALUES (?, ?, 0, 1, 0)`,
					partition<<32+int64(10*m+n), row); err != nil {
					return err
				}
			}
		}
		return nil
	})
	counted := func(what, want string) {
		t.Helper()
		read(t, d, func(tx db.Tx) error {
			var memories, passages, tags, stored int
			err := tx.QueryRow(`SELECT memories, passages FROM partition WHERE id = ?`, partition).Scan(&memories, &passages)
			if errors.Is(err, db.ErrNoRows) {
				err = nil
			}
			err = errors.Join(err, tx.QueryRow(`SELECT (SELECT count(*) FROM memory_tag), (SELECT count(*) FROM passage)`).
				Scan(&tags, &stored))
			equal(t, what, fmt.Sprint(memories, passages, tags, stored), want)
			return err
		})
	}
	counted("three memories of two passages and a tag", "3 6 3 6")
	write(t, d, func(tx db.Tx) error {
		_, err := tx.Exec(`DELETE FROM memory WHERE id = ?`, rows[0])
		return err
	})
	counted("after a deletion", "2 4 2 4")
	undone := errors.New("undone")
	is(t, "a Write with an error", d.Write(t.Context(), func(tx db.Tx) error {
		_, err := tx.Exec(`DELETE FROM memory`)
		return errors.Join(err, undone)
	}), undone)
	counted("after a deletion that was undone", "2 4 2 4")
	write(t, d, func(tx db.Tx) error {
		_, err := tx.Exec(`DELETE FROM collection`)
		return err
	})
	counted("after the collection is gone", "0 0 0 0")
}

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

func words(t *testing.T, d db.DB) {
	partition := place(t, d)
	first := partition << 32
	all := db.Range{First: first, Last: first + 1<<32 - 1}
	addWords(t, d, partition)
	look := func(what string, terms []string, in db.Range, passages, memories int, best ...int64) {
		t.Helper()
		read(t, d, func(tx db.Tx) error {
			n, err := tx.Words().Count(in, terms)
			m, err2 := tx.Words().CountMemories(in, terms, 100)
			found, err3 := tx.Words().Best(in, terms, 100)
			equal(t, what+": passages, memories", fmt.Sprint(n, m), fmt.Sprint(passages, memories))
			for i := range found {
				found[i] -= first
			}
			if len(best) > 0 && len(found) > 0 {
				equal(t, what+": the best", found[0], best[0])
			}
			slices.Sort(found)
			slices.Sort(best)
			equal(t, what+": all", fmt.Sprint(found), fmt.Sprint(best))
			return errors.Join(err, err2, err3)
		})
	}
	look("a term", []string{"tea"}, all, 2, 1, 1, 0)
	look("two terms", []string{"green", "coffee"}, all, 3, 3, 10, 0, 20)
	look("a tag", []string{"drink"}, all, 2, 2, 0, 10)
	look("a part of the range", []string{"green"}, db.Range{First: first + 1, Last: first + 30}, 1, 1, 20)
	look("another partition", []string{"green"}, db.Range{First: all.Last + 1, Last: all.Last + 1<<32}, 0, 0)
	look("nothing that is there", []string{"water"}, all, 0, 0)
	look("no terms", nil, all, 0, 0)
	read(t, d, func(tx db.Tx) error {
		best, err := tx.Words().Best(all, []string{"door", "green"}, 1)
		m, err2 := tx.Words().CountMemories(all, []string{"green", "black"}, 2)
		for _, terms := range [][]string{{`"`}, {`x" OR "y`}, {"*"}, {"'"}, {"\x00"}} {
			n, err := tx.Words().Count(all, terms)
			if err != nil || n != 0 {
				t.Errorf("%q: got %d, %v; want 0", terms, n, err)
			}
		}
		equal(t, "the best and a limit", fmt.Sprint(best, m), fmt.Sprint([]int64{first + 20}, 2))
		return errors.Join(err, err2)
	})
	otherWords(t, d, all, first+10, "black coffee", "drink")
	write(t, d, func(tx db.Tx) error { return tx.Words().Drop(first, first+4711) })
	look("after a drop", []string{"green", "drink"}, all, 2, 2, 20, 10)
	write(t, d, func(tx db.Tx) error { // what belongs to a passage is deleted with it
		_, err := tx.Exec(`DELETE FROM passage WHERE id = ?`, first+20)
		return err
	})
	look("after a passage is gone", []string{"green"}, all, 0, 0)
	for steps, more := 0, true; more; steps++ {
		write(t, d, func(tx db.Tx) (err error) {
			more, err = db.Tidy(tx, steps == 0)
			return err
		})
		if steps > 100 {
			t.Fatalf("tidying has no end: got %v steps, want at most 100", steps)
		}
	}
	look("after tidying", []string{"tea", "coffee"}, all, 2, 2, 1, 10)
	listed := map[int64]bool{}
	is(t, "listing the rest", db.Scratch(t.Context(), d, func(tx db.Tx) error {
		return tx.Words().Each(func(passage int64, _ string, _ int, _ string) error {
			listed[passage-first] = true
			return nil
		})
	}), nil)
	equal(t, "passages", fmt.Sprint(listed), "map[1:true 10:true 21:true]")
	write(t, d, func(tx db.Tx) error { return tx.Words().Clear() })
	look("after clearing", []string{"tea", "coffee"}, all, 0, 0)
}

// addWords adds three memories of one or two passages, and their words. The passages of the first are 0 and 1, of the
// second 10, of the third 20 and 21.
func addWords(t *testing.T, d db.DB, partition int64) {
	t.Helper()
	write(t, d, func(tx db.Tx) error {
		for m, passages := range [][]string{{"green tea", "tea tea tea"}, {"black coffee"}, {"green door", "a door"}} {
			memory, err := addMemory(tx, partition, fmt.Sprint(m), "{}")
			if err != nil {
				return err
			}
			for n, text := range passages {
				id := partition<<32 + int64(10*m+n)
				_, err := tx.Exec(`INSERT INTO passage (id, memory_id, start, length, blank) VALUES (?, ?, 0, 1, 0)`, id, memory)
				tags := map[bool]string{true: "drink"}[m < 2 && n == 0]
				if err := errors.Join(err, tx.Words().Put(id, text, tags, false)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// otherWords replaces the terms of a passage several times, and in the end by the given ones, which it had before.
func otherWords(t *testing.T, d db.DB, in db.Range, passage int64, content, tags string) {
	t.Helper()
	has := func(tx db.Tx, term string, want int) {
		t.Helper()
		if n, err := tx.Words().Count(in, []string{term}); err != nil || n != want {
			t.Errorf("after replacing: got %d passages with %q, %v; want %d", n, term, err, want)
		}
	}
	write(t, d, func(tx db.Tx) error {
		err := tx.Words().Put(passage, "white wine", "", true)
		has(tx, "wine", 1)
		has(tx, "coffee", 0)
		return errors.Join(err, tx.Words().Put(passage, "red juice", "", true), tx.Words().Put(passage, "juice", "", true))
	})
	read(t, d, func(tx db.Tx) error {
		has(tx, "wine", 0)
		has(tx, "red", 0)
		has(tx, "juice", 1)
		return nil
	})
	write(t, d, func(tx db.Tx) error {
		undone := errors.New("undone")
		err := tx.Savepoint(func() error { return errors.Join(tx.Words().Put(passage, "water", "", true), undone) })
		if !errors.Is(err, undone) {
			t.Errorf("a savepoint that is undone: got %v, want %v", err, undone)
		}
		return nil
	})
	write(t, d, func(tx db.Tx) error {
		has(tx, "water", 0)
		has(tx, "juice", 1)
		return tx.Words().Put(passage, content, tags, true)
	})
	read(t, d, func(tx db.Tx) error {
		has(tx, "juice", 0)
		return nil
	})
}

func floats(values ...float32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func vectors(t *testing.T, d db.DB) {
	partition := place(t, d)
	first := partition << 32
	var profiles []int64
	var memory int64
	write(t, d, func(tx db.Tx) (err error) {
		profiles = nil
		for _, key := range []string{"a", "b"} {
			row, err := db.Insert(tx, `INSERT INTO profile (key, model, dimensions, created_at) `+
				`VALUES (?, ?, 2, 0) RETURNING id`, key, key)
			if err != nil {
				return err
			}
			profiles = append(profiles, row)
		}
		if memory, err = addMemory(tx, partition, "m", "{}"); err != nil {
			return err
		}
		for n, v := range []any{floats(1, 0), floats(0.6, 0.8), floats(0, 0), floats(1, 0, 0), nil, floats(-1, 0)} {
			profile := profiles[0]
			if n == 5 {
				profile = profiles[1]
			}
			if _, err := tx.Exec(`INSERT INTO passage (id, memory_id, start, length, blank, profile_id, vector) `+
				`VALUES (?, ?, ?, 7, 0, ?, ?)`,
				first+int64(n), memory, n, profile, v); err != nil {
				return err
			}
		}
		return nil
	})
	compare := func(in db.Range, profiles ...int64) string {
		var found []string
		read(t, d, func(tx db.Tx) error {
			found = nil
			return tx.Vectors().Compare(in, floats(1, 0), profiles, func(c db.Compared) error {
				found = append(found, fmt.Sprintf("%d %t %d+%d %.3f", c.Passage-first, c.Memory == memory, c.Start, c.Length,
					c.Cosine))
				return nil
			})
		})
		slices.Sort(found)
		return strings.Join(found, ", ")
	}
	all := db.Range{First: first, Last: first + 100}
	equal(t, "of one profile", compare(all, profiles[0]), "0 true 0+7 1.000, 1 true 1+7 0.600, 2 true 2+7 NaN")
	equal(t, "of both", compare(all, profiles...), "0 true 0+7 1.000, 1 true 1+7 0.600, 2 true 2+7 NaN, 5 true 5+7 -1.000")
	equal(t, "of a range", compare(db.Range{First: first + 1, Last: first + 1}, profiles...), "1 true 1+7 0.600")
	equal(t, "of no profile", compare(all), "")
	read(t, d, func(tx db.Tx) error {
		some, able := tx.Vectors().(db.Selective)
		if !able {
			return nil
		}
		for _, memories := range [][]int64{{memory}, {memory + 1}, {}, {memory + 1, memory}} {
			n := 0
			err := some.CompareOf(all, floats(1, 0), profiles, memories, func(db.Compared) error { n++; return nil })
			if err != nil {
				return err
			}
			want := 0
			if slices.Contains(memories, memory) {
				want = 4
			}
			equal(t, fmt.Sprint("passages of the memories ", memories), n, want)
		}
		return nil
	})
	bothForms(t, d, memory, first, profiles)
	stop := errors.New("stop")
	err := d.Read(t.Context(), func(tx db.Tx) error {
		return tx.Vectors().Compare(all, floats(1, 0), profiles, func(db.Compared) error { return stop })
	})
	is(t, "an error of the function", err, stop)
}
