package kernel

import (
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// File is a file as it is read, with its rows.
type File struct {
	Row, Memory, Project int64  // the memory it is linked to, and the project it is in; 0: none
	ID, MemoryID         string // MemoryID is empty for a memory that the viewer does not see
	FileDetails
	Size                int64
	Record              []byte // its hash, or its key with it; see package keyring
	Tags                []string
	Owner, ProjectID    string // of the project: if the viewer sees it
	Created, Updated    int64
	TextState, TextInfo string
	Writable            bool // the viewer may change it
}

// LoadFiles reads the visible files that satisfy a condition on f, m, p or c, which may end with an order.
func LoadFiles(tx db.Tx, v Viewer, condition string, args ...any) (found []File, err error) {
	memory, memoryArgs := v.Visible()
	writable, writableArgs := v.WritableFile()
	visible, visibleArgs := v.VisibleFile()
	var f File
	var tags string
	columns := db.Columns{
		{SQL: `f.id`, To: &f.Row}, {SQL: `coalesce(m.id, 0)`, To: &f.Memory},
		{SQL: `coalesce(` + ProjectOfFile + `, 0)`, To: &f.Project}, {SQL: `f.uid`, To: &f.ID},
		{SQL: `CASE WHEN ` + memory + v.Alive(`m`) + ` THEN m.uid ELSE '' END`, To: &f.MemoryID, Args: memoryArgs},
		{SQL: `f.filename`, To: &f.Name}, {SQL: `f.mime_type`, To: &f.Type},
		{SQL: `f.size`, To: &f.Size}, {SQL: `f.sha256`, To: &f.Record}, {SQL: `f.description`, To: &f.Description},
		{SQL: `f.category`, To: &f.Category}, {SQL: `u.uid`, To: &f.Owner}, {SQL: `coalesce(j.uid, '')`, To: &f.ProjectID},
		{SQL: `(SELECT ` + db.ListOf + `(t.tag ORDER BY t.position) FROM file_tag t WHERE t.file_id = f.id)`, To: &tags},
		{SQL: `f.created_at`, To: &f.Created}, {SQL: `f.updated_at`, To: &f.Updated},
		{SQL: `f.text_state`, To: &f.TextState}, {SQL: `f.text_info`, To: &f.TextInfo},
		{SQL: `coalesce(` + writable + `, false)`, To: &f.Writable, Args: writableArgs},
	}
	targets := columns.To()
	err = tx.Each(func(row db.Rows) (err error) {
		f = File{}
		if err = row.Scan(targets...); err == nil {
			f.Tags, err = DecodeTags(tx, tags)
		}
		found = append(found, f)
		return err
	}, `SELECT `+columns.SQL()+` `+FromFile+` JOIN users u ON u.id = f.owner_id
		LEFT JOIN project j ON j.id = `+ProjectOfFile+` AND j.id IN (`+SharedWith+`)
		WHERE `+visible+` AND `+condition,
		slices.Concat(columns.Args(), []any{v.User, v.User}, visibleArgs, args)...)
	return found, err
}

const anyFiles = `SELECT EXISTS (SELECT 1 FROM file)`

// LinkedFilesAhead announces a call of [LinkedFiles]; see [db.Ahead].
func LinkedFilesAhead(tx db.Tx) { db.Ahead(tx, anyFiles) }

// LinkedFiles calls add for the memories with some ids that visible files are linked to: once with their number or,
// with summaries, for each file with its id, name, type and size, the newest first.
func LinkedFiles(tx db.Tx, v Viewer, memories []string, summaries bool, add func(memory string, n int, f File)) error {
	var some bool
	if err := tx.QueryRow(anyFiles).Scan(&some); err != nil || !some || len(memories) == 0 {
		return err
	}
	visible, args := v.VisibleFile()
	from := FromFile + ` WHERE f.memory_id IN (SELECT id FROM memory WHERE uid IN ` + db.Texts + `) AND ` + visible
	args = append([]any{db.List(memories)}, args...)
	var memory string
	var f File
	if !summaries {
		return tx.Each(func(row db.Rows) error {
			var files int
			err := row.Scan(&memory, &files)
			if err == nil {
				add(memory, files, f)
			}
			return err
		}, `SELECT m.uid, count(*) `+from+` GROUP BY m.uid`, args...)
	}
	return tx.Each(func(row db.Rows) error {
		err := row.Scan(&memory, &f.ID, &f.Name, &f.Type, &f.Size)
		if err == nil {
			add(memory, 1, f)
		}
		return err
	}, `SELECT m.uid, f.uid, f.filename, f.mime_type, f.size `+from+` ORDER BY f.created_at DESC, f.uid`, args...)
}
