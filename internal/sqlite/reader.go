package sqlite

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// readers is the pool of connections that only read. They are opened on demand; the one used last, whose page
// cache is warm, is used first.
type readers struct {
	free chan struct{} // holds a token for each connection that may still be taken

	mu   sync.Mutex
	idle []*conn
}

func newReaders(size int) *readers {
	p := &readers{free: make(chan struct{}, size)}
	for range size {
		p.free <- struct{}{}
	}
	return p
}

// reader returns a connection for reading, once one is free.
func (d *DB) reader(ctx context.Context) (*conn, error) {
	p := d.readers
	select {
	case <-p.free:
	default:
		if err := d.await(ctx, p.free, func(waited time.Duration) error {
			if waited < d.lockTimeout {
				return nil
			}
			return fmt.Errorf("sqlite: all connections for reading were in use for %s: %w", d.lockTimeout, db.ErrBusy)
		}); err != nil {
			return nil, err
		}
	}
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return c, nil
	}
	p.mu.Unlock()
	c, err := d.openReader(ctx)
	if err != nil {
		p.free <- struct{}{}
	}
	return c, err
}

// put returns a connection to the pool, or closes it if it did not end its transaction cleanly.
func (p *readers) put(c *conn, clean bool) {
	if clean {
		p.mu.Lock()
		p.idle = append(p.idle, c)
		p.mu.Unlock()
	} else {
		_ = c.close()
	}
	p.free <- struct{}{}
}

func (p *readers) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.idle {
		_ = c.close()
	}
	p.idle = nil
}

// snapshot runs fn in one read transaction. If clean is false the connection must not be used again.
func (c *conn) snapshot(ctx context.Context, p patience, fn func(db.Tx) error) (clean bool, err error) {
	if _, err := c.exec("BEGIN", nil); err != nil {
		return false, classify("begin", err)
	}
	tx := &Tx{conn: c, ctx: ctx, patience: p}
	unwatch := c.watch(ctx)
	defer func() { // also when fn panics
		unwatch()
		tx.end()
		_, end := c.exec("ROLLBACK", nil)
		clean = end == nil
	}()
	return false, outcome(ctx, fn(tx))
}

// outcome returns the error of a transaction whose function has returned. The function may have ignored that its
// context ended.
func outcome(ctx context.Context, result error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return result
}

// readMemory uses the only connection, for reading.
func (d *DB) readMemory(ctx context.Context, fn func(db.Tx) error) error {
	c := d.writer.conn
	return d.writer.exclusive(ctx, func() error {
		if err := c.script("PRAGMA query_only = ON"); err != nil {
			return classify("begin", err)
		}
		defer func() { _ = c.script("PRAGMA query_only = OFF") }()
		_, err := c.snapshot(ctx, d.patience(), fn)
		return err
	})
}
