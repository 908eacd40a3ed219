package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

// The theme is stored in the browser, applies before the sign-in, too, and choosing it leads back to the same page.
func TestAThemeIsKept(t *testing.T) {
	w := servertest.New(t, server.Options{})
	b := w.SignedIn(servertest.Owner)
	p := b.Get("/activity?kind=read&done=undone").Expect(http.StatusOK).Without("data-theme")
	form := func(theme string) url.Values {
		values := p.FormTo("/theme", "", "")
		values.Set("theme", theme)
		return values
	}
	b.LeadsTo(b.Post("/theme", form("dark")), "/activity?kind=read").Expect(http.StatusOK,
		`<html lang="en" data-theme="dark">`, `value="dark" aria-pressed="true"`)
	b.Get("/login?again=1").Expect(http.StatusOK, `data-theme="dark"`)
	b.Get("/memories/unknown").Expect(http.StatusNotFound, `data-theme="dark"`)
	b.Post("/theme", form("purple")).Expect(http.StatusBadRequest, "system, light or dark")
	away := form("light")
	away.Set("next", "//elsewhere.test/")
	b.LeadsTo(b.Post("/theme", away), "/").Expect(http.StatusOK, `data-theme="light"`)
	b.LeadsTo(b.Post("/theme", form("system")), "/activity?kind=read").Expect(http.StatusOK).Without("data-theme")
	b.SetCookie("souvenir_theme", "sepia")
	b.Get("/").Expect(http.StatusOK).Without("data-theme")
	b.Post("/theme", url.Values{"theme": {"dark"}}).Expect(http.StatusForbidden)
}

// Each item of the menu has an icon. The admins' part is collapsed unless one of its pages is open.
func TestTheMenuHasPicturesAndFolds(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	b := w.SignedIn(servertest.Admin)
	for path, open := range map[string]bool{"/memories": false, "/users": true, "/about": true} {
		p := b.Get(path).Expect(http.StatusOK, `href="/users"`, "<summary class=\"group\">Server</summary>")
		if got := strings.Contains(p.Body, `<details class="folded" open>`); got != open {
			t.Errorf("%s: got the part of the server open %v, want %v", path, got, open)
		}
		nav := p.HTML.All("nav")[0]
		if links, drawn := nav.All("a"), nav.All("path"); len(links) != 22 || len(drawn) != len(links) {
			t.Errorf("%s: got %d places with %d pictures, want 22 and each with one", path, len(links), len(drawn))
		}
		for _, path := range nav.All("path") {
			if path.Attr("d") == "" {
				t.Error("got a place without lines of its picture, want some")
			}
		}
	}
	w.SignedIn(servertest.Owner).Get("/").Expect(http.StatusOK, ">About<").Without(`href="/users"`)
}
