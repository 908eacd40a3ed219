package server_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

// endpoint is a request, and its status for each caller.
type endpoint struct {
	name, method string
	path, body   string // {memory}, {private}, {file}, {hidden}, {token} and {user} stand for ids
	form         bool   // the body is a form, not JSON
	rows         map[string]int
	has          []string // in every answer with status 200
	without      []string // in none
}

// everyone returns the statuses of a request that every credential may make; some callers may differ.
func everyone(status int, others map[string]int) map[string]int {
	rows := map[string]int{servertest.Guest: 401, servertest.Revoked: 401, servertest.Disabled: 401,
		servertest.Garbage: 401}
	for _, caller := range []string{servertest.Stranger, servertest.Reader, servertest.Writer, servertest.Owner,
		servertest.Admin, servertest.Limited, servertest.ReadOnly, servertest.NoFiles, servertest.NoMemory} {
		rows[caller] = status
	}
	for caller, other := range others {
		rows[caller] = other
	}
	return rows
}

// endpoints returns all of them.
func endpoints() []endpoint {
	return slices.Concat(oauthEndpoints(), publicEndpoints(), toolEndpoints(), fileEndpoints(), projectEndpoints(),
		trashEndpoints(), invitationEndpoints(), accountEndpoints())
}

func publicEndpoints() []endpoint {
	return []endpoint{
		{name: "health", method: "GET", path: "/health", has: []string{`"status":"ok"`, `"version":"1.0.1"`},
			rows: map[string]int{servertest.Guest: 200, servertest.Stranger: 200, servertest.Revoked: 200,
				servertest.Garbage: 200}, without: []string{servertest.Secret}},
		{name: "alive", method: "GET", path: "/health/live", has: []string{`"status":"alive"`},
			rows: map[string]int{servertest.Guest: 200, servertest.Stranger: 200, servertest.Revoked: 200,
				servertest.Garbage: 200}, without: []string{servertest.Secret}},
		{name: "ready", method: "GET", path: "/health/ready", has: []string{`"status":"`, `"problems":[`},
			rows: map[string]int{servertest.Guest: 200, servertest.Stranger: 200, servertest.Revoked: 200,
				servertest.Garbage: 200}, without: []string{servertest.Secret}},
		{name: "tools", method: "GET", path: "/tools", has: []string{`"get_project_main_memory"`, `"inputSchema"`},
			rows: map[string]int{servertest.Guest: 200, servertest.Stranger: 200, servertest.Revoked: 200,
				servertest.Garbage: 200}, without: []string{servertest.Secret}},
		{name: "signing keys", method: "GET", path: "/oauth/jwks", has: []string{`"keys":[`},
			rows: map[string]int{servertest.Guest: 200, servertest.Stranger: 200, servertest.Garbage: 200,
				servertest.Revoked: 200}},
		{name: "openapi", method: "GET", path: "/openapi.json", has: []string{`"openapi": "3.1.0"`},
			rows: map[string]int{servertest.Guest: 200, servertest.Garbage: 200}, without: []string{servertest.Secret}},
		{name: "nothing here", method: "GET", path: "/api/nothing", rows: map[string]int{servertest.Guest: 404,
			servertest.Owner: 404},
			without: []string{servertest.Secret}},
	}
}

func toolEndpoints() []endpoint {
	return []endpoint{
		{name: "list collections", method: "POST", path: "/tools/call", body: `{"name": "list_collections"}`,
			has:  []string{`"content"`},
			rows: everyone(200, map[string]int{servertest.NoMemory: 403}), without: []string{servertest.Secret}},
		{name: "retrieve a shared memory", method: "POST", path: "/tools/call", has: []string{"opens at nine"},
			without: []string{servertest.Secret},
			body:    `{"name": "memory", "arguments": {"action": "retrieve", "id": "{memory}"}}`,
			rows:    everyone(200, map[string]int{servertest.Stranger: 404, servertest.Admin: 404, servertest.NoMemory: 403})},
		{name: "retrieve a private memory", method: "POST", path: "/tools/call", has: []string{servertest.Secret},
			body: `{"name": "memory", "arguments": {"action": "retrieve", "id": "{private}"}}`,
			rows: everyone(404, map[string]int{servertest.Owner: 200, servertest.ReadOnly: 200, servertest.NoFiles: 200,
				servertest.NoMemory: 403})},
		{name: "search", method: "POST", path: "/tools/call", body: servertest.SearchAll, has: []string{`\"results\"`},
			rows: everyone(200, map[string]int{servertest.NoMemory: 403})},
		{name: "store in a project", method: "POST", path: "/tools/call", body: servertest.StoreInShop,
			has:     []string{"indexed"},
			without: []string{servertest.Secret},
			rows: everyone(200, map[string]int{servertest.Reader: 403, servertest.ReadOnly: 403,
				servertest.NoMemory: 403})}, // strangers create their own project with that id
		{name: "delete a memory", method: "POST", path: "/tools/call",
			body: `{"name": "memory", "arguments": {"action": "delete", "id": "{memory}"}}`,
			has:  []string{"deleted"}, without: []string{servertest.Secret},
			rows: everyone(200, map[string]int{servertest.Stranger: 404, servertest.Admin: 404, servertest.Reader: 403,
				servertest.ReadOnly: 403, servertest.NoMemory: 403})},
		{name: "an unknown tool", method: "POST", path: "/tools/call", body: `{"name": "remember", "arguments": {}}`,
			rows: everyone(404, nil), without: []string{servertest.Secret}},

		{name: "the tools over MCP", method: "POST", path: "/mcp",
			body: `{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}`,
			has:  []string{`"get_project_main_memory"`, `"inputSchema"`}, rows: everyone(200, nil),
			without: []string{servertest.Secret}},
		{name: "retrieve a private memory over MCP", method: "POST", path: "/mcp",
			has: []string{`"content"`}, // an error, too, for the model to read
			body: `{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "memory", "arguments": {"action": ` +
				`"retrieve", "id": "{private}"}}}`,
			rows: everyone(200, nil)},
		{name: "a stream of messages", method: "GET", path: "/mcp", rows: everyone(405, nil),
			without: []string{servertest.Secret}},
		{name: "end a session", method: "DELETE", path: "/mcp", rows: everyone(405, nil),
			without: []string{servertest.Secret}},
	}
}

func fileEndpoints() []endpoint {
	return []endpoint{
		{name: "list files", method: "GET", path: "/api/files?tags=food,other",
			rows: everyone(200, map[string]int{servertest.NoFiles: 403}), has: []string{`"count":`},
			without: []string{servertest.Secret}},
		{name: "download", method: "GET", path: "/api/files/{file}", has: []string{"soup\nfish\n"},
			without: []string{servertest.Secret},
			rows:    everyone(200, map[string]int{servertest.Stranger: 404, servertest.Admin: 404, servertest.NoFiles: 403})},
		{name: "download a private file", method: "GET", path: "/api/files/{hidden}", has: []string{servertest.Secret},
			rows: everyone(404, map[string]int{servertest.Owner: 200, servertest.ReadOnly: 200, servertest.NoMemory: 200,
				servertest.NoFiles: 403})},
		{name: "describe a file", method: "PUT", path: "/api/files/{file}/metadata", body: `{"description": "of the day"}`,
			has: []string{"of the day", `"success":true`},
			rows: everyone(200, map[string]int{servertest.Stranger: 404, servertest.Admin: 404, servertest.Reader: 403,
				servertest.ReadOnly: 403, servertest.NoFiles: 403}),
			without: []string{servertest.Secret}},
		{name: "delete a file", method: "DELETE", path: "/api/files/{file}", has: []string{`"success":true`},
			without: []string{servertest.Secret},
			rows: everyone(200, map[string]int{servertest.Stranger: 404, servertest.Admin: 404, servertest.Reader: 403,
				servertest.ReadOnly: 403, servertest.NoFiles: 403})},
	}
}

func projectEndpoints() []endpoint {
	return []endpoint{
		{name: "list projects", method: "GET", path: "/api/projects", has: []string{`"projects":`},
			rows: everyone(200, map[string]int{servertest.NoMemory: 403})},
		{name: "a project", method: "GET", path: "/api/projects/shop", has: []string{`"project_name":"The shop"`},
			without: []string{servertest.Secret},
			rows:    everyone(200, map[string]int{servertest.Stranger: 404, servertest.Admin: 404, servertest.NoMemory: 403})},
		{name: "a private project", method: "GET", path: "/api/projects/plot", has: []string{servertest.Secret},
			rows: everyone(404, map[string]int{servertest.Owner: 200, servertest.ReadOnly: 200, servertest.NoFiles: 200,
				servertest.NoMemory: 403})},
		{name: "members", method: "GET", path: "/api/projects/shop/members", has: []string{"rita", "walter"},
			without: []string{servertest.Secret, "@example.com"},
			rows:    everyone(200, map[string]int{servertest.Stranger: 404, servertest.Admin: 404, servertest.NoMemory: 403})},
		{name: "add a member", method: "POST", path: "/api/projects/shop/members", body: `{"user": "sam", "role": "reader"}`,
			has: []string{`"success":true`, `"status":"invited"`}, without: []string{servertest.Secret},
			rows: everyone(403, map[string]int{servertest.Stranger: 404, servertest.Admin: 404, servertest.Owner: 200})},
		{name: "invite an unknown user", method: "POST", path: "/api/projects/shop/members",
			body: `{"user": "zacharias", "role": "reader"}`, has: []string{`"status":"invited"`},
			without: []string{servertest.Secret},
			rows:    everyone(403, map[string]int{servertest.Stranger: 404, servertest.Admin: 404, servertest.Owner: 200})},
		{name: "promote a member", method: "PATCH", path: "/api/projects/shop/members/rita", body: `{"role": "owner"}`,
			has: []string{`"role":"owner"`}, without: []string{servertest.Secret},
			rows: everyone(403, map[string]int{servertest.Stranger: 404, servertest.Admin: 404, servertest.Owner: 200})},
		{name: "remove a member", method: "DELETE", path: "/api/projects/shop/members/walter",
			has: []string{`"success":true`}, without: []string{servertest.Secret},
			rows: everyone(403, map[string]int{servertest.Stranger: 404, servertest.Admin: 404, servertest.Owner: 200,
				servertest.Writer: 200})}, // who may leave
	}
}

func trashEndpoints() []endpoint {
	return []endpoint{
		{name: "trash", method: "GET", path: "/api/trash", has: []string{`"entries":[]`, `"total":0`},
			without: []string{servertest.Secret}, rows: everyone(200, nil)},
		{name: "restore from the trash", method: "POST", path: "/api/trash/none/restore",
			rows: everyone(404, map[string]int{servertest.ReadOnly: 403}), without: []string{servertest.Secret}},
		{name: "erase from the trash", method: "DELETE", path: "/api/trash/none",
			rows:    everyone(404, map[string]int{servertest.ReadOnly: 403, servertest.NoFiles: 403, servertest.NoMemory: 403}),
			without: []string{servertest.Secret}},
		{name: "empty the trash", method: "DELETE", path: "/api/trash", has: []string{`"erased":0`},
			without: []string{servertest.Secret},
			rows:    everyone(200, map[string]int{servertest.ReadOnly: 403, servertest.NoFiles: 403, servertest.NoMemory: 403})},
	}
}

func invitationEndpoints() []endpoint {
	return []endpoint{
		{name: "invitations to projects", method: "GET", path: "/api/project-invitations",
			has: []string{`"invitations":[]`, `"count":0`}, without: []string{servertest.Secret},
			rows: everyone(200, map[string]int{servertest.Limited: 403, servertest.ReadOnly: 403, servertest.NoFiles: 403,
				servertest.NoMemory: 403})},
		{name: "accept an invitation to a project", method: "POST", path: "/api/project-invitations/none/accept",
			rows: everyone(404, map[string]int{servertest.Limited: 403, servertest.ReadOnly: 403, servertest.NoFiles: 403,
				servertest.NoMemory: 403}),
			without: []string{servertest.Secret}},
		{name: "decline an invitation to a project", method: "POST", path: "/api/project-invitations/none/decline",
			rows: everyone(404, map[string]int{servertest.Limited: 403, servertest.ReadOnly: 403, servertest.NoFiles: 403,
				servertest.NoMemory: 403}),
			without: []string{servertest.Secret}},
		{name: "block a sender", method: "POST", path: "/api/project-invitations/none/block",
			rows: everyone(404, map[string]int{servertest.Limited: 403, servertest.ReadOnly: 403, servertest.NoFiles: 403,
				servertest.NoMemory: 403}),
			without: []string{servertest.Secret}},
		{name: "blocked users", method: "GET", path: "/api/blocked-users", has: []string{`"blocked":[]`, `"count":0`},
			without: []string{servertest.Secret},
			rows: everyone(200, map[string]int{servertest.Limited: 403, servertest.ReadOnly: 403, servertest.NoFiles: 403,
				servertest.NoMemory: 403})},
		{name: "unblock a user", method: "DELETE", path: "/api/blocked-users/sam",
			rows: everyone(404, map[string]int{servertest.Limited: 403, servertest.ReadOnly: 403, servertest.NoFiles: 403,
				servertest.NoMemory: 403}),
			without: []string{servertest.Secret}},
	}
}

func accountEndpoints() []endpoint {
	return []endpoint{
		{name: "list tokens", method: "GET", path: "/api/mcp-tokens", has: []string{`"tokens":`},
			rows:    everyone(200, map[string]int{servertest.Limited: 403, servertest.NoMemory: 403}),
			without: []string{servertest.Secret, `"token":`, `"hash"`}},
		{name: "make a token", method: "POST", path: "/api/mcp-tokens", body: `{"name": "another"}`,
			has: []string{`"token":"mcp_`}, without: []string{servertest.Secret, `"account"`},
			rows: everyone(200, map[string]int{servertest.Limited: 403, servertest.ReadOnly: 403, servertest.NoFiles: 403,
				servertest.NoMemory: 403})},
		{name: "make an admin's token", method: "POST", path: "/api/mcp-tokens",
			body: `{"name": "another", "scopes": ["admin"]}`, has: []string{`"admin"`},
			rows: everyone(403, map[string]int{servertest.Admin: 200}), without: []string{servertest.Secret}},
		{name: "end a token", method: "DELETE", path: "/api/mcp-tokens/{token}", has: []string{`"success":true`},
			without: []string{servertest.Secret},
			rows: everyone(404, map[string]int{servertest.Owner: 200, servertest.NoFiles: 403, servertest.Limited: 403,
				servertest.ReadOnly: 403, servertest.NoMemory: 403})},

		{name: "who am I", method: "GET", path: "/api/owner-ids/me", has: []string{`"owner_id":`, `"shared":`},
			rows: everyone(200, map[string]int{servertest.NoMemory: 403})},

		{name: "activity", method: "GET", path: "/api/activity?limit=5&outcome=ok",
			has:  []string{`"activities":[]`, `"has_more":false`},
			rows: everyone(200, map[string]int{servertest.Limited: 403, servertest.NoMemory: 403})},
		{name: "activity of all users", method: "GET", path: "/api/activity?user=*", has: []string{`"activities":`},
			rows: everyone(403, map[string]int{servertest.Admin: 200})},
		{name: "activity of an unknown user", method: "GET", path: "/api/activity?user=noah",
			rows: everyone(403, map[string]int{servertest.Admin: 404})},
		{name: "activity at an invalid time", method: "GET", path: "/api/activity?since=yesterday",
			rows: everyone(400, map[string]int{servertest.Limited: 400, servertest.NoMemory: 403})},

		{name: "preferences", method: "GET", path: "/api/user-preferences", has: []string{"{"},
			rows: everyone(200, map[string]int{servertest.Limited: 403, servertest.NoMemory: 403})},
		{name: "replace preferences", method: "PUT", path: "/api/user-preferences", body: `{"size": 12}`,
			has: []string{`"size":12`}, without: []string{servertest.Secret},
			rows: everyone(200, map[string]int{servertest.Limited: 403, servertest.ReadOnly: 403, servertest.NoMemory: 403})},
		{name: "merge preferences", method: "PATCH", path: "/api/user-preferences", body: `{"theme": null, "size": 12}`,
			has: []string{`"size":12`}, without: []string{servertest.Secret},
			rows: everyone(200, map[string]int{servertest.Limited: 403, servertest.ReadOnly: 403, servertest.NoMemory: 403})},
	}
}

// Every endpoint, for every caller: the status, and what must not be visible. In the short form, a fifth of the
// endpoints has a different sixth of the callers each, and those who see most and least.
func TestEndpoints(t *testing.T) {
	for number, e := range endpoints() {
		if !longtest.Part(number, 1, 5) {
			continue
		}
		t.Run(e.name, func(t *testing.T) {
			var shared *servertest.World
			for i, caller := range servertest.SortedCallers(e.rows) {
				if always := caller == servertest.Owner || caller == servertest.Stranger; !always && !longtest.Part(number+i, 1,
					6) {
					continue
				}
				if shared == nil {
					shared = servertest.New(t, server.Options{})
				}
				t.Run(caller, func(t *testing.T) {
					w := shared.In(t)
					ids := strings.NewReplacer("{memory}", w.Memory, "{private}", w.Private, "{file}", w.File, "{hidden}", w.Hidden,
						"{token}", w.TokenIDs[servertest.Limited])
					a := knock(w, caller, e.method, ids.Replace(e.path), ids.Replace(e.body),
						e.form).Expect(e.rows[caller]).Without(e.without...)
					if a.Status < http.StatusMultipleChoices {
						a.Expect(a.Status, e.has...)
					} else {
						a.Without(servertest.Secret, "opens at nine", "soup")
					}
					if mayKnow := map[string]bool{servertest.Owner: true, servertest.ReadOnly: true, servertest.NoFiles: true,
						servertest.NoMemory: true}; !mayKnow[caller] {
						a.Without(servertest.Secret)
					}
					a.Without(w.Tokens[servertest.Owner])
					if engine.MatchString(a.Body) {
						t.Errorf("the answer names the engine: %.600s, want it not to", a.Body)
					}
					checkChallenge(w, a, caller, e.path)
					if e.changes(a) {
						shared = nil
					}
				})
			}
		})
	}
}

// engine matches words of a database error; a random token may contain the same letters.
var engine = regexp.MustCompile(`\b(SQL|SQLite|sqlite|sqlite3)\b`)

// changes reports whether an endpoint's answer may mean that the world has changed.
func (e endpoint) changes(a servertest.Answer) bool {
	reads := e.method == http.MethodGet || slices.ContainsFunc([]string{"list_collections", "search", "retrieve", "get_"},
		func(action string) bool { return strings.Contains(e.body, `"`+action) })
	return a.Status < http.StatusBadRequest && !reads
}

// knock sends JSON, or a form.
func knock(w *servertest.World, caller, method, path, body string, form bool) servertest.Answer {
	w.T.Helper()
	if !form {
		return w.Do(caller, method, path, body)
	}
	r := w.Request(caller, method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return w.Send(r)
}

// checkChallenge checks that an answer tells a client how to authenticate.
func checkChallenge(w *servertest.World, a servertest.Answer, caller, path string) {
	w.T.Helper()
	challenge := a.Header.Get("WWW-Authenticate")
	metadata := `resource_metadata="` + servertest.PublicAt + `/.well-known/oauth-protected-resource"`
	if path == "/mcp" {
		metadata = strings.TrimSuffix(metadata, `"`) + `/mcp"`
	}
	all := `scope="memory:read memory:write files:read files:write"`
	var want string
	switch {
	case a.Status == http.StatusUnauthorized && caller == servertest.Guest:
		want = "Bearer " + metadata + ", " + all
	case a.Status == http.StatusUnauthorized:
		want = `Bearer error="invalid_token", ` + metadata + ", " + all
	case a.Status == http.StatusForbidden && strings.Contains(a.Body, "scope"):
		if !strings.HasPrefix(challenge, `Bearer error="insufficient_scope", `+metadata+`, scope="`) {
			w.T.Errorf("WWW-Authenticate is %q, want at its start %v", challenge, `Bearer error="insufficient_scope", `+metadata+
				`, scope="`)
		}
		return
	}
	if challenge != want {
		w.T.Errorf("WWW-Authenticate is %q, want %q", challenge, want)
	}
}

func TestEveryRouteHasScenarios(t *testing.T) {
	w := servertest.New(t, server.Options{})
	tried := map[string]bool{"post /api/files/upload": true, "post /oauth/token": true,
		"post /token": true} // tested separately
	for _, e := range endpoints() {
		path, _, _ := strings.Cut(e.path, "?")
		if pattern, ok := w.Doc.OperationsAt(path); ok {
			tried[strings.ToLower(e.method)+" "+pattern] = true
		}
	}
	for pattern, operations := range w.Doc.Paths {
		for method, operation := range operations {
			if !tried[method+" "+pattern] {
				t.Errorf("%s %s has no scenario", method, pattern)
			}
			if operation.OperationID == "" {
				t.Errorf("%s %s is not described: got %v, want a operation ID that is not empty", method, pattern,
					operation.OperationID)
			}
		}
	}
}
