// Package remote is the common part of the HTTP embedders: batches, retries, limits, and checks of the answers. A
// provider adds only the form of its requests and answers.
package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/service"
)

// Settings are the options that all providers have.
type Settings struct {
	Provider   string // the name of the package
	Model      string
	Dimensions int // 0 is looked up in Known
	BaseURL    string
	Key        string
	MaxInput   int // bytes of a passage; 0 is 1,600
	Client     *http.Client
	Timeout    time.Duration // of an attempt; 0 is 60 s

	Known       map[string]int                          // the dimensions of well-known models
	Authorize   func(request *http.Request, key string) // adds the key; nil means a bearer token
	MaxTexts    int                                     // of a request
	MaxTokens   int                                     // of a request
	Prompts     Prompts
	Encode      func(purpose souvenir.Purpose, texts []string) (path string, body any)
	Decode      func(body []byte) ([]Vector, error)
	KeyOptional bool
}

const (
	defaultMaxInput = 1600
	maxText         = 8000 // bytes; a token has at least one byte, so this is within the models' limit of 8,191 tokens
	defaultTimeout  = time.Minute
)

// Embedder is a [souvenir.Embedder] that calls a service. It is safe for concurrent use, and printing it shows no key.
type Embedder struct {
	name       string
	dimensions int
	maxInput   int
	maxTexts   int
	maxTokens  int
	prompts    Prompts
	encode     func(souvenir.Purpose, []string) (string, any)
	decode     func([]byte) ([]Vector, error)
	link       *service.Link
}

var (
	_ souvenir.Embedder     = (*Embedder)(nil)
	_ souvenir.InputLimiter = (*Embedder)(nil)
)

// New checks the settings. It does not use the network.
func New(s Settings) (*Embedder, error) {
	fail := func(format string, args ...any) (*Embedder, error) {
		return nil, fmt.Errorf(s.Provider+": "+format, args...)
	}
	if s.Dimensions == 0 {
		s.Dimensions = s.Known[s.Model]
	}
	if s.MaxInput == 0 {
		s.MaxInput = defaultMaxInput
	}
	if s.Timeout == 0 {
		s.Timeout = defaultTimeout
	}
	switch {
	case s.Model == "":
		return fail("Model is empty; give the name of an embedding model")
	case s.Dimensions == 0:
		return fail("Dimensions is 0, and the model %q is not one of %s; give the length of its vectors", s.Model,
			strings.Join(sorted(s.Known), ", "))
	case s.Dimensions < 0 || s.Dimensions > maxDimensions:
		return fail("Dimensions is %d; give 1 to %d", s.Dimensions, maxDimensions)
	case s.MaxInput < 200 || s.MaxInput > maxText:
		return fail("MaxInput is %d; give 200 to %d bytes", s.MaxInput, maxText)
	}
	link, err := service.New(service.Settings{Provider: s.Provider, BaseURL: s.BaseURL, Key: s.Key,
		KeyOptional: s.KeyOptional, Authorize: s.Authorize, Client: s.Client, Timeout: s.Timeout})
	if err != nil {
		return nil, err
	}
	return &Embedder{
		name: s.Provider + "/" + s.Model + s.Prompts.identity(), dimensions: s.Dimensions, maxInput: s.MaxInput,
		maxTexts: s.MaxTexts, maxTokens: s.MaxTokens, prompts: s.Prompts, encode: s.Encode, decode: s.Decode,
		link: link,
	}, nil
}

func sorted(known map[string]int) []string {
	names := make([]string, 0, len(known))
	for name := range known {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Model is the provider, the model, and a hash of its prompts. The address is not part of it: the same model gives the
// same vectors elsewhere.
func (e *Embedder) Model() string { return e.name }

// Dimensions is the length of the vectors.
func (e *Embedder) Dimensions() int { return e.dimensions }

// MaxInput is the length of a passage in bytes.
func (e *Embedder) MaxInput() int { return e.maxInput }

// Embed returns one vector for each text, in order. Its errors hold no key and no texts of the caller, but may quote
// the start of the service's message.
func (e *Embedder) Embed(ctx context.Context, purpose souvenir.Purpose, texts []string) ([][]float32, error) {
	prepared := make([]string, len(texts))
	for i, text := range texts {
		prepared[i] = e.prompts.of(purpose) + cut(text)
	}
	vectors := make([][]float32, 0, len(texts))
	for len(prepared) > 0 {
		n := e.fitting(prepared)
		some, err := e.embedBatch(ctx, purpose, prepared[:n])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
		vectors, prepared = append(vectors, some...), prepared[n:]
	}
	return vectors, nil
}

// fitting returns how many of the texts fit into one request: at least one. In the vocabularies of all these models a
// token has at least one byte, and models add a few tokens to each text.
func (e *Embedder) fitting(texts []string) int {
	const around = 4
	tokens := 0
	for i, text := range texts {
		tokens += len(text) + around
		if i == e.maxTexts || i > 0 && tokens > e.maxTokens {
			return i
		}
	}
	return len(texts)
}

// patience bounds the total pause between the attempts of a request. After that, a search uses words alone, and a
// document is embedded later, in the background.
func patience(purpose souvenir.Purpose) time.Duration {
	if purpose == souvenir.ForQuery {
		return time.Second
	}
	return time.Minute
}

// embedBatch embeds the texts in one request. If the service refuses them as too large, it embeds each half by itself.
func (e *Embedder) embedBatch(ctx context.Context, purpose souvenir.Purpose, texts []string) ([][]float32, error) {
	path, body := e.encode(purpose, texts)
	encoded, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	answer, err := e.link.Post(ctx, path, encoded, patience(purpose), maxAnswer(len(texts), e.dimensions))
	if tooLarge := (*service.StatusError)(nil); errors.As(err, &tooLarge) &&
		tooLarge.Status == http.StatusRequestEntityTooLarge && len(texts) > 1 {
		half := len(texts) / 2
		first, err := e.embedBatch(ctx, purpose, texts[:half])
		if err != nil {
			return nil, err
		}
		second, err := e.embedBatch(ctx, purpose, texts[half:])
		return append(first, second...), err
	}
	if err != nil {
		return nil, err
	}
	vectors, err := e.decode(answer)
	if err != nil {
		return nil, e.link.Redacted(fmt.Errorf("the answer is not as documented: %w", err))
	}
	return e.check(vectors, len(texts))
}

// check refuses an answer with a wrong number of vectors, or vectors of a wrong size.
func (e *Embedder) check(vectors []Vector, texts int) ([][]float32, error) {
	if len(vectors) != texts {
		return nil, fmt.Errorf("the answer has %d vectors for %d texts", len(vectors), texts)
	}
	checked := make([][]float32, texts)
	for i, v := range vectors {
		if len(v) != e.dimensions {
			return nil, fmt.Errorf("vector %d of the answer has %d numbers; Dimensions is %d", i, len(v), e.dimensions)
		}
		checked[i] = v
	}
	return checked, nil
}

// DecodeIndexed reads an answer in OpenAI's form: a list "data" of objects with an embedding and its index, 0 to n-1 in
// any order.
func DecodeIndexed(body []byte) ([]Vector, error) {
	var answer struct {
		Data []struct {
			Index     int    `json:"index"`
			Embedding Vector `json:"embedding"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	ordered := make([]Vector, len(answer.Data))
	for i, item := range answer.Data {
		switch {
		case item.Index < 0 || item.Index >= len(ordered):
			return nil, fmt.Errorf("vector %d has the index %d; expected 0 to %d", i, item.Index, len(ordered)-1)
		case ordered[item.Index] != nil:
			return nil, fmt.Errorf("two vectors have the index %d", item.Index)
		case item.Embedding == nil:
			return nil, fmt.Errorf("vector %d is missing", i)
		}
		ordered[item.Index] = item.Embedding
	}
	return ordered, nil
}

// cut shortens a text to the length that all models accept, between characters. Only queries are that long.
func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	end := maxText
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
