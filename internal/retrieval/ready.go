package retrieval

import (
	"strings"
	"sync"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/embedding/static"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
	"github.com/souvenir-ai/souvenir/internal/turns"
)

// Ready holds the indexed data of memories that a write adds. It is made beside the write from what the write knows, so
// that the index need not read them from the database. The methods of a nil Ready do nothing.
//
// Ready has only what the index would read: the log of changes tells which of the memories have changed since the
// write.
type Ready struct {
	cache     *Cache
	given     chan Source
	end       sync.Once
	made      chan struct{} // closed when all that was given is made
	open      map[int64][]index.Memory
	pieces    []piece
	bytes     int64          // of segments
	forgotten map[int64]bool // memories that the write changed after it added them
	mark      db.Mark        // of the write; "": it has not ended
}

// piece is memories of a partition: a segment, or the memories themselves if they are few.
type piece struct {
	partition int64
	segment   *index.Segment
	memories  []index.Memory
}

// mostReady is how many memories a piece may have: how long searches wait for it. A piece with fewer than
// [Cache.SegmentAt] is no segment, since many small segments slow searches down.
const mostReady = 4096

// waiting is how many memories a write may be ahead.
const waiting = 512

// Prepare returns what makes the indexed data of the memories that a write adds. Discard it in any case.
func (c *Cache) Prepare() *Ready {
	if c.limit.Load() < 0 {
		return nil
	}
	r := &Ready{cache: c, given: make(chan Source, waiting), made: make(chan struct{}),
		open: map[int64][]index.Memory{}, forgotten: map[int64]bool{}}
	go r.make()
	return r
}

// Add adds a memory that the write has added.
func (r *Ready) Add(m kernel.Memory, turn *turns.Turn, passages []kernel.Passage) {
	if r == nil {
		return
	}
	r.given <- Source{Row: m.Row, ID: m.ID, Partition: m.Partition, Content: m.Content, Tags: strings.Join(m.Tags, "\n"),
		Turn: turn, Passages: passages}
}

// Forget notes that the write has changed a memory.
func (r *Ready) Forget(row int64) {
	if r != nil {
		r.forgotten[row] = true
	}
}

// Written notes that the write has made all of its changes.
func (r *Ready) Written(tx db.Tx) (err error) {
	if r != nil {
		r.mark, err = tx.Changes().Mark()
		r.End()
	}
	return err
}

// End ends the work, without more memories.
func (r *Ready) End() {
	if r != nil {
		r.end.Do(func() { close(r.given) })
	}
}

// Discard ends the work and waits for its end. After [Cache.Adopt] it does nothing.
func (r *Ready) Discard() {
	if r != nil {
		r.End()
		<-r.made
	}
}

func (r *Ready) make() {
	defer close(r.made)
	for s := range r.given {
		if _, held := r.cache.ix.PartitionSize(s.Partition); held == 0 || r.bytes > r.cache.room() {
			continue
		}
		m, err := s.memory()
		if err != nil {
			continue // reading it will fail, too
		}
		if r.open[s.Partition] = append(r.open[s.Partition], m); len(r.open[s.Partition]) == mostReady {
			r.close(s.Partition)
		}
	}
	for partition := range r.open {
		r.close(partition)
	}
}

// close makes a piece of the memories of a partition.
func (r *Ready) close(partition int64) {
	p := piece{partition: partition, memories: r.open[partition]}
	delete(r.open, partition)
	if len(p.memories) >= r.cache.SegmentAt {
		data := index.EncodeSegment(p.memories).Data
		s, err := index.DecodeSegment(data, static.Default().Rows())
		if err != nil {
			return
		}
		r.bytes += int64(len(data))
		p.segment, p.memories = s, nil
	}
	r.pieces = append(r.pieces, p)
}

// rows returns the memories of a piece.
func (p *piece) rows() []int64 {
	if p.segment != nil {
		return p.segment.Memories()
	}
	rows := make([]int64, len(p.memories))
	for i := range p.memories {
		rows[i] = p.memories[i].Row
	}
	return rows
}

// room returns how many bytes the index may still grow by.
func (c *Cache) room() int64 { return c.limit.Load() - c.ix.Bytes() }

// Adopt puts what a write made ready into the index, after its commit.
func (c *Cache) Adopt(r *Ready) {
	if r == nil {
		return
	}
	r.End()
	<-r.made
	for done := len(r.pieces) == 0 || r.mark == ""; !done; {
		err := c.DB.Read(c.background, func(tx db.Tx) (err error) {
			done, err = c.adopt(tx, r)
			return err
		})
		if err != nil {
			c.failed(err)
			return
		}
	}
}

// adopt reports false if it needs a newer snapshot.
func (c *Cache) adopt(tx db.Tx, r *Ready) (done bool, err error) {
	now, err := tx.Changes().Mark()
	if err != nil {
		return false, err
	}
	<-c.turn
	defer c.release()
	if err := c.catchUp(tx, now); err != nil || c.mark != now {
		return false, err
	}
	changed, _, complete, err := tx.Changes().Since(r.mark, mostChanges)
	if err != nil || !complete {
		return true, err
	}
	for _, row := range changed {
		r.forgotten[row] = true
	}
	for i := range r.pieces {
		c.adoptPiece(&r.pieces[i], r.forgotten)
	}
	return true, nil
}

// adoptPiece puts those memories of a piece into the index that have not changed since, and are stale.
func (c *Cache) adoptPiece(from *piece, changed map[int64]bool) {
	p := c.held[from.partition]
	if p == nil || p.lost || p.load != nil {
		return
	}
	skip := func(row int64) bool { return changed[row] || c.stale[row].part != p }
	if from.segment != nil {
		if c.ix.PutSegment(p.id, from.segment, skip) != nil {
			return
		}
	} else {
		put := from.memories[:0]
		for _, m := range from.memories {
			if !skip(m.Row) {
				put = append(put, m)
			}
		}
		c.ix.Put(put...)
	}
	for _, row := range from.rows() {
		if !skip(row) {
			c.fresh(row)
		}
	}
	c.shrink(p)
}
