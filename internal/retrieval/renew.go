package retrieval

import (
	"context"
	"errors"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
)

// segmentRow is a row of the table segment, without its data. A segment is never changed: another one replaces it.
type segmentRow struct {
	id, first, last int64
	memories        int
}

func segmentRows(tx db.Tx, partition int64) (list []segmentRow, err error) {
	err = tx.Each(func(row db.Rows) error {
		var s segmentRow
		err := row.Scan(&s.id, &s.memories, &s.first, &s.last)
		list = append(list, s)
		return err
	}, `SELECT id, memories, first_row, last_row FROM segment WHERE partition_id = ? ORDER BY id`, partition)
	return list, err
}

// worthRenewing reports whether much of a partition's segments does not count.
func (c *Cache) worthRenewing(ctx context.Context, id int64) (worth bool, err error) {
	err = c.DB.Read(ctx, func(tx db.Tx) error {
		return tx.QueryRow(`SELECT 8 * (SELECT count(*) FROM segment_stale WHERE partition_id = ?1)
			>= CASE WHEN s.memories >= 8 * ?2 THEN s.memories ELSE 8 * ?2 END
			FROM segmented s WHERE s.partition_id = ?1`, id, c.SegmentAt).Scan(&worth)
	})
	if errors.Is(err, db.ErrNoRows) { // there are no segments
		err = nil
	}
	return worth, err
}

// EraseStale removes what no longer counts from all segments, so that nothing of erased memories is left in
// them.
func (c *Cache) EraseStale(ctx context.Context) error {
	var partitions []int64
	err := c.DB.Read(ctx, func(tx db.Tx) (err error) {
		partitions, err = db.Column[int64](tx, `SELECT DISTINCT partition_id FROM segment_stale ORDER BY partition_id`)
		return err
	})
	if err != nil || len(partitions) == 0 {
		return err
	}
	return c.persistAlone(ctx, true, func() error {
		for _, id := range partitions {
			if err := c.repeat(ctx, id, func() error { return c.erase(ctx, id) }); err != nil {
				return err
			}
		}
		return nil
	})
}

// erase renews the segments of a partition. It deletes segments of another kind or profile.
func (c *Cache) erase(ctx context.Context, id int64) error {
	usable := false
	err := c.DB.Read(ctx, func(tx db.Tx) error {
		upto, err := c.segmentsOf(tx, id)
		usable = upto > 0
		return err
	})
	switch {
	case err != nil:
		return err
	case usable:
		return c.renew(ctx, id)
	}
	return c.forgetSegments(ctx, id)
}

// renew takes the memories that do not count out of a partition's segments, and makes new segments of the others.
func (c *Cache) renew(ctx context.Context, id int64) error {
	var stale map[int64]bool
	var segments []segmentRow
	err := c.DB.Read(ctx, func(tx db.Tx) (err error) {
		if stale, _, err = staleRows(tx, id); err == nil {
			segments, err = segmentRows(tx, id)
		}
		return err
	})
	if err != nil || len(stale) == 0 {
		return err
	}
	ids := make([]int64, 0, len(segments))
	for _, s := range segments {
		now, err := c.without(ctx, id, s, stale)
		if err != nil {
			return err
		}
		if now != 0 {
			ids = append(ids, now)
		}
	}
	slices.Sort(ids)
	for more := true; more; {
		if ids, more, err = c.putBack(ctx, id, ids, stale); err != nil {
			return err
		}
	}
	return nil
}

// without replaces a segment by one without some memories, and returns the id of that, the same one if it has none of
// them, or 0 if nothing is left.
func (c *Cache) without(ctx context.Context, partition int64, row segmentRow, stale map[int64]bool) (id int64,
	err error) {
	var s *index.Segment
	err = c.DB.Read(ctx, func(tx db.Tx) (err error) {
		s, err = readSegment(tx, row.id)
		return err
	})
	if errors.Is(err, db.ErrNoRows) {
		return 0, errChanged
	}
	has := func(row int64) bool { return stale[row] }
	if err != nil || !slices.ContainsFunc(s.Memories(), has) {
		return row.id, err
	}
	left, err := index.MergeSegments([]*index.Segment{s}, has)
	if err != nil {
		return 0, err
	}
	err = c.write(ctx, func(tx db.Tx) (err error) {
		id, err = replaceSegments(tx, partition, []int64{row.id}, left)
		return err
	})
	return id, err
}

// replaceSegments puts a segment in the place of others. It returns its id, 0 if it is empty.
func replaceSegments(tx db.Tx, partition int64, old []int64, e index.Encoded) (id int64, err error) {
	got, err := tx.Exec(`DELETE FROM segment WHERE id IN `+db.Integers, db.List(old))
	if err == nil && got.RowsAffected != int64(len(old)) {
		err = errChanged
	}
	if err != nil {
		return 0, err
	}
	return addSegment(tx, partition, e)
}

// putBack writes a segment of memories that were taken out of the segments of a partition. The partition's segments
// must now have the given ids. It forgets memories that are gone, and returns the ids of the segments afterwards, and
// whether there may be more to put back.
func (c *Cache) putBack(ctx context.Context, partition int64, ids []int64, taken map[int64]bool) ([]int64, bool,
	error) {
	var s collected
	err := c.DB.Read(ctx, func(tx db.Tx) error {
		_, living, err := staleRows(tx, partition)
		if err != nil {
			return err
		}
		living = slices.DeleteFunc(living, func(row int64) bool { return !taken[row] })
		s, err = c.collect(tx, living)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	more := len(s.rows) > 0
	var after []int64
	err = c.write(ctx, func(tx db.Tx) error {
		after = nil
		now, err := segmentRows(tx, partition)
		if err != nil {
			return err
		}
		if !slices.EqualFunc(now, ids, func(s segmentRow, id int64) bool { return s.id == id }) {
			return errChanged
		}
		if more {
			err = c.putBackSome(tx, partition, s)
		} else {
			_, err = tx.Exec(`DELETE FROM segment_stale WHERE partition_id = ?1 AND memory_id IN `+db.Integers2+` AND NOT EXISTS
				(SELECT 1 FROM memory m WHERE m.id = segment_stale.memory_id AND m.partition_id = ?1)`, partition, rowsOf(taken))
		}
		if err == nil {
			now, err = segmentRows(tx, partition)
		}
		for _, s := range now {
			after = append(after, s.id)
		}
		return err
	})
	for _, row := range s.rows {
		delete(taken, row) // it is in a segment again
	}
	return after, more, err
}

func (c *Cache) putBackSome(tx db.Tx, partition int64, s collected) error {
	changed, err := changedSince(tx, s.mark)
	if err != nil {
		return err
	}
	if _, err := addSegment(tx, partition, s.Encoded); err != nil {
		return err
	}
	count := make(map[int64]bool, len(s.rows))
	for _, row := range s.rows {
		count[row] = true
	}
	for _, row := range changed {
		delete(count, row)
	}
	_, err = tx.Exec(`DELETE FROM segment_stale WHERE partition_id = ?1 AND memory_id IN `+db.Integers2, partition,
		rowsOf(count))
	return err
}

// rowsOf returns rows as an argument.
func rowsOf(set map[int64]bool) string {
	rows := make([]int64, 0, len(set))
	for row := range set {
		rows = append(rows, row)
	}
	slices.Sort(rows)
	return db.List(rows)
}

// mergeSome merges small segments of a partition if there are several. It reports whether it did.
func (c *Cache) mergeSome(ctx context.Context, id int64) (merged bool, err error) {
	var ids []int64
	var small []*index.Segment
	var stale map[int64]bool
	err = c.DB.Read(ctx, func(tx db.Tx) error {
		all, err := segmentRows(tx, id)
		if err != nil {
			return err
		}
		sum := 0
		for _, s := range all {
			if s.memories < mostInSegment/4 && sum+s.memories <= mostInSegment {
				ids = append(ids, s.id)
				sum += s.memories
			}
		}
		if len(ids) < mergeSmall {
			return nil
		}
		for _, id := range ids {
			s, err := readSegment(tx, id)
			if err != nil {
				return err
			}
			small = append(small, s)
		}
		stale, _, err = staleRows(tx, id)
		return err
	})
	if err != nil || len(small) == 0 {
		return false, err
	}
	e, err := index.MergeSegments(small, func(row int64) bool { return stale[row] })
	if err != nil {
		return false, err
	}
	return true, c.write(ctx, func(tx db.Tx) error {
		_, err := replaceSegments(tx, id, ids, e)
		return err
	})
}
