package kernel

import (
	"strings"
	"sync/atomic"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// changeable begins the keys of the settings that admins change while a store is open.
const changeable = "changed."

// ChangedSettings returns the settings that admins have changed, by name.
func ChangedSettings(tx db.Tx) (map[string]int64, error) {
	changed := map[string]int64{}
	err := tx.Each(func(row db.Rows) error {
		var key string
		var value int64
		err := row.Scan(&key, &value)
		if name, is := strings.CutPrefix(key, changeable); is {
			changed[name] = value
		}
		return err
	}, `SELECT key, value FROM setting`)
	return changed, err
}

// ChangeSetting changes a setting; nil removes the change.
func ChangeSetting(tx db.Tx, name string, value *int64) error {
	if value != nil {
		return SetSetting(tx, changeable+name, *value)
	}
	_, err := tx.Exec(`DELETE FROM setting WHERE key = ?`, changeable+name)
	return err
}

// KeptSettings keeps a value made from the changed settings for ten seconds, so a change by another process arrives
// within that time. The zero value is ready.
type KeptSettings[T any] struct {
	kept  atomic.Pointer[keptSettings[T]]
	times atomic.Int64 // how often the value was forgotten
}

type keptSettings[T any] struct {
	read int64 // when, in microseconds
	made T
}

// Get returns the kept value, or makes it from the settings.
func (k *KeptSettings[T]) Get(tx db.Tx, now int64, from func(map[string]int64) T) (made T, err error) {
	const long = 10_000_000
	if kept := k.kept.Load(); kept != nil && now >= kept.read && now-kept.read < long {
		return kept.made, nil
	}
	before := k.times.Load()
	changed, err := ChangedSettings(tx)
	if err != nil {
		return made, err
	}
	made = from(changed)
	kept := &keptSettings[T]{now, made}
	k.kept.Store(kept)
	if k.times.Load() != before { // a transaction that began before the change does not see it
		k.kept.CompareAndSwap(kept, nil)
	}
	return made, nil
}

// Forget drops the kept value.
func (k *KeptSettings[T]) Forget() {
	k.times.Add(1)
	k.kept.Store(nil)
}
