package dashboard_test

import (
	"html"
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

// polled returns the address that the mark of the path polls.
func polled(t *testing.T, p *servertest.Page) string {
	t.Helper()
	found := regexp.MustCompile(`<p id="path-mark"[^>]* hx-get="([^"]*)"`).FindStringSubmatch(p.Body)
	if found == nil {
		t.Fatalf("the mark of the path polls nothing, want an address in %s", p.Body)
	}
	return html.UnescapeString(found[1])
}

// tokenOf adds a token for a user, with which the tests then call.
func tokenOf(t *testing.T, w *servertest.World, caller string) {
	t.Helper()
	added, err := w.Store.As(souvenir.Access{User: w.Users[caller]}).Accounts().AddToken(t.Context(),
		souvenir.NewToken{Name: "kite"})
	if err != nil {
		t.Fatal(err)
	}
	w.Tokens["kite"] = added.Value
}

// The overview of a new account leads from the first client to the first search, and follows the client's progress.
func TestANewAccountsOverviewIsAPath(t *testing.T) {
	w := servertest.New(t, server.Options{Snippets: twoClients})
	b := w.SignedIn(servertest.Stranger)
	p := b.Get("/").Expect(http.StatusOK, "Get started", "kite "+servertest.PublicAt+"/mcp with ",
		`href="/?client=Cloud"`, `href="/connect?client=Kite%20%26%20Co"`, `data-copy="paste-`, "Waiting for a client",
		"Remember this:", `name="ask"`).Without("mcp_", "Growth")
	servertest.CheckPage(w, p)
	servertest.CheckPage(w, b.Get("/?client=Cloud").Expect(http.StatusOK, "cloud "+servertest.PublicAt+"/mcp").
		Without("kite "))
	servertest.CheckPage(w, b.Get("/?client=Another+client").Expect(http.StatusOK, servertest.PublicAt+"/mcp").
		Without("kite ", "cloud "))
	b.Get("/?client=Unknown").Expect(http.StatusBadRequest, "Client is &#34;Unknown&#34;")
	b.Get("/?ask=kettle").Expect(http.StatusOK, "Nothing found: there are no memories yet")
	part(b, polled(t, p), "path-mark").Expect(http.StatusNoContent)

	tokenOf(t, w, servertest.Stranger)
	call := func(body string) {
		r := w.Request("kite", "POST", "/tools/call", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("User-Agent", "Kite/2.1")
		w.Send(r).Expect(http.StatusOK)
	}
	news := func(p *servertest.Page) *servertest.Page { // a call is recorded after its answer
		for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
			answer := part(b, polled(t, p), "path-mark")
			if answer.Status != http.StatusNoContent || time.Since(began) > 10*time.Second {
				return answer
			}
		}
	}
	call(`{"name":"list_collections"}`)
	connected := news(p).Expect(http.StatusOK, "Connected: <bdi>Kite", `id="path-connect" hx-swap-oob="true" class="done"`,
		"Waiting for the first memory").Without("<html", `id="path-store"`, `id="path-search"`)
	call(`{"name":"memory","arguments":{"action":"store","content":"The kettle is blue & old."}}`)
	stored := news(connected).Expect(http.StatusOK, `id="path-store" hx-swap-oob="true" class="done"`,
		"The kettle is blue &amp; old.").Without(`id="path-connect"`)
	call(`{"name":"memory","arguments":{"action":"search","query":"kettle"}}`)
	news(stored).Expect(http.StatusOK, "All three steps are done", `id="path-search" hx-swap-oob="true" class="done"`).
		Without("hx-get")
	b.Get("/").Expect(http.StatusOK, "Growth", "The kettle is blue &amp; old.").Without("Get started")
	w.SignedIn(servertest.Admin).Get("/").Expect(http.StatusOK, "Get started").Without("Kite/", "kettle")
}

// A search on the page also completes the last step. A hidden path stays hidden.
func TestThePathEndsWithASearchOrIsHidden(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{Snippets: twoClients})
	tokenOf(t, w, servertest.Stranger)
	b := w.SignedIn(servertest.Stranger)
	w.Do("kite", "POST", "/tools/call",
		`{"name":"memory","arguments":{"action":"store","content":"The kettle is blue."}}`).Expect(http.StatusOK)
	servertest.CheckPage(w, b.Get("/?"+url.Values{"ask": {"which colour has the kettle?"}}.Encode()).
		Expect(http.StatusOK, "Get started", "Found.", `href="/memories/`))
	if got := b.Cookie("souvenir_path"); got != "found" {
		t.Errorf("after a search the browser keeps %q, want found", got)
	}
	b.Get("/").Expect(http.StatusOK, "Growth").Without("Get started")

	other := w.SignedIn(servertest.Admin)
	other.Get("/").Expect(http.StatusOK, "Get started", `href="/?path=hidden"`)
	other.Get("/?path=hidden").Expect(http.StatusOK).Without("Get started")
	other.Get("/").Expect(http.StatusOK, "No memories yet").Without("Get started")
}

// If calls are not recorded, only the use of a token shows that a client has connected.
func TestThePathKnowsAClientWhereCallsAreNotRecorded(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{NoActivity: true, Snippets: twoClients})
	tokenOf(t, w, servertest.Stranger)
	b := w.SignedIn(servertest.Stranger)
	b.Get("/").Expect(http.StatusOK, "Waiting for a client").Without("Connected")
	w.Do("kite", "GET", "/api/owner-ids/me", "").Expect(http.StatusOK)
	b.Get("/").Expect(http.StatusOK, "Connected: <bdi>kite")
}
