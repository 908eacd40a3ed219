package tools

import (
	"context"

	"github.com/souvenir-ai/souvenir"
)

type todoArguments struct {
	notes
	project          `project_name:"This or project_id is needed."`
	Content          string           `json:"content" text:"verbatim,empty" doc:"store: the whole document; update_section: the new text without the heading."`
	Section          souvenir.Section `json:"section" enum:"constitution,spec,plan,tasks,gaps"`
	TaskID           string           `json:"task_id" doc:"As written in Tasks, such as T12."`
	Tags             []string         `json:"tags"`
	Related          []string         `json:"related_memory_ids"`
	ExpectedRevision int              `json:"expected_revision" doc:"Fail if the todo was changed since you read this revision."`
}

var todoTool = define[todoArguments](definition{
	name:  "todo",
	title: "Todo",
	description: `Keep a project's todo: one Markdown document with the headings ## Constitution, ## Spec, ## Plan, ## ` +
		`Tasks and ## Gaps, each once and in this order. ` +
		`A task is a line "- [ ] T1 text" under ## Tasks. Read it with memory get_context (project_rules.todo). Actions:
- store (content): replaces the whole document.
- update_section (section, content): replaces what is below one heading and leaves the rest as it is.
- complete (task_id): ticks a task; do it as soon as the task is done. Returns next_task.
All return the progress.`,
	annotations: Annotations{Idempotent: true},
	actions: []action{
		{
			name: "store", scope: souvenir.ScopeMemoryWrite,
			required: []string{"content"},
			optional: []string{"project_name", "project_id", "tags", "related_memory_ids", "expected_revision"},
			call:     with((*Set).storeTodo),
		},
		{
			name: "update_section", scope: souvenir.ScopeMemoryWrite,
			required: []string{"section", "content"},
			optional: []string{"project_name", "project_id", "expected_revision"},
			call:     with((*Set).updateTodoSection),
		},
		{
			name: "complete", scope: souvenir.ScopeMemoryWrite,
			required: []string{"task_id"}, optional: []string{"project_name", "project_id"},
			call: with((*Set).completeTask),
		},
	},
})

func (s *Set) storeTodo(ctx context.Context, a *todoArguments) (any, error) {
	return s.store.SetTodo(ctx, souvenir.NewTodo{
		ProjectID: a.ProjectID, ProjectName: a.ProjectName, Content: a.Content,
		Tags: a.Tags, Related: a.Related, ExpectedRevision: a.ExpectedRevision,
	})
}

func (s *Set) updateTodoSection(ctx context.Context, a *todoArguments) (any, error) {
	return s.store.UpdateTodoSection(ctx, souvenir.ProjectRef{ID: a.ProjectID, Name: a.ProjectName}, a.Section,
		souvenir.TodoSectionUpdate{Content: a.Content, ExpectedRevision: a.ExpectedRevision})
}

// completedTask is the result of todo complete. It omits the document: tasks are completed often.
type completedTask struct {
	ID               string                `json:"id"` // of the todo memory
	Task             souvenir.Task         `json:"task"`
	AlreadyCompleted bool                  `json:"already_completed"`
	NextTask         *souvenir.Task        `json:"next_task"` // the first open task; null: none
	Progress         souvenir.TodoProgress `json:"progress"`
	Revision         int                   `json:"revision"`
	Warnings         []string              `json:"warnings,omitempty"`
}

func (s *Set) completeTask(ctx context.Context, a *todoArguments) (any, error) {
	c, err := s.store.CompleteTask(ctx,
		souvenir.TaskRef{ProjectID: a.ProjectID, ProjectName: a.ProjectName, TaskID: a.TaskID})
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
