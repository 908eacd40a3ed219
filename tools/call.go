package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// Call is what somebody who watches the calls is told of one: nothing of what was stored, searched for or answered.
type Call struct {
	Tool     string              // empty: the tool that was asked for is none
	Action   string              // empty: the tool has none, or the one that was asked for is none
	Project  souvenir.ProjectRef // as the call named it, or in which the memory lies that it changes
	MemoryID string              // that the call was about; empty for none, and for calls that failed
	FileID   string              // likewise
	Duration time.Duration
	Err      error // nil: it succeeded
}

// Activity is the call as [souvenir.Upkeep.RecordActivity] takes it, without whom it was for.
func (c Call) Activity() souvenir.NewActivity {
	return souvenir.NewActivity{Tool: c.Tool, Action: c.Action, Project: c.Project, MemoryID: c.MemoryID, FileID: c.FileID,
		Duration: c.Duration, Outcome: souvenir.OutcomeOf(c.Err)}
}

// Call calls a tool by name. Arguments are a JSON object; none and null are as good as an empty one. The result
// marshals to one JSON object. An unknown tool is ErrNotFound with the argument "name".
func (s *Set) Call(ctx context.Context, name string, arguments json.RawMessage) (any, error) {
	var c Call
	began := time.Now()
	result, err := s.call(ctx, name, arguments, &c)
	if s.onCall != nil {
		c.Duration, c.Err = time.Since(began), err
		s.onCall(ctx, c)
	}
	return result, err
}

// call calls a tool and notes what is known of the call.
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
	act, err := d.choose(given)
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
	if ofMemory {
		c.MemoryID = cmp.Or(c.MemoryID, memory.ID)
	}
	return noted(result, a.noted().warnings), nil
}

// noteProject notes the project of a memory that is to be changed or deleted: afterwards it may be gone.
func (s *Set) noteProject(ctx context.Context, id string, c *Call) {
	if c.Project != (souvenir.ProjectRef{}) || id == "" {
		return
	}
	if m, err := s.store.Insights().GetMemoryStatus(ctx, id); err == nil && m.ProjectID != "" {
		c.Project.ID = m.ProjectOwner + "/" + m.ProjectID
	}
}

// subject is the memory and the file that a call was about, by its result.
func subject(result any) (memory, file string) {
	switch r := result.(type) {
	case storedMemory:
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
