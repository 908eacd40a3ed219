package cohere_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/embedders/cohere"
	"github.com/souvenir-ai/souvenir/embedders/internal/embeddertest"
)

// cohereAPI is the service, in the form of its documentation.
var cohereAPI = embeddertest.Provider{
	New: func(baseURL string, client *http.Client, timeout time.Duration) (souvenir.Embedder, error) {
		return cohere.New(cohere.Options{Key: embeddertest.Key, Dimensions: embeddertest.Dimensions,
			BaseURL: baseURL, Client: client, Timeout: timeout})
	},
	Path: "/embed", Header: "Authorization", MaxTexts: 96, Query: "search_query", Document: "search_document",
	Texts: func(body []byte) (texts []string, purpose string) {
		var r struct {
			Texts     []string
			InputType string `json:"input_type"`
		}
		if err := json.Unmarshal(body, &r); err != nil {
			return nil, err.Error()
		}
		texts = r.Texts
		return texts, r.InputType
	},
	Answer: func(vectors [][]float32) any {
		return map[string]any{"id": "5807ee2e", "embeddings": map[string]any{"float": vectors},
			"texts": []string{}, "meta": map[string]any{"billed_units": map[string]int{"input_tokens": 7}}}
	},
}

func TestPromises(t *testing.T) { embeddertest.Run(t, cohereAPI) }

func Example() {
	server := embeddertest.Serve(cohereAPI) // a stand-in, for this example
	defer server.Close()
	embedder, err := cohere.New(cohere.Options{Key: embeddertest.Key, Dimensions: embeddertest.Dimensions,
		BaseURL: server.URL}) // leave out Dimensions and BaseURL for the service itself
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	store, err := souvenir.Open(ctx, ":memory:", &souvenir.Options{Embedder: embedder})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	m, err := store.AddMemory(ctx, souvenir.NewMemory{Content: "Anna is allergic to peanuts."})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(embedder.Model(), m.Indexed)
	// Output: cohere/embed-v4.0 true
}
