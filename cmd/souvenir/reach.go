package main

import (
	"net/netip"
	"net/url"
	"strings"
)

// privateNames are the suffixes of host names that only a machine itself or its own network resolves: RFC 6761,
// 6762 and 8375, the name that ICANN has reserved for private networks, and what routers commonly assign.
var privateNames = []string{".localhost", ".local", ".home.arpa", ".internal", ".lan", ".intranet"}

// sharedAddresses is the range of carriers' and overlay networks (RFC 6598).
var sharedAddresses = netip.MustParsePrefix("100.64.0.0/10")

// onlyNearby reports whether a URL leads to this machine or to a private network, out of reach of the internet. It does
// not resolve names, so it does not notice a public name with a private address.
func onlyNearby(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if ip, err := netip.ParseAddr(host); err == nil {
		ip = ip.Unmap()
		return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsUnspecified() ||
			sharedAddresses.Contains(ip)
	}
	if !strings.Contains(host, ".") { // localhost, or a name that only the local network resolves
		return true
	}
	for _, end := range privateNames {
		if strings.HasSuffix(host, end) {
			return true
		}
	}
	return false
}
