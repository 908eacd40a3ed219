package server_test

import (
	"context"

	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

// Until the client and its redirect URI are verified, the author of the link has no influence on where the browser
// goes.
func TestRedirectsNeedAKnownClientAndRedirectURI(t *testing.T) {
	w := servertest.New(t, server.Options{})
	app := w.Register("none", servertest.Callback, "http://127.0.0.1/cb", "http://localhost:9999/cb?a=b",
		"cursor://anysphere.cursor-mcp/oauth/callback")
	if err := w.Store.Accounts().DeactivateClient(context.Background(), w.OwnApp(servertest.Owner,
		"gone").ID); err != nil {
		t.Fatal(err)
	}
	const invalidClient, invalidRedirect = "Invalid client", "Invalid redirect_uri"
	for name, c := range map[string]struct{ asks, says string }{
		"nothing at all":       {"/oauth/authorize", invalidClient},
		"no client":            {app.AuthorizeURL("client_id", ""), invalidClient},
		"an unknown client":    {app.AuthorizeURL("client_id", "noah"), invalidClient},
		"a deactivated client": {app.AuthorizeURL("client_id", "gone"), invalidClient},
		"two clients":          {app.AuthorizeURL() + "&client_id=other", invalidClient},
		"a client twice":       {app.AuthorizeURL() + "&client_id=" + app.ID, invalidClient},
		"a client with NUL":    {app.AuthorizeURL("client_id", "a\x00b"), invalidClient},
		"a client of no UTF-8": {app.AuthorizeURL("client_id", "\xff\xfe"), invalidClient},
		"no redirect":          {app.AuthorizeURL("redirect_uri", ""), invalidRedirect},
		"two redirects":        {app.AuthorizeURL() + "&redirect_uri=https%3A%2F%2Fevil.example", invalidRedirect},
		"elsewhere":            {app.AuthorizeURL("redirect_uri", "https://evil.example/callback"), invalidRedirect},
		"something before":     {app.AuthorizeURL("redirect_uri", "https://evil-app.example/callback"), invalidRedirect},
		"something behind":     {app.AuthorizeURL("redirect_uri", servertest.Callback+"/more"), invalidRedirect},
		"a longer host": {app.AuthorizeURL("redirect_uri", "https://app.example.evil.example/callback"),
			invalidRedirect},
		"a user": {app.AuthorizeURL("redirect_uri", "https://app.example@evil.example/callback"),
			invalidRedirect},
		"a query":                {app.AuthorizeURL("redirect_uri", servertest.Callback+"?x=y"), invalidRedirect},
		"a slash":                {app.AuthorizeURL("redirect_uri", servertest.Callback+"/"), invalidRedirect},
		"dots":                   {app.AuthorizeURL("redirect_uri", "https://app.example/x/../callback"), invalidRedirect},
		"an encoded letter":      {app.AuthorizeURL("redirect_uri", "https://app.example/%63allback"), invalidRedirect},
		"capitals in the path":   {app.AuthorizeURL("redirect_uri", "https://app.example/Callback"), invalidRedirect},
		"capitals in the host":   {app.AuthorizeURL("redirect_uri", "https://APP.example/callback"), invalidRedirect},
		"capitals in the scheme": {app.AuthorizeURL("redirect_uri", "HTTPS://app.example/callback"), invalidRedirect},
		"a port":                 {app.AuthorizeURL("redirect_uri", "https://app.example:443/callback"), invalidRedirect},
		"http":                   {app.AuthorizeURL("redirect_uri", "http://app.example/callback"), invalidRedirect},
		"a fragment":             {app.AuthorizeURL("redirect_uri", servertest.Callback+"#x"), invalidRedirect},
		"an empty fragment":      {app.AuthorizeURL("redirect_uri", servertest.Callback+"#"), invalidRedirect},
		"an encoded fragment":    {app.AuthorizeURL("redirect_uri", servertest.Callback+"%23x"), invalidRedirect},
		"a line break": {app.AuthorizeURL("redirect_uri", servertest.Callback+"\r\nSet-Cookie: a=b"),
			invalidRedirect},
		"a backslash": {app.AuthorizeURL("redirect_uri", `https://evil.example\.app.example/callback`),
			invalidRedirect},
		"no scheme":  {app.AuthorizeURL("redirect_uri", "//app.example/callback"), invalidRedirect},
		"javascript": {app.AuthorizeURL("redirect_uri", "javascript:alert(1)//"), invalidRedirect},
		"data": {app.AuthorizeURL("redirect_uri", "data:text/html,<script>alert(1)</script>"),
			invalidRedirect},
		"another loopback":       {app.AuthorizeURL("redirect_uri", "http://localhost/cb"), invalidRedirect},
		"a loopback that is not": {app.AuthorizeURL("redirect_uri", "http://127.0.0.1.evil.example/cb"), invalidRedirect},
		"a loopback's path":      {app.AuthorizeURL("redirect_uri", "http://127.0.0.1:1234/other"), invalidRedirect},
		"a loopback's query":     {app.AuthorizeURL("redirect_uri", "http://localhost:1234/cb?a=c"), invalidRedirect},
		"a scheme's host":        {app.AuthorizeURL("redirect_uri", "cursor://evil/oauth/callback"), invalidRedirect},
		"an invalid query":       {app.AuthorizeURL() + "&state=%zz", "cannot be read"},
		"a huge request":         {app.AuthorizeURL("state", strings.Repeat("s", 9<<10)), "at most 8192"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, b := range []*servertest.Browser{w.Browser(), w.SignedIn(servertest.Owner)} {
				b.Get(c.asks).Stays(http.StatusBadRequest, c.says).Without("<script>alert")
				b.Get("/authorize"+strings.TrimPrefix(c.asks, "/oauth/authorize")).Stays(http.StatusBadRequest, c.says)
			}
		})
	}
}

func TestApplicationsOnTheDeviceListenWhereTheyLike(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	b := w.SignedIn(servertest.Owner)
	for registered, given := range map[string]string{
		"http://127.0.0.1/cb":                          "http://127.0.0.1:50123/cb",
		"http://localhost:1/callback?a=b":              "http://localhost:3118/callback?a=b",
		"http://[::1]/cb":                              "http://[::1]:8080/cb",
		"cursor://anysphere.cursor-mcp/oauth/callback": "cursor://anysphere.cursor-mcp/oauth/callback",
		"com.example.app:/done":                        "com.example.app:/done",
	} {
		app := w.Register("none", registered)
		answer := b.Allow(app.AuthorizeURL("redirect_uri", given), nil).GoesTo(given)
		if answer.Get("code") == "" || answer.Get("state") != "state of the client" ||
			answer.Get("iss") != servertest.PublicAt {
			t.Errorf("%s: got %v, want a code, the state and the issuer", given, answer)
		}
	}
}

// Other errors go to the client, with its state and the issuer.
func TestClientsGetAuthorizationErrors(t *testing.T) {
	w := servertest.New(t, server.Options{})
	onDevice, web := w.Register("none", "http://127.0.0.1/callback"), w.Register("none")
	for name, c := range wrongRequests(onDevice) {
		t.Run(name, func(t *testing.T) { hearsWhatIsWrong(t, w.Browser(), c.asks, "http://127.0.0.1/callback?", c.code) })
	}
	for name, c := range wrongRequests(web) {
		t.Run(name+", of a signed-in user",
			func(t *testing.T) {
				hearsWhatIsWrong(t, w.SignedIn(servertest.Owner), c.asks, servertest.Callback+"?", c.code)
			})
	}
	hearsWhatIsWrong(t, w.Browser(), onDevice.AuthorizeURL("prompt", "none"), "http://127.0.0.1/callback?",
		"login_required")
	hearsWhatIsWrong(t, w.SignedIn(servertest.Owner), web.AuthorizeURL("prompt", "none"), servertest.Callback+"?",
		"consent_required")
}

type wrongRequest struct{ asks, code string }

func wrongRequests(app servertest.App) map[string]wrongRequest {
	return map[string]wrongRequest{
		"no response type":          {app.AuthorizeURL("response_type", ""), "invalid_request"},
		"a token":                   {app.AuthorizeURL("response_type", "token"), "unsupported_response_type"},
		"a code and more":           {app.AuthorizeURL("response_type", "code id_token"), "unsupported_response_type"},
		"a response type twice":     {app.AuthorizeURL() + "&response_type=code", "invalid_request"},
		"a fragment as answer":      {app.AuthorizeURL("response_mode", "fragment"), "invalid_request"},
		"no challenge":              {app.AuthorizeURL("code_challenge", "", "code_challenge_method", ""), "invalid_request"},
		"a method alone":            {app.AuthorizeURL("code_challenge", ""), "invalid_request"},
		"plain":                     {app.AuthorizeURL("code_challenge_method", "plain"), "invalid_request"},
		"no method, which is plain": {app.AuthorizeURL("code_challenge_method", ""), "invalid_request"},
		"a short challenge":         {app.AuthorizeURL("code_challenge", "abc"), "invalid_request"},
		"a challenge twice":         {app.AuthorizeURL() + "&code_challenge=abc", "invalid_request"},
		"scopes of elsewhere":       {app.AuthorizeURL("scope", "repo user:email"), "invalid_scope"},
		"scope twice":               {app.AuthorizeURL("scope", "memory:read") + "&scope=files:read", "invalid_request"},
		"another resource":          {app.AuthorizeURL("resource", "https://elsewhere.example/mcp"), "invalid_target"},
		"a resource with a part":    {app.AuthorizeURL("resource", servertest.PublicAt+"/mcp#x"), "invalid_target"},
		"two resources": {app.AuthorizeURL("resource", servertest.PublicAt) + "&resource=" +
			url.QueryEscape(servertest.PublicAt+"/mcp"),
			"invalid_target"},
		"a request object":    {app.AuthorizeURL("request", "ey.."), "request_not_supported"},
		"a request elsewhere": {app.AuthorizeURL("request_uri", "https://elsewhere.example/r"), "request_uri_not_supported"},
		"none and login":      {app.AuthorizeURL("prompt", "none login"), "invalid_request"},
	}
}

func hearsWhatIsWrong(t *testing.T, b *servertest.Browser, asks, redirect, code string) {
	t.Helper()
	answer := b.Get(asks).GoesTo(redirect)
	if answer.Get("error") != code || answer.Get("state") != "state of the client" ||
		answer.Get("iss") != servertest.PublicAt ||
		answer.Get("code") != "" {
		t.Errorf("%v, want %s", answer, code)
	}
	if description := answer.Get("error_description"); description == "" || strings.ContainsAny(description, "\"\\\n") {
		t.Errorf("it says %q, want a description without quotes", description)
	}
}

// Anyone can register a client with a redirect URI of their own. A link to this service must not lead people there
// before they have consented (RFC 9700, section 4.11.2).
func TestUnknownVisitorsAreNotRedirected(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	for _, app := range []servertest.App{w.Register("none"), w.Register("none", "ms-example:/run"),
		w.Register("none", "https://localhost.evil.example/")} {
		for name, c := range wrongRequests(app) {
			if name == "none and login" { // as below
				continue
			}
			t.Run(name, func(t *testing.T) {
				next, err := url.Parse(w.Browser().Get(c.asks).GoesTo("/login?next=").Get("next"))
				if err != nil || next.Path != "/oauth/authorize" {
					t.Errorf("it leads to %v %v, want path \"/oauth/authorize\"", next, err)
				}
			})
		}
		w.Browser().Get(app.AuthorizeURL("prompt", "none")).Stays(http.StatusBadRequest, "asks for access without asking you")
	}
	// A visitor who has made a client of this service is known.
	hearsWhatIsWrong(t, w.Browser(), w.OwnApp(servertest.Owner, "own").AuthorizeURL("response_type", "token"),
		servertest.Callback+"?",
		"unsupported_response_type")
}

// The state comes back as it was sent, and cannot add anything else.
func TestState(t *testing.T) {
	w := servertest.New(t, server.Options{})
	app := w.Register("none", servertest.Callback+"?fixed=%20x")
	b := w.SignedIn(servertest.Owner)
	for _, state := range []string{
		"", "x", "a b+c", "a&b=c;d", "ü–😀", "line\nbreak\r\n", "\xff\xfe", `"><script>alert(1)</script>`, "%41%2",
		"#fragment", strings.Repeat("long", 1000), "code=forged&iss=https://evil.example",
	} {
		for name, answer := range map[string]url.Values{
			"denied": b.Allow(app.AuthorizeURL("state", state), url.Values{"decision": {"deny"}}).GoesTo(servertest.Callback +
				"?fixed=%20x&"),
			"allowed": b.Allow(app.AuthorizeURL("state", state), nil).GoesTo(servertest.Callback + "?fixed=%20x&"),
			"refused": b.Get(app.AuthorizeURL("state", state, "response_type", "token")).GoesTo(servertest.Callback +
				"?fixed=%20x&"),
		} {
			if got, sent := answer["state"], state != ""; len(got) > 1 || (len(got) == 1) != sent ||
				answer.Get("state") != state || answer.Get("iss") != servertest.PublicAt {
				t.Errorf("%s: of %q became %q, want one code or error, the state and the issuer", name, state, got)
			}
		}
	}
	if answer := b.Get(app.AuthorizeURL() + "&state=two").GoesTo(servertest.Callback); answer.Get(
		"error") != "invalid_request" ||
		answer.Has("state") {
		t.Errorf("two states: %v, want invalid_request without a state", answer)
	}
	if answer := b.Allow(app.AuthorizeURL("state", "")+"&state=a;b",
		nil).GoesTo(servertest.Callback); answer.Get("state") != "a;b" {
		t.Errorf(`a semicolon: %v, want "a;b"`, answer)
	}
}

// A visitor who is not signed in signs in first, and returns to the same request.
func TestSigningInComesFirst(t *testing.T) {
	w := servertest.New(t, server.Options{})
	app := w.Register("none")
	for name, asked := range map[string]string{
		"a plain request":   app.AuthorizeURL(),
		"a nasty state":     app.AuthorizeURL("state", "a\\b\t\r\n//evil.example&next=https://evil.example"),
		"a raw backslash":   app.AuthorizeURL() + `&extra=\\evil.example`,
		"at the short path": "/authorize?" + strings.TrimPrefix(app.AuthorizeURL(), "/oauth/authorize?"),
	} {
		t.Run(name, func(t *testing.T) {
			next := w.Browser().Get(asked).GoesTo("/login?next=").Get("next")
			path, query, _ := strings.Cut(next, "?")
			_, before, _ := strings.Cut(asked, "?")
			got, err := url.ParseQuery(query)
			want, wantErr := url.ParseQuery(before)
			if path != "/oauth/authorize" || err != nil || wantErr != nil || got.Encode() != want.Encode() ||
				strings.ContainsAny(next, "\\\t\r\n") {
				t.Errorf("next is %q, want the same request", next)
			}
			w.SignedIn(servertest.Owner).Get(next).Stays(http.StatusOK, "App")
		})
	}
	// A client can demand a new sign-in. It happens once, not in a loop.
	b := w.SignedIn(servertest.Owner)
	asked := b.Get(app.AuthorizeURL("prompt", "login consent")).GoesTo("/login?again=1&next=")
	b.Get("/login?again=1&next="+url.QueryEscape(asked.Get("next"))).Stays(http.StatusOK, "Password")
	b.Get(asked.Get("next")).Stays(http.StatusOK, "App")

	// A cookie with another user's token is not a sign-in: only programs have one.
	program := w.Browser()
	program.SetCookie("auth_token", w.Tokens[servertest.Owner])
	program.Get(app.AuthorizeURL()).GoesTo("/login?next=")
	program.Send(w.Request(servertest.Owner, "GET", app.AuthorizeURL(), nil)).GoesTo("/login?next=")
}

func TestRequestedScopes(t *testing.T) {
	w := servertest.New(t, server.Options{})
	app := w.Register("none")
	for asked, given := range map[string]string{
		"":                                       "memory:read memory:write files:read files:write",
		"memory:read":                            "memory:read",
		"memory:write":                           "memory:read memory:write",
		"files:write memory:read":                "memory:read files:read files:write",
		"memory:read  offline_access openid":     "memory:read",
		"offline_access":                         "memory:read memory:write files:read files:write",
		"memory:read memory:read mcp:everything": "memory:read",
	} {
		fresh := w.Register("none")
		if tokens := w.Redeem(fresh, w.SignedIn(servertest.Owner).Allow(fresh.AuthorizeURL("scope", asked),
			nil)); tokens.Scope != given {
			t.Errorf("for %q there is %q, want %q", asked, tokens.Scope, given)
		}
	}
	// Only admins are asked about the scope admin, and must tick it themselves, unless the client is their own.
	if answer := w.SignedIn(servertest.Owner).Get(app.AuthorizeURL("scope",
		"admin")).GoesTo(servertest.Callback); answer.Get("error") != "invalid_scope" {
		t.Errorf(`got %v, want "invalid_scope"`, answer)
	}
	w.SignedIn(servertest.Owner).Get(app.AuthorizeURL("scope",
		"admin memory:read")).Stays(http.StatusOK).Without("Manage users")
	if tokens := w.Redeem(app, w.SignedIn(servertest.Admin).Allow(app.AuthorizeURL("scope", "admin memory:read"),
		nil)); tokens.Scope != "memory:read" {
		t.Errorf("unasked there is %q, want \"memory:read\"", tokens.Scope)
	}
	if tokens := w.Redeem(app, w.SignedIn(servertest.Admin).Allow(app.AuthorizeURL("scope", "admin memory:read"),
		url.Values{"scope": {"admin"}})); tokens.Scope != "admin" {
		t.Errorf("ticked there is %q, want \"admin\"", tokens.Scope)
	}
	own := w.OwnApp(servertest.Admin, "own")
	if tokens := w.Redeem(own, w.SignedIn(servertest.Admin).Allow(own.AuthorizeURL("scope", "admin"),
		nil)); tokens.Scope != "admin" {
		t.Errorf("for an own client there is %q, want \"admin\"", tokens.Scope)
	}
}

// A client with a secret may omit the challenge, as the interface document says.
func TestClientsWithASecretMayLeaveTheChallengeOut(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	app := w.OwnApp(servertest.Stranger, "mine")
	asked := app.AuthorizeURL("code_challenge", "", "code_challenge_method", "", "resource", servertest.PublicAt+"/mcp/")
	w.SignedIn(servertest.Owner).Get(asked).Stays(http.StatusOK, "Added to this server by sam")
	w.SignedIn(servertest.Stranger).Get(asked).Stays(http.StatusOK,
		"Added to this server by you, or by a program with one of your tokens")
	form := app.CodeForm(w.SignedIn(servertest.Owner).Allow(asked, nil).GoesTo(servertest.Callback).Get("code"))
	form.Del("code_verifier")
	w.Post("/oauth/token", form).Tokens()
	// A challenge that was sent is checked for every client.
	if answer := w.SignedIn(servertest.Owner).Get(app.AuthorizeURL("code_challenge_method",
		"plain")).GoesTo(servertest.Callback); answer.Get("error") != "invalid_request" {
		t.Errorf(`got %v, want "invalid_request"`, answer)
	}
}

func TestAuthorizationUnderAPrefix(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{PublicURL: "http://memory.example/under/here"})
	app := w.Register("none")
	if next := w.Browser().Get(app.AuthorizeURL()).GoesTo("/under/here/login?next=").Get("next"); !strings.HasPrefix(next,
		"/oauth/authorize?") {
		t.Errorf("next is %q, want at its start \"/oauth/authorize?\"", next)
	}
	page := w.SignedIn(servertest.Owner).Get(app.AuthorizeURL()).Stays(http.StatusOK,
		`action="/under/here/oauth/authorize"`)
	page.Without(`"/oauth/`)
	if answer := w.SignedIn(servertest.Owner).Allow(app.AuthorizeURL(),
		nil).GoesTo(servertest.Callback); answer.Get("iss") != "http://memory.example/under/here" {
		t.Errorf(`got %v, want "http://memory.example/under/here"`, answer)
	}
}

// Failures of the server are reported to the client, and their causes only to the log.
func TestFailuresOfTheServerAtAuthorization(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	if err := w.Store.Close(); err != nil {
		t.Fatal(err)
	}
	w.Browser().Get("/oauth/authorize?client_id=x&redirect_uri=https://x.example").Stays(
		http.StatusInternalServerError).Without("closed")
}
