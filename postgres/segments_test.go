package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
)

// segmentsOf counts the segments of the search index, and the memories for which they no longer count.
func segmentsOf(t *testing.T, address string) (segments, stale int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	err = conn.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM segment), (SELECT count(*) FROM segment_stale)`).
		Scan(&segments, &stale)
	if err != nil {
		t.Fatal(err)
	}
	return segments, stale
}

// A new server gets its search index from the segments of another one, and the changes since.
func TestServersShareTheSegmentsOfTheIndex(t *testing.T) {
	address := pgtest.Address(t)
	writer := open(t, address, nil)
	memories := make([]souvenir.NewMemory, 600)
	for i := range memories {
		memories[i].Content = fmt.Sprintf("The courier number %d comes on Monday.", i)
	}
	stored, err := writer.AddMemories(t.Context(), memories, nil)
	if err != nil {
		t.Fatal(err)
	}
	open(t, address, nil) // looks for work to do
	for wait := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if n, _ := segmentsOf(t, address); n > 0 {
			break
		}
		if time.Since(wait) > time.Minute {
			t.Fatal("after a minute: got no segment, want one of 600 memories")
		}
	}
	if err := writer.DeleteMemory(t.Context(), stored[7].ID, nil); err != nil {
		t.Fatal(err)
	}
	moved := "The courier number eight comes on Friday."
	if _, err := writer.UpdateMemory(t.Context(), stored[8].ID, souvenir.MemoryUpdate{Content: &moved}); err != nil {
		t.Fatal(err)
	}
	added, err := writer.AddMemory(t.Context(), souvenir.NewMemory{Content: "The ferry leaves on Sunday."})
	if err != nil {
		t.Fatal(err)
	}
	if _, stale := segmentsOf(t, address); stale != 2 {
		t.Errorf("after a deletion, an update and an addition: got %d stale memories, want 2", stale)
	}
	reader := open(t, address, nil)
	for text, want := range map[string]string{moved: stored[8].ID, "the ferry on Sunday": added.ID,
		"courier number 9": stored[9].ID, "courier number 599": stored[599].ID} {
		found, err := reader.Search(t.Context(), souvenir.Query{Text: text, Limit: 3})
		if err != nil {
			t.Fatal(err)
		}
		if len(found.Hits) == 0 || found.Hits[0].ID != want {
			t.Errorf("%q: got %v, want %s first", text, found.Hits, want)
		}
	}
	found, err := reader.Search(t.Context(), souvenir.Query{Text: "courier", Limit: souvenir.MaxLimit})
	if err != nil || found.Total != 600 {
		t.Errorf("a search for what all but one have: got %d, %v; want 600 (one was deleted, one added)", found.Total, err)
	}
}
