package souvenir

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Kind says what sort of thing went wrong, so that a program can decide without reading the message.
type Kind string

// The kinds of an [Error].
const (
	KindInvalid         Kind = "invalid"         // an argument is wrong; the message says which, its value and what would be right
	KindNotFound        Kind = "not found"       // it does not exist, or is not visible through this view
	KindUnauthenticated Kind = "unauthenticated" // who is calling could not be established
	KindForbidden       Kind = "forbidden"       // visible, but this view may not do that to it
	KindConflict        Kind = "conflict"        // it exists already, or somebody else changed it first
	KindTooLarge        Kind = "too large"       // past a limit; the message names the limit
	KindReadOnly        Kind = "read-only"       // the file, or the view, is opened for reading only
	KindClosed          Kind = "closed"          // the store has been closed
	KindBusy            Kind = "busy"            // another process held the file's lock for too long
	KindFull            Kind = "full"            // the disk is full; nothing of the failed write was kept
	KindForeign         Kind = "foreign"         // the file is not a Souvenir store
	KindNewer           Kind = "newer"           // the file was written by a newer version of this package
	KindCorrupt         Kind = "corrupt"         // the file is damaged
	KindInternal        Kind = "internal"        // anything else
)

// Error is the error type of every method. Match it by kind with errors.Is and one of the Err values,
// or take it apart with errors.As.
type Error struct {
	Kind     Kind
	Argument string // the name of the argument at fault, as the interface spells it; empty when there is none
	Message  string // a lower-case sentence: what was wrong, with which value, and what would be right
	Err      error  // the cause, if any
}

// One value for each kind: errors.Is(err, souvenir.ErrNotFound).
var (
	ErrInvalid         = &Error{Kind: KindInvalid}
	ErrNotFound        = &Error{Kind: KindNotFound}
	ErrUnauthenticated = &Error{Kind: KindUnauthenticated}
	ErrForbidden       = &Error{Kind: KindForbidden}
	ErrConflict        = &Error{Kind: KindConflict}
	ErrTooLarge        = &Error{Kind: KindTooLarge}
	ErrReadOnly        = &Error{Kind: KindReadOnly}
	ErrClosed          = &Error{Kind: KindClosed}
	ErrBusy            = &Error{Kind: KindBusy}
	ErrFull            = &Error{Kind: KindFull}
	ErrForeign         = &Error{Kind: KindForeign}
	ErrNewer           = &Error{Kind: KindNewer}
	ErrCorrupt         = &Error{Kind: KindCorrupt}
	ErrInternal        = &Error{Kind: KindInternal}
)

// Error returns the message; a bare kind describes itself.
func (e *Error) Error() string {
	if e.Message == "" {
		return "souvenir: " + string(e.Kind)
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is an *Error of the same kind that says nothing more: one of the Err values.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Kind == e.Kind && t.Message == ""
}

func newError(kind Kind, argument, format string, args ...any) *Error {
	return &Error{Kind: kind, Argument: argument, Message: fmt.Sprintf(format, args...)}
}

func invalid(argument, format string, args ...any) *Error {
	return newError(KindInvalid, argument, format, args...)
}

// damaged says that what the file holds cannot be read.
func damaged(cause error, format string, args ...any) *Error {
	return &Error{Kind: KindCorrupt, Message: fmt.Sprintf("the file is damaged: "+format+": %v", append(args, cause)...), Err: cause}
}

// storeErrors maps the storage layer's classes to kinds, in one place.
var storeErrors = []struct {
	class   error
	kind    Kind
	message string
}{
	{db.ErrClosed, KindClosed, "the store is closed"},
	{db.ErrReadOnly, KindReadOnly, "the store is opened for reading only"},
	{db.ErrOlder, KindReadOnly, ""},
	{db.ErrBusy, KindBusy, ""},
	{db.ErrFull, KindFull, ""},
	{db.ErrForeign, KindForeign, ""},
	{db.ErrNewer, KindNewer, ""},
	{db.ErrCorrupt, KindCorrupt, ""},
}

// wrap turns any error that leaves the package into an *Error; context errors stay what they are.
func wrap(err error) error {
	if err == nil {
		return nil
	}
	var known *Error
	if errors.As(err, &known) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	for _, e := range storeErrors {
		if errors.Is(err, e.class) {
			message := e.message
			if message == "" {
				message = err.Error()
			}
			return &Error{Kind: e.kind, Message: message, Err: err}
		}
	}
	return &Error{Kind: KindInternal, Message: "souvenir: " + err.Error(), Err: err}
}

// show quotes a value for a message and keeps it short: messages are read by people and by models.
func show(value string) string { return strconv.Quote(clip(value)) }

// whole quotes a reference that callers are to give back, however long.
func whole(value string) string { return strconv.Quote(value) }

func clip(value string) string {
	const most = 60
	if utf8.RuneCountInString(value) > most {
		return string([]rune(value)[:most]) + "…"
	}
	return value
}

// oneOf lists allowed values: `"a", "b" or "c"`.
func oneOf[S ~string](values []S) string {
	var b strings.Builder
	for i, v := range values {
		switch {
		case i > 0 && i == len(values)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(strconv.Quote(string(v)))
	}
	return b.String()
}
