package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/souvenir-ai/souvenir"
)

// remote is a souvenir.Embedder for services with the embeddings endpoint that Ollama, LM Studio, vLLM, llama.cpp
// and OpenAI share: POST {url}/embeddings.
type remote struct {
	url        string // up to and without /embeddings
	model      string
	dimensions int
	key        string // sent as a bearer token; empty: none
	client     *http.Client
}

var _ souvenir.Embedder = remote{}

// Model is the identity of the vectors. Queries and documents get different prompts below, which changes the
// vectors; if you change the prompts, change this name, too, and everything is embedded again.
func (r remote) Model() string { return r.model + "/prompts-1" }

func (r remote) Dimensions() int { return r.dimensions }

// MaxInput makes it a souvenir.InputLimiter: longer memories are split into passages of at most this many bytes.
func (r remote) MaxInput() int { return 2000 }

// Embed returns one vector for each text. It fails as a whole: Souvenir stores the memories all the same and asks again
// later, so there is no need to retry here.
func (r remote) Embed(ctx context.Context, purpose souvenir.Purpose, texts []string) ([][]float32, error) {
	prompt := "search_document: " // the prefixes that models of the nomic and E5 families expect
	if purpose == souvenir.ForQuery {
		prompt = "search_query: "
	}
	input := make([]string, len(texts))
	for i, text := range texts {
		input[i] = prompt + text
	}
	body, err := json.Marshal(map[string]any{"model": r.model, "input": input})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/embeddings", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if r.key != "" {
		request.Header.Set("Authorization", "Bearer "+r.key)
	}
	response, err := r.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 200))
		return nil, fmt.Errorf("%s: %s", response.Status, bytes.TrimSpace(body))
	}
	var answer struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("unexpected answer: %w", err)
	}
	vectors := make([][]float32, len(texts)) // a missing one stays nil, which Souvenir rejects by name
	for _, item := range answer.Data {
		if item.Index >= 0 && item.Index < len(vectors) {
			vectors[item.Index] = item.Embedding
		}
	}
	return vectors, nil
}
