package server_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

func TestSigningInAtAProvider(t *testing.T) {
	p := newIdentityProvider(t)
	w := linked(t, p, p.options())
	b := w.Browser()
	login := b.Get("/login?next=%2Fprofile%3Fa%3Db").Expect(http.StatusOK, ">Sign in with Example ID<")
	var button string
	for _, link := range login.HTML.All("a") {
		if strings.Contains(link.Text, "Example ID") {
			button = link.Attr("href")
		}
	}
	away := b.Get(button)
	b.LeadsTo(b.Get(p.signIn(away)), "/profile?a=b").Expect(http.StatusOK, "olivia@example.com")
	if !strings.HasPrefix(b.Cookie("auth_token"), "ses_") {
		t.Errorf("the browser has the cookie %q, want at its start \"ses_\"", b.Cookie("auth_token"))
	}
	for name, want := range map[string]string{"response_type": "code", "client_id": "souvenir",
		"redirect_uri": servertest.PublicAt +
			"/login/provider/callback",
		"scope": "openid profile email", "code_challenge_method": "S256", "acr_values": "", "prompt": "",
		"response_mode": ""} {
		if got := p.asked.Get(name); got != want {
			t.Errorf("the provider is asked with %s %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"state", "nonce", "code_challenge"} {
		if len(p.asked.Get(name)) < 26 {
			t.Errorf("%s is %q, want at least a length of 26", name, p.asked.Get(name))
		}
	}
	set := away.Header.Get("Set-Cookie")
	for _, part := range []string{"souvenir_provider_", "; Path=/login/provider;", "; HttpOnly", "; SameSite=Lax",
		"; Max-Age=600"} {
		if !strings.Contains(set, part) {
			t.Errorf("got the cookie %s, want one that contains %q", set, part)
		}
	}
	if strings.Contains(set, p.asked.Get("nonce")) || strings.Contains(w.Log.String(), p.asked.Get("state")) ||
		strings.Contains(w.Log.String(), "code=") {
		t.Errorf("the cookie is not sealed, or the log has the answer: %s\n%s, want neither", set, w.Log)
	}
}

// An application's request, of any length, continues after the sign-in.
func TestProviderSignInDestinations(t *testing.T) {
	longtest.Only(t)
	p := newIdentityProvider(t)
	w := linked(t, p, p.options())
	for next, want := range map[string]string{
		"": "/", "/connected?a=b": "/connected?a=b", "//evil.example": "/", "https://evil.example": "/",
		"/\\evil.example": "/",
		"/oauth/authorize?state=" + strings.Repeat("x", 6000): "/oauth/authorize?state=" + strings.Repeat("x", 6000),
		"/oauth/authorize?state=" + strings.Repeat("x", 500):  "/oauth/authorize?state=" + strings.Repeat("x", 500),
	} {
		b := w.Browser()
		away := b.Get("/login/provider?next=" + url.QueryEscape(next))
		if set := away.Header.Get("Set-Cookie"); len(set) > 2500 {
			t.Errorf("the cookie has %d bytes, want at most 2500", len(set))
		}
		if back := b.Get(p.signIn(away)); back.Status != http.StatusSeeOther || back.Header.Get("Location") != want {
			t.Errorf("next %.60q leads to %.60q (%d), want status %v and Location %v", next, back.Header.Get("Location"),
				back.Status, http.StatusSeeOther, want)
		}
	}
}

// refusedBy checks that a sign-in was refused, and that no user is signed in.
func refusedBy(t *testing.T, name string, b *servertest.Browser, page *servertest.Page) {
	t.Helper()
	if page.Status != http.StatusForbidden && page.Status != http.StatusBadRequest || b.Cookie("auth_token") != "" {
		t.Errorf("%s: %d %q, and the browser has the cookie %q, want it refused without a cookie", name, page.Status,
			page.Header.Get("Location"),
			b.Cookie("auth_token"))
	}
}

func TestUntrustedProviderAnswers(t *testing.T) {
	longtest.Only(t)
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := newIdentityProvider(t)
	w := linked(t, p, p.options())
	past, ahead := time.Now().Add(-time.Minute).Unix(), time.Now().Add(time.Hour).Unix()
	for name, change := range map[string]func(){
		"another nonce":       func() { p.claims["nonce"] = "another" },
		"no nonce":            func() { p.claims["nonce"] = nil },
		"for another client":  func() { p.claims["aud"] = "another" },
		"for two, and no azp": func() { p.claims["aud"] = []string{"souvenir", "another"} },
		"for two, and azp is the other": func() {
			p.claims["aud"], p.claims["azp"] = []string{"souvenir", "another"},
				"another"
		},
		"azp is another":                func() { p.claims["azp"] = "another" },
		"of another issuer":             func() { p.claims["iss"] = "https://another.example" },
		"of the issuer, with a slash":   func() { p.claims["iss"] = p.at.URL + "/" },
		"expired":                       func() { p.claims["exp"] = past },
		"without an end":                func() { p.claims["exp"] = nil },
		"not yet valid":                 func() { p.claims["nbf"] = ahead },
		"issued in the future":          func() { p.claims["iat"] = ahead },
		"not issued":                    func() { p.claims["iat"] = nil },
		"without a subject":             func() { p.claims["sub"] = nil },
		"with an empty subject":         func() { p.claims["sub"] = "" },
		"with a number as the subject":  func() { p.claims["sub"] = 7 },
		"of another access token":       func() { p.claims["at_hash"] = "AAAAAAAAAAAAAAAAAAAAAA" },
		"signed by another key":         func() { p.sign = p.signed(jwt.SigningMethodES256, other) },
		"signed with the client secret": func() { p.sign = p.signed(jwt.SigningMethodHS256, []byte("s3cret+/ of it")) },
		"signed with the public key":    func() { p.sign = p.signed(jwt.SigningMethodHS256, mustBytes(p)) },
		"not signed": func() {
			p.sign = p.signed(jwt.SigningMethodNone,
				jwt.UnsafeAllowNoneSignatureType)
		},
		"no ID token":                 func() { p.sign = func(jwt.MapClaims) string { return "" } },
		"not a token":                 func() { p.sign = func(jwt.MapClaims) string { return "a.b.c" } },
		"with its signature cut off":  func() { p.sign = cutOff(p) },
		"an answer of another issuer": func() { p.answer = url.Values{"iss": {"https://another.example"}} },
		"an answer of no issuer":      func() { p.answer = url.Values{"iss": nil} },
		"an answer without code":      func() { p.answer = url.Values{"code": nil} },
		"an invented code":            func() { p.answer = url.Values{"code": {"invented"}} },
		"an error":                    func() { p.answer = url.Values{"code": nil, "error": {"access_denied"}} },
		"an error of another issuer": func() {
			p.answer = url.Values{"code": nil, "error": {"x"},
				"iss": {"https://another.example"}}
		},
		"an invented state":               func() { p.answer = url.Values{"state": {rand.Text()}} },
		"no state":                        func() { p.answer = url.Values{"state": nil} },
		"a state and half":                func() { p.answer = url.Values{"state": {strings.Repeat("x", 8)}} },
		"a token endpoint that redirects": func() { p.redirect = p.at.URL + "/elsewhere" },
	} {
		p.set(func() {
			p.claims, p.answer, p.sign, p.redirect = map[string]any{"sub": "olivia-there"}, nil, nil, ""
			change()
		})
		b := w.Browser()
		refusedBy(t, name, b, atProvider(b, p))
	}
	if slices.Contains(p.sent, "/elsewhere") {
		t.Errorf(`a redirect was followed: got %v, want no "/elsewhere" among the sent`, p.sent)
	}
	p.set(func() { p.claims, p.answer, p.sign, p.redirect = map[string]any{"sub": "olivia-there"}, nil, nil, "" })
	b := w.Browser()
	b.LeadsTo(atProvider(b, p), "/").Expect(http.StatusOK, "Hello, olivia")
}

func mustBytes(p *identityProvider) []byte {
	point, err := p.key.PublicKey.Bytes()
	if err != nil {
		p.t.Error(err)
	}
	return point
}

// cutOff signs a token and removes the signature.
func cutOff(p *identityProvider) func(jwt.MapClaims) string {
	return func(claims jwt.MapClaims) string {
		signed := p.signed(jwt.SigningMethodES256, p.key)(claims)
		return signed[:strings.LastIndexByte(signed, '.')+1]
	}
}

// The server does not repeat the text of a provider's error.
func TestErrorsOfAProviderAreNotRepeated(t *testing.T) {
	longtest.Only(t)
	p := newIdentityProvider(t)
	w := linked(t, p, p.options())
	b := w.Browser()
	p.answer = url.Values{"code": nil, "error": {"access_denied"},
		"error_description": {"Send <b>money</b> to evil.example"}}
	page := atProvider(b, p)
	page.Expect(http.StatusForbidden, "did not sign you in", `href="/login/provider?again=1"`,
		`href="/login"`).Without("money", "evil.example", "access_denied")
	if !strings.Contains(w.Log.String(), "access_denied") {
		t.Errorf("the log does not say why, want \"access_denied\" in the log:\n%s", w.Log)
	}
}

func TestAnAnswerCountsOnceAndInItsOwnBrowser(t *testing.T) {
	longtest.Only(t)
	p := newIdentityProvider(t)
	w := linked(t, p, p.options())
	victim, attacker := w.Browser(), w.Browser()
	callback := p.signIn(attacker.Get("/login/provider")) // the attacker's account there
	refusedBy(t, "the answer of another browser", victim, victim.Get(callback))
	away := victim.Get("/login/provider")
	refusedBy(t, "the answer of another browser, in one that has begun, too", victim, victim.Get(callback))
	other, err := url.Parse(callback)
	if err != nil {
		t.Fatal(err)
	}
	mixed, err := url.Parse(p.signIn(away))
	if err != nil {
		t.Fatal(err)
	}
	query := mixed.Query()
	query.Set("code", other.Query().Get("code"))
	refusedBy(t, "the code of another browser", victim, victim.Get(mixed.Path+"?"+query.Encode()))

	fresh := w.Browser()
	away = fresh.Get("/login/provider")
	callback = p.signIn(away)
	kept := strings.SplitN(strings.Split(away.Header.Get("Set-Cookie"), ";")[0], "=", 2)
	fresh.LeadsTo(fresh.Get(callback), "/")
	fresh.SetCookie("auth_token", "")
	at, err := url.Parse(callback)
	if err != nil {
		t.Fatal(err)
	}
	query = at.Query()
	code := rand.Text()
	p.set(func() { p.codes[code] = p.asked })
	query.Set("code", code) // a code that the provider would still accept
	fresh.Client.Jar.SetCookies(fresh.Address("/login/provider"),
		[]*http.Cookie{{Name: kept[0], Value: kept[1], Path: "/login/provider"}})
	refusedBy(t, "the same answer again", fresh, fresh.Get(at.Path+"?"+query.Encode()))

	late := w.Browser()
	ticks := &clock{at: time.Now()}
	server.SetProviderClock(w.Server, ticks.now)
	callback = p.signIn(late.Get("/login/provider"))
	ticks.pass(10 * time.Minute)
	refusedBy(t, "an answer that is late", late, late.Get(callback))
	callback = p.signIn(late.Get("/login/provider"))
	ticks.pass(9 * time.Minute)
	late.LeadsTo(late.Get(callback), "/")

	foreign := linked(t, p, p.options())
	b, after := w.Browser(), foreign.Browser()
	away = b.Get("/login/provider")
	kept = strings.SplitN(strings.Split(away.Header.Get("Set-Cookie"), ";")[0], "=", 2)
	after.Client.Jar.SetCookies(after.Address("/login/provider"),
		[]*http.Cookie{{Name: kept[0], Value: kept[1], Path: "/login/provider"}})
	refusedBy(t, "an answer at a server with another store", after, after.Get(p.signIn(away)))
}

// A sign-in with a provider may end at another server on the store than it began.
func TestASignInAtAProviderMayEndAtAnotherServer(t *testing.T) {
	longtest.Only(t)
	p := newIdentityProvider(t)
	options := p.options()
	w := linked(t, p, options)
	b := w.Browser()
	away := b.Get("/login/provider?next=%2Fprofile")
	options.PublicURL = servertest.PublicAt
	w.HTTP.Config.Handler = server.New(w.Store, &options)
	b.LeadsTo(b.Get(p.signIn(away)), "/profile")
}

// Two tabs may be at the provider at once, and many never make a request too large for a proxy.
func TestSeveralSignInsAtOnce(t *testing.T) {
	longtest.Only(t)
	p := newIdentityProvider(t)
	w := linked(t, p, p.options())
	b := w.Browser()
	first, second := b.Get("/login/provider?next=%2Fprofile"), b.Get("/login/provider?next=%2Fconnected")
	b.LeadsTo(b.Get(p.signIn(first)), "/profile")
	b.LeadsTo(b.Get(p.signIn(second)), "/connected")
	for range 30 {
		b.Get("/login/provider?next=" + url.QueryEscape("/"+strings.Repeat("x", 1000)))
	}
	size := 0
	for _, c := range b.Client.Jar.Cookies(b.Address("/login/provider")) {
		size += len(c.String())
	}
	if size > 8000 {
		t.Errorf("the browser sends cookies of %d bytes, want at most 8000", size)
	}
	b.LeadsTo(b.Get(p.signIn(b.Get("/login/provider"))), "/")
}

func TestStrengthOfASignInAtAProvider(t *testing.T) {
	longtest.Only(t)
	for i, test := range []struct {
		acr, amr []string
		claims   map[string]any
		in       bool
	}{
		{nil, []string{"mfa", "hwk"}, map[string]any{"amr": []string{"pwd", "mfa"}}, true},
		{nil, []string{"mfa", "hwk"}, map[string]any{"amr": []string{"hwk"}}, true},
		{nil, []string{"mfa"}, map[string]any{"amr": "mfa"}, true},
		{nil, []string{"mfa"}, map[string]any{"amr": []string{"pwd"}}, false},
		{nil, []string{"mfa"}, map[string]any{"amr": []string{"MFA"}}, false},
		{nil, []string{"mfa"}, map[string]any{"amr": []string{}}, false},
		{nil, []string{"mfa"}, map[string]any{"amr": map[string]any{"mfa": true}}, false},
		{nil, []string{"mfa"}, map[string]any{"amr": "pwd mfa"}, false},
		{nil, []string{"mfa"}, map[string]any{}, false},
		{[]string{"urn:gold", "urn:silver"}, nil, map[string]any{"acr": "urn:silver"}, true},
		{[]string{"urn:gold"}, nil, map[string]any{"acr": "urn:bronze"}, false},
		{[]string{"urn:gold"}, nil, map[string]any{"acr": "urn:gold urn:bronze"}, false},
		{[]string{"urn:gold"}, nil, map[string]any{}, false},
		{[]string{"urn:gold"}, []string{"mfa"}, map[string]any{"acr": "urn:gold", "amr": []string{"mfa"}}, true},
		{[]string{"urn:gold"}, []string{"mfa"}, map[string]any{"acr": "urn:gold"}, false},
		{[]string{"urn:gold"}, []string{"mfa"}, map[string]any{"amr": []string{"mfa"}}, false},
	} {
		if !longtest.Part(i, 1, 3) {
			continue
		}
		t.Run(fmt.Sprint(test.acr, test.amr, test.claims), func(t *testing.T) {
			p := newIdentityProvider(t)
			maps.Copy(p.claims, test.claims)
			options := p.options()
			options.Provider.RequireACR, options.Provider.RequireAMR = test.acr, test.amr
			w := linked(t, p, options)
			b := w.Browser()
			page := atProvider(b, p)
			if p.asked.Get("acr_values") != strings.Join(test.acr, " ") {
				t.Errorf("acr_values is %q, want %v", p.asked.Get("acr_values"), strings.Join(test.acr, " "))
			}
			if test.in {
				b.LeadsTo(page, "/")
				return
			}
			refusedBy(t, "a weak sign-in", b, page)
			page.Expect(http.StatusForbidden, "stronger sign-in at Example ID", "second factor",
				`href="/login/provider?again=1"`)
			p.signIn(b.Get("/login/provider?again=1"))
			if p.asked.Get("prompt") != "login" {
				t.Errorf("the provider is not asked to ask again: prompt is %q, want \"login\"", p.asked.Get("prompt"))
			}
		})
	}
}

// If a provider is down, only its own sign-ins fail, and only until it is back.
func TestProviderDown(t *testing.T) {
	longtest.Only(t)
	p := newIdentityProvider(t)
	p.down = true
	w := linked(t, p, p.options())
	b := w.Browser()
	b.Get("/login/provider").Expect(http.StatusServiceUnavailable, "Example ID cannot be reached")
	b.LeadsTo(login(b, "olivia", rightPassword), "/")
	before := len(p.sent)
	b.Get("/login/provider").Expect(http.StatusServiceUnavailable)
	if len(p.sent) != before {
		t.Errorf("it is asked again at once: got %d requests, want %d", len(p.sent), before)
	}
	p.set(func() { p.down = false })
	server.ForgetProvider(w.Server)
	again := w.Browser()
	again.LeadsTo(atProvider(again, p), "/")
	p.set(func() { p.down = true })
	server.ForgetProvider(w.Server) // a day later
	w.Browser().Get("/login/provider").Expect(http.StatusSeeOther)
}

func TestProvidersWithUnsafeAddresses(t *testing.T) {
	var reached []string
	var mu sync.Mutex
	trap := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		reached = append(reached, r.URL.Path)
	}))
	defer trap.Close()
	tests := map[string]map[string]any{
		"another issuer":                   {"issuer": "https://another.example"},
		"a token endpoint without TLS":     {"token_endpoint": "http://id.example/token"},
		"keys of a file":                   {"jwks_uri": "file:///etc/passwd"},
		"no keys":                          {"jwks_uri": ""},
		"a script to authorize":            {"authorization_endpoint": "javascript:alert(1)"},
		"an authorization without TLS":     {"authorization_endpoint": "http://id.example/auth"},
		"a token endpoint with a password": {"token_endpoint": "https://user:password@id.example/token"},
		"too much":                         {"x": strings.Repeat("x", 2<<20)},
		"no metadata":                      {"authorization_endpoint": []string{"x"}},
	}
	for _, name := range longtest.Keys(tests, 1, 4) {
		metadata := tests[name]
		p := newIdentityProvider(t)
		p.metadata = metadata
		w := linked(t, p, p.options())
		if page := w.Browser().Get("/login/provider"); page.Status != http.StatusServiceUnavailable {
			t.Errorf("%s: %d %q, want %v", name, page.Status, page.Header.Get("Location"), http.StatusServiceUnavailable)
		}
	}
	// Local addresses in the metadata: the link-local one where clouds keep credentials, and others.
	for i, address := range []string{"https://169.254.169.254/token", "https://10.0.0.1/token", "https://[fd00::1]/token",
		"https://[::ffff:10.0.0.1]/token"} {
		if !longtest.Part(i, 1, 4) {
			continue
		}
		p := newIdentityProvider(t)
		p.metadata = map[string]any{"token_endpoint": address}
		w := linked(t, p, p.options())
		b := w.Browser()
		refusedBy(t, address, b, atProvider(b, p))
		if !strings.Contains(w.Log.String(), "is not public") {
			t.Errorf("%s was tried, want \"is not public\" in the log:\n%s", address, w.Log)
		}
	}
	if len(reached) > 0 {
		t.Errorf("the trap was reached: %v, want none", reached)
	}
}

func TestCheckProvider(t *testing.T) {
	good := server.Provider{Issuer: "https://id.example.com/realms/x", ClientID: "souvenir"}
	for name, change := range map[string]func(*server.Provider){
		"":                 func(*server.Provider) {},
		" loopback":        func(p *server.Provider) { p.Issuer = "http://127.0.0.1:9000" },
		" local":           func(p *server.Provider) { p.Issuer = "http://localhost:9000/" },
		" domains":         func(p *server.Provider) { p.CreateDomains = []string{"example.com", "Münster.example"} },
		"issuer":           func(p *server.Provider) { p.Issuer = "http://id.example.com" },
		"issuer 1":         func(p *server.Provider) { p.Issuer = "" },
		"issuer 2":         func(p *server.Provider) { p.Issuer = "https://id.example.com/?a=b" },
		"issuer 3":         func(p *server.Provider) { p.Issuer = "https://id.example.com/#a" },
		"issuer 4":         func(p *server.Provider) { p.Issuer = "https://user@id.example.com" },
		"issuer 5":         func(p *server.Provider) { p.Issuer = "id.example.com" },
		"client_id":        func(p *server.Provider) { p.ClientID = "" },
		"name":             func(p *server.Provider) { p.Name = strings.Repeat("x", 41) },
		"create_domains":   func(p *server.Provider) { p.CreateDomains = []string{"*.example.com"} },
		"create_domains 1": func(p *server.Provider) { p.CreateDomains = []string{"@example.com"} },
		"create_domains 2": func(p *server.Provider) { p.CreateDomains = []string{""} },
		"require_acr":      func(p *server.Provider) { p.RequireACR = []string{"a b"} },
		"require_amr":      func(p *server.Provider) { p.RequireAMR = []string{""} },
	} {
		p := good
		change(&p)
		err := server.CheckProvider(&p)
		argument, _, _ := strings.Cut(name, " ")
		if argument == "" && err != nil || argument != "" &&
			(err == nil || !strings.HasPrefix(err.Error(), argument+" is ")) {
			t.Errorf("%q: got %v, want success, or an error about that setting", name, err)
		}
	}
	secret := server.Provider{Issuer: "https://id.example.com", ClientID: "souvenir", ClientSecret: "s3cret"}
	if printed := fmt.Sprintf("%v %+v %#v %s", secret, &secret, secret, secret); strings.Contains(printed, "s3cret") ||
		!strings.Contains(printed, "id.example.com") {
		t.Errorf(`the provider prints as %s, want no "s3cret" and "id.example.com" in it`, printed)
	}
	// An unusable provider is reported, and stops nothing.
	w := servertest.New(t, server.Options{Provider: &server.Provider{Issuer: "nowhere"}})
	w.Browser().Get("/login").Expect(http.StatusOK).Without("Sign in with")
	w.Browser().Get("/login/provider").Expect(http.StatusNotFound)
	if !strings.Contains(w.Log.String(), "the identity provider is misconfigured") {
		t.Errorf("the log does not report it, want \"the identity provider is misconfigured\" in the log:\n%s", w.Log)
	}
}
