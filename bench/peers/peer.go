package main

import (
	"context"
	"io"
	"slices"

	"github.com/souvenir-ai/souvenir"
)

// results is how many results a search asks for.
const results = 10

// peer is a store that is measured. Each is opened in its own process.
type peer struct {
	name string
	open func(ctx context.Context, dir string) (store, error)
}

// store keeps texts. The number of a text is its place in the corpus. A method is nil if the peer has no such search.
type store struct {
	io.Closer
	add     func(ctx context.Context, first int, texts []string) error
	nearest func(ctx context.Context, vector []float32) ([]int, error) // the numbers of the nearest texts
	find    func(ctx context.Context, text string) ([]int, error)      // by words, or by words and meaning
	settle  func(ctx context.Context) error                            // after the last text; nil: nothing is left to do
}

// peers are all peers in this build.
var peers = []peer{
	{"souvenir", openSouvenir},
	{"chromem-go", openChromem},
	{"coder/hnsw", openHNSW},
	{"bleve", openBleve},
}

// embed returns the vectors of texts: the same model for all peers.
func embed(ctx context.Context, purpose souvenir.Purpose, texts []string) (vectors [][]float32, err error) {
	for batch := range slices.Chunk(texts, souvenir.EmbedBatch) {
		some, err := souvenir.Builtin().Embed(ctx, purpose, batch)
		if err != nil {
			return nil, err
		}
		vectors = append(vectors, some...)
	}
	return vectors, nil
}

// nothing has nothing to close.
type nothing struct{}

func (nothing) Close() error { return nil }
