package souvenir

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/fault"
)

// replace returns the document, which is content, with another body for a section. The heading and every byte outside
// the section stay. The body gets the document's line endings, a blank line after the heading if there was one, and a
// blank line before the next heading.
func (d TodoDocument) replace(content string, section Section, body string) (changed string, warnings []string, err error) {
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

// lineEnding is the line ending that a text ends its first line with; empty when it has but one line.
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

// sectionBody checks a new body of a section and takes off what surrounds it: blank lines, and the section's own heading,
// which callers like to repeat. The heading that follows is indented by so many columns.
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
			warnings = append(warnings, fmt.Sprintf("content began with the heading %s, which the section has already; it was left out", show(scan.line())))
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

// complete returns the document, which is content, with a task done: one byte is another one, or none if it was done
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

// unknownTask says which tasks there are, those with the nearest numbers first.
func (d TodoDocument) unknownTask(id string) error {
	if len(d.Tasks) == 0 {
		return newError(KindNotFound, "task_id", `task_id %s is not among the tasks: there are none; a task is a line such as "- [ ] T1 text" in the section Tasks`, show(id))
	}
	number := func(id string) int {
		n, _ := strconv.Atoi(strings.TrimLeft(id, "Tt")) // no number counts as 0
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
	return newError(KindNotFound, "task_id", "task_id %s is not among the tasks; there are %s%s", show(id), strings.Join(ids, ", "), more)
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}

// advice says what a caller should know about a document that is in order.
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

// Checkboxes returns the lines of the section that have a checkbox, in order, with a task id or without: an ID is empty where there
// is none. Lines count from the beginning of the document. The section is one that [ParseTodo] has found.
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

// Tick returns the document in which [ParseTodo] or [TodoSection.Checkboxes] has found the task, with its checkbox ticked or not: at most
// one byte is another one.
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
