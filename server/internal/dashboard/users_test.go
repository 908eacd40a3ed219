package dashboard_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

func TestAdminsResetPasswords(t *testing.T) {
	w := servertest.New(t, server.Options{})
	ada, olivia := w.SignedIn(servertest.Admin), w.SignedIn(servertest.Owner)
	ada.Get("/users").Expect(http.StatusOK, "last seen", "Reset password")
	change := func(caller, change string) *servertest.Page {
		return ada.Submit(ada.Get("/users"), "/users", url.Values{"id": {w.Users[caller]}, "change": {change}})
	}
	p := change(servertest.Owner, "user-password").Expect(http.StatusOK, "shown only once")
	servertest.CheckPage(w, p)
	password := ""
	for _, code := range p.HTML.All("code") {
		password = strings.TrimSpace(code.Text)
	}
	if _, err := w.Store.Accounts().CheckPassword(t.Context(),
		souvenir.Credentials{Name: "olivia", Password: password}); err != nil {
		t.Errorf("the password %q on the page: got %v, want that it is the new one", password, err)
	}
	olivia.Get("/profile").GoesTo("/login") // signed out
	for id, status := range map[string]int{w.Users[servertest.Admin]: http.StatusBadRequest, "noah": http.StatusNotFound} {
		ada.Post("/users", url.Values{"csrf": {ada.Get("/users").Hidden().Get("csrf")}, "id": {id},
			"change": {"user-password"}}).Expect(status)
	}
}

func TestAdminsDeleteUsersWithAReceipt(t *testing.T) {
	w := servertest.New(t, server.Options{})
	ada, olivia := w.SignedIn(servertest.Admin), w.SignedIn(servertest.Owner)
	id := w.Users[servertest.Owner]
	change := func(caller, change string) *servertest.Page {
		return ada.Submit(ada.Get("/users"), "/users", url.Values{"id": {w.Users[caller]}, "change": {change}})
	}
	asked := change(servertest.Owner, "user-delete").Expect(http.StatusOK, "Delete olivia and all their data?",
		"Memories", "cannot be undone")
	servertest.CheckPage(w, asked)
	if _, err := w.Store.Accounts().GetUser(t.Context(), id); err != nil {
		t.Fatalf("before the answer: got %v, want that the user is there", err)
	}
	receipt := ada.Submit(asked, "/users", nil).Expect(http.StatusOK, "olivia is deleted", "Receipt",
		"Signed receipt", "souvenir-receipt-1", id, "Deleted by", "ada")
	servertest.CheckPage(w, receipt)
	if _, err := w.Store.Accounts().GetUser(t.Context(), id); !errors.Is(err, souvenir.ErrNotFound) {
		t.Errorf("got %v, want that the user is gone", err)
	}
	olivia.Get("/profile").GoesTo("/login")
	ada.Submit(asked, "/users", nil).Expect(http.StatusNotFound)
	ada.Post("/users", url.Values{"csrf": {ada.Get("/users").Hidden().Get("csrf")}, "id": {w.Users[servertest.Admin]},
		"change": {"user-delete"}, "sure": {"yes"}}).Expect(http.StatusBadRequest, "your own account")
	rita := w.SignedIn(servertest.Reader)
	rita.Post("/users", url.Values{"csrf": {rita.Get("/").Hidden().Get("csrf")}, "id": {w.Users[servertest.Admin]},
		"change": {"user-delete"}, "sure": {"yes"}}).Expect(http.StatusForbidden)
}
