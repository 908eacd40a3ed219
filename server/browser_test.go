package server_test

import (
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
)

// browser is someone with a browser: it keeps cookies, follows redirects when told to, and fills in forms.
type browser struct {
	w      *world
	client *http.Client
	agent  string
}

// browser opens one that no user has signed in with.
func (w *world) browser() *browser {
	w.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &browser{w, &http.Client{Jar: jar, Transport: w.at.Client().Transport, CheckRedirect: stay},
		"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}
}

// signedIn opens one in which a caller of the world has signed in.
func (w *world) signedIn(caller string) *browser {
	w.t.Helper()
	b := w.browser()
	added, err := w.store.Accounts().AddSignIn(w.t.Context(),
		souvenir.NewSignIn{User: w.users[caller], UserAgent: b.agent})
	if err != nil {
		w.t.Fatal(err)
	}
	b.setCookie("auth_token", added.Value)
	return b
}

func (b *browser) setCookie(name, value string) {
	b.client.Jar.SetCookies(b.address("/"), []*http.Cookie{{Name: name, Value: value, Path: "/"}})
}

// cookie is the value of a cookie that the browser has; empty: none.
func (b *browser) cookie(name string) string {
	for _, c := range b.client.Jar.Cookies(b.address("/")) {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

func (b *browser) address(path string) *url.URL {
	b.w.t.Helper()
	u, err := url.Parse(b.w.at.URL + path)
	if err != nil {
		b.w.t.Fatal(err)
	}
	return u
}

// gotPage is a page as it has come.
type gotPage struct {
	answer
	html *element
}

func (p *gotPage) expect(status int, has ...string) *gotPage {
	p.t.Helper()
	p.answer.expect(status, has...)
	return p
}

func (p *gotPage) without(parts ...string) *gotPage {
	p.t.Helper()
	p.answer.without(parts...)
	return p
}

// stays sees that what has come is a page, which sends no one anywhere.
func (p *gotPage) stays(status int, has ...string) *gotPage {
	p.t.Helper()
	if location := p.header.Get("Location"); location != "" || p.html == nil {
		p.t.Errorf("%d to %q with %s", p.status, location, p.header.Get("Content-Type"))
	}
	return p.expect(status, has...)
}

// goesTo sees that the browser is sent to an address, and returns the parameters with which it is.
func (p *gotPage) goesTo(address string) url.Values {
	p.t.Helper()
	location := p.header.Get("Location")
	if p.status != http.StatusSeeOther || !strings.HasPrefix(location, address) {
		p.t.Fatalf("%d to %q, not to %s: %.500s", p.status, location, address, p.body)
	}
	u, err := url.Parse(location)
	if err != nil {
		p.t.Fatal(err)
	}
	return u.Query()
}

// hidden are the fields that a page sends along whatever is chosen.
func (p *gotPage) hidden() url.Values {
	fields := url.Values{}
	for _, input := range p.html.all("input") {
		if input.attr("type") == "hidden" {
			fields.Add(input.attr("name"), input.attr("value"))
		}
	}
	return fields
}

// send sends a request as the browser, without following redirects.
func (b *browser) send(r *http.Request) *gotPage {
	b.w.t.Helper()
	r.Header.Set("User-Agent", b.agent)
	response, err := b.client.Do(r)
	if err != nil {
		b.w.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		b.w.t.Fatal(err)
	}
	p := &gotPage{answer: answer{b.w.t, response.StatusCode, response.Header, string(body)}}
	if strings.HasPrefix(p.header.Get("Content-Type"), "text/html") {
		p.html = parseHTML(b.w.t, p.body)
	}
	return p
}

func (b *browser) get(path string) *gotPage {
	b.w.t.Helper()
	r, err := http.NewRequestWithContext(b.w.t.Context(), http.MethodGet, b.w.at.URL+path, nil)
	if err != nil {
		b.w.t.Fatal(err)
	}
	return b.send(r)
}

// post sends a form as a page of this server would, with the fields that are given and no other.
func (b *browser) post(path string, fields url.Values) *gotPage {
	b.w.t.Helper()
	r, err := http.NewRequestWithContext(b.w.t.Context(), http.MethodPost, b.w.at.URL+path,
		strings.NewReader(fields.Encode()))
	if err != nil {
		b.w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", b.w.at.URL)
	return b.send(r)
}

// submit fills in the form of a page that has an action, and sends it. What is not given stays as the page has it; of
// several forms the first that has all the hidden fields that are given.
func (b *browser) submit(p *gotPage, action string, typed url.Values) *gotPage {
	b.w.t.Helper()
	for _, form := range p.html.all("form") {
		if form.attr("action") != action || form.attr("method") != "post" {
			continue
		}
		fields := form.fields()
		fits := true
		for name, values := range typed {
			if name == "id" && fields.Get("id") != values[0] {
				fits = false
			}
		}
		if !fits {
			continue
		}
		for name, values := range typed {
			fields[name] = values
		}
		return b.post(action, fields)
	}
	b.w.t.Fatalf("the page has no such form to %s with %v:\n%s", action, typed, p.body)
	return nil
}

// leadsTo checks that a page is a redirect to a path of this server, and opens it.
func (b *browser) leadsTo(p *gotPage, path string) *gotPage {
	b.w.t.Helper()
	if p.status != http.StatusSeeOther || p.header.Get("Location") != path {
		b.w.t.Errorf("%d %q instead of a redirect to %q: %.300s", p.status, p.header.Get("Location"), path, p.body)
		return p
	}
	return b.get(path)
}

// element is an element of a page.
type element struct {
	name     string
	attrs    map[string]string
	children []*element
	text     string // of it and everything in it
}

// parseHTML reads a page. The templates are written so that every element is closed that is not always empty, which an
// XML parser that knows these can read.
func parseHTML(t *testing.T, page string) *element {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(strings.TrimPrefix(page, "<!doctype html>")))
	decoder.Strict, decoder.AutoClose, decoder.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	root := &element{}
	open := []*element{root}
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the page cannot be read: %v\n%s", err, page)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := &element{name: token.Name.Local, attrs: map[string]string{}}
			for _, a := range token.Attr {
				if _, twice := e.attrs[a.Name.Local]; twice {
					t.Errorf("<%s> has %s twice", e.name, a.Name.Local)
				}
				e.attrs[a.Name.Local] = a.Value
			}
			open[len(open)-1].children = append(open[len(open)-1].children, e)
			open = append(open, e)
		case xml.EndElement:
			if last := open[len(open)-1]; last.name != token.Name.Local {
				t.Fatalf("</%s> ends <%s>:\n%s", token.Name.Local, last.name, page)
			}
			open = open[:len(open)-1]
		case xml.CharData:
			for _, e := range open {
				e.text += string(token)
			}
		}
	}
	if len(open) != 1 {
		t.Fatalf("<%s> is not closed:\n%s; got %v, want 1", open[len(open)-1].name, page, len(open))
	}
	return root
}

// all are the elements of some names within another, in their order.
func (e *element) all(names ...string) []*element {
	var found []*element
	for _, child := range e.children {
		if slices.Contains(names, child.name) || len(names) == 0 {
			found = append(found, child)
		}
		found = append(found, child.all(names...)...)
	}
	return found
}

func (e *element) attr(name string) string { return e.attrs[name] }

func (e *element) has(name string) bool {
	_, ok := e.attrs[name]
	return ok
}

// fields are what a browser would send of a form in which nothing is changed, but for buttons.
func (e *element) fields() url.Values {
	fields := url.Values{}
	for _, input := range e.all("input", "select") {
		switch {
		case input.name == "select":
			for i, option := range input.all("option") {
				if i == 0 || option.has("selected") {
					fields.Set(input.attr("name"), option.attr("value"))
				}
			}
		case (input.attr("type") == "checkbox" || input.attr("type") == "radio") && !input.has("checked"):
		default:
			fields.Add(input.attr("name"), input.attr("value"))
		}
	}
	return fields
}

// code is the text of the first element of code in which something is found.
func (p *gotPage) code(part string) string {
	p.t.Helper()
	for _, e := range p.html.all("code") {
		if strings.Contains(e.text, part) {
			return strings.TrimSpace(e.text)
		}
	}
	p.t.Fatalf("nothing to paste has %q:\n%s", part, p.body)
	return ""
}
