// Package eino makes a Souvenir store the memory of programs with eino: as a [Retriever], an [Indexer], tools for
// agents ([NewTools]) and a [CheckPointStore]. It is a module of its own, so that programs without eino do not depend
// on it. docs/frameworks/eino.md describes the mapping.
//
// A view of the store decides whose data it is: give each user their own, with [souvenir.Store.As].
package eino

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/cloudwego/eino/components"
	"github.com/cloudwego/eino/components/indexer"
	"github.com/cloudwego/eino/components/retriever"
	"github.com/cloudwego/eino/schema"

	"github.com/souvenir-ai/souvenir"
)

var (
	_ retriever.Retriever = (*Retriever)(nil)
	_ indexer.Indexer     = (*Indexer)(nil)
	_ components.Typer    = (*Retriever)(nil)
	_ components.Typer    = (*Indexer)(nil)
)

// typeName is the type of the components in eino's callbacks.
const typeName = "Souvenir"

// The keys of eino in a document's MetaData that are not stored: a score belongs to one search, and the store has
// vectors of its own. Sub-indexes are tags.
var notStored = []string{"_score", "_dense_vector", "_sparse_vector", "_sub_indexes"}

// Retriever finds memories of any kind: documents, facts, turns of conversations. It is safe for concurrent use.
type Retriever struct {
	store *souvenir.Store
	query souvenir.Query
}

// NewRetriever returns a retriever. The query says where and how to search; each call sets its Text. The zero value
// means everything that the store, or the view of it, can see.
func NewRetriever(store *souvenir.Store, query souvenir.Query) *Retriever {
	return &Retriever{store: store, query: query}
}

// GetType returns "Souvenir".
func (*Retriever) GetType() string { return typeName }

// filterOption holds the filter of WithFilter.
type filterOption struct{ filter souvenir.Filter }

// WithFilter is an option of [Retriever.Retrieve]: conditions beside those of its query. A condition on the same key
// replaces the query's.
func WithFilter(filter souvenir.Filter) retriever.Option {
	return retriever.WrapImplSpecificOptFn(func(o *filterOption) { o.filter = filter })
}

// Retrieve returns the documents about a text, the best first; none for an empty text, or in a collection that does not
// exist yet. A document's Score is how likely it is about the text, 0 to 1. It takes the options WithTopK,
// WithScoreThreshold, for the least score, WithIndex, for the collection, WithSubIndex, for a tag, and [WithFilter].
func (r *Retriever) Retrieve(ctx context.Context, query string, opts ...retriever.Option) ([]*schema.Document, error) {
	q, err := r.queryOf(query, opts)
	if err != nil {
		return nil, err
	}
	if isBlank(query) {
		return []*schema.Document{}, ctx.Err()
	}
	docs, err := r.search(ctx, q)
	if isUnknownCollection(err) {
		return []*schema.Document{}, nil
	}
	return docs, err
}

// search returns the documents that a query finds.
func (r *Retriever) search(ctx context.Context, q souvenir.Query) ([]*schema.Document, error) {
	docs := []*schema.Document{}
	if q.Limit <= souvenir.MaxLimit {
		results, err := r.store.Search(ctx, q)
		for _, hit := range results.Hits {
			docs = append(docs, documentOf(hit))
		}
		return docs, err
	}
	most := q.Limit
	q.Limit = 0 // the loop ends
	for hit, err := range r.store.SearchAll(ctx, q) {
		if err != nil {
			return nil, err
		}
		if docs = append(docs, documentOf(hit)); len(docs) == most {
			break
		}
	}
	return docs, nil
}

// queryOf returns the query of a call.
func (r *Retriever) queryOf(text string, opts []retriever.Option) (souvenir.Query, error) {
	q := r.query
	q.Text = strings.ToValidUTF8(text[:min(len(text), souvenir.MaxQuery)], "") // its beginning suffices
	o := retriever.GetCommonOptions(nil, opts...)
	switch {
	case o.Embedding != nil:
		return q, errors.New("WithEmbedding is set; the store embeds, with souvenir.Options.Embedder")
	case o.DSLInfo != nil:
		return q, errors.New("WithDSLInfo is set, which this retriever does not support; use WithFilter of this package")
	case o.TopK != nil && *o.TopK < 1:
		return q, fmt.Errorf("TopK is %d; expected at least 1", *o.TopK)
	}
	if o.TopK != nil {
		q.Limit = *o.TopK
	}
	if o.ScoreThreshold != nil {
		q.MinScore = *o.ScoreThreshold
	}
	if o.Index != nil {
		q.Collections = []string{*o.Index}
	}
	if o.SubIndex != nil {
		q.Tags = []string{*o.SubIndex}
	}
	if filter := retriever.GetImplSpecificOptions[filterOption](nil, opts...).filter; filter != nil {
		q.Filter = maps.Clone(q.Filter)
		if q.Filter == nil {
			q.Filter = souvenir.Filter{}
		}
		maps.Copy(q.Filter, filter)
	}
	return q, nil
}

// documentOf returns a hit as a document: its id is the memory's key or, if it has none, the memory's id.
func documentOf(hit souvenir.Hit) *schema.Document {
	doc := &schema.Document{ID: hit.Key, Content: hit.Content, MetaData: hit.Metadata}
	if doc.ID == "" {
		doc.ID = hit.ID
	}
	if len(hit.Tags) > 0 {
		doc.WithSubIndexes(hit.Tags)
	}
	return doc.WithScore(hit.Confidence)
}

// IndexerConfig says where an [Indexer] stores documents. Nil means the zero value.
type IndexerConfig struct {
	// Collection is created when first needed. Empty means souvenir.DefaultCollection.
	Collection string

	// ProjectID is the project of the documents. Empty means none, or the one project of a view that is limited to one.
	ProjectID string
}

// Indexer stores documents as memories, under ids of their own. It is safe for concurrent use.
type Indexer struct {
	store *souvenir.Store
	place IndexerConfig
}

// NewIndexer returns an indexer for a store or a view of it.
func NewIndexer(store *souvenir.Store, config *IndexerConfig) *Indexer {
	i := &Indexer{store: store}
	if config != nil {
		i.place = *config
	}
	if i.place.Collection == "" {
		i.place.Collection = souvenir.DefaultCollection
	}
	return i
}

// GetType returns "Souvenir".
func (*Indexer) GetType() string { return typeName }

// Store stores documents in one commit: all of them or, after an error, none. It returns their ids, in their order. A
// document whose id is stored already replaces the stored one; one without an id gets a new one, which is returned but
// not written into the document. Of several with one id, the last one counts. It takes the option WithSubIndexes, for
// sub-indexes of all documents beside their own.
func (i *Indexer) Store(ctx context.Context, docs []*schema.Document, opts ...indexer.Option) ([]string, error) {
	o := indexer.GetCommonOptions(nil, opts...)
	if o.Embedding != nil {
		return nil, errors.New("WithEmbedding is set; the store embeds, with souvenir.Options.Embedder")
	}
	ids := make([]string, len(docs))
	memories := make([]souvenir.NewMemory, len(docs))
	for n, doc := range docs {
		if doc == nil {
			return nil, fmt.Errorf("docs[%d] is nil; expected a document", n)
		}
		if ids[n] = doc.ID; doc.ID == "" {
			ids[n] = rand.Text()
		}
		metadata := maps.Clone(doc.MetaData)
		maps.DeleteFunc(metadata, func(key string, _ any) bool { return slices.Contains(notStored, key) })
		tags := slices.Concat(doc.SubIndexes(), o.SubIndexes)
		memories[n] = souvenir.NewMemory{Collection: i.place.Collection, ProjectID: i.place.ProjectID, Key: ids[n],
			Content: doc.Content, Tags: distinct(tags), Metadata: metadata}
	}
	if len(docs) == 0 {
		return ids, ctx.Err()
	}
	_, err := i.store.PutMemories(ctx, memories, nil)
	if isUnknownCollection(err) {
		_, err = i.store.AddCollection(ctx, souvenir.NewCollection{Name: i.place.Collection})
		if err == nil || errors.Is(err, souvenir.ErrConflict) { // another call has just added it
			_, err = i.store.PutMemories(ctx, memories, nil)
		}
	}
	if err != nil {
		return nil, err
	}
	return ids, nil
}

// Delete deletes documents by the ids that Store returned. They go to the trash. Unknown ids are ignored.
func (i *Indexer) Delete(ctx context.Context, ids ...string) error {
	list := souvenir.MemoryList{Collections: []string{i.place.Collection}, ProjectID: i.place.ProjectID}
	if i.place.ProjectID == "" && i.store.Access().Projects == nil {
		list.Filter = souvenir.Filter{"project_id": nil} // a project may have documents with the same ids
	}
	for list.Keys = range slices.Chunk(ids, 1000) { // as many keys as a list takes
		_, err := i.store.DeleteMemories(ctx, souvenir.MemoriesDeletion{MemoryList: list})
		if isUnknownCollection(err) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// isUnknownCollection reports whether an error says that a collection does not exist.
func isUnknownCollection(err error) bool {
	var known *souvenir.Error
	return errors.As(err, &known) && known.Kind == souvenir.KindNotFound && known.Argument == "collection_name"
}

// distinct drops repetitions from a list, and keeps its order.
func distinct(list []string) []string {
	var all []string
	for _, s := range list {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// isBlank reports whether a text has only white space and invisible characters, for which nothing is found.
func isBlank(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return !unicode.IsSpace(r) && !unicode.Is(unicode.Cf, r) }) < 0
}
