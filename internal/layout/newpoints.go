package layout

import "math"

// PlaceNew returns the places of points. Some are known: these stay, and each other point is put at the mean of
// the places of its neighbours, weighted by the edges, a little aside so that it covers none. A point that no edges
// connect with a known one has none, nil.
func PlaceNew(known []*Place, edges []Edge) []*Place {
	const aside, golden = 0.01, 2.399963
	places := make([]*Place, len(known))
	copy(places, known)
	for {
		sums, weights := map[int]Place{}, map[int]float64{}
		for _, edge := range edges {
			for _, way := range [2][2]int{{edge.A, edge.B}, {edge.B, edge.A}} {
				if at := places[way[0]]; at != nil && places[way[1]] == nil {
					weight, sum := float64(edge.Weight), sums[way[1]]
					sums[way[1]] = Place{sum.X + weight*at.X, sum.Y + weight*at.Y}
					weights[way[1]] += weight
				}
			}
		}
		if len(sums) == 0 {
			return places
		}
		for i, sum := range sums {
			sin, cos := math.Sincos(golden * float64(i))
			places[i] = &Place{sum.X/weights[i] + aside*cos, sum.Y/weights[i] + aside*sin}
		}
	}
}
