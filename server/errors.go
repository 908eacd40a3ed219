package server

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/tools"
)

// statuses is the one table of what an error of the store means in HTTP. What is not in it, and every error that is not
// the store's, is 500.
var statuses = map[souvenir.Kind]int{
	souvenir.KindInvalid:         http.StatusBadRequest,
	souvenir.KindConflict:        http.StatusBadRequest,
	souvenir.KindTooLarge:        http.StatusBadRequest,
	souvenir.KindUnauthenticated: http.StatusUnauthorized,
	souvenir.KindForbidden:       http.StatusForbidden,
	souvenir.KindReadOnly:        http.StatusForbidden,
	souvenir.KindNotFound:        http.StatusNotFound,
	souvenir.KindBusy:            http.StatusServiceUnavailable,
	souvenir.KindFull:            http.StatusInsufficientStorage,
}

// passing is what a caller is told of what hinders the server for a time, instead of the error's own words, which name files.
var passing = map[souvenir.Kind]string{
	souvenir.KindBusy: "another process has locked the store for too long; nothing was changed; try again in a moment",
	souvenir.KindFull: "the server's disk is full; nothing was stored; delete something, or ask whoever runs the server for room",
}

// busyRetry is after how many seconds a caller should try again when the store is locked.
const busyRetry = "2"

// serverError is all that a caller hears of an error that is none of the caller's making.
const serverError = "the server could not do this; its log says why, under the id that X-Request-Id of this answer has"

// failure is an error of HTTP itself: one that the store knows no kind for, such as a wrong method.
type failure struct {
	status  int
	message string
}

func (f *failure) Error() string { return f.message }

// ErrorBody is the body of every answer that is an error.
type ErrorBody struct {
	Error   string      `json:"error"`
	Content []TextBlock `json:"content"` // one: "Error: " and the error
	IsError bool        `json:"isError"` // true
}

// TextBlock is a piece of text in the form of the Model Context Protocol.
type TextBlock struct {
	Type string `json:"type"` // text
	Text string `json:"text"`
}

// told returns what a caller is told of an error: status and message.
func told(err error) (status int, message string) {
	var wrong *failure
	var known *souvenir.Error
	refused, seconds, busy := refusal(err)
	switch {
	case busy:
		return http.StatusServiceUnavailable, busyMessage(refused, seconds)
	case errors.As(err, &wrong):
		return wrong.status, wrong.message
	case errors.As(err, &known) && statuses[known.Kind] != 0:
		return statuses[known.Kind], cmp.Or(passing[known.Kind], known.Error())
	}
	return http.StatusInternalServerError, serverError
}

// fail answers with an error.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	exchangeOf(r.Context()).failed = err
	if gone := r.Context().Err(); gone != nil && errors.Is(err, gone) {
		err = &failure{http.StatusBadRequest, "the request was given up before it was answered"} // which nobody will read
	}
	status, message := told(err)
	if _, seconds, busy := refusal(err); busy {
		w.Header().Set("Retry-After", seconds)
	}
	switch status {
	case http.StatusServiceUnavailable:
		if w.Header().Get("Retry-After") == "" {
			w.Header().Set("Retry-After", busyRetry)
		}
		s.log.WarnContext(r.Context(), "a request could not be answered", "request_id", exchangeOf(r.Context()).id, "route", exchangeOf(r.Context()).route, "error", err)
	case http.StatusInternalServerError, http.StatusInsufficientStorage:
		s.log.ErrorContext(r.Context(), "a request failed", "request_id", exchangeOf(r.Context()).id, "route", exchangeOf(r.Context()).route, "error", err)
	case http.StatusUnauthorized, http.StatusForbidden:
		if exchangeOf(r.Context()).speaks == speaksInterface { // OAuth has challenges of its own, and people sign in on a page
			s.challenge(w.Header(), r, err)
		}
	}
	if body, late := w.(*response); late && body.status != 0 {
		panic(http.ErrAbortHandler) // the answer has begun: only breaking it off tells the client
	}
	switch exchangeOf(r.Context()).speaks {
	case speaksPages:
		s.failPage(w, r, status, message, err)
	case speaksOAuth:
		s.failOAuth(w, r, status, message, err)
	default:
		s.answer(w, r, status, ErrorBody{Error: message, Content: []TextBlock{{"text", "Error: " + message}}, IsError: true})
	}
}

// refuse says that a credential lacks a scope, as the tools do.
func refuse(scope souvenir.Scope) error {
	return &souvenir.Error{Kind: souvenir.KindForbidden, Err: &tools.MissingScope{Scope: scope},
		Message: "this needs the scope " + string(scope) + ", which the credential does not carry; use one that does"}
}

func invalid(argument, message string) error {
	return &souvenir.Error{Kind: souvenir.KindInvalid, Argument: argument, Message: message}
}

func unauthenticated(message string) error {
	return &souvenir.Error{Kind: souvenir.KindUnauthenticated, Message: message}
}

// quoted shows a value in a message, kept short.
func quoted(value string) string {
	const most = 60
	if utf8.RuneCountInString(value) > most {
		value = string([]rune(value)[:most]) + "…"
	}
	return strconv.Quote(value)
}

// ended reports whether an error only says that the caller is gone.
func ended(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
