package souvenir

import (
	"fmt"

	"github.com/souvenir-ai/souvenir/internal/check"
	"github.com/souvenir-ai/souvenir/internal/db"
)

// checkTrash looks whether what is in the trash can be restored.
func (in *inspection) checkTrash() error {
	wrong := func(table, id, format string, args ...any) {
		in.find(Finding{Table: table, ID: id, Problem: fmt.Sprintf(format, args...)})
	}
	err := in.tx.Each(func(row db.Rows) error {
		var id, kind, title, through string
		var memories, counted, revisions, countedRevisions, files int
		var deleted, until int64
		if err := row.Scan(&id, &kind, &title, &through, &deleted, &until, &memories, &counted, &revisions, &countedRevisions, &files); err != nil {
			return err
		}
		in.report.Checked["trash"]++
		for _, err := range []error{check.UTF8("title", title), check.UTF8("deleted_through", through), checkTime("deleted_at", deleted)} {
			if err != nil {
				wrong("trash", id, "cannot be: %v", err)
			}
		}
		if memories != counted && until > 0 { // what is being erased counts no more
			wrong("trash", id, "counts %d memories and has %d", memories, counted)
		}
		if revisions != countedRevisions && until > 0 {
			wrong("trash", id, "counts %d past versions and has %d", revisions, countedRevisions)
		}
		if kind == string(TrashFile) && files != 1 {
			wrong("trash", id, "has %d files instead of one", files)
		}
		return nil
	}, `SELECT uid, kind, title, deleted_through, deleted_at, restorable_until, memories,
			(SELECT count(*) FROM trash_item i WHERE i.entry_id = t.id AND i.kind = 'memory'), revisions,
			(SELECT count(*) FROM trash_item i WHERE i.entry_id = t.id AND i.kind = 'revision'),
			(SELECT count(*) FROM file f WHERE f.uid = 'trash/' || t.id AND f.state = 'trashed')
		FROM trash t ORDER BY id`)
	if err != nil {
		return err
	}
	err = in.tx.Each(func(row db.Rows) error {
		var kind string
		var i trashItem
		if err := row.Scan(&kind, &i.id, &i.data); err != nil {
			return err
		}
		in.report.Checked["trash_item"]++
		var err error
		if kind == "memory" {
			err = i.into(&trashedMemory{})
		} else {
			err = i.into(&trashedRevision{})
		}
		if err != nil {
			wrong("trash_item", i.id, "cannot be restored: %v", err)
		}
		return nil
	}, `SELECT kind, uid, data FROM trash_item WHERE kind IN ('memory', 'revision') ORDER BY id`)
	if err != nil {
		return err
	}
	strays, err := db.Column[string](in.tx, `SELECT uid FROM file WHERE state = 'trashed' AND uid NOT IN (SELECT 'trash/' || id FROM trash WHERE kind = 'file')`)
	for _, id := range strays {
		wrong("file", id, "is in the trash, and no entry of it has it")
	}
	return err
}
