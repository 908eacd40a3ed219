package souvenir

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/check"
	"github.com/souvenir-ai/souvenir/internal/db"
)

// Module is a module that memories name.
type Module struct {
	Name     string `json:"module_name"`
	Memories int    `json:"memories"` // that name it
}

const (
	maxModules    = 100 // that are listed
	maxModuleName = 128 // characters
)

// Modules are named in the metadata of memories or by a tag; one that names its module in both ways is counted for its metadata. A tag
// without "module:" before it may name one, too, but nothing tells it from any other tag. The range of the index is a little wider than the tags it is for. The first query
// goes along its index, so that nothing is sorted.
const (
	modulesInMetadata = `SELECT max(` + db.Module + `), count(*) FROM memory ` + db.ByModule + `
		WHERE ` + db.Module + ` IS NOT NULL AND partition_id IN ` + db.Integers1 + ` GROUP BY lower(` + db.Module + `)`
	modulesInTags = `SELECT max(substr(t.tag, 8)), count(DISTINCT t.memory_id) FROM memory_tag t ` + db.InOrder + ` memory m ON m.id = t.memory_id
		WHERE lower(t.tag) >= 'module:' AND lower(t.tag) < 'module<' AND substr(t.tag, 7, 1) = ':' AND m.partition_id IN ` + db.Integers1 + `
			AND coalesce(lower(trim(` + db.Module + `)) <> lower(trim(substr(t.tag, 8))), true)
		GROUP BY lower(t.tag)`
)

// Modules returns the modules that the memories of a project name, by module_name in their metadata or by a tag module:NAME, or for the
// zero ProjectRef those that all visible memories name: of them the 100 with the most memories, the most first. Names that differ in case
// only are one. An unknown project has none, which is no error.
func (h *Insights) Modules(ctx context.Context, project ProjectRef) ([]Module, error) {
	s := h.s
	if err := check.Project(project.ID, project.Name); err != nil {
		return nil, err
	}
	var all []Module
	err := s.read(ctx, func(tx db.Tx, sc scope) error {
		all = []Module{}
		sel, err := s.selection(tx, sc, Query{ProjectID: project.ID, ProjectName: project.Name})
		if err != nil || len(sel.partitions) == 0 {
			return err
		}
		named := map[string]Module{}
		for _, query := range []string{modulesInMetadata, modulesInTags} {
			err := tx.Each(func(row db.Rows) error {
				var name string
				var n int
				if err := row.Scan(&name, &n); err != nil {
					return err
				}
				if name = strings.Trim(name, " "); name == "" || utf8.RuneCountInString(name) > maxModuleName {
					return nil
				}
				m := named[asciiLower(name)]
				named[asciiLower(name)] = Module{max(m.Name, name), m.Memories + n}
				return nil
			}, query, sel.partitionList())
			if err != nil {
				return err
			}
		}
		all = slices.SortedFunc(maps.Values(named), func(a, b Module) int {
			return cmp.Or(b.Memories-a.Memories, cmp.Compare(a.Name, b.Name))
		})
		all = append([]Module{}, all[:min(len(all), maxModules)]...) // never nil
		return nil
	})
	return all, err
}

// asciiLower lowers letters as lower does in SQL.
func asciiLower(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}
