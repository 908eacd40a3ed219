package index

import (
	"context"
	"math"
	"math/bits"
	"slices"
)

// checkEvery is how many rows or postings a search may visit before it looks at its context.
const checkEvery = 4096

// noCosine marks slots without a comparable vector. No comparison yields NaN, see dotFunc.
var noCosine = float32(math.NaN())

// Search returns the best memories in descending order of score, ids ascending between equal
// scores, and the number of all memories that are ranked: those kept that contain a term of the
// query or, given a query vector, have a vector of its size. A memory's score is that of its best
// passage. The error is the context's, or says what the query lacks.
func (ix *Index) Search(ctx context.Context, q Query) (hits []Hit, total int, err error) {
	if err := q.check(); err != nil {
		return nil, 0, err
	}
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	if !ix.dot.accepts(q.Vector) {
		q.Vector = nil
	}
	ix.mu.RLock()
	defer ix.mu.RUnlock()

	s := search{ctx: ctx, q: &q, dot: ix.dot, words: &ix.words}
	s.scratch = ix.scratch.Get().(*scratch)
	s.open(ix.partitions)
	hits, total, err = s.run()
	if err != nil {
		s.scratch.clear()
	}
	ix.scratch.Put(s.scratch) // not deferred: should Keep or Fuse panic, it is not fit for reuse
	return hits, total, err
}

// search is one search under way.
type search struct {
	ctx   context.Context
	q     *Query
	dot   dotFunc
	words *dictionary

	*scratch
	regions []region
	stats   Stats
}

// region is the part of the scratch space that belongs to one partition.
type region struct {
	*partition
	id       int64
	from, to int
}

// open lays out the scratch space and counts the passages.
func (s *search) open(partitions map[int64]*partition) {
	ids := slices.Clone(s.q.Partitions)
	slices.Sort(ids)
	at := 0
	for _, id := range slices.Compact(ids) {
		p := partitions[id]
		if p == nil {
			continue
		}
		to := at + roundUp(len(p.owners), 64)
		s.regions = append(s.regions, region{p, id, at, to})
		at = to
		s.stats.Passages += p.living()
	}
	s.resize(at, s.q.Vector != nil)
}

func (s *search) run() ([]Hit, int, error) {
	if err := s.matchTerms(); err != nil {
		return nil, 0, err
	}
	if s.q.Vector != nil {
		if err := s.compareVectors(); err != nil {
			return nil, 0, err
		}
	}
	return s.rank()
}

// matchTerms adds up the BM25 score of each passage, term by term, and makes those that contain any
// term candidates.
func (s *search) matchTerms() error {
	saturation := s.q.BM25.Saturation()
	for _, term := range s.q.Terms {
		if !term.usable() {
			continue
		}
		id, known := s.words.find(term.Text)
		containing := 0
		if known {
			containing = s.containing(id)
		}
		factor := term.Weight * IDF(s.stats.Passages, containing)
		s.stats.IdealBM25 += factor * s.q.BM25.Bound()
		if containing == 0 {
			continue
		}
		for _, r := range s.regions {
			if err := s.addTerm(r, r.list(id), factor, saturation); err != nil {
				return err
			}
		}
	}
	for _, word := range s.candidates {
		s.stats.Matches += bits.OnesCount64(word)
	}
	return nil
}

// containing counts the living passages that contain a term.
func (s *search) containing(id uint32) int {
	n := 0
	for _, r := range s.regions {
		list := r.list(id)
		if r.dead == 0 {
			n += len(list)
			continue
		}
		for _, e := range list {
			if r.owners[e.slot] != nil {
				n++
			}
		}
	}
	return n
}

// addTerm adds one term's part to the scores of one partition.
func (s *search) addTerm(r region, list []posting, factor float32, saturation Saturation) error {
	scores, candidates := s.bm25[r.from:r.to], s.candidates[r.from/64:r.to/64]
	highest := s.stats.MaxBM25
	for len(list) > 0 {
		n := min(len(list), checkEvery)
		for _, e := range list[:n] {
			if r.dead > 0 && r.owners[e.slot] == nil {
				continue
			}
			score := scores[e.slot] + factor*saturation.Of(e.frequency, r.lengths[e.slot])
			scores[e.slot] = score
			// No term lowers a score, so the highest sum on the way is the highest at the end.
			highest = max(highest, score)
			candidates[e.slot/64] |= 1 << (e.slot % 64)
		}
		list = list[n:]
		if err := s.ctx.Err(); err != nil {
			return err
		}
	}
	s.stats.MaxBM25 = highest
	return nil
}

// compareVectors fills in the cosines and makes the passages with a comparable vector candidates.
func (s *search) compareVectors() error {
	highest := float32(math.Inf(-1))
	sum, squares := 0.0, 0.0
	for _, r := range s.regions {
		cosines, candidates := s.cosines[r.from:r.to], s.candidates[r.from/64:r.to/64]
		for i := range cosines {
			cosines[i] = noCosine
		}
		if s.q.Compare != nil && !s.q.Compare(r.id) {
			continue
		}
		m := r.findMatrix(len(s.q.Vector))
		if m == nil {
			continue
		}
		for row, slot := range m.slots {
			if row%checkEvery == checkEvery-1 {
				if err := s.ctx.Err(); err != nil {
					return err
				}
			}
			if r.owners[slot] == nil {
				continue
			}
			cosine := s.dot(m.row(row), s.q.Vector)
			cosines[slot] = cosine
			candidates[slot/64] |= 1 << (slot % 64)
			highest = max(highest, cosine)
			sum += float64(cosine)
			squares += float64(cosine) * float64(cosine)
			s.stats.Vectors++
		}
	}
	if n := float64(s.stats.Vectors); n > 0 {
		mean := sum / n
		s.stats.MaxCosine = highest
		s.stats.MeanCosine = float32(mean)
		s.stats.StdCosine = float32(math.Sqrt(max(0, squares/n-mean*mean)))
	}
	return nil
}

// rank walks the candidates in the order of their slots, in which a memory's passages are
// neighbours. It leaves the scratch space as the next search expects it.
func (s *search) rank() ([]Hit, int, error) {
	score := s.q.Fuse(s.stats)
	best := newTop(s.q.Limit)
	total := 0
	for _, r := range s.regions {
		var (
			current *memory // whose passages are being visited
			kept    bool
			hit     Hit // its best so far
		)
		finish := func() {
			if kept && !best.refuses(hit.Score) {
				best.offer(hit)
			}
		}
		for w := r.from / 64; w < r.to/64; w++ {
			if w%(checkEvery/64) == 0 {
				if err := s.ctx.Err(); err != nil {
					return nil, 0, err
				}
			}
			word := s.candidates[w]
			s.candidates[w] = 0
			for ; word != 0; word &= word - 1 {
				at := w*64 + bits.TrailingZeros64(word)
				parts := s.parts(at)
				s.bm25[at] = 0
				slot := at - r.from
				first := r.owners[slot] != current
				if first {
					finish()
					current = r.owners[slot]
					kept = s.q.Keep == nil || s.q.Keep(current.row)
					if kept {
						total++
					}
				}
				if !kept {
					continue
				}
				value := score(parts)
				if value != value {
					value = float32(math.Inf(-1))
				}
				if first || value > hit.Score || value == hit.Score && r.passages[slot] < hit.Passage {
					hit = Hit{Row: current.row, ID: current.id, Passage: r.passages[slot], Parts: parts, Score: value}
				}
			}
		}
		finish()
	}
	return best.sorted(), total, nil
}

// parts are the scores at a place of the scratch space.
func (s *search) parts(at int) Parts {
	p := Parts{BM25: s.bm25[at]}
	if s.q.Vector != nil {
		if cosine := s.cosines[at]; cosine == cosine { // not noCosine
			p.Cosine, p.HasVector = cosine, true
		}
	}
	return p
}
