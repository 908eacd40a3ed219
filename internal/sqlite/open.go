package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// settings apply to every connection. None of them writes to the file.
var settings = []string{
	"foreign_keys = ON",
	"synchronous = FULL", // a commit is on disk when it returns
	"temp_store = MEMORY",
	fmt.Sprintf("cache_size = -%d", connPages>>10),
	"trusted_schema = OFF",
	"cell_size_check = ON",
}

var (
	writerSettings = append(slices.Clone(settings),
		fmt.Sprintf("wal_autocheckpoint = %d", autoCheckpoint),
		fmt.Sprintf("journal_size_limit = %d", walLimit),
		"secure_delete = ON") // deleted content is overwritten, in the file and on the pages that become free
	readerSettings = append(slices.Clone(settings), "query_only = ON")
)

func (d *DB) open(ctx context.Context, c Config, steps []migration) error {
	if c.Path == memoryPath {
		return d.openMemory(ctx, c, steps)
	}
	path, err := absolute(c.Path)
	if err != nil {
		return err
	}
	d.path = path
	d.resolveLog()
	before := d.sideFiles()
	err = d.openFile(ctx, c, steps)
	if errors.Is(err, db.ErrCorrupt) || errors.Is(err, db.ErrForeign) {
		d.sweep(before)
	}
	return err
}

func (d *DB) openFile(ctx context.Context, c Config, steps []migration) error {
	fresh, err := d.inspect(ctx, c.ApplicationID, len(steps))
	if err != nil {
		return err
	}
	if !c.ReadOnly {
		err := d.openWritable(ctx, c, steps, fresh)
		if fresh || !d.cannotWrite(err) {
			return err
		}
		d.log.Warn("file cannot be written, opened read-only", "path", d.path, "reason", err)
	}
	return d.openReadOnly(ctx, len(steps), fresh, c.AnyVersion)
}

func (d *DB) openReader(ctx context.Context) (*conn, error) {
	return d.connect(ctx, d.readMode, readerSettings)
}

// cannotWrite reports whether err means that the file or its folder is not writable, rather than that something
// else (too many open files, say) was in the way.
func (d *DB) cannotWrite(err error) bool {
	switch primaryCode(err) {
	case codeReadOnly:
		return true
	case codeCantOpen: // the log could not be created
		probe, err := os.CreateTemp(filepath.Dir(d.logPath), ".writable-*")
		if err != nil {
			return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
		}
		_ = probe.Close()
		_ = os.Remove(probe.Name())
	}
	return false
}

func (d *DB) openWritable(ctx context.Context, c Config, steps []migration, fresh bool) (err error) {
	mode := modeReadWrite
	if fresh {
		mode = modeCreate
		if err := d.makePrivate(c.ApplicationID); err != nil {
			return err
		}
	}
	w, err := d.connect(ctx, mode, writerSettings)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = w.close()
		}
	}()
	if fresh {
		err = d.create(ctx, w, c.ApplicationID)
	} else {
		err = d.checkWritable(w)
	}
	if err != nil {
		return err
	}
	var journal string
	err = d.patience().retry(ctx, func() error { return w.one("PRAGMA journal_mode = WAL", &journal) })
	if err != nil {
		return classify("open "+d.path, err)
	}
	if journal != "wal" {
		return fmt.Errorf("sqlite: open %s: %w: write-ahead log not possible on this file system (journal mode stays %q)",
			d.path, db.ErrIO, journal)
	}
	if err := d.migrate(ctx, w, c, steps); err != nil {
		return err
	}
	if err := d.prepare(ctx, w); err != nil {
		return err
	}
	d.resolveLog()
	d.writer = &writer{db: d, conn: w, group: maxGroup}
	d.balance(w)
	d.readMode = modeReadWrite
	return nil
}

// makePrivate creates a missing file, marked as ours and readable by its owner only; SQLite would leave that to the
// umask, which commonly allows reading by all users. The log beside it gets the same permissions.
//
// The file gets its name only when its first page is on disk: when the power goes, there is a whole database or none.
// It is closed before that: closing it later would end the locks of others in this process that have opened it
// meanwhile (POSIX, fcntl). A file to encrypt begins with its header, without which SQLite can read nothing of it.
func (d *DB) makePrivate(id int32) error {
	path := d.path
	if to, err := os.Readlink(path); err == nil { // its target does not exist, or the file would not be new
		if path = to; !filepath.IsAbs(to) {
			path = filepath.Join(filepath.Dir(d.path), to)
		}
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".souvenir-*") // with 0600, in the file system of the file
	if err != nil {
		return nil // SQLite says why
	}
	defer func() { _ = os.Remove(f.Name()) }()
	if err := errors.Join(d.writeFirstPage(f, id), f.Close()); err != nil {
		return fmt.Errorf("sqlite: create %s: %w", d.path, full(err))
	}
	err = os.Link(f.Name(), path)
	if _, there := os.Lstat(path); d.keys != nil && err != nil && errors.Is(there, fs.ErrNotExist) {
		return os.Rename(f.Name(), path) // there are file systems without such links
	}
	if info, _ := os.Stat(path); d.keys != nil && errors.Is(err, fs.ErrExist) && info != nil && info.Size() == 0 {
		return &FileError{Path: d.path, kind: db.ErrSealed, Found: "it is empty, and without the beginning of an " +
			"encrypted file, which only a new file gets; remove it"}
	}
	return nil
}

// create marks as ours an empty file that existed before, or that could not be made whole. It takes a lock, since
// several processes may do so at once. It marks the file before the switch to the write-ahead log, so the mark is in
// the file itself from its first page on.
func (d *DB) create(ctx context.Context, c *conn, id int32) error {
	if err := d.reserveEnds(c); err != nil {
		return err
	}
	if err := d.locked(ctx, c, "BEGIN EXCLUSIVE"); err != nil {
		return classify("create "+d.path, err)
	}
	found, err := c.header()
	switch {
	case err != nil:
	case found.application == id: // another process was faster
		_, err = c.exec("ROLLBACK", nil)
	case found.application != 0 || !found.empty:
		_, _ = c.exec("ROLLBACK", nil)
		return d.foreign(found, id)
	default:
		// One page is written, in one piece, over nothing: a journal on disk would only cost syncs.
		err = c.script(fmt.Sprintf("PRAGMA journal_mode = MEMORY; PRAGMA application_id = %d; COMMIT", id))
	}
	if err != nil {
		_, _ = c.exec("ROLLBACK", nil)
		return classify("create "+d.path, err)
	}
	return nil
}

// checkWritable fails with SQLite's read-only or cannot-open code if writing is impossible. Another process that
// is writing at the moment is no obstacle.
func (d *DB) checkWritable(c *conn) error {
	_, err := c.exec("BEGIN IMMEDIATE", nil)
	if err == nil {
		_, err = c.exec("ROLLBACK", nil)
	}
	if primaryCode(err) == codeBusy {
		return nil
	}
	return classify("open "+d.path, err)
}

func (d *DB) openReadOnly(ctx context.Context, known int, fresh, anyVersion bool) error {
	if fresh {
		if _, err := os.Stat(d.path); err != nil {
			return fmt.Errorf("sqlite: open %s read-only: %w", d.path, err)
		}
		return &FileError{Path: d.path, kind: db.ErrOlder, Found: "there is no schema in it yet"}
	}
	d.resolveLog()
	before := d.sideFiles()
	mode := modeReadOnly
	c, err := d.connect(ctx, mode, readerSettings)
	if d.cannotWrite(err) && walSize(d.logPath) == 0 {
		// The log's index is missing and cannot be created. With an empty log it is not needed.
		mode = modeImmutable
		c, err = d.connect(ctx, mode, readerSettings)
	}
	if err != nil {
		return err
	}
	version, err := d.version(ctx, c)
	switch {
	case err != nil:
	case version > known:
		err = d.newer(version, known)
	case version < known && !anyVersion:
		err = &FileError{Path: d.path, kind: db.ErrOlder,
			Found: fmt.Sprintf("the file has schema version %d, but this program needs %d; open it for writing once", version,
				known)}
	}
	if err != nil {
		_ = c.close()
		return err
	}
	d.readers.idle = append(d.readers.idle, c)
	d.readMode = mode
	if mode == modeReadOnly {
		d.sidesBefore = before
	}
	return nil
}

// openMemory uses one connection for reads and writes, one after the other: in memory a second
// connection would have a database of its own.
func (d *DB) openMemory(ctx context.Context, c Config, steps []migration) error {
	if c.ReadOnly {
		return fmt.Errorf("sqlite: open %s: a new database in memory cannot be read-only", memoryPath)
	}
	w, err := connect(memoryPath, settings)
	if err != nil {
		return classify("open "+memoryPath, err)
	}
	d.memory = true
	d.writer = &writer{db: d, conn: w, group: 1}
	if err = d.reserveEnds(w); err == nil { // before the first page is there
		err = w.script(fmt.Sprintf("PRAGMA application_id = %d", c.ApplicationID))
	}
	if err == nil {
		err = d.migrate(ctx, w, c, steps)
	}
	if err == nil {
		err = d.prepare(ctx, w)
	}
	if err != nil {
		_ = w.close()
		return err
	}
	return nil
}

// connect opens a connection to the file, and waits while another process has it locked.
func (d *DB) connect(ctx context.Context, mode string, settings []string) (c *conn, err error) {
	err = d.patience().retry(ctx, func() error {
		c, err = connect(d.dsn(d.path, mode), settings)
		if err == nil && mode != modeCreate {
			// Some failures show only at the first read of the file.
			var version int
			if err = c.one("PRAGMA user_version", &version); err != nil {
				_ = c.close()
			}
		}
		return err
	})
	if err != nil {
		return nil, classify("open "+d.path, err)
	}
	return c, nil
}

func (d *DB) patience() patience {
	return patience{until: time.Now().Add(d.lockTimeout), closed: d.closing}
}

// locked begins a transaction, waiting for the lock.
func (d *DB) locked(ctx context.Context, c *conn, begin string) error {
	return d.patience().retry(ctx, func() error {
		_, err := c.exec(begin, nil)
		return err
	})
}

// resolveLog finds the write-ahead log, which is next to the file itself even if the path is a link.
func (d *DB) resolveLog() {
	real, err := filepath.EvalSymlinks(d.path)
	if err != nil {
		real = d.path
	}
	d.logPath = real + "-wal"
}

// sideFiles returns which of SQLite's side files of a database exist.
func (d *DB) sideFiles() map[string]bool {
	there := map[string]bool{}
	for _, path := range []string{d.logPath, strings.TrimSuffix(d.logPath, "-wal") + "-shm"} {
		_, err := os.Lstat(path)
		there[path] = err == nil
	}
	return there
}

// sweep removes the side files created by inspecting a refused file, unless the log has content.
func (d *DB) sweep(before map[string]bool) {
	if walSize(d.logPath) > 0 {
		return
	}
	for path, was := range before {
		if !was {
			_ = os.Remove(path)
		}
	}
}

// leaveNoTrace makes SQLite remove the side files created by reading: a connection that may not write leaves them
// behind. It writes nothing to the file itself, since the log is empty.
func (d *DB) leaveNoTrace() {
	for path, was := range d.sidesBefore {
		if _, err := os.Lstat(path); was || err != nil || walSize(d.logPath) > 0 {
			return
		}
	}
	if len(d.sidesBefore) == 0 {
		return
	}
	if c, err := connect(d.dsn(d.path, modeReadWrite), nil); err == nil {
		var version int
		_ = c.one("PRAGMA user_version", &version)
		_ = c.close()
	}
}

// headerSize is the length of a SQLite file's header; no database is shorter.
const headerSize = 100

// header has the fields of the first page that identify the file.
type header struct {
	application int32
	version     int
	empty       bool // no tables; only known when application is 0
}

func (c *conn) header() (h header, err error) {
	if err := c.one("PRAGMA application_id", &h.application); err != nil {
		return h, err
	}
	if err := c.one("PRAGMA user_version", &h.version); err != nil {
		return h, err
	}
	if h.application == 0 {
		err = c.one("SELECT count(*) = 0 FROM sqlite_schema", &h.empty)
	}
	return h, err
}

// inspect examines the file without leaving a trace, and refuses it if it is not ours or too new. fresh means that
// the file does not exist, or holds nothing yet.
//
// Only SQLite itself may read the file: if this process has it open elsewhere, closing a second descriptor of it
// would drop all its locks (SQLite, "How To Corrupt", 2.2).
func (d *DB) inspect(ctx context.Context, id int32, known int) (fresh bool, err error) {
	info, err := os.Stat(d.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		dir := filepath.Dir(d.path)
		if _, err := os.Stat(dir); err != nil {
			return false, fmt.Errorf("sqlite: open %s: its folder: %w", d.path, err)
		}
		return true, nil
	case err != nil:
		return false, fmt.Errorf("sqlite: open: %w", err)
	case info.IsDir():
		return false, &FileError{Path: d.path, kind: db.ErrForeign, Found: "it is a folder"}
	case !info.Mode().IsRegular():
		return false, &FileError{Path: d.path, kind: db.ErrForeign, Found: "it is not a regular file"}
	case info.Size() == 0:
		return true, nil
	case info.Size() < headerSize: // SQLite takes a file of one byte for an empty one
		return false, &FileError{Path: d.path, kind: db.ErrForeign,
			Found: fmt.Sprintf("it is not a SQLite file: it has %d bytes", info.Size())}
	}
	found, err := d.look(ctx)
	switch code := primaryCode(err); {
	case d.sealedOtherwise(err):
		return false, d.keyError()
	case code == codeNotADB:
		return false, &FileError{Path: d.path, kind: db.ErrForeign, Found: "it is not a SQLite file"}
	case code == codeCorrupt:
		return false, &FileError{Path: d.path, kind: db.ErrCorrupt, Found: err.Error()}
	case err != nil:
		return false, classify("open "+d.path, err)
	case found.application == 0 && found.empty:
		return true, nil
	case found.application != id:
		return false, d.foreign(found, id)
	case found.version > known:
		return false, d.newer(found.version, known)
	}
	return false, nil
}

// look reads the header. Without a write-ahead log it takes no lock and creates no file; a checkpoint by another
// process at this very moment can then make the file look damaged, so the second look is a regular one.
func (d *DB) look(ctx context.Context) (h header, err error) {
	d.resolveLog()
	if walSize(d.logPath) == 0 {
		h, err = d.lookOnce(modeImmutable)
		if code := primaryCode(err); err == nil || code != codeCorrupt {
			return h, err
		}
	}
	err = d.patience().retry(ctx, func() error {
		h, err = d.lookOnce(modeReadOnly)
		return err
	})
	return h, err
}

func (d *DB) lookOnce(mode string) (header, error) {
	c, err := connect(d.dsn(d.path, mode), nil)
	if err != nil {
		return header{}, err
	}
	defer c.close()
	return c.header()
}

func (d *DB) foreign(found header, id int32) error {
	what := fmt.Sprintf("it is a SQLite file of another program (application id %#x, ours is %#x)",
		uint32(found.application), uint32(id))
	if found.application == 0 {
		what = fmt.Sprintf("it is a SQLite file with tables of another program (no application id, ours is %#x)", uint32(id))
	}
	return &FileError{Path: d.path, kind: db.ErrForeign, Found: what}
}

// pragmaScript joins settings into one script.
func pragmaScript(settings []string) string {
	return "PRAGMA " + strings.Join(settings, "; PRAGMA ")
}
