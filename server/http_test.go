package server_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/server"
)

func TestWrongRequests(t *testing.T) {
	w := servertest.New(t, server.Options{MaxBody: 1 << 20})
	for _, c := range []struct {
		name, method, path, kind, body string
		status                         int
		has                            string
	}{
		{"an unknown path", "GET", "/nothing/here", "", "", 404, "/nothing/here"},
		{"a path with a slash more", "GET", "/api/files/", "", "", 404, ""},
		{"a path with dots", "GET", "/api/../api/files", "", "", 404, ""},
		{"a path with two slashes", "GET", "//api/files", "", "", 404, ""},
		{"another method", "PUT", "/api/files", "", "", 405, "GET, HEAD, OPTIONS"},
		{"an invented method", "FROB", "/tools/call", "", "", 405, "POST"},
		{"no JSON", "POST", "/tools/call", "application/json", `{"name": `, 400, "JSON"},
		{"JSON and more", "POST", "/tools/call", "application/json", `{"name": "list_collections"} {}`, 400,
			"after its JSON value"},
		{"a list", "POST", "/tools/call", "application/json", `[]`, 400, "array"},
		{"nothing", "POST", "/tools/call", "application/json", ``, 400, "empty"},
		{"no name", "POST", "/tools/call", "application/json", `{}`, 400, "name is missing"},
		{"a number for a name", "POST", "/tools/call", "application/json", `{"name": 7}`, 400,
			"name is a JSON number; expected a string"},
		{"a form", "POST", "/tools/call", "application/x-www-form-urlencoded", `name=memory`, 400,
			"expected application/json"},
		{"text", "POST", "/tools/call", "text/plain", `{"name": "list_collections"}`, 400, "expected application/json"},
		{"a broken type", "POST", "/tools/call", "application", `{}`, 400, "expected application/json"},
		{"JSON of a dialect", "POST", "/tools/call", "application/vnd.api+json; charset=utf-8",
			`{"name": "list_collections"}`, 200, ""},
		{"a compressed body", "POST", "/tools/call", "application/json", "\x1f\x8b", 400, "Content-Encoding is \\\"gzip\\\""},
		{"no UTF-8", "POST", "/tools/call", "application/json", "{\"name\": \"\xff\"}", 400, "UTF-8"},
		{"too much", "POST", "/tools/call", "application/json", `{"name": "` + strings.Repeat("x", 1<<20) + `"}`, 400,
			"longer than 1048576 bytes"},
		{"too deep", "POST", "/tools/call", "application/json", `{"name": "memory", "arguments": ` +
			strings.Repeat(`[`, 20_000) + strings.Repeat(`]`, 20_000) + `}`, 400, ""},
		{"null preferences", "PUT", "/api/user-preferences", "application/json", `null`, 400, "null"},
		{"null for what is known", "PUT", "/api/files/" + w.File + "/metadata", "application/json", ` null `, 400, "null"},
		{"null for a call", "POST", "/tools/call", "application/json", `null`, 400, "null"},
		{"a list of preferences", "PATCH", "/api/user-preferences", "application/json", `[1]`, 400, "array"},
		{"large preferences", "PUT", "/api/user-preferences", "application/json", `{"a": "` + strings.Repeat("x", 65<<10) +
			`"}`, 400, "65536"},
		{"a misspelt role", "POST", "/api/projects/shop/members", "application/json", `{"user": "sam", "role": "king"}`, 400,
			"king"},
		{"a member twice", "POST", "/api/projects/shop/members", "application/json", `{"user": "rita", "role": "reader"}`,
			400, "already"},
		{"not a member", "PATCH", "/api/projects/shop/members/sam", "application/json", `{"role": "reader"}`, 404,
			"sam"},
		{"an unknown file", "GET", "/api/files/menu.txt", "", "", 404, "menu.txt"},
		{"tags that are no list", "PUT", "/api/files/" + w.File + "/metadata", "application/json", `{"tags": "a"}`, 400,
			"tags is a JSON string; expected an array"},
		{"an invalid query", "GET", "/api/files?tags=%zz", "", "", 400, "query"},
		{"a long category", "GET", "/api/files?category=" + strings.Repeat("x", 100), "", "", 400, "category"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := w.Request(servertest.Owner, c.method, c.path, strings.NewReader(c.body))
			if c.kind != "" {
				r.Header.Set("Content-Type", c.kind)
			}
			if c.body == "\x1f\x8b" {
				r.Header.Set("Content-Encoding", "gzip")
			}
			a := w.Send(r).Expect(c.status, c.has).Without(servertest.Secret)
			if c.status == http.StatusMethodNotAllowed && a.Header.Get("Allow") == "" {
				t.Error("405: got no header Allow, want the allowed methods")
			}
		})
	}
}

// The server answers any arguments of a tool without failing or hanging.
func TestToolArgumentsOfAllSizes(t *testing.T) {
	w := servertest.New(t, server.Options{})
	var keys strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&keys, `"key%d": %d,`, i, i)
	}
	for name, arguments := range map[string]string{
		"a huge limit":      `{"action": "search", "query": "x", "limit": 9007199254740993}`,
		"a huge number":     `{"action": "search", "query": "x", "limit": 1e400}`,
		"a negative limit":  `{"action": "search", "query": "x", "limit": -1}`,
		"a negative offset": `{"action": "search", "query": "x", "offset": -9223372036854775808}`,
		"10,000 keys": `{"action": "store", "content": "x", "metadata": {` + strings.TrimSuffix(keys.String(), ",") +
			`}}`,
		"deep metadata": `{"action": "store", "content": "x", "metadata": {"a": ` + strings.Repeat(`{"a":`, 5000) +
			`1` + strings.Repeat(`}`, 5000) + `}}`,
		"deep filter": `{"action": "search", "query": "x", "filter": {"a": ` + strings.Repeat(`{"a":`, 5000) + `1` +
			strings.Repeat(`}`, 5000) + `}}`,
		"a lone surrogate":     `{"action": "store", "content": "\ud800", "metadata": {"a": "\udfff"}}`,
		"null characters":      `{"action": "store", "content": "a\u0000b", "tags": ["\u0000"]}`,
		"content that is long": `{"action": "store", "content": "` + strings.Repeat("long ", 1<<18) + `"}`,
		"a long collection": `{"action": "store", "content": "x", "collection_name": "` + strings.Repeat("x", 1<<16) +
			`"}`,
		"SQL":                 `{"action": "search", "query": "x", "filter": {"a') OR 1=1 --": "b"}}`,
		"arguments of a list": `[]`,
		"arguments of a text": `"x"`,
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := w.Call(servertest.Stranger, "memory", arguments)
			if a.Status != http.StatusOK && a.Status != http.StatusBadRequest {
				t.Errorf("status %d: %.300s, want %v or %v", a.Status, a.Body, http.StatusOK, http.StatusBadRequest)
			}
			a.Without(servertest.Secret)
		})
	}
	a, result := w.Call(servertest.Stranger, "memory", `{"action": "search", "query": "x", "offset": 1000000000}`)
	a.Expect(http.StatusOK)
	if !strings.Contains(result, `"results":[]`) {
		t.Errorf(`past the end: got %.300s, want one that contains "results":[]`, result)
	}
}

func TestHeadersOfEveryAnswer(t *testing.T) {
	w := servertest.New(t, server.Options{})
	for _, r := range []*http.Request{
		w.Request(servertest.Guest, "GET", "/health", nil), w.Request(servertest.Guest, "GET", "/api/files", nil),
		w.Request(servertest.Owner, "GET", "/api/files/"+w.File, nil),
		w.Request(servertest.Owner, "GET", "/nothing", nil), w.Request(servertest.Owner, "PATCH", "/health", nil),
	} {
		a := w.Send(r)
		for name, value := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
			"Access-Control-Allow-Origin":  "*",
			"Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := a.Header.Get(name); got != value {
				t.Errorf("%s %s: %s is %q, want %v", r.Method, r.URL.Path, name, got, value)
			}
		}
		if !strings.Contains(a.Header.Get("Content-Security-Policy"), "default-src 'none'") ||
			a.Header.Get("Cache-Control") == "" || a.Header.Get("X-Request-Id") == "" {
			t.Errorf(`%s %s: got %v, want "default-src 'none'" in the Content-Security-Policy, a Cache-Control that is not `+
				"empty and a X-Request-Id that is not empty", r.Method, r.URL.Path, a.Header)
		}
		if strings.Contains(a.Header.Get("Access-Control-Allow-Credentials"), "true") {
			t.Errorf(`%s %s lets other origins send the cookie: got %v, want no "true" in the Access-Control-Allow-Credentials`,
				r.Method, r.URL.Path, a.Header.Get("Access-Control-Allow-Credentials"))
		}
	}
}

func TestPreflight(t *testing.T) {
	w := servertest.New(t, server.Options{})
	for path, methods := range map[string]string{"/tools/call": "OPTIONS, POST",
		"/mcp": "DELETE, GET, HEAD, OPTIONS, POST", "/api/files/x": "DELETE, GET, HEAD, OPTIONS",
		"/api/projects/a%2Fb/members/c": "DELETE, OPTIONS, PATCH"} {
		r := w.Request(servertest.Guest, "OPTIONS", path, nil)
		r.Header.Set("Origin", "https://chat.example")
		r.Header.Set("Access-Control-Request-Method", "POST")
		r.Header.Set("Access-Control-Request-Headers", "authorization,content-type,mcp-protocol-version")
		a := w.Send(r).Expect(http.StatusNoContent)
		allowed := strings.ToLower(a.Header.Get("Access-Control-Allow-Headers"))
		for _, name := range []string{"authorization", "content-type", "mcp-protocol-version", "mcp-method", "mcp-name",
			"mcp-session-id", "x-mcp-token"} {
			if !strings.Contains(allowed, name) {
				t.Errorf("%s: got the allowed headers %q, want %s among them", path, allowed, name)
			}
		}
		if a.Header.Get("Access-Control-Allow-Methods") != methods || a.Header.Get("Allow") != methods {
			t.Errorf("%s: got %v, want Access-Control-Allow-Methods %v and Allow %v", path, a.Header, methods, methods)
		}
		if !strings.Contains(a.Header.Get("Access-Control-Expose-Headers"), "WWW-Authenticate") {
			t.Errorf(`%s: %v, got %v, want "WWW-Authenticate" in the Access-Control-Expose-Headers`, path, a.Header,
				a.Header.Get("Access-Control-Expose-Headers"))
		}
	}
	w.Do(servertest.Guest, "OPTIONS", "/nothing", "").Expect(http.StatusNotFound)
}

func TestHeadAnswersAsGetWithoutABody(t *testing.T) {
	w := servertest.New(t, server.Options{})
	for _, path := range []string{"/health", "/openapi.json", "/api/files", "/api/files/" + w.File, "/api/files/nothing"} {
		get, head := w.Do(servertest.Owner, "GET", path, ""), w.Do(servertest.Owner, "HEAD", path, "")
		if head.Status != get.Status || head.Body != "" || head.Header.Get("Content-Length") != fmt.Sprint(len(get.Body)) {
			t.Errorf("%s: HEAD is %d %q with %s bytes, want status %d, no body and %d bytes, as for GET", path, head.Status,
				head.Body, head.Header.Get("Content-Length"), get.Status, len(get.Body))
		}
	}
}

// Mounted under a prefix, everything works as at the root, including parameters with slashes.
func TestMountedUnderAPrefix(t *testing.T) {
	w := servertest.New(t, server.Options{})
	mux := http.NewServeMux()
	mux.Handle("/memory/", http.StripPrefix("/memory", server.New(w.Store, nil)))
	at := httptest.NewServer(mux)
	defer at.Close()
	w.HTTP, w.Doc = at, nil
	w.Do(servertest.Guest, "GET", "/memory/health", "").Expect(http.StatusOK)
	w.Do(servertest.Owner, "GET", "/memory/api/files/"+w.File, "").Expect(http.StatusOK, "soup")
	w.Do(servertest.Reader, "GET", "/memory/api/projects/olivia%2Fshop", "").Expect(http.StatusOK, "The shop")
	w.Do(servertest.Reader, "GET", "/memory/api/nothing", "").Expect(http.StatusNotFound, "isError")
}

func TestProjectsOfOthersByOwnerAndID(t *testing.T) {
	w := servertest.New(t, server.Options{})
	for _, ref := range []string{"shop", "olivia%2Fshop", w.Users[servertest.Owner] + "%2Fshop"} {
		w.Do(servertest.Reader, "GET", "/api/projects/"+ref, "").Expect(http.StatusOK, `"project_id":"shop"`)
		w.Do(servertest.Reader, "GET", "/api/projects/"+ref+"/members", "").Expect(http.StatusOK, "walter")
	}
	w.Do(servertest.Reader, "GET", "/api/projects/olivia%2Fplot",
		"").Expect(http.StatusNotFound).Without(servertest.Secret)
	w.Do(servertest.Reader, "GET", "/api/owner-ids/me", "").Expect(http.StatusOK, `"owner_id":"`+
		w.Users[servertest.Reader]+`"`,
		`"role":"reader"`, "olivia").Without(servertest.Secret, "plot", "olivia@example.com")
}

func TestRequestIDs(t *testing.T) {
	w := servertest.New(t, server.Options{})
	for given, taken := range map[string]bool{"abc-123_X.9": true, strings.Repeat("a", 64): true,
		strings.Repeat("a", 65): false, "a b": false, "a\"b": false, "": false, "mcp_abc": false, "é": false} {
		r := w.Request(servertest.Guest, "GET", "/health", nil)
		r.Header.Set("X-Request-Id", given)
		got := w.Send(r).Header.Get("X-Request-Id")
		if (got == given) != taken || got == "" {
			t.Errorf("for %q came %q, want it taken as the table says", given, got)
		}
		if !strings.Contains(w.Log.String(), "request_id="+got+" ") {
			t.Errorf("the log lacks %q:\n%s; want in it %v", got, w.Log.String(), "request_id="+got+" ")
		}
	}
}

func TestTheLogNamesUsersAndRoutesOnly(t *testing.T) {
	w := servertest.New(t, server.Options{})
	w.Do(servertest.Owner, "GET", "/api/files/"+w.File+"?token="+w.Tokens[servertest.Stranger], "").Expect(http.StatusOK)
	w.Do(servertest.Owner, "DELETE", "/api/mcp-tokens/"+w.Tokens[servertest.Stranger], "").Expect(http.StatusNotFound)
	w.Call(servertest.Owner, "memory", `{"action": "search", "query": "the word is `+servertest.Secret+`"}`)
	w.Do(servertest.Owner, "GET", "/api/files?category="+servertest.Secret, "").Expect(http.StatusOK)
	log := w.Log.String()
	for _, part := range []string{
		`method=GET route="GET /api/files/{id}" path=/api/files/` + w.File + ` status=200 bytes=10 duration=`, "user=" +
			w.Users[servertest.Owner], "token_id=" + w.TokenIDs[servertest.Owner], "path=/api/mcp-tokens/mcp_…",
	} {
		if !strings.Contains(log, part) {
			t.Errorf("got the log\n%s\nwant one that contains %q", log, part)
		}
	}
	if strings.Contains(log, servertest.Secret) || strings.Contains(log, "token="+"mcp") {
		t.Errorf("the log has too much, want no %q and no %q in the log:\n%s", servertest.Secret, "token="+"mcp", log)
	}
}

// If the store fails, the server reports an error. Its cause goes only to the log.
func TestCausesOfServerErrorsStayInTheLog(t *testing.T) {
	w := servertest.New(t, server.Options{})
	if err := w.Store.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/health", "/api/files", "/api/projects"} {
		a := w.Do(servertest.Owner, "GET", path, "").Expect(http.StatusInternalServerError,
			"the server failed").Without("closed")
		if !strings.Contains(w.Log.String(), "request_id="+a.Header.Get("X-Request-Id")) ||
			!strings.Contains(w.Log.String(), "the store is closed") {
			t.Errorf("the log does not say why, want %q and \"the store is closed\" in the log:\n%s",
				"request_id="+a.Header.Get("X-Request-Id"), w.Log.String())
		}
	}
}

// Broken or truncated HTTP is answered or dropped, and the server goes on.
func TestBrokenConnections(t *testing.T) {
	w := servertest.New(t, server.Options{})
	for name, sent := range map[string]string{
		"no HTTP": "hello\r\n\r\n",
		"a short body": "POST /tools/call HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + w.Tokens[servertest.Owner] +
			"\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"name\":",
		"a bad length": "POST /tools/call HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
		"a broken chunk": "POST /tools/call HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + w.Tokens[servertest.Owner] +
			"\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"an absolute form": "GET http://elsewhere/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
		"an asterisk":      "OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
		"CONNECT":          "CONNECT elsewhere:443 HTTP/1.1\r\nHost: elsewhere:443\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", w.HTTP.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprint(conn, sent)
			if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			all, err := io.ReadAll(bufio.NewReader(conn))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(all), " 500 ") {
				t.Errorf(`got %s, want no " 500 " in the all`, all)
			}
		})
	}
	w.Do(servertest.Guest, "GET", "/health", "").Expect(http.StatusOK)
	if strings.Contains(w.Log.String(), "panic") {
		t.Errorf("something panicked, want no \"panic\" in the log:\n%s", w.Log.String())
	}
}
