package server_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"net/http"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/server"
)

// Well-meant mistakes of clients are accepted as meant. Others are refused with a helpful message.
func TestMistakesOfClients(t *testing.T) {
	w := servertest.New(t, server.Options{})
	bare := w.Request(servertest.Guest, "GET", "/api/owner-ids/me", nil)
	bare.Header.Set("Authorization", w.Tokens[servertest.Owner])
	w.Send(bare).Expect(http.StatusOK, w.Users[servertest.Owner])

	basic := w.Request(servertest.Guest, "GET", "/api/owner-ids/me", nil)
	basic.SetBasicAuth("olivia", "password")
	w.Send(basic).Expect(http.StatusUnauthorized, `scheme \"Basic\"`, "Authorization: Bearer TOKEN")
	secret := w.Request(servertest.Guest, "GET", "/api/owner-ids/me", nil)
	secret.Header.Set("Authorization", "s3cret")
	w.Send(secret).Expect(http.StatusUnauthorized, "Bearer TOKEN").Without("s3cret")

	initialize := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
		`"capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	slash := w.Request(servertest.Owner, "POST", "/mcp/", strings.NewReader(initialize))
	slash.Header.Set("Content-Type", "application/json")
	slash.Header.Set("Accept", "application/json, text/event-stream")
	w.Send(slash).Expect(http.StatusOK, `"serverInfo"`)

	for _, content := range []string{`"half \ud83d"`, `"\udc00"`} {
		w.Do(servertest.Owner, "POST", "/tools/call", `{"name":"memory","arguments":{"action":"store","content":`+content+
			`}}`).
			Expect(http.StatusBadRequest, "half of a character")
		w.Do(servertest.Owner, "PUT", "/api/user-preferences", `{"theme":`+content+`}`).Expect(http.StatusBadRequest,
			"half of a character")
	}
	w.Do(servertest.Owner, "POST", "/tools/call",
		`{"name":"memory","arguments":{"action":"store","content":"\ud83d\ude00"}}`).Expect(http.StatusOK)
	w.Do(servertest.Owner, "POST", "/tools/call", `{"name":"memory","arguments":{"action":"store","content":" \n "}}`).
		Expect(http.StatusBadRequest, "white space only")
}

// TestErrorsOverMCPBeginAsEverywhere compares errors over MCP and over HTTP, as a model reads them.
func TestErrorsOverMCPBeginAsEverywhere(t *testing.T) {
	w := servertest.New(t, server.Options{})
	text, isError := callOver(t.Context(), t, mustConnect(w, servertest.Owner, "2025-06-18"), "memory",
		`{"action":"retrieve","id":"nowhere"}`)
	if !isError || !strings.HasPrefix(text, "Error: ") {
		t.Errorf("an error over MCP: got %q, %v; want one that begins with \"Error: \"", text, isError)
	}
	w.Do(servertest.Owner, "POST", "/tools/call", `{"name":"memory","arguments":{"action":"retrieve","id":"nowhere"}}`).
		Expect(http.StatusNotFound, strings.TrimPrefix(strings.ReplaceAll(text, `"`, `\"`), "Error: "))
}
