package migrate

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// serverMemory reads the graph of @modelcontextprotocol/server-memory, memory.json or memory.jsonl: a line for each
// entity and relation. An entity becomes a memory of its observations and relations, with links to the related
// entities.
func serverMemory(_ context.Context, path string) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		relations := map[string][]graphLine{}
		for line, err := range graphLines(path) {
			if err != nil {
				yield(Item{}, err)
				return
			}
			if line.Type == "relation" {
				relations[line.From] = append(relations[line.From], line)
			}
		}
		for line, err := range graphLines(path) {
			if err == nil && line.Type != "entity" {
				continue
			}
			if !yield(line.item(relations[line.Name]), err) || err != nil {
				return
			}
			delete(relations, line.Name) // another entity of this name is not imported
		}
	}
}

// graphLine is an entity or a relation.
type graphLine struct {
	Type         string   `json:"type"`
	Name         string   `json:"name"`
	EntityType   string   `json:"entityType"`
	Observations []string `json:"observations"`
	From         string   `json:"from"`
	To           string   `json:"to"`
	RelationType string   `json:"relationType"`
}

// graphLines yields the lines of a graph.
func graphLines(path string) iter.Seq2[graphLine, error] {
	return inFiles(path, []string{"memory.json", "memory.jsonl"}, func(in io.Reader) iter.Seq2[graphLine, error] {
		return func(yield func(graphLine, error) bool) {
			bounded := &limited{in, maxObject}
			lines := bufio.NewReaderSize(bounded, 64<<10)
			for n := 1; ; n++ {
				bounded.left = maxObject
				text, err := lines.ReadBytes('\n')
				end := errors.Is(err, io.EOF)
				var line graphLine
				switch {
				case err != nil && !end:
					yield(graphLine{}, fmt.Errorf("line %d: %w", n, err))
					return
				case len(strings.TrimSpace(string(text))) == 0:
				default:
					err := json.Unmarshal(text, &line)
					if err == nil && line.Type != "entity" && line.Type != "relation" {
						err = fmt.Errorf("its type is %.40q; expected entity or relation", line.Type)
					}
					if err != nil {
						yield(graphLine{}, fmt.Errorf("line %d: %w", n, err))
						return
					}
					if !yield(line, nil) {
						return
					}
				}
				if end {
					return
				}
			}
		}
	})
}

// item returns the memory of an entity.
func (g graphLine) item(relations []graphLine) Item {
	var b strings.Builder
	b.WriteString(g.Name)
	if g.EntityType != "" {
		fmt.Fprintf(&b, " (%s)", g.EntityType)
	}
	for _, o := range g.Observations {
		b.WriteString("\n- " + o)
	}
	var links []string
	for _, r := range relations {
		fmt.Fprintf(&b, "\n- %s %s", r.RelationType, r.To)
		if r.To != g.Name {
			links = append(links, keyOf("server-memory", r.To))
		}
	}
	return Item{Memory: souvenir.NewMemory{Key: keyOf("server-memory", g.Name), Content: b.String(),
		Tags: tagsOf(g.EntityType)}, Links: links}
}
