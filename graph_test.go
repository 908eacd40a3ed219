package souvenir

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// drawn describes the graph and the map of a view.
func drawn(ctx context.Context, t *testing.T, s *Store, l MemoryList) string {
	t.Helper()
	g, err := s.Insights().Graph(ctx, GraphQuery{MemoryList: l, Similar: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Insights().Map(ctx, MapQuery{MemoryList: l})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%+v\n%+v", g, m)
}

// A cached graph and map must equal new ones after each kind of change, also by another handle or undone.
func TestKeptPicturesFollowEachChange(t *testing.T) {
	longtest.Only(t)
	path := filepath.Join(t.TempDir(), "pictures.db")
	s, other := openWords(t, path, Options{}), openWords(t, path, Options{})
	before := ""
	check := func(when string, view func(*Store) *Store, l MemoryList) {
		t.Helper()
		fresh := openWords(t, path, Options{})
		want := drawn(t.Context(), t, view(fresh), l)
		for range 2 {
			if got := drawn(t.Context(), t, view(s), l); got != want {
				t.Errorf("%s: got %s, want %s", when, got, want)
			}
		}
		if want == before {
			t.Errorf("%s: nothing has changed: %s, want a change", when, want)
		}
		before = want
		if err := fresh.Close(); err != nil {
			t.Fatal(err)
		}
	}
	mine := func(s *Store) *Store { return s }
	text := func(n int) string { return fmt.Sprintf("The nightly backup of the ledger runs at %d:00 on Falcon", n) }
	mustAddCollection(t, s, NewCollection{Name: "nights"})
	first := mustAdd(t, s, NewMemory{Content: text(4), Collection: "nights", Tags: []string{"night"}})
	second := mustAdd(t, s, NewMemory{Content: text(5), ProjectID: "ledger"})
	mustAdd(t, s, NewMemory{Content: "Peas and tomatoes need water", Metadata: map[string]any{"kind": "garden"}})
	check("at first", mine, MemoryList{})
	check("of a tag", mine, MemoryList{Tags: []string{"night"}})
	check("of an own key", mine, MemoryList{Filter: Filter{"kind": "garden"}})
	check("in another order", mine, MemoryList{Sort: SortCreatedAsc})
	third := mustAdd(t, other, NewMemory{Content: text(6), Related: []string{first.ID}})
	check("after another handle's addition", mine, MemoryList{})
	if _, err := other.UpdateMemory(t.Context(), first.ID, MemoryUpdate{Content: new(text(7))}); err != nil {
		t.Fatal(err)
	}
	check("after an update", mine, MemoryList{})
	if _, err := other.UpdateMemory(t.Context(), first.ID, MemoryUpdate{EventType: new("fact")}); err != nil {
		t.Fatal(err)
	}
	check("after an update of a type", mine, MemoryList{})
	if _, err := other.UpdateCollection(t.Context(), "nights", CollectionUpdate{Name: new("renamed")}); err != nil {
		t.Fatal(err)
	}
	check("after another name of a collection", mine, MemoryList{})
	undone := errors.New("undone")
	err := s.Transaction(t.Context(), func(ctx context.Context) error {
		_, err := s.UpdateMemory(ctx, third.ID, MemoryUpdate{Content: new("Something else")})
		if got := drawn(ctx, t, s, MemoryList{}); got == before {
			t.Errorf("in a transaction: got %s, want what it has written", got)
		}
		return errors.Join(err, undone)
	})
	if !errors.Is(err, undone) {
		t.Fatalf("got %v, want %v", err, undone)
	}
	if got := drawn(t.Context(), t, s, MemoryList{}); got != before {
		t.Errorf("after it was undone: got %s, want %s", got, before)
	}
	if err := s.DeleteMemory(t.Context(), third.ID, nil); err != nil {
		t.Fatal(err)
	}
	check("after a deletion", mine, MemoryList{})
	addAccount(t, s, "bob", "bob")
	bob := func(s *Store) *Store { return s.As(Access{User: "bob"}) }
	check("of another user", bob, MemoryList{})
	share(t, s, "ledger", "bob", MemberReader)
	check("of another user, once a project is shared", bob, MemoryList{})
	if err := s.DeleteMember(t.Context(), ProjectRef{ID: "ledger"}, "bob"); err != nil {
		t.Fatal(err)
	}
	check("of another user, once it is no more", bob, MemoryList{})
	if got := drawn(t.Context(), t, bob(s), MemoryList{}); len(second.ID) == 0 || got != before {
		t.Errorf("of another user: got %s, want %s", got, before)
	}
}

// A cached picture is not made again, and a caller's changes do not reach it.
func TestPicturesAreMadeOnceAfterAChange(t *testing.T) {
	s := openWords(t, "", Options{})
	old := mustAdd(t, s, NewMemory{Content: "Tests run in the morning"})
	first := mustAdd(t, s, NewMemory{Content: "The branch that we deploy from is main"})
	mustAdd(t, s, NewMemory{Content: "We deploy on Thursdays", Related: []string{first.ID}})
	links := func(want int) {
		t.Helper()
		g, err := s.Insights().Graph(t.Context(), GraphQuery{Neighbours: -1})
		if err != nil || len(g.Edges) != want || len(g.Nodes) < 2 || g.Nodes[0].Label == "changed" {
			t.Fatalf("got %+v, %v, want %d links", g, err, want)
		}
		g.Nodes[0].Label = "changed"
		if want > 0 {
			g.Edges[0].To = 7
		}
		m, err := s.Insights().Map(t.Context(), MapQuery{})
		if err != nil || len(m.Points) < 2 || m.Points[0].Label == "changed" {
			t.Fatalf("got %+v, %v, want the map as it was", m, err)
		}
		m.Points[0].Label = "changed"
	}
	links(1)
	statements(t, s, `DELETE FROM memory_link`) // which the change log does not record
	links(1)
	mustAdd(t, s, NewMemory{Content: "Tests run at night", Supersedes: old.ID})
	links(0)
	statements(t, s, `UPDATE memory SET event_type = 'unlogged'`,
		`DELETE FROM change WHERE seq > (SELECT max(seq) FROM change) - 3`)
	mustAdd(t, s, NewMemory{Content: "Tests also run at noon"})
	g, err := s.Insights().Graph(t.Context(), GraphQuery{})
	if err != nil || len(g.Nodes) != 4 || g.Nodes[3].EventType != "" {
		t.Errorf("got %+v, %v; want 4 memories, and only the changed one read again", g.Nodes, err)
	}
}

// A kept sample of many memories outlives changes of others, and follows those of its own, as the first memories in any
// order do.
func TestKeptSamplesFollowEachChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "samples.db")
	s := openWords(t, path, Options{})
	var ids []string
	add := func(i int) {
		ids = append(ids, mustAdd(t, s, NewMemory{Content: fmt.Sprintf("Boat %d of harbour %d", i, i%7)}).ID)
	}
	for i := range 60 {
		add(i)
	}
	successor := ""
	for i := range longtest.Size(42, 7) {
		var err error
		switch at := ids[i]; i % 7 {
		case 0:
			add(60 + i)
		case 1:
			_, err = s.UpdateMemory(t.Context(), at, MemoryUpdate{Content: new(fmt.Sprintf("Kettle %d", i))})
		case 2:
			err = s.DeleteMemory(t.Context(), at, nil)
		case 3: // hides the other one, which is one of the newest, and not changed itself
			successor = mustAdd(t, s, NewMemory{Content: fmt.Sprint("Newer ", i), Supersedes: ids[len(ids)-1]}).ID
		case 4: // both are hidden, one by the other
			mustAdd(t, s, NewMemory{Content: fmt.Sprint("Newest ", i), Supersedes: successor})
		case 5: // the other one stands again
			err = s.DeleteMemory(t.Context(), successor, nil)
		default: // and is hidden again
			_, err = s.Trash().Restore(t.Context(), successor)
		}
		if err != nil {
			t.Fatal(err)
		}
		fresh := openWords(t, path, Options{})
		var drawn [2]string
		for n, store := range []*Store{s, fresh} {
			m, err := store.Insights().Map(t.Context(), MapQuery{Limit: 20, Sample: true})
			if err != nil {
				t.Fatal(err)
			}
			drawn[n] = fmt.Sprintf("%+v", m)
			for _, order := range sortOrders[1:] {
				g, err := store.Insights().Graph(t.Context(), GraphQuery{MemoryList: MemoryList{Sort: order}, Limit: 20,
					Neighbours: -1})
				if err != nil {
					t.Fatal(err)
				}
				drawn[n] += fmt.Sprintf("\n%s %+v", order, g)
			}
		}
		if drawn[0] != drawn[1] {
			t.Fatalf("after change %d: got %s, want %s", i, drawn[0], drawn[1])
		}
		if err := fresh.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A stale graph has the similarities of memories that are as they were, and no words of others.
func TestAStaleGraphTakesInChanges(t *testing.T) {
	s := openWords(t, "", Options{})
	var ids []string
	for _, text := range []string{"hot green tea", "hot green tea, again", "the red car", "the red car, again",
		"a red car is fast"} {
		ids = append(ids, mustAdd(t, s, NewMemory{Content: text}).ID)
	}
	names := func(g Graph) (all []string) {
		for _, cluster := range g.Clusters {
			all = append(all, cluster.Name)
		}
		return all
	}
	pairs := func(stale bool) (Graph, []string) {
		t.Helper()
		g, err := s.Insights().Graph(t.Context(), GraphQuery{Similar: 0.01, Stale: stale})
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, edge := range g.Edges {
			some := []string{g.Nodes[edge.From].Label, g.Nodes[edge.To].Label}
			slices.Sort(some)
			all = append(all, fmt.Sprintf("%q %s %.3f %s", some, edge.Kind, edge.Score, edge.Shared))
		}
		slices.Sort(all)
		return g, all
	}
	first, before := pairs(true)
	if first.Stale || len(before) < 2 || len(first.Clusters) == 0 {
		t.Fatalf("the first graph: got %+v, want edges, clusters, and nothing stale", first)
	}
	fresh := []string{mustAdd(t, s, NewMemory{Content: "cold green tea", Related: []string{ids[2]}}).ID,
		mustAdd(t, s, NewMemory{Content: "a stone"}).ID}
	before = append(before, `["cold green tea" "the red car"] related 0.000 `)
	slices.Sort(before)
	if g, got := pairs(true); !g.Stale || !slices.Equal(got, before) || !slices.Equal(names(g), names(first)) {
		t.Errorf("after a change: got %v %q %q, want %q %q, stale", g.Stale, got, names(g), before, names(first))
	}
	for _, id := range []string{ids[2], ids[3]} {
		if err := s.DeleteMemory(t.Context(), id, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.UpdateMemory(t.Context(), ids[4], MemoryUpdate{Content: new("a fast ship")}); err != nil {
		t.Fatal(err)
	}
	if g, got := pairs(true); g.Stale || strings.Contains(fmt.Sprint(got, names(g)), "car") {
		t.Errorf("after most have changed: got %v %q %q, want an exact graph", g.Stale, got, names(g))
	}
	for _, id := range fresh {
		if err := s.DeleteMemory(t.Context(), id, nil); err != nil {
			t.Fatal(err)
		}
	}
	if g, got := pairs(true); !g.Stale || strings.Contains(fmt.Sprint(got, names(g)), "cold") {
		t.Errorf("got %v %q %q, want no word of a memory that is gone", g.Stale, got, names(g))
	}
	_, want := pairs(false)
	if g, got := pairs(true); g.Stale || !slices.Equal(got, want) {
		t.Errorf("once an exact one is kept: got %v %q, want %q", g.Stale, got, want)
	}
}

func TestAMapThatStartsFarAwayIsRefused(t *testing.T) {
	s := openWords(t, "", Options{})
	for i := range 5 {
		mustAdd(t, s, NewMemory{Content: fmt.Sprint("hot green tea ", i)})
	}
	for _, far := range []float64{math.NaN(), math.Inf(-1), 1e40} {
		start, err := s.Insights().Map(t.Context(), MapQuery{Layout: LayoutNeighbours})
		if err != nil {
			t.Fatal(err)
		}
		start.Points[1].Y = far
		for _, layout := range []MapLayout{LayoutKept, LayoutNeighbours} {
			m, err := s.Insights().Map(t.Context(), MapQuery{Layout: layout, Start: &start})
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("%s, which starts at %v: got %v, %v, want ErrInvalid", layout, far, m.Points, err)
			}
		}
	}
}

// A kept layout keeps the places of memories as they were. Others are beside the most similar one, and the names of
// clusters have no words of memories that are gone.
func TestAKeptLayoutTakesInChanges(t *testing.T) {
	s := openWords(t, "", Options{})
	add := func(text string, n int) (ids []string) {
		for i := range n {
			ids = append(ids, mustAdd(t, s, NewMemory{Content: fmt.Sprint(text, " ", i)}).ID)
		}
		return ids
	}
	tea, cars := add("hot green tea", 5), add("the red car", 5)
	mapOf := func(view *Store, q MapQuery) (Map, map[string]Point) {
		t.Helper()
		m, err := view.Insights().Map(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		at := map[string]Point{}
		for _, point := range m.Points {
			at[point.ID] = point
		}
		return m, at
	}
	start, was := mapOf(s, MapQuery{Layout: LayoutNeighbours})
	kept := MapQuery{Layout: LayoutKept, Start: &start}
	if same, _ := mapOf(s, kept); fmt.Sprint(same) != fmt.Sprint(start) || len(same.Clusters) != 2 {
		t.Errorf("without a change: got %+v, want %+v", same, start)
	}
	if _, err := s.UpdateMemory(t.Context(), tea[0], MemoryUpdate{Content: new("the red car 7")}); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteMemory(t.Context(), cars[0], nil); err != nil {
		t.Fatal(err)
	}
	fresh := add("hot green tea, and more of it", 1)[0]
	m, at := mapOf(s, kept)
	if m.Version == start.Version || len(m.Points) != 10 || at[tea[1]].X != was[tea[1]].X {
		t.Errorf("after changes: got %+v, want 10 points of another version, with the same places", m)
	}
	const beside = 0.02
	near := func(id string, others []string) bool {
		return slices.ContainsFunc(others, func(other string) bool {
			apart := math.Hypot(at[id].X-at[other].X, at[id].Y-at[other].Y)
			return apart > 0 && apart < beside
		})
	}
	if !near(fresh, tea[1:]) || !near(tea[0], cars[1:]) {
		t.Errorf("got %+v, want what is new or has changed beside what is similar", at)
	}
	for _, id := range tea[1:] {
		if err := s.DeleteMemory(t.Context(), id, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.DeleteMemory(t.Context(), fresh, nil); err != nil {
		t.Fatal(err)
	}
	start.Points[slices.IndexFunc(start.Points, func(p Point) bool { return p.ID == cars[1] })].Label = "tea"
	for i := range start.Clusters {
		start.Clusters[i].Name = "red, tea"
	}
	m, _ = mapOf(s, kept)
	if len(m.Points) != 5 || len(m.Clusters) != 1 || m.Clusters[0].Name != "" {
		t.Errorf("with words of deleted memories: got %+v, want one cluster without a name", m)
	}
	if m, _ = mapOf(s.As(Access{User: "bob"}), kept); len(m.Points)+len(m.Clusters)+m.Unplaced > 0 || m.Version != "" {
		t.Errorf("of another user: got %+v, want nothing", m)
	}
	start.Points, start.Clusters[0].Nodes = start.Points[:1], []int{-1, 7}
	if m, _ = mapOf(s, kept); len(m.Points) != 5 || len(m.Clusters) > 0 || m.Explained == [2]float64{} {
		t.Errorf("with one known place: got %+v, want all by axes", m)
	}
	start.Points = nil
	if m, _ = mapOf(s, kept); len(m.Points) != 5 {
		t.Errorf("of an empty map: got %+v, want all by axes", m)
	}
}
