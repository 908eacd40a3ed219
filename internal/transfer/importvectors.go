package transfer

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// vectorSpan is the vector of a passage.
type vectorSpan struct {
	start, length int
	vector        []float32
}

// vectorsItem holds vectors of the preceding memory, all or some.
type vectorsItem struct {
	lineNumber
	memory, profile string
	spans           []vectorSpan
}

func (*vectorsItem) apply(*importTx) error { return nil } // they are part of their memory

func parseVectors(line []byte, n int) (importItem, error) {
	var given struct {
		Memory   string `json:"memory"`
		Profile  string `json:"profile"`
		Passages []struct {
			Start  int    `json:"start"`
			Length int    `json:"length"`
			Vector []byte `json:"vector"`
		} `json:"passages"`
	}
	if err := decodeLine(line, &given); err != nil {
		return nil, err
	}
	if err := CheckText("profile", given.Profile); err != nil || given.Profile == "" {
		return nil, cmp.Or(err, error(fault.Invalid("profile", "profile is missing; vectors belong to a model")))
	}
	item := &vectorsItem{lineNumber: lineNumber(n), memory: given.Memory, profile: given.Profile}
	for _, p := range given.Passages {
		vector, err := kernel.DecodeVector(p.Vector)
		if err == nil {
			vector, err = unitOrSame(vector)
		}
		if err != nil || len(vector) == 0 || len(vector) > valid.MaxVector {
			return nil, fault.Invalid("vector", "vector is not a list of 1 to %d finite float32 numbers", valid.MaxVector)
		}
		item.spans = append(item.spans, vectorSpan{p.Start, p.Length, vector})
	}
	return item, nil
}

// unitOrSame normalizes a vector to unit length. A vector of unit length stays the same, bit for bit.
func unitOrSame(v []float32) ([]float32, error) {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if math.Abs(sum-1) < 1e-5 {
		return v, nil
	}
	return kernel.UnitVector(v, len(v))
}

// vectors takes vectors for the memory; false if they do not belong to it.
func (m *memoryItem) vectors(v *vectorsItem) bool {
	if m.draft.Vector != nil && !m.brought || len(m.spans)+len(v.spans) > 1+len(m.draft.Content) {
		return false
	}
	if m.profile == "" {
		m.profile = v.profile
	}
	if m.profile != v.profile {
		return true // vectors of several models: passages without one of the first model are embedded again
	}
	m.spans, m.brought = append(m.spans, v.spans...), true
	return true
}

// settle gives the memory the vectors from the export, if they are of this store's model or the caller's own. It
// returns false if they do not cover the memory.
func (m *memoryItem) settle(ours string, dimensions, maxInput int) bool {
	spans := m.spans
	m.spans = nil // frees memory: they are large
	switch {
	case len(spans) == 0:
		return false
	case len(spans) == 1 && m.profile == kernel.OwnProfile(len(spans[0].vector)).Key:
		m.draft.Vector = spans[0].vector
		return false // the text is split by embedDrafts, and not embedded
	case m.profile != ours:
		return false
	}
	m.draft.Passages = kernel.Split(m.draft.Content, maxInput)
	for i := range m.draft.Passages {
		p := &m.draft.Passages[i]
		if p.Blank {
			continue
		}
		at, found := slices.BinarySearchFunc(spans, p.Start,
			func(s vectorSpan, start int) int { return cmp.Compare(s.start, start) })
		if !found || spans[at].length != p.Length || len(spans[at].vector) != dimensions {
			m.draft.Passages = nil
			return false
		}
		p.Vector = spans[at].vector
	}
	return true
}

// prepare does the slow work before the transaction: it embeds memories without vectors, unless the store already has
// them.
func (im *importer) prepare(ctx context.Context, items []importItem) error {
	var due, missing []*memoryItem
	err := im.DB.Read(ctx, func(tx db.Tx) error {
		due = due[:0]
		for _, item := range items {
			m, ok := item.(*memoryItem)
			if !ok {
				continue
			}
			_, o, err := m.compare(tx, im.replace)
			if err != nil {
				return err
			}
			if o == unchanged || o == conflicting {
				m.spans = nil
				continue
			}
			owner, err := db.Column[int64](tx, `SELECT id FROM users WHERE namespace = ? AND uid = ?`, m.namespace, m.owner)
			if err != nil {
				return err
			}
			is, name, err := sealedrows.IsAny(tx, sealedrows.CollectionName, owner, `c.name`, m.draft.Collection)
			if err != nil {
				return err
			}
			own, err := db.Column[int](tx, `SELECT f.dimensions FROM collection c JOIN profile f ON f.id = c.own_profile
				WHERE c.owner_id IN `+db.Integers+` AND `+is, db.List(owner), name)
			if err != nil {
				return err
			}
			m.ownSize = 0
			if len(own) > 0 {
				m.ownSize = own[0]
			}
			due = append(due, m)
		}
		return nil
	})
	if err != nil {
		return err
	}
	ours := kernel.ProfileOf(im.Model, im.Dimensions, im.MaxInput).Key
	for _, m := range due {
		if m.settle(ours, im.Dimensions, im.MaxInput) {
			continue
		}
		if m.brought && len(m.draft.Vector) != m.ownSize {
			m.draft.Vector = nil // the collection does not accept such vectors
		}
		m.draft.WordsOnly = m.ownSize > 0 && m.draft.Vector == nil
		missing = append(missing, m)
	}
	if len(missing) == 0 {
		return nil
	}
	drafts := make([]kernel.Draft, len(missing))
	for i, m := range missing {
		drafts[i] = m.draft
		drafts[i].WordsOnly = m.draft.WordsOnly || im.noEmbedder
	}
	warnings, err := kernel.EmbedDrafts(drafts, im.MaxInput, func(texts []string) ([][]float32, []string, error) {
		return im.Embed(ctx, texts)
	})
	if err != nil {
		return err
	}
	if len(warnings) > 0 {
		im.noEmbedder = true
		im.report.Warnings = append(im.report.Warnings, warnings...)
	}
	for i, m := range missing {
		m.draft.Passages = drafts[i].Passages
	}
	return nil
}
