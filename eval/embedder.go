package main

import (
	"context"
	"maps"
	"os"
	"slices"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/embedders/cohere"
	"github.com/souvenir-ai/souvenir/embedders/gemini"
	"github.com/souvenir-ai/souvenir/embedders/ollama"
	"github.com/souvenir-ai/souvenir/embedders/openai"
	"github.com/souvenir-ai/souvenir/embedders/transformer"
	"github.com/souvenir-ai/souvenir/embedders/voyage"
)

// services are the constructors of the services' embedders with their default models, by name.
func services() map[string]func(key string) (souvenir.Embedder, error) {
	return map[string]func(key string) (souvenir.Embedder, error){
		"cohere": func(key string) (souvenir.Embedder, error) { return cohere.New(cohere.Options{Key: key}) },
		"gemini": func(key string) (souvenir.Embedder, error) { return gemini.New(gemini.Options{Key: key}) },
		"ollama": func(key string) (souvenir.Embedder, error) { return ollama.New(ollama.Options{Key: key}) },
		"openai": func(key string) (souvenir.Embedder, error) { return openai.New(openai.Options{Key: key}) },
		"voyage": func(key string) (souvenir.Embedder, error) { return voyage.New(voyage.Options{Key: key}) },
	}
}

func serviceNames() []string { return slices.Sorted(maps.Keys(services())) }

// embedder returns the model of a setting, for a set whose first texts give the mean.
func (s storing) embedder(ctx context.Context, of set) (souvenir.Embedder, error) {
	if s.model == "" {
		return souvenir.Builtin(), nil
	}
	if service, ok := services()[s.model]; ok {
		return service(os.Getenv("SOUVENIR_EMBEDDER_KEY"))
	}
	options := &transformer.Options{Precision: transformer.Int8}
	model, err := transformer.Open(s.model, options)
	if err != nil || !s.centred {
		return model, err
	}
	var texts []string
	for _, conv := range of.convs {
		for _, r := range of.memories[conv] {
			texts = append(texts, r.content())
		}
	}
	every := max(1, len(texts)/300)
	var some []string
	for i := 0; i < len(texts); i += every {
		some = append(some, texts[i])
	}
	options.Mean, err = model.Mean(ctx, some)
	if closing := model.Close(); err != nil || closing != nil {
		return nil, err
	}
	return transformer.Open(s.model, options)
}
