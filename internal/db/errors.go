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

	// ErrUnavailable means that the engine cannot be reached now; nothing was changed. ErrInterrupted means that the
	// engine, or its operator, ended a statement, and nothing was changed. ErrUnsupported means that the engine does not
	// have the operation, such as copying the file of a database that is not a file.
	ErrUnavailable = errors.New("database cannot be reached")
	ErrInterrupted = errors.New("interrupted by the database")
	ErrUnsupported = errors.New("not supported by this database")

	// ErrOutcomeUnknown is the error of a Write whose commit was sent and not answered: all of its work is durable, or
	// none. Only reading again tells which.
	ErrOutcomeUnknown = errors.New("no answer to the commit; it may or may not be stored")

	ErrClosed  = errors.New("closed")
	ErrForeign = errors.New("not a database of this program")
	ErrSealed  = errors.New("not readable with the master key that was given")
	ErrNewer   = errors.New("schema is newer than this program")
	ErrOlder   = errors.New("schema is older than this program and cannot be upgraded read-only")

	// ErrNested is the error for a Read or Write with the context of a transaction of the same database ([Tx.Context]),
	// which would wait for itself. With another context it waits like any other call, and fails with ErrBusy after a
	// limited time.
	ErrNested = errors.New("transaction requested with the context of a transaction")

	// ErrTxDone is the error for a Tx that is used after its function has returned.
	ErrTxDone = errors.New("transaction is over")

	// ErrMisfit means that a stored value cannot be scanned into its destination.
	ErrMisfit = errors.New("stored value does not fit")

	// ErrNoRows is the error of Row.Scan when the query finds nothing.
	ErrNoRows = sql.ErrNoRows

	// ErrLogInUse means that the log of changes could not be emptied, because others read from it.
	ErrLogInUse = errors.New("readers hold the write-ahead log")
)
