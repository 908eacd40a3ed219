package authserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/emptystore"
	"github.com/souvenir-ai/souvenir/server/internal/netaddr"
	"github.com/souvenir-ai/souvenir/server/internal/ratelimit"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// documentHost serves clients' documents over TLS.
type documentHost struct {
	at    *httptest.Server
	asked atomic.Int64
	serve atomic.Value // holds an http.HandlerFunc
}

func newDocumentHost(t *testing.T) *documentHost {
	t.Helper()
	d := &documentHost{}
	d.at = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.asked.Add(1)
		d.serve.Load().(http.HandlerFunc)(w, r)
	}))
	t.Cleanup(d.at.Close)
	return d
}

// document returns the document of a client at a URL.
func document(url, more string) string {
	return `{"client_id": "` + url + `", "client_name": "Editor", "redirect_uris": ["http://127.0.0.1/callback"]` + more +
		`}`
}

// answers makes the host answer with a text.
func (d *documentHost) answers(status int, header map[string]string, text string) {
	d.serve.Store(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for name, value := range header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		fmt.Fprint(w, text)
	}))
}

func newDocumentServer(t *testing.T, client *http.Client) *Server {
	t.Helper()
	store, err := souvenir.Open(t.Context(), emptystore.Path(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return New(Options{Site: web.New(web.Options{PublicURL: "https://memory.example"}), Store: store,
		Logger: slog.New(slog.DiscardHandler), ClientDocuments: client})
}

// isInvalidClient checks the error that a user sees for an unusable client.
func isInvalidClient(t *testing.T, err error, has string) {
	t.Helper()
	var clientError *souvenir.OAuthError
	if !errors.As(err, &clientError) || clientError.Code != souvenir.OAuthInvalidClient ||
		!strings.HasPrefix(err.Error(), "Invalid client") || !strings.Contains(err.Error(), has) {
		t.Errorf("got %v, want %v and %q in the error", err, souvenir.OAuthInvalidClient, has)
	}
}

func TestADocumentMakesAClient(t *testing.T) {
	host := newDocumentHost(t)
	s := newDocumentServer(t, host.at.Client())
	id := host.at.URL + "/client.json"
	host.answers(200, map[string]string{"Content-Type": "application/json; charset=utf-8",
		"Cache-Control": "max-age=7200"}, document(id, ""))
	for range 3 {
		c, err := s.client(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		left := time.Until(c.ExpiresAt)
		if c.ID != id || c.Kind != souvenir.ClientDocument || c.Metadata.ClientName != "Editor" ||
			c.Metadata.TokenEndpointAuthMethod != souvenir.AuthNone || left > 2*time.Hour || left < 119*time.Minute {
			t.Errorf("got %+v, want the document's client for two hours", c)
		}
	}
	if n := host.asked.Load(); n != 1 {
		t.Errorf("it was fetched %d times, want 1", n)
	}
	// Once it has expired, the new document counts.
	if _, err := s.store.Accounts().PutDocumentClient(t.Context(),
		souvenir.DocumentClient{URL: id, ExpiresAt: time.Now().Add(-time.Second),
			Registration: souvenir.ClientRegistration{ClientName: "Old",
				RedirectURIs: []string{"https://old.example/a"}}}); err != nil {
		t.Fatal(err)
	}
	if c, err := s.client(t.Context(), id); err != nil || c.Metadata.ClientName != "Editor" {
		t.Errorf("%+v %v, want clientName \"Editor\"", c, err)
	}
	if err := s.store.Accounts().DeactivateClient(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	_, err := s.client(t.Context(), id)
	isInvalidClient(t, err, "deactivated")
	if n := host.asked.Load(); n != 2 {
		t.Errorf("it was fetched %d times, want 2", n)
	}
}

func TestClientIDsThatAreNotDocuments(t *testing.T) {
	host := newDocumentHost(t)
	host.answers(200, nil, "{}")
	s := newDocumentServer(t, host.at.Client())
	registered, err := s.store.Accounts().RegisterClient(t.Context(),
		souvenir.ClientRegistration{RedirectURIs: []string{"https://a.example/b"}})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := s.client(t.Context(), registered.ID); err != nil || c.ID != registered.ID {
		t.Errorf("%+v %v, want ID %v", c, err, registered.ID)
	}
	for _, id := range []string{
		"", "unknown", "http://" + strings.TrimPrefix(host.at.URL, "https://") + "/a", host.at.URL, host.at.URL + "/",
		host.at.URL + "/a?b", host.at.URL + "/a#b", host.at.URL + "/a/../b",
		strings.Replace(host.at.URL, "https://", "https://user:pass@", 1) + "/a", "HTTPS" +
			strings.TrimPrefix(host.at.URL, "https") + "/a", "https://", "https://[::1", "file:///etc/passwd",
	} {
		_, err := s.client(t.Context(), id)
		isInvalidClient(t, err, "")
	}
	if n := host.asked.Load(); n != 0 {
		t.Errorf("%d requests were sent, want 0", n)
	}
}

// An invalid document makes no client, and is not fetched again at once.
func TestRefusedClientDocuments(t *testing.T) {
	host := newDocumentHost(t)
	for name, c := range map[string]struct {
		status int
		header map[string]string
		text   func(id string) string
		has    string
	}{
		"not found": {404, nil, func(id string) string { return document(id, "") }, "status 404"},
		"a redirect": {302, map[string]string{"Location": "/other"},
			func(id string) string { return document(id, "") }, "status 302"},
		"no content": {204, nil, func(string) string { return "" }, "status 204"},
		"HTML": {200, map[string]string{"Content-Type": "text/html"},
			func(id string) string { return document(id, "") }, "Content-Type"},
		"no type": {200, map[string]string{"Content-Type": ""},
			func(id string) string { return document(id, "") }, "Content-Type"},
		"no JSON":      {200, nil, func(string) string { return "client_id" }, "not JSON"},
		"a list":       {200, nil, func(string) string { return "[]" }, "JSON object"},
		"nothing":      {200, nil, func(string) string { return "" }, "not JSON"},
		"a wrong type": {200, nil, func(id string) string { return document(id, `, "scope": 7`) }, "scope"},
		"another's id": {200, nil, func(id string) string { return document(id+"x", "") }, "client_id"},
		"no id": {200, nil,
			func(string) string { return `{"client_name": "a", "redirect_uris": ["https://a.example/b"]}` }, "client_id"},
		"no name": {200, nil,
			func(id string) string { return `{"client_id": "` + id + `", "redirect_uris": ["https://a.example/b"]}` },
			"client_name"},
		"no redirects": {200, nil,
			func(id string) string { return `{"client_id": "` + id + `", "client_name": "a"}` }, "redirect_uri"},
		"a bad redirect": {200, nil,
			func(id string) string { return strings.Replace(document(id, ""), "http://127.0.0.1", "javascript:", 1) },
			"redirect_uri"},
		"a secret": {200, nil,
			func(id string) string { return document(id, `, "token_endpoint_auth_method": "client_secret_post"`) },
			"token_endpoint_auth_method"},
		"more than is read": {200, nil,
			func(id string) string { return document(id, `, "x": "`+strings.Repeat("x", maxDocument)+`"`) },
			"longer than 65536 bytes"},
		"more than is kept": {200, nil,
			func(id string) string { return document(id, `, "x": "`+strings.Repeat("x", 20<<10)+`"`) }, "16384"},
		"a name of two rows": {200, nil,
			func(id string) string { return strings.Replace(document(id, ""), "Editor", `a\nb`, 1) }, "client_name"},
		"a list that is broken": {200, map[string]string{"Content-Length": "10000"},
			func(id string) string { return document(id, "") }, "cannot be reached"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newDocumentServer(t, host.at.Client())
			id := host.at.URL + "/" + strings.ReplaceAll(name, " ", "-")
			host.answers(c.status, c.header, c.text(id))
			before := host.asked.Load()
			for range 3 {
				_, err := s.client(t.Context(), id)
				isInvalidClient(t, err, c.has)
			}
			if n := host.asked.Load() - before; n != 1 {
				t.Errorf("it was asked for %d times, want 1", n)
			}
			if _, err := s.store.Accounts().GetClient(t.Context(), id); !errors.Is(err, souvenir.ErrNotFound) {
				t.Errorf("a client was stored: %v, want souvenir.ErrNotFound", err)
			}
		})
	}
}

// Visitors who make the server fetch documents learn nothing about this machine: neither an answer nor which ports are
// open.
func TestDocumentsInPrivateNetworksAreNotFetched(t *testing.T) {
	host := newDocumentHost(t)
	host.answers(200, nil, "{}")
	_, port, err := net.SplitHostPort(host.at.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s := newDocumentServer(t, nil)
	s.documents.addresses, s.documents.hosts = ratelimit.New(1000, time.Second), ratelimit.New(1000, time.Second)
	var clientError []string
	for _, name := range []string{
		"127.0.0.1", "localhost", "127.1.2.3", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]", "10.0.0.1",
		"169.254.169.254", "192.168.1.1", "172.16.0.1", "100.64.0.1",
		"[fe80::1]", "[fd00::1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "255.255.255.255", "224.0.0.1", "2130706433",
		"0x7f.1", "0177.0.0.1",
	} {
		began := time.Now()
		id := "https://" + name + ":" + port + "/client.json"
		_, err := s.client(t.Context(), id)
		isInvalidClient(t, err, "")
		if errors.Is(err, souvenir.ErrUnauthenticated) {
			clientError = append(clientError, strings.ReplaceAll(err.Error(), name, "HOST"))
		}
		if took := time.Since(began); took > 2*documentTimeout {
			t.Errorf("%s took %v, want at most %v", name, took, 2*documentTimeout)
		}
	}
	if n := host.asked.Load(); n != 0 {
		t.Errorf("%d requests arrived, want 0", n)
	}
	for _, text := range clientError {
		if text != clientError[0] {
			t.Errorf("the answers %q and %q differ, want the same", clientError[0], text)
		}
	}
	// The check of the connection itself, for any URL.
	for _, name := range []string{"127.0.0.1", "localhost"} {
		response, err := (&http.Client{Transport: netaddr.PublicTransport()}).Get("https://" + name + ":" + port)
		if err == nil {
			response.Body.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "is not public") {
			t.Errorf(`%s: got %v, want an error and "is not public" in the error`, name, err)
		}
	}
}

// If many need the same document at the same time, it is fetched once, even if the first of them goes away.
func TestDocumentsAreFetchedOnceForAll(t *testing.T) {
	host := newDocumentHost(t)
	s := newDocumentServer(t, host.at.Client())
	id := host.at.URL + "/client.json"
	began, release := make(chan struct{}, 100), make(chan struct{})
	host.serve.Store(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		began <- struct{}{}
		<-release
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, document(id, ""))
	}))
	gone, leave := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { s.client(gone, id) }) //nolint:errcheck // no caller waits for it
	<-began
	leave()
	impatient, stop := context.WithCancel(t.Context())
	stop()
	if _, err := s.client(impatient, id); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that cannot wait: got %v, want context.Canceled", err)
	}
	for range 5 {
		all.Go(func() {
			if c, err := s.client(t.Context(), id); err != nil || c.ID != id {
				t.Errorf("%+v %v, want ID %v", c, err, id)
			}
		})
	}
	close(release)
	all.Wait()
	// A slow caller that looked before the document was stored finds no fetch in progress.
	if c, err := s.fetchClient(t.Context(), id, false); err != nil || c.ID != id {
		t.Errorf("%+v %v, want ID %v", c, err, id)
	}
	if n := host.asked.Load(); n != 1 {
		t.Errorf("it was fetched %d times, want 1", n)
	}
}

// Neither one address nor one host can cause unlimited fetches.
func TestFetchesAreLimited(t *testing.T) {
	host := newDocumentHost(t)
	s := newDocumentServer(t, host.at.Client())
	host.answers(404, nil, "")
	from := func(address string) context.Context {
		return request.With(t.Context(), &request.State{Address: netip.MustParseAddr(address)})
	}
	for i := range documentsBurst {
		_, err := s.client(from("198.51.100.1"), fmt.Sprintf("%s/%d", host.at.URL, i))
		isInvalidClient(t, err, "status 404")
	}
	for name, ctx := range map[string]context.Context{"the address": from("198.51.100.1"),
		"the host": from("198.51.100.2")} {
		_, err := s.client(ctx, host.at.URL+"/more")
		isInvalidClient(t, err, "try again in a minute")
		if n := host.asked.Load(); n != documentsBurst {
			t.Errorf("%s: it was asked %d times, want %v", name, n, documentsBurst)
		}
	}
	// The document of a client that users already know is still fetched when due.
	known := host.at.URL + "/known"
	if _, err := s.store.Accounts().PutDocumentClient(t.Context(),
		souvenir.DocumentClient{URL: known, Registration: souvenir.ClientRegistration{
			ClientName: "Editor", RedirectURIs: []string{"http://127.0.0.1/callback"}}}); err != nil {
		t.Fatal(err)
	}
	host.answers(200, nil, document(known, ""))
	if c, err := s.client(from("198.51.100.3"), known); err != nil || c.ID != known {
		t.Errorf("a known client: %+v %v, want ID %v", c, err, known)
	}
	host.answers(404, nil, "")
	s.documents.addresses, s.documents.hosts = ratelimit.New(1000, time.Second), ratelimit.New(1000, time.Second)
	for range documentsAtAll {
		s.documents.slots <- struct{}{}
	}
	_, err := s.client(t.Context(), host.at.URL+"/again")
	isInvalidClient(t, err, "try again in a minute")
	<-s.documents.slots
	_, err = s.client(t.Context(), host.at.URL+"/again")
	isInvalidClient(t, err, "status 404")
	if len(s.documents.slots) != documentsAtAll-1 {
		t.Errorf("%d slots are taken, want %v", len(s.documents.slots), documentsAtAll-1)
	}
}

func TestLifeOfDocuments(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		header map[string]string
		want   time.Duration
	}{
		"nothing said":       {nil, time.Hour},
		"max-age":            {map[string]string{"Cache-Control": "public, max-age=7200"}, 2 * time.Hour},
		"max-age and age":    {map[string]string{"Cache-Control": "max-age=7200", "Age": "3600"}, time.Hour},
		"too long":           {map[string]string{"Cache-Control": "max-age=31536000"}, 24 * time.Hour},
		"too short":          {map[string]string{"Cache-Control": "max-age=1"}, 5 * time.Minute},
		"negative":           {map[string]string{"Cache-Control": "max-age=-1"}, 5 * time.Minute},
		"no-store":           {map[string]string{"Cache-Control": "no-store, max-age=7200"}, 5 * time.Minute},
		"no-cache":           {map[string]string{"Cache-Control": "max-age=7200, No-Cache"}, 5 * time.Minute},
		"nonsense":           {map[string]string{"Cache-Control": "max-age=soon"}, 5 * time.Minute},
		"past all numbers":   {map[string]string{"Cache-Control": "max-age=99999999999999999999"}, 5 * time.Minute},
		"expires":            {map[string]string{"Expires": "Sat, 21 Nov 2026 15:00:00 GMT"}, 3 * time.Hour},
		"expired":            {map[string]string{"Expires": "Sat, 21 Nov 2020 15:00:00 GMT"}, 5 * time.Minute},
		"expires 0":          {map[string]string{"Expires": "0"}, 5 * time.Minute},
		"max-age over it":    {map[string]string{"Expires": "0", "Cache-Control": "max-age=7200"}, 2 * time.Hour},
		"quoted":             {map[string]string{"Cache-Control": `max-age="7200"`}, 2 * time.Hour},
		"private is nothing": {map[string]string{"Cache-Control": "private"}, time.Hour},
	} {
		h := http.Header{}
		for name, value := range c.header {
			h.Set(name, value)
		}
		if got := documentLife(h, now); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
