package failure

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
)

// Guard runs a function; a panic in it becomes an error.
func Guard(ctx context.Context, log *slog.Logger, title string, run func() (any, error)) (result any, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			log.ErrorContext(ctx, "a background task panicked", "work", title, "panic", broken, "stack", string(debug.Stack()))
			result, err = nil, &Error{Status: http.StatusInternalServerError, Message: Internal}
		}
	}()
	result, err = run()
	if err != nil && !GivenUp(err) {
		if status, _ := Describe(err); status == http.StatusInternalServerError {
			log.ErrorContext(ctx, "a background task failed", "work", title, "error", err)
		}
	}
	return result, err
}
