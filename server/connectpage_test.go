package server_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// twoClients are one that takes tokens and lets people sign in, and one that knows the latter only.
func twoClients(address, token string) []server.Snippet {
	all := []server.Snippet{{Client: "Kite & Co", Where: "a file", Text: "kite " + address + " with " + token}}
	if token == "" {
		all = append(all, server.Snippet{Client: "Cloud", Text: "cloud " + address})
	}
	return all
}

func TestConnectingAClientWithAToken(t *testing.T) {
	w := newWorld(t, server.Options{Snippets: twoClients})
	b := w.signedIn(owner)
	p := b.get("/connect").expect(http.StatusOK, "Kite &amp; Co</bdi> with a token", "Or by signing in", "kite "+publicAt+
		"/mcp with ", "Another client", "Waiting for the first call").without("mcp_")
	checkPage(w, p)
	checkPage(w, b.get("/connect?client=Cloud").expect(http.StatusOK, "cloud "+publicAt+"/mcp").without("Create a token",
		"kite "))
	checkPage(w, b.get("/connect?client=Another+client").expect(http.StatusOK, publicAt+"/mcp",
		"Create a token").without("kite "))
	b.get("/connect?client=Unknown").expect(http.StatusBadRequest, "Client is &#34;Unknown&#34;", "Kite")

	made := b.submit(p, "/connect", nil).expect(http.StatusOK, "Connect Kite &amp; Co", "kite "+publicAt+"/mcp with mcp_",
		"Waiting for the first call").without("Cloud")
	checkPage(w, made)
	value := made.code("kite")[len("kite "+publicAt+"/mcp with "):]
	w.tokens = map[string]string{"kite": value} // the log is searched for it in the end
	b.get("/tokens").expect(http.StatusOK, "Kite &amp; Co").without(value)
	asks := htmxGet(t, made, "first-call")
	if strings.Contains(asks, value) {
		t.Errorf("the token is in the address %s", asks)
	}
	if waits := b.part(asks, "first-call").expect(http.StatusNoContent); waits.body != "" {
		t.Errorf("before any call, it says %q; want none", waits.body)
	}
	r := w.request("kite", "GET", "/tools", nil)
	r.Header.Set("User-Agent", "Kite/2.1")
	w.send(r)
	r = w.request("kite", "POST", "/tools/call", strings.NewReader(`{"name":"list_collections"}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "Kite/2.1")
	w.send(r).expect(http.StatusOK)
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) { // a call is recorded when it has been answered
		mark := b.part(asks, "first-call")
		if mark.status == http.StatusOK && strings.Contains(mark.body, "Connected: <bdi>Kite/2.1</bdi>") {
			mark.without("hx-get", "<html")
			break
		}
		if time.Since(began) > soon {
			t.Fatalf("%d %s", mark.status, mark.body)
		}
	}
	// Others learn nothing by the id of the token.
	w.signedIn(stranger).part(asks, "first-call").expect(http.StatusNotFound).without("Kite/2.1")
}

func TestTokensForClientsMayBeForReadingOnly(t *testing.T) {
	w := newWorld(t, server.Options{})
	b := w.signedIn(owner)
	p := b.get("/connect").expect(http.StatusOK, "With a token")
	made := b.submit(p, "/connect", url.Values{"access": {"read"}}).expect(http.StatusOK)
	w.tokens = map[string]string{"made": made.code("mcp_")}
	w.do("made", "GET", "/api/files", "").expect(http.StatusOK)
	a, _ := w.call("made", "memory", `{"action":"store","content":"x"}`)
	a.expect(http.StatusForbidden)
	b.submit(p, "/connect", url.Values{"client": {"Unknown"}}).expect(http.StatusBadRequest)
}

// Where calls are not recorded, the page uses the time of the token's last use.
func TestConnectedMarkWithoutRecordedCalls(t *testing.T) {
	w := newWorld(t, server.Options{NoActivity: true})
	b := w.signedIn(owner)
	made := b.submit(b.get("/connect"), "/connect", nil).expect(http.StatusOK)
	w.tokens = map[string]string{"made": made.code("mcp_")}
	asks := htmxGet(t, made, "first-call")
	b.part(asks, "first-call").expect(http.StatusNoContent)
	w.do("made", "GET", "/tools", "").expect(http.StatusOK)
	w.call("made", "list_collections", `{}`)
	b.part(asks, "first-call").expect(http.StatusOK, "Connected").without("hx-get")
}

// A client that signs in is seen when it is let in, and again when it calls.
func TestConnectedMarkOfAClientThatSignsIn(t *testing.T) {
	w := newWorld(t, server.Options{Snippets: twoClients})
	b := w.signedIn(owner)
	asks := htmxGet(t, b.get("/connect?client=Cloud"), "first-call")
	b.part(asks, "first-call").expect(http.StatusNoContent)
	access, _ := w.accessTokenOf(owner, "Cloud <b>", souvenir.Authorization{Scopes: souvenir.Scopes()})
	let := b.part(asks, "first-call").expect(http.StatusOK, "<bdi>Cloud &lt;b&gt;</bdi> was allowed", "hx-get")
	asks = htmxGet(t, let, "first-call")
	b.part(asks, "first-call").expect(http.StatusNoContent)
	r := w.request(guest, "POST", "/tools/call", strings.NewReader(`{"name":"list_collections"}`))
	r.Header.Set("Authorization", "Bearer "+access)
	r.Header.Set("Content-Type", "application/json")
	w.send(r).expect(http.StatusOK)
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if mark := b.part(asks, "first-call"); mark.status == http.StatusOK {
			mark.expect(http.StatusOK, "Connected: <bdi>").without("hx-get")
			break
		}
		if time.Since(began) > soon {
			t.Fatal("the call is not seen")
		}
	}
	b.part("/connect?since=yesterday", "first-call").expect(http.StatusBadRequest, "RFC 3339")
}

// htmxGet is the address that an element asks for again and again.
func htmxGet(t *testing.T, p *gotPage, id string) string {
	t.Helper()
	found := regexp.MustCompile(`<div id="` + id + `"[^>]* hx-get="([^"]*)"`).FindStringSubmatch(p.body)
	if found == nil {
		t.Fatalf("nothing with the id %s asks for anything: %s", id, p.body)
	}
	return strings.ReplaceAll(found[1], "&amp;", "&")
}
