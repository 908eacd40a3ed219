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
// marked first, then the user is deleted, and then the key is erased. For each remaining mark, [Ring.Settle] checks
// whether the user still exists.

// settled is the minimum age of a mark: a deletion in progress erases the key itself.
const settled = time.Hour

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
	if f, able := r.place.(Flusher); able { // the log of the database contains the key
		if err := f.Flush(ctx); err != nil && !errors.Is(err, db.ErrUnsupported) {
			return erased, err
		}
	}
	return erased, nil
}

// Settle finishes deletions interrupted by a crash: marked owners who still exist are unmarked, and the keys of the
// others are erased.
func (r *Ring) Settle(ctx context.Context, all iter.Seq2[Owner, error]) (erased int, err error) {
	if r == nil || r.place.ReadOnly() {
		return 0, nil
	}
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
			r.now().Add(-settled).UnixMicro())
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
