package keyring

import (
	"context"
	"errors"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// The ring keeps a mark of each deleted user, so that an older backup of the store does not bring them back. A mark is
// a row of user_key without a key: its id is the owner's hash, and leaving_at is when the deletion began. The row that
// the deletion leaves in the store has changed since then, and so has an account that was added again with the same id;
// the user's row in an older backup has not.

// ErrDeleted means that an owner was deleted in a newer state of the store, and gets no new key.
var ErrDeleted = errors.New("this user was deleted, and is back only because the store is from an older backup, or " +
	"is another copy than the one in which the user was deleted; open the store again for writing, which deletes the user")

// isMark is the condition for a row of user_key that marks a deleted user.
const isMark = `erased_at IS NOT NULL AND leaving_at IS NOT NULL`

// mark records that an owner was deleted. at is when that began.
func mark(tx db.Tx, owner []byte, at int64) error {
	_, err := tx.Exec(`INSERT INTO user_key (id, made_at, leaving_at, erased_at) VALUES (?1, ?2, ?2, ?2)
		ON CONFLICT (id) DO UPDATE SET leaving_at = excluded.leaving_at, erased_at = excluded.erased_at
		WHERE user_key.leaving_at < excluded.leaving_at`, owner, at)
	return err
}

// checkNotDeleted refuses an owner who was deleted after the owner's row last changed.
func (r *Ring) checkNotDeleted(tx db.Tx, owner []byte, o Owner) error {
	at, err := db.Column[int64](tx, `SELECT leaving_at FROM user_key WHERE id = ? AND `+isMark, owner)
	if err == nil && len(at) > 0 && at[0] > o.Changed {
		return ErrDeleted
	}
	return err
}

// Back returns the users of a store who were deleted, but are back from an older backup.
func (r *Ring) Back(ctx context.Context, store db.DB) (back []Owner, err error) {
	if r == nil {
		return nil, nil
	}
	deleted := map[ownerHash]int64{}
	if err := r.place.Read(ctx, func(tx db.Tx) error {
		clear(deleted)
		return tx.Each(func(row db.Rows) error {
			var owner []byte
			var at int64
			err := row.Scan(&owner, &at)
			if len(owner) == len(ownerHash{}) {
				deleted[ownerHash(owner)] = at
			}
			return err
		}, `SELECT id, leaving_at FROM user_key WHERE `+isMark)
	}); err != nil || len(deleted) == 0 {
		return nil, err
	}
	for o, err := range Owners(ctx, store) {
		if err != nil {
			return nil, err
		}
		if deleted[ownerHash(r.hash(o))] > o.Changed {
			back = append(back, o)
		}
	}
	return back, nil
}
