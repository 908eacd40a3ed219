package web

import (
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/souvenir-ai/souvenir/server/internal/route"
)

// Site is what all pages stand in: where they lie, their forms, and what was just done on them.
type Site struct {
	PublicURL string // empty: there are no pages
	MaxBody   int64  // bytes of the longest form
	CrossSite *http.CrossOriginProtection

	log     *slog.Logger
	undoing undo // what was done on pages and can be undone
}

// Options are what a Site needs to know.
type Options struct {
	PublicURL string
	MaxBody   int64
	CrossSite *http.CrossOriginProtection
	Logger    *slog.Logger
}

// New makes a site.
func New(o Options) *Site {
	return &Site{PublicURL: o.PublicURL, MaxBody: o.MaxBody, CrossSite: o.CrossSite, log: o.Logger}
}

// Base is the path of the public URL, under which everything lies; empty for none.
func (s *Site) Base() string {
	u, err := url.Parse(s.PublicURL)
	if err != nil {
		return "" // it was checked
	}
	return strings.TrimSuffix(u.EscapedPath(), "/")
}

// Path is the path of a page, as a browser knows it.
func (s *Site) Path(p string) string { return s.Base() + p }

// LocalPath returns where to go after signing in: the path that was asked for, if it is one of this server's, else the
// start. Nothing may send a browser elsewhere.
func (s *Site) LocalPath(next string) string {
	next, _, _ = strings.Cut(next, "#") // no server is asked for a fragment, and dots in one would be taken for the path's
	u, err := url.Parse(next)
	if err == nil && path.Clean(u.Path) != u.Path { // nothing lies there, and dots would lead out of the base
		return s.Path("/")
	}
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || !strings.HasPrefix(next, "/") ||
		strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return s.Path("/")
	}
	return s.Path(next)
}

// Secure reports whether browsers reach the server over TLS, so that cookies need never travel without.
func (s *Site) Secure() bool { return strings.HasPrefix(s.PublicURL, "https://") }

// SetCookie sets a cookie that scripts do not see and other sites' forms do not send. No value ends it.
func (s *Site) SetCookie(w http.ResponseWriter, name, value string, maxAge int) {
	if value == "" {
		maxAge = -1
	}
	http.SetCookie(w, &http.Cookie{Name: name, Value: value, Path: s.Path("/"), MaxAge: maxAge, HttpOnly: true,
		Secure: s.Secure(), SameSite: http.SameSiteLaxMode})
}

// Routes are what every page needs: its files, and the way back from what was just done.
func (s *Site) Routes() []route.Route {
	return []route.Route{
		route.Get("/static/{file...}", route.Public, s.static),
		route.Post("/undo", route.Person, s.takeBack),
	}
}
