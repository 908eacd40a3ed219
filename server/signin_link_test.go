package server_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

// linkOf returns the path of a new sign-in link for the owner.
func linkOf(t *testing.T, w *servertest.World) string {
	t.Helper()
	link, err := w.Server.SignInLink(t.Context(), "olivia")
	if err != nil {
		t.Fatal(err)
	}
	path, ok := strings.CutPrefix(link, servertest.PublicAt)
	if !ok {
		t.Fatalf("got the link %s, want one below %s", link, servertest.PublicAt)
	}
	return path
}

func TestASignInLinkWorksOnceInABrowserOnThisMachine(t *testing.T) {
	w := servertest.New(t, server.Options{})
	path := linkOf(t, w)
	for _, unfit := range []struct {
		method, from string
		want         int
	}{{"HEAD", "127.0.0.1", http.StatusNotFound}, {"GET", "203.0.113.9", http.StatusForbidden}} { // and do not use it up
		r := w.Request(servertest.Guest, unfit.method, path, nil)
		r.Header.Set("X-Forwarded-For", unfit.from)
		answer, err := w.HTTP.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != unfit.want {
			t.Errorf("%s from %s: got %d, want %d", unfit.method, unfit.from, answer.StatusCode, unfit.want)
		}
	}

	b := w.Browser()
	b.LeadsTo(b.Get(path), "/").Expect(http.StatusOK, "Hello, olivia")
	other := w.Browser()
	other.Get(path).Expect(http.StatusNotFound, "This link does not work", "used already",
		"Sign in with your name and password", `href="/login"`)
	b.Get(path).Expect(http.StatusNotFound, "You are signed in as olivia", "Go to the overview")
	other.LeadsTo(other.Get("/"), "/login?next=%2F")
	other.Get("/sign-in").Expect(http.StatusNotFound)
	if key := path[strings.Index(path, "=")+1:]; strings.Contains(w.Log.String(), key) {
		t.Errorf("the log has the key %s of a link, want it without", key)
	}
}

func TestASignInLinkEndsAfterTenMinutes(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	path := linkOf(t, w)
	server.SetConfirmClock(w.Server, func() time.Time { return time.Now().Add(10*time.Minute + time.Second) })
	w.Browser().Get(path).Expect(http.StatusNotFound, "older than 10 minutes")
}

func TestASignInLinkNeedsAUserAndAPublicURL(t *testing.T) {
	w := servertest.New(t, server.Options{})
	if _, err := w.Server.SignInLink(t.Context(), "unknown"); !errors.Is(err, souvenir.ErrNotFound) {
		t.Errorf("a link for an unknown user: got %v, want ErrNotFound", err)
	}
	without := server.New(w.Store, nil)
	if _, err := without.SignInLink(t.Context(), "olivia"); !errors.Is(err, souvenir.ErrInvalid) {
		t.Errorf("a link without a public URL: got %v, want ErrInvalid", err)
	}
}
