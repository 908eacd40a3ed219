package souvenir

import (
	"context"
	"strings"
)

// nameAttacks are on the names of collections, projects and users.
func nameAttacks(add adder) {
	for _, name := range []struct {
		what, value string
		kind        error
		says        []string
	}{
		{"empty", "", ErrInvalid, []string{`""`, "1 to 128"}},
		{"blank", " \t ", ErrInvalid, []string{`" \t "`, "1 to 128"}},
		{"too long", long(129), ErrTooLarge, []string{"129", "128", "ää"}},
		{"huge", strings.Repeat("x", 1<<20), ErrTooLarge, []string{"1048576", "128"}},
		{"invalid UTF-8", badUTF8, ErrInvalid, badUTF8Says},
		{"control character", "a\x01b", ErrInvalid, []string{"U+0001"}},
		{"line break", "a\nb", ErrInvalid, []string{"U+000A"}},
	} {
		add("AddCollection: collection name "+name.what, name.kind, "collection_name",
			addingCollection(NewCollection{Name: name.value}), name.says...)
		for method, do := range map[string]func(context.Context, attacked) error{
			"GetCollection": func(ctx context.Context, a attacked) error {
				_,
					err := a.GetCollection(ctx, name.value)
				return err
			},
			"UpdateCollection": func(ctx context.Context, a attacked) error {
				_, err := a.UpdateCollection(ctx, name.value, CollectionUpdate{Description: content("described")})
				return err
			},
			"DeleteCollection": func(ctx context.Context, a attacked) error {
				return a.DeleteCollection(ctx, name.value, &DeleteOptions{WithMemories: true})
			},
			"Search":   searching(Query{Collections: []string{"notes", name.value}}),
			"Memories": listing(List{Collections: []string{name.value}}),
			"Tags":     func(ctx context.Context, a attacked) error { _, err := a.Insights().Tags(ctx, name.value); return err },
		} { // "not found" is a valid answer, too
			add(method+": collection name "+name.what, nil, "collection_name", do)
		}
		if name.value != "" { // which stands for the default
			add("AddMemory: collection name "+name.what, name.kind, "collection_name", adding(NewMemory{Collection: name.value}),
				name.says...)
			add("AddMemory: project id "+name.what, name.kind, "project_id", adding(NewMemory{ProjectID: name.value}),
				name.says...)
			add("AddMemory: project name "+name.what, name.kind, "project_name", adding(NewMemory{ProjectName: name.value}),
				name.says...)
			if name.what != "invalid UTF-8" && name.what != "huge" { // which is too much metadata before it is a name
				add("UpdateMemory: project id "+name.what, name.kind, "project_id",
					patching(map[string]any{"project_id": name.value}), name.says...)
			}
			add("AddMemory: user "+name.what, name.kind, "user", func(ctx context.Context, a attacked) error {
				_, err := a.As(Access{User: name.value}).AddMemory(ctx, NewMemory{Content: "a tea pot"})
				return err
			}, name.says...)
		}
	}
}

// collectionAttacks are on collections.
func collectionAttacks(add adder) {
	add("AddCollection: again", ErrConflict, "collection_name", addingCollection(NewCollection{Name: "notes"}), `"notes"`,
		"exists")
	add("AddCollection: description too long", ErrTooLarge, "description",
		addingCollection(NewCollection{Name: "n", Description: long(4097)}), "4097", "4096")
	add("AddCollection: description not UTF-8", ErrInvalid, "description",
		addingCollection(NewCollection{Name: "n", Description: badUTF8}), badUTF8Says...)
	add("AddCollection: negative size", ErrInvalid, "vector_size",
		addingCollection(NewCollection{Name: "n", VectorSize: -1}), "-1", "16384")
	add("AddCollection: huge size", ErrInvalid, "vector_size",
		addingCollection(NewCollection{Name: "n", VectorSize: 16385, OwnVectors: true}), "16385", "16384")
	add("AddCollection: another size", ErrInvalid, "vector_size",
		addingCollection(NewCollection{Name: "n", VectorSize: 31}), "31", "32", "words-1")
	add("AddCollection: own vectors of no size", ErrInvalid, "vector_size",
		addingCollection(NewCollection{Name: "n", OwnVectors: true}), "missing")
	add("UpdateCollection: description too long", ErrTooLarge, "description", func(ctx context.Context, a attacked) error {
		_, err := a.UpdateCollection(ctx, "notes", CollectionUpdate{Description: content(long(4097))})
		return err
	}, "4097", "4096")
	add("UpdateCollection: description not UTF-8", ErrInvalid, "description", func(ctx context.Context, a attacked) error {
		_, err := a.UpdateCollection(ctx, "notes", CollectionUpdate{Description: content(badUTF8)})
		return err
	}, badUTF8Says...)
	add("DeleteCollection: not empty", ErrConflict, "collection_name", func(ctx context.Context, a attacked) error {
		return a.DeleteCollection(ctx, "notes", nil)
	}, `"notes"`, "1 mem", "together")
	for method, do := range map[string]func(context.Context, attacked, string) error{
		"GetCollection": func(ctx context.Context, a attacked, name string) error {
			_, err := a.GetCollection(ctx, name)
			return err
		},
		"UpdateCollection": func(ctx context.Context, a attacked, name string) error {
			_, err := a.UpdateCollection(ctx, name, CollectionUpdate{})
			return err
		},
		"DeleteCollection": func(ctx context.Context, a attacked, name string) error {
			return a.DeleteCollection(ctx, name, &DeleteOptions{WithMemories: true})
		},
		"AddMemory": func(ctx context.Context, a attacked, name string) error {
			return adding(NewMemory{Collection: name})(ctx, a)
		},
		"Search": func(ctx context.Context, a attacked, name string) error {
			return searching(Query{Collections: []string{name}})(ctx, a)
		},
		"Memories": func(ctx context.Context, a attacked, name string) error {
			return listing(List{Collections: []string{name}})(ctx, a)
		},
		"Tags": func(ctx context.Context, a attacked, name string) error {
			_, err := a.Insights().Tags(ctx, name)
			return err
		},
	} {
		add(method+": unknown collection", ErrNotFound, "collection_name",
			func(ctx context.Context, a attacked) error { return do(ctx, a, "notess") }, `"notess"`, `"notes"`,
			"create_collection")
		add(method+": collection of another", ErrNotFound, "collection_name", // but for a letter, so that no hint may name it
			func(ctx context.Context, a attacked) error { return do(ctx, a, "zqxvaul-garden") }, `"zqxvaul-garden"`)
	}
}
