package transfer

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/files/filetype"
	"github.com/souvenir-ai/souvenir/internal/files/objects"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/sealing/keyring"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// incomingFile is a file whose chunks are being read. It is in the store under a secret id, in a state that makes it
// invisible, until it is complete and its hash is right.
type incomingFile struct {
	lineNumber
	ExportFile
	im      *importer
	skip    bool  // not imported: its chunks are skipped
	stored  int64 // row of the file with this id to replace; 0: none
	left    int64 // row of the file whose chunks must be removed; 0: none
	arrives int64 // row; 0 until a part of it has been written
	got     int64 // bytes so far
	written int64 // chunks that are written
	waiting []objects.Chunk
	hash    hash.Hash
}

// WaitingChunks is the number of chunks written in one transaction.
const WaitingChunks = 16

func (*incomingFile) apply(*importTx) error { return nil } // files are written as their chunks arrive

func parseFile(line []byte, n int) (importItem, error) {
	var given struct {
		ID           string   `json:"id"`
		Owner        string   `json:"owner"`
		MemoryID     string   `json:"memory_id"`
		MemoryOwner  string   `json:"memory_owner"`
		ProjectOwner string   `json:"project_owner"`
		ProjectID    string   `json:"project_id"`
		Filename     string   `json:"filename"`
		MIMEType     string   `json:"mime_type"`
		Size         int64    `json:"size"`
		SHA256       string   `json:"sha256"`
		Description  string   `json:"description"`
		Category     string   `json:"category"`
		Tags         []string `json:"tags"`
		CreatedAt    string   `json:"created_at"`
		UpdatedAt    string   `json:"updated_at"`
	}
	if err := decodeLine(line, &given); err != nil {
		return nil, err
	}
	f := &incomingFile{lineNumber: lineNumber(n), hash: sha256.New(), ExportFile: ExportFile{
		ID: given.ID, owner: cmp.Or(given.Owner, kernel.LocalUser), memory: given.MemoryID, project: given.ProjectID,
		Filename: given.Filename, MIMEType: given.MIMEType, Size: given.Size, Description: given.Description,
		Category: given.Category,
	}}
	f.memoryOwner, f.projectOwner = cmp.Or(given.MemoryOwner, f.owner), cmp.Or(given.ProjectOwner, f.owner)
	for _, name := range []struct{ argument, value string }{
		{"id", f.ID}, {"owner", f.owner}, {"memory_owner", f.memoryOwner}, {"project_owner", f.projectOwner},
		{"memory_id", cmp.Or(f.memory, "-")},
	} {
		if err := valid.Name(name.argument, name.value); err != nil {
			return nil, err
		}
	}
	if err := cmp.Or(valid.Project(f.project, ""), f.Check()); err != nil {
		return nil, err
	}
	var err error
	if f.tags, err = valid.Tags(given.Tags, valid.MaxTags); err != nil {
		return nil, err
	}
	if f.SHA256, err = hex.DecodeString(given.SHA256); err != nil || len(f.SHA256) != sha256.Size {
		return nil, fault.Invalid("sha256", "sha256 is %s; expected %d hexadecimal digits", fault.Show(given.SHA256),
			2*sha256.Size)
	}
	if f.Created, err = parseTime("created_at", given.CreatedAt); err != nil {
		return nil, err
	}
	f.Updated, err = parseTime("updated_at", given.UpdatedAt)
	return f, err
}

// Check validates the details of a file.
func (f *ExportFile) Check() error {
	if clean := cmp.Or(filetype.CleanFilename(f.Filename), "file"); clean != f.Filename {
		return fault.Invalid("filename", "filename is %s; expected a name that is valid on every system, such as %s",
			fault.Show(f.Filename), fault.Show(clean))
	}
	if kind, err := valid.MIMEType(f.MIMEType); err != nil || kind == "" {
		return cmp.Or(err, error(fault.Invalid("mime_type", "mime_type is missing")))
	}
	if err := valid.Description(f.Description); err != nil {
		return err
	}
	if err := valid.Category(f.Category); err != nil {
		return err
	}
	if f.Size < 0 || f.Size > kernel.LargestFile {
		return fault.Invalid("size", "size is %d; expected 0 to %d bytes", f.Size, int64(kernel.LargestFile))
	}
	return nil
}

// chunkItem is a piece of the preceding file.
type chunkItem struct {
	lineNumber
	file string
	n    int64
	data []byte
}

func (*chunkItem) apply(*importTx) error { return nil }

func parseChunk(line []byte, n int) (importItem, error) {
	var given struct {
		File string `json:"file"`
		N    int64  `json:"n"`
		Data []byte `json:"data"`
	}
	err := decodeLine(line, &given)
	return &chunkItem{lineNumber(n), given.File, given.N, given.Data}, err
}

// begin decides whether a file is imported, and completes it at once if it is empty.
func (im *importer) begin(ctx context.Context, f *incomingFile) error {
	f.im, im.current = im, nil
	var o outcome
	err := im.DB.Read(ctx, func(tx db.Tx) (err error) {
		f.stored, o, err = f.compare(tx, im.replace)
		return err
	})
	if err != nil {
		return err
	}
	im.file = f
	if f.key, err = im.Keys.NewFile(); err != nil {
		return err
	}
	if f.skip = o == unchanged || o == conflicting; f.skip {
		t := &importTx{counts: map[string]Count{}}
		if o == unchanged {
			t.count(KindFile, unchanged)
		} else {
			t.conflict(f.line(), KindFile, f.ID, otherVersion)
		}
		im.merge(t)
	}
	return im.advance(ctx, f.line())
}

// compare checks whether the store has a file with this id, and in which state.
func (f *incomingFile) compare(tx db.Tx, replace bool) (row int64, o outcome, err error) {
	if f.memory != "" {
		there, err := db.Column[int64](tx, memoryOf, f.memory, f.memoryOwner, f.im.namespace)
		if err != nil {
			return 0, added, err
		}
		if len(there) > 0 {
			f.owner, f.project = f.memoryOwner, "" // the file is in the memory's project
		} else {
			f.memory = "" // not linked: the memory is missing
			f.im.report.MissingLinks++
		}
	}
	if f.project != "" {
		f.owner = f.projectOwner // who owns everything in the project
	}
	var s ExportFile
	var tags, namespace string
	err = tx.Each(func(r db.Rows) error {
		return r.Scan(&s.Row, &namespace, &s.owner, &s.memory, &s.projectOwner, &s.project, &s.Filename, &s.MIMEType,
			&s.Size, &s.SHA256,
			&s.Description, &s.Category, &s.Created, &s.Updated, &tags)
	},
		`SELECT f.id, u.namespace, u.uid, coalesce(m.uid, ''), coalesce(o.uid, ''), coalesce(j.uid, ''), f.filename,
			f.mime_type, f.size, f.sha256, f.description, f.category, f.created_at, f.updated_at,
			(SELECT `+db.ListOf+`(t.tag ORDER BY t.position) FROM file_tag t WHERE t.file_id = f.id)
		FROM file f JOIN users u ON u.id = f.owner_id LEFT JOIN memory m ON m.id = f.memory_id
		LEFT JOIN project j ON j.id = f.project_id LEFT JOIN users o ON o.id = j.owner_id WHERE f.uid = ?`, f.ID)
	if err != nil {
		return 0, added, err
	}
	if s.Row == 0 {
		o, err = unlessTrashed(tx, `t.kind = 'file' AND t.uid = ?`, f.ID, f.im.namespace, f.owner)
		return 0, o, err
	}
	if s.tags, err = kernel.DecodeTags(tx, tags); err != nil {
		return 0, added, err
	}
	_, s.SHA256, err = f.im.Keys.OpenFile(tx.Context(), s.SHA256)
	if err != nil && !keyring.IsShut(err) { // otherwise it counts as another version
		return 0, added, err
	}
	same := s.memory == f.memory && s.project == f.project && (s.project == "" || s.projectOwner == f.projectOwner) &&
		s.Filename == f.Filename && s.MIMEType == f.MIMEType && s.Size == f.Size && bytes.Equal(s.SHA256, f.SHA256) &&
		s.Description == f.Description && s.Category == f.Category && s.Created == f.Created && s.Updated == f.Updated &&
		slices.Equal(s.tags, f.tags)
	switch {
	case namespace != f.im.namespace:
	case s.owner == f.owner && same:
		return s.Row, unchanged, nil
	case s.owner == f.owner && replace:
		return s.Row, replaced, nil
	}
	return s.Row, conflicting, nil
}

// memoryOf selects a memory by id and owner.
const memoryOf = `SELECT m.id ` + kernel.FromMemory + ` JOIN users u ON u.id = c.owner_id
	WHERE c.name <> '' AND m.uid = ? AND u.uid = ?
	AND u.namespace = ?`

// chunk takes the next piece of the file that is being read.
func (im *importer) chunk(ctx context.Context, c *chunkItem) error {
	f := im.file
	if f == nil {
		im.report.Ignored++
		return nil
	}
	want := min(kernel.ChunkSize, f.Size-f.got)
	switch {
	case c.file != f.ID:
		return fault.Invalid("file", "file is %s, but the pieces of %s are not complete: got %d of its %d bytes",
			fault.Show(c.file), fault.Show(f.ID), f.got, f.Size)
	case c.n != f.got/kernel.ChunkSize:
		return fault.Invalid("n", "n is %d; expected piece %d of file %s", c.n, f.got/kernel.ChunkSize, fault.Show(f.ID))
	case int64(len(c.data)) != want:
		return fault.Invalid("data", "data has %d bytes; piece %d of file %s has %d", len(c.data), c.n, fault.Show(f.ID),
			want)
	}
	f.got += want
	if !f.skip {
		f.hash.Write(c.data)
		f.waiting = append(f.waiting, objects.NewChunk(f.key.Seal(c.n, c.data)))
	}
	return im.advance(ctx, c.line())
}

// advance writes the received chunks of the file once there are enough, or all.
func (im *importer) advance(ctx context.Context, line int) error {
	f := im.file
	complete := f.got == f.Size
	switch {
	case f.skip:
	case complete && !bytes.Equal(f.hash.Sum(nil), f.SHA256):
		return fault.Invalid("sha256", "the content of file %s does not match its sha256", fault.Show(f.ID))
	case complete:
		if err := f.writeChunks(ctx, f.finish); err != nil {
			return err
		}
		f.remove(ctx, f.left)
	case len(f.waiting) >= WaitingChunks:
		if err := f.writeChunks(ctx, f.store); err != nil {
			return err
		}
		f.written, f.waiting = f.written+int64(len(f.waiting)), f.waiting[:0]
	}
	if complete {
		im.file = nil
		im.report.Line = line
	}
	return nil
}

// writeChunks writes the waiting chunks: first to the object storage, if there is one, then their rows.
func (f *incomingFile) writeChunks(ctx context.Context, rows func(*importTx) error) (err error) {
	into := f.im.Objects
	if into == nil || len(f.waiting) == 0 {
		return f.im.write(ctx, rows)
	}
	defer func() {
		if err != nil {
			into.GiveUp(ctx, f.waiting)
		}
	}()
	objects.Name(f.waiting)
	err = f.im.DB.Write(db.Yielding(ctx), func(tx db.Tx) error { return into.Announce(tx, f.waiting) })
	if err == nil {
		err = into.Put(ctx, f.waiting)
	}
	if err != nil {
		return err
	}
	return f.im.write(ctx, rows)
}

// store writes the rows of the chunks that wait.
func (f *incomingFile) store(t *importTx) error {
	row, now := f.arrives, t.Now()
	if f.written == 0 {
		owner, err := t.owner(f.owner)
		if err != nil {
			return err
		}
		record, err := f.im.Keys.RecordOf(t.tx, owner, f.key, f.SHA256)
		if err != nil {
			return err
		}
		d := kernel.FileDetails{Name: f.Filename, Type: f.MIMEType, Description: f.Description, Category: f.Category}
		sealed, err := d.Seal(t.tx, owner)
		if err != nil {
			return err
		}
		row, err = db.Insert(t.tx, `INSERT INTO file (uid, owner_id, state, filename, mime_type, size, sha256, description,
			category, created_at, updated_at)
			VALUES (?, ?, 'arriving', ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`, t.NewID(), owner, sealed.Name, sealed.Type, f.Size,
			record, sealed.Description, sealed.Category, now, now)
		if err != nil {
			return err
		}
	} else {
		result, err := t.tx.Exec(`UPDATE file SET updated_at = ? WHERE id = ? AND state = 'arriving'`, now, row)
		if err != nil {
			return err
		}
		if result.RowsAffected == 0 {
			return fault.New(fault.KindConflict, "file",
				"file %s was cancelled, because no data arrived for %v; import it again",
				fault.Show(f.ID), kernel.Abandoned)
		}
	}
	f.arrives = row
	return objects.Insert(t.tx, row, f.written, f.waiting)
}

// finish makes the file visible, complete and in its place.
func (f *incomingFile) finish(t *importTx) error {
	if err := f.store(t); err != nil {
		return err
	}
	memory, project, err := f.place(t)
	if err != nil {
		return err
	}
	f.left = 0
	if f.stored != 0 {
		result, err := t.tx.Exec(`UPDATE file SET state = 'leaving', uid = ?, memory_id = NULL, project_id = NULL `+
			`WHERE id = ? AND uid = ?`, t.NewID(), f.stored, f.ID)
		if err != nil {
			return err
		}
		if result.RowsAffected > 0 {
			f.left = f.stored
		}
	}
	result, err := t.tx.Exec(`UPDATE file SET uid = ?, state = 'stored', memory_id = ?, project_id = ?, created_at = ?,
		updated_at = ?
		WHERE id = ? AND NOT EXISTS (SELECT 1 FROM file WHERE uid = ?)`, f.ID, db.OrNull(memory), db.OrNull(project),
		f.Created, f.Updated, f.arrives, f.ID)
	if err != nil {
		return err
	}
	if result.RowsAffected == 0 {
		f.left = f.arrives
		t.conflict(f.line(), KindFile, f.ID, "it was added to the store in the meantime")
		_, err := t.tx.Exec(`UPDATE file SET state = 'leaving' WHERE id = ?`, f.arrives)
		return err
	}
	o := added
	if f.left != 0 {
		o = replaced
	}
	t.count(KindFile, o)
	return kernel.ReplaceFileTags(t.tx, f.arrives, f.tags)
}

// place returns the rows of the file's memory and project, 0 for none.
func (f *incomingFile) place(t *importTx) (memory, project int64, err error) {
	if f.memory != "" {
		rows, err := db.Column[int64](t.tx, memoryOf, f.memory, f.memoryOwner, f.im.namespace)
		if err != nil {
			return 0, 0, err
		}
		if len(rows) > 0 {
			memory = rows[0]
		}
	}
	if f.project != "" {
		owner, err := t.owner(f.projectOwner)
		if err != nil {
			return 0, 0, err
		}
		project, err = t.project(owner, f.project, "")
		if err != nil {
			return 0, 0, err
		}
	}
	return memory, project, nil
}

// incomplete is the error for a file whose pieces end too early.
func (f *incomingFile) incomplete() error {
	return fault.Invalid("data", "the pieces of file %s (line %d) are not complete: got %d of its %d bytes",
		fault.Show(f.ID),
		f.line(), f.got, f.Size)
}

// drop removes the received part of a file that will not be completed.
func (f *incomingFile) drop(ctx context.Context) {
	if f.written > 0 { // otherwise nothing was committed, and the row may now belong to another file
		f.remove(ctx, f.arrives)
	}
}

// remove removes an invisible file, even when the context has ended. If it fails, the file is cleaned up later like an
// aborted upload.
func (f *incomingFile) remove(ctx context.Context, row int64) {
	if row == 0 {
		return
	}
	ctx = context.WithoutCancel(ctx)
	err := f.im.DB.Write(ctx, func(tx db.Tx) error {
		_, err := tx.Exec(`UPDATE file SET state = 'leaving' WHERE id = ? AND state = 'arriving'`, row)
		return err
	})
	if err == nil {
		err = kernel.RemoveFile(ctx, f.im.DB, row)
	}
	if err != nil {
		f.im.Log.Warn("could not remove the bytes of a file yet", "file", f.ID, "error", err)
	}
}
