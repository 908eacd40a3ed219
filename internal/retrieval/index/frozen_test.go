package index

import (
	"fmt"
	"slices"
	"testing"
)

// TestFrozenPostingsAreFound freezes words with long common beginnings, and looks up each of them, and others.
func TestFrozenPostingsAreFound(t *testing.T) {
	g := newGenerator(31)
	word := func() string {
		text := make([]byte, 1+g.IntN(70))
		for i := range text {
			text[i] = "aaaab\x00\xff"[g.IntN(5+2*g.IntN(2))]
		}
		return string(text)
	}
	for range 40 {
		r, want := recent{settled: 7}, map[string][]posting{}
		last := ""
		for slot := uint32(7); slot < 7+uint32(g.IntN(200)); slot++ {
			for range g.IntN(12) {
				if last = word(); g.IntN(3) == 0 { // or nearly the same as another
					last = last[:g.IntN(len(last))] + "b"
				}
				for range 1 + g.IntN(2) {
					r.count(last, slot)
				}
			}
		}
		for term := range r.lists {
			want[term] = r.list(term)
		}
		f := freeze(7, 300, nil, &r, nil)
		for term, postings := range want {
			list, found := f.find(term)
			if got := appendList(nil, list); !found || !slices.Equal(got, postings) || list.passages != len(postings) {
				t.Fatalf("%q: found %v with %v of %d, want %v", term, found, got, list.passages, postings)
			}
		}
		for range 300 {
			if term := word(); want[term] == nil {
				if list, found := f.find(term); found {
					t.Fatalf("%q: found %v, want nothing", term, appendList(nil, list))
				}
			}
		}
		if _, found := f.find(""); found {
			t.Fatal("found the empty word, want nothing")
		}
	}
}

// BenchmarkFind finds the postings of a word in 125 segments, as a partition of a million memories has.
func BenchmarkFind(b *testing.B) {
	memories := benchMemories(100_000)
	ix := New()
	for part := range slices.Chunk(memories, 800) {
		for i := range part {
			part[i].Entries[0].Vector = nil
		}
		s, err := DecodeSegment(EncodeSegment(part).Data, 0)
		if err == nil {
			err = ix.PutSegment(1, s, nil)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	p := ix.partitions[1]
	word := 0
	for b.Loop() {
		word = (word*31 + 7) % 20_000
		p.find(fmt.Sprint("word", word))
	}
	b.ReportMetric(float64(len(p.frozen)), "segments")
}
