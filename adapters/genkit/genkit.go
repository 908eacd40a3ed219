// Package genkit gives flows of Genkit (github.com/firebase/genkit/go) a store to index documents in and retrieve them
// from, and Souvenir's tools. It is a module of its own, so that other programs do not depend on Genkit.
//
//	notes := genkit.New(store, nil)
//	retriever := notes.DefineRetriever(g, "notes", nil)
//	_, err := notes.Index(ctx, ai.DocumentFromText("The ferry leaves on Thursdays.", nil))
package genkit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/core"
	"github.com/firebase/genkit/go/core/api"
	kit "github.com/firebase/genkit/go/genkit"

	"github.com/souvenir-ai/souvenir"
)

// provider is the beginning of the names of retrievers.
const provider = "souvenir"

// Config configures [New]. Nil means the zero value.
type Config struct {
	// Collection is where documents are stored and searched for. Empty means that they are stored in
	// souvenir.DefaultCollection and searched for everywhere. Any other collection must exist.
	Collection string

	// Project is the project that the documents belong to. Zero means none, and searches everywhere.
	Project souvenir.ProjectRef

	// View returns the store for a call, such as store.As for the user that core.FromContext(ctx) names. Nil means the
	// store that was given to New.
	View func(ctx context.Context) (*souvenir.Store, error)
}

// DocStore indexes, retrieves and deletes documents. It is safe for concurrent use.
type DocStore struct {
	config Config
}

// New returns the documents of a store.
func New(store *souvenir.Store, config *Config) *DocStore {
	d := DocStore{}
	if config != nil {
		d.config = *config
	}
	if d.config.View == nil {
		d.config.View = func(context.Context) (*souvenir.Store, error) { return store, nil }
	}
	return &d
}

// RetrieverOptions are the options of a request, with ai.WithConfig. Maps with these JSON names are accepted, too.
type RetrieverOptions struct {
	K        int            `json:"k,omitempty"`        // documents to return, 1 to 100; 0 means 7
	MinScore float64        `json:"minScore,omitempty"` // least confidence that a document is about the query, 0 to 1
	Filter   map[string]any `json:"filter,omitempty"`   // conditions on metadata, as in souvenir.Filter
}

var _ ai.RetrieverFunc = (*DocStore)(nil).Retrieve

// DefineRetriever defines the retriever souvenir/NAME.
func (d *DocStore) DefineRetriever(g *kit.Genkit, name string, options *ai.RetrieverOptions) ai.Retriever {
	o := ai.RetrieverOptions{Label: name}
	if options != nil {
		o = *options
	}
	if o.ConfigSchema == nil {
		o.ConfigSchema = core.InferSchemaMap(RetrieverOptions{})
	}
	return kit.DefineRetriever(g, api.NewName(provider, name), &o, d.Retrieve)
}

// Retriever returns the retriever with a name that DefineRetriever has defined, or nil.
func Retriever(g *kit.Genkit, name string) ai.Retriever {
	return kit.LookupRetriever(g, api.NewName(provider, name))
}

// Retrieve returns the documents about the text of a query, the best first. A query without text finds none.
func (d *DocStore) Retrieve(ctx context.Context, req *ai.RetrieverRequest) (*ai.RetrieverResponse, error) {
	options, err := optionsOf(req.Options)
	if err != nil {
		return nil, err
	}
	response := &ai.RetrieverResponse{Documents: []*ai.Document{}}
	text := textOf(req.Query)
	if isBlank(text) {
		return response, ctx.Err()
	}
	store, err := d.config.View(ctx)
	if err != nil {
		return nil, err
	}
	q := souvenir.Query{Text: beginning(text), Limit: options.K, MinScore: options.MinScore,
		ProjectID: d.config.Project.ID, ProjectName: d.config.Project.Name, Filter: options.Filter}
	if d.config.Collection != "" {
		q.Collections = []string{d.config.Collection}
	}
	found, err := store.Search(ctx, q)
	if err != nil {
		return nil, err
	}
	for _, hit := range found.Hits {
		response.Documents = append(response.Documents, ai.DocumentFromText(hit.Content, hit.Metadata))
	}
	return response, nil
}

// beginning returns as much of a text as a search takes.
func beginning(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), souvenir.MaxQuery)], "")
}

// optionsOf reads the options of a request.
func optionsOf(given any) (options RetrieverOptions, err error) {
	if given == nil {
		return options, nil
	}
	encoded, err := json.Marshal(given)
	if err != nil {
		return options, core.NewError(core.INVALID_ARGUMENT, "options: %v", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&options); err != nil {
		return options, core.NewError(core.INVALID_ARGUMENT, "options: %v; expected k, minScore and filter", err)
	}
	return options, nil
}

// Index stores documents, all of them or, after an error, none, and returns their ids. The id of a document is the text
// in its metadata under "id", or else a hash of the document. A document whose id is already stored is replaced, or
// stays as it is if it is the same.
func (d *DocStore) Index(ctx context.Context, documents ...*ai.Document) (ids []string, err error) {
	memories := make([]souvenir.NewMemory, len(documents))
	for i, document := range documents {
		text := textOf(document)
		if isBlank(text) {
			return nil, core.NewError(core.INVALID_ARGUMENT, "documents[%d] has no text; only text can be stored", i)
		}
		id, err := idOf(document)
		if err != nil {
			return nil, core.NewError(core.INVALID_ARGUMENT, "documents[%d]: %v", i, err)
		}
		ids = append(ids, id)
		memories[i] = souvenir.NewMemory{Collection: d.config.Collection, ProjectID: d.config.Project.ID,
			ProjectName: d.config.Project.Name, Key: id, Content: text, Metadata: document.Metadata}
	}
	store, err := d.config.View(ctx)
	if err != nil || len(documents) == 0 {
		return nil, err
	}
	_, err = store.PutMemories(ctx, memories, nil)
	return ids, err
}

// Delete deletes the documents with the given ids, and returns how many there were. They go to the trash.
func (d *DocStore) Delete(ctx context.Context, ids ...string) (deleted int, err error) {
	store, err := d.config.View(ctx)
	if err != nil {
		return 0, err
	}
	collection := d.config.Collection
	if collection == "" {
		collection = souvenir.DefaultCollection
	}
	filter := souvenir.Filter{"collection_name": collection}
	if d.config.Project == (souvenir.ProjectRef{}) {
		filter["project_id"] = nil
	}
	for keys := range slices.Chunk(ids, 1000) { // without any key, all would match
		done, err := store.DeleteMemories(ctx, souvenir.MemoriesDeletion{MemoryList: souvenir.MemoryList{Keys: keys,
			Filter: filter, ProjectID: d.config.Project.ID, ProjectName: d.config.Project.Name}})
		deleted += done.Changed
		if err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

// idOf returns the id of a document.
func idOf(document *ai.Document) (string, error) {
	if id, ok := document.Metadata["id"].(string); ok && id != "" {
		return id, nil
	}
	encoded, err := json.Marshal(document)
	return fmt.Sprintf("genkit:%x", sha256.Sum256(encoded)), err
}

// textOf joins the texts of a document.
func textOf(document *ai.Document) string {
	if document == nil {
		return ""
	}
	var texts []string
	for _, part := range document.Content {
		if part != nil && part.IsText() && part.Text != "" {
			texts = append(texts, part.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// isBlank reports whether a text has white space and invisible characters only.
func isBlank(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return !unicode.IsSpace(r) && !unicode.Is(unicode.Cf, r) }) < 0
}
