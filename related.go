package souvenir

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/budget"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/naming"
	"github.com/souvenir-ai/souvenir/internal/standing"
)

// Direction is the direction of a link, seen from the start of a walk.
type Direction string

// The values of [Direction].
const (
	Outgoing Direction = "outgoing" // it links to the other one
	Incoming Direction = "incoming" // the other one links to it
)

// Related is a memory reached over links.
type Related struct {
	Memory
	Depth     int       // 1: linked directly
	Direction Direction // of the link over which it was reached
	Path      []string  // ids from the start of the walk to this memory, both included
	Truncated bool      // shortened; see [MainMemory.Within]
}

// MarshalJSON returns the memory's form with depth, direction and path.
func (r Related) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		writtenMemory
		relatedJSON
	}{r.Memory.json(), relatedJSON{r.Depth, r.Direction, r.Path, r.Truncated}})
}

// UnmarshalJSON reads the output of MarshalJSON.
func (r *Related) UnmarshalJSON(data []byte) error {
	var beside relatedJSON
	var m Memory
	if err := withMemory(data, &m, &beside); err != nil {
		return err
	}
	*r = Related{Memory: m, Depth: beside.Depth, Direction: beside.Direction, Path: beside.Path,
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

// maxWalk bounds how far a walk over links may go.
const maxWalk = 10

// RelatedMemories follows the links of a memory in both directions, up to depth links away (1 to 10), nearest first.
// Each memory appears once, on one of its shortest paths; a memory that this view may not see ends a path.
func (s *Store) RelatedMemories(ctx context.Context, id string, depth int) (_ []Related, err error) {
	defer inGo[struct{}](&err, "id", "id", "depth", "depth")
	if depth < 1 || depth > maxWalk {
		return nil, invalid("depth", "{} is %d; 1 to %d are allowed", depth, maxWalk)
	}
	var all []Related
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		start, err := s.memory(tx, v, id)
		if err != nil {
			return err
		}
		all, _, err = s.walk(tx, v, start, depth, 0)
		return err
	})
	return all, err
}

// walk follows links, up to depth links and most memories (0: any number), and reports whether there are more.
func (s *Store) walk(tx db.Tx, v viewer, start storedMemory, depth, most int) (all []Related, more bool, err error) {
	type step struct {
		from      int64
		direction Direction
	}
	paths := map[int64][]string{start.row: {start.ID}}
	level := []int64{start.row}
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
		if most > 0 && len(all)+len(next) > most {
			next, more = next[:most-len(all)], true
		}
		found, err := s.loadRows(tx, v, next)
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

// EventProjectMain is the event type of memories that say what a project is about. It is compared without regard to
// case.
const EventProjectMain = "project-main"

// DefaultTokenBudget is how many tokens the tools get_project_main_memory and get_module_state answer with if the call
// does not say. 1 token = 4 bytes of JSON (estimate).
const DefaultTokenBudget = 8000

// How a main memory and a module's state are fitted into a token budget.
const (
	budgetNotes = 900 // bytes that the warnings about what was left out may take
	mostCounts  = 30  // event types or states that a summary within a budget counts
)

// MainMemory is the starting point for a project.
type MainMemory struct {
	Project Project `json:"project"`
	Memory  Memory  `json:"memory"` // the newest active memory of event type project-main in the project

	Files []File `json:"files"` // linked to it

	// Related are the memories up to two links away from it, in both directions, the nearest first, each once. At most
	// 1,000.
	Related []Related `json:"related_memories"`

	Warnings []string `json:"warnings,omitempty"` // what a caller should know, for example what was left out
}

// maxMainRelated is how many related memories are read, the nearest first.
const maxMainRelated = 1000

// mainMemoryDepth is how many links away from a main memory its related memories may be.
const mainMemoryDepth = 2

// MarshalJSON returns an object of project, memory, files, related_memories and warnings.
func (m MainMemory) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Project  Project   `json:"project"`
		Memory   Memory    `json:"memory"`
		Files    []File    `json:"files"`
		Related  []Related `json:"related_memories"`
		Warnings []string  `json:"warnings,omitempty"`
	}{m.Project, m.Memory, emptyList(m.Files), emptyList(m.Related), m.Warnings})
}

// MainMemory returns the main memory of a project, with its files and related memories. An unknown project, or one
// without an active memory of event type project-main (in any case), is ErrNotFound.
func (s *Store) MainMemory(ctx context.Context, project ProjectRef) (_ MainMemory, err error) {
	defer inGo[ProjectRef](&err)
	if err := checkNamed(project); err != nil {
		return MainMemory{}, err
	}
	var m MainMemory
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		p, err := knownProject(tx, v, project)
		if err != nil {
			return err
		}
		m = MainMemory{Warnings: p.Notes()}
		if m.Project, err = loadProject(tx, v, p.Row); err != nil {
			return err
		}
		return s.mainMemory(tx, v, p, &m)
	})
	return m, err
}

func (s *Store) mainMemory(tx db.Tx, v viewer, p naming.Project, m *MainMemory) error {
	places, err := standing.Places(tx, v)
	if err != nil {
		return err
	}
	inProject := func(place standing.Place) bool { return place.Project == p.Row }
	row, err := s.newestActive(tx, selectPlaces(v, places, inProject), EventProjectMain)
	if err != nil {
		return err
	}
	found, err := s.loadRows(tx, v, []int64{row})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return newError(KindNotFound, "",
			"project %s has no main memory; store a memory with event_type %s and state %s in it", show(p.Ref()),
			EventProjectMain, StateActive)
	}
	m.Memory = found[0].Memory
	files, err := s.filesOf(tx, v, []int64{row})
	if err != nil {
		return err
	}
	m.Files = files[row]
	var more bool
	if m.Related, more, err = s.walk(tx, v, found[0], mainMemoryDepth, maxMainRelated); more {
		m.Warnings = append(m.Warnings,
			fmt.Sprintf("only %d related memories are listed; search finds the others", len(m.Related)))
	}
	return err
}

// Within returns the main memory shortened until its JSON has about this many tokens (at least [MinTokenBudget]). If it
// fits, it stays whole. Otherwise the main memory gets up to half of the room, files an eighth, and related memories
// the rest: in previews, the nearest first. Warnings say what was left out, and how to get it.
func (m MainMemory) Within(tokens int) MainMemory {
	tokens = max(tokens, MinTokenBudget)
	room := budget.BytesPerToken * tokens
	if budget.Size(m) <= room {
		return m
	}
	room -= budgetNotes + budget.Size(m.Project) + budget.Size(m.Warnings)
	main := ContextMemory{Memory: m.Memory}
	main.within(room / 2)
	m.Memory, m.Warnings = main.Memory, slices.Clone(m.Warnings)
	if main.Truncated {
		m.Warnings = append(m.Warnings,
			fmt.Sprintf("token_budget %d: the main memory is shortened; memory retrieve with id %s gives the whole", tokens,
				m.Memory.ID))
	}
	room -= budget.Size(main)

	files, related := m.Files, m.Related
	m.Files = budget.Fitting(files, room/8)
	if left := len(files) - len(m.Files); left > 0 {
		m.Warnings = append(m.Warnings,
			fmt.Sprintf("token_budget %d: files shows %d of %d; GET /api/files?memory_id=%s lists all", tokens, len(m.Files),
				len(files), m.Memory.ID))
	}
	room -= budget.Size(m.Files)

	related = slices.Clone(related)
	for i := range related {
		related[i].Truncated = related[i].shorten(defaultPreview)
	}
	m.Related = budget.Fitting(related, room)
	if left := related[len(m.Related):]; len(left) > 0 {
		direct := len(slices.DeleteFunc(slices.Clone(left), func(r Related) bool { return r.Depth > 1 }))
		m.Warnings = append(m.Warnings, fmt.Sprintf(
			"token_budget %d: related_memories shows %d of %d; left out are %d linked directly and %d further away. memory "+
				"search with filter {\"related_memory_ids\": %q} "+
				"pages through the memories that link to the main memory; its related_memory_ids are the memories that it links to",
			tokens, len(m.Related), len(related), direct, len(left)-direct, m.Memory.ID))
	}
	return m
}
