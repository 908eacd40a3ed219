package souvenir

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/retrieval"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
	"github.com/souvenir-ai/souvenir/internal/retrieval/similarity"
)

// Memories related to one: memories linked with it, and near duplicates.

// Direction is the direction of a link, seen from the start of a walk.
type Direction string

// The values of [Direction].
const (
	Outgoing Direction = "outgoing" // it links to the other one
	Incoming Direction = "incoming" // the other one links to it
)

// RelatedMemory is a memory reached over links.
type RelatedMemory struct {
	Memory
	Depth     int       // 1: linked directly
	Direction Direction // of the link over which it was reached
	Path      []string  // ids from the start of the walk to this memory, both included
	Truncated bool      // shortened; see [MainMemory.Within]
}

// MarshalJSON returns the memory's form with depth, direction and path.
func (r RelatedMemory) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		writtenMemory
		relatedJSON
	}{r.Memory.json(), relatedJSON{r.Depth, r.Direction, r.Path, r.Truncated}})
}

// UnmarshalJSON reads the output of MarshalJSON.
func (r *RelatedMemory) UnmarshalJSON(data []byte) error {
	var beside relatedJSON
	var m Memory
	if err := withMemory(data, &m, &beside); err != nil {
		return err
	}
	*r = RelatedMemory{Memory: m, Depth: beside.Depth, Direction: beside.Direction, Path: beside.Path,
		Truncated: beside.Truncated}
	return nil
}

// relatedJSON holds the additional members of a related memory.
type relatedJSON struct {
	Depth     int       `json:"depth"`
	Direction Direction `json:"direction"`
	Path      []string  `json:"path"`
	Truncated bool      `json:"truncated,omitempty"`
}

const (
	// maxWalk bounds how far a walk over links may go.
	maxWalk = 10
	// walkPortion is how many memories a walk reads at once.
	walkPortion = 1000
)

// RelatedMemories follows the links of a memory in both directions, up to depth links away (1 to 10), nearest first.
// Each memory appears once, on one of its shortest paths; a memory that this view may not see ends a path.
func (s *Store) RelatedMemories(ctx context.Context, id string, depth int) (_ []RelatedMemory, err error) {
	defer setGoNames[struct{}](&err, "id", "id", "depth", "depth")
	if err := checkRange("depth", depth, 1, maxWalk); err != nil {
		return nil, err
	}
	var all []RelatedMemory
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		start, err := kernel.LoadMemory(tx, v, id)
		if err != nil {
			return err
		}
		all, _, err = s.walk(tx, v, start, depth, 0)
		return err
	})
	return all, err
}

// walk follows links, up to depth links and most visible memories (0: any number), and reports whether there are more.
func (s *Store) walk(tx db.Tx, v viewer, start kernel.Memory, depth, most int) (
	all []RelatedMemory, more bool, err error) {
	type step struct {
		from      int64
		direction Direction
	}
	paths := map[int64][]string{start.Row: {start.ID}}
	level := []int64{start.Row}
	for d := 1; d <= depth && len(level) > 0; d++ {
		reached := map[int64]step{}
		var next []int64
		frontier := db.List(level)
		err := tx.Each(func(row db.Rows) error {
			var from, to int64
			var direction Direction
			if err := row.Scan(&from, &to, &direction); err != nil {
				return err
			}
			if _, seen := paths[to]; seen {
				return nil
			}
			if _, seen := reached[to]; !seen {
				reached[to] = step{from, direction}
				next = append(next, to)
			}
			return nil
		}, `WITH level (id) AS `+db.Integers+`
			SELECT memory_id, related_id, way FROM (
				SELECT memory_id, related_id, 'outgoing' AS way, position FROM memory_link WHERE memory_id IN (SELECT id FROM level)
				UNION ALL SELECT related_id, memory_id, 'incoming', position FROM memory_link WHERE related_id IN (SELECT id
				FROM level)) steps
			ORDER BY way DESC, position, related_id`, frontier)
		if err != nil {
			return nil, false, err
		}
		level = level[:0]
		for portion := range slices.Chunk(next, walkPortion) {
			found, err := kernel.LoadRows(tx, v, kernel.WholeContent, portion)
			if err != nil {
				return nil, false, err
			}
			for _, m := range found {
				if most > 0 && len(all) == most {
					return all, true, nil
				}
				from := reached[m.Row]
				path := append(append([]string{}, paths[from.from]...), m.ID)
				paths[m.Row] = path
				level = append(level, m.Row)
				all = append(all, RelatedMemory{Memory: memoryOf(m), Depth: d, Direction: from.direction, Path: path})
			}
		}
	}
	return all, false, nil
}

// SimilarMemory is a near duplicate of a memory.
type SimilarMemory struct {
	ID         string  `json:"id"`
	Score      float64 `json:"score"` // as by [Likeness]; for own vectors, the cosine similarity, 0.9 to 1
	Content    string  `json:"content"`
	Collection string  `json:"collection_name"`
	SharedBy   string  `json:"shared_by,omitempty"` // as in [Memory]
}

// Likeness returns how likely it is that two texts say the same, 0 to 1, by the built-in model and by their words,
// numbers, names and negations. It is also the score of [SimilarMemory].
func Likeness(a, b string) float64 {
	x, y := similarity.Read(a), similarity.Read(b)
	return similarity.Score(x, y, similarity.CosineOf(x, y))
}

// ownDuplicate is the cosine similarity at which callers' own vectors count as near duplicates: their model is unknown.
const ownDuplicate = 0.9

// maxCompared is the most memories whose texts are compared with one.
const maxCompared = 16

// similarTo finds, for each draft that asks for it, the visible memories that say almost the same. It runs before the
// drafts are stored, so none finds itself.
func (s *Store) similarTo(ctx context.Context, drafts []kernel.Draft) ([][]SimilarMemory, error) {
	all := make([][]SimilarMemory, len(drafts))
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

func (s *Store) similar(tx db.Tx, v viewer, d *kernel.Draft) ([]SimilarMemory, error) {
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
	limit := d.Similar + 1 // one may be the memory that the draft is written over
	n := index.Near{Vector: pq.vector, Partitions: partitions, Limit: max(maxCompared, limit)}
	if len(sel.Hidden) > 0 {
		n.Keep = func(row int64) bool { return !sel.Hidden[row] }
	}
	var hits []index.Hit
	if pq.own {
		n.Least, n.Limit = ownDuplicate, limit
		hits, err = s.comparison().Near(tx, n)
	} else {
		hits, err = s.comparison().Duplicates(tx, n, similarity.Read(d.Content))
	}
	if err != nil {
		return nil, err
	}
	hits = hits[:min(len(hits), limit)]
	var rows []int64
	scores := map[int64]float64{}
	for _, h := range hits {
		rows = append(rows, h.Row)
		scores[h.Row] = min(1, float64(h.Score))
	}
	found, err := kernel.LoadRows(tx, v, kernel.WholeContent, rows)
	var similar []SimilarMemory
	for _, m := range found {
		similar = append(similar, SimilarMemory{ID: m.ID, Score: scores[m.Row], Content: m.Content, Collection: m.Collection,
			SharedBy: m.SharedBy})
	}
	return similar, err
}

// comparison compares the memories of the store.
func (s *Store) comparison() *retrieval.Comparison {
	return &retrieval.Comparison{Cache: s.index, Use: s.useIndex, Profile: s.profile,
		BuiltIn: s.embedder.Model() == Builtin().Model()}
}

// comparedBy returns the partitions of a selection without filters whose vectors are comparable with a query's.
func (s *Store) comparedBy(tx db.Tx, pq preparedQuery, sel selection) ([]int64, error) {
	ready, err := s.vectors.Ready(tx)
	compare, _ := s.comparable(pq, sel, ready)
	return slices.Collect(maps.Keys(compare)), err
}
