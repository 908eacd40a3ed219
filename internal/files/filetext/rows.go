package filetext

import (
	"encoding/json"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/turns"
)

// insert stores the text of a file that still waits, as a memory in the place of the file.
func (w *Worker) insert(tx db.Tx, file int64, t tidied, places string, passages []kernel.Passage) error {
	var owner, project int64
	var found bool
	err := tx.Each(func(row db.Rows) error {
		found = true
		return row.Scan(&owner, &project)
	}, `SELECT coalesce(c.owner_id, f.owner_id), coalesce(`+kernel.ProjectOfFile+`, 0) `+kernel.FromFile+
		` WHERE f.id = ? AND f.text_state = 'waiting' AND f.state = 'stored'`, file)
	if err != nil || !found {
		return err
	}
	now := w.Now()
	collection, _, found, err := kernel.OwnCollection(tx, owner, kernel.TextCollection)
	if err == nil && !found {
		collection, err = db.Insert(tx, `INSERT INTO collection (owner_id, name, description, created_at, updated_at)
			VALUES (?, ?, '', ?, ?) RETURNING id`, owner, kernel.TextCollection, now, now)
	}
	if err != nil {
		return err
	}
	rows, err := kernel.NewRowWriter(tx, kernel.Viewer{User: owner}, w.Profile, w.Model)
	if err != nil {
		return err
	}
	at, err := rows.Partition(collection, project)
	if err != nil {
		return err
	}
	row, err := rows.InsertMemory(at, kernel.MemoryRow{ID: w.NewID(), Content: t.Text.Text, Metadata: "{}", Revision: 1,
		Created: now, Updated: now})
	if err != nil {
		return err
	}
	turn := turns.Memory{Content: t.Text.Text, InProject: project != 0, Created: now}
	if _, err := kernel.AddTurn(tx, row, at.Partition, turn); err != nil {
		return err
	}
	if _, _, err := rows.AddPassages(row, at, passages, nil, nil); err != nil {
		return err
	}
	if err := rows.Flush(); err != nil {
		return err
	}
	status, err := json.Marshal(info{Status: t.status})
	if err != nil {
		return err
	}
	sealed, sealedPlaces, err := kernel.SealTextOf(tx, file, string(status), places)
	if err != nil {
		return err
	}
	_, err = tx.Exec(`UPDATE file SET text_id = ?, text_state = 'indexed', text_info = ?, text_places = ?`+stillWaiting,
		row, sealed, sealedPlaces, file)
	return err
}
