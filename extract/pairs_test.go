package extract_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/extract"
)

// pair is two memories, the older one first, and a person's label for them: testdata/pairs.json.
type pair struct {
	Label  string // same, changed, both
	Keep   int
	Merged string
	Texts  [2]string
	ids    [2]string
}

func readPairs(t *testing.T) []pair {
	t.Helper()
	data, err := os.ReadFile("testdata/pairs.json")
	if err != nil {
		t.Fatal(err)
	}
	var f struct{ Pairs []pair }
	if err := json.Unmarshal(data, &f); err != nil || len(f.Pairs) < 50 {
		t.Fatalf("got %d pairs and %v, want 50 or more", len(f.Pairs), err)
	}
	return f.Pairs
}

// may reports whether a memory of the pair, 0 or 1, may be forgotten.
func (p pair) may(i int) bool { return p.Label != "both" && (p.Keep == 0 || p.Keep != i+1) }

// careful answers like a model without mistakes: by the labels, for each pair whose two texts it sees.
func careful(pairs []pair) func(document) any {
	return func(d document) any {
		number := map[string]int{}
		for _, k := range d.Known {
			number[k.Text] = k.Memory
		}
		all := []proposal{}
		for _, p := range pairs {
			one, two := number[p.Texts[0]], number[p.Texts[1]]
			if one == 0 || two == 0 || p.Label == "both" {
				continue
			}
			if p.Merged != "" {
				all = append(all, proposal{"update", p.Merged, one, []int{}, "It has both.", 0.9})
			}
			if p.Keep == 1 || p.Keep == 0 {
				one = two
			}
			all = append(all, proposal{"forget", "", one, []int{}, "It is not needed.", 0.9})
		}
		return all
	}
}

// outcome counts the pairs with a right and with a wrong proposal, by label.
type outcome struct {
	same, changed, wrong int
	mistakes             []string
}

func (o outcome) String() string {
	return fmt.Sprintf("%d same, %d changed, %d wrong", o.same, o.changed, o.wrong)
}

// judge compares proposals with the labels. A text that is lost without being merged is also a mistake.
func judge(pairs []pair, kept []extract.Pending) (o outcome) {
	for _, p := range pairs {
		var forgotten []int
		merged := false
		for _, k := range kept {
			if i := slices.Index(p.ids[:], k.Proposal.Target); i >= 0 && k.Proposal.Action == extract.Forget {
				forgotten = append(forgotten, i)
			} else if i >= 0 {
				merged = k.Proposal.Content == p.Merged
			}
		}
		switch right := len(forgotten) == 1 && p.may(forgotten[0]) && merged == (p.Merged != ""); {
		case len(forgotten) == 0 && !merged:
		case !right:
			o.wrong++
			o.mistakes = append(o.mistakes, fmt.Sprintf("%s: forget %v of %q", p.Label, forgotten, p.Texts))
		case p.Label == "same":
			o.same++
		default:
			o.changed++
		}
	}
	return o
}

// Labelled pairs among other memories: the proposals by similarity alone, and those with a model without mistakes. No
// real model is used; its own mistakes would add to these.
func TestConsolidationFindsMoreAndNothingWrongWithAModel(t *testing.T) {
	pairs, store := readPairs(t), open(t)
	for i := range pairs {
		copy(pairs[i].ids[:], remember(t, store, pairs[i].Texts[0], pairs[i].Texts[1]))
	}
	for i := range 60 { // others, which share few words
		remember(t, store, fmt.Sprintf("Ticket %d: %c%c.", i*i+1000, 'a'+i%26, 'k'+i%7))
	}
	dry := func(o extract.Options) (extract.Report, outcome) {
		o.DryRun = true
		r := consolidate(t, learner(t, store, o))
		got := judge(pairs, r.Kept)
		t.Logf("%v, in %d calls: %s; mistakes: %q", o.Extractor != nil, r.Usage.Calls, got, got.mistakes)
		return r, got
	}
	_, alone := dry(extract.Options{})
	r, asked := dry(extract.Options{Extractor: newModel(t, careful(pairs)).chat(t)})
	if alone.same+alone.changed < 10 || alone.wrong > 20 {
		t.Errorf("by similarity alone: got %s, want at least 10 right and at most 20 wrong", alone)
	}
	if asked.wrong != 0 || asked.same < 17 || asked.changed < 15 || asked.same < alone.same ||
		asked.changed < alone.changed {
		t.Errorf("with a model: got %s, want at least 17 same, 15 changed, none wrong, and not less than alone: %s", asked,
			alone)
	}
	if most := len(pairs) + 10; r.Usage.Calls > most {
		t.Errorf("got %d calls, want at most %d for %d pairs", r.Usage.Calls, most, len(pairs))
	}
}

func TestAGroupThatAModelLeavesAloneIsNotShownAgain(t *testing.T) {
	store := open(t)
	ids := remember(t, store, "Ben speaks French.", "Ben speaks Italian.", "The tests of the parser are slow.")
	m := newModel(t, func(document) any { return []proposal{{"none", "", 1, []int{}, "Both are true.", 1}} })
	l := learner(t, store, extract.Options{Extractor: m.chat(t)})
	for _, try := range []string{"at first", "again"} {
		if r := consolidate(t, l); len(r.Kept) != 0 || m.count() != 1 {
			t.Errorf("%s: got %+v after %d requests, want nothing after 1", try, r, m.count())
		}
	}
	if page, err := extract.NewReviewer(store).Page(t.Context(), extract.ReviewQuery{}); err != nil || page.Total != 0 {
		t.Errorf("got %+v and the error %v, want nothing to review", page, err)
	}
	if got := facts(t, store, inDefault); len(got) != 3 {
		t.Errorf("got %q, want the three memories alone", got)
	}
	m.answer = func(document) any { return []proposal{} }
	content := "Ben speaks Portuguese."
	if _, err := store.UpdateMemory(t.Context(), ids[0], souvenir.MemoryUpdate{Content: &content}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if consolidate(t, l); m.count() != 2 {
			t.Errorf("after a change: got %d requests, want 2", m.count())
		}
	}
}

func TestAnUnusableAnswerAboutAGroupProposesNothing(t *testing.T) {
	store := open(t)
	remember(t, store, "Anna works in Kiel.", "Anna works in Bremen.")
	broken := true
	m := newModel(t, func(d document) any {
		if broken {
			return "no JSON"
		}
		return []proposal{{"forget", "", 1, []int{}, "She moved.", 0.9}}
	})
	l := learner(t, store, extract.Options{Extractor: m.messages(t)})
	if r := consolidate(t, l); len(r.Kept) != 0 {
		t.Errorf("got %+v, want nothing", r)
	}
	broken = false
	r := consolidate(t, l)
	if len(r.Kept) != 1 {
		t.Fatalf("got %+v, want one that waits", r)
	}
	if _, err := l.Accept(t.Context(), r.Kept[0].ID, ""); err != nil {
		t.Fatal(err)
	}
	if err := l.Refuse(t.Context(), r.Kept[0].ID); !errors.Is(err, souvenir.ErrNotFound) {
		t.Errorf("got the error %v, want ErrNotFound", err)
	}
}
