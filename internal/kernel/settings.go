package kernel

import "github.com/souvenir-ai/souvenir/internal/db"

// Setting returns a number from the settings, 0 if it is missing.
func Setting(tx db.Tx, key string) (int64, error) {
	values, err := db.Column[int64](tx, settingQuery, key)
	if err != nil || len(values) == 0 {
		return 0, err
	}
	return values[0], nil
}

const settingQuery = `SELECT value FROM setting WHERE key = ?`

// SettingAhead announces that a setting will be read; see [db.Ahead].
func SettingAhead(tx db.Tx, key string) { db.Ahead(tx, settingQuery, key) }

// SetSetting writes a number into the settings.
func SetSetting(tx db.Tx, key string, value int64) error {
	_, err := tx.Exec(`INSERT INTO setting (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE `+
		`SET value = excluded.value`, key, value)
	return err
}
