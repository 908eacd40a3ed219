package souvenir

import (
	"fmt"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/fault"
)

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

var todoSections = []Section{SectionConstitution, SectionSpec, SectionPlan, SectionTasks, SectionGaps}

// Heading is the line that begins the section: "## Tasks". An empty section has none.
func (s Section) Heading() string {
	if s == "" {
		return ""
	}
	return "## " + strings.ToUpper(string(s[:1])) + string(s[1:])
}

// TodoDocument is a parsed todo document.
type TodoDocument struct {
	Sections []TodoSection `json:"sections"` // the five, in order
	Tasks    []Task        `json:"tasks"`    // from the section Tasks, in order

	unnamed []int // lines of the section Tasks with a checkbox and no task id
}

// TodoSection is one part of a todo document.
type TodoSection struct {
	Section Section `json:"section"`
	Body    string  `json:"body"`  // the text after the heading's line, up to the next section's heading
	Start   int     `json:"start"` // byte offsets of the body in the document
	End     int     `json:"end"`
	Line    int     `json:"line"` // of the heading, from 1

	heading int // byte offset of the heading's line
}

// Task is a line with a checkbox and a task id: "- [ ] T12 write the migration".
type Task struct {
	ID   string `json:"id"` // T and digits, as written
	Text string `json:"text"`
	Done bool   `json:"done"`
	Line int    `json:"line"` // from 1

	box int // byte offset of the character between the brackets
}

// Progress counts the tasks: how many are done, and how many there are.
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
func ParseTodo(content string) (TodoDocument, error) {
	d, wrong := parseTodo(content)
	if wrong.count == 0 {
		return d, nil
	}
	return TodoDocument{}, invalid("content",
		"content is no todo document: %s. It needs the headings %s, once each and in this order",
		wrong, headingList(todoSections))
}

// problems collects the problems of a text; the error lists the first few.
type problems struct {
	told  []string
	count int
}

func (p *problems) add(format string, args ...any) {
	if p.count++; p.count <= 8 {
		p.told = append(p.told, fmt.Sprintf(format, args...))
	}
}

func (p problems) String() string {
	if left := p.count - len(p.told); left > 0 {
		return strings.Join(p.told, "; ") + fmt.Sprintf("; and %d more", left)
	}
	return strings.Join(p.told, "; ")
}

func headingList(sections []Section) string {
	headings := make([]string, len(sections))
	for i, s := range sections {
		headings[i] = s.Heading()
	}
	return strings.Join(headings, ", ")
}

// parseTodo returns the document as far as it can be parsed, and its problems.
func parseTodo(content string) (d TodoDocument, wrong problems) {
	d.Tasks = []Task{}
	strays := map[Section]string{} // lines that may be meant as the missing headings
	section := Section("")
	tasks := taskLines{}
	scan := newTodoScanner(content)
	if strings.HasPrefix(content, byteOrderMark) {
		scan.at = len(byteOrderMark)
	}
	for scan.next() {
		if scan.code {
			if h, ok := scan.heading(); ok && strays[sectionLike(h.text)] == "" {
				strays[sectionLike(h.text)] = fmt.Sprintf("line %d lies in the fenced code that line %d begins", scan.number,
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
					TodoSection{Section: s, Start: scan.at, End: len(content), Line: scan.number, heading: scan.start})
				section = s
			}
			continue
		}
		if like, stray := scan.stray(h, isHeading); strays[like] == "" {
			strays[like] = stray
		}
		t, ok := scan.task()
		switch {
		case section != SectionTasks || !ok:
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
		wrong.add("lines %d and %d are both the task %s; every task needs an id of its own", first, t.Line, fault.Clip(t.ID))
		return false
	}
	l[id] = t.Line
	return true
}

// end closes the section that is open, if any.
func (d *TodoDocument) end(at int) {
	if n := len(d.Sections); n > 0 {
		d.Sections[n-1].End = at
	}
}

// place returns the section that a second-level heading begins, if any, and reports a heading that is wrong or out of
// order.
func (d *TodoDocument) place(h heading, line int, written string, wrong *problems) Section {
	i := slices.IndexFunc(todoSections, func(s Section) bool { return s.Heading() == "## "+h.text })
	if i < 0 {
		if like := sectionLike(h.text); like != "" {
			wrong.add("line %d is %s, which must read %s", line, show(written), show(like.Heading()))
		} else {
			wrong.add("line %d is %s, which is none of the five sections; a heading inside a section has three # or more", line,
				show(written))
		}
		return ""
	}
	s := todoSections[i]
	for _, other := range d.Sections {
		switch {
		case other.Section == s:
			wrong.add("%s stands on line %d and again on line %d", show(s.Heading()), other.Line, line)
			return ""
		case slices.Index(todoSections, other.Section) > i:
			wrong.add("%s on line %d must come before %s on line %d", show(s.Heading()), line, show(other.Section.Heading()),
				other.Line)
			return s
		}
	}
	return s
}

// missing reports the missing sections, and which lines may have been meant as their headings.
func (d *TodoDocument) missing(strays map[Section]string, wrong *problems) {
	var missing []string
	for _, s := range todoSections {
		if d.Section(s).Section != "" {
			continue
		}
		name := show(s.Heading())
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
func (d TodoDocument) Section(s Section) TodoSection {
	for _, section := range d.Sections {
		if section.Section == s {
			return section
		}
	}
	return TodoSection{}
}

// sectionLike returns the section that a heading's text means, regardless of case and punctuation; "" for none.
func sectionLike(text string) Section {
	name := strings.ToLower(strings.Trim(text, " \t*_`:.#"))
	for _, s := range todoSections {
		if string(s) == name {
			return s
		}
	}
	return ""
}

// todoScanner scans the lines of a Markdown text and tracks fenced code. It keeps only one line, so it reads a text in
// linear time.
type todoScanner struct {
	text       string
	at         int // where the next line begins
	start, end int // the current line, without its ending
	number     int // of the current line, from 1
	code       bool
	opened     int   // line of the open fence, or of the last one
	fence      fence // the open one; the zero value for none
	// a fence in a list item: the item begins with it, or it is indented too far to count outside; it hides only tasks
	inner  fence
	before string
}

// fence is an opening code fence: its character, its length and its indentation.
type fence struct {
	character byte
	length    int
	indent    int
	item      bool // a list item begins with it, so indent is exact: any line indented less ends it
}

func newTodoScanner(text string) *todoScanner { return &todoScanner{text: text} }

func (s *todoScanner) line() string { return s.text[s.start:s.end] }

// next advances to the next line. Lines end with LF, CR LF or CR.
func (s *todoScanner) next() bool {
	if s.at >= len(s.text) {
		return false
	}
	s.before = s.line()
	s.start = s.at
	s.number++
	length := strings.IndexAny(s.text[s.at:], "\r\n")
	switch {
	case length < 0:
		s.end, s.at = len(s.text), len(s.text)
	case strings.HasPrefix(s.text[s.at+length:], "\r\n"):
		s.end, s.at = s.at+length, s.at+length+2
	default:
		s.end, s.at = s.at+length, s.at+length+1
	}
	s.follow()
	return true
}

// follow updates the fence state for the current line.
func (s *todoScanner) follow() {
	columns, rest := indentation(s.line())
	f, info := fenceOf(rest)
	f.indent = columns
	closes := func(open fence) bool {
		return f.character == open.character && f.length >= open.length && strings.Trim(info, " \t") == ""
	}
	switch {
	case s.fence.length > 0:
		s.code = true
		if closes(s.fence) && columns <= 3 {
			s.fence = fence{}
		}
		return
	case s.inner.item && (rest == "" || columns >= s.inner.indent):
		s.code = true
		if closes(s.inner) && columns <= s.inner.indent+3 {
			s.inner = fence{}
		}
		return
	case s.inner.item:
		s.inner = fence{}
	}
	switch {
	case s.inner.length > 0 && closes(s.inner) && columns >= s.inner.indent-3:
		s.inner, s.code = fence{}, false
		return
	case f.length > 0 && columns <= 3:
		s.fence, s.inner, s.opened, s.code = f, fence{}, s.number, true
		return
	}
	if f := itemFence(columns, rest); f.length > 0 && s.inner.length == 0 {
		s.inner, s.opened, s.code = f, s.number, true
		return
	}
	s.code = false
	switch {
	case s.inner.length > 0 && rest != "" && columns < s.inner.indent-3:
		s.inner = fence{}
	case s.inner.length == 0 && f.length > 0:
		s.inner = f
	}
}

// indentation counts the columns of white space before a line's text; a tab advances to the next multiple of four.
func indentation(line string) (columns int, rest string) {
	for i := range len(line) {
		switch line[i] {
		case ' ':
			columns++
		case '\t':
			columns += 4 - columns%4
		default:
			return columns, line[i:]
		}
	}
	return columns, ""
}

// fenceOf returns the code fence that a line's text begins with, and its info string.
func fenceOf(text string) (f fence, info string) {
	if text == "" || text[0] != '`' && text[0] != '~' {
		return fence{}, ""
	}
	info = strings.TrimLeft(text, text[:1])
	f = fence{character: text[0], length: len(text) - len(info)}
	if f.length < 3 || f.character == '`' && strings.Contains(info, "`") {
		return fence{}, ""
	}
	return f, info
}

// itemFence returns the code fence that a list item, whose text begins at a column, begins with: "- ```" or "1. ```".
// An item with tabs after the bullet does not count.
func itemFence(column int, item string) fence {
	const fewest = len("- ```")
	for len(item) >= fewest {
		digits := strings.TrimLeft(item, "0123456789")
		numbered := len(digits) < len(item)
		if digits == "" || len(item)-len(digits) > 9 || numbered && digits[0] != '.' && digits[0] != ')' || !numbered &&
			!strings.ContainsRune("-*+", rune(item[0])) {
			return fence{}
		}
		text := strings.TrimLeft(digits[1:], " ")
		if spaces := len(digits) - 1 - len(text); spaces < 1 || spaces > 4 { // more begin indented code
			return fence{}
		}
		column += len(item) - len(text)
		if f, _ := fenceOf(text); f.length > 0 {
			f.indent, f.item = column, true
			return f
		}
		item = text // an item may begin with another item
	}
	return fence{}
}

type heading struct {
	level int
	text  string
}

// heading parses the current line as an ATX heading, if it is one.
func (s *todoScanner) heading() (heading, bool) {
	columns, rest := indentation(s.line())
	text := strings.TrimLeft(rest, "#")
	level := len(rest) - len(text)
	if columns > 3 || level < 1 || level > 6 || text != "" && text[0] != ' ' && text[0] != '\t' {
		return heading{}, false
	}
	text = strings.Trim(text, " \t")
	if open := strings.TrimRight(text, "#"); open == "" || strings.HasSuffix(open, " ") || strings.HasSuffix(open, "\t") {
		text = strings.TrimRight(open, " \t") // a closing sequence
	}
	return heading{level, text}, true
}

// stray describes the current line if it looks like a section's heading but is not one.
func (s *todoScanner) stray(h heading, isHeading bool) (like Section, stray string) {
	columns, rest := indentation(s.line())
	written, number := s.line(), s.number
	switch {
	case isHeading:
		like = sectionLike(h.text)
	case strings.HasPrefix(rest, "##"):
		like = sectionLike(rest)
	case rest != "" && columns <= 3 &&
		(strings.Trim(rest, "- \t") == "" || strings.Trim(rest, "= \t") == ""): // an underline
		like, written, number = sectionLike(s.before), s.before, s.number-1
	}
	if like == "" {
		return "", ""
	}
	return like, fmt.Sprintf("line %d is %s, which must read %s", number, show(written), show(like.Heading()))
}

// task parses the current line as a list item with a checkbox, if it is one. Its ID is empty if it has none.
func (s *todoScanner) task() (Task, bool) {
	_, item := indentation(s.line())
	if s.inner.length > 0 || len(item) < 5 || !strings.ContainsRune("-*+", rune(item[0])) {
		return Task{}, false
	}
	_, box := indentation(item[1:])
	if len(box) == len(item)-1 || len(box) < 3 || box[0] != '[' || box[2] != ']' ||
		!strings.ContainsRune(" xX", rune(box[1])) {
		return Task{}, false
	}
	_, text := indentation(box[3:])
	if text == box[3:] && text != "" {
		return Task{}, false // "[x](link)"
	}
	t := Task{Text: strings.TrimRight(text, " \t"), Done: box[1] != ' ', Line: s.number, box: s.end - len(box) + 1}
	t.ID, t.Text = taskID(t.Text)
	return t, true
}

// taskID splits a task's text into its id and the rest. The id may be emphasised or in brackets and followed by
// punctuation: "T1 text", "**T1**: text", "[T1] text". T1a and T1.2 are not ids.
func taskID(text string) (id, rest string) {
	const emphasis = "*_`["
	named := strings.TrimLeft(text, emphasis)
	if named == "" || named[0] != 'T' && named[0] != 't' {
		return "", text
	}
	digits := strings.TrimLeft(named[1:], "0123456789")
	id = named[:len(named)-len(digits)]
	rest = strings.TrimLeft(digits, "*_`]):.,;")
	if len(id) < 2 || rest != "" && rest[0] != ' ' && rest[0] != '\t' {
		return "", text
	}
	return id, strings.TrimLeft(rest, " \t")
}
