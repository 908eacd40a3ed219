package tododoc

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/fault"
)

// Replace returns content, the document's text, with another body for a section. The heading and every byte outside the
// section stay. The body gets the document's line endings, a blank line after the heading if there was one, and a blank
// line before the next heading.
func (d Document) Replace(content string, section Section, body string) (changed string, warnings []string,
	err error) {
	s := d.Section(section)
	if body == s.Body {
		return content, nil, nil
	}
	next, _ := indentation(content[s.End:])
	if body, warnings, err = CheckBody(section, body, next); err != nil {
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
	if section != Gaps {
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

// CheckBody checks a new body of a section and strips blank lines around it, and the section's own heading, which
// callers often repeat. next is the indentation of the next heading, in columns.
func CheckBody(section Section, body string, next int) (trimmed string, warnings []string, err error) {
	from := 0 // where the body begins
	empty := true
	tasks := taskLines{}
	var wrong problems
	scan := newScanner(body)
	for scan.next() {
		h, isHeading := scan.heading()
		blank := strings.Trim(scan.line(), " \t") == ""
		switch {
		case empty && blank:
			from = scan.at
		case scan.code:
			empty = false
		case isHeading && h.level == 2 && empty && warnings == nil && Like(h.text) == section:
			from = scan.at
			warnings = append(warnings,
				fmt.Sprintf("content began with the heading %s, which the section already has; it was removed",
					fault.Show(scan.line())))
		case isHeading && h.level == 2:
			empty = false
			wrong.add("line %d is %s; a section's content has no heading of that level: use three # or more inside it, and "+
				"update each section separately", scan.number, fault.Show(scan.line()))
		default:
			empty = false
			if t, ok := scan.task(); ok && t.ID != "" && section == Tasks {
				tasks.add(t, &wrong)
			}
		}
	}
	swallows := scan.fence.length > 0 || scan.inner.item && next >= scan.inner.indent
	if swallows && section != Gaps {
		wrong.add("line %d begins fenced code without an end; it would include the sections that follow", scan.opened)
	}
	if wrong.count > 0 {
		return "", nil, fault.Invalid("content", "{} cannot be the section %s: %s", fault.Show(string(section)), wrong)
	}
	return strings.TrimRight(body[from:], " \t\r\n"), warnings, nil
}

// Complete returns content, the document's text, with a task done: it changes one byte, or none if the task was done
// before.
func (d Document) Complete(content, id string) (changed string, done Task, err error) {
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
	return content[:t.Box] + "x" + content[t.Box+1:], t, nil
}

// unknownTask is the error for an unknown task; it lists the existing ones, nearest numbers first.
func (d Document) unknownTask(id string) error {
	if len(d.Tasks) == 0 {
		return fault.New(fault.KindNotFound, "task_id",
			`{} %s is not among the tasks: there are no tasks; a task is a line such as "- [ ] T1 text" in the `+
				`section Tasks`,
			fault.Show(id))
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
	return fault.New(fault.KindNotFound, "task_id", "{} %s is not among the tasks; there are %s%s", fault.Show(id),
		strings.Join(ids, ", "), more)
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}

// Advice returns hints for the caller about a valid document.
func (d Document) Advice() []string {
	if len(d.unnamed) == 0 {
		return nil
	}
	lines := d.unnamed[:min(len(d.unnamed), 10)]
	written := make([]string, len(lines))
	for i, line := range lines {
		written[i] = strconv.Itoa(line)
	}
	return []string{fmt.Sprintf("%d checkboxes in the section Tasks have no task id (lines %s): only tasks with an id "+
		"such as T1 before their text are counted and can be completed",
		len(d.unnamed), strings.Join(written, ", "))}
}

// Checkboxes returns the lines of the section that have a checkbox, in order, with or without a task id: without one,
// ID is empty. Lines count from the beginning of the document.
func (s Part) Checkboxes() []Task {
	var all []Task
	scan := newScanner(s.Body)
	for scan.next() {
		if scan.code {
			continue
		}
		if t, ok := scan.task(); ok {
			t.Line += s.Line
			t.Box += s.Start
			all = append(all, t)
		}
	}
	return all
}

// Tick returns the document in which [Parse] or [Part.Checkboxes] found the task, with its checkbox ticked
// or cleared: at most one byte changes.
func (t Task) Tick(content string, done bool) string {
	if t.Done == done || t.Box < 1 || t.Box >= len(content) {
		return content
	}
	mark := " "
	if done {
		mark = "x"
	}
	return content[:t.Box] + mark + content[t.Box+1:]
}
