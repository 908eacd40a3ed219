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
	"github.com/souvenir-ai/souvenir/internal/fairqueue"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/sharedstate"
)

// A copy of a database refers to the same objects as the original, and must not delete objects that the original still
// needs. A copy cannot be recognized by its content, so the database that uses the storage changes a mark regularly: it
// records a new mark in its own table and then writes it to an object, whose name was chosen with the first mark. A
// copy lacks the marks made after it was copied, finds an unknown mark in the object, and deletes nothing. Other stores
// use other names.

// Owner is the prefix of the key of the object with a database's mark.
const Owner = "owner-"

const (
	ownMarks = "objects/owner" // the value with the name of the object and the marks of this database, the newest last

	// renewed is the age at which a mark is replaced. A copy that is used before that is not noticed.
	renewed = 5 * time.Minute
	// known is how long the storage's answer is used before it is asked again.
	known = 30 * time.Second
	// forever is how long the marks stay in the database.
	forever = 100 * 365 * 24 * time.Hour
	// fewMarks is the number of recent marks that a database keeps, enough to recognize the late mark of an abandoned
	// call.
	fewMarks = 8
)

// own returns an error if another copy of this database owns the storage and deletes its objects. It renews the mark
// when due.
func (o *Objects) own(ctx context.Context) error {
	now := time.Now()
	if now.Sub(o.owned) < known {
		return nil
	}
	for again := false; ; again = true {
		key, mine, err := o.marks(ctx, "", "")
		if err != nil {
			return err
		}
		var mark []byte
		if err = fs.ErrNotExist; key != "" {
			mark, err = o.Get(ctx, key)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && slices.Contains(mine, string(mark)):
			if now.Sub(o.marked) >= renewed || len(mark) == 0 {
				err = o.mark(ctx, string(mark))
			}
			if unavailable := (*Unavailable)(nil); errors.As(err, &unavailable) && ctx.Err() == nil {
				err = nil // in a full bucket only deletions may work
			}
		case err != nil:
		case !again: // another server of this database may have changed the mark in between
			continue
		default:
			err = fault.New(fault.KindConflict, "", "a copy of this database, or its original, "+
				"deletes objects in the object storage. Nothing was deleted there. If the other is no longer in use, run "+
				"souvenir files adopt; otherwise give this one no object storage, or a copy of it")
		}
		if err == nil {
			o.owned = now
		}
		return err
	}
}

// Adopt makes this database, instead of any other, the one that deletes objects of the storage.
func (o *Objects) Adopt(ctx context.Context) error {
	if o.Storage == nil {
		return ErrNone
	}
	defer fairqueue.Pause(ctx)() // as Remove
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mark(ctx, "")
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

// mark records a new mark, and writes it to the storage in place of any other.
func (o *Objects) mark(ctx context.Context, there string) error {
	mark := strings.ToLower(rand.Text())
	key, _, err := o.marks(ctx, mark, there)
	if err != nil {
		return err
	}
	err = o.call(ctx, "write", func(ctx context.Context) error { return o.Storage.Put(ctx, key, []byte(mark)) })
	if err == nil {
		o.marked = time.Now()
	}
	return err
}

// marks records another mark, unless it is empty. It returns the key of the object with the mark, "" if there is none
// yet, and the marks of this database. It keeps the mark that is there, even if many later ones could not be written.
func (o *Objects) marks(ctx context.Context, another, there string) (key string, mine []string, err error) {
	access := o.DB.Write
	if another == "" {
		access = o.DB.Read
	}
	err = access(ctx, func(tx db.Tx) error {
		return sharedstate.Update(tx, []string{ownMarks}, forever, func(values [][]byte) {
			key, mine = "", nil
			if known := strings.Fields(string(values[0])); len(known) > 0 {
				key, mine = known[0], known[1:]
			}
			if another == "" {
				return
			}
			if key == "" {
				key = Owner + strings.ToLower(rand.Text())
			}
			mine = append(mine, another)
			if old := len(mine) - fewMarks; old > 0 {
				if slices.Contains(mine[:old], there) {
					mine[old] = there
				}
				mine = mine[old:]
			}
			values[0] = []byte(key + " " + strings.Join(mine, " "))
		})
	})
	return key, mine, err
}
