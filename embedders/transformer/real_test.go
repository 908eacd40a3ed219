package transformer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/souvenir-ai/souvenir"
)

// TestRealModels compares real models with the reference, if SOUVENIR_TRANSFORMERS names a folder of models made by
// testdata/real.py. Their weights are too large for the repository.
func TestRealModels(t *testing.T) {
	root := os.Getenv("SOUVENIR_TRANSFORMERS")
	if root == "" {
		t.Skip("SOUVENIR_TRANSFORMERS names no folder of models; testdata/real.py makes one")
	}
	files, err := filepath.Glob(filepath.Join(root, "*", "reference.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no model with reference.json in %s (%v), want no error and some files", root, err)
	}
	for _, file := range files {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var want []wanted
			if err := json.Unmarshal(data, &want); err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct {
				precision Precision
				least     float64 // minimum cosine
			}{{Float32, 0.999999}, {Int8, 0.98}} {
				e, err := Open(dir, &Options{Precision: c.precision})
				if err != nil {
					t.Fatal(err)
				}
				worst, least := 0.0, 1.0
				for part := range slices.Chunk(want, souvenir.EmbedBatch) {
					got, err := e.Embed(t.Context(), souvenir.ForDocument, textsOf(part))
					if err != nil {
						t.Fatal(err)
					}
					for i, w := range part {
						ids := e.tokenizer.Encode(nil, e.document+w.Text, e.maxTokens)
						if !slices.Equal(ids, w.IDs) {
							t.Errorf("%+q:\n got %v\nwant %v", w.Text, ids, w.IDs)
						}
						worst, least = max(worst, farthest(got[i], w.Vector)), min(least, cosine(got[i], w.Vector))
					}
				}
				t.Logf("%s: numbers differ by %.2g at most, the least cosine is %.6f", e.Model(), worst, least)
				if c.precision == Float32 && worst > 1e-4 || least < c.least {
					t.Errorf("%v: numbers differ by %.2g, cosine %.6f; want 1e-4 in float32, and %v", c.precision, worst, least,
						c.least)
				}
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
