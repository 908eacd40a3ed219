// Package openai embeds texts with any server that has OpenAI's endpoint for embeddings: OpenAI itself, and vLLM,
// llama.cpp, LM Studio, LocalAI, Infinity, Mistral, Jina, Together, Azure and others at their own BaseURL.
//
//	embedder, err := openai.New(openai.Options{Key: key})
//	...
//	store, err := souvenir.Open(ctx, "agent.db", &souvenir.Options{Embedder: embedder})
package openai

import (
	"net/http"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/embedders/internal/remote"
)

// Options say which model to use. The zero value of a field means its documented default.
type Options struct {
	Key   string // sent as a bearer token; may be empty, except for OpenAI itself
	Model string // empty means text-embedding-3-small

	// Dimensions is the length of the vectors. Zero means the model's own, for OpenAI's models; it is required for
	// others. OpenAI's third generation can make shorter vectors, too.
	Dimensions int

	// SendDimensions sends Dimensions to servers other than OpenAI's, too, for models that can shorten their vectors.
	SendDimensions bool

	// QueryPrompt and DocumentPrompt are prefixes for all texts of their purpose. Nil means the prefixes that the model
	// was trained with, for the families nomic-embed, e5, bge, arctic-embed, mxbai, embeddinggemma and qwen3-embedding,
	// and otherwise none.
	QueryPrompt, DocumentPrompt *string

	BaseURL  string        // the address without /embeddings; empty means https://api.openai.com/v1
	MaxInput int           // bytes of a passage, 200 to 8,000; zero means 1,600
	Timeout  time.Duration // of an attempt; zero means a minute
	Client   *http.Client  // for the transport, such as a proxy; nil means a new one. Redirects are always refused.
}

const officialURL = "https://api.openai.com/v1"

// New returns the embedder, or an error that names the invalid option. It does not use the network.
func New(o Options) (souvenir.Embedder, error) {
	if o.Model == "" {
		o.Model = "text-embedding-3-small"
	}
	if o.BaseURL == "" {
		o.BaseURL = officialURL
	}
	official := strings.TrimSuffix(o.BaseURL, "/") == officialURL
	shortens := o.Dimensions != 0 && (o.SendDimensions || strings.HasPrefix(o.Model, "text-embedding-3-"))
	return remote.New(remote.Settings{Provider: "openai", Model: o.Model, Dimensions: o.Dimensions, BaseURL: o.BaseURL,
		Key: o.Key, MaxInput: o.MaxInput, Client: o.Client, Timeout: o.Timeout,
		Known: map[string]int{"text-embedding-3-small": 1536, "text-embedding-3-large": 3072,
			"text-embedding-ada-002": 1536},
		MaxTexts: souvenir.EmbedBatch, MaxTokens: 300_000, KeyOptional: !official,
		Prompts: remote.PromptsOf(o.Model, o.QueryPrompt, o.DocumentPrompt),
		Encode: func(_ souvenir.Purpose, texts []string) (string, any) {
			r := request{Model: o.Model, Input: texts, EncodingFormat: "float"}
			if shortens {
				r.Dimensions = o.Dimensions
			}
			return "/embeddings", r
		},
		Decode: remote.DecodeIndexed,
	})
}

// request is the body of POST /embeddings.
type request struct {
	Model          string   `json:"model"`
	Input          []string `json:"input"`
	EncodingFormat string   `json:"encoding_format"`
	Dimensions     int      `json:"dimensions,omitempty"`
}
