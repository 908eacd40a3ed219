package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// fixture is a store under test, with everything that a test can control. Its methods fail the test on any error, and
// name the call; tests of errors call the store itself.
type fixture struct {
	*testing.T
	ctx    context.Context
	store  *souvenir.Store // for writing
	reader *souvenir.Store // for reading: the same one, or another handle on the same store

	operator *souvenir.Store // the first handle, also if the fixture is another view

	clock    *Clock
	ids      *IDs
	embedder *Switch
	open     Open
}

func newFixture(t *testing.T, open Open, twoHandles bool) *fixture {
	f := &fixture{T: t, ctx: t.Context(), clock: &Clock{}, ids: &IDs{}, embedder: NewSwitch(Words{}), open: open}
	f.store = f.handle(f.embedder)
	f.reader, f.operator = f.store, f.store
	if twoHandles {
		f.reader = f.handle(f.embedder)
	}
	return f
}

// handle opens the test's store, with an embedder.
func (f *fixture) handle(e souvenir.Embedder) *souvenir.Store {
	f.Helper()
	return f.open(f.T, f.options(e))
}

func (f *fixture) options(e souvenir.Embedder) *souvenir.Options {
	return &souvenir.Options{Embedder: e, Now: f.clock.Now, NewID: f.ids.Next, MasterKey: MasterKey}
}

// Opening returns the context with which a test opens a copy of its store; nil means the test's own context. It is set
// between runs only.
var Opening func(ctx context.Context, t *testing.T) context.Context

// Sealed returns the stored length of a text of some bytes; nil means the same length. It is set between runs only.
var Sealed func(bytes int) int

// MasterKey is the master key of all files of the tests. It is set between runs only; the zero value is none.
var MasterKey souvenir.MasterKey

// reopen closes all handles and opens the store again, with another embedder.
func (f *fixture) reopen(e souvenir.Embedder) {
	f.Helper()
	twoHandles := f.reader != f.store
	f.close()
	f.store = f.handle(e)
	f.reader, f.operator = f.store, f.store
	if twoHandles {
		f.reader = f.handle(e)
	}
}

func (f *fixture) close() {
	f.Helper()
	f.check("Close", f.store.Close())
	f.check("Close", f.reader.Close())
}

// as returns the same fixture through a view.
func (f *fixture) as(access souvenir.Access) *fixture {
	view := *f
	view.store, view.reader = f.store.As(access), f.reader.As(access)
	return &view
}

// check fails the test if a call that must succeed returned an error.
func (f *fixture) check(what string, err error) {
	f.Helper()
	if err != nil {
		f.Fatalf("%s: %v", what, err)
	}
}

// add stores a memory.
func (f *fixture) add(m souvenir.NewMemory) souvenir.StoredMemory {
	f.Helper()
	stored, err := f.store.AddMemory(f.ctx, m)
	f.check("AddMemory "+brief(m.Content), err)
	return stored
}

// addTexts stores memories with only a content and returns their ids.
func (f *fixture) addTexts(contents ...string) []string {
	f.Helper()
	var ids []string
	for _, content := range contents {
		ids = append(ids, f.add(souvenir.NewMemory{Content: content}).ID)
	}
	return ids
}

func (f *fixture) addCollection(c souvenir.NewCollection) souvenir.Collection {
	f.Helper()
	added, err := f.store.AddCollection(f.ctx, c)
	f.check("AddCollection "+c.Name, err)
	return added
}

func (f *fixture) collection(name string) souvenir.Collection {
	f.Helper()
	c, err := f.reader.GetCollection(f.ctx, name)
	f.check("GetCollection "+name, err)
	return c
}

func (f *fixture) get(id string) souvenir.Memory {
	f.Helper()
	m, err := f.reader.GetMemory(f.ctx, id)
	f.check("GetMemory "+id, err)
	return m
}

func (f *fixture) update(id string, u souvenir.MemoryUpdate) souvenir.StoredMemory {
	f.Helper()
	stored, err := f.store.UpdateMemory(f.ctx, id, u)
	f.check(fmt.Sprintf("UpdateMemory %s %s", id, toJSON(u.Metadata)), err)
	return stored
}

func (f *fixture) patch(id string, metadata map[string]any) souvenir.StoredMemory {
	f.Helper()
	return f.update(id, souvenir.MemoryUpdate{ShownMetadata: metadata})
}

func (f *fixture) rewrite(id, content string) souvenir.StoredMemory {
	f.Helper()
	return f.update(id, souvenir.MemoryUpdate{Content: &content})
}

func (f *fixture) delete(id string) {
	f.Helper()
	f.check("DeleteMemory "+id, f.store.DeleteMemory(f.ctx, id, nil))
}

func (f *fixture) revisions(id string) []souvenir.Revision {
	f.Helper()
	all, err := f.reader.Revisions(f.ctx, id)
	f.check("Revisions "+id, err)
	return all
}

func (f *fixture) search(q souvenir.Query) souvenir.Results {
	f.Helper()
	results, err := f.reader.Search(f.ctx, q)
	f.check(fmt.Sprintf("Search %+v", brief(q)), err)
	return results
}

// find searches for a text and returns the contents of the hits by words or meaning, best first.
func (f *fixture) find(text string) []string {
	f.Helper()
	return fitting(f.search(souvenir.Query{Text: text, Limit: souvenir.MaxLimit}))
}

// byWord searches for a text and returns the contents of the hits by words, best first.
func (f *fixture) byWord(text string) []string {
	f.Helper()
	var found []string
	for _, h := range f.search(souvenir.Query{Text: text, Limit: souvenir.MaxLimit}).Hits {
		if h.Parts.Text > 0 {
			found = append(found, h.Content)
		}
	}
	return found
}

// list returns all memories of a listing.
func (f *fixture) list(l souvenir.MemoryList) []souvenir.Memory {
	f.Helper()
	var all []souvenir.Memory
	for m, err := range f.reader.Memories(f.ctx, l) {
		f.check(fmt.Sprintf("Memories %+v", l), err)
		all = append(all, m)
	}
	return all
}

func (f *fixture) state() souvenir.EmbeddingStatus {
	f.Helper()
	e, err := f.reader.Upkeep().EmbeddingStatus(f.ctx)
	f.check("EmbeddingStatus", err)
	return e
}

// patience is much longer than any background work in a test can take.
const patience = 30 * time.Second

// waitEmbedded waits for the background work of one handle.
func (f *fixture) waitEmbedded(s *souvenir.Store) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.ctx, patience)
	defer cancel()
	f.check("WaitEmbedded", s.Upkeep().WaitEmbedded(ctx))
}

// until waits for an effect of background work.
func (f *fixture) until(what string, reached func() bool) {
	f.Helper()
	for deadline := time.Now().Add(patience); !reached(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.Fatalf("waited too long: %s, want it before the deadline", what)
		}
	}
}

// equal compares a result with the wanted one, and prints both as JSON where that shows the difference.
func (f *fixture) equal(what string, got, want any) {
	f.Helper()
	if reflect.DeepEqual(got, want) {
		return
	}
	g, w := toJSON(got), toJSON(want)
	if g == w {
		g, w = fmt.Sprintf("%#v", got), fmt.Sprintf("%#v", want)
	}
	f.Errorf("%s\n got %s\nwant %s", what, g, w)
}

// sameJSON compares results in the JSON form that callers see.
func (f *fixture) sameJSON(what string, got, want any) {
	f.Helper()
	if g, w := toJSON(got), toJSON(want); g != w {
		f.Errorf("%s\n got %s\nwant %s", what, g, w)
	}
}

// same compares found contents, in order.
func (f *fixture) same(what string, got []string, want ...string) {
	f.Helper()
	same(f, what, got, want)
}

// same compares lists, in order; an empty one and nil are the same.
func same[T any](f *fixture, what string, got, want []T) {
	f.Helper()
	if len(got) != 0 || len(want) != 0 {
		f.equal(what, got, want)
	}
}

// fails checks that a call failed with a kind of error, and that the message contains some text.
func (f *fixture) fails(what string, err error, kind *souvenir.Error, says ...string) {
	f.Helper()
	if !errors.Is(err, kind) {
		f.Errorf("%s: got error %v, want kind %q", what, described(err), kind.Kind)
		return
	}
	message := err.Error()
	if known := (*souvenir.Error)(nil); errors.As(err, &known) {
		message = known.Message
	}
	for _, part := range says {
		if !strings.Contains(message, part) {
			f.Errorf("%s: the error says %q, want it to say %q", what, message, part)
		}
	}
}

// failsAt is fails for an error that names an argument.
func (f *fixture) failsAt(what string, err error, kind *souvenir.Error, argument string, says ...string) {
	f.Helper()
	f.fails(what, err, kind, says...)
	var known *souvenir.Error
	if !errors.As(err, &known) {
		return
	}
	if known.Argument != argument {
		f.Errorf("%s: the error is about argument %q, want %q", what, known.Argument, argument)
	}
	namesAField(f, what, known)
}

func described(err error) string {
	var known *souvenir.Error
	if errors.As(err, &known) {
		return fmt.Sprintf("%q of kind %q", err, known.Kind)
	}
	return fmt.Sprint(err)
}

func fitting(r souvenir.Results) []string {
	var found []string
	for _, h := range r.Hits {
		if h.Score > 0 {
			found = append(found, h.Content)
		}
	}
	return found
}

func contents(r souvenir.Results) []string {
	var all []string
	for _, h := range r.Hits {
		all = append(all, h.Content)
	}
	return all
}

func texts(memories []souvenir.Memory) []string {
	var all []string
	for _, m := range memories {
		all = append(all, m.Content)
	}
	return all
}

func ids[M interface {
	souvenir.StoredMemory | souvenir.Memory | souvenir.Hit
}](memories []M) []string {
	var all []string
	for _, m := range memories {
		switch m := any(m).(type) {
		case souvenir.StoredMemory:
			all = append(all, m.ID)
		case souvenir.Memory:
			all = append(all, m.ID)
		case souvenir.Hit:
			all = append(all, m.ID)
		}
	}
	return all
}

func toJSON(v any) string {
	encoded, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%+v", v)
	}
	return string(encoded)
}

// brief shortens a value for a message.
func brief(v any) string {
	s := fmt.Sprintf("%+v", v)
	if len(s) > 300 {
		return s[:300] + "…"
	}
	return s
}

// object decodes metadata from JSON, for tables.
func object(encoded string) map[string]any {
	var m map[string]any
	if err := json.Unmarshal([]byte(encoded), &m); err != nil {
		panic("storetest: " + encoded + ": " + err.Error())
	}
	return m
}

// contains reports whether one of some texts contains a part.
func contains(texts []string, part string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, part) })
}
