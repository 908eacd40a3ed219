// Package index ranks passages in memory, by vector similarity and by BM25 over words, fused by a function of the
// caller.
//
// An Index holds partitions. A search names the partitions that it may see, and nothing outside them affects its
// result: neither the hits nor the statistics that BM25 weighs terms with. One partition consists of
//
//   - a matrix of vectors per vector size (matrix.go), as codes of 16 bits a number or, short ones, as they are
//     (coarse.go),
//   - an inverted index with its own terms, from them to (slot, frequency) pairs: of the newest passages as lists
//     (recent.go), of the others in few bytes that do not change (frozen.go),
//
// both addressed by slot: the position at which a passage was added. All passages of a memory are added together,
// so they have neighbouring slots, and both structures are sorted by slot. Removing a memory only marks its slots
// dead; once more than a third of a partition is dead it is compacted, so a removal costs a constant number of
// compacted rows on average.
//
// A search (search.go) adds up one BM25 score per slot and computes the statistics of this query. The memories
// whose words fit best set the score to beat. Then (rank.go) it walks the slots once in order and skips the ones
// that cannot reach that score: by their words and the best possible vector, or by their words and the upper bound
// from the coarse codes of their vector. The rest are scored exactly, keeping the best passage of each memory and
// the best memories in a bounded heap. Nothing that belongs to the result is lost. The formula of BM25 is in
// bm25.go alone, for other search paths to share.
//
// A search for the passages near a vector, without words, works alike (near.go). One for texts that say the same looks
// at sketches of their words before it compares vectors (like.go).
package index
