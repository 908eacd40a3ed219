package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/tools"
)

// callTool is the method that calls a tool.
const callTool = "tools/call"

// serverError is the only message that a client gets about an error that it did not cause.
const serverError = "the server failed; its log has the cause"

// isCallers reports whether an error is about the caller's input, and so safe to show to the caller.
func isCallers(err error) bool {
	var known *souvenir.Error
	return errors.As(err, &known) && slices.Contains(fault.Callers, known.Kind)
}

// describe returns the error for the client. It reports every error to OnError, and logs the server's own.
func (s *service) describe(ctx context.Context, method string, err error) string {
	if s.OnError != nil {
		s.OnError(ctx, method, err)
	}
	var known *souvenir.Error
	if isCallers(err) && errors.As(err, &known) {
		return fault.Text(known)
	}
	s.log.ErrorContext(ctx, "a request failed", "method", method, "error", err)
	if errors.As(err, &known) {
		return cmp.Or(fault.Temporary(known.Kind), serverError)
	}
	return serverError
}

// protocolError converts an error to one of the protocol.
func (s *service) protocolError(ctx context.Context, method string, err error) error {
	var known *jsonrpc.Error
	if errors.As(err, &known) {
		if s.OnError != nil {
			s.OnError(ctx, method, err)
		}
		return err
	}
	code := int64(jsonrpc.CodeInternalError)
	switch {
	case errors.Is(err, souvenir.ErrForbidden), errors.Is(err, souvenir.ErrReadOnly),
		errors.Is(err, souvenir.ErrUnauthenticated):
		code = jsonrpc.CodeInvalidRequest
	case isCallers(err):
		code = jsonrpc.CodeInvalidParams
	}
	return &jsonrpc.Error{Code: code, Message: s.describe(ctx, method, err)}
}

// badCursor returns the error for an invalid cursor.
func badCursor() error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
		Message: "the cursor does not belong to this list; omit it to start at the first page"}
}

// panicked returns the error for a panic.
func panicked(broken any) error {
	return fmt.Errorf("panic: %v\n%s", broken, debug.Stack())
}

// missingScope returns the error for a request that needs a scope missing from the credential.
func missingScope(what string, scope souvenir.Scope) error {
	return fault.NeedsScope(what, string(scope), &tools.MissingScope{Scope: scope})
}
