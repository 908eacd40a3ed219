package lru_test

import (
	"testing"

	"github.com/souvenir-ai/souvenir/internal/lru"
)

func TestTheLeastRecentlyUsedAreDropped(t *testing.T) {
	const most = 1000
	var c lru.Cache
	is := func(when string, values, bytes int, kept map[int]bool) {
		t.Helper()
		if gotValues, gotBytes := c.Size(); gotValues != values || gotBytes != bytes {
			t.Errorf("%s: got %d values of %d bytes, want %d of %d", when, gotValues, gotBytes, values, bytes)
		}
		for key, want := range kept {
			if _, got := lru.Get[string](&c, key); got != want {
				t.Errorf("%s: is %d kept: got %t, want %t", when, key, got, want)
			}
		}
	}
	for n := range 11 {
		c.Put(n, "x", 100, most)
	}
	is("one more than there is room for", 10, most, map[int]bool{0: false, 1: true}) // 1 was used last now
	c.Put(0, "again", 100, most)
	is("one more", 10, most, map[int]bool{2: false, 0: true})
	c.Put(20, "large", 700, most)
	is("a large one", 4, most, map[int]bool{3: false, 9: false, 10: true, 1: true, 0: true, 20: true})
	c.Put(20, "small", 100, most)
	if got, _ := lru.Get[string](&c, 20); got != "small" {
		t.Errorf("a key that is stored again: got %q, want the new value", got)
	}
	is("a smaller one in its place", 4, 400, nil)
	c.Put(30, "larger than the limit", most+1, most)
	is("one beyond the limit", 0, 0, map[int]bool{30: false, 0: false})
}

// Dropping the oldest value must not take longer with more values.
func BenchmarkDropTheOldest(b *testing.B) {
	const most = 80_000
	var c lru.Cache
	for n := range most {
		c.Put(n, "x", 1, most)
	}
	n := most
	for b.Loop() {
		n++
		c.Put(n, "x", 1, most)
	}
}
