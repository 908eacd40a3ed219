package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/server"
)

// What clients write that is meant well is taken as it is meant; what cannot be is refused in words that help.
func TestMistakesOfClients(t *testing.T) {
	w := newWorld(t, server.Options{})
	bare := w.request(guest, "GET", "/api/owner-ids/me", nil)
	bare.Header.Set("Authorization", w.tokens[owner])
	w.send(bare).expect(http.StatusOK, w.users[owner])

	basic := w.request(guest, "GET", "/api/owner-ids/me", nil)
	basic.SetBasicAuth("olivia", "password")
	w.send(basic).expect(http.StatusUnauthorized, `scheme \"Basic\"`, "Authorization: Bearer TOKEN")
	secret := w.request(guest, "GET", "/api/owner-ids/me", nil)
	secret.Header.Set("Authorization", "s3cret")
	w.send(secret).expect(http.StatusUnauthorized, "Bearer TOKEN").without("s3cret")

	initialize := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
		`"capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	slash := w.request(owner, "POST", "/mcp/", strings.NewReader(initialize))
	slash.Header.Set("Content-Type", "application/json")
	slash.Header.Set("Accept", "application/json, text/event-stream")
	w.send(slash).expect(http.StatusOK, `"serverInfo"`)

	for _, content := range []string{`"half \ud83d"`, `"\udc00"`} {
		w.do(owner, "POST", "/tools/call", `{"name":"memory","arguments":{"action":"store","content":`+content+`}}`).
			expect(http.StatusBadRequest, "half of a character")
		w.do(owner, "PUT", "/api/user-preferences", `{"theme":`+content+`}`).expect(http.StatusBadRequest,
			"half of a character")
	}
	w.do(owner, "POST", "/tools/call",
		`{"name":"memory","arguments":{"action":"store","content":"\ud83d\ude00"}}`).expect(http.StatusOK)
	w.do(owner, "POST", "/tools/call", `{"name":"memory","arguments":{"action":"store","content":" \n "}}`).
		expect(http.StatusBadRequest, "white space only")
}

// TestErrorsOverMCPBeginAsEverywhere compares what a model reads of an error over MCP and over HTTP.
func TestErrorsOverMCPBeginAsEverywhere(t *testing.T) {
	w := newWorld(t, server.Options{})
	text, isError := callOver(t.Context(), t, w.mustConnect(owner, "2025-06-18"), "memory",
		`{"action":"retrieve","id":"nowhere"}`)
	if !isError || !strings.HasPrefix(text, "Error: ") {
		t.Errorf("an error over MCP: got %q, %v; want one that begins with \"Error: \"", text, isError)
	}
	w.do(owner, "POST", "/tools/call", `{"name":"memory","arguments":{"action":"retrieve","id":"nowhere"}}`).
		expect(http.StatusNotFound, strings.TrimPrefix(strings.ReplaceAll(text, `"`, `\"`), "Error: "))
}
