// Package arrival stores the content of a new file in several transactions, under a row that stays invisible until the
// last one, and finds the place of the file.
package arrival

import (
	"cmp"
	"context"
	"errors"
	"hash"
	"io"
	"math"
	"slices"
	"sync/atomic"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/files/chunked"
	"github.com/souvenir-ai/souvenir/internal/files/objects"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/sealing/keyring"
	"github.com/souvenir-ai/souvenir/internal/writing"
)

// Store is what a file needs of the store that it arrives in.
type Store struct {
	DB        db.DB
	Write     func(context.Context, func(db.Tx, kernel.Viewer) error) error // runs a transaction of the caller
	View      *writing.View
	Objects   *objects.Objects
	InObjects bool // the content goes to object storage
	Keys      *keyring.Ring
}

// About says what the file is, and where it goes. It may change until the last of the content is stored.
type About struct {
	kernel.FileDetails
	Tags                             []string
	MemoryID, ProjectID, ProjectName string
}

// File is a file on its way into the store.
type File struct {
	Store
	About
	ID       string
	Expected int64     // bytes; 0: unknown
	Size     int64     // bytes received
	Whole    hash.Hash // of everything received
	Key      *keyring.File

	heir     int64 // row of the owner of its project; 0: the caller
	row      int64 // 0: nothing of it is stored yet
	unsure   bool  // a Write whose outcome is unknown may have stored its row
	chunks   int64 // stored
	complete bool
}

// Begun reports whether a part of the content is stored.
func (f *File) Begun() bool { return f.row != 0 }

// errUndone rolls back a trial transaction.
var errUndone = errors.New("only tried")

// CheckPlace checks, before anything is read, whether the file may be stored at its destination.
func (f *File) CheckPlace(ctx context.Context) error {
	err := f.Write(ctx, func(tx db.Tx, v kernel.Viewer) error {
		memory, project, err := f.place(tx, &v)
		if err != nil {
			return err
		}
		f.heir = 0
		owner, err := ownerIn(tx, v, memory, project)
		if err != nil {
			return err
		}
		if owner != v.User { // whose row may be rolled back with this transaction
			f.heir = owner
		}
		return errUndone // a new project is created with the file
	})
	if errors.Is(err, errUndone) {
		return nil
	}
	return err
}

// place finds the rows of the memory and of the project for the file; 0 for none. The viewer then sees that project.
func (f *File) place(tx db.Tx, v *kernel.Viewer) (memory, project int64, err error) {
	if f.MemoryID != "" {
		m, err := MemoryToLink(tx, *v, f.MemoryID)
		return m.Row, 0, err
	}
	project, err = f.View.ProjectForWrite(tx, v, f.ProjectID, f.ProjectName)
	return 0, project, err
}

// MemoryToLink returns the memory to link a file to, which the caller must be allowed to change.
func MemoryToLink(tx db.Tx, v kernel.Viewer, id string) (kernel.Memory, error) {
	m, err := kernel.LoadMemory(tx, v, id)
	switch {
	case errors.Is(err, &fault.Error{Kind: fault.KindNotFound}):
		return m, fault.New(fault.KindNotFound, "memory_id", "{} %s not found, or you have no access to it", fault.Show(id))
	case err == nil && !m.Writable:
		return m, kernel.SharedReadOnly(tx, v, "memory_id", "memory", id, m.Owner)
	}
	return m, err
}

// ownerIn returns the row of the user to whom a file belongs: the owner of the memory's collection, else of the
// project, else the caller.
func ownerIn(tx db.Tx, v kernel.Viewer, memory, project int64) (owner int64, err error) {
	if memory == 0 {
		return kernel.OwnerOfProject(tx, v, project)
	}
	err = tx.QueryRow(`SELECT c.owner_id `+kernel.FromMemory+` WHERE m.id = ?`, memory).Scan(&owner)
	return owner, err
}

// Add writes one batch of chunks. With last, it completes the file, and runs then in the same transaction.
func (f *File) Add(ctx context.Context, data []byte, last bool, then func(db.Tx, kernel.Viewer) error) (err error) {
	var chunks []objects.Chunk
	for piece := range slices.Chunk(data, kernel.ChunkSize) {
		chunks = append(chunks, objects.NewChunk(f.Key.Seal(f.chunks+int64(len(chunks)), piece)))
	}
	if f.InObjects && len(chunks) > 0 {
		defer func() {
			if err != nil {
				f.Objects.GiveUp(ctx, chunks)
			}
		}()
		if err := f.putObjects(ctx, chunks); err != nil {
			return err
		}
	}
	row := f.row
	err = f.Write(ctx, func(tx db.Tx, v kernel.Viewer) (err error) {
		err = db.Beyond(tx, func() error { // it has no place yet, and belongs to the owner of its later place
			if row, err = f.storeRow(tx, v); err != nil {
				return err
			}
			return objects.Insert(tx, row, f.chunks, chunks)
		})
		if err == nil && last {
			if err = f.finish(tx, &v, row); err == nil {
				err = then(tx, v)
			}
		}
		return err
	})
	if err != nil {
		f.unsure = f.unsure || errors.Is(err, db.ErrOutcomeUnknown)
		return err
	}
	f.row, f.complete = row, last
	f.chunks += int64(len(chunks))
	return nil
}

// putObjects writes chunks to object storage. Before that, it announces them in the database and checks the quota.
func (f *File) putObjects(ctx context.Context, chunks []objects.Chunk) error {
	objects.Name(chunks)
	row := f.row
	err := f.Write(ctx, func(tx db.Tx, v kernel.Viewer) error {
		return db.Beyond(tx, func() (err error) {
			if row, err = f.storeRow(tx, v); err != nil {
				return err
			}
			return f.Objects.Announce(tx, chunks)
		})
	})
	if err != nil {
		f.unsure = f.unsure || errors.Is(err, db.ErrOutcomeUnknown)
		return err
	}
	f.row = row
	return f.Objects.Put(ctx, chunks)
}

// storeRow creates or touches the row, and checks that its owner has room for the file.
func (f *File) storeRow(tx db.Tx, v kernel.Viewer) (row int64, err error) {
	now, size, owner := f.View.Now(), max(f.Size, f.Expected), cmp.Or(f.heir, v.User)
	if f.row == 0 {
		record, err := f.Keys.RecordOf(tx, owner, f.Key, []byte{})
		if err != nil {
			return 0, err
		}
		sealed, err := f.Seal(tx, owner)
		if err != nil {
			return 0, err
		}
		row, err = db.Insert(tx, `INSERT INTO file (uid, owner_id, state, filename, mime_type, size, sha256, description,
			category, created_at, updated_at)
			VALUES (?, ?, 'arriving', ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`, f.ID, owner, sealed.Name, sealed.Type, size,
			record, sealed.Description, sealed.Category, now, now)
		if err != nil {
			return 0, err
		}
	} else {
		row, err = db.Insert(tx, `UPDATE file SET size = ?, updated_at = ? WHERE id = ? AND state = 'arriving' RETURNING id`,
			size, now, f.row)
	}
	if err != nil {
		return 0, err
	}
	if row == 0 {
		return 0, fault.New(fault.KindConflict, "content",
			"the upload was cancelled, because no data arrived for %v; store the file again", kernel.Abandoned)
	}
	if f.row == 0 {
		if err := f.View.CheckItems(tx, v, writing.ItemFile, owner); err != nil {
			return 0, err
		}
	}
	return row, f.View.CheckFiles(tx, v, owner, size)
}

// finish turns the arriving file into a stored one. The viewer then sees its project.
func (f *File) finish(tx db.Tx, v *kernel.Viewer, row int64) error {
	memory, project, err := f.place(tx, v)
	if err != nil {
		return err
	}
	owner, err := ownerIn(tx, *v, memory, project)
	if err != nil {
		return err
	}
	if err := f.View.GiveFile(tx, *v, owner, row); err != nil { // rare: the place has changed since CheckPlace
		return err
	}
	now := f.View.Now()
	err = db.Beyond(tx, func() error {
		record, err := f.Keys.RecordOf(tx, owner, f.Key, f.Whole.Sum(nil))
		if err != nil {
			return err
		}
		sealed, err := f.Seal(tx, owner)
		if err != nil {
			return err
		}
		_, err = tx.Exec(`UPDATE file SET state = 'stored', memory_id = ?, project_id = ?, size = ?, sha256 = ?, `+
			`filename = ?, description = ?, category = ?, created_at = ?, updated_at = ? WHERE id = ?`, db.OrNull(memory),
			db.OrNull(project), f.Size, record, sealed.Name, sealed.Description, sealed.Category, now, now, row)
		return err
	})
	if err != nil {
		return err
	}
	return kernel.ReplaceFileTags(tx, row, f.Tags)
}

// GiveUp removes the stored part of an incomplete file, even when the context has ended.
func (f *File) GiveUp(ctx context.Context) error {
	if f.complete || f.row == 0 && !f.unsure {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	row := f.row
	if row == 0 {
		err := f.DB.Read(ctx, func(tx db.Tx) error { // as the server: it has no place yet
			return tx.QueryRow(`SELECT id FROM file WHERE uid = ?`, f.ID).Scan(&row)
		})
		if errors.Is(err, db.ErrNoRows) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return kernel.RemoveAbandoned(ctx, f.DB, row, math.MaxInt64)
}

// Staged returns the content received so far, whose last bytes are not stored, and a function that returns the first
// error of reading it.
func (f *File) Staged(ctx context.Context, last []byte) (content io.ReaderAt, failed func() error) {
	var first atomic.Pointer[error]
	read := func(number int64) ([]byte, error) {
		if number >= f.chunks {
			last := last[(number-f.chunks)*kernel.ChunkSize:]
			return last[:min(len(last), kernel.ChunkSize)], nil
		}
		data, err := f.Objects.Load(ctx, kernel.ChunkSize+f.Key.Overhead(), func() (c objects.Chunk, err error) {
			err = f.DB.Read(ctx, func(tx db.Tx) error { // as the server: it has no place yet
				return tx.QueryRow(`SELECT sha256, data, coalesce(object, '') FROM file_chunk WHERE id = ?`,
					f.row<<kernel.ChunkBits|number).Scan(&c.Sum, &c.Data, &c.Object)
			})
			return c, err
		})
		if err == nil {
			data, err = f.Key.Open(number, data)
		}
		if err != nil {
			first.CompareAndSwap(nil, &err)
		}
		return data, err
	}
	return chunked.NewReader(ctx, f.Size, kernel.ChunkSize, read), func() error {
		if err := first.Load(); err != nil {
			return *err
		}
		return nil
	}
}
