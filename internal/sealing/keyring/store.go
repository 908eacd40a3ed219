package keyring

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// settingRing is the id of the ring with the keys of a store's users; missing if it has no user keys.
const settingRing = "user_keys"

// Belongs checks that a store belongs to the ring, and binds it if it has no ring yet. A store with a ring opens only
// with it.
func (r *Ring) Belongs(ctx context.Context, store db.DB) error {
	var of int64
	look := func(tx db.Tx) (err error) {
		of, err = kernel.Setting(tx, settingRing)
		return err
	}
	if err := store.Read(ctx, look); err != nil {
		return err
	}
	if r != nil && of == 0 && !store.ReadOnly() {
		if err := store.Write(ctx, func(tx db.Tx) error {
			err := look(tx)
			if err == nil && of == 0 {
				of, err = r.id, kernel.SetSetting(tx, settingRing, r.id)
			}
			return err
		}); err != nil {
			return err
		}
	}
	switch {
	case of == 0 || r != nil && of == r.id:
		return nil
	case r == nil:
		return fmt.Errorf("%w: the store has user keys, but was opened without them", ErrOther)
	}
	return fmt.Errorf("%w: the store has other user keys than those given", ErrOther)
}

// OwnerOf returns the owner for a row of a store's users.
func OwnerOf(tx db.Tx, user int64) (o Owner, err error) {
	err = db.Beyond(tx, func() error {
		return tx.QueryRow(`SELECT namespace, uid, coalesce(updated_at, created_at) FROM users WHERE id = ?`, user).
			Scan(&o.Namespace, &o.User, &o.Changed)
	})
	return o, err
}

// RecordOf is [Ring.Record] for a user given by row.
func (r *Ring) RecordOf(tx db.Tx, user int64, f *File, sum []byte) ([]byte, error) {
	if f == nil {
		return sum, nil
	}
	o, err := OwnerOf(tx, user)
	if err != nil {
		return nil, err
	}
	return r.Record(tx.Context(), o, f, sum)
}

// Look is [Ring.OpenFile] for listings of files: shut is the reason why the content can never be read.
func (r *Ring) Look(ctx context.Context, stored []byte) (f *File, sum []byte, shut, err error) {
	f, sum, err = r.OpenFile(ctx, stored)
	if IsShut(err) {
		return nil, nil, err, nil
	}
	return f, sum, nil, err
}

// IsShut reports whether an error means that a value can never be opened: its key was erased, or it is damaged.
func IsShut(err error) bool { return errors.Is(err, ErrErased) || errors.Is(err, ErrSealed) }

// Give seals the keys of files for their new owner: those of other owners that match a condition on the table. Keys
// that cannot be opened stay as they are.
func (r *Ring) Give(tx db.Tx, owner int64, condition string, args ...any) error {
	if r == nil {
		return nil
	}
	records := map[int64][]byte{}
	err := tx.Each(func(row db.Rows) error {
		var id int64
		var stored []byte
		err := row.Scan(&id, &stored)
		records[id] = stored
		return err
	}, `SELECT id, sha256 FROM file WHERE owner_id <> ? AND `+condition, append([]any{owner}, args...)...)
	for id, stored := range records {
		if err != nil {
			return err
		}
		f, sum, shut, failed := r.Look(tx.Context(), stored)
		if f == nil && failed == nil || shut != nil {
			continue
		}
		if err = failed; err == nil {
			stored, err = r.RecordOf(tx, owner, f, sum)
		}
		if err == nil {
			_, err = tx.Exec(`UPDATE file SET sha256 = ? WHERE id = ?`, stored, id)
		}
	}
	return err
}

// living is the condition for a user u who was not deleted: one who is not disabled, has an account, or owns anything.
// The row of a deleted user stays disabled if a user without an account returns with the same id.
const living = `(u.disabled_at IS NULL OR u.name IS NOT NULL OR EXISTS (SELECT 1 FROM collection WHERE owner_id = u.id)
	OR EXISTS (SELECT 1 FROM project WHERE owner_id = u.id)
	OR EXISTS (SELECT 1 FROM file WHERE owner_id = u.id AND state = 'stored')
	OR EXISTS (SELECT 1 FROM trash WHERE owner_id = u.id) OR EXISTS (SELECT 1 FROM preference WHERE user_id = u.id))`

// Owners iterates over the users of a store, except deleted ones.
func Owners(ctx context.Context, store db.DB) iter.Seq2[Owner, error] {
	const portion = 1000
	return func(yield func(Owner, error) bool) {
		for after := int64(0); ; {
			var all []Owner
			err := store.Read(ctx, func(tx db.Tx) error {
				all = nil
				return tx.Each(func(row db.Rows) error {
					var o Owner
					err := row.Scan(&after, &o.Namespace, &o.User, &o.Changed)
					all = append(all, o)
					return err
				}, `SELECT u.id, u.namespace, u.uid, coalesce(u.updated_at, u.created_at) FROM users u
					WHERE u.id > ? AND `+living+` ORDER BY u.id LIMIT ?`, after, portion)
			})
			if err != nil {
				yield(Owner{}, err)
				return
			}
			for _, o := range all {
				if !yield(o, nil) {
					return
				}
			}
			if len(all) < portion {
				return
			}
		}
	}
}
