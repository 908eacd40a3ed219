package keyring

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// A user and the user's key are in two databases, so a crash can come between the two deletions. Therefore the key is
// marked first, then the user is deleted, and then the key is erased. A mark that is left shows [Ring.Settle] that it
// has to look whether the user is still there.

// settled is how old a mark has to be: a deletion that is going on erases the key itself.
const settled = time.Hour

// Mark notes that an owner is being deleted. Without a key there is nothing to note.
func (r *Ring) Mark(ctx context.Context, o Owner) error {
	if r == nil {
		return nil
	}
	return r.place.Write(ctx, func(tx db.Tx) error {
		_, err := tx.Exec(`UPDATE user_key SET leaving_at = ? WHERE owner = ?`, r.now().UnixMicro(), r.hash(o))
		return err
	})
}

// Erase erases the key of an owner, if there is one: from then on nothing that was sealed under it can be opened, by
// other processes after a minute at the latest.
func (r *Ring) Erase(ctx context.Context, o Owner) (erased bool, err error) {
	if r == nil {
		return false, nil
	}
	n, err := r.erase(ctx, r.hash(o))
	return n, err
}

func (r *Ring) erase(ctx context.Context, owner []byte) (erased bool, err error) {
	var ids [][]byte
	err = r.place.Write(ctx, func(tx db.Tx) error {
		ids, err = db.Column[[]byte](tx, `UPDATE user_key SET wrapped = NULL, owner = NULL, leaving_at = NULL,
			erased_at = ? WHERE owner = ? RETURNING id`, r.now().UnixMicro(), owner)
		return err
	})
	if err != nil || len(ids) == 0 {
		return false, err
	}
	r.owners.Put(ownerHash(owner), &key{}, keyBytes, cached)
	for _, id := range ids {
		r.keys.Put(ID(id), &key{}, keyBytes, cached)
	}
	if f, able := r.place.(Flusher); able { // the key was in its log
		if err := f.Flush(ctx); err != nil && !errors.Is(err, db.ErrUnsupported) {
			return true, err
		}
	}
	return true, nil
}

// Settle ends the deletions that a crash has cut off: of marked owners, those who are still among all owners stay, and
// the keys of the others are erased.
func (r *Ring) Settle(ctx context.Context, all iter.Seq2[Owner, error]) (erased int, err error) {
	if r == nil || r.place.ReadOnly() {
		return 0, nil
	}
	var marked [][]byte
	err = r.place.Read(ctx, func(tx db.Tx) error {
		marked, err = db.Column[[]byte](tx, `SELECT owner FROM user_key WHERE leaving_at < ? AND owner IS NOT NULL`,
			r.now().Add(-settled).UnixMicro())
		return err
	})
	if err != nil || len(marked) == 0 {
		return 0, err
	}
	left := map[string]bool{}
	for _, owner := range marked {
		left[string(owner)] = true
	}
	for o, err := range all {
		if err != nil {
			return 0, err
		}
		delete(left, string(r.hash(o)))
	}
	for _, owner := range marked {
		if left[string(owner)] {
			if _, err := r.erase(ctx, owner); err != nil {
				return erased, err
			}
			erased++
			continue
		}
		if err := r.place.Write(ctx, func(tx db.Tx) error {
			_, err := tx.Exec(`UPDATE user_key SET leaving_at = NULL WHERE owner = ?`, owner)
			return err
		}); err != nil {
			return erased, err
		}
	}
	return erased, nil
}

// Count says how many keys there are, and how many were erased.
func (r *Ring) Count(ctx context.Context) (keys, erased int, err error) {
	err = r.place.Read(ctx, func(tx db.Tx) error {
		return tx.QueryRow(`SELECT coalesce(sum(CASE WHEN erased_at IS NULL THEN 1 ELSE 0 END), 0),
			coalesce(sum(CASE WHEN erased_at IS NULL THEN 0 ELSE 1 END), 0) FROM user_key`).Scan(&keys, &erased)
	})
	return keys, erased, err
}
