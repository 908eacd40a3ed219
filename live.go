package souvenir

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/index"
	"github.com/souvenir-ai/souvenir/internal/text"
)

// liveIndex keeps an index in memory up to date with the file. Every change of a memory, by whichever process, leaves a
// row in the table change; a search first reads the rows that are new in its own snapshot, so it never misses a write
// that was answered before it began.
type liveIndex struct {
	limit  int64 // bytes; negative: no index
	atOnce int   // passages; see loadAtOnce
	log    *slog.Logger

	turn    chan struct{} // holds one token: whoever has it brings the index up to date
	ix      *index.Index
	mark    db.Mark // what ix knows
	tooBig  bool
	due     bool // a search went to disk because everything has to be loaded
	loading bool // that runs in the background

	background context.Context
	cancel     context.CancelFunc
	done       sync.WaitGroup
}

// loadAtOnce is how many passages, or changes, a search loads itself; for more it searches on disk while they are loaded
// in the background.
const loadAtOnce = 2_000

func newLiveIndex(limit int64, log *slog.Logger) *liveIndex {
	l := &liveIndex{limit: limit, atOnce: loadAtOnce, log: log, turn: make(chan struct{}, 1)}
	l.turn <- struct{}{}
	l.background, l.cancel = context.WithCancel(context.Background())
	return l
}

// LoadIndex begins to load what searches compare into memory, and does not wait for it: a program that answers many searches calls it
// when it begins, so that the first of them need not go to disk. Without it, the first search does the same once it is answered. Where
// IndexMemory allows no index, or there is one, nothing happens. Only for the operator's store.
func (s *Store) LoadIndex(ctx context.Context) error {
	if err := s.checkOperator("LoadIndex"); err != nil {
		return err
	}
	defer s.index.loadIfDue(s.shared)
	return s.inspect(ctx, func(tx db.Tx) error {
		_, err := s.index.current(tx, s.shared)
		return err
	})
}

// stop ends a load that is under way and waits for it.
func (l *liveIndex) stop() {
	l.cancel()
	<-l.turn // whoever has it next sees the context's end, and begins no load any more
	l.turn <- struct{}{}
	l.done.Wait()
}

// current returns an index that knows at least everything in the transaction's snapshot; nil when there is none, and
// the search has to go to disk.
func (l *liveIndex) current(tx db.Tx, s *shared) (*index.Index, error) {
	if l.limit < 0 {
		return nil, nil
	}
	now, err := tx.Changes().Mark()
	if err != nil {
		return nil, err
	}
	select {
	case <-l.turn:
		defer func() { l.turn <- struct{}{} }()
	case <-tx.Context().Done():
		return nil, tx.Context().Err()
	}
	switch {
	case l.tooBig:
		return nil, nil
	case l.ix == nil:
		return l.loadAll(tx, s, now)
	case l.mark == now:
		return l.ix, nil
	}
	rows, next, complete, err := tx.Changes().Since(l.mark, l.atOnce)
	switch {
	case err != nil:
		return nil, err
	case !complete:
		return l.loadAll(tx, s, now)
	}
	if err := fill(tx, s, l.ix, rows); err != nil {
		return nil, err
	}
	l.mark = next
	return l.fitting(l.ix), nil
}

// loadAll builds the index anew: now if it is small, else in the background.
func (l *liveIndex) loadAll(tx db.Tx, s *shared, now db.Mark) (*index.Index, error) {
	var passages int
	if err := tx.QueryRow(`SELECT ifnull(sum(passages), 0) FROM partition`).Scan(&passages); err != nil {
		return nil, err
	}
	if passages > l.atOnce {
		l.due = !l.loading
		return nil, nil
	}
	ix := index.New()
	if err := eachBatch(tx, 0, func(rows []int64) error { return fill(tx, s, ix, rows) }); err != nil {
		return nil, err
	}
	l.ix, l.mark = ix, now
	return l.fitting(ix), nil
}

// loadIfDue begins to load everything in the background if a search has found that it has to be, and nobody does so yet. Whoever went
// to disk calls it after that: reading all of the file would make that search take twice as long.
func (l *liveIndex) loadIfDue(s *shared) {
	<-l.turn
	defer func() { l.turn <- struct{}{} }()
	if !l.due || l.loading || l.background.Err() != nil {
		return
	}
	l.due, l.loading = false, true
	l.done.Add(1)
	go l.load(s)
}

// load reads the file in steps, each a transaction of its own, so that no long snapshot keeps the log of
// changes from being folded into the file. What changes meanwhile is read again by the next search.
func (l *liveIndex) load(s *shared) {
	defer l.done.Done()
	ix := index.New()
	var mark db.Mark
	var after int64
	err := s.db.Read(l.background, func(tx db.Tx) (err error) {
		mark, err = tx.Changes().Mark()
		return err
	})
	for more := true; err == nil && more && ix.Bytes() <= l.limit; {
		err = s.db.Read(l.background, func(tx db.Tx) error {
			rows, err := nextBatch(tx, after)
			if err != nil || len(rows) == 0 {
				more = false
				return err
			}
			after = rows[len(rows)-1]
			return fill(tx, s, ix, rows)
		})
	}
	<-l.turn
	defer func() { l.turn <- struct{}{} }()
	l.loading = false
	switch {
	case errors.Is(err, context.Canceled) || errors.Is(err, db.ErrClosed):
	case err != nil:
		l.log.Error("the search index could not be loaded; searching on disk", "error", err)
	default:
		l.ix, l.mark = ix, mark
		l.fitting(ix)
	}
}

// fitting returns the index if it keeps within the limit, and gives it up otherwise.
func (l *liveIndex) fitting(ix *index.Index) *index.Index {
	if ix.Bytes() <= l.limit {
		return ix
	}
	l.log.Warn("the search index does not fit into its memory; searching on disk from now on", "bytes", ix.Bytes(), "limit", l.limit)
	l.ix, l.tooBig = nil, true
	return nil
}

const batchRows = 500

func nextBatch(tx db.Tx, after int64) ([]int64, error) {
	return db.Column[int64](tx, `SELECT id FROM memory WHERE id > ? ORDER BY id LIMIT ?`, after, batchRows)
}

// eachBatch goes through the rows of all memories after one.
func eachBatch(tx db.Tx, after int64, fn func(rows []int64) error) error {
	for {
		rows, err := nextBatch(tx, after)
		if err != nil || len(rows) == 0 {
			return err
		}
		if err := fn(rows); err != nil {
			return err
		}
		after = rows[len(rows)-1]
	}
}

// fill puts memories, as they are in the transaction's snapshot, into an index; what is gone there is deleted.
func fill(tx db.Tx, s *shared, ix *index.Index, rows []int64) error {
	for len(rows) > 0 {
		batch := rows[:min(len(rows), batchRows)]
		rows = rows[len(batch):]
		memories, err := entries(tx, s.profile, batch)
		if err != nil {
			return err
		}
		ix.Put(memories...)
		held := make(map[int64]bool, len(memories))
		for _, m := range memories {
			held[m.Row] = true
		}
		var gone []int64
		for _, row := range batch {
			if !held[row] {
				gone = append(gone, row)
			}
		}
		ix.Delete(gone...)
	}
	return nil
}

// entries reads what an index holds of some memories. Vectors of other profiles than the one given, or callers' own,
// are left out.
func entries(tx db.Tx, profile int64, rows []int64) ([]index.Memory, error) {
	list := jsonList(rows)
	var memories []index.Memory
	var contents, tags []string
	place := map[int64]int{}
	err := tx.Each(func(row db.Rows) error {
		var m index.Memory
		var content, tagged string
		if err := row.Scan(&m.Row, &m.ID, &m.Partition, &content, &tagged); err != nil {
			return err
		}
		place[m.Row] = len(memories)
		memories, contents, tags = append(memories, m), append(contents, content), append(tags, tagged)
		return nil
	}, `SELECT id, uid, partition_id, content, ifnull((SELECT group_concat(tag, char(10) ORDER BY position) FROM memory_tag WHERE memory_id = memory.id), '')
		FROM memory WHERE id IN (SELECT value FROM json_each(?))`, list)
	if err != nil {
		return nil, err
	}
	err = tx.Each(func(row db.Rows) error {
		var memory int64
		var start, length int
		var e index.Entry
		var blob []byte
		if err := row.Scan(&e.Passage, &memory, &start, &length, &blob); err != nil {
			return err
		}
		var err error
		if e.Vector, err = decodeVector(blob); err != nil {
			return err
		}
		if e.Vector != nil {
			// The index takes unit vectors at their word; those of a damaged file may be anything.
			if e.Vector, err = unitVector(e.Vector, len(e.Vector)); err != nil {
				return damaged(err, "a vector")
			}
		}
		i, ok := place[memory]
		if !ok || start < 0 || length < 0 || start > len(contents[i]) || length > len(contents[i])-start {
			return damaged(errOutside, "the passages of memory %d", memory)
		}
		e.Span = index.Span{Start: uint32(start), End: uint32(start + length)}
		e.Terms = text.Terms(contents[i][start : start+length])
		if len(memories[i].Entries) == 0 {
			e.Terms = text.AppendTerms(e.Terms, tags[i])
		}
		memories[i].Entries = append(memories[i].Entries, e)
		return nil
	}, `SELECT id, memory_id, start, length, iif(profile_id = ? OR profile_id IN (SELECT id FROM profile WHERE model = ?), vector, NULL)
		FROM passage WHERE memory_id IN (SELECT value FROM json_each(?)) ORDER BY id`, profile, OwnVectors, list)
	return memories, err
}
