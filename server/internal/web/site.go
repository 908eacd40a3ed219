package web

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/lru"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/route"
)

// Site is the environment of all pages: their base path, their forms, and the steps that can be undone.
type Site struct {
	PublicURL string // empty: there are no pages
	MaxBody   int64  // bytes of the longest form
	CrossSite *http.CrossOriginProtection
	ReadOnly  bool // the store is read-only: each page says so

	// SignInPage makes the page on which a person whose session has ended signs in to send a form again; false: it cannot
	// keep the form. Nil means none.
	SignInPage func(context.Context, Draft) (Page, bool)

	// Proposals counts the proposals that a user can decide about, for the menu. Nil means none.
	Proposals func(*http.Request, request.Caller) int

	// LateFrom is the number of memories from which on their index is loaded after a page, and not before it.
	LateFrom int

	log      *slog.Logger
	undoing  undo      // steps that can be undone
	searched lru.Cache // users whose searches wait for nothing; see Late
}

// Options are the dependencies of a Site.
type Options struct {
	PublicURL string
	MaxBody   int64
	CrossSite *http.CrossOriginProtection
	Logger    *slog.Logger
}

// New creates a Site.
func New(o Options) *Site {
	return &Site{PublicURL: o.PublicURL, MaxBody: o.MaxBody, CrossSite: o.CrossSite, LateFrom: lateFrom,
		log: o.Logger}
}

// Base is the path of the public URL, the prefix of all paths; empty for none.
func (s *Site) Base() string {
	u, err := url.Parse(s.PublicURL)
	if err != nil {
		return "" // checked before
	}
	return strings.TrimSuffix(u.EscapedPath(), "/")
}

// Path returns the path of a page including the base.
func (s *Site) Path(p string) string { return s.Base() + p }

// LocalPath returns where to go after signing in: the requested path, if it is on this server, else the home page.
// It never leads elsewhere.
func (s *Site) LocalPath(next string) string {
	next, _, _ = strings.Cut(next, "#") // fragments are not sent to servers, and dots in one would be read as the path's
	u, err := url.Parse(next)
	if err == nil && path.Clean(u.Path) != u.Path { // no page has such a path, and dots would lead out of the base
		return s.Path("/")
	}
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || !strings.HasPrefix(next, "/") ||
		strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return s.Path("/")
	}
	return s.Path(next)
}

// Secure reports whether browsers reach the server over TLS, so that cookies can be restricted to it.
func (s *Site) Secure() bool { return strings.HasPrefix(s.PublicURL, "https://") }

// SetCookie sets a cookie that scripts cannot read and other sites' forms do not send. An empty value deletes it.
func (s *Site) SetCookie(w http.ResponseWriter, name, value string, maxAge int) {
	if value == "" {
		maxAge = -1
	}
	http.SetCookie(w, &http.Cookie{Name: name, Value: value, Path: s.Path("/"), MaxAge: maxAge, HttpOnly: true,
		Secure: s.Secure(), SameSite: http.SameSiteLaxMode})
}

// Routes are the routes that every page needs: static files, undo, and the theme.
func (s *Site) Routes() []route.Route {
	return []route.Route{
		route.Get("/static/{file...}", route.Public, s.static),
		route.Post("/undo", route.Person, s.takeBack),
		route.Post("/theme", route.Public, s.setTheme),
	}
}
