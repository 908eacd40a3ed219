package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/souvenir-ai/souvenir/internal/jsonbound"
)

// The SDK copies a message several times while it decodes it, which makes 50 MiB of 8. So the arguments of a large call
// of a tool go past it, and nothing else may be large.

// maxBesides is the most bytes of a message besides the arguments of a tool.
const maxBesides = 1 << 20

// takeArguments cuts the arguments of a large call of a tool out of the message, and returns them; nil: they stay where
// they are. They are a part of the message's bytes, not a copy.
func (m *mcpMessage) takeArguments() json.RawMessage {
	if len(m.encoded) <= largeBody || m.Method != "tools/call" {
		return nil
	}
	arguments := onlyMember(onlyMember(m.encoded, "params"), "arguments")
	if len(arguments) == 0 {
		return nil
	}
	begin := cap(m.encoded) - cap(arguments) // a part of a slice ends where the capacity of the whole does
	m.encoded = slices.Concat(m.encoded[:begin], []byte("{}"), m.encoded[begin+len(arguments):])
	m.Params = nil // a copy of all that
	return arguments
}

// onlyMember is the value of a member of a JSON object. It is nil if the object has none, or if another member might be
// taken for it.
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

// checkBesides refuses a message that is large without the arguments of a tool.
func checkBesides(m *mcpMessage) *mcpReply {
	if len(m.encoded) <= maxBesides {
		return nil
	}
	return mcpError(http.StatusBadRequest, m.ID, jsonrpc.CodeInvalidRequest, "the message has "+
		strconv.Itoa(len(m.encoded))+
		" bytes besides the arguments of a tool; at most "+strconv.Itoa(maxBesides)+" are allowed")
}
