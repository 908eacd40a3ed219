package index

import (
	"math"
	"sync"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/retrieval/similarity"
	"github.com/souvenir-ai/souvenir/internal/simd"
)

// Memory is a memory to index. All its passages are in one partition.
type Memory struct {
	Row       int64  // identifies the memory in Put, Delete and hits
	ID        string // orders memories of equal score; kept, not copied
	Partition int64
	Turn      *Turn             // its part in a conversation; nil = none
	Sketch    similarity.Sketch // of its text, for Like; the zero value = it is like none
	Entries   []Entry           // its passages; none = the memory is not indexed at all
}

// Entry is one passage of a memory. The index copies what it needs of it.
type Entry struct {
	Passage int64     // unique in the index; the lower one wins between equal scores
	Vector  []float32 // of unit length; nil, or holding NaN or an infinity = no vector
	Terms   []string  // its analysed words in the order of the text, with repetitions
	Words   []uint16  // rows of its words in a table of word vectors, in the order of the text; for Rerank
	Span    Span      // kept for hits
}

// Span says where in its memory's content a passage lies: byte offsets.
type Span struct{ Start, End uint32 }

// In returns the offsets of the passage in a content, or the whole content if the passage does not fit. The index may
// reflect a change that a snapshot does not contain; then the passage belongs to other content.
func (s Span) In(content string) (start, end int) {
	start, end = int(s.Start), int(s.End)
	if start > end || end > len(content) || !utf8.ValidString(content[start:end]) {
		return 0, len(content)
	}
	return start, end
}

// Index is a set of memories to search. It is safe for concurrent use: searches run side by side, and a search
// sees each change of the index wholly or not at all.
type Index struct {
	dot     dotFunc
	coarse  coarseDots // nil: vectors are kept as they are
	coded   int        // the least size of the vectors that are kept as codes
	scratch sync.Pool  // of *scratch

	settleAt int // how many recent postings a partition has before they are frozen

	mu         sync.RWMutex
	memories   rowTable
	partitions map[int64]*partition
	passages   int
	size       int // sum of counted over all partitions
	expected   expected
	highest    int64 // no memory put since the last clear has a row above it
}

// New returns an empty index.
func New() *Index {
	ix := &Index{dot: simd.DotFloats, coarse: fastestCoarse(), coded: leastCoded, settleAt: freezeAt}
	ix.scratch.New = func() any { return new(scratch) }
	ix.clear()
	return ix
}

// Put adds memories. Each replaces everything that the index holds for the same row, in any partition. Of several
// with one row the last counts. Searches wait until the call is done, so load large numbers in calls of a few
// hundred memories.
func (ix *Index) Put(memories ...Memory) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for i := range memories {
		ix.remove(memories[i].Row)
		if len(memories[i].Entries) > 0 {
			ix.add(&memories[i])
		}
	}
}

// Delete removes memories. Unknown rows are ignored.
func (ix *Index) Delete(rows ...int64) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for _, row := range rows {
		ix.remove(row)
	}
}

// Confine removes each memory at rows that is not in the partition at the same place of partitions; 0 is no partition.
func (ix *Index) Confine(rows, partitions []int64) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for i, row := range rows {
		if m := ix.memories.get(row); m != nil && m.partition.id != partitions[i] {
			ix.remove(row)
		}
	}
}

// Drop removes partitions and frees their memory. Unknown ones are ignored.
func (ix *Index) Drop(partitions ...int64) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for _, id := range partitions {
		p := ix.partitions[id]
		if p == nil {
			continue
		}
		for _, m := range p.owners {
			if m != nil {
				ix.memories.drop(m.row) // of a memory's passages, the first one does it
			}
		}
		ix.passages -= p.living()
		ix.size -= p.counted
		delete(ix.partitions, id)
	}
}

// Reset removes everything and frees its memory.
func (ix *Index) Reset() {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.clear()
}

// Len returns the number of memories and of passages.
func (ix *Index) Len() (memories, passages int) {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	return ix.memories.count, ix.passages
}

// Bytes estimates the memory of the index, including removed passages that still wait for compaction, but without the
// scratch space of searches (about 10 bytes per passage of the searched partitions and running search) and the kept
// results of filters (half a byte per passage at most).
func (ix *Index) Bytes() int64 {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	return int64(ix.size + ix.memories.bytes() + mapBytes(len(ix.partitions), 16))
}

// PartitionSize estimates the memory of one partition, which Drop would free, and counts its passages.
func (ix *Index) PartitionSize(partition int64) (bytes int64, passages int) {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	p := ix.partitions[partition]
	if p == nil {
		return 0, 0
	}
	return int64(p.counted + 16*p.memories + mapBytes(1, 16)), p.living()
}

// Rows returns the memories of a partition, in the order in which they were added.
func (ix *Index) Rows(partition int64) []int64 {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	p := ix.partitions[partition]
	if p == nil {
		return nil
	}
	rows := make([]int64, 0, p.memories)
	var last *memory
	for _, m := range p.owners {
		if m != nil && m != last {
			rows, last = append(rows, m.row), m
		}
	}
	return rows
}

func (ix *Index) clear() {
	ix.memories = rowTable{}
	ix.partitions = make(map[int64]*partition)
	ix.passages, ix.size, ix.highest = 0, 0, math.MinInt64
}

// codes reports whether vectors of a size are kept as codes.
func (ix *Index) codes(size int) bool { return ix.coarse != nil && size >= ix.coded }

func (ix *Index) add(m *Memory) {
	p := ix.open(m.Partition)
	held := &memory{row: m.Row, id: m.ID}
	p.add(held, m, ix.dot, ix.codes)
	p.join(held, m.Turn)
	ix.memories.put(held)
	ix.highest = max(ix.highest, m.Row)
	ix.passages += len(m.Entries)
	ix.account(p)
}

// open returns a partition, new if need be.
func (ix *Index) open(id int64) *partition {
	p := ix.partitions[id]
	if p == nil {
		p = &partition{id: id, settleAt: ix.settleAt}
		ix.partitions[id] = p
	}
	return p
}

func (ix *Index) remove(row int64) {
	m := ix.memories.get(row)
	if m == nil {
		return
	}
	ix.memories.drop(row)
	ix.passages -= int(m.count)
	p := m.partition
	p.remove(m)
	if p.wasteful() {
		p.compact()
	}
	if len(p.owners) == 0 {
		delete(ix.partitions, p.id)
		ix.size -= p.counted
		return
	}
	ix.account(p)
}

// account updates the index's sum of sizes from one partition.
func (ix *Index) account(p *partition) {
	n := p.bytes()
	ix.size += n - p.counted
	p.counted = n
}
