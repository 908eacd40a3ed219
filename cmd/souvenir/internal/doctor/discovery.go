package doctor

import (
	"context"
	"net/http"
	"slices"
	"strings"
)

const hintPublicURL = "Start the server with --public-url set to exactly the URL that people enter in their clients."

// serverMetadata reads the authorization server's metadata where clients look for it (RFC 8414).
func (p *patient) serverMetadata(ctx context.Context) {
	const wellKnown = "/.well-known/oauth-authorization-server"
	var metadata struct {
		Issuer        string   `json:"issuer"`
		Authorization string   `json:"authorization_endpoint"`
		Token         string   `json:"token_endpoint"`
		Registration  string   `json:"registration_endpoint"`
		Methods       []string `json:"code_challenge_methods_supported"`
	}
	where := p.atHostRoot(wellKnown, "")
	a, err := p.send(ctx, request{url: where, headers: map[string]string{"Origin": foreignOrigin}})
	switch {
	case err != nil:
		p.note("metadata", Problem, where+" "+first(unreachable(err)), "")
		return
	case a.StatusCode != http.StatusOK || !a.isJSON(&metadata):
		p.note("metadata", Problem, where+" returned "+a.describe()+"; without it clients cannot find the sign-in",
			p.hintWellKnown())
		return
	case metadata.Issuer != p.at:
		p.note("metadata", Problem, "the issuer is "+metadata.Issuer+", not exactly "+p.at+
			"; clients refuse it", hintPublicURL)
		return
	}
	for name, address := range map[string]string{"authorization_endpoint": metadata.Authorization,
		"token_endpoint": metadata.Token, "registration_endpoint": metadata.Registration} {
		if !strings.HasPrefix(address, p.at+"/") {
			p.note("metadata", Problem, name+" is "+address+", which is not below "+p.at, hintPublicURL)
			return
		}
	}
	if !slices.Contains(metadata.Methods, "S256") {
		p.note("metadata", Problem, "code_challenge_methods_supported lacks S256; MCP clients refuse to sign in",
			"Something changed the document on its way; let the proxy pass it on unchanged.")
		return
	}
	if !p.sharedWithAll(a) {
		p.note("metadata", Problem, "pages of other origins may not read the metadata (Access-Control-Allow-Origin is "+
			quoted(a.Header.Values("Access-Control-Allow-Origin"))+")", hintCORS)
		return
	}
	for _, alias := range []string{p.at + wellKnown, p.at + "/.well-known/openid-configuration"} {
		if b, err := p.send(ctx, request{url: alias}); err != nil || string(b.body) != string(a.body) {
			p.note("metadata", Warning, alias+" is not the same document; some clients look there", p.hintWellKnown())
			return
		}
	}
	p.ok("metadata", "issuer and endpoints match %s", p.at)
}

// first returns the first of a pair: the message.
func first(message, _ string) string { return message }

func quoted(values []string) string {
	if len(values) == 0 {
		return "missing"
	}
	return `"` + strings.Join(values, `", "`) + `"`
}

func (p *patient) hintWellKnown() string {
	if p.url.Path != "" {
		return "The URL has a path, so clients look at the root of the host: let the proxy forward /.well-known/ to the " +
			"server as well, with the path unchanged."
	}
	return "Let the proxy forward /.well-known/ to the server, too; some proxies keep it for certificates (ACME needs " +
		"only /.well-known/acme-challenge/)."
}

// resourceMetadata reads the resource's metadata (RFC 9728), for the MCP endpoint and for the service.
func (p *patient) resourceMetadata(ctx context.Context) {
	for _, rest := range []string{"/mcp", ""} {
		where := p.atHostRoot("/.well-known/oauth-protected-resource", rest)
		var metadata struct {
			Resource string   `json:"resource"`
			Servers  []string `json:"authorization_servers"`
		}
		a, err := p.send(ctx, request{url: where, headers: map[string]string{"Origin": foreignOrigin}})
		switch {
		case err != nil:
			p.note("resource", Problem, where+" "+first(unreachable(err)), "")
			return
		case a.StatusCode != http.StatusOK || !a.isJSON(&metadata):
			p.note("resource", Problem, where+" returned "+a.describe()+
				"; without it clients cannot find the sign-in",
				p.hintWellKnown())
			return
		case metadata.Resource != p.at+rest:
			p.note("resource", Problem, "resource is "+metadata.Resource+", not exactly "+p.at+rest+
				"; clients refuse it", hintPublicURL)
			return
		case len(metadata.Servers) != 1 || metadata.Servers[0] != p.at:
			p.note("resource", Problem, "authorization_servers is "+quoted(metadata.Servers)+", which is not "+p.at,
				hintPublicURL)
			return
		case !p.sharedWithAll(a):
			p.note("resource", Problem, "pages of other origins may not read "+where, hintCORS)
			return
		}
	}
	p.ok("resource", "resource and authorization server match %s", p.at)
}

const ping = `{"jsonrpc": "2.0", "id": 1, "method": "ping"}`

// challenge sends a message without a credential: the answer must lead to the sign-in.
func (p *patient) challenge(ctx context.Context) {
	a, err := p.send(ctx, request{method: http.MethodPost, url: "/mcp", kind: mediaJSON, body: ping,
		headers: map[string]string{"Accept": mediaMCP, "Origin": p.origin()}})
	if err != nil {
		p.note("challenge", Problem, "/mcp "+first(unreachable(err)), "")
		return
	}
	leads := a.Header.Get("WWW-Authenticate")
	wanted := p.atHostRoot("/.well-known/oauth-protected-resource", "/mcp")
	switch {
	case a.StatusCode == http.StatusOK:
		p.note("challenge", Problem, "/mcp accepts requests without a credential: something adds one on the way",
			"Remove the credential from the proxy's configuration; each client has its own.")
	case a.StatusCode != http.StatusUnauthorized:
		p.note("challenge", Problem, "/mcp without a credential returned "+a.describe()+
			", not 401; clients do not ask people to sign in",
			"Let the proxy pass /mcp and its answers on unchanged, without a sign-in or a bot check of its own.")
	case leads == "":
		p.note("challenge", Problem, "the 401 of /mcp has no WWW-Authenticate; clients cannot find the sign-in",
			"Let the proxy pass on that header, and errors unchanged (nginx: no proxy_intercept_errors, no "+
				"proxy_hide_header).")
	case !strings.Contains(leads, `resource_metadata="`+wanted+`"`):
		p.note("challenge", Problem, "the 401 of /mcp leads to other metadata than "+wanted+": "+leads, hintPublicURL)
	case !strings.Contains(leads, `scope="`):
		p.note("challenge", Warning, "the 401 of /mcp names no scopes: "+leads,
			"Let the proxy pass on WWW-Authenticate unchanged.")
	case !exposes(a, "WWW-Authenticate"):
		p.note("challenge", Warning, "pages in browsers may not read WWW-Authenticate", hintCORS)
	default:
		p.ok("challenge", "/mcp returns 401 and leads to the sign-in")
	}
}

// origin returns the origin of the server's own pages.
func (p *patient) origin() string { return p.url.Scheme + "://" + p.url.Host }

// credentials checks that credentials arrive: a wrong one is answered differently from none.
func (p *patient) credentials(ctx context.Context) {
	const wrong = "mcp_0000000000000000000000000000000000000000000"
	lost := ""
	for name, value := range map[string]string{"Authorization": "Bearer " + wrong, "X-MCP-Token": wrong} {
		a, err := p.send(ctx, request{method: http.MethodPost, url: "/mcp", kind: mediaJSON, body: ping,
			headers: map[string]string{"Accept": mediaMCP, name: value}})
		if err != nil || a.StatusCode != http.StatusUnauthorized || a.Header.Get("WWW-Authenticate") == "" {
			return // the challenge has reported it
		}
		if !strings.Contains(a.Header.Get("WWW-Authenticate"), `error="invalid_token"`) {
			lost = name
		}
		if lost == "Authorization" {
			break
		}
	}
	switch lost {
	case "":
		p.ok("credentials", "Authorization and X-MCP-Token arrive")
	case "Authorization":
		p.note("credentials", Problem, "the Authorization header does not arrive, so every token is rejected",
			"Let the proxy pass it on (Apache: CGIPassAuth On; nginx: no proxy_set_header Authorization \"\"; no Basic "+
				"sign-in of the proxy's own).")
	default:
		p.note("credentials", Warning, "the "+lost+
			" header does not arrive; clients that send Authorization are not affected", "Let the proxy pass it on.")
	}
}

// slashes checks whether the endpoint, and its address with a slash, redirect: clients follow without their
// message.
func (p *patient) slashes(ctx context.Context) {
	for _, path := range []string{"/mcp", "/mcp/"} {
		for _, method := range []string{http.MethodPost, http.MethodGet} {
			q := request{method: method, url: path, headers: map[string]string{"Accept": mediaMCP}}
			if method == http.MethodPost {
				q.kind, q.body = mediaJSON, ping
			}
			if a, err := p.send(ctx, q); err == nil && a.redirects() {
				p.note("slashes", Problem, method+" "+path+" is redirected to "+a.Header.Get("Location")+
					"; clients lose their message or their token",
					"Let the proxy pass on paths unchanged (nginx: location / with proxy_pass and no path; no rule that adds or "+
						"removes slashes).")
				return
			}
		}
	}
	p.ok("slashes", "/mcp and /mcp/ do not redirect")
}

const (
	foreignOrigin = "https://inspector.example"
	hintCORS      = "The server sends the CORS headers itself: let the proxy neither add, repeat nor remove them, " +
		"nor answer OPTIONS."
)

// preflights asks, as browsers do, whether pages of other origins may send the requests of clients in browsers.
func (p *patient) preflights(ctx context.Context) {
	wanted := []string{"Authorization", "Content-Type", "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Session-Id"}
	for path, method := range map[string]string{
		"/mcp": "POST", "/oauth/token": "POST", "/oauth/register": "POST", "/oauth/revoke": "POST",
		"/.well-known/oauth-authorization-server": "GET", "/.well-known/oauth-protected-resource/mcp": "GET",
	} {
		where := path
		if wellKnown, rest, ok := strings.Cut(path, "/mcp"); ok && wellKnown != "" {
			where = p.atHostRoot(wellKnown, "/mcp"+rest)
		} else if strings.HasPrefix(path, "/.well-known/") {
			where = p.atHostRoot(path, "")
		}
		a, err := p.send(ctx, request{method: http.MethodOptions, url: where,
			headers: map[string]string{"Origin": foreignOrigin,
				"Access-Control-Request-Method":  method,
				"Access-Control-Request-Headers": strings.ToLower(strings.Join(wanted, ","))}})
		if err != nil {
			p.note("cors", Problem, "OPTIONS "+path+" "+first(unreachable(err)), "")
			return
		}
		if a.StatusCode >= 300 || !p.sharedWithAll(a) || !lists(a, "Access-Control-Allow-Methods", method) {
			p.note("cors", Problem, "OPTIONS "+path+" returned "+a.describe()+" and Access-Control-Allow-Origin "+
				quoted(a.Header.Values("Access-Control-Allow-Origin"))+"; clients in browsers cannot use it", hintCORS)
			return
		}
		for _, name := range wanted {
			if !lists(a, "Access-Control-Allow-Headers", name) {
				p.note("cors", Problem, "OPTIONS "+path+" does not allow the header "+name+"; clients in browsers cannot use it",
					hintCORS)
				return
			}
		}
	}
	p.ok("cors", "clients in browsers can use the endpoints")
}

// sharedWithAll reports whether pages of all origins may read an answer. Two headers count as none.
func (p *patient) sharedWithAll(a answer) bool {
	values := a.Header.Values("Access-Control-Allow-Origin")
	return len(values) == 1 && (values[0] == "*" || values[0] == foreignOrigin)
}

func exposes(a answer, name string) bool { return lists(a, "Access-Control-Expose-Headers", name) }

// lists reports whether a header that is a list contains a word.
func lists(a answer, header, word string) bool {
	return slices.ContainsFunc(strings.Split(strings.Join(a.Header.Values(header), ","), ","), func(part string) bool {
		return strings.EqualFold(strings.TrimSpace(part), word)
	})
}

// bodies sends a body of the size of a long memory. The server must refuse it for the missing credential, not for its
// length.
func (p *patient) bodies(ctx context.Context) {
	const size = 2 << 20
	large := request{method: http.MethodPost, url: "/tools/call", kind: mediaJSON, body: strings.Repeat(" ", size),
		headers: map[string]string{"Expect": "100-continue"}}
	a, err := p.send(ctx, large)
	for range 4 { // a server that answers early may close the connection and lose the answer, which proves nothing
		if err == nil || ctx.Err() != nil {
			break
		}
		a, err = p.send(ctx, large)
	}
	switch {
	case err == nil && a.StatusCode == http.StatusRequestEntityTooLarge:
		p.note("bodies", Problem, "the proxy rejects requests of 2 MiB; long memories and files cannot be stored",
			"Raise its limit to the maximum size of a file: 100 MiB, or the value of --max-file (nginx: "+
				"client_max_body_size 101m;).")
	case err == nil && a.StatusCode == http.StatusUnauthorized:
		p.ok("bodies", "requests of 2 MiB arrive")
	case err == nil:
		p.note("bodies", Warning, "a request of 2 MiB returned "+a.describe(),
			"Check how the proxy handles large requests.")
	}
}
