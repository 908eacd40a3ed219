package souvenir

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/testing/linediff"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/internal/transfer"
)

// tripsOver returns why a store that was damaged in a transaction cannot be restored from an export, or "" if it can.
func tripsOver(t *testing.T, tx db.Tx) string {
	t.Helper()
	export := func(tx db.Tx) ([]byte, error) {
		var out bytes.Buffer
		_, err := transfer.Export(tx, &out, transfer.Settings{Credentials: true, Now: sealedClock()})
		return out.Bytes(), err
	}
	first, err := export(tx)
	if err != nil {
		return "export: " + err.Error()
	}
	s := openWords(t, "", Options{Now: sealedClock})
	defer s.Close()
	report, err := s.Upkeep().Import(t.Context(), bytes.NewReader(first), nil)
	if err != nil || len(report.Conflicts) > 0 {
		return fmt.Sprintf("import: %v, %+v", err, report.Conflicts)
	}
	var second []byte
	if err := s.db.Read(t.Context(), func(tx db.Tx) (err error) { second, err = export(tx); return err }); err != nil {
		return "export of the copy: " + err.Error()
	}
	if !bytes.Equal(first, second) {
		return "the copy differs: " + linediff.First(second, first)
	}
	return ""
}

func TestEveryDamagedValueIsFoundOrDoesNoHarm(t *testing.T) {
	longtest.Only(t)
	s := openRich(t)
	type column struct{ table, name, kind string }
	var columns []column
	err := s.db.Read(t.Context(), func(tx db.Tx) error {
		return tx.Each(func(row db.Rows) error {
			var c column
			err := row.Scan(&c.table, &c.name, &c.kind)
			columns = append(columns, c)
			return err
		}, `SELECT t.name, c.name, c.type FROM pragma_table_list t, pragma_table_info(t.name) c
			WHERE t.schema = 'main' AND t.type = 'table' AND t.strict ORDER BY 1, c.cid`)
	})
	if err != nil || len(columns) < 100 {
		t.Fatalf("%d columns, %v; want at least 100", len(columns), err)
	}
	values := map[string][]string{
		"INTEGER": {"NULL", "-1", "9223372036854775807"},
		"TEXT":    {"NULL", "''", "'[1]'", "CAST(x'ff' AS TEXT)"},
		"BLOB":    {"NULL", "x'ff'"},
	}
	found := 0
	for i, c := range columns {
		for _, value := range values[c.kind] {
			if !longtest.Part(i, 4, 48) {
				break // one part of them
			}
			err := s.db.Write(t.Context(), func(tx db.Tx) error {
				one := fmt.Sprintf(`UPDATE "%s" SET "%s" = %s WHERE "%[2]s" IS (SELECT max("%[2]s") FROM "%[1]s")`, c.table, c.name,
					value)
				if r, err := tx.Exec(one); err != nil || r.RowsAffected == 0 {
					return errUndone // the schema rejects the damage, or there is nothing to damage
				}
				report, err := s.inspector(t.Context()).Look(tx)
				if err != nil {
					return err
				}
				found += report.Total
				if report.Total > 0 {
					return errUndone
				}
				if harm := tripsOver(t, tx); harm != "" && !strings.HasPrefix(c.table, "oauth_code") {
					t.Errorf("%s: nothing is found, but %s; want a finding or no harm", one, harm)
				}
				return errUndone
			})
			if !errors.Is(err, errUndone) {
				t.Errorf("%+v = %s: %v, want %v", c, value, err, errUndone)
			}
		}
	}
	if least := 200; found < least && longtest.All() || found < least/60 {
		t.Errorf("%d findings; the test damages nothing, want more", found)
	}
	if report := mustCheck(t, s, nil); !report.OK {
		t.Errorf("after the repair: %+v, want OK", report)
	}
}

func TestCheckFindsAndRepairsTurns(t *testing.T) {
	s := openWords(t, ":memory:", Options{})
	talk := s.Conversation("talk")
	turns, err := talk.Append(t.Context(), Turn{Content: "one"}, Turn{Content: "two"}, Turn{Content: "three"},
		Turn{Content: "four"})
	if err != nil {
		t.Fatal(err)
	}
	apart := mustAdd(t, s, NewMemory{Content: "of no conversation"})
	row := func(id string) string { return `(SELECT id FROM memory WHERE uid = '` + id + `')` }
	damage(t, s, `DELETE FROM turn WHERE memory_id = `+row(turns[0].ID),
		`UPDATE turn SET at = at + 3600000000 WHERE memory_id = `+row(turns[1].ID),
		`UPDATE turn SET conversation = conversation + 1 WHERE memory_id = `+row(turns[2].ID),
		`INSERT INTO turn SELECT id, partition_id, 7, 7, '' FROM memory WHERE uid = '`+apart.ID+`'`)
	report, err := s.Upkeep().Check(t.Context(), &CheckOptions{Repair: true})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, f := range report.Findings {
		if f.Table == "turn" && f.Repaired {
			found = append(found, f.ID)
		}
	}
	if want := []string{turns[0].ID, turns[1].ID, turns[2].ID, apart.ID}; !slices.Equal(found, want) {
		t.Errorf("the check repairs %v, want %v", found, want)
	}
	var contents []string
	for turn, err := range talk.Since(t.Context(), time.Time{}) {
		if err != nil {
			t.Fatal(err)
		}
		contents = append(contents, turn.Content)
	}
	if want := []string{"one", "two", "three", "four"}; !slices.Equal(contents, want) {
		t.Errorf("after the repair the turns are %q, want %q", contents, want)
	}
}
