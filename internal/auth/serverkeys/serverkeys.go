// Package serverkeys stores the secret keys that all servers of a store share, in the table signing_key. Each algorithm
// has at most one current key; retired ones only verify.
package serverkeys

import (
	"crypto/rand"

	"github.com/souvenir-ai/souvenir/internal/auth/secretvalue"
	"github.com/souvenir-ai/souvenir/internal/db"
)

// Key is a key with its times, in microseconds.
type Key struct {
	ID      string
	Secret  []byte
	Created int64
	Retired int64 // 0: it is the current one of its algorithm
}

// Current returns the current key of an algorithm; false: there is none.
func Current(tx db.Tx, algorithm string) (Key, bool, error) {
	return one(load(tx, `algorithm = ? AND retired_at IS NULL`, algorithm))
}

// Find returns a key of an algorithm by its id, also one that has retired.
func Find(tx db.Tx, algorithm, id string) (Key, bool, error) {
	return one(load(tx, `kid = ? AND algorithm = ?`, id, algorithm))
}

// List returns the keys of an algorithm that had not retired before a time, the current one first.
func List(tx db.Tx, algorithm string, since int64) ([]Key, error) {
	return load(tx, `algorithm = ? AND (retired_at IS NULL OR retired_at >= ?)
		ORDER BY retired_at IS NOT NULL, retired_at DESC, id DESC`, algorithm, since)
}

func one(found []Key, err error) (Key, bool, error) {
	if err != nil || len(found) == 0 {
		return Key{}, false, err
	}
	return found[0], true, nil
}

func load(tx db.Tx, condition string, args ...any) (found []Key, err error) {
	err = tx.Each(func(row db.Rows) error {
		var k Key
		err := row.Scan(&k.ID, &k.Secret, &k.Created, &k.Retired)
		found = append(found, k)
		return err
	}, `SELECT kid, private_key, created_at, coalesce(retired_at, 0) FROM signing_key WHERE `+condition, args...)
	return found, err
}

// Add stores the current key of an algorithm that has none.
func Add(tx db.Tx, algorithm string, secret []byte, now int64) (Key, error) {
	k := Key{ID: secretvalue.Identifier(), Secret: secret, Created: now}
	_, err := tx.Exec(`INSERT INTO signing_key (kid, algorithm, private_key, created_at) VALUES (?, ?, ?, ?)`, k.ID,
		algorithm, secret, now)
	return k, err
}

// CurrentOrNew returns the current key of an algorithm, and makes one of some random bytes if there is none.
func CurrentOrNew(tx db.Tx, algorithm string, size int, now int64) (Key, error) {
	k, found, err := Current(tx, algorithm)
	if err != nil || found {
		return k, err
	}
	secret := make([]byte, size)
	_, _ = rand.Read(secret) // never fails
	return Add(tx, algorithm, secret, now)
}

// Retire retires the current key of an algorithm if it was made before a time.
func Retire(tx db.Tx, algorithm string, now, madeBefore int64) error {
	_, err := tx.Exec(`UPDATE signing_key SET retired_at = ? WHERE algorithm = ? AND retired_at IS NULL
		AND created_at < ?`, now, algorithm, madeBefore)
	return err
}

// Remove deletes all keys of an algorithm.
func Remove(tx db.Tx, algorithm string) error {
	_, err := tx.Exec(`DELETE FROM signing_key WHERE algorithm = ?`, algorithm)
	return err
}

// RemoveRetired deletes the keys that retired before a time. Those of one algorithm last longer: they are deleted if
// they retired before another time.
func RemoveRetired(tx db.Tx, before int64, lasting string, lastingBefore int64) error {
	_, err := tx.Exec(`DELETE FROM signing_key WHERE algorithm <> ?1 AND retired_at < ?2
		OR algorithm = ?1 AND retired_at < ?3`, lasting, before, lastingBefore)
	return err
}
