package souvenir

import (
	"fmt"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/check"
	"github.com/souvenir-ai/souvenir/internal/db"
)

// selection is the part of the store that a query is about.
type selection struct {
	partitions []selectedPartition
	condition  string // further condition on m, p and c; "" for none
	args       []any
	warnings   []string
}

type selectedPartition struct {
	id       int64
	memories int
	fitting  int      // of them that fit the condition, once they are counted
	last     timedRow // that was read
	ownSize  int      // dimensions of the collection's own vectors; 0: the embedder makes them
}

// partitionList is the ids for json_each.
func (sel selection) partitionList() string {
	ids := make([]int64, len(sel.partitions))
	for i, p := range sel.partitions {
		ids[i] = p.id
	}
	return jsonList(ids)
}

// selection resolves the collections, the project and the filters of a query.
func (s *Store) selection(tx db.Tx, sc scope, q Query) (selection, error) {
	var sel selection
	if err := sel.addFilters(sc, q); err != nil {
		return sel, err
	}
	if sc.limited && len(sc.projects) == 0 && len(s.access.Projects) > 0 {
		sel.warnings = append(sel.warnings, s.goneProjects())
	}
	condition, args := sc.visible()
	collections := check.Distinct(q.Collections)
	if len(collections) > maxCollections {
		return sel, newError(KindTooLarge, "collection_name", "collection_name lists %d collections; at most %d are allowed", len(collections), maxCollections)
	}
	for _, name := range collections {
		if _, err := s.collection(tx, sc, name); err != nil {
			return sel, err
		}
	}
	if len(collections) > 0 {
		condition += ` AND c.name IN (` + questionMarks(len(collections)) + `)`
		args = append(args, anys(collections)...)
	}
	if q.ProjectID != "" || q.ProjectName != "" {
		if err := check.Project(q.ProjectID, q.ProjectName); err != nil {
			return sel, err
		}
		project, err := findProject(tx, sc, q.ProjectID, q.ProjectName)
		if err != nil {
			return sel, err
		}
		if project == nil {
			sel.warnings = append(sel.warnings, fmt.Sprintf("no project %s can be seen here, so nothing is found in it", show(q.ProjectID+q.ProjectName)))
			return sel, nil
		}
		sel.warnings = append(sel.warnings, project.notes()...)
		condition += ` AND p.project_id = ?`
		args = append(args, project.row)
	}
	err := tx.Each(func(row db.Rows) error {
		var p selectedPartition
		err := row.Scan(&p.id, &p.memories, &p.ownSize)
		sel.partitions = append(sel.partitions, p)
		return err
	}, `SELECT p.id, p.memories, coalesce(f.dimensions, 0) FROM partition p JOIN collection c ON c.id = p.collection_id
		LEFT JOIN profile f ON f.id = c.own_profile WHERE p.memories > 0 AND `+condition, args...)
	return sel, err
}

// maxCollections bounds how many collections one search may name.
const maxCollections = 100

func (sel *selection) addFilters(sc scope, q Query) error {
	var parts []string
	add := func(f Filter) error {
		condition, args, err := f.compile(sc)
		if err == nil && condition != "" {
			parts, sel.args = append(parts, condition), append(sel.args, args...)
		}
		return err
	}
	if err := check.Enum("classification", q.Classification, classifications); err != nil {
		return err
	}
	if q.Classification != "" {
		if err := add(Filter{"classification": q.Classification}); err != nil {
			return err
		}
	}
	if len(q.Tags) > 0 {
		tags, err := check.Tags(q.Tags, maxAlternatives)
		if err != nil {
			return err
		}
		if err := add(Filter{"tags": tags}); err != nil {
			return err
		}
	}
	if err := add(q.Filter); err != nil {
		return err
	}
	sel.condition = strings.Join(parts, ` AND `)
	return nil
}

// where is the selection as a condition on m, p and c.
func (sel selection) where() (condition string, args []any) {
	condition, args = `m.partition_id IN `+db.Integers, []any{sel.partitionList()}
	if sel.condition != "" {
		condition += ` AND ` + sel.condition
		args = append(args, sel.args...)
	}
	return condition, args
}
