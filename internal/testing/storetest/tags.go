package storetest

import (
	"github.com/souvenir-ai/souvenir"
)

func tags() concept {
	return concept{"Tags", []promise{
		{"are trimmed, and each kept once, in the order given", tagsStored},
		{"the list counts them, the most frequent first", tagsList},
		{"the list stays within collections and the view", tagsScope},
		{"follow updates and deletions", tagsFollow},
	}}
}

func tagsStored(f *fixture) {
	for _, m := range []souvenir.NewMemory{
		{Content: "x", Tags: []string{"b", " a ", "b", "a", "A", "\tc\n"}},
		{Content: "x", ShownMetadata: map[string]any{"tags": []string{"b", " a ", "b", "a", "A", "\tc\n"}}},
	} {
		f.same("tags", f.get(f.add(m).ID).Tags, "b", "a", "A", "c")
	}
	f.same("odd ones", f.get(f.add(souvenir.NewMemory{Content: "x",
		Tags: []string{"two words", "日本", "a,b", `"q"`, "%"}}).ID).Tags,
		"two words", "日本", "a,b", `"q"`, "%")
	for _, tag := range []string{"two words", "日本", "a,b", `"q"`, "%"} {
		f.equal("tagged "+tag, f.search(souvenir.Query{Tags: []string{tag}}).Total, 1)
	}
}

func (f *fixture) tags(collections ...string) []souvenir.Tag {
	f.Helper()
	all, err := f.reader.Insights().Tags(f.ctx, collections...)
	f.check("Tags", err)
	return all
}

func tagsList(f *fixture) {
	same(f, "tags of nothing", f.tags(), nil)
	for _, tags := range [][]string{{"b", "c"}, {"c", "a"}, {"c"}, nil} {
		f.add(souvenir.NewMemory{Content: "x", Tags: tags})
	}
	f.equal("tags", f.tags(), []souvenir.Tag{{Name: "c", Count: 3}, {Name: "a", Count: 1}, {Name: "b", Count: 1}})
}

func tagsScope(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "notes"})
	f.addCollection(souvenir.NewCollection{Name: "empty"})
	f.add(souvenir.NewMemory{Content: "x", Tags: []string{"a", "b"}})
	f.add(souvenir.NewMemory{Content: "x", Collection: "notes", Tags: []string{"b"}, ProjectID: "p"})
	f.as(souvenir.Access{User: "ann"}).add(souvenir.NewMemory{Content: "x", Tags: []string{"hers"}})
	f.equal("one collection", f.tags("notes"), []souvenir.Tag{{Name: "b", Count: 1}})
	f.equal("both collections", f.tags("notes", "default", "notes"),
		[]souvenir.Tag{{Name: "b", Count: 2}, {Name: "a", Count: 1}})
	same(f, "an empty collection", f.tags("empty"), nil)
	f.equal("within a project", f.as(souvenir.Access{Projects: []string{"p"}}).tags(),
		[]souvenir.Tag{{Name: "b", Count: 1}})
	_, err := f.reader.Insights().Tags(f.ctx, "")
	f.failsAt("Tags of a nameless collection", err, souvenir.ErrInvalid, "collection_name")
}

func tagsFollow(f *fixture) {
	id := f.add(souvenir.NewMemory{Content: "x", Tags: []string{"a", "b"}}).ID
	f.patch(id, map[string]any{"tags": []string{"c", "b"}})
	f.equal("after an update", f.tags(), []souvenir.Tag{{Name: "b", Count: 1}, {Name: "c", Count: 1}})
	f.same("in order", f.get(id).Tags, "c", "b")
	f.delete(id)
	same(f, "after the deletion", f.tags(), nil)
}
