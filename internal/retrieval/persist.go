package retrieval

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fairqueue"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/sharedstate"
)

const (
	// mostInSegment limits the memories of a segment: how long others wait while it is written.
	mostInSegment = 8192
	// mostPassages limits the passages of a segment, but for those of its last memory.
	mostPassages = 16384
	// mergeSmall is how many segments with less than a quarter of mostInSegment a partition may have.
	mergeSmall = 4
)

// errChanged says that another process has changed the segments meanwhile, or that what has changed is not known.
var errChanged = fmt.Errorf("%w: the stored search index has changed meanwhile", db.ErrBusy)

// Persist brings segments up to date where much is not in them, in transactions of its own. One process on a database
// does that at a time; with wait it waits for its turn, otherwise it leaves the work to the other. The error is
// db.ErrBusy if others changed the segments each time that it tried.
func (c *Cache) Persist(ctx context.Context, wait bool) error {
	if !c.persists() {
		return nil
	}
	due, err := c.segmentsDue(ctx)
	if err != nil || len(due) == 0 {
		return err
	}
	return c.persistAlone(ctx, wait, func() error {
		for _, id := range due {
			if err := c.repeat(ctx, id, func() error { return c.persistPartition(ctx, id) }); err != nil {
				return err
			}
		}
		return nil
	})
}

const (
	// leaseLife is how long others wait for a process that ended while it wrote segments.
	leaseLife = 30 * time.Second
	// leaseWait is how often a process that waits for its turn looks.
	leaseWait = 100 * time.Millisecond
)

// persistAlone runs fn while no other process, and no other goroutine of this one, writes segments. Without wait it
// does nothing if another process does.
func (c *Cache) persistAlone(ctx context.Context, wait bool, fn func() error) error {
	// One that writes must never wait for a place that others hold, who wait here for it.
	defer fairqueue.Pause(ctx)()
	select {
	case <-c.persisting:
		defer func() { c.persisting <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if c.lease == nil {
		c.lease = sharedstate.NewLease(c.DB, "segments", leaseLife)
	}
	for {
		ran, err := c.lease.While(ctx, fn)
		if ran || err != nil || !wait {
			return err
		}
		select {
		case <-time.After(leaseWait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// repeat runs fn, which writes segments of a partition, a few times if they have changed meanwhile. Segments that
// cannot be read are deleted.
func (c *Cache) repeat(ctx context.Context, id int64, fn func() error) (err error) {
	for range 5 {
		if err = fn(); !errors.Is(err, errChanged) {
			break
		}
	}
	if errors.Is(err, index.ErrSegment) {
		err = c.forgetSegments(ctx, id)
	}
	return err
}

func (c *Cache) persists() bool {
	return c.limit.Load() >= 0 && c.Profile != 0 && index.KeepsCodes() && !c.DB.ReadOnly() &&
		!c.DB.Upkeep().InMemory()
}

// segmentsDue returns the partitions with many memories outside segments, and the ones whose segments are of an
// older kind or another profile. While the store changes to another model there are none: segments would soon be out of
// date. Newer programs on the same database keep theirs.
func (c *Cache) segmentsDue(ctx context.Context) (due []int64, err error) {
	<-c.turn
	for id := range c.distrusted {
		due = append(due, id)
	}
	c.release()
	err = c.DB.Read(ctx, func(tx db.Tx) error {
		ready, err := kernel.Setting(tx, kernel.SettingReady)
		if err != nil || ready != c.Profile {
			due = nil
			return err
		}
		more, err := db.Column[int64](tx, `SELECT p.id FROM partition p LEFT JOIN segmented s ON s.partition_id = p.id
			WHERE p.memories >= ?1 AND (s.partition_id IS NULL OR s.kind < ?3 OR s.kind = ?3 AND (s.profile_id <> ?2
				OR (SELECT max(id) FROM memory) - s.upto >= ?1
					AND (SELECT count(*) FROM memory m WHERE m.partition_id = p.id AND m.id > s.upto) >= ?1
				OR 8 * (SELECT count(*) FROM segment_stale t WHERE t.partition_id = p.id)
					>= CASE WHEN s.memories >= 8 * ?1 THEN s.memories ELSE 8 * ?1 END))
			ORDER BY p.id`, c.SegmentAt, c.Profile, c.Kind)
		due = append(due, more...)
		return err
	})
	return due, err
}

func (c *Cache) persistPartition(ctx context.Context, id int64) error {
	if err := c.dropUseless(ctx, id); err != nil {
		return err
	}
	for more := true; more; {
		var err error
		if more, err = c.persistNew(ctx, id); err != nil {
			return err
		}
	}
	renew, err := c.worthRenewing(ctx, id)
	if err == nil && renew {
		err = c.renew(ctx, id)
	}
	for more := err == nil; more && err == nil; {
		more, err = c.mergeSome(ctx, id)
	}
	return err
}

// write runs a short write of background work.
func (c *Cache) write(ctx context.Context, fn func(db.Tx) error) error {
	return c.DB.Write(db.Yielding(ctx), fn)
}

// dropUseless deletes the segments of a partition that are of an older kind or another profile, or could not be loaded.
func (c *Cache) dropUseless(ctx context.Context, id int64) error {
	<-c.turn
	useless := c.distrusted[id]
	c.release()
	err := c.DB.Read(ctx, func(tx db.Tx) error {
		var other bool
		err := tx.QueryRow(`SELECT EXISTS (SELECT 1 FROM segmented WHERE partition_id = ?1
			AND (kind < ?3 OR kind = ?3 AND profile_id <> ?2))`, id, c.Profile, c.Kind).Scan(&other)
		useless = useless || other
		return err
	})
	if err != nil || !useless {
		return err
	}
	if err := c.forgetSegments(ctx, id); err != nil {
		return err
	}
	<-c.turn
	delete(c.distrusted, id)
	c.release()
	return nil
}

// forgetSegments deletes the segments of a partition, one by one.
func (c *Cache) forgetSegments(ctx context.Context, id int64) error {
	for more := true; more; {
		err := c.write(ctx, func(tx db.Tx) error {
			// From the first on, none of them counts.
			if _, err := tx.Exec(`UPDATE segmented SET kind = '' WHERE partition_id = ? AND kind <> ''`, id); err != nil {
				return err
			}
			got, err := tx.Exec(`DELETE FROM segment WHERE id = (SELECT min(id) FROM segment WHERE partition_id = ?)`, id)
			if more = got.RowsAffected > 0; err == nil && !more {
				_, err = tx.Exec(`DELETE FROM segmented WHERE partition_id = ?`, id)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// collected is a segment made of texts.
type collected struct {
	index.Encoded
	rows []int64 // that are in it, or were to be and have no passages
	mark db.Mark // of the snapshot
}

// collect makes a segment of the first of some memories, ascending, as many as a segment may have.
func (c *Cache) collect(tx db.Tx, rows []int64) (s collected, err error) {
	if s.mark, err = tx.Changes().Mark(); err != nil {
		return s, err
	}
	var memories []index.Memory
	for passages := 0; len(rows) > 0 && len(s.rows) < mostInSegment && passages < mostPassages; {
		batch := rows[:min(len(rows), kernel.BatchRows)]
		rows = rows[len(batch):]
		read, err := entries(tx, c.Profile, batch)
		if err != nil {
			return s, err
		}
		for i := range read {
			passages += len(read[i].Entries)
		}
		memories = append(memories, read...)
		s.rows = append(s.rows, batch...)
	}
	s.Encoded = index.EncodeSegment(memories)
	return s, nil
}

// persistNew writes a segment of the first memories of a partition that are after those in segments. It reports whether
// there are enough for another one.
func (c *Cache) persistNew(ctx context.Context, id int64) (more bool, err error) {
	var before int64
	var s collected
	err = c.DB.Read(ctx, func(tx db.Tx) error {
		if before, err = c.segmentsOf(tx, id); err != nil {
			return err
		}
		rows, err := streamed(tx, inPartition+` LIMIT ?`, id, before, mostInSegment+kernel.BatchRows+c.SegmentAt)
		if err != nil || len(rows) < c.SegmentAt {
			return err
		}
		s, err = c.collect(tx, rows)
		more = len(rows) >= len(s.rows)+c.SegmentAt
		return err
	})
	if err != nil || len(s.rows) == 0 {
		return false, err
	}
	upto := s.rows[len(s.rows)-1]
	return more, c.write(ctx, func(tx db.Tx) error {
		if err := c.moveUpto(tx, id, before, upto); err != nil {
			return err
		}
		if _, err := addSegment(tx, id, s.Encoded); err != nil {
			return err
		}
		changed, err := changedSince(tx, s.mark)
		if err != nil {
			return err
		}
		return staleAfter(tx, id, before, upto, changed, s.rows)
	})
}

// moveUpto notes that the memories of a partition up to a row are in segments, if that was so for another row, 0 =
// there were none of use. If that is no longer so, or if the partition is gone, the error is errChanged.
func (c *Cache) moveUpto(tx db.Tx, id, before, upto int64) error {
	var got db.Result
	var err error
	if before == 0 {
		got, err = tx.Exec(`INSERT INTO segmented (partition_id, profile_id, kind, upto, memories)
			SELECT id, ?, ?, ?, 0 FROM partition WHERE id = ? ON CONFLICT (partition_id) DO NOTHING`,
			c.Profile, c.Kind, upto, id)
	} else {
		got, err = tx.Exec(`UPDATE segmented SET upto = ? WHERE partition_id = ? AND profile_id = ? AND kind = ?
			AND upto = ?`, upto, id, c.Profile, c.Kind, before)
	}
	if err == nil && got.RowsAffected == 0 {
		err = errChanged
	}
	return err
}

// changedSince returns the memories that changed between a mark and the transaction. This is right because the
// transaction and each write of a memory are serializable: no other transaction changes meanwhile what a memory's
// triggers read from segmented.
func changedSince(tx db.Tx, mark db.Mark) ([]int64, error) {
	changed, _, complete, err := tx.Changes().Since(mark, mostChanges)
	if err == nil && !complete {
		err = errChanged
	}
	return changed, err
}

// staleAfter notes which of the rows of a new segment have changed since they were read, and which were added among
// them.
func staleAfter(tx db.Tx, id, before, upto int64, changed, rows []int64) error {
	if len(changed) == 0 {
		return nil
	}
	in := make(map[int64]bool, len(rows))
	for _, row := range rows {
		in[row] = true
	}
	came, err := streamed(tx, `SELECT id FROM memory WHERE partition_id = ? AND id > ? AND id <= ? AND id IN `+db.Integers,
		id, before, upto, db.List(changed))
	if err != nil {
		return err
	}
	for _, row := range changed {
		if in[row] {
			came = append(came, row)
		}
	}
	for _, row := range came {
		_, err := tx.Exec(`INSERT INTO segment_stale (partition_id, memory_id) VALUES (?, ?) ON CONFLICT DO NOTHING`, id, row)
		if err != nil {
			return err
		}
	}
	return nil
}

// addSegment returns the id of the segment, 0 if it is empty and so not stored.
func addSegment(tx db.Tx, partition int64, e index.Encoded) (id int64, err error) {
	if e.Memories > 0 {
		data, err := kernel.SealIn(tx, partition, sealedrows.SegmentData, e.Data)
		if err != nil {
			return 0, err
		}
		if id, err = db.Insert(tx, `INSERT INTO segment (partition_id, memories, first_row, last_row, data)
			VALUES (?, ?, ?, ?, ?) RETURNING id`, partition, e.Memories, e.First, e.Last, data); err != nil {
			return 0, err
		}
	}
	return id, countSegments(tx, partition)
}

func countSegments(tx db.Tx, partition int64) error {
	_, err := tx.Exec(`UPDATE segmented SET memories = (SELECT coalesce(sum(memories), 0) FROM segment
		WHERE segment.partition_id = segmented.partition_id) WHERE partition_id = ?`, partition)
	return err
}
