package sqlite

import (
	"errors"
	"fmt"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Error is an error from SQLite.
type Error struct {
	Op   string // the operation: "exec", "query", "commit", "open PATH" ...
	Code int    // SQLite's extended result code
	kind error  // one of the classes of db; nil for plain SQL errors
	err  error  // the driver's error
}

// Error names the operation and its result. While pages are copied, a driver may have only an error's code, and
// the text of the other file, which says "not an error".
func (e *Error) Error() string {
	text := e.err.Error()
	if e.kind != nil && strings.Contains(text, "not an error") {
		text = fmt.Sprintf("%v (%d)", e.kind, e.Code)
	}
	return fmt.Sprintf("sqlite: %s: %s", e.Op, text)
}

// Unwrap returns the class and the driver's error.
func (e *Error) Unwrap() []error {
	if e.kind == nil {
		return []error{e.err}
	}
	return []error{e.kind, e.err}
}

// FileError says why a file was refused: its kind is db.ErrForeign, ErrSealed, ErrNewer, ErrOlder or ErrCorrupt. The
// file is unchanged.
type FileError struct {
	Path  string
	Found string // the actual kind of file, and the expected one
	kind  error
}

func (e *FileError) Error() string { return fmt.Sprintf("sqlite: %s: %v: %s", e.Path, e.kind, e.Found) }
func (e *FileError) Unwrap() error { return e.kind }

// SQLite's primary result codes, https://www.sqlite.org/rescode.html.
const (
	codeBusy       = 5
	codeLocked     = 6
	codeNoMem      = 7
	codeReadOnly   = 8
	codeInterrupt  = 9
	codeIOErr      = 10
	codeCorrupt    = 11
	codeFull       = 13
	codeCantOpen   = 14
	codeProtocol   = 15
	codeTooBig     = 18
	codeConstraint = 19
	codeNotADB     = 26

	codeIOErrNoMem           = codeIOErr | 12<<8
	codeIOErrShmSize         = codeIOErr | 19<<8
	codeConstraintForeignKey = codeConstraint | 3<<8
	codeConstraintPrimaryKey = codeConstraint | 6<<8
	codeConstraintUnique     = codeConstraint | 8<<8
	codeConstraintRowID      = codeConstraint | 10<<8
)

// classify wraps a driver's error. Errors that are not SQLite's pass unchanged.
func classify(op string, err error) error {
	if err == nil {
		return nil
	}
	code, ok := resultCode(err)
	if !ok {
		return err
	}
	return &Error{Op: op, Code: code, kind: kindOf(code), err: err}
}

func kindOf(code int) error {
	switch code {
	case codeIOErrNoMem:
		return db.ErrNoMemory
	case codeIOErrShmSize: // growing the -shm file has one practical cause of failure
		return db.ErrFull
	case codeConstraintUnique, codeConstraintPrimaryKey, codeConstraintRowID:
		return db.ErrUnique
	case codeConstraintForeignKey:
		return db.ErrForeignKey
	}
	switch code & 0xff {
	case codeBusy, codeLocked, codeProtocol:
		return db.ErrBusy
	case codeNoMem:
		return db.ErrNoMemory
	case codeReadOnly:
		return db.ErrReadOnly
	case codeIOErr, codeCantOpen:
		return db.ErrIO
	case codeCorrupt, codeNotADB:
		return db.ErrCorrupt
	case codeFull:
		return db.ErrFull
	case codeTooBig:
		return db.ErrTooBig
	case codeConstraint:
		return db.ErrConstraint
	}
	return nil
}

// primaryCode returns SQLite's result code of err without its extension, 0 if err is not SQLite's.
func primaryCode(err error) int {
	var e *Error
	if errors.As(err, &e) {
		return e.Code & 0xff
	}
	code, _ := resultCode(err)
	return code & 0xff
}
