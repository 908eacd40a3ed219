package server

import (
	"encoding/json"
	"strings"
	"testing"
)

// The arguments are cut out of a large message byte for byte, and the rest is the message without them. If another
// member might be mistaken for them, nothing is cut.
func TestArgumentsAreCutOutOfLargeMessages(t *testing.T) {
	large := `{"content":"` + strings.Repeat(`x \" } `, largeBody) + `","a":[1,{"arguments":2}]}`
	for name, c := range map[string]struct{ before, after string }{
		"plain": {`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"memory","arguments":`, `}}`},
		"in a mess": {`{ "params" : {"_meta":{"arguments":{},"x":"arguments"}, "arguments" :  `,
			` , "name":"memory"},"id":"a","method":"tools/call" ,"jsonrpc":"2.0"}`},
		"id of name": {`{"jsonrpc":"2.0","id":"params","method":"tools/call","params":{"name":"arguments","arguments":`,
			`,"_meta":null}}`},
	} {
		m, bad := parseMessage([]byte(c.before + large + c.after))
		if bad != nil {
			t.Fatalf("got %v %v, want nil", name, bad.body.String())
		}
		if got := m.takeArguments(); string(got) != large {
			t.Errorf("%s: %d bytes are cut out, want %d: %.80s", name, len(got), len(large), got)
		}
		if want := c.before + "{}" + c.after; string(m.encoded) != want || !json.Valid(m.encoded) {
			t.Errorf("%s: the rest is %.200s, want %s", name, m.encoded, want)
		}
	}
	for name, message := range map[string]string{
		"small":        `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{}}}`,
		"another call": `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"x","arguments":` + large + `}}`,
		"twice":        `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":1,"arguments":` + large + `}}`,
		"another case": `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"ARGUMENTS":` + large + `}}`,
		"escaped": `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"\u0061rguments":1,"arguments":` + large +
			`}}`,
		"params twice": `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{},"params":{"arguments":` + large + `}}`,
		"no params":    `{"jsonrpc":"2.0","id":1,"method":"tools/call","other":` + large + `}`,
		"a list":       `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[` + large + `]}`,
	} {
		m, bad := parseMessage([]byte(message))
		if bad != nil {
			t.Fatalf("got %v %v, want nil", name, bad.body.String())
		}
		if got := m.takeArguments(); got != nil || string(m.encoded) != message {
			t.Errorf("%s: got %d bytes cut out, want none and the message as it was", name, len(got))
		}
	}
}
