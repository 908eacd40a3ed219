package main

import (
	"context"
	"path/filepath"

	"github.com/coder/hnsw"

	"github.com/souvenir-ai/souvenir"
)

// openHNSW opens a graph of coder/hnsw with its own settings. It has vectors only, and no texts.
func openHNSW(_ context.Context, dir string) (store, error) {
	graph, err := hnsw.LoadSavedGraph[int](filepath.Join(dir, "graph"))
	if err != nil {
		return store{}, err
	}
	graph.Distance = hnsw.CosineDistance
	return store{
		Closer: nothing{},
		settle: func(context.Context) error { return graph.Save() },
		add: func(ctx context.Context, first int, texts []string) error {
			vectors, err := embed(ctx, souvenir.ForDocument, texts)
			if err != nil {
				return err
			}
			for i, v := range vectors {
				graph.Add(hnsw.MakeNode(first+i, v))
			}
			return nil
		},
		nearest: func(_ context.Context, vector []float32) ([]int, error) {
			numbers := make([]int, 0, results)
			for _, node := range graph.Search(vector, results) {
				numbers = append(numbers, node.Key)
			}
			return numbers, nil
		},
	}, nil
}
