package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/souvenir-ai/souvenir/internal/db"
)

//go:embed keys/*.sql
var keysSchema embed.FS

// keysID marks a file with user keys: "Svnk".
const keysID = 0x53766e6b

// Keys is a file with the user keys. It is a place of package keyring.
type Keys struct {
	*DB
	opened os.FileInfo // the file at its path when it was opened
}

// Flush removes erased keys from the log, too.
func (k Keys) Flush(ctx context.Context) error { return k.DB.Flush(ctx) }

// errGone is the class of errors about a file that was removed or replaced while it was open.
var errGone = errors.New("the file with the user keys was removed or replaced since it was " +
	"opened: put it back and restart the program")

// gone is an error if the path leads to another file by now, or to none.
func (k Keys) gone() error {
	if now, err := os.Stat(k.Path()); err != nil || !os.SameFile(k.opened, now) {
		return fmt.Errorf("%w (%s)", errGone, k.Path())
	}
	return nil
}

// Read runs fn in a read transaction. Connections that are open still read a file that has lost its name; where another
// one has to be opened, the error says what happened to the file.
func (k Keys) Read(ctx context.Context, fn func(db.Tx) error) error {
	err := k.DB.Read(ctx, fn)
	if err == nil {
		return nil
	}
	if gone := k.gone(); gone != nil {
		return fmt.Errorf("%w: %w", gone, err)
	}
	return err
}

// Write runs fn in a write transaction. It refuses if the path leads to another file by now: a key in a file without a
// name is lost when the program ends, and with it the data sealed under that key.
func (k Keys) Write(ctx context.Context, fn func(db.Tx) error) error {
	if err := k.gone(); err != nil {
		return err
	}
	return k.DB.Write(ctx, fn)
}

// OpenKeys opens the file with the user keys, and makes it if there is none. Only its owner can read it. A symbolic
// link is refused, since its target may be copied with backups.
func OpenKeys(ctx context.Context, path string, readOnly bool, log *slog.Logger) (Keys, error) {
	schema, err := fs.Sub(keysSchema, "keys")
	if err != nil {
		return Keys{}, err
	}
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return Keys{}, &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("it is a %s; give the path of the file "+
			"itself", nameOf(info))}
	}
	d, err := Open(ctx, Config{Path: path, ApplicationID: keysID, Migrations: schema, ReadOnly: readOnly, Readers: 2,
		Logger: log})
	if err != nil {
		return Keys{}, err
	}
	k := Keys{DB: d}
	if k.opened, err = os.Stat(d.Path()); err != nil {
		_ = d.Close()
		return Keys{}, err
	}
	if open := k.opened.Mode().Perm() & 0o077; open != 0 && log != nil && os.PathSeparator == '/' {
		log.Warn("others on this machine can read the file with the user keys; run chmod 600 on it", "path", d.Path(),
			"permissions", k.opened.Mode().Perm())
	}
	return k, nil
}

// NewKeys makes a file with user keys, which gets its name when fill has filled it.
func NewKeys(ctx context.Context, path string, fill func(Keys) error) error {
	folder, err := os.MkdirTemp(filepath.Dir(path), ".souvenir-keys-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	part := filepath.Join(folder, "ring")
	to, err := OpenKeys(ctx, part, false, nil)
	if err != nil {
		return err
	}
	err = fill(to)
	if err := errors.Join(err, to.Close()); err != nil {
		return err
	}
	if err := os.Link(part, path); err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.Rename(part, path) // some file systems have no hard links
}

// nameOf names the kind of a file that is not regular.
func nameOf(info fs.FileInfo) string {
	switch mode := info.Mode(); {
	case mode&fs.ModeSymlink != 0:
		return "symbolic link"
	case mode.IsDir():
		return "folder"
	}
	return "special file"
}
