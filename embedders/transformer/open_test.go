package transformer

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBadModelsAreErrors checks what each error names: the file, the setting or tensor, and what would be right.
func TestBadModelsAreErrors(t *testing.T) {
	for name, c := range map[string]struct {
		file    string
		from    string // the replaced part of the file; empty: the whole file
		to      string
		want    []string
		remove  bool
		options *Options
	}{
		"no config": {file: "config.json", remove: true, want: []string{"config.json is missing",
			"tokenizer.json"}},
		"config is no JSON": {file: "config.json", to: "{", want: []string{"config.json", "unexpected end"}},
		"another family": {file: "config.json", from: `"model_type":"bert"`, to: `"model_type":"gpt2"`,
			want: []string{`model_type is "gpt2"`, "bert, xlm-roberta"}},
		"another activation": {file: "config.json", from: `"hidden_act":"gelu"`, to: `"hidden_act":"relu"`,
			want: []string{`hidden_act is "relu"`}},
		"relative positions": {file: "config.json", from: `"absolute"`, to: `"relative_key"`,
			want: []string{"position_embedding_type"}},
		"a huge size": {file: "config.json", from: `"hidden_size":32`, to: `"hidden_size":2000000000`,
			want: []string{"hidden_size is 2000000000; expected 1 to 16384"}},
		"a negative size": {file: "config.json", from: `"vocab_size":`, to: `"vocab_size":-`,
			want: []string{"vocab_size is -"}},
		"heads that do not divide": {file: "config.json", from: `"num_attention_heads":2`, to: `"num_attention_heads":5`,
			want: []string{"hidden_size is 32 and num_attention_heads 5"}},
		"epsilon": {file: "config.json", from: `"layer_norm_eps":1e-12`, to: `"layer_norm_eps":0`,
			want: []string{"layer_norm_eps is 0"}},
		"another shape": {file: "config.json", from: `"intermediate_size":96`, to: `"intermediate_size":97`,
			want: []string{"model.safetensors",
				`"bert.encoder.layer.0.intermediate.dense.weight" has shape [96 32]; config.json requires [97 32]`}},
		"more layers": {file: "config.json", from: `"num_hidden_layers":2`, to: `"num_hidden_layers":3`,
			want: []string{`no tensor "bert.encoder.layer.2.attention.self.query.weight"`, "such as"}},
		"a small vocabulary": {file: "config.json", from: `"vocab_size":900`, to: `"vocab_size":10`,
			want: []string{"tokenizer.json", "vocab_size is 10"}},
		"a dense module": {file: "modules.json", from: `models.Normalize`, to: `models.Dense`,
			want: []string{"modules.json", "models.Dense"}},
		"a path outside": {file: "modules.json", from: `"1_Pooling"`, to: `"../../etc"`,
			want: []string{"modules.json", `"../../etc"`}},
		"two poolings": {file: "1_Pooling/config.json", from: `"pooling_mode_cls_token":false`,
			to: `"pooling_mode_cls_token":true`, want: []string{"1_Pooling", "cls_token or mean_tokens"}},
		"weights cut off":     {file: "model.safetensors", from: "all but 100", want: []string{"model.safetensors"}},
		"no weights":          {file: "model.safetensors", remove: true, want: []string{"has no weights", "model.onnx"}},
		"a tokenizer of none": {file: "tokenizer.json", to: "{}", want: []string{"tokenizer.json", "model: it is missing"}},
		"precision":           {options: &Options{Precision: 7}, want: []string{"Precision is Precision(7)"}},
		"pooling":             {options: &Options{Pooling: 7}, want: []string{"Pooling is Pooling(7)"}},
		"tokens":              {options: &Options{MaxTokens: 1}, want: []string{"MaxTokens is 1"}},
		"workers":             {options: &Options{Workers: -1}, want: []string{"Workers is -1"}},
		"another model's mean": {options: &Options{Mean: make([]float32, 31)},
			want: []string{"Mean has 31 numbers; the model's vectors have 32"}},
		"a mean of no numbers": {options: &Options{Mean: []float32{1, float32(math.NaN())}},
			want: []string{"Mean holds NaN at place 1"}},
		"a long name": {options: &Options{Name: strings.Repeat("a", 101)}, want: []string{"Name has 101 bytes"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, "bert")
			if c.file != "" {
				damage(t, filepath.Join(dir, filepath.FromSlash(c.file)), c.from, c.to, c.remove)
			}
			_, err := Open(dir, c.options)
			if err == nil {
				t.Fatal("it is opened, want an error")
			}
			for _, want := range append(c.want, "transformer: ") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got the error %q, want one with %q", err, want)
				}
			}
		})
	}
	if _, err := Open(filepath.Join(t.TempDir(), "nowhere"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v, want fs.ErrNotExist", err)
	}
}

func damage(t *testing.T, path, from, to string, remove bool) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := to
	switch {
	case from == "all but 100":
		changed = string(data[:len(data)-100])
	case from != "":
		if changed = strings.Replace(string(data), from, to, 1); changed == string(data) {
			t.Fatalf("%s: got %.300s, want it to contain %q", path, data, from)
		}
	}
	if remove {
		err = os.Remove(path)
	} else {
		err = os.WriteFile(path, []byte(changed), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestAModelIsReadInAllItsForms has the tokenizer in its other files, and none of the files of sentence-transformers.
func TestAModelIsReadInAllItsForms(t *testing.T) {
	for _, c := range []struct{ model, without string }{{"bert", "tokenizer.json"}, {"xlmr", "tokenizer.json"},
		{"bert", "modules.json"}} {
		dir := folder(t, c.model)
		if err := os.Remove(filepath.Join(dir, c.without)); err != nil {
			t.Fatal(err)
		}
		e, err := Open(dir, nil)
		if err != nil {
			t.Fatalf("%s without %s: %v", c.model, c.without, err)
		}
		defer e.Close()
		if n := len(e.tokenizer.Encode(nil, "the cat", 0)); n < 4 {
			t.Errorf("%s without %s: %d tokens, want at least 4", c.model, c.without, n)
		}
	}
	dir := folder(t, "bert")
	if err := os.Remove(filepath.Join(dir, "tokenizer.json")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "vocab.txt")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, nil); err == nil || !strings.Contains(err.Error(), "has no tokenizer") {
		t.Errorf(`without a tokenizer: %v, want an error and "has no tokenizer" in the error`, err)
	}
}
