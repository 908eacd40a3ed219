package server_test

import (
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
	w := newWorld(t, server.Options{MaxBody: 1 << 20})
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
			"name is of the JSON type number; a string is needed"},
		{"a form", "POST", "/tools/call", "application/x-www-form-urlencoded", `name=memory`, 400,
			"application/json is needed"},
		{"text", "POST", "/tools/call", "text/plain", `{"name": "list_collections"}`, 400, "application/json is needed"},
		{"a broken type", "POST", "/tools/call", "application", `{}`, 400, "application/json is needed"},
		{"JSON of a dialect", "POST", "/tools/call", "application/vnd.api+json; charset=utf-8",
			`{"name": "list_collections"}`, 200, ""},
		{"no UTF-8", "POST", "/tools/call", "application/json", "{\"name\": \"\xff\"}", 400, "UTF-8"},
		{"too much", "POST", "/tools/call", "application/json", `{"name": "` + strings.Repeat("x", 1<<20) + `"}`, 400,
			"longer than 1048576 bytes"},
		{"too deep", "POST", "/tools/call", "application/json", `{"name": "memory", "arguments": ` +
			strings.Repeat(`[`, 20_000) + strings.Repeat(`]`, 20_000) + `}`, 400, ""},
		{"null preferences", "PUT", "/api/user-preferences", "application/json", `null`, 400, "null"},
		{"null for what is known", "PUT", "/api/files/" + w.file + "/metadata", "application/json", ` null `, 400, "null"},
		{"null for a call", "POST", "/tools/call", "application/json", `null`, 400, "null"},
		{"a list of preferences", "PATCH", "/api/user-preferences", "application/json", `[1]`, 400, "array"},
		{"large preferences", "PUT", "/api/user-preferences", "application/json", `{"a": "` + strings.Repeat("x", 65<<10) +
			`"}`, 400, "65536"},
		{"a misspelt role", "POST", "/api/projects/shop/members", "application/json", `{"user": "sam", "role": "king"}`, 400,
			"king"},
		{"a member twice", "POST", "/api/projects/shop/members", "application/json", `{"user": "rita", "role": "reader"}`,
			400, "already"},
		{"a member that is none", "PATCH", "/api/projects/shop/members/sam", "application/json", `{"role": "reader"}`, 404,
			"sam"},
		{"a file that is none", "GET", "/api/files/menu.txt", "", "", 404, "menu.txt"},
		{"tags that are no list", "PUT", "/api/files/" + w.file + "/metadata", "application/json", `{"tags": "a"}`, 400,
			"tags is of the JSON type string; an array is needed"},
		{"a query that is none", "GET", "/api/files?tags=%zz", "", "", 400, "query"},
		{"a long category", "GET", "/api/files?category=" + strings.Repeat("x", 100), "", "", 400, "category"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := w.request(owner, c.method, c.path, strings.NewReader(c.body))
			if c.kind != "" {
				r.Header.Set("Content-Type", c.kind)
			}
			a := w.send(r).expect(c.status, c.has).without(secret)
			if c.status == http.StatusMethodNotAllowed && a.header.Get("Allow") == "" {
				t.Error("405 without Allow")
			}
		})
	}
}

// Whatever is in the arguments of a tool, the server neither fails nor gives up.
func TestToolArgumentsOfAllSizes(t *testing.T) {
	w := newWorld(t, server.Options{})
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
			a, _ := w.call(stranger, "memory", arguments)
			if a.status != http.StatusOK && a.status != http.StatusBadRequest {
				t.Errorf("status %d: %.300s", a.status, a.body)
			}
			a.without(secret)
		})
	}
	a, result := w.call(stranger, "memory", `{"action": "search", "query": "x", "offset": 1000000000}`)
	a.expect(http.StatusOK)
	if !strings.Contains(result, `"results":[]`) {
		t.Errorf("past the end there is %.300s", result)
	}
}

func TestHeadersOfEveryAnswer(t *testing.T) {
	w := newWorld(t, server.Options{})
	for _, r := range []*http.Request{
		w.request(guest, "GET", "/health", nil), w.request(guest, "GET", "/api/files", nil),
		w.request(owner, "GET", "/api/files/"+w.file, nil),
		w.request(owner, "GET", "/nothing", nil), w.request(owner, "PATCH", "/health", nil),
	} {
		a := w.send(r)
		for name, value := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
			"Access-Control-Allow-Origin":  "*",
			"Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := a.header.Get(name); got != value {
				t.Errorf("%s %s: %s is %q, want %v", r.Method, r.URL.Path, name, got, value)
			}
		}
		if !strings.Contains(a.header.Get("Content-Security-Policy"), "default-src 'none'") ||
			a.header.Get("Cache-Control") == "" || a.header.Get("X-Request-Id") == "" {
			t.Errorf("%s %s: %v", r.Method, r.URL.Path, a.header)
		}
		if strings.Contains(a.header.Get("Access-Control-Allow-Credentials"), "true") {
			t.Errorf("%s %s lets other origins send the cookie", r.Method, r.URL.Path)
		}
	}
}

func TestPreflight(t *testing.T) {
	w := newWorld(t, server.Options{})
	for path, methods := range map[string]string{"/tools/call": "OPTIONS, POST",
		"/mcp": "DELETE, GET, HEAD, OPTIONS, POST", "/api/files/x": "DELETE, GET, HEAD, OPTIONS",
		"/api/projects/a%2Fb/members/c": "DELETE, OPTIONS, PATCH"} {
		r := w.request(guest, "OPTIONS", path, nil)
		r.Header.Set("Origin", "https://chat.example")
		r.Header.Set("Access-Control-Request-Method", "POST")
		r.Header.Set("Access-Control-Request-Headers", "authorization,content-type,mcp-protocol-version")
		a := w.send(r).expect(http.StatusNoContent)
		allowed := strings.ToLower(a.header.Get("Access-Control-Allow-Headers"))
		for _, name := range []string{"authorization", "content-type", "mcp-protocol-version", "mcp-method", "mcp-name",
			"mcp-session-id", "x-mcp-token"} {
			if !strings.Contains(allowed, name) {
				t.Errorf("%s: %s may not be sent: %q", path, name, allowed)
			}
		}
		if a.header.Get("Access-Control-Allow-Methods") != methods || a.header.Get("Allow") != methods {
			t.Errorf("%s: %v", path, a.header)
		}
		if !strings.Contains(a.header.Get("Access-Control-Expose-Headers"), "WWW-Authenticate") {
			t.Errorf("%s: %v", path, a.header)
		}
	}
	w.do(guest, "OPTIONS", "/nothing", "").expect(http.StatusNotFound)
}

func TestHeadAnswersAsGetWithoutABody(t *testing.T) {
	w := newWorld(t, server.Options{})
	for _, path := range []string{"/health", "/openapi.json", "/api/files", "/api/files/" + w.file, "/api/files/nothing"} {
		get, head := w.do(owner, "GET", path, ""), w.do(owner, "HEAD", path, "")
		if head.status != get.status || head.body != "" || head.header.Get("Content-Length") != fmt.Sprint(len(get.body)) {
			t.Errorf("%s: %d %q with %s bytes, but GET is %d with %d", path, head.status, head.body,
				head.header.Get("Content-Length"), get.status, len(get.body))
		}
	}
}

// Mounted under a prefix, everything is as at the root, parameters with slashes in them included.
func TestMountedUnderAPrefix(t *testing.T) {
	w := newWorld(t, server.Options{})
	mux := http.NewServeMux()
	mux.Handle("/memory/", http.StripPrefix("/memory", server.New(w.store, nil)))
	at := httptest.NewServer(mux)
	defer at.Close()
	w.at, w.doc = at, nil
	w.do(guest, "GET", "/memory/health", "").expect(http.StatusOK)
	w.do(owner, "GET", "/memory/api/files/"+w.file, "").expect(http.StatusOK, "soup")
	w.do(reader, "GET", "/memory/api/projects/olivia%2Fshop", "").expect(http.StatusOK, "The shop")
	w.do(reader, "GET", "/memory/api/nothing", "").expect(http.StatusNotFound, "isError")
}

func TestProjectsOfOthersByOwnerAndID(t *testing.T) {
	w := newWorld(t, server.Options{})
	for _, ref := range []string{"shop", "olivia%2Fshop", w.users[owner] + "%2Fshop"} {
		w.do(reader, "GET", "/api/projects/"+ref, "").expect(http.StatusOK, `"project_id":"shop"`)
		w.do(reader, "GET", "/api/projects/"+ref+"/members", "").expect(http.StatusOK, "walter")
	}
	w.do(reader, "GET", "/api/projects/olivia%2Fplot", "").expect(http.StatusNotFound).without(secret)
	w.do(reader, "GET", "/api/owner-ids/me", "").expect(http.StatusOK, `"owner_id":"`+w.users[reader]+`"`,
		`"role":"reader"`, "olivia").without(secret, "plot", "olivia@example.com")
}

func TestRequestIDs(t *testing.T) {
	w := newWorld(t, server.Options{})
	for given, taken := range map[string]bool{"abc-123_X.9": true, strings.Repeat("a", 64): true,
		strings.Repeat("a", 65): false, "a b": false, "a\"b": false, "": false, "mcp_abc": false, "é": false} {
		r := w.request(guest, "GET", "/health", nil)
		r.Header.Set("X-Request-Id", given)
		got := w.send(r).header.Get("X-Request-Id")
		if (got == given) != taken || got == "" {
			t.Errorf("for %q came %q", given, got)
		}
		if !strings.Contains(w.log.String(), "request_id="+got+" ") {
			t.Errorf("the log lacks %q:\n%s; want in it %v", got, w.log.String(), "request_id="+got+" ")
		}
	}
}

func TestTheLogTellsWhoDidWhatAndNothingElse(t *testing.T) {
	w := newWorld(t, server.Options{})
	w.do(owner, "GET", "/api/files/"+w.file+"?token="+w.tokens[stranger], "").expect(http.StatusOK)
	w.do(owner, "DELETE", "/api/mcp-tokens/"+w.tokens[stranger], "").expect(http.StatusNotFound)
	w.call(owner, "memory", `{"action": "search", "query": "the word is `+secret+`"}`)
	w.do(owner, "GET", "/api/files?category="+secret, "").expect(http.StatusOK)
	log := w.log.String()
	for _, part := range []string{
		`method=GET route="GET /api/files/{id}" path=/api/files/` + w.file + ` status=200 bytes=10 duration=`, "user=" +
			w.users[owner], "token_id=" + w.tokenIDs[owner], "path=/api/mcp-tokens/mcp_…",
	} {
		if !strings.Contains(log, part) {
			t.Errorf("the log lacks %q:\n%s", part, log)
		}
	}
	if strings.Contains(log, secret) || strings.Contains(log, "token="+"mcp") {
		t.Errorf("the log tells too much:\n%s", log)
	}
}

// A store that fails makes the server fail: the cause is for the log alone.
func TestCausesOfServerErrorsStayInTheLog(t *testing.T) {
	w := newWorld(t, server.Options{})
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/health", "/api/files", "/api/projects"} {
		a := w.do(owner, "GET", path, "").expect(http.StatusInternalServerError,
			"the server failed").without("closed")
		if !strings.Contains(w.log.String(), "request_id="+a.header.Get("X-Request-Id")) ||
			!strings.Contains(w.log.String(), "the store is closed") {
			t.Errorf("the log does not say why:\n%s", w.log.String())
		}
	}
}

// What is no HTTP, or breaks off, is answered or dropped, and the server goes on.
func TestBrokenConnections(t *testing.T) {
	w := newWorld(t, server.Options{})
	for name, sent := range map[string]string{
		"no HTTP": "hello\r\n\r\n",
		"a short body": "POST /tools/call HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + w.tokens[owner] +
			"\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"name\":",
		"a bad length": "POST /tools/call HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
		"a broken chunk": "POST /tools/call HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + w.tokens[owner] +
			"\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"an absolute form": "GET http://elsewhere/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
		"an asterisk":      "OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
		"CONNECT":          "CONNECT elsewhere:443 HTTP/1.1\r\nHost: elsewhere:443\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", w.at.Listener.Addr().String())
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
				t.Errorf("%s", all)
			}
		})
	}
	w.do(guest, "GET", "/health", "").expect(http.StatusOK)
	if strings.Contains(w.log.String(), "panic") {
		t.Errorf("something panicked:\n%s", w.log.String())
	}
}
