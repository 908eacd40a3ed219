// Package fault defines the store's errors: their kinds, and helpers for their messages. The root package exports Error
// and Kind.
package fault

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/shorten"
)

// Kind is the sort of an error, so that a program can decide without reading the message.
type Kind string

// The kinds of an [Error].
const (
	KindInvalid         Kind = "invalid"
	KindNotFound        Kind = "not found"
	KindUnauthenticated Kind = "unauthenticated"
	KindForbidden       Kind = "forbidden"
	KindConflict        Kind = "conflict"
	KindTooLarge        Kind = "too large"
	KindReadOnly        Kind = "read-only"
	KindClosed          Kind = "closed"
	KindBusy            Kind = "busy"
	KindFull            Kind = "full"
	KindForeign         Kind = "foreign"
	KindMasterKey       Kind = "master key"
	KindUserKeys        Kind = "user keys"
	KindNewer           Kind = "newer"
	KindCorrupt         Kind = "corrupt"
	KindOutcomeUnknown  Kind = "outcome unknown"
	KindInternal        Kind = "internal"
)

// Error is an error of a kind.
type Error struct {
	Kind     Kind
	Argument string // the wrong argument, as the interface spells it; "" for none
	Field    string // its name in Go: a field, such as NewMemory.Content, or a parameter; "" for none
	Message  string // a lower-case sentence: the problem, the value, and what would be right
	Err      error  // the cause, if any

	message message // Message, with places for names
	names   Names   // of Go; nil: the error names arguments
	at      string  // the list element that the error is about, such as memories[3]
	element string  // the struct of that element
}

// Error returns the message, with Go's names where known; a bare kind describes itself.
func (e *Error) Error() string {
	switch {
	case e.Message == "":
		return "souvenir: " + string(e.Kind)
	case e.names == nil || e.message.parts == nil || len(e.message.names) == 0 && e.at == "":
		return e.Message
	}
	return e.goMessage()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is an *Error of the same kind without further detail.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Kind == e.Kind && t.Message == ""
}

// New returns an error about an argument, "" for none. In the format, {} is its name, and {limit} the name of another
// argument.
func New(kind Kind, argument, format string, args ...any) *Error {
	if false {
		_ = fmt.Sprintf(format, args...) // so that vet checks the callers' formats
	}
	e := &Error{Kind: kind, Argument: argument, message: parse(argument, format, args)}
	e.Message = e.message.text(func(name string) string { return name })
	return e
}

// Invalid returns an error about a wrong argument.
func Invalid(argument, format string, args ...any) *Error {
	return New(KindInvalid, argument, format, args...)
}

// Damaged returns an error for stored data that cannot be read.
func Damaged(cause error, format string, args ...any) *Error {
	message := fmt.Sprintf("the store is damaged: "+format+": %v", append(args, cause)...)
	return &Error{Kind: KindCorrupt, Message: message, Err: cause}
}

// OrNil returns a nil error for a nil *Error.
func OrNil(err *Error) error {
	if err == nil {
		return nil
	}
	return err
}

// Show quotes a value for a message and keeps it short: people and models read messages.
func Show(value string) string { return strconv.Quote(Clip(value)) }

// Whole quotes a reference that callers pass back, in full length.
func Whole(value string) string { return strconv.Quote(value) }

// Clip cuts a value to 60 characters.
func Clip(value string) string { return shorten.After(value, 60) }

// NeedsScope returns the error for a call whose credential does not carry a scope.
func NeedsScope(call, scope string, cause error) *Error {
	return &Error{Kind: KindForbidden, Err: cause,
		Message: call + " needs the scope " + scope + ", which this credential does not have; use one that does"}
}

// Callers are the kinds of errors about the caller's input: only their messages are shown to callers.
var Callers = []Kind{KindInvalid, KindNotFound, KindUnauthenticated, KindForbidden, KindConflict, KindTooLarge,
	KindReadOnly}

// Temporary returns the text shown to callers for a failure of the disk or the database that they did not cause. It
// replaces the error's own text, which names files. It is "" for other kinds.
func Temporary(kind Kind) string {
	switch kind {
	case KindBusy:
		return "the store is locked, or its database cannot be reached; nothing was changed; try again in a moment"
	case KindNewer:
		return "a newer version of Souvenir has changed the database, and this server is older; " +
			"nothing was changed; ask the operator to replace it"
	case KindFull:
		return "the disk of the store is full; nothing was stored; ask the operator to free space"
	case KindOutcomeUnknown:
		return "the disk or the database failed: this may have been stored; check before trying again"
	}
	return ""
}

// OneOf lists allowed values: `"a", "b" or "c"`.
func OneOf[S ~string](values []S) string {
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

// OAuthDescription converts a message to the characters allowed in an error_description (RFC 6749, section 5.2).
func OAuthDescription(message string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '"':
			return '\''
		case r < ' ' || r > '~' || r == '\\':
			return '?'
		}
		return r
	}, strings.ReplaceAll(message, "…", "..."))
}
