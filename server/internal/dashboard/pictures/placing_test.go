package pictures

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// The positions of memories depend on their connections alone, and are computed once for the same ones.
func TestPlacingsAreKept(t *testing.T) {
	graph := func(kind souvenir.EdgeKind, score float64, to int) souvenir.Graph {
		return souvenir.Graph{Nodes: make([]souvenir.Node, 4),
			Edges: []souvenir.Edge{{From: 0, To: to, Kind: kind, Score: score}}}
	}
	first := graph(souvenir.EdgeSimilar, 0.7, 1)
	var p placings
	_, at, err := p.of(t.Context(), mapKey{}, first, nil)
	if err != nil || len(at.places) != 8 || len(at.folded) != 2 {
		t.Fatalf("got %+v, %v, want 4 places, 2 of them folded", at, err)
	}
	_, again, err := p.of(t.Context(), mapKey{}, graph(souvenir.EdgeSimilar, 0.7, 1), nil)
	if err != nil || &again.places[0] != &at.places[0] {
		t.Errorf("of the same connections: got other places, %v, want those that are kept", err)
	}
	shorter := first
	shorter.Nodes = shorter.Nodes[:3]
	weak := first
	weak.Edges, weak.Nearest = nil, first.Edges
	for name, other := range map[string]souvenir.Graph{"another memory": graph(souvenir.EdgeSimilar, 0.7, 2),
		"another score": graph(souvenir.EdgeSimilar, 0.6, 1), "a link": graph(souvenir.EdgeRelated, 0.7, 1),
		"fewer memories": shorter, "no edge": weak} {
		if _, got, err := p.of(t.Context(), mapKey{user: name}, other, nil); err != nil || &got.places[0] == &at.places[0] {
			t.Errorf("%s: got the places of other connections, %v, want its own", name, err)
		}
	}
}

// After a change memories stay where they were, and a new one is beside its neighbour. The next request gets the places
// computed in the background. Another user gets none of that.
func TestPlacingsTakeInChanges(t *testing.T) {
	var before souvenir.Graph
	for i := range 8 {
		before.Nodes = append(before.Nodes, souvenir.Node{ID: fmt.Sprint(i)})
		before.Edges = append(before.Edges, souvenir.Edge{From: i, To: (i + 1) % 8, Kind: souvenir.EdgeRelated})
	}
	after := souvenir.Graph{Nodes: append([]souvenir.Node{{ID: "new"}}, before.Nodes[:7]...)} // the last one is gone
	for i := range 6 {
		after.Edges = append(after.Edges, souvenir.Edge{From: i + 1, To: i + 2, Kind: souvenir.EdgeRelated})
	}
	after.Edges = append(after.Edges, souvenir.Edge{From: 0, To: 3, Kind: souvenir.EdgeSimilar, Score: 0.7})
	var p placings
	ann, ben := mapKey{user: "ann"}, mapKey{user: "ben"}
	of := func(key mapKey, g souvenir.Graph) placing {
		t.Helper()
		_, at, err := p.of(t.Context(), key, g, nil)
		if err != nil || len(at.places) != 2*len(g.Nodes) {
			t.Fatalf("got %+v, %v, want a place for each memory", at, err)
		}
		return at
	}
	first := of(ann, before)
	most := max(slices.Max(first.places), -slices.Min(first.places))
	at := of(ann, after)
	for i, place := range first.places[:14] {
		if got := at.places[2+i]; got != place/most {
			t.Errorf("memory %d moved: got %v, want %v", i/2, got, place/most)
		}
	}
	if apart := math.Hypot(float64(at.places[0]-at.places[6]), float64(at.places[1]-at.places[7])); !(apart > 0 &&
		apart < 0.02) {
		t.Errorf("the new memory is %v from its neighbour, want it beside it", apart)
	}
	p.computing.Lock() // until that is computed
	defer p.computing.Unlock()
	want, folded, err := graphPlaces(t.Context(), after)
	if got := of(ann, after); err != nil || !slices.Equal(got.places, want) || len(folded) > 0 {
		t.Errorf("the next time: got %v, %v, want %v", got.places, err, want)
	}
	fewer := after
	fewer.Edges = after.Edges[1:]
	want, _, err = graphPlaces(t.Context(), fewer)
	if got := of(ben, fewer); err != nil || !slices.Equal(got.places, want) {
		t.Errorf("of another user: got %v, %v, want the places of their own graph, %v", got.places, err, want)
	}
}

// A graph that changes before each request still gets the places computed in the background, and follows each change.
func TestPlacingsFollowEachChange(t *testing.T) {
	const memories = 8
	var p placings
	nodes := make([]souvenir.Node, memories)
	for i := range nodes {
		nodes[i].ID = fmt.Sprint(i)
	}
	var before []float32
	for step := range memories {
		nodes[step].UpdatedAt = time.Unix(int64(step), 0)
		g := souvenir.Graph{Nodes: slices.Clone(nodes)}
		for i := range memories {
			g.Edges = append(g.Edges, souvenir.Edge{From: i, To: (i + 1) % memories, Kind: souvenir.EdgeSimilar,
				Score: 0.6 + float64((i*step)%memories)/20})
		}
		_, at, err := p.of(t.Context(), mapKey{}, g, nil)
		if err != nil {
			t.Fatal(err)
		}
		if last := (step + memories - 1) % memories; step > 0 {
			most := max(slices.Max(before), -slices.Min(before))
			if got, want := at.places[2*last], before[2*last]/most; got != want {
				t.Errorf("after change %d: got %v for a memory that is as before, want %v", step, got, want)
			}
		}
		p.computing.Lock() // until the places of this graph are computed
		before, _, err = graphPlaces(t.Context(), g)
		p.computing.Unlock()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Instead of a stale graph the next request gets one that is up to date, and memories stay where they were. Without
// places to keep, the request itself waits for it.
func TestAStaleGraphIsReadAnew(t *testing.T) {
	var g souvenir.Graph
	for i := range 6 {
		g.Nodes = append(g.Nodes, souvenir.Node{ID: fmt.Sprint(i)})
		g.Edges = append(g.Edges, souvenir.Edge{From: i, To: (i + 1) % 6, Kind: souvenir.EdgeSimilar, Score: 0.7})
	}
	exact, reads := g, 0
	exact.Edges = append(slices.Clone(g.Edges), souvenir.Edge{From: 0, To: 3, Kind: souvenir.EdgeSimilar, Score: 0.9})
	read := func(context.Context) (souvenir.Graph, error) {
		reads++
		return exact, nil
	}
	stale := g
	stale.Stale = true
	var empty, p placings
	if got, at, err := empty.of(t.Context(), mapKey{}, stale, read); err != nil || got.Stale || len(got.Edges) != 7 ||
		len(at.places) != 12 || reads != 1 {
		t.Errorf("without places: got %+v, %v, %v after %d reads, want the exact graph, read once", got, at, err, reads)
	}
	if _, _, err := p.of(t.Context(), mapKey{}, g, read); err != nil {
		t.Fatal(err)
	}
	got, before, err := p.of(t.Context(), mapKey{}, stale, read)
	if err != nil || !got.Stale {
		t.Fatalf("got %+v, %v, want the stale graph", got, err)
	}
	p.computing.Lock() // until the exact one is read
	defer p.computing.Unlock()
	if _, after, err := p.of(t.Context(), mapKey{}, exact, read); err != nil || reads != 2 ||
		!slices.Equal(after.places, before.places) {
		t.Errorf("got %v, %v after %d reads, want %v and 2 reads", after, err, reads, before)
	}
}
