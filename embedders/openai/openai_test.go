package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/embedders/internal/embeddertest"
	"github.com/souvenir-ai/souvenir/embedders/openai"
)

// openaiAPI is the service, in the form of its documentation.
var openaiAPI = embeddertest.Provider{
	New: func(baseURL string, client *http.Client, timeout time.Duration) (souvenir.Embedder, error) {
		return openai.New(openai.Options{Key: embeddertest.Key, Dimensions: embeddertest.Dimensions,
			BaseURL: baseURL, Client: client, Timeout: timeout})
	},
	Path: "/embeddings", Header: "Authorization", MaxTexts: 128, Query: "", Document: "",
	Texts: func(body []byte) (texts []string, purpose string) {
		var r struct {
			Input []string
		}
		if err := json.Unmarshal(body, &r); err != nil {
			return nil, err.Error()
		}
		texts = r.Input
		return texts, ""
	},
	Answer: func(vectors [][]float32) any {
		data := []map[string]any{}
		for i := len(vectors) - 1; i >= 0; i-- { // their order is not promised
			data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": vectors[i]})
		}
		return map[string]any{"object": "list", "data": data, "model": "m", "usage": map[string]int{"total_tokens": 7}}
	},
}

func TestPromises(t *testing.T) { embeddertest.Run(t, openaiAPI) }

func Example() {
	server := embeddertest.Serve(openaiAPI) // a stand-in, for this example
	defer server.Close()
	embedder, err := openai.New(openai.Options{Key: embeddertest.Key, Dimensions: embeddertest.Dimensions,
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
	// Output: openai/text-embedding-3-small true
}
