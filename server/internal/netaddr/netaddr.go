// Package netaddr distinguishes addresses of this machine and of its network from public ones.
package netaddr

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Requests that strangers can trigger go to public addresses only: not to this machine, nor to its network, where
// other services may trust any peer. The check applies to the address that is connected to, after name resolution,
// so that DNS rebinding does not help.

// notPublic are the non-public ranges that netip does not recognize (the IANA registries of special-purpose
// addresses, RFC 6890). Of IPv6, only 2000::/3 is allocated at all.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),       // this network
	netip.MustParsePrefix("100.64.0.0/10"),   // shared by the customers of a carrier
	netip.MustParsePrefix("192.0.0.0/24"),    // protocols
	netip.MustParsePrefix("192.0.2.0/24"),    // documentation
	netip.MustParsePrefix("192.88.99.0/24"),  // 6to4, formerly
	netip.MustParsePrefix("198.18.0.0/15"),   // measurements
	netip.MustParsePrefix("198.51.100.0/24"), // documentation
	netip.MustParsePrefix("203.0.113.0/24"),  // documentation
	netip.MustParsePrefix("240.0.0.0/4"),     // reserved, and broadcast
	netip.MustParsePrefix("2001::/23"),       // protocols: Teredo, which embeds an IPv4 address, and others
	netip.MustParsePrefix("2001:db8::/32"),   // documentation
	netip.MustParsePrefix("2002::/16"),       // 6to4, which embeds an IPv4 address
	netip.MustParsePrefix("3fff::/20"),       // documentation
}

const connectTimeout = 5 * time.Second

var givenOut = netip.MustParsePrefix("2000::/3") // NAT64, which embeds an IPv4 address, is outside

// isPublic reports whether an address is globally reachable.
func isPublic(address netip.Addr) bool {
	if address.Zone() != "" {
		return false
	}
	address = address.Unmap()
	if !address.IsGlobalUnicast() || address.IsPrivate() || address.Is6() && !givenOut.Contains(address) {
		return false
	}
	return !slices.ContainsFunc(notPublic, func(p netip.Prefix) bool { return p.Contains(address) })
}

// refusePrivate is the Control function of a [net.Dialer], called with each address before the connection.
func refusePrivate(network, address string, _ syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" {
		return fmt.Errorf("the network %s is not allowed", network)
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if !isPublic(to.Addr()) {
		return fmt.Errorf("the address %s is not public", to.Addr())
	}
	return nil
}

// PublicTransport connects to public addresses, without a proxy, and keeps no connections.
func PublicTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: connectTimeout, Control: refusePrivate}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		DisableKeepAlives:      true,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    connectTimeout,
		ResponseHeaderTimeout:  connectTimeout,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: 16 << 10,
	}
}

// IsLoopback reports whether a host, with or without port, is this machine.
func IsLoopback(host string) bool {
	name := Hostname(host)
	address, err := netip.ParseAddr(name)
	return strings.EqualFold(name, "localhost") || err == nil && address.Unmap().IsLoopback()
}

// Hostname returns a host without its port.
func Hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}
