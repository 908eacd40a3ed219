package index

import (
	"cmp"
	"errors"
	"math"
)

// Query asks for the best memories of some partitions. Its functions run while the index is locked
// for reading: they must not call methods of the index.
type Query struct {
	// Vector is compared with the stored vectors of its size. It has unit length; nil, or holding
	// NaN or an infinity = rank by words alone.
	Vector []float32

	// Terms are the distinct analysed words of the query.
	Terms []Term

	// Partitions are searched; no other partition has any influence on hits, scores or statistics.
	// Unknown ones are empty.
	Partitions []int64

	// Compare selects the partitions in which Vector is compared; nil = all. Vectors of the same size may be of
	// different models and cannot be compared then.
	Compare func(partition int64) bool

	// Keep selects by row the memories to rank; nil = all. Rejected ones still count in all statistics, so that a
	// memory's score does not depend on the filter. It is called once per candidate memory.
	Keep func(row int64) bool

	// Rows has all memories that Keep accepts, and perhaps others; nil = not known. If it has few, a search looks at
	// these alone, which is cheaper and finds the same.
	Rows *RowSet

	// Exactly says that Keep accepts all of Rows. The index then remembers for a while which of its passages are theirs.
	Exactly bool

	BM25 BM25

	// Fuse is called once, when the statistics of this query are known, and returns the function that scores one
	// passage. A score of NaN ranks last. It must not be nil. The function must not fall when BM25 or Cosine
	// rises: passages are skipped if even the highest possible cosine would not be enough.
	Fuse func(Stats) func(Parts) float32

	// Rerank ranks the best memories once more; nil = the order of Fuse is the final one.
	Rerank *Rerank

	// Limit is the most memories to return; 0 or less = none, only their number is counted.
	Limit int
}

// Term is one word of a query.
type Term struct {
	Text   string
	Weight float32 // factor of the term's part of BM25; a term whose weight is not above 0 and finite is ignored
	Exact  Exactness
	Chunk  int // the same number for all parts of an address or a path; the rarest part is exact; 0 = no part
}

// Stats describes all living passages of the searched partitions, in relation to one query.
type Stats struct {
	Passages int

	Matches int     // passages that contain a term of the query
	MaxBM25 float32 // the highest BM25 among them; 0 without matches
	// upper bound for any passage: the sum of weight * idf * (K1 + 1) over all terms, even if no passage contains
	// them, and the bonus of exact ones
	IdealBM25 float32

	// what exact terms add to the BM25 of a passage, even if it contains only one of them; 0 = none are exact
	Exact float32
}

// Parts are the components of a passage's score.
type Parts struct {
	Cosine    float32 // inner product with the query vector; 0 when HasVector is false
	HasVector bool    // whether the passage has a vector of the size of the query's
	BM25      float32 // 0 when the passage contains no term of the query
}

// Hit is a found memory, with its best passage.
type Hit struct {
	Row     int64
	ID      string
	Passage int64
	Span    Span // of the passage
	Parts
	Score      float32
	Confidence float32 // set by Query.Rerank: how likely it is that the memory is about what is searched for, 0 to 1
}

// CompareHits orders hits from best to worst: by score, then by id. The row decides last, so that the order is
// total even with duplicate ids. Scores must not be NaN.
func CompareHits(a, b *Hit) int {
	if c := cmp.Compare(b.Score, a.Score); c != 0 {
		return c
	}
	if c := cmp.Compare(a.ID, b.ID); c != 0 {
		return c
	}
	return cmp.Compare(a.Row, b.Row)
}

func (q *Query) check() error {
	if q.Fuse == nil {
		return errors.New("index: query without a Fuse function")
	}
	if q.Rerank != nil && q.Rerank.Rank == nil {
		return errors.New("index: query that ranks again without a Rank function")
	}
	if q.Rows != nil && q.Keep == nil {
		return errors.New("index: query with Rows without a Keep function")
	}
	if q.Exactly && q.Rows == nil {
		return errors.New("index: query for exactly the Rows without Rows")
	}
	return q.BM25.check()
}

func (t Term) usable() bool { return t.Weight > 0 && t.Weight <= math.MaxFloat32 }
