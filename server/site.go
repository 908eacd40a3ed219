package server

import (
	"net/http"
	"net/url"
	"path"
	"strings"
)

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

// siteRoutes are what every page needs: its files, and the way back from what was just done.
func (s *Server) siteRoutes() []route {
	return []route{
		get("/static/{file...}", nothing, s.static),
		post("/undo", person, s.takeBack),
	}
}
