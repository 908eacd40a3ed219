package kernel

import (
	"encoding/json"
	"errors"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
)

// MaxPreferences limits the size of a user's preferences, in bytes of JSON.
const MaxPreferences = 64 << 10

// CanonicalPreferences returns preferences of the caller as they are stored and read again.
func CanonicalPreferences(given map[string]any) (map[string]any, error) {
	if _, err := encodePreferences(given); err != nil {
		return nil, err
	}
	return jsonobject.CanonicalJSON("preferences", given)
}

// encodePreferences returns preferences as JSON, within their limit.
func encodePreferences(object map[string]any) ([]byte, error) {
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil, fault.Invalid("preferences", "{} is not JSON: %v", err)
	}
	if len(encoded) > MaxPreferences {
		return nil, fault.New(fault.KindTooLarge, "preferences", "{} is %d bytes as JSON; at most %d are allowed",
			len(encoded), MaxPreferences)
	}
	return encoded, nil
}

// Preferences returns the preferences of a user, a row in the users: an empty map for none.
func Preferences(tx db.Tx, user int64) (map[string]any, error) {
	stored, err := db.Column[string](tx, `SELECT value FROM preference WHERE user_id = ?`, user)
	if err != nil || len(stored) == 0 {
		return map[string]any{}, err
	}
	object, err := jsonobject.Decode([]byte(stored[0]))
	if err == nil && object == nil {
		err = errors.New("null instead of an object")
	}
	if err != nil {
		return nil, fault.Damaged(err, "a user's preferences cannot be read")
	}
	return object, nil
}

// ChangePreferences replaces the preferences of a user, a row in the users, by what change makes of the present and the
// given ones.
func ChangePreferences(tx db.Tx, user, now int64, given map[string]any,
	change func(present, given map[string]any) any) (map[string]any, error) {
	present, err := Preferences(tx, user)
	if err != nil {
		return nil, err
	}
	changed, _ := change(present, given).(map[string]any)
	changed = OrEmpty(changed)
	encoded, err := encodePreferences(changed)
	if err != nil {
		return nil, err
	}
	sealed, err := sealedrows.SealText(tx, user, sealedrows.PreferenceValue, string(encoded))
	if err != nil {
		return nil, err
	}
	_, err = tx.Exec(`INSERT INTO preference (user_id, value, updated_at) VALUES (?, ?, ?)
		ON CONFLICT (user_id) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at`, user, sealed, now)
	return changed, err
}
