//go:build linux && !souvenir_cgo

package disktest

import (
	"os"
	"strings"
	"sync"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"

	"github.com/souvenir-ai/souvenir/internal/sqlite/translated"
)

func (d *Disk) pointer(f any) uintptr {
	d.kept = append(d.kept, f)
	return translated.Pointer(f)
}

// wrapped is an open file.
type wrapped struct {
	own  *lib.Tsqlite3_io_methods // of SQLite's file system
	path string
	wal  bool
}

// installed is the file system, once it is there: SQLite's list of them belongs to the process.
var installed = sync.OnceValue(func() *Disk {
	d := &Disk{files: map[uintptr]*wrapped{}, tables: map[uintptr]uintptr{}}
	tls := libc.NewTLS()
	d.own = translated.At[lib.Tsqlite3_vfs](lib.Xsqlite3_vfs_find(tls, 0))
	memory := libc.Xmalloc(tls, lib.Tsize_t(unsafe.Sizeof(lib.Tsqlite3_vfs{})))
	name, err := libc.CString("disktest")
	if memory == 0 || err != nil {
		panic("disktest: no memory")
	}
	vfs := translated.At[lib.Tsqlite3_vfs](memory)
	*vfs = *d.own
	vfs.FpNext, vfs.FzName = 0, name
	vfs.FxOpen, vfs.FxDelete = d.pointer(d.xOpen), d.pointer(d.xDelete)
	if rc := lib.Xsqlite3_vfs_register(tls, memory, 1); rc != lib.SQLITE_OK {
		panic("disktest: SQLite refuses the file system")
	}
	return d
})

// Install puts the file system under all of SQLite in this process, for good, and returns it.
func Install() *Disk { return installed() }

// table returns the wrapping methods of a kind of file. The caller holds the mutex.
func (d *Disk) table(tls *libc.TLS, own uintptr) uintptr {
	if known, ok := d.tables[own]; ok {
		return known
	}
	memory := libc.Xmalloc(tls, lib.Tsize_t(unsafe.Sizeof(lib.Tsqlite3_io_methods{})))
	m := translated.At[lib.Tsqlite3_io_methods](memory)
	*m = *translated.At[lib.Tsqlite3_io_methods](own)
	m.FxClose, m.FxRead, m.FxWrite = d.pointer(d.xClose), d.pointer(d.xRead), d.pointer(d.xWrite)
	m.FxTruncate, m.FxSync, m.FxFileSize = d.pointer(d.xTruncate), d.pointer(d.xSync), d.pointer(d.xFileSize)
	m.FxLock = d.pointer(d.xLock)
	if m.FxShmMap != 0 {
		m.FxShmMap = d.pointer(d.xShmMap)
	}
	d.tables[own] = memory
	return memory
}

func (d *Disk) file(at uintptr) *wrapped {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.files[at]
}

func (d *Disk) xOpen(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32 {
	open := translated.Function[translated.OpenFunc](d.own.FxOpen)
	if name == 0 { // a temporary file
		return open(tls, vfs, name, file, flags, outFlags)
	}
	path := libc.GoString(name)
	if d.fails(Open, path) != nil {
		translated.At[lib.Tsqlite3_file](file).FpMethods = 0
		return lib.SQLITE_CANTOPEN
	}
	_, err := os.Lstat(path)
	if err == nil && d.adopt(path) != nil {
		translated.At[lib.Tsqlite3_file](file).FpMethods = 0
		return lib.SQLITE_CANTOPEN
	}
	rc := open(tls, vfs, name, file, flags, outFlags)
	if rc != lib.SQLITE_OK {
		return rc
	}
	f := translated.At[lib.Tsqlite3_file](file)
	d.mu.Lock()
	defer d.mu.Unlock()
	w := &wrapped{own: translated.At[lib.Tsqlite3_io_methods](f.FpMethods), path: path,
		wal: flags&(lib.SQLITE_OPEN_WAL|lib.SQLITE_OPEN_MAIN_JOURNAL) != 0}
	f.FpMethods = d.table(tls, f.FpMethods)
	d.files[file] = w
	if err != nil {
		d.note(event{kind: created, path: path})
	}
	return rc
}

// adopt notes a file that SQLite did not make.
func (d *Disk) adopt(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.record == nil {
		return nil
	}
	return d.record.found(path)
}

func (d *Disk) xDelete(tls *libc.TLS, vfs, name uintptr, syncDir int32) int32 {
	path := libc.GoString(name)
	if d.fails(Delete, path) != nil {
		return lib.SQLITE_IOERR_DELETE
	}
	rc := translated.Function[translated.DeleteFunc](d.own.FxDelete)(tls, vfs, name, 0)
	if rc == lib.SQLITE_OK {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.note(event{kind: removed, path: path})
		if syncDir != 0 {
			d.note(event{kind: syncedFolder})
		}
	}
	return rc
}

func (d *Disk) xClose(tls *libc.TLS, file uintptr) int32 {
	w := d.file(file)
	d.mu.Lock()
	delete(d.files, file)
	d.mu.Unlock()
	return translated.Function[translated.CloseFunc](w.own.FxClose)(tls, file)
}

func (d *Disk) xRead(tls *libc.TLS, file, buffer uintptr, amount int32, offset int64) int32 {
	w := d.file(file)
	if d.fails(Read, w.path) != nil {
		return lib.SQLITE_IOERR_READ
	}
	return translated.Function[translated.TransferFunc](w.own.FxRead)(tls, file, buffer, amount, offset)
}

func (d *Disk) xWrite(tls *libc.TLS, file, buffer uintptr, amount int32, offset int64) int32 {
	w := d.file(file)
	write := translated.Function[translated.TransferFunc](w.own.FxWrite)
	data := unsafe.Slice(translated.At[byte](buffer), amount)
	if f := d.fails(Write, w.path); f != nil {
		if part := int32(f.Part * float64(amount)); part > 0 && write(tls, file, buffer, part, offset) == lib.SQLITE_OK {
			d.noted(event{kind: wrote, path: w.path, offset: offset, data: data[:part]})
		}
		if f.Full {
			return lib.SQLITE_FULL
		}
		return lib.SQLITE_IOERR_WRITE
	}
	rc := write(tls, file, buffer, amount, offset)
	if rc == lib.SQLITE_OK {
		d.noted(event{kind: wrote, path: w.path, offset: offset, data: data})
	}
	return rc
}

func (d *Disk) xTruncate(tls *libc.TLS, file uintptr, size int64) int32 {
	w := d.file(file)
	if d.fails(Truncate, w.path) != nil {
		return lib.SQLITE_IOERR_TRUNCATE
	}
	rc := translated.Function[translated.TruncateFunc](w.own.FxTruncate)(tls, file, size)
	if rc == lib.SQLITE_OK {
		d.noted(event{kind: truncated, path: w.path, offset: size})
	}
	return rc
}

// xSync records that SQLite asked for a sync. It does not sync the real disk, which no test cuts off.
func (d *Disk) xSync(tls *libc.TLS, file uintptr, flags int32) int32 {
	w := d.file(file)
	if d.fails(Sync, w.path) != nil {
		d.noted(event{kind: syncFailed, path: w.path})
		return lib.SQLITE_IOERR_FSYNC
	}
	d.noted(event{kind: synced, path: w.path})
	if w.wal { // as SQLite's own does for these files after it made them
		d.noted(event{kind: syncedFolder})
	}
	return lib.SQLITE_OK
}

func (d *Disk) xFileSize(tls *libc.TLS, file, size uintptr) int32 {
	w := d.file(file)
	if d.fails(Size, w.path) != nil {
		return lib.SQLITE_IOERR_FSTAT
	}
	return translated.Function[translated.SizeFunc](w.own.FxFileSize)(tls, file, size)
}

func (d *Disk) xLock(tls *libc.TLS, file uintptr, level int32) int32 {
	w := d.file(file)
	if d.fails(Lock, w.path) != nil {
		return lib.SQLITE_IOERR_LOCK
	}
	return translated.Function[translated.FlagFunc](w.own.FxLock)(tls, file, level)
}

func (d *Disk) xShmMap(tls *libc.TLS, file uintptr, region, size, extend int32, out uintptr) int32 {
	w := d.file(file)
	if d.fails(Map, strings.TrimSuffix(w.path, "-shm")+"-shm") != nil {
		return lib.SQLITE_IOERR_SHMMAP
	}
	return translated.Function[translated.MapFunc](w.own.FxShmMap)(tls, file, region, size, extend, out)
}
