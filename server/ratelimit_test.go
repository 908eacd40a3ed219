package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func TestALimitHoldsForEachKey(t *testing.T) {
	l := newLimiter(3, time.Hour)
	for range 3 {
		if wait := l.allowKey("a"); wait != 0 {
			t.Errorf("wait %v within the limit", wait)
		}
	}
	for range 5 { // whoever tries in between does not wait longer
		if wait := l.allowKey("a"); wait < 59*time.Minute || wait > time.Hour {
			t.Errorf("wait %v past the limit", wait)
		}
	}
	if wait := l.allowKey("b"); wait != 0 {
		t.Errorf("another key waits %v", wait)
	}
}

func TestAddressesOfOneConnectionAreOne(t *testing.T) {
	for _, same := range [][2]string{{"2001:db8::1", "2001:db8::ffff:1"}, {"::ffff:1.2.3.4", "1.2.3.4"}, {"fe80::1%eth0", "fe80::2%eth1"}} {
		if addressKey(netip.MustParseAddr(same[0])) != addressKey(netip.MustParseAddr(same[1])) {
			t.Errorf("%v are two", same)
		}
	}
	for _, different := range [][2]string{{"2001:db8::1", "2001:db8:0:1::1"}, {"1.2.3.4", "1.2.3.5"}} {
		if addressKey(netip.MustParseAddr(different[0])) == addressKey(netip.MustParseAddr(different[1])) {
			t.Errorf("%v are one", different)
		}
	}
}

// However many come, the memory that they take is bounded, and what is used stays.
func TestRecentForgetsWhatIsUnused(t *testing.T) {
	m := recent[string, int]{most: 100}
	m.set("used", 7)
	for i := range 10_000 {
		m.set(fmt.Sprint(i), i)
		if i%40 == 0 {
			if value, ok := m.get("used"); !ok || value != 7 {
				t.Fatalf("after %d others it is %d, %v", i, value, ok)
			}
		}
		if n := len(m.young) + len(m.old); n > 100 {
			t.Fatalf("%d are kept", n)
		}
	}
	if _, ok := m.get("3"); ok {
		t.Error("nothing is forgotten")
	}
	if value, ok := m.get("9999"); !ok || value != 9999 {
		t.Error("the last is forgotten")
	}
}

func TestWhomAProxySpeaksFor(t *testing.T) {
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
		"proxies that nobody trusts":   {"127.0.0.1:1", []netip.Prefix{}, []string{"198.51.100.1"}, "127.0.0.1"},
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
				t.Errorf("it is %s, not %s", got, c.want)
			}
		})
	}
}

// A resource is meant by every spelling of its URL, and by nothing else.
func TestResources(t *testing.T) {
	for public, c := range map[string]struct{ good, bad []string }{
		"https://memory.example": {
			[]string{"https://memory.example", "https://memory.example/", "https://memory.example/mcp", "https://memory.example/mcp/", "HTTPS://Memory.Example/mcp", "https://memory.example:443/mcp"},
			[]string{"http://memory.example", "https://memory.example/MCP", "https://memory.example/mcp/x", "https://memory.example:8443/mcp", "https://memory.example.evil.example/mcp",
				"https://memory.example/mcp?x", "https://memory.example/mcp#", "https://user@memory.example/mcp", "memory.example", "https://memory.example//mcp", "%zz", "https:memory.example", " "},
		},
		"http://127.0.0.1:8377/memory": {
			[]string{"http://127.0.0.1:8377/memory", "http://127.0.0.1:8377/memory/", "http://127.0.0.1:8377/memory/mcp"},
			[]string{"http://127.0.0.1:8377", "http://127.0.0.1:8377/mcp", "http://localhost:8377/memory", "http://127.0.0.1/memory"},
		},
	} {
		s := &Server{options: Options{PublicURL: public}}
		for _, asked := range c.good {
			got, err := s.resource(asked)
			if err != nil || got != public && got != public+"/mcp" {
				t.Errorf("%s: %q %v", asked, got, err)
			}
		}
		for _, asked := range c.bad {
			if got, err := s.resource(asked); err == nil {
				t.Errorf("%s means %s", asked, got)
			}
		}
		if got, err := s.resource(""); got != "" || err != nil {
			t.Errorf("%q %v", got, err)
		}
	}
}

// Whatever a form is, reading it ends, and gives each parameter once, or an error that the client is told.
func FuzzOAuthForm(f *testing.F) {
	f.Add("grant_type=authorization_code&code=a&client_id=b&resource=c&resource=d", "Basic YTpi")
	f.Add("code=%zz", "Basic")
	f.Add("a=b&a=c", "Bearer x")
	f.Add("client_id=a%2Bb&client_secret=%25", "basic JTI1OiUyNQ==")
	f.Fuzz(func(t *testing.T, body, authorization string) {
		r := httptest.NewRequest(http.MethodPost, "/oauth/token", readerOf([]byte(body)))
		r.Header.Set("Content-Type", formMedia)
		r.Header.Set("Authorization", authorization)
		form, err := readOAuthForm(httptest.NewRecorder(), r)
		if err == nil {
			for name, values := range form {
				if name != "resource" && len(values) != 1 || values[0] == "" && name != "resource" {
					t.Fatalf("%q is %q", name, values)
				}
			}
			_, err = clientCredentials(r, form)
		}
		if err == nil {
			return
		}
		if status, _ := told(err); status != http.StatusBadRequest && status != http.StatusUnauthorized {
			t.Fatalf("%d %v", status, err)
		}
		for _, c := range plainASCII(err.Error()) {
			if c < ' ' || c > '~' || c == '"' || c == '\\' {
				t.Fatalf("%q has %q", err, c)
			}
		}
	})
}

// Each error has the status and the code that RFC 6749 and its kin give to it, whatever its kind is elsewhere.
func TestStatusesOfOAuthErrors(t *testing.T) {
	oauth := func(kind souvenir.Kind, code string) error {
		return &souvenir.Error{Kind: kind, Message: "why", Err: &souvenir.OAuthError{Code: code, Description: "why"}}
	}
	for name, c := range map[string]struct {
		err    error
		status int
		code   string
	}{
		"an unknown client":    {oauth(souvenir.KindNotFound, souvenir.OAuthInvalidClient), 401, "invalid_client"},
		"a bad grant":          {oauth(souvenir.KindInvalid, souvenir.OAuthInvalidGrant), 400, "invalid_grant"},
		"one that may not":     {oauth(souvenir.KindForbidden, souvenir.OAuthAccessDenied), 400, "access_denied"},
		"no room":              {oauth(souvenir.KindTooLarge, souvenir.OAuthUnavailable), 503, "temporarily_unavailable"},
		"too large":            {oauth(souvenir.KindTooLarge, souvenir.OAuthInvalidClientMetadata), 400, "invalid_client_metadata"},
		"too often":            {&failure{429, "why"}, 429, "temporarily_unavailable"},
		"a wrong method":       {&failure{405, "why"}, 405, "invalid_request"},
		"without a code":       {invalid("x", "why"), 400, "invalid_request"},
		"none of the caller's": {errors.New("secret"), 500, "server_error"},
		"damage":               {oauth(souvenir.KindCorrupt, souvenir.OAuthInvalidGrant), 500, "server_error"},
		"a read-only store":    {&souvenir.Error{Kind: souvenir.KindReadOnly, Message: "why"}, 403, "invalid_request"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/oauth/token", nil)
			r = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, &exchange{speaks: speaksOAuth}))
			w := httptest.NewRecorder()
			(&Server{log: slog.New(slog.DiscardHandler)}).fail(w, r, c.err)
			if w.Code != c.status || !strings.Contains(w.Body.String(), `"error":"`+c.code+`"`) || strings.Contains(w.Body.String(), "secret") || w.Header().Get("WWW-Authenticate") != "" {
				t.Errorf("%d %s %v", w.Code, w.Body.String(), w.Header())
			}
		})
	}
}
