package souvenir

import (
	"fmt"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/filter"
	"github.com/souvenir-ai/souvenir/internal/index"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/naming"
	"github.com/souvenir-ai/souvenir/internal/retrieval"
	"github.com/souvenir-ai/souvenir/internal/standing"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// The event types of what a context continues. They are compared without regard to case.
const (
	EventConversation = "conversation" // a conversation in progress
	EventCase         = "case"         // a case in progress
)

// Filter limits a search or a listing to memories whose fields match. The keys are the known keys of a memory
// (event_type, state, importance, classification, rule_type, tags, related_memory_ids, project_id, project_name,
// collection_name, id, created_at, updated_at, event_time, key) or any key of its own metadata; all of them must match.
// An own key that has the name of a known one, or whose name begins with "custom.", is named by [Own]. Own keys are
// found by an index in metadata of up to 4,096 bytes; see Options.IndexedMetadata. A value is
//
//   - a string, number or bool: equal to it (for lists, such as tags: contains it);
//   - nil: the key is not set;
//   - a slice of these: equal to any of its elements, as [In];
//   - a [Condition], or a map in its JSON form: {"in": [...]}, {"ne": x}, {"gte": x, "lt": y}, {"all": [...]}.
//
// Times are compared as time.Time, RFC 3339 ("2026-03-01T09:00:00Z") or a date ("2026-03-01"), which means the whole
// day (UTC): times in that day are equal to it, times before the day's end are at most it, and later times are greater.
type Filter map[string]any

// Condition is a [Filter]'s condition on one key. All of its fields that are set must hold.
type Condition struct {
	In  []any // equal to any of these, at most 1,000
	Not any   // not equal to it, or not set; a slice: equal to none of its elements
	All []any // for lists: contains all of these, at most 64
	// Bounds, of one type: numbers, strings, or times.
	AtLeast, MoreThan, AtMost, LessThan any
}

// Own returns the key by which a [Filter] names a key of the caller's own metadata, under any name: "custom." and the
// name.
func Own(key string) string { return filter.OwnPrefix + key }

// In matches a key that equals any of the values.
func In[T any](values ...T) Condition { return Condition{In: anys(values)} }

// Not matches a key that does not equal the value or is not set.
func Not(value any) Condition { return Condition{Not: value} }

// All matches lists that contain all of the values.
func All[T any](values ...T) Condition { return Condition{All: anys(values)} }

// Between matches a key that is at least low and at most high.
func Between(low, high any) Condition { return Condition{AtLeast: low, AtMost: high} }

func anys[T any](values []T) []any {
	list := make([]any, len(values))
	for i, v := range values {
		list[i] = v
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
		forms, err := db.Forms(tx, db.CollectionName, owners, collections...)
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

func ownPlace(p standing.Place) bool     { return p.Own }
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
	has, args, err := db.HasTag(tx, owners, `t.tag`, tags...)
	if err == nil && exact {
		var forms []string
		forms, err = db.Forms(tx, db.Tag, owners, tags...)
		has, args = has+` AND t.tag IN `+db.Texts, append(args, db.List(forms))
	}
	return `f.id IN (SELECT t.file_id FROM file_tag t WHERE ` + has + `)`, args, err
}
