package server_test

import (
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
	"github.com/souvenir-ai/souvenir/server"
)

// hostile is a name that would run if it were no text.
const hostile = `<script>alert("x")</script><img src=x onerror=alert(1)>' " & {{.}}`

// furnish gives Ada, who is an admin, something of everything that pages show, with hostile names wherever one may be
// chosen, and returns the pages that can be opened, with what they have to be opened with.
func (w *world) furnish() map[string]string {
	w.t.Helper()
	steps := firstError{}
	ada := w.store.As(souvenir.Access{User: w.users[admin]})
	_, err := ada.Accounts().AddToken(w.t.Context(), souvenir.NewToken{Name: hostile})
	steps.note(err)
	_, err = ada.AddProject(w.t.Context(), souvenir.NewProject{ID: "p", Name: hostile})
	steps.note(err)
	_, err = w.store.Accounts().AddUser(w.t.Context(), souvenir.NewUser{Name: `<script>alert("x")<\script>`})
	steps.note(err)
	w.accessTokenOf(admin, hostile, souvenir.Authorization{Scopes: souvenir.Scopes()})
	w.accessTokenOf(admin, "Second",
		souvenir.Authorization{Scopes: []souvenir.Scope{souvenir.ScopeMemoryRead}, Projects: []string{"p"}})
	_, err = w.store.Accounts().AddSignIn(w.t.Context(), souvenir.NewSignIn{User: w.users[admin], UserAgent: hostile})
	steps.note(err)
	invitation, err := w.store.Accounts().AddInvitation(w.t.Context(),
		souvenir.NewInvitation{Note: hostile, CreatedBy: w.users[admin]})
	steps.note(err)
	memory, err := ada.AddMemory(w.t.Context(),
		souvenir.NewMemory{Content: hostile, Tags: []string{"<b>"}, ShownMetadata: map[string]any{hostile: hostile, "size": 3}})
	steps.note(err)
	_, err = ada.AddFile(w.t.Context(), souvenir.NewFile{Filename: "<b>.txt", MemoryID: memory.ID},
		strings.NewReader("text"))
	steps.note(err)
	if steps.err != nil {
		w.t.Fatal(steps.err)
	}
	paths := map[string]string{}
	for _, rt := range server.PageRoutes() {
		if rt.Method == http.MethodGet && rt.Path != "/static/{file...}" {
			paths[rt.Path] = strings.TrimSuffix(rt.Path, "{$}")
		}
	}
	w.furnishDashboard(paths)
	paths["/invite"] += "?invitation=" + invitation.Value
	paths["/memories/{id}"] = "/memories/" + memory.ID
	paths["/oauth/authorize"] = w.registerAs(hostile, "none").asks()
	paths["/authorize"] = strings.TrimPrefix(paths["/oauth/authorize"], "/oauth")
	return paths
}

func TestPagesAreWellMade(t *testing.T) {
	w := newWorld(t, server.Options{Snippets: func(address, token string) []server.Snippet {
		return []server.Snippet{{hostile, hostile, address + token + hostile}, {Client: "Second", Text: "second"}}
	}})
	paths := w.furnish()
	guest, ada := w.browser(), w.signedIn(admin)
	var found []*gotPage
	for pattern, path := range paths {
		if pattern == "/login" || pattern == "/setup" || pattern == "/invite" {
			found = append(found, guest.get(path))
		} else {
			found = append(found, ada.get(path).expect(http.StatusOK))
		}
	}
	found = append(found,
		guest.login(hostile, "x"),
		ada.submit(ada.get("/profile"), "/profile", url.Values{"name": {hostile}, "email": {hostile}}),
		ada.submit(ada.get("/tokens"), "/tokens", url.Values{"name": {hostile}, "days": {hostile}}),
		ada.submit(ada.get("/tokens"), "/tokens", url.Values{"name": {hostile}}),
		ada.submit(ada.get("/invitations"), "/invitations", url.Values{"note": {hostile}, "email": {hostile}}),
		ada.submit(ada.get("/invitations"), "/invitations", url.Values{"note": {hostile}}),
		ada.submit(ada.get("/users"), "/users", url.Values{"change": {hostile}}),
		ada.get("/invite?invitation="+url.QueryEscape(hostile)), ada.get("/profile?done="+url.QueryEscape(hostile)),
		ada.get("/profile?done=password"),
		ada.post("/profile", url.Values{"csrf": {hostile}}),
	)
	if len(found) < 18 {
		t.Fatalf("only %d pages, want at least 18", len(found))
	}
	for _, p := range found {
		checkPage(w, p)
	}
}

// checkPage checks what holds for every page.
func checkPage(w *world, p *gotPage) {
	t := w.t
	if p.html == nil {
		t.Errorf("no page: %d %.300s", p.status, p.body)
		return
	}
	for name, want := range map[string]string{"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store",
		"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff",
		"Referrer-Policy": "same-origin", "Access-Control-Allow-Origin": ""} {
		if p.header.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, p.header.Get(name), want)
		}
	}
	policy := p.header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
		if !strings.Contains(policy, part) {
			t.Errorf("the policy %q lacks %q", policy, part)
		}
	}
	if strings.Contains(policy, "form-action") || strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %q", policy)
	}
	if size, most := p.transferred(w), p.most(); size > most {
		t.Errorf("the page and what it loads have %d bytes, more than %d", size, most)
	}
	if !strings.HasPrefix(p.body, "<!doctype html>\n<html lang=\"en\">") {
		t.Errorf("begins with %.60q", p.body)
	}
	if titles := p.titles(); len(titles) != 1 || !strings.HasSuffix(titles[0].text, " · Souvenir") ||
		len(titles[0].text) < 15 {
		t.Errorf("titles: %d", len(titles))
	}
	if headings := p.html.all("h1"); len(headings) != 1 || strings.TrimSpace(headings[0].text) == "" ||
		len(p.html.all("main")) != 1 {
		t.Errorf("%d headings of the first level", len(headings))
	}
	if active := p.html.all("style", "iframe", "object", "embed", "base"); len(active) > 0 {
		t.Errorf("the page has <%s>, got %v, want none", active[0].name, len(active))
	}
	for _, script := range p.html.all("script") {
		if !strings.HasPrefix(script.attr("src"), "/static/") || strings.TrimSpace(script.text) != "" {
			t.Errorf("the page has a script from %q with the text %q", script.attr("src"), script.text)
		}
	}
	for _, img := range p.html.all("img") {
		if !strings.HasPrefix(img.attr("src"), "/") || !img.has("alt") {
			t.Errorf("the page has a picture from %q", img.attr("src"))
		}
	}
	checkElements(w, p)
}

// titles are those of the page; pictures in it may have their own.
func (p *gotPage) titles() []*element {
	var titles []*element
	for _, head := range p.html.all("head") {
		titles = append(titles, head.all("title")...)
	}
	return titles
}

// transferred is how many bytes a browser gets for a page, with the files that it loads.
func (p *gotPage) transferred(w *world) int {
	size := len(p.body)
	for _, e := range p.html.all("link", "script") {
		address := e.attr("href") + e.attr("src")
		r := w.request(guest, http.MethodGet, address, nil)
		r.Header.Set("Accept-Encoding", "gzip") // as browsers do; then it is not unpacked here
		file := w.browser().send(r)
		if file.status != http.StatusOK {
			w.t.Errorf("%s: %d, want %v", address, file.status, http.StatusOK)
		}
		size += len(file.body)
	}
	return size
}

// most is how many bytes a page may have with what it loads: less on the ones that someone opens in a hurry to sign in.
func (p *gotPage) most() int {
	if strings.Contains(p.body, `<body class="dashboard">`) {
		return 150_000
	}
	return 60_000
}

// checkElements checks ids, labels, addresses and forms.
func checkElements(w *world, p *gotPage) {
	t := w.t
	ids := map[string]int{}
	for _, e := range p.html.all() {
		if e.has("id") {
			ids[e.attr("id")]++
		}
		for name := range e.attrs {
			if strings.HasPrefix(name, "on") || name == "style" || strings.HasPrefix(name, "hx-on") ||
				strings.Contains(e.attr(name), "javascript:") {
				t.Errorf("<%s> has %s", e.name, name)
			}
		}
	}
	labels := map[string]bool{}
	for _, label := range p.html.all("label") {
		if strings.TrimSpace(label.text) == "" {
			t.Error("a label is empty")
		}
		labels[label.attr("for")] = true
		for _, input := range label.all("input") {
			input.attrs["labelled"] = "yes"
		}
	}
	for _, e := range p.html.all() {
		for _, id := range append(strings.Fields(e.attr("aria-describedby")), strings.Fields(e.attr("aria-labelledby"))...) {
			if ids[id] != 1 {
				t.Errorf("<%s> names the id %q, which %d elements have; want 1", e.name, id, ids[id])
			}
		}
		switch e.name {
		case "input", "select":
			if e.attr("type") != "hidden" && !e.has("labelled") && !e.has("aria-label") && !labels[e.attr("id")] {
				t.Errorf("%s has no label", e.attr("name"))
			}
			if (e.attr("type") == "text" || e.attr("type") == "password" || e.attr("type") == "email") &&
				e.attr("autocomplete") == "" {
				t.Errorf("%s has no autocomplete", e.attr("name"))
			}
			if e.attr("type") == "password" && e.attr("value") != "" {
				t.Errorf("the page has a password: %q", e.attr("value"))
			}
		case "button", "a", "summary":
			if strings.TrimSpace(e.text) == "" {
				t.Errorf("a %s has no text", e.name)
			}
		case "form":
			if e.attr("method") != "get" && (e.attr("method") != "post" || e.fields().Get("csrf") == "") {
				t.Errorf("the form to %s lacks its method or its hidden field", e.attr("action"))
			}
		}
		for _, name := range []string{"href", "action"} {
			if e.has(name) {
				checkAddress(w, e.attr(name), ids)
			}
		}
	}
	for id, n := range ids {
		if n > 1 {
			t.Errorf("%d elements have the id %q, want at most 1", n, id)
		}
	}
}

// checkAddress checks that a page leads to what there is.
func checkAddress(w *world, address string, ids map[string]int) {
	if fragment, ok := strings.CutPrefix(address, "#"); ok {
		if ids[fragment] != 1 {
			w.t.Errorf("nothing has the id %q, got %v, want 1", fragment, ids[fragment])
		}
		return
	}
	path, fragment, _ := strings.Cut(address, "#")
	path, _, _ = strings.Cut(path, "?")
	if path == "" { // the same page
		if fragment != "" && ids[fragment] != 1 {
			w.t.Errorf("nothing has the id %q", fragment)
		}
		return
	}
	if strings.HasPrefix(path, "/static/") {
		if p := w.browser().get(address); p.status != http.StatusOK ||
			!strings.Contains(p.header.Get("Cache-Control"), "immutable") {
			w.t.Errorf("%s: %d %q", address, p.status, p.header.Get("Cache-Control"))
		}
		return
	}
	if strings.HasPrefix(path, "/api/files/") {
		readable := func(caller string) bool {
			return w.users[caller] != "" &&
				w.signedIn(caller).send(w.request(guest, http.MethodHead, path, nil)).status == http.StatusOK
		}
		if !slices.ContainsFunc([]string{admin, owner, stranger}, readable) {
			w.t.Errorf("%s: got no user who may read it, want one", address)
		}
		return
	}
	if !slices.ContainsFunc(append(server.PageRoutes(), server.ProviderRoutes()...),
		func(rt server.PageRoute) bool { return fits(rt.Path, path) }) {
		w.t.Errorf("the page leads to %q, which is no page", address)
	}
}

// fits reports whether a path is one that the pattern of a route stands for.
func fits(pattern, path string) bool {
	parts, of := strings.Split(path, "/"), strings.Split(strings.TrimSuffix(pattern, "{$}"), "/")
	for i := range of {
		if i >= len(parts) || of[i] != parts[i] && (!strings.HasPrefix(of[i], "{") || parts[i] == "") {
			return false
		}
	}
	return len(of) == len(parts)
}

// However much there is, a page stays small, and everything can be reached.
func TestLongListsComeInParts(t *testing.T) {
	w := newWorld(t, server.Options{})
	ada, view := w.signedIn(admin), w.store.As(souvenir.Access{User: w.users[admin]})
	const many = 52 // three pages
	steps := firstError{}
	for i := range many {
		_, err := w.store.Accounts().AddUser(t.Context(), souvenir.NewUser{Name: fmt.Sprintf("person %02d", i)})
		steps.note(err)
		_, err = view.Accounts().AddToken(t.Context(), souvenir.NewToken{Name: fmt.Sprintf("token %02d", i)})
		steps.note(err)
		_, err = w.store.Accounts().AddSignIn(t.Context(),
			souvenir.NewSignIn{User: w.users[admin], UserAgent: fmt.Sprintf("browser %02d", i)})
		steps.note(err)
		_, err = w.store.Accounts().AddInvitation(t.Context(), souvenir.NewInvitation{Note: fmt.Sprintf("guest %02d", i)})
		steps.note(err)
		_, err = view.Accounts().AddClient(t.Context(),
			souvenir.NewClient{Name: fmt.Sprintf("application %02d", i), RedirectURIs: []string{"https://app.example/b"}})
		steps.note(err)
		w.accessTokenOf(admin, fmt.Sprintf("client %02d", i), souvenir.Authorization{Scopes: souvenir.Scopes()})
	}
	if steps.err != nil {
		t.Fatal(steps.err)
	}
	for list, noun := range map[string]string{"/users?users": "person", "/tokens?tokens": "token",
		"/clients?clients": "application", "/profile?sessions": "browser", "/invitations?open": "guest",
		"/connected?applications": "client"} {
		seen := map[string]bool{}
		for number := 1; number <= 3; number++ {
			p := ada.get(fmt.Sprintf("%s=%d", list, number)).expect(http.StatusOK, fmt.Sprintf("Page %d of 3", number))
			checkPage(w, p)
			for _, name := range regexp.MustCompile(noun+` \d\d`).FindAllString(p.body, -1) {
				seen[name] = true
			}
		}
		if len(seen) != many {
			t.Errorf("%s: %d of %d are shown", list, len(seen), many)
		}
		first := ada.get(strings.Split(list, "?")[0]).body
		for part, same := range map[string]bool{"0": true, "-7": true, "x": true, "1": true, "2": false} {
			if (ada.get(list+"="+part).body == first) != same {
				t.Errorf("%s=%s", list, part)
			}
		}
		ada.get(list + "=99999999999").expect(http.StatusOK)
		ada.get(list+"=99").expect(http.StatusOK, "Page 3 of 3")
	}
}

// Someone with a browser gets a page where there is nothing, a program what the interface says.
func TestNothingHereForPeopleAndPrograms(t *testing.T) {
	w := newWorld(t, server.Options{})
	b := w.browser()
	for _, accept := range []string{"", "*/*", "application/json"} {
		r := w.request(guest, "GET", "/dashboard", nil)
		r.Header.Set("Accept", accept)
		b.send(r).expect(http.StatusNotFound, `"isError":true`)
	}
	r := w.request(guest, "GET", "/dashboard", nil)
	r.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	p := b.send(r).expect(http.StatusNotFound, "Not found")
	checkPage(w, p)
}

func TestNoticesAreNotWhatALinkSays(t *testing.T) {
	w := newWorld(t, server.Options{})
	b := w.browser()
	b.get("/login?done=signed-out").expect(http.StatusOK, `role="status"><p>You are signed out.`)
	b.get("/login?done=Send+your+password+to+me").expect(http.StatusOK).without("Send", `role="status"`)
}

// Every form needs the field of a page that this browser was given, and comes from this origin.
func TestFormsOfOthersAreRefused(t *testing.T) {
	w := newWorld(t, server.Options{})
	ada, sam := w.signedIn(admin), w.signedIn(stranger)
	right := ada.get("/profile").html.all("form")[0].fields().Get("csrf")
	other := sam.get("/profile").html.all("form")[0].fields().Get("csrf")
	unknown := w.browser().get("/login").html.all("form")[0].fields().Get("csrf")
	if right == other || other == unknown || len(right) < 40 {
		t.Fatalf("the fields are %q, %q and %q", right, other, unknown)
	}
	times := regexp.MustCompile(`<time[^>]*>[^<]*</time>`) // when a sign-in was used last goes on
	shown := func() string {
		return times.ReplaceAllString(ada.get("/profile").body+ada.get("/users").body+ada.get("/invitations").body, "")
	}
	before := shown()
	tried := 0
	for _, rt := range server.PageRoutes() {
		if rt.Method != http.MethodPost {
			continue
		}
		for name, field := range map[string]url.Values{"no field": {}, "an empty field": {"csrf": {""}},
			"that of another": {"csrf": {other}}, "without a user": {"csrf": {unknown}},
			"a wrong one first": {"csrf": {other, right}}} {
			if p := ada.post(rt.Path, field); p.status != http.StatusForbidden {
				t.Errorf("POST %s with %s: %d, want %v", rt.Path, name, p.status, http.StatusForbidden)
			}
			tried++
		}
		for name, headers := range map[string]map[string]string{
			"another origin": {"Origin": "https://evil.example"}, "no origin": {"Origin": "null"},
			"another site": {"Sec-Fetch-Site": "cross-site"}, "a sibling": {"Sec-Fetch-Site": "same-site"},
		} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.at.URL+rt.Path,
				strings.NewReader(url.Values{"csrf": {right}}.Encode()))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			for key, value := range headers {
				r.Header.Set(key, value)
			}
			if p := ada.send(r); p.status != http.StatusForbidden {
				t.Errorf("POST %s from %s: %d, want %v", rt.Path, name, p.status, http.StatusForbidden)
			}
		}
		if rt.Needs != "nothing" {
			if p := w.browser().post(rt.Path, url.Values{"csrf": {unknown}}); p.status != http.StatusSeeOther ||
				p.header.Get("Location") != "/login" {
				t.Errorf("POST %s without a session: got %d %q", rt.Path, p.status, p.header.Get("Location"))
			}
		}
	}
	if after := shown(); after != before || tried < 50 {
		t.Errorf("after %d tries something has changed", tried)
	}
	big := ada.post("/profile", url.Values{"csrf": {right}, "name": {strings.Repeat("x", 70_000)}})
	big.expect(http.StatusBadRequest)
}

// Pages are for people who have signed in: no token opens them.
func TestTokensOpenNoPages(t *testing.T) {
	w := newWorld(t, server.Options{})
	access, _ := w.accessToken(publicAt, souvenir.Scopes()...)
	for _, rt := range server.PageRoutes() {
		if rt.Method != http.MethodGet || rt.Needs == "nothing" {
			continue
		}
		path := strings.TrimSuffix(rt.Path, "{$}")
		for _, credential := range []string{w.tokens[owner], w.tokens[admin], access} {
			b := w.browser()
			b.setCookie("auth_token", credential)
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.at.URL+path+"?token="+credential, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+credential)
			if p := b.send(r); p.status != http.StatusSeeOther || !strings.HasPrefix(p.header.Get("Location"), "/login") {
				t.Errorf("%s: %d", path, p.status)
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
				t.Errorf("%s: %s on %s has a contrast of %.2f; %.1f is needed", name, pair.text, pair.ground, got, pair.least)
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
