package mcpserver_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/souvenir-ai/souvenir/mcpserver"
)

// stdioServer is a server of three tools: echo answers at once, wait when it is released or ended, and each signals
// that it has begun.
type stdioServer struct {
	*mcp.Server
	began   chan string
	release chan struct{}
	calls   atomic.Int64
}

func newStdioServer() *stdioServer {
	s := &stdioServer{
		Server: mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil),
		began:  make(chan string, 1000), release: make(chan struct{}),
	}
	text := func(text string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
	}
	schema := json.RawMessage(`{"type": "object"}`)
	s.AddTool(&mcp.Tool{Name: "echo", InputSchema: schema},
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			s.calls.Add(1)
			return text(string(r.Params.Arguments)), nil
		})
	s.AddTool(&mcp.Tool{Name: "wait", InputSchema: schema},
		func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			s.began <- "wait"
			select {
			case <-s.release:
				return text("released"), nil
			case <-ctx.Done():
				s.began <- "ended"
				return nil, ctx.Err()
			}
		})
	return s
}

const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"

func initialize(revision string) string {
	return `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"` + revision +
		`","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}` + "\n" + initialized
}

func callEcho(id string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"echo","arguments":{"say":` + id +
		`}}}` + "\n"
}

func callWait(id string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"wait","arguments":{}}}` + "\n"
}

// stdioAnswer holds the relevant parts of an answer.
type stdioAnswer struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// failure returns an answer in short: its id, and "ok" or the code of its error.
func (a stdioAnswer) failure() string {
	if a.Error != nil {
		return fmt.Sprintf("%s %d", a.ID, a.Error.Code)
	}
	return string(a.ID) + " ok"
}

// answers reads a server's output. Each line must be an answer, or a list of answers.
func answers(t *testing.T, written string) []stdioAnswer {
	t.Helper()
	var all []stdioAnswer
	for line := range strings.Lines(written) {
		if !strings.HasSuffix(line, "\n") {
			t.Fatalf("the line %q has no end", line)
		}
		var together []stdioAnswer
		if !strings.HasPrefix(line, "[") {
			line = "[" + line + "]"
		}
		if err := json.Unmarshal([]byte(line), &together); err != nil {
			t.Fatalf("the line %q is no JSON: %v", line, err)
		}
		for _, a := range together {
			if a.Version != "2.0" || a.ID == nil || (a.Result == nil) == (a.Error == nil) {
				t.Fatalf("the line %q is no answer of JSON-RPC, want a result or an error", line)
			}
			all = append(all, a)
		}
	}
	return all
}

func tell(all []stdioAnswer) []string {
	var failure []string
	for _, a := range all {
		failure = append(failure, a.failure())
	}
	slices.Sort(failure)
	return failure
}

// serveAll serves an input to its end.
func serveAll(t *testing.T, input string, options *mcpserver.StdioOptions) []stdioAnswer {
	t.Helper()
	var out bytes.Buffer
	if err := mcpserver.ServeStdio(t.Context(), newStdioServer().Server, strings.NewReader(input), &out,
		options); err != nil {
		t.Fatal(err)
	}
	return answers(t, out.String())
}

func TestStdioAnswersEverythingBeforeItEnds(t *testing.T) {
	input, want := initialize("2025-11-25"), []string{`"init" ok`}
	for i := range 100 {
		input += callEcho(fmt.Sprint(i))
		want = append(want, fmt.Sprintf("%d ok", i))
	}
	slices.Sort(want)
	if got := tell(serveAll(t, input, nil)); !slices.Equal(got, want) {
		t.Errorf("answers: %q; want %q", got, want)
	}
	input = strings.TrimSuffix(input, "\n")
	if got := tell(serveAll(t, input, nil)); !slices.Equal(got, want) {
		t.Errorf("answers without an end of the last line: %q; want %q", got, want)
	}
	if got := serveAll(t, "", nil); len(got) != 0 {
		t.Errorf("an empty input is answered with %q, got %v, want 0", tell(got), len(got))
	}
}

func TestStdioAnswersInvalidMessagesAndContinues(t *testing.T) {
	for input, want := range map[string]string{
		"":       "",
		"  \t\r": "",
		"hello":  "null -32700",
		`{"jsonrpc":"2.0","id":1,"method":"tools/li`: "null -32700",
		"\xff\xfe\x00":             "null -32700",
		`"text"`:                   "null -32600",
		"17":                       "null -32600",
		"null":                     "null -32600",
		"{}":                       "null -32600",
		`{"jsonrpc":"2.0"}`:        "null -32600",
		`{"jsonrpc":"2.0","id":7}`: "7 -32600",
		`{"jsonrpc":"1.0","id":8,"method":"ping"}`:                                "8 -32600",
		`{"id":"a","method":"ping"}`:                                              `"a" -32600`,
		`{"jsonrpc":"2.0","id":9,"method":5}`:                                     "9 -32600",
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`:                             "null -32600",
		`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`:                              "null -32600",
		`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`:                 "null -32600",
		`{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}`:                          "null -32600",
		`{"jsonrpc":"2.0","id":true,"method":"ping"}`:                             "null -32600",
		`{"jsonrpc":"2.0","id":3,"method":"no/such"}`:                             "3 -32601",
		`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":[1,2]}`:           "4 -32602",
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"none"}}`: "5 -32602",
		`{"jsonrpc":"2.0","id":6,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
			`"clientInfo":{"name":"t","version":"1"}}}`: "6 -32600",
		`{"jsonrpc":"2.0","method":"no/such"}`:                         "", // a notification is never answered
		`{"jsonrpc":"2.0","id":99,"result":{}}`:                        "", // nor is an answer
		`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"?"}}`: "",
		`{"jsonrpc":"2.0","error":5}`:                                  "",
		`[]`:                                                           "null -32600",
		`[1`:                                                           "null -32700",
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`:                   "null -32600",
		`{"jsonrpc":"2.0","id":"é\u0000\"","method":"ping"}` + "\r": `"é\u0000\"" ok`,
	} {
		got := tell(serveAll(t, initialize("2025-11-25")+input+"\n"+callEcho(`"after"`), nil))
		expected := []string{`"init" ok`, `"after" ok`}
		if want != "" {
			expected = append(expected, want)
		}
		slices.Sort(expected)
		if !slices.Equal(got, expected) {
			t.Errorf("%q: answers %q; want %q", input, got, expected)
		}
	}
}

func TestStdioBeforeInitialize(t *testing.T) {
	got := tell(serveAll(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`+"\n"+
		`{"jsonrpc":"2.0","id":2,"method":"ping"}`+"\n", nil))
	if want := []string{"1 -32600", "2 ok"}; !slices.Equal(got, want) {
		t.Errorf("answers %q; want %q", got, want)
	}
}

func TestStdioSupportsTheRevisionWithoutInitialize(t *testing.T) {
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	got := serveAll(t, `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{`+meta+`}}`+"\n"+
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"say":"hi"},`+meta+`}}`+"\n", nil)
	if want := []string{"1 ok", "2 ok"}; !slices.Equal(tell(got), want) {
		t.Fatalf("answers %q; want %q", tell(got), want)
	}
	for _, a := range got {
		if string(a.ID) == "1" && !strings.Contains(string(a.Result), "2026-07-28") {
			t.Errorf(`server/discover does not offer 2026-07-28: %s, want "2026-07-28" in the result`, a.Result)
		}
	}
}

func TestStdioMessagesThatAreTooLongAreAnsweredUnderTheirID(t *testing.T) {
	const most = 100_000
	filling := strings.Repeat(`\"},{[`, most)
	for name, message := range map[string]string{
		"id first": `{"jsonrpc":"2.0","id":"long","method":"tools/call","params":{"id":5,"text":"` + filling + `"}}`,
		"id last": `{"method":"tools/call","params":{"text":"` + filling +
			`","a":[{"id":6}]},"jsonrpc":"2.0", "id" : "long" }`,
	} {
		input := initialize("2025-11-25") + message + "\n" + callEcho("2")
		got := serveAll(t, input, &mcpserver.StdioOptions{MaxMessage: most})
		if want := []string{`"init" ok`, `"long" -32600`, "2 ok"}; !slices.Equal(tell(got), want) {
			t.Errorf("%s: answers %q; want %q", name, tell(got), want)
		}
	}
	longest := callEcho("1")
	longest = strings.Replace(longest, "\n", strings.Repeat(" ", most-len(longest)+1)+"\r\n", 1)
	got := tell(serveAll(t, initialize("2025-11-25")+longest+" "+longest, &mcpserver.StdioOptions{MaxMessage: most}))
	if want := []string{`"init" ok`, "1 -32600", "1 ok"}; !slices.Equal(got, want) {
		t.Errorf("a message of the most bytes, and one of a byte more: %q; want %q", got, want)
	}
	if got := tell(serveAll(t, strings.Repeat("x", 2*most), &mcpserver.StdioOptions{MaxMessage: most})); !slices.Equal(got,
		[]string{"null -32600"}) {
		t.Errorf("an endless line that ends: %q, want %v", got, []string{"null -32600"})
	}
}

func TestStdioBatchesBelongToTheOldRevisions(t *testing.T) {
	batch := `[` + strings.TrimSpace(callEcho("1")) + `,{"jsonrpc":"2.0","method":"notifications/x"},` +
		strings.TrimSpace(callEcho("2")) + `,{"jsonrpc":"2.0","id":3}]` + "\n"
	for revision, want := range map[string][]string{
		"2024-11-05": {`"init" ok`, "1 ok", "2 ok", "3 -32600"},
		"2025-03-26": {`"init" ok`, "1 ok", "2 ok", "3 -32600"},
		"2025-06-18": {`"init" ok`, "null -32600"},
		"2025-11-25": {`"init" ok`, "null -32600"},
	} {
		server := newStdioServer()
		in, send := io.Pipe()
		var out bytes.Buffer
		ended := make(chan error, 1)
		receive, written := io.Pipe()
		go func() {
			ended <- mcpserver.ServeStdio(t.Context(), server.Server, in, io.MultiWriter(&out, written), nil)
			written.Close()
		}()
		// A client sends nothing before initialize is answered.
		go write(send, initialize(revision))
		first := make([]byte, 1)
		if _, err := receive.Read(first); err != nil {
			t.Fatal(err)
		}
		go discard(receive)
		write(send, batch)
		send.Close()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if got := tell(answers(t, out.String())); !slices.Equal(got, want) {
			t.Errorf("%s: answers %q; want %q", revision, got, want)
		}
		if lines := strings.Count(out.String(), "\n"); lines != 2 {
			t.Errorf("%s: %d lines; want 2, since a batch is answered by one", revision, lines)
		}
	}
}

// stdioClient is a client that writes and reads messages directly.
type stdioClient struct {
	in     *io.PipeWriter
	out    *io.PipeReader
	cancel context.CancelFunc
	ended  chan error
}

func startStdio(t *testing.T, server *stdioServer, options *mcpserver.StdioOptions) *stdioClient {
	t.Helper()
	in, send := io.Pipe()
	receive, out := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	c := &stdioClient{in: send, out: receive, cancel: cancel, ended: make(chan error, 1)}
	go func() {
		c.ended <- mcpserver.ServeStdio(ctx, server.Server, in, out, options)
		out.Close()
	}()
	t.Cleanup(func() { cancel(); send.Close(); receive.Close() })
	return c
}

// write writes for a client that may be gone; discard reads everything sent.
func write(to io.Writer, text string) { _, _ = io.WriteString(to, text) }

func discard(from io.Reader) { _, _ = io.Copy(io.Discard, from) }

func (c *stdioClient) send(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(c.in, text); err != nil {
		t.Fatal(err)
	}
}

func TestStdioFinishesRequestsWhenItStops(t *testing.T) {
	server := newStdioServer()
	c := startStdio(t, server, nil)
	var got bytes.Buffer
	read := make(chan struct{})
	go func() { defer close(read); _, _ = io.Copy(&got, c.out) }()
	c.send(t, initialize("2025-11-25")+callWait("1"))
	<-server.began
	c.cancel()
	close(server.release)
	if err := <-c.ended; err != nil {
		t.Fatal(err)
	}
	<-read
	if got, want := tell(answers(t, got.String())), []string{`"init" ok`, "1 ok"}; !slices.Equal(got, want) {
		t.Errorf("answers %q; want %q", got, want)
	}
}

func TestStdioGivesUpAfterItsGrace(t *testing.T) {
	for name, end := range map[string]func(*stdioClient){
		"the input ends":   func(c *stdioClient) { c.in.Close() },
		"the context ends": func(c *stdioClient) { c.cancel() },
	} {
		server := newStdioServer()
		c := startStdio(t, server, &mcpserver.StdioOptions{Grace: time.Millisecond})
		go discard(c.out)
		c.send(t, initialize("2025-11-25")+callWait("1"))
		<-server.began
		end(c)
		if err := <-c.ended; err == nil || !strings.Contains(err.Error(), "1 requests could not be answered") {
			t.Errorf("%s: error %v; want that one request could not be answered", name, err)
		}
		if what := <-server.began; what != "ended" {
			t.Errorf("%s: the abandoned request continues, got %v, want \"ended\"", name, what)
		}
	}
}

func TestStdioRefusesAnIDThatIsInUse(t *testing.T) {
	server := newStdioServer()
	c := startStdio(t, server, nil)
	lines := bufio.NewReader(c.out)
	next := func() string {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return answers(t, line)[0].failure()
	}
	go write(c.in, initialize("2025-11-25")+callWait("1"))
	begun := next()
	<-server.began
	go write(c.in, callEcho("1")+callEcho("2"))
	if got, want := []string{begun, next(), next()},
		[]string{`"init" ok`, "null -32600", "2 ok"}; !slices.Equal(got, want) {
		t.Errorf("answers %q; want %q", got, want)
	}
	close(server.release)
	if got := next(); got != "1 ok" {
		t.Errorf("the request that had the id first is answered with %q, want \"1 ok\"", got)
	}
	go write(c.in, callEcho("1"))
	if got := next(); got != "1 ok" {
		t.Errorf("an id that is free again is answered with %q, want \"1 ok\"", got)
	}
}

func TestStdioCancelledRequestsMakeRoom(t *testing.T) {
	server := newStdioServer()
	c := startStdio(t, server, &mcpserver.StdioOptions{MaxRequests: 2})
	go discard(c.out)
	c.send(t, initialize("2025-11-25"))
	for i := range 10 {
		c.send(t, callWait(fmt.Sprint(i)))
		<-server.began
		c.send(t, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`+"\n", i))
		if what := <-server.began; what != "ended" {
			t.Fatalf("request %d was cancelled, and %s follows; want \"ended\"", i, what)
		}
	}
	c.in.Close()
	if err := <-c.ended; err != nil {
		t.Fatal(err)
	}
}

func TestStdioClientThatNeverReadsIsNotReadFrom(t *testing.T) {
	const most = 4
	server := newStdioServer()
	c := startStdio(t, server, &mcpserver.StdioOptions{MaxRequests: most, Grace: time.Millisecond})
	go write(c.in, initialize("2025-11-25"))
	if line, err := bufio.NewReaderSize(c.out, 16).ReadString('\n'); err != nil ||
		answers(t, line)[0].failure() != `"init" ok` {
		t.Fatalf(`got %q, %v, want no error and failure "init" ok`, line, err)
	}
	const asked = 10_000
	var sent atomic.Int64
	go func() {
		for i := range asked {
			if _, err := io.WriteString(c.in, callEcho(fmt.Sprint(i))); err != nil {
				return
			}
			sent.Add(1)
		}
	}()
	// It reads until nothing moves. A pause is no proof, but any movement is a disproof.
	for before := int64(-1); before != sent.Load(); {
		before = sent.Load()
		time.Sleep(100 * time.Millisecond)
	}
	if n := sent.Load(); n > most+10 {
		t.Errorf("%d requests were read, and none could be answered; want about %d", n, most)
	}
	if n := server.calls.Load(); n > most {
		t.Errorf("%d requests were begun; want at most %d", n, most)
	}
	c.cancel()
	if err := <-c.ended; err == nil {
		t.Error("answers are lost, and nothing is said, want an error")
	}
}

func TestStdioReportsALostClient(t *testing.T) {
	server := newStdioServer()
	c := startStdio(t, server, nil)
	c.out.Close()
	go write(c.in, initialize("2025-11-25"))
	if err := <-c.ended; err == nil || !strings.Contains(err.Error(), "can no longer be reached") {
		t.Errorf("error %v; want that the client cannot be reached", err)
	}
}

func TestStdioReportsAFailingInput(t *testing.T) {
	in, send := io.Pipe()
	send.CloseWithError(fmt.Errorf("the disk is gone"))
	if err := mcpserver.ServeStdio(t.Context(), newStdioServer().Server, in, io.Discard, nil); err == nil ||
		!strings.Contains(err.Error(), "the disk is gone") {
		t.Errorf("error %v; want that of the input", err)
	}
}

func TestStdioWithTheSDKsClient(t *testing.T) {
	in, send := io.Pipe()
	receive, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- mcpserver.ServeStdio(t.Context(), newStdioServer().Server, in, out, nil) }()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: receive, Writer: send}, nil)
	if err != nil {
		t.Fatal(err)
	}
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"a": 1}})
	if err != nil || result.Content[0].(*mcp.TextContent).Text != `{"a":1}` {
		t.Errorf(`echo: %+v, %v, want no error and text {"a":1}`, result, err)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func FuzzStdioAlwaysAnswersInJSON(f *testing.F) {
	f.Add([]byte(callEcho("1") + "{}\n[]\nx"))
	f.Add([]byte(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"id":2}]`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}`))
	f.Fuzz(func(t *testing.T, input []byte) {
		if bytes.Contains(input, []byte("wait")) {
			return // it lasts until it is released
		}
		var out bytes.Buffer
		err := mcpserver.ServeStdio(t.Context(), newStdioServer().Server,
			bytes.NewReader(append([]byte(initialize("2025-03-26")), input...)), &out,
			&mcpserver.StdioOptions{MaxMessage: 1000})
		if err != nil {
			t.Fatal(err)
		}
		answers(t, out.String())
	})
}
