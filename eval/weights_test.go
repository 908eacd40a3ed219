package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/retrieval/ranking"
)

// TestFitFindsTheBestWeights fits two weights to a function with a known optimum. One set wants another optimum, and
// each set counts the same, however many questions it has.
func TestFitFindsTheBestWeights(t *testing.T) {
	f := fit{start: defaultSetting(), folds: 2}
	for i, name := range weightNames() {
		if name == "near" || name == "speaker" {
			f.fields = append(f.fields, i)
		}
	}
	for i := range 9 {
		f.questions = append(f.questions, fitted{group: "many", fold: i % 2})
	}
	f.questions = append(f.questions, fitted{group: "few", fold: 0}, fitted{group: "few", fold: 1})
	f.values = func(w ranking.Weights) (values []float64, err error) {
		for _, q := range f.questions {
			near := 0.7
			if q.group == "few" {
				near = 0.9
			}
			values = append(values, 100-100*math.Abs(float64(w.Near)-near)-100*math.Abs(float64(w.Speaker)-0.2))
		}
		return values, nil
	}
	got, err := f.climb(func(fitted) bool { return true })
	if err != nil || got.Near < 0.65 || got.Near > 0.95 || math.Abs(float64(got.Speaker)-0.2) > 0.02 {
		t.Errorf("got near=%.3f speaker=%.3f %v, want near from 0.7 to 0.9 and speaker 0.2", got.Near, got.Speaker, err)
	}
	if got.Words != ranking.Default.Words || got.Around != ranking.Default.Around {
		t.Errorf("got %+v, want changes of near and speaker alone", got)
	}
	var out bytes.Buffer
	if err := f.run(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"without part 1: near=", "without part 2: near=", "of all: near=", "| many | ",
		"| few | "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got:\n%swant it to contain %q", out.String(), want)
		}
	}
}

func TestWeightsAreFittedOnTheDevelopmentHalf(t *testing.T) {
	weights := func(text string, args ...string) (string, error) {
		path := filepath.Join(t.TempDir(), "tiny.jsonl")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		err := command(t.Context(), append(append([]string{"weights"}, args...), path), &out)
		return out.String(), err
	}
	out, err := weights(tiny, "-of", "late", "-folds", "2", "-from", "hybrid,direct")
	if err != nil || !strings.Contains(out, "| tiny | 100.00 | 100.00 | 100.00 |") {
		t.Errorf("got %s %v, want both questions that have an answer found from the start on", out, err)
	}
	for _, c := range []struct {
		text string
		args []string
		want string
	}{
		{strings.ReplaceAll(tiny, `"type":"query"`, `"type":"query","half":"test"`), nil, "no question to fit on"},
		{tiny, []string{"-of", "length"}, `"length" is no weight`},
		{tiny, []string{"-folds", "1"}, "-folds=1; give 2 or more"},
		{tiny, []string{"-from", "length=1"}, `"length" is no weight`},
	} {
		if _, err := weights(c.text, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want an error with %q", c.args, err, c.want)
		}
	}
}
