package souvenir

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/check"
	"github.com/souvenir-ai/souvenir/internal/db"
)

// NewTodo describes the todo document that a project shall have.
type NewTodo struct {
	ProjectID   string // the project; an unknown one is made
	ProjectName string // the same by name; one of the two is needed
	Content     string // as ParseTodo takes it; 1 byte to 1 MiB

	Tags    []string // nil keeps those that the todo has; an empty list removes them
	Related []string // ids of visible memories to link to; nil and empty as with Tags

	// ExpectedRevision makes the call fail with ErrConflict when the todo has another revision. Zero means any.
	ExpectedRevision int
}

// StoredTodo is a todo as it was stored.
type StoredTodo struct {
	StoredRule
	Document TodoDocument
}

// MarshalJSON gives the form of a stored rule with progress.
func (t StoredTodo) MarshalJSON() ([]byte, error) {
	form, progress := t.json(), progressOf(t.Document)
	form.Progress = &progress
	return json.Marshal(form)
}

// TodoProgress counts tasks.
type TodoProgress struct {
	Done  int `json:"done"`
	Total int `json:"total"`
}

func progressOf(d TodoDocument) TodoProgress {
	done, total := d.Progress()
	return TodoProgress{done, total}
}

// Todo is the todo of a project.
type Todo struct {
	Memory
	Document TodoDocument
	Warnings []string // that the content is no todo document, for example; Document is empty then
}

// MarshalJSON gives the memory's form with sections, tasks, progress and warnings.
func (t Todo) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		memoryJSON
		Sections []TodoSection `json:"sections"`
		Tasks    []Task        `json:"tasks"`
		Progress TodoProgress  `json:"progress"`
		Warnings []string      `json:"warnings,omitempty"`
	}{t.Memory.json(), t.Document.Sections, t.Document.Tasks, progressOf(t.Document), t.Warnings})
}

// SetTodo stores a todo document in place of the one that the project has. The memory keeps its id and gets a new
// revision. Content that is no todo document is ErrInvalid.
func (s *Store) SetTodo(ctx context.Context, t NewTodo) (StoredTodo, error) {
	state, err := newRuleState(t.Content, t.Tags, t.Related)
	if err != nil {
		return StoredTodo{}, err
	}
	document, err := ParseTodo(t.Content)
	if err != nil {
		return StoredTodo{}, err
	}
	project := ProjectRef{ID: t.ProjectID, Name: t.ProjectName}
	if err := checkTodoProject(project); err != nil {
		return StoredTodo{}, err
	}
	stored, err := s.editRule(ctx, ruleEdit{project: project, ruleType: RuleTodo, expected: t.ExpectedRevision, next: state.over})
	if err != nil {
		return StoredTodo{}, err
	}
	stored.Warnings = append(stored.Warnings, document.advice()...)
	return StoredTodo{stored, document}, nil
}

// checkTodoProject sees that a project is named, also through a view that is limited to a single one.
func checkTodoProject(project ProjectRef) error {
	if project == (ProjectRef{}) {
		return todoNeedsProject()
	}
	return nil
}

// GetTodo returns the todo of a project. ErrNotFound means that it has none, or that the project cannot be seen.
func (s *Store) GetTodo(ctx context.Context, project ProjectRef) (Todo, error) {
	if err := check.Project(project.ID, project.Name); err != nil {
		return Todo{}, err
	}
	if err := checkTodoProject(project); err != nil {
		return Todo{}, err
	}
	var t Todo
	err := s.read(ctx, func(tx db.Tx, sc scope) error {
		present, err := s.presentRules(tx, sc, project, RuleTodo)
		if err == nil && len(present) == 0 {
			err = s.noRule(project, RuleTodo)
		}
		if err != nil {
			return err
		}
		t = Todo{Memory: present[0].Memory, Warnings: superfluous(present)}
		return nil
	})
	if err != nil {
		return Todo{}, err
	}
	if t.Document, err = ParseTodo(t.Content); err != nil {
		t.Warnings = append(t.Warnings, err.Error())
	}
	return t, nil
}

// TodoSectionUpdate describes a new body for one section of a project's todo.
type TodoSectionUpdate struct {
	ProjectID   string // one of the two is needed
	ProjectName string
	Section     Section

	// Content is the new body, without the heading, which stays. It has no heading of the second level and ends the fenced
	// code that it begins. Empty empties the section.
	Content string

	// ExpectedRevision makes the call fail with ErrConflict when the todo has another revision. Zero means any.
	ExpectedRevision int
}

// UpdateTodoSection replaces the body of one section. The other sections, and all headings, keep every byte, also when
// others edit them at the same time. A blank line is seen to before the next heading.
func (s *Store) UpdateTodoSection(ctx context.Context, u TodoSectionUpdate) (StoredTodo, error) {
	section := sectionLike(string(u.Section))
	if section == "" {
		return StoredTodo{}, invalid("section", "section is %s; allowed are %s", show(string(u.Section)), oneOf(todoSections))
	}
	if len(u.Content) > MaxContent {
		return StoredTodo{}, newError(KindTooLarge, "content", "content is %d bytes; the whole todo may have at most %d", len(u.Content), MaxContent)
	}
	if err := check.UTF8("content", u.Content); err != nil {
		return StoredTodo{}, err
	}
	if _, _, err := sectionBody(section, u.Content, 0); err != nil {
		return StoredTodo{}, err
	}
	var warnings []string
	stored, err := s.editTodo(ctx, ProjectRef{ID: u.ProjectID, Name: u.ProjectName}, u.ExpectedRevision, func(d TodoDocument, content string) (changed string, err error) {
		changed, warnings, err = d.replace(content, section, u.Content)
		return changed, err
	})
	if err != nil {
		return StoredTodo{}, err
	}
	if section == SectionTasks {
		warnings = slices.Concat(warnings, stored.Document.advice())
	}
	stored.Warnings = append(stored.Warnings, warnings...)
	return stored, nil
}

// TaskRef names a task of a project's todo.
type TaskRef struct {
	ProjectID   string // one of the two is needed
	ProjectName string
	TaskID      string // the whole id, as in the section Tasks; its case does not matter
}

// CompletedTask is a task that is done.
type CompletedTask struct {
	Task             Task         `json:"task"`
	AlreadyCompleted bool         `json:"already_completed"` // it was done before; nothing was changed
	Progress         TodoProgress `json:"progress"`
	Memory           Memory       `json:"memory"` // the todo
	Warnings         []string     `json:"warnings,omitempty"`
}

// CompleteTask ticks a task's checkbox in the section Tasks: one byte of the document changes, and of edits at the same
// time none is lost. A task that is done already stays as it is, without a new revision. An unknown task is ErrNotFound; the
// message lists those that there are.
func (s *Store) CompleteTask(ctx context.Context, c TaskRef) (CompletedTask, error) {
	if c.TaskID == "" {
		return CompletedTask{}, invalid("task_id", "task_id is empty; the id of a task is needed, such as T1")
	}
	if err := check.Name("task_id", c.TaskID); err != nil {
		return CompletedTask{}, err
	}
	var completed CompletedTask
	stored, err := s.editTodo(ctx, ProjectRef{ID: c.ProjectID, Name: c.ProjectName}, 0, func(d TodoDocument, content string) (string, error) {
		changed, task, err := d.complete(content, c.TaskID)
		completed = CompletedTask{Task: task, AlreadyCompleted: changed == content}
		return changed, err
	})
	if err != nil {
		return CompletedTask{}, err
	}
	completed.Progress, completed.Memory, completed.Warnings = progressOf(stored.Document), stored.Memory, stored.Warnings
	return completed, nil
}

// editTodo changes the todo of a project by a function of the document as it is.
func (s *Store) editTodo(ctx context.Context, project ProjectRef, expected int, edit func(TodoDocument, string) (string, error)) (StoredTodo, error) {
	if err := checkTodoProject(project); err != nil {
		return StoredTodo{}, err
	}
	stored, err := s.editRule(ctx, ruleEdit{project: project, ruleType: RuleTodo, expected: expected, next: func(present *ruleState) (ruleState, error) {
		if present == nil {
			return ruleState{}, s.noRule(project, RuleTodo)
		}
		d, err := ParseTodo(present.content)
		if err != nil {
			return ruleState{}, unreadableTodo(err)
		}
		next := *present
		next.content, err = edit(d, present.content)
		return next, err
	}})
	if err != nil {
		return StoredTodo{}, err
	}
	document, err := ParseTodo(stored.Content)
	return StoredTodo{stored, document}, err
}

// unreadableTodo is the error for a todo from before they were checked.
func unreadableTodo(err error) error {
	var known *Error
	if !errors.As(err, &known) {
		return err
	}
	return newError(KindInvalid, "project_id", "the todo of this project cannot be edited by section or task; store it anew. Its %s", known.Message)
}
