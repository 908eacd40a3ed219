package souvenir

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/jsonobject"
)

// MaxPreferences limits the size of a user's preferences, in bytes of JSON. They are an object in which programs with a
// user interface keep their settings; the store itself does not read it.
const MaxPreferences = 64 << 10

// Preferences returns the user's preferences: an empty map for none. Numbers are float64 where that loses nothing, else
// json.Number. A view limited to projects may not call it.
func (s *Store) Preferences(ctx context.Context) (map[string]any, error) {
	if err := s.checkAccount("Preferences"); err != nil {
		return nil, err
	}
	var found map[string]any
	err := s.read(ctx, func(tx db.Tx, v viewer) (err error) {
		found, err = preferences(tx, v)
		return err
	})
	return found, err
}

// SetPreferences replaces the user's preferences and returns them; nil clears them. More than 64 KiB as JSON are
// ErrTooLarge. A view limited to projects may not call it.
func (s *Store) SetPreferences(ctx context.Context, all map[string]any) (_ map[string]any, err error) {
	defer inGo[struct{}](&err, "preferences", "all")
	return s.changePreferences(ctx, "SetPreferences", all, func(_, given map[string]any) any { return given })
}

// UpdatePreferences applies a JSON merge patch (RFC 7396) to the user's preferences and returns the result: keys
// replace, null removes, objects merge. Concurrent patches all take effect. Otherwise it is like SetPreferences.
func (s *Store) UpdatePreferences(ctx context.Context, patch map[string]any) (_ map[string]any, err error) {
	defer inGo[struct{}](&err, "preferences", "patch")
	return s.changePreferences(ctx, "UpdatePreferences", patch,
		func(present, given map[string]any) any { return jsonobject.MergePatch(present, given) })
}

func (s *Store) changePreferences(ctx context.Context, what string, given map[string]any,
	change func(present, given map[string]any) any) (map[string]any, error) {
	if err := s.checkAccount(what); err != nil {
		return nil, err
	}
	if _, err := encodePreferences(given); err != nil {
		return nil, err
	}
	given, err := jsonobject.CanonicalJSON("preferences", given)
	if err != nil {
		return nil, err
	}
	var changed map[string]any
	err = s.write(ctx, func(tx db.Tx, v viewer) error {
		present, err := preferences(tx, v)
		if err != nil {
			return err
		}
		changed, _ = change(present, given).(map[string]any)
		if changed == nil {
			changed = map[string]any{}
		}
		encoded, err := encodePreferences(changed)
		if err != nil {
			return err
		}
		_, err = tx.Exec(`INSERT INTO preference (user_id, value, updated_at) VALUES (?, ?, ?)
			ON CONFLICT (user_id) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at`, v.User,
			string(encoded), s.now())
		return err
	})
	if err != nil {
		return nil, err
	}
	return changed, nil
}

// encodePreferences returns preferences as JSON, within their limit.
func encodePreferences(object map[string]any) ([]byte, error) {
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil, invalid("preferences", "{} is not JSON: %v", err)
	}
	if len(encoded) > MaxPreferences {
		return nil, newError(KindTooLarge, "preferences", "{} is %d bytes as JSON; at most %d are allowed",
			len(encoded), MaxPreferences)
	}
	return encoded, nil
}

func preferences(tx db.Tx, v viewer) (map[string]any, error) {
	stored, err := db.Column[string](tx, `SELECT value FROM preference WHERE user_id = ?`, v.User)
	if err != nil || len(stored) == 0 {
		return map[string]any{}, err
	}
	object, err := jsonobject.Decode([]byte(stored[0]))
	if err == nil && object == nil {
		err = errors.New("null instead of an object")
	}
	if err != nil {
		return nil, damaged(err, "a user's preferences cannot be read")
	}
	return object, nil
}
