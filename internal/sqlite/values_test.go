package sqlite

import (
	"bytes"
	"database/sql"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	base "github.com/souvenir-ai/souvenir/internal/db"
)

type color string
type count int32

func TestValuesComeBackAsTheyWere(t *testing.T) {
	bothKinds(t, func(t *testing.T, db *DB) {
		null, five := (*string)(nil), int64(5)
		for _, test := range []struct {
			in   any
			kind string
			want any // of the type to scan into
		}{
			{nil, "null", null},
			{null, "null", null},
			{[]byte(nil), "null", []byte(nil)},
			{&five, "integer", int64(5)},
			{int64(math.MinInt64), "integer", int64(math.MinInt64)},
			{int64(math.MaxInt64), "integer", &[]int64{math.MaxInt64}[0]},
			{7, "integer", 7},
			{uint8(200), "integer", uint8(200)},
			{uint32(math.MaxUint32), "integer", uint32(math.MaxUint32)},
			{count(3), "integer", count(3)},
			{true, "integer", true},
			{false, "integer", false},
			{3, "integer", 3.0},
			{1.5, "real", 1.5},
			{float32(0.25), "real", float32(0.25)},
			{math.Inf(-1), "real", math.Inf(-1)},
			{"", "text", ""},
			{"zero \x00 inside", "text", "zero \x00 inside"},
			{"ünïcödé 記憶", "text", "ünïcödé 記憶"},
			{color("red"), "text", color("red")},
			{"text as bytes", "text", []byte("text as bytes")},
			{[]byte{}, "blob", []byte{}},
			{[]byte{0, 255, 0}, "blob", []byte{0, 255, 0}},
			{bytes.Repeat([]byte{7}, 1<<20), "blob", bytes.Repeat([]byte{7}, 1<<20)},
			{[]byte("bytes as text"), "blob", "bytes as text"},
			{sql.Null[int64]{}, "null", sql.Null[int64]{}},
			{sql.Null[int64]{V: 4, Valid: true}, "integer", sql.Null[int64]{V: 4, Valid: true}},
		} {
			must(t, db.Read(t.Context(), func(tx base.Tx) error {
				var kind string
				got := reflect.New(reflect.TypeOf(test.want))
				must(t, tx.QueryRow("SELECT typeof(?1), ?1", test.in).Scan(&kind, got.Interface()))
				if kind != test.kind {
					t.Errorf("%T %v is stored as %s, want %s", test.in, test.in, kind, test.kind)
				}
				if !reflect.DeepEqual(got.Elem().Interface(), test.want) {
					t.Errorf("%T %.20v comes back as %#v, want %v", test.in, test.in, got.Elem().Interface(), test.want)
				}
				return nil
			}))
		}
	})
}

func TestMisfittingValuesAreErrors(t *testing.T) {
	db := openTest(t, testConfig(":memory:"))
	for _, in := range []any{uint64(math.MaxUint64), time.Now(), struct{}{}, make(chan int), map[string]int{}} {
		err := db.Write(t.Context(),
			func(tx base.Tx) error { _, err := tx.Exec("INSERT INTO item (name) VALUES (?)", in); return err })
		if err == nil || !strings.Contains(err.Error(), "argument 1") {
			t.Errorf("%T: error is %v, want one that names the argument", in, err)
		}
	}
	for query, dest := range map[string]any{
		"SELECT 300":           new(uint8),
		"SELECT -1":            new(uint64),
		"SELECT 5000000000":    new(int32),
		"SELECT NULL":          new(string),
		"SELECT NULL, 1":       new(int),
		"SELECT 'x'":           new(int),
		"SELECT 1.5":           new(int),
		"SELECT 1":             new(string),
		"SELECT 'a'":           "not a pointer",
		"SELECT x'00' WHERE 1": new(float64),
	} {
		must(t, db.Read(t.Context(), func(tx base.Tx) error {
			if err := tx.QueryRow(query).Scan(dest); err == nil || !strings.Contains(err.Error(), "scan") {
				t.Errorf(`%s into %T: %v, want an error and "scan" in the error`, query, dest, err)
			}
			return nil
		}))
	}
	err := db.Read(t.Context(), func(tx base.Tx) error { _, err := tx.Query("SELECT ?, ?", 1); return err })
	if err == nil {
		t.Error("a missing argument went unnoticed, want an error")
	}
}

func TestScannedBlobsAreTheCallersToKeep(t *testing.T) {
	bothKinds(t, func(t *testing.T, db *DB) {
		var kept [][]byte
		must(t, db.Read(t.Context(), func(tx base.Tx) (err error) {
			kept, err = base.Column[[]byte](tx, "SELECT x'01' UNION ALL SELECT x'02' UNION ALL SELECT x'03'")
			return err
		}))
		if !reflect.DeepEqual(kept, [][]byte{{1}, {2}, {3}}) {
			t.Errorf("kept %v, want %v", kept, [][]byte{{1}, {2}, {3}})
		}
	})
}

func TestExecReturnsItsResult(t *testing.T) {
	bothKinds(t, func(t *testing.T, db *DB) {
		must(t, db.Write(t.Context(), func(tx base.Tx) error {
			for query, want := range map[string]base.Result{
				"INSERT INTO item (id, name) VALUES (10, 'a'), (11, 'b')": {RowsAffected: 2},
			} {
				got, err := tx.Exec(query)
				must(t, err)
				if got != want {
					t.Errorf("%s: %+v, want %+v", query, got, want)
				}
			}
			got, err := tx.Exec("INSERT INTO item (id, name) VALUES (20, 'c'), (21, 'd') RETURNING id")
			must(t, err)
			if got != (base.Result{RowsAffected: 2}) {
				t.Errorf("RETURNING: %+v, want %v", got, base.Result{RowsAffected: 2})
			}
			if got, err = tx.Exec("UPDATE item SET name = name || '!'"); err != nil || got.RowsAffected != 4 {
				t.Errorf("UPDATE: %+v, %v; want rowsAffected 4", got, err)
			}
			if got, err = tx.Exec("DELETE FROM item WHERE id = 4711"); err != nil || got.RowsAffected != 0 {
				t.Errorf("DELETE of nothing: %+v, %v; want rowsAffected 0", got, err)
			}
			_, err = tx.Exec("PRAGMA table_info(item)") // its rows are discarded, and block nothing
			return err
		}))
		if got := names(t, db); len(got) != 4 {
			t.Errorf("stored: %q, want a length of 4", got)
		}
	})
}
