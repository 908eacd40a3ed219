package storetest

import (
	"math"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

func ownVectors() concept {
	return concept{"Own vectors", []promise{
		{"are searched by vectors of their size", ownSearch},
		{"of another size are refused, naming both", ownSizes},
		{"may be left out, with a warning", ownMissing},
		{"embed no text", ownEmbedsNothing},
		{"change with the content", ownUpdate},
		{"stay when metadata, tags or project change", ownKept},
		{"of different sizes live side by side", ownSideBySide},
	}}
}

func ownCollection(f *fixture, name string, size int) {
	f.Helper()
	f.addCollection(souvenir.NewCollection{Name: name, OwnVectors: true, VectorSize: size})
}

func ownSearch(f *fixture) {
	ownCollection(f, "own", 3)
	f.equal("collection", []any{f.collection("own").Embedder, f.collection("own").VectorSize},
		[]any{souvenir.OwnVectors, 3})
	for content, vector := range map[string][]float32{"north": {0, 5, 0}, "east": {1, 0, 0}, "up": {0, 0, 0.1}} {
		stored := f.add(souvenir.NewMemory{Collection: "own", Content: content, Embedding: vector})
		f.equal("indexed", stored.Indexed, true)
	}
	results := f.search(souvenir.Query{Vector: []float32{0.2, 1, 0.1}})
	f.same("by vector", contents(results), "north", "east", "up")
	if got, want := results.Hits[0].Parts.Vector, 1/math.Sqrt(1.05); !near(got, want) {
		f.Errorf("cosine %v; want %v", got, want)
	}
	f.same("by word", f.byWord("east"), "east")
	f.equal("by word and vector", contents(f.search(souvenir.Query{Text: "east", Vector: []float32{1, 0, 0}}))[0], "east")
	long := f.add(souvenir.NewMemory{Collection: "own", Content: chapters(), Embedding: []float32{-1, -1, 0}})
	hit := f.search(souvenir.Query{Vector: []float32{-1, -1, 0}}).Hits[0]
	f.equal("one vector stands for the whole of a long memory", []any{hit.ID, hit.Start, hit.End},
		[]any{long.ID, 0, len(chapters())})
}

func ownSizes(f *fixture) {
	ownCollection(f, "own", 3)
	for _, c := range []struct {
		vector []float32
		says   []string
	}{
		{[]float32{1, 2}, []string{"2", "3", `"own"`}},
		{[]float32{}, []string{"0", "3"}},
		{make([]float32, wordDimensions), []string{"512", "3"}},
		{[]float32{1, nan(), 0}, []string{"element 1", "NaN"}},
		{[]float32{1, 0, float32(math.Inf(-1))}, []string{"element 2", "-Inf"}},
	} {
		_, err := f.store.AddMemory(f.ctx, souvenir.NewMemory{Collection: "own", Content: "x", Embedding: c.vector})
		f.failsAt("AddMemory", err, souvenir.ErrInvalid, "embedding", c.says...)
	}
	id := f.add(souvenir.NewMemory{Collection: "own", Content: "x", Embedding: []float32{1, 2, 3}}).ID
	_, err := f.store.AddMemory(f.ctx,
		souvenir.NewMemory{Collection: "own", Content: "x", Embedding: []float32{1, 2}, Similar: 3})
	f.failsAt("AddMemory that asks for similar ones", err, souvenir.ErrInvalid, "embedding", "2", "3")
	content := "y"
	_, err = f.store.UpdateMemory(f.ctx, id, souvenir.MemoryUpdate{Content: &content, Embedding: []float32{1}})
	f.failsAt("UpdateMemory", err, souvenir.ErrInvalid, "embedding", "1", "3")
	_, err = f.reader.Search(f.ctx, souvenir.Query{Vector: []float32{1, 2}, Collections: []string{"own"}})
	f.failsAt("Search", err, souvenir.ErrInvalid, "query_embedding", "2", "3")
	f.equal("memories", f.collection("own").MemoryCount, 1)
	f.add(souvenir.NewMemory{Collection: "own", Content: "nothing", Embedding: []float32{0, 0, 0}})
	for _, h := range f.search(souvenir.Query{Vector: []float32{1, 2, 3}}).Hits {
		if h.Content == "nothing" && h.Parts.Vector != 0 {
			f.Errorf("a vector of zeros, which has no direction, has the similarity %v, want 0", h.Parts.Vector)
		}
	}
}

func ownMissing(f *fixture) {
	ownCollection(f, "own", 3)
	stored := f.add(souvenir.NewMemory{Collection: "own", Content: "a car"})
	f.equal("indexed", stored.Indexed, false)
	if len(stored.Warnings) != 1 || !strings.Contains(stored.Warnings[0], `"own"`) {
		f.Errorf("warnings %q; want one that names the collection", stored.Warnings)
	}
	f.waitEmbedded(f.store)
	f.same("by word", f.byWord("car"), "a car")
	f.same("by meaning", f.find("automobile"))
	f.equal("pending", f.state().Pending, 0)
}

func ownEmbedsNothing(f *fixture) {
	ownCollection(f, "own", 3)
	f.embedder.Break(errOffline)
	with := f.add(souvenir.NewMemory{Collection: "own", Content: "a car", Embedding: []float32{1, 2, 3}})
	same(f, "warnings with a vector", with.Warnings, nil)
	without := f.add(souvenir.NewMemory{Collection: "own", Content: "a car"})
	if contains(without.Warnings, "embedder") {
		f.Errorf("got warnings %q, want none of the embedder, which own vectors do not need", without.Warnings)
	}
	f.embedder.Mend()
	f.add(souvenir.NewMemory{Collection: "own", Content: "a car"})
	f.rewrite(with.ID, "a house")
	same(f, "texts embedded", f.embedder.Texts(), nil)
}

func ownUpdate(f *fixture) {
	ownCollection(f, "own", 2)
	id := f.add(souvenir.NewMemory{Collection: "own", Content: "x", Embedding: []float32{1, 0}}).ID
	cosine := func() float64 {
		f.Helper()
		return f.search(souvenir.Query{Text: "x y z", Vector: []float32{0, 1}}).Hits[0].Parts.Vector
	}
	content := "y"
	f.equal("updated", f.update(id, souvenir.MemoryUpdate{Content: &content, Embedding: []float32{0, 1}}).Indexed, true)
	f.equal("cosine", near(cosine(), 1), true)
	f.equal("the same content with another vector is a change",
		f.update(id, souvenir.MemoryUpdate{Content: &content, Embedding: []float32{1, 1}}).Revision, 3)
	f.equal("cosine then", near(cosine(), math.Sqrt(0.5)), true)
	updated := f.rewrite(id, "z")
	f.equal("new content without a vector", []any{updated.Indexed, len(updated.Warnings)}, []any{false, 1})
	f.equal("cosine without a vector", cosine(), 0.0)
}

func ownKept(f *fixture) {
	ownCollection(f, "own", 2)
	id := f.add(souvenir.NewMemory{Collection: "own", Content: "x", Embedding: []float32{0, 1}}).ID
	for _, patch := range []string{`{"a":1}`, `{"tags":["t"]}`, `{"project_id":"p"}`, `{"project_id":null,"tags":null}`} {
		patched := f.patch(id, object(patch))
		f.equal("indexed after "+patch, patched.Indexed, true)
		f.equal("cosine after "+patch, near(f.search(souvenir.Query{Vector: []float32{0, 1}}).Hits[0].Parts.Vector, 1), true)
	}
}

func ownSideBySide(f *fixture) {
	ownCollection(f, "two", 2)
	ownCollection(f, "three", 3)
	ownCollection(f, "same", wordDimensions)
	f.add(souvenir.NewMemory{Collection: "two", Content: "two", Embedding: []float32{0, 1}})
	f.add(souvenir.NewMemory{Collection: "three", Content: "three", Embedding: []float32{0, 0, 1}})
	f.add(souvenir.NewMemory{Collection: "same", Content: "brought along", Embedding: Words{}.Vector("car")})
	f.addTexts("a car")
	f.same("two dimensions", fitting(f.search(souvenir.Query{Vector: []float32{0, 1}})), "two")
	f.same("three dimensions", fitting(f.search(souvenir.Query{Vector: []float32{0, 0, 1}})), "three")
	f.same("the embedder's dimensions", fitting(f.search(souvenir.Query{Vector: Words{}.Vector("car")})), "brought along",
		"a car")
	f.same("a text is compared with the embedder's vectors only", f.find("automobile"), "a car")
	_, err := f.reader.Search(f.ctx, souvenir.Query{Vector: []float32{1, 2, 3, 4}})
	f.failsAt("Search with a size that is nowhere", err, souvenir.ErrInvalid, "query_embedding", "4")
}
