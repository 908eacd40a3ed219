//go:build !souvenir_cgo

package sqlite

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"modernc.org/libc"
	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
	_ "modernc.org/sqlite/vec" // vec_distance_cosine and similar, on every connection

	"github.com/souvenir-ai/souvenir/internal/rowhash"
)

// driverModule is the driver that this build uses.
const driverModule = "modernc.org/sqlite"

// ownDriver is a driver for this package alone, whose connections have the functions that hash rows.
var ownDriver = sync.OnceValue(func() *sqlite.Driver {
	d := new(sqlite.Driver)
	err := d.RegisterFunction(rowhash.FunctionHash, &sqlite.FunctionImpl{
		NArgs: -1, Deterministic: true,
		VolatileArgs: true, // arguments are not kept
		Scalar: func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
			names, ok := args[0].(string)
			if !ok {
				return nil, fmt.Errorf("%s: the names are missing", rowhash.FunctionHash)
			}
			return rowhash.Hash(names, args[1:])
		},
	})
	if err == nil {
		err = d.RegisterFunction(rowhash.FunctionXor, &sqlite.FunctionImpl{
			NArgs: 2, Deterministic: true, VolatileArgs: true,
			Scalar: func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
				a, _ := args[0].([]byte)
				b, _ := args[1].([]byte)
				return rowhash.Xor(a, b), nil
			},
		})
	}
	if err != nil {
		panic(err) // two functions of one name: impossible
	}
	return d
})

func openDriver(dsn string) (driver.Conn, error) { return ownDriver().Open(dsn) }

// resultCode returns SQLite's extended result code from a driver's error.
func resultCode(err error) (int, bool) {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code(), true
	}
	return 0, false
}

// interrupter returns a function that stops the running statement of the connection, callable from any goroutine.
// The driver itself watches a context only until the first row and starts a goroutine per statement for it; the
// handle lets one watcher serve a whole transaction. The handle is an unexported field: if a later version renames
// it, a cancelled read ends at its next row instead of at once. release must be called before the connection is
// closed.
func interrupter(raw driver.Conn) (interrupt, release func()) {
	release = func() {}
	db := handle(raw)
	if db == 0 {
		return nil, release
	}
	interrupt = func() {
		// A libc.TLS belongs to one goroutine, so the connection's own may not be used here.
		tls := libc.NewTLS()
		lib.Xsqlite3_interrupt(tls, db)
		tls.Close()
	}
	return interrupt, release
}

// connPages is how many bytes of pages a connection holds before it takes those of others.
const connPages = 8 << 20

// heldPages returns how many bytes of pages a connection holds.
func heldPages(raw driver.Conn) int64 {
	s, ok := raw.(sqlite.DBStatus)
	if !ok {
		return 0
	}
	n, _, _ := s.Status(sqlite.DBStatusCacheUsed, false)
	return int64(n)
}

// freePages frees bytes of pages of all connections, least recently used first.
func freePages(n int64) {
	tls := libc.NewTLS()
	lib.Xsqlite3_release_memory(tls, int32(n))
	tls.Close()
}

// handle returns SQLite's handle of a connection; 0 if the driver has another place for it.
func handle(raw driver.Conn) uintptr {
	v := reflect.ValueOf(raw)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return 0
	}
	f := v.Elem().FieldByName("db")
	if !f.IsValid() || f.Kind() != reflect.Uintptr {
		return 0
	}
	return uintptr(f.Uint())
}

// execReturnsRows is false: this driver's Exec runs a statement to its end by itself.
func execReturnsRows(driver.Stmt) bool { return false }

// copyPages begins to copy a connection's database into the file at an address.
func copyPages(from driver.Conn, dsn string) (pageCopy, error) {
	// The file has no final name yet, and is synced when it is complete.
	b, err := from.(interface {
		NewBackup(dsn string) (*sqlite.Backup, error)
	}).NewBackup(dsn + "&_pragma=journal_mode(off)&_pragma=synchronous(off)")
	if err != nil {
		return nil, err
	}
	return copying{b}, nil
}

type copying struct{ *sqlite.Backup }

func (c copying) step(pages int) (bool, error) { return c.Step(int32(pages)) }
func (c copying) progress() (left, total int)  { return c.Remaining(), c.PageCount() }
func (c copying) finish() error                { return c.Finish() }
