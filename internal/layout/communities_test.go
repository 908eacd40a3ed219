package layout

import (
	"context"
	"errors"
	"slices"
	"testing"
)

func TestCommunitiesAreWhatIsConnected(t *testing.T) {
	// Three cliques of 8, 6 and 4 in a ring, one edge from each to the next, and an isolated node.
	var edges []Edge
	begin := 0
	for _, size := range []int{4, 8, 6} {
		for i := range size {
			for j := range i {
				edges = append(edges, Edge{begin + i, begin + j, 1})
			}
		}
		edges = append(edges, Edge{begin, (begin + size) % 18, 1})
		begin += size
	}
	groups, err := Communities(t.Context(), 19, edges)
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Concat(slices.Repeat([]int{2}, 4), slices.Repeat([]int{0}, 8), slices.Repeat([]int{1}, 6), []int{3})
	if !slices.Equal(groups, want) {
		t.Errorf("got %v, want %v", groups, want)
	}
	// A heavy edge counts more than several light ones.
	groups, err = Communities(t.Context(), 4, []Edge{{0, 1, 10}, {2, 3, 10}, {0, 2, 1}, {0, 3, 1}, {1, 2, 1}})
	if err != nil || groups[0] != groups[1] || groups[2] != groups[3] || groups[0] == groups[2] {
		t.Errorf("got %v, %v; want the heavy edges inside two groups", groups, err)
	}
}

// Known groups of a large graph are found again.
func TestCommunitiesOfManyNodes(t *testing.T) {
	const n, known = 2000, 20
	edges := clusters(n, known)
	groups, err := Communities(t.Context(), n, edges)
	if err != nil {
		t.Fatal(err)
	}
	pure := 0
	for group := range slices.Max(groups) + 1 {
		counts := map[int]int{}
		for i, g := range groups {
			if g == group {
				counts[i%known]++
			}
		}
		most := 0
		for _, count := range counts {
			most = max(most, count)
		}
		pure += most
	}
	if share := float64(pure) / n; share < 0.95 || slices.Max(groups) >= 2*known {
		t.Errorf("%d groups, of which %.3f is of one known group; want at most %d and at least 0.95", slices.Max(groups)+1,
			share, 2*known)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Communities(ctx, n, edges); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestCommunitiesOfNothing(t *testing.T) {
	for n := range 3 {
		groups, err := Communities(t.Context(), n, []Edge{{0, 0, 1}, {5, 1, 1}})
		if err != nil || len(groups) != n || n == 2 && groups[0] == groups[1] {
			t.Errorf("%d nodes: got %v, %v; want a group for each", n, groups, err)
		}
	}
}
