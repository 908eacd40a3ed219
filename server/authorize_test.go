package server_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/server"
)

// Until it is sure that the answer goes to the client, the author of the link decides nothing about where the browser
// goes.
func TestWithoutAKnownClientAndRedirectURINobodyIsRedirected(t *testing.T) {
	w := newWorld(t, server.Options{})
	app := w.register("none", callback, "http://127.0.0.1/cb", "http://localhost:9999/cb?a=b",
		"cursor://anysphere.cursor-mcp/oauth/callback")
	if err := w.store.Accounts().DeactivateClient(background, w.ownApp(owner, "gone").ID); err != nil {
		t.Fatal(err)
	}
	const invalidClient, invalidRedirect = "Invalid client", "Invalid redirect_uri"
	for name, c := range map[string]struct{ asks, says string }{
		"nothing at all":         {"/oauth/authorize", invalidClient},
		"no client":              {app.asks("client_id", ""), invalidClient},
		"an unknown client":      {app.asks("client_id", "nobody"), invalidClient},
		"a deactivated client":   {app.asks("client_id", "gone"), invalidClient},
		"two clients":            {app.asks() + "&client_id=other", invalidClient},
		"a client twice":         {app.asks() + "&client_id=" + app.ID, invalidClient},
		"a client with NUL":      {app.asks("client_id", "a\x00b"), invalidClient},
		"a client of no UTF-8":   {app.asks("client_id", "\xff\xfe"), invalidClient},
		"no redirect":            {app.asks("redirect_uri", ""), invalidRedirect},
		"two redirects":          {app.asks() + "&redirect_uri=https%3A%2F%2Fevil.example", invalidRedirect},
		"elsewhere":              {app.asks("redirect_uri", "https://evil.example/callback"), invalidRedirect},
		"something before":       {app.asks("redirect_uri", "https://evil-app.example/callback"), invalidRedirect},
		"something behind":       {app.asks("redirect_uri", callback+"/more"), invalidRedirect},
		"a longer host":          {app.asks("redirect_uri", "https://app.example.evil.example/callback"), invalidRedirect},
		"a user":                 {app.asks("redirect_uri", "https://app.example@evil.example/callback"), invalidRedirect},
		"a query":                {app.asks("redirect_uri", callback+"?x=y"), invalidRedirect},
		"a slash":                {app.asks("redirect_uri", callback+"/"), invalidRedirect},
		"dots":                   {app.asks("redirect_uri", "https://app.example/x/../callback"), invalidRedirect},
		"an encoded letter":      {app.asks("redirect_uri", "https://app.example/%63allback"), invalidRedirect},
		"capitals in the path":   {app.asks("redirect_uri", "https://app.example/Callback"), invalidRedirect},
		"capitals in the host":   {app.asks("redirect_uri", "https://APP.example/callback"), invalidRedirect},
		"capitals in the scheme": {app.asks("redirect_uri", "HTTPS://app.example/callback"), invalidRedirect},
		"a port":                 {app.asks("redirect_uri", "https://app.example:443/callback"), invalidRedirect},
		"http":                   {app.asks("redirect_uri", "http://app.example/callback"), invalidRedirect},
		"a fragment":             {app.asks("redirect_uri", callback+"#x"), invalidRedirect},
		"an empty fragment":      {app.asks("redirect_uri", callback+"#"), invalidRedirect},
		"an encoded fragment":    {app.asks("redirect_uri", callback+"%23x"), invalidRedirect},
		"a line break":           {app.asks("redirect_uri", callback+"\r\nSet-Cookie: a=b"), invalidRedirect},
		"a backslash":            {app.asks("redirect_uri", `https://evil.example\.app.example/callback`), invalidRedirect},
		"no scheme":              {app.asks("redirect_uri", "//app.example/callback"), invalidRedirect},
		"javascript":             {app.asks("redirect_uri", "javascript:alert(1)//"), invalidRedirect},
		"data":                   {app.asks("redirect_uri", "data:text/html,<script>alert(1)</script>"), invalidRedirect},
		"another loopback":       {app.asks("redirect_uri", "http://localhost/cb"), invalidRedirect},
		"a loopback that is not": {app.asks("redirect_uri", "http://127.0.0.1.evil.example/cb"), invalidRedirect},
		"a loopback's path":      {app.asks("redirect_uri", "http://127.0.0.1:1234/other"), invalidRedirect},
		"a loopback's query":     {app.asks("redirect_uri", "http://localhost:1234/cb?a=c"), invalidRedirect},
		"a scheme's host":        {app.asks("redirect_uri", "cursor://evil/oauth/callback"), invalidRedirect},
		"a query that is none":   {app.asks() + "&state=%zz", "cannot be read"},
		"a huge request":         {app.asks("state", strings.Repeat("s", 9<<10)), "at most 8192"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, b := range []*browser{w.browser(), w.signedIn(owner)} {
				b.get(c.asks).stays(http.StatusBadRequest, c.says).without("<script>alert")
				b.get("/authorize"+strings.TrimPrefix(c.asks, "/oauth/authorize")).stays(http.StatusBadRequest, c.says)
			}
		})
	}
}

func TestApplicationsOnTheDeviceListenWhereTheyLike(t *testing.T) {
	w := newWorld(t, server.Options{})
	b := w.signedIn(owner)
	for registered, given := range map[string]string{
		"http://127.0.0.1/cb":                          "http://127.0.0.1:50123/cb",
		"http://localhost:1/callback?a=b":              "http://localhost:3118/callback?a=b",
		"http://[::1]/cb":                              "http://[::1]:8080/cb",
		"cursor://anysphere.cursor-mcp/oauth/callback": "cursor://anysphere.cursor-mcp/oauth/callback",
		"com.example.app:/done":                        "com.example.app:/done",
	} {
		app := w.register("none", registered)
		answer := b.letIn(app.asks("redirect_uri", given), nil).goesTo(given)
		if answer.Get("code") == "" || answer.Get("state") != "state of the client" || answer.Get("iss") != publicAt {
			t.Errorf("%s: %v", given, answer)
		}
	}
}

// What else is wrong the client hears, with its state, and with who says so.
func TestClientsHearWhatIsWrong(t *testing.T) {
	w := newWorld(t, server.Options{})
	onDevice, web := w.register("none", "http://127.0.0.1/callback"), w.register("none")
	for name, c := range wrongRequests(onDevice) {
		t.Run(name, func(t *testing.T) { hearsWhatIsWrong(t, w.browser(), c.asks, "http://127.0.0.1/callback?", c.code) })
	}
	for name, c := range wrongRequests(web) {
		t.Run(name+", of a signed-in user",
			func(t *testing.T) { hearsWhatIsWrong(t, w.signedIn(owner), c.asks, callback+"?", c.code) })
	}
	hearsWhatIsWrong(t, w.browser(), onDevice.asks("prompt", "none"), "http://127.0.0.1/callback?", "login_required")
	hearsWhatIsWrong(t, w.signedIn(owner), web.asks("prompt", "none"), callback+"?", "consent_required")
}

type wrongRequest struct{ asks, code string }

func wrongRequests(app oauthApp) map[string]wrongRequest {
	return map[string]wrongRequest{
		"no response type":          {app.asks("response_type", ""), "invalid_request"},
		"a token":                   {app.asks("response_type", "token"), "unsupported_response_type"},
		"a code and more":           {app.asks("response_type", "code id_token"), "unsupported_response_type"},
		"a response type twice":     {app.asks() + "&response_type=code", "invalid_request"},
		"a fragment as answer":      {app.asks("response_mode", "fragment"), "invalid_request"},
		"no challenge":              {app.asks("code_challenge", "", "code_challenge_method", ""), "invalid_request"},
		"a method alone":            {app.asks("code_challenge", ""), "invalid_request"},
		"plain":                     {app.asks("code_challenge_method", "plain"), "invalid_request"},
		"no method, which is plain": {app.asks("code_challenge_method", ""), "invalid_request"},
		"a short challenge":         {app.asks("code_challenge", "abc"), "invalid_request"},
		"a challenge twice":         {app.asks() + "&code_challenge=abc", "invalid_request"},
		"scopes of elsewhere":       {app.asks("scope", "repo user:email"), "invalid_scope"},
		"scope twice":               {app.asks("scope", "memory:read") + "&scope=files:read", "invalid_request"},
		"another resource":          {app.asks("resource", "https://elsewhere.example/mcp"), "invalid_target"},
		"a resource with a part":    {app.asks("resource", publicAt+"/mcp#x"), "invalid_target"},
		"two resources": {app.asks("resource", publicAt) + "&resource=" + url.QueryEscape(publicAt+"/mcp"),
			"invalid_target"},
		"a request object":    {app.asks("request", "ey.."), "request_not_supported"},
		"a request elsewhere": {app.asks("request_uri", "https://elsewhere.example/r"), "request_uri_not_supported"},
		"none and login":      {app.asks("prompt", "none login"), "invalid_request"},
	}
}

func hearsWhatIsWrong(t *testing.T, b *browser, asks, redirect, code string) {
	t.Helper()
	answer := b.get(asks).goesTo(redirect)
	if answer.Get("error") != code || answer.Get("state") != "state of the client" || answer.Get("iss") != publicAt ||
		answer.Get("code") != "" {
		t.Errorf("%v, want %s", answer, code)
	}
	if description := answer.Get("error_description"); description == "" || strings.ContainsAny(description, "\"\\\n") {
		t.Errorf("it says %q", description)
	}
}

// Anyone can register a client whose answers go to a page of theirs. A link of this service is no way to lead people
// there that it has not checked (RFC 9700, section 4.11.2).
func TestWhoHasNotSignedInIsSentNowhere(t *testing.T) {
	w := newWorld(t, server.Options{})
	for _, app := range []oauthApp{w.register("none"), w.register("none", "ms-example:/run"),
		w.register("none", "https://localhost.evil.example/")} {
		for name, c := range wrongRequests(app) {
			if name == "none and login" { // as below
				continue
			}
			t.Run(name, func(t *testing.T) {
				next, err := url.Parse(w.browser().get(c.asks).goesTo("/login?next=").Get("next"))
				if err != nil || next.Path != "/oauth/authorize" {
					t.Errorf("it leads to %v %v, want path \"/oauth/authorize\"", next, err)
				}
			})
		}
		w.browser().get(app.asks("prompt", "none")).stays(http.StatusBadRequest, "asks for access without asking you")
	}
	// Who has made a client for this service is known here.
	hearsWhatIsWrong(t, w.browser(), w.ownApp(owner, "own").asks("response_type", "token"), callback+"?",
		"unsupported_response_type")
}

// The state comes back as it was sent, and with it nothing else.
func TestState(t *testing.T) {
	w := newWorld(t, server.Options{})
	app := w.register("none", callback+"?fixed=%20x")
	b := w.signedIn(owner)
	for _, state := range []string{
		"", "x", "a b+c", "a&b=c;d", "ü–😀", "line\nbreak\r\n", "\xff\xfe", `"><script>alert(1)</script>`, "%41%2",
		"#fragment", strings.Repeat("long", 1000), "code=forged&iss=https://evil.example",
	} {
		for name, answer := range map[string]url.Values{
			"denied":  b.letIn(app.asks("state", state), url.Values{"decision": {"deny"}}).goesTo(callback + "?fixed=%20x&"),
			"allowed": b.letIn(app.asks("state", state), nil).goesTo(callback + "?fixed=%20x&"),
			"refused": b.get(app.asks("state", state, "response_type", "token")).goesTo(callback + "?fixed=%20x&"),
		} {
			if got, sent := answer["state"], state != ""; len(got) > 1 || (len(got) == 1) != sent ||
				answer.Get("state") != state || answer.Get("iss") != publicAt {
				t.Errorf("%s: of %q became %q", name, state, got)
			}
		}
	}
	if answer := b.get(app.asks() + "&state=two").goesTo(callback); answer.Get("error") != "invalid_request" ||
		answer.Has("state") {
		t.Errorf("two states: %v", answer)
	}
	if answer := b.letIn(app.asks("state", "")+"&state=a;b", nil).goesTo(callback); answer.Get("state") != "a;b" {
		t.Errorf("a semicolon: %v", answer)
	}
}

// Anyone who has not signed in does so first, and comes back to the same request.
func TestSigningInComesFirst(t *testing.T) {
	w := newWorld(t, server.Options{})
	app := w.register("none")
	for name, asked := range map[string]string{
		"a plain request":   app.asks(),
		"a nasty state":     app.asks("state", "a\\b\t\r\n//evil.example&next=https://evil.example"),
		"a raw backslash":   app.asks() + `&extra=\\evil.example`,
		"at the short path": "/authorize?" + strings.TrimPrefix(app.asks(), "/oauth/authorize?"),
	} {
		t.Run(name, func(t *testing.T) {
			next := w.browser().get(asked).goesTo("/login?next=").Get("next")
			path, query, _ := strings.Cut(next, "?")
			_, before, _ := strings.Cut(asked, "?")
			got, err := url.ParseQuery(query)
			want, wantErr := url.ParseQuery(before)
			if path != "/oauth/authorize" || err != nil || wantErr != nil || got.Encode() != want.Encode() ||
				strings.ContainsAny(next, "\\\t\r\n") {
				t.Errorf("next is %q", next)
			}
			w.signedIn(owner).get(next).stays(http.StatusOK, "App")
		})
	}
	// A sign-in that the client insists on is one, not a loop.
	b := w.signedIn(owner)
	asked := b.get(app.asks("prompt", "login consent")).goesTo("/login?again=1&next=")
	b.get("/login?again=1&next="+url.QueryEscape(asked.Get("next"))).stays(http.StatusOK, "Password")
	b.get(asked.Get("next")).stays(http.StatusOK, "App")

	// The cookie of another user's token is no sign-in: what holds one is a program.
	program := w.browser()
	program.setCookie("auth_token", w.tokens[owner])
	program.get(app.asks()).goesTo("/login?next=")
	program.send(w.request(owner, "GET", app.asks(), nil)).goesTo("/login?next=")
}

func TestScopesThatAreAskedFor(t *testing.T) {
	w := newWorld(t, server.Options{})
	app := w.register("none")
	for asked, given := range map[string]string{
		"":                                       "memory:read memory:write files:read files:write",
		"memory:read":                            "memory:read",
		"memory:write":                           "memory:read memory:write",
		"files:write memory:read":                "memory:read files:read files:write",
		"memory:read  offline_access openid":     "memory:read",
		"offline_access":                         "memory:read memory:write files:read files:write",
		"memory:read memory:read mcp:everything": "memory:read",
	} {
		fresh := w.register("none")
		if tokens := w.redeem(fresh, w.signedIn(owner).letIn(fresh.asks("scope", asked), nil)); tokens.Scope != given {
			t.Errorf("for %q there is %q, want %q", asked, tokens.Scope, given)
		}
	}
	// Only admins are asked about admin, and have to tick it themselves: unless the client is their own.
	if answer := w.signedIn(owner).get(app.asks("scope",
		"admin")).goesTo(callback); answer.Get("error") != "invalid_scope" {
		t.Errorf("%v", answer)
	}
	w.signedIn(owner).get(app.asks("scope", "admin memory:read")).stays(http.StatusOK).without("Manage users")
	if tokens := w.redeem(app, w.signedIn(admin).letIn(app.asks("scope", "admin memory:read"),
		nil)); tokens.Scope != "memory:read" {
		t.Errorf("unasked there is %q, want \"memory:read\"", tokens.Scope)
	}
	if tokens := w.redeem(app, w.signedIn(admin).letIn(app.asks("scope", "admin memory:read"),
		url.Values{"scope": {"admin"}})); tokens.Scope != "admin" {
		t.Errorf("ticked there is %q, want \"admin\"", tokens.Scope)
	}
	own := w.ownApp(admin, "own")
	if tokens := w.redeem(own, w.signedIn(admin).letIn(own.asks("scope", "admin"), nil)); tokens.Scope != "admin" {
		t.Errorf("for an own client there is %q, want \"admin\"", tokens.Scope)
	}
}

// A client with a secret may come without a challenge, as the interface shows it.
func TestClientsWithASecretMayLeaveTheChallengeOut(t *testing.T) {
	w := newWorld(t, server.Options{})
	app := w.ownApp(stranger, "mine")
	asked := app.asks("code_challenge", "", "code_challenge_method", "", "resource", publicAt+"/mcp/")
	w.signedIn(owner).get(asked).stays(http.StatusOK, "Added to this server by sam")
	w.signedIn(stranger).get(asked).stays(http.StatusOK,
		"Added to this server by you, or by a program with one of your tokens")
	form := app.codeForm(w.signedIn(owner).letIn(asked, nil).goesTo(callback).Get("code"))
	form.Del("code_verifier")
	w.post("/oauth/token", form).tokens()
	// A challenge that was sent is looked at, no matter who sends it.
	if answer := w.signedIn(owner).get(app.asks("code_challenge_method",
		"plain")).goesTo(callback); answer.Get("error") != "invalid_request" {
		t.Errorf("%v", answer)
	}
}

func TestAuthorizationUnderAPrefix(t *testing.T) {
	w := newWorld(t, server.Options{PublicURL: "http://memory.example/under/here"})
	app := w.register("none")
	if next := w.browser().get(app.asks()).goesTo("/under/here/login?next=").Get("next"); !strings.HasPrefix(next,
		"/oauth/authorize?") {
		t.Errorf("next is %q, want at its start \"/oauth/authorize?\"", next)
	}
	page := w.signedIn(owner).get(app.asks()).stays(http.StatusOK, `action="/under/here/oauth/authorize"`)
	page.without(`"/oauth/`)
	if answer := w.signedIn(owner).letIn(app.asks(),
		nil).goesTo(callback); answer.Get("iss") != "http://memory.example/under/here" {
		t.Errorf("%v", answer)
	}
}

// A failure of the server is reported to the client, and its cause to the log alone.
func TestFailuresOfTheServerAtAuthorization(t *testing.T) {
	w := newWorld(t, server.Options{})
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	w.browser().get("/oauth/authorize?client_id=x&redirect_uri=https://x.example").stays(
		http.StatusInternalServerError).without("closed")
}
