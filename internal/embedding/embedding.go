// Package embedding computes the vectors of a store's passages: in the background if the embedder failed when they were
// stored, for all passages when the store changes to another model, and on request.
package embedding

import (
	"context"
	"log/slog"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// Vectors makes the vectors of a store.
type Vectors struct {
	DB         db.DB
	Model      string
	Dimensions int
	MaxInput   int // bytes of a text
	Batch      int // the most texts of one call of Embed
	Log        *slog.Logger
	Now        func() int64 // microseconds since 1970

	// Embed returns one vector of unit length for each text, any number of them. Its error is for the log and the
	// operator only: it may hold texts, addresses and keys.
	Embed func(ctx context.Context, texts []string) ([][]float32, error)

	// Keeps reports whether a file keeps the given model instead of changing to this one. Nil means that no file does.
	Keeps func(model string) bool

	// Profile is the row of the embedder's profile, set by [Vectors.Claim]; 0 if a read-only file does not have it.
	Profile int64
}

// Ready reports whether the file's vectors are those of this embedder.
func (v *Vectors) Ready(tx db.Tx) (bool, error) {
	ready, err := kernel.Setting(tx, kernel.SettingReady)
	return ready == v.Profile && ready != 0, err
}

// Other returns the model of the file's vectors, present or future, if another program chose a model other than this
// embedder's. It is empty when the file has this embedder's model or is changing to it.
func (v *Vectors) Other(tx db.Tx) (model string, err error) {
	target, err := kernel.Setting(tx, kernel.SettingTarget)
	if err != nil || target == v.Profile || target == 0 {
		return "", err
	}
	err = tx.QueryRow(`SELECT model FROM profile WHERE id = ?`, target).Scan(&model)
	return model, err
}

// ErrOther is the error of a call that needs vectors of this embedder in a file that has another model.
func (v *Vectors) ErrOther(model string) error {
	if v.Keeps != nil && v.Keeps(model) {
		return fault.New(fault.KindConflict, "",
			"the store keeps the embedding model %s, chosen by another program, which computes the vectors instead of %s",
			fault.Show(model), fault.Show(v.Model))
	}
	return fault.New(fault.KindConflict, "",
		"another process has changed the store from the embedding model %s to %s; close and open the store to change it back",
		fault.Show(v.Model), fault.Show(model))
}

// checkTarget refuses to make vectors of a profile that the file no longer targets.
func (v *Vectors) checkTarget(tx db.Tx) error {
	model, err := v.Other(tx)
	if err == nil && model != "" {
		err = v.ErrOther(model)
	}
	return err
}

// writer returns a writer of rows that belongs to no view.
func (v *Vectors) writer(tx db.Tx) (*kernel.RowWriter, error) {
	return kernel.NewRowWriter(tx, kernel.Viewer{}, v.Profile, v.Model)
}

const anyPending = `SELECT EXISTS (SELECT 1 FROM passage WHERE vector IS NULL AND profile_id IS NOT NULL)`

// Ahead announces a search, which reads [Vectors.Ready] and [Pending]; see [db.Ahead].
func Ahead(tx db.Tx) {
	kernel.SettingAhead(tx, kernel.SettingReady)
	db.Ahead(tx, anyPending)
}

// Pending counts the passages of some partitions that wait to be embedded, up to a limit (negative: none).
func Pending(tx db.Tx, partitions string, limit int) (n int, err error) {
	var some bool // rarely true, and cheaper to find than per partition
	if err := tx.QueryRow(anyPending).Scan(&some); err != nil || !some {
		return 0, err
	}
	err = tx.QueryRow(`SELECT count(*) FROM (SELECT 1 FROM passage WHERE vector IS NULL AND profile_id IS NOT NULL
		AND id >> 32 IN `+db.Integers+` LIMIT ?) p`, partitions, limit).Scan(&n)
	return n, err
}

// embedEach embeds texts together or, if that fails, one by one, so that one refused text does not affect the others.
// It returns nil for refused texts, and an error when any failed; vectors is nil when all failed.
func (v *Vectors) embedEach(ctx context.Context, texts []string) ([][]float32, error) {
	vectors, err := v.Embed(ctx, texts)
	if err == nil || len(texts) == 1 || ctx.Err() != nil {
		return vectors, err
	}
	vectors, some := make([][]float32, len(texts)), false
	for i := range texts {
		if one, err := v.Embed(ctx, texts[i:i+1]); err == nil {
			vectors[i], some = one[0], true
		}
		if i == 2 && !some || ctx.Err() != nil {
			break // it refuses everything, so it is broken: stop
		}
	}
	if !some {
		return nil, err
	}
	return vectors, err
}

// splitAndEmbed makes passages of contents, with vectors of this process's embedder. A text that the embedder refuses
// gets no vector and waits for one under the embedder's profile; it is an error if the embedder refuses all texts.
func (v *Vectors) splitAndEmbed(ctx context.Context, contents []string) ([][]kernel.Passage, error) {
	var texts []string
	var into []*kernel.Passage
	all := make([][]kernel.Passage, len(contents))
	for i, content := range contents {
		all[i] = kernel.Split(content, v.MaxInput)
		for j := range all[i] {
			p := &all[i][j]
			if p.Blank {
				continue
			}
			texts, into = append(texts, content[p.Start:p.Start+p.Length]), append(into, p)
		}
	}
	vectors, err := v.embedEach(ctx, texts)
	if vectors == nil && err != nil {
		return nil, err
	}
	for i, vector := range vectors {
		into[i].Vector = vector
	}
	return all, ctx.Err()
}
