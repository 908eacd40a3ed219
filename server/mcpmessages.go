package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/souvenir-ai/souvenir/internal/json/jsonbound"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// mcpMessage is a JSON-RPC 2.0 message, as far as this package needs it.
type mcpMessage struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"` // nil: a notification
	Method  string          `json:"method"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
	Params  json.RawMessage `json:"params"`
	encoded []byte
}

// parseMessage reads a message.
func parseMessage(encoded []byte) (*mcpMessage, *mcpReply) {
	m := &mcpMessage{encoded: encoded}
	if err := json.Unmarshal(encoded, m); err != nil {
		return nil, mcpError(http.StatusBadRequest, nil, jsonrpc.CodeInvalidRequest,
			"the message is not a JSON-RPC request: "+
				failure.BadJSON(err).Error())
	}
	id := m.ID
	if len(id) > 0 && id[0] != '"' {
		if _, err := strconv.ParseInt(string(id), 10, 64); err != nil {
			id = nil
		}
	}
	switch {
	case m.Version != "2.0":
		return nil, mcpError(http.StatusBadRequest, id, jsonrpc.CodeInvalidRequest, `the message has no "jsonrpc": "2.0"`)
	case m.Method == "" && m.Result == nil && m.Error == nil:
		return nil, mcpError(http.StatusBadRequest, id, jsonrpc.CodeInvalidRequest, `the message has no "method"`)
	case m.ID != nil && id == nil:
		return nil, mcpError(http.StatusBadRequest, nil, jsonrpc.CodeInvalidRequest,
			`the "id" is neither a string nor a whole number of 64 bits`)
	case m.Method != "" && m.ID == nil && !m.isNotification():
		return nil, mcpError(http.StatusBadRequest, nil, jsonrpc.CodeInvalidRequest, "method "+failure.Quote(m.Method)+
			` needs an "id", since it has an answer`)
	}
	return m, nil
}

func (m *mcpMessage) isNotification() bool { return strings.HasPrefix(m.Method, "notifications/") }

// heavy reports whether the message accesses user data; the others cost next to nothing.
func (m *mcpMessage) heavy() bool {
	switch m.Method {
	case "tools/call", "resources/read", "resources/list", "prompts/get", "completion/complete":
		return true
	}
	return len(m.encoded) > largeBody
}

// checkValues refuses messages with too many values outside the arguments of a tool. The tool decodes only
// arguments that it knows; the SDK decodes everything else.
func checkValues(m *mcpMessage) *mcpReply {
	count := jsonbound.Count(m.encoded)
	if count <= maxValues {
		return nil
	}
	if m.Method == "tools/call" {
		jsonbound.Members(m.Params, func(member jsonbound.Member) bool {
			if string(member.Key) == `"arguments"` {
				count -= jsonbound.Count(member.Value)
			}
			return true
		})
	}
	if count <= maxValues {
		return nil
	}
	return mcpError(http.StatusBadRequest, m.ID, jsonrpc.CodeInvalidRequest, "the message has "+strconv.Itoa(count)+
		" values; at most "+strconv.Itoa(maxValues)+" are allowed")
}

// busyReply answers a message that did not get its turn: a tool call with a result, so that the model learns that
// it may retry.
func (s *Server) busyReply(m *mcpMessage, err error) *mcpReply {
	refused, seconds, busy := failure.Refused(err)
	if !busy { // its caller is gone
		return &mcpReply{}
	}
	message := failure.BusyMessage(refused, seconds)
	if m.Method != "tools/call" {
		reply := mcpError(http.StatusServiceUnavailable, m.ID, jsonrpc.CodeInternalError, message)
		reply.header = http.Header{"Retry-After": {seconds}}
		return reply
	}
	result := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Error: " + message}}, IsError: true}
	encoded, err := json.Marshal(mcpAnswer{Version: "2.0", ID: m.ID, Result: result})
	if err != nil {
		return mcpError(http.StatusServiceUnavailable, m.ID, jsonrpc.CodeInternalError, message)
	}
	reply := &mcpReply{header: http.Header{"Retry-After": {seconds}}, status: http.StatusOK}
	reply.body.Write(encoded)
	return reply
}

// namesOf returns the names of the message for the log: its method, and its tool or prompt. Nothing that a client
// made up gets into the log.
func (s *Server) namesOf(m *mcpMessage) (method, name string) {
	if m.Method == "" {
		return "response", ""
	}
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-/"
	if len(m.Method) > 64 || strings.Trim(m.Method, letters) != "" || strings.Contains(m.Method, request.MCPTokenPrefix) {
		return "unknown", ""
	}
	var params struct{ Name string }
	if m.Method == "tools/call" && json.Unmarshal(m.Params, &params) == nil {
		if slices.Contains(s.toolNames, params.Name) {
			name = params.Name
		}
	}
	return m.Method, name
}

// checkRevision refuses unknown revisions of the protocol, and lists the known ones.
func checkRevision(revision string, id json.RawMessage) *mcpReply {
	known := mcp.SupportedProtocolVersions()
	if revision == "" || slices.Contains(known, revision) {
		return nil
	}
	data, err := json.Marshal(mcp.UnsupportedProtocolVersionData{Supported: known, Requested: revision})
	if err != nil {
		data = nil // strings always encode to JSON
	}
	return mcpErrorWith(http.StatusBadRequest, id, jsonrpc.Error{Code: mcp.CodeUnsupportedProtocolVersion, Data: data,
		Message: "protocol revision " + failure.Quote(revision) + " is not supported; expected one of " +
			strings.Join(known, ", ")})
}

// mcpReply buffers the answer to a message until it is complete: then its status is certain. It is the
// http.ResponseWriter that the SDK writes to.
type mcpReply struct {
	header http.Header
	status int // 0: not set
	body   bytes.Buffer
}

// mcpAnswer is a response of JSON-RPC. The SDK writes those that it makes in the same form.
type mcpAnswer struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"` // nil: null
	Result  any             `json:"result,omitempty"`
	Error   *jsonrpc.Error  `json:"error,omitempty"`
}

// mcpError is an error reply. A nil id stands for a message whose id could not be read.
func mcpError(status int, id json.RawMessage, code int64, message string) *mcpReply {
	return mcpErrorWith(status, id, jsonrpc.Error{Code: code, Message: message})
}

func mcpErrorWith(status int, id json.RawMessage, rpcError jsonrpc.Error) *mcpReply {
	reply := &mcpReply{status: status}
	encoder := json.NewEncoder(&reply.body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(mcpAnswer{Version: "2.0", ID: id, Error: &rpcError}); err != nil {
		return &mcpReply{status: http.StatusInternalServerError}
	}
	return reply
}

// Header, WriteHeader and Write implement [http.ResponseWriter].
func (m *mcpReply) Header() http.Header { return m.header }

// WriteHeader keeps the first status.
func (m *mcpReply) WriteHeader(status int) {
	if m.status == 0 {
		m.status = status
	}
}

// Write appends to the body.
func (m *mcpReply) Write(p []byte) (int, error) { return m.body.Write(p) }

// Flush does nothing: the reply is sent when it is complete.
func (m *mcpReply) Flush() {}

// write sends the reply.
func (m *mcpReply) write(s *Server, w http.ResponseWriter, r *http.Request) {
	if m.status == 0 && m.body.Len() == 0 {
		s.fail(w, r, &failure.Error{Status: http.StatusBadRequest,
			Message: "the request was cancelled before it was answered"})
		return
	}
	if m.body.Len() > 0 {
		kind := m.header.Get("Content-Type")
		if kind == "" {
			kind = jsonMedia
		}
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Length", strconv.Itoa(m.body.Len()))
	}
	if after := m.header.Get("Retry-After"); after != "" {
		w.Header().Set("Retry-After", after)
	}
	if m.status == 0 {
		m.status = http.StatusOK
	}
	w.WriteHeader(m.status)
	w.Write(m.body.Bytes()) //nolint:errcheck // the client is gone, and the log has the count
}
