package servertest

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// Browser is a web browser: it keeps cookies and fills in forms. It follows redirects only by [Browser.LeadsTo].
type Browser struct {
	W      *World
	Client *http.Client
	Agent  string
}

// BrowserOfTests is the user agent of a [Browser].
const BrowserOfTests = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

// Browser opens a browser in which no user has signed in.
func (w *World) Browser() *Browser {
	w.T.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.T.Fatal(err)
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Browser{w, &http.Client{Jar: jar, Transport: w.HTTP.Client().Transport, CheckRedirect: stay},
		BrowserOfTests}
}

// SignedIn opens a browser in which a caller has signed in.
func (w *World) SignedIn(caller string) *Browser {
	w.T.Helper()
	b := w.Browser()
	added, err := w.Store.Accounts().AddSignIn(w.T.Context(),
		souvenir.NewSignIn{User: w.Users[caller], UserAgent: b.Agent})
	if err != nil {
		w.T.Fatal(err)
	}
	b.SetCookie("auth_token", added.Value)
	return b
}

// SetCookie sets a cookie for all paths.
func (b *Browser) SetCookie(name, value string) {
	b.Client.Jar.SetCookies(b.Address("/"), []*http.Cookie{{Name: name, Value: value, Path: "/"}})
}

// Cookie returns the value of a cookie, empty if there is none.
func (b *Browser) Cookie(name string) string {
	for _, c := range b.Client.Jar.Cookies(b.Address("/")) {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

// Address returns the URL of a path.
func (b *Browser) Address(path string) *url.URL {
	b.W.T.Helper()
	u, err := url.Parse(b.W.HTTP.URL + path)
	if err != nil {
		b.W.T.Fatal(err)
	}
	return u
}

// Page is an answer to a browser.
type Page struct {
	Answer
	HTML *Element // nil: it is not HTML
}

// Expect does the same as [Answer.Expect].
func (p *Page) Expect(status int, has ...string) *Page {
	p.T.Helper()
	p.Answer.Expect(status, has...)
	return p
}

// Without does the same as [Answer.Without].
func (p *Page) Without(parts ...string) *Page {
	p.T.Helper()
	p.Answer.Without(parts...)
	return p
}

// Stays checks that the answer is a page and not a redirect.
func (p *Page) Stays(status int, has ...string) *Page {
	p.T.Helper()
	if location := p.Header.Get("Location"); location != "" || p.HTML == nil {
		p.T.Errorf("%d to %q with %s, want no location and HTML not nil", p.Status, location, p.Header.Get("Content-Type"))
	}
	return p.Expect(status, has...)
}

// GoesTo checks that the answer is a redirect to an address, and returns its query parameters.
func (p *Page) GoesTo(address string) url.Values {
	p.T.Helper()
	location := p.Header.Get("Location")
	if p.Status != http.StatusSeeOther || !strings.HasPrefix(location, address) {
		p.T.Fatalf("%d to %q, want status %d and a location that begins with %q: %.500s", p.Status, location,
			http.StatusSeeOther, address, p.Body)
	}
	u, err := url.Parse(location)
	if err != nil {
		p.T.Fatal(err)
	}
	return u.Query()
}

// Hidden returns the hidden fields of a page.
func (p *Page) Hidden() url.Values {
	fields := url.Values{}
	for _, input := range p.HTML.All("input") {
		if input.Attr("type") == "hidden" {
			fields.Add(input.Attr("name"), input.Attr("value"))
		}
	}
	return fields
}

// Send sends a request with the browser's cookies. It does not follow redirects.
func (b *Browser) Send(r *http.Request) *Page {
	b.W.T.Helper()
	r.Header.Set("User-Agent", b.Agent)
	response, err := b.Client.Do(r)
	if err != nil {
		b.W.T.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		b.W.T.Fatal(err)
	}
	p := &Page{Answer: Answer{b.W.T, response.StatusCode, response.Header, string(body)}}
	if strings.HasPrefix(p.Header.Get("Content-Type"), "text/html") {
		p.HTML = parseHTML(b.W.T, p.Body)
	}
	return p
}

// Get opens a path.
func (b *Browser) Get(path string) *Page {
	b.W.T.Helper()
	r, err := http.NewRequestWithContext(b.W.T.Context(), http.MethodGet, b.W.HTTP.URL+path, nil)
	if err != nil {
		b.W.T.Fatal(err)
	}
	return b.Send(r)
}

// Post sends a form with these fields, as from a page of this server.
func (b *Browser) Post(path string, fields url.Values) *Page {
	b.W.T.Helper()
	r, err := http.NewRequestWithContext(b.W.T.Context(), http.MethodPost, b.W.HTTP.URL+path,
		strings.NewReader(fields.Encode()))
	if err != nil {
		b.W.T.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", b.W.HTTP.URL)
	return b.Send(r)
}

// Submit fills in and sends a page's form with an action. Other fields stay as the page has them. Of several forms, it
// takes the first, or the first with the given id.
func (b *Browser) Submit(p *Page, action string, typed url.Values) *Page {
	b.W.T.Helper()
	for _, form := range p.HTML.All("form") {
		if form.Attr("action") != action || form.Attr("method") != "post" {
			continue
		}
		fields := form.Fields()
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
		return b.Post(action, fields)
	}
	b.W.T.Fatalf("the page has no such form to %s with %v:\n%s", action, typed, p.Body)
	return nil
}

// LeadsTo checks that a page is a redirect to a path of this server, and opens it.
func (b *Browser) LeadsTo(p *Page, path string) *Page {
	b.W.T.Helper()
	if p.Status != http.StatusSeeOther || p.Header.Get("Location") != path {
		b.W.T.Errorf("%d %q, want status %d and location %q: %.300s", p.Status, p.Header.Get("Location"),
			http.StatusSeeOther, path, p.Body)
		return p
	}
	return b.Get(path)
}

// Code returns the text of the first code element that has a part.
func (p *Page) Code(part string) string {
	p.T.Helper()
	for _, e := range p.HTML.All("code") {
		if strings.Contains(e.Text, part) {
			return strings.TrimSpace(e.Text)
		}
	}
	p.T.Fatalf("nothing to paste has %q:\n%s", part, p.Body)
	return ""
}

// FormTo returns the fields of a form with an action, and if a name is given, with that value in a hidden field.
func (p *Page) FormTo(path, name, value string) url.Values {
	p.T.Helper()
	for _, form := range p.HTML.All("form") {
		if fields := form.Fields(); form.Attr("action") == path && (name == "" || fields.Get(name) == value) {
			return fields
		}
	}
	p.T.Fatalf("the page has no form to %s with %s=%s:\n%s", path, name, value, p.Body)
	return nil
}
