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

// Call is what somebody who watches the calls is told of one.
type Call struct {
	tools.Call
	Client string // name and version, as the client tells them; empty if it has not told them yet
}

type clientKey struct{}

// watch notes who a message comes from. What it returns is called with the message's error when it is answered.
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
				return // the tool has been noted
			}
		default:
			return
		}
		s.noteCall(ctx, tools.Call{Tool: method, Duration: time.Since(began), Err: plainError(err)})
	}
}

// plainError is an error of the protocol as one of the store's, for those who count them.
func plainError(err error) error {
	var told *jsonrpc.Error
	if !errors.As(err, &told) {
		return err
	}
	kind := souvenir.KindInvalid
	switch told.Code {
	case jsonrpc.CodeInternalError:
		kind = souvenir.KindInternal
	case jsonrpc.CodeInvalidRequest: // see protocolError
		kind = souvenir.KindForbidden
	}
	return &souvenir.Error{Kind: kind, Message: told.Message}
}

// noteCall tells of a call.
func (s *service) noteCall(ctx context.Context, c tools.Call) {
	if s.OnCall != nil {
		client, _ := ctx.Value(clientKey{}).(string)
		s.OnCall(ctx, Call{c, client})
	}
}

// noting tells of the calls of a tool that is not one of package tools.
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

// clientOf is what the client of a request calls itself.
func clientOf(request mcp.Request) string {
	var info *mcp.Implementation
	switch params := request.GetParams().(type) {
	case *mcp.InitializeParams:
		if params != nil {
			info = params.ClientInfo
		}
	default:
		if told, ok := request.(interface{ ClientInfo() *mcp.Implementation }); ok {
			info = told.ClientInfo()
		}
	}
	if info == nil {
		return ""
	}
	return strings.TrimSpace(info.Name + " " + info.Version)
}
