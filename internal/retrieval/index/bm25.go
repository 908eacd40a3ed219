package index

import (
	"fmt"
	"math"
)

// BM25 holds the constants of Okapi BM25 as in Robertson and Zaragoza, "The Probabilistic Relevance
// Framework: BM25 and Beyond" (2009), section 3.5, with the never negative idf that Lucene uses:
//
//	idf(t)     = ln(1 + (N - df(t) + 0.5) / (df(t) + 0.5))
//	sat(t, p)  = tf(t, p) * (K1 + 1) / (tf(t, p) + K1 * (1 - B + B * max(1, length(p) / Pivot)))
//	BM25(q, p) = sum over the terms t of q that p contains of weight(t) * idf(t) * sat(t, p)
//
// N is the number of passages, df(t) how many of them contain t, tf(t, p) how often p contains it,
// and length(p) the number of terms of p, repetitions counted. A constant with a floor takes the place
// of the mean length: whether a chat turn has five words or fifty says nothing about its worth, while
// long documents do collect words. So one setting serves both, and a score does not depend on what else
// is stored.
//
// The zero value ranks by the idf of the matched terms alone.
type BM25 struct {
	K1    float32 // at least 0: how slowly repetitions of a term stop adding; 0 = presence alone counts
	B     float32 // 0 to 1: how much long passages are held back; 0 = not at all
	Pivot float32 // length in terms from which on a passage counts as long; above 0 unless B is 0
}

// check reports constants for which the formula is not an ordering.
func (c BM25) check() error {
	if !(c.K1 >= 0 && c.K1 <= math.MaxFloat32) {
		return fmt.Errorf("index: BM25 K1 is %v, want a finite number of at least 0", c.K1)
	}
	if !(c.B >= 0 && c.B <= 1) {
		return fmt.Errorf("index: BM25 B is %v, want 0 to 1", c.B)
	}
	if c.B > 0 && !(c.Pivot > 0 && c.Pivot <= math.MaxFloat32) {
		return fmt.Errorf("index: BM25 Pivot is %v, want a finite number above 0", c.Pivot)
	}
	return nil
}

// IDF is the inverse document frequency of a term that is contained in the given number of the
// passages. It is positive, also for a term that all passages contain.
func IDF(passages, containing int) float32 {
	n, df := float64(passages), float64(containing)
	return float32(math.Log1p((n - df + 0.5) / (df + 0.5)))
}

// Bound is what sat approaches as a term is repeated: no passage scores more than the sum of
// weight * idf * Bound over the terms of the query.
func (c BM25) Bound() float32 { return c.K1 + 1 }

// Saturation is sat of the formula.
type Saturation struct {
	bound float32
	base  float32 // K1 * (1 - B)
	slope float32 // K1 * B / Pivot
	pivot float32
}

// Saturation prepares the formula.
func (c BM25) Saturation() Saturation {
	s := Saturation{bound: c.Bound(), base: c.K1 * (1 - c.B)}
	if c.B > 0 {
		s.pivot = c.Pivot
		s.slope = float32(float64(c.K1) * float64(c.B) / float64(c.Pivot))
	}
	return s
}

// Of returns sat for a term that a passage of length terms contains frequency times, at least once.
func (s Saturation) Of(frequency, length uint32) float32 {
	tf := float32(frequency)
	// The conversion of the product keeps it from being fused with the sum on some machines, where
	// two callers could then differ in the last bit.
	return float32(tf*s.bound) / (tf + s.base + float32(s.slope*max(s.pivot, float32(length))))
}
