package layout

import (
	"context"
	"slices"
)

// Communities finds groups of nodes that are connected with each other more than with others, and returns the number of
// each node's group: 0 is the largest. It is the method of V. Blondel et al., Fast unfolding of communities in large
// networks, 2008. The same graph always gets the same groups. A node without edges is a group of its own.
func Communities(ctx context.Context, n int, edges []Edge) ([]int, error) {
	groups := make([]int32, n)
	for i := range groups {
		groups[i] = int32(i)
	}
	g := newGraph(n, edges)
	inner := make([]float32, n) // twice the weight of the edges inside each node of a merged graph
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		own, count := g.unfold(inner)
		if count == g.size() {
			break
		}
		for i, group := range groups {
			groups[i] = own[group]
		}
		g, inner = g.merge(own, count), g.within(inner, own, count)
	}
	return bySize(groups, g.size()), nil
}

// unfold moves each node to the neighbouring group where it adds most to the modularity, until none moves.
func (g *graph) unfold(inner []float32) (groups []int32, count int) {
	n := g.size()
	groups = make([]int32, n)
	degree, total, all := make([]float64, n), make([]float64, n), 0.0
	for i := range n {
		groups[i] = int32(i)
		degree[i] = float64(inner[i])
		for at := g.first[i]; at < g.first[i+1]; at++ {
			degree[i] += float64(g.weight[at])
		}
		total[i] = degree[i]
		all += degree[i]
	}
	if all == 0 {
		return groups, n
	}
	const most = 20 // rounds; the first few move nearly all nodes
	links, seen := make([]float64, n), []int32(nil)
	for range most {
		moved := false
		for i := range n {
			seen = seen[:0]
			for at := g.first[i]; at < g.first[i+1]; at++ {
				group := groups[g.to[at]]
				if links[group] == 0 {
					seen = append(seen, group)
				}
				links[group] += float64(g.weight[at])
			}
			from := groups[i]
			total[from] -= degree[i]
			best, gain := from, links[from]-total[from]*degree[i]/all
			for _, group := range seen {
				if more := links[group] - total[group]*degree[i]/all; more > gain+1e-9 {
					best, gain = group, more
				}
			}
			for _, group := range seen {
				links[group] = 0
			}
			total[best] += degree[i]
			groups[i], moved = best, moved || best != from
		}
		if !moved {
			break
		}
	}
	return renumbered(groups)
}

// renumbered numbers the groups from 0 in order of appearance.
func renumbered(groups []int32) ([]int32, int) {
	numbers := map[int32]int32{}
	for i, group := range groups {
		number, known := numbers[group]
		if !known {
			number = int32(len(numbers))
			numbers[group] = number
		}
		groups[i] = number
	}
	return groups, len(numbers)
}

// within returns inner for the graph of the groups.
func (g *graph) within(inner []float32, groups []int32, count int) []float32 {
	sums := make([]float32, count)
	for i := range g.size() {
		sums[groups[i]] += inner[i]
		for at := g.first[i]; at < g.first[i+1]; at++ {
			if groups[g.to[at]] == groups[i] {
				sums[groups[i]] += g.weight[at]
			}
		}
	}
	return sums
}

// bySize numbers the groups by descending size; groups of equal size keep their order.
func bySize(groups []int32, count int) []int {
	sizes, order := make([]int, count), make([]int32, count)
	for _, group := range groups {
		sizes[group]++
	}
	for i := range order {
		order[i] = int32(i)
	}
	sortBySize(order, sizes)
	rank := make([]int, count)
	for place, group := range order {
		rank[group] = place
	}
	numbers := make([]int, len(groups))
	for i, group := range groups {
		numbers[i] = rank[group]
	}
	return numbers
}

func sortBySize(order []int32, sizes []int) {
	slices.SortStableFunc(order, func(a, b int32) int { return sizes[b] - sizes[a] })
}
