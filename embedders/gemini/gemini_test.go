package gemini_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/embedders/gemini"
	"github.com/souvenir-ai/souvenir/embedders/internal/embeddertest"
)

// geminiAPI is the service, in the form of its documentation.
var geminiAPI = embeddertest.Provider{
	New: func(baseURL string, client *http.Client, timeout time.Duration) (souvenir.Embedder, error) {
		return gemini.New(gemini.Options{Key: embeddertest.Key, Dimensions: embeddertest.Dimensions,
			BaseURL: baseURL, Client: client, Timeout: timeout})
	},
	Path: "/models/gemini-embedding-001:batchEmbedContents", Header: "X-Goog-Api-Key", MaxTexts: 100,
	Query: "RETRIEVAL_QUERY", Document: "RETRIEVAL_DOCUMENT",
	Texts: func(body []byte) (texts []string, purpose string) {
		var r struct {
			Requests []struct {
				TaskType string
				Content  struct{ Parts []struct{ Text string } }
			}
		}
		if err := json.Unmarshal(body, &r); err != nil {
			return nil, err.Error()
		}
		for _, one := range r.Requests {
			texts, purpose = append(texts, one.Content.Parts[0].Text), one.TaskType
		}
		return texts, purpose
	},
	Answer: func(vectors [][]float32) any {
		embeddings := []map[string]any{}
		for _, v := range vectors {
			embeddings = append(embeddings, map[string]any{"values": v})
		}
		return map[string]any{"embeddings": embeddings}
	},
}

func TestPromises(t *testing.T) { embeddertest.Run(t, geminiAPI) }

func Example() {
	server := embeddertest.Serve(geminiAPI) // a stand-in, for this example
	defer server.Close()
	embedder, err := gemini.New(gemini.Options{Key: embeddertest.Key, Dimensions: embeddertest.Dimensions,
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
	// Output: gemini/gemini-embedding-001 true
}
