package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/fairqueue"
	"github.com/souvenir-ai/souvenir/internal/json/jsonbound"
	"github.com/souvenir-ai/souvenir/mcpserver"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/tools"
)

const (
	// protocolHeader is the header with the client's revision of the protocol.
	protocolHeader = "Mcp-Protocol-Version"

	// batchesUntil is the last revision with batches, and the default for a client that names none.
	batchesUntil = "2025-03-26"

	// statelessFrom is the first revision in which each message is independent, and errors have an HTTP status.
	statelessFrom = "2026-07-28"

	// maxBatch is the maximum number of messages in a batch: a short one could request gigabytes of answers.
	maxBatch = 100

	// maxBatchReply is the maximum size, in bytes, of the answers to a batch; the messages past it are refused.
	maxBatchReply = 16 << 20
)

// newMCP creates the one handler for all callers and all revisions of the Model Context Protocol. It keeps no
// session state, and session ids only distinguish clients: each message works through the view of its own
// credential, which may have ended since the last one.
func (s *Server) newMCP() http.Handler {
	s.toolNames = []string{"search", "fetch"} // of mcpserver.ToolsetChatGPT
	for _, t := range tools.List() {
		s.toolNames = append(s.toolNames, t.Name)
	}
	server := mcpserver.New(nil, &mcpserver.Options{
		View: func(ctx context.Context) (*souvenir.Store, func(souvenir.Scope) bool) {
			c := request.Of(ctx).Caller
			return c.Store, c.Allows
		},
		Toolsets: s.options.Toolsets, ReadOnly: s.options.ReadOnly, Version: s.options.Version,
		PublicURL: s.options.PublicURL,
		OnError:   s.noteMCPError, OnCall: s.noteMCPCall,
	})
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, PropagateRequestCancellation: true,
		DisableLocalhostProtection: true, // it refuses what a local proxy forwards; checkSource replaces it
		MaxRequestBodyBytes:        -1,   // the body has been read already
	})
}

// noteMCPError keeps the scope that a call lacked, for the status of its answer, and logs the cause of internal
// errors.
func (s *Server) noteMCPError(ctx context.Context, method string, err error) {
	e := request.Of(ctx)
	var missing *tools.MissingScope
	var rpcError *jsonrpc.Error
	var known *souvenir.Error
	switch {
	case errors.As(err, &missing):
		e.MissingScope = missing.Scope
	case errors.As(err, &rpcError), errors.As(err, &known) && failure.Statuses[known.Kind] != 0, failure.GivenUp(err):
	default:
		s.log.ErrorContext(ctx, "a request failed", "route", e.Route, "mcp_method", method, "error", err)
	}
}

// noMCPStream answers GET, with which clients open a stream of messages, and DELETE, with which they end a session.
// This server has neither, and clients handle this answer.
func (s *Server) noMCPStream(w http.ResponseWriter, r *http.Request, _ request.Caller) (any, error) {
	if err := s.checkSource(r); err != nil {
		return nil, err
	}
	w.Header().Set("Allow", "OPTIONS, POST")
	return nil, &failure.Error{Status: http.StatusMethodNotAllowed, Message: "method " + failure.Quote(r.Method) +
		" is not supported: send each message of the Model Context Protocol with POST"}
}

// serveMCP answers a message of the Model Context Protocol, or a batch of them.
func (s *Server) serveMCP(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	if err := s.checkSource(r); err != nil {
		return nil, err
	}
	body, bad := s.readMCP(w, r)
	if bad == nil && (body[0] == '[' || len(body) > largeBody) {
		if err := takeTurn(r); err != nil {
			return nil, err
		}
	}
	switch {
	case bad != nil:
		bad.write(s, w, r)
	case body[0] == '[':
		s.serveBatch(w, r, body)
	default:
		s.serveMessage(w, r, c, body)
	}
	return nil, nil
}

// serveMessage answers a single message.
func (s *Server) serveMessage(w http.ResponseWriter, r *http.Request, c request.Caller, body []byte) {
	m, reply := parseMessage(body)
	e := request.Of(r.Context())
	if m != nil {
		e.MCPMethod, e.MCPName = s.namesOf(m)
		reply = s.relay(r, m)
		if m.Method == "initialize" && reply.status < http.StatusBadRequest {
			w.Header().Set(sessionHeader, newSessionID(e.Calls.Client()))
		}
	}
	if e.MissingScope != "" && c.ClientID != "" {
		// An OAuth client may ask its user for the scope, and needs this status to do so. Other clients would treat the
		// status as the end of the connection; their model can read which scope is missing.
		reply.status = http.StatusForbidden
		s.challenge(w.Header(), r, failure.MissingScope(e.MissingScope))
	}
	reply.write(s, w, r)
}

// serveBatch answers a batch.
func (s *Server) serveBatch(w http.ResponseWriter, r *http.Request, body []byte) {
	request.Of(r.Context()).MCPMethod = "batch"
	replies, bad := s.relayBatch(r, body)
	switch {
	case bad != nil:
		bad.write(s, w, r)
	case len(replies) == 0:
		w.WriteHeader(http.StatusAccepted)
	default:
		s.answer(w, r, http.StatusOK, replies)
	}
}

// readMCP reads the body of a request and checks its headers.
func (s *Server) readMCP(w http.ResponseWriter, r *http.Request) ([]byte, *mcpReply) {
	if given := r.Header.Get("Content-Type"); given != "" {
		if kind, _, err := mime.ParseMediaType(given); err != nil || kind != jsonMedia {
			return nil, mcpError(http.StatusUnsupportedMediaType, nil, jsonrpc.CodeInvalidRequest, "the body's Content-Type is "+
				failure.Quote(given)+"; expected application/json")
		}
	}
	if !acceptsJSON(r.Header.Values("Accept")) {
		return nil, mcpError(http.StatusNotAcceptable, nil, jsonrpc.CodeInvalidRequest,
			"the Accept header excludes application/json, the type of answers; accept application/json and text/event-stream")
	}
	body, err := s.encodedBody(w, r)
	if err != nil {
		status, message := failure.Describe(failure.Unreadable(err))
		return nil, mcpError(status, nil, jsonrpc.CodeInvalidRequest, message)
	}
	body = bytes.TrimSpace(body)
	switch {
	case len(body) == 0:
		return nil, mcpError(http.StatusBadRequest, nil, jsonrpc.CodeParseError,
			"the body is empty; expected a JSON-RPC message")
	case !utf8.Valid(body):
		return nil, mcpError(http.StatusBadRequest, nil, jsonrpc.CodeParseError,
			"the body is not valid UTF-8, which JSON requires")
	case !json.Valid(body):
		var any json.RawMessage
		return nil, mcpError(http.StatusBadRequest, nil, jsonrpc.CodeParseError,
			failure.BadJSON(json.Unmarshal(body, &any)).Error())
	}
	return body, nil
}

// acceptsJSON reports whether a client accepts JSON. It should list JSON and text/event-stream, but answers are
// always JSON.
func acceptsJSON(accept []string) bool {
	for _, kind := range strings.Split(strings.Join(accept, ","), ",") {
		switch kind, _, _ := strings.Cut(kind, ";"); strings.ToLower(strings.TrimSpace(kind)) {
		case "", "*/*", "application/*", jsonMedia:
			return true
		}
	}
	return false
}

// relay passes a message to the SDK and returns its reply.
func (s *Server) relay(r *http.Request, m *mcpMessage) *mcpReply {
	if bad := checkRevision(r.Header.Get(protocolHeader), m.ID); bad != nil {
		return bad
	}
	if m.ID == nil || m.Method == "" {
		return &mcpReply{status: http.StatusAccepted} // notifications and responses have no reply
	}
	if bad := checkValues(m); bad != nil {
		return bad
	}
	if m.heavy() {
		if err := takeTurn(r); err != nil {
			return s.busyReply(m, err)
		}
	}
	arguments := m.takeArguments()
	if bad := checkEnvelopeSize(m); bad != nil {
		return bad
	}
	relayed := *r
	if arguments != nil {
		relayed = *r.WithContext(mcpserver.WithArguments(r.Context(), arguments))
	}
	relayed.Header = maps.Clone(r.Header)
	relayed.Header.Set("Accept", "application/json, text/event-stream")
	relayed.Header.Set("Content-Type", jsonMedia)
	relayed.Header.Del("Last-Event-ID")
	relayed.Header.Del(sessionHeader) // used for activity only
	relayed.Body, relayed.ContentLength = io.NopCloser(bytes.NewReader(m.encoded)), int64(len(m.encoded))
	reply := &mcpReply{header: http.Header{}}
	s.mcp.ServeHTTP(reply, &relayed)
	return reply.explain(r.Header.Get(protocolHeader), m)
}

// relayBatch splits a batch, and answers each message as if it came alone.
func (s *Server) relayBatch(r *http.Request, body []byte) ([]json.RawMessage, *mcpReply) {
	if revision := r.Header.Get(protocolHeader); revision > batchesUntil {
		return nil, mcpError(http.StatusBadRequest, nil, jsonrpc.CodeInvalidRequest, "revision "+failure.Quote(revision)+
			" of the protocol has no batches; send each message separately")
	}
	if n := jsonbound.Count(body); n > maxValues {
		return nil, mcpError(http.StatusBadRequest, nil, jsonrpc.CodeInvalidRequest,
			fmt.Sprintf("the batch has %d values; at most %d are allowed", n, maxValues))
	}
	var messages []json.RawMessage
	if err := json.Unmarshal(body, &messages); err != nil || len(messages) == 0 || len(messages) > maxBatch {
		return nil, mcpError(http.StatusBadRequest, nil, jsonrpc.CodeInvalidRequest,
			fmt.Sprintf("the batch has %d messages; expected 1 to %d", len(messages), maxBatch))
	}
	var replies []json.RawMessage
	size := 0
	for i, encoded := range messages {
		m, reply := parseMessage(encoded)
		switch {
		case m != nil && i > 0 && s.hasEnded(r): // the messages before it may have taken minutes
			reply = mcpError(http.StatusUnauthorized, m.ID, jsonrpc.CodeInvalidRequest,
				"the credential of this batch is no longer valid; this message was not processed")
		case m != nil && size > maxBatchReply && m.ID != nil:
			reply = mcpError(http.StatusBadRequest, m.ID, jsonrpc.CodeInvalidRequest,
				"the answers to this batch are already too long; send this message separately")
		case m != nil:
			reply = s.relay(r, m)
		}
		size += reply.body.Len()
		fairqueue.Pause(r.Context())() // a batch takes a turn for each message
		if r.Context().Err() != nil {
			break
		}
		if reply.body.Len() > 0 {
			replies = append(replies, reply.body.Bytes())
		}
	}
	return replies, nil
}
