// Package embedding gives the passages of a store their vectors: in the background, when the embedder failed while they
// were stored; all of them again, when the store changes to another model; and when its owner asks for it.
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

	// Keeps reports whether a file keeps the given model rather than change to this one. Nil: no file does.
	Keeps func(model string) bool

	// Profile is the row of the embedder's profile, set by [Vectors.Claim]; 0 if a read-only file does not have it.
	Profile int64
}

// Ready reports whether the file's vectors are those of this embedder.
func (v *Vectors) Ready(tx db.Tx) (bool, error) {
	ready, err := kernel.Setting(tx, kernel.SettingReady)
	return ready == v.Profile && ready != 0, err
}

// Superseded reports whether another process has changed the store to another model since this one claimed it.
func (v *Vectors) Superseded(tx db.Tx) (bool, error) {
	target, err := kernel.Setting(tx, kernel.SettingTarget)
	return target != v.Profile && !v.DB.ReadOnly(), err
}

// checkTarget refuses to make vectors of a profile that the file no longer targets.
func (v *Vectors) checkTarget(tx db.Tx) error {
	target, err := kernel.Setting(tx, kernel.SettingTarget)
	if err == nil && target != v.Profile {
		err = fault.New(fault.KindConflict, "",
			"another process has changed the store to another embedding model than %s; close and open the store to change "+
				"it back", fault.Show(v.Model))
	}
	return err
}

// writer returns a writer of rows that belongs to no view.
func (v *Vectors) writer(tx db.Tx) (*kernel.Writer, error) {
	return kernel.NewWriter(tx, kernel.Viewer{}, v.Profile, v.Model)
}

// Pending counts the passages of some partitions that wait to be embedded, up to a limit (negative: none).
func Pending(tx db.Tx, partitions string, limit int) (n int, err error) {
	var some bool // rarely true, and cheaper to find than per partition
	if err := tx.QueryRow(`SELECT EXISTS (SELECT 1 FROM passage WHERE vector IS NULL AND profile_id IS NOT NULL)`).Scan(
		&some); err != nil || !some {
		return 0, err
	}
	err = tx.QueryRow(`SELECT count(*) FROM (SELECT 1 FROM passage WHERE vector IS NULL AND profile_id IS NOT NULL
		AND id >> 32 IN `+db.Integers+` LIMIT ?) p`, partitions, limit).Scan(&n)
	return n, err
}

// embedEach embeds texts; if that fails, one by one, so that a refused text does not cost the others their vectors. It
// returns nil for refused texts, and an error when any failed; vectors is nil when all failed.
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
			break // it refuses everything, so it is broken: stop asking
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
