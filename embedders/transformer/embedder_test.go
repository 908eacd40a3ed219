package transformer

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/embedders/transformer/internal/kernel"
)

// defaults are full options for open.
func defaults(t testing.TB, o Options) Options {
	t.Helper()
	full, err := o.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return full
}

// TestVectorsAreThoseOfTheReference compares with Flax's BertModel and XLMRobertaModel, on all loops of this machine.
func TestVectorsAreThoseOfTheReference(t *testing.T) {
	for _, model := range []string{"bert", "xlmr"} {
		dir := folder(t, model)
		want := wantedVectors(t, filepath.Join("testdata", model, "vectors.json.gz"))
		for _, k := range kernel.Available() {
			t.Run(model+"/"+k.Name, func(t *testing.T) {
				e, err := open(dir, defaults(t, Options{}), k)
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				worst := 0.0
				for from := 0; from < len(want); from += souvenir.EmbedBatch {
					part := want[from:min(len(want), from+souvenir.EmbedBatch)]
					got, err := e.Embed(t.Context(), souvenir.ForDocument, textsOf(part))
					if err != nil {
						t.Fatal(err)
					}
					for i, w := range part {
						if ids := e.tokenizer.Encode(nil, w.Text, e.maxTokens); !slices.Equal(ids, w.IDs) {
							t.Errorf("%+q: ids %v, want %v", w.Text, ids, w.IDs)
						}
						d := farthest(got[i], w.Vector)
						if worst = max(worst, d); d > 1e-4 {
							t.Errorf("%+q: a number differs by %.2g:\n got %v\nwant %v", w.Text, d, got[i][:4], w.Vector[:4])
						}
					}
				}
				t.Logf("numbers differ by %.2g at most", worst)
			})
		}
	}
}
