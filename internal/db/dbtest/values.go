package dbtest

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// valuesKept stores texts, bytes and numbers, and reads them again.
func valuesKept(t *testing.T, d db.DB) {
	partition := place(t, d)
	long := longtest.Size(1<<20, 128<<10)
	everyByte := make([]byte, 256)
	for i := range everyByte {
		everyByte[i] = byte(i)
	}
	texts := map[string]string{
		"no text": "", "spaces around": "  a  ", "lines": "a\r\nb\n", "a text like a number": "007",
		"a text like JSON":   `[1]`,
		"control characters": "\x01\x02\x08\t\x0b\x1b\x1f\x7f\u0085", "wide characters": "Ä漢😀\ufffd\ufeff\U0010ffff",
		"quotes": `'"\` + "`", "8 KiB and more": strings.Repeat("a", 8<<10-1) + "Äb",
		"64 KiB and more": strings.Repeat("漢", (64<<10)/3+1) + ".", "much": strings.Repeat("b", long) + "!",
	}
	blobs := map[string][]byte{
		"no bytes": {}, "each byte": everyByte, "1 KiB and more": bytes.Repeat([]byte{1}, 1<<10+1),
		"64 KiB and more": append(bytes.Repeat([]byte{0}, 64<<10), 7), "much": append(bytes.Repeat([]byte{0xff}, long), 0),
	}
	numbers := []int64{0, -1, 1<<53 + 1, -1<<53 - 1, math.MaxInt64, math.MinInt64, 1 << 31, 1 << 32}
	write(t, d, func(tx db.Tx) (err error) {
		for what, text := range texts {
			_, execErr := tx.Exec(`INSERT INTO memory (uid, partition_id, content, metadata, revision, created_at, updated_at)
				VALUES (?, ?, ?, '{}', 1, 0, 0)`, what, partition, text)
			err = errors.Join(err, execErr)
		}
		for _, blob := range blobs {
			_, execErr := tx.Exec(`INSERT INTO file_chunk (id, sha256, data) VALUES (?, ?, ?)`, len(blob)+1, []byte{}, blob)
			err = errors.Join(err, execErr)
		}
		for i, n := range numbers {
			err = errors.Join(err, set(tx, key(i), n))
		}
		return err
	})
	read(t, d, func(tx db.Tx) (err error) {
		for what, want := range texts {
			var got string
			var size int
			err = errors.Join(err, tx.QueryRow(`SELECT content, octet_length(content) FROM memory WHERE uid = ?`, what).
				Scan(&got, &size))
			if got != want || size != len(want) {
				t.Errorf("%s: got %.40q of %d bytes, stored as %d, want %.40q of %d", what, got, len(got), size, want, len(want))
			}
		}
		for what, want := range blobs {
			var got []byte
			err = errors.Join(err, tx.QueryRow(`SELECT data FROM file_chunk WHERE id = ?`, len(want)+1).Scan(&got))
			if !bytes.Equal(got, want) || got == nil {
				t.Errorf("%s: got %d bytes, nil: %t, want %d", what, len(got), got == nil, len(want))
			}
		}
		for i, want := range numbers {
			got, getErr := get(tx, key(i))
			var found int64
			err = errors.Join(err, getErr, tx.QueryRow(`SELECT count(*) FROM setting WHERE value = ? AND key LIKE 'test %'`,
				want).Scan(&found))
			equal(t, "an integer, and how many rows have it", fmt.Sprint(got, " ", found), fmt.Sprint(want, " ", 1))
		}
		for _, want := range []float64{0.1, -1.0 / 3, 1e-300, math.MaxFloat64, math.SmallestNonzeroFloat64, 1 << 60,
			16777217} {
			var got float64
			err = errors.Join(err, tx.QueryRow(`SELECT ?`, want).Scan(&got))
			equal(t, "a float", got, want)
		}
		return err
	})
}

// textsDiffer checks that nearly equal texts are not equal, and that a text that cannot be stored equals none.
func textsDiffer(t *testing.T, d db.DB) {
	write(t, d, func(tx db.Tx) error {
		return errors.Join(set(tx, key("a"), 1), set(tx, key("a "), 2), set(tx, key("A"), 3), set(tx, key("é"), 4),
			set(tx, key("e\u0301"), 5), set(tx, key("\ufffd"), 6), set(tx, key("\U0010ffff"), 7), set(tx, key(`\u0000"`), 8),
			set(tx, key("a\ufffd"), 9))
	})
	wanted := map[string]string{"a": "[1]", "a ": "[2]", "A": "[3]", "é": "[4]", "e\u0301": "[5]", "\ufffd": "[6]",
		"a  ": "[]", "a\x00": "[]", "a\x00b": "[]", "a\xff": "[]", "\xff": "[]", "\x00": "[]"}
	read(t, d, func(tx db.Tx) error {
		for text, want := range wanted {
			found, err := db.Column[int64](tx, `SELECT value FROM setting WHERE key = ?`, key(text))
			listed, err2 := db.Column[int64](tx, `SELECT value FROM setting WHERE key IN `+db.Texts,
				db.List([]string{key("none"), key(text)}))
			if err := errors.Join(err, err2); err != nil {
				return fmt.Errorf("%q: %w", text, err)
			}
			equal(t, fmt.Sprintf("values of %q", text), fmt.Sprint(found), want)
			equal(t, fmt.Sprintf("values of %q in a list", text), fmt.Sprint(listed), want)
		}
		list := db.List([]string{key(`"\`), key("\x00"), key(`"\` + "\x00\""), key("a"), key(`\u0000"`), key("\x00\x00")})
		in, err := db.Column[int64](tx, `SELECT value FROM setting WHERE key IN `+db.Texts+` ORDER BY value`, list)
		equal(t, "values of a list", fmt.Sprint(in), "[1 8]")
		out, err2 := db.Column[int64](tx, `SELECT value FROM setting WHERE NOT (key IN `+db.Texts+`)
			AND key LIKE 'test %' ORDER BY value`, list)
		equal(t, "values that are not of a list", fmt.Sprint(out), "[2 3 4 5 6 7 9]")
		return errors.Join(err, err2)
	})
	left := 9
	for text, want := range wanted {
		if want != "[]" {
			continue
		}
		write(t, d, func(tx db.Tx) error {
			_, err := tx.Exec(`DELETE FROM setting WHERE key = ?`, key(text))
			_, err2 := tx.Exec(`DELETE FROM setting WHERE key IN `+db.Texts, db.List([]string{key(text)}))
			var rows int
			err3 := tx.QueryRow(`SELECT count(*) FROM setting WHERE key LIKE 'test %'`).Scan(&rows)
			equal(t, fmt.Sprintf("rows after a deletion of %q", text), rows, left)
			return errors.Join(err, err2, err3)
		})
	}
}

// scannedNulls checks what NULL and values of another kind become.
func scannedNulls(t *testing.T, d db.DB) {
	place(t, d)
	read(t, d, func(tx db.Tx) error {
		for _, to := range []any{new(string), new(int), new(int64), new(uint16), new(float64), new(bool)} {
			is(t, fmt.Sprintf("NULL into a %T, by QueryRow", to), tx.QueryRow(`SELECT name FROM users`).Scan(to), db.ErrMisfit)
			is(t, fmt.Sprintf("NULL into a %T, by Each", to), tx.Each(func(r db.Rows) error { return r.Scan(to) },
				`SELECT name FROM users`), db.ErrMisfit)
		}
		b, text, value := []byte{1}, new(string), any(1)
		err := tx.QueryRow(`SELECT name, name, name FROM users`).Scan(&b, &text, &value)
		equal(t, "NULL is nil", fmt.Sprint(b == nil, text == nil, value == nil), "true true true")
		var null, empty bool
		err = errors.Join(err, tx.QueryRow(`SELECT ? IS NULL, ? IS NULL`, []byte(nil), []byte{}).Scan(&null, &empty))
		equal(t, "nil and no bytes, as arguments: NULL", fmt.Sprint(null, empty), "true false")
		is(t, "a text into an integer", tx.QueryRow(`SELECT uid FROM users`).Scan(new(int64)), db.ErrMisfit)
		is(t, "a text into a float", tx.QueryRow(`SELECT uid FROM users`).Scan(new(float64)), db.ErrMisfit)
		is(t, "an integer into a smaller one", tx.QueryRow(`SELECT created_at + 300 FROM users`).Scan(new(int8)),
			db.ErrMisfit)
		is(t, "a fraction into an integer", tx.QueryRow(`SELECT ?`, 1.5).Scan(new(int64)), db.ErrMisfit)
		return err
	})
}

// bytesAreCopies checks that scanned bytes stay as they are, and that changing them changes nothing else.
func bytesAreCopies(t *testing.T, d db.DB) {
	write(t, d, func(tx db.Tx) error {
		_, err := tx.Exec(`INSERT INTO file_chunk (id, sha256, data) VALUES (1, ?1, ?2), (2, ?1, ?3)`, []byte{1},
			[]byte("first"), []byte("other"))
		return err
	})
	const query = `SELECT data FROM file_chunk ORDER BY id`
	read(t, d, func(tx db.Tx) error {
		for what, each := range map[string]func(func(db.Rows) error, string, ...any) error{
			"Each": tx.Each,
			"Query": func(fn func(db.Rows) error, query string, args ...any) error {
				return db.Stream(tx, fn, query, args...)
			},
		} {
			for range 2 {
				var all [][]byte
				err := each(func(r db.Rows) error {
					var b []byte
					err := r.Scan(&b)
					all = append(all, b)
					return err
				}, query)
				if err != nil {
					return err
				}
				equal(t, "bytes by "+what, fmt.Sprintf("%s", all), "[first other]")
				copy(all[0], "spoil")
			}
		}
		for range 2 {
			var b []byte
			if err := tx.QueryRow(query).Scan(&b); err != nil {
				return err
			}
			equal(t, "bytes by QueryRow", string(b), "first")
			copy(b, "spoil")
		}
		return nil
	})
}

// manyArguments checks statements with many parameters and long lists.
func manyArguments(t *testing.T, d db.DB) {
	write(t, d, func(tx db.Tx) error {
		return errors.Join(set(tx, key("a"), 1_000_000), set(tx, key("b"), 1_000_001), set(tx, key("c"), 1_000_002))
	})
	read(t, d, func(tx db.Tx) error {
		for _, n := range []int{17, 100, 1000} {
			args := make([]any, n)
			for i := range args {
				args[i] = 1_000_001 - n + i
			}
			found, err := db.Column[string](tx, `SELECT key FROM setting WHERE value IN (?`+strings.Repeat(`, ?`, n-1)+`)`,
				args...)
			equal(t, fmt.Sprint(n, " parameters"), strings.Join(found, ", "), key("a"))
			if err != nil {
				return err
			}
		}
		for _, n := range []int64{25, 1001, 5000} {
			var numbers []int64
			var texts []string
			for i := range n {
				numbers = append(numbers, 1_000_001-n+i)
				texts = append(texts, fmt.Sprint("text ", i))
			}
			found, err := db.Column[string](tx, `SELECT key FROM setting WHERE value IN `+db.Integers, db.List(numbers))
			equal(t, fmt.Sprint(n, " integers"), strings.Join(found, ", "), key("a"))
			found, err2 := db.Column[string](tx, `SELECT key FROM setting WHERE key IN `+db.Texts,
				db.List(append(texts, key("b"))))
			equal(t, fmt.Sprint(n, " texts"), strings.Join(found, ", "), key("b"))
			if err := errors.Join(err, err2); err != nil {
				return err
			}
		}
		return nil
	})
}
