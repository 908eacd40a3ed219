package storetest

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

var errOffline = errors.New("the model is offline")

func embedding() concept {
	return concept{"Embedding", []promise{
		{"a memory is stored if the embedder fails: found by word now, by meaning later", embeddingFails},
		{"a failing embedder makes searches go by words, with a warning", embeddingFailsQuery},
		{"an embedder that answers nonsense is a failing one", embeddingNonsense},
		{"the text of an embedder's error reaches the operator only", embeddingErrorsStayHere},
		{"an embedder that panics is a failing one", embeddingPanics},
		{"an update while the embedder fails is embedded later", embeddingFailsUpdate},
		{"what waits survives closing", embeddingWaitsAcrossOpen},
		{"a memory deleted or changed while it waits is not embedded in its old form", embeddingOutrun},
		{"texts come in batches, whole and in order", embeddingBatches},
		{"waiting ends with the context", embeddingWaitEnds},
		{"a context that ends while embedding leaves nothing behind", embeddingCancelled},
		{"the state tells what waits, and why", embeddingState},
	}}
}

// lastError waits until the state of the vectors has a cause.
func (f *fixture) lastError(says string) {
	f.Helper()
	f.wake()
	f.until("the last error says "+says, func() bool {
		e, err := f.store.Upkeep().EmbeddingStatus(f.ctx)
		f.check("EmbeddingStatus", err)
		return strings.Contains(e.LastError, says)
	})
}

// wake makes the background worker look for work, without waiting for it.
func (f *fixture) wake() {
	f.Helper()
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	if err := f.store.Upkeep().WaitEmbedded(ctx); !errors.Is(err, context.Canceled) {
		f.Errorf("WaitEmbedded with an ended context: %v; want context.Canceled", err)
	}
}

func embeddingFails(f *fixture) {
	f.embedder.Break(errOffline)
	stored := f.add(souvenir.NewMemory{Content: "a red automobile", Tags: []string{"traffic"}})
	f.equal("indexed", stored.Indexed, false)
	if len(stored.Warnings) != 1 || !strings.Contains(stored.Warnings[0], "the embedder words-1 failed") {
		f.Errorf("warnings %q; want one that says why", stored.Warnings)
	}
	batch, err := f.store.AddMemories(f.ctx, []souvenir.NewMemory{{Content: chapters()}, {Content: "a puppy"}}, nil)
	f.check("AddMemories", err)
	f.equal("indexed in a batch", []bool{batch[0].Indexed, batch[1].Indexed}, []bool{false, false})
	f.same("by word", f.byWord("automobile"), "a red automobile")
	f.same("by the word of a tag", f.byWord("traffic"), "a red automobile")
	f.equal("listed", len(f.list(souvenir.MemoryList{})), 3)

	f.embedder.Mend()
	f.waitEmbedded(f.store)
	f.same("by meaning", f.find("vehicle"), "a red automobile")
	results := f.search(souvenir.Query{Text: "hound"})
	same(f, "warnings", results.Warnings, nil)
	if found := fitting(results); len(found) != 2 {
		f.Errorf("by meaning found %q; want the puppy, and the chapter of the hound", found)
	}
	f.equal("state", []any{f.state().Pending, f.state().Changing, f.get(stored.ID).Revision}, []any{0, false, 1})
	seen := map[string]int{}
	for _, text := range f.embedder.Texts() {
		seen[text]++
	}
	if f.store == f.reader && seen["a red automobile"] != 1 {
		f.Errorf("the text was embedded %d times, want 1", seen["a red automobile"])
	}
}

func embeddingFailsQuery(f *fixture) {
	f.addTexts("a red car", "an automobile")
	f.embedder.Break(errOffline)
	results := f.search(souvenir.Query{Text: "car"})
	f.same("found", contents(results), "a red car")
	if !contains(results.Warnings, "the embedder words-1 failed") {
		f.Errorf("warnings %q; want one that says why it went by words", results.Warnings)
	}
	same(f, "warnings of a search by time", f.search(souvenir.Query{}).Warnings, nil)
	same(f, "warnings of a search by vector", f.search(souvenir.Query{Vector: Words{}.Vector("car")}).Warnings, nil)
	same(f, "what no word finds", contents(f.search(souvenir.Query{Text: "vehicle"})), nil)
}

func embeddingNonsense(f *fixture) {
	for _, c := range []struct {
		name    string
		vectors [][]float32
	}{
		{"none", nil},
		{"two for one", [][]float32{{1, 0, 0, 0}, {1, 0, 0, 0}}},
		{"another size", [][]float32{{1}}},
		{"no number", [][]float32{{1, nan(), 0, 0}}},
	} {
		f.reopen(souvenir.EmbedderFunc("nonsense", 4,
			func(context.Context, souvenir.Purpose, []string) ([][]float32, error) { return c.vectors, nil }))
		stored := f.add(souvenir.NewMemory{Content: "answered with " + c.name})
		if stored.Indexed || !contains(stored.Warnings, "the embedder nonsense failed") {
			f.Errorf("%s: indexed %v with the warnings %q; want false and one about the embedder", c.name, stored.Indexed,
				stored.Warnings)
		}
		if c.vectors == nil { // two vectors are right, for the two texts that wait in the end
			f.lastError("embedder nonsense")
		}
		f.equal("by word", f.byWord(stored.Content)[0], stored.Content)
	}
}

func embeddingErrorsStayHere(f *fixture) {
	const secret = "sk-4711"
	f.addTexts("a red car")
	f.embedder.Break(errors.New("POST https://10.0.0.7/v1?key=" + secret + ": 401 for the text \"a red car\""))
	anna := f.store.As(souvenir.Access{User: "anna"})
	for name, view := range map[string]*souvenir.Store{"the operator's own memories": f.store, "a user": anna} {
		added, err := view.AddMemory(f.ctx, souvenir.NewMemory{Content: "another car"})
		f.check("AddMemory", err)
		content := "a third car"
		updated, err := view.UpdateMemory(f.ctx, added.ID, souvenir.MemoryUpdate{Content: &content})
		f.check("UpdateMemory", err)
		found, err := view.Search(f.ctx, souvenir.Query{Text: "car"})
		f.check("Search", err)
		known, err := view.GetContext(f.ctx, souvenir.ContextQuery{Query: "car"})
		f.check("GetContext", err)
		rule, err := view.SetRule(f.ctx, souvenir.NewRule{Type: souvenir.RuleDo, Content: "Drive on the right."})
		f.check("SetRule", err)
		for call, warnings := range map[string][]string{"AddMemory": added.Warnings, "UpdateMemory": updated.Warnings,
			"Search": found.Warnings, "GetContext": known.Warnings, "SetRule": rule.Warnings} {
			if len(warnings) == 0 || contains(warnings, secret) || contains(warnings, "10.0.0.7") {
				f.Errorf("%s of %s: warnings %q; want one without the embedder's own words", call, name, warnings)
			}
		}
	}
	f.lastError(secret)
	status, err := anna.Upkeep().EmbeddingStatus(f.ctx)
	f.check("EmbeddingStatus", err)
	f.equal("the last error that a user is shown", status.LastError, "")
	status, err = f.store.As(souvenir.Access{User: souvenir.LocalUser}).Upkeep().EmbeddingStatus(f.ctx)
	f.check("EmbeddingStatus", err)
	f.equal("the last error that a view of the local user is shown", status.LastError, "")
}

func embeddingPanics(f *fixture) {
	f.reopen(souvenir.EmbedderFunc("panics", 2,
		func(_ context.Context, _ souvenir.Purpose, texts []string) ([][]float32, error) {
			var vectors [][]float32
			return vectors[len(texts):], nil
		}))
	stored := f.add(souvenir.NewMemory{Content: "a red car"})
	f.equal("indexed, and warned", []any{stored.Indexed, contains(stored.Warnings, "the embedder panics failed")},
		[]any{false, true})
	f.same("by word", f.byWord("car"), "a red car")
	f.lastError("out of range")
}

func embeddingFailsUpdate(f *fixture) {
	id := f.addTexts("a car")[0]
	f.embedder.Break(errOffline)
	updated := f.rewrite(id, "a puppy")
	f.equal("indexed", updated.Indexed, false)
	f.same("by word", f.byWord("puppy"), "a puppy")
	f.embedder.Mend()
	f.same("by the meaning that it had", f.find("vehicle"))
	f.waitEmbedded(f.store)
	f.same("by the meaning that it has", f.find("hound"), "a puppy")
	f.equal("revision", f.get(id).Revision, 2)
}

func embeddingWaitsAcrossOpen(f *fixture) {
	f.embedder.Break(errOffline)
	f.addTexts("an automobile")
	f.reopen(f.embedder)
	f.equal("pending", f.state().Pending, 1)
	f.embedder.Mend()
	f.waitEmbedded(f.store)
	f.same("by meaning", f.find("car"), "an automobile")
}

// embeddingOutrun replaces a memory that the worker is embedding. For any ids that the store gives its rows, the
// vector of one text must never become that of another.
func embeddingOutrun(f *fixture) {
	for _, c := range []struct {
		name    string
		outrun  func(id string)
		content string
	}{
		{"updated", func(id string) { f.rewrite(id, "a puppy") }, "a puppy"},
		{"deleted", func(id string) { f.delete(id); f.addTexts("a puppy") }, "a puppy"},
		{"deleted with its collection", func(string) {
			f.check("DeleteCollection",
				f.store.DeleteCollection(f.ctx, souvenir.DefaultCollection, &souvenir.DeletionOptions{WithMemories: true}))
			f.addTexts("a puppy")
		}, "a puppy"},
	} {
		f.embedder.Break(errOffline)
		id := f.addTexts("an automobile")[0]
		reached, release := f.embedder.Hold()
		f.wake()
		select {
		case <-reached:
		case <-time.After(patience):
			f.Fatalf("got no call of the embedder within %v, want the worker to embed what waits", patience)
		}
		c.outrun(id)
		release()
		f.embedder.Mend()
		f.waitEmbedded(f.store)
		f.same(c.name+": by the new meaning", f.find("hound"), c.content)
		f.same(c.name+": by the old meaning", f.find("vehicle"))
		f.check("DeleteCollection", f.store.DeleteCollection(f.ctx,
			souvenir.DefaultCollection, &souvenir.DeletionOptions{WithMemories: true}))
	}
}

func embeddingBatches(f *fixture) {
	const n = 300
	angle := func(i int) []float32 {
		return []float32{float32(math.Cos(float64(i) / n)), float32(math.Sin(float64(i) / n))}
	}
	var sizes []int
	f.reopen(souvenir.EmbedderFunc("angles", 2,
		func(_ context.Context, _ souvenir.Purpose, texts []string) ([][]float32, error) {
			sizes = append(sizes, len(texts))
			vectors := make([][]float32, len(texts))
			for i, text := range texts {
				number, err := strconv.Atoi(text)
				if err != nil {
					return nil, err
				}
				vectors[i] = angle(number)
			}
			return vectors, nil
		}))
	batch := make([]souvenir.NewMemory, n)
	for i := range batch {
		batch[i].Content = strconv.Itoa(i)
	}
	_, err := f.store.AddMemories(f.ctx, batch, nil)
	f.check("AddMemories", err)
	f.equal("batches", sizes, []int{souvenir.EmbedBatch, souvenir.EmbedBatch, n - 2*souvenir.EmbedBatch})
	for _, i := range []int{0, 1, 127, 128, 255, 256, 299} {
		f.equal("nearest", f.search(souvenir.Query{Vector: angle(i)}).Hits[0].Content, strconv.Itoa(i))
	}
}

func embeddingWaitEnds(f *fixture) {
	f.embedder.Break(errOffline)
	f.addTexts("a car")
	f.wake()
	ctx, cancel := context.WithTimeout(f.ctx, 30*time.Millisecond)
	defer cancel()
	if err := f.store.Upkeep().WaitEmbedded(ctx); !errors.Is(err, context.DeadlineExceeded) {
		f.Errorf("WaitEmbedded for an embedder that never works: %v; want context.DeadlineExceeded", err)
	}
}

func embeddingCancelled(f *fixture) {
	ctx, cancel := context.WithCancel(f.ctx)
	reached, release := f.embedder.Hold()
	defer release()
	go func() {
		<-reached
		cancel()
	}()
	_, err := f.store.AddMemories(ctx, []souvenir.NewMemory{{Content: "a car"}, {Content: "a dog"}}, nil)
	if !errors.Is(err, context.Canceled) {
		f.Errorf("AddMemories whose context ends: %v; want context.Canceled", err)
	}
	f.equal("memories", f.search(souvenir.Query{}).Total, 0)
	f.equal("passages", f.state().Passages, 0)
	id := f.addTexts("a car")[0]

	ctx, cancel = context.WithCancel(f.ctx)
	reached, release = f.embedder.Hold()
	defer release()
	go func() {
		<-reached
		cancel()
	}()
	content := "a dog"
	_, err = f.store.UpdateMemory(ctx, id, souvenir.MemoryUpdate{Content: &content})
	if !errors.Is(err, context.Canceled) {
		f.Errorf("UpdateMemory whose context ends: %v; want context.Canceled", err)
	}
	f.equal("content", f.get(id).Content, "a car")
}

func embeddingState(f *fixture) {
	f.equal("of an empty store", f.state(), souvenir.EmbeddingStatus{Model: "words-1", Dimensions: wordDimensions})
	f.addTexts("a car")
	f.embedder.Break(errOffline)
	f.addTexts("a dog")
	f.lastError(errOffline.Error())
	e := f.state()
	f.equal("while the embedder fails", []any{e.Passages, e.Pending, e.Changing}, []any{2, 1, false})
	f.embedder.Mend()
	f.waitEmbedded(f.store)
	f.until("the worker's error is forgotten", func() bool {
		e, err := f.store.Upkeep().EmbeddingStatus(f.ctx)
		f.check("EmbeddingStatus", err)
		return e.LastError == ""
	})
}
