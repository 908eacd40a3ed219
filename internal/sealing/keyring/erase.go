package keyring

import (
	"context"
	"encoding/hex"
	"errors"
	"iter"
	"maps"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// A user and the user's key are in two databases, so a crash can come between the two deletions. Therefore the key is
// marked first, then the user is deleted, and then the key is erased. For each remaining mark, [Ring.FinishDeletions]
// checks whether the user still exists.

// markAge is the minimum age of a mark: a deletion in progress erases the key itself.
const markAge = time.Hour

// Mark records that an owner is being deleted since a time. Without a key it does nothing.
func (r *Ring) Mark(ctx context.Context, o Owner, at int64) error {
	if r == nil {
		return nil
	}
	return r.place.Write(ctx, func(tx db.Tx) error {
		_, err := tx.Exec(`UPDATE user_key SET leaving_at = ? WHERE owner = ?`, at, r.hash(o))
		return err
	})
}

// Unmark removes the mark of an owner whose deletion was rejected.
func (r *Ring) Unmark(ctx context.Context, o Owner) error {
	if r == nil {
		return nil
	}
	return r.place.Write(ctx, func(tx db.Tx) error {
		_, err := tx.Exec(`UPDATE user_key SET leaving_at = NULL WHERE owner = ? AND leaving_at IS NOT NULL`, r.hash(o))
		return err
	})
}

// Erased describes the erased key of an owner. The zero value means no key.
type Erased struct {
	ID string    // in hexadecimal digits
	At time.Time // to the microsecond
}

// IsZero reports whether there was no key to erase.
func (e Erased) IsZero() bool { return e.ID == "" }

// Erase erases the key of an owner, if there is one. From then on, values sealed under it cannot be opened; other
// processes may open them for up to a minute. It remembers the owner as deleted since a time.
func (r *Ring) Erase(ctx context.Context, o Owner, since int64) (Erased, error) {
	if r == nil {
		return Erased{}, nil
	}
	return r.erase(ctx, r.hash(o), since)
}

func (r *Ring) erase(ctx context.Context, owner []byte, since int64) (Erased, error) {
	var ids [][]byte
	at := r.now().UnixMicro()
	err := r.place.Write(ctx, func(tx db.Tx) (err error) {
		ids, err = db.Column[[]byte](tx, `UPDATE user_key SET wrapped = NULL, owner = NULL, leaving_at = NULL,
			erased_at = ? WHERE owner = ? RETURNING id`, at, owner)
		if err == nil {
			err = mark(tx, owner, since)
		}
		return err
	})
	if err != nil || len(ids) == 0 {
		return Erased{}, err
	}
	erased := Erased{ID: hex.EncodeToString(ids[0]), At: kernel.ToTime(at)}
	r.owners.Put(ownerHash(owner), &key{}, keyBytes, cached)
	for _, id := range ids {
		r.keys.Put(ID(id), &key{}, keyBytes, cached)
	}
	_ = r.flush(ctx) // the key is erased; FinishDeletions tries again
	return erased, nil
}

// Traces of erased keys are removed at each erasure, and then hourly for a week: readers of a file, or a long
// transaction of PostgreSQL, keep them for a while.
const (
	flushEvery = time.Hour
	flushFor   = 7 * 24 * time.Hour
)

// flushRecent removes traces of keys that were erased recently, at most hourly.
func (r *Ring) flushRecent(ctx context.Context) error {
	now := r.now()
	if passed := now.Sub(kernel.ToTime(r.flushed.Load())); passed >= 0 && passed < flushEvery { // the clock may go back
		return nil
	}
	var recent bool
	err := r.place.Read(ctx, func(tx db.Tx) error {
		return tx.QueryRow(`SELECT count(*) > 0 FROM user_key WHERE erased_at > ?`,
			now.Add(-flushFor).UnixMicro()).Scan(&recent)
	})
	if err != nil || !recent {
		return err
	}
	if err := r.flush(ctx); err != nil {
		return err
	}
	r.flushed.Store(now.UnixMicro())
	return nil
}

// flush removes traces of erased keys from the files of the place, as far as it can. While others read its log, it
// returns db.ErrLogInUse.
func (r *Ring) flush(ctx context.Context) error {
	f, able := r.place.(db.Flusher)
	if !able {
		return nil
	}
	if err := f.Flush(ctx); !errors.Is(err, db.ErrUnsupported) {
		return err
	}
	return nil
}

// FinishDeletions finishes deletions interrupted by a crash: marked owners who still exist are unmarked, and the keys
// of the others are erased. It also removes traces of erased keys that were still in use when they were erased.
func (r *Ring) FinishDeletions(ctx context.Context, all iter.Seq2[Owner, error]) (erased int, err error) {
	if r == nil || r.place.ReadOnly() {
		return 0, nil
	}
	if erased, err = r.finishDeletions(ctx, all); err != nil {
		return erased, err
	}
	if err := r.flushRecent(ctx); !errors.Is(err, db.ErrLogInUse) {
		return erased, err
	}
	return erased, nil // the next time tries again
}

func (r *Ring) finishDeletions(ctx context.Context, all iter.Seq2[Owner, error]) (erased int, err error) {
	marked := map[string]int64{} // by owner, since when
	err = r.place.Read(ctx, func(tx db.Tx) error {
		clear(marked)
		return tx.Each(func(row db.Rows) error {
			var owner []byte
			var since int64
			err := row.Scan(&owner, &since)
			marked[string(owner)] = since
			return err
		}, `SELECT owner, leaving_at FROM user_key WHERE leaving_at < ? AND owner IS NOT NULL`,
			r.now().Add(-markAge).UnixMicro())
	})
	if err != nil || len(marked) == 0 {
		return 0, err
	}
	left := maps.Clone(marked)
	for o, err := range all {
		if err != nil {
			return 0, err
		}
		delete(left, string(r.hash(o)))
	}
	for owner, since := range marked {
		if _, gone := left[owner]; gone {
			if _, err := r.erase(ctx, []byte(owner), since); err != nil {
				return erased, err
			}
			erased++
			continue
		}
		if err := r.place.Write(ctx, func(tx db.Tx) error {
			_, err := tx.Exec(`UPDATE user_key SET leaving_at = NULL WHERE owner = ?`, []byte(owner))
			return err
		}); err != nil {
			return erased, err
		}
	}
	return erased, nil
}
