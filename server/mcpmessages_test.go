package server_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

const (
	handshake = "2025-11-25" // the last revision with initialize
	stateless = "2026-07-28"
	meta      = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"}}`
)

// postMessage sends a message unchanged. headers are names and values in turn; an empty value removes a header.
func postMessage(w *servertest.World, caller, revision, body string, headers ...string) servertest.Answer {
	w.T.Helper()
	r := w.Request(caller, "POST", "/mcp", strings.NewReader(body))
	for i, all := 0, append([]string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream",
		"Mcp-Protocol-Version", revision}, headers...); i < len(all); i += 2 {
		r.Header.Del(all[i])
		if all[i+1] != "" {
			r.Header.Set(all[i], all[i+1])
		}
	}
	return w.Send(r)
}

// rpc is a reply.
type rpc struct {
	Version string           `json:"jsonrpc"`
	ID      json.RawMessage  `json:"id"`
	Result  *json.RawMessage `json:"result"`
	Error   *struct {
		Code    int
		Message string
		Data    json.RawMessage
	} `json:"error"`
}

// failure checks that an answer is a JSON-RPC error.
func failure(a servertest.Answer, id string, code int, has string) {
	a.T.Helper()
	var reply rpc
	a.Decode(&reply)
	if reply.Version != "2.0" || string(reply.ID) != id || reply.Error == nil || reply.Error.Code != code ||
		!strings.Contains(reply.Error.Message, has) || reply.Result != nil {
		a.T.Errorf("%.500s is not the error %d with %q to %s, want it", a.Body, code, has, id)
	}
	for _, word := range []string{"mcp.", "Unmarshal", "unmarshal", "JSON RPC not handled"} {
		if strings.Contains(a.Body, word) {
			a.T.Errorf("%.500s reveals the program's own %q, want it not in the body", a.Body, word)
		}
	}
}

func TestMCPMessagesThatAreWrongHaveTheProtocolsAnswer(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	long := strings.Repeat("x", 100_000)
	for _, c := range []struct {
		revision, message string // the message's members after jsonrpc and id
		status, code      int
		has               string
	}{
		{handshake, `"method":"nope"`, 200, -32601, `method "nope" is not known here`},
		{handshake, `"method":"` + long + `"`, 200, -32601, "…"},
		{handshake, `"method":"sampling/createMessage","params":{}`, 200, -32601, "not known"},
		{handshake, `"method":"resources/subscribe","params":{"uri":"souvenir://projects"}`, 200, -32601, "not found"},
		{handshake, `"method":"server/discover"`, 200, -32601, "not found"},
		{handshake, `"method":"tools/call","params":{"name":"nope"}`, 200, -32602,
			`unknown tool "nope"; there are memory, get_project_main_memory,`},
		{handshake, `"method":"tools/call","params":{}`, 200, -32602, `unknown tool ""`},
		{handshake, `"method":"tools/call"`, 200, -32602, `tools/call needs "params"`},
		{handshake, `"method":"tools/call","params":null`, 200, -32602, `tools/call needs "params"`},
		{handshake, `"method":"tools/call","params":[]`, 200, -32602, `"params" of tools/call do not have the form`},
		{handshake, `"method":"tools/call","params":"` + long + `"`, 200, -32602,
			`"params" of tools/call do not have the form`},
		{handshake, `"method":"tools/call","params":{"name":7}`, 200, -32602, `"params" of tools/call do not have the form`},
		{handshake, `"method":"initialize","params":{"protocolVersion":5}`, 200, -32602,
			`"params" of initialize do not have the form`},
		{handshake, `"method":"tools/list","params":{"cursor":"x"}`, 200, -32602, "omit it to start at the first page"},
		{handshake, `"method":"resources/list","params":{"cursor":"x"}`, 200, -32602,
			"omit it to start at the first page"},
		{handshake, `"method":"resources/read","params":{"uri":"souvenir://memories/none"}`, 200, -32002,
			"Resource not found"},
		{handshake, `"method":"resources/read","params":{"uri":"file:///etc/passwd"}`, 200, -32002, "Resource not found"},
		{handshake, `"method":"resources/read","params":{}`, 200, -32002, "Resource not found"},
		{handshake, `"method":"prompts/get","params":{"name":"nope"}`, 200, -32602,
			`unknown prompt "nope"; there are load_project_context, save_session, review_gaps`},
		{handshake, `"method":"prompts/get","params":{"name":"load_project_context"}`, 200, -32602, "project is missing"},
		{handshake, `"method":"completion/complete","params":{"ref":{"type":"ref/x"},"argument":{"name":"a","value":""}}`,
			200, -32602, "do not have the form"},
		{handshake, `"method":"completion/complete","params":{}`, 200, -32602, "ref"},
		{handshake, `"method":"notifications/cancelled"`, 200, -32600, "unexpected id"},
		{handshake, `"Method":"ping"`, 400, -32600, "lower case"},
		{"", `"method":"nope"`, 200, -32601, "not known"},
		{stateless, `"method":"nope"`, 404, -32601, "not known"},
		{stateless, `"method":"initialize","params":{"protocolVersion":"2026-07-28","capabilities":{},` +
			`"clientInfo":{"name":"x","version":"1"},` + meta + `}`, 404, -32601, "not found"},
		{stateless, `"method":"ping","params":{` + meta + `}`, 404, -32601, "not found"},
		{stateless, `"method":"tools/list"`, 400, -32602, "_meta"},
		{stateless, `"method":"resources/read","params":{"uri":"souvenir://memories/none",` + meta + `}`, 400, -32602,
			"Resource not found"},
		{stateless, `"method":"tools/call","params":{"name":"nope",` + meta + `}`, 400, -32602, "unknown tool"},
		{handshake, `"method":"tools/list","params":{` + meta + `}`, 400, -32020, "does not match"},
		{"", `"method":"tools/list","params":{` + meta + `}`, 400, -32020, "header is required"},
		{"1999-01-01", `"method":"ping"`, 400, -32022,
			"expected one of 2026-07-28, 2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05"},
		{"2027-01-01", `"method":"tools/list"`, 400, -32022, "expected one of"},
		{"newest", `"method":"tools/list"`, 400, -32022, "expected one of"},
	} {
		for _, id := range []string{`7`, `"seven"`, `-1`} {
			method, name := "", ""
			if parts := strings.Split(c.message, `"`); len(parts) > 3 && len(parts[3]) < 100 {
				method = parts[3]
			}
			switch {
			case strings.Contains(c.message, `"name":"nope"`):
				name = "nope"
			case strings.Contains(c.message, "memories/none"):
				name = "souvenir://memories/none"
			}
			a := postMessage(w, servertest.Owner, c.revision, `{"jsonrpc":"2.0","id":`+id+`,`+c.message+`}`, "Mcp-Method",
				method, "Mcp-Name",
				name)
			if a.Status != c.status || len(a.Body) > 1000 {
				t.Errorf("%s %.200s: status %d, want %d; %d bytes", c.revision, c.message, a.Status, c.status, len(a.Body))
			}
			failure(a, id, c.code, c.has)
		}
	}
}

// An id can be written in several ways. The answer repeats it unchanged, also in errors.
func TestMCPIDsComeBackAsTheyWere(t *testing.T) {
	w := servertest.New(t, server.Options{})
	comesBack := func(id string, reply rpc) {
		t.Helper()
		var sent, back any
		if json.Unmarshal([]byte(id), &sent) != nil || json.Unmarshal(reply.ID, &back) != nil || sent != back ||
			id[0] != '"' && id != string(reply.ID) {
			t.Errorf("%.100s comes back as %.100s, want the same", id, reply.ID)
		}
	}
	ids := []string{`"<&>"`, `"` + strings.Repeat("<", 1000) + `"`, `"\u00e9\n"`, `""`, `0`, `9007199254740992`,
		`9007199254740993`, `-9007199254740993`, `9223372036854775807`, `-9223372036854775808`}
	var batch []string
	for _, id := range ids {
		message := `{"jsonrpc":"2.0","id":` + id + `,"method":`
		a := postMessage(w, servertest.Owner, handshake, message+`"tools/call","params":[]}`).Expect(http.StatusOK,
			"do not have the form").Without("Unmarshal", "unmarshal")
		var reply rpc
		a.Decode(&reply)
		comesBack(id, reply)
		for _, method := range []string{`"ping"`, `"tools/list"`} {
			reply = rpc{}
			postMessage(w, servertest.Owner, handshake, message+method+`}`).Expect(http.StatusOK, `"result":{`).Decode(&reply)
			comesBack(id, reply)
		}
		batch = append(batch, message+`"ping"}`)
	}
	var replies []rpc
	postMessage(w, servertest.Owner, "", "["+strings.Join(batch, ",")+"]").Expect(http.StatusOK).Decode(&replies)
	if len(replies) != len(ids) {
		t.Fatalf("got %d replies to a batch, want %d", len(replies), len(ids))
	}
	for i, id := range ids {
		comesBack(id, replies[i])
	}
}

func TestMCPHeadersMustFitTheMessage(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	for _, c := range []struct {
		headers []string
		status  int
		code    int
		has     string
	}{
		{[]string{"Mcp-Method", "tools/call", "Mcp-Name", "list_collections"}, 200, 0, ""},
		{[]string{"Mcp-Method", "tools/call"}, 400, -32020, "Mcp-Name"},
		{[]string{"Mcp-Name", "list_collections"}, 400, -32020, "Mcp-Method"},
		{[]string{"Mcp-Method", "tools/list", "Mcp-Name", "list_collections"}, 400, -32020, "does not match"},
		{[]string{"Mcp-Method", "tools/call", "Mcp-Name", "memory"}, 400, -32020, "does not match"},
	} {
		a := postMessage(w, servertest.Owner, stateless,
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_collections",`+
				meta+`}}`, c.headers...).Expect(c.status)
		if c.code != 0 {
			failure(a, "1", c.code, c.has)
		}
	}
	for _, c := range []struct {
		name, value string
		status      int
	}{
		{"Content-Type", "text/plain", 415}, {"Content-Type", "multipart/form-data", 415},
		{"Content-Type", "application/json; charset=utf-8", 200}, {"Content-Type", "", 200},
		{"Accept", "", 200}, {"Accept", "*/*", 200}, {"Accept", "application/json", 200},
		{"Accept", "application/*;q=0.5, text/html", 200}, {"Accept", "text/event-stream", 406}, {"Accept", "text/html", 406},
		{"Last-Event-ID", "12", 200}, {"Mcp-Session-Id", "of another server", 200},
	} {
		a := postMessage(w, servertest.Owner, handshake, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, c.name, c.value)
		if a.Status != c.status {
			t.Errorf("%s: %q is %d, want %d: %s", c.name, c.value, a.Status, c.status, a.Body)
		}
		if a.Status != http.StatusOK {
			failure(a, "null", -32600, "application/json")
		}
	}
}

func TestMCPBodiesWithoutAMessage(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{MaxBody: 10_000})
	for body, want := range map[string]struct {
		code int
		id   string
		has  string
	}{
		``:                              {-32700, "null", "the body is empty"},
		`{"jsonrpc":"2.0","id":1,"meth`: {-32700, "null", "not valid JSON at byte"},
		`{"jsonrpc":"2.0","id":1,"method":"ping"}{}`:         {-32700, "null", "not valid JSON"},
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}": {-32700, "null", "UTF-8"},
		strings.Repeat("[", 9_000):                           {-32700, "null", "not valid JSON"},
		strings.Repeat("[", 11_000):                          {-32600, "null", "longer than 10000 bytes"},
		`null`:                                               {-32600, "null", "jsonrpc"},
		`7`:                                                  {-32600, "null", "not a JSON-RPC request"},
		`"ping"`:                                             {-32600, "null", "not a JSON-RPC request"},
		`{}`:                                                 {-32600, "null", "jsonrpc"},
		`{"id":1,"method":"ping"}`:                           {-32600, "1", "jsonrpc"},
		`{"jsonrpc":"1.0","id":1,"method":"ping"}`:                               {-32600, "1", "jsonrpc"},
		`{"jsonrpc":2,"id":1,"method":"ping"}`:                                   {-32600, "null", "jsonrpc"},
		`{"jsonrpc":"2.0","id":1}`:                                               {-32600, "1", `no "method"`},
		`{"jsonrpc":"2.0","id":1,"method":7}`:                                    {-32600, "null", "method"},
		`{"jsonrpc":"2.0","method":"tools/list"}`:                                {-32600, "null", `needs an "id"`},
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`:                            {-32600, "null", `the "id" is neither`},
		`{"jsonrpc":"2.0","id":{},"method":"ping"}`:                              {-32600, "null", `the "id" is neither`},
		`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`:                             {-32600, "null", `the "id" is neither`},
		`{"jsonrpc":"2.0","id":` + strings.Repeat("9", 30) + `,"method":"ping"}`: {-32600, "null", `the "id" is neither`},
	} {
		failure(postMessage(w, servertest.Owner, "", body).Expect(http.StatusBadRequest), want.id, want.code, want.has)
	}
}

func TestMCPNotificationsAndResponsesAreTaken(t *testing.T) {
	w := servertest.New(t, server.Options{})
	for _, body := range []string{
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","method":"notifications/of/the/future"}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}`,
		`[{"jsonrpc":"2.0","method":"notifications/initialized"}]`,
	} {
		if a := postMessage(w, servertest.Owner, "", body).Expect(http.StatusAccepted); a.Body != "" {
			t.Errorf("%s is answered %s; want none", body, a.Body)
		}
	}
}

func TestMCPBatchesAreAnsweredInTheRevisionsThatHaveThem(t *testing.T) {
	w := servertest.New(t, server.Options{})
	call := `{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"memory",` +
		`"arguments":{"action":"retrieve","id":"` + w.Memory + `"}}}`
	batch := `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"nope"},{"jsonrpc":"2.0",` +
		`"method":"notifications/initialized"},7,` + call + `,{"jsonrpc":"2.0","id":1,"method":"ping"}]`
	for _, revision := range []string{"", "2024-11-05", "2025-03-26"} {
		var replies []rpc
		postMessage(w, servertest.Reader, revision, batch).Expect(http.StatusOK, "opens at nine").Decode(&replies)
		if len(replies) != 5 || replies[0].Error != nil || replies[1].Error.Code != -32601 ||
			replies[2].Error.Code != -32600 || string(replies[3].ID) != `"c"` || replies[4].Result == nil {
			t.Errorf("%q: got %+v, want 5 replies, the second and third errors", revision, replies)
		}
	}
	for _, revision := range []string{"2025-06-18", handshake, stateless} {
		failure(postMessage(w, servertest.Reader, revision, batch).Expect(http.StatusBadRequest), "null", -32600,
			"has no batches; send each message separately")
	}
	many := strings.TrimSuffix(strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"tools/list"},`, 101), ",")
	failure(postMessage(w, servertest.Reader, "", "["+many+"]").Expect(http.StatusBadRequest), "null", -32600,
		"the batch has 101 messages; expected 1 to 100")
	failure(postMessage(w, servertest.Reader, "", "[]").Expect(http.StatusBadRequest), "null", -32600,
		"the batch has 0 messages")
	postMessage(w, servertest.NoMemory, "", "["+call+"]").Expect(http.StatusOK, "memory:read").Without("opens at nine")
}

// A subscription to nothing ends at once.
func TestMCPSubscriptionsEndAtOnce(t *testing.T) {
	w := servertest.New(t, server.Options{})
	a := postMessage(w, servertest.Owner, stateless,
		`{"jsonrpc":"2.0","id":5,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,`+
			`"resourceSubscriptions":["souvenir://projects"]},`+meta+`}}`, "Mcp-Method", "subscriptions/listen")
	a.Expect(http.StatusOK, "notifications/subscriptions/acknowledged", `"notifications":{}`, `"resultType":"complete"`)
	if a.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("it is %s; want \"text/event-stream\"", a.Header.Get("Content-Type"))
	}
}

// No message of a client ends the server, and each gets an answer in JSON.
func FuzzMCPMessage(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory","arguments":{"action":"search",` +
			`"query":"x"}}}`, `[{"jsonrpc":"2.0","id":1,"method":"ping"},7]`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
			`"capabilities":{"roots":{}},"clientInfo":{"name":"x","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":"a","method":"server/discover","params":{` + meta + `}}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"souvenir://projects/%2e%2e/rules"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt",` +
			`"name":"save_session"},"argument":{"name":"project","value":"s"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"review_gaps","arguments":{"project":7}}}`,
	} {
		for i := range 3 {
			f.Add(seed, i)
		}
	}
	p := servertest.Template(f)
	store := p.Copy(f).Open(f, nil)
	log := &servertest.SyncBuffer{}
	handler := server.New(store, &server.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	f.Fuzz(func(t *testing.T, body string, revision int) {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/mcp", strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+p.Tokens[servertest.Limited])
		if known := []string{"", handshake, stateless}[(revision%3+3)%3]; known != "" {
			r.Header.Set("Mcp-Protocol-Version", known)
		}
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, r)
		if answer.Header().Get("Content-Type") == "application/json" && !json.Valid(answer.Body.Bytes()) ||
			answer.Body.Len() == 0 && answer.Code != http.StatusAccepted {
			t.Errorf("%q is answered %q, want JSON, or nothing where it is accepted", body, answer.Body)
		}
		if answer.Code >= 500 || strings.Contains(log.String(), "panic") || strings.Contains(answer.Body.String(),
			servertest.Secret) {
			t.Errorf(`%q: got %d %s, want code less than 500, no "panic" in the log and no %q in the body`, body, answer.Code,
				answer.Body, servertest.Secret)
		}
	})
}
