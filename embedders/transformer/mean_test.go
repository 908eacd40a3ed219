package transformer

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/souvenir-ai/souvenir"
)

// TestAMeanCentresVectors subtracts the mean of some texts. The cosines of all pairs are then around 0, each vector has
// unit length, and the model is another one.
func TestAMeanCentresVectors(t *testing.T) {
	dir := folder(t, "xlmr")
	plain, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	texts := textsOf(wantedVectors(t, filepath.Join("testdata", "xlmr", "vectors.json.gz")))
	mean, err := plain.Mean(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	centred, err := Open(dir, &Options{Mean: mean})
	if err != nil {
		t.Fatal(err)
	}
	defer centred.Close()
	if centred.Model() == plain.Model() {
		t.Errorf("got the name %q with and without a mean, want two", plain.Model())
	}
	sum := slices.Clone(mean)
	clear(mean) // the embedder has its own copy
	before, err := plain.Embed(t.Context(), souvenir.ForDocument, texts)
	if err != nil {
		t.Fatal(err)
	}
	after, err := centred.Embed(t.Context(), souvenir.ForDocument, texts)
	if err != nil {
		t.Fatal(err)
	}
	if was, is := meanCosine(before), meanCosine(after); math.Abs(is) > 0.1 || is >= was {
		t.Errorf("got a mean cosine of %.3f, %.3f without a mean; want one near 0, and less", is, was)
	}
	for i, v := range after {
		want := make([]float32, len(v))
		for j, x := range before[i] {
			want[j] = x - sum[j]
		}
		normalise(want)
		if d := farthest(v, want); d > 1e-6 {
			t.Errorf("%+q: a number differs by %.2g from what the mean leaves, want at most 1e-6", texts[i], d)
		}
	}
	if _, err := plain.Mean(t.Context(), nil); err == nil {
		t.Error("the mean of no texts: got no error, want one")
	}
}

func meanCosine(vectors [][]float32) float64 {
	sum, n := 0.0, 0
	for i := range vectors {
		for j := range i {
			sum, n = sum+cosine(vectors[i], vectors[j]), n+1
		}
	}
	return sum / float64(n)
}
