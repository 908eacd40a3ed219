package souvenir

import (
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// However many versions a memory has, a page of its history and its state at a time read only what they return.
func TestAPartOfAHistoryReadsNoMore(t *testing.T) {
	longtest.Only(t)
	s := openWords(t, filepath.Join(t.TempDir(), "history.db"), Options{})
	long := strings.Repeat("of a long text ", 4_000) // 60 KB
	m, err := s.AddMemory(t.Context(), NewMemory{Content: "Version 1 " + long})
	if err != nil {
		t.Fatal(err)
	}
	var then time.Time
	for i := 2; i <= 40; i++ {
		text := fmt.Sprintf("Version %d %s", i, long)
		changed, err := s.UpdateMemory(t.Context(), m.ID, MemoryUpdate{Content: &text})
		if err != nil {
			t.Fatal(err)
		}
		if i == 38 {
			then = changed.Memory.UpdatedAt
		}
	}
	reads := map[string]func() (string, error){
		"the part before version 39": func() (string, error) {
			page, err := s.Insights().RevisionPage(t.Context(), m.ID, RevisionQuery{Before: 39, Limit: 2})
			return page.Revisions[0].Content, err
		},
		"a search as of version 38": func() (string, error) {
			found, err := s.Search(t.Context(), Query{AsOf: then, Filter: Filter{"id": m.ID}})
			return found.Hits[0].Content, err
		},
	}
	for name, read := range reads {
		least := uint64(math.MaxUint64)
		for range 3 { // background work allocates, too
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			content, err := read()
			runtime.ReadMemStats(&after)
			if err != nil || !strings.HasPrefix(content, "Version 38 ") {
				t.Errorf("%s: got %.20q and %v, want version 38", name, content, err)
			}
			least = min(least, after.TotalAlloc-before.TotalAlloc)
		}
		if least > 1<<20 {
			t.Errorf("%s took %d bytes, want no more than those of some versions", name, least)
		}
	}
}
