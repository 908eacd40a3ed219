package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/souvenir-ai/souvenir/internal/json/jsonbound"
)

// The MCP SDK (the version in mcpsdk.go) reads a whole body and copies it several times while decoding, which turns 8
// MiB into 50. So the arguments of a large tool call bypass it, and nothing else may be large. The SDK bounds only the
// size of a body, since https://github.com/modelcontextprotocol/go-sdk/pull/1055. If a newer version passes arguments
// to a tool without copies, delete this file.

// maxBesides is the maximum size in bytes of a message without the arguments of a tool.
const maxBesides = 1 << 20

// takeArguments removes the arguments of a large tool call from the message, and returns them; nil: they stay in
// place. They are a slice of the message's bytes, not a copy.
func (m *mcpMessage) takeArguments() json.RawMessage {
	if len(m.encoded) <= largeBody || m.Method != "tools/call" {
		return nil
	}
	arguments := onlyMember(onlyMember(m.encoded, "params"), "arguments")
	if len(arguments) == 0 {
		return nil
	}
	begin := cap(m.encoded) - cap(arguments) // a subslice ends at the capacity of the whole
	m.encoded = slices.Concat(m.encoded[:begin], []byte("{}"), m.encoded[begin+len(arguments):])
	m.Params = nil // a copy that is not needed
	return arguments
}

// onlyMember returns the value of a member of a JSON object. It is nil if the object has none, or if another member
// could be mistaken for it.
func onlyMember(object []byte, name string) (value []byte) {
	found := 0
	jsonbound.Members(object, func(m jsonbound.Member) bool {
		switch key := bytes.Trim(m.Key, `"`); {
		case string(key) == name:
			value = m.Value
			found++
		case bytes.EqualFold(key, []byte(name)) || bytes.IndexByte(key, '\\') >= 0:
			found += 2
		}
		return found < 2
	})
	if found != 1 {
		return nil
	}
	return value
}

// checkEnvelopeSize refuses a message that is too large even without the arguments of a tool.
func checkEnvelopeSize(m *mcpMessage) *mcpReply {
	if len(m.encoded) <= maxBesides {
		return nil
	}
	return mcpError(http.StatusBadRequest, m.ID, jsonrpc.CodeInvalidRequest, "the message has "+
		strconv.Itoa(len(m.encoded))+
		" bytes besides the arguments of a tool; at most "+strconv.Itoa(maxBesides)+" are allowed")
}
