package tools

import (
	"context"

	"github.com/souvenir-ai/souvenir"
)

type listCollectionsArguments struct{ notes }

var listCollections = define[listCollectionsArguments](definition{
	name:  "list_collections",
	title: "List collections",
	description: `List the collections that memories can be found in, with description, memory_count and the embedding ` +
		`model. ` +
		`Use it to choose a collection_name for memory store, or to narrow a search.`,
	annotations: Annotations{ReadOnly: true, Idempotent: true},
	actions:     []action{{scope: souvenir.ScopeMemoryRead, call: with((*Set).listCollections)}},
})

type collectionList struct {
	Collections []souvenir.Collection `json:"collections"`
	Count       int                   `json:"count"`
}

func (s *Set) listCollections(ctx context.Context, _ *listCollectionsArguments) (any, error) {
	all, err := s.store.Collections(ctx)
	if err != nil {
		return nil, err
	}
	if all == nil {
		all = []souvenir.Collection{}
	}
	return collectionList{all, len(all)}, nil
}
