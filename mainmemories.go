package souvenir

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/budget"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fixedcontext"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/naming"
	"github.com/souvenir-ai/souvenir/internal/shorten"
	"github.com/souvenir-ai/souvenir/internal/valid"
	"github.com/souvenir-ai/souvenir/internal/writing"
)

// The memories that stand for something: for a user (identity), or for a project (project-main).

// EventIdentity is the event type of memories that say who the agent is, and how it addresses the user. It is compared
// without regard to case.
const EventIdentity = kernel.EventIdentity

// IdentityMemory describes who an agent is and how it treats its user. It is stored as a memory of event type IDENTITY,
// with the fields as metadata; empty means not set.
type IdentityMemory struct {
	Content        string   // who the agent is, in plain language; required
	Personality    string   // personality
	Nicknames      []string // nicknames: what the agent is called
	Address        string   // address: how it addresses the user
	EmotionalState string   // emotional_state

	// ExpectedRevision makes SetIdentityMemory fail with ErrConflict when the stored identity has another revision. Zero
	// means any.
	ExpectedRevision int
}

// metadata returns the identity as a metadata patch: fields that are not set are removed.
func (i IdentityMemory) metadata() map[string]any {
	patch := map[string]any{"personality": nil, "nicknames": nil, "address": nil, "emotional_state": nil}
	for key, value := range map[string]string{"personality": i.Personality, "address": i.Address,
		"emotional_state": i.EmotionalState} {
		if value != "" {
			patch[key] = value
		}
	}
	if len(i.Nicknames) > 0 {
		patch["nicknames"] = i.Nicknames
	}
	return patch
}

// GetIdentityMemory returns the caller's identity: the newest active memory of event type IDENTITY (in any case) in the
// caller's own collections. If there is none, it is ErrNotFound.
func (s *Store) GetIdentityMemory(ctx context.Context) (Memory, error) {
	var identity Memory
	err := s.read(ctx, func(tx db.Tx, v viewer) error {
		found, err := s.identityMemory(tx, v)
		if err != nil {
			return err
		}
		if found == nil {
			return newError(KindNotFound, "",
				"no identity is stored, or you have no access to it; store a memory with event_type %s and state %s", EventIdentity,
				StateActive)
		}
		identity = memoryOf(*found)
		return nil
	})
	return identity, err
}

// hasIdentity reports whether an identity is stored.
func (s *Store) hasIdentity(ctx context.Context) (known bool, err error) {
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		found, err := s.identityMemory(tx, v)
		known = found != nil
		return err
	})
	return known, err
}

// identityMemory returns the caller's identity, nil if there is none.
func (s *Store) identityMemory(tx db.Tx, v viewer) (*kernel.Memory, error) {
	places, err := fixedcontext.Places(tx, v)
	if err != nil {
		return nil, err
	}
	row, err := s.newestActive(tx, selectPlaces(v, places, ownPlace), EventIdentity)
	if err != nil || row == 0 {
		return nil, err
	}
	found, err := kernel.LoadRows(tx, v, kernel.WholeContent, []int64{row})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// SetIdentityMemory stores the caller's identity, or changes the stored one: its content and the metadata of an
// [IdentityMemory]; everything else about it stays. As with any update, the past version is kept as a revision.
func (s *Store) SetIdentityMemory(ctx context.Context, i IdentityMemory) (_ Stored, err error) {
	defer setGoNames[IdentityMemory](&err, "metadata", "IdentityMemory")
	if err := checkExpected(i.ExpectedRevision); err != nil {
		return Stored{}, err
	}
	patch, err := jsonobject.Canonical("metadata", i.metadata())
	if err != nil {
		return Stored{}, err
	}
	own, err := kernel.Attributes{}.Patch(patch)
	if err != nil {
		return Stored{}, err
	}
	if err := valid.NewContent(i.Content); err != nil {
		return Stored{}, err
	}
	m := NewMemory{Content: i.Content, EventType: EventIdentity, State: StateActive, Metadata: own.Own}
	return hooked(ctx, s, OperationStore, "SetIdentityMemory",
		func(ctx context.Context, o *operation) (_ Stored, err error) {
			defer setGoNames[IdentityMemory](&err, "metadata", "IdentityMemory")
			o.counts(1)
			d, err := newDraft(m)
			if err != nil {
				return Stored{}, err
			}
			if o != nil {
				if d, err = o.rewrite(ctx, &m, d); err != nil {
					return Stored{}, err
				}
				for key := range patch { // takes over the changes of the hooks
					patch[key] = d.Own[key]
				}
				maps.Copy(patch, d.Own)
				if d, err = newDraft(NewMemory{Content: m.Content, EventType: EventIdentity, State: StateActive,
					Metadata: d.Own}); err != nil {
					return Stored{}, err
				}
			}
			return s.setIdentityMemory(ctx, d, patch, i.ExpectedRevision)
		})
}

func (s *Store) setIdentityMemory(ctx context.Context, d kernel.Draft, patch map[string]any,
	expected int) (Stored, error) {
	if err := s.checkWritable(); err != nil {
		return Stored{}, err
	}
	drafts := []kernel.Draft{d}
	warnings, err := s.embedDrafts(ctx, drafts, func(string, int, int) {})
	if err != nil {
		return Stored{}, wrap(err)
	}
	var stored Stored
	err = s.write(ctx, func(tx db.Tx, v viewer) error {
		w, err := s.writing().NewWriter(tx, v)
		if err != nil {
			return err
		}
		written, err := s.putIdentity(w, &drafts[0], patch, expected)
		if err != nil {
			return err
		}
		stored = storedOf(written)
		if !stored.Indexed {
			stored.Warnings = append(stored.Warnings, warnings...)
		}
		return w.Flush()
	})
	if err == nil && !stored.Indexed {
		s.wake(ctx)
	}
	return stored, err
}

// putIdentity adds the identity or overwrites the existing one.
func (s *Store) putIdentity(w *writing.Writer, d *kernel.Draft, patch map[string]any,
	expected int) (writing.Result, error) {
	before, err := s.identityMemory(w.Tx, w.Viewer)
	switch {
	case err != nil:
		return writing.Result{}, err
	case before == nil && expected > 0:
		return writing.Result{}, newError(KindConflict, "expected_revision",
			"{} is %d, but no identity is stored; omit it to store one", expected)
	case before == nil:
		return w.Add(d)
	}
	if err := before.Expect(expected); err != nil {
		return writing.Result{}, err
	}
	a, err := before.Patch(patch)
	if err == nil {
		err = a.Check()
	}
	if err != nil {
		return writing.Result{}, err
	}
	after := *before
	after.Content = d.Content
	after.Attributes = a
	return w.Update(*before, after, d)
}

// ToolCall is a call of one of the tools.
type ToolCall struct {
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
}

// suggestIdentity returns the call that stores a detected identity.
func suggestIdentity(detected map[string]any) *ToolCall {
	metadata := map[string]any{}
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(detected)) {
		texts := jsonobject.Leaves(nil, detected[key])
		if len(texts) > 0 {
			lines = append(lines, key+": "+strings.Join(texts, ", "))
		}
		if !slices.Contains(kernel.KnownKeys, key) {
			metadata[key] = detected[key]
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return &ToolCall{Tool: "memory", Arguments: map[string]any{
		"action": "store", "event_type": EventIdentity, "state": StateActive, "content": strings.Join(lines, "\n"),
		"metadata": metadata,
	}}
}

// contextText returns the search text for related memories: the query and, while no identity is stored, the detected
// identity.
func (s *Store) contextText(ctx context.Context, q ContextQuery) (string, error) {
	if len(q.DetectedIdentity) == 0 {
		return q.Query, nil
	}
	known, err := s.hasIdentity(ctx)
	if err != nil || known {
		return q.Query, err
	}
	widening := shorten.Bytes(strings.Join(jsonobject.Leaves(nil, q.DetectedIdentity), "\n"),
		min(maxWidening, MaxQuery-len(q.Query)-1))
	return strings.TrimSpace(q.Query + "\n" + widening), nil
}

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
	Related []Related `json:"related_memories"`

	Warnings []string `json:"warnings,omitempty"` // notes for the caller, for example about parts left out
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
	row, err := s.newestActive(tx, selectPlaces(v, places, inProject), EventProjectMain)
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
		direct := len(slices.DeleteFunc(slices.Clone(left), func(r Related) bool { return r.Depth > 1 }))
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
