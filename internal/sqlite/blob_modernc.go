//go:build !souvenir_cgo

package sqlite

import (
	"database/sql/driver"
	"runtime"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// readBlob reads a blob into a piece of memory, or into a new one if that is too small. It reports false if it could
// not. SQLite writes each page of the file where it belongs; a query would make two more copies of the whole.
func readBlob(raw driver.Conn, into []byte, table, column string, row int64) (blob []byte, ok bool) {
	db := handle(raw)
	if db == 0 {
		return nil, false
	}
	tls := libc.NewTLS()
	defer tls.Close()
	place := libc.Xcalloc(tls, 1, 8)
	defer libc.Xfree(tls, place)
	const schema = "main\x00"
	names, err := libc.CString(schema + table + "\x00" + column)
	if err != nil {
		return nil, false
	}
	defer libc.Xfree(tls, names)
	tableName := names + uintptr(len(schema))
	columnName := tableName + uintptr(len(table)+1)
	if lib.Xsqlite3_blob_open(tls, db, names, tableName, columnName, row, 0, place) != lib.SQLITE_OK {
		return nil, false
	}
	open := libc.AtomicLoadPUintptr(place)
	defer lib.Xsqlite3_blob_close(tls, open)
	n := lib.Xsqlite3_blob_bytes(tls, open)
	if blob = into; cap(blob) < int(n) {
		blob = make([]byte, n, n+n/4) // on the heap, so it does not move; the next one may be larger
	}
	blob = blob[:n]
	to := uintptr(unsafe.Pointer(unsafe.SliceData(blob)))
	ok = lib.Xsqlite3_blob_read(tls, open, to, n, 0) == lib.SQLITE_OK
	runtime.KeepAlive(blob)
	return blob, ok
}
