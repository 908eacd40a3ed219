package embeddertest_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/embedders/cohere"
	"github.com/souvenir-ai/souvenir/embedders/gemini"
	"github.com/souvenir-ai/souvenir/embedders/internal/embeddertest"
	"github.com/souvenir-ai/souvenir/embedders/ollama"
	"github.com/souvenir-ai/souvenir/embedders/openai"
	"github.com/souvenir-ai/souvenir/embedders/voyage"
)

// The services share a test, since each test binary links the whole store.
func TestPromises(t *testing.T) {
	for name, api := range map[string]embeddertest.Provider{
		"cohere/embed-v4.0": cohereAPI, "gemini/gemini-embedding-001": geminiAPI, "ollama/all-minilm": ollamaAPI,
		"openai/text-embedding-3-small": openaiAPI, "voyage/voyage-3.5": voyageAPI,
	} {
		t.Run(name, func(t *testing.T) {
			e, err := api.New("", nil, 0)
			if err != nil || e.Model() != name {
				t.Errorf("an embedder with the defaults: got %v, %v; want the model %s", e, err, name)
			}
			embeddertest.Run(t, api)
		})
	}
}

// cohereAPI is the service of the package, as documented.
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

// geminiAPI is the service of the package, as documented.
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

// ollamaAPI is the service of the package, as documented.
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

// openaiAPI is the service of the package, as documented.
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
		for i := len(vectors) - 1; i >= 0; i-- { // their order is not guaranteed
			data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": vectors[i]})
		}
		return map[string]any{"object": "list", "data": data, "model": "m", "usage": map[string]int{"total_tokens": 7}}
	},
}

// voyageAPI is the service of the package, as documented.
var voyageAPI = embeddertest.Provider{
	New: func(baseURL string, client *http.Client, timeout time.Duration) (souvenir.Embedder, error) {
		return voyage.New(voyage.Options{Key: embeddertest.Key, Dimensions: embeddertest.Dimensions,
			BaseURL: baseURL, Client: client, Timeout: timeout})
	},
	Path: "/embeddings", Header: "Authorization", MaxTexts: 128, Query: "query", Document: "document",
	Texts: func(body []byte) (texts []string, purpose string) {
		var r struct {
			Input     []string
			InputType string `json:"input_type"`
		}
		if err := json.Unmarshal(body, &r); err != nil {
			return nil, err.Error()
		}
		texts = r.Input
		return texts, r.InputType
	},
	Answer: func(vectors [][]float32) any {
		data := []map[string]any{}
		for i := len(vectors) - 1; i >= 0; i-- { // their order is not guaranteed
			data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": vectors[i]})
		}
		return map[string]any{"object": "list", "data": data, "model": "m", "usage": map[string]int{"total_tokens": 7}}
	},
}
