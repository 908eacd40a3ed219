package tools

import (
	"context"

	"github.com/souvenir-ai/souvenir"
)

var createCollection = definition{
	name:  "create_collection",
	title: "Create collection",
	description: `Create a named collection to keep memories of one kind or topic apart. Rarely needed: memory store uses the collection "default" by itself. ` +
		`Returns the collection; a name that exists already is an error.`,
	parameters: []parameter{
		{name: "collection_name", kind: word, description: "1 to 128 characters."},
		{name: "description", kind: text, description: "What belongs into it."},
		{name: "vector_size", kind: integer, description: "Leave out; the embedding model decides. Only with own_vectors: dimensions of your vectors."},
		{name: "own_vectors", kind: boolean, description: "Texts are not embedded; you pass embedding and query_embedding yourself."},
	},
	actions: []action{{
		scope: souvenir.ScopeMemoryWrite, required: []string{"collection_name"}, optional: []string{"description", "vector_size", "own_vectors"},
		call: (*Set).createCollection,
	}},
}

func (s *Set) createCollection(ctx context.Context, a *arguments) (any, error) {
	return s.store.AddCollection(ctx, souvenir.NewCollection{
		Name: a.text("collection_name"), Description: a.text("description"), VectorSize: a.integer("vector_size"), OwnVectors: a.boolean("own_vectors"),
	})
}
