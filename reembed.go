package souvenir

import (
	"context"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// outdated is a memory whose passages are of another profile than the target.
type outdated struct {
	row, partition int64
	revision       int
	content        string
	tags           []string
}

// changeModel splits and embeds anew, memory by memory, what has vectors of another profile, if the file's target is
// ours. When nothing is left, vectors may be compared again.
func (w *worker) changeModel() error {
	const batch = 64
	for after := int64(0); ; {
		var memories []outdated
		var due bool
		err := w.s.db.Read(w.ctx, func(tx db.Tx) (err error) {
			if due, err = w.changeIsDue(tx); err != nil || !due {
				return err
			}
			memories, err = outdatedMemories(tx, w.s.profile, after, batch)
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
			after = 0 // once more from the start: for what another process has stored meanwhile
		default:
			return w.finishChange()
		}
	}
}

// changeIsDue reports whether the store is changing to the model of this process.
func (w *worker) changeIsDue(tx db.Tx) (bool, error) {
	target, err := kernel.Setting(tx, settingTarget)
	if err != nil || target != w.s.profile {
		return false, err
	}
	ready, err := w.s.embeddingReady(tx)
	return !ready, err
}

// outdatedMemories returns memories, by row and after one, that have passages of another profile than the target.
func outdatedMemories(tx db.Tx, target, after int64, limit int) ([]outdated, error) {
	var all []outdated
	err := tx.Each(func(row db.Rows) error {
		var m outdated
		var tags string
		if err := row.Scan(&m.row, &m.partition, &m.revision, &m.content, &tags); err != nil {
			return err
		}
		var err error
		m.tags, err = decodeStrings(tags)
		all = append(all, m)
		return err
	}, `SELECT m.id, m.partition_id, m.revision, m.content,
			(SELECT `+db.ListOf+`(t.tag ORDER BY t.position) FROM memory_tag t WHERE t.memory_id = m.id)
		FROM memory m WHERE m.id > ? AND EXISTS (SELECT 1 FROM passage p WHERE p.memory_id = m.id
			AND p.profile_id <> ? AND p.profile_id NOT IN (SELECT id FROM profile WHERE model = ?))
		ORDER BY m.id LIMIT ?`, after, target, OwnVectors, limit)
	return all, err
}

// splitAndEmbed makes passages of contents, with vectors of this process's embedder. A text that it refuses gets none and
// waits for it under the embedder's profile; it is an error when it refuses all of them.
func (s *shared) splitAndEmbed(ctx context.Context, contents []string) ([][]passage, error) {
	var texts []string
	var into []*passage
	all := make([][]passage, len(contents))
	for i, content := range contents {
		all[i] = split(content, maxInput(s.embedder))
		for j := range all[i] {
			p := &all[i][j]
			if p.blank {
				continue
			}
			texts, into = append(texts, content[p.start:p.start+p.length]), append(into, p)
		}
	}
	vectors, err := s.embedEach(ctx, texts)
	if vectors == nil && err != nil {
		return nil, err
	}
	for i, v := range vectors {
		into[i].vector = v
	}
	return all, ctx.Err()
}

// embedAnew gives memories new passages with vectors of this process's embedder.
func (w *worker) embedAnew(memories []outdated) error {
	contents := make([]string, len(memories))
	for i, m := range memories {
		contents[i] = m.content
	}
	passages, err := w.s.splitAndEmbed(w.ctx, contents)
	if err != nil {
		return err
	}
	return w.s.db.Write(w.ctx, func(tx db.Tx) error {
		writer, err := (&Store{shared: w.s}).newWriter(tx, scope{})
		if err != nil {
			return err
		}
		for i, m := range memories {
			same, err := db.Column[int64](tx, `SELECT id FROM memory WHERE id = ? AND revision = ? AND partition_id = ?`, m.row, m.revision, m.partition)
			if err != nil {
				return err
			}
			if len(same) == 0 {
				continue // changed since: what changed it has embedded it, or will be found in the next round
			}
			if err := writer.replacePassages(m.row, m.partition, passages[i], nil, m.tags); err != nil {
				return err
			}
		}
		// The next rounds, for what other processes have stored meanwhile, take nothing back.
		last, err := kernel.Setting(tx, settingChanged)
		if err == nil && memories[len(memories)-1].row > last {
			err = kernel.SetSetting(tx, settingChanged, memories[len(memories)-1].row)
		}
		if err != nil {
			return err
		}
		return writer.flush()
	})
}

// replacePassages writes the passages of a memory anew, without any change of the memory itself.
func (w *memoryWriter) replacePassages(memory, partition int64, passages []passage, own []float32, tags []string) error {
	at, err := w.placeByRow(partition)
	if err != nil {
		return err
	}
	if _, err := w.tx.Exec(`DELETE FROM passage WHERE memory_id = ?`, memory); err != nil {
		return err
	}
	if _, _, err := w.addPassages(memory, at, passages, own, tags); err != nil {
		return err
	}
	_, err = w.tx.Exec(`INSERT INTO change (memory_id) VALUES (?)`, memory)
	return err
}

// finishChange lets vectors be compared again, unless something outdated has turned up since.
func (w *worker) finishChange() error { return w.s.db.Write(w.ctx, w.endChange) }

func (w *worker) endChange(tx db.Tx) error {
	due, err := w.changeIsDue(tx)
	if err != nil || !due {
		return err
	}
	left, err := outdatedMemories(tx, w.s.profile, 0, 1)
	if err != nil || len(left) > 0 {
		return err
	}
	return kernel.SetSetting(tx, settingReady, w.s.profile)
}
