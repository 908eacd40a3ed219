package souvenir

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/internal/trash"
)

// TestRulesRemoveInPortions lets another write happen between the portions of a removal: each transaction removes at
// most a thousand memories, and the write is answered before the next one.
func TestRulesRemoveInPortions(t *testing.T) {
	longtest.Only(t)
	n := longtest.Size(2_500, 1_200)
	now := time.Now()
	s := openWords(t, filepath.Join(t.TempDir(), "test.db"), Options{Now: func() time.Time { return now }})
	memories := make([]NewMemory, n)
	for i := range memories {
		memories[i] = NewMemory{Content: fmt.Sprint("note ", i), ProjectID: "p"}
	}
	if _, err := s.AddMemories(t.Context(), memories, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.UpdateProject(t.Context(), ProjectRef{ID: "p"},
		ProjectUpdate{Retention: &Retention{After: MinRetention}}); err != nil {
		t.Fatal(err)
	}
	between := &betweenWrites{DB: s.db, s: s}
	keeper := s.keeper()
	keeper.Store = between
	removed, err := keeper.Remove(t.Context(), now.Add(2*MinRetention).UnixMicro())
	if err != nil || removed != (trash.Retained{Trashed: n}) {
		t.Fatalf("got %+v, %v, want %d memories in the trash", removed, err, n)
	}
	if want := n/trash.FullRows + 1; len(between.left) != want {
		t.Fatalf("got %d transactions, want %d", len(between.left), want)
	}
	for i, left := range between.left {
		if want := max(0, n-(i+1)*trash.FullRows); left != want {
			t.Errorf("after transaction %d a writer found %d memories, want %d", i+1, left, want)
		}
	}
}

// betweenWrites is a database that lets another writer write after each of its transactions.
type betweenWrites struct {
	db.DB
	s    *Store
	left []int // memories in the project p, as the other writer sees them
}

func (b *betweenWrites) Write(ctx context.Context, fn func(tx db.Tx) error) error {
	if err := b.DB.Write(ctx, fn); err != nil {
		return err
	}
	if _, err := b.s.AddMemory(ctx, NewMemory{Content: "of another writer", Collection: DefaultCollection}); err != nil {
		return err
	}
	p, err := b.s.GetProject(ctx, ProjectRef{ID: "p"})
	b.left = append(b.left, p.MemoryCount)
	return err
}
