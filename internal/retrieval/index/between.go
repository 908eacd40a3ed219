package index

import (
	"math"
	"math/bits"
)

// The coarse codes of vectors give a lower and an upper bound of a passage's score. The highest lower bounds, of as
// many memories as are wanted, make a floor; only passages whose upper bounds reach the final floor are compared
// exactly.

// lows are the highest lower bounds of the scores of different memories: a heap whose root is the lowest of them.
type lows struct {
	limit int
	list  []float32
}

func newLows(limit int) lows { return lows{limit, make([]float32, 0, min(limit, 128))} }

// least returns a score that at least limit memories reach; the lowest number as long as fewer are known.
func (l *lows) least() float32 {
	if len(l.list) < l.limit {
		return float32(math.Inf(-1))
	}
	return l.list[0]
}

// offer takes the lower bound of a memory.
func (l *lows) offer(low float32) {
	if len(l.list) < l.limit {
		i := len(l.list)
		for l.list = append(l.list, low); i > 0 && l.list[(i-1)/2] > low; i = (i - 1) / 2 {
			l.list[i] = l.list[(i-1)/2]
		}
		l.list[i] = low
		return
	}
	if low <= l.list[0] {
		return
	}
	i := 0
	for child := 1; child < len(l.list); child = 2*i + 1 {
		if child+1 < len(l.list) && l.list[child+1] < l.list[child] {
			child++
		}
		if low <= l.list[child] {
			break
		}
		l.list[i], i = l.list[child], child
	}
	l.list[i] = low
}

// likely is a passage that may be among the best.
type likely struct {
	slot int32
	high float32 // upper bound of its score
}

// rankAll visits the passages of a region that may reach the floor by their words, their vector, or both.
func (w *ranker) rankAll() error {
	r := w.region
	if r.vectors == nil {
		return w.walk(r, func(slot int) { w.visit(slot, Parts{BM25: w.bm25[r.from+slot]}) })
	}
	if r.complete {
		left := 0
		for _, word := range w.candidates[r.from/64 : r.to/64] {
			left += bits.OnesCount64(word)
		}
		if 4*left < len(r.owners) { // Keep has left few
			return w.walk(r, w.consider)
		}
	}
	cosines, err := w.bounds(r)
	if err != nil {
		return err
	}
	exact := w.isExact(r.vectors)
	w.between(cosines, exact)
	for _, l := range w.likely {
		if w.hopeless(r.owners[l.slot], l.high) {
			continue
		}
		parts := Parts{BM25: w.bm25[r.from+int(l.slot)]}
		if cosine := cosines[l.slot]; exact && cosine == cosine {
			parts.Cosine, parts.HasVector = cosine, true
		} else if !exact {
			parts = w.parts(r, int(l.slot))
		}
		w.visit(int(l.slot), parts)
	}
	return nil
}

// flat reports whether a passage has the score of its bound for any cosine: where the vector has no
// weight, as in a query of words that the model does not know, or the score is the lowest one.
func (w *ranker) flat(parts Parts, high float32) bool {
	parts.Cosine = -w.cosine
	return number(w.score(parts)) == high
}

// between collects the passages of a region that may reach the floor, given the upper bounds of their cosines, and
// raises the floor by their lower bounds.
func (w *ranker) between(cosines []float32, exact bool) {
	r := w.region
	scores, candidates := w.bm25[r.from:r.to], w.candidates[r.from/64:r.to/64]
	perSlack, fixed := w.loss(r.vectors)
	w.likely = w.likely[:0]
	var current *memory
	low := float32(math.Inf(-1)) // of the current memory
	offer := func() {
		if current != nil {
			w.lows.offer(low)
			w.floor = max(w.floor, w.lows.least())
		}
	}
	near := noCosine // enough without words
	for slot, cosine := range cosines {
		if slot%blockRows == 0 {
			near = least(func(cosine float32) bool { return !(w.score(Parts{Cosine: cosine, HasVector: true}) < w.floor) })
		}
		words := scores[slot]
		if words == 0 && !(cosine >= near) { // as with most passages; noCosine is not
			continue
		}
		if r.owners[slot] == nil || r.complete && candidates[slot/64]>>(slot%64)&1 == 0 {
			continue
		}
		parts := Parts{BM25: words}
		if cosine == cosine { // not noCosine
			parts.Cosine, parts.HasVector = cosine, true
		}
		high := number(w.score(parts))
		if high < w.floor {
			continue
		}
		slack := float32(0)
		if parts.HasVector && !exact && !w.flat(parts, high) {
			row, _ := r.vectors.find(uint32(slot))
			parts.Cosine = w.rowBound(r.vectors, row)
			if high = number(w.score(parts)); high < w.floor {
				continue
			}
			slack = 2 * (r.vectors.coarse[row].slack*perSlack + fixed)
		}
		w.likely = append(w.likely, likely{int32(slot), high})
		parts.Cosine -= slack
		if r.owners[slot] != current {
			offer()
			current, low = r.owners[slot], float32(math.Inf(-1))
		}
		low = max(low, number(w.score(parts)))
	}
	offer()
}
