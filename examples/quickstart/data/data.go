// Package data has the memories and questions of the quickstart and `souvenir demo`: the memories of an assistant
// that has worked for some months for Mara, her team and her family. All of it is invented.
package data

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// - memories/*.jsonl has one memory a line, in the form in which Souvenir shows memories: content and metadata.
// - documents/PROJECT/*.md are longer; each file is one memory of the project.
// - questions.jsonl asks in other words than the memories use.
//
//go:embed memories documents questions.jsonl
var files embed.FS

// Question is a question, in other words than the memories use.
type Question struct {
	Ask    string `json:"ask"`
	Expect string `json:"expect"` // a phrase of the one memory that answers
}

// Questions reads the questions.
func Questions() ([]Question, error) {
	return readLines[Question]("questions.jsonl")
}

// Memories reads the memories of all files, in the order of the files' names.
func Memories() ([]souvenir.NewMemory, error) {
	var memories []souvenir.NewMemory
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		switch folder := path.Dir(name); {
		case folder == "memories":
			lines, err := readLines[struct {
				Content  string
				Metadata map[string]any // event_type, tags and so on may be here as well as in fields
			}](name)
			for _, line := range lines {
				memories = append(memories, souvenir.NewMemory{Content: line.Content, ShownMetadata: line.Metadata})
			}
			return err
		case strings.HasPrefix(folder, "documents/"):
			content, err := files.ReadFile(name)
			memories = append(memories, souvenir.NewMemory{
				Content:     string(content),
				EventType:   "document",
				ProjectName: path.Base(folder),
				Metadata:    map[string]any{"file": name},
			})
			return err
		}
		return nil
	})
	return memories, err
}

// readLines reads a file of one JSON value a line.
func readLines[T any](name string) ([]T, error) {
	file, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var values []T
	for decoder := json.NewDecoder(file); ; {
		var value T
		if err := decoder.Decode(&value); errors.Is(err, io.EOF) {
			return values, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s, value %d: %w", name, len(values)+1, err)
		}
		values = append(values, value)
	}
}
