package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// This file and lineconn.go stand in for the transport of the MCP SDK (mcp.IOTransport, as of
// github.com/modelcontextprotocol/go-sdk v1.8.0), because there
//   - a line that is not JSON ends the session: https://github.com/modelcontextprotocol/go-sdk/issues/1209
//   - a batch with a notification is not answered, or ends the session:
//     https://github.com/modelcontextprotocol/go-sdk/issues/1256
//   - some errors have no code: see withCode
//
// Neither matches texts of the SDK.

// refusal is the answer to an invalid message (JSON-RPC 2.0, section 5.1).
type refusal struct {
	id      json.RawMessage // null if unknown
	code    int64
	message string
}

func refuse(code int64, format string, args ...any) *refusal {
	return &refusal{json.RawMessage("null"), code, fmt.Sprintf(format, args...)}
}

func (r *refusal) encode() json.RawMessage {
	type problem struct {
		Code    int64  `json:"code"`
		Message string `json:"message"`
	}
	encoded, _ := json.Marshal(struct { // always encodes
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   problem         `json:"error"`
	}{"2.0", r.id, problem{r.code, r.message}})
	return encoded
}

// understand parses a line into the queue, and answers invalid messages. Its error is from writing.
func (c *lineConn) understand(line inputLine) error {
	if line.tooLong != nil {
		r := refuse(jsonrpc.CodeInvalidRequest,
			"the message has %d bytes; at most %d are allowed; send less at once, or a file over HTTP",
			line.tooLong.bytes, c.options.MaxMessage)
		r.id = line.tooLong.id()
		c.options.Logger.Warn("skipped a message that is too long", "bytes", line.tooLong.bytes, "most", c.options.MaxMessage)
		return c.writeLine(r.encode())
	}
	text := bytes.TrimSpace(line.text)
	switch {
	case len(text) == 0:
		return nil
	case text[0] == '[':
		return c.understandBatch(text)
	}
	message, refused := parseMessage(text)
	switch {
	case refused != nil:
		c.options.Logger.Debug("skipped a line that is not a message", "why", refused.message)
		return c.writeLine(refused.encode())
	case message != nil:
		c.queue = append(c.queue, queued{message: message})
	}
	return nil
}

// understandBatch parses the messages of a batch, which only protocol revisions before 2025-06-18 have.
func (c *lineConn) understandBatch(text []byte) error {
	c.mu.Lock()
	revision := c.revision
	c.mu.Unlock()
	var members []json.RawMessage
	var refused *refusal
	switch err := json.Unmarshal(text, &members); {
	case err != nil:
		refused = refuse(jsonrpc.CodeParseError, "the line is not JSON: %v", err)
	case revision == "" || revision >= "2025-06-18":
		refused = refuse(jsonrpc.CodeInvalidRequest,
			"batches are not supported in this protocol revision; send one message per line")
	case len(members) == 0:
		refused = refuse(jsonrpc.CodeInvalidRequest, "the batch is empty")
	case len(members) > c.options.MaxRequests: // a larger batch could not be answered at once
		refused = refuse(jsonrpc.CodeInvalidRequest, "the batch has %d messages; at most %d are allowed", len(members),
			c.options.MaxRequests)
	}
	if refused != nil {
		return c.writeLine(refused.encode())
	}
	together := &batch{}
	var wrong []*refusal
	for _, member := range members {
		message, refused := parseMessage(member)
		if refused != nil {
			wrong = append(wrong, refused)
			together.missing++
		}
		if message == nil {
			continue
		}
		if request, ok := message.(*jsonrpc.Request); ok && request.IsCall() {
			together.missing++
		}
		c.queue = append(c.queue, queued{message, together})
	}
	for _, refused := range wrong {
		if err := c.answer(together, refused.encode()); err != nil {
			return err
		}
	}
	return nil
}

// parseMessage returns a message, or the refusal of an invalid one. Both results are nil for an invalid response: a
// response is never answered.
func parseMessage(text []byte) (jsonrpc.Message, *refusal) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) {
			return nil, refuse(jsonrpc.CodeInvalidRequest, "the message is a JSON %s; it must be an object", kind.Value)
		}
		return nil, refuse(jsonrpc.CodeParseError, "the line is not JSON: %v", err)
	}
	_, isResult := members["result"]
	_, isError := members["error"]
	_, isRequest := members["method"]
	id, given := members["id"]
	if given && !validID(id) {
		if !isRequest && (isResult || isError) {
			return nil, nil
		}
		return nil, refuse(jsonrpc.CodeInvalidRequest, "id is %s; it must be a string or a whole number", beginning(id))
	}
	message, err := jsonrpc.DecodeMessage(text)
	switch {
	case err == nil && (isRequest || isResult || isError):
		return message, nil
	case !isRequest && (isResult || isError):
		return nil, nil
	case err == nil:
		err = errors.New("method is missing")
	}
	refused := refuse(jsonrpc.CodeInvalidRequest, "this is not a JSON-RPC 2.0 message: %v", err)
	if given {
		refused.id = id
	}
	return nil, refused
}

// largestID is the largest number that every JSON reader holds exactly.
const largestID = 1<<53 - 1

// validID reports whether an id is valid for a request: null and fractions are not in the protocol.
func validID(id json.RawMessage) bool {
	var text string
	if json.Unmarshal(id, &text) == nil {
		return id[0] == '"'
	}
	var number float64
	return json.Unmarshal(id, &number) == nil && id[0] != 'n' && number == math.Trunc(number) &&
		math.Abs(number) <= largestID
}

// rawID returns an id as JSON.
func rawID(id jsonrpc.ID) json.RawMessage {
	encoded, err := json.Marshal(id.Raw())
	if err != nil {
		return json.RawMessage("null")
	}
	return encoded
}

// beginning cuts the input for an error.
func beginning(text []byte) []byte {
	const most = 40
	if len(text) > most {
		return append(bytes.ToValidUTF8(text[:most:most], nil), "..."...)
	}
	return text
}

// withCode adds a code to an error if the SDK gives none. With untimely, the request comes at the wrong time: before
// initialize, or a second initialize.
func withCode(response *jsonrpc.Response, untimely bool) *jsonrpc.Response {
	var known *jsonrpc.Error
	if errors.As(response.Error, &known) && known.Code != 0 {
		return response
	}
	code := int64(jsonrpc.CodeInternalError)
	if untimely {
		code = jsonrpc.CodeInvalidRequest
	}
	return &jsonrpc.Response{ID: response.ID, Error: &jsonrpc.Error{Code: code, Message: response.Error.Error()}}
}

// agreedRevision returns the protocol revision in the result of initialize.
func agreedRevision(result json.RawMessage) string {
	var initialized struct {
		Revision string `json:"protocolVersion"`
	}
	_ = json.Unmarshal(result, &initialized) // it comes from the SDK
	return initialized.Revision
}

// idFinder finds the id of a request in a message that is too long to keep, so that the client still gets an answer.
// Some clients write the id first, others last.
type idFinder struct {
	bytes int // of the message, with the line's end

	depth    int
	inString bool
	escaped  bool
	word     []byte // the current key or value of the outermost object
	key      string // of the current value
	found    []byte
}

// longestID is the maximum length of an id in bytes.
const longestID = 256

// scan reads the next piece of the message.
func (f *idFinder) scan(piece []byte) {
	f.bytes += len(piece)
	for _, b := range piece {
		if f.inString {
			f.keep(b)
			switch {
			case f.escaped:
				f.escaped = false
			case b == '\\':
				f.escaped = true
			case b == '"':
				f.inString = false
			}
			continue
		}
		switch b {
		case '"':
			f.inString = true
			f.keep(b)
		case '{', '[':
			f.depth++
			f.word = f.word[:0]
		case '}', ']':
			f.endValue()
			f.depth--
		case ',':
			f.endValue()
		case ':':
			if f.depth == 1 {
				f.key, f.word = string(f.word), f.word[:0]
			}
		case ' ', '\t', '\r', '\n':
		default:
			f.keep(b)
		}
	}
}

func (f *idFinder) keep(b byte) {
	if f.depth == 1 && len(f.word) <= longestID {
		f.word = append(f.word, b)
	}
}

func (f *idFinder) endValue() {
	if f.depth != 1 {
		return
	}
	if f.key == `"id"` {
		f.found = bytes.Clone(f.word)
	}
	f.key, f.word = "", f.word[:0]
}

// id returns the id found if it is valid for a request; null otherwise.
func (f *idFinder) id() json.RawMessage {
	if len(f.found) > 0 && len(f.found) <= longestID && validID(f.found) {
		return f.found
	}
	return json.RawMessage("null")
}
