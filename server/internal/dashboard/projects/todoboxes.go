package projects

import (
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"net/url"
	"strconv"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/shorten"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// todoRow is a line with a check box, or text between such lines.
type todoRow struct {
	Box  *todoBox
	Text string // Markdown, if it is no box
}

// todoBox is a line with a check box.
type todoBox struct {
	souvenir.Task
	Key    string // finds it again when the document has changed
	Depth  int    // indentation: 0 to 4
	Detail string // Markdown that belongs to it
}

// Mark is the form value of a visible check box.
func (b todoBox) Mark() string {
	return strconv.Itoa(b.Line) + "." + b.Key + "." + strconv.Itoa(map[bool]int{true: 1}[b.Done])
}

// Label returns the text of the box, shortened for the page, with emphasis and code rendered.
func (b todoBox) Label() template.HTML {
	const most = 600
	text := shorten.After(b.Text, most)
	form := string(web.Markdown(text))
	inner, ok := strings.CutPrefix(strings.TrimSuffix(form, "</p>\n"), "<p>")
	if !ok || strings.Contains(inner, "<p>") || !strings.HasSuffix(form, "</p>\n") { // a single line, not a block
		return template.HTML(template.HTMLEscapeString(text))
	}
	return template.HTML(inner)
}

// boxKey is a short digest of a line's text without its check box.
func boxKey(t souvenir.Task) string {
	sum := sha256.Sum256([]byte(strings.ToUpper(t.ID) + "\x00" + t.Text))
	return base64.RawURLEncoding.EncodeToString(sum[:6])
}

// rowsOf splits a section into check boxes and the text between them. Indented lines after a check box belong to
// it.
func rowsOf(section souvenir.TodoSection, boxes []souvenir.Task) []todoRow {
	byLine := map[int]souvenir.Task{}
	for _, box := range boxes {
		byLine[box.Line] = box
	}
	var rows []todoRow
	var text, blank, detail strings.Builder
	var open *todoBox // owns the indented lines that follow
	flush := func() {
		if open != nil {
			open.Detail += detail.String()
		}
		detail.Reset()
		if body := strings.Trim(text.String(), "\n"); body != "" {
			rows = append(rows, todoRow{Text: body})
		}
		text.Reset()
	}
	for i, line := range linesOf(section.Body) {
		indent := len(line) - len(strings.TrimLeft(line, " \t"))
		task, isBox := byLine[section.Line+1+i]
		switch {
		case isBox:
			flush()
			blank.Reset()
			open = &todoBox{Task: task, Key: boxKey(task), Depth: min(indent/2, 4)}
			rows = append(rows, todoRow{Box: open})
		case strings.TrimSpace(line) == "":
			blank.WriteString("\n")
		case open != nil && indent >= 2:
			detail.WriteString(blank.String() +
				strings.TrimPrefix(strings.TrimPrefix(line, "  "), strings.Repeat(" ", 2*open.Depth)) + "\n")
			blank.Reset()
		default:
			if open != nil {
				flush()
			}
			open = nil
			text.WriteString(blank.String() + line + "\n")
			blank.Reset()
		}
	}
	flush()
	return rows
}

// linesOf splits a text into lines as a to-do document counts them: they end with LF, CR LF or CR.
func linesOf(text string) []string { return strings.Split(textview.Typed(text), "\n") }

// filterRows leaves out the rows that a view hides.
func filterRows(rows []todoRow, view todoView) []todoRow {
	if view.Show == "all" {
		return rows
	}
	var some []todoRow
	for _, row := range rows {
		if row.Box != nil && (row.Box.Done == (view.Show == "done") || view.keep[row.Box.Line]) {
			some = append(some, row)
		}
	}
	return some
}

// partSize is how much of a section is shown at once.
type partSize struct{ boxes, bytes int }

// partsOf splits rows into parts, at least one. Text that is too long for a part is cut between lines.
func partsOf(rows []todoRow, size partSize) [][]todoRow {
	parts := [][]todoRow{nil}
	boxes, bytes := 0, 0
	add := func(row todoRow, length int) {
		last := len(parts) - 1
		if len(parts[last]) > 0 && (bytes+length > size.bytes || row.Box != nil && boxes == size.boxes) {
			parts, boxes, bytes = append(parts, nil), 0, 0
			last++
		}
		parts[last] = append(parts[last], row)
		bytes += length
		if row.Box != nil {
			boxes++
		}
	}
	for _, row := range rows {
		if row.Box != nil {
			row.Box.Detail = textview.CutTo(row.Box.Detail, size.bytes/2).Text
			add(row, min(len(row.Box.Text), 600)+len(row.Box.Detail))
			continue
		}
		for text := row.Text; text != ""; {
			piece := textview.CutTo(text, size.bytes)
			add(todoRow{Text: piece.Text}, len(piece.Text))
			text = text[len(piece.Text):]
		}
	}
	return parts
}

// mark is a check box with its state in the form and its wanted state.
type mark struct {
	line int
	key  string
	was  bool
	done bool
}

// marksOf reads the check boxes of a form.
func marksOf(values url.Values) ([]mark, error) {
	done := map[string]bool{}
	for _, line := range values["done"] {
		done[line] = true
	}
	var marks []mark
	for _, form := range values["box"] {
		line, rest, _ := strings.Cut(form, ".")
		key, was, ok := strings.Cut(rest, ".")
		number := wholeNumber(line, 0)
		if !ok || number < 1 || was != "0" && was != "1" {
			return nil, failure.Invalid("box", "box is "+failure.Quote(form)+
				", which is not a value of this form; open the page again")
		}
		marks = append(marks, mark{number, key, was == "1", done[line]})
	}
	return marks, nil
}

// ticked is the outcome of setting check boxes.
type ticked struct {
	changed []souvenir.Task // with their new states
	lost    int             // lines that no longer exist
	form    map[int]bool    // lines, by their current numbers, of the boxes in the form
}

// report describes the outcome in a sentence.
func (t ticked) report(todo souvenir.Todo) string {
	if len(t.changed) == 0 {
		return "Nothing has changed."
	}
	done, total := todo.Document.Progress()
	progress := " " + web.Thousands(done) + " of " + web.Count(total, "task") + " done."
	if total == 0 {
		progress = ""
	}
	if len(t.changed) > 1 {
		return web.Count(len(t.changed), "line") + " changed." + progress
	}
	name, state := t.changed[0].ID, " is done."
	if name == "" {
		name = failure.Quote(t.changed[0].Text)
	}
	if !t.changed[0].Done {
		state = " is open again."
	}
	return name + state + progress
}

// applyMarks returns the document with the check boxes set as wanted.
func applyMarks(todo souvenir.Todo, section souvenir.Section, marks []mark) (string, ticked) {
	boxes := todo.Document.Section(section).Checkboxes()
	byLine, byKey := map[int]int{}, map[string][]int{}
	for i, box := range boxes {
		byLine[box.Line] = i
		byKey[boxKey(box)] = append(byKey[boxKey(box)], i)
	}
	content := todo.Content
	result := ticked{form: map[int]bool{}}
	for _, m := range marks {
		i, there := byLine[m.line]
		if same := byKey[m.key]; there && boxKey(boxes[i]) != m.key || !there {
			if there = len(same) == 1; there { // the line has moved
				i = same[0]
			}
		}
		if there {
			result.form[boxes[i].Line] = true
		}
		switch {
		case m.was == m.done: // unchanged by the form
		case !there:
			result.lost++
		case boxes[i].Done != m.done:
			content = boxes[i].Tick(content, m.done)
			boxes[i].Done = m.done
			result.changed = append(result.changed, boxes[i])
		}
	}
	return content, result
}

// wholeNumber parses a number from an address; anything else returns otherwise.
func wholeNumber(text string, otherwise int) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return otherwise
	}
	return n
}
