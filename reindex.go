package souvenir

import (
	"context"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// ReindexingOptions change how [Upkeep.Reindex] works. Nil means the zero value.
type ReindexingOptions struct {
	// Progress receives the stage "reindex", counted in memories. Nil means no progress reports.
	Progress Progress
}

// The progress of a reindexing, in settings of the file: its profile, the last memory done, and the last memory when it
// began. Later memories need no reindexing.
const (
	settingReindexProfile = "reindex_profile"
	settingReindexDone    = "reindex_done"
	settingReindexLast    = "reindex_last"
)

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
	r := reindexing{s: s}
	if err := r.begin(ctx); err != nil {
		return wrap(err)
	}
	for r.after < r.last {
		progress("reindex", r.done, r.total)
		if err := r.step(ctx); err != nil {
			return wrap(err)
		}
	}
	if err := r.finish(ctx); err != nil {
		return wrap(err)
	}
	s.worker.wake() // for texts that were refused
	progress("reindex", r.total, r.total)
	return nil
}

// reindexing is a Reindex in progress.
type reindexing struct {
	s           *Store
	after, last int64 // rows of memories: the last one done, and the last one to do
	done, total int   // memories
}

// begin reads the progress of an earlier run, or records the start of a new one.
func (r *reindexing) begin(ctx context.Context) error {
	return r.s.db.Write(ctx, func(tx db.Tx) error {
		if err := r.s.checkTarget(tx); err != nil {
			return err
		}
		begun, err := kernel.Setting(tx, settingReindexProfile)
		if err != nil {
			return err
		}
		if begun == r.s.profile {
			if r.after, err = kernel.Setting(tx, settingReindexDone); err != nil {
				return err
			}
			if r.last, err = kernel.Setting(tx, settingReindexLast); err != nil {
				return err
			}
		} else {
			if err := tx.QueryRow(`SELECT coalesce(max(id), 0) FROM memory`).Scan(&r.last); err != nil {
				return err
			}
			r.after = 0
			for key, value := range map[string]int64{settingReindexProfile: r.s.profile, settingReindexDone: 0,
				settingReindexLast: r.last} {
				if err := kernel.SetSetting(tx, key, value); err != nil {
					return err
				}
			}
		}
		return tx.QueryRow(`SELECT count(*) FILTER (WHERE id <= ?), count(*) FROM memory WHERE id <= ?`, r.after,
			r.last).Scan(&r.done, &r.total)
	})
}

// checkTarget refuses to make vectors of a profile that the file no longer targets.
func (s *shared) checkTarget(tx db.Tx) error {
	target, err := kernel.Setting(tx, kernel.SettingTarget)
	if err == nil && target != s.profile {
		err = newError(KindConflict, "",
			"another process has changed the store to another embedding model than %s; close and open the store to change it back", show(s.embedder.Model()))
	}
	return err
}

// step reindexes some memories. It leaves a memory that changes meanwhile, and the ones after it, to the next step.
func (r *reindexing) step(ctx context.Context) error {
	const batch = 64
	var memories []kernel.PlainMemory
	err := r.s.db.Read(ctx, func(tx db.Tx) (err error) {
		memories, err = kernel.ReadPlain(tx, `m.id > ? AND m.id <= ? ORDER BY m.id LIMIT ?`, r.after, r.last, batch)
		return err
	})
	if err != nil {
		return err
	}
	contents := make([]string, len(memories))
	for i, m := range memories {
		if !m.OwnVectors {
			contents[i] = m.Content
		}
	}
	passages, err := r.s.splitAndEmbed(ctx, contents)
	if err != nil {
		return err
	}
	var after int64
	err = r.s.db.Write(ctx, func(tx db.Tx) error {
		after, err = r.replace(tx, memories, passages)
		if err != nil {
			return err
		}
		if len(memories) < batch && (len(memories) == 0 || after == memories[len(memories)-1].Row) {
			after = r.last
		}
		return kernel.SetSetting(tx, settingReindexDone, after)
	})
	if err != nil {
		return err
	}
	for _, m := range memories {
		if m.Row <= after {
			r.done++
		}
	}
	r.after = after
	return nil
}

// replace writes passages of memories and returns the last memory done.
func (r *reindexing) replace(tx db.Tx, memories []kernel.PlainMemory, passages [][]kernel.Passage) (after int64, err error) {
	if err := r.s.checkTarget(tx); err != nil {
		return 0, err
	}
	w, err := r.s.newWriter(tx, scope{})
	if err != nil {
		return 0, err
	}
	after = r.after
	for i, m := range memories {
		now, err := kernel.ReadPlain(tx, `m.id = ?`, m.Row)
		if err != nil {
			return 0, err
		}
		switch {
		case len(now) == 0: // it was deleted
		case !now[0].Same(m):
			return after, w.flush()
		case m.OwnVectors:
			err = r.s.remakeOwn(w, m)
		default:
			err = w.ReplacePassages(m.Row, m.Partition, passages[i], nil, m.Tags)
		}
		if err != nil {
			return 0, err
		}
		after = m.Row
	}
	return after, w.flush()
}

// finish ends a reindexing, and a change of model that it has completed along with it.
func (r *reindexing) finish(ctx context.Context) error {
	return r.s.db.Write(ctx, func(tx db.Tx) error {
		for _, key := range []string{settingReindexProfile, settingReindexDone, settingReindexLast} {
			if _, err := tx.Exec(`DELETE FROM setting WHERE key = ?`, key); err != nil {
				return err
			}
		}
		return r.s.worker.endChange(tx)
	})
}
