package souvenir

import (
	"context"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// How a store tracks its embedding model.
//
// The file says, in two settings, which profile new vectors must have (the target) and which profile all vectors have
// (ready). They differ only while the store changes to another model: then vectors are not compared at all, search uses
// words only, and a worker embeds memory by memory again, in any process that has the target's embedder, until ready is
// the target. After a restart it continues where it stopped.

const (
	// Progress of the last change: the profile that it leaves, and the last memory embedded again.
	settingLeaves  = "embedding_leaves"
	settingChanged = "embedding_changed"
)

// startEmbedding makes the embedder's profile the file's target and starts the worker. A read-only file stays as it is.
func (s *shared) startEmbedding(ctx context.Context) error {
	p := profileOf(s.embedder)
	s.worker = newWorker(s)
	var target, ready int64
	err := s.db.Read(ctx, func(tx db.Tx) error {
		rows, err := db.Column[int64](tx, `SELECT id FROM profile WHERE key = ?`, p.Key)
		if err != nil {
			return err
		}
		if len(rows) > 0 {
			s.profile = rows[0]
		}
		if target, err = kernel.Setting(tx, kernel.SettingTarget); err != nil {
			return err
		}
		ready, err = kernel.Setting(tx, kernel.SettingReady)
		return err
	})
	if err != nil || s.db.ReadOnly() {
		return err
	}
	if s.profile == 0 || target != s.profile {
		err := s.db.Write(ctx, func(tx db.Tx) error {
			var err error
			if s.profile, err = kernel.ProfileRow(tx, p, s.now()); err != nil {
				return err
			}
			if err := kernel.SetSetting(tx, kernel.SettingTarget, s.profile); err != nil {
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
			ready = s.profile
			outdated, err := outdatedMemories(tx, s.profile, 0, 1)
			if len(outdated) > 0 {
				ready = 0
			}
			if err != nil {
				return err
			}
			return kernel.SetSetting(tx, kernel.SettingReady, ready)
		})
		if err != nil {
			return err
		}
	}
	s.worker.start()
	return nil
}

// embeddingReady reports whether the file's vectors are those of this store's embedder.
func (s *shared) embeddingReady(tx db.Tx) (bool, error) {
	ready, err := kernel.Setting(tx, kernel.SettingReady)
	return ready == s.profile && ready != 0, err
}

// EmbeddingStatus is the progress of a store's vectors.
type EmbeddingStatus struct {
	Model      string `json:"model"`
	Dimensions int    `json:"dimensions"`
	Passages   int    `json:"passages"` // of the memories visible through the view
	Pending    int    `json:"pending"`  // passages that wait to be embedded
	Changing   bool   `json:"changing"` // the store is changing to this model; searches use words only until it is done

	// Progress of a model change: Changed of Memories have been embedded again. Both count the memories that are visible
	// through the view and whose vectors the store makes. Changed only grows until the change is done, and is Memories
	// then. From is the previous model; empty when the store is not changing.
	Memories int    `json:"memories"`
	Changed  int    `json:"changed"`
	From     string `json:"from,omitempty"`

	// LastError is the last failure of background embedding; empty once it works again. It is set for the Store that Open
	// returned only: an embedder's error may hold texts, addresses and keys.
	LastError string `json:"last_error,omitempty"`
}

// EmbeddingStatus reports the state of the vectors visible through this view.
func (h *Upkeep) EmbeddingStatus(ctx context.Context) (EmbeddingStatus, error) {
	s := h.s
	var e EmbeddingStatus
	err := s.read(ctx, func(tx db.Tx, v viewer) error {
		sel, err := s.selection(tx, v, Query{})
		if err != nil {
			return err
		}
		return s.embeddingStatus(tx, sel.PartitionList(), &e)
	})
	return e, err
}

// embeddingStatus reports the state of the vectors of some partitions.
func (s *Store) embeddingStatus(tx db.Tx, partitions string, e *EmbeddingStatus) (err error) {
	*e = EmbeddingStatus{Model: s.embedder.Model(), Dimensions: s.embedder.Dimensions()}
	if s.operator {
		e.LastError = s.worker.lastError()
	}
	if err := tx.QueryRow(`SELECT coalesce(sum(passages), 0) FROM partition WHERE id IN `+db.Integers,
		partitions).Scan(&e.Passages); err != nil {
		return err
	}
	if e.Pending, err = pendingPassages(tx, partitions, -1); err != nil {
		return err
	}
	return s.changeStatus(tx, partitions, e)
}

// changeStatus reports the progress of a model change in some partitions. It counts along an index, and only while
// there is a change.
func (s *Store) changeStatus(tx db.Tx, partitions string, e *EmbeddingStatus) error {
	ready, err := s.embeddingReady(tx)
	if err != nil {
		return err
	}
	e.Changing = !ready
	const ours = `FROM partition p JOIN collection c ON c.id = p.collection_id WHERE c.own_profile IS NULL AND p.id IN ` +
		db.Integers
	if err := tx.QueryRow(`SELECT coalesce(sum(p.memories), 0) `+ours, partitions).Scan(&e.Memories); err != nil || ready {
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

// pendingPassages counts the passages of some partitions that wait to be embedded, up to a limit (negative: none).
func pendingPassages(tx db.Tx, partitions string, limit int) (n int, err error) {
	var some bool // rarely true, and cheaper to find than per partition
	if err := tx.QueryRow(`SELECT EXISTS (SELECT 1 FROM passage WHERE vector IS NULL AND profile_id IS NOT NULL)`).Scan(
		&some); err != nil || !some {
		return 0, err
	}
	err = tx.QueryRow(`SELECT count(*) FROM (SELECT 1 FROM passage WHERE vector IS NULL AND profile_id IS NOT NULL
		AND id >> 32 IN `+db.Integers+` LIMIT ?) p`, partitions, limit).Scan(&n)
	return n, err
}

// superseded reports whether another process has changed the store to another model since this one opened it.
func (s *Store) superseded(ctx context.Context) (superseded bool, err error) {
	err = s.read(ctx, func(tx db.Tx, _ viewer) error {
		target, err := kernel.Setting(tx, kernel.SettingTarget)
		superseded = target != s.profile && !s.db.ReadOnly()
		return err
	})
	return superseded, err
}

// WaitEmbedded waits until every passage visible through this view has its vector, and the store has changed to its
// embedder's model. It returns the context's error if the context ends first, and ErrReadOnly or ErrConflict if the
// vectors will never come. It waits for a failing embedder.
func (h *Upkeep) WaitEmbedded(ctx context.Context) error {
	s := h.s
	s.worker.wake()
	for {
		e, err := h.EmbeddingStatus(ctx)
		if err != nil || e.Pending == 0 && !e.Changing {
			return err
		}
		if superseded, err := s.superseded(ctx); err != nil || superseded {
			if err == nil {
				err = newError(KindConflict, "",
					"another process has changed the store to another embedding model than %s; close and open the store to change "+
						"it back", show(e.Model))
			}
			return err
		}
		if s.db.ReadOnly() {
			return newError(KindReadOnly, "",
				"the store is opened read-only: %d passages have no vector of the model %s, and will get none", e.Pending,
				show(e.Model))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
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
			after = 0 // again from the start: for memories that another process has stored meanwhile
		default:
			return w.finishChange()
		}
	}
}

// changeIsDue reports whether the store is changing to the model of this process.
func (w *worker) changeIsDue(tx db.Tx) (bool, error) {
	target, err := kernel.Setting(tx, kernel.SettingTarget)
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
		m.tags, err = kernel.DecodeStrings(tags)
		all = append(all, m)
		return err
	}, `SELECT m.id, m.partition_id, m.revision, m.content,
			(SELECT `+db.ListOf+`(t.tag ORDER BY t.position) FROM memory_tag t WHERE t.memory_id = m.id)
		FROM memory m WHERE m.id > ? AND EXISTS (SELECT 1 FROM passage p WHERE p.memory_id = m.id
			AND p.profile_id <> ? AND p.profile_id NOT IN (SELECT id FROM profile WHERE model = ?))
		ORDER BY m.id LIMIT ?`, after, target, OwnVectors, limit)
	return all, err
}

// splitAndEmbed makes passages of contents, with vectors of this process's embedder. A text that the embedder refuses
// gets no vector and waits for one under the embedder's profile; it is an error if the embedder refuses all texts.
func (s *shared) splitAndEmbed(ctx context.Context, contents []string) ([][]kernel.Passage, error) {
	var texts []string
	var into []*kernel.Passage
	all := make([][]kernel.Passage, len(contents))
	for i, content := range contents {
		all[i] = kernel.Split(content, maxInput(s.embedder))
		for j := range all[i] {
			p := &all[i][j]
			if p.Blank {
				continue
			}
			texts, into = append(texts, content[p.Start:p.Start+p.Length]), append(into, p)
		}
	}
	vectors, err := s.embedEach(ctx, texts)
	if vectors == nil && err != nil {
		return nil, err
	}
	for i, v := range vectors {
		into[i].Vector = v
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
		writer, err := (&Store{shared: w.s}).newWriter(tx, viewer{})
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
		// The next rounds, for memories that other processes have stored meanwhile, do not move the progress back.
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

// finishChange lets vectors be compared again, unless outdated memories have turned up since.
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
	return kernel.SetSetting(tx, kernel.SettingReady, w.s.profile)
}

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
			"another process has changed the store to another embedding model than %s; close and open the store to change "+
				"it back", show(s.embedder.Model()))
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
func (r *reindexing) replace(tx db.Tx, memories []kernel.PlainMemory, passages [][]kernel.Passage) (after int64,
	err error) {
	if err := r.s.checkTarget(tx); err != nil {
		return 0, err
	}
	w, err := r.s.newWriter(tx, viewer{})
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
			err = w.RemakeOwn(m, maxInput(r.s.embedder))
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
