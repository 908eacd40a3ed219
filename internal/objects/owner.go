package objects

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/sharedstate"
)

// A copy of a database names the same objects as the original, and must not delete what the original still needs.
// Copies cannot be told from what is in them; so the database that uses the storage changes a mark, again and again: it
// notes a new one among its own and then writes it to the object OwnerKey. A copy lacks the marks since it was made,
// finds one there that it does not know, and deletes nothing.

// OwnerKey is the key of the object with the mark of the database that may delete objects.
const OwnerKey = "owner"

const (
	ownMarks = "objects/owner" // the value with the marks of this database, the newest last

	// renewed is how old a mark becomes. A copy that is used earlier than that is not noticed.
	renewed = 5 * time.Minute
	// known is for how long the storage is not asked again.
	known = 30 * time.Second
	// forever is how long the marks stay in the database.
	forever = 100 * 365 * 24 * time.Hour
	// fewMarks is how many marks a database knows: one that arrives late, because a call was given up, is among them.
	fewMarks = 8
)

// own returns an error if another database deletes objects of the storage, a copy of this one or one that has the same
// bucket and prefix. It changes the mark when that is due.
func (o *Objects) own(ctx context.Context) error {
	now := time.Now()
	if now.Sub(o.owned) < known {
		return nil
	}
	for again := false; ; again = true {
		mine, err := o.marks(ctx, "")
		if err != nil {
			return err
		}
		mark, err := o.Get(ctx, OwnerKey)
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && slices.Contains(mine, string(mark)):
			if now.Sub(o.marked) >= renewed || len(mark) == 0 {
				err = o.mark(ctx)
			}
			if unavailable := (*Unavailable)(nil); errors.As(err, &unavailable) && ctx.Err() == nil {
				err = nil // a bucket may be full, and only deletions work
			}
		case err != nil:
		case !again: // another server of this database may have changed it in between
			continue
		default:
			err = fault.New(fault.KindConflict, "", "another database deletes objects in the object storage: a copy of "+
				"this one, or one that was set up with the same bucket and prefix. Nothing was deleted there. Give this one "+
				"a bucket or a prefix of its own; or, if the other is not in use any more, run souvenir files adopt")
		}
		if err == nil {
			o.owned = now
		}
		return err
	}
}

// Adopt makes this database the one that deletes objects of the storage, whichever was before.
func (o *Objects) Adopt(ctx context.Context) error {
	if o.Storage == nil {
		return ErrNone
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mark(ctx)
}

// Warn reports whether to log that objects could not be removed: at most every few minutes.
func (o *Objects) Warn() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if time.Since(o.warned) < renewed {
		return false
	}
	o.warned = time.Now()
	return true
}

// mark notes a new mark, and writes it to the storage.
func (o *Objects) mark(ctx context.Context) error {
	mark := strings.ToLower(rand.Text())
	if _, err := o.marks(ctx, mark); err != nil {
		return err
	}
	err := o.call(ctx, "write", func(ctx context.Context) error { return o.Storage.Put(ctx, OwnerKey, []byte(mark)) })
	if err == nil {
		o.marked = time.Now()
	}
	return err
}

// marks returns the marks of this database, after noting another one, unless that is empty.
func (o *Objects) marks(ctx context.Context, another string) (mine []string, err error) {
	access := o.DB.Write
	if another == "" {
		access = o.DB.Read
	}
	err = access(ctx, func(tx db.Tx) error {
		return sharedstate.Update(tx, []string{ownMarks}, forever, func(values [][]byte) {
			if mine = strings.Fields(string(values[0])); another != "" {
				mine = append(mine, another)
				mine = mine[max(0, len(mine)-fewMarks):]
				values[0] = []byte(strings.Join(mine, " "))
			}
		})
	})
	return mine, err
}
