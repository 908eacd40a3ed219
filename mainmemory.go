package souvenir

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/budget"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fixedcontext"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/naming"
)

// EventProjectMain is the event type of memories that say what a project is about. It is compared without regard to
// case.
const EventProjectMain = "project-main"

// MainMemory is the starting point for a project.
type MainMemory struct {
	Project Project `json:"project"`
	Memory  Memory  `json:"memory"` // the newest active memory of event type project-main in the project

	Files []File `json:"files"` // linked to it

	// Related are the memories up to two links away from it, in both directions, the nearest first, each once. At most
	// 1,000.
	Related []RelatedMemory `json:"related_memories"`

	Warnings []string `json:"warnings,omitempty"` // notes for the caller, for example about parts left out
}

// maxMainRelated is how many related memories are read, the nearest first.
const maxMainRelated = 1000

// mainMemoryDepth is how many links away from a main memory its related memories may be.
const mainMemoryDepth = 2

// MarshalJSON returns an object of project, memory, files, related_memories and warnings.
func (m MainMemory) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Project  Project         `json:"project"`
		Memory   Memory          `json:"memory"`
		Files    []File          `json:"files"`
		Related  []RelatedMemory `json:"related_memories"`
		Warnings []string        `json:"warnings,omitempty"`
	}{m.Project, m.Memory, emptyList(m.Files), emptyList(m.Related), m.Warnings})
}

// GetMainMemory returns the main memory of a project, with its files and related memories. An unknown project, or one
// without an active memory of event type project-main (in any case), is ErrNotFound.
func (s *Store) GetMainMemory(ctx context.Context, project ProjectRef) (_ MainMemory, err error) {
	defer setGoNames[ProjectRef](&err)
	if err := project.check(); err != nil {
		return MainMemory{}, err
	}
	var m MainMemory
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		p, err := naming.Known(tx, v, project.ID, project.Name)
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
	places, err := fixedcontext.Places(tx, v)
	if err != nil {
		return err
	}
	inProject := func(place fixedcontext.Place) bool { return place.Project == p.Row }
	row, err := fixedcontext.Newest(tx, s.now(), fixedcontext.Select(v, places, inProject), EventProjectMain)
	if err != nil {
		return err
	}
	found, err := kernel.LoadRows(tx, v, kernel.WholeContent, []int64{row})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return newError(KindNotFound, "",
			"project %s has no main memory; store a memory with event_type %s and state %s in it", show(p.Ref()),
			EventProjectMain, StateActive)
	}
	m.Memory = memoryOf(found[0])
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
		direct := len(slices.DeleteFunc(slices.Clone(left), func(r RelatedMemory) bool { return r.Depth > 1 }))
		m.Warnings = append(m.Warnings, fmt.Sprintf(
			"token_budget %d: related_memories shows %d of %d; omitting %d linked directly and %d further away. memory "+
				"search with filter {\"related_memory_ids\": %q} "+
				"pages through the memories that link to the main memory; its related_memory_ids are the memories that it links to",
			tokens, len(m.Related), len(related), direct, len(left)-direct, m.Memory.ID))
	}
	return m
}

// DefaultTokenBudget is the token budget of the tools get_project_main_memory and get_module_state if the call names
// none. 1 token = 4 bytes of JSON (estimate).
const DefaultTokenBudget = 8000

// budgetNotes is how many bytes the warnings about parts left out may take, of a main memory or a module's state.
const budgetNotes = 900
