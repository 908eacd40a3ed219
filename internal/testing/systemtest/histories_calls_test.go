package systemtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	. "github.com/souvenir-ai/souvenir"
)

// call is one operation of a history.
type call struct {
	Object   string // MemoryKind/..., and so on
	Verb     string
	Text     string // the text that it writes, unique in the history
	ID       string // id of the memory
	Revision int    // expected revision; 0 for any
}

// outcome is the result of a call.
type outcome struct {
	Unknown  bool // it may have happened, may happen later, or never
	Error    string
	Text     string
	ID       string
	Revision int
	Created  bool
}

// Errors of calls that did not happen.
const notFound, conflict = "not found", "conflict"

const anna, ben = "anna", "ben"

const tasksOfHistory = 4

// kinds are the kinds of objects, each with a function for the calls on one.
var kinds = map[string]func(ctx context.Context, s *Store, c call) (outcome, error){
	"memory": onMemory, "rule": onRule, "todo": onTodo, "member": onMember,
}

func (c call) kind() string {
	kind, _, _ := strings.Cut(c.Object, "-")
	return kind
}

func (c call) project() ProjectRef { return ProjectRef{ID: c.Object} }

// carryOut calls the store.
func (c call) carryOut(ctx context.Context, s *Store) outcome {
	o, err := kinds[c.kind()](ctx, s, c)
	switch {
	case errors.Is(err, ErrNotFound):
		return outcome{Error: notFound}
	case errors.Is(err, ErrConflict):
		return outcome{Error: conflict}
	case isAny(err, ErrOutcomeUnknown, ErrBusy, ErrClosed):
		return outcome{Unknown: true}
	case err != nil:
		return outcome{Error: err.Error()} // fits no model
	}
	return o
}

func of(m Memory) outcome { return outcome{Text: m.Content, ID: m.ID, Revision: m.Revision} }

func onMemory(ctx context.Context, s *Store, c call) (o outcome, err error) {
	s = s.As(Access{User: anna})
	var m Memory
	var stored StoredMemory
	switch c.Verb {
	case "get":
		m, err = s.GetMemoryByKey(ctx, MemoryKey{Key: c.Object})
		return of(m), err
	case "put":
		stored, err = s.PutMemory(ctx, NewMemory{Key: c.Object, Content: c.Text})
	case "update":
		stored, err = s.UpdateMemory(ctx, c.ID, MemoryUpdate{Content: &c.Text, ExpectedRevision: c.Revision})
	case "delete":
		return outcome{}, s.DeleteMemory(ctx, c.ID, nil)
	}
	o = of(stored.Memory)
	o.Created = stored.Effect == EffectAdded
	return o, err
}

func onRule(ctx context.Context, s *Store, c call) (outcome, error) {
	s = s.As(Access{User: anna})
	switch c.Verb {
	case "get":
		m, err := s.GetRule(ctx, c.project(), RuleDo)
		return of(m), err
	case "delete":
		return outcome{}, s.DeleteRule(ctx, c.project(), RuleDo)
	}
	stored, err := s.SetRule(ctx,
		NewRule{ProjectID: c.Object, Type: RuleDo, Content: c.Text, ExpectedRevision: c.Revision})
	o := of(stored.Memory)
	o.Created = stored.Created
	return o, err
}

// The id names a task. The text of a todo is its Spec and one bit per task for done.
func onTodo(ctx context.Context, s *Store, c call) (o outcome, err error) {
	s = s.As(Access{User: anna})
	switch c.Verb {
	case "make":
		var tasks strings.Builder
		for i := range tasksOfHistory {
			fmt.Fprintf(&tasks, "- [ ] T%03d A task\n", i+1)
		}
		_, err = s.SetTodo(ctx, NewTodo{ProjectID: c.Object,
			Content: "## Constitution\n\n## Spec\n\nnone\n\n## Plan\n\n## Tasks\n\n" + tasks.String() + "\n## Gaps\n"})
	case "get":
		var todo Todo
		todo, err = s.GetTodo(ctx, c.project())
		o = outcome{Text: textOfTodo(todo.Content), Revision: todo.Revision}
	case "section":
		var stored StoredTodo
		stored, err = s.UpdateTodoSection(ctx, c.project(), SectionSpec,
			TodoSectionUpdate{Content: c.Text, ExpectedRevision: c.Revision})
		o.Revision = stored.Revision
	case "complete":
		var done CompletedTask
		done, err = s.CompleteTask(ctx, TaskRef{ProjectID: c.Object, TaskID: c.ID})
		o.Created, o.Revision = !done.AlreadyCompleted, done.Memory.Revision
	}
	return o, err
}

// textOfTodo returns the text that the model has for a todo.
func textOfTodo(content string) string {
	before, tasks, _ := strings.Cut(content, "## Tasks")
	_, spec, _ := strings.Cut(before, "## Spec")
	spec, _, _ = strings.Cut(spec, "## Plan")
	bits := make([]byte, tasksOfHistory)
	for i := range bits {
		bits[i] = '0'
		if strings.Contains(tasks, fmt.Sprintf("- [x] T%03d", i+1)) {
			bits[i] = '1'
		}
	}
	return strings.TrimSpace(spec) + " " + string(bits)
}

// The text is a role.
func onMember(ctx context.Context, s *Store, c call) (o outcome, err error) {
	project := ProjectRef{ID: anna + "/" + c.Object}
	switch c.Verb {
	case "make":
		_, err = s.As(Access{User: anna}).AddProject(ctx, NewProject{ID: c.Object})
	case "get":
		var all []Member
		all, err = s.As(Access{User: anna}).Members(ctx, ProjectRef{ID: c.Object})
		if i := slices.IndexFunc(all, func(m Member) bool { return m.User == ben }); i >= 0 {
			o.Text = string(all[i].Role)
		}
	case "see": // reports what the member can do
		var p Project
		p, err = s.As(Access{User: ben}).GetProject(ctx, project)
		if errors.Is(err, ErrNotFound) {
			return outcome{}, nil
		}
		o.Text = string(p.Role)
	case "add":
		_, err = s.AddMember(ctx, NewMember{Project: project, User: ben, Role: MemberRole(c.Text)})
	case "update":
		_, err = s.UpdateMember(ctx, project, ben, MemberUpdate{Role: MemberRole(c.Text)})
	case "delete":
		err = s.DeleteMember(ctx, project, ben)
	}
	return o, err
}
