package keyring

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/sealing"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
)

// Status describes a ring. It holds no key.
type Status struct {
	MasterKey string    // id of the master key that wraps the ring's key
	Keys      int       // of users
	Erased    int       // keys that were erased
	Deleted   int       // users whose deletion is remembered
	Leaving   int       // user keys whose deletion has begun but not ended
	Since     time.Time // when the first key was made; the zero time means never
	Last      time.Time // when a key was last erased; the zero time means never
}

// Status reads the status of the ring.
func (r *Ring) Status(ctx context.Context) (s Status, err error) {
	err = r.place.Read(ctx, func(tx db.Tx) error {
		header, err := headerOf(tx)
		if err != nil {
			return err
		}
		of, err := sealing.StatusOf(header)
		if err != nil {
			return err
		}
		s.MasterKey = of.MasterKey
		var since, last *int64
		err = tx.QueryRow(`SELECT coalesce(sum(CASE WHEN erased_at IS NULL THEN 1 ELSE 0 END), 0),
			coalesce(sum(CASE WHEN erased_at IS NOT NULL AND leaving_at IS NULL THEN 1 ELSE 0 END), 0),
			coalesce(sum(CASE WHEN `+isMark+` THEN 1 ELSE 0 END), 0),
			coalesce(sum(CASE WHEN erased_at IS NULL AND leaving_at IS NOT NULL THEN 1 ELSE 0 END), 0),
			min(CASE WHEN `+isMark+` THEN NULL ELSE made_at END), max(CASE WHEN leaving_at IS NULL THEN erased_at END)
			FROM user_key`).Scan(&s.Keys, &s.Erased, &s.Deleted, &s.Leaving, &since, &last)
		s.Since, s.Last = kernel.TimeOf(since), kernel.TimeOf(last)
		return err
	})
	return s, err
}

// rows returns the numbers of rows that a store records: of all keys and marks, and of those without a key.
func (s Status) rows() (made, erased int64) {
	return int64(s.Keys + s.Erased + s.Deleted), int64(s.Erased + s.Deleted)
}

// ReadOnly reports whether the keys can only be read: no key can be made or erased.
func (r *Ring) ReadOnly() bool { return r.place.ReadOnly() }

// Named describes the keys that the rows of a store refer to.
type Named struct {
	Values  int      // sealed values
	Erased  int      // values whose key was erased
	Unknown int      // values whose key the ring has never had
	Keys    []string // the ids of the keys that the ring has never had, the first 100
}

// Named checks the keys that all rows of a store refer to.
func (r *Ring) Named(ctx context.Context, store db.DB) (n Named, err error) {
	counts := map[ID]int{}
	count := func(sealed []byte) {
		if len(sealed) >= head && sealed[0] == form {
			counts[ID(sealed[1:head])]++
		}
	}
	err = store.Read(ctx, func(tx db.Tx) error {
		clear(counts)
		tx = db.Stored(tx)
		if err := sealedrows.EachSealed(tx, head, func(_ string, sealed []byte) error {
			count(sealed)
			return nil
		}); err != nil {
			return err
		}
		return tx.Each(func(row db.Rows) error {
			var stored []byte
			err := row.Scan(&stored)
			if IsRecord(stored) {
				count(stored)
			}
			return err
		}, `SELECT sha256 FROM file WHERE state <> 'leaving'`) // the content of a deleted file is removed in the background
	})
	if err != nil {
		return n, err
	}
	err = r.place.Read(ctx, func(tx db.Tx) error {
		n = Named{}
		for id, rows := range counts {
			erased, err := db.Column[bool](tx, `SELECT wrapped IS NULL FROM user_key WHERE id = ?`, id[:])
			if err != nil {
				return err
			}
			n.Values += rows
			switch {
			case len(erased) == 0:
				n.Unknown += rows
				if len(n.Keys) < 100 {
					n.Keys = append(n.Keys, hex.EncodeToString(id[:]))
				}
			case erased[0]:
				n.Erased += rows
			}
		}
		return nil
	})
	return n, err
}

// EraseDeleted erases the keys of users who are deleted in a store, after an older copy of the ring was restored. The
// store must be the current one: in an older copy a user may be deleted who has come back since.
func (r *Ring) EraseDeleted(ctx context.Context, store db.DB) (erased int, err error) {
	var deleted []Owner
	err = store.Read(ctx, func(tx db.Tx) error {
		deleted = nil
		return tx.Each(func(row db.Rows) error {
			var o Owner
			err := row.Scan(&o.Namespace, &o.User, &o.Changed)
			deleted = append(deleted, o)
			return err
		}, `SELECT u.namespace, u.uid, coalesce(u.updated_at, u.created_at) FROM users u WHERE NOT `+living)
	})
	for _, o := range deleted {
		if err != nil {
			return erased, err
		}
		var e Erased
		if e, err = r.Erase(ctx, o, o.Changed); !e.IsZero() {
			erased++
		}
	}
	return erased, err
}

// CopyTo copies all keys to an empty place.
func (r *Ring) CopyTo(ctx context.Context, to db.Keys) error {
	return to.Write(ctx, func(into db.Tx) error {
		return r.place.Read(ctx, func(tx db.Tx) error {
			if err := tx.Each(func(row db.Rows) error {
				var header []byte
				var store *int64
				if err := row.Scan(&header, &store); err != nil {
					return err
				}
				_, err := into.Exec(`INSERT INTO ring (one, header, store) VALUES (1, ?, ?)`, header, store)
				return err
			}, `SELECT header, store FROM ring`); err != nil {
				return err
			}
			return tx.Each(func(row db.Rows) error {
				var id, owner, wrapped []byte
				var made int64
				var leaving, erased *int64
				if err := row.Scan(&id, &owner, &wrapped, &made, &leaving, &erased); err != nil {
					return err
				}
				_, err := into.Exec(`INSERT INTO user_key (id, owner, wrapped, made_at, leaving_at, erased_at)
					VALUES (?, ?, ?, ?, ?, ?)`, id, owner, wrapped, made, leaving, erased)
				return err
			}, `SELECT id, owner, wrapped, made_at, leaving_at, erased_at FROM user_key`)
		})
	})
}

// The settings of a store about its keys, besides settingRing.
const (
	settingStore  = "user_keys_store"  // the random number by which the ring recognizes the store
	settingMade   = "user_keys_made"   // how many keys, and marks of deleted users, the ring has had, as last recorded
	settingErased = "user_keys_erased" // how many of these have no key any more
)

// Bound is a store's record of its keys in its own database.
type Bound struct {
	Ring         int64 // id of the ring; 0: the store has no user keys
	Content      bool  // for a store without user keys: it has content, which is not sealed
	store        int64
	made, erased int64
}

// Errors about a ring and a store that do not belong together. ErrStale wraps ErrOther.
var (
	ErrOther = errors.New("the keys are not those of the store")
	ErrStale = fmt.Errorf("%w as it is now: they are an older copy", ErrOther)
)

// BoundOf reads a store's record of its keys.
func BoundOf(ctx context.Context, store db.DB) (b Bound, err error) {
	err = store.Read(ctx, func(tx db.Tx) error {
		b = Bound{}
		for name, value := range map[string]*int64{settingRing: &b.Ring, settingStore: &b.store, settingMade: &b.made,
			settingErased: &b.erased} {
			if *value, err = kernel.Setting(tx, name); err != nil {
				return err
			}
		}
		if b.Ring != 0 {
			return nil
		}
		for _, table := range []string{"memory", "file", "trash", "collection", "project", "preference"} {
			rows, err := db.Column[int64](tx, `SELECT 1 FROM `+table+` LIMIT 1`)
			if err != nil || len(rows) > 0 {
				b.Content = len(rows) > 0
				return err
			}
		}
		return nil
	})
	return b, err
}

// Bind checks that the ring belongs to a store, and is not an older copy. A store without keys gets this ring, if the
// ring has no store yet.
func (r *Ring) Bind(ctx context.Context, store db.DB, b Bound) error {
	switch {
	case b.Ring == 0:
		if err := r.claim(ctx, store); err != nil {
			return err
		}
	case b.Ring != r.id:
		return fmt.Errorf("%w: it needs those with the id %s, and these have %s", ErrOther, RingID(b.Ring), RingID(r.id))
	default:
		s, err := r.Status(ctx)
		if err != nil {
			return err
		}
		if made, erased := s.rows(); made < b.made || erased < b.erased {
			return fmt.Errorf("%w, with %d keys and deleted users, of which %d are erased or deleted, where the store knows "+
				"of %d and %d", ErrStale, made, erased, b.made, b.erased)
		}
	}
	return r.Note(ctx, store)
}

// RingID formats the id of a ring for people.
func RingID(id int64) string { return fmt.Sprintf("%016x", id) }

// claim binds the ring to a store. First the store's number is durable in the store, then in the ring, and only then
// does the store rely on the ring. So after a crash the next attempt can finish.
func (r *Ring) claim(ctx context.Context, store db.DB) error {
	var number int64
	if err := store.Write(ctx, func(tx db.Tx) (err error) {
		if number, err = kernel.Setting(tx, settingStore); err != nil || number != 0 {
			return err
		}
		number = randomNumber()
		return kernel.SetSetting(tx, settingStore, number)
	}); err != nil {
		return err
	}
	var of *int64
	if err := r.place.Write(ctx, func(tx db.Tx) error {
		if _, err := tx.Exec(`UPDATE ring SET store = ? WHERE store IS NULL`, number); err != nil {
			return err
		}
		return tx.QueryRow(`SELECT store FROM ring`).Scan(&of)
	}); err != nil {
		return err
	}
	if of == nil || *of != number {
		return fmt.Errorf("%w: they are those of another store", ErrOther)
	}
	return store.Write(ctx, func(tx db.Tx) error {
		known, err := kernel.Setting(tx, settingRing)
		if err == nil && known != 0 && known != r.id {
			err = fmt.Errorf("%w: another program has given it others meanwhile", ErrOther)
		}
		if err == nil {
			err = kernel.SetSetting(tx, settingRing, r.id)
		}
		return err
	})
}

// Note records the number of keys in a store, so that the store recognizes an older copy of the ring.
func (r *Ring) Note(ctx context.Context, store db.DB) error {
	if r == nil || store.ReadOnly() {
		return nil
	}
	s, err := r.Status(ctx)
	if err != nil {
		return err
	}
	made, erased := s.rows()
	now := map[string]int64{settingMade: made, settingErased: erased}
	behind := false
	look := func(tx db.Tx) error {
		behind = false
		for name, value := range now {
			known, err := kernel.Setting(tx, name)
			if err != nil {
				return err
			}
			behind = behind || known < value
		}
		return nil
	}
	if err := store.Read(ctx, look); err != nil || !behind {
		return err
	}
	return store.Write(db.Freeing(ctx), func(tx db.Tx) error {
		for name, value := range now {
			known, err := kernel.Setting(tx, name)
			if err == nil && known < value {
				err = kernel.SetSetting(tx, name, value)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// NoteAnew records the number of keys even if it is lower than before.
func (r *Ring) NoteAnew(ctx context.Context, store db.DB) error {
	s, err := r.Status(ctx)
	if err != nil {
		return err
	}
	return store.Write(ctx, func(tx db.Tx) error {
		made, erased := s.rows()
		err := kernel.SetSetting(tx, settingMade, made)
		if err == nil {
			err = kernel.SetSetting(tx, settingErased, erased)
		}
		return err
	})
}

// GiveUpUnknown treats keys in rows of a store that the ring has never had as erased, so that lists work again, and a
// check removes the rows.
func (r *Ring) GiveUpUnknown(ctx context.Context, store db.DB) (lost int, err error) {
	for {
		n, err := r.Named(ctx, store)
		if err != nil || len(n.Keys) == 0 {
			return lost, err
		}
		if err := r.place.Write(ctx, func(tx db.Tx) error {
			for _, key := range n.Keys {
				id, err := hex.DecodeString(key)
				if err != nil {
					return err
				}
				now := r.now().UnixMicro()
				if _, err := tx.Exec(`INSERT INTO user_key (id, made_at, erased_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, id,
					now, now); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return lost, err
		}
		lost += len(n.Keys)
	}
}

// HasSealed reports whether a store has a value that is sealed under the key of a user.
func HasSealed(ctx context.Context, store db.DB) (sealed bool, err error) {
	errFound := errors.New("found")
	err = store.Read(ctx, func(tx db.Tx) error {
		tx = db.Stored(tx)
		if err := sealedrows.EachSealed(tx, head, func(string, []byte) error { return errFound }); err != nil {
			return err
		}
		return tx.Each(func(row db.Rows) error {
			var stored []byte
			err := row.Scan(&stored)
			if IsRecord(stored) {
				return errFound
			}
			return err
		}, `SELECT sha256 FROM file`)
	})
	if errors.Is(err, errFound) {
		return true, nil
	}
	return false, err
}

// Adopt binds the ring to a store whose values it already seals, such as a recovered store.
func (r *Ring) Adopt(ctx context.Context, store db.DB) error {
	var number *int64
	if err := r.place.Read(ctx, func(tx db.Tx) error {
		return tx.QueryRow(`SELECT store FROM ring`).Scan(&number)
	}); err != nil {
		return err
	}
	if err := store.Write(ctx, func(tx db.Tx) error {
		if number != nil {
			if err := kernel.SetSetting(tx, settingStore, *number); err != nil {
				return err
			}
		}
		return kernel.SetSetting(tx, settingRing, r.id)
	}); err != nil {
		return err
	}
	return r.NoteAnew(ctx, store)
}
