package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sealing"
	"github.com/souvenir-ai/souvenir/internal/sealing/pages"
	"github.com/souvenir-ai/souvenir/internal/sqlite/sealedvfs"
)

// Encrypted files: SQLite reads and writes them through [sealedvfs].

// useKey takes the master key of the file to open.
func (d *DB) useKey(key sealing.MasterKey) (err error) {
	if key.IsZero() {
		return nil
	}
	if d.keys, err = sealedvfs.New(sealing.NewRing(key)); err != nil {
		return fmt.Errorf("sqlite: %w: %w", db.ErrSealed, err)
	}
	return nil
}

func (d *DB) forgetKey() {
	if d.keys != nil {
		d.keys.Forget()
	}
}

// dsn returns the address by which the driver opens the file, or a copy of it.
func (d *DB) dsn(path, mode string) string {
	if d.keys == nil {
		return fileDSN(path, mode)
	}
	return fileDSN(path, mode) + "&" + d.keys.Parameters()
}

// sealedOtherwise reports whether the file could not be opened because of its key.
func (d *DB) sealedOtherwise(err error) bool {
	if err == nil {
		return false
	}
	if d.keys != nil {
		return d.keys.Err() != nil
	}
	if code := primaryCode(err); code != codeNotADB && code != codeCantOpen { // the latter from the log
		return false
	}
	// It may be encrypted. Only SQLite may read it, so the file system checks this, without a key.
	keys, err := sealedvfs.New(sealing.NewRing(sealing.MasterKey{}))
	if err != nil {
		return false
	}
	defer keys.Forget()
	_, err = (&DB{path: d.path, keys: keys}).lookOnce(modeImmutable)
	if err == nil || !errors.Is(keys.Err(), sealing.ErrKeyMissing) {
		return false
	}
	d.keyMissing = keys.Err()
	return true
}

// keyError returns the error for a wrong or missing key of the file.
func (d *DB) keyError() error {
	err := d.keyMissing
	if d.keys != nil {
		err = d.keys.Err()
	}
	kind := db.ErrSealed
	if sealing.IsDamaged(err) {
		kind = db.ErrCorrupt
	}
	return &FileError{Path: d.path, kind: kind, Found: err.Error()}
}

// writeHeader begins a file, with a header if it is encrypted, and returns its key.
func (d *DB) writeHeader(f *os.File) (key *sealing.File, err error) {
	if d.keys == nil {
		return nil, nil
	}
	err = d.keys.With(func(r *sealing.Ring) (err error) {
		var header []byte
		if header, key, err = r.New(); err == nil {
			_, err = f.Write(header)
		}
		return err
	})
	return key, err
}

// writeFirstPage writes the database without tables that SQLite would make, marked as ours, and waits for the disk.
// https://www.sqlite.org/fileformat2.html has the format.
func (d *DB) writeFirstPage(f *os.File, id int32) error {
	key, err := d.writeHeader(f)
	if err != nil {
		return err
	}
	page := make([]byte, pages.Size)
	if key != nil {
		page[20] = pages.Reserved
	}
	copy(page, "SQLite format 3\x00")
	binary.BigEndian.PutUint16(page[16:], pages.Size)
	copy(page[18:], []byte{2, 2}) // with a write-ahead log
	copy(page[21:], []byte{64, 32, 32})
	binary.BigEndian.PutUint32(page[24:], 1) // changes
	binary.BigEndian.PutUint32(page[28:], 1) // pages
	binary.BigEndian.PutUint32(page[44:], 4) // the format of schemas
	binary.BigEndian.PutUint32(page[56:], 1) // UTF-8
	binary.BigEndian.PutUint32(page[68:], uint32(id))
	binary.BigEndian.PutUint32(page[92:], 1) // changes when the number of pages was written
	page[100] = 13                           // a leaf, for the table of tables
	binary.BigEndian.PutUint16(page[105:], uint16(pages.Size-int(page[20])))
	if key == nil {
		_, err = f.Write(page)
	} else {
		_, err = pages.NewDatabase(key, f).WriteAt(page, 0)
	}
	if err == nil {
		err = f.Sync()
	}
	return err
}

// reserveEnds makes a new database leave the end of each page to the file system.
func (d *DB) reserveEnds(c *conn) error {
	if d.keys == nil {
		return nil
	}
	if err := sealedvfs.ReserveEnds(handle(c.raw), pages.Reserved); err != nil {
		return fmt.Errorf("sqlite: create %s: %w", d.path, err)
	}
	return nil
}

// ChangeMasterKey encrypts the key of the file under another master key. The file itself stays as it is, and handles
// that have it open, in this process or another, keep working.
func (d *DB) ChangeMasterKey(ctx context.Context, to sealing.MasterKey) error {
	if err := d.begin(ctx); err != nil {
		return err
	}
	defer d.end()
	switch {
	case d.writer == nil:
		return readOnlyError(d.path)
	case d.keys == nil || d.memory:
		return fmt.Errorf("sqlite: %s: %w: it is not encrypted", d.path, db.ErrSealed)
	}
	return d.writer.exclusive(ctx, func() error {
		c := d.writer.conn
		if err := d.locked(ctx, c, "BEGIN IMMEDIATE"); err != nil { // one process at a time
			return classify("change the master key", err)
		}
		defer func() { _, _ = c.exec("ROLLBACK", nil) }()
		return d.keys.Rewrap(handle(c.raw), to)
	})
}

// TakeMasterKey encrypts later copies with another master key, if another process has put the key of the file under it.
func (d *DB) TakeMasterKey(ctx context.Context, key sealing.MasterKey) error {
	if err := d.begin(ctx); err != nil {
		return err
	}
	defer d.end()
	if d.keys == nil || d.memory || d.writer == nil {
		return nil
	}
	same := false
	if err := d.keys.With(func(r *sealing.Ring) error {
		same = r.Master().Equal(key)
		return nil
	}); err != nil || same {
		return err
	}
	return d.writer.exclusive(ctx, func() error { return d.keys.Take(handle(d.writer.conn.raw), key) })
}

// CopyInto writes the database into a new file at path, encrypted with the master key or, if that is zero, not. It is
// for a plain copy of an encrypted file, or an encrypted copy of a plain one: their pages differ. For other copies,
// [DB.Backup] is faster.
func (d *DB) CopyInto(ctx context.Context, path string, key sealing.MasterKey) (err error) {
	to := &DB{path: path}
	if to.path, err = absolute(path); err != nil {
		return err
	}
	if err := mustBeFree(to.path); err != nil {
		return err
	}
	if err := to.useKey(key); err != nil {
		return err
	}
	defer to.forgetKey()
	if err := d.begin(ctx); err != nil {
		return err
	}
	defer d.end()
	c, err := d.connect(ctx, d.readMode, settings)
	if err != nil {
		return err
	}
	defer func() { _ = c.close() }()
	reserved := 0
	if to.keys != nil {
		reserved = pages.Reserved
	}
	if err := sealedvfs.ReserveEnds(handle(c.raw), reserved); err != nil && to.keys != nil {
		return err
	}
	part, err := d.makeCopy(filepath.Dir(to.path), filepath.Base(to.path)+".part-*", to, func(part string) error {
		defer c.watch(ctx)()
		into := to.dsn(part, modeReadWrite)
		if to.keys == nil {
			into += "&" + sealedvfs.Plain()
		}
		return c.script("VACUUM INTO '" + strings.ReplaceAll(into, "'", "''") + "'")
	})
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return classify("copy to "+path, err)
	}
	defer removeCopy(part)
	if err := mustBeFree(to.path); err != nil { // another process may have been faster
		return err
	}
	if err := publish(part, to.path); err != nil {
		return full(err)
	}
	return full(syncFolder(filepath.Dir(to.path)))
}
