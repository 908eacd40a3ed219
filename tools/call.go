package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/fault"
)

// Call is one call, as reported to OnCall. It contains no stored content, search text or answer.
type Call struct {
	Tool     string              // empty: the requested tool is unknown
	Action   string              // empty: the tool has no actions, or the requested one is unknown
	Project  souvenir.ProjectRef // as named in the call, or the project of the memory that it changes
	MemoryID string              // the memory of the call; empty for none, and for failed calls
	FileID   string              // the file of the call; empty for none, and for failed calls
	Hits     *int                // number of memories that a search found; nil for other calls, and for failed ones
	Duration time.Duration
	Err      error // nil: it succeeded
}

// Activity returns the call in the form of [souvenir.Upkeep.RecordActivity], without its user.
func (c Call) Activity() souvenir.NewActivity {
	return souvenir.NewActivity{Tool: c.Tool, Action: c.Action, Project: c.Project, MemoryID: c.MemoryID, FileID: c.FileID,
		Hits: c.Hits, Duration: c.Duration, Outcome: souvenir.OutcomeOf(c.Err)}
}

// Call calls a tool by name. Arguments are a JSON object; none and null count as an empty one. The result marshals to
// one JSON object. For an unknown tool, the error is ErrNotFound with the argument "name".
func (s *Set) Call(ctx context.Context, name string, arguments json.RawMessage) (any, error) {
	var c Call
	began := time.Now()
	result, err := s.call(ctx, name, arguments, &c)
	err = fault.ByArgument(err)
	if s.onCall != nil {
		c.Duration, c.Err = time.Since(began), err
		s.onCall(ctx, c)
	}
	return result, err
}

// call calls a tool and records the call in c.
func (s *Set) call(ctx context.Context, name string, arguments json.RawMessage, c *Call) (any, error) {
	d, err := find(name)
	if err != nil {
		return nil, err
	}
	c.Tool = d.name
	given, err := d.parse(arguments)
	if err != nil {
		return nil, err
	}
	act, err := d.actionFor(given)
	if err != nil {
		return nil, err
	}
	c.Action = act.name
	if s.readOnly && act.changes() {
		return nil, readOnly(d.callName(act))
	}
	if !s.allows(act.scope) {
		return nil, missingScope(d.callName(act), act.scope)
	}
	a, err := d.decode(act, given)
	if err != nil {
		return nil, err
	}
	if named, ok := a.(interface{ ref() souvenir.ProjectRef }); ok {
		c.Project = named.ref()
	}
	memory, ofMemory := a.(*memoryArguments)
	if ofMemory && s.onCall != nil && act.changes() {
		s.noteProject(ctx, memory.ID, c)
	}
	result, err := act.call(s, ctx, a)
	if err != nil {
		return nil, err
	}
	c.MemoryID, c.FileID = subject(result)
	if found, ok := result.(searchResult); ok {
		c.Hits = &found.Total
	}
	if ofMemory {
		c.MemoryID = cmp.Or(c.MemoryID, memory.ID)
	}
	return noted(result, a.noted().warnings), nil
}

// noteProject records the project of a memory before a change or deletion, since it may be gone afterwards.
func (s *Set) noteProject(ctx context.Context, id string, c *Call) {
	if c.Project != (souvenir.ProjectRef{}) || id == "" {
		return
	}
	if m, err := s.store.Insights().MemoryStatus(ctx, id); err == nil && m.ProjectID != "" {
		c.Project.ID = m.ProjectOwner + "/" + m.ProjectID
	}
}

// subject returns the memory and the file of a call, from its result.
func subject(result any) (memory, file string) {
	switch r := result.(type) {
	case storeResult:
		return r.ID, ""
	case souvenir.StoredRule:
		return r.ID, ""
	case souvenir.StoredTodo:
		return r.ID, ""
	case completedTask:
		return r.ID, ""
	case souvenir.File:
		return r.MemoryID, r.ID
	}
	return "", ""
}
