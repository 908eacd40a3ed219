package transformer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/embedders/transformer/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
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

// TestVectorsAreThoseOfTheReference compares with Flax's BertModel and XLMRobertaModel, with all loops of this machine.
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

// TestONNXWeightsGiveTheSameVectors reads weights that the exporter has renamed and transposed, and that onnxruntime
// has quantised. The reference computes in float32 with the weights in the file.
func TestONNXWeightsGiveTheSameVectors(t *testing.T) {
	for _, c := range []struct{ name, file, vectors string }{
		{"plain", "model.onnx", "bert/vectors.json.gz"},
		{"in a folder", "onnx/model.onnx", "bert/vectors.json.gz"},
		{"quantised", "model_quantized.onnx", "onnx/quantized.json.gz"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := folder(t, "bert")
			if err := os.Remove(filepath.Join(dir, "model.safetensors")); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, filepath.FromSlash(c.file))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			data := unpack(t, filepath.Join("testdata", "onnx", filepath.Base(path)+".gz"))
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			e, err := Open(dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			want := wantedVectors(t, filepath.Join("testdata", filepath.FromSlash(c.vectors)))
			got, err := e.Embed(t.Context(), souvenir.ForDocument, textsOf(want))
			if err != nil {
				t.Fatal(err)
			}
			for i, w := range want {
				if d := farthest(got[i], w.Vector); d > 1e-4 {
					t.Errorf("%+q: a number differs by %.2g, want at most 1e-4", w.Text, d)
				}
			}
		})
	}
}

// TestInt8VectorsAreNearThoseOfTheReference limits the error of 8 bits, and checks that all loops give the same
// integers.
func TestInt8VectorsAreNearThoseOfTheReference(t *testing.T) {
	longtest.Only(t)
	for _, model := range []string{"bert", "xlmr"} {
		dir := folder(t, model)
		want := wantedVectors(t, filepath.Join("testdata", model, "vectors.json.gz"))
		var first [][]float32
		for _, k := range kernel.Available() {
			e, err := open(dir, defaults(t, Options{Precision: Int8}), k)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			got, err := e.Embed(t.Context(), souvenir.ForDocument, textsOf(want))
			if err != nil {
				t.Fatal(err)
			}
			sum, least, differ := 0.0, 1.0, 0.0
			for i, w := range want {
				sum, least = sum+cosine(got[i], w.Vector), min(least, cosine(got[i], w.Vector))
				if first != nil {
					differ = max(differ, farthest(got[i], first[i]))
				}
			}
			t.Logf("%s on %s: cosine %.5f on average, %.5f at least; %.2g from the first loops", model, k.Name,
				sum/float64(len(want)), least, differ)
			if sum/float64(len(want)) < 0.999 || least < 0.999 || differ > 0.005 {
				t.Errorf("%s on %s: cosine %.5f on average, %.5f at least, %.2g from the first loops; want 0.999, 0.999, 0.005",
					model, k.Name, sum/float64(len(want)), least, differ)
			}
			if first == nil {
				first = got
			}
		}
	}
}

// TestAVectorDoesNotDependOnTheTextsBesideIt compares bits, also in batches that several workers share.
func TestAVectorDoesNotDependOnTheTextsBesideIt(t *testing.T) {
	dir := folder(t, "xlmr")
	for _, precision := range []Precision{Float32, Int8} {
		e, err := Open(dir, &Options{Precision: precision, Workers: 3})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		texts := textsOf(wantedVectors(t, filepath.Join("testdata", "xlmr", "vectors.json.gz")))
		together, err := e.Embed(t.Context(), souvenir.ForQuery, texts)
		if err != nil {
			t.Fatal(err)
		}
		for i, text := range texts {
			alone, err := e.Embed(t.Context(), souvenir.ForQuery, []string{text})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(alone[0], together[i]) {
				t.Errorf("%v: %+q has another vector alone, got %v, want %v", precision, text, alone[0], together[i])
			}
		}
	}
}

// TestOptionsOverrideTheModelsFiles changes pooling, prefixes, length and precision. Each makes another model.
func TestOptionsOverrideTheModelsFiles(t *testing.T) {
	dir := folder(t, "bert")
	query, document := "ask: ", "say: "
	names := map[string]bool{}
	embed := func(o *Options, purpose souvenir.Purpose, text string) []float32 {
		t.Helper()
		e, err := Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		names[e.Model()] = true
		got, err := e.Embed(t.Context(), purpose, []string{text})
		if err != nil {
			t.Fatal(err)
		}
		return got[0]
	}
	text := "the cat sleeps on the sofa, and the dog does not"
	plain := embed(nil, souvenir.ForDocument, text)
	if got := embed(nil, souvenir.ForQuery, text); !slices.Equal(got, plain) {
		t.Errorf("without prefixes a query's vector is not a document's: got %v, want %v", got, plain)
	}
	o := &Options{QueryPrefix: &query, DocumentPrefix: &document}
	for purpose, prefixed := range map[souvenir.Purpose]string{souvenir.ForQuery: "ask: " + text,
		souvenir.ForDocument: "say: " + text} {
		if got, want := embed(o, purpose, text), embed(nil, purpose, prefixed); !slices.Equal(got, want) {
			t.Errorf("purpose %v: the prefix is not used, got %v, want %v", purpose, got, want)
		}
	}
	if got := embed(&Options{Pooling: CLS}, souvenir.ForQuery, text); slices.Equal(got, plain) {
		t.Errorf("the first token's vector is the mean: got %v, want another vector than %v", got, plain)
	}
	if got := embed(&Options{MaxTokens: 8}, souvenir.ForQuery, text); slices.Equal(got, plain) {
		t.Errorf("8 tokens give the vector of the whole text: got %v, want another vector than %v", got, plain)
	}
	embed(&Options{Precision: Int8}, souvenir.ForQuery, text)
	embed(&Options{Name: "another"}, souvenir.ForQuery, text)
	if len(names) != 6 {
		t.Errorf("the models have the names %v, want 6 names", names)
	}
}

// TestE5ModelsHaveTheirPrefixes lists names of e5 models and others.
func TestE5ModelsHaveTheirPrefixes(t *testing.T) {
	for name, want := range map[string]bool{
		"intfloat/multilingual-e5-small": true, "intfloat/e5-small-v2": true, "my-e5-base": true,
		"intfloat/multilingual-e5-large-instruct": false, "all-MiniLM-L6-v2": false, "bge-small": false, "": false,
		"type5-x": false,
	} {
		if isE5(name) != want {
			t.Errorf("isE5(%q) is %v, want %v", name, !want, want)
		}
	}
}

// TestOtherWeightsAreAnotherModel changes one byte of the weights, and one of the tokenizer.
func TestOtherWeightsAreAnotherModel(t *testing.T) {
	dir := folder(t, "bert")
	names := map[string]bool{}
	for _, change := range []string{"", "model.safetensors", "tokenizer.json"} {
		if change != "" {
			path := filepath.Join(dir, change)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if change == "tokenizer.json" {
				data = append(data, '\n')
			} else {
				data[len(data)-1] ^= 1
			}
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		e, err := Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		names[e.Model()] = true
		e.Close()
	}
	if len(names) != 3 {
		t.Errorf("the models have the names %v, want 3 names", names)
	}
}

// TestEmbedHonoursItsContextAndClose ends before the first layer, and leaves the workers free.
func TestEmbedHonoursItsContextAndClose(t *testing.T) {
	e, err := Open(folder(t, "bert"), &Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Embed(ctx, souvenir.ForQuery, []string{"a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v, want context.Canceled", err)
	}
	w := <-e.spaces
	if _, err := e.network.forward(ctx, w, [][]int32{{1, 2}}); !errors.Is(err, context.Canceled) {
		t.Errorf("the layers do not look at the context: %v, want context.Canceled", err)
	}
	other := <-e.spaces
	late, stop := context.WithCancelCause(t.Context())
	stop(errors.New("enough"))
	if err := e.embedBatches(late, [][]int32{{1, 2}}, [][]int{{0}}, make([][]float32, 1)); err == nil {
		t.Error("waiting for a worker does not end with the context, want an error")
	}
	e.spaces <- w
	e.spaces <- other
	if got, err := e.Embed(t.Context(), souvenir.ForQuery, nil); err != nil || len(got) != 0 {
		t.Errorf("no texts give %v, %v; want none", got, err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Embed(t.Context(), souvenir.ForQuery, []string{"a"}); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v, want ErrClosed", err)
	}
	if err := e.Close(); err != nil {
		t.Errorf("the second Close: %v", err)
	}
}
