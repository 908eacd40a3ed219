package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/souvenir-ai/souvenir"
)

// openSouvenir opens a Souvenir store. Each answered write is durable, and vectors are made by the store.
func openSouvenir(ctx context.Context, dir string) (store, error) {
	s, err := souvenir.Open(ctx, filepath.Join(dir, "souvenir.db"), nil)
	if err != nil {
		return store{}, err
	}
	search := func(ctx context.Context, q souvenir.Query) ([]int, error) {
		q.Limit = results
		found, err := s.Search(ctx, q)
		numbers := make([]int, 0, results)
		for _, hit := range found.Hits {
			n, err := strconv.Atoi(hit.Key)
			if err != nil {
				return nil, fmt.Errorf("key %q: %w", hit.Key, err)
			}
			numbers = append(numbers, n)
		}
		return numbers, err
	}
	return store{
		Closer: s,
		add: func(ctx context.Context, first int, texts []string) error {
			memories := make([]souvenir.NewMemory, len(texts))
			for i, t := range texts {
				memories[i] = souvenir.NewMemory{Content: t, Key: strconv.Itoa(first + i)}
			}
			_, err := s.AddMemories(ctx, memories, nil)
			return err
		},
		nearest: func(ctx context.Context, vector []float32) ([]int, error) {
			return search(ctx, souvenir.Query{Vector: vector})
		},
		find:   func(ctx context.Context, text string) ([]int, error) { return search(ctx, souvenir.Query{Text: text}) },
		settle: func(ctx context.Context) error { return s.Upkeep().StoreIndex(ctx) },
	}, nil
}
