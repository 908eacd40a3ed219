package netaddr

import (
	"net/netip"
	"testing"
)

func TestTheTransportTakesNoProxyFromTheEnvironment(t *testing.T) {
	if PublicTransport().Proxy != nil {
		t.Error("a proxy would connect to where it likes, want nil")
	}
}

func TestPublicAddresses(t *testing.T) {
	for _, public := range []string{"1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1",
		"2606:4700::1111", "2a00::1", "::ffff:1.1.1.1", "198.17.0.1"} {
		if !isPublic(netip.MustParseAddr(public)) {
			t.Errorf("%s counts as private, want public", public)
		}
	}
	for _, private := range []string{
		"0.0.0.0", "0.1.2.3", "10.255.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.255",
		"169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.2.1",
		"192.88.99.1", "192.168.0.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1",
		"240.0.0.1", "255.255.255.255",
		"::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::1.1.1.1", "64:ff9b:1::1", "100::1",
		"2001::1", "2001:2::1", "2001:db8::1", "2002:a00:1::", "3fff::1",
		"fc00::1", "fd12::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "2606:4700::1111%eth0", "5f00::1", "4000::1",
	} {
		if isPublic(netip.MustParseAddr(private)) {
			t.Errorf("%s counts as public, want private", private)
		}
	}
	if isPublic(netip.Addr{}) {
		t.Error("no address counts as public")
	}
	for _, network := range []string{"udp4", "unix"} {
		if refusePrivate(network, "1.1.1.1:443", nil) == nil {
			t.Errorf("got %s allowed, want an error", network)
		}
	}
}
