package embedding

import (
	"context"
	"math"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// How a store tracks its embedding model.
//
// Two settings in the file hold the profile that new vectors must have (the target) and the profile that all vectors
// have (ready). They differ only while the store changes to another model. Then vectors are not compared, and search
// uses words only. A worker in any process with the target's embedder embeds the memories again, one by one, until
// ready is the target. After a restart it continues where it stopped.

const (
	// Progress of the last change: the profile that it leaves, and the last memory embedded again.
	settingLeaves  = "embedding_leaves"
	settingChanged = "embedding_changed"
)

// Claim makes the embedder's profile the file's target. It does not change a read-only file, nor one that keeps its
// model: new texts then wait for a process with that model.
func (v *Vectors) Claim(ctx context.Context) error {
	p := kernel.ProfileOf(v.Model, v.Dimensions, v.MaxInput)
	var target, ready int64
	var kept bool
	read := func(tx db.Tx) error {
		rows, err := db.Column[int64](tx, `SELECT id FROM profile WHERE key = ?`, p.Key)
		if err != nil {
			return err
		}
		if v.Profile = 0; len(rows) > 0 {
			v.Profile = rows[0]
		}
		if target, err = kernel.Setting(tx, kernel.SettingTarget); err != nil {
			return err
		}
		if ready, err = kernel.Setting(tx, kernel.SettingReady); err != nil || v.Keeps == nil {
			return err
		}
		models, err := db.Column[string](tx, `SELECT model FROM profile WHERE id = ?`, target)
		kept = len(models) > 0 && v.Keeps(models[0])
		return err
	}
	claimed := func() bool { return v.Profile != 0 && (target == v.Profile || kept) }
	if err := v.DB.Read(ctx, read); err != nil || v.DB.ReadOnly() || claimed() {
		return err
	}
	return v.DB.Write(ctx, func(tx db.Tx) error {
		err := read(tx) // another program may have set its model in the meantime
		if err != nil || claimed() {
			return err
		}
		if v.Profile, err = kernel.ProfileRow(tx, p, v.Now()); err != nil || kept {
			return err
		}
		if err := kernel.SetSetting(tx, kernel.SettingTarget, v.Profile); err != nil {
			return err
		}
		if ready != 0 { // otherwise an earlier change did not finish
			if err := kernel.SetSetting(tx, settingLeaves, ready); err != nil {
				return err
			}
		}
		if err := kernel.SetSetting(tx, settingChanged, 0); err != nil {
			return err
		}
		outdated, err := outdatedMemories(tx, v.Profile, 0, 1)
		if err != nil {
			return err
		}
		if len(outdated) > 0 {
			return kernel.SetSetting(tx, kernel.SettingReady, 0)
		}
		return kernel.SetSetting(tx, kernel.SettingReady, v.Profile)
	})
}

// Progress is the state of the vectors of some partitions.
type Progress struct {
	Passages int
	Pending  int  // passages that wait to be embedded
	Changing bool // the store is changing to this model

	Other string // the file's model if another program chose it; "" if it is this model, or the store is changing to it

	Memories, Changed int    // the memories whose vectors the store makes, and how many of them have been embedded again
	From              string // the model before; "" when the store is not changing
}

// Progress reports the state of the vectors of some partitions.
func (v *Vectors) Progress(tx db.Tx, partitions string) (p Progress, err error) {
	if err := tx.QueryRow(`SELECT coalesce(sum(passages), 0) FROM partition WHERE id IN `+db.Integers,
		partitions).Scan(&p.Passages); err != nil {
		return p, err
	}
	if p.Pending, err = Pending(tx, partitions, math.MaxInt32); err != nil {
		return p, err
	}
	err = v.changeProgress(tx, partitions, &p)
	return p, err
}

// changeProgress reports the progress of a model change in some partitions. It counts along an index, and only while
// there is a change.
func (v *Vectors) changeProgress(tx db.Tx, partitions string, e *Progress) error {
	ready, err := v.Ready(tx)
	if err != nil {
		return err
	}
	if e.Other, err = v.Other(tx); err != nil {
		return err
	}
	e.Changing = !ready && e.Other == ""
	const ours = `FROM partition p JOIN collection c ON c.id = p.collection_id WHERE c.own_profile IS NULL AND p.id IN ` +
		db.Integers
	err = tx.QueryRow(`SELECT coalesce(sum(p.memories), 0) `+ours, partitions).Scan(&e.Memories)
	if err != nil || !e.Changing {
		e.Changed = e.Memories
		return err
	}
	last, err := kernel.Setting(tx, settingChanged)
	if err != nil {
		return err
	}
	if err := tx.QueryRow(`SELECT count(*) FROM memory `+db.ByCreated+` WHERE id <= ? AND partition_id IN (SELECT p.id `+
		ours+`)`, last, partitions).
		Scan(&e.Changed); err != nil {
		return err
	}
	models, err := db.Column[string](tx, `SELECT model FROM profile WHERE id = (SELECT value FROM setting WHERE key = ?)`,
		settingLeaves)
	if len(models) > 0 {
		e.From = models[0]
	}
	return err
}

// outdated is a memory whose passages have another profile than the target.
type outdated struct {
	row, partition int64
	revision       int
	content        string
	tags           []string
}

// changeModel splits and embeds again, memory by memory, the memories with vectors of another profile, if the file's
// target is ours. When none is left, vectors may be compared again.
func (w *Worker) changeModel() error {
	const batch = 64
	for after := int64(0); ; {
		var memories []outdated
		var due bool
		err := w.v.DB.Read(w.ctx, func(tx db.Tx) (err error) {
			if due, err = w.v.changeIsDue(tx); err != nil || !due {
				return err
			}
			memories, err = outdatedMemories(tx, w.v.Profile, after, batch)
			return err
		})
		switch {
		case err != nil || !due:
			return err
		case len(memories) > 0:
			if err := w.embedAnew(memories); err != nil {
				return err
			}
			after = memories[len(memories)-1].row
		case after > 0:
			after = 0 // start again for memories that another process has stored in the meantime
		default:
			return w.v.DB.Write(w.ctx, w.v.endChange)
		}
	}
}

// changeIsDue reports whether the store is changing to the model of this process.
func (v *Vectors) changeIsDue(tx db.Tx) (bool, error) {
	target, err := kernel.Setting(tx, kernel.SettingTarget)
	if err != nil || target != v.Profile {
		return false, err
	}
	ready, err := v.Ready(tx)
	return !ready, err
}

// outdatedMemories returns memories with passages of another profile than the target, in the order of rows after a
// given one.
func outdatedMemories(tx db.Tx, target, after int64, limit int) ([]outdated, error) {
	var all []outdated
	err := tx.Each(func(row db.Rows) error {
		var m outdated
		var tags string
		if err := row.Scan(&m.row, &m.partition, &m.revision, &m.content, &tags); err != nil {
			return err
		}
		var err error
		m.tags, err = kernel.DecodeTags(tx, tags)
		all = append(all, m)
		return err
	}, `SELECT m.id, m.partition_id, m.revision, m.content,
			(SELECT `+db.ListOf+`(t.tag ORDER BY t.position) FROM memory_tag t WHERE t.memory_id = m.id)
		FROM memory m WHERE m.id > ? AND EXISTS (SELECT 1 FROM passage p WHERE p.memory_id = m.id
			AND p.profile_id <> ? AND p.profile_id NOT IN (SELECT id FROM profile WHERE model = ?))
		ORDER BY m.id LIMIT ?`, after, target, kernel.OwnVectors, limit)
	return all, err
}

// embedAnew gives memories new passages with vectors of this process's embedder.
func (w *Worker) embedAnew(memories []outdated) error {
	contents := make([]string, len(memories))
	for i, m := range memories {
		contents[i] = m.content
	}
	passages, err := w.v.splitAndEmbed(w.ctx, contents)
	if err != nil {
		return err
	}
	return w.v.DB.Write(w.ctx, func(tx db.Tx) error {
		writer, err := w.v.writer(tx)
		if err != nil {
			return err
		}
		for i, m := range memories {
			same, err := db.Column[int64](tx, `SELECT id FROM memory WHERE id = ? AND revision = ? AND partition_id = ?`, m.row,
				m.revision, m.partition)
			if err != nil {
				return err
			}
			if len(same) == 0 {
				continue // changed since: the writer has embedded it, or the next round finds it
			}
			if err := writer.ReplacePassages(m.row, m.partition, passages[i], nil, m.tags); err != nil {
				return err
			}
		}
		// The next rounds, for memories that other processes have stored in the meantime, do not move the progress back.
		last, err := kernel.Setting(tx, settingChanged)
		if err == nil && memories[len(memories)-1].row > last {
			err = kernel.SetSetting(tx, settingChanged, memories[len(memories)-1].row)
		}
		if err != nil {
			return err
		}
		return writer.Flush()
	})
}

// endChange allows comparisons of vectors again, unless new outdated memories were found.
func (v *Vectors) endChange(tx db.Tx) error {
	due, err := v.changeIsDue(tx)
	if err != nil || !due {
		return err
	}
	left, err := outdatedMemories(tx, v.Profile, 0, 1)
	if err != nil || len(left) > 0 {
		return err
	}
	return kernel.SetSetting(tx, kernel.SettingReady, v.Profile)
}
