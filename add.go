package souvenir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/check"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// NewMemory describes a memory to store. Only Content is required.
type NewMemory struct {
	// Collection is the name of one of the caller's own collections. Empty means DefaultCollection, which is created when
	// first needed; any other must exist. A memory for another user's project goes to the owner's collection of that name,
	// which is created when first needed.
	Collection string

	Content string // 1 byte to 1 MiB of valid UTF-8

	// The known keys; empty means not set. Where a field is empty, the same key in Metadata counts.
	EventType string // 1 to 64 characters
	State     string // 1 to 64 characters
	// the project it belongs to; an unknown one is created, unless it is another project's name (ErrConflict)
	ProjectID      string
	ProjectName    string // the same by name
	Importance     Importance
	Classification Classification
	RuleType       RuleType // with EventProjectRule only
	Tags           []string // at most 64 of at most 128 characters
	Related        []string // ids of visible memories to link to; at most 256

	// Metadata is anything that JSON can hold, at most 64 KiB of it.
	Metadata map[string]any

	// Embedding is a vector of the caller's own, for a collection with OwnVectors.
	Embedding []float32

	// Similar is the maximum number of near duplicates to report, 0 to 20. Zero asks for none, which is faster.
	Similar int
}

// Stored is a memory as it was stored or changed.
type Stored struct {
	Memory
	Indexed  bool      // found by meaning from now on; false: by its words only, until it has a vector
	Similar  []Similar // earlier near duplicates, the most similar first
	Warnings []string  // what the caller should know although the memory is stored

	// ProjectCreated reports whether this call created the project.
	ProjectCreated bool
}

// MarshalJSON returns the memory's form with indexed, similar, project_created and warnings.
func (s Stored) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		memoryJSON
		storedJSON
	}{s.Memory.json(), storedJSON{s.Indexed, s.Similar, s.ProjectCreated, s.Warnings}})
}

// UnmarshalJSON reads the output of MarshalJSON.
func (s *Stored) UnmarshalJSON(data []byte) error {
	var beside storedJSON
	var m Memory
	if err := withMemory(data, &m, &beside); err != nil {
		return err
	}
	*s = Stored{Memory: m, Indexed: beside.Indexed, Similar: beside.Similar, Warnings: beside.Warnings,
		ProjectCreated: beside.ProjectCreated}
	return nil
}

// storedJSON holds the additional members of a stored memory.
type storedJSON struct {
	Indexed        bool      `json:"indexed"`
	Similar        []Similar `json:"similar,omitempty"`
	ProjectCreated bool      `json:"project_created,omitempty"`
	Warnings       []string  `json:"warnings,omitempty"`
}

// Similar is a near duplicate of a memory.
type Similar struct {
	ID         string  `json:"id"`
	Score      float64 `json:"score"` // cosine similarity, 0.9 to 1
	Content    string  `json:"content"`
	Collection string  `json:"collection_name"`
	SharedBy   string  `json:"shared_by,omitempty"` // as in [Memory]
}

// AddMemory stores a memory and returns it as stored. When it returns, the memory is durable and every search finds it.
// If the embedder fails, the memory is stored anyway, can be found by its words, and is embedded later.
//
// A project has one rule of each type: storing another memory of event type project-rule changes the existing rule,
// which keeps its id, its collection, and every field not given.
func (s *Store) AddMemory(ctx context.Context, m NewMemory) (Stored, error) {
	added, err := s.AddMemories(ctx, []NewMemory{m}, nil)
	if err != nil {
		return Stored{}, err
	}
	return added[0], nil
}

// Progress receives the progress of a long operation: stage names the current step, done of total are finished. It is
// called from the goroutine that does the work: it should return quickly and must not call the store.
type Progress func(stage string, done, total int)

// BatchOptions change how [Store.AddMemories] works. Nil means the zero value.
type BatchOptions struct {
	// Progress receives the stages "embed" (counted in passages) and "store" (in memories). Nil disables it.
	Progress Progress
}

// AddMemories stores many memories in one commit: either all of them or, after an error, none. The error names the
// position of the invalid memory.
func (s *Store) AddMemories(ctx context.Context, memories []NewMemory, options *BatchOptions) ([]Stored, error) {
	var o BatchOptions
	if options != nil {
		o = *options
	}
	if o.Progress == nil {
		o.Progress = func(string, int, int) {}
	}
	drafts := make([]kernel.Draft, len(memories))
	for i, m := range memories {
		err := check.NewContent(m.Content)
		if err == nil {
			drafts[i], err = newDraft(m)
		}
		if err != nil {
			return nil, atPosition(err, i, len(memories))
		}
	}
	if err := s.checkPlaces(ctx, drafts); err != nil {
		return nil, err
	}
	warnings, err := s.embedDrafts(ctx, drafts, o.Progress)
	if err != nil {
		return nil, wrap(err)
	}
	similar, err := s.similarTo(ctx, drafts)
	if err != nil {
		return nil, err
	}
	var added []Stored
	err = s.write(ctx, func(tx db.Tx, sc scope) error {
		added = make([]Stored, 0, len(drafts))
		w, err := s.newWriter(tx, sc)
		if err != nil {
			return err
		}
		for i := range drafts {
			a, err := w.add(&drafts[i])
			if err != nil {
				return atPosition(err, i, len(drafts))
			}
			a.Similar = slices.DeleteFunc(slices.Clone(similar[i]),
				func(s Similar) bool { return s.ID == a.ID }) // an existing rule
			if !a.Indexed && !drafts[i].WordsOnly {
				a.Warnings = append(a.Warnings, warnings...)
			}
			added = append(added, a)
			if (i+1)%1000 == 0 {
				o.Progress("store", i+1, len(drafts))
			}
		}
		return w.flush()
	})
	if err != nil {
		return nil, err
	}
	o.Progress("store", len(drafts), len(drafts))
	if slices.ContainsFunc(added, func(a Stored) bool { return !a.Indexed }) {
		s.worker.wake()
	}
	return added, nil
}

// atPosition says which of several memories an error is about.
func atPosition(err error, i, n int) error {
	var known *Error
	if n > 1 && errors.As(err, &known) {
		located := *known
		located.Message = fmt.Sprintf("memories[%d]: %s", i, known.Message)
		return &located
	}
	return err
}

// newDraft checks a memory, but allows content of white space only.
func newDraft(m NewMemory) (kernel.Draft, error) {
	if m.Similar < 0 || m.Similar > 20 {
		return kernel.Draft{}, invalid("Similar", "Similar is %d; 0 to 20 are allowed", m.Similar)
	}
	d, err := kernel.NewDraft(kernel.DraftFields{Collection: m.Collection, Content: m.Content, Metadata: m.Metadata,
		Embedding: m.Embedding, Known: kernel.Attributes{
			EventType: m.EventType, State: m.State, ProjectID: m.ProjectID, ProjectName: m.ProjectName,
			Importance: string(m.Importance), Classification: string(m.Classification), RuleType: string(m.RuleType),
			Tags: m.Tags, Related: m.Related,
		}})
	d.Similar = m.Similar
	return d, err
}

// checkPlaces checks, before anything is embedded, that the collections exist, and which of them embed no texts.
func (s *Store) checkPlaces(ctx context.Context, drafts []kernel.Draft) error {
	if err := s.checkWritable(); err != nil {
		return err
	}
	return s.read(ctx, func(tx db.Tx, sc scope) error {
		ownVectors := map[placeName]bool{}
		for i := range drafts {
			d := &drafts[i]
			name := placeName{d.Collection, d.ProjectID, d.ProjectName}
			if _, known := ownVectors[name]; !known {
				at, err := s.foreseen(tx, sc, d)
				if err != nil {
					return atPosition(err, i, len(drafts))
				}
				ownVectors[name] = at.profile != 0
			}
			d.WordsOnly = ownVectors[name] && d.Vector == nil
		}
		return nil
	})
}

// foreseen is the collection that a draft would go to if it were stored now.
func (s *Store) foreseen(tx db.Tx, sc scope, d *kernel.Draft) (collectionPlace, error) {
	id := d.ProjectID
	if id == "" && d.ProjectName == "" && len(s.access.Projects) == 1 {
		id = s.access.Projects[0]
	}
	owner := sc.User
	if id != "" || d.ProjectName != "" {
		p, _, err := s.projectToWrite(tx, sc, id, d.ProjectName)
		if err == nil && p != nil {
			err = p.checkWritable() // before the collection: readers must not learn which names the owner has
		}
		if err == nil && p != nil {
			owner, err = projectOwner(tx, sc, p.row)
		}
		if err != nil {
			return collectionPlace{}, err
		}
	}
	return s.collectionFor(tx, sc, d.Collection, owner)
}

// add stores one memory.
func (w *memoryWriter) add(d *kernel.Draft) (Stored, error) {
	if d.RuleType != "" {
		return w.addRule(d)
	}
	return w.insert(d)
}

// insert creates a memory and its dependent rows.
func (w *memoryWriter) insert(d *kernel.Draft) (Stored, error) {
	place, err := w.place(d.Collection, d.ProjectID, d.ProjectName)
	if err != nil {
		return Stored{}, err
	}
	if err := w.checkIdentityMemory(storedMemory{Memory: Memory{EventType: d.EventType}}, place); err != nil {
		return Stored{}, err
	}
	now := w.store.now()
	m := Memory{
		ID: w.store.newID(), Collection: d.Collection, Owner: place.OwnerID, Content: d.Content,
		EventType: d.EventType, State: d.State, ProjectID: place.ProjectID, ProjectName: place.ProjectName,
		Importance: Importance(d.Importance), Classification: Classification(d.Classification), RuleType: RuleType(d.RuleType),
		Tags: d.Tags, Related: d.Related, Metadata: kernel.OrEmpty(d.Own),
		Revision: 1, CreatedAt: kernel.ToTime(now), UpdatedAt: kernel.ToTime(now), SharedBy: place.SharedBy,
	}
	metadata, err := json.Marshal(m.Metadata)
	if err != nil {
		return Stored{}, err
	}
	row, err := db.Insert(w.Tx, `INSERT INTO memory (uid, partition_id, content, event_type, state, importance, classification, rule_type,
			metadata, revision, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?) RETURNING id`,
		m.ID, place.Partition, m.Content, db.OrNull(m.EventType), db.OrNull(m.State), db.OrNull(string(m.Importance)),
		db.OrNull(string(m.Classification)),
		db.OrNull(string(m.RuleType)), string(metadata), now, now)
	if err != nil {
		return Stored{}, err
	}
	w.grow(place.Partition)
	if err := w.AddTags(row, m.Tags); err != nil {
		return Stored{}, err
	}
	if err := w.AddLinks(row, m.Related); err != nil {
		return Stored{}, err
	}
	if err := kernel.KeepTurns(w.Tx, row); err != nil {
		return Stored{}, err
	}
	indexed, warnings, err := w.AddPassages(row, place, d.Passages, d.Vector, m.Tags)
	stored := Stored{Memory: m, Indexed: indexed, Warnings: warnings}
	w.tell(&stored, d.ProjectID, d.ProjectName)
	return stored, err
}
