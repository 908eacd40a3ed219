package index

import (
	"context"
	"slices"
)

// Near asks for the memories with a passage whose vector is similar to a given one.
type Near struct {
	// Vector is compared with the stored vectors of its size. It has unit length; nil, or holding NaN or an
	// infinity = nothing is found.
	Vector []float32

	// Partitions are searched; unknown ones are empty. Compare selects those in which Vector is compared; nil =
	// all.
	Partitions []int64
	Compare    func(partition int64) bool

	Keep func(row int64) bool // selects memories; nil = all

	Least float32 // the least cosine of a passage
	Limit int     // how many memories to return at most; 0 or less = none
}

// Near returns the memories found in descending order of cosine, ids ascending between equal ones. The score of a hit
// is its cosine. The error is the context's.
func (ix *Index) Near(ctx context.Context, n Near) ([]Hit, error) {
	if !ix.dot.accepts(n.Vector) || n.Limit <= 0 {
		return nil, ctx.Err()
	}
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	work := ix.scratch.Get().(*scratch)
	defer ix.scratch.Put(work)
	work.begin(ix, n.Vector)
	s := nearest{ctx: ctx, comparison: &work.comparison, wants: n.wants, floor: n.Least, best: newTop(n.Limit)}
	ids := slices.Clone(n.Partitions)
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		p := ix.partitions[id]
		if p == nil || n.Compare != nil && !n.Compare(id) {
			continue
		}
		if m := p.findMatrix(len(n.Vector)); m != nil {
			if err := s.visit(p, m); err != nil {
				return nil, err
			}
		}
	}
	return s.best.sorted(), nil
}

// nearest is a running search for Near.
type nearest struct {
	ctx context.Context
	*comparison
	wants func(*memory) bool
	floor float32 // cosines below it do not count
	best  top
}

// wants reports whether a memory lives, and is one to look at.
func (n Near) wants(m *memory) bool { return m != nil && (n.Keep == nil || n.Keep(m.row)) }

// visit compares the vectors of a partition.
func (s *nearest) visit(p *partition, m *matrix) error {
	var hit Hit // the best passage so far of the memory that was visited last
	var current *memory
	finish := func() {
		if current != nil {
			s.best.offer(hit)
			s.floor = max(s.floor, s.best.least())
		}
	}
	exact := s.isExact(m)
	for block := range m.blocks() {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		slots := m.slots[block*blockRows : min((block+1)*blockRows, len(m.slots))]
		s.block(m, block, s.some[:])
		for i, cosine := range s.some[:len(slots)] {
			if cosine < s.floor {
				continue
			}
			slot := slots[i]
			if owner := p.owners[slot]; owner == nil || owner != current && !s.wants(owner) {
				continue
			}
			if !exact {
				if row := block*blockRows + i; s.rowBound(m, row) < s.floor {
					continue
				} else if cosine = s.exact(m, row); cosine < s.floor {
					continue
				}
			}
			first := p.owners[slot] != current
			if first {
				finish()
				current = p.owners[slot]
			}
			if first || cosine > hit.Score || cosine == hit.Score && p.passages[slot] < hit.Passage {
				hit = Hit{Row: current.row, ID: current.id, Passage: p.passages[slot], Span: p.spans[slot],
					Parts: Parts{Cosine: cosine, HasVector: true}, Score: cosine}
			}
		}
	}
	finish()
	return nil
}
