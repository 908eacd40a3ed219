package langchaingo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tmc/langchaingo/schema"
	"github.com/tmc/langchaingo/vectorstores"

	"github.com/souvenir-ai/souvenir"
)

// VectorStoreOptions say where a [VectorStore] keeps its documents. Nil means the zero value.
type VectorStoreOptions struct {
	// Collection is the collection of the documents, for calls without vectorstores.WithNameSpace. It is created when
	// first needed. Empty means souvenir.DefaultCollection.
	Collection string

	// ProjectID is the project of the documents. Empty means none, or the one project of a view that is limited to one.
	ProjectID string

	// IDKey is the key of the metadata in which documents have ids of their own, which must be strings. A document whose
	// id is stored already replaces the stored one. Empty means that documents have none; each call adds them again.
	IDKey string
}

// VectorStore keeps documents as memories of a store. It is safe for concurrent use.
type VectorStore struct {
	store   *souvenir.Store
	options VectorStoreOptions
}

var _ vectorstores.VectorStore = (*VectorStore)(nil)

// NewVectorStore returns a vector store in a store or a view of it.
func NewVectorStore(store *souvenir.Store, options *VectorStoreOptions) *VectorStore {
	v := &VectorStore{store: store}
	if options != nil {
		v.options = *options
	}
	if v.options.Collection == "" {
		v.options.Collection = souvenir.DefaultCollection
	}
	return v
}

// AddDocuments stores documents in one commit: all of them or, after an error, none. It returns their ids, in their
// order: their own, or new ones. Of several documents with one id, the last one counts. It takes the options
// WithNameSpace, which names the collection, and WithDeduplicater, whose documents are left out and have no id.
func (v *VectorStore) AddDocuments(ctx context.Context, docs []schema.Document,
	options ...vectorstores.Option) ([]string, error) {
	o, err := v.read(options)
	if err != nil {
		return nil, err
	}
	ids := []string{}
	var memories []souvenir.NewMemory
	for i, doc := range docs {
		if o.Deduplicater != nil && o.Deduplicater(ctx, doc) {
			continue
		}
		id, err := v.idOf(doc)
		if err != nil {
			return nil, fmt.Errorf("docs[%d]: %w", i, err)
		}
		ids = append(ids, id)
		memories = append(memories, souvenir.NewMemory{Collection: o.NameSpace, ProjectID: v.options.ProjectID, Key: id,
			Content: doc.PageContent, Metadata: doc.Metadata})
	}
	if len(memories) == 0 {
		return ids, ctx.Err()
	}
	_, err = v.store.PutMemories(ctx, memories, nil)
	if isUnknownCollection(err) {
		_, err = v.store.AddCollection(ctx, souvenir.NewCollection{Name: o.NameSpace})
		if err == nil || errors.Is(err, souvenir.ErrConflict) { // another call has just added it
			_, err = v.store.PutMemories(ctx, memories, nil)
		}
	}
	if err != nil {
		return nil, err
	}
	return ids, nil
}

// idOf returns a document's own id, or a new one.
func (v *VectorStore) idOf(doc schema.Document) (string, error) {
	if v.options.IDKey == "" {
		return rand.Text(), nil
	}
	id, ok := doc.Metadata[v.options.IDKey].(string)
	if !ok || id == "" {
		return "", fmt.Errorf("metadata %q is %v; expected a string that is not empty", v.options.IDKey,
			doc.Metadata[v.options.IDKey])
	}
	return id, nil
}

// DeleteDocuments deletes documents by the ids that AddDocuments returned. They go to the trash. Unknown ids are
// ignored. It takes the option WithNameSpace.
func (v *VectorStore) DeleteDocuments(ctx context.Context, ids []string, options ...vectorstores.Option) error {
	o, err := v.read(options)
	if err != nil {
		return err
	}
	for some := range slices.Chunk(ids, 1000) { // as many keys as a list takes
		list := souvenir.MemoryList{Collections: []string{o.NameSpace}, ProjectID: v.options.ProjectID, Keys: some,
			Filter: v.place()}
		if _, err := v.store.DeleteMemories(ctx, souvenir.MemoriesDeletion{MemoryList: list}); isUnknownCollection(err) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// SimilaritySearch returns at most numDocuments documents about the query, the best first; none for an empty query. A
// document's Score is how likely it is about the query, 0 to 1. It takes the options WithNameSpace, WithScoreThreshold,
// for the least score, and WithFilters: a map[string]any of the documents' metadata, or a [souvenir.Filter], which may
// not name the project_id if the store's documents are in no project.
func (v *VectorStore) SimilaritySearch(ctx context.Context, query string, numDocuments int,
	options ...vectorstores.Option) ([]schema.Document, error) {
	o, err := v.read(options)
	if err != nil {
		return nil, err
	}
	if numDocuments < 1 {
		return nil, fmt.Errorf("numDocuments is %d; expected at least 1", numDocuments)
	}
	conditions := v.place()
	switch given := o.Filters.(type) {
	case nil:
	case souvenir.Filter:
		for key, value := range given {
			if _, named := conditions[key]; named {
				return nil, fmt.Errorf("filters name %s, but the documents of this store are in no project", key)
			}
			conditions[key] = value
		}
	case map[string]any:
		for key, value := range given {
			conditions[souvenir.CustomKey(key)] = value
		}
	default:
		return nil, fmt.Errorf("filters are a %T; expected a map[string]any of metadata or a souvenir.Filter", o.Filters)
	}
	docs, err := search(ctx, v.store, souvenir.Query{Text: query, Collections: []string{o.NameSpace},
		ProjectID: v.options.ProjectID, Filter: conditions, Limit: numDocuments, MinScore: float64(o.ScoreThreshold)})
	if isUnknownCollection(err) {
		return []schema.Document{}, nil
	}
	return docs, err
}

// read reads the options of a call.
func (v *VectorStore) read(options []vectorstores.Option) (vectorstores.Options, error) {
	o := vectorstores.Options{NameSpace: v.options.Collection}
	for _, option := range options {
		option(&o)
	}
	if o.NameSpace == "" {
		o.NameSpace = v.options.Collection
	}
	if o.Embedder != nil {
		return o, errors.New("WithEmbedder is set; the store embeds, with souvenir.Options.Embedder")
	}
	return o, nil
}

// place returns the condition that keeps documents outside of any project apart from those of projects.
func (v *VectorStore) place() souvenir.Filter {
	if v.options.ProjectID != "" || v.store.Access().Projects != nil {
		return souvenir.Filter{}
	}
	return souvenir.Filter{"project_id": nil}
}

// isUnknownCollection reports whether an error says that a collection does not exist.
func isUnknownCollection(err error) bool {
	var known *souvenir.Error
	return errors.As(err, &known) && known.Kind == souvenir.KindNotFound && known.Argument == "collection_name"
}

// Retriever finds memories of any kind for chains: documents, facts, turns of conversations.
type Retriever struct {
	// Query says where and how to search; its Text is the chain's. The zero value means everything that the view of the
	// store can see.
	Query souvenir.Query

	store *souvenir.Store
}

var _ schema.Retriever = (*Retriever)(nil)

// NewRetriever returns a retriever for a store or a view of it.
func NewRetriever(store *souvenir.Store, query souvenir.Query) *Retriever {
	return &Retriever{Query: query, store: store}
}

// GetRelevantDocuments returns the memories about the query, the best first; none for an empty query.
func (r *Retriever) GetRelevantDocuments(ctx context.Context, query string) ([]schema.Document, error) {
	q := r.Query
	q.Text = query
	return search(ctx, r.store, q)
}

// search returns the documents that a query finds.
func search(ctx context.Context, store *souvenir.Store, q souvenir.Query) ([]schema.Document, error) {
	docs := []schema.Document{}
	if isBlank(q.Text) {
		return docs, ctx.Err()
	}
	add := func(hit souvenir.Hit) {
		docs = append(docs, schema.Document{PageContent: hit.Content, Metadata: hit.Metadata,
			Score: float32(hit.Confidence)})
	}
	q.Text = beginning(q.Text)
	if q.Limit <= souvenir.MaxLimit {
		results, err := store.Search(ctx, q)
		for _, hit := range results.Hits {
			add(hit)
		}
		return docs, err
	}
	most := q.Limit
	q.Limit = 0 // the loop ends
	for hit, err := range store.SearchAll(ctx, q) {
		if err != nil {
			return nil, err
		}
		if add(hit); len(docs) == most {
			break
		}
	}
	return docs, nil
}

// beginning returns as much of a text as a search takes.
func beginning(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), souvenir.MaxQuery)], "")
}
