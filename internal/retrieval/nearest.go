package retrieval

import (
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/vectorform"
)

const (
	mostNearest  = 1000 // memories: a query that wants more compares all vectors
	leastNearest = 200  // passages that are asked for, so that few of the best are missed
)

// wanted is how many memories are ranked.
func (d *databaseSearch) wanted() int {
	if d.q.Rerank != nil && d.q.Limit > 0 {
		return max(d.q.Limit, d.q.Rerank.Depth)
	}
	return d.q.Limit
}

// nearest compares, of a partition, the nearest passages by the engine's index, and passages that share words. The best
// memories are among them: all others share no words, and are less near than as many memories as are wanted. It reports
// false, and compares none, if there is no index or it named too few memories to keep.
func (d *databaseSearch) nearest(partition int64, vector []byte, profiles []int64) (bool, error) {
	engine, able := d.tx.Vectors().(db.Nearer)
	if n := d.wanted(); !able || n < 1 || n > mostNearest {
		return false, nil
	}
	var matching []int64
	in := kernel.PassageRange(partition)
	for id := range d.words {
		if in.First <= id && id <= in.Last {
			matching = append(matching, id)
		}
	}
	nearest, besides, found, err := engine.Nearest(in, vector, profiles, max(2*d.wanted(), leastNearest), matching)
	if err != nil || !found {
		return false, err
	}
	kept := map[int64]bool{}
	for _, c := range nearest {
		if d.q.Keep == nil || d.q.Keep(c.Memory) {
			kept[c.Memory] = true
		}
	}
	if len(kept) < d.wanted() {
		return false, nil
	}
	for _, c := range slices.Concat(nearest, besides) {
		if err := d.compared(c); err != nil {
			return false, err
		}
	}
	d.near[partition] = true
	return true, nil
}

// total counts the memories that were found, including the ones that only the index of vectors has.
func (d *databaseSearch) total() (n int, err error) {
	var unknown []int64 // memories that share words, whose passages with these words have no vector
	for _, h := range d.hits {
		if !d.near[h.Passage>>kernel.PassageBits] {
			n++
		} else if !h.HasVector {
			unknown = append(unknown, h.Row)
		}
	}
	vector := vectorform.Exact(d.q.Vector)
	for p := range d.near {
		there, err := d.tx.Vectors().(db.Nearer).WithVectors(kernel.PassageRange(p), vector, d.q.Keep)
		if err != nil {
			return 0, err
		}
		n += there
	}
	if len(unknown) == 0 {
		return n, nil
	}
	var counted int
	err = d.tx.QueryRow(`SELECT count(DISTINCT memory_id) FROM passage WHERE memory_id IN `+db.Integers+
		` AND length(vector) IN (?, ?)`, db.List(unknown), len(vector),
		vectorform.ShortLength(len(d.q.Vector))).Scan(&counted)
	return n + len(unknown) - counted, err
}
