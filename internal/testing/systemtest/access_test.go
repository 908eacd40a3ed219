package systemtest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// Who may see and change which data, for every method of Store.

// visit is one visitor who calls one method.
type visit struct {
	*testing.T
	visitor
	n    neighbourhood
	view *Store
}

// check checks that an answer holds nothing hidden. Values that the visitor gave as arguments are not secret.
func (v visit) check(what string, answer any, err error, given ...string) {
	v.Helper()
	said := fmt.Sprintf("%+v", answer)
	if err != nil {
		said += " " + err.Error()
	}
	for _, g := range given {
		said = strings.ReplaceAll(said, g, "…")
	}
	for _, word := range v.hidden(v.n) {
		if strings.Contains(said, word) {
			v.Errorf("%s reveals %s, want it kept secret: %.600s", what, word, said)
		}
	}
}

// denied checks that a memory that the visitor cannot see gives the same error as one that does not exist.
func (v visit) denied(what, id string, err error, unknown func(id string) error) {
	v.Helper()
	const nowhere = "0190a5f2-0000-7000-8000-000000000000"
	want := unknown(nowhere)
	if !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrReadOnly) || want == nil ||
		strings.ReplaceAll(err.Error(), id, nowhere) != want.Error() {
		v.Errorf("%s of something invisible gives %v, want %v as for something missing", what, err, want)
	}
}

// onEach calls a method that reads or changes a memory on every memory.
func (v visit) onEach(what string, changes bool, call func(s *Store, name, id string) (any, error)) {
	v.Helper()
	for _, name := range slices.Sorted(maps.Keys(v.n.ids)) {
		id := v.n.ids[name]
		before := rowsOf(v.T, v.n.store)
		answer, err := call(v.view, name, id)
		v.check(what+" of "+name, answer, err, id)
		seen, writable := slices.Contains(v.sees, name), slices.Contains(v.changes, name)
		switch {
		case !seen:
			v.denied(what, id, err, func(id string) error { _, err := call(v.view, name, id); return err })
		case !changes || writable:
			if err != nil {
				v.Errorf("%s of %s: %v", what, name, err)
			}
			continue
		case v.access.ReadOnly:
			if !errors.Is(err, ErrReadOnly) {
				v.Errorf("%s of %s through a read-only view gives %v, want ErrReadOnly", what, name, err)
			}
		default:
			if !errors.Is(err, ErrForbidden) {
				v.Errorf("%s of %s gives %v, want ErrForbidden", what, name, err)
			}
		}
		if rowsOf(v.T, v.n.store) != before {
			v.Errorf("%s of %s was refused and changed something, want no change", what, name)
		}
	}
}

// onEachCollection calls a method on every collection.
func (v visit) onEachCollection(what string, changes bool, call func(s *Store, name string) (any, error)) {
	v.Helper()
	for _, m := range neighbours {
		before := rowsOf(v.T, v.n.store)
		answer, err := call(v.view, m.collection)
		v.check(what+" of "+m.collection, answer, err, m.collection)
		own := hasCollection(v.access.User, m.collection)
		switch {
		case !slices.Contains(v.collections, m.collection):
			const nowhere = "qqqqqqqqqqqqqqqq"
			_, want := call(v.view, nowhere)
			if !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrReadOnly) ||
				strings.ReplaceAll(err.Error(), m.collection, nowhere) != want.Error() {
				v.Errorf("%s of %s, which cannot be seen, gives %v; of an unknown one, %v; want the same", what,
					m.collection, err, want)
			}
		case !changes:
			if err != nil {
				v.Errorf("%s of %s: %v", what, m.collection, err)
			}
		case v.access.ReadOnly:
			if !errors.Is(err, ErrReadOnly) {
				v.Errorf("%s of %s through a read-only view gives %v, want ErrReadOnly", what, m.collection, err)
			}
		case !own || v.access.Projects != nil:
			if !errors.Is(err, ErrForbidden) {
				v.Errorf("%s of %s gives %v, want ErrForbidden", what, m.collection, err)
			}
		default:
			if err != nil {
				v.Errorf("%s of %s: %v", what, m.collection, err)
			}
			return // the store has changed; another visitor tests the rest
		}
		if rowsOf(v.T, v.n.store) != before && changes {
			v.Errorf("%s of %s was refused and changed something, want nothing changed", what, m.collection)
		}
	}
}

func (v visit) found(what string, memories []Memory, err error) {
	v.Helper()
	if err != nil {
		v.Errorf("%s: %v", what, err)
	}
	v.check(what, memories, nil)
	var names []string
	for _, m := range memories {
		name, _, _ := strings.Cut(m.Content, " ")
		names = append(names, name)
		for _, id := range m.Related {
			if !slices.ContainsFunc(v.sees, func(name string) bool { return v.n.ids[name] == id }) {
				v.Errorf("%s: %s is shown as related to what cannot be seen, want only what the visitor sees", what, name)
			}
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, v.sees) {
		v.Errorf("%s finds %v, want %v", what, names, v.sees)
	}
}

// allVisits joins the visits of all concepts.
func allVisits(t *testing.T) map[string]func(v visit) {
	all := maps.Clone(visits)
	for _, more := range []map[string]func(v visit){
		projectVisits, userVisits, fileVisits, rulesVisits, oauthVisits, contextVisits, maintainVisits, trashVisits,
		exportVisits, activityVisits, sharingVisits, conversationVisits,
	} {
		for method, perform := range more {
			if all[method] != nil {
				t.Errorf("%s has two entries in visits, want nil", method)
			}
			all[method] = perform
		}
	}
	return all
}

func TestEveryMethodKeepsToItsView(t *testing.T) { onEachEngine(t, everyMethodKeepsToItsView) }

func everyMethodKeepsToItsView(t *testing.T, empty database) {
	visits := allVisits(t)
	methods := methodsOf(&Store{})
	for name := range methods {
		if visits[name] == nil {
			t.Errorf("got no entry of %s in visits, want one that says who may see and change what through it", name)
		}
	}
	for name := range visits { // a method, or one with an option after a comma
		if method, _, _ := strings.Cut(name, ","); !methods[method].IsValid() {
			t.Errorf("got %s in visits, want only methods of Store and its handles", name)
		}
	}
	built := buildNeighbourhood(t, empty)
	for k, method := range slices.Sorted(maps.Keys(visits)) {
		perform := visits[method]
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			for _, memory := range []int64{0, -1} {
				if memory < 0 && method != "Search" {
					continue // the index makes no difference to other methods
				}
				var n neighbourhood
				var before string
				for i, visitor := range visitors {
					if !longtest.Part(i+k, 4, 160) { // different visitors for each method
						continue
					}
					if n.store == nil || method == "Close" || rowsOf(t, n.store) != before { // each visitor finds the same state
						n = openNeighbourhood(t, built, memory)
						before = rowsOf(t, n.store)
					}
					t.Run(fmt.Sprintf("%s, index %d", visitor.name, memory), func(t *testing.T) {
						perform(visit{t, visitor, n, n.store.As(visitor.access)})
					})
				}
			}
		})
	}
}
