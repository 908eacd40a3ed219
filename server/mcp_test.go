package server_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/mcpserver"
	"github.com/souvenir-ai/souvenir/server"
)

// revisions are the protocol's revisions, oldest first.
var revisions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}

// withToken is an HTTP client that sends a token.
func withToken(token string) *http.Client {
	return &http.Client{Transport: tokenSender{token}}
}

type tokenSender struct{ token string }

func (s tokenSender) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+s.token)
	return http.DefaultTransport.RoundTrip(r)
}

// connect connects the SDK's client as a caller, with a revision of the protocol.
func connect(w *servertest.World, caller, revision string) (*mcp.ClientSession, error) {
	w.T.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(w.T.Context(),
		&mcp.StreamableClientTransport{Endpoint: w.HTTP.URL + "/mcp", HTTPClient: withToken(w.Tokens[caller])},
		&mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err == nil {
		w.T.Cleanup(func() { session.Close() })
	}
	return session, err
}

func mustConnect(w *servertest.World, caller, revision string) *mcp.ClientSession {
	w.T.Helper()
	session, err := connect(w, caller, revision)
	if err != nil {
		w.T.Fatal(err)
	}
	return session
}

// callOver calls a tool and returns the text of its result.
func callOver(ctx context.Context, t *testing.T, session *mcp.ClientSession, tool, arguments string) (text string,
	isError bool) {
	t.Helper()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, c := range result.Content {
		b.WriteString(c.(*mcp.TextContent).Text)
	}
	return b.String(), result.IsError
}

func TestMCPListsAndCallsToolsInEveryRevision(t *testing.T) {
	w := servertest.New(t, server.Options{})
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			session := mustConnect(w, servertest.Reader, revision)
			list, err := session.ListTools(t.Context(), nil)
			if err != nil || len(list.Tools) != 8 || list.Tools[0].Name != "memory" {
				t.Fatalf(`got %v %v, want no error, 8 tools and name "memory"`, list, err)
			}
			text, isError := callOver(t.Context(), t, session, "memory", `{"action": "retrieve", "id": "`+w.Memory+`"}`)
			if isError || !strings.Contains(text, "opens at nine") {
				t.Errorf(`got error %v: %s, want no error and "opens at nine"`, isError, text)
			}
			text, isError = callOver(t.Context(), t, session, "memory", `{"action": "retrieve", "id": "`+w.Private+`"}`)
			if !isError || strings.Contains(text, servertest.Secret) {
				t.Errorf("got error %v: %s, want an error without %q", isError, text, servertest.Secret)
			}
		})
	}
}

// Every caller lists and calls everything with the SDK's client, before and after the stateless revision of the
// protocol.
func TestMCPForEveryCaller(t *testing.T) {
	mayKnow := map[string]bool{servertest.Owner: true, servertest.ReadOnly: true, servertest.NoFiles: true,
		servertest.NoMemory: true} // of Olivia's own data
	callers := everyone(http.StatusOK, nil)
	for number, revision := range []string{handshake, stateless} {
		for i, caller := range servertest.SortedCallers(callers) {
			if !longtest.Part(number+i, 1, 12) {
				continue
			}
			status := callers[caller]
			t.Run(caller+" "+revision, func(t *testing.T) {
				w := servertest.New(t, server.Options{Toolsets: mcpserver.Toolsets()})
				session, err := connect(w, caller, revision)
				if status != http.StatusOK {
					if err == nil || !strings.Contains(err.Error(), "Unauthorized") {
						t.Errorf(`the connection ends with %v, want an error and "Unauthorized" in the error`, err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				page := callEverything(w, t, session)
				if strings.Contains(page, servertest.Secret) && !mayKnow[caller] {
					t.Errorf("%s sees private data, want none", caller)
				}
				reads := caller != servertest.Stranger && caller != servertest.Admin
				if got := strings.Contains(page, "opens at nine"); got != (reads && caller != servertest.NoMemory) {
					t.Errorf("%s sees the shared data: %v, want %v", caller, got, (reads && caller != servertest.NoMemory))
				}
				if got := strings.Contains(page, `soup\nfish`); got != (reads && caller != servertest.NoFiles) {
					t.Errorf("%s is shown the shared file: %v, want %v", caller, got, (reads && caller != servertest.NoFiles))
				}
				if strings.Contains(w.Log.String(), servertest.Secret) || strings.Contains(w.Log.String(), "level=ERROR") {
					t.Errorf("the log has a secret or a failure, want no %q and no \"level=ERROR\" in the log:\n%s",
						servertest.Secret, w.Log.String())
				}
			})
		}
	}
}

// callEverything lists and calls everything, and returns the answers.
func callEverything(w *servertest.World, t *testing.T, session *mcp.ClientSession) string {
	t.Helper()
	var page strings.Builder
	note := func(value any, err error) {
		encoded, failed := json.Marshal(value)
		if failed != nil {
			t.Fatalf("got %v, want nil", failed)
		}
		page.Write(encoded)
		if err != nil {
			page.WriteString(err.Error())
		}
	}
	list, err := session.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 10 {
		t.Fatalf("%d tools, %v; want 10", len(list.Tools), err)
	}
	calls := map[string]string{
		"memory": `{"action": "search", "query": "when does the shop open, and what is the word", ` +
			`"include_files": true}`,
		"get_project_main_memory": `{"project_id": "shop"}`, "get_module_state": `{"module_name": "word"}`,
		"rules":            `{"action": "store", "project_id": "shop", "rule_type": "do", "content": "x"}`,
		"todo":             `{"action": "complete", "project_id": "shop", "task_id": "T1"}`,
		"upload_document":  `{"filename": "a.txt", "content": "x"}`,
		"list_collections": `{}`, "create_collection": `{"collection_name": "new"}`,
		"search": `{"query": "what is the word of the shop"}`, "fetch": `{"id": "` + w.Private + `"}`,
	}
	for _, tool := range list.Tools {
		text, _ := callOver(t.Context(), t, session, tool.Name, calls[tool.Name])
		page.WriteString(text)
	}
	uris := []string{"souvenir://memories/" + w.Private, "souvenir://files/" + w.Hidden, "souvenir://projects/plot/main",
		"souvenir://memories/" + w.Memory}
	for r, err := range session.Resources(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		note(r, nil)
		uris = append(uris, r.URI)
	}
	for _, uri := range uris {
		note(session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}))
	}
	prompts, err := session.ListPrompts(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range prompts.Prompts {
		note(session.GetPrompt(t.Context(),
			&mcp.GetPromptParams{Name: p.Name, Arguments: map[string]string{"project": "shop"}}))
		note(session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: p.Name}))
		note(session.Complete(t.Context(),
			&mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: p.Name},
				Argument: mcp.CompleteParamsArgument{Name: "project"}}))
	}
	return page.String()
}

func TestMCPACredentialThatEndsBetweenTwoCalls(t *testing.T) {
	w := servertest.New(t, server.Options{})
	for _, revision := range []string{handshake, stateless} {
		added, err := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]}).Accounts().AddToken(t.Context(),
			souvenir.NewToken{Name: "short"})
		if err != nil {
			t.Fatal(err)
		}
		w.Tokens["short"] = added.Value
		session := mustConnect(w, "short", revision)
		if text, isError := callOver(t.Context(), t, session, "list_collections", `{}`); isError {
			t.Errorf("got the error %v, want none", text)
		}
		if err := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]}).Accounts().RevokeToken(t.Context(),
			added.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "list_collections"}); err == nil ||
			!strings.Contains(err.Error(), "Unauthorized") {
			t.Errorf(`%s: the call ends with %v, want an error and "Unauthorized" in the error`, revision, err)
		}
		a := postMessage(w, "short", handshake, `{"jsonrpc":"2.0","id":1,"method":"ping"}`).Expect(http.StatusUnauthorized)
		checkChallenge(w, a, "short", "/mcp")
	}
}

// An OAuth client sees the status and can ask for a scope. Others go on, and their model reads which scope is missing.
func TestMCPMissingScopes(t *testing.T) {
	w := servertest.New(t, server.Options{})
	token, _ := accessToken(w, servertest.PublicAt+"/mcp", souvenir.ScopeFilesRead)
	for message, scope := range map[string]string{
		`"method":"tools/call","params":{"name":"memory","arguments":{"action":"search"}}`:              "memory:read",
		`"method":"tools/call","params":{"name":"memory","arguments":{"action":"store","content":"x"}}`: "memory:write",
		`"method":"tools/call","params":{"name":"upload_document","arguments":{"filename":"a.txt",` +
			`"content":"x"}}`: "files:write",
		`"method":"resources/read","params":{"uri":"souvenir://projects"}`: "memory:read",
		`"method":"prompts/get","params":{"name":"review_gaps"}`:           "memory:read",
	} {
		body := `{"jsonrpc":"2.0","id":1,` + message + `}`
		a := postMessage(w, servertest.Guest, handshake, body, "Authorization", "Bearer "+token).Expect(http.StatusForbidden,
			scope, `"id":1`)
		want := `Bearer error="insufficient_scope", resource_metadata="` + servertest.PublicAt +
			`/.well-known/oauth-protected-resource/mcp", scope="` + scope + ` files:read"`
		if scope == "files:write" {
			want = strings.Replace(want, "files:write files:read", "files:read files:write", 1)
		}
		if got := a.Header.Get("WWW-Authenticate"); got != want {
			t.Errorf("%s: WWW-Authenticate is %q, want %q", message, got, want)
		}
		if scope != "files:write" {
			a := postMessage(w, servertest.NoMemory, handshake, body).Expect(http.StatusOK, scope)
			if a.Header.Get("WWW-Authenticate") != "" {
				t.Errorf("%s: an MCP token is challenged, got %v, want no WWW-Authenticate", message,
					a.Header.Get("WWW-Authenticate"))
			}
		}
	}
	postMessage(w, servertest.Guest, handshake, `{"jsonrpc":"2.0","id":1,"method":"resources/list"}`, "Authorization",
		"Bearer "+
			token).Expect(http.StatusOK, "menu.txt").Without("souvenir://projects")
}

func TestMCPChecksHostAndOrigin(t *testing.T) {
	w := servertest.New(t, server.Options{})
	open := servertest.New(t, server.Options{PublicURL: "not a URL"})
	for _, c := range []struct {
		w      *servertest.World
		name   string
		value  string
		status int
	}{
		{w, "Origin", "https://evil.example", 403}, {w, "Origin", "null", 403},
		{w, "Origin", "http://memory.example.evil.example", 403}, {w, "Origin", "http://localhost.evil.example", 403},
		{w, "Origin", "https://memory.example", 403}, // another scheme is another origin
		{w, "Origin", servertest.PublicAt, 200}, {w, "Origin", "http://localhost:6274", 200}, {w, "Origin", "http://[::1]:80",
			200},
		{w, "Origin", "vscode-file://vscode-app", 200}, {w, "Origin", w.HTTP.URL, 200},
		{w, "Host", "memory.example", 200}, {w, "Host", "memory.example:8443", 200}, {w, "Host", "MEMORY.example", 200},
		{w, "Host", "localhost:1", 200}, {w, "Host", "[::1]", 200}, {w, "Host", "127.0.0.1", 200},
		{w, "Host", "evil.example", 403}, {w, "Host", "127.0.0.1.evil.example", 403},
		{w, "Host", "memory.example.evil.example", 403},
		{open, "Host", "memory.example", 403}, {open, "Host", "localhost:8377", 200}, {open, "Host", "127.8.8.8", 200},
	} {
		for _, method := range []string{"POST", "GET"} {
			r := c.w.Request(servertest.Owner, method, "/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
			r.Header.Set("Content-Type", "application/json")
			if c.name == "Host" {
				r.Host = c.value
			} else {
				r.Header.Set(c.name, c.value)
			}
			want := c.status
			if method == "GET" && (want == http.StatusOK || c.name == "Origin") { // only POST checks it
				want = http.StatusMethodNotAllowed
			}
			if a := c.w.Send(r); a.Status != want {
				t.Errorf("%s with %s %q is %d, want %d: %s", method, c.name, c.value, a.Status, want, a.Body)
			}
		}
	}
}

func TestMCPIsNeverRedirected(t *testing.T) {
	w := servertest.New(t, server.Options{})
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, path := range []string{"//mcp", "/mcp//", "/./mcp", "/mcp/x"} {
		for _, method := range []string{"GET", "POST", "DELETE", "OPTIONS", "PUT"} {
			response, err := client.Do(w.Request(servertest.Owner, method, path, nil))
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != http.StatusNotFound {
				t.Errorf("%s %s is %d, want %v", method, path, response.StatusCode, http.StatusNotFound)
			}
		}
	}
	for method, status := range map[string]int{"GET": 405, "DELETE": 405, "PUT": 405, "PATCH": 405, "OPTIONS": 204} {
		if a := w.Do(servertest.Owner, method, "/mcp", "").Expect(status); a.Header.Get("Allow") == "" {
			t.Errorf("%s: got %v, want the header Allow", method,
				a.Header.Get("Allow"))
		}
	}
}

func TestMCPIsLoggedByMethodAndTool(t *testing.T) {
	w := servertest.New(t, server.Options{})
	postMessage(w, servertest.Owner, handshake, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory",`+
		`"arguments":{"action":"search","query":"`+servertest.Secret+`"}}}`)
	postMessage(w, servertest.Owner, handshake, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+
		servertest.Secret+`"}}`)
	postMessage(w, servertest.Owner, handshake, `{"jsonrpc":"2.0","id":1,"method":"`+servertest.Secret+` of the day"}`)
	postMessage(w, servertest.Owner, handshake, `{"jsonrpc":"2.0","id":1,"method":"`+w.Tokens[servertest.Owner]+`"}`)
	postMessage(w, servertest.Owner, "", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`)
	postMessage(w, servertest.Owner, "", `{"jsonrpc":"2.0","id":1,"result":{}}`)
	log := w.Log.String()
	for _, part := range []string{`route="POST /mcp" path=/mcp status=200`, "mcp_method=tools/call mcp_tool=memory user=" +
		w.Users[servertest.Owner], "mcp_method=tools/call user=", "mcp_method=unknown user=", "mcp_method=batch user=",
		"mcp_method=response user="} {
		if !strings.Contains(log, part) {
			t.Errorf("got the log\n%s\nwant one that contains %q", log, part)
		}
	}
	if strings.Contains(log, servertest.Secret) {
		t.Errorf("the log has what a client sent, want no %q in the log:\n%s", servertest.Secret, log)
	}
}

func TestMCPOptions(t *testing.T) {
	w := servertest.New(t, server.Options{ReadOnly: true,
		Toolsets: []mcpserver.Toolset{mcpserver.ToolsetMemory, mcpserver.ToolsetChatGPT}, Version: "9.8.7"})
	session := mustConnect(w, servertest.Owner, handshake)
	list, err := session.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 6 || session.InitializeResult().ServerInfo.Version != "9.8.7" {
		t.Errorf(`%d tools, %v, want no error, 6 tools and version "9.8.7"`, len(list.Tools), err)
	}
	if text, isError := callOver(t.Context(), t, session, "memory", `{"action": "store", "content": "x"}`); !isError ||
		!strings.Contains(text, "read-only") {
		t.Errorf(`got %v, want an error with "read-only"`, text)
	}
	if text, _ := callOver(t.Context(), t, session, "search",
		`{"query": "when does the shop open"}`); !strings.Contains(text, `"url":"`+servertest.PublicAt+`/memories/`+w.Memory+
		`"`) {
		t.Errorf("got %v, want %q in the text", text, `"url":"`+servertest.PublicAt+`/memories/`+w.Memory+`"`)
	}
	w.Do(servertest.Guest, "GET", "/tools", "").Expect(http.StatusOK, "get_context").Without("upload_document")
	if a, _ := w.Call(servertest.Owner, "memory",
		`{"action": "store", "content": "x"}`); a.Status != http.StatusForbidden {
		t.Errorf("%d %s; want %v", a.Status, a.Body, http.StatusForbidden)
	}
}

// Clients that stop in the middle of a message, or do not read their answer, are dropped and block nothing.
func TestMCPClientsThatAreSilent(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{Patience: time.Second})
	large := uploadedFile(upload(w, servertest.Owner, servertest.Part{Name: "file", Filename: "large.txt", Kind: "",
		Value: strings.Repeat("0123456\n", 1<<17)}))
	read := strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"souvenir://files/`+large.ID+
		`"}},`, 30)
	batch := "[" + strings.TrimSuffix(read, ",") + "]"
	for name, sent := range map[string]string{
		"a client that stops":             "Content-Length: 100\r\n\r\n{\"jsonrpc\":",
		"a client that reads nothing":     fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(batch), batch),
		"a client that leaves in between": "Content-Length: 100\r\n\r\n{\"jsonrpc\":",
	} {
		conn, err := net.Dial("tcp", w.HTTP.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: %s\r\nContent-Type: "+
			"application/json\r\nAuthorization: Bearer %s\r\n%s", strings.ReplaceAll(name, " ", "-"), w.Tokens[servertest.Owner],
			sent)
		if name == "a client that leaves in between" {
			conn.Close()
		}
	}
	for _, id := range []string{"a-client-that-stops", "a-client-that-reads-nothing",
		"a-client-that-leaves-in-between"} {
		deadline := time.Now().Add(servertest.Soon)
		for !strings.Contains(w.Log.String(), "msg=request request_id="+id) {
			if time.Now().After(deadline) {
				t.Fatalf("%s is still waited for, want it before the deadline:\n%s", id, w.Log.String())
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	if a := postMessage(w, servertest.Owner, "", batch).Expect(http.StatusOK,
		"the answers to this batch are already too long"); len(a.Body) > 24<<20 {
		t.Errorf("a batch is answered with %d bytes, want at most %v", len(a.Body), 24<<20)
	}
	postMessage(w, servertest.Owner, "", `{"jsonrpc":"2.0","id":1,"method":"ping"}`).Expect(http.StatusOK)
}

// Many concurrent callers do not get each other's views.
func TestMCPManyAtOnce(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	var all sync.WaitGroup
	for _, caller := range []string{servertest.Owner, servertest.Stranger, servertest.Writer, servertest.Admin,
		servertest.Owner, servertest.Stranger, servertest.Writer, servertest.Reader} {
		session := mustConnect(w, caller, []string{handshake, stateless}[len(caller)%2])
		all.Go(func() {
			for range 20 {
				result, err := session.CallTool(t.Context(),
					&mcp.CallToolParams{Name: "memory", Arguments: json.RawMessage(`{"action": "search", "query": "the word"}`)})
				if err != nil {
					t.Error(err)
					return
				}
				if got := strings.Contains(result.Content[0].(*mcp.TextContent).Text,
					servertest.Secret); got != (caller == servertest.Owner) {
					t.Errorf("%s sees Olivia's data: %v, want %v", caller, got, (caller == servertest.Owner))
				}
			}
		})
	}
	all.Wait()
}
