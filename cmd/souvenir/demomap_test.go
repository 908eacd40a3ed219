package main

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/cmd/souvenir/internal/demo"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// The map of the demonstration keeps more neighbours together than two principal components do: its trustworthiness at
// 12 neighbours is 0.93, theirs is 0.68. docs/decisions.md lists the values of other methods on the same vectors.
func TestNeighboursOnTheMapAreNeighbours(t *testing.T) {
	longtest.Only(t)
	path := filepath.Join(t.TempDir(), "demo.db")
	filled, err := demo.Fill(t.Context(), path, demo.Options{PublicURL: "http://localhost", Password: "nine blue kettles"})
	if err != nil {
		t.Fatal(err)
	}
	store, err := souvenir.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	view := store.As(souvenir.Access{User: filled.User.ID})
	contents := map[string]string{}
	for m, err := range view.Memories(t.Context(), souvenir.MemoryList{}) {
		if err != nil {
			t.Fatal(err)
		}
		contents[m.ID] = m.Content
	}
	trust := map[souvenir.MapLayout]float64{}
	var start souvenir.Map
	for _, layout := range []souvenir.MapLayout{souvenir.LayoutAxes, souvenir.LayoutNeighbours, souvenir.LayoutKept} {
		m, err := view.Insights().Map(t.Context(), souvenir.MapQuery{Layout: layout, Start: &start})
		if err != nil {
			t.Fatal(err)
		}
		for i, point := range m.Points {
			if layout == souvenir.LayoutNeighbours && i%3 > 0 {
				start.Points = append(start.Points, point)
			}
		}
		var texts []string
		for _, point := range m.Points {
			texts = append(texts, contents[point.ID])
		}
		vectors, err := souvenir.Builtin().Embed(t.Context(), souvenir.ForDocument, texts)
		if err != nil {
			t.Fatal(err)
		}
		trust[layout] = trustworthiness(12,
			distances(len(texts), func(i, j int) float64 { return 1 - cosine(vectors[i], vectors[j]) }),
			distances(len(texts), func(i, j int) float64 {
				return math.Hypot(m.Points[i].X-m.Points[j].X, m.Points[i].Y-m.Points[j].Y)
			}))
	}
	t.Logf("trustworthiness at 12 neighbours of %d memories: %.3f; with a third of them added %.3f; by axes %.3f",
		filled.Memories, trust[souvenir.LayoutNeighbours], trust[souvenir.LayoutKept], trust[souvenir.LayoutAxes])
	for _, layout := range []souvenir.MapLayout{souvenir.LayoutNeighbours, souvenir.LayoutKept} {
		if got := trust[layout]; got < 0.9 || got > 1 {
			t.Errorf("by %s: got %.3f, want 0.9 to 1", layout, got)
		}
	}
	if got := trust[souvenir.LayoutAxes]; got > 0.72 {
		t.Errorf("by axes it is %.3f, want at most 0.72, or the other layout is of little use", got)
	}
}

// trustworthiness is defined in J. Venna and S. Kaski, Neighborhood preservation in nonlinear projection methods, 2001:
// 1, minus a penalty for each point that is among another's k nearest in the picture only, by its true rank.
func trustworthiness(k int, truth, picture [][]float64) float64 {
	n, penalty := len(truth), 0
	for i := range n {
		rank := make([]int, n)
		for place, j := range nearest(truth[i], i) {
			rank[j] = place + 1
		}
		for _, j := range nearest(picture[i], i)[:k] {
			penalty += max(rank[j]-k, 0)
		}
	}
	return 1 - 2/float64(n*k*(2*n-3*k-1))*float64(penalty)
}

// nearest returns all other points, by their distance from point i.
func nearest(distances []float64, i int) []int {
	var others []int
	for j := range distances {
		if j != i {
			others = append(others, j)
		}
	}
	slices.SortStableFunc(others, func(a, b int) int {
		switch d := distances[a] - distances[b]; {
		case d < 0:
			return -1
		case d > 0:
			return 1
		}
		return 0
	})
	return others
}

func distances(n int, distance func(i, j int) float64) [][]float64 {
	all := make([][]float64, n)
	for i := range all {
		all[i] = make([]float64, n)
		for j := range n {
			all[i][j] = distance(i, j)
		}
	}
	return all
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab, aa, bb = ab+float64(a[i])*float64(b[i]), aa+float64(a[i])*float64(a[i]), bb+float64(b[i])*float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

func TestTrustworthinessIsMeasuredByItsDefinition(t *testing.T) {
	line := func(places ...float64) [][]float64 {
		return distances(len(places), func(i, j int) float64 { return math.Abs(places[i] - places[j]) })
	}
	truth := line(0, 1, 3, 6, 10, 15)
	if got := trustworthiness(1, truth, truth); got != 1 {
		t.Errorf("of the truth: got %v, want 1", got)
	}
	// Then the nearest point of the first is really its 5th, and that of the second its 2nd: 1 - 2 / (6 * 1 * (12 - 3 -
	// 1)) * (4 + 1).
	moved := line(100, 1, 3, 6, 10, 15)
	if got, want := trustworthiness(1, truth, moved), 1-2./48*5; math.Abs(got-want) > 1e-9 {
		t.Errorf("with one point elsewhere: got %v, want %v", got, want)
	}
}
