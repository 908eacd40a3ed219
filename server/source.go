package server

import (
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/netaddr"
)

// checkSource refuses requests that a page of another site makes a browser send: under the site's own name for this
// machine (DNS rebinding), or from another origin. Clients that are not browsers send no Origin.
func (s *Server) checkSource(r *http.Request) error {
	if !s.knowsHost(r) {
		return &failure.Error{Status: http.StatusForbidden, Message: "host " + failure.Quote(r.Host) +
			" is unknown; behind a proxy on the same machine, set the server's public URL"}
	}
	if origin := r.Header.Get("Origin"); !s.trustsOrigin(r, origin) {
		return &failure.Error{Status: http.StatusForbidden, Message: "origin " + failure.Quote(origin) +
			" is not trusted; use this service from its own pages, or from a program other than a browser"}
	}
	return nil
}

// knowsHost reports whether a request over this machine's own network names this machine or the public URL. Other
// requests need not: their sender chose the address, not the name.
func (s *Server) knowsHost(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return !ok || !netaddr.IsLoopback(local.String()) || netaddr.IsLoopback(r.Host) || s.isPublicHost(r.Host)
}

// trustsOrigin reports whether a page may send messages: one of this service, one of a program on the user's own
// machine, or one outside of the web, such as an editor's.
func (s *Server) trustsOrigin(r *http.Request, origin string) bool {
	if origin == "" || s.site.CrossSite.Check(r) == nil {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme == "" {
		return false // including "null", the origin of pages that hide theirs
	}
	return u.Scheme != "http" && u.Scheme != "https" || netaddr.IsLoopback(u.Host)
}

// isPublicHost reports whether a host, with or without port, is that of the public URL.
func (s *Server) isPublicHost(host string) bool {
	u, err := url.Parse(s.options.PublicURL)
	return err == nil && u.Host != "" && strings.EqualFold(u.Hostname(), netaddr.Hostname(host))
}
