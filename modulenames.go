package souvenir

import (
	"context"

	"github.com/souvenir-ai/souvenir/internal/sqlite"
)

// Module is a module that memories name.
type Module struct {
	Name     string `json:"module_name"`
	Memories int    `json:"memories"` // that name it
}

// maxModules is how many modules are listed.
const maxModules = 100

// modulesQuery selects the modules that memories of some partitions name, whether in their metadata or by a tag. A tag without
// "module:" before it may name one, too, but nothing tells it from any other tag. char(59) follows the colon.
const modulesQuery = `WITH named (id, name) AS (
		SELECT id, trim(` + moduleName + `) FROM memory WHERE ` + moduleName + ` IS NOT NULL AND typeof(` + moduleName + `) = 'text'
		UNION SELECT memory_id, trim(substr(tag, 8)) FROM memory_tag WHERE tag COLLATE NOCASE >= 'module:' AND tag COLLATE NOCASE < 'module' || char(59))
	SELECT max(n.name), count(DISTINCT n.id) FROM named n JOIN memory m ON m.id = n.id
	WHERE m.partition_id IN (SELECT value FROM json_each(?)) AND length(n.name) BETWEEN 1 AND 128
	GROUP BY n.name COLLATE NOCASE ORDER BY 2 DESC, 1 LIMIT ?`

// Modules returns the modules that the memories of a project name, by module_name in their metadata or by a tag module:NAME, or for the
// zero ProjectRef those that all visible memories name: of them the 100 with the most memories, the most first. Names that differ in case
// only are one. An unknown project has none, which is no error.
func (s *Store) Modules(ctx context.Context, project ProjectRef) ([]Module, error) {
	if err := checkProject(project.ID, project.Name); err != nil {
		return nil, err
	}
	var all []Module
	err := s.read(ctx, func(tx *sqlite.Tx, sc scope) error {
		all = []Module{}
		sel, err := s.selection(tx, sc, Query{ProjectID: project.ID, ProjectName: project.Name})
		if err != nil || len(sel.partitions) == 0 {
			return err
		}
		return tx.Each(func(row *sqlite.Rows) error {
			var m Module
			err := row.Scan(&m.Name, &m.Memories)
			all = append(all, m)
			return err
		}, modulesQuery, sel.partitionList(), maxModules)
	})
	return all, err
}
