package souvenir

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/files/objects"
	"github.com/souvenir-ai/souvenir/internal/records/audit"
	"github.com/souvenir-ai/souvenir/internal/sealing/keyring"
	"github.com/souvenir-ai/souvenir/internal/trash"
)

// Work on a whole store: making it smaller, loading and storing its index, moving the content of files, and what the
// worker tidies up. Its state is in health.go.

// Upkeep maintains a store: backup, check, export, import, statistics, the activity log, embeddings and indexes. Get it
// with [Store.Upkeep].
//
// It is for the Store that [Open] returned. On a view all methods return ErrForbidden, except Export,
// GetEmbeddingStatus and WaitEmbedded, which are limited to the data of the view's user.
type Upkeep struct {
	handle
}

// Upkeep returns the methods that maintain the store.
func (s *Store) Upkeep() *Upkeep {
	return &Upkeep{handle{s.handled("Upkeep")}}
}

// Compact returns the free pages of the file to the system, by rewriting it. Searches and reads continue meanwhile;
// writes wait, including those of other processes. It needs room for two more copies of the file until it is done: one
// in the system's folder for temporary files, one in the log beside the file. If the context ends first, or a disk is
// full (ErrFull), nothing has changed.
//
// It is for the Store that Open returned; a view gets ErrForbidden. On a read-only store it is ErrReadOnly.
func (h *Upkeep) Compact(ctx context.Context) error {
	s, err := h.operator(ctx, "Compact")
	if err != nil {
		return err
	}
	return wrap(s.db.Upkeep().Compact(ctx))
}

// LoadIndex starts loading the search index into memory, as far as IndexMemory allows, and does not wait for it: a
// program that answers many searches calls it at its start, so that the first of them need not read from disk. Without
// it, a search starts loading the data that it covers, after it is answered. Loaded parts are not loaded again.
func (h *Upkeep) LoadIndex(ctx context.Context) error {
	s, err := h.operator(ctx, "LoadIndex")
	if err != nil {
		return err
	}
	defer s.index.LoadIfDue()
	return s.readStore(ctx, func(tx db.Tx) error {
		return s.index.Want(tx)
	})
}

// StoreIndex writes the search index of large collections and projects to the file or the database, and returns when
// that is done, so that the next process loads it in a fraction of the time that reading all texts takes. A store does
// this by itself, in the background, within half a minute or so; call StoreIndex at the end of a program that stores
// much and ends, such as an import. Parts that are up to date are not written again. It waits for another process that
// does the same, and returns ErrBusy if the store changes too fast.
//
// It is for the Store that Open returned; a view gets ErrForbidden. On a read-only store it is ErrReadOnly.
func (h *Upkeep) StoreIndex(ctx context.Context) error {
	s, err := h.operator(ctx, "StoreIndex")
	if err == nil {
		err = s.checkWritable()
	}
	if err == nil {
		err = s.readStore(ctx, func(db.Tx) error { return nil }) // fails on a closed store
	}
	if err != nil {
		return err
	}
	if err = s.index.Persist(ctx, true); err == nil {
		err = s.maintain(ctx, true)
	}
	return wrap(err)
}

// maintain lets the engine do its own work in the background.
func (s *shared) maintain(ctx context.Context, wait bool) error {
	engine, able := s.engine.(db.Maintainer)
	if !able {
		return nil
	}
	return engine.Maintain(ctx, wait)
}

// FileMove is the result of [Upkeep.MoveFiles].
type FileMove struct {
	Chunks  int   `json:"chunks"`  // moved
	Bytes   int64 `json:"bytes"`   // of them
	Damaged int   `json:"damaged"` // chunks that were not moved, because they are damaged
}

// MoveFiles moves the content of all files to a place, those in the trash included, in short transactions: others read
// and write meanwhile. Each chunk is compared with its hash. If it is interrupted, call it again: it moves the rest.
// Files that others store meanwhile go where their Options.NewFiles says. Progress receives the stage "move", in
// chunks; nil disables it.
//
// Space freed in the database is available for new content; [Upkeep.Compact] returns it to the system. Objects that are
// no longer needed are deleted in the background.
//
// It is for the Store that Open returned; a view gets ErrForbidden. On a read-only store it is ErrReadOnly.
func (h *Upkeep) MoveFiles(ctx context.Context, to FilePlace, progress Progress) (_ FileMove, err error) {
	defer setGoNames[struct{}](&err, "to", "to")
	s, err := h.operator(ctx, "MoveFiles")
	if err == nil {
		err = s.checkWritable()
	}
	some := false
	if err == nil {
		err = s.readStore(ctx, func(tx db.Tx) error {
			return tx.QueryRow(`SELECT EXISTS (SELECT 1 FROM file_chunk WHERE object IS NOT NULL)`).Scan(&some)
		})
	}
	if err == nil {
		err = s.options.checkPlace("to", to)
	}
	if err == nil && some && s.options.Objects == nil {
		err = invalid("to", "{} is %s, but there is no object storage to move from; set Options.Objects", show(string(to)))
	}
	if err != nil {
		return FileMove{}, err
	}
	moved, err := s.objects.Move(ctx, to, progress)
	return FileMove(moved), s.noteAlone(ctx, wrap(err),
		event{"files.move", "store", "", audit.Details{"to": to, "chunks": moved.Chunks, "damaged": moved.Damaged}})
}

// AdoptObjects makes this database the one that deletes objects in Options.Objects. Each database changes a mark there
// every few minutes, and deletes nothing if its original or a copy of it has changed the mark. Call AdoptObjects on a
// restored or copied database when the original is no longer in use.
//
// It is for the Store that Open returned; a view gets ErrForbidden. On a read-only store it is ErrReadOnly, without
// Options.Objects ErrInvalid, and ErrBusy if the storage does not answer.
func (h *Upkeep) AdoptObjects(ctx context.Context) (err error) {
	s, err := h.operator(ctx, "AdoptObjects")
	if err == nil {
		err = s.checkWritable()
	}
	if err == nil {
		err = s.readStore(ctx, func(db.Tx) error { return nil }) // unless the store is closed, or the call has ended
	}
	if err == nil && s.options.Objects == nil {
		err = invalid("", "there is no object storage to adopt; set Options.Objects")
	}
	if err != nil {
		return err
	}
	return s.noteAlone(ctx, wrap(s.objects.Adopt(ctx)), event{"files.adopt", "store", "", nil})
}

// lookForTraces is how often the traces of single permanent deletions are removed, which takes longer than the rest.
const lookForTraces = time.Hour

// tidy does the periodic work: it erases expired memories and trash entries, applies the rules for how long memories
// stay, and removes the traces of erased data and the remains of files after crashes. Only the worker calls it.
func (s *shared) tidy(ctx context.Context) {
	var erased, expired int
	e, err := s.deadline(ctx, false)
	if err == nil {
		erased, err = trash.EraseExpired(ctx, s.db, e.at)
	}
	if err == nil {
		expired, err = trash.EraseMemoriesExpired(ctx, s.db, e.at)
	}
	if err == nil {
		var retained trash.Retained
		retained, err = s.keeper().Remove(ctx, e.at)
		expired += retained.Deleted
	}
	if now := s.erased.Swap(false); err == nil && (now || erased+expired > 0 || time.Since(s.scrubbed) > lookForTraces) {
		err = s.scrub(ctx)
		s.scrubbed = time.Now()
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, db.ErrClosed) {
		s.log.Warn("could not erase deleted data yet", "error", err)
	}
	if _, err := s.purgeFiles(ctx, s.clock()); err != nil && ctx.Err() == nil {
		s.log.Warn("could not remove the remains of unfinished files", "error", err)
	}
	_ = s.removeObjects(ctx, math.MaxInt) // logged; the next time tries again
	if _, err := s.ring.FinishDeletions(ctx, keyring.Owners(ctx, s.db)); err != nil && ctx.Err() == nil {
		s.log.Warn("could not erase the keys of deleted users yet", "error", err)
	}
	if err := s.ring.Note(ctx, s.db); err != nil && ctx.Err() == nil && !errors.Is(err, db.ErrClosed) {
		s.log.Warn("could not record the number of user keys in the store", "error", err)
	}
	err = s.index.Persist(ctx, false)
	if err != nil && ctx.Err() == nil && !errors.Is(err, db.ErrClosed) && !errors.Is(err, db.ErrBusy) {
		s.log.Warn("could not store the search index; the next start reads the texts instead", "error", err)
	}
	err = s.maintain(ctx, false)
	if err != nil && ctx.Err() == nil && !errors.Is(err, db.ErrClosed) && !errors.Is(err, db.ErrBusy) {
		s.log.Warn("could not update the database's vector index", "error", err)
	}
}

// objectsNow is how many objects an erasure deletes before it returns; the worker deletes the others.
const objectsNow = 2000

// removeObjects deletes the objects of files that are gone, up to a number of them.
func (s *shared) removeObjects(ctx context.Context, most int) error {
	_, err := s.objects.Remove(ctx, most)
	if err != nil && ctx.Err() == nil && !errors.Is(err, db.ErrClosed) && s.objects.Warn() {
		s.log.Warn("could not remove objects of deleted files yet", "error", objects.Cause(err))
	}
	return err
}
