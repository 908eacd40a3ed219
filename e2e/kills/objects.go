package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// kind is the kind of an object.
type kind int

const (
	memory kind = iota
	rule
	todo
	file
	preferences
	member
)

func (k kind) String() string {
	return [...]string{"memory", "rule", "todo", "file", "preferences", "user in a project"}[k]
}

// state is a state of an object. The zero state means that the object does not exist.
type state struct {
	There    bool
	Trash    bool
	Text     string // content; of a file, its SHA-256; of a todo, see textOfTodo
	Note     string // a number in its metadata, or the description of a file
	Project  string
	Revision int
}

// object is something in the store that only one client changes. The mark in its text identifies it.
type object struct {
	kind    kind
	mark    string
	project string
	id      string // "" until a call was answered, or the object was found
	now     state  // after the last answered call
	next    *state // after the unanswered call
	touched bool   // since the last comparison
}

// markPrefix begins all marks, and no other word.
const markPrefix = "zq"

func mark(k kind, client, n int) string {
	return markPrefix + k.String()[:1] + strconv.Itoa(client) + "n" + strconv.Itoa(n)
}

// states returns the states that the object may have.
func (o *object) states() []state {
	if o.next == nil {
		return []state{o.now}
	}
	return []state{o.now, *o.next}
}

// accept takes over a found state, if the object may have it.
func (o *object) accept(found state) bool {
	return slices.Contains(o.states(), found)
}

const tasks = 60

// newTodo returns a document of open tasks.
func newTodo(spec string) string {
	var b strings.Builder
	for i := range tasks {
		fmt.Fprintf(&b, "- [ ] T%d A task of the harbour\n", i+1)
	}
	return "## Constitution\n\n## Spec\n\n" + spec + "\n\n## Plan\n\n## Tasks\n\n" + b.String() + "\n## Gaps\n"
}

// textOfTodo returns the text of a document: its spec, and a digit for each task, done or not.
func textOfTodo(content string) string {
	before, rest, _ := strings.Cut(content, "## Tasks")
	_, spec, _ := strings.Cut(before, "## Spec")
	spec, _, _ = strings.Cut(spec, "## Plan")
	bits := make([]byte, 0, tasks)
	for i := range tasks {
		switch {
		case strings.Contains(rest, fmt.Sprintf("- [x] T%d A task", i+1)):
			bits = append(bits, '1')
		case strings.Contains(rest, fmt.Sprintf("- [ ] T%d A task", i+1)):
			bits = append(bits, '0')
		default:
			bits = append(bits, '?')
		}
	}
	return strings.TrimSpace(spec) + " " + string(bits)
}

// ticked returns a todo's text with one more task done.
func ticked(text string, task int) string {
	at := len(text) - tasks + task
	return text[:at] + "1" + text[at+1:]
}

// withSpec returns a todo's text with another spec.
func withSpec(text, spec string) string { return spec + text[len(text)-tasks-1:] }

// memoryAnswer is a memory as tools return it.
type memoryAnswer struct {
	ID       string         `json:"id"`
	Content  string         `json:"content"`
	Metadata map[string]any `json:"metadata"`
	Revision int            `json:"revision"`
}

// seen returns the mark and the state of a memory in an answer.
func (m *memoryAnswer) seen() (string, state) {
	s := state{There: true, Text: m.Content, Revision: max(m.Revision, 1)}
	s.Project, _ = m.Metadata["project_id"].(string)
	if n, there := m.Metadata["number"]; there {
		s.Note = fmt.Sprint(n)
	}
	if m.Metadata["rule_type"] == "todo" {
		s.Text = textOfTodo(m.Content)
	}
	return markOf(m.Content), s
}

// fileAnswer is a file as the API returns it.
type fileAnswer struct {
	ID          string `json:"id"`
	Filename    string `json:"filename"`
	Description string `json:"description"`
	SHA256      string `json:"sha256"`
	Size        int    `json:"size"`
}

func (f *fileAnswer) seen() (string, state) {
	return f.Filename, state{There: true, Text: f.SHA256, Note: f.Description}
}

func (s state) String() string {
	text, err := json.Marshal(s)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
