package souvenir

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/sqlite"
)

// Who may see and change what, for every method of Store.

// neighbourhood is a store of several users, some of whose projects are shared:
//
//	alice   owns shared (bob and frank read, carol writes, dave owns it, too) and secretplan
//	carol   has a project of her own whose id is shared, too
//	eve     owns a project whose id is shared; frank reads this one and alice's
type neighbourhood struct {
	*Store
	ids      map[string]string // name of a memory -> id
	contents map[string]string
	file     []byte
}

// neighbours are the memories there, in the order in which they are stored. The name is a word of the content, the tag and the
// metadata, so that whoever may not see a memory must not find its name in any answer.
var neighbours = []struct {
	name       string
	user       string
	collection string
	project    string
	related    []string
}{
	{name: "carolown", user: "carol", collection: "umbrella", project: "shared"},
	{name: "alicebench", user: "alice", collection: "garden"},
	{name: "alicesafe", user: "alice", collection: "garden", project: "secretplan"},
	{name: "aliceplan", user: "alice", collection: "ledgerroom", project: "secretplan", related: []string{"alicesafe"}},
	{name: "aliceopen", user: "alice", collection: "garden", project: "shared", related: []string{"alicesafe", "alicebench"}},
	{name: "alicemoved", user: "alice", collection: "garden", project: "secretplan"}, // into shared, later
	{name: "bobdiary", user: "bob", collection: "skiff", related: []string{"aliceopen"}},
	{name: "carolreply", user: "carol", collection: "umbrella", project: "alice/shared", related: []string{"aliceopen"}},
	{name: "eveopen", user: "eve", collection: "pickaxe", project: "shared"},
	{name: "evediary", user: "eve", collection: "pickaxe"},
	{name: "frankdiary", user: "frank", collection: "moonlight"},
}

// openNeighbourhood opens a fresh copy of the neighbourhood.
func openNeighbourhood(t *testing.T, like neighbourhood, indexMemory int64) neighbourhood {
	t.Helper()
	path := filepath.Join(t.TempDir(), "neighbourhood.db")
	writeFile(t, path, like.file)
	like.Store = openWords(t, path, Options{IndexMemory: indexMemory})
	return like
}

// buildNeighbourhood stores everything; its Store is closed.
func buildNeighbourhood(t *testing.T) neighbourhood {
	t.Helper()
	path := filepath.Join(t.TempDir(), "neighbourhood.db")
	n := neighbourhood{Store: openWords(t, path, Options{}), ids: map[string]string{}, contents: map[string]string{}}
	for _, user := range []string{"alice", "bob", "carol", "dave", "eve", "frank"} { // a user exists from the first write on
		if _, err := n.As(Access{User: user}).AddMemories(t.Context(), nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range neighbours {
		view := n.As(Access{User: m.user})
		if _, err := view.GetCollection(t.Context(), m.collection); errors.Is(err, ErrNotFound) {
			mustAddCollection(t, view, NewCollection{Name: m.collection, Description: "describes" + m.collection})
		}
		var related []string
		for _, r := range m.related {
			related = append(related, n.ids[r])
		}
		n.contents[m.name] = m.name + " tells of the common kettle"
		added := mustAdd(t, view, NewMemory{
			Collection: m.collection, Content: "draft of " + n.contents[m.name], ProjectID: m.project, Tags: []string{"tag" + m.name, "everybody"},
			Related: related, Metadata: map[string]any{"key": "value" + m.name},
		})
		n.ids[m.name] = added.ID
		patch := map[string]any{}
		if m.name == "alicemoved" {
			patch["project_id"] = "shared"
		}
		final := n.contents[m.name]
		if _, err := view.UpdateMemory(t.Context(), added.ID, UpdateMemory{Content: &final, Metadata: patch}); err != nil {
			t.Fatal(err)
		}
		switch m.name {
		case "aliceopen":
			n.share(t, "alice", "bob", "reader")
			n.share(t, "alice", "carol", "writer")
			n.share(t, "alice", "dave", "owner")
			n.share(t, "alice", "frank", "reader")
		case "eveopen":
			n.share(t, "eve", "frank", "reader")
		}
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	n.file = readFile(t, path)
	return n
}

// share makes somebody a member of a project named shared.
func (n neighbourhood) share(t *testing.T, owner, member, role string) {
	t.Helper()
	err := n.db.Write(t.Context(), func(tx *sqlite.Tx) error {
		r, err := tx.Exec(`INSERT INTO project_member (project_id, user_id, role, created_at)
			SELECT j.id, m.id, ?, 0 FROM project j JOIN user o ON o.id = j.owner_id, user m WHERE j.uid = 'shared' AND o.uid = ? AND m.uid = ?`, role, owner, member)
		if err == nil && r.RowsAffected != 1 {
			err = fmt.Errorf("%d members added", r.RowsAffected)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// visitor is a view of the neighbourhood and what it may do there.
type visitor struct {
	name        string
	access      Access
	sees        []string // memories
	changes     []string // those of them that it may change
	collections []string // by name
	described   []string // collections whose description it may see
	adds        error    // what storing a memory without a project gives
	knows       []string // further words that it may see
}

var (
	aliceAll  = []string{"alicebench", "alicemoved", "aliceopen", "aliceplan", "alicesafe", "carolreply"}
	sharedAll = []string{"alicemoved", "aliceopen", "carolreply"}
)

var visitors = []visitor{
	{name: "the owner", access: Access{User: "alice"}, sees: aliceAll, changes: aliceAll,
		collections: []string{"garden", "ledgerroom", "umbrella"}, described: []string{"garden", "ledgerroom"}, knows: []string{"secretplan"}},
	{name: "a stranger", access: Access{User: "eve"}, sees: []string{"evediary", "eveopen"}, changes: []string{"evediary", "eveopen"},
		collections: []string{"pickaxe"}, described: []string{"pickaxe"}},
	{name: "somebody new", access: Access{User: "nobody"}},
	{name: "a reader", access: Access{User: "bob"}, sees: []string{"alicemoved", "aliceopen", "bobdiary", "carolreply"}, changes: []string{"bobdiary"},
		collections: []string{"garden", "skiff", "umbrella"}, described: []string{"skiff"}},
	{name: "a writer", access: Access{User: "carol"}, sees: []string{"alicemoved", "aliceopen", "carolown", "carolreply"},
		changes: []string{"alicemoved", "aliceopen", "carolown", "carolreply"}, collections: []string{"garden", "umbrella"}, described: []string{"umbrella"}},
	{name: "another owner", access: Access{User: "dave"}, sees: sharedAll, changes: sharedAll, collections: []string{"garden", "umbrella"}},
	{name: "a reader of two projects of one id", access: Access{User: "frank"}, sees: []string{"alicemoved", "aliceopen", "carolreply", "eveopen", "frankdiary"},
		changes: []string{"frankdiary"}, collections: []string{"garden", "umbrella", "pickaxe", "moonlight"}, described: []string{"moonlight"}},

	{name: "the owner, for a project", access: Access{User: "alice", Projects: []string{"shared"}}, sees: sharedAll, changes: sharedAll,
		collections: []string{"garden", "umbrella"}, described: []string{"garden"}},
	{name: "the owner, for another project", access: Access{User: "alice", Projects: []string{"secretplan"}}, sees: []string{"aliceplan", "alicesafe"},
		changes: []string{"aliceplan", "alicesafe"}, collections: []string{"garden", "ledgerroom"}, described: []string{"garden", "ledgerroom"}, knows: []string{"secretplan"}},
	{name: "the owner, for no project", access: Access{User: "alice", Projects: []string{}}, adds: ErrForbidden},
	{name: "the owner, for an unknown project", access: Access{User: "alice", Projects: []string{"nothing"}}},
	{name: "a reader, for a project", access: Access{User: "bob", Projects: []string{"alice/shared"}}, sees: sharedAll,
		collections: []string{"garden", "umbrella"}, adds: ErrForbidden},
	{name: "a reader, for a project that is not shared", access: Access{User: "bob", Projects: []string{"alice/secretplan", "secretplan"}}, adds: ErrForbidden, knows: []string{"secretplan"}},
	{name: "a writer, for her own of two", access: Access{User: "carol", Projects: []string{"shared"}}, sees: []string{"carolown"}, changes: []string{"carolown"},
		collections: []string{"umbrella"}, described: []string{"umbrella"}},
	{name: "a writer, for the other one", access: Access{User: "carol", Projects: []string{"alice/shared"}}, sees: sharedAll, changes: sharedAll,
		collections: []string{"garden", "umbrella"}, described: []string{"umbrella"}},
	{name: "an id that fits two", access: Access{User: "frank", Projects: []string{"shared"}}, adds: ErrInvalid},
	{name: "an id that says which", access: Access{User: "frank", Projects: []string{"eve/shared"}}, sees: []string{"eveopen"}, collections: []string{"pickaxe"}, adds: ErrForbidden},

	{name: "the owner, read-only", access: Access{User: "alice", ReadOnly: true}, sees: aliceAll,
		collections: []string{"garden", "ledgerroom", "umbrella"}, described: []string{"garden", "ledgerroom"}, adds: ErrReadOnly, knows: []string{"secretplan"}},
	{name: "a writer, read-only and for a project", access: Access{User: "carol", Projects: []string{"alice/shared"}, ReadOnly: true}, sees: sharedAll,
		collections: []string{"garden", "umbrella"}, described: []string{"umbrella"}, adds: ErrReadOnly},
}

// hidden are the words that must not appear in any answer.
func (v visitor) hidden(n neighbourhood) []string {
	var words []string
	for _, m := range neighbours {
		if slices.Contains(v.sees, m.name) {
			continue
		}
		// A former revision begins with the same content, so the name is enough; the id is what an answer could betray, too.
		words = append(words, m.name, n.ids[m.name])
	}
	for _, c := range []string{"garden", "ledgerroom", "skiff", "umbrella", "pickaxe", "moonlight"} {
		if !slices.Contains(v.collections, c) {
			words = append(words, c)
		}
		if !slices.Contains(v.described, c) {
			words = append(words, "describes"+c)
		}
	}
	if !slices.Contains(v.knows, "secretplan") {
		words = append(words, "secretplan")
	}
	return words
}

// visit is one visitor at work with one method.
type visit struct {
	*testing.T
	visitor
	n    neighbourhood
	view *Store
}

// check sees that an answer holds nothing that is hidden. Values that the visitor gave as arguments are no secret.
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
			v.Errorf("%s betrays %s: %.600s", what, word, said)
		}
	}
}

// denied sees that a memory that cannot be seen is denied in the words for one that does not exist.
func (v visit) denied(what, id string, err error, unknown func(id string) error) {
	v.Helper()
	const nowhere = "0190a5f2-0000-7000-8000-000000000000"
	want := unknown(nowhere)
	if !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrReadOnly) || want == nil || strings.ReplaceAll(err.Error(), id, nowhere) != want.Error() {
		v.Errorf("%s of what cannot be seen gives %v; of what does not exist, %v", what, err, want)
	}
}

// onEach calls a method that reads or changes a memory on every memory there is.
func (v visit) onEach(what string, changes bool, call func(s *Store, name, id string) (any, error)) {
	v.Helper()
	for _, name := range slices.Sorted(maps.Keys(v.n.ids)) {
		id := v.n.ids[name]
		before := rowsOf(v.T, v.n.Store)
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
			if changes {
				v.n = openNeighbourhood(v.T, v.n, 0)
				v.view = v.n.As(v.access)
			}
			continue
		case v.access.ReadOnly:
			if !errors.Is(err, ErrReadOnly) {
				v.Errorf("%s of %s through a read-only view gives %v", what, name, err)
			}
		default:
			if !errors.Is(err, ErrForbidden) {
				v.Errorf("%s of %s gives %v, want ErrForbidden", what, name, err)
			}
		}
		if rowsOf(v.T, v.n.Store) != before {
			v.Errorf("%s of %s was refused and changed something", what, name)
		}
	}
}

// onEachCollection calls a method on every collection there is.
func (v visit) onEachCollection(what string, changes bool, call func(s *Store, name string) (any, error)) {
	v.Helper()
	for _, m := range neighbours {
		before := rowsOf(v.T, v.n.Store)
		answer, err := call(v.view, m.collection)
		v.check(what+" of "+m.collection, answer, err, m.collection)
		own := v.access.User == m.user
		switch {
		case !slices.Contains(v.collections, m.collection):
			const nowhere = "qqqqqqqqqqqqqqqq"
			_, want := call(v.view, nowhere)
			if !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrReadOnly) || strings.ReplaceAll(err.Error(), m.collection, nowhere) != want.Error() {
				v.Errorf("%s of %s, which cannot be seen, gives %v; of an unknown one, %v", what, m.collection, err, want)
			}
		case !changes:
			if err != nil {
				v.Errorf("%s of %s: %v", what, m.collection, err)
			}
		case v.access.ReadOnly:
			if !errors.Is(err, ErrReadOnly) {
				v.Errorf("%s of %s through a read-only view gives %v", what, m.collection, err)
			}
		case !own || v.access.Projects != nil:
			if !errors.Is(err, ErrForbidden) {
				v.Errorf("%s of %s gives %v, want ErrForbidden", what, m.collection, err)
			}
		default:
			if err != nil {
				v.Errorf("%s of %s: %v", what, m.collection, err)
			}
			return // it has changed, so the rest has another view
		}
		if rowsOf(v.T, v.n.Store) != before && changes {
			v.Errorf("%s of %s was refused and changed something", what, m.collection)
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
				v.Errorf("%s: %s is shown as related to what cannot be seen", what, name)
			}
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, v.sees) {
		v.Errorf("%s finds %v, want %v", what, names, v.sees)
	}
}

// visits says for every method what each visitor does with it and what must come of it.
var visits = map[string]func(v visit){
	"Access": func(v visit) {
		got := v.view.Access()
		if !reflect.DeepEqual(got, v.access) {
			v.Errorf("access is %+v", got)
		}
		if len(got.Projects) > 0 {
			got.Projects[0] = "secretplan"
			if !reflect.DeepEqual(v.view.Access(), v.access) {
				v.Error("changing the answer changes the view")
			}
		}
	},
	"As": func(v visit) {
		if len(v.access.Projects) == 0 {
			return
		}
		projects := slices.Clone(v.access.Projects)
		view := v.n.As(Access{User: v.access.User, Projects: projects})
		projects[0] = "secretplan"
		_, err := view.GetMemory(v.Context(), v.n.ids["alicesafe"])
		if seen := slices.Contains(v.sees, "alicesafe"); seen != (err == nil) {
			v.Errorf("changing the slice after As changes the view: %v", err)
		}
	},
	"Close": func(v visit) {
		if err := v.n.Close(); err != nil {
			v.Error(err)
		}
		if _, err := v.view.GetMemory(v.Context(), v.n.ids["aliceopen"]); !errors.Is(err, ErrClosed) {
			v.Errorf("after Close a view gives %v", err)
		}
	},
	"GetMemory": func(v visit) {
		v.onEach("GetMemory", false, func(s *Store, _, id string) (any, error) { return s.GetMemory(v.Context(), id) })
	},
	"Revisions": func(v visit) {
		v.onEach("Revisions", false, func(s *Store, _, id string) (any, error) { return s.Revisions(v.Context(), id) })
	},
	"RelatedMemories": func(v visit) {
		v.onEach("RelatedMemories", false, func(s *Store, _, id string) (any, error) { return s.RelatedMemories(v.Context(), id, 10) })
	},
	"UpdateMemory": func(v visit) {
		v.onEach("UpdateMemory", true, func(s *Store, _, id string) (any, error) {
			return s.UpdateMemory(v.Context(), id, UpdateMemory{Content: content("changed"), Metadata: map[string]any{"state": "archived"}})
		})
	},
	"RestoreRevision": func(v visit) {
		v.onEach("RestoreRevision", true, func(s *Store, name, id string) (any, error) {
			if name == "alicemoved" { // whose first revision lies in another project
				return s.UpdateMemory(v.Context(), id, UpdateMemory{Content: content("changed")})
			}
			return s.RestoreRevision(v.Context(), id, 1)
		})
	},
	"DeleteMemory": func(v visit) {
		v.onEach("DeleteMemory", true, func(s *Store, _, id string) (any, error) { return nil, s.DeleteMemory(v.Context(), id) })
	},
	"Memories": func(v visit) {
		for _, l := range []List{{}, {Tags: []string{"everybody"}}, {Sort: SortUpdatedDesc}, {Filter: Filter{"key": Not("x")}}} {
			var all []Memory
			var failed error
			for m, err := range v.view.Memories(v.Context(), l) {
				if failed = err; err == nil {
					all = append(all, m)
				}
			}
			v.found(fmt.Sprintf("Memories(%+v)", l), all, failed)
		}
		for _, m := range neighbours {
			for hidden, err := range v.view.Memories(v.Context(), List{Tags: []string{"tag" + m.name}}) {
				if !slices.Contains(v.sees, m.name) {
					v.Errorf("a listing by tag gives %v, %v", hidden, err)
				}
			}
		}
	},
	"Search": func(v visit) {
		for _, q := range []Query{{}, {Text: "common kettle"}, {Vector: wordVector("common kettle")}, {Text: "common kettle", Sort: SortCreatedAsc}, {Text: "everybody", Tags: []string{"everybody"}}, {Text: "kettle", Filter: Filter{"key": Not("x")}}} {
			q.Limit = MaxLimit
			results, err := v.view.Search(v.Context(), q)
			if results.Total != len(v.sees) {
				v.Errorf("Search(%+v) has a total of %d; %d can be seen", q, results.Total, len(v.sees))
			}
			v.check("Search", results, err)
			if q.Sort != SortCreatedAsc { // which goes through the more relevant ones only
				v.found(fmt.Sprintf("Search(%+v)", q), memoriesOf(results), err)
			}
		}
		for _, m := range neighbours {
			for _, q := range []Query{{Text: m.name}, {Text: "tag" + m.name}, {Tags: []string{"tag" + m.name}}, {Filter: Filter{"id": v.n.ids[m.name]}}, {Filter: Filter{"related_memory_ids": v.n.ids[m.name]}}, {ProjectID: "secretplan"}, {ProjectName: "secretplan"}} {
				results, err := v.view.Search(v.Context(), q)
				v.check(fmt.Sprintf("Search(%+v)", q), results, err, "secretplan")
			}
		}
	},
	"Collections": func(v visit) {
		all, err := v.view.Collections(v.Context())
		v.check("Collections", all, err)
		var names []string
		count := 0
		for _, c := range all {
			names = append(names, c.Name)
			count += c.MemoryCount
		}
		slices.Sort(names)
		if want := slices.Sorted(slices.Values(v.collections)); !slices.Equal(names, want) {
			v.Errorf("Collections gives %v, want %v", names, want)
		}
		if count != len(v.sees) {
			v.Errorf("Collections counts %d memories; %d can be seen", count, len(v.sees))
		}
	},
	"GetCollection": func(v visit) {
		v.onEachCollection("GetCollection", false, func(s *Store, name string) (any, error) { return s.GetCollection(v.Context(), name) })
	},
	"UpdateCollection": func(v visit) {
		v.onEachCollection("UpdateCollection", true, func(s *Store, name string) (any, error) { return s.UpdateCollection(v.Context(), name, "changed") })
	},
	"DeleteCollection": func(v visit) {
		v.onEachCollection("DeleteCollection", true, func(s *Store, name string) (any, error) {
			return nil, s.DeleteCollection(v.Context(), DeleteCollection{Name: name, WithMemories: true})
		})
	},
	"AddCollection": func(v visit) { // others' names are free, and nothing tells that they are taken
		for _, m := range neighbours {
			own := v.access.User == m.user
			_, err := v.view.AddCollection(v.Context(), NewCollection{Name: m.collection})
			v.check("AddCollection", nil, err, m.collection)
			switch {
			case v.access.ReadOnly:
				if !isAny(err, ErrReadOnly, ErrForbidden) {
					v.Errorf("a read-only view adding %s gives %v", m.collection, err)
				}
			case v.access.Projects != nil:
				if !errors.Is(err, ErrForbidden) {
					v.Errorf("a limited view adding %s gives %v, want ErrForbidden", m.collection, err)
				}
			case own && !errors.Is(err, ErrConflict):
				v.Errorf("adding the own %s again gives %v, want ErrConflict", m.collection, err)
			}
		}
	},
	"Tags": func(v visit) {
		tags, err := v.view.Tags(v.Context())
		v.check("Tags", tags, err)
		want := map[string]int{}
		for _, name := range v.sees {
			want["tag"+name]++
			want["everybody"]++
		}
		got := map[string]int{}
		for _, tag := range tags {
			got[tag.Name] = tag.Count
		}
		if !maps.Equal(got, want) {
			v.Errorf("Tags gives %v, want %v", got, want)
		}
		v.onEachCollection("Tags", false, func(s *Store, name string) (any, error) { return s.Tags(v.Context(), name) })
	},
	"AddMemory": func(v visit) {
		v.adds("AddMemory", func(s *Store, m NewMemory) (Stored, error) { return s.AddMemory(v.Context(), m) })
	},
	"AddMemories": func(v visit) {
		v.adds("AddMemories", func(s *Store, m NewMemory) (Stored, error) {
			added, err := s.AddMemories(v.Context(), []NewMemory{m}, nil)
			if err != nil {
				return Stored{}, err
			}
			return added[0], nil
		})
	},
	"Embedding": func(v visit) {
		before, err := v.view.Embedding(v.Context())
		v.check("Embedding", before, err)
		mustAdd(v.T, v.n.As(Access{User: "somebody else"}), NewMemory{Content: "not for your eyes"})
		after, err := v.view.Embedding(v.Context())
		if err != nil || after != before {
			v.Errorf("Embedding tells of another user's memory: %+v, then %+v, %v", before, after, err)
		}
	},
	"WaitEmbedded": func(v visit) {
		if err := v.view.WaitEmbedded(v.Context()); err != nil {
			v.Error(err)
		}
	},
}

func memoriesOf(r Results) []Memory {
	var all []Memory
	for _, h := range r.Hits {
		all = append(all, h.Memory)
	}
	return all
}

// adds stores what says the same as somebody's memory, links to it, or wants to be in its place.
func (v visit) adds(what string, add func(*Store, NewMemory) (Stored, error)) {
	v.Helper()
	for _, m := range neighbours {
		id := v.n.ids[m.name]
		added, err := add(v.view, NewMemory{Content: v.n.contents[m.name], Similar: 20})
		if !errors.Is(err, v.visitor.adds) {
			v.Errorf("%s gives %v, want %v", what, err, v.visitor.adds)
		}
		if err == nil {
			if found := slices.ContainsFunc(added.Similar, func(s Similar) bool { return s.ID == id }); found != slices.Contains(v.sees, m.name) {
				v.Errorf("%s hints at %s: %v", what, m.name, found)
			}
			if err := v.view.DeleteMemory(v.Context(), added.ID); err != nil {
				v.Errorf("a memory just added cannot be deleted: %v", err)
			}
		}
		added.Content = "" // which the visitor gave
		v.check(what, added, err, m.name)

		added, err = add(v.view, NewMemory{Content: "linking", Related: []string{id}})
		v.check(what+" with a link", added, err, id)
		if v.visitor.adds == nil && (err == nil) != slices.Contains(v.sees, m.name) {
			v.Errorf("%s with a link to %s gives %v", what, m.name, err)
		}
		if err == nil {
			_ = v.view.DeleteMemory(v.Context(), added.ID)
		}

		if v.access.User != m.user { // into others' collections nobody stores
			_, err = add(v.view, NewMemory{Content: "intruding", Collection: m.collection})
			if v.visitor.adds == nil && !isAny(err, ErrNotFound, ErrForbidden) {
				v.Errorf("%s into the collection %s of %s gives %v", what, m.collection, m.user, err)
			}
			v.check(what+" into another's collection", nil, err, m.collection)
		}
	}
	_, err := add(v.view, NewMemory{Content: "into the project", ProjectID: "alice/shared"})
	want := map[string]error{"alice": nil, "carol": nil, "dave": nil, "bob": ErrForbidden, "frank": ErrForbidden, "eve": ErrInvalid, "nobody": ErrInvalid}[v.access.User]
	switch {
	case v.access.ReadOnly:
		want = ErrReadOnly
	case v.access.Projects != nil && !slices.Contains(v.sees, "aliceopen"):
		want = ErrForbidden
	}
	if !errors.Is(err, want) {
		v.Errorf("%s into alice/shared gives %v, want %v", what, err, want)
	}
	v.check(what+" into a project", nil, err)
}

func TestEveryMethodKeepsToItsView(t *testing.T) {
	methods := reflect.TypeFor[*Store]()
	for i := range methods.NumMethod() {
		if name := methods.Method(i).Name; visits[name] == nil {
			t.Errorf("Store.%s has no entry in visits: say there who may see and change what through it", name)
		}
	}
	for name := range visits {
		if _, ok := methods.MethodByName(name); !ok {
			t.Errorf("visits has %s, which is no method of Store", name)
		}
	}
	built := buildNeighbourhood(t)
	for method, perform := range visits {
		t.Run(method, func(t *testing.T) {
			for _, memory := range []int64{0, -1} {
				if memory < 0 && method != "Search" {
					continue // the index makes no difference to the others
				}
				n := openNeighbourhood(t, built, memory)
				before := rowsOf(t, n.Store)
				for _, visitor := range visitors {
					t.Run(fmt.Sprintf("%s, index %d", visitor.name, memory), func(t *testing.T) {
						perform(visit{t, visitor, n, n.As(visitor.access)})
					})
					if method == "Close" || rowsOf(t, n.Store) != before { // each visitor comes to the same place
						n = openNeighbourhood(t, built, memory)
						before = rowsOf(t, n.Store)
					}
				}
			}
		})
	}
}

func TestScoresTellNothingOfOthersMemories(t *testing.T) {
	for name, memory := range map[string]int64{"in memory": 0, "on disk": -1} {
		t.Run(name, func(t *testing.T) {
			broken := errors.New("no vectors for these")
			words := wordEmbedder("words-1")
			s := openWords(t, filepath.Join(t.TempDir(), "scores.db"), Options{IndexMemory: memory, Embedder: EmbedderFunc("words-1", wordSize,
				func(ctx context.Context, p Purpose, texts []string) ([][]float32, error) {
					if strings.Contains(texts[0], "unembeddable") {
						return nil, broken
					}
					return words.Embed(ctx, p, texts)
				})})
			alice, bob := s.As(Access{User: "alice"}), s.As(Access{User: "bob"})
			for i := range 5 {
				mustAdd(t, alice, NewMemory{Content: fmt.Sprintf("the apple number %d is %s red", i, strings.Repeat("very ", i))})
			}
			ask := func() []Results {
				var all []Results
				for _, q := range []Query{{Text: "red apple"}, {Text: "apple", Sort: SortUpdatedAsc}, {Vector: wordVector("red apple")}, {Text: "quince"}, {}} {
					found, err := alice.Search(t.Context(), q)
					if err != nil {
						t.Fatal(err)
					}
					all = append(all, found)
				}
				return all
			}
			before := ask()
			many := make([]NewMemory, 300)
			for i := range many {
				many[i] = NewMemory{Content: fmt.Sprintf("red apple, quince, and a long tail of other words to change the mean length: %d", i), ProjectID: "bobs"}
			}
			if _, err := bob.AddMemories(t.Context(), many, nil); err != nil {
				t.Fatal(err)
			}
			mustAdd(t, bob, NewMemory{Content: "unembeddable red apple"})
			after := ask()
			if !reflect.DeepEqual(before, after) {
				t.Errorf("alice's results change with what bob stores:\n%+v\n%+v", before, after)
			}
			if len(before[0].Hits) != 5 || before[0].Hits[0].Score == 0 {
				t.Errorf("the comparison is of nothing: %+v", before[0])
			}
		})
	}
}

// A reader of a project must not find out, by filters, that a memory there links to one outside it.
func TestFiltersByLinksTellNothingOfInvisibleMemories(t *testing.T) {
	s, err := Open(t.Context(), ":memory:", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	anna, ben := s.As(Access{User: "anna"}), s.As(Access{User: "ben"})
	private, err := anna.AddMemory(t.Context(), NewMemory{Content: "private"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := anna.AddMemory(t.Context(), NewMemory{Content: "shared", ProjectID: "p", Related: []string{private.ID}}); err != nil {
		t.Fatal(err)
	}
	if _, err := ben.AddMemory(t.Context(), NewMemory{Content: "mine"}); err != nil {
		t.Fatal(err)
	}
	err = s.db.Write(t.Context(), func(tx *sqlite.Tx) error {
		_, err := tx.Exec(`INSERT INTO project_member (project_id, user_id, role, created_at)
			SELECT j.id, u.id, 'reader', 0 FROM project j, user u WHERE j.uid = 'p' AND u.uid = 'ben'`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		filter    Filter
		anna, ben int
	}{
		{Filter{"related_memory_ids": private.ID}, 1, 0},
		{Filter{"related_memory_ids": Condition{AtLeast: "0"}}, 1, 0},
		{Filter{"related_memory_ids": nil, "project_id": "p"}, 0, 1},
		{Filter{"related_memory_ids": Not(private.ID), "project_id": "p"}, 0, 1},
	} {
		for _, view := range []struct {
			*Store
			want int
		}{{anna, c.anna}, {ben, c.ben}} {
			results, err := view.Search(t.Context(), Query{Filter: c.filter})
			if err != nil || results.Total != view.want {
				t.Errorf("%s finds %d with %v (%v), want %d", view.access.User, results.Total, c.filter, err, view.want)
			}
		}
	}
}

// A view that is limited to one project must not learn the name of another from an error.
func TestLimitedViewsLearnNothingFromErrorsAboutProjects(t *testing.T) {
	s, err := Open(t.Context(), ":memory:", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for id, name := range map[string]string{"p1": "open", "p2": "secret merger"} {
		if _, err := s.AddMemory(t.Context(), NewMemory{Content: "x", ProjectID: id, ProjectName: name}); err != nil {
			t.Fatal(err)
		}
	}
	limited := s.As(Access{Projects: []string{"p1"}})
	for _, q := range []Query{{ProjectID: "p2", ProjectName: "zz"}, {ProjectID: "zz", ProjectName: "secret merger"}} {
		results, err := limited.Search(t.Context(), q)
		if err != nil || results.Total != 0 {
			t.Errorf("%+v answers %d, %v", q, results.Total, err)
		}
		_, err = limited.AddMemory(t.Context(), NewMemory{Content: "x", ProjectID: q.ProjectID, ProjectName: q.ProjectName})
		if !errors.Is(err, ErrForbidden) || strings.Contains(strings.ReplaceAll(err.Error(), q.ProjectID+q.ProjectName, ""), "secret") {
			t.Errorf("storing with %+v: %v", q, err)
		}
	}
	if _, err := s.As(Access{Projects: []string{""}}).AddMemory(t.Context(), NewMemory{Content: "x", ProjectName: "any"}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a limit without a name stores: %v", err)
	}
}
