package souvenir

import (
	"context"
	"errors"

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
	var ignored Results
	r, err := s.ranking(tx, w, sel, &ignored)
	if d.vector != nil && errors.Is(err, ErrInvalid) {
		return nil, nil // the vector does not fit the collection, which storing it says in its own words
	}
	if err != nil || r.Vector == nil {
		return nil, err
	}
	r.Limit = d.similar
	hits, _, err := s.rank(tx, r)
	if err != nil {
		return nil, err
	}
	var rows []int64
	scores := map[int64]float64{}
	for _, h := range hits {
		if h.Score >= nearDuplicate {
			rows = append(rows, h.Row)
			scores[h.Row] = min(1, float64(h.Score))
		}
	}
	found, err := s.loadRows(tx, sc, rows)
	var similar []Similar
	for _, m := range found {
		similar = append(similar, Similar{ID: m.ID, Score: scores[m.row], Content: m.Content, Collection: m.Collection})
	}
	return similar, err
}
