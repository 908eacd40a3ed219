package systemtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	. "github.com/souvenir-ai/souvenir"
)

// visits calls every method as each visitor, and checks the results.
var visits = map[string]func(v visit){
	"Access": func(v visit) {
		got := v.view.Access()
		if !reflect.DeepEqual(got, v.access) {
			v.Errorf("access is %+v; want %v", got, v.access)
		}
		if len(got.Projects) > 0 {
			got.Projects[0] = "secretplan"
			if !reflect.DeepEqual(v.view.Access(), v.access) {
				v.Errorf("changing the answer changes the view, want %v", v.access)
			}
		}
	},
	"As": func(v visit) {
		if len(v.access.Projects) == 0 {
			return
		}
		projects := slices.Clone(v.access.Projects)
		view := v.n.store.As(Access{User: v.access.User, Projects: projects})
		projects[0] = "secretplan"
		_, err := view.GetMemory(v.Context(), v.n.ids["alicesafe"])
		if seen := slices.Contains(v.sees, "alicesafe"); seen != (err == nil) {
			v.Errorf("changing the slice after As changes the view: got %v, want seen %v", err, seen)
		}
	},
	"Close": func(v visit) {
		if err := v.n.store.Close(); err != nil {
			v.Error(err)
		}
		if _, err := v.view.GetMemory(v.Context(), v.n.ids["aliceopen"]); !errors.Is(err, ErrClosed) {
			v.Errorf("after Close a view gives %v, want ErrClosed", err)
		}
	},
	"GetMemory": func(v visit) {
		v.onEach("GetMemory", false, func(s *Store, _, id string) (any, error) { return s.GetMemory(v.Context(), id) })
	},
	"MemoryStatus": func(v visit) {
		v.onEach("MemoryStatus", false, func(s *Store, name, id string) (any, error) {
			status, err := s.Insights().MemoryStatus(v.Context(), id)
			if writable := slices.Contains(v.changes, name) && !v.access.ReadOnly; err == nil && s == v.view &&
				status.Writable != writable {
				v.Errorf("writable is %v of %s, want %v", status.Writable, name, writable)
			}
			return status, err
		})
	},
	"Revisions": func(v visit) {
		v.onEach("Revisions", false, func(s *Store, _, id string) (any, error) { return s.Revisions(v.Context(), id) })
	},
	"RevisionPage": func(v visit) {
		v.onEach("RevisionPage", false, func(s *Store, _, id string) (any, error) {
			return s.Insights().RevisionPage(v.Context(), id, RevisionQuery{})
		})
	},
	"RelatedMemories": func(v visit) {
		v.onEach("RelatedMemories", false,
			func(s *Store, _, id string) (any, error) { return s.RelatedMemories(v.Context(), id, 10) })
	},
	"UpdateMemory": func(v visit) {
		v.onEach("UpdateMemory", true, func(s *Store, _, id string) (any, error) {
			return s.UpdateMemory(v.Context(), id,
				MemoryUpdate{Content: content("changed"), ShownMetadata: map[string]any{"state": "archived"}})
		})
	},
	"RestoreRevision": func(v visit) {
		v.onEach("RestoreRevision", true, func(s *Store, name, id string) (any, error) {
			if name == "alicemoved" { // whose first revision is in another project
				return s.UpdateMemory(v.Context(), id, MemoryUpdate{Content: content("changed")})
			}
			return s.RestoreRevision(v.Context(), id, 1)
		})
	},
	"DeleteMemory": func(v visit) {
		v.onEach("DeleteMemory", true,
			func(s *Store, _, id string) (any, error) { return nil, s.DeleteMemory(v.Context(), id, nil) })
	},
	"Confined": func(v visit) { // sees the same, and its As grants nothing more
		for _, view := range []*Store{v.view.Confined(), v.view.Confined().As(Access{User: v.access.User})} {
			var all []Memory
			var failed error
			for m, err := range view.Memories(v.Context(), MemoryList{}) {
				if failed = err; err == nil {
					all = append(all, m)
				}
			}
			v.found("Memories of a confined view", all, failed)
		}
		for _, m := range neighbours {
			beyond := v.view.Confined().As(Access{User: m.user})
			_, err := beyond.GetMemory(v.Context(), v.n.ids[m.name])
			if m.user != v.access.User && !errors.Is(err, ErrForbidden) {
				v.Errorf("a confined view reads %s as %s with %v; want ErrForbidden", m.name, m.user, err)
			}
		}
	},
	"Transaction": func(v visit) { // in it, a user's view sees no more, and writes as itself
		other := v.n.store.As(Access{User: "a stranger of the transaction"})
		var stored StoredMemory
		var refused error
		undone := errors.New("undone")
		// The transaction is the operator's; views in it stay limited.
		err := v.n.store.Transaction(v.Context(), func(ctx context.Context) error {
			var all []Memory
			var failed error
			for m, err := range v.view.Memories(ctx, MemoryList{}) {
				if failed = err; err == nil {
					all = append(all, m)
				}
			}
			v.found("Memories in a transaction", all, failed)
			refused = v.view.Transaction(ctx, func(ctx context.Context) error {
				stored, _ = v.view.AddMemory(ctx, NewMemory{Content: "stored in a transaction"}) // a limited view may be refused
				return nil
			})
			if stored.ID != "" {
				if _, err := other.GetMemory(ctx, stored.ID); !errors.Is(err, ErrNotFound) {
					v.Errorf("in the transaction a stranger gets %v; want ErrNotFound", err)
				}
			}
			return undone
		})
		if v.access.ReadOnly != errors.Is(refused, ErrReadOnly) || !errors.Is(err, undone) {
			v.Errorf("Transaction through the view gives %v, and the whole %v, want ErrReadOnly from a view that only "+
				"reads, and the whole undone", refused, err)
		}
		if _, err := v.n.store.GetMemory(v.Context(), stored.ID); !errors.Is(err, ErrNotFound) {
			v.Errorf("after the end the memory gives %v; want ErrNotFound", err)
		}
	},
	"Snapshot": func(v visit) {
		err := v.n.store.Snapshot(v.Context(), func(ctx context.Context) error { // the operator's; views in it stay limited
			var all []Memory
			var failed error
			for m, err := range v.view.Memories(ctx, MemoryList{}) {
				if failed = err; err == nil {
					all = append(all, m)
				}
			}
			v.found("Memories in a snapshot", all, failed)
			return v.view.Snapshot(ctx, func(ctx context.Context) error {
				if _, err := v.view.AddMemory(ctx, NewMemory{Content: "x"}); err == nil {
					v.Error("AddMemory in a snapshot stores a memory, want an error")
				}
				return nil
			})
		})
		if err != nil {
			v.Errorf("Snapshot: %v", err)
		}
	},
	"Memories": func(v visit) {
		for _, l := range []MemoryList{{}, {Tags: []string{"everyone"}}, {Sort: SortUpdatedDesc},
			{Filter: Filter{"key": Not("x")}}} {
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
			for hidden, err := range v.view.Memories(v.Context(), MemoryList{Tags: []string{"tag" + m.name}}) {
				if !slices.Contains(v.sees, m.name) {
					v.Errorf("a listing by tag gives %v, %v: got %v, want %v among the sees", hidden, err, v.sees, m.name)
				}
			}
		}
	},
	"Search": func(v visit) {
		for _, q := range []Query{{}, {Text: "common kettle"}, {Vector: wordVector("common kettle")},
			{Text: "common kettle", Sort: SortCreatedAsc}, {Text: "everyone", Tags: []string{"everyone"}},
			{Text: "kettle", Filter: Filter{"key": Not("x")}}} {
			q.Limit = MaxLimit
			results, err := v.view.Search(v.Context(), q)
			if results.Total != len(v.sees) {
				v.Errorf("Search(%+v) has a total of %d; %d can be seen, want the same", q, results.Total, len(v.sees))
			}
			v.check("Search", results, err)
			if q.Sort != SortCreatedAsc { // which reads only the more relevant ones
				v.found(fmt.Sprintf("Search(%+v)", q), memoriesOf(results), err)
			}
		}
		for _, m := range neighbours {
			for _, q := range []Query{{Text: m.name}, {Text: "tag" + m.name}, {Tags: []string{"tag" + m.name}},
				{Filter: Filter{"id": v.n.ids[m.name]}}, {Filter: Filter{"related_memory_ids": v.n.ids[m.name]}},
				{ProjectID: "secretplan"}, {ProjectName: "secretplan"}} {
				results, err := v.view.Search(v.Context(), q)
				v.check(fmt.Sprintf("Search(%+v)", q), results, err, "secretplan")
			}
		}
	},
	"SearchAll": func(v visit) {
		for _, q := range []Query{{}, {Text: "common kettle"}} {
			var all []Memory
			var failed error
			for h, err := range v.view.SearchAll(v.Context(), q) {
				if failed = err; err == nil {
					all = append(all, h.Memory)
				}
			}
			v.found("SearchAll", all, failed)
		}
	},
	"SearchBatch": func(v visit) {
		all, err := v.view.SearchBatch(v.Context(), []Query{{Limit: MaxLimit}, {Text: "common kettle", Limit: MaxLimit},
			{Text: "kettle", WithoutContent: true, Limit: MaxLimit}})
		v.check("SearchBatch", all, err)
		for i, results := range all {
			if results.Total != len(v.sees) {
				v.Errorf("query %d of SearchBatch has a total of %d; %d can be seen, want the same", i, results.Total, len(v.sees))
			}
			if i < 2 {
				v.found(fmt.Sprintf("query %d of SearchBatch", i), memoriesOf(results), err)
			}
		}
		for _, m := range neighbours {
			all, err := v.view.SearchBatch(v.Context(), []Query{{Text: m.name}, {Filter: Filter{"id": v.n.ids[m.name]}}})
			v.check("SearchBatch for "+m.name, all, err, "secretplan")
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
		names = slices.Compact(names) // two users have one of the same name
		if want := slices.Sorted(slices.Values(v.collections)); !slices.Equal(names, want) {
			v.Errorf("Collections gives %v, want %v", names, want)
		}
		if count != len(v.sees) {
			v.Errorf("Collections counts %d memories; %d can be seen, want the same", count, len(v.sees))
		}
	},
	"GetCollection": func(v visit) {
		v.onEachCollection("GetCollection", false,
			func(s *Store, name string) (any, error) { return s.GetCollection(v.Context(), name) })
	},
	"UpdateCollection": func(v visit) {
		v.onEachCollection("UpdateCollection", true, func(s *Store, name string) (any, error) {
			return s.UpdateCollection(v.Context(), name, CollectionUpdate{Description: content("changed")})
		})
	},
	"CountDue": func(v visit) { // needs the right to change the rule, but changes nothing
		for _, m := range neighbours {
			n, err := v.view.Insights().CountDue(v.Context(), DueQuery{Collection: m.collection})
			v.check("CountDue", n, err, m.collection)
			var want error
			switch {
			case !slices.Contains(v.collections, m.collection):
				want = ErrNotFound
			case !hasCollection(v.access.User, m.collection) || v.access.Projects != nil:
				want = ErrForbidden
			}
			if !errors.Is(err, want) {
				v.Errorf("CountDue of %s gives %v, want %v", m.collection, err, want)
			}
		}
		for _, p := range neighbourProjects {
			_, err := v.view.Insights().CountDue(v.Context(), DueQuery{Project: ProjectRef{ID: p.ref()}})
			var want error
			switch {
			case !v.seesProject(p):
				want = ErrNotFound
			case p.role(v.access.User) != MemberOwner || v.access.Projects != nil:
				want = ErrForbidden
			}
			if !errors.Is(err, want) {
				v.Errorf("CountDue of %s gives %v, want %v", p.ref(), err, want)
			}
		}
	},
	"DeleteCollection": func(v visit) {
		v.onEachCollection("DeleteCollection", true, func(s *Store, name string) (any, error) {
			return nil, s.DeleteCollection(v.Context(), name, &DeletionOptions{WithMemories: true})
		})
	},
	"AddCollection": func(v visit) { // other users' names are free, and nothing reveals that they exist
		for _, m := range neighbours {
			own := hasCollection(v.access.User, m.collection)
			_, err := v.view.AddCollection(v.Context(), NewCollection{Name: m.collection})
			v.check("AddCollection", nil, err, m.collection)
			switch {
			case v.access.ReadOnly:
				if !isAny(err, ErrReadOnly, ErrForbidden) {
					v.Errorf("a read-only view adding %s gives %v, want ErrReadOnly or ErrForbidden", m.collection, err)
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
		tags, err := v.view.Insights().Tags(v.Context())
		v.check("Tags", tags, err)
		want := map[string]int{}
		for _, name := range v.sees {
			want["tag"+name]++
			want["everyone"]++
		}
		got := map[string]int{}
		for _, tag := range tags {
			got[tag.Name] = tag.Count
		}
		if !maps.Equal(got, want) {
			v.Errorf("Tags gives %v, want %v", got, want)
		}
		v.onEachCollection("Tags", false,
			func(s *Store, name string) (any, error) { return s.Insights().Tags(v.Context(), name) })
	},
	"AddMemory": func(v visit) {
		v.adds("AddMemory", func(s *Store, m NewMemory) (StoredMemory, error) { return s.AddMemory(v.Context(), m) })
	},
	"AddMemories": func(v visit) {
		v.adds("AddMemories", func(s *Store, m NewMemory) (StoredMemory, error) {
			added, err := s.AddMemories(v.Context(), []NewMemory{m}, nil)
			if err != nil {
				return StoredMemory{}, err
			}
			return added[0], nil
		})
	},
	"PutMemory": func(v visit) {
		v.adds("PutMemory", func(s *Store, m NewMemory) (StoredMemory, error) {
			m.Key = "a key"
			return s.PutMemory(v.Context(), m)
		})
	},
	"PutMemories": func(v visit) {
		v.adds("PutMemories", func(s *Store, m NewMemory) (StoredMemory, error) {
			m.Key = "a key"
			put, err := s.PutMemories(v.Context(), []NewMemory{m}, nil)
			if err != nil {
				return StoredMemory{}, err
			}
			return put[0], nil
		})
	},
	"GetMemoryByKey": func(v visit) {
		key := MemoryKey{ProjectID: "alice/shared", Key: "the key of alice"}
		stored, err := v.n.store.As(Access{User: "alice"}).PutMemory(v.Context(),
			NewMemory{ProjectID: "shared", Key: key.Key, Content: "not for all"})
		if err != nil {
			v.Fatal(err)
		}
		m, err := v.view.GetMemoryByKey(v.Context(), key)
		v.check("GetMemoryByKey", nil, err)
		if sees := slices.Contains(v.sees, "aliceopen"); (err == nil) != sees || sees && m.ID != stored.ID {
			v.Errorf("GetMemoryByKey gives %v, %v to one who sees the project: %v, want it found by them alone", m.ID,
				err, sees)
		}
		alice := v.n.store.As(Access{User: "alice"})
		if err := alice.DeleteMemory(v.Context(), stored.ID, &DeletionOptions{Erase: true}); err != nil {
			v.Fatal(err)
		}
	},
	"DeleteMemories": func(v visit) {
		done, err := v.view.DeleteMemories(v.Context(), MemoriesDeletion{All: true, DryRun: true})
		v.check("DeleteMemories", done, err)
		v.counts("DeleteMemories", done, err)
	},
	"UpdateMemories": func(v visit) {
		done, err := v.view.UpdateMemories(v.Context(),
			MemoriesUpdate{All: true, DryRun: true, Change: MemoryUpdate{ShownMetadata: map[string]any{"a": 1}}})
		v.check("UpdateMemories", done, err)
		v.counts("UpdateMemories", done, err)
	},
	"EmbeddingStatus": func(v visit) {
		before, err := v.view.Upkeep().EmbeddingStatus(v.Context())
		v.check("EmbeddingStatus", before, err)
		mustAdd(v.T, v.n.store.As(Access{User: "another user"}), NewMemory{Content: "not for your eyes"})
		after, err := v.view.Upkeep().EmbeddingStatus(v.Context())
		if err != nil || after != before {
			v.Errorf("EmbeddingStatus counts another user's memory: %+v, then %+v, %v, want no error and after as before",
				before, after, err)
		}
	},
	"WaitEmbedded": func(v visit) {
		if err := v.view.Upkeep().WaitEmbedded(v.Context()); err != nil {
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

// counts checks what a dry run over everything selects: all that the view may change, and nothing else.
func (v visit) counts(what string, done BulkReport, err error) {
	v.Helper()
	changes := 0
	for _, name := range v.sees {
		if slices.Contains(v.changes, name) {
			changes++
		}
	}
	if err == nil && (done.Selected != changes || done.Selected+done.ReadOnly != len(v.sees)) {
		v.Errorf("%s selects %+v of the %d that are seen; %d can be changed, want all of them counted", what, done,
			len(v.sees), changes)
	}
	if v.access.ReadOnly && !errors.Is(err, ErrReadOnly) {
		v.Errorf("%s gives %v in a view for reading, want ErrReadOnly", what, err)
	}
}

func (v visit) adds(what string, add func(*Store, NewMemory) (StoredMemory, error)) {
	v.Helper()
	for _, m := range neighbours {
		id := v.n.ids[m.name]
		added, err := add(v.view, NewMemory{Content: v.n.contents[m.name], Similar: 20})
		if !errors.Is(err, v.visitor.adds) {
			v.Errorf("%s gives %v, want %v", what, err, v.visitor.adds)
		}
		if err == nil {
			if found := slices.ContainsFunc(added.Similar,
				func(s SimilarMemory) bool { return s.ID == id }); found != slices.Contains(v.sees, m.name) {
				v.Errorf("%s hints at %s: %v, want %v", what, m.name, found, !found)
			}
			if err := v.view.DeleteMemory(v.Context(), added.ID, nil); err != nil {
				v.Errorf("a memory just added cannot be deleted: %v", err)
			}
		}
		added.Content = "" // which the visitor gave
		v.check(what, added, err, m.name)

		added, err = add(v.view, NewMemory{Content: "linking", Related: []string{id}})
		v.check(what+" with a link", added, err, id)
		if v.visitor.adds == nil && (err == nil) != slices.Contains(v.sees, m.name) {
			v.Errorf("%s with a link to %s gives %v, want no error just where it is seen", what, m.name, err)
		}
		if err == nil {
			_ = v.view.DeleteMemory(v.Context(), added.ID, nil)
		}

		// A view of one project stores into that project, and so into its owner's collections that are visible there.
		inProject := len(v.access.Projects) == 1 && slices.Contains(v.collections, m.collection)
		if !hasCollection(v.access.User, m.collection) && !inProject { // others' collections accept nothing
			_, err = add(v.view, NewMemory{Content: "intruding", Collection: m.collection})
			if v.visitor.adds == nil && !isAny(err, ErrNotFound, ErrForbidden) {
				v.Errorf("%s into the collection %s of %s gives %v, want ErrNotFound or ErrForbidden", what, m.collection, m.user,
					err)
			}
			v.check(what+" into another's collection", nil, err, m.collection)
		}
	}
	_, err := add(v.view, NewMemory{Content: "into the project", ProjectID: "alice/shared"})
	want := map[string]error{"alice": nil, "carol": nil, "dave": nil, "bob": ErrForbidden, "frank": ErrForbidden,
		"eve": ErrInvalid, "noah": ErrInvalid}[v.access.User]
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
