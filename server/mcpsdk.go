package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/souvenir-ai/souvenir/internal/json/jsonbound"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
)

// Some errors of the MCP SDK have no type and no code of their own, and others name its Go types. The following
// rewords these for clients; it is the only place that matches texts of the SDK. It is written for
// github.com/modelcontextprotocol/go-sdk v1.8.0: a test fails with another version, so that each text is reviewed.
const sdkVersion = "v1.8.0"

const (
	// The streamable transport answers an unknown method with 400 in plain text: `...: "METHOD" unsupported`. See
	// https://github.com/modelcontextprotocol/modelcontextprotocol/pull/2575, where the authors of the SDKs discuss
	// it, and https://github.com/modelcontextprotocol/go-sdk/issues/1173, the same for revisions of the protocol.
	sdkUnknownMethod = " unsupported"

	// For missing or null params its error names no method, and has the code of an invalid request instead of that
	// of invalid params. https://github.com/modelcontextprotocol/go-sdk/issues/1071 is about further checks of
	// params that it omits.
	sdkMissingParams = `missing required "params"`

	// For malformed params it names Go types: "unmarshaling ... into a *mcp.CallToolParamsRaw". Since
	// https://github.com/modelcontextprotocol/go-sdk/pull/1087 the code is that of invalid params, except for
	// initialize, whose code is 0; the text is the same.
	sdkBadParams = "unmarshaling"
)

// explain rewords errors of the SDK for clients: its plain-text answers, and errors that name its own types.
func (m *mcpReply) explain(revision string, to *mcpMessage) *mcpReply {
	if m.status == http.StatusAccepted { // the SDK is case-sensitive, and has read a request as a response
		return mcpError(http.StatusBadRequest, to.ID, jsonrpc.CodeInvalidRequest,
			"the message is not a JSON-RPC request: names of members must be in lower case")
	}
	if m.status >= http.StatusInternalServerError {
		return mcpError(m.status, to.ID, jsonrpc.CodeInternalError, strings.TrimSpace(m.body.String()))
	}
	var refusal struct{ Error *jsonrpc.Error }
	switch {
	case m.status >= http.StatusBadRequest && strings.HasPrefix(m.header.Get("Content-Type"), "text/plain"):
		refusal.Error = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: strings.TrimSpace(m.body.String())}
		// In the revisions with sessions an error about a message is an ordinary answer: many clients treat any other
		// status as the end of the connection.
		if revision < statelessFrom {
			m.status = http.StatusOK
		}
	case !bytes.Contains(m.body.Bytes()[:min(m.body.Len(), 6*len(to.ID)+40)], []byte(`"error":{`)) ||
		json.Unmarshal(m.body.Bytes(), &refusal) != nil || refusal.Error == nil:
		m.restoreID(to.ID)
		return m
	}
	switch e := refusal.Error; {
	case strings.HasSuffix(e.Message, strconv.Quote(to.Method)+sdkUnknownMethod):
		e.Code, e.Message = jsonrpc.CodeMethodNotFound, "method "+failure.Quote(to.Method)+" is not known here"
	case strings.Contains(e.Message, sdkMissingParams):
		e.Code, e.Message = jsonrpc.CodeInvalidParams, to.Method+` needs "params"`
	case strings.Contains(e.Message, sdkBadParams):
		e.Code = jsonrpc.CodeInvalidParams
		e.Message = `the "params" of ` + to.Method + " do not have the form that the protocol requires"
	}
	return mcpErrorWith(m.status, to.ID, *refusal.Error)
}

// restoreID puts the id of a request into its answer, if the SDK has changed it: it reads numbers as float64, which
// cannot hold all whole numbers above 2^53.
func (m *mcpReply) restoreID(id json.RawMessage) {
	const exact = 1 << 53
	if n, err := strconv.ParseInt(string(id), 10, 64); err != nil || -exact <= n && n <= exact {
		return
	}
	body := m.body.Bytes()
	jsonbound.Members(body, func(member jsonbound.Member) bool {
		if string(member.Key) != `"id"` {
			return true
		}
		begin := cap(body) - cap(member.Value) // a subslice ends at the capacity of the whole
		m.body = *bytes.NewBuffer(slices.Concat(body[:begin], id, body[begin+len(member.Value):]))
		return false
	})
}
