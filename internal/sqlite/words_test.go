package sqlite

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	base "github.com/souvenir-ai/souvenir/internal/db"
)

// openWords opens a database with Souvenir's tables and one memory, number 1 of partition 1.
func openWords(t *testing.T) *DB {
	t.Helper()
	d := openTest(t, Config{Path: newFile(t), ApplicationID: testID, Migrations: Migrations()})
	must(t, d.Write(t.Context(), func(tx base.Tx) error {
		return tx.(*Tx).ExecScript(`INSERT INTO users (id, uid, created_at) VALUES (1, 'ann', 0);
			INSERT INTO collection (id, owner_id, name, description, created_at, updated_at)
				VALUES (1, 1, 'default', '', 0, 0);
			INSERT INTO partition (id, collection_id) VALUES (1, 1);
			INSERT INTO memory (id, uid, partition_id, content, metadata, revision, created_at, updated_at)
				VALUES (1, 'm', 1, 'tea', '{}', 1, 0, 0)`)
	}))
	return d
}

// inRange covers all passages of the memory.
var inRange = base.Range{First: 1 << 32, Last: 2<<32 - 1}

// putPassage adds a passage with its own term, such as "t3".
func putPassage(n int64) func(base.Tx) error {
	return func(tx base.Tx) error { return putTerm(tx, n, fmt.Sprint("t", n)) }
}

func putTerm(tx base.Tx, n int64, term string) error {
	_, err := tx.Exec(`INSERT INTO passage (id, memory_id, start, length, blank) VALUES (?, 1, 0, 1, 0)`, 1<<32+n)
	return errors.Join(err, tx.Words().Put(1<<32+n, term, "", false))
}

// wantTerms checks which passages full text finds, each by its own term, and that the full text is intact.
func wantTerms(t *testing.T, d *DB, want ...string) {
	t.Helper()
	var got []string
	must(t, d.Read(t.Context(), func(tx base.Tx) error {
		for n := range 10 {
			for _, kind := range []string{"t", "again"} {
				term := fmt.Sprint(kind, n)
				count, err := tx.Words().Count(inRange, []string{term})
				if err != nil {
					return err
				}
				if count > 0 {
					got = append(got, term)
				}
			}
		}
		stray, err := base.Column[int64](tx, `SELECT rowid FROM passage_text WHERE rowid NOT IN (SELECT id FROM passage)
			UNION SELECT id FROM passage WHERE id NOT IN (SELECT rowid FROM passage_text)`)
		if len(stray) > 0 {
			t.Errorf("rows of full text without a passage, or passages without a row: %v, want none", stray)
		}
		return err
	}))
	if !slices.Equal(got, want) {
		t.Errorf("full text finds %q, want %q", got, want)
	}
}

func TestFullTextOfAGroupHasOnlySuccessfulCallers(t *testing.T) {
	d := openWords(t)
	own := errors.New("the function's own")
	errs := group(t, d,
		putPassage(1),
		func(tx base.Tx) error { must(t, putPassage(2)(tx)); return own },
		func(tx base.Tx) error { return putTerm(tx, 2, "again2") }, // the number is free again
		putPassage(4),
	)
	mustBe(t, errs[1], own)
	must(t, errors.Join(errs[0], errs[2], errs[3]))
	wantTerms(t, d, "t1", "again2", "t4")
}

func TestReplacedFullTextOfAGroupHasOnlySuccessfulCallers(t *testing.T) {
	d := openWords(t)
	for n := range int64(4) {
		must(t, d.Write(t.Context(), putPassage(n)))
	}
	own := errors.New("the function's own")
	replace := func(n int64, term string) func(base.Tx) error {
		return func(tx base.Tx) error { return tx.Words().Put(1<<32+n, term, "", true) }
	}
	errs := group(t, d,
		replace(3, "again3"),
		replace(1, "again9"),
		func(tx base.Tx) error { must(t, replace(2, "again8")(tx)); return own },
		replace(1, "again1"),
		func(tx base.Tx) error {
			must(t, replace(0, "again7")(tx))
			_, err := tx.Exec(`DELETE FROM passage WHERE id = ?`, int64(1<<32))
			return err
		},
	)
	mustBe(t, errs[2], own)
	must(t, errors.Join(errs[0], errs[1], errs[3], errs[4]))
	wantTerms(t, d, "again1", "t2", "again3")
}

func TestACallerThatReadsFullTextAndFailsLosesNoRowsOfOthers(t *testing.T) {
	d := openWords(t)
	own := errors.New("the function's own")
	errs := group(t, d,
		putPassage(1),
		func(tx base.Tx) error {
			must(t, putPassage(2)(tx))
			n, err := tx.Words().Count(inRange, []string{"t2"})
			if n != 1 || err != nil {
				t.Errorf("within the transaction: got %d, %v; want its own passage", n, err)
			}
			return own
		},
		putPassage(3),
	)
	mustBe(t, errs[1], own)
	must(t, errors.Join(errs[0], errs[2]))
	wantTerms(t, d, "t1", "t3")
}

func TestFullTextFollowsSavepointsAndDeletions(t *testing.T) {
	d := openWords(t)
	must(t, d.Write(t.Context(), func(tx base.Tx) error {
		var failed []error
		do := func(query string) {
			_, err := tx.Exec(query)
			failed = append(failed, err)
		}
		failed = append(failed, putPassage(1)(tx), putPassage(5)(tx))
		do(`DELETE FROM passage WHERE id & 0xffff = 5`)
		undone := errors.New("undone")
		mustBe(t, tx.Savepoint(func() error {
			failed = append(failed, putPassage(2)(tx))
			_, err := tx.Words().Count(inRange, []string{"t1"})
			failed = append(failed, err, putPassage(3)(tx))
			return undone
		}), undone)
		return errors.Join(append(failed, putTerm(tx, 3, "again3"))...)
	}))
	wantTerms(t, d, "t1", "again3")
}

func TestAGroupMakesOneSegmentOfFullText(t *testing.T) {
	d := openWords(t)
	segments := func() (n int) {
		must(t, d.Read(t.Context(), func(tx base.Tx) error {
			return tx.QueryRow(`SELECT count(DISTINCT segid) FROM passage_text_idx`).Scan(&n)
		}))
		return n
	}
	must(t, d.Write(t.Context(), putPassage(0)))
	before := segments()
	must(t, errors.Join(group(t, d, putPassage(3), putPassage(1), putPassage(4), putPassage(2))...))
	if got := segments(); got != before+1 {
		t.Errorf("four callers made %d segments, want 1", got-before)
	}
	wantTerms(t, d, "t0", "t1", "t2", "t3", "t4")
}

func TestQueriesOfFullText(t *testing.T) {
	for _, tt := range []struct {
		name  string
		terms []string
		want  string
	}{
		{"nothing", nil, ""},
		{"terms", []string{"cat", "猫"}, `("cat" OR "猫")`},
		{"other words are left out", []string{`x" OR "y`, "", "a\x00b", "Cat", "\xff", "ok"}, `("ok")`},
		{"only such", []string{`"`}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := match(tt.terms); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
