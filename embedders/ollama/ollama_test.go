package ollama_test

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
	"github.com/souvenir-ai/souvenir/embedders/ollama"
)

// ollamaAPI is the service, in the form of its documentation.
var ollamaAPI = embeddertest.Provider{
	New: func(baseURL string, client *http.Client, timeout time.Duration) (souvenir.Embedder, error) {
		return ollama.New(ollama.Options{Key: embeddertest.Key, Model: "all-minilm", Dimensions: embeddertest.Dimensions,
			BaseURL: baseURL, Client: client, Timeout: timeout})
	},
	Path: "/api/embed", Header: "Authorization", MaxTexts: 32, Query: "", Document: "",
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
		return map[string]any{"model": "all-minilm", "embeddings": vectors, "total_duration": 14143917,
			"load_duration": 1019500, "prompt_eval_count": 8}
	},
}

func TestPromises(t *testing.T) { embeddertest.Run(t, ollamaAPI) }

func Example() {
	server := embeddertest.Serve(ollamaAPI) // a stand-in, for this example
	defer server.Close()
	embedder, err := ollama.New(ollama.Options{Key: embeddertest.Key, Model: "all-minilm",
		Dimensions: embeddertest.Dimensions, BaseURL: server.URL}) // leave out Dimensions and BaseURL for the service itself
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
	// Output: ollama/all-minilm true
}
