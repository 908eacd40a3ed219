package souvenir

import (
	"context"
	"encoding/json"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Direction says which way a link goes, seen from the memory where a walk began.
type Direction string

// The values of [Direction].
const (
	Outgoing Direction = "outgoing" // it links to the other one
	Incoming Direction = "incoming" // the other one links to it
)

// Related is a memory that was reached over links.
type Related struct {
	Memory
	Depth     int       // 1: linked directly
	Direction Direction // of the link over which it was reached
	Path      []string  // ids from the memory where the walk began to this one, both included
	Truncated bool      // only a part is shown; see [MainMemory.Within]
}

// MarshalJSON gives the memory's form with depth, direction and path.
func (r Related) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		memoryJSON
		relatedJSON
	}{r.Memory.json(), relatedJSON{r.Depth, r.Direction, r.Path, r.Truncated}})
}

// relatedJSON is what a related memory has beside its other members.
type relatedJSON struct {
	Depth     int       `json:"depth"`
	Direction Direction `json:"direction"`
	Path      []string  `json:"path"`
	Truncated bool      `json:"truncated,omitempty"`
}

// maxWalk bounds how far a walk over links may go.
const maxWalk = 10

// RelatedMemories walks the links of a memory in both directions, up to depth links away (1 to 10), nearest first.
// Each memory appears once, on one of its shortest paths; what this view may not see ends a path.
func (s *Store) RelatedMemories(ctx context.Context, id string, depth int) ([]Related, error) {
	if depth < 1 || depth > maxWalk {
		return nil, invalid("depth", "depth is %d; 1 to %d are allowed", depth, maxWalk)
	}
	var all []Related
	err := s.read(ctx, func(tx db.Tx, sc scope) error {
		start, err := s.memory(tx, sc, id)
		if err != nil {
			return err
		}
		all, _, err = s.walk(tx, sc, start, depth, 0)
		return err
	})
	return all, err
}

// walk goes along links, up to depth of them and to most memories (0: any number), and reports whether there are more.
func (s *Store) walk(tx db.Tx, sc scope, start storedMemory, depth, most int) (all []Related, more bool, err error) {
	type step struct {
		from      int64
		direction Direction
	}
	paths := map[int64][]string{start.row: {start.ID}}
	level := []int64{start.row}
	for d := 1; d <= depth && len(level) > 0; d++ {
		reached := map[int64]step{}
		var next []int64
		frontier := jsonList(level)
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
				UNION ALL SELECT related_id, memory_id, 'incoming', position FROM memory_link WHERE related_id IN (SELECT id FROM level)) steps
			ORDER BY way DESC, position, related_id`, frontier)
		if err != nil {
			return nil, false, err
		}
		if most > 0 && len(all)+len(next) > most {
			next, more = next[:most-len(all)], true
		}
		found, err := s.loadRows(tx, sc, next)
		if err != nil {
			return nil, false, err
		}
		level = level[:0]
		for _, m := range found {
			from := reached[m.row]
			path := append(append([]string{}, paths[from.from]...), m.ID)
			paths[m.row] = path
			level = append(level, m.row)
			all = append(all, Related{Memory: m.Memory, Depth: d, Direction: from.direction, Path: path})
		}
	}
	return all, more, nil
}
