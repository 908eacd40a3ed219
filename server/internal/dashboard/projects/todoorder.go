package projects

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// maxTask is the length of a new task, in characters.
const maxTask = 1000

// emptyTodo is the document of a project whose first task is added.
const emptyTodo = "## Constitution\n\n## Spec\n\n## Plan\n\n## Tasks\n\n## Gaps\n"

// addTask appends a task to the section Tasks, with the next free id. It creates the to-do if there is none.
func (s *Service) addTask(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	text := strings.Join(strings.Fields(values.Get("task")), " ")
	switch n := utf8.RuneCountInString(text); {
	case n == 0:
		return nil, failure.Invalid("task", "task is empty; write what to do")
	case n > maxTask:
		return nil, failure.Invalid("task", "task has "+strconv.Itoa(n)+" characters; at most "+strconv.Itoa(maxTask)+
			" are allowed")
	}
	return s.changeTodo(w, r, c, values, func(todo souvenir.Todo) (string, string, error) {
		if len(todo.Document.Sections) == 0 && todo.Content != "" {
			return "", "", failure.Invalid("task", "task cannot be added: the to-do does not have the five sections; edit it "+
				"first")
		}
		id := nextTask(todo.Document)
		return withTask(todo, "- [ ] "+id+" "+text), id + " is added.", nil
	})
}

// moveTask gives a check box another place among its neighbours: those of the same depth, with nothing between.
func (s *Service) moveTask(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	how, moved, _ := strings.Cut(values.Get("move"), ".")
	if how != "up" && how != "down" && how != "to" {
		return nil, failure.Invalid("move", "move is "+failure.Quote(values.Get("move"))+
			", which is not a value of this form; open the page again")
	}
	marks, err := marksOf(url.Values{"box": {moved}})
	if err != nil {
		return nil, err
	}
	var onto []mark
	if how == "to" {
		if onto, err = marksOf(url.Values{"box": {values.Get("onto")}}); err != nil {
			return nil, err
		}
	}
	section := souvenir.Section(values.Get("section"))
	return s.changeTodo(w, r, c, values, func(todo souvenir.Todo) (string, string, error) {
		lines := wholeLines(todo.Content)
		boxes := todo.Document.Section(section).Checkboxes()
		i := boxAt(boxes, marks[0])
		if i < 0 {
			return todo.Content, "", errMoved
		}
		row, at := neighbours(lines, boxes, i)
		to := at - 1
		switch how {
		case "down":
			to = at + 1
		case "to":
			target := boxAt(boxes, onto[0])
			to = slices.IndexFunc(row, func(b block) bool { return target >= 0 && b.box == boxes[target] })
			if to < 0 {
				return todo.Content, "", errMoved
			}
		}
		name := cmp.Or(boxes[i].ID, failure.Quote(boxes[i].Text))
		if to < 0 || to >= len(row) {
			return todo.Content, name + " stays: it is the " + map[bool]string{true: "first", false: "last"}[to < 0] +
				" of its list.", nil
		}
		return reordered(lines, row, at, to), fmt.Sprintf("%s is %d of %d now.", name, to+1, len(row)), nil
	})
}

// errMoved is the error for a line that has changed or gone.
var errMoved = &failure.Error{Status: http.StatusConflict,
	Message: "someone else has changed the list meanwhile, so nothing was moved; this is the current section"}

// changeTodo changes the to-do as it is at the time of writing, and shows the section, or the board. change returns the
// new document and what happened.
func (s *Service) changeTodo(w http.ResponseWriter, r *http.Request, c request.Caller, values url.Values,
	change func(souvenir.Todo) (content, notice string, err error)) (any, error) {
	head, err := s.projectAt(r, c, "To-do")
	if err != nil {
		return nil, err
	}
	view, err := viewOf(url.Values{"section": values["section"], "show": values["show"], "part": values["part"]})
	if err != nil {
		return nil, err
	}
	todo, notice, err := rewrite(r.Context(), c.Store, head.Reference(), change)
	lost := errors.Is(err, errMoved)
	if err != nil && !lost {
		return nil, err
	}
	if !web.FromScript(r) && !lost {
		query := url.Values{web.NoticeParameter: {"ticked"}}
		if values.Get("board") == "" && view.Section != "" {
			query = view.query()
			query.Set("part", values.Get("part"))
			query.Set(web.NoticeParameter, "ticked")
		}
		return web.Redirect(s.site.Path(head.Path + "/todo?" + query.Encode())), nil
	}
	if values.Get("board") != "" {
		view.Section = ""
	}
	data := s.todoPageOf(w, r, head, todo, view)
	data.Notice = notice
	section := values.Get("section")
	for i, card := range data.Sections {
		if card.Key != section {
			continue
		}
		if lost {
			data.Sections[i].Problem = web.Sentence(errMoved.Message)
		}
		if web.FromScript(r) {
			data.Sections = data.Sections[i : i+1]
			break
		}
	}
	return web.Page{Template: "projecttodo", Title: "To-do of " + head.Name, Data: data, Part: "todo-ticked"}, nil
}

// rewrite stores the to-do as change returns it. After a concurrent change, it tries again.
func rewrite(ctx context.Context, store *souvenir.Store, ref souvenir.ProjectRef,
	change func(souvenir.Todo) (content, notice string, err error)) (souvenir.Todo, string, error) {
	const tries = 20 // each lost to a concurrent change
	for try := 1; ; try++ {
		todo, err := store.GetTodo(ctx, ref)
		if errors.Is(err, souvenir.ErrNotFound) {
			if _, err := store.GetProject(ctx, ref); err != nil {
				return todo, "", err
			}
			todo, err = souvenir.Todo{}, nil
		}
		if err != nil {
			return todo, "", err
		}
		content, notice, err := change(todo)
		if err != nil || content == todo.Content {
			return todo, notice, err
		}
		var stored souvenir.StoredTodo
		err = projectTexts[textTodo].ifNew(ctx, store, ref, todo.Revision, func(ctx context.Context) (err error) {
			stored, err = store.SetTodo(ctx,
				souvenir.NewTodo{ProjectID: ref.ID, Content: content, ExpectedRevision: todo.Revision})
			return err
		})
		if errors.Is(err, souvenir.ErrConflict) && try < tries {
			continue
		}
		return souvenir.Todo{Memory: stored.Memory, Document: stored.Document, Warnings: stored.Warnings}, notice, err
	}
}

// nextTask is the id after the highest one of a document.
func nextTask(document souvenir.TodoDocument) string {
	highest := 0
	for _, task := range document.Tasks {
		if n, err := strconv.Atoi(task.ID[1:]); err == nil && n < 1<<30 {
			highest = max(highest, n)
		}
	}
	return "T" + strconv.Itoa(highest+1)
}

// withTask returns the document with a line after the last check box of the section Tasks.
func withTask(todo souvenir.Todo, line string) string {
	if todo.Content == "" {
		return strings.Replace(emptyTodo, "## Tasks\n\n", "## Tasks\n\n"+line+"\n\n", 1)
	}
	section := todo.Document.Section(souvenir.SectionTasks)
	lines := wholeLines(todo.Content)
	end := endOf(lines[section.Line-1])
	at := section.Line + len(linesOf(strings.TrimRight(section.Body, " \t\r\n")))
	if strings.TrimSpace(section.Body) == "" {
		at, line = section.Line, end+line
	} else if boxes := section.Checkboxes(); len(boxes) > 0 {
		at = blockOf(lines, boxes[len(boxes)-1]).to
	} else {
		line = end + line
	}
	if at = min(at, len(lines)); at > 0 && lines[at-1] == strings.TrimRight(lines[at-1], "\r\n") {
		line = end + line
	}
	return strings.Join(lines[:at], "") + line + end + strings.Join(lines[at:], "")
}

// block is a check box with the lines that belong to it: lines from up to but not including to.
type block struct {
	box      souvenir.Task
	from, to int // indexes of lines
	indent   int
}

// blockOf returns the block of a check box: to the next line that is not indented more, without blank lines at its end.
func blockOf(lines []string, box souvenir.Task) block {
	b := block{box: box, from: box.Line - 1, indent: indentOf(lines[box.Line-1])}
	b.to = b.from + 1
	for i := b.to; i < len(lines); i++ {
		if strings.TrimSpace(lines[i]) == "" {
			continue
		}
		if indentOf(lines[i]) <= b.indent {
			break
		}
		b.to = i + 1
	}
	return b
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// wholeLines splits a text into the same lines as linesOf, each with its end.
func wholeLines(text string) []string {
	var lines []string
	for _, line := range linesOf(text) {
		length := min(len(line)+1, len(text))
		if strings.HasPrefix(text[len(line):], "\r\n") {
			length++
		}
		lines, text = append(lines, text[:length]), text[length:]
	}
	return lines
}

// endOf returns the end of a line; LF for the last line of a text, which may have none.
func endOf(line string) string {
	return cmp.Or(line[len(strings.TrimRight(line, "\r\n")):], "\n")
}

// neighbours returns the check boxes beside one of them, itself included, and its place among them: those with the same
// indentation and only blank lines between.
func neighbours(lines []string, boxes []souvenir.Task, i int) (row []block, at int) {
	own := blockOf(lines, boxes[i])
	next := own // the block after the present ones
	blank := func(from, to int) bool {
		return from <= to && strings.TrimSpace(strings.Join(lines[from:to], "")) == ""
	}
	for k := i - 1; k >= 0; k-- {
		if b := blockOf(lines, boxes[k]); b.indent == own.indent {
			if !blank(b.to, next.from) {
				break
			}
			row, next = append(row, b), b
		}
	}
	slices.Reverse(row)
	row, at = append(row, own), len(row)
	for _, box := range boxes[i+1:] {
		if b := blockOf(lines, box); b.indent == own.indent {
			if !blank(row[len(row)-1].to, b.from) {
				break
			}
			row = append(row, b)
		}
	}
	return row, at
}

// reordered returns the document with a block moved to another place of its row. The lines between the blocks stay in
// place.
func reordered(lines []string, row []block, from, to int) string {
	order := slices.Clone(row)
	moved := order[from]
	order = slices.Insert(slices.Delete(order, from, from+1), to, moved)
	end := endOf(lines[row[0].from])
	var out strings.Builder
	last := 0
	for i, place := range row {
		out.WriteString(strings.Join(lines[last:place.from], ""))
		text := strings.Join(lines[order[i].from:order[i].to], "")
		if text == strings.TrimRight(text, "\r\n") {
			text += end
		}
		out.WriteString(text)
		last = place.to
	}
	out.WriteString(strings.Join(lines[last:], ""))
	return out.String()
}

// boxAt finds a check box of the form: by its line, or by its text if that is unique; -1: it is gone.
func boxAt(boxes []souvenir.Task, m mark) int {
	found := -1
	for i, box := range boxes {
		if boxKey(box) != m.key {
			continue
		}
		if box.Line == m.line {
			return i
		}
		if found >= 0 {
			return -1
		}
		found = i
	}
	return found
}
