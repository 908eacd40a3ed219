package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/examples/quickstart/data"
)

func TestEveryQuestionFindsItsAnswerAmongTheFirstThree(t *testing.T) {
	var out bytes.Buffer
	answers, err := run(t.Context(), nil, &out)
	if err != nil {
		t.Fatal(err)
	}
	questions, err := data.Questions()
	if err != nil {
		t.Fatal(err)
	}
	if len(answers) != len(questions) {
		t.Fatalf("got %d answers, want %d, one for each question", len(answers), len(questions))
	}
	first := 0
	for _, a := range answers {
		if a.rank() == 1 {
			first++
		}
		if a.rank() == 0 {
			t.Errorf("%q: got no memory with %q among the first three, want one", a.Ask, a.Expect)
			for _, hit := range a.hits {
				t.Logf("  %.3f %.80s", hit.Score, hit.Content)
			}
		}
	}
	if first < 12 {
		t.Errorf("%d of %d answers are in first place; want 12 or more", first, len(answers))
	}
	for number, line := range strings.Split(out.String(), "\n") {
		// The width of the temporary folder's path is not the example's fault, but it is shortened anyway.
		if n := columns(line); n > width {
			t.Errorf("line %d takes %d columns, want at most %d: %s", number+1, n, width, line)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

func TestEveryAnswerIsInOneMemoryOnly(t *testing.T) {
	memories, err := data.Memories()
	if err != nil {
		t.Fatal(err)
	}
	if len(memories) < 300 {
		t.Errorf("only %d memories were read, want at least 300", len(memories))
	}
	questions, err := data.Questions()
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range questions {
		holders := 0
		for _, m := range memories {
			if strings.Contains(m.Content, q.Expect) {
				holders++
			}
		}
		if holders != 1 {
			t.Errorf("%q is in %d memories; want 1", q.Expect, holders)
		}
	}
}

func TestSecondRunFindsTheFileFull(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agent.db")
	ask := []string{file, "who sings alto?", "誰が京都の宿について書きましたか"}
	var first, second bytes.Buffer
	before, err := run(t.Context(), ask, &first)
	if err != nil {
		t.Fatal(err)
	}
	after, err := run(t.Context(), ask, &second)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(second.String(), "holds 320 memories already") {
		t.Errorf("the second run stored again:\n%s; want in it \"holds 320 memories already\"", second.String())
	}
	for i := range ask[1:] {
		if len(before[i].hits) != 3 || len(after[i].hits) != 3 {
			t.Fatalf("%q: %d hits, then %d; want 3 each time", ask[i+1], len(before[i].hits), len(after[i].hits))
		}
		for j := range before[i].hits {
			if before[i].hits[j].ID != after[i].hits[j].ID {
				t.Errorf("%q: place %d differs between the runs, got %v, want %v", ask[i+1], j+1, before[i].hits[j].ID,
					after[i].hits[j].ID)
			}
		}
	}
}

func TestWrapKeepsToItsWidth(t *testing.T) {
	for _, test := range []struct {
		text         string
		width, lines int
		want         string
	}{
		{"one two three", 20, 3, "one two three"},
		{"one two three", 8, 3, "one two|three"},
		{"one two three", 7, 2, "one two|three"},
		{"one two three four", 7, 2, "one two|three …"},
		{"unbreakable", 5, 2, "unbre|akab…"},
		{"京都の宿は夜十時", 6, 2, "京都の|宿は…"},
		{"", 5, 3, ""},
	} {
		if got := strings.Join(wrap(test.text, test.width, test.lines), "|"); got != test.want {
			t.Errorf("wrap(%q, %d, %d) = %q; want %q", test.text, test.width, test.lines, got, test.want)
		}
	}
}
