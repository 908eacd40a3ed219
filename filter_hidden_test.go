package souvenir

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// BenchmarkSearchBesideReplacedMemories searches the 20 memories of a user whose neighbour has replaced 100,000 of
// theirs, in the index and on disk.
func BenchmarkSearchBesideReplacedMemories(b *testing.B) {
	for name, memory := range map[string]int64{"index": 0, "disk": -1} {
		b.Run(name, func(b *testing.B) {
			s := openWords(b, filepath.Join(b.TempDir(), "replaced.db"), Options{IndexMemory: memory})
			anna, ben := s.As(Access{User: "anna"}), s.As(Access{User: "ben"})
			for range 20 {
				mustAdd(b, ben, NewMemory{Content: "a common kettle"})
			}
			mustAdd(b, anna, NewMemory{Content: "the first of many facts"})
			// Without passages, which would take minutes: what is measured reads none of them.
			damage(b, s, `INSERT INTO memory (uid, partition_id, content, metadata, revision, created_at, updated_at, supersedes)
				WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
				SELECT 'fact ' || i, (SELECT max(partition_id) FROM memory), 'fact', '{}', 1, i, i, 'fact ' || (i - 1) FROM n`)
			search := func() {
				results, err := ben.Search(b.Context(), Query{Text: "kettle"})
				if err != nil || results.Total != 20 {
					b.Fatalf("got %d, %v, want 20", results.Total, err)
				}
			}
			search()
			for b.Loop() {
				search()
			}
		})
	}
}

// What a search leaves out is found in the partitions that it searches, not in the whole file.
func TestHiddenMemoriesAreFoundByPartition(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "plan.db"), Options{})
	mustAdd(t, s, NewMemory{Content: "x"})
	at := int64(1)
	v := viewer{Bounds: kernel.Bounds{Expired: at, Ended: &at, Begins: &at, Superseded: true}}
	query, args := v.HiddenQuery(db.List([]int64{1}), false)
	plan := strings.Join(queryPlan(t, s.db, statement{query, args}), "\n")
	for _, index := range []string{"memory_expires_in", "memory_valid_from_in", "memory_valid_until_in",
		"memory_supersedes_in"} {
		if !strings.Contains(plan, "INDEX "+index+" (partition_id=?") {
			t.Errorf("got the plan\n%s\nwant a search in %s by partition", plan, index)
		}
	}
	if strings.Contains(plan, "SCAN memory") || strings.Contains(plan, "SCAN s") || strings.Contains(plan, "SCAN m") {
		t.Errorf("got the plan\n%s\nwant no scan", plan)
	}
}

// A listing as of a time finds what has replaced each memory by an index of that, and not by reading the partition.
func TestTheSuccessorsOfAListingAsOfATimeAreFoundByIndex(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "plan.db"), Options{})
	mustAdd(t, s, NewMemory{Content: "x"})
	condition, args := viewer{}.AsOf(1)
	plan := strings.Join(queryPlan(t, s.db, statement{`SELECT m.id ` + kernel.FromMemory + ` WHERE m.partition_id IN (1)
		AND m.event_type = 'x' AND ` + condition, args}), "\n")
	for _, index := range []string{"memory_event (partition_id=? AND event_type=?", "memory_supersedes"} {
		if !strings.Contains(plan, "INDEX "+index) {
			t.Errorf("got the plan\n%s\nwant a search in %s", plan, index)
		}
	}
}
