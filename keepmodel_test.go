package souvenir

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

func TestKeepModelKeepsAnotherProgramsModel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kept.db")
	chosen := openWords(t, path, Options{Embedder: wordEmbedder("words-2")})
	addNumbered(t, chosen, 10)
	guest := openWords(t, path, Options{Embedder: Builtin(), KeepModel: true})
	if e, err := chosen.Upkeep().EmbeddingStatus(t.Context()); err != nil || e.Changing || e.Pending != 0 {
		t.Errorf("once the guest is open: got %+v and %v, want no change of the model", e, err)
	}
	if _, err := guest.AddMemory(t.Context(), NewMemory{Content: "a guest's memory"}); err != nil {
		t.Fatal(err)
	}
	found, err := guest.Search(t.Context(), Query{Text: "guest's"})
	if err != nil || len(found.Hits) == 0 {
		t.Errorf("the guest's search by words: got %v and %v, want its memory", found.Hits, err)
	}
	const warning = "has vectors of the embedding model words-2"
	if got := strings.Join(found.Warnings, "; "); !strings.Contains(got, warning) {
		t.Errorf("the guest's warnings: got %q, want %q in them", got, warning)
	}
	if e, err := guest.Upkeep().EmbeddingStatus(t.Context()); err != nil || e.Changing || e.FileModel != "words-2" {
		t.Errorf("the guest's state: got %+v and %v, want no change, and the model words-2 of the file", e, err)
	}
	if err := guest.Upkeep().WaitEmbedded(t.Context()); !errors.Is(err, ErrConflict) ||
		!strings.Contains(err.Error(), "keeps the embedding model") {
		t.Errorf("a guest that waits for vectors: got %v, want ErrConflict, and that the store keeps its model", err)
	}
	if err := chosen.Upkeep().Reindex(t.Context(), nil); err != nil {
		t.Errorf("the program that chose the model: got %v, want that it embeds the guest's memory", err)
	}
	if e, err := chosen.Upkeep().EmbeddingStatus(t.Context()); err != nil || e.Changing || e.Pending != 0 {
		t.Errorf("afterwards: got %+v and %v, want nothing pending", e, err)
	}
	checkConsistency(t, chosen)
}

func TestKeepModelChangesAFileWithTheBuiltInModelOrNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new.db")
	for _, embedder := range []Embedder{Builtin(), wordEmbedder("words-2")} {
		s := openWords(t, path, Options{Embedder: embedder, KeepModel: true})
		addNumbered(t, s, 3)
		if err := s.Upkeep().WaitEmbedded(t.Context()); err != nil {
			t.Errorf("%s: got %v, want that the file changes to it", embedder.Model(), err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
