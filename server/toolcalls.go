package server

import (
	"encoding/json"
	"net/http"

	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/tools"
)

// ToolList is the answer of GET /tools.
type ToolList struct {
	Tools []tools.Tool `json:"tools"`
}

// ToolResult is the answer of POST /tools/call.
type ToolResult struct {
	Content []TextBlock `json:"content"` // one: the result as JSON
}

// listTools lists the tools.
func (s *Server) listTools(http.ResponseWriter, *http.Request, request.Caller) (any, error) {
	if s.options.ReadOnly {
		return ToolList{tools.ListReadOnly()}, nil
	}
	return ToolList{tools.List()}, nil
}

// toolCall is the body of POST /tools/call.
type toolCall struct {
	Name      *string         `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitempty"` // the tool decodes the members that it knows
}

// callTool calls a tool.
func (s *Server) callTool(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	var call toolCall
	if err := s.readJSON(w, r, &call); err != nil {
		return nil, err
	}
	if call.Name == nil {
		return nil, failure.Invalid("name", "name is missing; give the name of a tool, as listed by GET /tools")
	}
	result, err := tools.New(c.Store,
		&tools.Options{Allows: c.Allows, ReadOnly: s.options.ReadOnly, OnCall: s.noteCall}).Call(r.Context(), *call.Name,
		call.Arguments)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(result)
	if err != nil {
		return nil, err
	}
	return ToolResult{[]TextBlock{{"text", string(text)}}}, nil
}
