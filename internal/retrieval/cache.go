// Package retrieval executes queries: in an index in memory that it keeps in step with the database, or, without
// one, in the database itself.
package retrieval

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
	"github.com/souvenir-ai/souvenir/internal/sharedstate"
)

// Cache keeps partitions in memory, in an index in step with the database: the searched ones, and as many as its limit
// allows; the least recently searched ones go first.
//
// The log of changes records every change of a memory by any process. A search first reads the new entries in its own
// snapshot, so it never misses a write that was answered before it began. What changed in a partition is noted as
// stale; it is read from the database, and analysed, when that partition is searched, or in the background. In a
// partition that is not held yet, everything is stale. So loading, catching up with a bulk insert and catching up with
// one write are the same work, with a cost in proportion to the memories concerned.
type Cache struct {
	DB      db.DB
	Profile int64 // of the vectors in the index, besides callers' own
	// Others calls a function whenever other processes have written. Nil: the cache looks for that itself.
	Others func(wrote func())
	AtOnce int // the most stale memories that a search reads itself, unless far more of the searched partitions is held
	// SegmentAt is how many memories of a partition are worth a segment, whether or not Persist writes it.
	SegmentAt int
	Kind      string // of the segments that it reads and writes; a partition has those of one kind

	limit   atomic.Int64 // bytes; negative: no index
	lowered atomic.Bool  // the limit, since the index was last made to fit
	log     *slog.Logger
	ix      *index.Index

	turn  chan struct{} // holds one token: its holder may use what follows, and change the index
	mark  db.Mark       // everything that changed up to here is in the index, or stale
	held  map[int64]*part
	stale map[int64]staleMemory // by row
	round uint64                // counts the times that memories became stale
	noted map[db.Mark]uint64    // the round of marks that were newest some time ago
	clock uint64                // counts searches

	persisting chan struct{} // holds one token: its holder may use the lease
	lease      *sharedstate.Lease

	distrusted map[int64]bool // partitions whose segments could not be loaded

	counted counted

	density map[int64]float64 // bytes per passage of partitions that did not fit
	wanted  map[int64]uint64  // partitions to load in the background, with the clock of the search that wanted them
	loading bool              // a background load is running

	background context.Context
	cancel     context.CancelFunc
	done       sync.WaitGroup // of the load
	follower   sync.WaitGroup
	following  bool
	wrote      chan struct{} // capacity 1: several writes merge into one signal
}

// part is a partition that is in the index, at least in part.
type part struct {
	id      int64
	stale   int     // memories in Cache.stale
	queue   []int64 // their rows, and some that are no longer stale
	reading []int64 // of these, the ones that are being read, which are not in the queue
	lost    bool    // which of its memories have changed is not known
	filling chan struct{}
	listed  uint64       // the round in which all of its memories were stale
	load    *segmentLoad // its segments are being loaded; filling is set, too
	pins    int          // searches and loads that use it
	used    uint64       // Cache.clock at its last search
	at      time.Time    // of its last search
}

// The defaults of the fields of [Cache].
const (
	AtOnce    = 2_000
	SegmentAt = 512
)

// NewCache returns a cache whose index takes at most limit bytes; negative: no index. Set DB and Profile before
// its first use.
func NewCache(limit int64, log *slog.Logger) *Cache {
	c := &Cache{AtOnce: AtOnce, log: log, ix: index.New(), turn: make(chan struct{}, 1),
		held: map[int64]*part{}, stale: map[int64]staleMemory{}, density: map[int64]float64{},
		wanted: map[int64]uint64{}, distrusted: map[int64]bool{}, noted: map[db.Mark]uint64{}, SegmentAt: SegmentAt,
		Kind: SegmentKind(), wrote: make(chan struct{}, 1)}
	c.limit.Store(limit)
	c.turn <- struct{}{}
	c.persisting = make(chan struct{}, 1)
	c.persisting <- struct{}{}
	c.background, c.cancel = context.WithCancel(context.Background())
	return c
}

// SetLimit changes how many bytes the index takes at most. The next search makes it fit. It turns the index neither on
// nor off: if the old or the new limit is negative, nothing changes.
func (c *Cache) SetLimit(limit int64) {
	before := c.limit.Load()
	if before == limit || before < 0 || limit < 0 {
		return
	}
	c.limit.Store(limit)
	if limit < before {
		c.lowered.Store(true)
	}
}

// State is how searches are executed now.
type State string

// The values of [State].
const (
	InMemory   State = "memory"
	Loading    State = "loading"
	InDatabase State = "disk"
)

// State returns how searches of some partitions are executed now.
func (c *Cache) State(tx db.Tx, partitions []int64) (State, error) {
	if c.limit.Load() < 0 {
		return InDatabase, nil
	}
	<-c.turn
	defer c.release()
	n, err := c.need(tx, partitions)
	switch {
	case err != nil:
		return "", err
	case !n.fits:
		return InDatabase, nil
	case len(n.missing) > 0 || !c.few(n) || loading(n.held):
		return Loading, nil
	}
	return InMemory, nil
}

// Held returns the partitions that are in the index, at least in part, ascending.
func (c *Cache) Held() []int64 {
	<-c.turn
	defer c.release()
	return slices.Sorted(maps.Keys(c.held))
}

// Bytes estimates the memory of the index.
func (c *Cache) Bytes() int64 { return c.ix.Bytes() }

// release gives the turn to the next.
func (c *Cache) release() { c.turn <- struct{}{} }

// Use runs a search of some partitions in an index that is at least as new as the transaction's snapshot. If not all of
// the partitions are in memory, so that the search has to use the database, it returns "" and does not run it. Call
// [Cache.LoadIfDue] after it.
func (c *Cache) Use(tx db.Tx, partitions []int64, search func(*index.Index) error) (Plan, error) {
	if c.limit.Load() < 0 || tx.Writable() { // what a transaction writes may be undone, and others may not find it
		c.count("")
		return "", nil
	}
	parts, plan, err := c.prepare(tx, partitions)
	if err == nil {
		c.count(plan)
	}
	if err != nil || plan == "" {
		return "", err
	}
	defer c.unpin(parts)
	return plan, search(c.ix)
}

// prepare brings partitions up to date in the index, and pins them. It returns "" if a search should not do that.
func (c *Cache) prepare(tx db.Tx, partitions []int64) (parts []*part, plan Plan, err error) {
	now, err := tx.Changes().Mark()
	if err != nil {
		return nil, "", err
	}
	select {
	case <-c.turn:
		defer c.release()
	case <-tx.Context().Done():
		return nil, "", tx.Context().Err()
	}
	if err := c.catchUp(tx, now); err != nil {
		return nil, "", err
	}
	if c.lowered.Swap(false) {
		c.shrink(nil)
	}
	if c.mark == now {
		c.noteMark()
	}
	c.clock++
	n, err := c.need(tx, partitions)
	if err != nil || !n.fits {
		return nil, "", err
	}
	plan, ready := ByMemory, false
	for _, p := range n.held {
		p.used = c.clock // so that none of them makes room for another
	}
	if c.mark != now { // others have seen newer changes than this snapshot, which cannot fill the gap
		ready, err = c.fillOlder(tx, now, n, partitions)
	} else if ready = c.worthListing(n); ready {
		round := c.round
		if len(n.missing) > 0 {
			round, plan, err = c.list(tx, n.missing)
		}
		if err == nil {
			ready, err = c.fillAll(tx, round, partitions)
		}
	}
	if err != nil {
		return nil, "", err
	}
	if !ready {
		for _, id := range partitions {
			if p := c.held[id]; p != nil && (p.lost || p.stale > 0) || slices.Contains(n.missing, id) {
				c.wanted[id] = c.clock
			}
		}
		return nil, "", nil
	}
	for _, id := range partitions {
		if p := c.held[id]; p != nil {
			p.pins++
			p.used, p.at = c.clock, time.Now()
			parts = append(parts, p)
		}
	}
	c.follow()
	return parts, plan, nil
}

// loading reports whether segments of some partitions are being loaded.
func loading(parts []*part) bool {
	return slices.ContainsFunc(parts, func(p *part) bool { return p.load != nil })
}

// noteMark remembers that what changed up to the mark is in the index, or stale.
func (c *Cache) noteMark() {
	if len(c.noted) >= mostNoted {
		clear(c.noted)
	}
	c.noted[c.mark] = c.round
}

// mostNoted is how many marks are remembered: of more transactions than run at once.
const mostNoted = 1 << 10

// fillOlder does the same as fillAll for a transaction that does not see all changes that were noted. Memories that
// became stale after its mark was the newest do not concern it.
func (c *Cache) fillOlder(tx db.Tx, mark db.Mark, n needed, partitions []int64) (done bool, err error) {
	if len(n.missing) > 0 {
		return false, nil
	}
	if n.stale == 0 && !loading(n.held) {
		return true, nil
	}
	round, known := c.noted[mark]
	if !known || slices.ContainsFunc(n.held, func(p *part) bool { return p.listed > round }) {
		return false, nil
	}
	return c.fillAll(tx, round, partitions)
}

// fillAll fills what was stale in some partitions when round was the newest. It reports false if it is too much for a
// search.
func (c *Cache) fillAll(tx db.Tx, round uint64, partitions []int64) (done bool, err error) {
	for {
		n, err := c.need(tx, partitions)
		if err != nil || !n.fits || len(n.missing) > 0 || !c.few(n) {
			return false, err
		}
		var p *part
		for _, other := range n.held {
			if other.load != nil || other.stale > 0 && c.hasStale(other, round) {
				p = other
				break
			}
		}
		if p == nil {
			return true, nil
		}
		if err := c.fillOrWait(tx, p, round); err != nil {
			return false, err
		}
	}
}

// unpin ends the use of partitions.
func (c *Cache) unpin(parts []*part) {
	<-c.turn
	defer c.release()
	for _, p := range parts {
		p.pins--
	}
	c.shrink(nil)
}
