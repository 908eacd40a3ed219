package db

import (
	"context"
	"errors"
	"io"
)

// Upkeep is the maintenance interface of an engine. Only its name is required. A part may be nil: the methods of Upkeep
// document what holds then.
type Upkeep struct {
	// Name is the engine and its version, such as "SQLite 3.51.0".
	Name string
	// Path is the path of the database file, ":memory:" for a database in memory, and "" for one that is not in a file.
	Path string

	File  File  // the database is a file
	Space Space // knows its size
	Check Check // finds damage

	// Scratch is [DB.Read] for [Words.Each], on a separate connection if full text needs one. Nil: Read is enough.
	Scratch func(ctx context.Context, fn func(Tx) error) error
}

// InMemory reports whether the database is in memory only.
func (u Upkeep) InMemory() bool { return u.Path == ":memory:" }

// InFile reports whether the database is in a file.
func (u Upkeep) InFile() bool { return u.Path != "" && !u.InMemory() }

// File is the part for an engine whose database is a file. Restoring, recovering and re-encrypting are for files of
// SQLite only: the root does this without an engine.
type File interface {
	// Backup writes the database, as it is at one moment, to a new file, while others read and write; after an
	// error it leaves nothing behind. An existing path gives fs.ErrExist. Progress, nil for none, counts pages.
	Backup(ctx context.Context, path string, progress func(done, total int)) error
	// Copy makes such a copy and returns it open for reading. Closing it deletes it.
	Copy(ctx context.Context, progress func(done, total int)) (io.ReadCloser, error)
	// Flush removes the bytes of deleted data from the engine's log; ErrLogInUse while readers hold it.
	Flush(ctx context.Context) error
	// Room returns an ErrFull while the disk has no room for writes, and an ErrReadOnly while the disk is read-only
	// although the database was opened for writing.
	Room(ctx context.Context) error
}

// Space is the part for an engine that knows its size.
type Space interface {
	// Size returns the size of the database, as the transaction sees it.
	Size(tx Tx) (Size, error)
	// Compact frees the space of deleted rows: a file shrinks; a server's tables may keep the space for new rows.
	Compact(ctx context.Context) error
}

// Check is the part for an engine that finds damage.
type Check interface {
	// Damage verifies the engine's own structures and returns at most limit places.
	Damage(tx Tx, limit int) ([]Damage, error)
	// Broken returns the references to missing rows, by table and column, with at least one row each.
	Broken(tx Tx) ([]Broken, error)
	// Damaged reports whether an error of reading or repairing means that stored data is damaged, and not that the
	// database is unavailable.
	Damaged(err error) bool
	// RebuildIndexes rebuilds the indexes of tables, in transactions of its own. On a server, Reads and Writes go on
	// meanwhile; on a file, Writes wait.
	RebuildIndexes(ctx context.Context) error
}

// Encrypted is a DB whose file is encrypted under a master key of some type. Only SQLite has it: [Opening] has no key.
type Encrypted[Key any] interface {
	// ChangeMasterKey encrypts the key of the file under another master key.
	ChangeMasterKey(ctx context.Context, to Key) error
	// TakeMasterKey encrypts later copies with another master key, if the key of the file has been put under it.
	TakeMasterKey(ctx context.Context, key Key) error
}

// Size is the size of a database, in bytes.
type Size struct {
	Database int64 // the whole database
	Free     int64 // of that, free for new content
	Log      int64 // the engine's log
}

// Damage is a damaged place in the engine's own structures.
type Damage struct {
	Text    string
	Words   bool // in full text, which can be rebuilt
	Indexes bool // in an index; see [Upkeep.RebuildIndexes]
}

// Broken is a reference from some rows to missing rows.
type Broken struct {
	Table, Column string
	Parent, Key   string // the missing row's table and column
	OnDelete      string // "CASCADE", "SET NULL" ...
	Rows          int
}

// Scratch is Read, with what [Words.Each] needs.
func Scratch(ctx context.Context, d DB, fn func(Tx) error) error {
	if scratch := d.Upkeep().Scratch; scratch != nil {
		return scratch(ctx, fn)
	}
	return d.Read(ctx, fn)
}

// Backup is [File.Backup]; without a file, ErrUnsupported.
func (u Upkeep) Backup(ctx context.Context, path string, progress func(done, total int)) error {
	if u.File == nil {
		return ErrUnsupported
	}
	return u.File.Backup(ctx, path, progress)
}

// Copy is [File.Copy]; without a file, ErrUnsupported.
func (u Upkeep) Copy(ctx context.Context, progress func(done, total int)) (io.ReadCloser, error) {
	if u.File == nil {
		return nil, ErrUnsupported
	}
	return u.File.Copy(ctx, progress)
}

// Flush is [File.Flush]; without a file, ErrUnsupported: the operator manages the log.
func (u Upkeep) Flush(ctx context.Context) error {
	if u.File == nil {
		return ErrUnsupported
	}
	return u.File.Flush(ctx)
}

// Room is [File.Room]; without a file there is room, as the disk is the server's.
func (u Upkeep) Room(ctx context.Context) error {
	if u.File == nil {
		return ctx.Err()
	}
	return u.File.Room(ctx)
}

// Size is [Space.Size], 0 where it is not known.
func (u Upkeep) Size(tx Tx) (Size, error) {
	if u.Space == nil {
		return Size{}, nil
	}
	return u.Space.Size(Stored(tx))
}

// Compact is [Space.Compact], or ErrUnsupported.
func (u Upkeep) Compact(ctx context.Context) error {
	if u.Space == nil {
		return ErrUnsupported
	}
	return u.Space.Compact(ctx)
}

// Damage is [Check.Damage], none where the engine does not look for any.
func (u Upkeep) Damage(tx Tx, limit int) ([]Damage, error) {
	if u.Check == nil {
		return nil, nil
	}
	return u.Check.Damage(Stored(tx), limit)
}

// Broken is [Check.Broken], none where the engine does not look for any.
func (u Upkeep) Broken(tx Tx) ([]Broken, error) {
	if u.Check == nil {
		return nil, nil
	}
	return u.Check.Broken(Stored(tx))
}

// Damaged is [Check.Damaged]; without it, the class of the error decides.
func (u Upkeep) Damaged(err error) bool {
	if u.Check == nil {
		return errors.Is(err, ErrCorrupt) || errors.Is(err, ErrMisfit) || errors.Is(err, ErrConstraint)
	}
	return u.Check.Damaged(err)
}

// RebuildIndexes is [Check.RebuildIndexes], or ErrUnsupported.
func (u Upkeep) RebuildIndexes(ctx context.Context) error {
	if u.Check == nil {
		return ErrUnsupported
	}
	return u.Check.RebuildIndexes(ctx)
}
