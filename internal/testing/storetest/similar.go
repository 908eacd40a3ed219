package storetest

import (
	"github.com/souvenir-ai/souvenir"
)

func similar() concept {
	return concept{"Near duplicates", []promise{
		{"are hinted at when asked for, the most similar first", similarHints},
		{"are earlier memories", similarBefore},
		{"are visible through the view", similarVisible},
		{"are not known while the embedder fails", similarWithoutEmbedder},
	}}
}

func similarHints(f *fixture) {
	const content = "we deploy on monday morning from the main branch only after notice"
	other := f.addTexts("we deploy on monday morning from the main branch only after review",
		"we deploy on friday morning from the main branch only after notice",
		"we do not deploy on monday morning from the main branch after notice", "gardening in may")
	close := f.addTexts("note: we deploy on monday morning from the main branch, only after notice")[0]
	exact := f.addTexts(content)[0]
	m := souvenir.NewMemory{Content: content}
	same(f, "hints when none are asked for", f.add(m).Similar, nil)
	m.Similar = 20
	hints := f.add(m).Similar
	if len(hints) < 3 || hints[0].Score < 0.999 || hints[0].Content != m.Content ||
		hints[0].Collection != souvenir.DefaultCollection {
		f.Fatalf("hints %+v; want the same text first", hints)
	}
	var got []string
	for i, h := range hints {
		got = append(got, h.ID)
		if h.Score < 0.8 || h.Score > 1 || i > 0 && h.Score > hints[i-1].Score {
			f.Errorf("hint %d has the score %v; want 0.8 to 1, falling", i, h.Score)
		}
	}
	for _, id := range other {
		f.equal("a hint at what says something else", contains(got, id), false)
	}
	f.equal("both near ones are among them", contains(got, close) && contains(got, exact), true)
	m.Similar = 1
	f.equal("hints when one is asked for", len(f.add(m).Similar), 1)
	f.equal("hints for something new", len(f.add(souvenir.NewMemory{Content: "otters and herons", Similar: 20}).Similar),
		0)
}

func similarBefore(f *fixture) {
	before := f.addTexts("car house dog")[0]
	stored, err := f.store.AddMemories(f.ctx,
		[]souvenir.NewMemory{{Content: "car house dog", Similar: 5}, {Content: "Car, house, dog!", Similar: 5},
			{Content: "car house dog"}}, nil)
	f.check("AddMemories", err)
	for i, want := range []int{1, 1, 0} {
		f.equal("hints", len(stored[i].Similar), want)
		if want == 1 {
			f.equal("hint", []string{stored[i].Similar[0].ID, stored[i].Similar[0].Content}, []string{before, "car house dog"})
		}
	}
}

func similarVisible(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "notes"})
	f.add(souvenir.NewMemory{Content: "car house dog", Collection: "notes", ProjectID: "p"})
	f.equal("hint from another collection",
		f.add(souvenir.NewMemory{Content: "car house dog", Similar: 1}).Similar[0].Collection, "notes")
	ann := f.as(souvenir.Access{User: "ann"})
	f.equal("hints for a stranger", len(ann.add(souvenir.NewMemory{Content: "car house dog", Similar: 20}).Similar), 0)
	limited := f.as(souvenir.Access{Projects: []string{"p"}})
	f.equal("hints within a project", len(limited.add(souvenir.NewMemory{Content: "car house dog", Similar: 20}).Similar),
		1)
}

func similarWithoutEmbedder(f *fixture) {
	f.addTexts("car house dog")
	f.embedder.Break(errOffline)
	f.equal("hints", len(f.add(souvenir.NewMemory{Content: "car house dog", Similar: 20}).Similar), 0)
}
