package souvenir

import (
	"context"
	"errors"
	"reflect"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/sealing/keyring"
	"github.com/souvenir-ai/souvenir/internal/txcontext"
)

// Kind classifies an error, so that programs need not read its message. It is a string.
type Kind = fault.Kind

// The kinds of an [Error].
const (
	KindInvalid         = fault.KindInvalid         // an argument is wrong; the message names it, its value and the fix
	KindNotFound        = fault.KindNotFound        // it does not exist, or is not visible through this view
	KindUnauthenticated = fault.KindUnauthenticated // the caller could not be authenticated
	KindForbidden       = fault.KindForbidden       // visible, but this view may not do that to it
	KindConflict        = fault.KindConflict        // it already exists, or another caller changed it first
	KindTooLarge        = fault.KindTooLarge        // past a limit; the message names the limit
	KindReadOnly        = fault.KindReadOnly        // the store, or the view, is opened for reading only
	KindClosed          = fault.KindClosed          // the store has been closed
	KindBusy            = fault.KindBusy            // another process held the store's lock for too long
	KindFull            = fault.KindFull            // the disk is full; nothing of the failed write was kept
	KindForeign         = fault.KindForeign         // the file is not a Souvenir store
	KindMasterKey       = fault.KindMasterKey       // the file needs another master key, or none
	KindUserKeys        = fault.KindUserKeys        // the store needs its user keys, other ones, or none
	KindNewer           = fault.KindNewer           // the store was written by a newer version of this package
	KindCorrupt         = fault.KindCorrupt         // the store is damaged
	KindOutcomeUnknown  = fault.KindOutcomeUnknown  // the disk or the database failed: it may be stored; look first
	KindInternal        = fault.KindInternal        // anything else
)

// Error is the error type of every method. Match it by kind with errors.Is and one of the Err values,
// or take it apart with errors.As. Its fields:
//
//	Kind     Kind
//	Argument string // the argument at fault, by its name in the tools' interface; "" for none
//	Field    string // its name in Go: a field, such as NewMemory.Content, or a parameter; "" for none
//	Message  string // a lower-case sentence: what was wrong, with which value, and what would be right
//	Err      error  // the cause, if any
//
// The text of the error names fields and parameters of this package: NewMemory.Content is empty. Message is the same
// sentence with the names of arguments, for programs that pass on tool calls: content is empty.
type Error = fault.Error

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
	ErrMasterKey       = &Error{Kind: KindMasterKey}
	ErrUserKeys        = &Error{Kind: KindUserKeys}
	ErrNewer           = &Error{Kind: KindNewer}
	ErrCorrupt         = &Error{Kind: KindCorrupt}
	ErrOutcomeUnknown  = &Error{Kind: KindOutcomeUnknown}
	ErrInternal        = &Error{Kind: KindInternal}
)

func newError(kind Kind, argument, format string, args ...any) *Error {
	return fault.New(kind, argument, format, args...)
}

func invalid(argument, format string, args ...any) *Error {
	return fault.Invalid(argument, format, args...)
}

// causedBy gives an error its cause.
func causedBy(cause error, e *Error) *Error {
	e.Err = cause
	return e
}

func damaged(cause error, format string, args ...any) *Error {
	return fault.Damaged(cause, format, args...)
}

func show(value string) string { return fault.Show(value) }

func oneOf[S ~string](values []S) string { return fault.OneOf(values) }

func orNil(err *Error) error { return fault.OrNil(err) }

// whole quotes a reference that callers pass back, at full length.
func whole(value string) string { return fault.Whole(value) }

// checkRange refuses a number that is not in a range.
func checkRange(argument string, n, least, most int) error {
	if n < least || n > most {
		return invalid(argument, "{} is %d; expected %d to %d", n, least, most)
	}
	return nil
}

// checkPage checks the limit (at most most) and the offset of a page.
func checkPage(limit, most, offset int) error {
	if offset < 0 {
		return invalid("offset", "{} is %d; expected 0 or more", offset)
	}
	return checkRange("limit", limit, 1, most)
}

// checkExpected checks the revision that a caller expects.
func checkExpected(revision int) error {
	if revision < 0 {
		return invalid("expected_revision", "{} is %d; a revision is 1 or more, and 0 means any", revision)
	}
	return nil
}

// storeErrors maps the storage layer's classes to kinds, in one place.
var storeErrors = []struct {
	class   error
	kind    Kind
	message string
}{
	{db.ErrClosed, KindClosed, "the store is closed"},
	{db.ErrReadOnly, KindReadOnly, "the store is opened read-only"},
	{txcontext.ErrReadOnly, KindReadOnly, "a snapshot is read-only; write with the context outside of it"},
	{txcontext.ErrEnded, KindClosed,
		"the snapshot or transaction of this context has ended; use the context outside of it"},
	{db.ErrNested, KindBusy, "this call would wait for itself: it is made within another call that is still running"},
	{db.ErrOlder, KindReadOnly, ""},
	{db.ErrOutcomeUnknown, KindOutcomeUnknown,
		"the disk or the database failed while this was being stored: it may have been stored; check before trying again"},
	{db.ErrBusy, KindBusy, ""},
	{db.ErrUnavailable, KindBusy, "the database cannot be reached; try again in a moment"},
	{db.ErrInterrupted, KindBusy, "the database interrupted this call; nothing was changed; try again"},
	{db.ErrUnsupported, KindInvalid,
		"the database of this store does not support this; use the database's own tools"},
	{db.ErrFull, KindFull, ""},
	{db.ErrForeign, KindForeign, ""},
	{db.ErrSealed, KindMasterKey, ""},
	{keyring.ErrOther, KindUserKeys, ""},
	{keyring.ErrUnknown, KindUserKeys, ""},
	{keyring.ErrDeleted, KindUserKeys, ""},
	{db.ErrNewer, KindNewer, ""},
	{db.ErrCorrupt, KindCorrupt, ""},
}

// wrap turns any error that leaves the package into an *Error; context errors stay as they are.
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

// OAuthError is the cause of an [Error] meant for an OAuth client: the error response of RFC 6749, 7591, 7009 or 8707.
// It encodes to the body of that response. Get it with errors.As.
type OAuthError struct {
	Code        string `json:"error"`             // one of the OAuth codes below
	Description string `json:"error_description"` // printable ASCII without quotes and backslashes (RFC 6749, 5.2)
}

// The codes of an [OAuthError].
const (
	OAuthInvalidRequest        = "invalid_request"         // RFC 6749
	OAuthInvalidClient         = "invalid_client"          // RFC 6749
	OAuthInvalidGrant          = "invalid_grant"           // RFC 6749: an invalid code or refresh token
	OAuthUnauthorizedClient    = "unauthorized_client"     // RFC 6749
	OAuthUnsupportedGrantType  = "unsupported_grant_type"  // RFC 6749; for code that parses requests
	OAuthInvalidScope          = "invalid_scope"           // RFC 6749
	OAuthAccessDenied          = "access_denied"           // RFC 6749
	OAuthUnavailable           = "temporarily_unavailable" // RFC 6749
	OAuthInvalidToken          = "invalid_token"           // RFC 6750: an invalid access token
	OAuthInvalidRedirectURI    = "invalid_redirect_uri"    // RFC 7591
	OAuthInvalidClientMetadata = "invalid_client_metadata" // RFC 7591
	OAuthInvalidTarget         = "invalid_target"          // RFC 8707
)

// Error returns code and description.
func (e *OAuthError) Error() string { return e.Code + ": " + e.Description }

// oauthError returns an error whose message is also the description for an OAuth client.
func oauthError(kind Kind, code, argument, format string, args ...any) *Error {
	e := newError(kind, argument, format, args...)
	e.Err = &OAuthError{Code: code, Description: fault.OAuthDescription(e.Message)}
	return e
}

// asOAuth gives an error of another method an OAuth code. Errors that the client did not cause stay unchanged.
func asOAuth(err error, code string) error {
	var known *Error
	if !errors.As(err, &known) {
		return err
	}
	coded := *known
	coded.Err = &OAuthError{Code: code, Description: fault.OAuthDescription(known.Message)}
	return &coded
}

// setGoNames sets the Go names in a method's error: the fields of its parameter struct (struct{} for none), and its
// parameters, given as pairs of an argument and a parameter. Errors of the caller's own functions stay unchanged.
func setGoNames[Parameters any](err *error, pairs ...string) {
	if known, ok := (*err).(*Error); ok { //nolint:errorlint // an error that wraps another has its own message
		*err = fault.In(known, reflect.TypeFor[Parameters](), pairs...)
	}
}

// withGoNames is setGoNames for a new error.
func withGoNames[Parameters any](e *Error, pairs ...string) error {
	return fault.In(e, reflect.TypeFor[Parameters](), pairs...)
}

// setShownNames sets the key's name in an error about a value in ShownMetadata, unless a field sets the same value.
// path is where the parameter struct holds the memory or the update.
func setShownNames[Parameters, Given any](err *error, path string, given Given, shown map[string]any) {
	if *err == nil || len(shown) == 0 {
		return
	}
	value := reflect.ValueOf(given)
	var pairs []string
	if value.FieldByName("Metadata").Len() == 0 {
		pairs = append(pairs, "metadata", path+".ShownMetadata")
	}
	for argument, field := range fault.NamesOf(value.Type(), kernel.KnownKeys) {
		if _, ok := shown[argument]; ok && value.FieldByName(field.Field).IsZero() {
			pairs = append(pairs, argument, path+".ShownMetadata."+argument)
		}
	}
	setGoNames[Parameters](err, pairs...)
}

// located adds to an error its position in a list: element i of n.
func located(err error, list string, i, n int) error { return fault.Located(err, list, i, n) }
