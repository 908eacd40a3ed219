package postgres

import (
	"errors"
	"fmt"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
)

func TestParametersHaveTheTypesOfTheirArguments(t *testing.T) {
	name := "x"
	for _, test := range []struct {
		query string
		args  []any
		want  string
		bound string
	}{
		{`SELECT ?, ?`, []any{1, "a"}, `SELECT ($1::int8), ($2::text COLLATE "C")`, `[1 a]`},
		{`SELECT ?2, ?1, ?2`, []any{1.5, []byte("b")}, `SELECT ($1::bytea), ($2::float8), ($1::bytea)`, `[[98] 1.5]`},
		{`SELECT ?, ?`, []any{nil, &name}, `SELECT NULL, ($1::text COLLATE "C")`, `[x]`},
		{`SELECT ?`, []any{(*string)(nil)}, `SELECT NULL`, `[]`},
		{`SELECT ?`, []any{true}, `SELECT $1`, `[true]`},
		{`SELECT ?2, ?`, []any{1, 2, 3}, `SELECT ($1::int8), ($2::int8)`, `[2 3]`},
		{`SELECT '?', "?", ? -- ?`, []any{1}, `SELECT '?', "?", ($1::int8) -- ?`, `[1]`},
		{`SELECT 'it''s ?', ?`, []any{1}, `SELECT 'it''s ?', ($1::int8)`, `[1]`},
		{`SELECT a FROM b WHERE c = ?`, []any{"\xff"}, `SELECT a FROM b WHERE c = (NULL::text COLLATE "C")`, `[]`},
		{`DELETE FROM b WHERE c = ?`, []any{"\x00"}, `DELETE FROM b WHERE c = (NULL::text COLLATE "C")`, `[]`},
	} {
		st, bound, err := newStatements(10).bind(test.query, test.args)
		if err != nil || st.text != test.want || fmt.Sprint(bound) != test.bound {
			t.Errorf("%s: got %s, %v, %v; want %s, %s", test.query, st.text, bound, err, test.want, test.bound)
		}
	}
	for query, args := range map[string][]any{`SELECT ?, ?`: {1}, `SELECT ?3`: {1, 2}, `SELECT ?0`: {1}} {
		if _, _, err := newStatements(10).bind(query, args); !errors.Is(err, errTooFew) {
			t.Errorf("%s with %d arguments: got %v, want %v", query, len(args), err, errTooFew)
		}
	}
	if _, _, err := newStatements(10).bind(`INSERT INTO a VALUES (?)`, []any{"a\x00b"}); !errors.Is(err,
		db.ErrConstraint) {
		t.Errorf("U+0000 in a text to store: got %v, want %v", err, db.ErrConstraint)
	}
}

func TestStatementsAreTranslatedOnceForTheirTypes(t *testing.T) {
	s := newStatements(2)
	for _, arg := range []any{1, "a", 1, nil, "b"} {
		if _, _, err := s.bind(`SELECT ?`, []any{arg}); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.done) > 2 {
		t.Errorf("%d texts are kept; want at most 2", len(s.done))
	}
}

func TestMarksSayWhichTransactionsWereRunning(t *testing.T) {
	for mark, want := range map[db.Mark]position{"": {}, "7": {newest: 7}, "9 3 5": {newest: 9, running: []int64{3, 5}}} {
		got, err := parseMark(mark)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) || got.mark() != mark {
			t.Errorf("mark %q: got %v and %q, %v; want %v", mark, got, got.mark(), err, want)
		}
	}
	if _, err := parseMark("x"); err == nil {
		t.Error("a mark of another engine is no error")
	}
}
