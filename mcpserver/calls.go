package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/tools"
)

// Call is one call, as reported to OnCall.
type Call struct {
	tools.Call
	Client string // name and version from the client; empty if it has not sent them yet
}

type clientKey struct{}

// watch records the sender of a message. Call the function it returns with the message's error once it is
// answered.
func (s *service) watch(ctx context.Context, method string, request mcp.Request) (context.Context, func(error)) {
	if s.OnCall == nil {
		return ctx, func(error) {}
	}
	ctx = context.WithValue(ctx, clientKey{}, clientOf(request))
	began := time.Now()
	return ctx, func(err error) {
		switch method {
		case "initialize", "resources/read", "prompts/get":
		case callTool:
			if err == nil {
				return // the tool has recorded the call
			}
		default:
			return
		}
		s.noteCall(ctx, tools.Call{Tool: method, Duration: time.Since(began), Err: plainError(err)})
	}
}

// plainError converts a protocol error to one of the store, for counting.
func plainError(err error) error {
	var rpcError *jsonrpc.Error
	if !errors.As(err, &rpcError) {
		return err
	}
	kind := souvenir.KindInvalid
	switch rpcError.Code {
	case jsonrpc.CodeInternalError:
		kind = souvenir.KindInternal
	case jsonrpc.CodeInvalidRequest: // see protocolError
		kind = souvenir.KindForbidden
	}
	return &souvenir.Error{Kind: kind, Message: rpcError.Message}
}

// noteCall reports a call.
func (s *service) noteCall(ctx context.Context, c tools.Call) {
	if s.OnCall != nil {
		client, _ := ctx.Value(clientKey{}).(string)
		s.OnCall(ctx, Call{c, client})
	}
}

// noting wraps a tool outside package tools so that its calls are reported.
func (s *service) noting(name string, call func(context.Context, json.RawMessage) (any, error)) func(context.Context,
	json.RawMessage) (any, error) {
	return func(ctx context.Context, arguments json.RawMessage) (any, error) {
		began := time.Now()
		result, err := call(ctx, arguments)
		c := tools.Call{Tool: name, Duration: time.Since(began), Err: err}
		if read, ok := result.(fetched); ok {
			c.MemoryID = read.ID
		}
		s.noteCall(ctx, c)
		return result, err
	}
}

// clientOf returns the name and version that the client gives itself.
func clientOf(request mcp.Request) string {
	var info *mcp.Implementation
	switch params := request.GetParams().(type) {
	case *mcp.InitializeParams:
		if params != nil {
			info = params.ClientInfo
		}
	default:
		if rpcError, ok := request.(interface{ ClientInfo() *mcp.Implementation }); ok {
			info = rpcError.ClientInfo()
		}
	}
	if info == nil {
		return ""
	}
	return strings.TrimSpace(info.Name + " " + info.Version)
}
