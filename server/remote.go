package server

import (
	"net/http"
	"net/netip"
	"strings"
)

// remote returns the client address of a request. X-Forwarded-For counts only if a trusted proxy sent it: then the
// result is its last address that is not a trusted proxy's.
func (s *Server) remote(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{} // not over IP: all share one address
	}
	address := peer.Addr().Unmap()
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && s.trusted(address); i-- {
		hop, err := forwardedAddress(hops[i])
		if err != nil {
			break
		}
		address = hop
	}
	return address
}

// forwardedAddress parses an address in X-Forwarded-For, which some proxies write with the port.
func forwardedAddress(hop string) (netip.Addr, error) {
	hop = strings.TrimSpace(hop)
	if withPort, err := netip.ParseAddrPort(hop); err == nil {
		return withPort.Addr().Unmap(), nil
	}
	address, err := netip.ParseAddr(strings.Trim(hop, "[]"))
	return address.Unmap(), err
}

// trusted reports whether an address is that of a trusted proxy.
func (s *Server) trusted(address netip.Addr) bool {
	if s.options.TrustedProxies == nil {
		return address.IsLoopback()
	}
	for _, prefix := range s.options.TrustedProxies {
		if prefix.Contains(address.WithZone("")) {
			return true
		}
	}
	return false
}
