//go:build souvenir_cgo

// Build with -tags "souvenir_cgo sqlite_fts5" and a C compiler. The vector extension is compiled against the
// sqlite3.h of the system (Debian: libsqlite3-dev; macOS has it in its SDK). It uses only the header; SQLite
// itself comes with the driver. Without that header, a copy of the driver's sqlite3-binding.h under that name
// works, in a folder named by CGO_CFLAGS=-I.

package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync"

	vec "github.com/asg017/sqlite-vec-go-bindings/cgo"
	"github.com/mattn/go-sqlite3"

	"github.com/souvenir-ai/souvenir/internal/rowhash"
)

// driverModule is the driver that this build uses.
const driverModule = "github.com/mattn/go-sqlite3"

// registerVec makes SQLite load the vector functions into every later connection.
var registerVec = sync.OnceFunc(vec.Auto)

func openDriver(dsn string) (driver.Conn, error) {
	registerVec()
	d := sqlite3.SQLiteDriver{ConnectHook: func(c *sqlite3.SQLiteConn) error {
		err := c.RegisterFunc(rowhash.FunctionHash, hashOfRow, true)
		return errors.Join(err, c.RegisterFunc(rowhash.FunctionXor, rowhash.Xor, true))
	}}
	return d.Open(dsn)
}

// hashOfRow is rowhash.Hash for this driver, which passes NULL as a nil slice of bytes.
func hashOfRow(names string, values ...any) ([]byte, error) {
	for i, v := range values {
		if b, ok := v.([]byte); ok && b == nil {
			values[i] = nil
		}
	}
	return rowhash.Hash(names, values)
}

// resultCode returns SQLite's extended result code from a driver's error.
func resultCode(err error) (int, bool) {
	var e sqlite3.Error
	if !errors.As(err, &e) {
		return 0, false
	}
	if e.ExtendedCode != 0 {
		return int(e.ExtendedCode), true
	}
	return int(e.Code), true
}

// interrupter returns a function that stops the running statement of the connection, callable from any goroutine.
// The driver interrupts only for the context of a statement, and for that starts a goroutine per row. One
// statement of our own, run under a context that is already over, does the same for a whole transaction: it waits
// behind the running statement for the connection's mutex, and the driver interrupts both. It returns no row, so
// it never stays active, which would keep the interrupt pending. release must be called before the connection is
// closed.
func interrupter(raw driver.Conn) (interrupt, release func()) {
	c, ok := raw.(*sqlite3.SQLiteConn)
	if !ok {
		return nil, func() {}
	}
	s, err := c.Prepare("SELECT 1 WHERE 0")
	if err != nil {
		return nil, func() {}
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	interrupt = func() { _, _ = s.(*sqlite3.SQLiteStmt).ExecContext(over, nil) }
	return interrupt, func() { _ = s.Close() }
}

// connPages is how many bytes of pages a connection holds. With this driver each has its own.
const connPages = 4 << 20

// heldPages returns 0: there is nothing to balance.
func heldPages(driver.Conn) int64 { return 0 }

func freePages(int64) {}

// handle returns 0: this driver does not encrypt files, for which the handle is needed.
func handle(driver.Conn) uintptr { return 0 }

// readBlob reports false: this driver has no function for it.
func readBlob(driver.Conn, []byte, string, string, int64) ([]byte, bool) { return nil, false }

// execReturnsRows reports whether the statement returns rows (PRAGMA, INSERT ... RETURNING). This driver's Exec
// would leave such a statement active after its first row. Its Query runs nothing by itself, so the check costs no
// work.
func execReturnsRows(s driver.Stmt) bool {
	rows, err := s.(*sqlite3.SQLiteStmt).QueryContext(context.Background(), nil)
	if err != nil {
		return false
	}
	defer rows.Close()
	return len(rows.Columns()) > 0
}

// copyPages begins to copy a connection's database into the file at an address.
func copyPages(from driver.Conn, dsn string) (pageCopy, error) {
	into, err := connect(dsn,
		[]string{"journal_mode = OFF", "synchronous = OFF"}) // synced when it is complete
	if err != nil {
		return nil, err
	}
	b, err := into.raw.(*sqlite3.SQLiteConn).Backup("main", from.(*sqlite3.SQLiteConn), "main")
	if err != nil {
		_ = into.close()
		return nil, err
	}
	return copying{b, into}, nil
}

type copying struct {
	*sqlite3.SQLiteBackup
	into *conn
}

func (c copying) step(pages int) (bool, error) {
	done, err := c.Step(pages)
	return !done, err
}

func (c copying) progress() (left, total int) { return c.Remaining(), c.PageCount() }

func (c copying) finish() error {
	err := c.Finish()
	_ = c.into.close() // everything is in the file, and syncing it reports errors
	return err
}
