package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func collections() concept {
	return concept{"Collections", []promise{
		{"an added one is returned and found by name", collectionIsFound},
		{"errors name bad arguments, and the allowed values", collectionArguments},
		{"a name is taken once, per owner", collectionNameIsUnique},
		{"names may hold anything printable", collectionNames},
		{"an unknown name is not found, and the nearest one is named", collectionHint},
		{"the list is by name and counts memories", collectionList},
		{"default is made when first needed, others never", collectionDefault},
		{"a description can be replaced", collectionUpdate},
		{"one can be renamed, with all that is in it", collectionRename},
		{"a full one is deleted only with its memories", collectionDelete},
		{"what was in a deleted one never comes back", collectionDeleteForgets},
		{"another vector size than the embedder's names both", collectionVectorSize},
		{"no method takes an empty name for another one", collectionEmptyName},
	}}
}

func collectionIsFound(f *fixture) {
	added := f.addCollection(souvenir.NewCollection{Name: "recipes", Description: "what we cook"})
	f.equal("added", added, souvenir.Collection{
		Name: "recipes", Description: "what we cook", Owner: souvenir.LocalUser, VectorSize: wordDimensions,
		Embedder:  "words-1",
		CreatedAt: start, UpdatedAt: start,
	})
	f.equal("found", f.collection("recipes"), added)
}

func collectionArguments(f *fixture) {
	for _, c := range []struct {
		name     string
		add      souvenir.NewCollection
		kind     *souvenir.Error
		argument string
		says     string
	}{
		{"no name", souvenir.NewCollection{}, souvenir.ErrInvalid, "collection_name", "1 to 128"},
		{"blank name", souvenir.NewCollection{Name: " \t"}, souvenir.ErrInvalid, "collection_name", "1 to 128"},
		{"long name", souvenir.NewCollection{Name: strings.Repeat("é", 129)}, souvenir.ErrTooLarge, "collection_name", "129"},
		{"control character", souvenir.NewCollection{Name: "a\x00b"}, souvenir.ErrInvalid, "collection_name", "U+0000"},
		{"name that is not UTF-8", souvenir.NewCollection{Name: "a\xff"}, souvenir.ErrInvalid, "collection_name", "UTF-8"},
		{"long description", souvenir.NewCollection{Name: "a", Description: strings.Repeat("é", 4097)}, souvenir.ErrTooLarge,
			"description", "4096"},
		{"description that is not UTF-8", souvenir.NewCollection{Name: "a", Description: "\xff"}, souvenir.ErrInvalid,
			"description", "UTF-8"},
		{"negative size", souvenir.NewCollection{Name: "a", VectorSize: -1}, souvenir.ErrInvalid, "vector_size", "-1"},
		{"huge size", souvenir.NewCollection{Name: "a", VectorSize: 1 << 20, OwnVectors: true}, souvenir.ErrInvalid,
			"vector_size", "16384"},
		{"own vectors without size", souvenir.NewCollection{Name: "a", OwnVectors: true}, souvenir.ErrInvalid, "vector_size",
			"dimensions"},
	} {
		_, err := f.store.AddCollection(f.ctx, c.add)
		f.failsAt("AddCollection with "+c.name, err, c.kind, c.argument, c.says)
	}
	all, err := f.reader.Collections(f.ctx)
	f.check("Collections", err)
	same(f, "collections after refused ones", all, nil)
}

func collectionNameIsUnique(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "notes", Description: "first"})
	_, err := f.store.AddCollection(f.ctx, souvenir.NewCollection{Name: "notes", Description: "second"})
	f.failsAt("AddCollection of the same name", err, souvenir.ErrConflict, "collection_name", `"notes"`)
	f.equal("description", f.collection("notes").Description, "first")

	f.addCollection(souvenir.NewCollection{Name: "Notes"}) // another name: case counts
	f.as(souvenir.Access{User: "ann"}).addCollection(souvenir.NewCollection{Name: "notes"})
}

func collectionNames(f *fixture) {
	for _, name := range []string{"x", strings.Repeat("é", 128), `"quoted"`, "a'b; DROP TABLE memory", "日本語", "%_*?[a-z]",
		"a/b\\c", "🧠"} {
		f.addCollection(souvenir.NewCollection{Name: name})
		f.equal("name", f.collection(name).Name, name)
		f.add(souvenir.NewMemory{Collection: name, Content: "kept here"})
		f.equal("hits in "+name, len(f.search(souvenir.Query{Text: "kept", Collections: []string{name}}).Hits), 1)
	}
}

func collectionHint(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "Recipes"})
	f.addCollection(souvenir.NewCollection{Name: "travel"})
	f.as(souvenir.Access{User: "ann"}).addCollection(souvenir.NewCollection{Name: "recipe"})

	ask := map[string]func(name string) error{
		"GetCollection": func(name string) error { _, err := f.reader.GetCollection(f.ctx, name); return err },
		"AddMemory": func(name string) error {
			_, err := f.store.AddMemory(f.ctx, souvenir.NewMemory{Collection: name, Content: "x"})
			return err
		},
		"Search": func(name string) error {
			_, err := f.reader.Search(f.ctx, souvenir.Query{Text: "x", Collections: []string{"travel", name}})
			return err
		},
		"Memories": func(name string) error {
			for _, err := range f.reader.Memories(f.ctx, souvenir.MemoryList{Collections: []string{name}}) {
				return err
			}
			return nil
		},
		"Tags": func(name string) error { _, err := f.reader.Insights().Tags(f.ctx, name); return err },
		"UpdateCollection": func(name string) error {
			_, err := f.store.UpdateCollection(f.ctx, name, souvenir.CollectionUpdate{Description: new("")})
			return err
		},
		"DeleteCollection": func(name string) error {
			return f.store.DeleteCollection(f.ctx, name, &souvenir.DeletionOptions{WithMemories: true})
		},
	}
	for method, call := range ask {
		f.failsAt(method, call("recipse"), souvenir.ErrNotFound, "collection_name", `"recipse"`, `did you mean "Recipes"?`,
			"create_collection")
		far := call("zzzzzzzz")
		f.failsAt(method, far, souvenir.ErrNotFound, "collection_name", `"zzzzzzzz"`)
		if far != nil && strings.Contains(far.Error(), "did you mean") {
			f.Errorf("%s of a name that resembles none: %q; want no hint", method, far)
		}
	}
}

func collectionList(f *fixture) {
	for _, name := range []string{"b", "a", "c"} {
		f.addCollection(souvenir.NewCollection{Name: name})
	}
	f.add(souvenir.NewMemory{Collection: "b", Content: "one"})
	f.add(souvenir.NewMemory{Collection: "b", Content: "two", ProjectID: "p"})
	f.add(souvenir.NewMemory{Collection: "c", Content: "three"})
	gone := f.add(souvenir.NewMemory{Collection: "c", Content: "four"})
	f.delete(gone.ID)

	count := func(f *fixture) map[string]int {
		all, err := f.reader.Collections(f.ctx)
		f.check("Collections", err)
		counts := map[string]int{}
		var names []string
		for _, c := range all {
			counts[c.Name] = c.MemoryCount
			names = append(names, c.Name)
		}
		if !slices.IsSorted(names) {
			f.Errorf("Collections lists %q; want them by name", names)
		}
		return counts
	}
	f.equal("all of them", count(f), map[string]int{"a": 0, "b": 2, "c": 1})
	f.equal("of one project", count(f.as(souvenir.Access{Projects: []string{"p"}})), map[string]int{"b": 1})
	f.equal("of another user", count(f.as(souvenir.Access{User: "ann"})), map[string]int{})
}

func collectionDefault(f *fixture) {
	_, err := f.reader.GetCollection(f.ctx, souvenir.DefaultCollection)
	f.fails("GetCollection before the first memory", err, souvenir.ErrNotFound)
	stored := f.add(souvenir.NewMemory{Content: "first"})
	f.equal("collection of a memory that names none", stored.Collection, souvenir.DefaultCollection)
	f.addTexts("second")
	f.equal("memories in it", f.collection(souvenir.DefaultCollection).MemoryCount, 2)
	f.check("DeleteCollection", f.store.DeleteCollection(f.ctx,
		souvenir.DefaultCollection, &souvenir.DeletionOptions{WithMemories: true}))
	f.addTexts("third")
	f.equal("memories in the new one", f.collection(souvenir.DefaultCollection).MemoryCount, 1)
}

func collectionUpdate(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "notes", Description: "before"})
	f.clock.Pass(time.Hour)
	updated, err := f.store.UpdateCollection(f.ctx, "notes", souvenir.CollectionUpdate{Description: new("after")})
	f.check("UpdateCollection", err)
	f.equal("description", updated.Description, "after")
	f.equal("times", []time.Time{updated.CreatedAt, updated.UpdatedAt}, []time.Time{start, start.Add(time.Hour)})
	f.equal("found", f.collection("notes"), updated)
	_, err = f.store.UpdateCollection(f.ctx, "notes",
		souvenir.CollectionUpdate{Description: new(strings.Repeat("x", 4097))})
	f.failsAt("UpdateCollection with a long description", err, souvenir.ErrTooLarge, "description", "4097", "4096")
	f.equal("description after that", f.collection("notes").Description, "after")
}

func collectionRename(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "notes", Description: "kept"})
	f.addCollection(souvenir.NewCollection{Name: "taken"})
	m := f.add(souvenir.NewMemory{Collection: "notes", Content: "a walrus"})
	f.addTexts("elsewhere")
	f.clock.Pass(time.Hour)
	renamed, err := f.store.UpdateCollection(f.ctx, "notes", souvenir.CollectionUpdate{Name: new("papers")})
	f.check("UpdateCollection", err)
	f.equal("renamed", []any{renamed.Name, renamed.Description, renamed.MemoryCount, renamed.UpdatedAt},
		[]any{"papers", "kept", 1, start.Add(time.Hour)})
	f.equal("found", f.collection("papers"), renamed)
	_, err = f.reader.GetCollection(f.ctx, "notes")
	f.fails("GetCollection of the former name", err, souvenir.ErrNotFound)
	f.equal("the memory in it", f.get(m.ID).Collection, "papers")
	f.same("searched by the new name", contents(f.search(souvenir.Query{Text: "walrus", Collections: []string{"papers"}})),
		"a walrus")
	f.same("filtered by the new name",
		contents(f.search(souvenir.Query{Filter: souvenir.Filter{"collection_name": "papers"}})), "a walrus")
	f.addCollection(souvenir.NewCollection{Name: "notes"}) // the former name is free
	f.as(souvenir.Access{User: "ann"}).addCollection(souvenir.NewCollection{Name: "papers"})

	same, err := f.store.UpdateCollection(f.ctx, "papers", souvenir.CollectionUpdate{})
	f.check("UpdateCollection of nothing", err)
	f.equal("after a change of nothing", same, renamed)
	for _, c := range []struct {
		from, to string
		kind     *souvenir.Error
		says     string
	}{
		{"papers", "taken", souvenir.ErrConflict, `"taken"`},
		{souvenir.DefaultCollection, "main", souvenir.ErrInvalid, `"default"`},
		{"papers", souvenir.DefaultCollection, souvenir.ErrConflict, `"default"`},
		{"papers", " ", souvenir.ErrInvalid, "1 to 128"},
		{"papers", strings.Repeat("x", 129), souvenir.ErrTooLarge, "128"},
	} {
		_, err := f.store.UpdateCollection(f.ctx, c.from, souvenir.CollectionUpdate{Name: &c.to, Description: new("changed")})
		f.failsAt("renaming "+c.from+" to "+brief(c.to), err, c.kind, "name", c.says)
	}
	f.equal("after refused changes", f.collection("papers"), renamed)
	_, err = f.store.UpdateCollection(f.ctx, souvenir.DefaultCollection, souvenir.CollectionUpdate{Name: new("default")})
	f.check("UpdateCollection to the same name", err)
}

func collectionDelete(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "empty"})
	f.check("DeleteCollection of an empty one",
		f.store.DeleteCollection(f.ctx, "empty", nil))
	_, err := f.reader.GetCollection(f.ctx, "empty")
	f.fails("GetCollection of a deleted one", err, souvenir.ErrNotFound)

	f.addCollection(souvenir.NewCollection{Name: "full"})
	kept := f.add(souvenir.NewMemory{Collection: "full", Content: "still here"})
	f.failsAt("DeleteCollection of a full one", f.store.DeleteCollection(f.ctx, "full", nil),
		souvenir.ErrConflict, "collection_name", `"full"`, "1 memories", "together")
	f.equal("content after the refusal", f.get(kept.ID).Content, "still here")
	f.delete(kept.ID)
	f.check("DeleteCollection once it is empty",
		f.store.DeleteCollection(f.ctx, "full", nil))
}

func collectionDeleteForgets(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "old"})
	inside := f.add(souvenir.NewMemory{Collection: "old", Content: "a walrus", Tags: []string{"arctic"}})
	outside := f.add(souvenir.NewMemory{Content: "a penguin", Related: []string{inside.ID}})
	f.rewrite(inside.ID, "a seal")
	f.same("before", f.find("seal"), "a seal")
	f.check("DeleteCollection", f.store.DeleteCollection(f.ctx,
		"old", &souvenir.DeletionOptions{WithMemories: true}))

	gone := func(when string) {
		f.Helper()
		_, err := f.reader.GetMemory(f.ctx, inside.ID)
		f.fails("GetMemory "+when, err, souvenir.ErrNotFound)
		_, err = f.reader.Revisions(f.ctx, inside.ID)
		f.fails("Revisions "+when, err, souvenir.ErrNotFound)
		for _, text := range []string{"walrus", "seal", "arctic"} {
			f.same("found by "+text+" "+when, f.find(text))
		}
		all, err := f.reader.Insights().Tags(f.ctx)
		f.check("Tags", err)
		same(f, "tags "+when, all, nil)
		same(f, "links "+when, f.get(outside.ID).Related, nil)
	}
	gone("after the deletion")
	f.addCollection(souvenir.NewCollection{Name: "old"})
	f.equal("memories in a new one of that name", f.collection("old").MemoryCount, 0)
	gone("with a new collection of that name")
	f.add(souvenir.NewMemory{Collection: "old", Content: "a kiwi"})
	gone("with a memory in it")
	f.same("the new memory", f.find("kiwi"), "a kiwi")
}

func collectionVectorSize(f *fixture) {
	_, err := f.store.AddCollection(f.ctx, souvenir.NewCollection{Name: "odd", VectorSize: 300})
	f.failsAt("AddCollection", err, souvenir.ErrInvalid, "vector_size", "300", "512", `"words-1"`)
	f.addCollection(souvenir.NewCollection{Name: "same", VectorSize: wordDimensions})
}

func collectionEmptyName(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "notes", Description: "kept"})
	refused := func(what string, err error) {
		f.Helper()
		if err == nil {
			f.Errorf("%s with an empty name: no error; want one", what)
		}
	}
	_, err := f.reader.GetCollection(f.ctx, "")
	refused("GetCollection", err)
	_, err = f.store.UpdateCollection(f.ctx, "", souvenir.CollectionUpdate{Description: new("changed")})
	refused("UpdateCollection", err)
	refused("DeleteCollection", f.store.DeleteCollection(f.ctx, "", &souvenir.DeletionOptions{WithMemories: true}))
	f.equal("description", f.collection("notes").Description, "kept")
}
