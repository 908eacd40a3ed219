package server

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/souvenir-ai/souvenir/server/internal/fault"
)

// runGuarded runs a piece of work. One that panics fails.
func runGuarded(ctx context.Context, log *slog.Logger, title string, run func() (any, error)) (result any, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			log.ErrorContext(ctx, "a piece of work panicked", "work", title, "panic", broken, "stack", string(debug.Stack()))
			result, err = nil, &fault.Error{Status: http.StatusInternalServerError, Message: fault.Internal}
		}
	}()
	result, err = run()
	if err != nil && !fault.GivenUp(err) {
		if status, _ := fault.Describe(err); status == http.StatusInternalServerError {
			log.ErrorContext(ctx, "a piece of work failed", "work", title, "error", err)
		}
	}
	return result, err
}
