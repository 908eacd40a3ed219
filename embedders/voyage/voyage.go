// Package voyage embeds texts with the service of Voyage AI.
//
//	embedder, err := voyage.New(voyage.Options{Key: key})
//	...
//	store, err := souvenir.Open(ctx, "agent.db", &souvenir.Options{Embedder: embedder})
package voyage

import (
	"net/http"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/embedders/internal/remote"
)

// Options say which model to use. The zero value of a field means its documented default.
type Options struct {
	Key        string        // of your account; required
	Model      string        // empty means voyage-3.5
	Dimensions int           // zero means the model's own; required for unknown models
	BaseURL    string        // the address without /embeddings; empty means https://api.voyageai.com/v1
	MaxInput   int           // bytes of a passage, 200 to 8,000; zero means 1,600
	Timeout    time.Duration // of an attempt; zero means a minute
	Client     *http.Client  // for the transport, such as a proxy; nil means a new one. Redirects are always refused.
}

// New returns the embedder, or an error that names the invalid option. It does not use the network.
func New(o Options) (souvenir.Embedder, error) {
	if o.Model == "" {
		o.Model = "voyage-3.5"
	}
	if o.BaseURL == "" {
		o.BaseURL = "https://api.voyageai.com/v1"
	}
	return remote.New(remote.Settings{Provider: "voyage", Model: o.Model, Dimensions: o.Dimensions, BaseURL: o.BaseURL,
		Key: o.Key, MaxInput: o.MaxInput, Client: o.Client, Timeout: o.Timeout,
		Known: map[string]int{"voyage-3.5": 1024, "voyage-3.5-lite": 1024, "voyage-3-large": 1024, "voyage-code-3": 1024,
			"voyage-finance-2": 1024, "voyage-law-2": 1024},
		MaxTexts: souvenir.EmbedBatch, MaxTokens: 120_000,
		Encode: func(purpose souvenir.Purpose, texts []string) (string, any) {
			r := request{Model: o.Model, Input: texts, InputType: "document", OutputDimension: o.Dimensions}
			if purpose == souvenir.ForQuery {
				r.InputType = "query"
			}
			return "/embeddings", r
		},
		Decode: remote.DecodeIndexed,
	})
}

// request is the body of POST /embeddings.
type request struct {
	Model           string   `json:"model"`
	Input           []string `json:"input"`
	InputType       string   `json:"input_type"`
	OutputDimension int      `json:"output_dimension,omitempty"`
}
