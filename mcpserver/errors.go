package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/shorten"
	"github.com/souvenir-ai/souvenir/tools"
)

// callTool is the method that calls a tool.
const callTool = "tools/call"

// serverError is all that a client learns about an error that it did not cause.
const serverError = "the server failed; its log has the cause"

// passing maps temporary errors of the server to messages for the client.
var passing = map[souvenir.Kind]string{
	souvenir.KindBusy: "the store is locked, or its database cannot be reached; nothing was changed; " +
		"try again in a moment",
	souvenir.KindFull:           "the disk of the store is full; nothing was stored; tell the user",
	souvenir.KindOutcomeUnknown: "the disk or the database failed: this may have been stored; look before trying again",
}

// isCallers reports whether an error is about the caller's input, and so safe to show to the caller.
func isCallers(err error) bool {
	var known *souvenir.Error
	if !errors.As(err, &known) {
		return false
	}
	switch known.Kind {
	case souvenir.KindInvalid, souvenir.KindNotFound, souvenir.KindUnauthenticated, souvenir.KindForbidden,
		souvenir.KindConflict, souvenir.KindTooLarge, souvenir.KindReadOnly:
		return true
	}
	return false
}

// describe returns the error for the client. It reports every error to OnError, and logs those of the server.
func (s *service) describe(ctx context.Context, method string, err error) string {
	if s.OnError != nil {
		s.OnError(ctx, method, err)
	}
	var known *souvenir.Error
	if isCallers(err) && errors.As(err, &known) {
		return fault.Text(known)
	}
	s.log.ErrorContext(ctx, "a request failed", "method", method, "error", err)
	if errors.As(err, &known) && passing[known.Kind] != "" {
		return passing[known.Kind]
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
		Message: "the cursor is not one of this list; leave it out to begin at the first page"}
}

// panicked returns the error for a panic.
func panicked(broken any) error {
	return fmt.Errorf("panic: %v\n%s", broken, debug.Stack())
}

// quoted quotes a value for a message, kept short.
func quoted(value string) string {
	const most = 60
	return strconv.Quote(shorten.After(value, most))
}

func invalid(argument, message string) error {
	return &souvenir.Error{Kind: souvenir.KindInvalid, Argument: argument, Message: message}
}

// missingScope returns the error for a request that needs a scope missing from the credential.
func missingScope(what string, scope souvenir.Scope) error {
	return &souvenir.Error{
		Kind: souvenir.KindForbidden, Err: &tools.MissingScope{Scope: scope},
		Message: what + " needs the scope " + string(scope) + ", which this credential does not carry; use one that does",
	}
}
