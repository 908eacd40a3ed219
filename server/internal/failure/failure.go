// Package failure maps errors to HTTP statuses and messages.
package failure

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/fairqueue"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/files/objects"
	"github.com/souvenir-ai/souvenir/tools"
)

// Statuses maps the kinds of store errors to HTTP statuses. Other kinds, and errors that are not the store's, are
// 500.
var Statuses = statuses()

func statuses() map[souvenir.Kind]int {
	all := map[souvenir.Kind]int{}
	for _, kind := range fault.Callers {
		all[kind] = http.StatusBadRequest
	}
	maps.Copy(all, map[souvenir.Kind]int{
		souvenir.KindUnauthenticated: http.StatusUnauthorized,
		souvenir.KindForbidden:       http.StatusForbidden,
		souvenir.KindReadOnly:        http.StatusForbidden,
		souvenir.KindNotFound:        http.StatusNotFound,
		souvenir.KindBusy:            http.StatusServiceUnavailable,
		souvenir.KindNewer:           http.StatusServiceUnavailable,
		souvenir.KindFull:            http.StatusInsufficientStorage,
		souvenir.KindOutcomeUnknown:  http.StatusInternalServerError, // 503 would invite clients to send it again
	})
	return all
}

// Internal is the message for an error that the caller did not cause.
const Internal = "the server failed; its log has the cause under the request id in X-Request-Id"

// Error is an HTTP error that the store has no kind for, such as a wrong method.
type Error struct {
	Status  int
	Message string
}

func (f *Error) Error() string { return f.Message }

// Describe returns the status and the message of an error for the caller.
func Describe(err error) (status int, message string) {
	var wrong *Error
	var known *souvenir.Error
	var storage *objects.Unavailable
	refused, seconds, busy := Refused(err)
	switch {
	case busy:
		return http.StatusServiceUnavailable, BusyMessage(refused, seconds)
	case errors.As(err, &wrong):
		return wrong.Status, wrong.Message
	case errors.As(err, &known) && errors.As(err, &storage): // the message says so, and no more
		return http.StatusServiceUnavailable, fault.Text(known)
	case errors.As(err, &known) && Statuses[known.Kind] != 0:
		return Statuses[known.Kind], cmp.Or(fault.Temporary(known.Kind), fault.Text(known))
	}
	return http.StatusInternalServerError, Internal
}

// MissingScope is the error for a credential without a scope.
func MissingScope(scope souvenir.Scope) error {
	return fault.NeedsScope("this", string(scope), &tools.MissingScope{Scope: scope})
}

// Invalid is the error for an invalid argument.
func Invalid(argument, message string) error {
	return &souvenir.Error{Kind: souvenir.KindInvalid, Argument: argument, Message: message}
}

// Unauthenticated is the error for a request without a valid credential.
func Unauthenticated(message string) error {
	return &souvenir.Error{Kind: souvenir.KindUnauthenticated, Message: message}
}

// Quote quotes a value for a message, shortened.
func Quote(value string) string { return fault.Show(value) }

// GivenUp reports whether an error only means that the caller is gone.
func GivenUp(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Refused returns the error of a request that did not get its turn, if err is one, and the seconds after which to
// retry.
func Refused(err error) (refused *fairqueue.Refused, seconds string, ok bool) {
	if !errors.As(err, &refused) {
		return nil, "", false
	}
	return refused, strconv.Itoa(int((refused.After + time.Second - 1) / time.Second)), true
}

// BusyMessage is the message for the caller.
func BusyMessage(refused *fairqueue.Refused, seconds string) string {
	return refused.Reason + "; try again in " + seconds + " s"
}

// Unreadable is the error for a body that could not be read to its end.
func Unreadable(err error) error {
	var known *souvenir.Error
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &known), GivenUp(err):
		return err
	case errors.As(err, &large):
		return &souvenir.Error{Kind: souvenir.KindTooLarge, Argument: "body", Err: err,
			Message: fmt.Sprintf("the body is longer than %d bytes, the maximum", large.Limit)}
	}
	return &souvenir.Error{Kind: souvenir.KindInvalid, Argument: "body", Message: "the body ended early: " +
		err.Error(), Err: err}
}

// BadJSON describes the error in a body, by field name where it has one.
func BadJSON(err error) error {
	var known *souvenir.Error
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &syntax):
		return Invalid("body", fmt.Sprintf("the body is not valid JSON at byte %d: %v", syntax.Offset, syntax))
	case errors.As(err, &wrong) && wrong.Field != "":
		return Invalid(wrong.Field, fmt.Sprintf("%s is a JSON %s; expected %s", wrong.Field, wrong.Value,
			jsonType(wrong.Type.Kind().String())))
	case errors.As(err, &wrong):
		return Invalid("body", fmt.Sprintf("the body is a JSON %s; expected an object", wrong.Value))
	case errors.Is(err, io.ErrUnexpectedEOF):
		return Invalid("body", "the body is not valid JSON: unexpected end")
	}
	return Invalid("body", "the body is not valid: "+strings.TrimPrefix(err.Error(), "json: "))
}

// jsonType returns the JSON name of a Go type.
func jsonType(kind string) string {
	switch kind {
	case "slice", "array":
		return "an array"
	case "map", "struct":
		return "an object"
	case "bool":
		return "true or false"
	case "string":
		return "a string"
	}
	return "a whole number"
}
