package writing

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// Destination is where a draft goes.
type Destination struct {
	Collection int64 // row; 0: it is created with the write
	Profile    int64 // of the callers' vectors; 0: the store's embedder makes them
	Project    int64 // row; 0: none or a new one
}

// Destination returns where a draft would go if it were stored now.
func (s *View) Destination(tx db.Tx, v kernel.Viewer, d *kernel.Draft) (at Destination, err error) {
	id := d.ProjectID
	if id == "" && d.ProjectName == "" && len(s.Projects) == 1 {
		id = s.Projects[0]
	}
	owner, project := v.User, int64(0)
	if id != "" || d.ProjectName != "" {
		p, _, err := s.FindProject(tx, v, id, d.ProjectName)
		if err == nil && p != nil {
			err = p.CheckWritable() // before the collection: readers must not learn which names the owner has
		}
		if err == nil && p != nil {
			project = p.Row
			owner, err = kernel.OwnerOfProject(tx, v, p.Row)
		}
		if err != nil {
			return at, err
		}
	}
	at, err = s.collectionFor(tx, v, d.Collection, owner)
	at.Project = project
	return at, err
}

// collectionFor finds the collection of an owner: the caller, or the owner of the project that the caller writes to. In
// the latter case the caller can name the default collection, a collection with memories that the caller can see, or
// one with the name of the caller's own, which is created for the owner. The names of the owner's other collections are
// treated as unknown.
func (s *View) collectionFor(tx db.Tx, v kernel.Viewer, name string, owner int64) (Destination, error) {
	var at Destination
	var found bool
	var err error
	if at.Collection, at.Profile, found, err = kernel.OwnCollection(tx, owner, name); err != nil {
		return at, err
	}
	if name == kernel.DefaultCollection || name == kernel.ConversationCollection || found && owner == v.User {
		return at, nil
	}
	if owner == v.User {
		return at, UnknownCollection(tx, v, name)
	}
	visible, args := v.Visible()
	seen, err := db.Column[int64](tx, `SELECT 1 FROM partition p JOIN collection c ON c.id = p.collection_id
		WHERE p.collection_id = ? AND p.memories > 0 AND `+visible+` LIMIT 1`, append([]any{at.Collection}, args...)...)
	if err != nil || len(seen) > 0 {
		return at, err
	}
	_, profile, had, err := kernel.OwnCollection(tx, v.User, name)
	switch {
	case err != nil:
		return at, err
	case !had:
		return at, UnknownCollection(tx, v, name)
	case found && at.Profile != profile:
		return at, fault.New(fault.KindConflict, "collection_name",
			"{} %s cannot be used here: memories of a project are in a collection of its owner, "+
				"whose collection of this name has other vectors; omit {}, or give another one", fault.Show(name))
	}
	at.Profile = profile
	return at, nil
}

// AddCollection adds a collection as [kernel.AddCollection] does, and refuses one above its owner's quota.
func (s *View) AddCollection(tx db.Tx, v kernel.Viewer, owner int64, name, description string,
	profile int64) (row int64, err error) {
	if row, err = kernel.AddCollection(tx, owner, name, description, profile, s.Now()); err == nil {
		err = s.CheckItems(tx, v, ItemCollection, owner)
	}
	return row, err
}

// UnknownCollection is the error for a name that matches no visible collection; it names the nearest one.
func UnknownCollection(tx db.Tx, v kernel.Viewer, name string) error {
	return unknownCollection(tx, v, "collection_name", "{}", name)
}

// UnknownInFilter is UnknownCollection for a name in a filter.
func UnknownInFilter(tx db.Tx, v kernel.Viewer, name string) error {
	return unknownCollection(tx, v, "filter", "{}.collection_name", name)
}

func unknownCollection(tx db.Tx, v kernel.Viewer, argument, place, name string) error {
	visible, args := v.VisibleCollection()
	all, err := db.Column[string](tx, `SELECT c.name FROM collection c WHERE `+visible+` ORDER BY c.id`, args...)
	if err != nil {
		return err
	}
	hint, best := "", 1+utf8.RuneCountInString(name)/2
	slices.Sort(all)
	for _, other := range all {
		if d := distance(strings.ToLower(name), strings.ToLower(other)); d < best && other != name {
			hint, best = fmt.Sprintf("; did you mean %s?", fault.Show(other)), d
		}
	}
	return fault.New(fault.KindNotFound, argument, place+" %s does not exist%s ({create_collection} creates a new one)",
		fault.Show(name), hint)
}

// distance is the Levenshtein distance of two short strings, in characters.
func distance(a, b string) int {
	as, bs := []rune(a), []rune(b)
	row := make([]int, len(bs)+1)
	for j := range row {
		row[j] = j
	}
	for i, ra := range as {
		diagonal := row[0]
		row[0] = i + 1
		for j, rb := range bs {
			cost := diagonal
			if ra != rb {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(bs)]
}
