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
		SELECT id, trim(` + moduleName + `) FROM memory INDEXED BY memory_module
			WHERE ` + moduleName + ` IS NOT NULL AND partition_id IN (SELECT value FROM json_each(?1)) AND typeof(` + moduleName + `) = 'text'
		UNION SELECT t.memory_id, trim(substr(t.tag, 8)) FROM memory_tag t CROSS JOIN memory m ON m.id = t.memory_id
			WHERE t.tag COLLATE NOCASE >= 'module:' AND t.tag COLLATE NOCASE < 'module' || char(59) AND m.partition_id IN (SELECT value FROM json_each(?1)))
	SELECT max(name), count(DISTINCT id) FROM named WHERE length(name) BETWEEN 1 AND 128 GROUP BY name COLLATE NOCASE ORDER BY 2 DESC, 1 LIMIT ?2`

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
