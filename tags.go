package souvenir

import (
	"context"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Tag is a tag that visible memories have.
type Tag struct {
	Name  string `json:"tag"`
	Count int    `json:"count"` // memories that have it
}

// Tags returns the tags of the visible memories in some collections (none named: in all), the most frequent first.
func (h *Insights) Tags(ctx context.Context, collections ...string) ([]Tag, error) {
	s := h.s
	all := []Tag{}
	err := s.read(ctx, func(tx db.Tx, sc scope) error {
		selection, err := s.selection(tx, sc, Query{Collections: collections})
		if err != nil {
			return err
		}
		all = all[:0]
		return tx.Each(func(row db.Rows) error {
			var t Tag
			err := row.Scan(&t.Name, &t.Count)
			all = append(all, t)
			return err
		}, `SELECT t.tag, count(*) FROM memory_tag t JOIN memory m ON m.id = t.memory_id
			WHERE m.partition_id IN `+db.Integers+` GROUP BY t.tag ORDER BY count(*) DESC, t.tag`, selection.partitionList())
	})
	return all, err
}
