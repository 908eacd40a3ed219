package layout

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// balls returns points around centres in many dimensions, and the nearest others of each.
func balls(n, centres, size, k int) (points [][]float64, near []Near) {
	random := rand.New(rand.NewPCG(7, 8))
	middle := make([][]float64, centres)
	for i := range middle {
		middle[i] = make([]float64, size)
		for a := range middle[i] {
			middle[i][a] = 3 * random.NormFloat64()
		}
	}
	points = make([][]float64, n)
	for i := range points {
		points[i] = make([]float64, size)
		for a := range points[i] {
			points[i][a] = middle[i%centres][a] + random.NormFloat64()
		}
	}
	seen := map[[2]int]bool{}
	for i := range points {
		others := ranked(n, i, func(j int) float64 { return apart(points[i], points[j]) })
		for _, j := range others[:min(k, len(others))] {
			pair := [2]int{min(i, j), max(i, j)}
			if !seen[pair] {
				seen[pair] = true
				near = append(near, Near{i, j, float32(apart(points[i], points[j]))})
			}
		}
	}
	return points, near
}

func apart(a, b []float64) (d float64) {
	for i := range a {
		d += (a[i] - b[i]) * (a[i] - b[i])
	}
	return d
}

// ranked returns the points other than i, nearest first.
func ranked(n, i int, distance func(j int) float64) []int {
	var others []int
	for j := range n {
		if j != i {
			others = append(others, j)
		}
	}
	slices.SortStableFunc(others, func(a, b int) int {
		switch d := distance(a) - distance(b); {
		case d < 0:
			return -1
		case d > 0:
			return 1
		}
		return 0
	})
	return others
}

func TestPointsStayNeighbours(t *testing.T) {
	longtest.Only(t)
	const n, centres = 240, 8
	points, near := balls(n, centres, 20, 36)
	start := make([]float32, 2*n)
	for i, p := range points {
		start[2*i], start[2*i+1] = float32(p[0]), float32(p[1])
	}
	places, err := Neighbours(t.Context(), n, near, start, false)
	if err != nil {
		t.Fatal(err)
	}
	checkFinite(t, places, n)
	same := 0
	for i := range n {
		for _, j := range ranked(n, i, func(j int) float64 { return distance(places, i, j) })[:12] {
			if j%centres == i%centres {
				same++
			}
		}
	}
	if share := float64(same) / (12 * n); share < 0.98 {
		t.Errorf("%.3f of the neighbours are of the same group, want at least 0.98", share)
	}
	again, err := Neighbours(t.Context(), n, near, start, false)
	if err != nil || !slices.Equal(places, again) {
		t.Errorf("other places the second time, %v; want the same", err)
	}
	// Placed points hardly move, even if there are a few more.
	settled, err := Neighbours(t.Context(), n, near, places, true)
	if err != nil {
		t.Fatal(err)
	}
	width, moved := 0.0, 0.0
	for i := range n {
		width = max(width, math.Abs(float64(places[2*i])))
		moved += math.Hypot(float64(settled[2*i]-places[2*i]), float64(settled[2*i+1]-places[2*i+1])) / n
	}
	if moved > width/4 {
		t.Errorf("placed points moved by %.2f in a picture %.2f wide, want at most a quarter", moved, width)
	}
}

// Equal points, few points and points without neighbours get positions, too.
func TestOddPointsHavePlaces(t *testing.T) {
	for n := range 8 {
		for name, distance := range map[string]float32{"equal": 0, "apart": 1} {
			var near []Near
			for i := range n {
				for j := range i {
					near = append(near, Near{i, j, distance})
				}
			}
			for _, near := range [][]Near{near, nil} {
				places, err := Neighbours(t.Context(), n, near, make([]float32, 2*n), false)
				if err != nil {
					t.Fatalf("%d %s points: %v", n, name, err)
				}
				checkFinite(t, places, n)
				for i := range n {
					for j := range i {
						if places[2*i] == places[2*j] && places[2*i+1] == places[2*j+1] {
							t.Errorf("%d %s points: two of them are at %v, want them apart", n, name, places[2*i:2*i+2])
						}
					}
				}
			}
		}
	}
}

func TestLayoutsOfNeighboursCanBeCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, near := balls(50, 2, 3, 12)
	if _, err := Neighbours(ctx, 50, near, make([]float32, 100), false); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func BenchmarkNeighbours(b *testing.B) {
	const n = 5000
	_, near := balls(n, 100, 6, 36)
	random := rand.New(rand.NewPCG(9, 9))
	start := make([]float32, 2*n)
	for i := range start {
		start[i] = random.Float32()
	}
	for b.Loop() {
		if _, err := Neighbours(b.Context(), n, near, start, false); err != nil {
			b.Fatal(err)
		}
	}
}
