package retrieval

import (
	"errors"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
)

// staleMemory is a memory that differs, in the database, from what the index has of it.
type staleMemory struct {
	part  *part
	since uint64 // the first round in which it became stale after it was last read
	round uint64 // the last one
}

// needed has the parts of the index that a search of some partitions uses.
type needed struct {
	held    []*part
	missing []int64 // partitions to list: they have passages, and the index does not know all of their memories
	fits    bool    // all of them together fit into the limit
	stale   int     // memories known to be stale
	fresh   int     // passages that are not, at least
	unknown int     // about how many passages of the missing ones are to be read from texts
}

// need looks up partitions; those without passages need nothing.
func (c *Cache) need(tx db.Tx, partitions []int64) (n needed, err error) {
	n.fits = true
	var absent []int64
	for _, id := range partitions {
		p := c.held[id]
		if p == nil || p.lost {
			absent = append(absent, id)
			continue
		}
		n.held = append(n.held, p)
		n.stale += p.stale
	}
	if len(absent) == 0 && n.stale == 0 {
		return n, nil
	}
	sum := 0.0
	for _, p := range n.held {
		bytes, passages := c.ix.PartitionSize(p.id)
		sum += float64(bytes)
		n.fresh += max(0, passages-p.stale)
	}
	if len(absent) == 0 {
		return n, nil
	}
	typical, unknown := c.typical(), map[int64]int{}
	err = tx.Each(func(row db.Rows) error {
		var id int64
		var passages int
		if err := row.Scan(&id, &passages); err != nil {
			return err
		}
		n.missing = append(n.missing, id)
		unknown[id] = passages
		each := typical
		if known := c.density[id]; known > 0 {
			each = known
		}
		sum += each * float64(passages)
		return nil
	}, `SELECT id, passages FROM partition WHERE passages > 0 AND id IN `+db.Integers+` ORDER BY id`, db.List(absent))
	n.fits = sum <= float64(c.limit.Load())*spare || len(n.missing) == 0
	if err == nil {
		n.unknown, err = c.unsegmented(tx, unknown)
	}
	return n, err
}

const (
	spare = 0.95 // the part of the limit that estimates may fill

	leastBytes = 1000 // what a passage is taken to need while too few are held to tell
)

// typical estimates the bytes of a passage.
func (c *Cache) typical() float64 {
	if _, passages := c.ix.Len(); passages >= 1000 {
		return float64(c.ix.Bytes()) / float64(passages)
	}
	return leastBytes
}

// few reports whether a search should fill the stale memories: they are few, or few compared with the fresh passages,
// so that searching the database would take longer.
func (c *Cache) few(n needed) bool { return n.stale <= max(c.AtOnce, n.fresh/8) }

// worthListing reports whether a search should load the missing partitions.
func (c *Cache) worthListing(n needed) bool { return n.unknown <= c.AtOnce }

// catchUp notes what has changed since the mark as stale. A snapshot that is older than the mark changes nothing.
func (c *Cache) catchUp(tx db.Tx, now db.Mark) error {
	if c.mark == now {
		return nil
	}
	if len(c.held) == 0 {
		c.mark = now
		return nil
	}
	rows, next, complete, err := tx.Changes().Since(c.mark, mostChanges)
	if err != nil {
		return err
	}
	if !complete {
		for _, p := range c.held {
			p.lost = true
			c.forget(p)
		}
		c.round++
		c.mark = now
		return nil
	}
	if len(rows) > 0 {
		if err := c.note(tx, rows); err != nil {
			return err
		}
	}
	c.mark = next
	return nil
}

// mostChanges limits the entries of the log that are read at once; the log of an engine is shorter.
const mostChanges = 1 << 20

// note marks memories as stale that are in partitions held, and removes all others.
func (c *Cache) note(tx db.Tx, rows []int64) error {
	places := make(map[int64]int64, len(rows))
	err := tx.Each(func(row db.Rows) error {
		var id, partition int64
		err := row.Scan(&id, &partition)
		places[id] = partition
		return err
	}, `SELECT id, partition_id FROM memory WHERE id IN `+db.Integers, db.List(rows))
	if err != nil {
		return err
	}
	c.round++
	c.noteLoading(rows)
	partitions := make([]int64, len(rows))
	for i, row := range rows {
		p := c.held[places[row]]
		if p == nil || p.lost {
			c.fresh(row)
			continue
		}
		partitions[i] = p.id
		c.markStale(row, p)
	}
	c.ix.Confine(rows, partitions)
	return nil
}

func (c *Cache) markStale(row int64, p *part) {
	s, known := c.stale[row]
	if known && s.part == p {
		s.round = c.round
		c.stale[row] = s
		return // it is in the queue, or being read
	}
	if known {
		s.part.stale--
	}
	c.markStaleIn(row, p, c.round)
}

// markStaleIn marks a memory that is not stale in the partition, as one that became so in a round.
func (c *Cache) markStaleIn(row int64, p *part, round uint64) {
	c.stale[row] = staleMemory{part: p, since: round, round: round}
	p.stale++
	p.queue = append(p.queue, row)
}

// fresh notes that a memory is not stale.
func (c *Cache) fresh(row int64) {
	if s, known := c.stale[row]; known {
		s.part.stale--
		delete(c.stale, row)
	}
}

// forget forgets which memories of a partition are stale.
func (c *Cache) forget(p *part) {
	for _, row := range slices.Concat(p.queue, p.reading) {
		if s, known := c.stale[row]; known && s.part == p {
			delete(c.stale, row)
		}
	}
	p.stale, p.queue = 0, nil
}

// list makes partitions held, with all of their memories loaded from segments, or stale in the round that it returns.
// The mark must be that of the transaction. Others may have the turn meanwhile.
func (c *Cache) list(tx db.Tx, partitions []int64) (round uint64, plan Plan, err error) {
	var loading []*part
	for _, id := range partitions {
		if p := c.held[id]; p == nil || p.lost && p.load == nil {
			if p, err = c.listOne(tx, id); err != nil {
				break
			}
			if p.load != nil {
				loading = append(loading, p)
			}
		}
	}
	round, plan = c.round, ByMemory
	for _, p := range loading {
		plan = BySegments
		err = errors.Join(err, c.loadSegments(tx, p, round))
	}
	return round, plan, err
}

func (c *Cache) listOne(tx db.Tx, id int64) (*part, error) {
	p := c.held[id]
	if p == nil {
		p = &part{id: id}
	}
	upto, err := c.segmentsOf(tx, id)
	if err != nil {
		return nil, err
	}
	var rows []int64
	if upto > 0 && p.filling == nil {
		rows, err = c.begin(tx, p, upto)
	} else {
		rows, err = streamed(tx, inPartition, id, 0)
	}
	if err != nil {
		return nil, err
	}
	c.held[id] = p
	p.lost = false
	c.touch(p)
	c.round++
	p.listed = c.round
	for _, row := range rows {
		c.markStale(row, p)
	}
	if p.load == nil {
		var gone []int64
		for _, row := range c.ix.Rows(id) {
			if _, there := c.stale[row]; !there {
				gone = append(gone, row)
			}
		}
		c.ix.Delete(gone...)
	}
	return p, nil
}

// hasStale reports whether a partition has memories that were stale in a round, those included that are being read.
func (c *Cache) hasStale(p *part, round uint64) bool {
	stale := func(row int64) bool { return c.staleIn(row, p, round) }
	return slices.ContainsFunc(p.queue, stale) || slices.ContainsFunc(p.reading, stale)
}

func (c *Cache) staleIn(row int64, p *part, round uint64) bool {
	s, known := c.stale[row]
	return known && s.part == p && s.since <= round
}

// fillOrWait reads some memories of a partition, as the transaction sees them, into the index, or waits while another
// does. The transaction's changes must have been noted up to the round. Others have the turn meanwhile.
func (c *Cache) fillOrWait(tx db.Tx, p *part, round uint64) error {
	if p.filling != nil {
		return c.wait(tx, p)
	}
	rows := c.take(p, round)
	filled := make(chan struct{})
	p.filling, p.reading = filled, rows
	p.pins++
	c.release()
	var memories []index.Memory
	read := false
	defer func() {
		<-c.turn
		p.pins--
		p.filling, p.reading = nil, nil
		close(filled)
		if !read {
			p.queue = append(rows, p.queue...)
			return
		}
		c.apply(p, rows, memories, round)
	}()
	memories, err := entries(tx, c.Profile, rows)
	read = err == nil
	return err
}

// take removes some memories that are stale in a round from a partition's queue.
func (c *Cache) take(p *part, round uint64) (rows []int64) {
	kept := p.queue[:0]
	for i, row := range p.queue {
		if len(rows) == kernel.BatchRows {
			if len(kept) == 0 { // as while a partition is loaded: nothing has to move
				p.queue = p.queue[i:]
				return rows
			}
			kept = append(kept, p.queue[i:]...)
			break
		}
		if c.staleIn(row, p, round) {
			rows = append(rows, row)
		} else if s, known := c.stale[row]; known && s.part == p {
			kept = append(kept, row)
		}
	}
	p.queue = kept
	return rows
}

// apply puts memories, read in a transaction whose changes were noted up to a round, into the index.
func (c *Cache) apply(p *part, rows []int64, memories []index.Memory, round uint64) {
	read := make(map[int64]bool, len(memories))
	memories = slices.DeleteFunc(memories, func(m index.Memory) bool {
		read[m.Row] = true
		return !c.staleIn(m.Row, p, round) || m.Partition != p.id
	})
	var gone []int64
	for _, row := range rows {
		if !c.staleIn(row, p, round) {
			continue // another has read it since, or it is elsewhere now
		}
		if !read[row] {
			gone = append(gone, row)
		}
		s := c.stale[row]
		if s.round <= round {
			c.fresh(row)
			continue
		}
		s.since = round + 1 // it has changed again
		c.stale[row] = s
		p.queue = append(p.queue, row)
	}
	c.ix.Put(memories...)
	c.ix.Delete(gone...)
	c.shrink(p)
}

// shrink drops partitions until the index fits into its limit, the least recently searched first. The one that has just
// grown, if any, is dropped last.
func (c *Cache) shrink(grown *part) {
	for c.ix.Bytes() > c.limit.Load() {
		var oldest *part
		for _, p := range c.held {
			if p.pins == 0 && p != grown && (grown == nil || p.used < grown.used) && (oldest == nil || p.used < oldest.used) {
				oldest = p
			}
		}
		if oldest != nil {
			c.counted.evictions.Add(1)
			c.drop(oldest)
			continue
		}
		if grown != nil && grown.pins == 0 {
			bytes, passages := c.ix.PartitionSize(grown.id)
			c.density[grown.id] = float64(bytes) / float64(max(1, passages))
			c.log.Warn("a part of the search index exceeds its memory limit; searching it on disk", "limit",
				c.limit.Load(), "partition", grown.id, "bytes", bytes, "passages", passages)
			c.counted.evictions.Add(1)
			c.drop(grown)
		}
		return
	}
}

// drop removes a partition from memory.
func (c *Cache) drop(p *part) {
	c.forget(p)
	delete(c.held, p.id)
	delete(c.wanted, p.id)
	c.ix.Drop(p.id)
}
