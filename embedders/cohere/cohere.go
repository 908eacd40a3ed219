// Package cohere embeds texts with the service of Cohere.
//
//	embedder, err := cohere.New(cohere.Options{Key: key})
//	...
//	store, err := souvenir.Open(ctx, "agent.db", &souvenir.Options{Embedder: embedder})
package cohere

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/embedders/internal/remote"
)

// Options say which model to use. The zero value of a field means its documented default.
type Options struct {
	Key        string        // of your account; required
	Model      string        // empty means embed-v4.0
	Dimensions int           // zero means the model's own; required for unknown models
	BaseURL    string        // the address without /embed; empty means https://api.cohere.com/v2
	MaxInput   int           // bytes of a passage, 200 to 8,000; zero means 1,600
	Timeout    time.Duration // of an attempt; zero means a minute
	Client     *http.Client  // for the transport, such as a proxy; nil means a new one. Redirects are always refused.
}

// New returns the embedder, or an error that names the invalid option. It does not use the network.
func New(o Options) (souvenir.Embedder, error) {
	if o.Model == "" {
		o.Model = "embed-v4.0"
	}
	if o.BaseURL == "" {
		o.BaseURL = "https://api.cohere.com/v2"
	}
	return remote.New(remote.Settings{Provider: "cohere", Model: o.Model, Dimensions: o.Dimensions, BaseURL: o.BaseURL,
		Key: o.Key, MaxInput: o.MaxInput, Client: o.Client, Timeout: o.Timeout,
		Known: map[string]int{"embed-v4.0": 1536, "embed-multilingual-v3.0": 1024, "embed-english-v3.0": 1024,
			"embed-multilingual-light-v3.0": 384, "embed-english-light-v3.0": 384},
		MaxTexts: 96, MaxTokens: 128_000,
		Encode: func(purpose souvenir.Purpose, texts []string) (string, any) {
			r := request{Model: o.Model, Texts: texts, InputType: "search_document", EmbeddingTypes: []string{"float"},
				Truncate: "END", OutputDimension: o.Dimensions}
			if purpose == souvenir.ForQuery {
				r.InputType = "search_query"
			}
			return "/embed", r
		},
		Decode: decode,
	})
}

// request is the body of POST /embed.
type request struct {
	Model           string   `json:"model"`
	Texts           []string `json:"texts"`
	InputType       string   `json:"input_type"`
	EmbeddingTypes  []string `json:"embedding_types"`
	Truncate        string   `json:"truncate"`
	OutputDimension int      `json:"output_dimension,omitempty"`
}

func decode(body []byte) ([]remote.Vector, error) {
	var answer struct {
		Embeddings struct {
			Float []remote.Vector `json:"float"`
		} `json:"embeddings"`
	}
	err := json.Unmarshal(body, &answer)
	return answer.Embeddings.Float, err
}
