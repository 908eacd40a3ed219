package retrieval

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/embedding/static"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
	"github.com/souvenir-ai/souvenir/internal/retrieval/similarity"
	"github.com/souvenir-ai/souvenir/internal/sealing/keyring"
	"github.com/souvenir-ai/souvenir/internal/text"
)

// A partition with many memories has segments in the database, with what the index holds of the memories up to a row.
// The table segment_stale has the ones of these that have changed since; triggers add to it. So a snapshot that has the
// segments also knows which of their memories count. Only the stale memories, and the memories after that row, are read
// from texts.

// SegmentKind names all versions that segments depend on. A later version has a kind that is ordered after this one.
func SegmentKind() string {
	return fmt.Sprintf("%03d %03d %03d %03d %s", index.SegmentVersion, text.SplitterVersion, text.TermsVersion,
		similarity.SketchVersion, static.Default().Name())
}

// segmentLoad is a partition's segments while they are loaded. The holder of the turn may use it.
type segmentLoad struct {
	stale   map[int64]bool // rows that do not count, in the snapshot of the load
	changed map[int64]bool // rows that have changed since
	loaded  map[int64]bool // rows that came from segments; nil if the index held nothing of the partition before
}

func (l *segmentLoad) skip(row int64) bool { return l.stale[row] || l.changed[row] }

// segmentsOf returns the row up to which memories are in segments, 0 = there are no useful segments.
func (c *Cache) segmentsOf(tx db.Tx, partition int64) (upto int64, err error) {
	err = tx.QueryRow(`SELECT coalesce(max(upto), 0) FROM segmented WHERE partition_id = ? AND profile_id = ?
		AND kind = ?`, partition, c.Profile, c.Kind).Scan(&upto)
	return upto, err
}

// unsegmented counts what must be read from the texts of some partitions with the given passages: memories for
// partitions with segments, passages for others. If all passages together are few enough for a search, it does not look
// for segments.
func (c *Cache) unsegmented(tx db.Tx, passages map[int64]int) (sum int, err error) {
	for _, n := range passages {
		sum += n
	}
	if sum <= c.AtOnce {
		return sum, nil
	}
	segmented := map[int64]int64{}
	err = tx.Each(func(row db.Rows) error {
		var id, upto int64
		err := row.Scan(&id, &upto)
		segmented[id] = upto
		return err
	}, `SELECT partition_id, upto FROM segmented WHERE profile_id = ? AND kind = ? AND partition_id IN `+db.Integers,
		c.Profile, c.Kind, db.List(slices.Sorted(maps.Keys(passages))))
	if err != nil {
		return 0, err
	}
	for id, upto := range segmented {
		newer, err := after(tx, id, upto)
		if err != nil {
			return 0, err
		}
		var stale int
		err = tx.QueryRow(`SELECT count(*) FROM segment_stale WHERE partition_id = ?`, id).Scan(&stale)
		if err != nil {
			return 0, err
		}
		sum += len(newer) + stale - passages[id]
	}
	return sum, nil
}

// streamed returns the rows that a query selects; there may be many.
func streamed(tx db.Tx, query string, args ...any) (rows []int64, err error) {
	err = db.Stream(tx, func(r db.Rows) error {
		var row int64
		err := r.Scan(&row)
		rows = append(rows, row)
		return err
	}, query, args...)
	return rows, err
}

// inPartition selects the memories of a partition after a row.
const inPartition = `SELECT id FROM memory WHERE partition_id = ? AND id > ? ORDER BY id`

// after returns the memories of a partition after a row up to which they are in segments.
func after(tx db.Tx, partition, row int64) ([]int64, error) {
	var newer, memories int64 // newer: upper bound of the memories of all partitions after the row
	err := tx.QueryRow(`SELECT (SELECT coalesce(max(id), 0) FROM memory) - ?2, memories FROM partition WHERE id = ?1`,
		partition, row).Scan(&newer, &memories)
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if newer > memories/fewNewer {
		return streamed(tx, inPartition, partition, row)
	}
	var rows []int64
	err = db.Stream(tx, func(r db.Rows) error { // along the primary key, not along all of the partition
		var id, of int64
		err := r.Scan(&id, &of)
		if of == partition {
			rows = append(rows, id)
		}
		return err
	}, `SELECT id, partition_id FROM memory WHERE id > ? ORDER BY id`, row)
	return rows, err
}

// fewNewer is how many memories of a partition can be found in the time of looking at one by its row.
const fewNewer = 8

// staleRows returns the rows for which the segments of a partition do not count, and the ones of these in the
// partition.
func staleRows(tx db.Tx, partition int64) (all map[int64]bool, living []int64, err error) {
	all = map[int64]bool{}
	err = db.Stream(tx, func(row db.Rows) error {
		var memory int64
		var lives bool
		err := row.Scan(&memory, &lives)
		if all[memory] = true; lives {
			living = append(living, memory)
		}
		return err
	}, `SELECT s.memory_id, m.id IS NOT NULL FROM segment_stale s
		LEFT JOIN memory m ON m.id = s.memory_id AND m.partition_id = s.partition_id
		WHERE s.partition_id = ? ORDER BY s.memory_id`, partition)
	return all, living, err
}

// begin makes a partition with segments up to a row held, except for the memories in the segments. loadSegments
// follows.
func (c *Cache) begin(tx db.Tx, p *part, upto int64) (fromTexts []int64, err error) {
	newer, err := after(tx, p.id, upto)
	if err != nil {
		return nil, err
	}
	l := &segmentLoad{changed: map[int64]bool{}}
	if l.stale, fromTexts, err = staleRows(tx, p.id); err != nil {
		return nil, err
	}
	if _, passages := c.ix.PartitionSize(p.id); passages > 0 {
		l.loaded = map[int64]bool{}
	}
	p.load, p.filling = l, make(chan struct{})
	p.pins++
	return append(fromTexts, newer...), nil
}

// loadSegments loads the segments of a partition. Others have the turn meanwhile. If the segments are of no use, the
// memories are read from their texts, like stale ones in a round.
func (c *Cache) loadSegments(tx db.Tx, p *part, round uint64) error {
	c.release()
	err := c.readSegments(tx, p)
	<-c.turn
	l := p.load
	useless := errors.Is(err, index.ErrSegment)
	if useless {
		c.log.Warn("segments of the search index are damaged, or made on another kind of machine; reading the texts",
			"partition", p.id)
		c.distrusted[p.id] = true
		err = c.restFromTexts(tx, p, round)
	}
	if err != nil {
		p.lost = true
		c.forget(p)
	}
	if l.loaded != nil && !p.lost {
		c.dropOthers(p)
	}
	p.pins--
	close(p.filling)
	p.load, p.filling = nil, nil
	c.shrink(p)
	return err
}

// readSegments reads the segments of a partition, and decodes each while the next is read.
func (c *Cache) readSegments(tx db.Tx, p *part) error {
	ids, err := db.Column[int64](tx, `SELECT id FROM segment WHERE partition_id = ? ORDER BY id`, p.id)
	if err != nil {
		return err
	}
	var passages int
	if err := tx.QueryRow(`SELECT passages FROM partition WHERE id = ?`, p.id).Scan(&passages); err != nil {
		return err
	}
	c.ix.Expect(p.id, passages)
	read, used, failed := make(chan []byte), make(chan []byte, 2), make(chan error, 1)
	used <- nil // the memory of one segment is read into while another one is decoded
	used <- nil
	go func() {
		var err error
		var s index.Segment
		for data := range read {
			if err == nil {
				err = s.Decode(data, static.Default().Rows())
			}
			if err == nil {
				err = c.putSegment(p, &s)
			}
			used <- data
		}
		failed <- err
	}()
	for _, id := range ids {
		var data []byte
		if data, err = segmentData(tx, id, <-used); err != nil {
			break
		}
		read <- data
	}
	close(read)
	return errors.Join(err, <-failed)
}

func readSegment(tx db.Tx, id int64) (*index.Segment, error) {
	data, err := segmentData(tx, id, nil)
	if err != nil {
		return nil, err
	}
	return index.DecodeSegment(data, static.Default().Rows())
}

// segmentData reads a segment, into a piece of memory if it can. One that cannot be opened counts as damaged.
func segmentData(tx db.Tx, id int64, into []byte) (data []byte, err error) {
	if b, can := tx.(db.Blobs); can { // not where values are opened when they are scanned
		if data, ok := b.Blob(into, "segment", "data", id); ok {
			return data, nil
		}
	}
	err = tx.QueryRow(`SELECT data FROM segment WHERE id = ?`, id).Scan(&data)
	if keyring.IsShut(err) {
		err = fmt.Errorf("%w: %w", index.ErrSegment, err)
	}
	return data, err
}

func (c *Cache) putSegment(p *part, s *index.Segment) error {
	<-c.turn
	defer c.release()
	l := p.load
	if p.lost {
		return nil
	}
	if l.loaded != nil {
		for _, row := range s.Memories() {
			l.loaded[row] = true
		}
	}
	err := c.ix.PutSegment(p.id, s, l.skip)
	c.shrink(p)
	return err
}

// restFromTexts makes all memories of a partition stale in a round, except the ones that have changed since.
func (c *Cache) restFromTexts(tx db.Tx, p *part, round uint64) error {
	rows, err := streamed(tx, inPartition, p.id, 0)
	if err != nil || p.lost {
		return err
	}
	for _, row := range rows {
		if _, known := c.stale[row]; !known && !p.load.changed[row] {
			c.markStaleIn(row, p, round)
		}
	}
	return nil
}

// dropOthers removes the memories that the index held of a partition before, unless they came from segments or are
// stale.
func (c *Cache) dropOthers(p *part) {
	var gone []int64
	for _, row := range c.ix.Rows(p.id) {
		if _, stale := c.stale[row]; !stale && (!p.load.loaded[row] || p.load.stale[row]) {
			gone = append(gone, row)
		}
	}
	c.ix.Delete(gone...)
}

// noteLoading tells partitions whose segments are being loaded which memories have changed.
func (c *Cache) noteLoading(rows []int64) {
	for _, p := range c.held {
		if p.load == nil {
			continue
		}
		for _, row := range rows {
			p.load.changed[row] = true
		}
	}
}

// wait lets others have the turn until the partition that is being read has been.
func (c *Cache) wait(tx db.Tx, p *part) error {
	filling := p.filling
	c.release()
	defer func() { <-c.turn }()
	select {
	case <-filling:
	case <-tx.Context().Done():
	}
	return tx.Context().Err()
}

// touch notes that a partition is used now.
func (c *Cache) touch(p *part) { p.used, p.at = max(p.used, c.clock), time.Now() }
