// Package index ranks passages in memory, by vector similarity and by BM25 over words, fused by a
// function of the caller.
//
// An Index holds partitions. A search names the partitions it may see, and nothing outside them
// touches its result: not the hits, not the statistics that BM25 weighs terms with. One partition is
//
//   - a matrix of vectors per vector size (matrix.go), with coarse copies (coarse.go),
//   - an inverted index from terms to (slot, frequency) pairs (partition.go),
//
// both addressed by slot: the position at which a passage was added. All passages of a memory are
// added together, so they hold neighbouring slots, and both structures are sorted by slot. Removing
// a memory only marks its slots dead; once more than a third of a partition is dead it is
// compacted, so a removal costs a constant number of compacted rows on average.
//
// A search (search.go) adds up one BM25 score per slot and derives the statistics of this query. The
// memories whose words fit best set the score to beat, and then (rank.go) it walks the slots once in
// order and leaves out what cannot reach that: by its words and the best vector that could be, or by
// its words and what the coarse copy of its vector says at most. The rest are scored exactly, keeping
// the best passage of each memory and the best memories in a bounded heap. Nothing that belongs to
// the result is lost. The formula of BM25 is in bm25.go alone, for other search paths to share.
//
// What is near to a vector, whatever its words, is found likewise (near.go).
package index
