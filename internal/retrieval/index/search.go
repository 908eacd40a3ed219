package index

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/simd"
)

// checkEvery is how many rows a search may visit before it checks its context.
const checkEvery = 4096

// Search returns the best memories in descending order of score, ids ascending between equal scores, and the number
// of all ranked memories: those kept that contain a term of the query or, given a query vector, have a vector of
// its size. A memory's score is that of its best passage. The error is the context's, or names the missing part of
// the query.
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

	s := search{ctx: ctx, q: &q, byRow: ix.memories.get}
	s.scratch = ix.scratch.Get().(*scratch)
	s.begin(ix, q.Vector)
	s.open(ix.partitions)
	hits, total, err = s.run()
	s.scratch.clear()
	ix.scratch.Put(s.scratch) // not deferred: if Keep or Fuse panics, it is not fit for reuse
	return hits, total, err
}

// search is one running search.
type search struct {
	ctx   context.Context
	q     *Query
	byRow func(int64) *memory

	*scratch
	regions []region
	stats   Stats
	weights []float32 // see Found
	cosine  float32   // upper bound of all cosines; 0 if there are none
	narrow  bool      // no passage but the candidates is ranked, though others have scores of words
}

// region is the part of the scratch space for one partition.
type region struct {
	*partition
	from, to int
	vectors  *matrix // those to compare with the query's; nil = none
	complete bool    // all memories to rank are candidates, with or without terms
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
		r := region{partition: p, from: at, to: at + roundUp(len(p.owners), 64)}
		if s.q.Vector != nil && (s.q.Compare == nil || s.q.Compare(id)) {
			if r.vectors = p.findMatrix(len(s.q.Vector)); r.vectors != nil {
				s.cosine = max(s.cosine, s.most(r.vectors))
			}
		}
		s.regions = append(s.regions, r)
		at = r.to
		s.stats.Passages += p.living()
	}
	s.resize(at, s.q.Vector != nil)
}

// findRegion returns the region of a partition, if it is searched.
func (s *search) findRegion(partition int64) (r *region, searched bool) {
	at, searched := slices.BinarySearchFunc(s.regions, partition, func(r region, id int64) int {
		return cmp.Compare(r.id, id)
	})
	if !searched {
		return nil, false
	}
	return &s.regions[at], true
}

func (s *search) run() ([]Hit, int, error) {
	if err := s.matchTerms(); err != nil {
		return nil, 0, err
	}
	total, err := s.count()
	if err != nil {
		return nil, 0, err
	}
	hits, err := s.rank()
	if err != nil {
		return nil, 0, err
	}
	return hits, total, nil
}

// matchTerms adds up the BM25 score of each passage, term by term, and makes passages with any term candidates. No term
// lowers a score.
func (s *search) matchTerms() error {
	s.saturations.prepare(s.q.BM25.Saturation())
	exact := NewExact(s.stats.Passages)
	s.weights = make([]float32, len(s.q.Terms))
	lists := make([]termLists, len(s.regions))
	for i, term := range s.q.Terms {
		if !term.usable() {
			continue
		}
		for j, r := range s.regions {
			lists[j] = r.find(term.Text)
		}
		containing := s.containing(lists)
		exact.Consider(i, term, containing, func(most int) int { return s.memories(lists, most) })
		factor := term.Weight * IDF(s.stats.Passages, containing)
		s.weights[i] = factor
		s.stats.IdealBM25 += factor * s.q.BM25.Bound()
		if containing == 0 {
			continue
		}
		for j, r := range s.regions {
			if err := s.addTerm(r, lists[j], factor); err != nil {
				return err
			}
		}
	}
	s.addExact(&exact)
	for i := range s.highest {
		from, to := i*markAtOnce, min((i+1)*markAtOnce, len(s.bm25))
		s.highest[i] = simd.Mark(s.bm25[from:to], math.SmallestNonzeroFloat32, s.candidates[from/64:to/64])
		s.stats.MaxBM25 = max(s.stats.MaxBM25, s.highest[i])
	}
	for _, word := range s.candidates {
		s.stats.Matches += bits.OnesCount64(word)
	}
	return nil
}

// containing counts the living passages that contain a term, given its postings by region.
func (s *search) containing(lists []termLists) (n int) {
	for i, r := range s.regions {
		n += len(lists[i].recent)
		for _, list := range lists[i].frozen {
			n += list.passages
		}
		if r.dead > 0 {
			n -= lists[i].dead(r.lengths)
		}
	}
	return n
}

// count returns the number of memories to rank. If it has to call Keep, or cannot tell otherwise, it makes every
// passage with a comparable vector a candidate, and removes the candidates of the memories that Keep rejects.
func (s *search) count() (total int, err error) {
	if s.q.Exactly {
		return s.keepExactly()
	}
	if s.q.Rows != nil && fewRows*s.q.Rows.Len() <= s.stats.Passages {
		return s.keepRows()
	}
	for i := range s.regions {
		r := &s.regions[i]
		if s.q.Keep == nil && r.vectors != nil && len(r.vectors.slots) == len(r.owners) {
			total += r.memories // each passage has a vector, and each memory a passage
			continue
		}
		s.addVectors(r)
		kept, err := s.keep(r)
		if err != nil {
			return 0, err
		}
		total += kept
	}
	return total, nil
}

// keep removes the candidates of the memories that Keep rejects from a region, and returns how many memories are
// left.
func (s *search) keep(r *region) (memories int, err error) {
	scores, candidates := s.bm25[r.from:r.to], s.candidates[r.from/64:r.to/64]
	var current *memory
	kept := true
	for w, word := range candidates {
		if w%(checkEvery/64) == 0 {
			if err := s.ctx.Err(); err != nil {
				return 0, err
			}
		}
		refused := uint64(0)
		for rest := word; rest != 0; rest &= rest - 1 {
			bit := bits.TrailingZeros64(rest)
			slot := w*64 + bit
			if r.owners[slot] != current {
				current = r.owners[slot]
				kept = s.q.Keep == nil || s.q.Keep(current.row)
				if kept {
					memories++
				}
			}
			if !kept {
				refused |= 1 << bit
				scores[slot] = -scores[slot] // below every bound; its neighbours may use it
			}
		}
		candidates[w] = word &^ refused
	}
	return memories, nil
}

// fewRows is how many passages a search can walk past in the time of looking up one memory by its row.
const fewRows = 8

// keepRows makes the passages to rank of the memories that Keep accepts the only candidates, and returns how many
// memories they belong to.
func (s *search) keepRows() (memories int, err error) {
	var kept []int // places in the scratch space
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	for row := range s.q.Rows.All() {
		m := s.byRow(row)
		if m == nil || !s.q.Keep(row) {
			continue
		}
		r, searched := s.findRegion(m.partition.id)
		if !searched {
			continue
		}
		before := len(kept)
		for slot := m.first; slot < m.first+m.count; slot++ {
			at := r.from + int(slot)
			found := s.candidates[at/64]>>(at%64)&1 == 1
			if !found && r.vectors != nil {
				_, found = r.vectors.find(slot)
			}
			if found {
				kept = append(kept, at)
			}
		}
		if len(kept) > before {
			memories++
		}
	}
	clear(s.candidates)
	for _, at := range kept {
		s.candidates[at/64] |= 1 << (at % 64)
	}
	for i := range s.regions {
		s.regions[i].complete = true
	}
	s.narrow = true
	return memories, nil
}

// addVectors makes all passages with a comparable vector candidates.
func (s *search) addVectors(r *region) {
	if r.vectors == nil || r.complete {
		return
	}
	candidates := s.candidates[r.from/64 : r.to/64]
	for _, slot := range r.vectors.slots {
		if r.owners[slot] != nil {
			candidates[slot/64] |= 1 << (slot % 64)
		}
	}
	r.complete = true
}

// walk visits the candidates of a region in the order of their slots, where a memory's passages are neighbours.
func (s *search) walk(r *region, visit func(slot int)) error {
	for w, word := range s.candidates[r.from/64 : r.to/64] {
		if w%(checkEvery/64) == 0 {
			if err := s.ctx.Err(); err != nil {
				return err
			}
		}
		for ; word != 0; word &= word - 1 {
			visit(w*64 + bits.TrailingZeros64(word))
		}
	}
	return nil
}

// markAtOnce is how many slots are marked, or passed over, at once.
const markAtOnce = 256

// walkAbove visits, in the same order, the candidates whose BM25 is above 0 and at least least(), which may rise
// meanwhile.
func (s *search) walkAbove(r *region, least func() float32, visit func(slot int)) error {
	if s.narrow {
		return s.walk(r, func(slot int) {
			if s.bm25[r.from+slot] >= max(least(), math.SmallestNonzeroFloat32) {
				visit(slot)
			}
		})
	}
	var marks [markAtOnce / 64]uint64
	bound := max(least(), math.SmallestNonzeroFloat32)
	for from, to := r.from, 0; from < r.to; from = to {
		group := from / markAtOnce
		if to = min((group+1)*markAtOnce, r.to); s.highest[group] < bound {
			continue
		}
		if err := s.ctx.Err(); err != nil {
			return err
		}
		some := s.bm25[from:to]
		simd.Mark(some, bound, marks[:])
		for w, word := range marks[:len(some)/64] {
			for ; word != 0; word &= word - 1 {
				if i := w*64 + bits.TrailingZeros64(word); some[i] >= bound {
					visit(from - r.from + i)
					bound = max(least(), math.SmallestNonzeroFloat32)
				}
			}
		}
	}
	return nil
}
