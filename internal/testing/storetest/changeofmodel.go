package storetest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func changeOfModel() concept {
	return concept{"Change of model", []promise{
		{"searches by words, with a warning, until all is embedded again", changeGoesByWords},
		{"ends with the meaning of the new model", changeEnds},
		{"resumes where it stopped", changeResumes},
		{"tells how far it has come, and never less", changeProgress},
		{"back to the old model needs nothing", changeBack},
		{"leaves own vectors alone", changeOwnVectors},
		{"embeds what waited for the old model", changeOfPending},
		{"of input size splits again", changeOfSplitter},
		{"to a model of another size searches by its vectors", changeOfSize},
		{"while two handles have two models compares neither's with the other's", changeBesideOther},
		{"does not give one memory the vectors of another", changeOutrun},
	}}
}

// changing opens the test's store with another model, whose embedder fails at first.
func (f *fixture) changing() *Switch {
	f.Helper()
	e := NewSwitch(Words{Version: "2"})
	e.Break(errOffline)
	f.reopen(e)
	return e
}

func changeGoesByWords(f *fixture) {
	f.addTexts("a red automobile", "a dog", chapters())
	e := f.changing()
	f.equal("changing", []any{f.state().Model, f.state().Changing}, []any{"words-2", true})
	for _, broken := range []bool{true, false} {
		if !broken {
			e.BreakAfter(1, errOffline) // only the search's own text can be embedded, not the memories
		}
		results := f.search(souvenir.Query{Text: "automobile"})
		f.same("by word", contents(results), "a red automobile")
		f.equal("parts", []bool{results.Hits[0].Parts.Text > 0, results.Hits[0].Parts.Vector == 0}, []bool{true, true})
		if len(results.Warnings) == 0 || !broken && !contains(results.Warnings, "words-2") {
			f.Errorf("warnings %q; want one about the change", results.Warnings)
		}
	}
	for version, vector := range map[string][]float32{"1": Words{}.Vector("automobile"),
		"2": Words{Version: "2"}.Vector("automobile")} {
		results := f.search(souvenir.Query{Vector: vector})
		f.same("by a vector of model "+version, fitting(results))
		if !contains(results.Warnings, "words-2") {
			f.Errorf("warnings %q; want one about the change", results.Warnings)
		}
	}
	f.equal("by time", f.search(souvenir.Query{}).Total, 3)
	stored := f.add(souvenir.NewMemory{Content: "stored meanwhile"})
	f.same("stored meanwhile", f.byWord("meanwhile"), "stored meanwhile")
	f.equal("indexed", stored.Indexed, false)
}

func changeEnds(f *fixture) {
	ids := f.addTexts("a red automobile", "a dog", chapters())
	f.rewrite(ids[1], "a puppy")
	f.patch(ids[0], map[string]any{"tags": []string{"traffic"}, "project_id": "p"})
	before := f.list(souvenir.MemoryList{})
	e := f.changing()
	f.addTexts("the physician")
	e.Mend()
	f.waitEmbedded(f.store)
	f.same("by meaning", f.find("vehicle"), "a red automobile")
	f.same("stored during the change", f.find("doctor"), "the physician")
	f.same("by the word of a tag", f.byWord("traffic"), "a red automobile")
	f.equal("in its project", f.search(souvenir.Query{Text: "car", ProjectID: "p"}).Total, 1)
	same(f, "warnings", f.search(souvenir.Query{Text: "car"}).Warnings, nil)
	f.same("vectors of the old model", fitting(f.search(souvenir.Query{Vector: Words{}.Vector("car dog")})))
	f.equal("best for a vector of the new one",
		contents(f.search(souvenir.Query{Vector: Words{Version: "2"}.Vector("hound")}))[0], "a puppy")
	for _, animal := range animals {
		hit := f.search(souvenir.Query{Text: "chapter of the " + animal}).Hits[0]
		if !strings.Contains(hit.Content[hit.Start:hit.End], animal) {
			f.Errorf("%s: the hit points at %q, want a passage with the animal", animal, brief(hit.Content[hit.Start:hit.End]))
		}
	}
	for _, m := range before {
		f.equal("the memory itself", f.get(m.ID), m)
	}
	e2 := f.state()
	f.equal("state", []any{e2.Model, e2.Pending, e2.Changing}, []any{"words-2", 0, false})
	f.reopen(NewSwitch(Words{Version: "2"}))
	f.same("by meaning once it is opened again", f.find("vehicle"), "a red automobile")
}

// changeProgress also stores while the model changes: the remaining work grows, and finished work stays.
func changeProgress(f *fixture) {
	const n = 300
	batch := make([]souvenir.NewMemory, n)
	for i := range batch {
		batch[i].Content = fmt.Sprint("automobile number", i)
	}
	_, err := f.store.AddMemories(f.ctx, batch, nil)
	f.check("AddMemories", err)
	f.as(souvenir.Access{User: "ann"}).add(souvenir.NewMemory{Content: "of another user"})
	before := f.state()
	f.equal("before", []any{before.Memories, before.Changed, before.From}, []any{n, n, ""})

	e := NewSwitch(Words{Version: "2"})
	e.BreakAfter(n/2, errOffline)
	f.reopen(e)
	most := 0
	grows := func() souvenir.EmbeddingStatus {
		now := f.state()
		if now.Changed < most || now.Changed > now.Memories {
			f.Errorf("%d memories are done, want %d to %d", now.Changed, most, now.Memories)
		}
		most = now.Changed
		return now
	}
	f.until("some of the work is done", func() bool {
		grows()
		failed, err := f.store.Upkeep().EmbeddingStatus(f.ctx)
		f.check("EmbeddingStatus", err)
		return failed.LastError != ""
	})
	// A second handle may still finish a batch that it began before the embedder broke.
	half := grows()
	f.equal("half done", []any{half.Changing, half.Memories, half.Changed > 0, half.Changed < n, half.From, half.Model},
		[]any{true, n, true, true, before.Model, "words-2"})
	f.add(souvenir.NewMemory{Content: "stored meanwhile"})
	f.equal("with what was stored meanwhile", grows().Memories, n+1)
	stats, err := f.store.Upkeep().Stats(f.ctx)
	f.check("Stats", err)
	f.equal("of all users", []any{stats.Embedding.Memories, stats.Embedding.From}, []any{n + 2, before.Model})
	if done := stats.Embedding.Changed; done < half.Changed || done >= n {
		f.Errorf("of all users: got %d done, want from %d to %d", done, half.Changed, n-1)
	}

	f.reopen(NewSwitch(Words{Version: "2"}))
	f.until("all is done", func() bool { return !grows().Changing })
	after := grows()
	f.equal("after", []any{after.Memories, after.Changed, after.From}, []any{n + 1, n + 1, ""})
}

func changeResumes(f *fixture) {
	const n = 400
	batch := make([]souvenir.NewMemory, n)
	for i := range batch {
		batch[i].Content = fmt.Sprint("automobile number", i)
	}
	_, err := f.store.AddMemories(f.ctx, batch, nil)
	f.check("AddMemories", err)

	first := NewSwitch(Words{Version: "2"})
	first.BreakAfter(n/2, errOffline)
	f.reopen(first)
	f.until("half of the work is done", func() bool {
		a, err := f.store.Upkeep().EmbeddingStatus(f.ctx)
		f.check("EmbeddingStatus", err)
		b, err := f.reader.Upkeep().EmbeddingStatus(f.ctx)
		f.check("EmbeddingStatus", err)
		return a.LastError != "" || b.LastError != ""
	})
	f.equal("changing", f.state().Changing, true)
	second := NewSwitch(Words{Version: "2"})
	f.reopen(second)
	f.waitEmbedded(f.store)
	if did := len(second.Texts()); f.store == f.reader && (did == 0 || did > n-len(first.Texts())) {
		f.Errorf("of %d texts the first run embedded %d and the second %d; want what was left", n, len(first.Texts()), did)
	}
	results := f.search(souvenir.Query{Text: "car", Limit: 1})
	f.equal("total and warnings", []int{results.Total, len(results.Warnings)}, []int{n, 0})
	if results.Hits[0].Parts.Vector <= 0 {
		f.Errorf("parts %+v; want meaning", results.Hits[0].Parts)
	}
	all := f.search(souvenir.Query{Vector: Words{Version: "2"}.Vector("car"), Limit: 100, Offset: n - 100})
	for _, h := range all.Hits {
		if h.Parts.Vector <= 0 {
			f.Errorf("%q has no vector of the new model, want vector more than 0", h.Content)
		}
	}
}

func changeBack(f *fixture) {
	f.addTexts("a red automobile")
	f.changing()
	f.equal("changing", f.state().Changing, true)
	again := NewSwitch(Words{})
	f.reopen(again)
	f.equal("changing back", f.state().Changing, false)
	results := f.search(souvenir.Query{Text: "vehicle"})
	f.same("by meaning", fitting(results), "a red automobile")
	same(f, "warnings", results.Warnings, nil)
	f.same("texts embedded", again.Texts(), "vehicle")
}

func changeOwnVectors(f *fixture) {
	ownCollection(f, "own", 2)
	f.add(souvenir.NewMemory{Collection: "own", Content: "north", Embedding: []float32{0, 1}})
	f.addTexts("a car")
	e := f.changing()
	f.same("during the change", fitting(f.search(souvenir.Query{Vector: []float32{0, 1}})), "north")
	e.Mend()
	f.waitEmbedded(f.store)
	f.same("after it", fitting(f.search(souvenir.Query{Vector: []float32{0, 1}})), "north")
	f.equal("collection", f.collection("own").Embedder, souvenir.OwnVectors)
	if contains(e.Texts(), "north") {
		f.Error("got the text of an own vector embedded, want it left out")
	}
}

func changeOfPending(f *fixture) {
	f.embedder.Break(errOffline)
	f.addTexts("an automobile")
	e := f.changing()
	e.Mend()
	f.waitEmbedded(f.store)
	f.same("by meaning", f.find("vehicle"), "an automobile")
}

func changeOfSplitter(f *fixture) {
	f.addTexts(chapters())
	before := f.state().Passages
	f.reopen(limited{NewSwitch(Words{}), 400})
	f.waitEmbedded(f.store)
	if after := f.state().Passages; after < 2*before {
		f.Errorf("%d passages for texts of 1,600 bytes, %d for texts of 400; want many more", before, after)
	}
	for _, animal := range animals {
		hit := f.search(souvenir.Query{Text: animal}).Hits[0]
		if piece := hit.Content[hit.Start:hit.End]; len(piece) > 400 || !strings.Contains(piece, animal) {
			f.Errorf("%s: the hit points at %q, want at most 400 bytes with it inside", animal, brief(piece))
		}
	}
}

func changeOfSize(f *fixture) {
	f.addTexts("north", "east")
	f.reopen(souvenir.EmbedderFunc("compass", 2, compass))
	f.waitEmbedded(f.store)
	f.equal("nearest", contents(f.search(souvenir.Query{Vector: []float32{0.1, 1}}))[0], "north")
	_, err := f.reader.Search(f.ctx, souvenir.Query{Vector: Words{}.Vector("north")})
	f.failsAt("Search with a vector of the old size", err, souvenir.ErrInvalid, "query_embedding", "512", "2")
	f.equal("vector size", f.collection(souvenir.DefaultCollection).VectorSize, 2)
}

// compass is a model of two dimensions that knows two words.
func compass(_ context.Context, _ souvenir.Purpose, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		vectors[i] = []float32{1, 0}
		if text == "north" {
			vectors[i] = []float32{0, 1}
		}
	}
	return vectors, nil
}

func changeBesideOther(f *fixture) {
	f.addTexts("a red automobile")
	e := NewSwitch(Words{Version: "2"})
	other := f.handle(e)
	f.waitEmbedded(other)
	results := f.search(souvenir.Query{Text: "vehicle"})
	f.same("through the old model", fitting(results))
	if len(results.Warnings) == 0 {
		f.Errorf("a search through a handle of the old model has no warning: got %v, want some warnings",
			len(results.Warnings))
	}
	stored := f.add(souvenir.NewMemory{Content: "a blue puppy"})
	f.equal("indexed when stored by the old model", stored.Indexed, false)
	f.same("by word", f.byWord("blue"), "a blue puppy")
	f.waitEmbedded(other)
	for text, want := range map[string]string{"vehicle": "a red automobile", "hound": "a blue puppy"} {
		found, err := other.Search(f.ctx, souvenir.Query{Text: text})
		f.check("Search", err)
		f.same("through the new model", fitting(found), want)
		same(f, "warnings", found.Warnings, nil)
	}
}

// changeOutrun replaces a memory that is being embedded again.
func changeOutrun(f *fixture) {
	for _, c := range []struct {
		name   string
		outrun func(id string)
	}{
		{"updated", func(id string) { f.rewrite(id, "hi puppy") }},
		{"deleted", func(id string) { f.delete(id); f.addTexts("hi puppy") }},
		{"deleted with its collection", func(string) {
			f.check("DeleteCollection",
				f.store.DeleteCollection(f.ctx, souvenir.DefaultCollection, &souvenir.DeletionOptions{WithMemories: true}))
			f.addTexts("hi puppy")
		}},
	} {
		id := f.addTexts("a red automobile that is longer than what takes its place")[0]
		e := NewSwitch(Words{Version: c.name})
		e.Break(errOffline)
		reached, release := e.Hold()
		f.reopen(e)
		select {
		case <-reached:
		case <-time.After(patience):
			f.Fatalf("the worker does not embed again")
		}
		c.outrun(id)
		release()
		e.Mend()
		f.waitEmbedded(f.store)
		f.same(c.name+": by the new meaning", f.find("hound"), "hi puppy")
		f.same(c.name+": by the old meaning", f.find("vehicle"))
		f.same(c.name+": by an old word", f.byWord("longer"))
		f.same(c.name+": by a new word", f.byWord("hi"), "hi puppy")
		f.check("DeleteCollection", f.store.DeleteCollection(f.ctx,
			souvenir.DefaultCollection, &souvenir.DeletionOptions{WithMemories: true}))
	}
}
