// Package index ranks passages in memory, by vector similarity and by BM25 over words, fused by a
// function of the caller.
//
// An Index holds partitions. A search names the partitions it may see, and nothing outside them
// touches its result: not the hits, not the statistics that BM25 weighs terms with. One partition is
//
//   - a matrix of vectors per vector size (matrix.go), compared exactly, row by row,
//   - an inverted index from terms to (slot, frequency) pairs (partition.go),
//
// both addressed by slot: the position at which a passage was added. All passages of a memory are
// added together, so they hold neighbouring slots, and both structures are sorted by slot. Removing
// a memory only marks its slots dead; once more than a third of a partition is dead it is
// compacted, so a removal costs a constant number of compacted rows on average.
//
// A search (search.go) fills one cosine and one BM25 score per slot, derives the statistics of this
// query, and then walks the candidate slots once in order, keeping the best passage of each memory
// and the best memories in a bounded heap. The formula of BM25 is in bm25.go alone, for other search
// paths to share.
package index
