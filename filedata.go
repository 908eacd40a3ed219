package souvenir

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/files/chunked"
	"github.com/souvenir-ai/souvenir/internal/files/filetype"
	"github.com/souvenir-ai/souvenir/internal/files/objects"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/sealing/keyring"
	"github.com/souvenir-ai/souvenir/internal/valid"
	"github.com/souvenir-ai/souvenir/internal/writing"
)

// File contents are split into chunks, stored in the database or, with Options.Objects, in object storage. One
// transaction writes several chunks, so that a large file neither needs memory nor blocks other writers. A file that
// needs more than one transaction is in the state "arriving" until the last; one that is deleted for good is "leaving"
// until its last chunk is gone. Only "stored" files are visible, and purgeFiles removes files that a crash left behind.
// A "trashed" file can be restored.

const (
	batchSize = 16 * kernel.ChunkSize // bytes of one transaction
)

// NewFile describes a file to store. All fields are optional.
type NewFile struct {
	Filename    string // kept as CleanFilename leaves it; empty: "file", with the extension of the type
	MIMEType    string // empty, or application/octet-stream: detected from the content and the name
	Description string // at most 4,096 characters
	Category    string // at most 64 characters
	Tags        []string

	// MemoryID links the file to a memory, and the file then is in that memory's project. The caller must be allowed to
	// change the memory.
	MemoryID string

	// ProjectID or ProjectName name the project of a file without a memory; an unknown one is created. A view limited to
	// one project stores there when no project is named.
	ProjectID   string
	ProjectName string

	// Size is the expected number of bytes; AddFile verifies it. Zero means unknown.
	Size int64

	// Progress receives the stage "store": the bytes stored, of Size. Nil disables it.
	Progress Progress
}

// AddFile reads content to its end, stores it a few MiB at a time, and returns the file. When it returns, the file is
// durable and visible; after an error, no part of it is. Content longer than Options.MaxFile, or too large for
// Options.FileQuota, is ErrTooLarge. Content that does not have Size bytes, or that contradicts a declared type of
// image, audio, video or PDF, is ErrInvalid. An error of content itself is ErrInvalid, too, and wrapped.
//
// No transaction is open while content is read. The context is checked between reads: a blocked Read of content must
// end by itself.
func (s *Store) AddFile(ctx context.Context, f NewFile, content io.Reader) (_ File, err error) {
	defer setGoNames[NewFile](&err, "content", "content", "file", "NewFile")
	if err := s.outside(ctx, "AddFile"); err != nil {
		return File{}, err
	}
	u, err := s.newUpload(f, content)
	if err != nil {
		return File{}, err
	}
	if err := u.checkPlace(ctx); err != nil {
		return File{}, err
	}
	defer u.giveUp(ctx)
	size := int64(batchSize)
	if f.Size > 0 {
		size = min(size, f.Size+1) // one more, to see the end
	}
	for buffer := make([]byte, size); ; {
		n, err := chunked.Fill(ctx, chunked.Strict{Reader: content}, buffer)
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return File{}, u.unreadable(int64(n), err)
		}
		if err := u.take(buffer[:n], last); err != nil {
			return File{}, err
		}
		data := buffer[:n]
		if last {
			if data, err = u.end(ctx, content, data); err != nil {
				return File{}, err
			}
		}
		added, err := u.store(ctx, data, last)
		if err != nil {
			return File{}, err
		}
		if f.Progress != nil {
			f.Progress("store", int(u.size), int(f.Size))
		}
		if last {
			s.texts.Wake()
			return added, nil
		}
	}
}

// upload is a file on its way into the store.
type upload struct {
	NewFile
	s        *Store
	id       string
	declared string    // the declared type; MIMEType is the detected one
	whole    hash.Hash // of everything read
	key      *keyring.File
	size     int64 // bytes read
	heir     int64 // row of the owner of its project; 0: the caller
	row      int64 // 0: nothing of it is stored yet
	chunks   int64 // stored
	text     bool  // the content is text
	complete bool
}

// newUpload checks the description of a new file.
func (s *Store) newUpload(f NewFile, content io.Reader) (*upload, error) {
	u := &upload{NewFile: f, s: s, id: s.newID(), whole: sha256.New()}
	if content == nil {
		return nil, invalid("content", "{} is nil; expected a reader of the file's bytes")
	}
	if f.Size < 0 {
		return nil, invalid("size", "{} is %d; expected a number of bytes, or 0 when it is not known", f.Size)
	}
	if err := s.checkFileSize(f.Size); err != nil {
		return nil, err
	}
	if err := u.checkDescription(); err != nil {
		return nil, err
	}
	u.Filename = filetype.CleanFilename(f.Filename)
	var err error
	if u.declared, err = valid.MIMEType(f.MIMEType); err != nil {
		return u, err
	}
	u.key, err = s.ring.NewFile()
	return u, err
}

// checkDescription checks the fields that may also follow the content.
func (u *upload) checkDescription() (err error) {
	if err := valid.Description(u.Description); err != nil {
		return err
	}
	if err := valid.Category(u.Category); err != nil {
		return err
	}
	if u.Tags, err = valid.Tags(u.Tags, MaxTags); err != nil {
		return err
	}
	if err := valid.Project(u.ProjectID, u.ProjectName); err != nil {
		return err
	}
	if u.MemoryID != "" && u.ProjectID+u.ProjectName != "" {
		return linkedAndPlaced()
	}
	return nil
}

// end takes what follows the content, and lets the hooks rewrite the file. It returns the last data to store.
func (u *upload) end(ctx context.Context, content io.Reader, data []byte) ([]byte, error) {
	if described, late := content.(chunked.Described); late {
		if err := u.describe(ctx, described); err != nil {
			return nil, err
		}
	}
	t := FileTexts{Filename: u.Filename, MIMEType: u.MIMEType, Description: u.Description, Category: u.Category,
		Tags: slices.Clone(u.Tags), LongText: u.text && u.row != 0}
	whole := u.text && u.row == 0
	other, failed := u.staged(ctx, data)
	switch {
	case whole:
		t.Content = data
	case !u.text:
		t.Other = &Document{Filename: u.Filename, MIMEType: u.MIMEType, Size: u.size, Content: other}
	}
	called, err := u.s.beforeFile(ctx, OperationStore, "AddFile", &t)
	if err := cmp.Or(failed(), err); err != nil || !called {
		return data, err
	}
	u.Filename, u.Description, u.Category, u.Tags = CleanFilename(t.Filename), t.Description, t.Category, t.Tags
	if whole {
		data, u.size = t.Content, int64(len(t.Content))
		u.whole.Reset()
		u.whole.Write(data)
		if err := u.s.checkFileSize(u.size); err != nil {
			return nil, err
		}
	}
	return data, u.checkDescription()
}

// describe replaces the description with the one that follows the content.
func (u *upload) describe(ctx context.Context, content chunked.Described) error {
	d, err := content.Description()
	if err != nil {
		return err
	}
	u.Description, u.Category, u.Tags = d.Text, d.Category, d.Tags
	u.MemoryID, u.ProjectID, u.ProjectName = d.MemoryID, d.ProjectID, d.ProjectName
	if err := u.checkDescription(); err != nil {
		return err
	}
	return u.checkPlace(ctx)
}

// errUndone rolls back a trial transaction.
var errUndone = errors.New("only tried")

// checkPlace checks, before anything is read, whether the file may be stored at its destination.
func (u *upload) checkPlace(ctx context.Context) error {
	err := u.s.write(ctx, func(tx db.Tx, v viewer) error {
		memory, project, err := u.place(tx, &v)
		if err != nil {
			return err
		}
		u.heir = 0
		owner, err := fileOwner(tx, v, memory, project)
		if err != nil {
			return err
		}
		if owner != v.User { // whose row may be rolled back with this transaction
			u.heir = owner
		}
		return errUndone // a new project is created with the file
	})
	if errors.Is(err, errUndone) {
		return nil
	}
	return err
}

// place finds the rows of the memory and of the project for the file; 0 for none. The viewer then sees that project.
func (u *upload) place(tx db.Tx, v *viewer) (memory, project int64, err error) {
	if u.MemoryID != "" {
		m, err := u.s.memoryToLink(tx, *v, u.MemoryID)
		return m.Row, 0, err
	}
	project, err = u.s.writing().ProjectForWrite(tx, v, u.ProjectID, u.ProjectName)
	return 0, project, err
}

// unreadable is the error for content that failed. Context errors stay as they are.
func (u *upload) unreadable(n int64, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	e := invalid("content", "{} could not be read past byte %d: %v", u.size+n, err)
	e.Err = err
	return e
}

// take accounts for data that was read, before it is stored.
func (u *upload) take(data []byte, last bool) error {
	first := u.size == 0
	u.size += int64(len(data))
	u.whole.Write(data) // never fails
	if err := u.s.checkFileSize(u.size); err != nil {
		return err
	}
	switch {
	case u.Size > 0 && u.size > u.Size:
		return invalid("size", "{} is %d, but the content has more bytes; give the right size, or omit it", u.Size)
	case u.Size > 0 && u.size < u.Size && last:
		return invalid("size", "{} is %d, but the content ends after %d bytes; give the right size, or omit it", u.Size,
			u.size)
	}
	if !first {
		return nil
	}
	var err error
	if u.MIMEType, err = typeOfFile(u.declared, u.Filename, data); err != nil {
		return err
	}
	u.Filename = cmp.Or(u.Filename, "file"+filetype.Extension(u.MIMEType))
	u.text = filetype.IsText(u.MIMEType, data)
	return nil
}

// store writes one batch of chunks. The last one completes the file.
func (u *upload) store(ctx context.Context, data []byte, last bool) (added File, err error) {
	var chunks []objects.Chunk
	for piece := range slices.Chunk(data, kernel.ChunkSize) {
		chunks = append(chunks, objects.NewChunk(u.key.Seal(u.chunks+int64(len(chunks)), piece)))
	}
	if u.s.filesInObjects() && len(chunks) > 0 {
		defer func() {
			if err != nil {
				u.s.objects.GiveUp(ctx, chunks)
			}
		}()
		if err := u.putObjects(ctx, chunks); err != nil {
			return File{}, err
		}
	}
	row := u.row
	err = u.s.write(ctx, func(tx db.Tx, v viewer) (err error) {
		err = db.Beyond(tx, func() error { // it has no place yet, and belongs to the owner of its later place
			if row, err = u.storeRow(tx, v); err != nil {
				return err
			}
			return objects.Insert(tx, row, u.chunks, chunks)
		})
		if err == nil && last {
			added, err = u.finish(tx, v, row)
		}
		return err
	})
	if err != nil {
		return File{}, err
	}
	u.row, u.complete = row, last
	u.chunks += int64(len(chunks))
	return added, nil
}

// putObjects writes chunks to object storage. Before that, it announces them in the database and checks the quota.
func (u *upload) putObjects(ctx context.Context, chunks []objects.Chunk) error {
	objects.Name(chunks)
	row := u.row
	err := u.s.write(ctx, func(tx db.Tx, v viewer) error {
		return db.Beyond(tx, func() (err error) {
			if row, err = u.storeRow(tx, v); err != nil {
				return err
			}
			return u.s.objects.Announce(tx, chunks)
		})
	})
	if err != nil {
		return err
	}
	u.row = row
	return u.s.objects.Put(ctx, chunks)
}

// storeRow creates or touches the row of an arriving file, and checks that its owner has room for it.
func (u *upload) storeRow(tx db.Tx, v viewer) (row int64, err error) {
	now, size, row, owner := u.s.now(), max(u.size, u.Size), u.row, cmp.Or(u.heir, v.User)
	if row == 0 {
		record, err := u.s.ring.RecordOf(tx, owner, u.key, []byte{})
		if err != nil {
			return 0, err
		}
		d := kernel.FileDetails{Name: u.Filename, Type: u.MIMEType, Description: u.Description, Category: u.Category}
		sealed, err := d.Seal(tx, owner)
		if err != nil {
			return 0, err
		}
		row, err = db.Insert(tx, `INSERT INTO file (uid, owner_id, state, filename, mime_type, size, sha256, description,
			category, created_at, updated_at)
			VALUES (?, ?, 'arriving', ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`, u.id, owner, sealed.Name, sealed.Type, size,
			record, sealed.Description, sealed.Category, now, now)
		if err != nil {
			return 0, err
		}
	} else {
		row, err = db.Insert(tx, `UPDATE file SET size = ?, updated_at = ? WHERE id = ? AND state = 'arriving' RETURNING id`,
			size, now, row)
	}
	if err != nil {
		return 0, err
	}
	if row == 0 {
		return 0, newError(KindConflict, "content",
			"the upload was cancelled, because no data arrived for %v; store the file again", kernel.Abandoned)
	}
	if u.row == 0 {
		if err := u.s.writing().CheckItems(tx, v, writing.ItemFile, owner); err != nil {
			return 0, err
		}
	}
	return row, u.s.writing().CheckFiles(tx, v, owner, size)
}

// finish turns an arriving file into a stored one.
func (u *upload) finish(tx db.Tx, v viewer, row int64) (File, error) {
	memory, project, err := u.place(tx, &v)
	if err != nil {
		return File{}, err
	}
	owner, err := fileOwner(tx, v, memory, project)
	if err != nil {
		return File{}, err
	}
	if err := u.s.writing().GiveFile(tx, v, owner, row); err != nil { // rare: the place has changed since checkPlace
		return File{}, err
	}
	now := u.s.now()
	err = db.Beyond(tx, func() error {
		record, err := u.s.ring.RecordOf(tx, owner, u.key, u.whole.Sum(nil))
		if err != nil {
			return err
		}
		d := kernel.FileDetails{Name: u.Filename, Description: u.Description, Category: u.Category}
		sealed, err := d.Seal(tx, owner)
		if err != nil {
			return err
		}
		_, err = tx.Exec(`UPDATE file SET state = 'stored', memory_id = ?, project_id = ?, size = ?, sha256 = ?, `+
			`filename = ?, description = ?, category = ?, created_at = ?, updated_at = ? WHERE id = ?`, db.OrNull(memory),
			db.OrNull(project), u.size, record, sealed.Name, sealed.Description, sealed.Category, now, now, row)
		return err
	})
	if err != nil {
		return File{}, err
	}
	if err := kernel.ReplaceFileTags(tx, row, u.Tags); err != nil {
		return File{}, err
	}
	added, err := u.s.file(tx, v, u.id)
	return added.File, err
}

// giveUp removes the stored part of an incomplete file, even when the context has ended.
func (u *upload) giveUp(ctx context.Context) {
	if u.complete || u.row == 0 {
		return
	}
	if err := u.s.removeAbandoned(context.WithoutCancel(ctx), u.row, math.MaxInt64); err != nil {
		u.s.log.WarnContext(ctx, "could not remove the remains of an unfinished file yet", "file", u.id, "error", err)
	}
}

// removeAbandoned removes a file that is leaving, or that is arriving and has made no progress since a time.
func (s *shared) removeAbandoned(ctx context.Context, row, before int64) error {
	return kernel.RemoveAbandoned(ctx, s.db, row, before)
}

// FileReader reads the bytes of a file in any order; it is an io.ReadSeekCloser, an io.ReaderAt and an io.WriterTo. It
// holds no transaction between two reads. Each piece is compared with its SHA-256 before a byte of it is handed out:
// damage is ErrCorrupt. A file that was deleted in the meantime, or is no longer visible, is ErrNotFound from the next
// piece (of 256 KiB) on. [Store.OpenFile] returns one.
//
// Several goroutines may call ReadAt at once, even while one of them reads.
type FileReader struct {
	ctx    context.Context
	store  *Store
	file   storedFile
	chunks *chunked.Reader
}

// OpenFile opens a file for reading. The context also ends all reading from it. A file that does not exist, or that
// this view may not see, is ErrNotFound; one with missing bytes is ErrCorrupt.
func (s *Store) OpenFile(ctx context.Context, id string) (_ *FileReader, err error) {
	defer setGoNames[struct{}](&err, "file_id", "id")
	r := &FileReader{ctx: ctx, store: s}
	err = s.read(ctx, func(tx db.Tx, v viewer) (err error) {
		if r.file, err = s.file(tx, v, id); err != nil {
			return err
		}
		var chunks, size int64
		first, last := r.file.row<<kernel.ChunkBits, chunksOf(r.file.Size)-1
		if r.file.shut != nil {
			return r.closed(r.file.shut)
		}
		if err := tx.QueryRow(`SELECT count(*), coalesce(sum(CASE WHEN object IS NULL THEN length(data) - ? WHEN id = ? THEN ?
			ELSE ? END), 0) FROM file_chunk WHERE id >= ? AND id < ?`, r.file.key.Overhead(), first+last, r.length(last),
			int64(kernel.ChunkSize), first, first+1<<kernel.ChunkBits).Scan(&chunks, &size); err != nil {
			return err
		}
		if chunks != chunksOf(r.file.Size) || size != r.file.Size {
			return r.damaged("it has %d bytes in %d chunks, of %d in %d", size, chunks, r.file.Size, chunksOf(r.file.Size))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	r.chunks = chunked.NewReader(ctx, r.file.Size, kernel.ChunkSize, r.load)
	return r, nil
}

// chunksOf returns the number of chunks of a file of this size.
func chunksOf(size int64) int64 { return (size + kernel.ChunkSize - 1) / kernel.ChunkSize }

// closed is the error for a file whose key is gone, or damaged.
func (r *FileReader) closed(cause error) error {
	if errors.Is(cause, keyring.ErrErased) {
		return causedBy(cause, newError(KindNotFound, "file_id", "the content of file %s was erased with its owner's key",
			show(r.file.ID)))
	}
	return damaged(cause, "file %s (%s)", r.file.ID, show(r.file.Filename))
}

func (r *FileReader) damaged(format string, args ...any) error {
	return damaged(fmt.Errorf(format, args...), "file %s (%s)", r.file.ID, show(r.file.Filename))
}

// File returns the file's details, as they were when it was opened.
func (r *FileReader) File() File { return r.file.File }

// Read reads the next bytes.
func (r *FileReader) Read(p []byte) (int, error) { return r.chunks.Read(p) }

// ReadAt reads len(p) bytes from an offset, fewer with io.EOF at the end. It neither uses nor moves the position of
// Read.
func (r *FileReader) ReadAt(p []byte, offset int64) (n int, err error) {
	n, err = r.chunks.ReadAt(p, offset)
	setGoNames[struct{}](&err, "offset", "offset")
	return n, err
}

// WriteTo writes the rest of the file to w.
func (r *FileReader) WriteTo(w io.Writer) (written int64, err error) { return r.chunks.WriteTo(w) }

// Seek moves the position of Read, even past the end.
func (r *FileReader) Seek(offset int64, whence int) (at int64, err error) {
	defer setGoNames[struct{}](&err, "offset", "offset", "whence", "whence")
	return r.chunks.Seek(offset, whence)
}

// Close ends the reading. It never fails.
func (r *FileReader) Close() error { return r.chunks.Close() }

// load reads one chunk, if the file is still there and visible.
func (r *FileReader) load(number int64) ([]byte, error) {
	length := r.length(number)
	key := r.file.key
	data, err := r.store.objects.Load(r.ctx, length+key.Overhead(),
		func() (objects.Chunk, error) { return r.chunk(number) })
	if err == nil {
		data, err = key.Open(number, data)
	}
	switch {
	case errors.Is(err, objects.ErrNone):
		return nil, newError(KindInternal, "", "file %s cannot be read: its content is in object storage, and the store was "+
			"opened without one; set Options.Objects", show(r.file.ID))
	case errors.Is(err, objects.ErrDamaged), errors.Is(err, keyring.ErrSealed):
		return nil, r.damaged("chunk %d of %d differs from what was stored: it has %d bytes of %d, or other ones", number+1,
			chunksOf(r.file.Size), len(data), length)
	case err != nil:
		setGoNames[struct{}](&err, "file_id", "id") // of OpenFile
		return nil, err
	}
	return data, nil
}

// chunk reads the row of a chunk.
func (r *FileReader) chunk(number int64) (c objects.Chunk, err error) {
	err = r.store.read(r.ctx, func(tx db.Tx, v viewer) error {
		visible, args := v.VisibleFile()
		err := tx.QueryRow(`SELECT k.sha256, k.data, coalesce(k.object, '') `+kernel.FromFile+
			` LEFT JOIN file_chunk k ON k.id = ? WHERE f.id = ? AND `+visible,
			append([]any{r.file.row<<kernel.ChunkBits | number, r.file.row}, args...)...).Scan(&c.Sum, &c.Data, &c.Object)
		if errors.Is(err, db.ErrNoRows) {
			_, err = r.store.file(tx, v, r.file.ID) // returns the reason
		}
		return err
	})
	return c, err
}

// length returns the number of bytes of a chunk.
func (r *FileReader) length(number int64) int64 {
	return min(r.file.Size-number*kernel.ChunkSize, kernel.ChunkSize)
}

// fileOwner returns the row of the user to whom a file belongs: the owner of the memory's collection, else of the
// project, else the caller.
func fileOwner(tx db.Tx, v viewer, memory, project int64) (owner int64, err error) {
	if memory == 0 {
		return kernel.OwnerOfProject(tx, v, project)
	}
	err = tx.QueryRow(`SELECT c.owner_id `+kernel.FromMemory+` WHERE m.id = ?`, memory).Scan(&owner)
	return owner, err
}
