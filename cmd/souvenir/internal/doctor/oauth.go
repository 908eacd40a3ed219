package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// tokenEndpoint asks for a token as an unknown client: clients register again when they get the right error.
func (p *patient) tokenEndpoint(ctx context.Context) {
	form := url.Values{"grant_type": {"authorization_code"}, "code": {"x"}, "redirect_uri": {"https://client.example/cb"},
		"client_id": {"doctor-unknown"}, "code_verifier": {strings.Repeat("x", 43)}}
	a, err := p.send(ctx, request{method: http.MethodPost, url: "/oauth/token", kind: mediaForm, body: form.Encode(),
		headers: map[string]string{"Origin": foreignOrigin}})
	if err != nil {
		p.note("token", Problem, "/oauth/token "+first(unreachable(err)), "")
		return
	}
	var answer struct{ Error string }
	switch {
	case !a.isJSON(&answer):
		p.note("token", Problem, "/oauth/token returned an error as "+a.describe()+
			", not as JSON; clients cannot recover",
			"Let the proxy pass errors on unchanged (nginx: no proxy_intercept_errors, no error_page).")
	case a.StatusCode != http.StatusUnauthorized || answer.Error != "invalid_client":
		p.note("token", Problem, fmt.Sprintf(
			"an unknown client gets %s and %q, not 401 and invalid_client; clients do not register again", a.describe(),
			answer.Error), "Let the proxy pass on statuses unchanged.")
	case !strings.Contains(a.Header.Get("Cache-Control"), "no-store"):
		p.note("token", Problem, "answers of /oauth/token may be cached: Cache-Control is "+
			quoted(a.Header.Values("Cache-Control")), "Let the proxy pass on Cache-Control unchanged.")
	case !p.sharedWithAll(a):
		p.note("token", Problem, "pages of other origins may not read answers of /oauth/token", hintCORS)
	default:
		p.ok("token", "/oauth/token reports errors as clients expect")
	}
}

// kind is a kind of client, with its redirect URIs.
type kind struct {
	name     string
	callback []string
	asks     string // the redirect URI that it uses; empty: the first
}

// kinds are the kinds of clients seen in practice.
var kinds = []kind{
	{"Claude", []string{"https://claude.ai/api/mcp/auth_callback", "https://claude.com/api/mcp/auth_callback"}, ""},
	{"Claude Code", []string{"http://localhost:49152/callback"},
		"http://localhost:53682/callback"}, // on any free port
	{"ChatGPT", []string{"https://chatgpt.com/connector/oauth/doctor"}, ""},
	{"VS Code", []string{"https://vscode.dev/redirect", "https://insiders.vscode.dev/redirect", "http://127.0.0.1/",
		"http://127.0.0.1:33418/"}, ""},
	{"Cursor", []string{"cursor://anysphere.cursor-mcp/oauth/callback", "https://www.cursor.com/agents/mcp/oauth/callback",
		"http://localhost:8787/callback"}, ""},
}

// registrations registers each kind of client, and follows it as far as the sign-in. The clients get no grant, so
// the server forgets them after a day.
func (p *patient) registrations(ctx context.Context) {
	if p.options.NoRegister {
		return
	}
	var names []string
	for _, k := range kinds {
		body, err := json.Marshal(map[string]any{"client_name": "souvenir doctor", "redirect_uris": k.callback,
			"token_endpoint_auth_method": "none",
			"grant_types":                []string{"authorization_code", "refresh_token"}, "response_types": []string{"code"}})
		if err != nil {
			return // strings always encode
		}
		a, err := p.send(ctx, request{method: http.MethodPost, url: "/oauth/register", kind: mediaJSON, body: string(body),
			headers: map[string]string{"Origin": foreignOrigin}})
		if err != nil {
			p.note("register", Problem, "/oauth/register "+first(unreachable(err)), "")
			return
		}
		var registered struct {
			ID        string   `json:"client_id"`
			Callbacks []string `json:"redirect_uris"`
		}
		switch {
		case a.StatusCode == http.StatusTooManyRequests:
			p.note("register", Warning, "too many clients have registered from here lately, so registration was not tested",
				"Wait for the seconds in Retry-After: "+a.Header.Get("Retry-After")+".")
			return
		case a.StatusCode != http.StatusCreated || !a.isJSON(&registered) || registered.ID == "":
			p.note("register", Problem, k.name+" cannot register: "+a.describe()+" "+short(a.body),
				"Let the proxy pass /oauth/register on unchanged; if the answer is the server's, report a bug.")
			return
		case !slices.Equal(registered.Callbacks, k.callback):
			p.note("register", Problem, k.name+" registers "+strings.Join(k.callback, ", ")+" and gets back "+
				strings.Join(registered.Callbacks, ", "),
				"Something changed the answer on its way; let the proxy pass it on unchanged.")
			return
		case bytes.Contains(a.body, []byte("null")):
			p.note("register", Problem, k.name+" gets null in its registration, which some clients reject",
				"Something changed the answer on its way; let the proxy pass it on unchanged.")
			return
		}
		if !p.authorization(ctx, k, registered.ID) {
			return
		}
		names = append(names, k.name)
	}
	p.ok("register", "%s can register (the server forgets these clients after a day)", strings.Join(names, ", "))
	p.signIn(ctx)
}

func short(body []byte) string {
	const most = 120
	text := strings.Join(strings.Fields(string(body)), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// authorization starts the sign-in of a client.
func (p *patient) authorization(ctx context.Context, k kind, id string) bool {
	callback := k.asks
	if callback == "" {
		callback = k.callback[0]
	}
	query := url.Values{"response_type": {"code"}, "client_id": {id}, "redirect_uri": {callback}, "state": {"doctor"},
		"resource":       {p.at + "/mcp"},
		"code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}, "code_challenge_method": {"S256"},
		"scope": {"memory:read"}}
	a, err := p.send(ctx, request{url: "/oauth/authorize?" + query.Encode()})
	if err != nil {
		p.note("authorize", Problem, "/oauth/authorize "+first(unreachable(err)), "")
		return false
	}
	to, err := a.Location()
	switch {
	case !a.redirects() || err != nil:
		p.note("authorize", Problem, k.name+" with "+callback+" returned "+a.describe()+
			", and does not lead to the sign-in", "See the server's log.")
		return false
	case to.Query().Has("error"):
		p.note("authorize", Problem, k.name+" was rejected with "+to.Query().Get("error")+": "+
			to.Query().Get("error_description"), hintPublicURL)
		return false
	case to.Scheme+"://"+to.Host != p.origin() || to.Path != p.url.Path+"/login":
		p.note("authorize", Problem, "the sign-in redirects to "+to.Scheme+"://"+to.Host+to.Path+
			", which is not below "+p.at,
			"Let the proxy pass on Location unchanged (nginx: proxy_redirect off;), and "+strings.ToLower(hintPublicURL[:1])+
				hintPublicURL[1:])
		return false
	}
	return true
}

// signIn checks the sign-in page.
func (p *patient) signIn(ctx context.Context) {
	a, err := p.send(ctx, request{url: "/login"})
	if err != nil {
		p.note("login", Problem, "/login "+first(unreachable(err)), "")
		return
	}
	policy := a.Header.Get("Content-Security-Policy")
	cookies := a.Cookies()
	secure := len(cookies) > 0 &&
		!slices.ContainsFunc(cookies, func(c *http.Cookie) bool { return !c.Secure || !c.HttpOnly })
	page := string(a.body)
	style := ""
	if _, rest, ok := strings.Cut(page, `rel="stylesheet" href="`); ok {
		style, _, _ = strings.Cut(rest, `"`)
	}
	switch {
	case a.StatusCode != http.StatusOK || !strings.Contains(page, `name="password"`):
		p.note("login", Problem, "/login returned "+a.describe()+", without a sign-in form",
			"Let the proxy pass pages on unchanged.")
	case len(cookies) == 0:
		p.note("login", Problem, "/login sets no cookie, so sign-in is impossible", "Let the proxy pass on Set-Cookie.")
	case p.url.Scheme == "https" && !secure:
		p.note("login", Problem, "the cookie of /login is not Secure or not HttpOnly", hintPublicURL)
	case !strings.Contains(a.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'"):
		p.note("login", Warning, "pages have a different Content-Security-Policy from the server's: "+
			quoted(a.Header.Values("Content-Security-Policy")), "Let the proxy pass it on unchanged.")
	case strings.Contains(strings.Join(a.Header.Values("Content-Security-Policy"), ","), "form-action"):
		p.note("login", Problem, "Content-Security-Policy has form-action; Chromium then blocks the redirect to the client",
			"Remove form-action from the proxy's configuration: "+policy)
	default:
		u, err := p.url.Parse(style)
		if err != nil {
			return
		}
		if css, err := p.send(ctx, request{url: u.String()}); err != nil || css.StatusCode != http.StatusOK ||
			!strings.Contains(css.Header.Get("Content-Type"), "css") {
			p.note("login", Warning, "the style sheet of the pages cannot be loaded from "+u.String(),
				"Let the proxy forward everything below "+p.at+" to the server.")
			return
		}
		p.ok("login", "people can sign in")
	}
}
