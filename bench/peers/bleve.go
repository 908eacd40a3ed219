package main

import (
	"context"
	"path/filepath"
	"strconv"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis/lang/en"
)

// document is a document in bleve's index.
type document struct {
	Text string `json:"text"`
}

// openBleve opens an index of bleve with its English analyser. It has words only, and no texts.
func openBleve(_ context.Context, dir string) (store, error) {
	path := filepath.Join(dir, "bleve")
	index, err := bleve.Open(path)
	if err == bleve.ErrorIndexPathDoesNotExist {
		mapping := bleve.NewIndexMapping()
		mapping.DefaultAnalyzer = en.AnalyzerName
		mapping.StoreDynamic, mapping.DocValuesDynamic = false, false
		index, err = bleve.New(path, mapping)
	}
	if err != nil {
		return store{}, err
	}
	return store{
		Closer: index,
		add: func(_ context.Context, first int, texts []string) error {
			const portion = 1000
			batch := index.NewBatch()
			for i, t := range texts {
				if err := batch.Index(strconv.Itoa(first+i), document{t}); err != nil {
					return err
				}
				if batch.Size() == portion || i == len(texts)-1 {
					if err := index.Batch(batch); err != nil {
						return err
					}
					batch.Reset()
				}
			}
			return nil
		},
		find: func(ctx context.Context, text string) ([]int, error) {
			request := bleve.NewSearchRequestOptions(bleve.NewMatchQuery(text), results, 0, false)
			found, err := index.SearchInContext(ctx, request)
			if err != nil {
				return nil, err
			}
			numbers := make([]int, len(found.Hits))
			for i, hit := range found.Hits {
				if numbers[i], err = strconv.Atoi(hit.ID); err != nil {
					return nil, err
				}
			}
			return numbers, nil
		},
	}, nil
}
