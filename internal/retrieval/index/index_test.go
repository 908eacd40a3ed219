package index

import (
	"fmt"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"runtime"
	"slices"
	"sync"
	"testing"
)

func TestPutReplacesMovesAndDeletes(t *testing.T) {
	ix := New()
	find := func(partition int64, term string, want ...int64) {
		t.Helper()
		hits, total := mustSearch(t, ix, Query{Partitions: []int64{partition}, Terms: terms(term), Limit: 10})
		if total != len(want) || !slices.Equal(rows(hits), append([]int64{}, want...)) {
			t.Errorf("%q in partition %d: found rows %v, want %v", term, partition, rows(hits), want)
		}
	}
	ix.Put(
		Memory{Row: 1, ID: "1", Partition: 1, Entries: []Entry{entry(1, "old"), entry(2, "both")}},
		Memory{Row: 2, ID: "2", Partition: 1, Entries: []Entry{entry(3, "both")}},
	)
	find(1, "old", 1)
	find(1, "both", 1, 2)

	ix.Put(Memory{Row: 1, ID: "1", Partition: 1, Entries: []Entry{entry(1, "new"), entry(2, "both")}})
	find(1, "old")
	find(1, "new", 1)
	find(1, "both", 1, 2)

	ix.Put(Memory{Row: 1, ID: "1", Partition: 2, Entries: []Entry{entry(1, "new both")}})
	find(1, "new")
	find(1, "both", 2)
	find(2, "both", 1)

	ix.Put(
		Memory{Row: 3, ID: "3", Partition: 1, Entries: []Entry{entry(4, "first")}},
		Memory{Row: 3, ID: "3", Partition: 2, Entries: []Entry{entry(4, "last")}},
	)
	find(1, "first")
	find(2, "last", 3)

	ix.Delete(2, 3, 2)
	find(1, "both")
	find(2, "last")
	if m, p := ix.Len(); m != 1 || p != 1 {
		t.Errorf("holds %d memories, %d passages, want 1, 1", m, p)
	}
	ix.verify(t)
}

// TestPutCopiesItsArguments reuses one buffer for all vectors, as a loader would.
func TestPutCopiesItsArguments(t *testing.T) {
	ix := New()
	vector, words := make([]float32, 2), make([]string, 1)
	for i := range int64(10) {
		vector[0], vector[1], words[0] = float32(i), 1, fmt.Sprint("w", i)
		ix.Put(Memory{Row: i, ID: fmt.Sprint(i), Partition: 1, Entries: []Entry{{Passage: i, Vector: vector, Terms: words}}})
	}
	hits, _ := mustSearch(t, ix, Query{Partitions: []int64{1}, Vector: []float32{1, 0}, Limit: 10})
	for i, h := range hits {
		if h.Row != int64(9-i) || h.Cosine != float32(9-i) {
			t.Errorf("hit %d is %+v, want row %v and cosine %v", i, h, int64(9-i), float32(9-i))
		}
	}
	if hits, _ := mustSearch(t, ix,
		Query{Partitions: []int64{1}, Terms: terms("w3"), Limit: 10}); !slices.Equal(rows(hits), []int64{3}) {
		t.Errorf("w3 found %+v, want %v", hits, []int64{3})
	}
}

func TestCompactionKeepsOrderAndFreesMemory(t *testing.T) {
	const n = 4 * blockRows
	ix := New()
	ix.coded = 1 // codes are compacted, too
	for i := range int64(n) {
		ix.Put(Memory{Row: i, ID: fmt.Sprintf("%05d", i), Partition: 1, Entries: []Entry{
			entry(2*i, fmt.Sprint("all own", i), 1, float32(i%2)),
			entry(2*i+1, fmt.Sprint("all parity", i%2), float32(i)),
		}})
	}
	full := ix.Bytes()
	for i := range int64(n) {
		if i%8 != 5 {
			ix.Delete(i)
		}
	}
	ix.verify(t)
	if after := ix.Bytes(); after > full/3 {
		t.Errorf("an eighth of the memories takes %d of %d bytes, want at most %v", after, full, full/3)
	}
	if held := len(ix.partitions[1].lists); held > n/8*2 {
		t.Errorf("%d terms are still held, want at most %v", held, n/8*2)
	}
	for i := range int64(n) {
		hits, total := mustSearch(t, ix, Query{Partitions: []int64{1}, Terms: terms(fmt.Sprint("own", i)), Limit: 10})
		if want := i%8 == 5; (total == 1 && hits[0].Row == i && hits[0].Passage == 2*i) != want {
			t.Fatalf("own%d: found %+v of %d, got %v, want %v", i, hits, total,
				(total == 1 && hits[0].Row == i && hits[0].Passage == 2*i), want)
		}
	}
	hits, total := mustSearch(t, ix,
		Query{Partitions: []int64{1}, Vector: []float32{1, 0}, Terms: terms("parity1"), Limit: n})
	if total != n/8 {
		t.Errorf("found %d, want %d", total, n/8)
	}
	for i, h := range hits {
		if h.Row != int64(8*i+5) {
			t.Fatalf("hit %d is %+v, want %v", i, h, int64(8*i+5))
		}
	}
}

// TestChurnDoesNotGrowForEver repeatedly replaces a few memories with new words.
func TestChurnDoesNotGrowForEver(t *testing.T) {
	ix := New()
	g := newGenerator(8)
	word := 0
	round := func() {
		for row := range int64(50) {
			m := Memory{Row: row, ID: fmt.Sprint(row), Partition: int64(g.IntN(3)),
				Entries: []Entry{{Passage: row, Vector: g.unit(4)}}}
			for range 10 {
				word++
				m.Entries[0].Terms = append(m.Entries[0].Terms, fmt.Sprint("word", word))
			}
			ix.Put(m)
		}
	}
	for range 20 {
		round()
	}
	held := func() (terms int) {
		for _, p := range ix.partitions {
			terms += len(p.lists)
		}
		return terms
	}
	size, known := ix.Bytes(), held()
	for range longtest.Size(400, 150) {
		round()
	}
	if after := ix.Bytes(); after > 2*size {
		t.Errorf("grew from %d to %d bytes, want at most %v", size, after, 2*size)
	}
	if after := held(); after > 2*known {
		t.Errorf("grew from %d to %d terms, want at most %v", known, after, 2*known)
	}
	ix.verify(t)
	for row := range int64(50) {
		ix.Delete(row)
	}
	if m, p := ix.Len(); m != 0 || p != 0 || len(ix.partitions) != 0 || ix.size != 0 {
		t.Errorf("after deleting all: %d memories, %d passages, %d partitions, %d bytes, want none of "+
			"them", m, p, len(ix.partitions), ix.size)
	}
}

func TestADroppedPartitionIsGoneAndFreesItsMemory(t *testing.T) {
	ix := New()
	for i := range int64(1000) {
		ix.Put(Memory{Row: i, ID: fmt.Sprint(i), Partition: i % 2, Entries: []Entry{
			entry(2*i, fmt.Sprint("all own", i), 1, 0), entry(2*i+1, "all", 0, 1)}})
	}
	before := ix.Bytes()
	part, passages := ix.PartitionSize(1)
	if passages != 1000 {
		t.Errorf("partition 1 has %d passages, want 1000", passages)
	}
	if got := ix.Rows(1); len(got) != 500 || got[0] != 1 || got[499] != 999 {
		t.Errorf("partition 1 has %d memories from %v, want 500 from 1 to 999", len(got), got[:1])
	}
	ix.Drop(1, 7)
	ix.verify(t)
	if freed := before - ix.Bytes(); freed < part*9/10 || freed > part*11/10 {
		t.Errorf("%d bytes are freed, want about %d", freed, part)
	}
	if hits, total := mustSearch(t, ix, Query{Partitions: []int64{0, 1}, Terms: terms("all"), Limit: 1}); total != 500 ||
		hits[0].Row != 0 {
		t.Errorf("found %v of %d, want row 0 of 500", hits, total)
	}
	if got := ix.Rows(1); got != nil {
		t.Errorf("partition 1 still has %v, want nil", got)
	}
	ix.Put(Memory{Row: 1, ID: "1", Partition: 1, Entries: []Entry{entry(1, "all", 1, 0)}})
	ix.verify(t)
	if m, p := ix.Len(); m != 501 || p != 1001 {
		t.Errorf("holds %d memories, %d passages, want 501, 1001", m, p)
	}
}

// TestBytesAgreesWithTheHeap compares the estimate with the runtime's figure.
func TestBytesAgreesWithTheHeap(t *testing.T) {
	longtest.Only(t)
	for _, c := range []struct {
		name       string
		n          int
		partitions int64
	}{{"one partition", 10_000, 1}, {"many partitions", 10_000, 2000}} {
		t.Run(c.name, func(t *testing.T) {
			memories := benchMemories(c.n)
			for i := range memories {
				memories[i].Partition = int64(i) % c.partitions
				memories[i].Entries[0].Vector = memories[i].Entries[0].Vector[:32]
			}
			ix := New()
			before := heap()
			ix.Put(memories...)
			held := heap() - before
			estimate := ix.Bytes()
			runtime.KeepAlive(memories)
			// The ids are counted, but also belong to the memories above.
			held += int64(c.n * len(memories[0].ID))
			t.Logf("estimate %d, heap %d", estimate, held)
			if ratio := float64(estimate) / float64(held); ratio < 0.75 || ratio > 1.3 {
				t.Errorf("estimates %d bytes, the heap grew by %d, want a ratio of 0.75 to 1.3", estimate, held)
			}
			apart := int64(0)
			for partition := range c.partitions {
				bytes, _ := ix.PartitionSize(partition)
				apart += bytes
			}
			if ratio := float64(apart) / float64(estimate); ratio < 0.9 || ratio > 1.1 {
				t.Errorf("the partitions have %d bytes in sum, want about %d", apart, estimate)
			}
			ix.Reset()
			if empty := ix.Bytes(); empty != 0 {
				t.Errorf("%d bytes after Reset, want 0", empty)
			}
		})
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestSearchSeesEachCallWhollyOrNotAtAll moves two memories back and forth between partitions in one call and replaces
// others, while searches count what they see.
func TestSearchSeesEachCallWhollyOrNotAtAll(t *testing.T) {
	ix := New()
	pair := func(partition int64) []Memory {
		return []Memory{
			{Row: 1, ID: "1", Partition: partition, Entries: []Entry{entry(1, "pair", 1, 0), entry(2, "pair", 0, 1)}},
			{Row: 2, ID: "2", Partition: partition, Entries: []Entry{entry(3, "pair", 0, 1)}},
		}
	}
	ix.Put(pair(1)...)
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	for w := range 2 {
		writers.Go(func() {
			g := newGenerator(uint64(w))
			for i := range 1500 {
				switch row := int64(100*(w+1) + g.IntN(50)); i % 3 {
				case 0:
					ix.Put(pair(int64(1 + g.IntN(2)))...)
				case 1:
					m := g.memory(1)
					m.Row, m.ID, m.Partition = row, fmt.Sprint(row), int64(1+g.IntN(2))
					ix.Put(m)
				case 2:
					ix.Delete(row)
				}
			}
		})
	}
	for r := range 4 {
		readers.Go(func() {
			g := newGenerator(uint64(10 + r))
			for {
				select {
				case <-done:
					return
				default:
				}
				q := Query{Partitions: []int64{1, 2}, Terms: terms("pair w0"), BM25: usual, Limit: 200, Fuse: sum}
				want := []int{2}
				if g.IntN(2) == 0 {
					q.Partitions, want = q.Partitions[:1], []int{0, 2}
				}
				if g.IntN(2) == 0 {
					q.Vector = []float32{0, 1}
				}
				hits, _, err := ix.Search(t.Context(), q)
				if err != nil {
					t.Error(err)
				}
				seen := 0
				for _, h := range hits {
					if h.Row <= 2 {
						seen++
					}
				}
				if !slices.Contains(want, seen) {
					t.Errorf("saw %d of the pair, want one of %v", seen, want)
				}
				ix.Len()
				ix.Bytes()
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
	ix.verify(t)
}

// FuzzIndex lets the fuzzer choose the order of operations. The oracle must always agree.
func FuzzIndex(f *testing.F) {
	f.Add(uint64(1), []byte("pppqdpqddddqpq"))
	f.Add(uint64(2), []byte("ppppppppddddddqqrpq"))
	f.Fuzz(func(t *testing.T, seed uint64, ops []byte) {
		g := newGenerator(seed)
		ix := New()
		o := &oracle{memories: map[int64]Memory{}}
		for _, op := range ops[:min(len(ops), 200)] {
			switch row := int64(op) % 16; op % 8 {
			case 0, 1, 2:
				m := g.memory(16)
				ix.Put(m)
				o.put(m)
			case 3, 4:
				ix.Delete(row)
				delete(o.memories, row)
			case 5:
				if op > 240 {
					ix.Reset()
					clear(o.memories)
				}
			default:
				o.compare(t, ix, g.query(), 0.3)
			}
			ix.verify(t)
		}
	})
}
