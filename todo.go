package souvenir

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/tododoc"
	"github.com/souvenir-ai/souvenir/internal/valid"
	"github.com/souvenir-ai/souvenir/internal/writing"
)

// NewTodo describes a todo document to store for a project.
type NewTodo struct {
	ProjectID   string // the project; an unknown one is created
	ProjectName string // the project by name; one of the two is required
	Content     string // as ParseTodo takes it; 1 byte to 1 MiB

	Tags    []string // nil keeps the todo's tags; an empty list removes them
	Related []string // ids of visible memories to link to; nil and empty as with Tags

	// ExpectedRevision makes the call fail with ErrConflict when the todo has another revision. Zero means any.
	ExpectedRevision int
}

// StoredTodo is a todo as stored.
type StoredTodo struct {
	StoredRule
	Document TodoDocument
}

// MarshalJSON returns the form of a stored rule with progress.
func (t StoredTodo) MarshalJSON() ([]byte, error) {
	form, progress := t.json(), progressOf(t.Document)
	form.Progress = &progress
	return json.Marshal(form)
}

// UnmarshalJSON reads the output of MarshalJSON. The document is parsed from the content.
func (t *StoredTodo) UnmarshalJSON(data []byte) error {
	var rule StoredRule
	if err := rule.UnmarshalJSON(data); err != nil {
		return err
	}
	*t = StoredTodo{StoredRule: rule}
	if document, err := ParseTodo(rule.Content); err == nil { // as GetTodo does
		t.Document = document
	}
	return nil
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
	Warnings []string // for example, that the content is not a todo document; Document is then empty
}

// MarshalJSON returns the memory's form with sections, tasks, progress and warnings.
func (t Todo) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		writtenMemory
		Sections []TodoSection `json:"sections"`
		Tasks    []Task        `json:"tasks"`
		Progress TodoProgress  `json:"progress"`
		Warnings []string      `json:"warnings,omitempty"`
	}{written(t.Memory), t.Document.Sections, t.Document.Tasks, progressOf(t.Document), t.Warnings})
}

// UnmarshalJSON reads the output of MarshalJSON. The document is parsed from the content.
func (t *Todo) UnmarshalJSON(data []byte) error {
	var beside struct {
		Warnings []string `json:"warnings"`
	}
	var m Memory
	if err := withMemory(data, &m, &beside); err != nil {
		return err
	}
	*t = Todo{Memory: m, Warnings: beside.Warnings}
	if document, err := ParseTodo(m.Content); err == nil {
		t.Document = document
	}
	return nil
}

// SetTodo stores a todo document, replacing the project's current one. The memory keeps its id and gets a new revision.
// Content that is not a todo document is ErrInvalid.
func (s *Store) SetTodo(ctx context.Context, t NewTodo) (_ StoredTodo, err error) {
	defer setGoNames[NewTodo](&err)
	state, err := kernel.NewRuleText(t.Content, t.Tags, t.Related)
	if err != nil {
		return StoredTodo{}, err
	}
	document, err := tododoc.Parse(t.Content)
	if err != nil {
		return StoredTodo{}, err
	}
	project := ProjectRef{ID: t.ProjectID, Name: t.ProjectName}
	if err := checkTodoProject(project); err != nil {
		return StoredTodo{}, err
	}
	stored, err := hooked(ctx, s, OperationStore, "SetTodo",
		func(ctx context.Context, o *operation) (_ StoredRule, err error) {
			defer setGoNames[NewTodo](&err)
			state, err := o.rule(ctx, project, RuleTodo, state)
			if err == nil {
				document, err = tododoc.Parse(state.Content)
			}
			if err != nil {
				return StoredRule{}, err
			}
			return s.editRule(ctx,
				ruleEdit{project: project, ruleType: RuleTodo, expected: t.ExpectedRevision, next: state.Over})
		})
	if err != nil {
		return StoredTodo{}, err
	}
	stored.Warnings = append(stored.Warnings, document.Advice()...)
	return StoredTodo{stored, todoDocument(document)}, nil
}

// checkTodoProject checks that a project is named, even through a view that is limited to a single one.
func checkTodoProject(project ProjectRef) error {
	if project == (ProjectRef{}) {
		return writing.TodoNeedsProject()
	}
	return nil
}

// GetTodo returns the todo of a project. ErrNotFound means that it has none, or that the project is not visible.
func (s *Store) GetTodo(ctx context.Context, project ProjectRef) (_ Todo, err error) {
	defer setGoNames[ProjectRef](&err)
	if err := valid.Project(project.ID, project.Name); err != nil {
		return Todo{}, err
	}
	if err := checkTodoProject(project); err != nil {
		return Todo{}, err
	}
	var t Todo
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		present, err := s.presentRules(tx, v, project, RuleTodo)
		if err == nil && len(present) == 0 {
			err = s.noRule(project, RuleTodo)
		}
		if err != nil {
			return err
		}
		t = Todo{Memory: memoryOf(present[0]), Warnings: writing.Superfluous(present)}
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
	// Content is the new body, without the heading, which stays. It must not contain a second-level heading or leave
	// fenced code open. Empty clears the section.
	Content string

	// ExpectedRevision makes the call fail with ErrConflict when the todo has another revision. Zero means any.
	ExpectedRevision int
}

// UpdateTodoSection replaces the body of one section. The other sections, and all headings, keep every byte, even if
// others edit them at the same time. It ensures a blank line before the next heading.
func (s *Store) UpdateTodoSection(ctx context.Context, project ProjectRef, section Section,
	u TodoSectionUpdate) (_ StoredTodo, err error) {
	defer setGoNames[ProjectRef](&err, "section", "section")
	defer setGoNames[TodoSectionUpdate](&err)
	known := tododoc.Like(string(section))
	if known == "" {
		return StoredTodo{}, invalid("section", "{} is %s; expected %s", show(string(section)),
			oneOf(tododoc.Sections))
	}
	return hooked(ctx, s, OperationUpdate, "UpdateTodoSection",
		func(ctx context.Context, o *operation) (_ StoredTodo, err error) {
			defer setGoNames[ProjectRef](&err, "section", "section")
			defer setGoNames[TodoSectionUpdate](&err)
			o.in(project)
			o.counts(1)
			err = u.check(known)
			if err == nil && o != nil {
				if err = o.section(ctx, &u); err == nil {
					err = u.check(known)
				}
			}
			if err != nil {
				return StoredTodo{}, err
			}
			return s.updateTodoSection(ctx, project, known, u)
		})
}

// check validates the update of a section.
func (u *TodoSectionUpdate) check(section tododoc.Section) error {
	if len(u.Content) > MaxContent {
		return newError(KindTooLarge, "content", "{} is %d bytes; the whole todo may have at most %d",
			len(u.Content), MaxContent)
	}
	if err := valid.Text("content", u.Content); err != nil {
		return err
	}
	_, _, err := tododoc.CheckBody(section, u.Content, 0)
	return err
}

func (s *Store) updateTodoSection(ctx context.Context, project ProjectRef, known tododoc.Section,
	u TodoSectionUpdate) (StoredTodo, error) {
	var warnings []string
	stored, document, err := s.editTodo(ctx, project, u.ExpectedRevision,
		func(d tododoc.Document, content string) (changed string, err error) {
			changed, warnings, err = d.Replace(content, known, u.Content)
			return changed, err
		})
	if err != nil {
		return StoredTodo{}, err
	}
	if known == tododoc.Tasks {
		warnings = slices.Concat(warnings, document.Advice())
	}
	stored.Warnings = append(stored.Warnings, warnings...)
	return StoredTodo{stored, todoDocument(document)}, nil
}

// TaskRef names a task of a project's todo.
type TaskRef struct {
	ProjectID   string // one of the two is required
	ProjectName string
	TaskID      string // the whole id, as in the section Tasks; its case does not matter
}

// CompletedTask is a completed task.
type CompletedTask struct {
	Task             Task         `json:"task"`
	AlreadyCompleted bool         `json:"already_completed"` // it was done before; nothing was changed
	Progress         TodoProgress `json:"progress"`
	Memory           Memory       `json:"memory"` // the todo
	Warnings         []string     `json:"warnings,omitempty"`
}

// CompleteTask ticks a task's checkbox in the section Tasks: one byte of the document changes, and no concurrent edit
// is lost. A task that is already done does not change, and makes no new revision. An unknown task is ErrNotFound; the
// message lists the existing ones.
func (s *Store) CompleteTask(ctx context.Context, c TaskRef) (_ CompletedTask, err error) {
	defer setGoNames[TaskRef](&err)
	if c.TaskID == "" {
		return CompletedTask{}, invalid("task_id", "{} is empty; expected the id of a task, such as T1")
	}
	if err := valid.Name("task_id", c.TaskID); err != nil {
		return CompletedTask{}, err
	}
	return hooked(ctx, s, OperationUpdate, "CompleteTask",
		func(ctx context.Context, o *operation) (_ CompletedTask, err error) {
			defer setGoNames[TaskRef](&err)
			o.in(ProjectRef{ID: c.ProjectID, Name: c.ProjectName})
			o.counts(1)
			if err := o.update(ctx, &MemoryUpdate{}); err != nil {
				return CompletedTask{}, err
			}
			return s.completeTask(ctx, c)
		})
}

func (s *Store) completeTask(ctx context.Context, c TaskRef) (CompletedTask, error) {
	var completed CompletedTask
	stored, document, err := s.editTodo(ctx, ProjectRef{ID: c.ProjectID, Name: c.ProjectName}, 0,
		func(d tododoc.Document, content string) (string, error) {
			changed, task, err := d.Complete(content, c.TaskID)
			completed = CompletedTask{Task: todoTask(task), AlreadyCompleted: changed == content}
			return changed, err
		})
	if err != nil {
		return CompletedTask{}, err
	}
	done, total := document.Progress()
	completed.Progress, completed.Memory, completed.Warnings = TodoProgress{done, total}, stored.Memory, stored.Warnings
	return completed, nil
}

// editTodo changes the todo of a project by a function of the current document.
func (s *Store) editTodo(ctx context.Context, project ProjectRef, expected int,
	edit func(tododoc.Document, string) (string, error)) (stored StoredRule, after tododoc.Document, err error) {
	if err := checkTodoProject(project); err != nil {
		return StoredRule{}, tododoc.Document{}, err
	}
	next := func(present *kernel.RuleText) (kernel.RuleText, error) {
		if present == nil {
			return kernel.RuleText{}, s.noRule(project, RuleTodo)
		}
		d, err := tododoc.Parse(present.Content)
		if err != nil {
			return kernel.RuleText{}, unreadableTodo(err)
		}
		next := *present
		next.Content, err = edit(d, present.Content)
		return next, err
	}
	stored, err = s.editRule(ctx, ruleEdit{project: project, ruleType: RuleTodo, expected: expected, next: next})
	if err != nil {
		return StoredRule{}, tododoc.Document{}, err
	}
	after, err = tododoc.Parse(stored.Content)
	return stored, after, err
}

// unreadableTodo is the error for a todo that was stored before todos were checked.
func unreadableTodo(err error) error {
	var known *Error
	if !errors.As(err, &known) {
		return err
	}
	return newError(KindInvalid, "project_id",
		"the todo of this project cannot be edited by section or task; store it again. Its %s", known.Message)
}

// Section names one of the five parts of a todo document.
type Section string

// The values of [Section], in the order of a todo document.
const (
	SectionConstitution Section = "constitution"
	SectionSpec         Section = "spec"
	SectionPlan         Section = "plan"
	SectionTasks        Section = "tasks"
	SectionGaps         Section = "gaps"
)

// Heading returns the line that begins the section: "## Tasks". An empty section has none.
func (s Section) Heading() string { return tododoc.Section(s).Heading() }

// TodoDocument is a parsed todo document.
type TodoDocument struct {
	Sections []TodoSection `json:"sections"` // the five, in order
	Tasks    []Task        `json:"tasks"`    // from the section Tasks, in order
}

// TodoSection is one part of a todo document.
type TodoSection struct {
	Section Section `json:"section"`
	Body    string  `json:"body"`  // the text after the heading's line, up to the next section's heading
	Start   int     `json:"start"` // byte offsets of the body in the document
	End     int     `json:"end"`
	Line    int     `json:"line"` // of the heading, from 1
}

// Task is a line with a checkbox and a task id: "- [ ] T12 write the migration".
type Task struct {
	ID   string `json:"id"` // T and digits, as written
	Text string `json:"text"`
	Done bool   `json:"done"`
	Line int    `json:"line"` // from 1

	box int // byte offset of the character between the brackets
}

// Progress returns how many tasks are done, and how many there are in total.
func (d TodoDocument) Progress() (done, total int) {
	for _, t := range d.Tasks {
		if t.Done {
			done++
		}
	}
	return done, len(d.Tasks)
}

// ParseTodo parses a todo document: Markdown with the headings ## Constitution, ## Spec, ## Plan, ## Tasks and ## Gaps,
// once each, in this order, and no other heading of that level. Text before the first one belongs to no section.
// Headings and fenced code are recognised as by CommonMark 0.31.2 (sections 4.2 and 4.5); fenced code holds neither
// headings nor tasks.
//
// A task is a list item (-, * or +, at any indentation) of the section Tasks with a checkbox and an id, which is T and
// digits. Two tasks with the same id are an error.
//
// Errors are ErrInvalid. They list the problems with their lines, and how to fix them.
func ParseTodo(content string) (_ TodoDocument, err error) {
	defer setGoNames[struct{}](&err, "content", "content")
	d, err := tododoc.Parse(content)
	if err != nil {
		return TodoDocument{}, err
	}
	return todoDocument(d), nil
}

func todoDocument(parsed tododoc.Document) TodoDocument {
	d := TodoDocument{Sections: make([]TodoSection, len(parsed.Sections)), Tasks: make([]Task, len(parsed.Tasks))}
	for i, p := range parsed.Sections {
		d.Sections[i] = TodoSection{Section(p.Section), p.Body, p.Start, p.End, p.Line}
	}
	for i, t := range parsed.Tasks {
		d.Tasks[i] = todoTask(t)
	}
	return d
}

func todoTask(t tododoc.Task) Task { return Task{t.ID, t.Text, t.Done, t.Line, t.Box} }

// Section returns one section of the document; the zero value if there is none of that name.
func (d TodoDocument) Section(s Section) TodoSection {
	for _, section := range d.Sections {
		if section.Section == s {
			return section
		}
	}
	return TodoSection{}
}

// Checkboxes returns the lines of the section that have a checkbox, in order, with or without a task id: without one,
// ID is empty. Lines count from the beginning of the document. The section must come from [ParseTodo].
func (s TodoSection) Checkboxes() []Task {
	var all []Task
	for _, t := range (tododoc.Part{Body: s.Body, Start: s.Start, Line: s.Line}).Checkboxes() {
		all = append(all, todoTask(t))
	}
	return all
}

// Tick returns the document in which [ParseTodo] or [TodoSection.Checkboxes] found the task, with its checkbox ticked
// or cleared: at most one byte changes.
func (t Task) Tick(content string, done bool) string {
	return tododoc.Task{Done: t.Done, Box: t.box}.Tick(content, done)
}

// section lets the hooks rewrite the content of a todo's section. The result must be checked again.
func (o *operation) section(ctx context.Context, u *TodoSectionUpdate) error {
	change := MemoryUpdate{Content: new(u.Content), ExpectedRevision: u.ExpectedRevision}
	if err := o.update(ctx, &change); err != nil {
		return err
	}
	if change.Content != nil {
		u.Content = *change.Content
	}
	return nil
}
