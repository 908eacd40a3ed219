//go:build !souvenir_cgo

package sealedvfs

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"

	"github.com/souvenir-ai/souvenir/internal/sealing"
	"github.com/souvenir-ai/souvenir/internal/sealing/pages"
	"github.com/souvenir-ai/souvenir/internal/sqlite/translated"
)

// system is the file system. SQLite's list of them belongs to the process.
type system struct {
	own       *lib.Tsqlite3_vfs
	parameter uintptr
	kept      []any // referenced only from C memory

	mu     sync.RWMutex
	files  map[uintptr]*file
	tables map[uintptr]uintptr // the methods of files, by those of SQLite's own file system
}

// there is the one file system.
var there = &system{files: map[uintptr]*file{}, tables: map[uintptr]uintptr{}}

// register makes the file system known to SQLite.
var register = sync.OnceValue(func() error {
	s := there
	tls := libc.NewTLS()
	s.own = translated.At[lib.Tsqlite3_vfs](lib.Xsqlite3_vfs_find(tls, 0))
	memory := libc.Xmalloc(tls, lib.Tsize_t(unsafe.Sizeof(lib.Tsqlite3_vfs{})))
	called, err := libc.CString(name)
	p, err2 := libc.CString(parameter)
	if err := errors.Join(err, err2); err != nil || memory == 0 {
		return fmt.Errorf("no memory for the file system of encrypted files: %w", err)
	}
	s.parameter = p
	vfs := translated.At[lib.Tsqlite3_vfs](memory)
	*vfs = *s.own
	vfs.FpNext, vfs.FzName = 0, called
	vfs.FxOpen, vfs.FxDelete = s.pointer(s.xOpen), s.pointer(s.xDelete)
	if rc := lib.Xsqlite3_vfs_register(tls, memory, 0); rc != lib.SQLITE_OK {
		return fmt.Errorf("SQLite refuses the file system of encrypted files (%d)", rc)
	}
	return nil
})

func (s *system) pointer(f any) uintptr {
	s.kept = append(s.kept, f)
	return translated.Pointer(f)
}

// file is an open database or log.
type file struct {
	view pages.Storage // what SQLite sees
	disk disk
	log  bool

	memory *memory // of a journal; nil for others
}

// table returns the methods of our files for those of SQLite's own. Without xFetch, no file is mapped into memory.
func (s *system) table(tls *libc.TLS, own uintptr) uintptr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.tables[own]; ok {
		return known
	}
	memory := libc.Xmalloc(tls, lib.Tsize_t(unsafe.Sizeof(lib.Tsqlite3_io_methods{})))
	m := translated.At[lib.Tsqlite3_io_methods](memory)
	*m = *translated.At[lib.Tsqlite3_io_methods](own)
	m.FiVersion = min(m.FiVersion, 2)
	m.FxClose, m.FxRead, m.FxWrite = s.pointer(s.xClose), s.pointer(s.xRead), s.pointer(s.xWrite)
	m.FxTruncate, m.FxFileSize = s.pointer(s.xTruncate), s.pointer(s.xFileSize)
	m.FxFileControl = s.pointer(s.xFileControl)
	s.tables[own] = memory
	return memory
}

func (s *system) file(at uintptr) *file {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.files[at]
}

func (s *system) xOpen(tls *libc.TLS, vfs, name, at uintptr, flags int32, outFlags uintptr) int32 {
	opened := translated.At[lib.Tsqlite3_file](at)
	opened.FpMethods = 0
	switch {
	case name == 0 && flags&lib.SQLITE_OPEN_TEMP_DB != 0: // where VACUUM builds the new content
		return s.openTemporary(tls, vfs, at, flags, outFlags)
	case flags&lib.SQLITE_OPEN_MAIN_JOURNAL != 0: // of a file that is being made
		const temporary = lib.SQLITE_OPEN_TEMP_JOURNAL | lib.SQLITE_OPEN_DELETEONCLOSE | lib.SQLITE_OPEN_READWRITE |
			lib.SQLITE_OPEN_CREATE | lib.SQLITE_OPEN_EXCLUSIVE
		return s.openTemporary(tls, vfs, at, temporary, outFlags)
	case name == 0 || flags&(lib.SQLITE_OPEN_MAIN_DB|lib.SQLITE_OPEN_WAL) == 0:
		return lib.SQLITE_CANTOPEN
	}
	f := &file{log: flags&lib.SQLITE_OPEN_WAL != 0}
	database := name
	if f.log {
		database = lib.Xsqlite3_filename_database(tls, name)
	}
	found, ok := all.Load(libc.GoString(lib.Xsqlite3_uri_parameter(tls, database, s.parameter)))
	if !ok {
		return lib.SQLITE_CANTOPEN
	}
	rc := translated.Function[translated.OpenFunc](s.own.FxOpen)(tls, vfs, name, at, flags, outFlags)
	if rc != lib.SQLITE_OK {
		return rc
	}
	f.disk = newDisk(tls, at, translated.At[lib.Tsqlite3_io_methods](opened.FpMethods))
	if rc = f.start(found.(*Keys), libc.GoString(database)); rc != lib.SQLITE_OK {
		translated.Function[translated.CloseFunc](f.disk.methods.FxClose)(tls, at)
		f.disk.free(tls)
		opened.FpMethods = 0
		return rc
	}
	s.add(tls, at, f)
	return rc
}

// openTemporary opens a database under a key that is not kept, or a journal in memory.
func (s *system) openTemporary(tls *libc.TLS, vfs, at uintptr, flags int32, outFlags uintptr) int32 {
	opened := translated.At[lib.Tsqlite3_file](at)
	key, err := sealing.NewFile()
	if err != nil {
		return lib.SQLITE_CANTOPEN
	}
	rc := translated.Function[translated.OpenFunc](s.own.FxOpen)(tls, vfs, 0, at, flags, outFlags)
	if rc == lib.SQLITE_OK {
		f := &file{disk: newDisk(tls, at, translated.At[lib.Tsqlite3_io_methods](opened.FpMethods))}
		f.view = pages.NewDatabase(key, &f.disk)
		if flags&lib.SQLITE_OPEN_TEMP_JOURNAL != 0 {
			f.memory = &memory{}
			f.view = f.memory
		}
		s.add(tls, at, f)
	}
	return rc
}

// add puts a file under our methods.
func (s *system) add(tls *libc.TLS, at uintptr, f *file) {
	opened := translated.At[lib.Tsqlite3_file](at)
	opened.FpMethods = s.table(tls, opened.FpMethods)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[at] = f
}

// start finds the key of a file.
func (f *file) start(keys *Keys, path string) int32 {
	if f.log {
		key := keys.of(path)
		if key == nil {
			return lib.SQLITE_CANTOPEN
		}
		f.view = pages.NewLog(key, &f.disk)
		return lib.SQLITE_OK
	}
	header := make([]byte, sealing.HeaderSize)
	n, err := f.disk.ReadAt(header, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return result(err)
	}
	key, err := keys.open(path, header[:n])
	if err != nil {
		return lib.SQLITE_CANTOPEN // the keys say why
	}
	f.view = pages.NewDatabase(key, &f.disk)
	return lib.SQLITE_OK
}

// xDelete deletes a file. A journal is in memory and has none.
func (s *system) xDelete(tls *libc.TLS, vfs, name uintptr, syncDir int32) int32 {
	rc := translated.Function[translated.DeleteFunc](s.own.FxDelete)(tls, vfs, name, syncDir)
	if rc == lib.SQLITE_IOERR_DELETE_NOENT {
		return lib.SQLITE_OK
	}
	return rc
}

func (s *system) xClose(tls *libc.TLS, at uintptr) int32 {
	f := s.file(at)
	s.mu.Lock()
	delete(s.files, at)
	s.mu.Unlock()
	f.disk.free(tls)
	return translated.Function[translated.CloseFunc](f.disk.methods.FxClose)(tls, at)
}

func (s *system) xRead(tls *libc.TLS, at, buffer uintptr, amount int32, offset int64) int32 {
	f := s.file(at)
	f.disk.tls = tls
	p := unsafe.Slice(translated.At[byte](buffer), amount)
	_, err := f.view.ReadAt(p, offset)
	if errors.Is(err, sealing.ErrBlock) && amount < pages.Size {
		// SQLite looks at the head of the file before it looks at the log, which may have the page whole.
		err = io.EOF
	}
	return result(err)
}

func (s *system) xWrite(tls *libc.TLS, at, buffer uintptr, amount int32, offset int64) int32 {
	f := s.file(at)
	f.disk.tls = tls
	_, err := f.view.WriteAt(unsafe.Slice(translated.At[byte](buffer), amount), offset)
	return result(err)
}

func (s *system) xTruncate(tls *libc.TLS, at uintptr, size int64) int32 {
	f := s.file(at)
	if f.memory != nil {
		return result(f.memory.Truncate(size))
	}
	onDisk := pages.SizeOf
	if f.log {
		onDisk = pages.LogSizeOf
	}
	return translated.Function[translated.TruncateFunc](f.disk.methods.FxTruncate)(tls, at, onDisk(size))
}

func (s *system) xFileSize(tls *libc.TLS, at, size uintptr) int32 {
	f := s.file(at)
	if f.memory != nil {
		*translated.At[int64](size) = int64(len(f.memory.content))
		return lib.SQLITE_OK
	}
	rc := translated.Function[translated.SizeFunc](f.disk.methods.FxFileSize)(tls, at, size)
	plain := pages.PlainSize
	if f.log {
		plain = pages.PlainLogSize
	}
	bytes := translated.At[int64](size)
	*bytes = plain(*bytes)
	return rc
}

// xFileControl drops hints about sizes, since sizes on disk differ from those that SQLite sees.
func (s *system) xFileControl(tls *libc.TLS, at uintptr, operation int32, argument uintptr) int32 {
	if operation == lib.SQLITE_FCNTL_SIZE_HINT {
		return lib.SQLITE_OK
	}
	f := s.file(at)
	return translated.Function[translated.ControlFunc](f.disk.methods.FxFileControl)(tls, at, operation, argument)
}

// disk is a file as stored on disk. Each call of SQLite uses it with the thread of the call.
type disk struct {
	tls     *libc.TLS
	file    uintptr
	methods *lib.Tsqlite3_io_methods // of SQLite's own file system

	buffer uintptr // in C's memory: Go may move its own, and C sees only numbers
}

// largest is the most bytes that are read or written at once.
const largest = 8192

func newDisk(tls *libc.TLS, file uintptr, methods *lib.Tsqlite3_io_methods) disk {
	return disk{tls: tls, file: file, methods: methods, buffer: libc.Xmalloc(tls, largest)}
}

func (d *disk) free(tls *libc.TLS) { libc.Xfree(tls, d.buffer) }

// failure is a result of SQLite's own file system.
type failure int32

func (f failure) Error() string { return fmt.Sprintf("the file system answers %d", int32(f)) }

func (d *disk) ReadAt(p []byte, at int64) (int, error) {
	if d.buffer == 0 || len(p) > largest {
		return 0, failure(lib.SQLITE_NOMEM)
	}
	rc := translated.Function[translated.TransferFunc](d.methods.FxRead)(d.tls, d.file, d.buffer, int32(len(p)), at)
	if rc == lib.SQLITE_OK || rc == lib.SQLITE_IOERR_SHORT_READ {
		copy(p, unsafe.Slice(translated.At[byte](d.buffer), len(p)))
	}
	switch rc {
	case lib.SQLITE_OK:
		return len(p), nil
	case lib.SQLITE_IOERR_SHORT_READ: // the rest is zeros
		return d.there(p, at), io.EOF
	}
	return 0, failure(rc)
}

// there returns how much of a short read lies before the end of the file.
func (d *disk) there(p []byte, at int64) int {
	size := libc.Xmalloc(d.tls, 8)
	if size == 0 {
		return 0
	}
	defer libc.Xfree(d.tls, size)
	if translated.Function[translated.SizeFunc](d.methods.FxFileSize)(d.tls, d.file, size) != lib.SQLITE_OK {
		return 0
	}
	return int(max(0, min(*translated.At[int64](size)-at, int64(len(p)-1))))
}

func (d *disk) WriteAt(p []byte, at int64) (int, error) {
	if d.buffer == 0 || len(p) > largest {
		return 0, failure(lib.SQLITE_NOMEM)
	}
	copy(unsafe.Slice(translated.At[byte](d.buffer), len(p)), p)
	write := translated.Function[translated.TransferFunc](d.methods.FxWrite)
	if rc := write(d.tls, d.file, d.buffer, int32(len(p)), at); rc != lib.SQLITE_OK {
		return 0, failure(rc)
	}
	return len(p), nil
}

// result returns SQLite's result for an error.
func result(err error) int32 {
	var f failure
	switch {
	case err == nil:
		return lib.SQLITE_OK
	case errors.As(err, &f):
		return int32(f)
	case errors.Is(err, io.EOF):
		return lib.SQLITE_IOERR_SHORT_READ
	case errors.Is(err, sealing.ErrBlock):
		return lib.SQLITE_CORRUPT
	}
	return lib.SQLITE_IOERR_WRITE
}

// ReserveEnds makes a new database, or the copies that VACUUM INTO makes, leave the end of each page alone. The handle
// is SQLite's, of a connection.
func ReserveEnds(handle uintptr, bytes int) error {
	if handle == 0 {
		return errors.New("the driver does not tell its handle")
	}
	tls := libc.NewTLS()
	defer tls.Close()
	n := libc.Xmalloc(tls, 8)
	defer libc.Xfree(tls, n)
	*translated.At[int32](n) = int32(bytes)
	if rc := lib.Xsqlite3_file_control(tls, handle, 0, lib.SQLITE_FCNTL_RESERVE_BYTES, n); rc != lib.SQLITE_OK {
		return fmt.Errorf("SQLite reserves no room in pages (%d)", rc)
	}
	return nil
}

// Plain returns the parameters of an address for an unencrypted file, for a connection whose own file is encrypted.
func Plain() string {
	if register() != nil {
		return ""
	}
	return "vfs=" + libc.GoString(there.own.FzName)
}

// Rewrap puts the key of the open file of a connection under another master key, which later openings need.
func (k *Keys) Rewrap(handle uintptr, to sealing.MasterKey) error {
	return withHeader(handle, func(tls *libc.TLS, at uintptr, d *disk, header []byte) error {
		return k.With(func(r *sealing.Ring) error {
			slots, err := r.Rewrap(header, to)
			if err != nil {
				return err
			}
			for _, slot := range slots {
				if _, err := d.WriteAt(slot.Data, slot.At); err != nil {
					return err
				}
				sync := translated.Function[translated.FlagFunc](d.methods.FxSync)
				if rc := sync(tls, at, lib.SQLITE_SYNC_FULL); rc != lib.SQLITE_OK {
					return failure(rc)
				}
			}
			r.Taken(to)
			return nil
		})
	})
}

// Take uses another master key for new files from now on, if the open file of a connection needs that key.
func (k *Keys) Take(handle uintptr, key sealing.MasterKey) error {
	return withHeader(handle, func(_ *libc.TLS, _ uintptr, _ *disk, header []byte) error {
		return k.With(func(r *sealing.Ring) error { return r.Take(header, key) })
	})
}

// withHeader reads the header of the open file of a connection.
func withHeader(handle uintptr, fn func(tls *libc.TLS, at uintptr, d *disk, header []byte) error) error {
	if handle == 0 {
		return errors.New("the driver does not tell its handle")
	}
	tls := libc.NewTLS()
	defer tls.Close()
	found := libc.Xmalloc(tls, 8)
	defer libc.Xfree(tls, found)
	if rc := lib.Xsqlite3_file_control(tls, handle, 0, lib.SQLITE_FCNTL_FILE_POINTER, found); rc != lib.SQLITE_OK {
		return fmt.Errorf("SQLite does not tell its file (%d)", rc)
	}
	at := *translated.At[uintptr](found)
	f := there.file(at)
	if f == nil {
		return errors.New("the file is not one of encrypted files")
	}
	d := newDisk(tls, at, f.disk.methods)
	defer d.free(tls)
	header := make([]byte, sealing.HeaderSize)
	if _, err := d.ReadAt(header, 0); err != nil {
		return err
	}
	return fn(tls, at, &d, header)
}
