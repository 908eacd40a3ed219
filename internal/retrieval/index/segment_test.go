package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/retrieval/similarity"
)

// encodeSegment encodes memories as the index, which is empty, holds them.
func (ix *Index) encodeSegment(memories []Memory) []byte {
	ix.putSorted(memories)
	return ix.segment()
}

// segmentMemory returns a memory with everything that an index stores about it.
func (g *generator) segmentMemory(rows int) Memory {
	m := g.memory(rows)
	m.Partition = 1 + m.Row%2
	m.Sketch = similarity.SketchOf(similarity.Read(fmt.Sprint("The ferry ", g.IntN(1000), " to ", g.word(), g.word())))
	for i := range m.Entries {
		e := &m.Entries[i]
		e.Span = Span{uint32(g.IntN(100)), uint32(100 + g.IntN(1000))}
		for range g.IntN(5) {
			e.Words = append(e.Words, uint16(g.IntN(1000)))
		}
	}
	if g.IntN(2) == 0 {
		m.Turn = &Turn{Conversation: int64(g.IntN(3)) - 1, At: int64(g.IntN(50)), Speaker: fmt.Sprint("s", g.IntN(3)),
			Asks: g.IntN(2) == 0}
	}
	return m
}

// TestSegmentsAnswerAsTheirMemoriesDo compares an index filled with Put with one that has most memories from segments:
// two ranges of rows, with some memories changed or added since.
func TestSegmentsAnswerAsTheirMemoriesDo(t *testing.T) {
	longtest.Only(t)
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			g := newGenerator(seed)
			rows := []int{3, 50, 400}[seed%3]
			build := func() *Index {
				ix := New()
				ix.coded = 1
				ix.settleAt = []int{freezeAt, 1, 100}[seed/9%3]
				ix.coarse = []coarseDots{fastestCoarse(), coarseDotsPlain, nil}[seed/3%3]
				return ix
			}
			was, stale := map[int64]Memory{}, map[int64]bool{}
			put, loaded := build(), build()
			for range 3 * rows {
				m := g.segmentMemory(rows)
				was[m.Row] = m
			}
			is := maps.Clone(was)
			for range g.IntN(rows) / 2 {
				m := g.segmentMemory(rows + 5)
				stale[m.Row] = true
				if is[m.Row] = m; g.IntN(3) == 0 {
					delete(is, m.Row)
				}
			}
			if g.IntN(2) == 0 { // something is there
				m := g.segmentMemory(rows)
				loaded.Put(m)
				if len(is[m.Row].Entries) == 0 || stale[m.Row] {
					loaded.Delete(m.Row)
				}
			}
			for partition := range int64(3) {
				for half := range int64(2) {
					var part []Memory
					for row, m := range was {
						if m.Partition == partition && 2*row/int64(rows) == half {
							part = append(part, m)
						}
					}
					s, err := DecodeSegment(build().encodeSegment(part), 1000)
					if err != nil {
						t.Fatalf("a segment of %d memories: got %v, want it decoded", len(part), err)
					}
					if err := loaded.PutSegment(partition, s, func(row int64) bool { return stale[row] }); err != nil {
						t.Fatal(err)
					}
					loaded.verify(t)
				}
			}
			for row, m := range is {
				put.Put(m)
				if stale[row] {
					loaded.Put(m)
				}
			}
			loaded.verify(t)
			for m := range put.memories.all {
				other := loaded.memories.get(m.row)
				if got, want := other.partition.sketches[other.first], m.partition.sketches[m.first]; got != want {
					t.Fatalf("memory %d has the sketch %+v, want %+v", m.row, got, want)
				}
			}
			for range 200 {
				sameAnswer(t, g, put, loaded)
			}
			// Further changes have the same effect on both.
			for range rows {
				m := g.segmentMemory(rows)
				put.Put(m)
				loaded.Put(m)
				loaded.verify(t)
			}
			sameAnswer(t, g, put, loaded)
		})
	}
}

// sameAnswer compares the results of two indexes for one query, ranked again with conversations.
func sameAnswer(t *testing.T, g *generator, put, loaded *Index) {
	t.Helper()
	q := g.query()
	q.Fuse, q.BM25 = sum, BM25{K1: 0.9, B: 0.4, Pivot: 4}
	got, want := answer(t, loaded, q), answer(t, put, q)
	if got != want {
		t.Fatalf("%+v: got %s, want %s", q, got, want)
	}
}

// answer returns a result as text, in which NaN equals NaN.
func answer(t *testing.T, ix *Index, q Query) (text string) {
	t.Helper()
	q.Rerank = &Rerank{Depth: 10, Reach: 2, Rank: func(f Found) []Hit {
		for i, n := range f.Neighbourhoods {
			for _, m := range n {
				turn := Turn{}
				if m.Turn != nil {
					turn, m.Turn = *m.Turn, nil
				}
				text += fmt.Sprintf(" [%d: %+v %+v]", i, m, turn)
			}
		}
		return f.Hits
	}}
	hits, total := mustSearch(t, ix, q)
	return fmt.Sprintf("%+v of %d%s", hits, total, text)
}

// TestLongSegmentsAreUsedWhereTheyAre does so with segments whose vectors, words and postings are not copied, and
// checks that their bytes stay unchanged, whatever happens to the index.
func TestLongSegmentsAreUsedWhereTheyAre(t *testing.T) {
	const n = 2*blockRows + 100
	g := newGenerator(7)
	put, loaded := New(), New()
	put.coded, loaded.coded = 1, 1
	var segments [][]byte
	var memories []Memory
	for part := range int64(3) {
		var some []Memory
		for i := range int64(n) {
			m := g.segmentMemory(n)
			m.Row, m.Partition = part*n+i, 1
			some = append(some, m)
		}
		encode := New()
		encode.coded = 1
		segments = append(segments, encode.encodeSegment(some))
		memories = append(memories, some...)
	}
	loaded.Put(memories[:50]...) // so that blocks do not begin with a segment
	put.Put(memories...)
	for _, data := range segments {
		s, err := DecodeSegment(data, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if err := loaded.PutSegment(1, s, nil); err != nil {
			t.Fatal(err)
		}
	}
	for round := range longtest.Size(8, 3) {
		loaded.verify(t)
		for range 40 {
			sameAnswer(t, g, put, loaded)
		}
		for range n / 2 {
			row := int64(g.IntN(3 * n))
			if m := memories[row]; g.IntN(3) == 0 {
				m.Entries = g.segmentMemory(n).Entries
				put.Put(m)
				loaded.Put(m)
			} else {
				put.Delete(row)
				loaded.Delete(row)
			}
		}
		for _, data := range segments {
			if err := CheckSegment(data); err != nil {
				t.Fatalf("round %d: the bytes of a segment have changed", round)
			}
		}
	}
	if n := len(loaded.partitions[1].frozen); n > 2 {
		t.Errorf("got %d lists of frozen postings for so few passages, want them frozen together", n)
	}
}

// TestBytesOfSegmentsAgreeWithTheHeap compares the estimate for memories from segments with the runtime's figure, which
// includes the segments themselves. It compares both again when a third of the memories is gone.
func TestBytesOfSegmentsAgreeWithTheHeap(t *testing.T) {
	longtest.Only(t)
	var segments [][]byte
	for part := range slices.Chunk(benchMemories(12_000), 5000) {
		segments = append(segments, EncodeSegment(part).Data)
	}
	before := heap()
	for _, data := range segments {
		before -= int64(cap(data))
	}
	ix := New()
	for i := range segments {
		s, err := DecodeSegment(segments[i], 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := ix.PutSegment(1, s, nil); err != nil {
			t.Fatal(err)
		}
		segments[i] = nil
	}
	for _, gone := range []int64{0, 4500} {
		for row := range gone {
			ix.Delete(2 * row)
		}
		held, estimate := heap()-before, ix.Bytes()
		t.Logf("without %d: estimate %d, heap %d", gone, estimate, held)
		if ratio := float64(estimate) / float64(held); ratio < 0.9 || ratio > 1.1 {
			t.Errorf("without %d: estimates %d bytes, the heap grew by %d, want a tenth more or less at most", gone, estimate,
				held)
		}
	}
}

func TestASegmentIsForOneWayOfHoldingVectors(t *testing.T) {
	codes, floats := New(), New()
	codes.coarse, codes.coded, floats.coarse = coarseDotsPlain, 1, nil
	s, err := DecodeSegment(codes.encodeSegment([]Memory{{Row: 1, Entries: []Entry{entry(1, "a", 1, 0)}}}), 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := floats.PutSegment(0, s, nil); !errors.Is(err, ErrSegment) {
		t.Errorf("codes in an index of floats: got %v, want ErrSegment", err)
	}
	if n, _ := floats.Len(); n != 0 {
		t.Errorf("got %d memories after the error, want none", n)
	}
}

// TestDamagedSegmentsAreNotDecoded changes each byte, and cuts off each tail.
func TestDamagedSegmentsAreNotDecoded(t *testing.T) {
	g := newGenerator(3)
	var memories []Memory
	for range 20 {
		memories = append(memories, g.segmentMemory(30))
	}
	data := EncodeSegment(memories).Data
	for i := range data {
		damaged := slices.Clone(data)
		damaged[i] ^= 1 << (i % 8)
		if _, err := DecodeSegment(damaged, 1000); !errors.Is(err, ErrSegment) {
			t.Fatalf("byte %d changed: got %v, want ErrSegment", i, err)
		}
		if _, err := DecodeSegment(data[:i], 1000); !errors.Is(err, ErrSegment) {
			t.Fatalf("cut to %d bytes: got %v, want ErrSegment", i, err)
		}
	}
	if _, err := DecodeSegment(data, 1); !errors.Is(err, ErrSegment) {
		t.Errorf("rows of words beyond the table: got %v, want ErrSegment", err)
	}
}

// FuzzSegment decodes bytes with a valid checksum, and searches them. Nothing may panic or take too much memory.
func FuzzSegment(f *testing.F) {
	for seed := range uint64(4) {
		g := newGenerator(seed)
		var memories []Memory
		for range 10 {
			memories = append(memories, g.segmentMemory(20))
		}
		f.Add(seed, EncodeSegment(memories).Data)
	}
	f.Fuzz(func(t *testing.T, seed uint64, data []byte) {
		if len(data) < len(segmentMagic)+crc32.Size {
			return
		}
		copy(data, segmentMagic)
		end := len(data) - crc32.Size
		binary.LittleEndian.PutUint32(data[end:], crc32.Checksum(data[:end], castagnoli))
		segmentIsHarmless(t, seed, data)
	})
}

// segmentIsHarmless decodes a segment and, if it is valid, searches it.
func segmentIsHarmless(t *testing.T, seed uint64, data []byte) (decoded bool) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s, err := DecodeSegment(data, 1000)
	runtime.ReadMemStats(&after)
	if grown, most := after.TotalAlloc-before.TotalAlloc, uint64(300*len(data)+1<<20); grown > most {
		t.Fatalf("%d bytes: got %d bytes allocated, want at most %d", len(data), grown, most)
	}
	if err != nil {
		return false
	}
	ix := New()
	if ix.PutSegment(1, s, nil) != nil {
		return true
	}
	ix.verify(t)
	g := newGenerator(seed)
	for range 10 {
		sameAnswer(t, g, ix, ix)
	}
	ix.Delete(s.Memories()...)
	if n, _ := ix.Len(); n != 0 {
		t.Fatalf("got %d memories after all were deleted, want none", n)
	}
	return true
}

// TestHostileSegmentsAreHarmless changes bytes of segments and corrects the checksum.
func TestHostileSegmentsAreHarmless(t *testing.T) {
	longtest.Only(t)
	random := rand.New(rand.NewPCG(5, 5))
	decoded := 0
	for round := range 3000 {
		g := newGenerator(uint64(round % 50))
		var memories []Memory
		for range 1 + round%7 {
			memories = append(memories, g.segmentMemory(20))
		}
		data := EncodeSegment(memories).Data
		end := len(data) - crc32.Size
		for range 1 + random.IntN(3) {
			at := len(segmentMagic) + random.IntN(end-len(segmentMagic))
			data[at] = byte(random.Uint32()) >> random.IntN(8)
		}
		binary.LittleEndian.PutUint32(data[end:], crc32.Checksum(data[:end], castagnoli))
		if segmentIsHarmless(t, uint64(round), data) {
			decoded++
		}
	}
	if decoded == 0 {
		t.Error("got no changed segment that was decoded, want some")
	}
}

// BenchmarkSegment uses 10,000 passages of 256 dimensions, in ranges of 2,048. Put is the load without segments, after
// texts were analysed.
func BenchmarkSegment(b *testing.B) {
	memories := benchMemories(10_000)
	var segments [][]byte
	size := 0
	for part := range slices.Chunk(memories, 2048) {
		segments = append(segments, EncodeSegment(part).Data)
		size += len(segments[len(segments)-1])
	}
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			for part := range slices.Chunk(memories, 2048) {
				EncodeSegment(part)
			}
		}
	})
	b.Run("decode and put", func(b *testing.B) {
		for b.Loop() {
			ix := New()
			for _, data := range segments {
				s, err := DecodeSegment(data, 0)
				if err != nil {
					b.Fatal(err)
				}
				if err := ix.PutSegment(1, s, nil); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(float64(size)/float64(len(memories)), "bytes/passage")
	})
	b.Run("put", func(b *testing.B) {
		for b.Loop() {
			New().Put(memories...)
		}
	})
}
