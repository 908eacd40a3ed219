package pictures

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/lru"
)

// placings keeps the places of the memories of graphs. A placing depends on the connections alone. The zero value is
// ready, and safe for concurrent use.
type placings struct {
	kept lru.Cache // of placing, by a hash
}

// placing is x and y of each memory, one after another, and the memories that are folded.
type placing struct {
	places []float32
	folded []int
}

const mostPlacings = 8 << 20 // bytes

// of returns the placing of a graph. It must not be changed.
func (p *placings) of(ctx context.Context, g souvenir.Graph) (placing, error) {
	key := connections(g)
	if known, found := lru.Get[placing](&p.kept, key); found {
		return known, nil
	}
	places, folded, err := graphPlaces(ctx, g)
	if err == nil {
		p.kept.Put(key, placing{places, folded}, 200+4*len(places)+8*len(folded), mostPlacings)
	}
	return placing{places, folded}, err
}

// connections is a hash of the connections between the memories of a graph.
func connections(g souvenir.Graph) (sum [sha256.Size]byte) {
	const bytes = 17 // of an edge
	data := make([]byte, 0, 16+bytes*(len(g.Edges)+len(g.Nearest)))
	data = binary.LittleEndian.AppendUint64(data, uint64(len(g.Nodes)))
	data = binary.LittleEndian.AppendUint64(data, uint64(len(g.Edges)))
	for _, edges := range [][]souvenir.Edge{g.Edges, g.Nearest} {
		for _, edge := range edges {
			data = binary.LittleEndian.AppendUint32(data, uint32(edge.From))
			data = binary.LittleEndian.AppendUint32(data, uint32(edge.To))
			data = binary.LittleEndian.AppendUint64(data, math.Float64bits(edge.Score))
			kind := byte(0)
			if edge.Kind == souvenir.EdgeSimilar {
				kind = 1
			}
			data = append(data, kind)
		}
	}
	return sha256.Sum256(data)
}
