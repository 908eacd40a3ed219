package index

import (
	"math"
	"slices"
)

// rank returns the best memories. Most passages cannot be among them: with the score of their words they would
// need a higher cosine than any vector has, or than their coarse codes allow.
func (s *search) rank() ([]Hit, error) {
	score := s.q.Fuse(s.stats)
	limit := s.q.Limit
	if limit <= 0 {
		return nil, nil
	}
	if s.q.Rerank != nil {
		limit = max(limit, s.q.Rerank.Depth)
	}
	floor, err := s.floor(score, limit)
	if err != nil {
		return nil, err
	}
	w := ranker{search: s, score: score, floor: floor, best: newTop(limit), lows: newLows(limit)}
	w.enough = s.enough(score, floor)
	byWords := w.enough > 0
	for i := range s.regions {
		w.region = &s.regions[i]
		if byWords {
			err = s.walkAbove(w.region, w.enoughNow(), w.consider)
		} else {
			err = w.rankAll()
		}
		if err != nil {
			return nil, err
		}
		w.finish()
	}
	hits := w.best.sorted()
	if s.q.Rerank != nil && len(hits) > 0 {
		hits = s.rerank(score, hits)
	}
	return hits[:min(s.q.Limit, len(hits))], nil
}

// ranker visits passages, memory by memory.
type ranker struct {
	*search
	score  func(Parts) float32
	floor  float32 // a lower score is not among the best
	best   top
	lows   lows // of the regions whose vectors have codes
	region *region

	current *memory // the memory whose passages are being visited
	hit     Hit     // its best so far

	enough float32 // the least BM25 with which a passage can reach the floor, or an earlier one
}

// raiseEvery is how many passages are considered before it is worth computing the least BM25 for a raised floor.
const raiseEvery = 64

// enoughNow returns a function that returns the BM25 from which on passages are considered. It is called for each
// passage.
func (w *ranker) enoughNow() func() float32 {
	calls, floor := 0, w.floor
	return func() float32 {
		if calls++; calls%raiseEvery == 0 && w.floor > floor {
			floor = w.floor
			w.enough = w.search.enough(w.score, floor)
		}
		return w.enough
	}
}

// visit ranks a passage.
func (w *ranker) visit(slot int, parts Parts) {
	score := number(w.score(parts))
	r := w.region
	first := r.owners[slot] != w.current
	if first {
		w.finish()
		w.current = r.owners[slot]
	}
	if first || score > w.hit.Score || score == w.hit.Score && r.passages[slot] < w.hit.Passage {
		w.hit = Hit{Row: w.current.row, ID: w.current.id, Passage: r.passages[slot], Span: r.spans[slot], Parts: parts,
			Score: score}
	}
}

// number returns a score, the lowest one for NaN.
func number(score float32) float32 {
	if score != score {
		return float32(math.Inf(-1))
	}
	return score
}

// finish ends the visits of a memory.
func (w *ranker) finish() {
	if w.current != nil && !w.best.refuses(w.hit.Score) {
		w.best.offer(w.hit)
		w.floor = max(w.floor, w.best.least())
	}
	w.current = nil
}

// hopeless reports whether a passage of a memory cannot make it one of the best, given an upper bound of its score.
// Many memories may have the score of the worst of these.
func (w *ranker) hopeless(m *memory, high float32) bool {
	return high < w.floor || w.best.refusesBeside(high, m)
}

// consider visits a passage unless the bound of its vector shows that it cannot reach the floor.
func (w *ranker) consider(slot int) {
	parts := Parts{BM25: w.bm25[w.region.from+slot]}
	if m := w.region.vectors; m != nil {
		if row, ok := m.find(uint32(slot)); ok {
			parts.Cosine, parts.HasVector = w.roughRow(m, row), true
			if w.hopeless(w.region.owners[slot], w.score(parts)) {
				return
			}
			if !w.isExact(m) {
				if parts.Cosine = w.rowBound(m, row); w.score(parts) < w.floor {
					return
				}
				parts.Cosine = w.exact(m, row)
			}
		}
	}
	w.visit(slot, parts)
}

// bounds returns an upper bound of the cosine for each slot of a region that has vectors.
func (w *ranker) bounds(r *region) ([]float32, error) {
	cosines := w.cosines[r.from : r.from+len(r.owners)]
	m := r.vectors
	whole := len(m.slots) == len(cosines) // each slot has its row
	if !whole {
		for i := range cosines {
			cosines[i] = noCosine
		}
	}
	for block := range m.blocks() {
		if err := w.ctx.Err(); err != nil {
			return nil, err
		}
		slots := m.slots[block*blockRows : min((block+1)*blockRows, len(m.slots))]
		if whole {
			w.block(m, block, cosines[slots[0]:])
			continue
		}
		w.block(m, block, w.some[:])
		for i, slot := range slots {
			cosines[slot] = w.some[i]
		}
	}
	return cosines, nil
}

// noCosine marks slots without a comparable vector. No comparison yields NaN, see dotFunc.
var noCosine = float32(math.NaN())

// maxSeeds bounds the work of finding a floor: with as many results hardly anything could be skipped.
const maxSeeds = 1000

// floor returns a score that at least limit memories reach, of about twice as many whose words fit best. Passages below
// it need no ranking. If too few memories contain a term, it is the lowest number.
func (s *search) floor(score func(Parts) float32, limit int) (float32, error) {
	lowest := float32(math.Inf(-1))
	if s.stats.Matches < limit || limit > maxSeeds {
		return lowest, nil
	}
	most := min(2*limit, maxSeeds)
	groups := newLows(most) // mostly of as many memories, unless these are long or Keep rejects them
	for _, highest := range s.highest {
		groups.offer(highest)
	}
	seeds, err := s.seeds(most, groups.least())
	if err == nil && len(seeds) < limit {
		seeds, err = s.seeds(most, lowest)
	}
	if err != nil || len(seeds) < limit {
		return lowest, err
	}
	reached := make([]float32, len(seeds))
	for i, seed := range seeds {
		r := s.regionAt(int(seed.Row))
		reached[i] = score(s.parts(r, int(seed.Row)-r.from))
	}
	slices.Sort(reached)
	return reached[len(reached)-limit], nil
}

// seeds returns the memories with the highest BM25, at least least: hits with that score, and places in the scratch
// space as rows.
func (s *search) seeds(most int, least float32) ([]Hit, error) {
	seeds := newTop(most)
	for i := range s.regions {
		r := &s.regions[i]
		scores := s.bm25[r.from:r.to]
		var current *memory
		var seed Hit // of the current memory
		offer := func() {
			if current != nil && !seeds.refuses(seed.Score) {
				seeds.offer(seed)
			}
		}
		err := s.walkAbove(r, func() float32 { return max(least, seeds.least()) }, func(slot int) {
			first := r.owners[slot] != current
			if first {
				offer()
				current = r.owners[slot]
			}
			if first || scores[slot] > seed.Score {
				seed = Hit{Row: int64(r.from + slot), Score: scores[slot]}
			}
		})
		if err != nil {
			return nil, err
		}
		offer()
	}
	return seeds.hits, nil
}

// regionAt returns the region of a place in the scratch space.
func (s *search) regionAt(at int) *region {
	i := 0
	for s.regions[i].to <= at {
		i++
	}
	return &s.regions[i]
}

// enough returns the least BM25 with which a passage can reach the floor with any vector. It is 0 if a vector
// alone can.
func (s *search) enough(score func(Parts) float32, floor float32) float32 {
	return max(0, least(func(bm25 float32) bool {
		return !(score(Parts{BM25: bm25}) < floor) || !(score(Parts{BM25: bm25, Cosine: s.cosine, HasVector: true}) < floor)
	}))
}

// least returns the lowest number for which holds is true, given that it is also true for all higher numbers:
// infinity if it is true for none.
func least(holds func(float32) bool) float32 {
	// Bisection over numbers that ascend in the order of the floats with the same bits, see place.
	place := func(at uint32) float32 {
		if at>>31 == 1 {
			return math.Float32frombits(at &^ (1 << 31))
		}
		return math.Float32frombits(^at)
	}
	low, high := ^math.Float32bits(float32(math.Inf(-1))), math.Float32bits(float32(math.Inf(1)))|1<<31
	for low < high {
		if middle := low + (high-low)/2; holds(place(middle)) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return place(high)
}

// parts returns the components of a passage's score.
func (s *search) parts(r *region, slot int) Parts {
	p := Parts{BM25: float32(math.Abs(float64(s.bm25[r.from+slot])))} // negative if Keep has refused it
	if r.vectors != nil {
		if row, ok := r.vectors.find(uint32(slot)); ok {
			p.Cosine, p.HasVector = s.exact(r.vectors, row), true
		}
	}
	return p
}
