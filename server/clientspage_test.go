package server_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

func TestClientsPage(t *testing.T) {
	w := newWorld(t, server.Options{})
	b, sam := w.signedIn(owner), w.signedIn(stranger)
	checkPage(w, sam.get("/clients").expect(http.StatusOK, "You have none").without(secret))
	p := b.get("/clients").expect(http.StatusOK, "https://app.example/"+secret, "not allowed by you", publicAt+
		"/oauth/token")
	for text, wrong := range map[string]url.Values{
		"Name is empty":          {"name": {" "}, "redirect_uris": {"https://wiki.example/back"}},
		"redirect_uris is empty": {"name": {"Wiki"}, "redirect_uris": {" \n         "}},
		"http://wiki.example/back": {"name": {"Wiki"},
			"redirect_uris": {"https://wiki.example/a\r\nhttp://wiki.example/back"}},
		"is taken": {"name": {"Wiki"}, "redirect_uris": {"https://wiki.example/back"},
			"client_id": {"app"}},
		"Token_endpoint_auth_method ": {"name": {"Wiki"}, "redirect_uris": {"https://wiki.example/back"},
			"method": {"password"}},
	} {
		again := b.submit(p, "/clients", wrong).expect(http.StatusBadRequest, text).without("shown only once")
		checkPage(w, again)
		if typed := wrong.Get("name"); typed == "Wiki" {
			again.expect(http.StatusBadRequest, `value="Wiki"`, strings.TrimSpace(wrong.Get("redirect_uris")[:8]))
		}
	}
	made := b.submit(p, "/clients",
		url.Values{"name": {"Wiki"}, "client_id": {"wiki"},
			"redirect_uris": {"https://wiki.example/a\r\n\r\nhttps://wiki.example/b\r\n"}}).
		expect(http.StatusOK, "Wiki is created", "shown only once", "https://wiki.example/b")
	checkPage(w, made)
	check := func(secret string, right bool) {
		t.Helper()
		_, err := w.store.Accounts().CheckClient(t.Context(), souvenir.ClientCredentials{ID: "wiki", Secret: secret})
		if (err == nil) != right {
			t.Errorf("the secret %q is right: %v (%v)", secret, right, err)
		}
	}
	first := made.textOf("made-secret")
	check(first, true)
	if again := b.get("/clients").without(first, "shown only once"); again.status != http.StatusOK {
		t.Errorf("%d, want %v", again.status, http.StatusOK)
	}

	csrf := sam.get("/clients").html.all("form")[0].fields().Get("csrf")
	for _, change := range []string{"secret", "deactivate"} { // another's
		sam.post("/clients/change", url.Values{"csrf": {csrf}, "id": {"wiki"},
			"change": {change}}).expect(http.StatusNotFound, "not an OAuth client of this user")
	}
	check(first, true)
	renewed := b.submit(b.get("/clients"), "/clients/change",
		url.Values{"id": {"wiki"}, "change": {"secret"}}).expect(http.StatusOK, "The new secret of Wiki",
		"The previous one no longer works")
	checkPage(w, renewed)
	second := renewed.textOf("made-secret")
	check(first, false)
	check(second, true)
	b.submit(renewed, "/clients/change", url.Values{"id": {"wiki"}, "change": {"delete"}}).expect(http.StatusBadRequest,
		"allowed are secret and deactivate")
	b.leadsTo(b.submit(renewed, "/clients/change", url.Values{"id": {"wiki"}, "change": {"deactivate"}}),
		"/clients?done=client").expect(http.StatusOK, "deactivated", `tag off">deactivated`)
	check(second, false)
}

// A client that cannot keep a secret is given none.
func TestClientsWithoutASecret(t *testing.T) {
	w := newWorld(t, server.Options{})
	b := w.signedIn(stranger)
	p := b.submit(b.get("/clients"), "/clients",
		url.Values{"name": {hostile}, "redirect_uris": {"http://127.0.0.1/back"}, "method": {"none"}}).expect(http.StatusOK,
		"It has no secret", "no secret")
	checkPage(w, p)
	if p.textOf("made-secret") != "" {
		t.Error("a secret is shown")
	}
	all, err := w.store.As(souvenir.Access{User: w.users[stranger]}).Accounts().Clients(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	b.submit(p, "/clients/change", url.Values{"id": {all[0].ID}, "change": {"secret"}}).expect(http.StatusBadRequest,
		"has no secret")
}
