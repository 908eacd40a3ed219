package tools

import (
	"context"

	"github.com/souvenir-ai/souvenir"
)

var todoTool = definition{
	name:  "todo",
	title: "Todo",
	description: `Keep a project's todo: one Markdown document with the headings ## Constitution, ## Spec, ## Plan, ## Tasks and ## Gaps, each once and in this order. ` +
		`A task is a line "- [ ] T1 text" under ## Tasks. Read it with memory get_context (project_rules.todo). Actions:
- store (content): replaces the whole document.
- update_section (section, content): replaces what is below one heading and leaves the rest as it is.
- complete (task_id): ticks a task; do it as soon as the task is done. Returns next_task.
All return the progress.`,
	annotations: Annotations{Idempotent: true},
	parameters: []parameter{
		{name: "project_name", kind: word, description: "This or project_id is needed."},
		{name: "project_id", kind: word},
		{name: "content", kind: text, keepsEmpty: true, description: "store: the whole document; update_section: the new text without the heading."},
		{name: "section", kind: word, allowed: []string{"constitution", "spec", "plan", "tasks", "gaps"}},
		{name: "task_id", kind: word, description: "As written in Tasks, such as T12."},
		{name: "tags", kind: words},
		{name: "related_memory_ids", kind: words},
		{name: "expected_revision", kind: integer, description: "Fail if the todo was changed since you read this revision."},
	},
	actions: []action{
		{
			name: "store", scope: souvenir.ScopeMemoryWrite,
			required: []string{"content"},
			optional: []string{"project_name", "project_id", "tags", "related_memory_ids", "expected_revision"},
			call:     (*Set).storeTodo,
		},
		{
			name: "update_section", scope: souvenir.ScopeMemoryWrite,
			required: []string{"section", "content"},
			optional: []string{"project_name", "project_id", "expected_revision"},
			call:     (*Set).updateTodoSection,
		},
		{
			name: "complete", scope: souvenir.ScopeMemoryWrite,
			required: []string{"task_id"}, optional: []string{"project_name", "project_id"},
			call: (*Set).completeTask,
		},
	},
}

// storedTodo is the result of todo store and todo update_section.
type storedTodo struct {
	ID       string                `json:"id"`
	Created  bool                  `json:"created"`
	Updated  bool                  `json:"updated"`
	Revision int                   `json:"revision"`
	Progress souvenir.TodoProgress `json:"progress"`
	Indexed  bool                  `json:"indexed"`
	Memory   souvenir.Memory       `json:"memory"`

	ProjectCreated bool     `json:"project_created,omitempty"` // there was no such project
	Warnings       []string `json:"warnings,omitempty"`
}

func todoResult(t souvenir.StoredTodo) storedTodo {
	done, total := t.Document.Progress()
	r := ruleResult(t.StoredRule)
	return storedTodo{r.ID, r.Created, r.Updated, r.Revision, souvenir.TodoProgress{Done: done, Total: total}, r.Indexed, r.Memory, r.ProjectCreated, r.Warnings}
}

func (s *Set) storeTodo(ctx context.Context, a *arguments) (any, error) {
	project := a.project()
	stored, err := s.store.SetTodo(ctx, souvenir.NewTodo{
		ProjectID: project.ID, ProjectName: project.Name, Content: a.text("content"),
		Tags: a.words("tags"), Related: a.words("related_memory_ids"), ExpectedRevision: a.integer("expected_revision"),
	})
	if err != nil {
		return nil, err
	}
	return todoResult(stored), nil
}

func (s *Set) updateTodoSection(ctx context.Context, a *arguments) (any, error) {
	project := a.project()
	stored, err := s.store.UpdateTodoSection(ctx, souvenir.UpdateTodoSection{
		ProjectID: project.ID, ProjectName: project.Name, Section: souvenir.Section(a.text("section")), Content: a.text("content"),
		ExpectedRevision: a.integer("expected_revision"),
	})
	if err != nil {
		return nil, err
	}
	return todoResult(stored), nil
}

// completedTask is the result of todo complete. The document is not in it: a todo is ticked off often.
type completedTask struct {
	ID               string                `json:"id"` // of the todo memory
	Task             souvenir.Task         `json:"task"`
	AlreadyCompleted bool                  `json:"already_completed"`
	NextTask         *souvenir.Task        `json:"next_task"` // the first that is still to be done; null: none
	Progress         souvenir.TodoProgress `json:"progress"`
	Revision         int                   `json:"revision"`
	Warnings         []string              `json:"warnings,omitempty"`
}

func (s *Set) completeTask(ctx context.Context, a *arguments) (any, error) {
	project := a.project()
	c, err := s.store.CompleteTask(ctx, souvenir.CompleteTask{ProjectID: project.ID, ProjectName: project.Name, TaskID: a.text("task_id")})
	if err != nil {
		return nil, err
	}
	result := completedTask{c.Memory.ID, c.Task, c.AlreadyCompleted, nil, c.Progress, c.Memory.Revision, c.Warnings}
	document, err := souvenir.ParseTodo(c.Memory.Content)
	if err != nil {
		return nil, err
	}
	for i := range document.Tasks {
		if !document.Tasks[i].Done {
			result.NextTask = &document.Tasks[i]
			break
		}
	}
	return result, nil
}
