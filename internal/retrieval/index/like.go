package index

import (
	"context"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/retrieval/similarity"
)

// Like asks for the memories whose texts may say the same as a text.
type Like struct {
	Near      // the vector of the text; more memories than its Limit are too many
	Probe     *similarity.Probe
	AnyCosine bool // the cosine says nothing about the likeness of texts
}

const (
	scanAtOnce = 1 << 14 // sketches that are compared between two looks at the context
	mostLike   = 1 << 8  // number of memories with similar words from which on comparing them one by one gains nothing
)

// Like returns the memories that may say the same, in no order: those whose vector is near enough and whose sketch does
// not rule it out. It reports false if they are too many; then they are not known. The error is the context's.
func (ix *Index) Like(ctx context.Context, l Like) (hits []Hit, known bool, err error) {
	if !ix.dot.accepts(l.Vector) {
		return nil, false, ctx.Err()
	}
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	work := ix.scratch.Get().(*scratch)
	defer ix.scratch.Put(work)
	work.begin(ix, l.Vector)
	seen := 0
	ids := slices.Clone(l.Partitions)
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		p := ix.partitions[id]
		if p == nil || l.Compare != nil && !l.Compare(id) {
			continue
		}
		m := p.findMatrix(len(l.Vector))
		if m == nil {
			continue
		}
		for from := 0; from < len(p.sketches); from += scanAtOnce {
			if err := ctx.Err(); err != nil {
				return nil, false, err
			}
			work.places = l.Probe.Scan(p.sketches[from:min(from+scanAtOnce, len(p.sketches))], work.places[:0])
			for _, place := range work.places {
				owner := p.owners[from+int(place)]
				if !l.wants(owner) {
					continue
				}
				if seen++; seen > mostLike {
					return nil, false, nil
				}
				hit, found := work.nearest(m, owner)
				if !found || hit.Score < l.Least ||
					!l.AnyCosine && !l.Probe.May(&p.sketches[owner.first], float64(hit.Score)) {
					continue
				}
				if hits = append(hits, hit); len(hits) > l.Limit {
					return nil, false, nil
				}
			}
		}
	}
	return hits, true, nil
}

// nearest compares the passages of a memory, and reports whether one has a vector in a matrix.
func (c *comparison) nearest(m *matrix, owner *memory) (best Hit, found bool) {
	p := owner.partition
	for slot := owner.first; slot < owner.first+owner.count; slot++ {
		row, ok := m.find(slot)
		if !ok {
			continue
		}
		cosine := c.exact(m, row)
		if !found || cosine > best.Score || cosine == best.Score && p.passages[slot] < best.Passage {
			best = Hit{Row: owner.row, ID: owner.id, Passage: p.passages[slot], Span: p.spans[slot],
				Parts: Parts{Cosine: cosine, HasVector: true}, Score: cosine}
			found = true
		}
	}
	return best, found
}
