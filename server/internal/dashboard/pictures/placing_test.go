package pictures

import (
	"testing"

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
	at, err := p.of(t.Context(), first)
	if err != nil || len(at.places) != 8 || len(at.folded) != 2 {
		t.Fatalf("got %+v, %v, want 4 places, 2 of them folded", at, err)
	}
	again, err := p.of(t.Context(), graph(souvenir.EdgeSimilar, 0.7, 1))
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
		if got, err := p.of(t.Context(), other); err != nil || &got.places[0] == &at.places[0] {
			t.Errorf("%s: got the places of other connections, %v, want its own", name, err)
		}
	}
}
