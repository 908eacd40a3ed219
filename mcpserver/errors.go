package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/tools"
)

// callTool is the method that calls a tool.
const callTool = "tools/call"

// serverError is all that a client hears of an error that is none of its making.
const serverError = "the server could not do this; its log says why"

// passing is what a client is told of what hinders the server for a time.
var passing = map[souvenir.Kind]string{
	souvenir.KindBusy: "another process has locked the store for too long; nothing was changed; try again in a moment",
	souvenir.KindFull: "the disk that the memory lies on is full; nothing was stored; tell the user",
}

// isCallers reports whether an error is about what the caller sent, and so for the caller to know.
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

// told returns what a client is told of an error, and tells those who listen here.
func (s *service) told(ctx context.Context, method string, err error) string {
	if s.OnError != nil {
		s.OnError(ctx, method, err)
	}
	var known *souvenir.Error
	if isCallers(err) && errors.As(err, &known) {
		return known.Error()
	}
	s.log.ErrorContext(ctx, "a request failed", "method", method, "error", err)
	if errors.As(err, &known) && passing[known.Kind] != "" {
		return passing[known.Kind]
	}
	return serverError
}

// protocolError turns an error into one of the protocol.
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
	return &jsonrpc.Error{Code: code, Message: s.told(ctx, method, err)}
}

// badCursor is the error for a cursor that is not one of a list.
func badCursor() error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
		Message: "the cursor is not one of this list; leave it out to begin at the first page"}
}

// panicked is the error for a panic.
func panicked(broken any) error {
	return fmt.Errorf("panic: %v\n%s", broken, debug.Stack())
}

// quoted shows a value in a message, kept short.
func quoted(value string) string {
	const most = 60
	if utf8.RuneCountInString(value) > most {
		value = string([]rune(value)[:most]) + "…"
	}
	return strconv.Quote(value)
}

func invalid(argument, message string) error {
	return &souvenir.Error{Kind: souvenir.KindInvalid, Argument: argument, Message: message}
}

// missingScope is the error for what needs a scope that the credential does not carry.
func missingScope(what string, scope souvenir.Scope) error {
	return &souvenir.Error{
		Kind: souvenir.KindForbidden, Err: &tools.MissingScope{Scope: scope},
		Message: what + " needs the scope " + string(scope) + ", which this credential does not carry; use one that does",
	}
}
