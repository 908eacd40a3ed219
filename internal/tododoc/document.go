// Package tododoc parses and edits todo documents: Markdown with the headings ## Constitution, ## Spec, ## Plan,
// ## Tasks and ## Gaps, once each and in this order. Headings and fenced code are recognised as by CommonMark 0.31.2
// (sections 4.2 and 4.5); fenced code holds neither headings nor tasks.
package tododoc

import (
	"fmt"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/fault"
)

// Section names one of the five parts of a todo document.
type Section string

// The sections, in the order of a document.
const (
	Constitution Section = "constitution"
	Spec         Section = "spec"
	Plan         Section = "plan"
	Tasks        Section = "tasks"
	Gaps         Section = "gaps"
)

// Sections are the sections of a document, in order.
var Sections = []Section{Constitution, Spec, Plan, Tasks, Gaps}

// Heading is the line that begins the section: "## Tasks". An empty section has none.
func (s Section) Heading() string {
	if s == "" {
		return ""
	}
	return "## " + strings.ToUpper(string(s[:1])) + string(s[1:])
}

// Document is a parsed document.
type Document struct {
	Sections []Part // the five, in order
	Tasks    []Task // from the section Tasks, in order; never nil

	unnamed []int // lines of the section Tasks with a checkbox and no task id
}

// Part is one section of a document.
type Part struct {
	Section Section
	Body    string // the text after the heading's line, up to the next section's heading
	Start   int    // byte offsets of the body in the document
	End     int
	Line    int // of the heading, from 1

	heading int // byte offset of the heading's line
}

// Task is a line with a checkbox and a task id: "- [ ] T12 write the migration".
type Task struct {
	ID   string // T and digits, as written
	Text string
	Done bool
	Line int // from 1
	Box  int // byte offset of the character between the brackets
}

// Progress counts the tasks: how many are done, and how many there are.
func (d Document) Progress() (done, total int) {
	for _, t := range d.Tasks {
		if t.Done {
			done++
		}
	}
	return done, len(d.Tasks)
}

// Parse parses a todo document. Its errors are of the kind KindInvalid and list the problems with their lines, and how
// to fix them.
func Parse(content string) (Document, error) {
	d, wrong := parse(content)
	if wrong.count == 0 {
		return d, nil
	}
	return Document{}, fault.Invalid("content",
		"{} is not a todo document: %s. It needs the headings %s, once each and in this order",
		wrong, headingList(Sections))
}

// problems collects the problems of a text; the error lists the first few.
type problems struct {
	listed []string
	count  int
}

func (p *problems) add(format string, args ...any) {
	if p.count++; p.count <= 8 {
		p.listed = append(p.listed, fmt.Sprintf(format, args...))
	}
}

func (p problems) String() string {
	if left := p.count - len(p.listed); left > 0 {
		return strings.Join(p.listed, "; ") + fmt.Sprintf("; and %d more", left)
	}
	return strings.Join(p.listed, "; ")
}

func headingList(sections []Section) string {
	headings := make([]string, len(sections))
	for i, s := range sections {
		headings[i] = s.Heading()
	}
	return strings.Join(headings, ", ")
}

// parse returns the document as far as it can be parsed, and its problems.
func parse(content string) (d Document, wrong problems) {
	d.Tasks = []Task{}
	strays := map[Section]string{} // lines that may be meant as the missing headings
	section := Section("")
	tasks := taskLines{}
	scan := newScanner(content)
	if strings.HasPrefix(content, byteOrderMark) {
		scan.at = len(byteOrderMark)
	}
	for scan.next() {
		if scan.code {
			if h, ok := scan.heading(); ok && strays[Like(h.text)] == "" {
				strays[Like(h.text)] = fmt.Sprintf("line %d is in the fenced code that line %d begins", scan.number,
					scan.opened)
			}
			continue
		}
		h, isHeading := scan.heading()
		if isHeading && h.level == 2 {
			scan.inner = fence{} // no list item continues after it
			if s := d.place(h, scan.number, scan.line(), &wrong); s != "" {
				d.end(scan.start)
				d.Sections = append(d.Sections,
					Part{Section: s, Start: scan.at, End: len(content), Line: scan.number, heading: scan.start})
				section = s
			}
			continue
		}
		if like, stray := scan.stray(h, isHeading); strays[like] == "" {
			strays[like] = stray
		}
		t, ok := scan.task()
		switch {
		case section != Tasks || !ok:
		case t.ID == "":
			d.unnamed = append(d.unnamed, t.Line)
		case tasks.add(t, &wrong):
			d.Tasks = append(d.Tasks, t)
		}
	}
	for i := range d.Sections {
		d.Sections[i].Body = content[d.Sections[i].Start:d.Sections[i].End]
	}
	d.missing(strays, &wrong)
	return d, wrong
}

const byteOrderMark = "\ufeff" // not part of the first line

// taskLines are the lines of tasks, by folded id.
type taskLines map[string]int

// add records a task's line, and reports whether its id is new.
func (l taskLines) add(t Task, wrong *problems) bool {
	id := strings.ToUpper(t.ID)
	if first := l[id]; first != 0 {
		wrong.add("lines %d and %d are both the task %s; every task needs a unique id", first, t.Line, fault.Clip(t.ID))
		return false
	}
	l[id] = t.Line
	return true
}

// end closes the section that is open, if any.
func (d *Document) end(at int) {
	if n := len(d.Sections); n > 0 {
		d.Sections[n-1].End = at
	}
}

// place returns the section that a second-level heading begins, if any, and reports a heading that is wrong or out of
// order.
func (d *Document) place(h heading, line int, written string, wrong *problems) Section {
	i := slices.IndexFunc(Sections, func(s Section) bool { return s.Heading() == "## "+h.text })
	if i < 0 {
		if like := Like(h.text); like != "" {
			wrong.add("line %d is %s, which must read %s", line, fault.Show(written), fault.Show(like.Heading()))
		} else {
			wrong.add("line %d is %s, which is not one of the five sections; a heading inside a section has three # or more",
				line,
				fault.Show(written))
		}
		return ""
	}
	s := Sections[i]
	for _, other := range d.Sections {
		switch {
		case other.Section == s:
			wrong.add("%s is on line %d and again on line %d", fault.Show(s.Heading()), other.Line, line)
			return ""
		case slices.Index(Sections, other.Section) > i:
			wrong.add("%s on line %d must come before %s on line %d", fault.Show(s.Heading()), line,
				fault.Show(other.Section.Heading()),
				other.Line)
			return s
		}
	}
	return s
}

// missing reports the missing sections, and which lines may have been meant as their headings.
func (d *Document) missing(strays map[Section]string, wrong *problems) {
	var missing []string
	for _, s := range Sections {
		if d.Section(s).Section != "" {
			continue
		}
		name := fault.Show(s.Heading())
		if strays[s] != "" {
			name += " (" + strays[s] + ")"
		}
		missing = append(missing, name)
	}
	if len(missing) > 0 {
		wrong.add("missing: %s", strings.Join(missing, ", "))
	}
}

// Section returns one section of the document; the zero value if there is none of that name.
func (d Document) Section(s Section) Part {
	for _, section := range d.Sections {
		if section.Section == s {
			return section
		}
	}
	return Part{}
}

// Like returns the section that a heading's text means, regardless of case and punctuation; "" for none.
func Like(text string) Section {
	name := strings.ToLower(strings.Trim(text, " \t*_`:.#"))
	for _, s := range Sections {
		if string(s) == name {
			return s
		}
	}
	return ""
}
