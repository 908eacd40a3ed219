package index

import (
	"math"
	"slices"
)

// top keeps the best limit hits: a heap whose root is the worst of them.
type top struct {
	limit int
	hits  []Hit
}

func newTop(limit int) top {
	return top{limit: limit, hits: make([]Hit, 0, max(0, min(limit, 128)))}
}

// refuses reports, before the hit is built, that a hit with this score cannot be among the best.
func (t *top) refuses(score float32) bool {
	return t.limit <= 0 || len(t.hits) == t.limit && score < t.hits[0].Score
}

// refusesBeside reports the same of a memory that comes after the worst hit if their scores are equal.
func (t *top) refusesBeside(score float32, m *memory) bool {
	if len(t.hits) < t.limit || t.limit <= 0 || score != t.hits[0].Score {
		return false
	}
	worst := &t.hits[0]
	return m.id > worst.ID || m.id == worst.ID && m.row >= worst.Row
}

// least returns the score below which a hit cannot be among the best.
func (t *top) least() float32 {
	if t.limit > 0 && len(t.hits) == t.limit {
		return t.hits[0].Score
	}
	return float32(math.Inf(-1))
}

func (t *top) offer(h Hit) {
	switch {
	case t.limit <= 0:
	case len(t.hits) < t.limit:
		t.hits = append(t.hits, h)
		t.up(len(t.hits) - 1)
	case CompareHits(&h, &t.hits[0]) < 0:
		t.hits[0] = h
		t.down(0)
	}
}

func (t *top) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if CompareHits(&t.hits[i], &t.hits[parent]) <= 0 {
			return
		}
		t.hits[i], t.hits[parent] = t.hits[parent], t.hits[i]
		i = parent
	}
}

func (t *top) down(i int) {
	for {
		worst := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(t.hits); child++ {
			if CompareHits(&t.hits[child], &t.hits[worst]) > 0 {
				worst = child
			}
		}
		if worst == i {
			return
		}
		t.hits[i], t.hits[worst] = t.hits[worst], t.hits[i]
		i = worst
	}
}

// sorted ends the collection and returns the hits from best to worst.
func (t *top) sorted() []Hit {
	slices.SortFunc(t.hits, func(a, b Hit) int { return CompareHits(&a, &b) })
	return t.hits
}
