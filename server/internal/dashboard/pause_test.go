package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

// A paused token is refused with a reason. When resumed, it works as before.
func TestTokensArePausedAndResumed(t *testing.T) {
	w := servertest.New(t, server.Options{})
	view := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]})
	added, err := view.Accounts().AddToken(t.Context(), souvenir.NewToken{Name: "Cursor"})
	if err != nil {
		t.Fatal(err)
	}
	w.Hold("cursor", added.Value)
	search := `{"name": "memory", "arguments": {"action": "search", "query": "shop"}}`
	w.Do("cursor", "POST", "/tools/call", search).Expect(http.StatusOK)
	b := w.SignedIn(servertest.Owner)
	form := func(page, action string) url.Values { return b.Get(page).FormTo(action, "id", added.ID) }
	b.LeadsTo(b.Post("/tokens/pause", form("/tokens", "/tokens/pause")), "/tokens?done=paused").
		Expect(http.StatusOK, "no access until you resume it", `<span class="tag off">paused</span>`, "Resume Cursor")
	a := w.Do("cursor", "POST", "/tools/call", search).Expect(http.StatusForbidden, "the user has paused this access")
	if got := a.Header.Get("WWW-Authenticate"); got != "" {
		t.Errorf("got WWW-Authenticate %q, want none: another sign-in would not help", got)
	}
	w.Do("cursor", "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`).Expect(http.StatusForbidden, "paused")

	// The page of the client's calls can also resume it, and stays on the same page.
	own := "/activity?credential=token&credential_id=" + added.ID
	p := b.Get(own).Expect(http.StatusOK, "Resume", `<span class="tag off">paused</span>`)
	servertest.CheckPage(w, p)
	b.LeadsTo(b.Post("/tokens/pause", form(own, "/tokens/pause")), own+"&done=resumed").Expect(http.StatusOK,
		"Pause Cursor")
	w.Do("cursor", "POST", "/tools/call", search).Expect(http.StatusOK)

	wrong := form("/tokens", "/tokens/pause")
	wrong.Set("paused", "maybe")
	b.Post("/tokens/pause", wrong).Expect(http.StatusBadRequest, "expected yes or no")
	sam := w.SignedIn(servertest.Stranger)
	theirs := url.Values{"csrf": {sam.Get("/tokens").Hidden().Get("csrf")}, "id": {added.ID}, "paused": {"yes"}}
	sam.Post("/tokens/pause", theirs).Expect(http.StatusNotFound)
	w.Do("cursor", "POST", "/tools/call", search).Expect(http.StatusOK)
}

func TestApplicationsArePausedAndResumed(t *testing.T) {
	w := servertest.New(t, server.Options{})
	b, app := w.SignedIn(servertest.Owner), w.Register("none")
	access := w.Redeem(app, b.Allow(app.AuthorizeURL(), nil)).AccessToken
	w.Hold("app", access)
	w.Do("app", "GET", "/api/projects", "").Expect(http.StatusOK)
	pause := func(done string) *servertest.Page {
		return b.LeadsTo(b.Submit(b.Get("/connected"), "/connected/pause", nil),
			"/connected?done="+done).Expect(http.StatusOK)
	}
	servertest.CheckPage(w, pause("paused").Expect(http.StatusOK, `<span class="tag off">paused</span>`))
	w.Do("app", "GET", "/api/projects", "").Expect(http.StatusForbidden, "the user has paused this access")
	pause("resumed").Without("paused</span>")
	w.Do("app", "GET", "/api/projects", "").Expect(http.StatusOK)
}

// Each installation of an application is authorized separately. The page of its calls pauses, resumes and revokes all
// of them.
func TestAllInstallationsOfAnApplicationArePaused(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	b, app := w.SignedIn(servertest.Owner), w.Register("none")
	for _, name := range []string{"laptop", "phone"} {
		w.Hold(name, w.Redeem(app, b.Allow(app.AuthorizeURL(), nil)).AccessToken)
	}
	both := func(status int) {
		t.Helper()
		for _, name := range []string{"laptop", "phone"} {
			w.Do(name, "GET", "/api/projects", "").Expect(status)
		}
	}
	both(http.StatusOK)
	page := "/activity?credential=client&credential_id=" + url.QueryEscape(app.ID)
	b.Submit(b.Get("/connected"), "/connected/pause", nil) // one of them
	b.Get(page).Expect(http.StatusOK, "allowed 2 times").Without("paused</span>")
	b.Submit(b.Get(page), "/connected/pause", nil)
	both(http.StatusForbidden)
	servertest.CheckPage(w, b.Get("/connect").Expect(http.StatusOK, "Paused: <b><bdi>"))
	servertest.CheckPage(w, b.Get(app.AuthorizeURL("state", "")).Expect(http.StatusOK,
		"You have paused this application."))
	servertest.CheckPage(w, b.Get(page).Expect(http.StatusOK, `<span class="tag off">paused</span>`))
	b.Submit(b.Get(page), "/connected/pause", nil)
	both(http.StatusOK)
	b.Get("/connect").Without("Paused:")
	b.Get(app.AuthorizeURL("state", "")).Expect(http.StatusOK, "You allowed it before").Without("You have paused")
	b.Submit(b.Get(page), "/connected/end", nil)
	both(http.StatusUnauthorized)
	b.Get("/connected").Without("/connected/pause")
	gone := url.Values{"csrf": {b.Get("/connected").Hidden().Get("csrf")}, "client": {app.ID}, "paused": {"yes"}}
	b.Post("/connected/pause", gone).Expect(http.StatusNotFound)
}

// The page counts calls, failures and searches without results for each client.
func TestActivityCountsByClient(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	call := func(arguments string) {
		w.Do(servertest.Owner, "POST", "/tools/call", `{"name": "memory", "arguments": `+arguments+`}`)
	}
	call(`{"action": "search", "query": "shop"}`)
	call(`{"action": "search", "query": "shop", "collection_name": "nowhere"}`)
	call(`{"action": "search", "tags": ["of no memory"]}`)
	call(`{"action": "store", "content": "The shop closes at six."}`)
	b := w.SignedIn(servertest.Owner)
	p := b.Get("/activity")
	servertest.CheckPage(w, p)
	text := strings.Join(strings.Fields(p.HTML.Text), " ")
	for _, want := range []string{"Calls by client", "4 calls, 1 failed, 1 of 2 searches without hits",
		"1 of 2 searches found nothing"} {
		if !strings.Contains(text, want) {
			t.Errorf("got %s, want in it %q", text, want)
		}
	}
	// The bars are relative to the busiest client's calls: 4, of which 1 failed, and 2 searches, of which 1 found nothing.
	p.Expect(http.StatusOK, `class="part" width="100.0%"`, `class="fault" width="25.0%"`, `class="found" width="50.0%"`,
		`class="nohits" width="25.0%"`)
	p = b.Get("/activity?group=client").Expect(http.StatusOK, `<h3><a class="by"`)
	servertest.CheckPage(w, p)
	client := "/activity?credential=token&credential_id=" + w.TokenIDs[servertest.Owner]
	p = b.Get(client).Expect(http.StatusOK, "Revoke access").Without("Calls by client")
	text = strings.Join(strings.Fields(p.HTML.Text), " ")
	for _, want := range []string{"Searches2, 1 without hits", "Stored1", "Failed1", "Updated0"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page of a client: got %s, want in it %q", text, want)
		}
	}
}

// Tokens of the page Connect expire, and can be limited to projects.
func TestTokensForClientsEndAndAreLimited(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{Snippets: servertest.Snippets})
	b := w.SignedIn(servertest.Owner)
	view := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]})
	newest := func() souvenir.Token {
		all, err := view.Accounts().Tokens(t.Context())
		if err != nil || len(all) == 0 {
			t.Fatalf("got %v, %v, want tokens", all, err)
		}
		return all[0]
	}
	p := b.Get("/connect").Expect(http.StatusOK, "Only some projects", "in 90 days")
	servertest.CheckPage(w, p)
	b.Submit(p, "/connect", nil).Expect(http.StatusOK)
	if got := newest(); got.ExpiresAt.Sub(got.CreatedAt).Round(1e9).Hours() != 90*24 || got.Projects != nil {
		t.Errorf("got a token from %v to %v for %v, want one of 90 days for all projects", got.CreatedAt, got.ExpiresAt,
			got.Projects)
	}
	b.Submit(p, "/connect", url.Values{"days": {""}, "project": {"shop"}}).Expect(http.StatusOK)
	if got := newest(); !got.ExpiresAt.IsZero() || len(got.Projects) != 1 || !strings.HasSuffix(got.Projects[0], "/shop") {
		t.Errorf("got a token until %v for %v, want one without an end for the shop", got.ExpiresAt, got.Projects)
	}
	b.Submit(p, "/connect", url.Values{"days": {"soon"}}).Expect(http.StatusBadRequest, "a whole number of days")
	b.Submit(p, "/connect", url.Values{"project": {"nowhere"}}).Expect(http.StatusNotFound)
}
