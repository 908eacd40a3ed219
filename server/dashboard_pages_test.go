package server_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

// furnish gives Ada, an admin, something of everything that pages show, with hostile names wherever a name can be
// chosen. It returns a path for each pattern of a page.
func furnish(w *servertest.World) map[string]string {
	w.T.Helper()
	steps := servertest.FirstError{}
	ada := w.Store.As(souvenir.Access{User: w.Users[servertest.Admin]})
	_, err := ada.Accounts().AddToken(w.T.Context(), souvenir.NewToken{Name: servertest.Hostile})
	steps.Note(err)
	_, err = ada.AddProject(w.T.Context(), souvenir.NewProject{ID: "p", Name: servertest.Hostile})
	steps.Note(err)
	_, err = w.Store.Accounts().AddUser(w.T.Context(), souvenir.NewUser{Name: `<script>alert("x")<\script>`})
	steps.Note(err)
	w.AccessTokenOf(servertest.Admin, servertest.Hostile, souvenir.Authorization{Scopes: souvenir.Scopes()})
	w.AccessTokenOf(servertest.Admin, "Second",
		souvenir.Authorization{Scopes: []souvenir.Scope{souvenir.ScopeMemoryRead}, Projects: []string{"p"}})
	_, err = w.Store.Accounts().AddSignIn(w.T.Context(), souvenir.NewSignIn{User: w.Users[servertest.Admin],
		UserAgent: servertest.Hostile})
	steps.Note(err)
	invitation, err := w.Store.Accounts().AddInvitation(w.T.Context(),
		souvenir.NewInvitation{Note: servertest.Hostile, CreatedBy: w.Users[servertest.Admin]})
	steps.Note(err)
	memory, err := ada.AddMemory(w.T.Context(),
		souvenir.NewMemory{Content: servertest.Hostile, Tags: []string{"<b>"},
			ShownMetadata: map[string]any{servertest.Hostile: servertest.Hostile, "size": 3}})
	steps.Note(err)
	_, err = ada.AddFile(w.T.Context(), souvenir.NewFile{Filename: "<b>.txt", MemoryID: memory.ID},
		strings.NewReader("text"))
	steps.Note(err)
	if steps.Err != nil {
		w.T.Fatalf("got %v, want nil", steps.Err)
	}
	paths := map[string]string{}
	for _, rt := range server.PageRoutes() {
		if rt.Method == http.MethodGet && rt.Path != "/static/{file...}" {
			paths[rt.Path] = strings.TrimSuffix(rt.Path, "{$}")
		}
	}
	w.FurnishDashboard(paths)
	paths["/invite"] += "?invitation=" + invitation.Value
	paths["/memories/{id}"] = "/memories/" + memory.ID
	paths["/oauth/authorize"] = w.RegisterAs(servertest.Hostile, "none").AuthorizeURL()
	paths["/authorize"] = strings.TrimPrefix(paths["/oauth/authorize"], "/oauth")
	return paths
}

func TestPagesAreWellMade(t *testing.T) {
	w := servertest.New(t, server.Options{Snippets: func(address, token string) []server.Snippet {
		return []server.Snippet{{servertest.Hostile, servertest.Hostile, address + token + servertest.Hostile},
			{Client: "Second", Text: "second"}}
	}})
	paths := furnish(w)
	guest, ada := w.Browser(), w.SignedIn(servertest.Admin)
	var found []*servertest.Page
	for _, pattern := range longtest.Keys(paths, 1, 2) {
		path := paths[pattern]
		if slices.Contains([]string{"/login", "/setup", "/invite", "/sign-in"}, pattern) {
			found = append(found, guest.Get(path))
		} else {
			found = append(found, ada.Get(path).Expect(http.StatusOK))
		}
	}
	found = append(found,
		login(guest, servertest.Hostile, "x"),
		ada.Submit(ada.Get("/profile"), "/profile", url.Values{"name": {servertest.Hostile}, "email": {servertest.Hostile}}),
		ada.Submit(ada.Get("/tokens"), "/tokens", url.Values{"name": {servertest.Hostile}, "days": {servertest.Hostile}}),
		ada.Submit(ada.Get("/tokens"), "/tokens", url.Values{"name": {servertest.Hostile}}),
		ada.Submit(ada.Get("/invitations"), "/invitations", url.Values{"note": {servertest.Hostile},
			"email": {servertest.Hostile}}),
		ada.Submit(ada.Get("/invitations"), "/invitations", url.Values{"note": {servertest.Hostile}}),
		ada.Submit(ada.Get("/users"), "/users", url.Values{"change": {servertest.Hostile}}),
		ada.Get("/invite?invitation="+url.QueryEscape(servertest.Hostile)), ada.Get("/profile?done="+
			url.QueryEscape(servertest.Hostile)),
		ada.Get("/profile?done=password"),
		ada.Post("/profile", url.Values{"csrf": {servertest.Hostile}}),
	)
	if len(found) < 18 {
		t.Fatalf("only %d pages, want at least 18", len(found))
	}
	for _, p := range found {
		servertest.CheckPage(w, p)
	}
}

// A page stays small with any amount of data, and everything can be reached.
func TestLongListsComeInParts(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	ada, view := w.SignedIn(servertest.Admin), w.Store.As(souvenir.Access{User: w.Users[servertest.Admin]})
	const many = 52 // three pages
	steps := servertest.FirstError{}
	for i := range many {
		_, err := w.Store.Accounts().AddUser(t.Context(), souvenir.NewUser{Name: fmt.Sprintf("person %02d", i)})
		steps.Note(err)
		_, err = view.Accounts().AddToken(t.Context(), souvenir.NewToken{Name: fmt.Sprintf("token %02d", i)})
		steps.Note(err)
		_, err = w.Store.Accounts().AddSignIn(t.Context(),
			souvenir.NewSignIn{User: w.Users[servertest.Admin], UserAgent: fmt.Sprintf("browser %02d", i)})
		steps.Note(err)
		_, err = w.Store.Accounts().AddInvitation(t.Context(), souvenir.NewInvitation{Note: fmt.Sprintf("guest %02d", i)})
		steps.Note(err)
		_, err = view.Accounts().AddClient(t.Context(),
			souvenir.NewClient{Name: fmt.Sprintf("application %02d", i), RedirectURIs: []string{"https://app.example/b"}})
		steps.Note(err)
		w.AccessTokenOf(servertest.Admin, fmt.Sprintf("client %02d", i), souvenir.Authorization{Scopes: souvenir.Scopes()})
	}
	if steps.Err != nil {
		t.Fatalf("got %v, want nil", steps.Err)
	}
	for list, noun := range map[string]string{"/users?users": "person", "/tokens?tokens": "token",
		"/clients?clients": "application", "/profile?sessions": "browser", "/invitations?open": "guest",
		"/connected?applications": "client"} {
		seen := map[string]bool{}
		for number := 1; number <= 3; number++ {
			p := ada.Get(fmt.Sprintf("%s=%d", list, number)).Expect(http.StatusOK, fmt.Sprintf("Page %d of 3", number))
			servertest.CheckPage(w, p)
			for _, name := range regexp.MustCompile(noun+` \d\d`).FindAllString(p.Body, -1) {
				seen[name] = true
			}
		}
		if len(seen) != many {
			t.Errorf("%s: got %d shown, want %d", list, len(seen), many)
		}
		address := regexp.MustCompile(`name="(next|csrf)" value="[^"]*"`) // in the forms of every page
		body := func(path string) string { return address.ReplaceAllString(ada.Get(path).Body, "") }
		first := body(strings.Split(list, "?")[0])
		for part, same := range map[string]bool{"0": true, "-7": true, "x": true, "1": true, "2": false} {
			if (body(list+"="+part) == first) != same {
				t.Errorf("%s=%s, want %v", list, part, same)
			}
		}
		ada.Get(list + "=99999999999").Expect(http.StatusOK)
		ada.Get(list+"=99").Expect(http.StatusOK, "Page 3 of 3")
	}
}

// For a missing page, a browser gets a page and a program the interface's error.
func TestNothingHereForPeopleAndPrograms(t *testing.T) {
	w := servertest.New(t, server.Options{})
	b := w.Browser()
	for _, accept := range []string{"", "*/*", "application/json"} {
		r := w.Request(servertest.Guest, "GET", "/dashboard", nil)
		r.Header.Set("Accept", accept)
		b.Send(r).Expect(http.StatusNotFound, `"isError":true`)
	}
	r := w.Request(servertest.Guest, "GET", "/dashboard", nil)
	r.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	p := b.Send(r).Expect(http.StatusNotFound, "Not found")
	servertest.CheckPage(w, p)
}

func TestLinksCannotInjectNotices(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	b := w.Browser()
	b.Get("/login?done=signed-out").Expect(http.StatusOK, `role="status"><p>You are signed out.`)
	b.Get("/login?done=Send+your+password+to+me").Expect(http.StatusOK).Without("Send", `role="status"`)
}

// Every form needs the field of a page that this browser got, and must come from this origin.
func TestFormsOfOthersAreRefused(t *testing.T) {
	w := servertest.New(t, server.Options{})
	ada, sam := w.SignedIn(servertest.Admin), w.SignedIn(servertest.Stranger)
	right := ada.Get("/profile").HTML.All("form")[0].Fields().Get("csrf")
	other := sam.Get("/profile").HTML.All("form")[0].Fields().Get("csrf")
	unknown := w.Browser().Get("/login").HTML.All("form")[0].Fields().Get("csrf")
	if right == other || other == unknown || len(right) < 40 {
		t.Fatalf("the fields are %q, %q and %q, want three different ones of at least 40 bytes", right, other, unknown)
	}
	times := regexp.MustCompile(`<time[^>]*>[^<]*</time>|name="csrf" value="[^"]*"`) // which keep changing
	shown := func() string {
		return times.ReplaceAllString(ada.Get("/profile").Body+ada.Get("/users").Body+ada.Get("/invitations").Body, "")
	}
	before := shown()
	tried := 0
	for i, rt := range server.PageRoutes() {
		if rt.Method != http.MethodPost || !longtest.Part(i, 1, 8) {
			continue
		}
		for name, field := range map[string]url.Values{"no field": {}, "an empty field": {"csrf": {""}},
			"that of another": {"csrf": {other}}, "without a user": {"csrf": {unknown}},
			"a wrong one first": {"csrf": {other, right}}} {
			if p := ada.Post(rt.Path, field); p.Status != http.StatusForbidden {
				t.Errorf("POST %s with %s: %d, want %v", rt.Path, name, p.Status, http.StatusForbidden)
			}
			tried++
		}
		for name, headers := range map[string]map[string]string{
			"another origin": {"Origin": "https://evil.example"}, "no origin": {"Origin": "null"},
			"another site": {"Sec-Fetch-Site": "cross-site"}, "a sibling": {"Sec-Fetch-Site": "same-site"},
		} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.HTTP.URL+rt.Path,
				strings.NewReader(url.Values{"csrf": {right}}.Encode()))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			for key, value := range headers {
				r.Header.Set(key, value)
			}
			if p := ada.Send(r); p.Status != http.StatusForbidden {
				t.Errorf("POST %s from %s: %d, want %v", rt.Path, name, p.Status, http.StatusForbidden)
			}
		}
		if rt.Needs != "nothing" {
			if p := w.Browser().Post(rt.Path, url.Values{"csrf": {unknown}}); p.Status != http.StatusSeeOther ||
				p.Header.Get("Location") != "/login" {
				t.Errorf(`POST %s without a session: got %d %q, want status %v and Location "/login"`, rt.Path, p.Status,
					p.Header.Get("Location"), http.StatusSeeOther)
			}
		}
	}
	if after := shown(); after != before || tried < longtest.Size(50, 25) {
		t.Errorf("after %d tries something has changed, want after as before and enough tries", tried)
	}
	big := ada.Post("/profile", url.Values{"csrf": {right}, "name": {strings.Repeat("x", 70_000)}})
	big.Expect(http.StatusBadRequest)
}

// Pages are for people who have signed in: no token opens them.
func TestTokensOpenNoPages(t *testing.T) {
	w := servertest.New(t, server.Options{})
	access, _ := accessToken(w, servertest.PublicAt, souvenir.Scopes()...)
	for _, rt := range server.PageRoutes() {
		if rt.Method != http.MethodGet || rt.Needs == "nothing" {
			continue
		}
		path := strings.TrimSuffix(rt.Path, "{$}")
		for _, credential := range []string{w.Tokens[servertest.Owner], w.Tokens[servertest.Admin], access} {
			b := w.Browser()
			b.SetCookie("auth_token", credential)
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.HTTP.URL+path+"?token="+credential, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+credential)
			if p := b.Send(r); p.Status != http.StatusSeeOther || !strings.HasPrefix(p.Header.Get("Location"), "/login") {
				t.Errorf(`%s: got %d, want status %v and "/login" at the beginning of the Location`, path, p.Status,
					http.StatusSeeOther)
			}
		}
	}
}

func TestContrastOfColours(t *testing.T) {
	css, err := os.ReadFile("internal/web/static/souvenir.css")
	if err != nil {
		t.Fatal(err)
	}
	light, dark, _ := strings.Cut(string(css), "@media (prefers-color-scheme: dark)")
	dark, _, _ = strings.Cut(dark, "}\n}")
	for name, block := range map[string]string{"light": light, "dark": dark} {
		colours := map[string][3]float64{}
		for _, found := range regexp.MustCompile(`--([a-z-]+): #([0-9a-f]{6});`).FindAllStringSubmatch(block, -1) {
			n, err := strconv.ParseUint(found[2], 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			colours[found[1]] = [3]float64{float64(n>>16) / 255, float64(n>>8&255) / 255, float64(n&255) / 255}
		}
		for _, pair := range []struct {
			text, ground string
			least        float64
		}{
			{"text", "ground", 4.5}, {"text", "card", 4.5}, {"text", "sunk", 4.5}, {"soft", "ground", 4.5},
			{"soft", "card", 4.5}, {"soft", "sunk", 4.5},
			{"link", "card", 4.5}, {"link", "ground", 4.5}, {"on-accent", "accent", 4.5}, {"on-accent", "accent-hover", 4.5},
			{"danger", "card", 4.5}, {"danger", "danger-ground", 4.5}, {"good", "good-ground", 4.5}, {"focus", "card", 3},
			{"focus", "ground", 3}, {"edge", "card", 3}, {"edge", "ground", 3},
		} {
			a, okA := colours[pair.text]
			b, okB := colours[pair.ground]
			if got := contrast(a, b); !okA || !okB || got < pair.least {
				t.Errorf("%s: %s on %s: got a contrast of %.2f, want two known colours and at least %.1f", name,
					pair.text, pair.ground, got, pair.least)
			}
		}
	}
}

// contrast is the contrast ratio of two colours (WCAG 2.2).
func contrast(a, b [3]float64) float64 {
	luminance := func(c [3]float64) float64 {
		for i, v := range c {
			if c[i] = v / 12.92; v > 0.04045 {
				c[i] = math.Pow((v+0.055)/1.055, 2.4)
			}
		}
		return 0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2]
	}
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}
