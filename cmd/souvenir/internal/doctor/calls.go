package doctor

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// calls calls a tool over every interface, with the given token.
func (p *patient) calls(ctx context.Context) {
	if p.options.Token == "" {
		return
	}
	bearer := map[string]string{"Authorization": "Bearer " + p.options.Token}
	var direct struct {
		Content []struct{ Text string }
		Error   string
	}
	a, err := p.send(ctx, request{method: http.MethodPost, url: "/tools/call", kind: mediaJSON,
		body: `{"name": "list_collections", "arguments": {}}`, headers: bearer})
	switch {
	case err != nil:
		p.note("tools", Problem, "/tools/call "+first(unreachable(err)), "")
		return
	case a.StatusCode == http.StatusUnauthorized:
		p.note("tools", Problem, "the token was rejected: "+short(a.body),
			`Create another one: souvenir token add --user NAME --name doctor.`)
		return
	case a.StatusCode != http.StatusOK || !a.isJSON(&direct) || len(direct.Content) != 1:
		p.note("tools", Problem, "list_collections returned "+a.describe()+" "+short(a.body),
			"See the server's log.")
		return
	}
	p.ok("tools", "a tool can be called at /tools/call")

	// The requests of clients of two protocol revisions: one starts a session, the other does not.
	var answered struct {
		Result struct {
			ProtocolVersion string
			Content         []struct{ Text string }
			Tools           []struct{ Name string }
		}
		Error *struct{ Message string }
	}
	say := func(message, version string) (answer, error) {
		headers := map[string]string{"Authorization": bearer["Authorization"], "Accept": mediaMCP}
		if version != "" {
			headers["MCP-Protocol-Version"] = version
		}
		return p.send(ctx, request{method: http.MethodPost, url: "/mcp", kind: mediaJSON, body: message, headers: headers})
	}
	const version = "2025-06-18"
	for _, message := range []string{
		`{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "` + version +
			`", "capabilities": {}, "clientInfo": {"name": "souvenir doctor", "version": "1"}}}`,
		`{"jsonrpc": "2.0", "id": 2, "method": "tools/list"}`,
		`{"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "list_collections", "arguments": {}}}`,
	} {
		answered.Error = nil
		a, err := say(message, version)
		if err != nil {
			p.note("mcp", Problem, "/mcp "+first(unreachable(err)), "")
			return
		}
		switch {
		case a.StatusCode == http.StatusForbidden:
			p.note("mcp", Problem, "/mcp rejected the message: "+short(a.body), "If it names a host: "+hintPublicURL)
			return
		case a.StatusCode != http.StatusOK || !a.isJSON(&answered) || answered.Error != nil:
			p.note("mcp", Problem, "/mcp returned "+a.describe()+" "+short(a.body),
				"Let the proxy pass /mcp on unchanged; see also the server's log.")
			return
		}
	}
	if len(answered.Result.Tools) == 0 || len(answered.Result.Content) == 0 {
		p.note("mcp", Problem, fmt.Sprintf("/mcp offers %d tools, and calling one returned %d results",
			len(answered.Result.Tools), len(answered.Result.Content)), "See the server's log.")
		return
	}
	p.ok("mcp", "a client can start, list %d tools and call one", len(answered.Result.Tools))
	p.otherOrigins(ctx, bearer["Authorization"])
}

// otherOrigins sends a message as a page of a foreign origin would make a browser do.
func (p *patient) otherOrigins(ctx context.Context, authorization string) {
	a, err := p.send(ctx, request{method: http.MethodPost, url: "/mcp", kind: mediaJSON, body: ping,
		headers: map[string]string{"Authorization": authorization, "Accept": mediaMCP, "Origin": "https://evil.example"}})
	if err == nil && a.StatusCode != http.StatusForbidden && !strings.Contains(a.Status, "403") {
		p.note("origin", Problem, "/mcp accepts messages from pages of other origins: the Origin header does not arrive",
			"Let the proxy pass on Origin unchanged.")
		return
	}
	if err == nil {
		p.ok("origin", "/mcp rejects pages of other origins")
	}
}
