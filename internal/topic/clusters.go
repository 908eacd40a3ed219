package topic

import (
	"cmp"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/layout"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
)

// Cluster is a group of texts that belong together.
type Cluster struct {
	Name  string // the words that are typical of it; empty: its texts share none
	Nodes []int  // numbers of texts, ascending
}

const (
	nameWords   = 3 // in the name of a cluster
	sharedWords = 3
)

// Clusters returns the clusters, the largest first, given the number of each text's cluster. It leaves out clusters of
// one text, and -1.
func (t *Texts) Clusters(groups []int) []Cluster {
	members := make([][]int, len(groups))
	for i, group := range groups {
		if group >= 0 {
			members[group] = append(members[group], i)
		}
	}
	members = slices.DeleteFunc(members, func(m []int) bool { return len(m) < 2 })
	slices.SortStableFunc(members, func(a, b []int) int { return len(b) - len(a) })
	names := t.Names(members, nameWords)
	all := make([]Cluster, len(members))
	for i, nodes := range members {
		all[i] = Cluster{strings.Join(names[i], ", "), nodes}
	}
	return all
}

// SharedWords returns the words that two texts share, separated by commas.
func (t *Texts) SharedWords(a, b int) string { return strings.Join(t.Shared(a, b, sharedWords), ", ") }

// Scale makes similarities comparable between the languages of texts. Vector i, of unit length and one size, belongs to
// text places[i], or with nil places to text i.
func (t *Texts) Scale(vectors []float32, size int, places []int) *index.Scale {
	if places == nil {
		for i := range t.Languages {
			places = append(places, i)
		}
	}
	numbers, groups := map[string]int{}, make([]int, len(places))
	for i, place := range places {
		number, known := numbers[t.Languages[place]]
		if !known {
			number = len(numbers)
			numbers[t.Languages[place]] = number
		}
		groups[i] = number
	}
	return index.NewScale(vectors, size, groups, len(numbers))
}

// Strongest returns the edges that are among the strongest k of one of their n nodes.
func Strongest(n, k int, edges []layout.Edge) []layout.Edge {
	weights := make([][]float32, n)
	for _, edge := range edges {
		weights[edge.A], weights[edge.B] = append(weights[edge.A], edge.Weight), append(weights[edge.B], edge.Weight)
	}
	least := make([]float32, n)
	for i, own := range weights {
		slices.Sort(own)
		if len(own) > k {
			least[i] = own[len(own)-k]
		}
	}
	return slices.DeleteFunc(edges, func(edge layout.Edge) bool {
		return edge.Weight < least[edge.A] && edge.Weight < least[edge.B]
	})
}

// Fold puts each text without links into the cluster of the most similar text with links, possibly through others. If
// there is none, it gets -1, no cluster. The weights of the nearest are similarities.
func Fold(groups []int, linked []bool, nearest []layout.Edge) {
	known := slices.Clone(linked)
	for i := range groups {
		if !linked[i] {
			groups[i] = -1
		}
	}
	rest := slices.Clone(nearest)
	slices.SortStableFunc(rest, func(a, b layout.Edge) int { return cmp.Compare(b.Weight, a.Weight) })
	for changed := true; changed; {
		changed = false
		rest = slices.DeleteFunc(rest, func(edge layout.Edge) bool {
			from, to := edge.A, edge.B
			if known[to] && !known[from] {
				from, to = to, from
			}
			if known[from] && !known[to] {
				groups[to], known[to], changed = groups[from], true, true
			}
			return known[from]
		})
	}
}
