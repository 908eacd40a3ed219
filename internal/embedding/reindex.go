package embedding

import (
	"context"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// The progress of a reindexing, in settings of the file: its profile, the last memory done, and the last memory when it
// began. Later memories need no reindexing.
const (
	settingReindexProfile = "reindex_profile"
	settingReindexDone    = "reindex_done"
	settingReindexLast    = "reindex_last"
)

// Reindex splits, analyses and embeds all memories again. It continues where an interrupted call stopped. Progress
// receives the number of memories done, and their total.
func (v *Vectors) Reindex(ctx context.Context, progress func(done, total int)) error {
	r := reindexing{v: v}
	if err := r.begin(ctx); err != nil {
		return err
	}
	for r.after < r.last {
		progress(r.done, r.total)
		if err := r.step(ctx); err != nil {
			return err
		}
	}
	if err := r.finish(ctx); err != nil {
		return err
	}
	progress(r.total, r.total)
	return nil
}

// reindexing is a Reindex in progress.
type reindexing struct {
	v           *Vectors
	after, last int64 // rows of memories: the last one done, and the last one to do
	done, total int   // memories
}

// begin reads the progress of an earlier run, or records the start of a new one.
func (r *reindexing) begin(ctx context.Context) error {
	return r.v.DB.Write(ctx, func(tx db.Tx) error {
		if err := r.v.checkTarget(tx); err != nil {
			return err
		}
		begun, err := kernel.Setting(tx, settingReindexProfile)
		if err != nil {
			return err
		}
		if begun == r.v.Profile {
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
			for key, value := range map[string]int64{settingReindexProfile: r.v.Profile, settingReindexDone: 0,
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

// step reindexes some memories. It leaves a memory that changes during the step, and the ones after it, to the next
// step.
func (r *reindexing) step(ctx context.Context) error {
	const batch = 64
	var memories []kernel.PlainMemory
	err := r.v.DB.Read(ctx, func(tx db.Tx) (err error) {
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
	passages, err := r.v.splitAndEmbed(ctx, contents)
	if err != nil {
		return err
	}
	var after int64
	err = r.v.DB.Write(ctx, func(tx db.Tx) error {
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
func (r *reindexing) replace(tx db.Tx, memories []kernel.PlainMemory, passages [][]kernel.Passage) (after int64,
	err error) {
	if err := r.v.checkTarget(tx); err != nil {
		return 0, err
	}
	w, err := r.v.writer(tx)
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
			return after, w.Flush()
		case m.OwnVectors:
			err = w.RemakeOwn(m, r.v.MaxInput)
		default:
			err = w.ReplacePassages(m.Row, m.Partition, passages[i], nil, m.Tags)
		}
		if err != nil {
			return 0, err
		}
		after = m.Row
	}
	return after, w.Flush()
}

// finish ends a reindexing, and a change of model that it has completed along with it.
func (r *reindexing) finish(ctx context.Context) error {
	return r.v.DB.Write(ctx, func(tx db.Tx) error {
		for _, key := range []string{settingReindexProfile, settingReindexDone, settingReindexLast} {
			if _, err := tx.Exec(`DELETE FROM setting WHERE key = ?`, key); err != nil {
				return err
			}
		}
		return r.v.endChange(tx)
	})
}
