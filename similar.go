package souvenir

import (
	"context"
	"maps"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/alike"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/index"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/ranking"
	"github.com/souvenir-ai/souvenir/internal/retrieval"
)

// Similar is a near duplicate of a memory.
type Similar struct {
	ID         string  `json:"id"`
	Score      float64 `json:"score"` // as of [Likeness]; for own vectors, the cosine similarity, 0.9 to 1
	Content    string  `json:"content"`
	Collection string  `json:"collection_name"`
	SharedBy   string  `json:"shared_by,omitempty"` // as in [Memory]
}

// Likeness returns how likely it is that two texts say the same, 0 to 1, by the built-in model and by their words,
// numbers, names and negations. It is also the score of [Similar].
func Likeness(a, b string) float64 {
	x, y := alike.Read(a), alike.Read(b)
	return alike.Likeness(x, y, alike.CosineOf(x, y))
}

// ownDuplicate is the cosine similarity at which callers' own vectors count as near duplicates: their model is unknown.
const ownDuplicate = 0.9

// candidates is how many memories have their texts compared at most.
const candidates = 16

// similarTo finds, for each draft that asks for it, the visible memories that say almost the same. It runs before the
// drafts are stored, so none finds itself.
func (s *Store) similarTo(ctx context.Context, drafts []kernel.Draft) ([][]Similar, error) {
	all := make([][]Similar, len(drafts))
	for i := range drafts {
		d := &drafts[i]
		if d.Similar == 0 || d.Vector == nil && d.Passages[0].Vector == nil {
			continue
		}
		err := s.read(ctx, func(tx db.Tx, v viewer) error {
			var err error
			all[i], err = s.similar(tx, v, d)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (s *Store) similar(tx db.Tx, v viewer, d *kernel.Draft) ([]Similar, error) {
	pq := preparedQuery{vector: d.Passages[0].Vector}
	var q Query
	if d.Vector != nil { // comparable only within its collection
		pq, q = preparedQuery{vector: d.Vector, own: true}, Query{Collections: []string{d.Collection}}
	}
	sel, err := s.selection(tx, v, q)
	if err != nil {
		return nil, err
	}
	partitions, err := s.comparedBy(tx, pq, sel)
	if err != nil || len(partitions) == 0 {
		return nil, err
	}
	var hits []index.Hit
	if pq.own {
		hits, err = s.near(tx, pq.vector, partitions, ownDuplicate, d.Similar)
	} else {
		hits, err = s.duplicatesOf(tx, pq.vector, partitions, alike.Read(d.Content), max(candidates, d.Similar))
	}
	if err != nil {
		return nil, err
	}
	hits = slices.DeleteFunc(hits, func(h index.Hit) bool { return sel.hidden[h.Row] })
	hits = hits[:min(len(hits), d.Similar)]
	var rows []int64
	scores := map[int64]float64{}
	for _, h := range hits {
		rows = append(rows, h.Row)
		scores[h.Row] = min(1, float64(h.Score))
	}
	found, err := s.loadRows(tx, v, rows)
	var similar []Similar
	for _, m := range found {
		similar = append(similar, Similar{ID: m.ID, Score: scores[m.row], Content: m.Content, Collection: m.Collection,
			SharedBy: m.SharedBy})
	}
	return similar, err
}

// duplicatesOf finds the memories that are likely to say the same as a text: all of them, if the texts of at most limit
// memories may say the same; else those among as many nearest ones.
func (s *Store) duplicatesOf(tx db.Tx, vector []float32, partitions []int64, given alike.Text, limit int) ([]index.Hit,
	error) {
	const least = float32(alike.Candidate)
	var like []index.Hit
	known := false
	way, err := s.useIndex(tx, partitions, func(ix *index.Index) (err error) {
		like, known, err = ix.Like(tx.Context(), index.Like{
			Near:  index.Near{Vector: vector, Partitions: partitions, Least: least, Limit: limit},
			Probe: alike.NewProbe(given, alike.Duplicate), AnyCosine: s.embedder.Model() != Builtin().Model()})
		return err
	})
	if err != nil {
		return nil, err
	}
	if way == "" || !known {
		if like, err = s.near(tx, vector, partitions, least, limit); err != nil {
			return nil, err
		}
	}
	return s.duplicatesAmong(tx, given, like)
}

// duplicatesAmong keeps the hits whose text is likely to say the same as another text, and scores them by that
// likelihood.
func (s *Store) duplicatesAmong(tx db.Tx, given alike.Text, hits []index.Hit) ([]index.Hit, error) {
	if len(hits) == 0 {
		return nil, nil
	}
	rows := make([]int64, len(hits))
	for i, h := range hits {
		rows[i] = h.Row
	}
	texts, err := beginnings(tx, rows)
	if err != nil {
		return nil, err
	}
	var same []index.Hit
	for _, h := range hits {
		if h.Score = float32(s.likeness(alike.Duplicate, given, texts[h.Row],
			float64(h.Cosine))); h.Score >= alike.Duplicate {
			same = append(same, h)
		}
	}
	slices.SortFunc(same, func(a, b index.Hit) int { return index.CompareHits(&a, &b) })
	return same, nil
}

// likeness compares two texts; a result below least is not exact. The cosine counts only with the built-in model, for
// which the likeness was calibrated; another embedder only finds candidates.
func (s *Store) likeness(least float64, a, b alike.Text, cosine float64) float64 {
	if s.embedder.Model() != Builtin().Model() {
		if most := alike.LikenessFrom(least, a, b, 1); most < least {
			return most
		}
		cosine = alike.CosineOf(a, b)
	}
	return alike.LikenessFrom(least, a, b, cosine)
}

// beginnings reads the part of memories that is compared.
func beginnings(tx db.Tx, rows []int64) (map[int64]alike.Text, error) {
	texts := make(map[int64]alike.Text, len(rows))
	err := tx.Each(func(row db.Rows) error {
		var id int64
		var content string
		if err := row.Scan(&id, &content); err != nil {
			return err
		}
		texts[id] = alike.Read(content)
		return nil
	}, `SELECT id, substr(content, 1, ?) FROM memory WHERE id IN `+db.Integers, alike.MaxBytes+1, db.List(rows))
	return texts, err
}

// comparedBy returns the partitions of a selection without filters whose vectors are comparable with a query's.
func (s *Store) comparedBy(tx db.Tx, pq preparedQuery, sel selection) ([]int64, error) {
	ready, err := s.vectors.Ready(tx)
	compare, _ := s.comparable(pq, sel, ready)
	return slices.Collect(maps.Keys(compare)), err
}

// near finds the memories in some partitions whose vectors are similar to a given one.
func (s *Store) near(tx db.Tx, vector []float32, partitions []int64, least float32, limit int) ([]index.Hit, error) {
	var hits []index.Hit
	way, err := s.useIndex(tx, partitions, func(ix *index.Index) (err error) {
		hits, err = ix.Near(tx.Context(), index.Near{Vector: vector, Partitions: partitions, Least: least, Limit: limit})
		return err
	})
	if err != nil || way != "" {
		return hits, err
	}
	defer s.index.LoadIfDue()
	found, err := retrieval.SearchDatabase(tx, s.profile, index.Query{
		Vector: vector, Partitions: partitions, Compare: func(int64) bool { return true },
		Fuse:  ranking.Fuse(ranking.Default, false, true),
		Limit: limit,
	})
	return slices.DeleteFunc(found.Hits, func(h index.Hit) bool { return h.Score < least }), err
}
