package main_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/cmd/souvenir/internal/doctor"
	"github.com/souvenir-ai/souvenir/internal/testing/emptystore"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

// place is a server and the proxies between it and its clients.
type place struct {
	url, token string
	client     *http.Client
}

// proxy changes requests or answers on their way.
type proxy func(next http.Handler) http.Handler

// setting describes a place; the zero value is a good one.
type setting struct {
	between   proxy
	publicURL func(address string) string // nil: unchanged
	path      string                      // of the public URL
	tls       *tls.Config                 // nil: none
}

func newPlace(t *testing.T, how setting) place {
	t.Helper()
	store, err := souvenir.Open(t.Context(), emptystore.Path(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Accounts().AddUser(t.Context(),
		souvenir.NewUser{Name: "anna", Role: souvenir.RoleAdmin}); err != nil {
		t.Fatal(err)
	}
	token, err := store.Accounts().AddToken(t.Context(), souvenir.NewToken{User: "anna", Name: "doctor"})
	if err != nil {
		t.Fatal(err)
	}
	at := httptest.NewUnstartedServer(nil)
	scheme := "http://"
	if how.tls != nil {
		scheme = "https://"
	}
	p := place{url: scheme + at.Listener.Addr().String() + how.path, token: token.Value}
	publicURL := p.url
	if how.publicURL != nil {
		publicURL = how.publicURL(p.url)
	}
	var handler http.Handler = server.New(store, &server.Options{PublicURL: publicURL, Version: "1.2.3"})
	if how.path != "" {
		mux := http.NewServeMux()
		mux.Handle("/.well-known/", handler)
		mux.Handle(how.path+"/", http.StripPrefix(how.path, handler))
		handler = mux
	}
	if how.between != nil {
		handler = how.between(handler)
	}
	at.Config.Handler = handler
	at.Config.ErrorLog = log.New(io.Discard, "", 0) // errors of handshakes that should fail
	if how.tls != nil {
		at.TLS = how.tls
		at.StartTLS()
		if how.tls.Certificates == nil {
			p.client = at.Client()
		}
	} else {
		at.Start()
	}
	t.Cleanup(func() {
		at.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func (p place) examine(t *testing.T, options doctor.Options) []doctor.Finding {
	t.Helper()
	options.Client = p.client
	findings, err := doctor.Examine(t.Context(), p.url, options)
	if err != nil {
		t.Fatal(err)
	}
	return findings
}

// without returns the findings that are not at a level.
func without(level doctor.Level, findings []doctor.Finding) []doctor.Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f doctor.Finding) bool { return f.Level == level })
}

func TestAGoodServer(t *testing.T) {
	for name, how := range map[string]setting{"plain": {}, "under a path": {path: "/deep/memory"},
		"with TLS": {tls: &tls.Config{}}} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, how)
			findings := p.examine(t, doctor.Options{Token: p.token})
			if bad := without(doctor.OK, findings); len(bad) > 0 {
				t.Errorf("%+v; want none", bad)
			}
			var checks []string
			for _, f := range findings {
				checks = append(checks, f.Check)
				if f.Message == "" || f.Mend != "" {
					t.Errorf("got %+v, want a message that is not empty and no mend", f)
				}
			}
			want := "reach tls clock metadata resource challenge credentials slashes cors bodies token register login tools " +
				"mcp origin"
			if got := strings.Join(checks, " "); got != want {
				t.Errorf("it has looked at %s, not at %s, want the same", got, want)
			}
			for _, spelling := range []string{p.url + "/", p.url + "/mcp", p.url + "/mcp/"} {
				if again, err := doctor.Examine(t.Context(), spelling,
					doctor.Options{Client: p.client, NoRegister: true}); err != nil || len(without(doctor.OK, again)) > 0 {
					t.Errorf("%s: %+v, %v; want none", spelling, without(doctor.OK, again), err)
				}
			}
		})
	}
}

// answers is a proxy that changes answers.
func answers(change func(*httptest.ResponseRecorder, *http.Request)) proxy {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			recorded := httptest.NewRecorder()
			next.ServeHTTP(recorded, r)
			change(recorded, r)
			maps.Copy(w.Header(), recorded.Header())
			w.Header().Del("Content-Length")
			w.WriteHeader(recorded.Code)
			w.Write(recorded.Body.Bytes()) //nolint:errcheck // the test sees it
		})
	}
}

// header changes the headers of answers.
func header(change func(http.Header, *http.Request)) proxy {
	return answers(func(a *httptest.ResponseRecorder, r *http.Request) { change(a.Header(), r) })
}

// body changes the bodies of answers.
func body(change func([]byte, *http.Request) []byte) proxy {
	return answers(func(a *httptest.ResponseRecorder, r *http.Request) {
		a.Body = bytes.NewBuffer(change(a.Body.Bytes(), r))
	})
}

// before changes requests.
func before(change func(*http.Request)) proxy {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			change(r)
			next.ServeHTTP(w, r)
		})
	}
}

// instead answers some requests itself.
func instead(answers func(w http.ResponseWriter, r *http.Request) bool) proxy {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !answers(w, r) {
				next.ServeHTTP(w, r)
			}
		})
	}
}

// status answers requests for a path with an HTML page.
func status(path string, code int) proxy {
	return instead(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, path) {
			return false
		}
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, "<h1>Just a moment...</h1>")
		return true
	})
}

// redirectTo redirects requests to a path.
func redirectTo(path, method, to string) proxy {
	return instead(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != path || r.Method != method {
			return false
		}
		http.Redirect(w, r, to, http.StatusMovedPermanently)
		return true
	})
}

func onPath(path string, change func(http.Header)) proxy {
	return header(func(h http.Header, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, path) {
			change(h)
		}
	})
}

// badSetups are mistakes in the setup of a proxy or server, with the first bad finding about each.
var badSetups = map[string]struct {
	how   setting
	check string // the first bad finding
	level doctor.Level
	words string // words in it, separated by |
}{
	"another program": {setting{between: status("/", 200)}, "reach", doctor.Problem,
		"not a Souvenir server"},
	"a gateway without a server": {setting{between: status("/", 502)}, "reach", doctor.Problem, "status 502"},
	"a redirect to another host": {setting{between: redirectTo("/health", "GET",
		"https://www.memory.example/health")}, "reach", doctor.Problem, "redirected to https://www.memory.example/health"},
	"encoded without being asked": {setting{between: onPath("/health",
		func(h http.Header) { h.Set("Content-Encoding", "br") })}, "encoding", doctor.Problem, "br"},
	"a clock that is slow": {setting{between: onPath("/health",
		func(h http.Header) { h.Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat)) })}, "clock",
		doctor.Problem, "tokens expire too early|NTP"},
	"a clock that is a little fast": {setting{between: onPath("/health",
		func(h http.Header) { h.Set("Date", time.Now().Add(20*time.Second).UTC().Format(http.TimeFormat)) })}, "clock",
		doctor.Warning, "NTP"},
	"an invalid date": {setting{between: onPath("/health",
		func(h http.Header) { h.Set("Date", "today") })}, "clock", doctor.Warning, "no Date"},
	"another public URL": {setting{publicURL: func(string) string { return "https://memory.example" }},
		"metadata", doctor.Problem, "issuer is https://memory.example|--public-url"},
	"another host": {setting{publicURL: func(at string) string {
		return strings.Replace(at, "127.0.0.1",
			"localhost", 1)
	}}, "metadata", doctor.Problem, "localhost|exactly"},
	"no metadata": {setting{between: status("/.well-known/", 404)}, "metadata", doctor.Problem,
		"status 404|acme-challenge"},
	"no metadata at the host's root": {setting{path: "/memory", between: status("/.well-known/", 404)}, "metadata",
		doctor.Problem, "root of the host"},
	"metadata without S256": {setting{between: body(func(b []byte,
		_ *http.Request) []byte {
		return bytes.ReplaceAll(b, []byte("S256"), []byte("plain"))
	})}, "metadata", doctor.Problem, "S256"},
	"endpoints elsewhere": {setting{between: body(func(b []byte, _ *http.Request) []byte {
		return bytes.ReplaceAll(b, []byte("/oauth/token"), []byte(".evil.example/oauth/token"))
	})}, "metadata", doctor.Problem, "token_endpoint is"},
	"metadata for this origin only": {setting{between: onPath("/.well-known/oauth-authorization-server",
		func(h http.Header) { h.Del("Access-Control-Allow-Origin") })}, "metadata", doctor.Problem,
		"Access-Control-Allow-Origin is missing"},
	"no alias": {setting{between: status("/.well-known/openid-configuration", 404)}, "metadata",
		doctor.Warning, "openid-configuration"},
	"no metadata of the resource": {setting{between: status("/.well-known/oauth-protected-resource", 403)}, "resource",
		doctor.Problem, "status 403"},
	"a resource with a slash": {setting{between: body(func(b []byte, _ *http.Request) []byte {
		return bytes.Replace(b, []byte(`/mcp","resource_name`), []byte(`/mcp/","resource_name`), 1)
	})}, "resource", doctor.Problem, "exactly"},
	"another authorization server": {setting{between: body(func(b []byte,
		r *http.Request) []byte {
		return otherServer(b)
	})}, "resource", doctor.Problem, "authorization_servers"},
	"a resource for this origin only": {setting{between: onPath("/.well-known/oauth-protected-resource",
		func(h http.Header) { h.Del("Access-Control-Allow-Origin") })}, "resource", doctor.Problem, "other origins"},
	"a 401 without its header": {setting{between: header(func(h http.Header,
		_ *http.Request) {
		h.Del("WWW-Authenticate")
	})}, "challenge", doctor.Problem, "no WWW-Authenticate|proxy_intercept_errors"},
	"a sign-in of the proxy": {setting{between: status("/mcp", 403)}, "challenge", doctor.Problem,
		"status 403|HTML"},
	"a credential that is added": {setting{}, "challenge", doctor.Problem,
		"accepts requests without a credential"}, // see below
	"a challenge that leads elsewhere": {setting{between: onPath("/mcp",
		func(h http.Header) { replace(h, "WWW-Authenticate", "/.well-known/", "/well-known/") })}, "challenge",
		doctor.Problem, "other metadata"},
	"a challenge without scopes": {setting{between: onPath("/mcp",
		func(h http.Header) { replace(h, "WWW-Authenticate", "scope=", "x=") })}, "challenge", doctor.Warning, "no scopes"},
	"a challenge that is not exposed": {setting{between: onPath("/mcp",
		func(h http.Header) { h.Del("Access-Control-Expose-Headers") })}, "challenge", doctor.Warning,
		"may not read WWW-Authenticate"},
	"no Authorization": {setting{between: before(
		func(r *http.Request) { r.Header.Del("Authorization") })}, "credentials", doctor.Problem,
		"Authorization header does not arrive|CGIPassAuth"},
	"no X-MCP-Token": {setting{between: before(func(r *http.Request) { r.Header.Del("X-MCP-Token") })},
		"credentials", doctor.Warning, "X-MCP-Token header does not arrive"},
	"a redirect to a slash": {setting{between: redirectTo("/mcp", "GET", "/mcp/")}, "slashes", doctor.Problem,
		"GET /mcp is redirected to /mcp/"},
	"a redirect from a slash": {setting{between: redirectTo("/mcp/", "POST", "/mcp")}, "slashes", doctor.Problem,
		"POST /mcp/ is redirected"},
	"OPTIONS refused": {setting{between: instead(refuseOptions)}, "cors", doctor.Problem, "status 405"},
	"CORS twice": {setting{between: onPath("/oauth/token",
		func(h http.Header) { h.Add("Access-Control-Allow-Origin", "*") })}, "cors", doctor.Problem, `"*", "*"`},
	"CORS without a header": {setting{between: onPath("/mcp",
		func(h http.Header) { replace(h, "Access-Control-Allow-Headers", "Mcp-Session-Id, ", "") })}, "cors", doctor.Problem,
		"Mcp-Session-Id"},
	"CORS without a method": {setting{between: onPath("/oauth/revoke",
		func(h http.Header) { replace(h, "Access-Control-Allow-Methods", "POST", "GET") })}, "cors", doctor.Problem,
		"/oauth/revoke"},
	"a limit of 1 MiB": {setting{between: instead(limitOf(1 << 20))}, "bodies", doctor.Problem,
		"2 MiB|client_max_body_size"},
	"large requests that fail": {setting{between: instead(failLarge)}, "bodies", doctor.Warning, "status 500"},
	"pages for errors": {setting{between: errorPages("/oauth/token")}, "token", doctor.Problem,
		"not as JSON|error_page"},
	"statuses that change": {setting{between: answers(statusesChange)}, "token", doctor.Problem,
		"status 400|invalid_client"},
	"tokens that may be stored": {setting{between: onPath("/oauth/token",
		func(h http.Header) { h.Set("Cache-Control", "public") })}, "token", doctor.Problem, "Cache-Control"},
	"tokens not for all origins": {setting{between: onPath("/oauth/token", notForAll)}, "cors", doctor.Problem,
		"/oauth/token"},
	"no registration": {setting{between: posts("/oauth/register", 403)}, "register", doctor.Problem,
		"Claude cannot register: status 403"},
	"a registration that is changed": {setting{between: body(func(b []byte, _ *http.Request) []byte {
		return bytes.ReplaceAll(b, []byte("localhost:49152"), []byte("127.0.0.1:49152"))
	})}, "register", doctor.Problem, "Claude Code registers"},
	"a registration with nulls": {setting{between: body(func(b []byte, _ *http.Request) []byte {
		return bytes.Replace(b, []byte(`"souvenir doctor"`), []byte("null"), 1)
	})}, "register", doctor.Problem, "null"},
	"too many registrations": {setting{between: posts("/oauth/register", 429)}, "register", doctor.Warning,
		"too many"},
	"no authorization": {setting{between: status("/oauth/authorize", 404)}, "authorize", doctor.Problem,
		"does not lead to the sign-in"},
	"a sign-in elsewhere": {setting{between: onPath("/oauth/authorize",
		func(h http.Header) { h.Set("Location", "http://backend:8377"+h.Get("Location")) })}, "authorize", doctor.Problem,
		"http://backend:8377/login|proxy_redirect"},
	"no page to sign in": {setting{between: status("/login", 200)}, "login", doctor.Problem, "without a sign-in form"},
	"a page that sets no cookie": {setting{between: onPath("/login", func(h http.Header) { h.Del("Set-Cookie") })},
		"login", doctor.Problem, "sets no cookie"},
	"pages in frames": {setting{between: onPath("/login",
		func(h http.Header) { h.Del("Content-Security-Policy") })}, "login", doctor.Warning, "missing"},
	"pages with form-action": {setting{between: onPath("/login",
		func(h http.Header) { h.Add("Content-Security-Policy", "form-action 'self'") })}, "login", doctor.Problem,
		"form-action"},
	"pages without style": {setting{between: status("/static/", 404)}, "login", doctor.Warning, "style"},
	"cookies without Secure": {setting{tls: &tls.Config{},
		between: onPath("/login", func(h http.Header) { replace(h, "Set-Cookie", "; Secure", "") })}, "login",
		doctor.Problem, "not Secure"},
	"tools that fail": {setting{between: status("/tools/call", 500)}, "bodies", doctor.Warning,
		"status 500"},
	"messages that come as streams": {setting{between: withToken("/mcp",
		func(h http.Header) { h.Set("Content-Type", "text/event-stream") })}, "mcp", doctor.Problem, "status 200"},
	"another Host": {setting{between: before(func(r *http.Request) { r.Host = "backend:8377" })}, "mcp",
		doctor.Problem, "host"},
	"no Origin": {setting{between: before(func(r *http.Request) { r.Header.Del("Origin") })},
		"origin", doctor.Problem, "Origin header does not arrive"},
}

func TestEachMistakeInASetupIsFound(t *testing.T) {
	for _, name := range longtest.Keys(badSetups, 1, 6) {
		test := badSetups[name]
		t.Run(name, func(t *testing.T) {
			token := ""
			if name == "a credential that is added" {
				test.how.between = before(func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) })
			}
			p := newPlace(t, test.how)
			token = p.token
			findings := p.examine(t, doctor.Options{Token: p.token})
			bad := without(doctor.OK, findings)
			if len(bad) == 0 {
				t.Fatalf("got the findings %+v, want one at least that is not fine", findings)
			}
			if bad[0].Check != test.check || bad[0].Level != test.level || bad[0].Mend == "" {
				t.Errorf("got %+v, want check %v, level %v and a mend that is not empty", bad[0], test.check, test.level)
			}
			for word := range strings.SplitSeq(test.words, "|") {
				if !strings.Contains(bad[0].Message+bad[0].Mend, word) {
					t.Errorf("got %+v, want a finding that contains %q", bad[0], word)
				}
			}
		})
	}
}

func replace(h http.Header, name, old, new string) {
	for i, value := range h.Values(name) {
		h.Values(name)[i] = strings.ReplaceAll(value, old, new)
	}
}

func otherServer(b []byte) []byte {
	before, after, ok := bytes.Cut(b, []byte(`"authorization_servers":["`))
	if !ok {
		return b
	}
	return slices.Concat(before, []byte(`"authorization_servers":["https://id.example`), after)
}

func refuseOptions(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodOptions {
		return false
	}
	w.WriteHeader(http.StatusMethodNotAllowed)
	return true
}

func limitOf(bytes int64) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.ContentLength <= bytes {
			return false
		}
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return true
	}
}

func failLarge(w http.ResponseWriter, r *http.Request) bool {
	if r.ContentLength < 1<<20 {
		return false
	}
	_, _ = io.Copy(io.Discard, r.Body)
	w.WriteHeader(http.StatusInternalServerError)
	return true
}

// errorPages replaces errors by its own pages.
func errorPages(path string) proxy {
	return answers(func(a *httptest.ResponseRecorder, r *http.Request) {
		if r.URL.Path == path && a.Code >= 400 {
			a.Header().Set("Content-Type", "text/html")
			a.Body = bytes.NewBufferString("<h1>Sorry</h1>")
		}
	})
}

func statusesChange(a *httptest.ResponseRecorder, r *http.Request) {
	if r.URL.Path == "/oauth/token" && a.Code == http.StatusUnauthorized {
		a.Code = http.StatusBadRequest
	}
}

func notForAll(h http.Header) { h.Set("Access-Control-Allow-Origin", "https://one.example") }

// posts itself answers POST requests to a path.
func posts(path string, code int) proxy {
	return instead(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || r.URL.Path != path {
			return false
		}
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(code)
		return true
	})
}

// withToken changes the headers of answers to requests with a valid token.
func withToken(path string, change func(http.Header)) proxy {
	return header(func(h http.Header, r *http.Request) {
		if r.URL.Path == path && h.Get("WWW-Authenticate") == "" && r.Method == http.MethodPost {
			change(h)
		}
	})
}

// certificate makes a self-signed certificate.
func certificate(t *testing.T, host string, from, until time.Time) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	plan := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: from,
		NotAfter: until,
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	if ip := net.ParseIP(host); ip != nil {
		plan.IPAddresses = []net.IP{ip}
	} else {
		plan.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, plan, plan, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	own, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(own)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestCertificates(t *testing.T) {
	now := time.Now()
	const day = 24 * time.Hour
	for name, test := range map[string]struct {
		host        string
		from, until time.Time
		trusted     bool
		level       doctor.Level
		words       string
	}{
		"good":        {"127.0.0.1", now.Add(-day), now.Add(60 * day), true, doctor.OK, "valid until"},
		"of six days": {"127.0.0.1", now.Add(-day), now.Add(5 * day), true, doctor.OK, "valid until"},
		"that ends soon": {"127.0.0.1", now.Add(-80 * day), now.Add(10 * day), true, doctor.Warning,
			"renewed automatically"},
		"that ends very soon": {"127.0.0.1", now.Add(-88 * day), now.Add(2 * day), true, doctor.Problem, "Renew it now"},
		"that has ended":      {"127.0.0.1", now.Add(-90 * day), now.Add(-day), true, doctor.Problem, "expired certificate"},
		"self-signed": {"127.0.0.1", now.Add(-day), now.Add(60 * day), false, doctor.Problem,
			"unknown authority"},
		"of another host": {"memory.example", now.Add(-day), now.Add(60 * day), true, doctor.Problem, "other host names"},
	} {
		t.Run(name, func(t *testing.T) {
			own, pool := certificate(t, test.host, test.from, test.until)
			p := newPlace(t, setting{tls: &tls.Config{Certificates: []tls.Certificate{own}}})
			trust := &tls.Config{RootCAs: pool}
			if !test.trusted {
				trust.RootCAs = x509.NewCertPool()
			}
			p.client = &http.Client{Transport: &http.Transport{TLSClientConfig: trust, DisableKeepAlives: true}}
			findings := p.examine(t, doctor.Options{NoRegister: true})
			i := slices.IndexFunc(findings, func(f doctor.Finding) bool { return f.Check == "tls" })
			if i < 0 {
				i = 0
			}
			if findings[i].Level != test.level || !strings.Contains(findings[i].Message+findings[i].Mend, test.words) {
				t.Errorf("got %+v, want level %v and %q in it", findings, test.level, test.words)
			}
		})
	}
}

func TestUnreachableServers(t *testing.T) {
	longtest.Only(t)
	closed := httptest.NewServer(nil)
	closed.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	plain := httptest.NewServer(nil)
	defer plain.Close()
	for address, words := range map[string]string{
		closed.URL:                         "cannot be reached",
		"http://" + silent.Addr().String(): "does not answer in time",
		strings.Replace(plain.URL, "http://", "https://", 1): "speaks http, not https",
	} {
		findings, err := doctor.Examine(t.Context(), address, doctor.Options{Timeout: time.Second})
		if err != nil || len(findings) != 1 || findings[0].Level != doctor.Problem ||
			!strings.Contains(findings[0].Message, words) {
			t.Errorf("%s: got %+v, %v, want no error, 1 finding, level %v and %q in the message", address, findings, err,
				doctor.Problem, words)
		}
	}
	for _, address := range []string{"", "memory.example.com", "ftp://x", "https://", "https://user@x", "https://x?a",
		"https://x#a", "://"} {
		if findings, err := doctor.Examine(t.Context(), address, doctor.Options{}); err == nil {
			t.Errorf("%q: got %+v, want an error", address, findings)
		}
	}
}

func TestRefusedTokens(t *testing.T) {
	p := newPlace(t, setting{})
	bad := without(doctor.OK, p.examine(t, doctor.Options{Token: "mcp_" + strings.Repeat("x", 43), NoRegister: true}))
	if len(bad) != 1 || bad[0].Check != "tools" || !strings.Contains(bad[0].Message, "the token was rejected") {
		t.Errorf(`got %+v, want one failed check "tools" that says "the token was rejected"`, bad)
	}
	for _, f := range p.examine(t, doctor.Options{Token: p.token}) {
		if strings.Contains(fmt.Sprint(f), p.token) {
			t.Errorf("a finding has the token: %+v, want no %q in it", f, p.token)
		}
	}
}

// Without TLS, only clients on this machine are allowed.
func TestPlainHTTPBeyondThisMachine(t *testing.T) {
	p := newPlace(t, setting{publicURL: func(at string) string { return "http://memory.example" }})
	real, err := url.Parse(p.url)
	if err != nil {
		t.Fatal(err)
	}
	through := &http.Transport{DisableKeepAlives: true, Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: real.Host})}
	p.url, p.client = "http://memory.example", &http.Client{Transport: through}
	bad := without(doctor.OK, p.examine(t, doctor.Options{Token: p.token}))
	if len(bad) != 1 || bad[0].Check != "tls" || !strings.Contains(bad[0].Message, "unencrypted") {
		t.Errorf(`got %+v, want one failed check "tls" that says "unencrypted"`, bad)
	}
}
