// Package ollama embeds texts with a model that Ollama runs, on this machine or another.
//
//	embedder, err := ollama.New(ollama.Options{Model: "all-minilm"})
//	...
//	store, err := souvenir.Open(ctx, "agent.db", &souvenir.Options{Embedder: embedder})
package ollama

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/embedders/internal/remote"
)

// Options say which model to use. The zero value of a field means its documented default.
type Options struct {
	Model string // as "ollama pull" names it; empty means nomic-embed-text

	// Dimensions is the length of the vectors. Zero means the model's own, for nomic-embed-text, mxbai-embed-large,
	// all-minilm, bge-m3, snowflake-arctic-embed2 and embeddinggemma; it is required for other models.
	Dimensions int

	// QueryPrompt and DocumentPrompt are prefixes for all texts of their purpose. Nil means the prefixes that the model
	// was trained with, for the families nomic-embed, e5, bge, arctic-embed, mxbai, embeddinggemma and qwen3-embedding,
	// and otherwise none.
	QueryPrompt, DocumentPrompt *string

	Key      string        // sent as a bearer token, for a proxy in front of Ollama; empty means none
	BaseURL  string        // empty means http://127.0.0.1:11434
	MaxInput int           // bytes of a passage, 200 to 8,000; zero means 1,600, or 800 for all-minilm
	Timeout  time.Duration // of an attempt, in which Ollama may load the model; zero means a minute
	Client   *http.Client  // for the transport, such as a proxy; nil means a new one. Redirects are always refused.
}

// New returns the embedder, or an error that names the invalid option. It does not use the network.
func New(o Options) (souvenir.Embedder, error) {
	if o.Model == "" {
		o.Model = "nomic-embed-text"
	}
	if o.BaseURL == "" {
		o.BaseURL = "http://127.0.0.1:11434"
	}
	if o.MaxInput == 0 && o.Model == "all-minilm" {
		o.MaxInput = 800 // the model takes 256 tokens
	}
	return remote.New(remote.Settings{Provider: "ollama", Model: o.Model, Dimensions: o.Dimensions, BaseURL: o.BaseURL,
		Key: o.Key, MaxInput: o.MaxInput, Client: o.Client, Timeout: o.Timeout,
		Known: map[string]int{"nomic-embed-text": 768, "mxbai-embed-large": 1024, "all-minilm": 384, "bge-m3": 1024,
			"snowflake-arctic-embed2": 1024, "embeddinggemma": 768},
		MaxTexts: 32, MaxTokens: 64 << 10, KeyOptional: true, // few enough for a slow machine to answer within the timeout
		Prompts: remote.PromptsOf(o.Model, o.QueryPrompt, o.DocumentPrompt),
		Encode: func(_ souvenir.Purpose, texts []string) (string, any) {
			return "/api/embed", request{Model: o.Model, Input: texts, Truncate: true, Dimensions: o.Dimensions}
		},
		Decode: decode,
	})
}

// request is the body of POST /api/embed.
type request struct {
	Model      string   `json:"model"`
	Input      []string `json:"input"`
	Truncate   bool     `json:"truncate"`
	Dimensions int      `json:"dimensions,omitempty"`
}

func decode(body []byte) ([]remote.Vector, error) {
	var answer struct {
		Embeddings []remote.Vector `json:"embeddings"`
	}
	err := json.Unmarshal(body, &answer)
	return answer.Embeddings, err
}
