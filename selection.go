package souvenir

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/filter"
	"github.com/souvenir-ai/souvenir/internal/index"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/naming"
	"github.com/souvenir-ai/souvenir/internal/retrieval"
	"github.com/souvenir-ai/souvenir/internal/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/standing"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// List says which memories [Store.Memories] returns, and in which order.
type List struct {
	Collections []string // names; none means all
	ProjectID   string   // only memories of this project; empty means no such limit
	ProjectName string   // the project by name
	Tags        []string // memories with any of these tags
	Keys        []string // memories with any of these keys of the caller's own, at most 1,000; none means all
	Filter      Filter

	WithoutContent bool // leaves Content empty; bulk deletions and updates ignore it

	// AsOf lists memories that were stored by a time and valid then, in the state of that time; zero means memories
	// valid now. Tags and Filter are matched against the present state. See docs/time.md.
	AsOf time.Time

	whenever bool // memories that are not valid now, too

	// Sort is any order but SortRelevance; empty means SortCreatedAsc.
	Sort SortOrder
}

// Memories iterates over all visible memories that match when it begins. It holds no lock and no transaction while the
// caller works, so the loop may call other methods: each memory is returned as it is when its turn comes, and deleted
// memories are skipped. The sequence ends after the first error.
func (s *Store) Memories(ctx context.Context, l List) iter.Seq2[Memory, error] {
	const page = 256
	return func(yield func(Memory, error) bool) {
		rows, err := s.listRows(ctx, l)
		if err != nil {
			inGo[List](&err)
			yield(Memory{}, err)
			return
		}
		for batch := range slices.Chunk(rows, page) {
			var found []storedMemory
			err := s.read(ctx, func(tx db.Tx, v viewer) error {
				if found, err = s.loadColumns(tx, v, contentColumn(l.WithoutContent, l.AsOf), batch); err != nil {
					return err
				}
				found, err = memoriesAsOf(tx, v, found, l.AsOf)
				for i := range found {
					if l.WithoutContent {
						found[i].Content = ""
					}
				}
				return err
			})
			if err != nil {
				yield(Memory{}, err)
				return
			}
			for _, m := range found {
				if !yield(m.Memory, nil) {
					return
				}
			}
		}
	}
}

// listRows returns the rows of the memories of a listing, in its order.
func (s *Store) listRows(ctx context.Context, l List) (rows []int64, err error) {
	q := Query{Collections: l.Collections, ProjectID: l.ProjectID, ProjectName: l.ProjectName, Tags: l.Tags,
		Keys: l.Keys, Filter: l.Filter, Sort: cmp.Or(l.Sort, SortCreatedAsc), AsOf: l.AsOf, whenever: l.whenever}
	if err := checkAsOf(l.AsOf); err != nil {
		return nil, err
	}
	if !slices.Contains(memoryOrders[1:], q.Sort) {
		return nil, invalid("sort_order", "{} is %s; allowed are %s", show(string(q.Sort)),
			oneOf(memoryOrders[1:]))
	}
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		selection, err := s.selection(tx, v, q)
		if err == nil {
			rows, err = selection.All(tx, q.Sort.byTime())
		}
		return err
	})
	return rows, err
}

// contentColumn returns the column for a caller that needs no contents. With AsOf, the content itself is compared.
func contentColumn(without bool, asOf time.Time) string {
	if without && asOf.IsZero() {
		return noContent
	}
	return wholeContent
}

// loadColumns is loadRows with another column as the content.
func (s *Store) loadColumns(tx db.Tx, v viewer, content string, rows []int64) ([]storedMemory, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	found, err := s.loadMemoriesWith(tx, v, content, `m.id IN `+db.Integers, db.List(rows))
	if err != nil {
		return nil, err
	}
	place := make(map[int64]int, len(rows))
	for i, row := range rows {
		place[row] = i
	}
	slices.SortFunc(found, func(a, b storedMemory) int { return place[a.row] - place[b.row] })
	return found, nil
}

// emptyList returns a list that JSON writes as [] even if it is nil.
func emptyList[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// compile turns the filter into SQL conditions on m, p and c.
func (f Filter) compile(v viewer) ([]filter.Part, error) {
	conditions := make(map[string]any, len(f))
	for key, value := range f {
		if c, ok := value.(Condition); ok {
			value = filter.Condition{In: c.In, Not: c.Not, All: c.All, AtLeast: c.AtLeast, MoreThan: c.MoreThan,
				AtMost: c.AtMost, LessThan: c.LessThan}
		}
		conditions[key] = value
	}
	return filter.Compile(v, conditions)
}

// selection is the part of the store that a query covers.
type selection struct {
	retrieval.Selection
	warnings []string
	hidden   map[int64]bool // rows in the partitions that are not current
	rows     **index.RowSet // rows that match the condition, once they are read; for the searches of a batch
}

// current limits a selection to memories that have not expired and that are valid now, or were at the time of the
// query.
func (sel *selection) current(tx db.Tx, v viewer, q Query) error {
	all := q.whenever || !q.AsOf.IsZero()
	hidden, err := v.Hidden(tx, sel.PartitionList(), all)
	if err != nil {
		return err
	}
	if sel.Current = v.Current(); all {
		sel.Current = v.Alive(`m`)
	}
	partitions := sel.Partitions
	sel.Partitions = nil
	for _, p := range partitions {
		sel.add(p, hidden[p.ID])
	}
	return nil
}

// add adds a partition, except some of its memories, unless none is left.
func (sel *selection) add(p retrieval.Partition, hidden []int64) {
	if p.Memories -= len(hidden); p.Memories <= 0 {
		return
	}
	sel.Partitions = append(sel.Partitions, p)
	if sel.hidden == nil && len(hidden) > 0 {
		sel.hidden = map[int64]bool{}
	}
	for _, row := range hidden {
		sel.hidden[row] = true
	}
}

// matching returns the rows that match the selection's condition; some of them may be hidden.
func (s *Store) matching(tx db.Tx, sel selection) (rows *index.RowSet, err error) {
	if *sel.rows == nil {
		*sel.rows, err = s.filters.Matching(tx, sel.Selection)
	}
	return *sel.rows, err
}

// selection resolves the collections, the project and the filters of a query.
func (s *Store) selection(tx db.Tx, v viewer, q Query) (selection, error) {
	sel := selection{rows: new(*index.RowSet)}
	if err := sel.addFilters(tx, v, q); err != nil {
		return sel, err
	}
	if v.Limited && len(v.Projects) == 0 && len(s.access.Projects) > 0 {
		sel.warnings = append(sel.warnings, s.goneProjects())
	}
	condition, args := v.Visible()
	collections := valid.Distinct(q.Collections)
	if len(collections) > maxCollections {
		return sel, newError(KindTooLarge, "collection_name", "{} lists %d collections; at most %d are allowed",
			len(collections), maxCollections)
	}
	for _, name := range collections {
		if _, err := s.collection(tx, v, name); err != nil {
			return sel, err
		}
	}
	if len(collections) > 0 {
		owners, err := v.Owners(tx)
		if err != nil {
			return sel, err
		}
		forms, err := sealedrows.Forms(tx, sealedrows.CollectionName, owners, collections...)
		if err != nil {
			return sel, err
		}
		condition += ` AND c.name IN ` + db.Texts
		args = append(args, db.List(forms))
	}
	if q.ProjectID != "" || q.ProjectName != "" {
		if err := valid.Project(q.ProjectID, q.ProjectName); err != nil {
			return sel, err
		}
		project, err := naming.Find(tx, v, q.ProjectID, q.ProjectName)
		if err != nil {
			return sel, err
		}
		if project == nil {
			sel.warnings = append(sel.warnings,
				fmt.Sprintf("project %s not found, or you have no access to it, so nothing is found in it",
					show(q.ProjectID+q.ProjectName)))
			return sel, nil
		}
		sel.warnings = append(sel.warnings, project.Notes()...)
		condition += ` AND p.project_id = ?`
		args = append(args, project.Row)
	}
	err := tx.Each(func(row db.Rows) error {
		var p retrieval.Partition
		err := row.Scan(&p.ID, &p.Memories, &p.OwnSize)
		sel.Partitions = append(sel.Partitions, p)
		return err
	}, `SELECT p.id, p.memories, coalesce(f.dimensions, 0) FROM partition p JOIN collection c ON c.id = p.collection_id
		LEFT JOIN profile f ON f.id = c.own_profile WHERE p.memories > 0 AND `+condition, args...)
	if err == nil {
		err = sel.current(tx, v, q)
	}
	return sel, err
}

// maxCollections bounds how many collections one search may name.
const maxCollections = 100

func (sel *selection) addFilters(tx db.Tx, v viewer, q Query) error {
	var parts []filter.Part
	add := func(f Filter) error {
		compiled, err := f.compile(v)
		parts = append(parts, compiled...)
		return err
	}
	if err := valid.Enum("classification", string(q.Classification), kernel.Classifications); err != nil {
		return err
	}
	if q.Classification != "" {
		if err := add(Filter{"classification": q.Classification}); err != nil {
			return err
		}
	}
	if len(q.Tags) > 0 {
		tags, err := valid.Tags(q.Tags, filter.MaxAlternatives)
		if err != nil {
			return err
		}
		if err := add(Filter{"tags": tags}); err != nil {
			return err
		}
	}
	if len(q.Keys) > filter.MaxAlternatives {
		return newError(KindTooLarge, "keys", "{} has %d keys; at most %d are allowed", len(q.Keys),
			filter.MaxAlternatives)
	}
	for _, key := range q.Keys {
		if err := valid.UTF8("keys", key); err != nil {
			return err
		}
	}
	if len(q.Keys) > 0 {
		if err := add(Filter{"key": q.Keys}); err != nil {
			return err
		}
	}
	if err := add(q.Filter); err != nil {
		return err
	}
	parts, err := filter.Opened(tx, v, parts)
	if err != nil {
		return err
	}
	if !q.AsOf.IsZero() {
		condition, args := v.AsOf(q.AsOf.UnixMicro())
		parts = append(parts, filter.Part{SQL: condition, Args: args})
	}
	return sel.join(tx, parts)
}

// fewRows is how many memories a condition on own metadata may select to be read first.
const fewRows = 256

// join combines conditions. If one of them selects few memories by an index, the others are tested only on these.
func (sel *selection) join(tx db.Tx, parts []filter.Part) error {
	first, indexed := -1, 0
	for _, p := range parts {
		if p.Test != "" {
			indexed++
		}
	}
	var list []int64
	for i := 0; i < len(parts) && indexed > 1 && first < 0; i++ {
		rows, few, err := filter.Few(tx, parts[i], fewRows)
		if err != nil {
			return err
		}
		if few {
			first, list = i, rows
		}
	}
	sel.Steady = first < 0 && !slices.ContainsFunc(parts, func(p filter.Part) bool { return !p.Steady })
	var conditions []string
	if first >= 0 {
		conditions, sel.Args = append(conditions, filter.InThese), append(sel.Args, db.List(list))
	}
	for i, p := range parts {
		if i == first {
			continue
		}
		condition, args := p.SQL, p.Args
		if first >= 0 && p.Test != "" {
			condition, args = p.Test, p.TestArgs
		}
		conditions, sel.Args = append(conditions, condition), append(sel.Args, args...)
	}
	sel.Condition = strings.Join(conditions, ` AND `)
	if len(parts) == 1 {
		sel.Indexed = parts[0].Indexed()
	}
	return nil
}

// selectPlaces returns a selection of the matching places.
func selectPlaces(v viewer, places []standing.Place, fits func(standing.Place) bool) selection {
	sel := selection{rows: new(*index.RowSet)}
	sel.Current = v.Current()
	for _, p := range places {
		if fits(p) {
			sel.add(p.Partition, p.Hidden)
		}
	}
	return sel
}

func ownPlace(p standing.Place) bool { return p.Own }

func generalPlace(p standing.Place) bool { return p.Own && p.Project == 0 }

// newestActive returns the row of the newest active memory of some event types in a selection, 0 if there is none.
func (s *shared) newestActive(tx db.Tx, sel selection, types ...string) (int64, error) {
	return standing.Newest(tx, s.now(), sel.Selection, types...)
}

// sealedRows is the end of rows for files whose names, types and categories are sealed: it opens those of all files for
// which the other conditions hold.
func (l FileList) sealedRows(tx db.Tx, condition, order string, args []any) (rows []int64, err error) {
	kind, all := strings.CutSuffix(l.MIMEType, "*")
	if !all && kind != "" {
		kind += ";" // parameters follow a semicolon
	}
	err = tx.Each(func(row db.Rows) error {
		var id int64
		var filename, mimeType, category string
		err := row.Scan(&id, &filename, &mimeType, &category)
		if (l.Category == "" || category == l.Category) &&
			strings.Contains(db.Lower(filename), db.Lower(l.Filename)) && strings.HasPrefix(mimeType+";", kind) {
			rows = append(rows, id)
		}
		return err
	}, `SELECT f.id, f.filename, f.mime_type, f.category `+kernel.FromFile+` WHERE `+condition+` ORDER BY `+order, args...)
	return rows, err
}

// fileTagged is the condition that a file has one of some tags, without regard to case unless they are exact. It is in
// the form of the index on file_tag.
func fileTagged(tx db.Tx, v viewer, tags []string, exact bool) (condition string, args []any, err error) {
	owners, err := v.Owners(tx)
	if err != nil {
		return "", nil, err
	}
	has, args, err := sealedrows.HasTag(tx, owners, `t.tag`, tags...)
	if err == nil && exact {
		var forms []string
		forms, err = sealedrows.Forms(tx, sealedrows.Tag, owners, tags...)
		has, args = has+` AND t.tag IN `+db.Texts, append(args, db.List(forms))
	}
	return `f.id IN (SELECT t.file_id FROM file_tag t WHERE ` + has + `)`, args, err
}

// check validates the query and brings the tags to their stored form.
func (l *FileList) check() error {
	l.Sort = cmp.Or(l.Sort, SortCreatedDesc)
	if _, err := fileOrder(l.Sort); err != nil {
		return err
	}
	if err := valid.Project(l.ProjectID, l.ProjectName); err != nil {
		return err
	}
	if err := valid.Category(l.Category); err != nil {
		return err
	}
	if err := valid.UTF8("filename", l.Filename); err != nil {
		return err
	}
	if kind, ok := strings.CutSuffix(l.MIMEType, "/*"); l.MIMEType != "" &&
		(!ok || kind == "" || strings.Contains(kind, "/")) {
		if found, err := valid.MIMEType(l.MIMEType); err != nil || found != l.MIMEType || strings.Contains(found, ";") {
			return invalid("mime_type",
				"{} is %s; a type without parameters is needed, such as text/plain, or image/* for all images",
				show(l.MIMEType))
		}
	}
	var err error
	l.Tags, err = valid.Tags(l.Tags, filter.MaxAlternatives)
	return err
}

// rows returns the rows of the matching files, in order.
func (l FileList) rows(tx db.Tx, v viewer) ([]int64, error) {
	order, err := fileOrder(l.Sort)
	if err != nil {
		return nil, err
	}
	condition, args := v.VisibleFile()
	if l.MemoryID != "" {
		memory, memoryArgs := v.Visible()
		condition += ` AND m.uid IN (?, ?) AND ` + memory + v.Alive(`m`)
		args = slices.Concat(args, []any{l.MemoryID, valid.CanonicalID(l.MemoryID)}, memoryArgs)
	}
	if l.ProjectID != "" || l.ProjectName != "" {
		project, err := naming.Find(tx, v, l.ProjectID, l.ProjectName)
		if err != nil || project == nil {
			return nil, err
		}
		condition += ` AND ` + kernel.ProjectOfFile + ` = ?`
		args = append(args, project.Row)
	}
	if len(l.Tags) > 0 {
		tagged, tagArgs, err := fileTagged(tx, v, l.Tags, true)
		if err != nil {
			return nil, err
		}
		condition += ` AND ` + tagged
		args = append(args, tagArgs...)
	}
	if sealedrows.Seals(tx) && (l.Category != "" || l.Filename != "" || l.MIMEType != "") {
		return l.sealedRows(tx, condition, order, args)
	}
	if l.Category != "" {
		condition += ` AND f.category = ?`
		args = append(args, l.Category)
	}
	if l.Filename != "" {
		condition += ` AND ` + db.Within + `(lower(f.filename), lower(?)) > 0`
		args = append(args, l.Filename)
	}
	if kind, all := strings.CutSuffix(l.MIMEType, "*"); l.MIMEType != "" { // parameters follow a semicolon
		end := ``
		if !all {
			end = `;`
		}
		condition += ` AND substr(f.mime_type || ?, 1, length(?)) = ?`
		args = append(args, end, kind+end, kind+end)
	}
	return db.Column[int64](tx, `SELECT f.id `+kernel.FromFile+` WHERE `+condition+` ORDER BY `+order, args...)
}

// fileOrder is an order by time in SQL.
func fileOrder(order SortOrder) (string, error) {
	if !slices.Contains(sortOrders[1:], order) {
		return "", invalid("sort_order", "{} is %s; lists are sorted by time: allowed are %s", show(string(order)),
			oneOf(sortOrders[1:]))
	}
	return order.byTime().SQL(`f`), nil
}
