package souvenir

import (
	"slices"
	"testing"
	"time"
)

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
