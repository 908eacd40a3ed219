package kernel_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/kernel"
)

func TestPreparedPassagesAreReusedByTheirText(t *testing.T) {
	const size = 40
	first, second := "The first sentence is about tea.", "The second one is about coffee."
	third := "The third one is about milk."
	content, p := first+"\n\n"+second, kernel.Prepared{}
	texts := map[string]bool{}
	for _, passage := range kernel.Split(content, size) {
		texts[content[passage.Start:passage.Start+passage.Length]] = true
	}
	if len(texts) != 2 {
		t.Fatalf("the passages are %v, want a length of 2", texts)
	}
	missing := p.Add(content, size, map[string][]float32{strings.TrimSpace(second): {0, 1}})
	if len(missing) != 1 || !strings.Contains(missing[0], "tea") {
		t.Fatalf(`without a vector are %q, want one that contains "tea"`, missing)
	}
	p.SetVectors(missing, [][]float32{{1, 0}})
	if again := p.Add(content, size, nil); again != nil {
		t.Errorf("prepared again: %q, want nil", again)
	}
	passages, complete := p.Assemble(content, size)
	if !complete || len(passages) != 2 || !slices.Equal(passages[0].Vector, []float32{1, 0}) ||
		!slices.Equal(passages[1].Vector, []float32{0, 1}) {
		t.Errorf("they are %+v, %v, want complete, with 2 passages of vectors %v and %v", passages, complete,
			[]float32{1, 0}, []float32{0, 1})
	}
	changed := second + "\n\n" + third
	passages, complete = p.Assemble(changed, size)
	if complete || len(passages) != 2 || passages[1].Vector != nil || passages[1].Indexed == "" {
		t.Errorf("with a passage that is not prepared they are %+v, %v, want incomplete, with 2 passages, the "+
			"second with text and without a vector", passages, complete)
	}
	for i, plain := range kernel.Split(changed, size) {
		if got := passages[i]; got.Start != plain.Start || got.Length != plain.Length || got.Indexed != plain.Indexed {
			t.Errorf("passage %d is %+v, want %+v", i, got, plain)
		}
	}
}

func TestWhiteSpaceIsOneBlankPassage(t *testing.T) {
	p := kernel.Prepared{}
	if missing := p.Add(" \n", 40, nil); missing != nil {
		t.Errorf("to embed: %q, want nil", missing)
	}
	passages, complete := p.Assemble(" \n", 40)
	if !complete || len(passages) != 1 || !passages[0].Blank || passages[0].Length != 2 {
		t.Errorf("they are %+v, %v, want complete, with one blank passage of length 2", passages, complete)
	}
}
