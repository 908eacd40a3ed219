package pictures

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/layout"
	"github.com/souvenir-ai/souvenir/internal/lru"
)

// placings keeps the places of the memories of graphs. A placing depends on the connections alone. It is safe for
// concurrent use.
type placings struct {
	log *slog.Logger // of the background

	kept lru.Cache // of placing, by a hash
	last lru.Cache // of lastPlacing, by mapKey

	computing sync.Mutex // held while a placing is computed in the background: one at a time
}

// placing is x and y of each memory, one after another, and the memories that are folded.
type placing struct {
	places []float32
	folded []int
}

// lastPlacing is the latest placing of a graph of a user.
type lastPlacing struct {
	nodes []souvenir.Node // with ids and times of the last change only
	placing
}

const (
	mostPlacings     = 8 << 20 // bytes
	mostLast         = 8 << 20
	longestPlacement = time.Minute
)

// reading reads a graph that is up to date.
type reading func(context.Context) (souvenir.Graph, error)

// of returns a graph with its placing, which must not be changed. If the connections have changed since the last time,
// most memories stay where they were, the others are among their neighbours, and the next request gets a new placing,
// which is computed in the background. Instead of a stale graph, the next request gets one that is up to date, with the
// same places: that its memories move may irritate while one looks.
func (p *placings) of(ctx context.Context, key mapKey, g souvenir.Graph, read reading) (souvenir.Graph, placing,
	error) {
	if known, found := lru.Get[placing](&p.kept, connections(g)); found && !g.Stale {
		p.note(key, g, known)
		return g, known, nil
	}
	last, _ := lru.Get[lastPlacing](&p.last, key)
	if near, ok := last.with(g); ok {
		p.renew(key, g, read)
		return g, near, nil
	}
	return p.compute(ctx, key, g, read)
}

// renew reads a stale graph anew, or computes the placing of one that is up to date, in the background, unless another
// one is being computed. If that fails, the next request tries again. A panic must not end the server, as no request is
// there to recover it.
func (p *placings) renew(key mapKey, g souvenir.Graph, read reading) {
	if !p.computing.TryLock() {
		return
	}
	go func() {
		defer p.computing.Unlock()
		defer func() {
			if broken := recover(); broken != nil {
				p.log.Warn("a graph could not be laid out", "error", fmt.Sprintf("panic: %v\n%s", broken, debug.Stack()))
			}
		}()
		ctx, cancel := context.WithTimeout(context.Background(), longestPlacement)
		defer cancel()
		var err error
		if g.Stale {
			_, err = read(ctx) // the store keeps it
		} else {
			_, _, err = p.compute(ctx, key, g, read)
		}
		if err != nil {
			p.log.Warn("a graph could not be laid out", "error", err)
		}
	}()
}

// compute computes a placing and keeps it, of a graph that is read again if it is stale.
func (p *placings) compute(ctx context.Context, key mapKey, g souvenir.Graph, read reading) (souvenir.Graph, placing,
	error) {
	if g.Stale {
		var err error
		if g, err = read(ctx); err != nil {
			return g, placing{}, err
		}
	}
	sum := connections(g)
	own, known := lru.Get[placing](&p.kept, sum)
	if !known {
		var err error
		if own.places, own.folded, err = graphPlaces(ctx, g); err != nil {
			return g, placing{}, err
		}
		p.kept.Put(sum, own, 200+4*len(own.places)+8*len(own.folded), mostPlacings)
	}
	p.note(key, g, own) // the graph may have changed again by the next request
	return g, own, nil
}

// note keeps the placing of a user's graph.
func (p *placings) note(key mapKey, g souvenir.Graph, own placing) {
	last := lastPlacing{make([]souvenir.Node, len(g.Nodes)), own}
	for i, node := range g.Nodes {
		last.nodes[i] = souvenir.Node{ID: node.ID, UpdatedAt: node.UpdatedAt}
	}
	const bytes = 350 // of a node
	p.last.Put(key, last, bytes*len(last.nodes), mostLast)
}

// with returns the placing with other memories, from -1 to 1; false: most of them are others.
func (l lastPlacing) with(g souvenir.Graph) (placing, bool) {
	most := float32(1e-9)
	for _, at := range l.places {
		most = max(most, at, -at)
	}
	folded := map[int]bool{}
	for _, i := range l.folded {
		folded[i] = true
	}
	was := map[string]int{}
	for i, node := range l.nodes {
		if !folded[i] {
			was[node.ID] = i
		}
	}
	linked, edges := pulls(g)
	known, before, drawn, same := make([]*layout.Place, len(g.Nodes)), make([]*layout.Place, len(g.Nodes)), 0, 0
	now := placing{places: make([]float32, 2*len(g.Nodes))}
	for i, node := range g.Nodes {
		if !linked[i] {
			now.folded = append(now.folded, i)
			continue
		}
		drawn++
		if at, found := was[node.ID]; found {
			before[i] = &layout.Place{X: float64(l.places[2*at] / most), Y: float64(l.places[2*at+1] / most)}
			if l.nodes[at].UpdatedAt.Equal(node.UpdatedAt) {
				known[i] = before[i]
				same++
			}
		}
	}
	for i, at := range layout.PlaceNew(known, edges) {
		if !linked[i] {
			continue
		}
		if at == nil {
			at = before[i]
		}
		if at == nil { // connected with nothing that was there: at the edge
			sin, cos := math.Sincos(float64(i))
			at = &layout.Place{X: cos, Y: sin}
		}
		now.places[2*i], now.places[2*i+1] = float32(at.X), float32(at.Y)
	}
	return now, drawn > 0 && 2*same >= drawn
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
