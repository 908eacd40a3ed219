// Package gemini embeds texts with Google's Gemini API.
//
//	embedder, err := gemini.New(gemini.Options{Key: key})
//	...
//	store, err := souvenir.Open(ctx, "agent.db", &souvenir.Options{Embedder: embedder})
package gemini

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/embedders/internal/remote"
)

// Options say which model to use. The zero value of a field means its documented default.
type Options struct {
	Key        string        // of your account; required
	Model      string        // empty means gemini-embedding-001
	Dimensions int           // 128 to 3,072; zero means 3,072 for gemini-embedding-001; required for other models
	BaseURL    string        // empty means https://generativelanguage.googleapis.com/v1beta
	MaxInput   int           // bytes of a passage, 200 to 8,000; zero means 1,600
	Timeout    time.Duration // of an attempt; zero means a minute
	Client     *http.Client  // for the transport, such as a proxy; nil means a new one. Redirects are always refused.
}

// New returns the embedder, or an error that names the invalid option. It does not use the network.
func New(o Options) (souvenir.Embedder, error) {
	o.Model = strings.TrimPrefix(o.Model, "models/")
	if o.Model == "" {
		o.Model = "gemini-embedding-001"
	}
	if o.BaseURL == "" {
		o.BaseURL = "https://generativelanguage.googleapis.com/v1beta"
	}
	return remote.New(remote.Settings{Provider: "gemini", Model: o.Model, Dimensions: o.Dimensions, BaseURL: o.BaseURL,
		Key: o.Key, MaxInput: o.MaxInput, Client: o.Client, Timeout: o.Timeout,
		Known:    map[string]int{"gemini-embedding-001": 3072},
		MaxTexts: 100, MaxTokens: 100 * 2048,
		Authorize: func(request *http.Request, key string) { request.Header.Set("X-Goog-Api-Key", key) },
		Encode: func(purpose souvenir.Purpose, texts []string) (string, any) {
			return "/models/" + url.PathEscape(o.Model) + ":batchEmbedContents", newRequest(o, purpose, texts)
		},
		Decode: decode,
	})
}

// request is the body of POST /models/MODEL:batchEmbedContents.
type request struct {
	Requests []one `json:"requests"`
}

type one struct {
	Model                string  `json:"model"`
	Content              content `json:"content"`
	TaskType             string  `json:"taskType"`
	OutputDimensionality int     `json:"outputDimensionality,omitempty"`
}

type content struct {
	Parts []part `json:"parts"`
}

type part struct {
	Text string `json:"text"`
}

func newRequest(o Options, purpose souvenir.Purpose, texts []string) request {
	task := "RETRIEVAL_DOCUMENT"
	if purpose == souvenir.ForQuery {
		task = "RETRIEVAL_QUERY"
	}
	r := request{Requests: make([]one, len(texts))}
	for i, text := range texts {
		r.Requests[i] = one{Model: "models/" + o.Model, Content: content{[]part{{text}}}, TaskType: task,
			OutputDimensionality: o.Dimensions}
	}
	return r
}

func decode(body []byte) ([]remote.Vector, error) {
	var answer struct {
		Embeddings []struct {
			Values remote.Vector `json:"values"`
		} `json:"embeddings"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	vectors := make([]remote.Vector, len(answer.Embeddings))
	for i, e := range answer.Embeddings {
		vectors[i] = e.Values
	}
	return vectors, nil
}
