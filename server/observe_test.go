package server_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

// observed collects what a server reports.
type observed struct {
	mu       sync.Mutex
	requests []server.Answered
	calls    []server.Called
}

func (o *observed) options() server.Options {
	return server.Options{NoActivity: true, // which makes no difference here
		OnRequest: func(a server.Answered) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.requests = append(o.requests, a)
		},
		OnCall: func(c server.Called) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.calls = append(o.calls, c)
		}}
}

// last returns the latest reports, without durations.
func (o *observed) last(t *testing.T) (a server.Answered, c server.Called) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if n := len(o.requests); n > 0 {
		a = o.requests[n-1]
	}
	if n := len(o.calls); n > 0 {
		c = o.calls[n-1]
	}
	if a.Duration <= 0 {
		t.Errorf("a request took %v, want a while", a.Duration)
	}
	a.Duration, c.Duration = 0, 0
	return a, c
}

func TestRequestsAreObservedByRouteStatusAndRefusal(t *testing.T) {
	var o observed
	w := servertest.New(t, o.options())
	for _, c := range []struct {
		name, who, method, path, body string
		route                         string
		status                        int
		refusal                       server.Refusal
	}{
		{"a page of one file", servertest.Owner, "GET", "/api/files/" + w.File, "", "GET /api/files/{id}", 200, ""},
		{"without a credential", servertest.Guest, "GET", "/api/files", "", "GET /api/files", 401, server.RefusedCredential},
		{"an unknown path", servertest.Owner, "GET", "/api/olivia@example.com", "", "", 404, ""},
		{"an unknown method", servertest.Owner, "PATCH", "/health", "", "", 405, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.Do(c.who, c.method, c.path, c.body).Expect(c.status)
			got, _ := o.last(t)
			got.Bytes = 0
			if want := (server.Answered{Route: c.route, Status: c.status, Refusal: c.refusal}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestCallsOfToolsAreObservedOverRESTAndMCP(t *testing.T) {
	var o observed
	w := servertest.New(t, o.options())
	call := `{"name": "memory", "arguments": {"action": "search", "query": "tea"}}`
	w.Do(servertest.Owner, "POST", "/tools/call", call).Expect(http.StatusOK)
	if _, got := o.last(t); got != (server.Called{Tool: "memory", Action: "search", Outcome: souvenir.OutcomeOK}) {
		t.Errorf("over REST: got %+v, want a search", got)
	}
	w.Do(servertest.Owner, "POST", "/mcp", `{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": `+
		`"memory", "arguments": {"action": "get", "id": "olivia@example.com"}}}`).Expect(http.StatusOK)
	if _, got := o.last(t); got.Tool != "memory" || got.Outcome == souvenir.OutcomeOK {
		t.Errorf("over MCP: got %+v, want a failed call of memory", got)
	}
	w.Do(servertest.Owner, "POST", "/tools/call", `{"name": "olivia@example.com", "arguments": {}}`)
	if _, got := o.last(t); got != (server.Called{Outcome: "not_found"}) {
		t.Errorf("an unknown tool: got %+v, want not_found and no name", got)
	}
}

func TestAFailedSignInIsObserved(t *testing.T) {
	var o observed
	w := servertest.New(t, o.options())
	login(w.Browser(), "olivia", "wrong password")
	if got, _ := o.last(t); got.Refusal != server.RefusedSignIn {
		t.Errorf("got %+v, want the refusal %q", got, server.RefusedSignIn)
	}
}

func TestOnlyATrustedProxyNamesRequests(t *testing.T) {
	longtest.Only(t)
	for name, trusted := range map[string]bool{"127.0.0.0/8": true, "192.0.2.0/24": false} {
		w := servertest.New(t, server.Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix(name)}})
		r := w.Request(servertest.Guest, "GET", "/health", nil)
		r.Header.Set("X-Request-Id", "mine")
		if got := w.Send(r).Header.Get("X-Request-Id"); (got == "mine") != trusted || got == "" {
			t.Errorf("with the trusted proxies %s, the request has the id %q, want the given one: %v", name, got, trusted)
		}
	}
}

// Log entries of a hook or of the store have the id of their request, too.
func TestEveryLineOfARequestHasItsID(t *testing.T) {
	longtest.Only(t)
	var written bytes.Buffer
	log := slog.New(server.LogHandler(slog.NewTextHandler(&written, nil))).With("part", "hook").WithGroup("g")
	p := servertest.Template(t)
	w := servertest.Serve(t, p, p.Copy(t).Open(t, &souvenir.Options{Hooks: []souvenir.Hooks{{
		After: func(ctx context.Context, _ souvenir.Operation, _ souvenir.OperationResult) {
			log.InfoContext(ctx, "seen")
		},
	}}}), server.Options{})
	r := w.Request(servertest.Owner, "POST", "/tools/call",
		strings.NewReader(`{"name": "memory", "arguments": {"action": "search", "query": "tea"}}`))
	r.Header.Set("X-Request-Id", "request-7")
	r.Header.Set("Content-Type", "application/json")
	w.Send(r).Expect(http.StatusOK)
	if got := written.String(); !strings.Contains(got, "request_id=request-7") || strings.Count(got, "request_id") != 1 {
		t.Errorf("a hook logged %q, want the id of the request, once", got)
	}
}

func TestHealthTellsReadyFromAlive(t *testing.T) {
	w := servertest.New(t, server.Options{})
	w.Do(servertest.Guest, "GET", "/health/live", "").Expect(http.StatusOK, `{"status":"alive"}`)
	w.Do(servertest.Guest, "GET", "/health/ready", "").Expect(http.StatusOK, `{"status":"ready","problems":[]}`)
	if err := w.Store.Close(); err != nil {
		t.Fatal(err)
	}
	w.Do(servertest.Guest, "GET", "/health/live", "").Expect(http.StatusOK, `{"status":"alive"}`)
	w.Do(servertest.Guest, "GET", "/health/ready", "").Expect(http.StatusServiceUnavailable,
		"database_unreachable")
}

// An embedder's error may contain texts, addresses and keys.
func TestThePublicLearnsThatTheEmbedderIsDownAndNotWhy(t *testing.T) {
	p := servertest.Template(t)
	w := servertest.Serve(t, p, p.Copy(t).Open(t, &souvenir.Options{Embedder: souvenir.EmbedderFunc("own-1", 2,
		func(context.Context, souvenir.Purpose, []string) ([][]float32, error) {
			return nil, &souvenir.Error{Kind: souvenir.KindBusy, Message: "no answer of https://key:abc@embed.internal"}
		})}), server.Options{})
	for {
		if all, err := w.Store.Upkeep().Problems(t.Context()); err != nil || len(all) > 0 {
			if err != nil || !strings.Contains(all[0].Message, "embed.internal") {
				t.Fatalf("got %v, %v; want the cause for the operator", all, err)
			}
			break
		}
	}
	w.Do(servertest.Guest, "GET", "/health/ready", "").Expect(http.StatusOK,
		`{"status":"degraded","problems":["embedder_down"]}`)
	w.Do(servertest.Guest, "GET", "/health", "").Expect(http.StatusOK, `"status":"ok"`, `"problems":["embedder_down"]`).
		Without("internal")
}
