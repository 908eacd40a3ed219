package objects

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fairqueue"
)

// Remove deletes objects that no file needs: those of deleted files, and of uploads that were never finished. It
// deletes about the given number of objects and returns how many are gone. The others stay due.
func (o *Objects) Remove(ctx context.Context, most int) (removed int, err error) {
	if o.Storage == nil {
		return 0, nil
	}
	ctx = db.Freeing(ctx)
	// One that writes must never wait for a place that others hold, who wait here for it.
	defer fairqueue.Pause(ctx)()
	for removed < most {
		n, err := o.removeSome(ctx)
		removed += n
		if err != nil || n == 0 {
			return removed, err
		}
	}
	return removed, nil
}

// due is the condition that an object is to be deleted by a time.
const due = ` state <> 'stored' AND due_at <= ?`

// removeSome deletes one batch of objects.
func (o *Objects) removeSome(ctx context.Context) (removed int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.batch == 0 {
		o.batch = mostRemoved
	}
	now := o.Now()
	var found, keys []string
	if err := o.DB.Read(ctx, func(tx db.Tx) (err error) {
		found, err = db.Column[string](tx, `SELECT key FROM file_object WHERE`+due+` ORDER BY due_at, key LIMIT ?`, now,
			o.batch)
		return err
	}); err != nil {
		return 0, err
	}
	if len(found) > 0 || time.Since(o.marked) >= renewed {
		if err := o.own(ctx); err != nil {
			return 0, err
		}
	}
	if len(found) == 0 {
		return 0, nil
	}
	// An upload that may still be running is cancelled first: its objects count as given up.
	if err := o.DB.Write(ctx, func(tx db.Tx) error {
		if _, err := tx.Exec(`UPDATE file_object SET state = 'leaving' WHERE`+due+` AND key IN `+db.Texts, now,
			db.List(found)); err != nil {
			return err
		}
		keys, err = db.Column[string](tx, `SELECT key FROM file_object WHERE state = 'leaving' AND key IN `+db.Texts,
			db.List(found))
		return err
	}); err != nil {
		return 0, err
	}
	failed := o.call(ctx, "delete", func(ctx context.Context) error { return o.Storage.Delete(ctx, keys) })
	if errors.Is(failed, fs.ErrNotExist) {
		failed = nil
	}
	if failed != nil && ctx.Err() != nil {
		return 0, failed
	}
	err = o.DB.Write(ctx, func(tx db.Tx) error {
		if failed == nil {
			_, err := tx.Exec(`DELETE FROM file_object WHERE`+due+` AND key IN `+db.Texts, now, db.List(keys))
			return err
		}
		_, err := tx.Exec(`UPDATE file_object SET due_at = ? WHERE`+due+` AND key IN `+db.Texts,
			now+retry.Microseconds(), now, db.List(keys))
		return err
	})
	if failed != nil { // smaller batches delete the others and isolate the object that cannot be deleted
		o.batch = max(1, o.batch/8)
		return 0, errors.Join(failed, err)
	}
	o.batch = min(2*o.batch, mostRemoved)
	if err != nil {
		return 0, err
	}
	return len(keys), nil
}
