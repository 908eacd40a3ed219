package retrieval

import (
	"context"
	"sync/atomic"
)

// counted counts what the cache has done since it was made.
type counted struct {
	memory, segments, database atomic.Uint64 // searches, by their plan
	evictions                  atomic.Uint64
}

// Counts are numbers about a cache: what it holds now, and what it has done since it was made.
type Counts struct {
	Bytes, Limit int64 // of the index; a negative limit: none
	Partitions   int   // held
	Stale        int   // memories held that are to be read again
	Wanted       int   // partitions to be loaded in the background

	InMemory, WithSegments, InDatabase uint64 // searches
	Evictions                          uint64 // partitions dropped to make room
}

// Behind reports whether searches go to the database, or will, because the index is not up to date.
func (n Counts) Behind() bool { return n.Wanted > 0 || n.Stale > AtOnce }

// Counts returns the cache's numbers.
func (c *Cache) Counts(ctx context.Context) (Counts, error) {
	n := Counts{Bytes: c.ix.Bytes(), Limit: c.limit.Load(), InMemory: c.counted.memory.Load(),
		WithSegments: c.counted.segments.Load(), InDatabase: c.counted.database.Load(),
		Evictions: c.counted.evictions.Load()}
	select {
	case <-c.turn:
		defer c.release()
	case <-ctx.Done():
		return n, ctx.Err()
	}
	n.Partitions, n.Stale, n.Wanted = len(c.held), len(c.stale), len(c.wanted)
	return n, nil
}

// count notes the plan of a search.
func (c *Cache) count(plan Plan) {
	switch plan {
	case ByMemory:
		c.counted.memory.Add(1)
	case BySegments:
		c.counted.segments.Add(1)
	default:
		c.counted.database.Add(1)
	}
}
