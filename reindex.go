package souvenir

import (
	"context"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// ReindexingOptions change how [Upkeep.Reindex] works. Nil means the zero value.
type ReindexingOptions struct {
	// Progress receives the stage "reindex", counted in memories. Nil means no progress reports.
	Progress Progress
}

// Reindex rebuilds everything that finds memories from their contents: it splits, analyses and embeds them again with
// the store's embedder. The caller's own vectors stay. Searches and writes continue meanwhile and see each memory
// either before or after. Reindex returns when all is done. If its context, an error or the end of the process
// interrupts it, the next call continues where it stopped.
//
// An embedder that fails is an error. A single text that it refuses is not: search finds it by its words until it can
// be embedded, see [Upkeep.EmbeddingStatus]. A read-only store is ErrReadOnly; one that another process has changed to
// another model meanwhile is ErrConflict.
//
// It is for the Store that Open returned; a view gets ErrForbidden.
func (h *Upkeep) Reindex(ctx context.Context, options *ReindexingOptions) error {
	s, err := h.operator("Reindex")
	if err != nil {
		return err
	}
	progress := func(string, int, int) {}
	if options != nil && options.Progress != nil {
		progress = options.Progress
	}
	if err := s.vectors.Reindex(ctx, func(done, total int) { progress("reindex", done, total) }); err != nil {
		return wrap(err)
	}
	s.worker.Wake() // for texts that were refused
	return nil
}

// LoadIndex starts loading the search index into memory, and does not wait for it: a program that answers many searches
// calls it at its start, so that the first of them need not read from disk. Without it, the first search starts loading
// after it is answered. If IndexMemory allows no index, or one is loaded, nothing happens.
func (h *Upkeep) LoadIndex(ctx context.Context) error {
	s, err := h.operator("LoadIndex")
	if err != nil {
		return err
	}
	defer s.index.LoadIfDue()
	return s.readStore(ctx, func(tx db.Tx) error {
		_, err := s.index.Current(tx)
		return err
	})
}
