package retrieval

import (
	"context"
	"errors"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// LoadIfDue starts to load in the background what searches have found to be missing, unless a load is running. Call it
// after a search of the database: reading much of the file at the same time would make that search take twice as long.
func (c *Cache) LoadIfDue() {
	<-c.turn
	defer c.release()
	if len(c.wanted) == 0 || c.loading || c.background.Err() != nil {
		return
	}
	c.loading = true
	c.done.Add(1)
	go c.load()
}

// Want loads partitions in the background: the ones with the lowest ids, as many as fit.
func (c *Cache) Want(tx db.Tx) error {
	if c.limit.Load() < 0 {
		return nil
	}
	all, err := db.Column[int64](tx, `SELECT id FROM partition WHERE passages > 0 ORDER BY id`)
	if err != nil {
		return err
	}
	<-c.turn
	defer c.release()
	for len(all) > 0 {
		n, err := c.need(tx, all)
		if err != nil {
			return err
		}
		if n.fits {
			break
		}
		all = all[:len(all)*3/4]
	}
	for _, id := range all {
		if p := c.held[id]; p == nil || p.lost || p.stale > 0 {
			c.wanted[id] = c.clock
		}
	}
	return nil
}

// Wait waits for a running load.
func (c *Cache) Wait() { c.done.Wait() }

// Stop ends the work in the background and waits for it.
func (c *Cache) Stop() {
	c.cancel()
	<-c.turn // the next holder sees that the context has ended, and starts nothing
	c.release()
	c.done.Wait()
	c.follower.Wait()
}

// load loads the wanted partitions, in steps, each a transaction of its own, so that no long snapshot keeps the log
// from being checkpointed.
func (c *Cache) load() {
	defer c.done.Done()
	for {
		<-c.turn
		id, clock := int64(0), uint64(0)
		for other, at := range c.wanted { // the latest first
			if id == 0 || at > clock || at == clock && other < id {
				id, clock = other, at
			}
		}
		if id == 0 || c.background.Err() != nil {
			c.loading = false
			c.release()
			return
		}
		c.release()
		if err := c.DB.Read(c.background, func(tx db.Tx) error { return c.loadSome(tx, id) }); err != nil {
			c.failed(err)
			<-c.turn
			delete(c.wanted, id)
			c.release()
		}
	}
}

func (c *Cache) failed(err error) {
	if !errors.Is(err, context.Canceled) && !errors.Is(err, db.ErrClosed) && !errors.Is(err, db.ErrBusy) {
		c.log.Error("could not load the search index; searching on disk", "error", err)
	}
}

// loadSome loads a part of a partition, and removes the partition from the wanted ones when it is complete.
func (c *Cache) loadSome(tx db.Tx, id int64) error {
	now, err := tx.Changes().Mark()
	if err != nil {
		return err
	}
	<-c.turn
	defer c.release()
	if err := c.catchUp(tx, now); err != nil || c.mark != now {
		return err // again, with a newer snapshot
	}
	n, err := c.need(tx, []int64{id})
	if err != nil {
		return err
	}
	round := c.round
	if n.fits && len(n.missing) > 0 {
		if round, _, err = c.list(tx, n.missing); err != nil {
			return err
		}
	}
	p := c.held[id]
	if p != nil && (p.stale > 0 || p.load != nil) {
		p.used = max(p.used, c.wanted[id])
		if err := c.fillOrWait(tx, p, round); err != nil {
			return err
		}
		p = c.held[id]
	}
	if p == nil || p.stale == 0 && !p.lost {
		delete(c.wanted, id)
	}
	if len(c.stale) == 0 {
		c.stale = map[int64]staleMemory{} // maps do not shrink
	}
	return nil
}

const (
	// collectWrites is how long the follower collects writes before it looks at them.
	collectWrites = 50 * time.Millisecond
	// lookAround is how often it looks for writes of other processes. The log of changes must not fill up in between.
	lookAround = 5 * time.Second
	// recently is how long after a search a partition is kept up to date.
	recently = time.Minute
)

// Wrote announces a write, so that the held partitions are brought up to date soon.
func (c *Cache) Wrote() {
	select {
	case c.wrote <- struct{}{}:
	default:
	}
}

// follow starts to follow writes, in the background, once something is held.
func (c *Cache) follow() {
	if c.following || c.background.Err() != nil {
		return
	}
	c.following = true
	if c.Others != nil {
		c.Others(c.Wrote)
	}
	c.follower.Go(func() {
		for {
			look := time.NewTimer(lookAround)
			pause := collectWrites
			select {
			case <-c.background.Done():
			case <-c.wrote:
			case <-look.C:
				pause = 0
			}
			look.Stop()
			select {
			case <-c.background.Done():
				return
			case <-time.After(pause):
			}
			for more := true; more; {
				err := c.DB.Read(c.background, func(tx db.Tx) (err error) {
					more, err = c.keepUp(tx)
					return err
				})
				if err != nil {
					c.failed(err)
					break
				}
			}
		}
	})
}

// keepUp notes what has changed, and reads a part of it: in the partitions that were searched a short time ago, and
// where it would soon be too much for a search. It reports whether there is more.
func (c *Cache) keepUp(tx db.Tx) (more bool, err error) {
	now, err := tx.Changes().Mark()
	if err != nil {
		return false, err
	}
	<-c.turn
	defer c.release()
	if err := c.catchUp(tx, now); err != nil || c.mark != now {
		return false, err // a search has seen newer changes
	}
	for id, p := range c.held {
		_, loaded := c.wanted[id]
		if !loaded && p.stale > 0 && p.filling == nil && (time.Since(p.at) < recently || p.stale > c.AtOnce/2) {
			return true, c.fillOrWait(tx, p, c.round)
		}
	}
	return false, nil
}
