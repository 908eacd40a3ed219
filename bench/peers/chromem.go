package main

import (
	"context"
	"runtime"
	"strconv"

	"github.com/philippgille/chromem-go"

	"github.com/souvenir-ai/souvenir"
)

// openChromem opens a chromem-go collection kept in files, which are not synced to the disk. It has vectors only.
func openChromem(_ context.Context, dir string) (store, error) {
	db, err := chromem.NewPersistentDB(dir, false)
	if err != nil {
		return store{}, err
	}
	one := func(ctx context.Context, text string) ([]float32, error) {
		vectors, err := embed(ctx, souvenir.ForDocument, []string{text})
		if err != nil {
			return nil, err
		}
		return vectors[0], nil
	}
	collection, err := db.GetOrCreateCollection("texts", nil, one)
	if err != nil {
		return store{}, err
	}
	return store{
		Closer: nothing{},
		add: func(ctx context.Context, first int, texts []string) error {
			documents := make([]chromem.Document, len(texts))
			for i, t := range texts {
				documents[i] = chromem.Document{ID: strconv.Itoa(first + i), Content: t}
			}
			return collection.AddDocuments(ctx, documents, runtime.NumCPU())
		},
		nearest: func(ctx context.Context, vector []float32) ([]int, error) {
			found, err := collection.QueryEmbedding(ctx, vector, results, nil, nil)
			if err != nil {
				return nil, err
			}
			numbers := make([]int, len(found))
			for i, f := range found {
				if numbers[i], err = strconv.Atoi(f.ID); err != nil {
					return nil, err
				}
			}
			return numbers, nil
		},
	}, nil
}
