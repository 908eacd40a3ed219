package souvenir

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// ownRows counts the rows of the index of own metadata.
func ownRows(t *testing.T, s *Store) (n int) {
	t.Helper()
	err := s.db.Read(t.Context(), func(tx db.Tx) error {
		return tx.QueryRow(`SELECT count(*) FROM memory_own WHERE value <> x'00'`).Scan(&n)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTheIndexOfOwnMetadataIsAsLongAsTheOptionsSay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "own.db")
	for i, length := range []int{0, 40, 0, -1, MaxMetadata} {
		s := openWords(t, path, Options{IndexedMetadata: length})
		for _, m := range []NewMemory{
			{Content: "short", Metadata: map[string]any{"k": "v", "round": i}},
			{Content: "long", Metadata: map[string]any{"k": "v", "round": i, "filler": strings.Repeat("x", 100)}},
			{Content: "none"},
		} {
			if _, err := s.AddMemory(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		want := []int{5, 2 * 2, 3 * 2, 0, 5 * 5}[i]
		if got := ownRows(t, s); got != want {
			t.Errorf("with IndexedMetadata %d the index has %d rows, want %d", length, got, want)
		}
		found, err := s.Search(t.Context(), Query{Filter: Filter{"k": "v", "round": i}})
		if err != nil || found.Total != 2 {
			t.Errorf("with IndexedMetadata %d a filter finds %d, %v; want 2", length, found.Total, err)
		}
		if report, err := s.Upkeep().Check(t.Context(), nil); err != nil || !report.OK {
			t.Errorf("with IndexedMetadata %d: %+v, %v", length, report.Findings, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(t.Context(), path, &Options{IndexedMetadata: MaxMetadata + 1}); !errors.Is(err, ErrInvalid) ||
		!strings.Contains(err.Error(), "65537") {
		t.Error("longer than metadata can be:", err)
	}
}

func TestADamagedIndexOfOwnMetadataIsRepaired(t *testing.T) {
	s := openWords(t, "", Options{})
	for i := range 3 {
		m := NewMemory{Content: fmt.Sprint("memory ", i), Metadata: map[string]any{"k": i}}
		if _, err := s.AddMemory(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	err := s.db.Write(t.Context(), func(tx db.Tx) error {
		_, err := tx.Exec(`UPDATE memory_own SET value = 7 WHERE value = 1`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	report, err := s.Upkeep().Check(t.Context(), &CheckOptions{Repair: true})
	if err != nil || !report.OK || report.Repaired != 1 || report.Findings[0].Table != "memory_own" {
		t.Fatalf("%+v, %v", report, err)
	}
	found, err := s.Search(t.Context(), Query{Filter: Filter{"k": 1}})
	if err != nil || found.Total != 1 {
		t.Fatal(found.Total, err)
	}
}

func TestTheSameContentIsFoundByAnIndex(t *testing.T) {
	s := openWords(t, "", Options{})
	var plan []string
	err := s.db.Read(t.Context(), func(tx db.Tx) error {
		return tx.Each(func(row db.Rows) error {
			var id, parent, unused int64
			var detail string
			err := row.Scan(&id, &parent, &unused, &detail)
			plan = append(plan, detail)
			return err
		}, `EXPLAIN QUERY PLAN SELECT id FROM memory WHERE partition_id = ?2 AND `+db.SameContent, "x", 1)
	})
	if err != nil || len(plan) != 1 ||
		!strings.Contains(plan[0], "memory_content (partition_id=? AND <expr>=? AND <expr>=?)") {
		t.Error(plan, err)
	}
}
