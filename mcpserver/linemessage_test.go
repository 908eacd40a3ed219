package mcpserver

import (
	"encoding/json"
	"testing"
)

func FuzzIDsOfLongMessagesAreFound(f *testing.F) {
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, 3)
	f.Add(`{"params":{"id":2,"x":["id",{"id":3}]}, "id" : "a\"b,}" }`, 7)
	f.Add(`{"i\u0064":1}`, 1)
	f.Fuzz(func(t *testing.T, message string, piece int) {
		var f idFinder
		for rest := []byte(message); len(rest) > 0; {
			n := min(max(piece, 1), len(rest))
			f.scan(rest[:n])
			rest = rest[n:]
		}
		found := f.id()
		if f.bytes != len(message) || !json.Valid(found) {
			t.Fatalf("got %d bytes and the id %q of %q, want %v bytes and an id in JSON", f.bytes, found, message,
				len(message))
		}
		var members map[string]json.RawMessage
		if json.Unmarshal([]byte(message), &members) != nil || string(found) == "null" {
			return
		}
		if id := members["id"]; string(found) != string(id) {
			t.Fatalf("the id of %q: got %s, want %s", message, found, id)
		}
	})
}

func TestIDsOfLongMessagesAreFound(t *testing.T) {
	for message, want := range map[string]string{
		`{"id":1}`: "1", `{"a":{"id":1}}`: "null", `{"a":[{"id":1}],"id":"x"}`: `"x"`, `{"id":{"a":1}}`: "null",
		`{"id":null}`:                    "null",
		`{"a":"\"id\":3","id":-4,"b":2}`: "-4", `[{"id":1}]`: "null", `{"id":1`: "null", `"id":1`: "null", ``: "null",
		`}}}{"id":1}`: "null",
	} {
		var f idFinder
		f.scan([]byte(message))
		if got := string(f.id()); got != want {
			t.Errorf("the id of %q is found to be %s; want %s", message, got, want)
		}
	}
}
