package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
)

// visitor uses the application from outside.
type visitor struct {
	t              *testing.T
	url            string
	name, password string
	header         http.Header
}

func (v visitor) ask(method, path, body string) (int, string) {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), method, v.url+path, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	for name, values := range v.header {
		r.Header[name] = values
	}
	r.Header.Set("Content-Type", "application/json")
	if v.name != "" {
		r.SetBasicAuth(v.name, v.password)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return answer.StatusCode, string(content)
}

func (v visitor) call(arguments string) (int, string) {
	return v.ask("POST", "/memory/tools/call", `{"name": "memory", "arguments": `+arguments+`}`)
}

func start(t *testing.T) (*souvenir.Store, string) {
	t.Helper()
	store, err := souvenir.Open(t.Context(), filepath.Join(t.TempDir(), "application.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	s := httptest.NewServer(newApplication(store))
	t.Cleanup(s.Close)
	return store, s.URL
}

func TestUsersOfTheApplicationHaveMemoriesOfTheirOwn(t *testing.T) {
	_, url := start(t)
	anna, ben := visitor{t: t, url: url, name: "anna", password: "tulip"},
		visitor{t: t, url: url, name: "ben", password: "clover"}
	if status, body := anna.call(`{"action": "store", "content": "Tea is at four."}`); status != http.StatusOK {
		t.Fatalf("store: %d %s; want %v", status, body, http.StatusOK)
	}
	if status, body := anna.call(`{"action": "search", "query": "when is tea?"}`); status != http.StatusOK ||
		!strings.Contains(body, "Tea is at four.") {
		t.Errorf(`anna finds %d %s, want status %v and "Tea is at four." in the body`, status, body, http.StatusOK)
	}
	if status, body := ben.call(`{"action": "search", "query": "when is tea?"}`); status != http.StatusOK ||
		strings.Contains(body, "Tea is at four.") {
		t.Errorf(`ben finds %d %s, want status %v and no "Tea is at four." in the body`, status, body, http.StatusOK)
	}
	if status, body := anna.ask("GET", "/", ""); status != http.StatusOK || !strings.Contains(body, "1 memories") ||
		!strings.Contains(body, "Tea is at four.") {
		t.Errorf(`the application's own page: %d %s, want status %v, "1 memories" and "Tea is at four." in the body`,
			status, body, http.StatusOK)
	}
	if status, body := anna.ask("GET", "/memory/health", ""); status != http.StatusOK || !strings.Contains(body, "ok") {
		t.Errorf(`/memory/health: %d %s, want status %v and "ok" in the body`, status, body, http.StatusOK)
	}
}

func TestTheApplicationsSignInProtectsTheMemory(t *testing.T) {
	store, url := start(t)
	added, err := store.Accounts().AddUser(t.Context(), souvenir.NewUser{Name: "zoe"})
	if err != nil {
		t.Fatal(err)
	}
	token, err := store.Accounts().AddToken(t.Context(), souvenir.NewToken{User: added.ID, Name: "zoe's own"})
	if err != nil {
		t.Fatal(err)
	}
	foreign := http.Header{"X-Mcp-Token": {token.Value}, "Cookie": {"auth_token=" + token.Value}}
	for _, v := range []visitor{
		{t: t, url: url},
		{t: t, url: url, name: "anna", password: "wrong"},
		{t: t, url: url, name: "zoe"},
		{t: t, url: url, header: http.Header{"Authorization": {"Bearer " + token.Value}}},
		{t: t, url: url, header: foreign},
	} {
		if status, body := v.call(`{"action": "search"}`); status != http.StatusUnauthorized ||
			!strings.Contains(body, "sign in first") {
			t.Errorf(`%+v gets %d %s, want status %v and "sign in first" in the body`, v, status, body, http.StatusUnauthorized)
		}
	}
	anna := visitor{t: t, url: url, name: "anna", password: "tulip", header: foreign}
	if status, body := anna.ask("GET", "/memory/api/owner-ids/me?token="+token.Value, ""); status != http.StatusOK ||
		!strings.Contains(body, `"owner_id":"anna"`) {
		t.Errorf(`anna with a token of zoe's is %d %s, want status %v and "owner_id":"anna" in the body`, status, body,
			http.StatusOK)
	}
}

func TestItServesUntilItsContextEnds(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, filepath.Join(t.TempDir(), "application.db"), listener) }()
	anna := visitor{t: t, url: "http://" + listener.Addr().String(), name: "anna", password: "tulip"}
	if status, body := anna.ask("GET", "/", ""); status != http.StatusOK {
		t.Errorf("%d %s; want %v", status, body, http.StatusOK)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
