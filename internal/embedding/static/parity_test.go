package static

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestVectorsEqualTheReference compares with the output of distill/fixtures.py: texts in many languages.
func TestVectorsEqualTheReference(t *testing.T) {
	m := Default()
	raw, err := os.ReadFile(filepath.Join("testdata", "texts.json"))
	if err != nil {
		t.Fatal(err)
	}
	var fixtures []struct {
		Text   string
		Tokens []int32
	}
	if err := json.Unmarshal(raw, &fixtures); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join("testdata", "vectors.f32"))
	if err != nil {
		t.Fatal(err)
	}
	if len(fixtures) != 220 || len(want) != 4*220*m.Dimensions() {
		t.Fatalf("%d texts and %d bytes of vectors, want 220 texts of %d dimensions", len(fixtures), len(want),
			m.Dimensions())
	}
	var vector []float32
	for i, f := range fixtures {
		if got := m.Tokens(f.Text); !slices.Equal(got, f.Tokens) {
			t.Errorf("text %d %.60q: tokens %v, want %v", i, f.Text, got, f.Tokens)
			continue
		}
		vector = m.Embed(vector, f.Text, false)
		for j, x := range vector {
			if w := float32At(want, i*m.Dimensions()+j); !(math.Abs(float64(x-w)) <= 1e-5) {
				t.Errorf("text %d %.60q: dimension %d is %g, want %g", i, f.Text, j, x, w)
				break
			}
		}
	}
}
