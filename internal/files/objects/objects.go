// Package objects keeps the content of files in object storage. Each chunk is an object of its own under a random key.
// So a key reveals neither owner nor content, and no two files share an object.
//
// The table file_object has a row for each object that may exist. It is committed before the object is written, and
// deleted after the object is. So after a crash at any point, [Objects.Remove] finds the objects to delete by their
// rows.
package objects

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// Storage keeps objects under keys; souvenir.ObjectStorage documents it.
type Storage interface {
	Put(ctx context.Context, key string, data []byte) error
	Get(ctx context.Context, key string) ([]byte, error)
	Delete(ctx context.Context, keys []string) error
}

const (
	// atOnce is the number of objects of one file that are written concurrently.
	atOnce = 4
	// patience is how long one call of the storage may take.
	patience = time.Minute
	// again is how long after a failed write its objects are deleted a second time, since the storage may still have been
	// writing.
	again = time.Hour
	// retry is the pause before a failed deletion is tried again.
	retry = 10 * time.Minute
	// mostRemoved is the maximum number of objects that one call of the storage deletes.
	mostRemoved = 500
)

// Objects writes and reads the objects of one store.
type Objects struct {
	Storage Storage // nil: none
	DB      db.DB
	Now     func() int64 // in stored form
	Log     *slog.Logger

	mu     sync.Mutex
	batch  int       // the number of objects in the next deletion; 0: mostRemoved
	owned  time.Time // when the storage was last seen to be this database's
	marked time.Time // when this process last changed the mark
	warned time.Time // when it was last logged that objects could not be removed
}

// Chunk is a part of a file's content.
type Chunk struct {
	Sum    []byte // SHA-256
	Data   []byte
	Object string // key of the object with the content; "": the content is in the table
}

// NewChunk returns a chunk for the table.
func NewChunk(data []byte) Chunk {
	sum := sha256.Sum256(data)
	return Chunk{Sum: sum[:], Data: data}
}

// Name gives chunks new objects.
func Name(chunks []Chunk) {
	for i := range chunks {
		chunks[i].Object = strings.ToLower(rand.Text())
	}
}

// keysOf returns the keys of the chunks that are objects.
func keysOf(chunks []Chunk) (keys []string) {
	for _, c := range chunks {
		if c.Object != "" {
			keys = append(keys, c.Object)
		}
	}
	return keys
}

// Announce records that the objects of some chunks will be written. It must be committed before [Objects.Put].
func (o *Objects) Announce(tx db.Tx, chunks []Chunk) error {
	due := o.Now() + kernel.Abandoned.Microseconds()
	for _, c := range chunks {
		if _, err := tx.Exec(`INSERT INTO file_object (key, state, size, due_at) VALUES (?, 'arriving', ?, ?)`, c.Object,
			len(c.Data), due); err != nil {
			return err
		}
	}
	return nil
}

// Put writes the objects of some chunks. After an error, [Objects.GiveUp] must follow.
func (o *Objects) Put(ctx context.Context, chunks []Chunk) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	room := make(chan struct{}, atOnce)
	for _, c := range chunks {
		room <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		all.Go(func() {
			defer func() { <-room }()
			if err := o.call(ctx, "write", func(ctx context.Context) error {
				return o.Storage.Put(ctx, c.Object, c.Data)
			}); err != nil {
				cancel(err) // the first error counts
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Insert writes the rows of a file's chunks, which are numbered from first on. Their objects must already exist.
func Insert(tx db.Tx, file, first int64, chunks []Chunk) error {
	for i, c := range chunks {
		data := c.Data
		if c.Object != "" {
			data = []byte{}
		}
		if _, err := tx.Exec(`INSERT INTO file_chunk (id, sha256, data, object) VALUES (?, ?, ?, ?)`,
			file<<kernel.ChunkBits|(first+int64(i)), c.Sum, data, db.OrNull(c.Object)); err != nil {
			return err
		}
	}
	return keep(tx, chunks)
}

// Change changes the place of a chunk's content, if its row has not changed since. If the content moves to an object,
// that must already exist.
func Change(tx db.Tx, row int64, before, after Chunk) (changed bool, err error) {
	data := after.Data
	if after.Object != "" {
		data = []byte{}
	}
	result, err := tx.Exec(`UPDATE file_chunk SET data = ?, object = ? WHERE id = ? AND sha256 = ?
		AND coalesce(object, '') = ?`, data, db.OrNull(after.Object), row, after.Sum, before.Object)
	if err != nil || result.RowsAffected == 0 {
		return false, err
	}
	return true, keep(tx, []Chunk{after})
}

// keep records that objects belong to chunks from now on.
func keep(tx db.Tx, chunks []Chunk) error {
	keys := keysOf(chunks)
	if len(keys) == 0 {
		return nil
	}
	kept, err := tx.Exec(`UPDATE file_object SET state = 'stored', due_at = 0 WHERE state = 'arriving' AND key IN `+
		db.Texts, db.List(keys))
	if err == nil && kept.RowsAffected != int64(len(keys)) {
		err = fault.New(fault.KindConflict, "content",
			"the upload was cancelled, because it took more than %v; store the file again", kernel.Abandoned)
	}
	return err
}

// GiveUp removes the objects of chunks whose rows were not committed, even when the context has ended. [Objects.Remove]
// later removes the rest.
func (o *Objects) GiveUp(ctx context.Context, chunks []Chunk) {
	keys := keysOf(chunks)
	if len(keys) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(db.Freeing(context.WithoutCancel(ctx)), patience)
	defer cancel()
	var gone []string
	look := func(tx db.Tx) error {
		stored, err := db.Column[string](tx, `SELECT key FROM file_object WHERE state = 'stored' AND key IN `+db.Texts,
			db.List(keys))
		gone = slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return slices.Contains(stored, key) })
		return err
	}
	err := o.DB.Read(ctx, look)
	if err == nil && len(gone) == 0 {
		return
	}
	err = o.DB.Write(ctx, func(tx db.Tx) error {
		if err := look(tx); err != nil {
			return err
		}
		for _, key := range gone { // including objects whose row is gone because the upload took too long
			if _, err := tx.Exec(`INSERT INTO file_object (key, state, size, due_at) VALUES (?, 'leaving', 0, ?)
				ON CONFLICT (key) DO UPDATE SET state = excluded.state, due_at = excluded.due_at`, key,
				o.Now()+again.Microseconds()); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && len(gone) > 0 {
		err = o.call(ctx, "delete", func(ctx context.Context) error { return o.Storage.Delete(ctx, gone) })
	}
	if err != nil {
		o.Log.Warn("could not remove the objects of an unfinished file yet", "objects", len(keys), "error", Cause(err))
	}
}

// ErrNone means that a store was opened without the object storage that has the content.
var ErrNone = errors.New("the content is in object storage, but the store was opened without one")

// Get returns the content of an object, unverified. The error for a missing object is fs.ErrNotExist.
func (o *Objects) Get(ctx context.Context, key string) (data []byte, err error) {
	if o == nil || o.Storage == nil {
		return nil, ErrNone
	}
	err = o.call(ctx, "read", func(ctx context.Context) (err error) {
		data, err = o.Storage.Get(ctx, key)
		return err
	})
	return data, err
}

// ErrDamaged means that an object is missing or damaged.
var ErrDamaged = errors.New("its object is missing, or differs from what was stored")

// Content returns the content of an object and compares it with a hash. If the object is missing or has another
// content, the error is ErrDamaged.
func (o *Objects) Content(ctx context.Context, key string, sum []byte) ([]byte, error) {
	data, err := o.Get(ctx, key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrDamaged
	}
	if err == nil && !bytes.Equal(NewChunk(data).Sum, sum) {
		return nil, ErrDamaged
	}
	return data, err
}

// Load returns the content of a chunk of a given length from the table or an object. row reads the chunk's row. It is
// called again if the object is not the stored one, because the file may have been deleted or its content moved in the
// meantime. If the content is missing or wrong, the error is ErrDamaged.
func (o *Objects) Load(ctx context.Context, length int64, row func() (Chunk, error)) ([]byte, error) {
	for before := ""; ; {
		c, err := row()
		if err == nil && c.Object != "" {
			c.Data, err = o.Get(ctx, c.Object)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err == nil && int64(len(c.Data)) == length && bytes.Equal(NewChunk(c.Data).Sum, c.Sum) {
			return c.Data, nil
		}
		if c.Object == before {
			return c.Data, ErrDamaged
		}
		before = c.Object
	}
}

// Held reports whether a chunk's content is in an object.
func (o *Objects) Held(ctx context.Context, key string) (held bool, err error) {
	err = o.DB.Read(ctx, func(tx db.Tx) error {
		return tx.QueryRow(`SELECT EXISTS (SELECT 1 FROM file_chunk WHERE object = ?)`, key).Scan(&held)
	})
	return held, err
}

// Restore makes the rows of all objects that chunks have.
func Restore(tx db.Tx) error {
	_, err := tx.Exec(`INSERT INTO file_object (key, state, size, due_at)
		SELECT k.object, 'stored', CASE WHEN f.size - k.id % ?1 * ?2 < ?2 THEN f.size - k.id % ?1 * ?2 ELSE ?2 END, 0
			FROM file_chunk k JOIN file f ON f.id = `+kernel.FileOf(`k.id`)+` WHERE k.object IS NOT NULL
		ON CONFLICT (key) DO UPDATE SET state = 'stored', due_at = 0`, kernel.ChunksOfFile, kernel.ChunkSize)
	return err
}

// call calls the storage. Errors other than fs.ErrNotExist and that of the context get the kind busy.
func (o *Objects) call(ctx context.Context, verb string, fn func(context.Context) error) (err error) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	defer func() {
		if broken := recover(); broken != nil {
			err = o.unavailable(verb, fmt.Errorf("it panicked: %v", broken))
		}
	}()
	err = fn(limited)
	switch {
	case err == nil || errors.Is(err, fs.ErrNotExist):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return o.unavailable(verb, err)
}

// unavailable returns the error for failed storage. Its message, which callers see, leaves out the cause, which is
// logged.
func (o *Objects) unavailable(verb string, cause error) error {
	o.Log.Warn("the object storage failed", "to", verb, "error", cause)
	e := fault.New(fault.KindBusy, "", "the object storage that keeps the content of files could not %s; "+
		"try again in a moment", verb)
	e.Err = &Unavailable{cause}
	return e
}

// Unavailable is the cause of an error of object storage.
type Unavailable struct{ err error }

func (u *Unavailable) Error() string { return "object storage: " + u.err.Error() }

// Unwrap returns the storage's own error.
func (u *Unavailable) Unwrap() error { return u.err }

// Cause returns an error for the operator, with the storage's own message.
func Cause(err error) error {
	var storage *Unavailable
	if errors.As(err, &storage) {
		return storage
	}
	return err
}
