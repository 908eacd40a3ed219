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

func TestClientsPage(t *testing.T) {
	w := servertest.New(t, server.Options{})
	b, sam := w.SignedIn(servertest.Owner), w.SignedIn(servertest.Stranger)
	servertest.CheckPage(w, sam.Get("/clients").Expect(http.StatusOK, "You have none").Without(servertest.Secret))
	p := b.Get("/clients").Expect(http.StatusOK, "https://app.example/"+servertest.Secret, "not allowed by you",
		servertest.PublicAt+
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
		again := b.Submit(p, "/clients", wrong).Expect(http.StatusBadRequest, text).Without("shown only once")
		servertest.CheckPage(w, again)
		if typed := wrong.Get("name"); typed == "Wiki" {
			again.Expect(http.StatusBadRequest, `value="Wiki"`, strings.TrimSpace(wrong.Get("redirect_uris")[:8]))
		}
	}
	made := b.Submit(p, "/clients",
		url.Values{"name": {"Wiki"}, "client_id": {"wiki"},
			"redirect_uris": {"https://wiki.example/a\r\n\r\nhttps://wiki.example/b\r\n"}}).
		Expect(http.StatusOK, "Wiki is created", "shown only once", "https://wiki.example/b")
	servertest.CheckPage(w, made)
	check := func(secret string, right bool) {
		t.Helper()
		_, err := w.Store.Accounts().CheckClient(t.Context(), souvenir.ClientCredentials{ID: "wiki", Secret: secret})
		if (err == nil) != right {
			t.Errorf("the secret %q: got %v, want it right: %v", secret, err, right)
		}
	}
	first := textOf(made, "made-secret")
	check(first, true)
	if again := b.Get("/clients").Without(first, "shown only once"); again.Status != http.StatusOK {
		t.Errorf("%d, want %v", again.Status, http.StatusOK)
	}

	csrf := sam.Get("/clients").HTML.All("form")[0].Fields().Get("csrf")
	for _, change := range []string{"secret", "deactivate"} { // of another user
		sam.Post("/clients/change", url.Values{"csrf": {csrf}, "id": {"wiki"},
			"change": {change}}).Expect(http.StatusNotFound, "not an OAuth client of this user")
	}
	check(first, true)
	renewed := b.Submit(b.Get("/clients"), "/clients/change",
		url.Values{"id": {"wiki"}, "change": {"secret"}}).Expect(http.StatusOK, "The new secret of Wiki",
		"The previous one no longer works")
	servertest.CheckPage(w, renewed)
	second := textOf(renewed, "made-secret")
	check(first, false)
	check(second, true)
	b.Submit(renewed, "/clients/change", url.Values{"id": {"wiki"}, "change": {"delete"}}).Expect(http.StatusBadRequest,
		"expected secret or deactivate")
	b.LeadsTo(b.Submit(renewed, "/clients/change", url.Values{"id": {"wiki"}, "change": {"deactivate"}}),
		"/clients?done=client").Expect(http.StatusOK, "deactivated", `tag off">deactivated`)
	check(second, false)
}

// A client that cannot keep a secret gets none.
func TestClientsWithoutASecret(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	b := w.SignedIn(servertest.Stranger)
	p := b.Submit(b.Get("/clients"), "/clients",
		url.Values{"name": {servertest.Hostile}, "redirect_uris": {"http://127.0.0.1/back"},
			"method": {"none"}}).Expect(http.StatusOK,
		"It has no secret", "no secret")
	servertest.CheckPage(w, p)
	if textOf(p, "made-secret") != "" {
		t.Error(`a secret is shown, want ""`)
	}
	all, err := w.Store.As(souvenir.Access{User: w.Users[servertest.Stranger]}).Accounts().Clients(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("got %v %v, want no error and one", all, err)
	}
	b.Submit(p, "/clients/change", url.Values{"id": {all[0].ID}, "change": {"secret"}}).Expect(http.StatusBadRequest,
		"has no secret")
}
