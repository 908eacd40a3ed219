package server

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"

	"github.com/souvenir-ai/souvenir"
)

//go:embed web
var web embed.FS

// page is what a person is shown: a template of web/templates, within the frame that all pages have. The template defines
// content, class as "narrow" if it is a card in the middle of the window, and head for a style sheet or a script of its own.
type page struct {
	template string // its name, without .html
	title    string // also the only heading of the first level
	status   int    // zero: 200
	data     any

	// part is the template, defined in the page's file, that is all of the answer when a script of the page has asked for the page
	// anew (htmx): with the same data as content, and within what content shows. Empty: the script is given the whole page.
	part string
}

// redirect sends a browser elsewhere, with 303: to a path of this server, made by path, or to an address outside that was
// checked before.
type redirect string

// shown is what a template works on.
type shown struct {
	Title  string
	Base   string // path under which the server is reached, without a slash at its end
	CSRF   string // value of the hidden field csrf, which every form has
	User   *souvenir.User
	Here   string // path of the page, without Base
	Notice *notice
	Data   any

	Invitations int // to projects, that wait for the user
}

// notice says what was just done.
type notice struct {
	Text string // a sentence
	Undo string // name of the step by which it can be taken back; empty: none
}

// Menu is where the user can go.
func (p shown) Menu() []menuGroup { return menu(*p.User, p.Here, p.Invitations) }

// Asset is the address of a file of web/static, with its version.
func (p shown) Asset(name string) (string, error) {
	all, err := assets()
	if err != nil {
		return "", err
	}
	a, ok := all[name]
	if !ok {
		return "", errors.New("there is no file " + quoted(name) + " in web/static")
	}
	return p.Base + "/static/" + name + "?v=" + a.version, nil
}

// pageRoutes is the table of the pages.
func (s *Server) pageRoutes() []route {
	return []route{
		get("/static/{file...}", nothing, s.static),

		get("/login", nothing, s.showLogin),
		post("/login", nothing, s.login),
		post("/logout", nothing, s.logout),
		get("/setup", nothing, s.showSetup),
		post("/setup", nothing, s.setup),
		get("/invite", nothing, s.showInvite),
		post("/invite", nothing, s.acceptInvite),

		post("/undo", person, s.takeBack),

		get("/profile", person, s.showProfile),
		post("/profile", person, s.confirmed("/profile", s.updateProfile)),
		post("/profile/password", person, s.changePassword),
		post("/profile/sessions/end", person, s.endSession),
		post("/profile/sign-out", person, s.signOutEverywhere),

		get("/connected", person, s.showConnected),
		post("/connected/end", person, s.endConnected),

		get("/users", administrator, s.showUsers),
		post("/users", administrator, s.updateUser),
		get("/invitations", administrator, s.showInvitations),
		post("/invitations", administrator, s.invite),
		post("/invitations/end", administrator, s.endInvitation),

		get(authorizePath, nothing, s.authorize), // who is there, it finds out itself
		post(authorizePath, nothing, s.decide),
		get("/authorize", nothing, s.authorize), // where old clients guess it
		post("/authorize", nothing, s.decide),
	}
}

// setPageHeaders says what a page may do: load what lies here, and be shown in no frame. There is no form-action, since
// Chromium would apply it to the redirect that follows a form, too. Scripts of other origins have no business here. There is no
// Cross-Origin-Opener-Policy either: applications open the pages in a window that tells them, once it is back on their own
// pages, how it went, and such a policy cuts that tie for good.
//
// Other sites are told no address of a page (some have an invitation in them). This server is: under no-referrer, browsers
// send forms with "Origin: null", which over plain HTTP is all there is to tell them from another site's.
func setPageHeaders(h http.Header) {
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Del("Access-Control-Allow-Origin")
	h.Del("Access-Control-Expose-Headers")
}

// templates are the pages, each with the frame, parsed once.
var templates = sync.OnceValues(func() (map[string]*template.Template, error) {
	const folder = "web/templates"
	frame, err := template.New("frame.html").Funcs(pageWords()).ParseFS(web, folder+"/frame.html", folder+"/parts/*.html")
	if err != nil {
		return nil, err
	}
	files, err := fs.Glob(web, folder+"/*.html")
	if err != nil {
		return nil, err
	}
	parsed := map[string]*template.Template{}
	for _, file := range files {
		own, err := frame.Clone()
		if err == nil {
			own, err = own.ParseFS(web, file)
		}
		if err != nil {
			return nil, err
		}
		parsed[strings.TrimSuffix(strings.TrimPrefix(file, folder+"/"), ".html")] = own
	}
	return parsed, nil
})

// show writes a page, or the part of it that a script wants.
func (s *Server) show(w http.ResponseWriter, r *http.Request, status int, p page) {
	if p.status != 0 {
		status = p.status
	}
	c := exchangeOf(r.Context()).caller
	data := shown{Title: p.title, Base: s.base(), CSRF: s.formToken(w, r), Here: strings.TrimPrefix(r.URL.Path, s.base()), Data: p.data}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		data.Notice = s.notice(r, c)
	}
	if c.SessionID != "" {
		data.User = &c.User
	}
	root := "frame.html"
	if p.part != "" && ofScript(r) {
		root = p.part
	} else if data.User != nil {
		data.Invitations = s.waitingInvitations(r, c)
	}
	var body bytes.Buffer
	all, err := templates()
	if err == nil {
		err = all[p.template].ExecuteTemplate(&body, root, data)
	}
	if err != nil {
		s.log.ErrorContext(r.Context(), "a page could not be made", "request_id", exchangeOf(r.Context()).id, "page", p.template, "error", err)
		http.Error(w, serverError, http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Add("Vary", "HX-Request")
	w.WriteHeader(status)
	w.Write(body.Bytes()) //nolint:errcheck // the client is gone, and the log has the count
}

// ofScript reports whether htmx wants a part of a page, and not a whole one to go to.
func ofScript(r *http.Request) bool {
	h := r.Header
	return h.Get("HX-Request") == "true" && h.Get("HX-Boosted") == "" && h.Get("HX-History-Restore-Request") == ""
}

// notice is what the address of a page says was just done; nil: nothing.
func (s *Server) notice(r *http.Request, c caller) *notice {
	query := r.URL.Query()
	if step, ok := s.undoing.step(c.User.ID, query.Get(undoParameter), false); ok {
		if step.back == nil {
			return &notice{Text: step.text}
		}
		return &notice{step.text, query.Get(undoParameter)}
	}
	if text := notices[query.Get(noticeParameter)]; text != "" {
		return &notice{Text: text}
	}
	return nil
}

// goTo sends a browser elsewhere; a script is told that the whole page is meant.
func (s *Server) goTo(w http.ResponseWriter, r *http.Request, to redirect) {
	if ofScript(r) {
		w.Header().Set("HX-Redirect", string(to))
		w.WriteHeader(http.StatusNoContent)
		return
	}
	http.Redirect(w, r, string(to), http.StatusSeeOther)
}

// failPage shows an error to a person. One who has not signed in, or no more, is asked to.
func (s *Server) failPage(w http.ResponseWriter, r *http.Request, status int, message string, err error) {
	if errors.Is(err, errSignIn) {
		next := ""
		if r.Method == http.MethodGet && !ofScript(r) {
			next = "?next=" + url.QueryEscape(r.URL.RequestURI())
		}
		s.goTo(w, r, redirect(s.path("/login")+next))
		return
	}
	if ofScript(r) { // into the place that every page has for it
		w.Header().Set("HX-Retarget", "#problems")
		w.Header().Set("HX-Reswap", "innerHTML show:window:top")
		s.show(w, r, status, page{template: "error", title: failureTitles[status], data: sentence(message), part: "problem-alone"})
		return
	}
	s.show(w, r, status, page{template: "error", title: failureTitles[status], data: sentence(message)})
}

// failureTitles are the headings of the pages that tell an error.
var failureTitles = map[int]string{
	http.StatusBadRequest:          "That did not work",
	http.StatusUnauthorized:        "Please sign in",
	http.StatusForbidden:           "That is not allowed",
	http.StatusNotFound:            "There is nothing here",
	http.StatusConflict:            "That could not be done",
	http.StatusTooManyRequests:     "Too many tries",
	http.StatusInternalServerError: "Something went wrong here",
	http.StatusServiceUnavailable:  "Not reachable at the moment",
}

// base is the path of the public URL, under which everything lies; empty for none.
func (s *Server) base() string {
	u, err := url.Parse(s.options.PublicURL)
	if err != nil {
		return "" // it was checked
	}
	return strings.TrimSuffix(u.EscapedPath(), "/")
}

// path is the path of a page, as a browser knows it.
func (s *Server) path(p string) string { return s.base() + p }

// localPath returns where to go after signing in: the path that was asked for, if it is one of this server's, else the start.
// Nothing may send a browser elsewhere.
func (s *Server) localPath(next string) string {
	next, _, _ = strings.Cut(next, "#") // no server is asked for a fragment, and dots in one would be taken for the path's
	u, err := url.Parse(next)
	if err == nil && path.Clean(u.Path) != u.Path { // nothing lies there, and dots would lead out of the base
		return s.path("/")
	}
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return s.path("/")
	}
	return s.path(next)
}

// secure reports whether browsers reach the server over TLS, so that cookies need never travel without.
func (s *Server) secure() bool { return strings.HasPrefix(s.options.PublicURL, "https://") }

// setCookie sets a cookie that scripts do not see and other sites' forms do not send. No value ends it.
func (s *Server) setCookie(w http.ResponseWriter, name, value string, maxAge int) {
	if value == "" {
		maxAge = -1
	}
	http.SetCookie(w, &http.Cookie{Name: name, Value: value, Path: s.path("/"), MaxAge: maxAge, HttpOnly: true, Secure: s.secure(), SameSite: http.SameSiteLaxMode})
}

const (
	formCookie = "souvenir_form" // of somebody who has not signed in
	formField  = "csrf"
)

// formToken is the value of the hidden field of a page's forms. It is made of what only the browser knows that was given the
// page: its session, or a random cookie before there is one. Nothing has to be kept for it.
func (s *Server) formToken(w http.ResponseWriter, r *http.Request) string {
	own := browserSecret(r)
	if signedIn := exchangeOf(r.Context()).signedIn; signedIn != "" { // just now: the next request will have it
		own = signedIn
	}
	if own == "" {
		own = rand.Text()
		s.setCookie(w, formCookie, own, 0)
	}
	return tokenOf(own)
}

func browserSecret(r *http.Request) string {
	for _, name := range []string{tokenCookie, formCookie} {
		if c, err := r.Cookie(name); err == nil && c.Value != "" {
			return c.Value
		}
	}
	return ""
}

func tokenOf(own string) string {
	sum := sha256.Sum256([]byte("form\x00" + own))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

const maxForm = 64 << 10 // bytes

// readForm reads a form that a page of this server has sent: from this origin, and with the hidden field of that page.
func (s *Server) readForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	return s.readFormUpTo(w, r, maxForm)
}

// readLongForm does so for one with a text in it that may be as long as a memory.
func (s *Server) readLongForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	return s.readFormUpTo(w, r, s.options.MaxBody)
}

func (s *Server) readFormUpTo(w http.ResponseWriter, r *http.Request, most int64) (url.Values, error) {
	if err := s.crossSite.Check(r); err != nil {
		return nil, &failure{http.StatusForbidden, "a page of another site has sent this form; open the page here and send it again"}
	}
	r.Body = http.MaxBytesReader(w, r.Body, most)
	if err := r.ParseForm(); err != nil {
		return nil, invalid("form", "the form cannot be read: "+err.Error())
	}
	own := browserSecret(r)
	if own == "" || !hmac.Equal([]byte(tokenOf(own)), []byte(r.PostForm.Get(formField))) {
		return nil, errStaleForm
	}
	return r.PostForm, nil
}

// errStaleForm says that a form has not the hidden field that this browser was given last.
var errStaleForm = &failure{http.StatusForbidden, "this form is out of date, or cookies are blocked; open the page again and send it once more"}

// errSignIn says that somebody has to sign in first.
var errSignIn = &failure{http.StatusUnauthorized, "nobody has signed in"}
