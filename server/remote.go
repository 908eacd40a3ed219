package server

import (
	"net/http"
	"net/netip"
	"strings"
)

// remote returns the address that a request comes from. What a proxy says of it counts only if the proxy is trusted: of
// the list in X-Forwarded-For, the last address that is none of a trusted proxy.
func (s *Server) remote(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{} // not over IP: all are one
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

// forwardedAddress reads an address in X-Forwarded-For, which some proxies write with the port.
func forwardedAddress(hop string) (netip.Addr, error) {
	hop = strings.TrimSpace(hop)
	if withPort, err := netip.ParseAddrPort(hop); err == nil {
		return withPort.Addr().Unmap(), nil
	}
	address, err := netip.ParseAddr(strings.Trim(hop, "[]"))
	return address.Unmap(), err
}

// trusted reports whether an address is that of a proxy whose word counts.
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
