package db

import (
	"database/sql"
	"errors"
	"fmt"
)

// The classes of error that callers tell apart with errors.Is. Engines classify by result code, never by text.
var (
	ErrBusy       = errors.New("locked by another process")
	ErrFull       = errors.New("disk full")
	ErrReadOnly   = errors.New("read-only")
	ErrIO         = errors.New("input/output error")
	ErrCorrupt    = errors.New("damaged database")
	ErrNoMemory   = errors.New("out of memory")
	ErrTooBig     = errors.New("value or statement too big")
	ErrConstraint = errors.New("constraint violated")

	// ErrUnique and ErrForeignKey are kinds of ErrConstraint: errors.Is holds for both.
	ErrUnique     = fmt.Errorf("%w: not unique", ErrConstraint)
	ErrForeignKey = fmt.Errorf("%w: foreign key", ErrConstraint)

	// ErrUnavailable means that the engine cannot be reached now; nothing was changed. ErrUnsupported means that it has
	// no such operation, such as the copy of a file where there is none.
	ErrUnavailable = errors.New("database cannot be reached")
	ErrUnsupported = errors.New("not supported by this database")

	ErrClosed  = errors.New("closed")
	ErrForeign = errors.New("not a database of this program")
	ErrNewer   = errors.New("schema is newer than this program")
	ErrOlder   = errors.New("schema is older than this program and cannot be upgraded read-only")

	// ErrNested is the error for a Read or Write called from within the function of another one, which would wait
	// for itself.
	ErrNested = errors.New("transaction requested from within a transaction of the same goroutine")

	// ErrTxDone is the error for a Tx that is used after its function has returned.
	ErrTxDone = errors.New("transaction is over")

	// ErrNoRows is the error of Row.Scan when the query finds nothing.
	ErrNoRows = sql.ErrNoRows

	// ErrLogInUse means that the log of changes could not be emptied, because others read from it.
	ErrLogInUse = errors.New("readers hold the write-ahead log")
)
