package storetest

import (
	"fmt"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

func passages() concept {
	return concept{"Passages", []promise{
		{"a short memory is one passage", passageOfShort},
		{"a hit in a long one points at the passage that fits", passagePointsAtFit},
		{"a long memory is found once", passagesOfOneMemory},
		{"the length follows the embedder's input", passageMaxInput},
	}}
}

func passageOfShort(f *fixture) {
	f.addTexts("The heron stood in the reeds.")
	hit := f.search(souvenir.Query{Text: "heron"}).Hits[0]
	f.equal("range", hit.Content[hit.Start:hit.End], "The heron stood in the reeds.")
	byTime := f.search(souvenir.Query{}).Hits[0]
	f.equal("range when nothing is sought", byTime.Content[byTime.Start:byTime.End], "The heron stood in the reeds.")
}

// animals are the subjects of the chapters of a long memory.
var animals = []string{"heron", "otter", "badger", "lynx", "walrus", "hound"}

// chapters returns a text of many passages: one subject a chapter, separated by multi-byte characters.
func chapters() string {
	var b strings.Builder
	for _, animal := range animals {
		fmt.Fprintf(&b, "## Chapter of the %s\n\n", animal)
		for i := range 12 {
			fmt.Fprintf(&b, "On day %d – “größer” than expected – rain fell on the fields, and nothing else was written down "+
				"until évening. ", i)
		}
		fmt.Fprintf(&b, "Then the %s came back to its place.\n\n", animal)
	}
	return b.String()
}

func passagePointsAtFit(f *fixture) {
	content := chapters()
	f.addTexts(content, "Something else altogether.")
	for _, animal := range animals {
		hit := f.search(souvenir.Query{Text: animal}).Hits[0]
		if hit.Content != content || hit.Start < 0 || hit.End > len(content) || hit.Start >= hit.End {
			f.Errorf("%s: hit %q with the range %d to %d of %d bytes, want content %v, start at least 0, end at most %v and "+
				"start less than %v", animal, brief(hit.Content), hit.Start, hit.End, len(content), content, len(content), hit.End)
			continue
		}
		if passage := content[hit.Start:hit.End]; !strings.Contains(passage, animal) || len(passage) > 1600 {
			f.Errorf("%s: the hit points at %d bytes, %q; want a passage about it", animal, len(passage), passage)
		}
	}
	hit := f.search(souvenir.Query{Text: "puppy"}).Hits[0]
	if passage := hit.Content[hit.Start:hit.End]; !strings.Contains(passage, "hound") {
		f.Errorf("puppy: the hit points at %q; want the passage about the hound, which means the same", passage)
	}
}

func passagesOfOneMemory(f *fixture) {
	f.addTexts(chapters())
	if n := f.state().Passages; n < len(animals) {
		f.Fatalf("%d passages; want at least %d", n, len(animals))
	}
	for _, q := range []souvenir.Query{{Text: "rain on the fields"}, {}, {Text: "rain", Sort: souvenir.SortCreatedAsc}} {
		results := f.search(q)
		f.equal("hits and total", []int{len(results.Hits), results.Total}, []int{1, 1})
	}
	f.equal("listed", len(f.list(souvenir.MemoryList{})), 1)
}

// limited is an embedder with an input size.
type limited struct {
	souvenir.Embedder
	bytes int
}

func (l limited) MaxInput() int { return l.bytes }

func passageMaxInput(f *fixture) {
	seen := NewSwitch(Words{})
	f.reopen(limited{seen, 200})
	f.addTexts(chapters())
	f.waitEmbedded(f.store)
	longest := 0
	for _, text := range seen.Texts() {
		longest = max(longest, len(text))
	}
	if longest > 200 || longest < 100 {
		f.Errorf("the longest of %d passages for an embedder of 200 bytes has %d bytes; want 100 to 200", len(seen.Texts()),
			longest)
	}
}
