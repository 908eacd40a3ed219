package server

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
)

func TestTrustedProxies(t *testing.T) {
	private := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for name, c := range map[string]struct {
		peer    string
		trusted []netip.Prefix
		hops    []string
		want    string
	}{
		"no proxy":                     {"198.51.100.1:1", nil, nil, "198.51.100.1"},
		"a stranger who claims":        {"198.51.100.1:1", nil, []string{"1.1.1.1"}, "198.51.100.1"},
		"a proxy here":                 {"127.0.0.1:1", nil, []string{"198.51.100.1"}, "198.51.100.1"},
		"a proxy here, in IPv6":        {"[::1]:1", nil, []string{"2001:db8::1"}, "2001:db8::1"},
		"a proxy here that is silent":  {"127.0.0.1:1", nil, nil, "127.0.0.1"},
		"a claim before the proxy's":   {"127.0.0.1:1", nil, []string{"1.1.1.1, 198.51.100.1"}, "198.51.100.1"},
		"a claim in a header before":   {"127.0.0.1:1", nil, []string{"1.1.1.1", "198.51.100.1"}, "198.51.100.1"},
		"nonsense":                     {"127.0.0.1:1", nil, []string{"1.1.1.1, unknown"}, "127.0.0.1"},
		"with a port":                  {"127.0.0.1:1", nil, []string{"198.51.100.1:4711"}, "198.51.100.1"},
		"with brackets":                {"127.0.0.1:1", nil, []string{"[2001:db8::1]:4711"}, "2001:db8::1"},
		"two proxies":                  {"10.0.0.2:1", private, []string{"1.1.1.1, 198.51.100.1, 10.0.0.1"}, "198.51.100.1"},
		"another proxy than trusted":   {"127.0.0.1:1", private, []string{"198.51.100.1"}, "127.0.0.1"},
		"untrusted proxies":            {"127.0.0.1:1", []netip.Prefix{}, []string{"198.51.100.1"}, "127.0.0.1"},
		"a proxy as itself":            {"10.0.0.2:1", private, []string{"10.0.0.1"}, "10.0.0.1"},
		"an address mapped into IPv6":  {"[::ffff:10.0.0.2]:1", private, []string{"::ffff:198.51.100.1"}, "198.51.100.1"},
		"a connection that is not TCP": {"@", nil, []string{"198.51.100.1"}, "invalid IP"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.RemoteAddr = c.peer
			for _, hop := range c.hops {
				r.Header.Add("X-Forwarded-For", hop)
			}
			if got := (&Server{options: Options{TrustedProxies: c.trusted}}).remote(r).String(); got != c.want {
				t.Errorf("it is %s, want %s", got, c.want)
			}
		})
	}
}
