package sqlite

import (
	"context"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Scratch is Read on a connection of its own. Its function may create temporary tables, which end with it.
func (d *DB) Scratch(ctx context.Context, fn func(db.Tx) error) error {
	if err := d.begin(ctx); err != nil {
		return err
	}
	defer d.end()
	if d.memory {
		c := d.writer.conn
		return d.writer.exclusive(ctx, func() error {
			_, err := c.snapshot(ctx, d.patience(), fn) // which ends with a rollback in any case
			return err
		})
	}
	c, err := d.connect(ctx, d.readMode, settings)
	if err != nil {
		return err
	}
	defer func() { _ = c.close() }()
	_, err = c.snapshot(ctx, d.patience(), fn)
	return err
}

// Compact rewrites the file without its free pages. Reads continue meanwhile; writes wait, including those of other
// processes. It needs room for a copy of the file in the folder for temporary files, and for another one in the log. If
// ctx ends, nothing has changed.
func (d *DB) Compact(ctx context.Context) error {
	if err := d.begin(ctx); err != nil {
		return err
	}
	defer d.end()
	w := d.writer
	if w == nil {
		return readOnlyError(d.path)
	}
	return w.exclusive(ctx, func() error {
		// The new content is built in a temporary database, which may be too large for memory.
		if !d.memory { // nothing of it goes to a disk
			if err := w.conn.script("PRAGMA temp_store = FILE"); err != nil {
				return classify("compact", err)
			}
			// Either change of that setting drops temporary objects, so the connection has to be prepared again.
			w.unready = true
			defer func() {
				_ = w.conn.script("PRAGMA temp_store = MEMORY")
				w.unready = d.prepare(context.WithoutCancel(ctx), w.conn) != nil // then the next write tries
			}()
		}
		// This transaction has no other caller's work, so unlike others it may be interrupted.
		unwatch := w.conn.watch(ctx)
		err := d.patience().retry(ctx, func() error {
			_, err := w.conn.exec("VACUUM", nil)
			return err
		})
		unwatch()
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return classify("compact", err)
		}
		if !d.memory {
			w.restartLog()
		}
		return nil
	})
}

// Flush copies the write-ahead log into the file and truncates it to zero length. While others read from it, that is
// impossible: Flush returns ErrLogInUse.
func (d *DB) Flush(ctx context.Context) error {
	if err := d.begin(ctx); err != nil {
		return err
	}
	defer d.end()
	w := d.writer
	switch {
	case w == nil:
		return readOnlyError(d.path)
	case d.memory:
		return nil
	}
	return w.exclusive(ctx, func() error { return w.checkpoint(walPatience) })
}

// LogSize returns the size of the write-ahead log in bytes.
func (d *DB) LogSize() int64 {
	if d.memory {
		return 0
	}
	return walSize(d.logPath)
}
