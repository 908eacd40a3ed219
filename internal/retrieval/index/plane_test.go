package index

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/simd"
)

// cloud makes unit vectors around some centres.
func cloud(n, size, centres int) []float32 {
	random := rand.New(rand.NewPCG(3, 4))
	middle := make([]float32, centres*size)
	for i := range middle {
		middle[i] = float32(random.NormFloat64())
	}
	vectors := make([]float32, n*size)
	for i := range n {
		v := vectors[i*size : (i+1)*size]
		for a := range v {
			v[a] = middle[i%centres*size+a] + float32(random.NormFloat64())
		}
		Unit(v)
	}
	return vectors
}

func TestPlaneFindsTheDirectionsInWhichVectorsDiffer(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	const n, size = 500, 40
	first, second := make([]float64, size), make([]float64, size)
	for a := range size { // at right angles
		first[a], second[a] = math.Sqrt(2.0/size)*math.Cos(2*math.Pi*float64(a)/size),
			math.Sqrt(2.0/size)*math.Sin(2*math.Pi*float64(a)/size)
	}
	vectors, true1, true2 := make([]float32, n*size), make([]float64, n), make([]float64, n)
	for i := range n {
		true1[i], true2[i] = 5*random.NormFloat64(), 2*random.NormFloat64()
		for a := range size {
			vectors[i*size+a] = float32(7 + true1[i]*first[a] + true2[i]*second[a] + 0.1*random.NormFloat64())
		}
	}
	places, explained, err := Plane(t.Context(), slices.Clone(vectors), size)
	if err != nil {
		t.Fatal(err)
	}
	if explained[0] < 0.8 || explained[1] < 0.08 || explained[0]+explained[1] > 1 {
		t.Errorf("got explained parts %v, want at least 0.8, at least 0.08 and in all at most 1", explained)
	}
	for k, want := range [][]float64{true1, true2} {
		got := make([]float64, n)
		for i := range n {
			got[i] = float64(places[2*i+k])
		}
		if c := math.Abs(correlation(got, want)); c < 0.98 {
			t.Errorf("direction %d agrees by %.3f only, want at least 0.98", k, c)
		}
	}
	again, _, err := Plane(t.Context(), slices.Clone(vectors), size)
	if err != nil || !slices.Equal(places, again) {
		t.Errorf("another time the places are others, %v; got %v, want %v", err, places, again)
	}
}

func correlation(x, y []float64) float64 {
	var sx, sy, xx, yy, xy float64
	n := float64(len(x))
	for i := range x {
		sx, sy = sx+x[i], sy+y[i]
		xx, yy, xy = xx+x[i]*x[i], yy+y[i]*y[i], xy+x[i]*y[i]
	}
	return (xy - sx*sy/n) / math.Sqrt((xx-sx*sx/n)*(yy-sy*sy/n))
}

// Long vectors are folded. Separate groups stay separate.
func TestPlaneKeepsGroupsOfLongVectorsApart(t *testing.T) {
	const n, size = 300, 3000
	places, _, err := Plane(t.Context(), cloud(n, size, 3), size)
	if err != nil {
		t.Fatal(err)
	}
	var within, between float64
	for i := range n {
		for j := range i {
			d := math.Hypot(float64(places[2*i]-places[2*j]), float64(places[2*i+1]-places[2*j+1]))
			if i%3 == j%3 {
				within = max(within, d)
			} else if between == 0 || d < between {
				between = d
			}
		}
	}
	if within >= between {
		t.Errorf("within a group places are up to %g apart, want less than the %g between groups", within, between)
	}
}

func TestPlaneOfFewAndEqualVectors(t *testing.T) {
	for _, vectors := range [][]float32{nil, {1, 0, 0}, {1, 0, 0, 1, 0, 0}, {1, 0, 0, 0, 1, 0}, make([]float32, 30)} {
		places, explained, err := Plane(t.Context(), slices.Clone(vectors), 3)
		if err != nil || len(places) != 2*len(vectors)/3 {
			t.Errorf("%v: %v, %v; want a length of %v", vectors, places, err, 2*len(vectors)/3)
		}
		for _, x := range append(places, float32(explained[0]), float32(explained[1])) {
			if math.IsNaN(float64(x)) || math.Abs(float64(x)) > 1.0001 {
				t.Errorf("%v: got %v, %v; want numbers from -1 to 1", vectors, places, explained)
			}
		}
	}
	if places, _, err := Plane(t.Context(), []float32{1, 2, 5}, 1); err != nil || len(places) != 6 || places[1] != 0 {
		t.Errorf("vectors of one number are at %v, %v, want 6 coordinates with 0 in the second, and no error", places,
			err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Plane(ended, cloud(10, 4, 2), 4); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v, want context.Canceled", err)
	}
}

func TestPairsAreTheMostSimilarOfEach(t *testing.T) {
	const n, size, k = 700, 12, 3
	const least = 0.7
	vectors := cloud(n, size, 20)
	copy(vectors[5*size:6*size], vectors[9*size:10*size]) // equal ones, for ties
	copy(vectors[400*size:401*size], vectors[9*size:10*size])
	dot := simd.DotFloats
	want := map[Pair]bool{}
	for a := range n {
		var all []Pair
		for b := range n {
			if cosine := dot(vectors[a*size:(a+1)*size], vectors[b*size:(b+1)*size]); a != b && cosine >= least {
				all = append(all, Pair{a, b, cosine})
			}
		}
		slices.SortStableFunc(all, func(p, q Pair) int {
			if p.Cosine > q.Cosine {
				return -1
			} else if p.Cosine < q.Cosine {
				return 1
			}
			return p.B - q.B
		})
		for _, p := range all[:min(k, len(all))] {
			want[Pair{min(p.A, p.B), max(p.A, p.B), min(p.Cosine, 1)}] = true
		}
	}
	got, err := Pairs(t.Context(), vectors, size, k, least)
	if err != nil || len(got) != len(want) || len(want) < n {
		t.Fatalf("%d pairs, want %d, %v", len(got), len(want), err)
	}
	for i, p := range got {
		if !want[p] {
			t.Errorf("%+v is not among the most similar", p)
		}
		if i > 0 && (got[i-1].A > p.A || got[i-1].A == p.A && got[i-1].B >= p.B) {
			t.Errorf("%+v comes after %+v, want pairs in order, each once", p, got[i-1])
		}
	}
	for _, none := range []int{0, -1} {
		if pairs, err := Pairs(t.Context(), vectors, size, none, least); err != nil || pairs != nil {
			t.Errorf("with k %d: %v, %v, want no error and no pairs", none, pairs, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Pairs(ended, vectors, size, k, least); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v, want context.Canceled", err)
	}
}

func BenchmarkPlane(b *testing.B) {
	for _, size := range []int{256, 384, 1536} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			vectors := cloud(5000, size, 30)
			for b.Loop() {
				if _, _, err := Plane(b.Context(), vectors, size); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkPairs(b *testing.B) {
	vectors := cloud(5000, 256, 30)
	for b.Loop() {
		if _, err := Pairs(b.Context(), vectors, 256, 3, 0.6); err != nil {
			b.Fatal(err)
		}
	}
}
