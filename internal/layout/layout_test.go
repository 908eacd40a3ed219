package layout

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
)

// clusters makes a graph of n nodes in groups, within which nodes have three edges each, and a few between the groups.
func clusters(n, groups int) []Edge {
	random := rand.New(rand.NewPCG(1, 2))
	var edges []Edge
	for i := range n {
		for range 3 {
			other := random.IntN(n/groups)*groups + i%groups
			edges = append(edges, Edge{i, other, 0.5 + random.Float32()})
		}
		if random.IntN(50) == 0 {
			edges = append(edges, Edge{i, random.IntN(n), 0.5})
		}
	}
	return edges
}

func distance(places []float32, a, b int) float64 {
	return math.Hypot(float64(places[2*a]-places[2*b]), float64(places[2*a+1]-places[2*b+1]))
}

func checkFinite(t *testing.T, places []float32, n int) {
	t.Helper()
	if len(places) != 2*n {
		t.Fatalf("%d numbers for %d nodes, want %v", len(places), n, 2*n)
	}
	for _, v := range places {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) || math.Abs(float64(v)) > 1e4 {
			t.Fatalf("a node is at %v, want it within 10,000", v)
		}
	}
}

func TestTheSameGraphGetsTheSamePlaces(t *testing.T) {
	edges := clusters(1500, 10)
	first, err := Places(t.Context(), 1500, edges)
	if err != nil {
		t.Fatal(err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	again, err := Places(t.Context(), 1500, edges)
	if err != nil || !slices.Equal(first, again) {
		t.Fatalf("other places %v, want no error and first %v", err, again)
	}
}

// Connected nodes are closer together than others.
func TestNeighboursLieTogether(t *testing.T) {
	const n = 2000
	edges := clusters(n, 20)
	places, err := Places(t.Context(), n, edges)
	if err != nil {
		t.Fatal(err)
	}
	checkFinite(t, places, n)
	var connected, any float64
	for _, e := range edges {
		connected += distance(places, e.A, e.B) / float64(len(edges))
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 10_000 {
		any += distance(places, random.IntN(n), random.IntN(n)) / 10_000
	}
	t.Logf("edges are %.2f long, others lie %.2f apart", connected, any)
	if connected > any/3 || connected < 0.1 || connected > 12 {
		t.Errorf("edges are %.2f long, others lie %.2f apart, want edges of at most %v, and of 0.1 to 12",
			connected, any, any/3)
	}
}

// No two nodes overlap so far that one is hidden.
func TestNodesAreSpread(t *testing.T) {
	shapes := map[string][]Edge{"nothing": nil, "a star": nil, "a chain": nil, "all with all": nil, "pairs": nil,
		"clusters": clusters(300, 5)}
	const n = 300
	for i := 1; i < n; i++ {
		shapes["a star"] = append(shapes["a star"], Edge{0, i, 1})
		shapes["a chain"] = append(shapes["a chain"], Edge{i - 1, i, 1})
		if i%2 == 1 {
			shapes["pairs"] = append(shapes["pairs"], Edge{i - 1, i, 1})
		}
		for j := range min(i, 60) {
			if i < 60 {
				shapes["all with all"] = append(shapes["all with all"], Edge{i, j, 1})
			}
		}
	}
	for name, edges := range shapes {
		places, err := Places(t.Context(), n, edges)
		if err != nil {
			t.Fatal(err)
		}
		checkFinite(t, places, n)
		covered := 0
		for i := range n {
			for j := range i {
				if distance(places, i, j) < 0.02 {
					covered++
				}
			}
		}
		if covered > n/50 {
			t.Errorf("%s: %d pairs overlap, want at most %v", name, covered, n/50)
		}
	}
}

func TestInvalidEdgesAreIgnored(t *testing.T) {
	plain, err := Places(t.Context(), 4, []Edge{{0, 1, 1}, {1, 2, 1}})
	if err != nil {
		t.Fatal(err)
	}
	odd, err := Places(t.Context(), 4,
		[]Edge{{0, 1, 1}, {1, 2, 1}, {3, 3, 1}, {-1, 2, 1}, {0, 9, 1}, {0, 3, 0}, {0, 3, -1}, {0, 3, float32(math.NaN())}})
	if err != nil || !slices.Equal(plain, odd) {
		t.Errorf("%v, %v for odd values, want no error and %v, as for plain ones", odd, err, plain)
	}
	for n := range 3 {
		places, err := Places(t.Context(), n, nil)
		if err != nil {
			t.Fatal(err)
		}
		checkFinite(t, places, n)
	}
}

func TestLayoutsCanBeCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Places(ctx, 1000, clusters(1000, 5)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func BenchmarkPlaces(b *testing.B) {
	edges := clusters(5000, 40)
	for b.Loop() {
		if _, err := Places(b.Context(), 5000, edges); err != nil {
			b.Fatal(err)
		}
	}
}
