package index

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/simd"
)

// languages makes vectors of two groups. The vectors of the second group are closer together as a whole. Two in five of
// each group are pairs of one subject.
func languages(n, size int) (vectors []float32, groups []int) {
	random := rand.New(rand.NewPCG(1, 5))
	common := make([]float32, size)
	for i := range common {
		common[i] = float32(random.NormFloat64())
	}
	var subject []float32
	for i := range n {
		group := i * 2 / n
		own := make([]float32, size)
		for a := range own {
			own[a] = float32(random.NormFloat64()) + float32(group)*common[a]
		}
		if i%5 == 1 {
			for a := range own {
				own[a] = subject[a] + own[a]/3
			}
		}
		subject = own
		v := append([]float32(nil), own...)
		Unit(v)
		vectors, groups = append(vectors, v...), append(groups, group)
	}
	return vectors, groups
}

func TestSimilarityMeansTheSameInEachGroup(t *testing.T) {
	const n, size = 400, 64
	vectors, groups := languages(n, size)
	scale := NewScale(vectors, size, groups, 2)
	cosine := func(a, b int) float32 {
		return simd.DotFloats(vectors[a*size:(a+1)*size], vectors[b*size:(b+1)*size])
	}
	var plain, scaled [2][2]float64 // of unrelated and related pairs, by group
	for i := 1; i < n; i += 5 {
		for k, other := range [2]int{(i+3)%(n/2) + i/(n/2)*(n/2), i - 1} {
			plain[groups[i]][k] += float64(cosine(i, other)) / (n / 10)
			scaled[groups[i]][k] += float64(scale.Of(i, other, cosine(i, other))) / (n / 10)
		}
	}
	t.Logf("cosines %.2f, similarities %.2f", plain, scaled)
	if plain[1][0]-plain[0][0] < 0.3 {
		t.Fatalf("cosines of unrelated pairs are %.2f and %.2f, want them to differ, or the test shows nothing", plain[0][0],
			plain[1][0])
	}
	for group := range 2 {
		if unrelated, related := scaled[group][0], scaled[group][1]; math.Abs(unrelated) > 0.15 || related < 0.5 {
			t.Errorf("group %d: unrelated pairs have %.2f and related ones %.2f, want about 0 and at least 0.5", group,
				unrelated, related)
		}
	}
	if got := scale.Of(0, n-1, 1); got != 1 {
		t.Errorf("equal vectors of two groups: got %v, want 1", got)
	}
	if got := scale.Of(0, 1, -1); got < -1 || got >= 0 {
		t.Errorf("opposite vectors: got %v, want -1 to 0", got)
	}
}

// Few vectors are not a measure, and equal ones must not cause a division by zero.
func TestScaleOfFewOrEqualVectors(t *testing.T) {
	if got := NewScale([]float32{1, 0, 0, 1}, 2, []int{0, 1}, 2).Of(0, 1, 0.6); math.Abs(float64(got)-0.6) > 1e-6 {
		t.Errorf("two vectors with the cosine 0.6: got %v, want 0.6", got)
	}
	var vectors []float32
	for range 50 {
		vectors = append(vectors, 1, 0)
	}
	scale := NewScale(vectors, 2, make([]int, 50), 1)
	for _, cosine := range []float32{-1, 0, 0.5, 0.96, 1} {
		if got := scale.Of(0, 1, cosine); !(got >= -1 && got <= 1) {
			t.Errorf("the cosine %v: got %v, want -1 to 1", cosine, got)
		}
	}
}
