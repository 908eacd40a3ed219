package servertest

import (
	"net/http"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/server"
)

// Snippets are sample instructions for connecting a client.
func Snippets(address, token string) []server.Snippet {
	return []server.Snippet{{Client: "Sample", Where: "somewhere", Text: "connect " + address + " with " + token}}
}

// Hostile is a name with scripts, to be shown as text.
const Hostile = `<script>alert("x")</script><img src=x onerror=alert(1)>' " & {{.}}`

// CheckPage checks what every page must have.
func CheckPage(w *World, p *Page) {
	t := w.T
	if p.HTML == nil {
		t.Errorf("no page: %d %.300s, want HTML not nil", p.Status, p.Body)
		return
	}
	for name, want := range map[string]string{"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store",
		"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff",
		"Referrer-Policy": "same-origin", "Access-Control-Allow-Origin": ""} {
		if p.Header.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, p.Header.Get(name), want)
		}
	}
	policy := p.Header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
		if !strings.Contains(policy, part) {
			t.Errorf("got the policy %q, want one that contains %q", policy, part)
		}
	}
	if strings.Contains(policy, "form-action") || strings.Contains(policy, "unsafe") {
		t.Errorf(`the policy is %q, want no "form-action" in policy and no "unsafe" in policy`, policy)
	}
	if size, most := p.transferred(w), p.most(); size > most {
		t.Errorf("the page and what it loads have %d bytes, want at most %d", size, most)
	}
	if !strings.HasPrefix(p.Body, "<!doctype html>\n<html lang=\"en\">") {
		t.Errorf("begins with %.60q", p.Body)
	}
	if titles := p.titles(); len(titles) != 1 || !strings.HasSuffix(titles[0].Text, " · Souvenir") ||
		len(titles[0].Text) < 15 {
		t.Errorf(`titles: %d, want 1 title, " · Souvenir" at the end of the text and len(titles[0].Text) at least 15`,
			len(titles))
	}
	if headings := p.HTML.All("h1"); len(headings) != 1 || strings.TrimSpace(headings[0].Text) == "" ||
		len(p.HTML.All("main")) != 1 {
		t.Errorf(`%d headings of the first level, want 1 heading, a text that is not empty and len(p.HTML.All("main")) = 1`,
			len(headings))
	}
	if active := p.HTML.All("style", "iframe", "object", "embed", "base"); len(active) > 0 {
		t.Errorf("the page has <%s>, got %v, want none", active[0].Name, len(active))
	}
	for _, script := range p.HTML.All("script") {
		if !strings.HasPrefix(script.Attr("src"), "/static/") || strings.TrimSpace(script.Text) != "" {
			t.Errorf(`the page has a script from %q with the text %q, want "/static/" at the beginning of it and no text`,
				script.Attr("src"), script.Text)
		}
	}
	for _, img := range p.HTML.All("img") {
		if !strings.HasPrefix(img.Attr("src"), "/") || !img.Has("alt") {
			t.Errorf(`the page has a picture from %q, want "/" at the beginning of it and img.Has("alt") = true`,
				img.Attr("src"))
		}
	}
	checkElements(w, p)
}

// titles returns the titles of the page, without those of pictures in it.
func (p *Page) titles() []*Element {
	var titles []*Element
	for _, head := range p.HTML.All("head") {
		titles = append(titles, head.All("title")...)
	}
	return titles
}

// transferred is how many bytes a browser gets for a page, with the files that it loads.
func (p *Page) transferred(w *World) int {
	size := len(p.Body)
	for _, e := range p.HTML.All("link", "script") {
		address := e.Attr("href") + e.Attr("src")
		if known, ok := w.sizes.Load(address); ok {
			size += known.(int)
			continue
		}
		r := w.Request(Guest, http.MethodGet, address, nil)
		r.Header.Set("Accept-Encoding", "gzip") // as browsers do; then it is not decompressed here
		file := w.Browser().Send(r)
		if file.Status != http.StatusOK {
			w.T.Errorf("%s: %d, want %v", address, file.Status, http.StatusOK)
		}
		w.sizes.Store(address, len(file.Body))
		size += len(file.Body)
	}
	return size
}

// most is how many bytes a page may have with the files that it loads: fewer for pages without the dashboard's frame,
// such as the sign-in page.
func (p *Page) most() int {
	if strings.Contains(p.Body, `<body class="dashboard">`) {
		return 150_000
	}
	return 60_000
}

// checkElements checks ids, labels, addresses and forms.
func checkElements(w *World, p *Page) {
	t := w.T
	ids := map[string]int{}
	for _, e := range p.HTML.All() {
		if e.Has("id") {
			ids[e.Attr("id")]++
		}
		for name := range e.Attrs {
			if strings.HasPrefix(name, "on") || name == "style" || strings.HasPrefix(name, "hx-on") ||
				strings.Contains(e.Attr(name), "javascript:") {
				t.Errorf(`<%s> has %s, want no "on" at the beginning of name, name other than "style", no "hx-on" at the `+
					`beginning of name and no "javascript:" in it`, e.Name, name)
			}
		}
	}
	labels := map[string]bool{}
	for _, label := range p.HTML.All("label") {
		if strings.TrimSpace(label.Text) == "" {
			t.Errorf("a label is empty: got %v, want a text", strings.TrimSpace(label.Text))
		}
		labels[label.Attr("for")] = true
		for _, input := range label.All("input") {
			input.Attrs["labelled"] = "yes"
		}
	}
	for _, e := range p.HTML.All() {
		for _, id := range append(strings.Fields(e.Attr("aria-describedby")), strings.Fields(e.Attr("aria-labelledby"))...) {
			if ids[id] != 1 {
				t.Errorf("<%s> names the id %q, which %d elements have; want 1", e.Name, id, ids[id])
			}
		}
		switch e.Name {
		case "input", "select":
			if e.Attr("type") != "hidden" && !e.Has("labelled") && !e.Has("aria-label") && !labels[e.Attr("id")] {
				t.Errorf("%s has no label", e.Attr("name"))
			}
			if (e.Attr("type") == "text" || e.Attr("type") == "password" || e.Attr("type") == "email") &&
				e.Attr("autocomplete") == "" {
				t.Errorf("%s has no autocomplete", e.Attr("name"))
			}
			if e.Attr("type") == "password" && e.Attr("value") != "" {
				t.Errorf("the page has a password: %q", e.Attr("value"))
			}
		case "button", "a", "summary":
			if strings.TrimSpace(e.Text) == "" {
				t.Errorf("a %s has no text, want one", e.Name)
			}
		case "form":
			if e.Attr("method") != "get" && (e.Attr("method") != "post" || e.Fields().Get("csrf") == "") {
				t.Errorf("the form to %s lacks its method or its hidden field", e.Attr("action"))
			}
		}
		for _, name := range []string{"href", "action"} {
			if e.Has(name) {
				checkAddress(w, e.Attr(name), ids)
			}
		}
	}
	for id, n := range ids {
		if n > 1 {
			t.Errorf("%d elements have the id %q, want at most 1", n, id)
		}
	}
}

// checkAddress checks that the target of a link on a page exists.
func checkAddress(w *World, address string, ids map[string]int) {
	if fragment, ok := strings.CutPrefix(address, "#"); ok {
		if ids[fragment] != 1 {
			w.T.Errorf("nothing has the id %q, got %v, want 1", fragment, ids[fragment])
		}
		return
	}
	path, fragment, _ := strings.Cut(address, "#")
	path, _, _ = strings.Cut(path, "?")
	if path == "" { // the same page
		if fragment != "" && ids[fragment] != 1 {
			w.T.Errorf("nothing has the id %q", fragment)
		}
		return
	}
	if strings.HasPrefix(path, "/static/") {
		if p := w.Browser().Get(address); p.Status != http.StatusOK ||
			!strings.Contains(p.Header.Get("Cache-Control"), "immutable") {
			w.T.Errorf(`%s: got %d %q, want status %v and "immutable" in the Cache-Control`, address, p.Status,
				p.Header.Get("Cache-Control"), http.StatusOK)
		}
		return
	}
	if strings.HasPrefix(path, "/api/files/") {
		readable := func(caller string) bool {
			return w.Users[caller] != "" &&
				w.SignedIn(caller).Send(w.Request(Guest, http.MethodHead, path, nil)).Status == http.StatusOK
		}
		if !slices.ContainsFunc([]string{Admin, Owner, Stranger}, readable) {
			w.T.Errorf("%s: no user may read it, want one", address)
		}
		return
	}
	if !w.has(path) {
		w.T.Errorf("the page links to %q, want a page that exists", address)
	}
}

// has reports whether the server has a route for a path, with any method.
func (w *World) has(path string) bool {
	if known, ok := w.routes.Load(path); ok {
		return known.(bool)
	}
	has := w.Browser().Get(path).Status != http.StatusNotFound
	w.routes.Store(path, has)
	return has
}
