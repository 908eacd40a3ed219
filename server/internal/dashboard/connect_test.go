package dashboard_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

// twoClients are a client that accepts tokens and sign-ins, and one that accepts only sign-ins.
func twoClients(address, token string) []server.Snippet {
	all := []server.Snippet{{Client: "Kite & Co", Where: "a file", Text: "kite " + address + " with " + token}}
	if token == "" {
		all = append(all, server.Snippet{Client: "Cloud", Text: "cloud " + address})
	}
	return all
}

func TestConnectingAClientWithAToken(t *testing.T) {
	w := servertest.New(t, server.Options{Snippets: twoClients})
	b := w.SignedIn(servertest.Owner)
	p := b.Get("/connect").Expect(http.StatusOK, "Kite &amp; Co</bdi> by signing in", "Or with a token", "kite "+
		servertest.PublicAt+
		"/mcp with ", "Another client", "Waiting for the first call").Without("mcp_")
	servertest.CheckPage(w, p)
	servertest.CheckPage(w, b.Get("/connect?client=Cloud").Expect(http.StatusOK, "cloud "+servertest.PublicAt+
		"/mcp").Without("Create a token",
		"kite "))
	servertest.CheckPage(w, b.Get("/connect?client=Another+client").Expect(http.StatusOK, servertest.PublicAt+"/mcp",
		"Create a token").Without("kite "))
	b.Get("/connect?client=Unknown").Expect(http.StatusBadRequest, "Client is &#34;Unknown&#34;", "Kite")

	made := b.Submit(p, "/connect", nil).Expect(http.StatusOK, "Connect Kite &amp; Co", "kite "+servertest.PublicAt+
		"/mcp with mcp_",
		"Waiting for the first call").Without("Cloud")
	servertest.CheckPage(w, made)
	value := made.Code("kite")[len("kite "+servertest.PublicAt+"/mcp with "):]
	w.Tokens = map[string]string{"kite": value} // the log is searched for it in the end
	b.Get("/tokens").Expect(http.StatusOK, "Kite &amp; Co").Without(value)
	asks := htmxGet(t, made, "first-call")
	if strings.Contains(asks, value) {
		t.Errorf("the token is in the address %s, want no %q in it", asks, value)
	}
	if waits := part(b, asks, "first-call").Expect(http.StatusNoContent); waits.Body != "" {
		t.Errorf("before any call, it says %q; want none", waits.Body)
	}
	r := w.Request("kite", "GET", "/tools", nil)
	r.Header.Set("User-Agent", "Kite/2.1")
	w.Send(r)
	r = w.Request("kite", "POST", "/tools/call", strings.NewReader(`{"name":"list_collections"}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "Kite/2.1")
	w.Send(r).Expect(http.StatusOK)
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) { // a call is recorded after its answer
		mark := part(b, asks, "first-call")
		if mark.Status == http.StatusOK && strings.Contains(mark.Body, "Connected: <bdi>Kite</bdi>") {
			mark.Without("hx-get", "<html")
			break
		}
		if time.Since(began) > servertest.Soon {
			t.Fatalf("after %v: got %d %s, want the call shown", servertest.Soon, mark.Status, mark.Body)
		}
	}
	// Other users learn nothing from the id of the token.
	part(w.SignedIn(servertest.Stranger), asks, "first-call").Expect(http.StatusNotFound).Without("<bdi>Kite</bdi>")
}

func TestTokensForClientsMayBeForReadingOnly(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	b := w.SignedIn(servertest.Owner)
	p := b.Get("/connect").Expect(http.StatusOK, "Or with a token")
	made := b.Submit(p, "/connect", url.Values{"access": {"read"}}).Expect(http.StatusOK)
	w.Tokens = map[string]string{"made": made.Code("mcp_")}
	w.Do("made", "GET", "/api/files", "").Expect(http.StatusOK)
	a, _ := w.Call("made", "memory", `{"action":"store","content":"x"}`)
	a.Expect(http.StatusForbidden)
	b.Submit(p, "/connect", url.Values{"client": {"Unknown"}}).Expect(http.StatusBadRequest)
}

// If calls are not recorded, the page uses the time of the token's last use.
func TestConnectedMarkWithoutRecordedCalls(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{NoActivity: true})
	b := w.SignedIn(servertest.Owner)
	made := b.Submit(b.Get("/connect"), "/connect", nil).Expect(http.StatusOK)
	w.Tokens = map[string]string{"made": made.Code("mcp_")}
	asks := htmxGet(t, made, "first-call")
	part(b, asks, "first-call").Expect(http.StatusNoContent)
	w.Do("made", "GET", "/tools", "").Expect(http.StatusOK)
	w.Call("made", "list_collections", `{}`)
	part(b, asks, "first-call").Expect(http.StatusOK, "Connected").Without("hx-get")
}

// A client that signs in appears when it is authorized, and again when it calls.
func TestConnectedMarkOfAClientThatSignsIn(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{Snippets: twoClients})
	b := w.SignedIn(servertest.Owner)
	asks := htmxGet(t, b.Get("/connect?client=Cloud"), "first-call")
	part(b, asks, "first-call").Expect(http.StatusNoContent)
	access, _ := w.AccessTokenOf(servertest.Owner, "Cloud <b>", souvenir.Authorization{Scopes: souvenir.Scopes()})
	let := part(b, asks, "first-call").Expect(http.StatusOK, "<bdi>Cloud &lt;b&gt;</bdi> was allowed", "hx-get")
	asks = htmxGet(t, let, "first-call")
	part(b, asks, "first-call").Expect(http.StatusNoContent)
	r := w.Request(servertest.Guest, "POST", "/tools/call", strings.NewReader(`{"name":"list_collections"}`))
	r.Header.Set("Authorization", "Bearer "+access)
	r.Header.Set("Content-Type", "application/json")
	w.Send(r).Expect(http.StatusOK)
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if mark := part(b, asks, "first-call"); mark.Status == http.StatusOK {
			mark.Expect(http.StatusOK, "Connected: <bdi>").Without("hx-get")
			break
		}
		if time.Since(began) > servertest.Soon {
			t.Fatalf("after %v: got no call, want it seen", servertest.Soon)
		}
	}
	part(b, "/connect?since=yesterday", "first-call").Expect(http.StatusBadRequest, "RFC 3339")
}

// htmxGet returns the address that an element polls.
func htmxGet(t *testing.T, p *servertest.Page, id string) string {
	t.Helper()
	found := regexp.MustCompile(`<div id="` + id + `"[^>]* hx-get="([^"]*)"`).FindStringSubmatch(p.Body)
	if found == nil {
		t.Fatalf("got nothing with the id %s that asks for something, want it in %s", id, p.Body)
	}
	return strings.ReplaceAll(found[1], "&amp;", "&")
}
