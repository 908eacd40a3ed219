package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Error is an error from PostgreSQL or from the connection to it.
type Error struct {
	Op   string // the operation: "exec", "query", "commit" ...
	Code string // SQLSTATE; "" if the server did not answer
	kind error  // one of the classes of package db; nil for plain SQL errors
	err  error
}

func (e *Error) Error() string { return fmt.Sprintf("postgres: %s: %v", e.Op, e.err) }

// Unwrap returns the class and the driver's error.
func (e *Error) Unwrap() []error {
	if e.kind == nil {
		return []error{e.err}
	}
	return []error{e.kind, e.err}
}

// The codes that have an effect here: https://www.postgresql.org/docs/current/errcodes-appendix.html.
const (
	codeSerialization = "40001"
	codeDeadlock      = "40P01"
	codeUnknown       = "40003" // of a statement whose completion is unknown
	codeCanceled      = "57014"
	codeDuplicate     = "42P07" // a table of this name exists
	codeDivision      = "22012" // by zero
	codeGone          = "08006" // a connection that has failed
)

// kinds are the classes of codes; a code's first two characters are its group.
var kinds = map[string]error{
	"23505": db.ErrUnique, "23P01": db.ErrUnique, "23503": db.ErrForeignKey, "23": db.ErrConstraint,
	"25006": db.ErrReadOnly,
	"53100": db.ErrFull, "53200": db.ErrNoMemory, "53300": db.ErrUnavailable, "53400": db.ErrBusy,
	"54": db.ErrTooBig, "22026": db.ErrTooBig,
	"55P03": db.ErrBusy, codeSerialization: db.ErrBusy, codeDeadlock: db.ErrBusy,
	codeCanceled: db.ErrInterrupted, "25P03": db.ErrUnavailable, "25P04": db.ErrUnavailable,
	"57P": db.ErrUnavailable, "08": db.ErrUnavailable, "58": db.ErrIO, "XX001": db.ErrCorrupt, "XX002": db.ErrCorrupt,
}

func kindOfCode(code string) error {
	for _, length := range []int{5, 3, 2} {
		if len(code) == 5 && kinds[code[:length]] != nil {
			return kinds[code[:length]]
		}
	}
	return nil
}

// classify wraps an error of the driver.
func classify(op string, err error) error {
	var known *Error
	var refused *pgconn.ConnectError
	var answer *pgconn.PgError
	var network net.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return err
	case errors.As(err, &answer):
		return &Error{Op: op, Code: answer.Code, kind: kindOfCode(answer.Code), err: err}
	case errors.As(err, &refused), errors.As(err, &network), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF),
		errors.Is(err, net.ErrClosed), errors.Is(err, pgconn.ErrConnClosed):
		return &Error{Op: op, kind: db.ErrUnavailable, err: err}
	case errors.Is(err, pgx.ErrNoRows):
		return db.ErrNoRows
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return fmt.Errorf("postgres: %s: %w", op, err)
}

// unanswered classifies the error of a COMMIT that may have been done. PostgreSQL undoes a COMMIT that it answers with
// an ERROR. Errors that end the connection, FATAL and PANIC included, may come between the work and the answer. (The
// driver's SafeToRetry is of no use here: it holds for a connection that closes while the answer is awaited.)
func unanswered(err error) error {
	if err == nil {
		return nil
	}
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		severity := cmp.Or(answer.SeverityUnlocalized, answer.Severity)
		if severity == "ERROR" && answer.Code != codeUnknown {
			return err
		}
		return &Error{Op: "commit", Code: answer.Code, kind: db.ErrOutcomeUnknown, err: err}
	}
	if errors.Is(err, context.Canceled) { // not the caller's
		err = errors.New("no answer in time")
	}
	return &Error{Op: "commit", kind: db.ErrOutcomeUnknown, err: err}
}

// again reports whether an error means that the transaction has to run again.
func again(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.Code == codeSerialization || e.Code == codeDeadlock)
}
