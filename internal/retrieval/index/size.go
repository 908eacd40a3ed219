package index

import "slices"

// Sizes of the parts of an index, in bytes. The figures are for 64-bit machines, estimated where the runtime
// decides; a test compares their sum with the heap.
const (
	partitionBytes = 256
	matrixBytes    = 160
	coarseBytes    = 8
	memoryBytes    = 64
	sketchBytes    = 24
	postingBytes   = 8

	turnBytes         = 64 + 10  // with its place in the conversation's list
	conversationBytes = 128 + 24 // with its place in the partition's map and a few speakers
)

// mapBytes estimates a map that has held up to n entries of the given size: Go's tables are between
// 7/16 and 7/8 full and hold one control byte an entry.
func mapBytes(n, entry int) int { return n * (entry + 1) * 3 / 2 }

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// shrink returns s, copied to an array of its own length if half of its present one is unused.
func shrink[T any](s []T) []T {
	if cap(s) >= 2*len(s)+8 {
		return slices.Clip(slices.Clone(s))
	}
	return s
}
