package server_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

// slowModel is an embedder that blocks, for texts that ask for it, until the test releases it.
type slowModel struct {
	souvenir.Embedder
	began chan struct{}
	goOn  chan struct{}
}

func newSlowModel() slowModel {
	return slowModel{souvenir.Builtin(), make(chan struct{}, 1000), make(chan struct{})}
}

func (m slowModel) Model() string { return "slow" }

func (m slowModel) Embed(ctx context.Context, purpose souvenir.Purpose, texts []string) ([][]float32, error) {
	if purpose == souvenir.ForQuery && strings.Contains(texts[0], "slowly") {
		m.began <- struct{}{}
		select {
		case <-m.goOn:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return m.Embedder.Embed(ctx, purpose, texts)
}

// busyWorld is a world with a blocking model, and limits that a test can reach.
func busyWorld(t *testing.T, m slowModel) *servertest.World {
	t.Helper()
	p := servertest.Template(t)
	store := servertest.Empty(t).Open(t, &souvenir.Options{Embedder: m})
	own := servertest.Plan{Tokens: map[string]string{}, TokenIDs: map[string]string{}, Users: map[string]string{}}
	if err := own.Fill(store); err != nil {
		t.Fatal(err)
	}
	own.Tokens[servertest.Garbage] = p.Tokens[servertest.Garbage]
	return servertest.Serve(t, own, store, server.Options{MaxRunning: 2, QueuePerUser: 3,
		QueueWait: 200 * time.Millisecond})
}

// A user with the maximum number of calls, running and queued, is refused more, in the form of each transport. Other
// users are not affected.
func TestOneUserFillsOnlyTheirOwnLine(t *testing.T) {
	longtest.Only(t)
	m := newSlowModel()
	w := busyWorld(t, m)
	w.Doc = nil // it is not safe for several goroutines
	const search = `{"name": "memory", "arguments": {"action": "search", "query": "slowly"}}`
	var group sync.WaitGroup
	call := func() { group.Go(func() { w.Do(servertest.Stranger, "POST", "/tools/call", search) }) }
	// Calls that wait for the model use no processor, so more of them may have started.
	for range server.BegunPerUser {
		call()
		<-m.began
	}
	a := w.Do(servertest.Stranger, "POST", "/tools/call", search) // waits briefly
	a.Expect(http.StatusServiceUnavailable, "the call has waited for its turn for 200ms", "try again in 1 s",
		`"isError":true`)
	if a.Header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After is %q, want \"1\"", a.Header.Get("Retry-After"))
	}
	w.Do(servertest.Stranger, "GET", "/api/projects", "").Expect(http.StatusServiceUnavailable)
	w.Do(servertest.Stranger, "POST", "/mcp", `{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": `+search+`}`).
		Expect(http.StatusOK, `"id":7`, `"isError":true`, "Error: the server is busy", "try again in 1 s")
	w.Do(servertest.Stranger, "POST", "/mcp",
		`{"jsonrpc": "2.0", "id": 8, "method": "resources/list"}`).Expect(http.StatusServiceUnavailable, `"id":8`,
		`"error":{`)
	w.Do(servertest.Stranger, "POST", "/mcp", `{"jsonrpc": "2.0", "id": 9, "method": "ping"}`).Expect(http.StatusOK,
		`"result":{}`)
	w.Do(servertest.Owner, "GET", "/api/projects", "").Expect(http.StatusOK, "shop")
	w.Call(servertest.Owner, "memory", `{"action": "search", "query": "when does the shop open"}`)
	w.SignedIn(servertest.Owner).Get("/memories").Expect(http.StatusOK)
	w.Do(servertest.Guest, "GET", "/health", "").Expect(http.StatusOK)
	close(m.goOn)
	group.Wait()
	w.Do(servertest.Stranger, "GET", "/api/projects", "").Expect(http.StatusOK)
}

// If a queue is full, a call is refused at once.
func TestFullLane(t *testing.T) {
	m := newSlowModel()
	w := busyWorld(t, m)
	w.Doc = nil
	const search = `{"name": "memory", "arguments": {"action": "search", "query": "slowly"}}`
	var group sync.WaitGroup
	var mu sync.Mutex
	reasons := map[string]int{}
	call := func() {
		group.Go(func() {
			a := w.Do(servertest.Stranger, "POST", "/tools/call", search)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case a.Status == http.StatusOK:
				reasons["answered"]++
			case strings.Contains(a.Body, "3 of your calls are already waiting"):
				reasons["full"]++
			case strings.Contains(a.Body, "waited for its turn"):
				reasons["waited"]++
			default:
				reasons[fmt.Sprint(a.Status, a.Body)]++
			}
		})
	}
	for range server.BegunPerUser {
		call()
		<-m.began
	}
	for range 20 {
		call()
	}
	for {
		mu.Lock()
		over := reasons["full"]+reasons["waited"] == 20
		mu.Unlock()
		if over {
			break
		}
		time.Sleep(time.Millisecond)
	}
	close(m.goOn)
	group.Wait()
	if reasons["answered"] != server.BegunPerUser {
		t.Errorf("calls ended as %v, want %v", reasons, server.BegunPerUser)
	}
}

// If many requests with one credential arrive before it is checked, requests with others do not wait behind them.
// Refusals do not fill the log.
func TestOneCredentialDoesNotHoldUpOthers(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{MaxRunning: 2, QueueWait: 50 * time.Millisecond})
	b := w.SignedIn(servertest.Owner)
	leave := server.HoldDoor(w.Server, w.Tokens[servertest.Owner])
	a := w.Do(servertest.Owner, "GET", "/api/projects", "").Expect(http.StatusServiceUnavailable,
		"waited for its turn for 50ms")
	if a.Header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After is %q, want \"1\"", a.Header.Get("Retry-After"))
	}
	w.Do(servertest.Stranger, "GET", "/api/projects", "").Expect(http.StatusOK)
	b.Get("/memories").Expect(http.StatusOK) // another credential of the same user
	leave()
	w.Do(servertest.Owner, "GET", "/api/projects", "").Expect(http.StatusOK)
	leave = server.HoldDoor(w.Server, b.Cookie("auth_token"))
	b.Get("/memories").Expect(http.StatusServiceUnavailable)
	w.Do(servertest.Owner, "GET", "/api/projects", "").Expect(http.StatusOK)
	leave()
	b.Get("/memories").Expect(http.StatusOK)
	if strings.Contains(w.Log.String(), "could not be answered") {
		t.Errorf("a refusal is logged as a fault, want no \"could not be answered\" in the log:\n%s", w.Log.String())
	}
}

// Stalled uploads and unread downloads do not hold a place.
func TestStreamsHoldNoPlace(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{MaxRunning: 1, QueueWait: time.Second})
	w.Doc = nil
	large := w.FileOf(servertest.Owner, souvenir.NewFile{Filename: "large.bin"}, strings.Repeat("0123456789abcdef", 1<<20))
	for range 5 {
		body, kind := silentForm()
		r := w.Request(servertest.Owner, http.MethodPost, "/api/files/upload", body)
		r.Header.Set("Content-Type", kind)
		go func() {
			if answer, err := w.HTTP.Client().Do(r); err == nil {
				_ = answer.Body.Close()
			}
		}()
		t.Cleanup(func() { _ = body.Close() })
		answer, err := w.HTTP.Client().Do(w.Request(servertest.Owner, http.MethodGet, "/api/files/"+large.ID, nil))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = answer.Body.Close() }) // its body is not read
	}
	for range 20 {
		w.Do(servertest.Owner, "GET", "/api/projects", "").Expect(http.StatusOK)
	}
}

// silentForm returns a form whose file begins and then stalls.
func silentForm() (body *silence, kind string) {
	s := &silence{closed: make(chan struct{})}
	s.begin = strings.NewReader("--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nbegin")
	return s, "multipart/form-data; boundary=x"
}

type silence struct {
	begin  *strings.Reader
	once   sync.Once
	closed chan struct{}
}

func (s *silence) Read(p []byte) (int, error) {
	if n, err := s.begin.Read(p); err == nil {
		return n, nil
	}
	<-s.closed
	return 0, context.Canceled
}

func (s *silence) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// If a credential is revoked during a batch, the rest of the batch is refused, too.
func TestARevokedTokenEndsItsBatch(t *testing.T) {
	m := newSlowModel()
	w := busyWorld(t, m)
	w.Doc = nil
	call := func(id int, arguments string) string {
		return fmt.Sprintf(
			`{"jsonrpc": "2.0", "id": %d, "method": "tools/call", "params": {"name": "memory", "arguments": %s}}`,
			id, arguments)
	}
	var group sync.WaitGroup
	group.Go(func() {
		a := postMessage(w, servertest.Owner, "2025-03-26", "["+call(1, `{"action": "search", "query": "slowly"}`)+","+
			call(2, `{"action": "store", "content": "too late"}`)+"]")
		if !strings.Contains(a.Body, `"id":1,"result"`) || !strings.Contains(a.Body, "no longer valid") {
			t.Errorf(`the batch is answered with %d %s, want "id":1,"result" in the body and "no longer valid" in the body`,
				a.Status, a.Body)
		}
	})
	<-m.began
	view := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]})
	if err := view.Accounts().RevokeToken(t.Context(), w.TokenIDs[servertest.Owner]); err != nil {
		t.Error(err)
	}
	close(m.goOn)
	group.Wait()
	found, err := view.Search(t.Context(), souvenir.Query{Text: "too late"})
	for _, hit := range found.Hits {
		if hit.Content == "too late" || err != nil {
			t.Errorf(`it was stored after the token had ended: %v, want content other than "too late" and no error`, err)
		}
	}
}
