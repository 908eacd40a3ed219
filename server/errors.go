package server

import (
	"errors"
	"log/slog"
	"net/http"

	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// busyRetry is the Retry-After, in seconds, when the store is locked.
const busyRetry = "2"

// ErrorBody is the body of every error answer.
type ErrorBody struct {
	Error   string      `json:"error"`
	Content []TextBlock `json:"content"` // one: "Error: " and the error
	IsError bool        `json:"isError"` // true
}

// TextBlock is a text block of the Model Context Protocol.
type TextBlock struct {
	Type string `json:"type"` // text
	Text string `json:"text"`
}

// fail answers with an error.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	request.Of(r.Context()).Failed = err
	if gone := r.Context().Err(); gone != nil && errors.Is(err, gone) {
		err = &failure.Error{Status: http.StatusBadRequest,
			Message: "the request was cancelled before it was answered"} // the client will not read it
	}
	status, message := failure.Describe(err)
	_, seconds, busy := failure.Refused(err)
	if busy {
		w.Header().Set("Retry-After", seconds)
	}
	switch status {
	case http.StatusServiceUnavailable:
		if w.Header().Get("Retry-After") == "" {
			w.Header().Set("Retry-After", busyRetry)
		}
		level := slog.LevelWarn
		if busy { // not a fault of the server, and floods of requests would fill the log
			level = slog.LevelDebug
		}
		s.log.Log(r.Context(), level, "could not answer a request", "route",
			request.Of(r.Context()).Route, "error", err)
	case http.StatusInternalServerError, http.StatusInsufficientStorage:
		s.log.ErrorContext(r.Context(), "a request failed", "route",
			request.Of(r.Context()).Route, "error", err)
	case http.StatusUnauthorized, http.StatusForbidden:
		if request.Of(r.Context()).Dialect == request.API { // OAuth has challenges of its own, and people sign in on a page
			s.challenge(w.Header(), r, err)
		}
	}
	if body, late := w.(*response); late && body.status != 0 {
		panic(http.ErrAbortHandler) // the answer has begun: only aborting it tells the client
	}
	switch request.Of(r.Context()).Dialect {
	case request.Pages:
		s.site.Fail(w, r, status, message, err)
	case request.OAuth:
		s.oauth.Fail(w, r, status, message, err)
	default:
		s.answer(w, r, status, ErrorBody{Error: message, Content: []TextBlock{{"text", "Error: " + message}}, IsError: true})
	}
}
