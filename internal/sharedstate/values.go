package sharedstate

import (
	"bytes"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Values have keys of their own, apart from those of leases.
const (
	values    = "value/"
	pastTheir = "value0" // after all of them
)

// Update changes the values of some keys, which expire after a lifetime. change gets the values, nil for missing ones,
// and modifies them in place: a new value gets a new lifetime, and nil deletes it.
func Update(tx db.Tx, keys []string, life time.Duration, change func(values [][]byte)) error {
	own := make([]string, len(keys))
	old, place := make([][]byte, len(keys)), make(map[string]int, len(keys))
	for i, key := range keys {
		own[i] = values + key
		place[own[i]] = i
	}
	err := tx.Each(func(row db.Rows) error {
		var key string
		var value []byte
		err := row.Scan(&key, &value)
		old[place[key]] = value
		return err
	}, `SELECT key, value FROM shared_state WHERE key IN `+db.Texts+` AND expires_at > `+db.Clock, db.List(own))
	if err != nil {
		return err
	}
	changed := make([][]byte, len(keys))
	for i, value := range old {
		changed[i] = bytes.Clone(value)
	}
	change(changed)
	for i, value := range changed {
		switch {
		case value == nil && old[i] != nil:
			_, err = tx.Exec(`DELETE FROM shared_state WHERE key = ?`, own[i])
		case value != nil && (old[i] == nil || !bytes.Equal(value, old[i])):
			_, err = tx.Exec(`INSERT INTO shared_state (key, value, expires_at) VALUES (?1, ?2, `+db.Clock+` + ?3)
				ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at`, own[i], value,
				life.Microseconds())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Trim deletes expired values, and keeps about most of the others, with the longest lifetimes.
func Trim(tx db.Tx, most int) error {
	_, err := tx.Exec(`DELETE FROM shared_state WHERE key >= ?1 AND key < ?2 AND (expires_at <= `+db.Clock+`
		OR expires_at <= (SELECT s.expires_at FROM shared_state s WHERE s.key >= ?1 AND s.key < ?2
			ORDER BY s.expires_at DESC LIMIT 1 OFFSET ?3))`, values, pastTheir, most)
	return err
}
