package mcpserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/tools"
)

// addTools adds the offered tools.
func (s *service) addTools(server *mcp.Server) {
	if s.offers(ToolsetMemory) {
		list := tools.List()
		if s.ReadOnly {
			list = tools.ListReadOnly()
		}
		for _, t := range list {
			s.addTool(server, t, func(ctx context.Context, arguments json.RawMessage) (any, error) {
				store, allows := s.view(ctx)
				return tools.New(store, &tools.Options{Allows: allows, ReadOnly: s.ReadOnly, OnCall: s.noteCall}).Call(ctx, t.Name,
					arguments)
			})
		}
	}
	if s.offers(ToolsetChatGPT) {
		search, fetch := chatGPTTools()
		s.addTool(server, search, s.noting(search.Name, s.searchForChatGPT))
		s.addTool(server, fetch, s.noting(fetch.Name, s.fetchForChatGPT))
	}
}

// addTool adds a tool. The tool gets its arguments unvalidated, since it accepts mistakes that a schema would refuse.
func (s *service) addTool(server *mcp.Server, t tools.Tool, call func(context.Context, json.RawMessage) (any, error)) {
	listed := &mcp.Tool{
		Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema,
		Annotations: &mcp.ToolAnnotations{
			ReadOnlyHint: t.Annotations.ReadOnly, DestructiveHint: &t.Annotations.Destructive,
			IdempotentHint: t.Annotations.Idempotent, OpenWorldHint: &t.Annotations.OpenWorld,
		},
	}
	s.tools = append(s.tools, listed)
	server.AddTool(listed, func(ctx context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		result, err := call(ctx, argumentsOf(ctx, request))
		if err != nil {
			return s.toolError(ctx, err), nil
		}
		return toolResult(result)
	})
}

type argumentsKey struct{}

// WithArguments returns a context whose tool calls have these arguments, in place of those in their messages. With it,
// a transport can keep large arguments out of the messages that the SDK decodes and copies.
func WithArguments(ctx context.Context, arguments json.RawMessage) context.Context {
	return context.WithValue(ctx, argumentsKey{}, arguments)
}

// argumentsOf returns the arguments of a call.
func argumentsOf(ctx context.Context, request *mcp.CallToolRequest) json.RawMessage {
	if arguments, ok := ctx.Value(argumentsKey{}).(json.RawMessage); ok {
		return arguments
	}
	return request.Params.Arguments
}

// toolResult returns a result as structured content and, for clients of older revisions and clients that show
// models text only, as JSON in a text.
func toolResult(result any) (*mcp.CallToolResult, error) {
	encoded, err := plainJSON(result)
	if err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(encoded)}},
		StructuredContent: json.RawMessage(encoded)}, nil
}

// toolError returns the result of a failed tool. It is not a protocol error, since a model does not see those.
func (s *service) toolError(ctx context.Context, err error) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Error: " + s.describe(ctx, callTool, err)}},
		IsError: true}
}

// checkNames refuses unknown tools and prompts, and names the existing ones.
func (s *service) checkNames(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
		var what, name string
		var names []string
		switch params := request.GetParams().(type) {
		case *mcp.CallToolParamsRaw:
			what, name = "tool", params.Name
			for _, t := range s.tools {
				names = append(names, t.Name)
			}
		case *mcp.GetPromptParams:
			what, name, names = "prompt", params.Name, s.promptNames
		default:
			return next(ctx, method, request)
		}
		if !slices.Contains(names, name) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "unknown " + what + " " + fault.Show(name) +
				"; there are " + cmp.Or(strings.Join(names, ", "), "none")}
		}
		return next(ctx, method, request)
	}
}

// plainJSON encodes a value as JSON without escaping <, > and &, since models read it, not browsers.
func plainJSON(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
