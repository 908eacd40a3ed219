package main

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/souvenir-ai/souvenir/eval/questions"
)

// row is a line of a set: a memory ("type": "corpus") or a question ("type": "query").
type row struct {
	Type string `json:"type"`
	Conv string `json:"conv"` // each has a collection of its own; a question is asked in its own one

	// of a memory
	ID      string `json:"dia_id,omitempty"`
	Session any    `json:"session,omitempty"`
	Date    string `json:"session_date,omitempty"`
	Time    string `json:"session_ts,omitempty"`
	Speaker string `json:"speaker,omitempty"`
	Text    string `json:"text,omitempty"`
	Caption string `json:"caption,omitempty"`
	// what is stored as metadata; nil: conv, dia_id, session, speaker, session_date and session_ts, as texts
	Metadata map[string]any `json:"metadata,omitempty"`

	// of a question
	QID      string   `json:"qid,omitempty"`
	Category string   `json:"cat_name,omitempty"`
	Language string   `json:"language,omitempty"`
	Question string   `json:"question,omitempty"`
	Evidence []string `json:"evidence,omitempty"` // ids of the memories that answer it
	// nothing answers it; without it, an empty evidence means that the answer is not known
	Unanswerable bool `json:"unanswerable,omitempty"`
	// "dev" to fit parameters on, "test" to judge; empty: the set does not say
	Half string `json:"half,omitempty"`
}

// content is the text that a memory is stored with.
func (r row) content() string {
	text := r.Text
	if r.Caption != "" {
		text += " [shared image: " + r.Caption + "]"
	}
	if r.Metadata != nil || r.Speaker == "" {
		return text
	}
	text = r.Speaker + ": " + text
	if r.Date != "" {
		text = "(" + r.Date + ") " + text
	}
	return text
}

// stored is the metadata that a memory is stored with.
func (r row) stored() map[string]any {
	if r.Metadata != nil {
		return r.Metadata
	}
	metadata := map[string]any{}
	for key, value := range map[string]any{
		"conv": r.Conv, "dia_id": r.ID, "session": r.Session, "speaker": r.Speaker,
		"session_date": r.Date, "session_ts": r.Time,
	} {
		if value != nil && value != "" {
			metadata[key] = fmt.Sprint(value)
		}
	}
	return metadata
}

// set is a set of memories and questions.
type set struct {
	name      string
	convs     []string // in the order of their first memories
	memories  map[string][]row
	questions []row
}

// own is the name of the project's own set in place of a path; "own:SIZE" has that many memories in each collection.
const own = "own"

func readSet(path string) (set, error) {
	if name, size, _ := strings.Cut(path, ":"); name == own {
		return ownSet(path, size)
	}
	file, err := open(path)
	if err != nil {
		return set{}, err
	}
	defer file.Close()
	s, err := parseSet(file)
	s.name, _, _ = strings.Cut(filepath.Base(path), ".")
	return s, err
}

// ownSet returns the project's own set.
func ownSet(name, size string) (set, error) {
	n := questions.DefaultSize
	if size != "" {
		var err error
		if n, err = strconv.Atoi(size); err != nil {
			return set{}, fmt.Errorf("%q is no size of a collection; give a number, as in own:1500", size)
		}
	}
	collections, asked, err := questions.Make(n)
	s := set{name: name, memories: map[string][]row{}}
	for _, c := range collections {
		s.convs = append(s.convs, c.Name)
		for _, m := range c.Memories {
			s.memories[c.Name] = append(s.memories[c.Name],
				row{Type: "corpus", Conv: c.Name, ID: m.ID, Text: m.Text, Metadata: m.Metadata})
		}
	}
	for _, q := range asked {
		r := row{Type: "query", Conv: q.Collection, QID: q.ID, Category: q.Category, Language: q.Language,
			Question: q.Text, Half: q.Half, Evidence: []string{}, Unanswerable: q.Evidence == ""}
		if q.Evidence != "" {
			r.Evidence = append(r.Evidence, q.Evidence)
		}
		s.questions = append(s.questions, r)
	}
	return s, err
}

// printSet prints a set as JSON Lines.
func printSet(args []string, w io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("print has %d sets; expected one", len(args))
	}
	s, err := readSet(args[0])
	if err != nil {
		return err
	}
	lines := json.NewEncoder(w)
	lines.SetEscapeHTML(false)
	for _, conv := range s.convs {
		for _, r := range s.memories[conv] {
			if err := lines.Encode(r); err != nil {
				return err
			}
		}
	}
	for _, q := range s.questions {
		if err := lines.Encode(q); err != nil {
			return err
		}
	}
	return nil
}

func parseSet(r io.Reader) (set, error) {
	s := set{memories: map[string][]row{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 4<<20)
	for n := 1; lines.Scan(); n++ {
		var r row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return s, fmt.Errorf("line %d: %w", n, err)
		}
		switch r.Type {
		case "corpus":
			if s.memories[r.Conv] == nil {
				s.convs = append(s.convs, r.Conv)
			}
			s.memories[r.Conv] = append(s.memories[r.Conv], r)
		case "query":
			if len(r.Evidence) > 0 || r.Unanswerable {
				s.questions = append(s.questions, r)
			}
		default:
			return s, fmt.Errorf("line %d has the type %q; corpus and query are known", n, r.Type)
		}
	}
	if err := lines.Err(); err != nil {
		return s, err
	}
	for _, q := range s.questions {
		if s.memories[q.Conv] == nil {
			return s, fmt.Errorf("question %s belongs to %q, of which there are no memories", q.QID, q.Conv)
		}
	}
	return s, nil
}

// open opens a file, unpacked if its name ends in .gz.
func open(path string) (io.ReadCloser, error) {
	file, err := os.Open(path)
	if err != nil || !strings.HasSuffix(path, ".gz") {
		return file, err
	}
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{unpacked, file}, nil
}
