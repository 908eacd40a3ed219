package tools

import (
	"context"

	"github.com/souvenir-ai/souvenir"
)

type createCollectionArguments struct {
	notes
	Collection  string `json:"collection_name" doc:"1 to 128 characters."`
	Description string `json:"description" text:"verbatim" doc:"What belongs into it."`
	VectorSize  int    `json:"vector_size" doc:"Leave out; the embedding model decides. Only with own_vectors: dimensions of your vectors."`
	OwnVectors  bool   `json:"own_vectors" doc:"Texts are not embedded; you pass embedding and query_embedding yourself."`
}

var createCollection = define[createCollectionArguments](definition{
	name:  "create_collection",
	title: "Create collection",
	description: `Create a named collection to keep memories of one kind or topic apart. Rarely needed: memory store ` +
		`uses the collection "default" by itself. ` +
		`Returns the collection; a name that exists already is an error.`,
	actions: []action{{
		scope: souvenir.ScopeMemoryWrite, required: []string{"collection_name"},
		optional: []string{"description", "vector_size", "own_vectors"},
		call:     with((*Set).createCollection),
	}},
})

func (s *Set) createCollection(ctx context.Context, a *createCollectionArguments) (any, error) {
	return s.store.AddCollection(ctx, souvenir.NewCollection{
		Name: a.Collection, Description: a.Description, VectorSize: a.VectorSize, OwnVectors: a.OwnVectors,
	})
}
