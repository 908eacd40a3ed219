package souvenir

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/files/arrival"
	"github.com/souvenir-ai/souvenir/internal/files/chunked"
	"github.com/souvenir-ai/souvenir/internal/files/filetype"
	"github.com/souvenir-ai/souvenir/internal/files/objects"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/records/audit"
	"github.com/souvenir-ai/souvenir/internal/sealing/keyring"
	"github.com/souvenir-ai/souvenir/internal/valid"
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
			f.Progress("store", int(u.file.Size), int(f.Size))
		}
		if last {
			s.texts.Wake()
			return added.File, nil
		}
	}
}

// upload is a file on its way into the store.
type upload struct {
	NewFile
	s        *Store
	declared string // the declared type; MIMEType is the detected one
	text     bool   // the content is text
	file     arrival.File
}

// newUpload checks the description of a new file.
func (s *Store) newUpload(f NewFile, content io.Reader) (*upload, error) {
	in := arrival.Store{DB: s.db, Write: s.write, View: s.writing(), Objects: s.objects, InObjects: s.filesInObjects(),
		Keys: s.ring}
	u := &upload{NewFile: f, s: s,
		file: arrival.File{Store: in, ID: s.newID(), Expected: f.Size, Whole: sha256.New()}}
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
	u.file.Key, err = s.ring.NewFile()
	return u, err
}

// typeOfFile returns the type of a file from the type its sender declared (empty: none), its name and its first bytes.
func typeOfFile(declared, filename string, head []byte) (string, error) {
	found, contradiction := filetype.Of(declared, filename, head)
	if contradiction != "" {
		return "", invalid("mime_type",
			"{} is %s, but the content is of type %s; give the right type, or omit {}",
			show(declared), show(contradiction))
	}
	return found, nil
}

// checkFileSize refuses a file over the size limit.
func (s *Store) checkFileSize(size int64) error {
	if size > s.maxFile {
		return newError(KindTooLarge, "size", "the file has %d bytes or more; at most %d are allowed", size, s.maxFile)
	}
	return nil
}

// linkedAndPlaced refuses a file with both a memory to link to and a project of its own.
func linkedAndPlaced() error {
	return invalid("project_id", "{memory_id} and a project are both given; a file that is linked to a memory is in "+
		"the memory's project, so give one of the two")
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
		Tags: slices.Clone(u.Tags), LongText: u.text && u.file.Begun()}
	whole := u.text && !u.file.Begun()
	other, failed := u.file.Staged(ctx, data)
	switch {
	case whole:
		t.Content = data
	case !u.text:
		t.Other = &Document{Filename: u.Filename, MIMEType: u.MIMEType, Size: u.file.Size, Content: other}
	}
	called, err := u.s.beforeFile(ctx, OperationStore, "AddFile", &t)
	if err := cmp.Or(wrap(failed()), err); err != nil || !called {
		return data, err
	}
	u.Filename, u.Description, u.Category, u.Tags = CleanFilename(t.Filename), t.Description, t.Category, t.Tags
	if whole {
		data, u.file.Size = t.Content, int64(len(t.Content))
		u.file.Whole.Reset()
		u.file.Whole.Write(data)
		if err := u.s.checkFileSize(u.file.Size); err != nil {
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

// checkPlace checks, before anything is read, whether the file may be stored at its destination.
func (u *upload) checkPlace(ctx context.Context) error { return u.described().CheckPlace(ctx) }

// described returns the arriving file with its present description.
func (u *upload) described() *arrival.File {
	u.file.About = arrival.About{FileDetails: kernel.FileDetails{Name: u.Filename, Type: u.MIMEType,
		Description: u.Description, Category: u.Category}, Tags: u.Tags, MemoryID: u.MemoryID, ProjectID: u.ProjectID,
		ProjectName: u.ProjectName}
	return &u.file
}

// unreadable is the error for content that failed. Context errors stay as they are.
func (u *upload) unreadable(n int64, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	e := invalid("content", "{} could not be read past byte %d: %v", u.file.Size+n, err)
	e.Err = err
	return e
}

// take accounts for data that was read, before it is stored.
func (u *upload) take(data []byte, last bool) error {
	first := u.file.Size == 0
	u.file.Size += int64(len(data))
	u.file.Whole.Write(data) // never fails
	if err := u.s.checkFileSize(u.file.Size); err != nil {
		return err
	}
	switch {
	case u.Size > 0 && u.file.Size > u.Size:
		return invalid("size", "{} is %d, but the content has more bytes; give the right size, or omit it", u.Size)
	case u.Size > 0 && u.file.Size < u.Size && last:
		return invalid("size", "{} is %d, but the content ends after %d bytes; give the right size, or omit it", u.Size,
			u.file.Size)
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
func (u *upload) store(ctx context.Context, data []byte, last bool) (added storedFile, err error) {
	err = u.described().Add(ctx, data, last, func(tx db.Tx, v viewer) (err error) {
		added, err = u.s.file(tx, v, u.file.ID)
		return err
	})
	return added, err
}

// giveUp removes the stored part of an incomplete file, even when the context has ended.
func (u *upload) giveUp(ctx context.Context) {
	if err := u.file.GiveUp(ctx); err != nil {
		u.s.log.WarnContext(ctx, "could not remove the remains of an unfinished file yet", "file", u.file.ID, "error", err)
	}
}

// purgeFiles removes files that crashes left behind: files that were being deleted, and files that were being stored
// and got no data since olderThan. A time within the last 24 hours counts as 24 hours ago: another process may still be
// storing them. It returns how many it removed.
func (s *shared) purgeFiles(ctx context.Context, olderThan time.Time) (int, error) {
	before := min(olderThan.UnixMicro(), s.now()-kernel.Abandoned.Microseconds())
	var rows []int64
	err := s.db.Read(ctx, func(tx db.Tx) (err error) {
		rows, err = db.Column[int64](tx,
			`SELECT id FROM file WHERE state IN ('arriving', 'leaving') AND (state = 'leaving' OR updated_at < ?)`, before)
		return err
	})
	if err != nil {
		return 0, wrap(err)
	}
	for i, row := range rows {
		if err := kernel.RemoveAbandoned(ctx, s.db, row, before); err != nil {
			return i, wrap(err)
		}
	}
	return len(rows), nil
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

// FileMove is the result of [Upkeep.MoveFiles].
type FileMove struct {
	Chunks  int   `json:"chunks"`  // moved
	Bytes   int64 `json:"bytes"`   // of them
	Damaged int   `json:"damaged"` // chunks that were not moved, because they are damaged
}

// FileMoveOptions change how [Upkeep.MoveFiles] works.
type FileMoveOptions struct {
	// Progress receives the stage "move", counted in chunks. Nil disables it.
	Progress Progress
}

// MoveFiles moves the content of all files to a place, those in the trash included, in short transactions: others read
// and write meanwhile. Each chunk is compared with its hash. If it is interrupted, call it again: it moves the rest.
// Files that others store meanwhile go where their Options.NewFiles says. Nil options are the zero value.
//
// Space freed in the database is available for new content; [Upkeep.Compact] returns it to the system. Objects that are
// no longer needed are deleted in the background.
//
// It is for the Store that Open returned; a view gets ErrForbidden. On a read-only store it is ErrReadOnly.
func (h *Upkeep) MoveFiles(ctx context.Context, to FilePlace, options *FileMoveOptions) (_ FileMove, err error) {
	defer setGoNames[struct{}](&err, "to", "to")
	s, err := h.operator(ctx, "MoveFiles")
	if err == nil {
		err = s.checkWritable()
	}
	some := false
	if err == nil {
		err = s.readStore(ctx, func(tx db.Tx) error {
			return tx.QueryRow(`SELECT EXISTS (SELECT 1 FROM file_chunk WHERE object IS NOT NULL)`).Scan(&some)
		})
	}
	if err == nil {
		err = s.options.checkPlace("to", to)
	}
	if err == nil && some && s.options.Objects == nil {
		err = invalid("to", "{} is %s, but there is no object storage to move from; set Options.Objects", show(string(to)))
	}
	if err != nil {
		return FileMove{}, err
	}
	moved, err := s.objects.Move(ctx, to, cmp.Or(options, &FileMoveOptions{}).Progress)
	return FileMove(moved), s.noteAlone(ctx, wrap(err),
		event{"files.move", "store", "", audit.Details{"to": to, "chunks": moved.Chunks, "damaged": moved.Damaged}})
}

// AdoptObjects makes this database the one that deletes objects in Options.Objects. Each database changes a mark there
// every few minutes, and deletes nothing if its original or a copy of it has changed the mark. Call AdoptObjects on a
// restored or copied database when the original is no longer in use.
//
// It is for the Store that Open returned; a view gets ErrForbidden. On a read-only store it is ErrReadOnly, without
// Options.Objects ErrInvalid, and ErrBusy if the storage does not answer.
func (h *Upkeep) AdoptObjects(ctx context.Context) (err error) {
	s, err := h.operator(ctx, "AdoptObjects")
	if err == nil {
		err = s.checkWritable()
	}
	if err == nil {
		err = s.readStore(ctx, func(db.Tx) error { return nil }) // unless the store is closed, or the call has ended
	}
	if err == nil && s.options.Objects == nil {
		err = invalid("", "there is no object storage to adopt; set Options.Objects")
	}
	if err != nil {
		return err
	}
	return s.noteAlone(ctx, wrap(s.objects.Adopt(ctx)), event{"files.adopt", "store", "", nil})
}

// objectsNow is how many objects an erasure deletes before it returns; the worker deletes the others.
const objectsNow = 2000

// removeObjects deletes the objects of files that are gone, up to a number of them.
func (s *shared) removeObjects(ctx context.Context, most int) error {
	_, err := s.objects.Remove(ctx, most)
	if err != nil && ctx.Err() == nil && !errors.Is(err, db.ErrClosed) && s.objects.Warn() {
		s.log.Warn("could not remove objects of deleted files yet", "error", objects.Cause(err))
	}
	return err
}

// ObjectStorage keeps the content of files outside the database: with [Options].Objects, each chunk of up to 256 KiB is
// an object under a random key of 26 lower-case letters and digits. Package s3 has one for services that speak the
// protocol of Amazon S3.
//
// It is called from several goroutines at once, and by several processes. Each call must honour its context, which ends
// after a minute at the latest. Only the log sees its errors. A panic counts as an error.
type ObjectStorage interface {
	// Put stores an object. When it returns nil, the object is durable. A key is put at most once.
	Put(ctx context.Context, key string, data []byte) error

	// Get returns an object. One that does not exist is an error that wraps fs.ErrNotExist.
	Get(ctx context.Context, key string) ([]byte, error)

	// Delete deletes up to 500 objects. Missing objects are not an error. After an error, some may be left.
	Delete(ctx context.Context, keys []string) error
}

// FilePlace says where the content of files is. It is a string.
type FilePlace = objects.Place

// The values of [FilePlace].
const (
	InDatabase = objects.InDatabase // in chunks in the store's file, or its tables
	InObjects  = objects.InObjects  // in Options.Objects
)

// filesInObjects reports whether the content of new files goes to the object storage.
func (s *shared) filesInObjects() bool { return s.options.NewFiles == InObjects }
