package souvenir

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// MainMemory is what to know first of a project.
type MainMemory struct {
	Project Project `json:"project"`
	Memory  Memory  `json:"memory"` // the newest active memory of event type project-main in the project

	Files []File `json:"files"` // that are linked to it

	// Related are the memories up to two links away from it, in both directions, nearest first; each once. At most 1,000.
	Related []Related `json:"related_memories"`

	Warnings []string `json:"warnings,omitempty"` // what a caller should know, for example what was left out
}

// maxMainRelated is how many related memories are read: the nearest.
const maxMainRelated = 1000

// mainMemoryDepth is how many links away from a main memory its related memories may be.
const mainMemoryDepth = 2

// MarshalJSON gives an object of project, memory, files, related_memories and warnings.
func (m MainMemory) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Project  Project   `json:"project"`
		Memory   Memory    `json:"memory"`
		Files    []File    `json:"files"`
		Related  []Related `json:"related_memories"`
		Warnings []string  `json:"warnings,omitempty"`
	}{m.Project, m.Memory, emptyList(m.Files), emptyList(m.Related), m.Warnings})
}

// MainMemory returns the main memory of a project, with its files and what it is related to. A project that is unknown, or that has
// no active memory of event type project-main (whatever its case), is ErrNotFound.
func (s *Store) MainMemory(ctx context.Context, project ProjectRef) (MainMemory, error) {
	if err := checkNamed(project); err != nil {
		return MainMemory{}, err
	}
	var m MainMemory
	err := s.read(ctx, func(tx db.Tx, sc scope) error {
		p, err := knownProject(tx, sc, project)
		if err != nil {
			return err
		}
		m = MainMemory{Warnings: p.notes()}
		if m.Project, err = loadProject(tx, sc, p.row); err != nil {
			return err
		}
		return s.mainMemory(tx, sc, p, &m)
	})
	return m, err
}

func (s *Store) mainMemory(tx db.Tx, sc scope, p projectRow, m *MainMemory) error {
	places, err := visiblePlaces(tx, sc)
	if err != nil {
		return err
	}
	row, err := s.newestActive(tx, selectPlaces(places, func(place visiblePlace) bool { return place.project == p.row }), EventProjectMain)
	if err != nil {
		return err
	}
	found, err := s.loadRows(tx, sc, []int64{row})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return newError(KindNotFound, "", "project %s has no main memory; store a memory with event_type %s and state %s in it", show(p.ref()), EventProjectMain, StateActive)
	}
	m.Memory = found[0].Memory
	files, err := s.filesOf(tx, sc, []int64{row})
	if err != nil {
		return err
	}
	m.Files = files[row]
	var more bool
	if m.Related, more, err = s.walk(tx, sc, found[0], mainMemoryDepth, maxMainRelated); more {
		m.Warnings = append(m.Warnings, fmt.Sprintf("there are more related memories than the %d that are shown; search finds the others", len(m.Related)))
	}
	return err
}
