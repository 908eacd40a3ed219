package topic

import (
	"slices"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/layout"
)

func TestTextsWithoutLinksAreFolded(t *testing.T) {
	// 0 and 1 are linked, and so are 2 and 3. 4 is most like 3. 5 is most like 4, but of the linked texts only like 0. 6
	// and 7 are like each other only.
	groups := []int{0, 0, 1, 1, 2, 3, 4, 5, 6}
	linked := []bool{true, true, true, true, false, false, false, false, false}
	Fold(groups, linked, []layout.Edge{{A: 5, B: 4, Weight: 0.5}, {A: 0, B: 4, Weight: 0.1}, {A: 3, B: 4, Weight: 0.3},
		{A: 6, B: 7, Weight: 0.9}, {A: 5, B: 0, Weight: 0.05}})
	if want := []int{0, 0, 1, 1, 1, 0, -1, -1, -1}; !slices.Equal(groups, want) {
		t.Errorf("got %v, want %v", groups, want)
	}
}

func TestClustersAreTheLargestFirst(t *testing.T) {
	read := Read([]string{"a boat with sails", "rye bread", "bread and butter", "the bread", "boat race", "alone",
		"nothing"})
	got := read.Clusters([]int{0, 1, 1, 1, 0, 2, -1})
	if len(got) != 2 || !slices.Equal(got[0].Nodes, []int{1, 2, 3}) || got[0].Name != "bread" ||
		!slices.Equal(got[1].Nodes, []int{0, 4}) || got[1].Name[:4] != "boat" {
		t.Errorf("got %+v, want three texts about bread and two about a boat", got)
	}
}

func TestStrongestEdgesOfANode(t *testing.T) {
	edges := []layout.Edge{{A: 0, B: 1, Weight: 3}, {A: 0, B: 2, Weight: 2}, {A: 1, B: 2, Weight: 1}}
	got := Strongest(3, 1, edges)
	if want := []layout.Edge{{A: 0, B: 1, Weight: 3}, {A: 0, B: 2, Weight: 2}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v: the strongest of 0 and 1, and the one of 2", got, want)
	}
}
