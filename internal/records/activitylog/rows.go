package activitylog

import (
	"github.com/souvenir-ai/souvenir/internal/db"
)

// Row is a recorded call as it is stored. Project is the row of a project, or nil.
type Row struct {
	ID, Namespace, User         string
	Credential, CredentialID    string
	Client, Tool, Action        string
	Project                     any
	Memory, File                string
	Outcome                     string
	StartedAt, Duration, Length int64 // microseconds, microseconds, bytes
	Hits                        *int
}

// Insert stores a call. It can be repeated if its outcome is unknown: a call is stored only once.
func (r Row) Insert(tx db.Tx) error {
	_, err := tx.Exec(`INSERT INTO activity (uid, namespace, user_uid, credential, credential_id, client, tool, action,
		project_id, memory, file, outcome, started_at, duration, bytes, hits)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (uid) DO NOTHING`,
		r.ID, r.Namespace, r.User, r.Credential, r.CredentialID, r.Client, r.Tool, r.Action, r.Project,
		r.Memory, r.File, r.Outcome, r.StartedAt, r.Duration, r.Length, r.Hits)
	return err
}

// ProjectOf returns the row of the project of a memory or, without one, of a file, by id; nil: none.
func ProjectOf(tx db.Tx, memory, file string) (any, error) {
	for _, subject := range []struct{ id, query string }{
		{memory, `SELECT p.project_id FROM memory m JOIN partition p ON p.id = m.partition_id WHERE m.uid = ? ` +
			`AND p.project_id IS NOT NULL`},
		{file, `SELECT coalesce(p.project_id, f.project_id) FROM file f LEFT JOIN memory m ON m.id = f.memory_id
			LEFT JOIN partition p ON p.id = m.partition_id
			WHERE f.uid = ? AND coalesce(p.project_id, f.project_id) IS NOT NULL`},
	} {
		if subject.id == "" {
			continue
		}
		rows, err := db.Column[int64](tx, subject.query, subject.id)
		switch {
		case err != nil:
			return nil, err
		case len(rows) > 0:
			return rows[0], nil
		}
	}
	return nil, nil
}

// DeleteOld deletes up to batch calls beyond the newest ones, and up to batch that began before a time in microseconds.
// It returns how many it deleted.
func DeleteOld(tx db.Tx, newest int64, before int64, batch int) (int64, error) {
	// The newest surplus call is found from the end of the table, by the primary key. Counts deduces the remaining rows
	// from the lowest number and the earliest time, so the rows are deleted in these orders.
	surplus, err := tx.Exec(`DELETE FROM activity WHERE id IN (SELECT id FROM activity WHERE id <= (SELECT id `+
		`FROM activity ORDER BY id DESC LIMIT 1 OFFSET ?1) ORDER BY id LIMIT ?2)`, newest, batch)
	if err != nil {
		return 0, err
	}
	old, err := tx.Exec(`DELETE FROM activity WHERE id IN (SELECT id FROM activity WHERE started_at < ? ORDER BY started_at
		LIMIT ?)`, before, batch)
	return surplus.RowsAffected + old.RowsAffected, err
}
