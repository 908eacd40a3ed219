// Package retrieval executes queries: in an index in memory that it keeps in step with the database, or, without
// one, in the database itself.
package retrieval

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/index"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/static"
	"github.com/souvenir-ai/souvenir/internal/text"
	"github.com/souvenir-ai/souvenir/internal/turns"
)

// Cache keeps an index in memory in step with the database. The log of changes records every change of a memory by
// any process; a search first reads the new entries in its own snapshot, so it never misses a write that was
// answered before it began.
type Cache struct {
	DB      db.DB
	Profile int64 // of the vectors in the index, besides callers' own
	AtOnce  int   // the most passages, or changes, that a search loads itself; for more it uses the database meanwhile

	limit int64 // bytes; negative: no index
	log   *slog.Logger

	turn    chan struct{} // holds one token: its holder updates the index
	ix      *index.Index
	mark    db.Mark // ix is up to date to here
	tooBig  bool
	due     bool // a search used the database because everything has to be loaded
	loading bool // a background load is running

	background context.Context
	cancel     context.CancelFunc
	done       sync.WaitGroup
}

// AtOnce is the default of Cache.AtOnce.
const AtOnce = 2_000

// NewCache returns a cache whose index takes at most limit bytes; negative: no index. Set DB and Profile before
// its first use.
func NewCache(limit int64, log *slog.Logger) *Cache {
	c := &Cache{limit: limit, AtOnce: AtOnce, log: log, turn: make(chan struct{}, 1)}
	c.turn <- struct{}{}
	c.background, c.cancel = context.WithCancel(context.Background())
	return c
}

// State is how searches are executed now.
type State string

// The values of [State].
const (
	InMemory   State = "memory"
	Loading    State = "loading"
	InDatabase State = "disk"
)

// State returns how searches are executed now.
func (c *Cache) State() State {
	if c.limit < 0 {
		return InDatabase
	}
	select {
	case <-c.turn:
		defer func() { c.turn <- struct{}{} }()
	default: // a search updates it
		return Loading
	}
	switch {
	case c.tooBig:
		return InDatabase
	case c.ix != nil:
		return InMemory
	}
	return Loading
}

// Held returns the index in memory, nil for none.
func (c *Cache) Held() *index.Index {
	<-c.turn
	defer func() { c.turn <- struct{}{} }()
	return c.ix
}

// Pending reports whether everything has to be loaded, and whether a load is running.
func (c *Cache) Pending() (due, loading bool) {
	<-c.turn
	defer func() { c.turn <- struct{}{} }()
	return c.due, c.loading
}

// Wait waits for a running load.
func (c *Cache) Wait() { c.done.Wait() }

// Stop ends a running load and waits for it.
func (c *Cache) Stop() {
	c.cancel()
	<-c.turn // the next holder sees that the context has ended, and starts no load
	c.turn <- struct{}{}
	c.done.Wait()
}

// Current returns an index that is at least as new as the transaction's snapshot; nil if there is none, and the
// search has to use the database.
func (c *Cache) Current(tx db.Tx) (*index.Index, error) {
	if c.limit < 0 || tx.Writable() { // what a transaction writes may be undone, and others may not find it
		return nil, nil
	}
	now, err := tx.Changes().Mark()
	if err != nil {
		return nil, err
	}
	select {
	case <-c.turn:
		defer func() { c.turn <- struct{}{} }()
	case <-tx.Context().Done():
		return nil, tx.Context().Err()
	}
	switch {
	case c.tooBig:
		return nil, nil
	case c.ix == nil:
		return c.loadAll(tx, now)
	case c.mark == now:
		return c.ix, nil
	}
	rows, next, complete, err := tx.Changes().Since(c.mark, c.AtOnce)
	switch {
	case err != nil:
		return nil, err
	case !complete:
		return c.loadAll(tx, now)
	}
	if err := fill(tx, c.Profile, c.ix, rows); err != nil {
		return nil, err
	}
	c.mark = next
	return c.fitting(c.ix), nil
}

// loadAll rebuilds the index: now if it is small, else in the background.
func (c *Cache) loadAll(tx db.Tx, now db.Mark) (*index.Index, error) {
	var passages int
	if err := tx.QueryRow(`SELECT coalesce(sum(passages), 0) FROM partition`).Scan(&passages); err != nil {
		return nil, err
	}
	if passages > c.AtOnce {
		c.due = !c.loading
		return nil, nil
	}
	ix := index.New()
	if err := kernel.EachBatch(tx, 0, func(rows []int64) error { return fill(tx, c.Profile, ix, rows) }); err != nil {
		return nil, err
	}
	c.ix, c.mark = ix, now
	return c.fitting(ix), nil
}

// LoadIfDue starts to load everything in the background if a search has found that necessary, and no load is
// running. Call it after a search on disk: reading the whole file at the same time would make that search take
// twice as long.
func (c *Cache) LoadIfDue() {
	<-c.turn
	defer func() { c.turn <- struct{}{} }()
	if !c.due || c.loading || c.background.Err() != nil {
		return
	}
	c.due, c.loading = false, true
	c.done.Add(1)
	go c.load()
}

// load reads the file in steps, each a transaction of its own, so that no long snapshot keeps the log from being
// checkpointed. The next search reads what changes meanwhile.
func (c *Cache) load() {
	defer c.done.Done()
	ix := index.New()
	var mark db.Mark
	var after int64
	err := c.DB.Read(c.background, func(tx db.Tx) (err error) {
		mark, err = tx.Changes().Mark()
		return err
	})
	for more := true; err == nil && more && ix.Bytes() <= c.limit; {
		err = c.DB.Read(c.background, func(tx db.Tx) error {
			rows, err := kernel.NextBatch(tx, after)
			if err != nil || len(rows) == 0 {
				more = false
				return err
			}
			after = rows[len(rows)-1]
			return fill(tx, c.Profile, ix, rows)
		})
	}
	<-c.turn
	defer func() { c.turn <- struct{}{} }()
	c.loading = false
	switch {
	case errors.Is(err, context.Canceled) || errors.Is(err, db.ErrClosed):
	case err != nil:
		c.log.Error("the search index could not be loaded; searching on disk", "error", err)
	default:
		c.ix, c.mark = ix, mark
		c.fitting(ix)
	}
}

// fitting returns the index if it fits in the limit, and drops it otherwise.
func (c *Cache) fitting(ix *index.Index) *index.Index {
	if ix.Bytes() <= c.limit {
		return ix
	}
	c.log.Warn("the search index does not fit into its memory; searching on disk from now on", "bytes", ix.Bytes(),
		"limit", c.limit)
	c.ix, c.tooBig = nil, true
	return nil
}

// fill puts memories, as they are in the transaction's snapshot, into an index, and deletes those missing there.
func fill(tx db.Tx, profile int64, ix *index.Index, rows []int64) error {
	for len(rows) > 0 {
		batch := rows[:min(len(rows), kernel.BatchRows)]
		rows = rows[len(batch):]
		memories, err := entries(tx, profile, batch)
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

// entries reads the indexed data of some memories. It skips vectors that are neither of the given profile nor
// callers' own.
func entries(tx db.Tx, profile int64, rows []int64) ([]index.Memory, error) {
	list := db.List(rows)
	var memories []index.Memory
	var contents, tags []string
	place := map[int64]int{}
	err := tx.Each(func(row db.Rows) error {
		var m index.Memory
		var content, tagged string
		var turn index.Turn
		if err := row.Scan(&m.Row, &m.ID, &m.Partition, &content, &tagged, &turn.Conversation, &turn.At,
			&turn.Speaker); err != nil {
			return err
		}
		if turn.Conversation != 0 {
			turn.Asks = turns.Asks(content)
			m.Turn = &turn
		}
		place[m.Row] = len(memories)
		memories, contents, tags = append(memories, m), append(contents, content), append(tags, tagged)
		return nil
	}, `SELECT memory.id, uid, memory.partition_id, content, coalesce((SELECT string_agg(tag, `+db.Newline+
		` ORDER BY position) FROM memory_tag WHERE memory_id = memory.id), ''),
			coalesce(t.conversation, 0), coalesce(t.at, 0), coalesce(t.speaker, '')
		FROM memory LEFT JOIN turn t ON t.memory_id = memory.id AND t.partition_id = memory.partition_id
		WHERE memory.id IN `+db.Integers, list)
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
		if e.Vector, err = kernel.DecodeVector(blob); err != nil {
			return err
		}
		if e.Vector != nil {
			// The index relies on unit vectors; those of a damaged file may be anything.
			if e.Vector, err = kernel.UnitVector(e.Vector, len(e.Vector)); err != nil {
				return fault.Damaged(err, "a vector")
			}
		}
		i, ok := place[memory]
		if !ok || start < 0 || length < 0 || start > len(contents[i]) || length > len(contents[i])-start {
			return fault.Damaged(kernel.ErrOutside, "the passages of memory %d", memory)
		}
		e.Span = index.Span{Start: uint32(start), End: uint32(start + length)}
		e.Words = static.Default().AppendWords(nil, contents[i][start:start+length])
		e.Terms = text.Terms(contents[i][start : start+length])
		if len(memories[i].Entries) == 0 {
			e.Terms = text.AppendTerms(e.Terms, tags[i])
		}
		memories[i].Entries = append(memories[i].Entries, e)
		return nil
	}, `SELECT id, memory_id, start, length, CASE WHEN profile_id = ? OR profile_id IN (SELECT id FROM profile
		WHERE model = ?) THEN vector END
		FROM passage WHERE memory_id IN `+db.Integers+` ORDER BY id`, profile, kernel.OwnVectors, list)
	return memories, err
}
