package souvenir

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/check"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
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
		memoryJSON
		Sections []TodoSection `json:"sections"`
		Tasks    []Task        `json:"tasks"`
		Progress TodoProgress  `json:"progress"`
		Warnings []string      `json:"warnings,omitempty"`
	}{t.Memory.json(), t.Document.Sections, t.Document.Tasks, progressOf(t.Document), t.Warnings})
}

// SetTodo stores a todo document, replacing the project's present one. The memory keeps its id and gets a new revision.
// Content that is not a todo document is ErrInvalid.
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
	stored, err := s.editRule(ctx,
		ruleEdit{project: project, ruleType: RuleTodo, expected: t.ExpectedRevision, next: state.over})
	if err != nil {
		return StoredTodo{}, err
	}
	stored.Warnings = append(stored.Warnings, document.advice()...)
	return StoredTodo{stored, document}, nil
}

// checkTodoProject checks that a project is named, even through a view that is limited to a single one.
func checkTodoProject(project ProjectRef) error {
	if project == (ProjectRef{}) {
		return todoNeedsProject()
	}
	return nil
}

// GetTodo returns the todo of a project. ErrNotFound means that it has none, or that the project is not visible.
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
	ProjectID   string // one of the two is required
	ProjectName string
	Section     Section

	// Content is the new body, without the heading, which stays. It must not contain a second-level heading or leave
	// fenced code open. Empty clears the section.
	Content string

	// ExpectedRevision makes the call fail with ErrConflict when the todo has another revision. Zero means any.
	ExpectedRevision int
}

// UpdateTodoSection replaces the body of one section. The other sections, and all headings, keep every byte, even if
// others edit them at the same time. It ensures a blank line before the next heading.
func (s *Store) UpdateTodoSection(ctx context.Context, u TodoSectionUpdate) (StoredTodo, error) {
	section := sectionLike(string(u.Section))
	if section == "" {
		return StoredTodo{}, invalid("section", "section is %s; allowed are %s", show(string(u.Section)), oneOf(todoSections))
	}
	if len(u.Content) > MaxContent {
		return StoredTodo{}, newError(KindTooLarge, "content", "content is %d bytes; the whole todo may have at most %d",
			len(u.Content), MaxContent)
	}
	if err := check.UTF8("content", u.Content); err != nil {
		return StoredTodo{}, err
	}
	if _, _, err := sectionBody(section, u.Content, 0); err != nil {
		return StoredTodo{}, err
	}
	var warnings []string
	stored, err := s.editTodo(ctx, ProjectRef{ID: u.ProjectID, Name: u.ProjectName}, u.ExpectedRevision,
		func(d TodoDocument, content string) (changed string, err error) {
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
func (s *Store) CompleteTask(ctx context.Context, c TaskRef) (CompletedTask, error) {
	if c.TaskID == "" {
		return CompletedTask{}, invalid("task_id", "task_id is empty; the id of a task is needed, such as T1")
	}
	if err := check.Name("task_id", c.TaskID); err != nil {
		return CompletedTask{}, err
	}
	var completed CompletedTask
	stored, err := s.editTodo(ctx, ProjectRef{ID: c.ProjectID, Name: c.ProjectName}, 0,
		func(d TodoDocument, content string) (string, error) {
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

// editTodo changes the todo of a project by a function of the current document.
func (s *Store) editTodo(ctx context.Context, project ProjectRef, expected int,
	edit func(TodoDocument, string) (string, error)) (StoredTodo, error) {
	if err := checkTodoProject(project); err != nil {
		return StoredTodo{}, err
	}
	stored, err := s.editRule(ctx,
		ruleEdit{project: project, ruleType: RuleTodo, expected: expected, next: func(present *ruleState) (ruleState, error) {
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
	return newError(KindInvalid, "project_id",
		"the todo of this project cannot be edited by section or task; store it anew. Its %s", known.Message)
}

// replace returns content, the document's text, with another body for a section. The heading and every byte outside the
// section stay. The body gets the document's line endings, a blank line after the heading if there was one, and a blank
// line before the next heading.
func (d TodoDocument) replace(content string, section Section, body string) (changed string, warnings []string,
	err error) {
	s := d.Section(section)
	if body == s.Body {
		return content, nil, nil
	}
	next, _ := indentation(content[s.End:])
	if body, warnings, err = sectionBody(section, body, next); err != nil {
		return "", nil, err
	}
	ending, before := lineEnding(content[s.heading:s.Start]), ""
	if ending == "" { // the document ends with the heading
		ending = cmp.Or(lineEnding(content), "\n")
		before = ending
	}
	if first, _, more := strings.Cut(s.Body, ending); more && strings.Trim(first, " \t\r\n") == "" {
		before = ending
	}
	after := ending
	if section != SectionGaps {
		after += ending
	}
	if body == "" {
		before, after = "", after[len(ending):]
	}
	body = strings.ReplaceAll(body, "\r\n", "\n")
	if ending != "\n" {
		body = strings.ReplaceAll(body, "\n", ending)
	}
	return content[:s.Start] + before + body + after + content[s.End:], warnings, nil
}

// lineEnding returns the line ending of a text's first line; empty if it has only one line.
func lineEnding(text string) string {
	at := strings.IndexAny(text, "\r\n")
	switch {
	case at < 0:
		return ""
	case strings.HasPrefix(text[at:], "\r\n"):
		return "\r\n"
	}
	return text[at : at+1]
}

// sectionBody checks a new body of a section and strips blank lines around it, and the section's own heading, which
// callers often repeat. next is the indentation of the next heading, in columns.
func sectionBody(section Section, body string, next int) (trimmed string, warnings []string, err error) {
	from := 0 // where the body begins
	empty := true
	tasks := taskLines{}
	var wrong problems
	scan := newTodoScanner(body)
	for scan.next() {
		h, isHeading := scan.heading()
		blank := strings.Trim(scan.line(), " \t") == ""
		switch {
		case empty && blank:
			from = scan.at
		case scan.code:
			empty = false
		case isHeading && h.level == 2 && empty && warnings == nil && sectionLike(h.text) == section:
			from = scan.at
			warnings = append(warnings,
				fmt.Sprintf("content began with the heading %s, which the section has already; it was left out", show(scan.line())))
		case isHeading && h.level == 2:
			empty = false
			wrong.add("line %d is %s; a section's content has no heading of that level: use three # or more inside it, and update each section by itself", scan.number, show(scan.line()))
		default:
			empty = false
			if t, ok := scan.task(); ok && t.ID != "" && section == SectionTasks {
				tasks.add(t, &wrong)
			}
		}
	}
	swallows := scan.fence.length > 0 || scan.inner.item && next >= scan.inner.indent
	if swallows && section != SectionGaps {
		wrong.add("line %d begins fenced code that nothing ends; it would swallow the sections that follow", scan.opened)
	}
	if wrong.count > 0 {
		return "", nil, invalid("content", "content cannot be the section %s: %s", show(string(section)), wrong)
	}
	return strings.TrimRight(body[from:], " \t\r\n"), warnings, nil
}

// complete returns content, the document's text, with a task done: it changes one byte, or none if the task was done
// before.
func (d TodoDocument) complete(content, id string) (changed string, done Task, err error) {
	if plain, rest := taskID(strings.TrimSpace(id)); rest == "" && plain != "" {
		id = plain
	}
	i := slices.IndexFunc(d.Tasks, func(t Task) bool { return strings.EqualFold(t.ID, id) })
	if i < 0 {
		return "", Task{}, d.unknownTask(id)
	}
	t := d.Tasks[i]
	if t.Done {
		return content, t, nil
	}
	t.Done = true
	return content[:t.box] + "x" + content[t.box+1:], t, nil
}

// unknownTask is the error for an unknown task; it lists the existing ones, nearest numbers first.
func (d TodoDocument) unknownTask(id string) error {
	if len(d.Tasks) == 0 {
		return newError(KindNotFound, "task_id",
			`task_id %s is not among the tasks: there are none; a task is a line such as "- [ ] T1 text" in the section Tasks`,
			show(id))
	}
	number := func(id string) int {
		n, _ := strconv.Atoi(strings.TrimLeft(id, "Tt")) // a missing number counts as 0
		return n
	}
	ids := make([]string, len(d.Tasks))
	for i, t := range d.Tasks {
		ids[i] = fault.Clip(t.ID)
	}
	wanted := number(strings.TrimSpace(id))
	slices.SortStableFunc(ids, func(a, b string) int { return cmp.Compare(abs(number(a)-wanted), abs(number(b)-wanted)) })
	const most = 10
	more := ""
	if left := len(ids) - most; left > 0 {
		ids, more = ids[:most], fmt.Sprintf(" and %d more", left)
	}
	return newError(KindNotFound, "task_id", "task_id %s is not among the tasks; there are %s%s", show(id),
		strings.Join(ids, ", "), more)
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}

// advice returns what a caller should know about a valid document.
func (d TodoDocument) advice() []string {
	if len(d.unnamed) == 0 {
		return nil
	}
	lines := d.unnamed[:min(len(d.unnamed), 10)]
	written := make([]string, len(lines))
	for i, line := range lines {
		written[i] = strconv.Itoa(line)
	}
	return []string{fmt.Sprintf("%d checkboxes in the section Tasks have no task id (lines %s): only tasks with an id such as T1 before their text are counted and can be completed",
		len(d.unnamed), strings.Join(written, ", "))}
}

// Checkboxes returns the lines of the section that have a checkbox, in order, with or without a task id: without one,
// ID is empty. Lines count from the beginning of the document. The section must come from [ParseTodo].
func (s TodoSection) Checkboxes() []Task {
	var all []Task
	scan := newTodoScanner(s.Body)
	for scan.next() {
		if scan.code {
			continue
		}
		if t, ok := scan.task(); ok {
			t.Line += s.Line
			t.box += s.Start
			all = append(all, t)
		}
	}
	return all
}

// Tick returns the document in which [ParseTodo] or [TodoSection.Checkboxes] found the task, with its checkbox ticked
// or cleared: at most one byte changes.
func (t Task) Tick(content string, done bool) string {
	if t.Done == done || t.box < 1 || t.box >= len(content) {
		return content
	}
	mark := " "
	if done {
		mark = "x"
	}
	return content[:t.box] + mark + content[t.box+1:]
}
