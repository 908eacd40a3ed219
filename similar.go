package souvenir

import (
	"context"
	"maps"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/index"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
)

// nearDuplicate is the cosine similarity from which on a memory says nearly the same as another.
const nearDuplicate = 0.9

// similarTo finds, for each draft that asks for it, the visible memories that say nearly the same. It runs before the
// drafts are stored, so none finds itself.
func (s *Store) similarTo(ctx context.Context, drafts []draft) ([][]Similar, error) {
	all := make([][]Similar, len(drafts))
	for i := range drafts {
		d := &drafts[i]
		if d.similar == 0 || d.vector == nil && d.passages[0].vector == nil {
			continue
		}
		err := s.read(ctx, func(tx *sqlite.Tx, sc scope) error {
			var err error
			all[i], err = s.similar(tx, sc, d)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (s *Store) similar(tx *sqlite.Tx, sc scope, d *draft) ([]Similar, error) {
	w := want{vector: d.passages[0].vector}
	var q Query
	if d.vector != nil { // comparable within its collection only
		w, q = want{vector: d.vector, own: true}, Query{Collections: []string{d.collection}}
	}
	sel, err := s.selection(tx, sc, q)
	if err != nil {
		return nil, err
	}
	hits, err := s.near(tx, w, sel, d.similar)
	if err != nil {
		return nil, err
	}
	var rows []int64
	scores := map[int64]float64{}
	for _, h := range hits {
		rows = append(rows, h.Row)
		scores[h.Row] = min(1, float64(h.Score))
	}
	found, err := s.loadRows(tx, sc, rows)
	var similar []Similar
	for _, m := range found {
		similar = append(similar, Similar{ID: m.ID, Score: scores[m.row], Content: m.Content, Collection: m.Collection, SharedBy: m.SharedBy})
	}
	return similar, err
}

// near finds the memories of a selection without filters that say nearly the same as a vector: none where there is nothing
// to compare it with.
func (s *Store) near(tx *sqlite.Tx, w want, sel selection, limit int) ([]index.Hit, error) {
	ready, err := s.embeddingReady(tx)
	if err != nil {
		return nil, err
	}
	compare, _ := s.comparable(w, sel, ready)
	if len(compare) == 0 {
		return nil, nil
	}
	partitions := slices.Collect(maps.Keys(compare))
	ix, err := s.index.current(tx, s.shared)
	if err != nil {
		return nil, err
	}
	if ix != nil {
		return ix.Near(tx.Context(), index.Near{Vector: w.vector, Partitions: partitions, Least: nearDuplicate, Limit: limit})
	}
	defer s.index.loadIfDue(s.shared)
	hits, _, err := rankOnDisk(tx, s.profile, index.Query{
		Vector: w.vector, Partitions: partitions, Compare: func(int64) bool { return true }, Fuse: fuse(false, true), Limit: limit,
	})
	return slices.DeleteFunc(hits, func(h index.Hit) bool { return h.Score < nearDuplicate }), err
}
